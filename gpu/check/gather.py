"""Gathers the packages that are carried to a machine with a GPU and no way to the outside.

    make gpu-wheels        archives in build/gpu-wheels, and how large all is that is carried

Wheels for Python 3.12 on x86-64 Linux, of the versions in constraints.txt, unpacked and packed
again by xz: Numba's compiler alone is 57 MiB as a wheel and 38 so. `surroundings` takes from them
what the machine lacks. With them goes what `make gpu-compile` has compiled, for one architecture.
The exit status is 1 if the tree and these archives are more than 64 MiB together.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from gpu.check.kernel_cache import pack_kernels
from gpu.check.plan import ROOT
from gpu.check.surroundings import CARRIED, KERNELS

__all__ = ["pack", "pinned", "size_of_tree"]

LIMIT = 64 * 2**20
"""Bytes that may be carried."""

_PYTHON, _TAG = "3.12", "cp312_linux_x86_64"
_PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 25, 24, 17, 12)]
_PLATFORMS += ["manylinux2014_x86_64"]
# Beyond torch, Triton, NumPy, SciPy and scikit-learn; CVXPY's other solvers are not asked for.
_PACKAGES = (
    "pytest", "iniconfig", "packaging", "pluggy", "pygments", "pytest-xdist", "execnet",
    "cvxpy", "clarabel", "qdldl", "cffi", "pycparser",
    "numba", "llvmlite",
)  # fmt: skip
# For compute-sanitizer, which comes with CUDA's toolkit and not with its driver; packages of the
# toolkits that torch 2.11 is made with lack a program that it starts.
_TOOLS = {"nvidia-cuda-sanitizer-api": "13.5.25"}
_COMPILED = ROOT / "build" / "gpu-compile" / "triton"  # by `make gpu-compile`
_LEFT_OUT = re.compile(r"(^|/)(tests?|include|compute-sanitizer/docs|x86)/|\.(pyi|h|pxd)$")


def main() -> int:
    """Gather, and say what is carried; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m gpu.check.gather", description=__doc__)
    parser.add_argument("--without", action="append", default=[], metavar="PACKAGE")
    parser.add_argument("--arch", type=int, default=90, help="compute capability (default 90)")
    options = parser.parse_args()
    CARRIED.mkdir(parents=True, exist_ok=True)
    versions = pinned((ROOT / "constraints.txt").read_text(encoding="utf-8"), _PACKAGES) | _TOOLS
    wanted = {name: number for name, number in versions.items() if name not in options.without}
    kept = set()
    for name, number in wanted.items():
        stem = f"{name.replace('-', '_')}-{number}"
        found = [CARRIED / f"{stem}-{tag}.tar.xz" for tag in ("any", _TAG)]
        archive = next((path for path in found if path.exists()), None)
        if archive is None:
            archive = _gathered(name, number)
        kept.add(archive)
    kernels = CARRIED / f"{KERNELS}{options.arch}.tar.xz"
    if pack_kernels(_COMPILED, kernels, options.arch):
        kept.add(kernels)
    for path in CARRIED.glob("*.tar.xz"):
        if path not in kept:
            path.unlink()
    return _said(kept)


def pinned(constraints: str, packages: tuple[str, ...]) -> dict[str, str]:
    """Versions of packages.

    Parameters
    ----------
    constraints : str
        Lines such as "numba==0.68.1".
    packages : tuple of str

    Raises
    ------
    KeyError
        If one has no version there.
    """
    lines = (line.split("#")[0].strip() for line in constraints.splitlines())
    versions = dict(line.lower().split("==") for line in lines if "==" in line)
    return {name: versions[name] for name in packages}


def _gathered(name: str, number: str) -> Path:
    """Download a wheel and pack it again."""
    with tempfile.TemporaryDirectory(dir=CARRIED) as folder:
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--only-binary=:all:", "--implementation", "cp", "--python-version", _PYTHON),
                *(word for platform in _PLATFORMS for word in ("--platform", platform)),
                *("--dest", folder, f"{name}=={number}"),
            ],
            check=True,
        )
        (wheel,) = Path(folder).glob("*.whl")
        return pack(wheel, CARRIED)


def pack(wheel: Path, into: Path) -> Path:
    """Write the files of a wheel to an archive, without its tests and headers.

    Parameters
    ----------
    wheel : Path
    into : Path
        A folder.

    Returns
    -------
    Path
        ``<package>-<version>-<tag>.tar.xz``; it appears when it is complete.
    """
    name, number, *_, system = wheel.stem.split("-")
    archive = into / f"{name}-{number}-{'any' if system == 'any' else _TAG}.tar.xz"
    with tempfile.TemporaryDirectory(dir=into) as folder:
        packed, tree = Path(folder) / archive.name, Path(folder) / "tree"
        with zipfile.ZipFile(wheel) as file:
            for member in file.infolist():
                if not _LEFT_OUT.search(member.filename):
                    path = Path(file.extract(member, tree))
                    # Python's own zipfile forgets which files can be run.
                    path.chmod(
                        0o755 if member.is_dir() or member.external_attr >> 22 & 1 else 0o644
                    )
        with tarfile.open(packed, "w:xz", preset=9) as out:
            out.add(tree, arcname=".")
        packed.replace(archive)
    return archive


def size_of_tree(root: Path = ROOT) -> int:
    """Bytes of the files that git does not ignore.

    Parameters
    ----------
    root : Path
        Of the working tree.
    """
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others"]
    done = subprocess.run([*command, "--exclude-standard"], capture_output=True, check=True)
    names = {name for name in done.stdout.decode().split("\0") if name}
    return sum((root / name).stat().st_size for name in names if (root / name).is_file())


def _said(archives: set[Path]) -> int:
    lines = {path.name: path.stat().st_size for path in sorted(archives)}
    lines["files of the tree"] = size_of_tree()
    total = sum(lines.values())
    for name, size in lines.items():
        sys.stdout.write(f"{size / 2**20:8.2f} MiB  {name}\n")
    verdict = "fits" if total <= LIMIT else "does NOT fit: leave a package out (--without)"
    sys.stdout.write(f"{total / 2**20:8.2f} MiB  of {LIMIT / 2**20:.0f}: {verdict}\n")
    return 0 if total <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
