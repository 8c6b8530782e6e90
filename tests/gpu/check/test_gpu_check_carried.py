"""Packages that are carried to a machine with a GPU: packed, unpacked, used where they lack."""

import json
import stat
import zipfile
from pathlib import Path

import pytest
from gpu_check import ROOT, inside


def wheel(folder: Path, name: str, number: str, system: str, files: dict[str, str]) -> Path:
    path = folder / f"{name}-{number}-py3-none-{system}.whl"
    with zipfile.ZipFile(path, "w") as file:
        for member, text in files.items():
            info = zipfile.ZipInfo(member)
            mode = 0o755 if member.startswith("bin/") else 0o644
            info.external_attr = (stat.S_IFREG | mode) << 16
            file.writestr(info, text)
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n"
        file.writestr(f"{name}-{number}.dist-info/METADATA", metadata)
    return path


@pytest.fixture
def carried(tmp_path) -> Path:
    """Archives of a package of no machine, one of this machine, one of another, and of torch."""
    made = tmp_path / "wheels"
    made.mkdir()
    wheels = [
        wheel(made, "new_package", "1.2", "any", {
            "new_package/__init__.py": "value = 42\n", "new_package/tests/test_x.py": "",
            "bin/a-program": "#!/bin/sh\n",
        }),
        wheel(made, "elsewhere", "3.0", "manylinux_2_28_aarch64", {"elsewhere.py": ""}),
        wheel(made, "torch", "0.1", "any", {"torch/__init__.py": "raise ImportError\n"}),
    ]  # fmt: skip
    folder = tmp_path / "carried"
    folder.mkdir()
    done = inside(f"""
from pathlib import Path
from gpu.check.gather import pack
for wheel in {list(map(str, wheels))!r}:
    print(pack(Path(wheel), Path({str(folder)!r})).name)
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "new_package-1.2-any.tar.xz",
        "elsewhere-3.0-cp312_linux_x86_64.tar.xz",
        "torch-0.1-any.tar.xz",
    ]
    assert len(list(folder.iterdir())) == 3  # nothing half-done beside them
    # Whatever this machine is, that one is made for another.
    other = folder / "elsewhere-3.0-cp399_linux_riscv64.tar.xz"
    (folder / "elsewhere-3.0-cp312_linux_x86_64.tar.xz").rename(other)
    return folder


def test_what_a_machine_lacks_is_unpacked_and_found(carried, tmp_path):
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    done = inside(f"""
import json, os, subprocess, sys
from pathlib import Path
from gpu.check.surroundings import environment
variables, said = environment(Path({str(unpacked)!r}), Path({str(carried)!r}))
script = (
    "import importlib.util as u, new_package; print(new_package.value, u.find_spec('torch').origin)"
)
found = subprocess.run(
    [sys.executable, "-c", script], env=variables, capture_output=True, text=True, check=True
)
print(json.dumps([said, *found.stdout.split(), variables["TRITON_CACHE_DIR"]]))
""")
    assert done.returncode == 0, done.stderr
    said, value, torch, cache = json.loads(done.stdout)
    assert said["new_package"] == "1.2"
    assert said["elsewhere"] == "not used: made for cp399_linux_riscv64"
    assert said["torch"].startswith("not used: ")
    assert value == "42"
    assert not Path(torch).is_relative_to(unpacked)
    assert Path(cache) == ROOT / "build" / "gpu-kernels"
    program = unpacked / "new_package" / "bin" / "a-program"
    assert program.stat().st_mode & stat.S_IXUSR
    assert not (unpacked / "new_package" / "new_package" / "tests").exists()


def test_a_users_own_cache_of_kernels_stays(tmp_path):
    script = f"""
from pathlib import Path
from gpu.check.surroundings import environment
print(environment(Path({str(tmp_path)!r}), Path("nowhere"))[0]["TRITON_CACHE_DIR"])
"""
    assert inside(script, TRITON_CACHE_DIR="/a/folder").stdout.strip() == "/a/folder"


def test_what_is_gathered_is_pinned():
    done = inside("""
import json
from pathlib import Path
from gpu.check.gather import _PACKAGES, pinned
from gpu.check.plan import ROOT
print(json.dumps(pinned((ROOT / "constraints.txt").read_text(), _PACKAGES)))
""")
    assert done.returncode == 0, done.stderr
    versions = json.loads(done.stdout)
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(
        f"{name}=={number}" in lines for name, number in versions.items() if name != "pygments"
    )
    assert {"numba", "llvmlite", "cvxpy", "clarabel", "pytest"} <= set(versions)


def test_the_size_of_what_git_does_not_ignore():
    done = inside("from gpu.check.gather import LIMIT, size_of_tree; print(size_of_tree(), LIMIT)")
    assert done.returncode == 0, done.stderr
    size, limit = map(int, done.stdout.split())
    assert 10**6 < size < limit == 64 * 2**20
