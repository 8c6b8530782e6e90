"""The table of compiled kernels is true; no GPU is needed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "gpu" / "results" / "compiled" / "kernels.json"
SECONDS = 1  # of compiling what no run before has compiled here


# What runs without Triton's interpreter; in one process, as torch and Triton take long to load.
SCRIPTS = {
    "kernels": """
import importlib, pkgutil
import bootprob_gpu
from gpu.compilation.launches import source_of
from triton.runtime.jit import JITFunction

kernels, called = set(), set()
for module in pkgutil.walk_packages(bootprob_gpu.__path__, "bootprob_gpu."):
    if ".triton_" not in module.name or module.name.endswith("triton_choice"):
        continue
    for value in vars(importlib.import_module(module.name)).values():
        if isinstance(value, JITFunction) and value not in kernels:
            kernels.add(value)
            own = value.get_capture_scope()
            names = value.fn.__code__.co_names
            called |= {own[n] for n in names if isinstance(own.get(n), JITFunction)}
print(*sorted(each.__name__ for each in kernels - called))
""",
    "spills": """
import torch
from dataclasses import replace
from gpu.compilation.compiler import measure
from gpu.compilation.launches import noted_launches
from gpu.compilation.shapes import _smo

from bootprob_gpu.hardware.triton_choice import triton_kernels

with noted_launches() as noted, triton_kernels("always"):
    _smo(300, torch.float64, own_labels=False)
variant = noted[0].variant(90)
found = measure(replace(variant, options={"num_warps": 1}))
assert found["registers"] == 255, found
assert found["spilled"] > 0, found
assert found["stack"] > 0, found
found = measure(replace(variant, signature=variant.signature | {"n": "fp32"}))
assert list(found) == ["error"], found
""",
    "arguments": """
import torch, triton
import triton.language as tl
from gpu.compilation.launches import noted_launches

@triton.jit(do_not_specialize=["asked"])
def kernel(array, odd, n, one, asked, BLOCK: tl.constexpr):
    tl.store(array + one + asked, n)

x = torch.zeros(9, dtype=torch.float32)
with noted_launches() as noted:
    for n in (16, 17):
        kernel[(1,)](x, x[1:], n, 1, 1, BLOCK=4, num_warps=2)
even, odd = (each.variant(90) for each in noted)
assert even.key != odd.key
assert even.described | {"not known to be multiples of 16": []} == odd.described | {
    "not known to be multiples of 16": []
}
assert even.described["not known to be multiples of 16"] == ["odd", "asked"]
assert odd.described["not known to be multiples of 16"] == ["odd", "n", "asked"]
assert even.described["constants"] == {"one": 1, "BLOCK": 4}
assert even.described["options"] == {"num_warps": 2}
assert even.described["types"] == ["fp32"]
""",
    "certificates": """
import re
from gpu.compilation.compiler import compiled
from gpu.compilation.launches import noted_launches
from gpu.compilation.shapes import _certificates
from bootprob_gpu.hardware.triton_choice import triton_kernels

for q in (31, 512, 4000):
    with noted_launches() as noted, triton_kernels("always"):
        _certificates(q)
    kernel, _ = compiled(noted[0].variant(90))
    steps = re.findall(r"ld[.]global|st[.]global|bar[.]sync", kernel.asm["ptx"])
    stored = steps.index("st.global")
    assert "ld.global" not in steps[stored:], q
    assert steps[stored - 1] == "bar.sync", q
""",
    "carried": """
import os, shutil, tempfile
from pathlib import Path
from unittest.mock import patch
import torch, triton
from triton.backends.nvidia.compiler import CUDABackend
from gpu.check.kernel_cache import pack_kernels, unpack_kernels
from gpu.compilation.launches import noted_launches
from bootprob_gpu.interior_point.normal_matrices import solved
from bootprob_gpu.hardware.triton_choice import triton_kernels

q = 5
with triton_kernels("always"), noted_launches() as noted:
    solved(torch.ones(3, q).double(), torch.ones(3, q, q).double(), *torch.ones(2, 3, q).double(),
           torch.ones(3).long())
(launch,) = noted
variant = launch.variant(90)

def compiled(cache):
    with patch.dict(os.environ, TRITON_CACHE_DIR=str(cache)):
        return triton.compile(variant.ast_source, target=variant.target, options=variant.options)

def make_cubin(*args, **kwargs):
    raise AssertionError("compiled again")

with tempfile.TemporaryDirectory() as folder:
    names = "here", "there", "kernels-sm90.tar.xz", "nowhere"
    here, there, archive, nowhere = (Path(folder) / name for name in names)
    first = compiled(here)
    assert (pack_kernels(here, archive, 80), archive.exists()) == (0, False)
    assert pack_kernels(here, archive, 90) == 1
    shutil.rmtree(here)
    assert [unpack_kernels(archive, there) for _ in range(2)] == [1, 0]
    with patch.object(CUDABackend, "make_cubin", make_cubin):
        again = compiled(there)
        assert again.asm["cubin"] == first.asm["cubin"]
        assert again.metadata.num_warps == first.metadata.num_warps
        try:
            compiled(nowhere)
        except AssertionError:
            print("Were it not there, it would have been compiled.")
""",
    "table": f"""
import os, runpy, sys

sys.argv = ["gpu.compilation", "--check", "{SECONDS}", "--processes", "1", "--seed"]
sys.argv.append(os.environ["BOOTPROB_TEST_SEED"])
runpy.run_module("gpu.compilation", run_name="__main__")
""",
    # Last, as what it imports is the copy's; in no time nothing is compiled.
    "changed": """
import os, runpy, sys

copy = os.environ["CHANGED_COPY"]
sys.path[:0] = [copy, f"{copy}/gpu"]
for name in list(sys.modules):
    if name.split(".")[0] in ("bootprob", "bootprob_gpu", "gpu"):
        del sys.modules[name]
sys.argv = ["gpu.compilation", "--check", "0", "--cache", f"{copy}/cache"]
runpy.run_module("gpu.compilation", run_name="__main__")
""",
}
ONE_BY_ONE = """
import contextlib, io, json, runpy, sys, traceback
said = {}
for path in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            runpy.run_path(path)
        except SystemExit as end:
            print("exit status", end.code)
        except BaseException:
            traceback.print_exc(file=out)
    said[path] = out.getvalue()
print(json.dumps(said))
"""


def rows() -> list[dict]:
    return json.loads(TABLE.read_text(encoding="utf-8"))["rows"]


def a_row() -> dict:
    return next(each for each in rows() if each["kernel"] == "_votes")


def changed_copy(folder: Path) -> Path:
    """A copy of the project with changes, that knows the result of one row."""
    for name in ("bootprob", "gpu"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))

    def change(path: str, old: str, new: str) -> None:
        file = folder / path
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    steps = "gpu/bootprob_gpu/interior_point/triton_steps.py"
    change(steps, "    return da, -(t + t", "    return da, -(t * 1.0 + t")
    change(steps, '"""State of a block', '"""\n    The state of a block')
    certificates = "gpu/bootprob_gpu/interior_point/triton_certificate.py"
    change(
        certificates, "num_warps=min(16, max(1, Q // 512))", "num_warps=min(16, max(1, Q // 256))"
    )
    row = a_row()
    measured = folder / "cache" / "measured"
    measured.mkdir(parents=True)
    names = ("registers", "warps", "shared", "spilled", "stack", "programs")
    known = json.dumps({name: row[name] for name in names})
    (measured / f"{row['key']}.json").write_text(known, encoding="utf-8")
    wrong = {**row, "registers": row["registers"] + 1, "spilled": 8}
    change(
        "gpu/results/compiled/kernels.json",
        json.dumps(row, ensure_ascii=False), json.dumps(wrong, ensure_ascii=False),
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> dict[str, str]:
    """What each script printed; nothing, if all of it holds."""
    folder = tmp_path_factory.mktemp("scripts")
    copy = changed_copy(tmp_path_factory.mktemp("copy"))
    paths = {name: folder / f"{name}.py" for name in SCRIPTS}  # Triton reads the source of kernels
    for name, path in paths.items():
        path.write_text(SCRIPTS[name], encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "gpu")]),
        "OMP_NUM_THREADS": "1",
        "CHANGED_COPY": str(copy),
    }
    done = subprocess.run(
        [sys.executable, "-c", ONE_BY_ONE, *map(str, paths.values())],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    found = json.loads(done.stdout)
    return {name: found[str(path)] for name, path in paths.items()}


def test_the_table_is_what_the_compiler_says(said):
    """Every row's key, what was ever compiled here, and a sample by the commit's seed anew."""
    assert said["table"].startswith(f"{len(rows())} variants"), said["table"]
    assert said["table"].endswith("exit status 0\n"), said["table"]


def test_no_kernel_spills_and_all_fit():
    assert {row["capability"] for row in rows()} == {80, 90, 100}
    for row in rows():
        assert row["spilled"] == row["stack"] == 0, row
        assert row["programs"] >= 1, row


def test_every_kernel_of_the_project_is_in_the_table(said):
    """That is: every one that no other calls."""
    assert set(said["kernels"].split()) == {row["kernel"] for row in rows()}


def test_the_jobs_are_those_of_gpu_check():
    from gpu.check.jobs import table
    from gpu.compilation.shapes import JOBS

    assert all(table(name).X.shape == shape for name, shape in JOBS.items())


def test_votes_in_float32_leave_room_for_three_programs():
    of_hopper = [
        row for row in rows()
        if row["kernel"] == "_votes" and row["capability"] == 90
        and "fp32" in row["types"] and row["constants"]["PRECISION"] == "ieee"
    ]  # fmt: skip
    assert of_hopper
    assert min(row["programs"] for row in of_hopper) >= 3


def test_what_changed_is_seen(said):
    """In code, how kernels are launched, and the table; a docstring is no change of the code."""
    assert said["changed"].endswith("exit status 1\n"), said["changed"]
    # Callers of what changed and no others, wherever a function stands in its file.
    stale = "_correct, _judge, _move"
    gone = ", ".join(f"{name} (no longer launched so)" for name in stale.split(", "))
    assert f"kernels: {stale}, {gone}. Run make gpu-compile" in said["changed"]
    registers = a_row()["registers"]
    assert f"registers is {registers}, and {registers + 1} in the table" in said["changed"]
    assert "spilled is 0, and 8 in the table" in said["changed"]
    assert "spills 8 bytes" in said["changed"]


def test_rows_that_grew_are_named():
    from gpu.compilation.table import TABLE, grown, read

    rows = read(TABLE)["rows"]
    assert list(grown(rows, rows)) == []
    row = next(row for row in rows if row["registers"] == 80)
    for change, said in (
        ({"registers": 100}, False),
        ({"registers": 101}, True),
        ({"programs": row["programs"] - 1}, True),
        ({"capability": 75, "registers": 200}, False),
        ({"key": "another", "options": {"num_warps": 32}, "registers": 160}, True),
    ):
        found = list(grown(rows, [{**row, **change}]))
        assert len(found) == said, (change, found)


def test_spills_are_counted_and_a_kernel_that_does_not_compile_is_named(said):
    """A path of 300 rows on one warp; a number of rows that is none."""
    assert said["spills"] == ""


def test_occupancy_as_nvidias_calculator_has_it():
    from gpu.compilation.occupancy import programs

    assert programs(90, registers=32, warps=2, shared=0) == 32  # warps: 64
    assert programs(90, registers=16, warps=1, shared=0) == 32  # blocks: 32
    assert programs(80, registers=128, warps=4, shared=0) == 4  # registers: 16 warps
    assert programs(80, registers=129, warps=4, shared=0) == 3  # 136 a thread are given: 12 warps
    assert programs(90, registers=255, warps=8, shared=0) == 1
    assert programs(90, registers=255, warps=16, shared=0) == 0  # 8 warps are the most
    assert programs(80, registers=32, warps=4, shared=163 * 1024) == 1
    assert programs(80, registers=32, warps=4, shared=163 * 1024 + 1) == 0
    assert programs(90, registers=32, warps=4, shared=56 * 1024) == 4  # with 1 KiB each, 228 KiB
    assert programs(90, registers=32, warps=4, shared=56 * 1024 + 1) == 3


def test_arguments_are_specialised_as_triton_does(said):
    """Ones are constants, except where a kernel asks not to; numbers and addresses divide by 16."""
    assert said["arguments"] == ""


def test_certificates_are_read_before_any_thread_writes_them(said):
    """In the code for the assembler every load is before a barrier, and every store after it."""
    assert said["certificates"] == ""


def test_carried_kernels_are_not_compiled_again(said):
    """Compiled in one folder, packed, and found by Triton in another after the first is gone."""
    assert said["carried"] == "Were it not there, it would have been compiled.\n"


def test_the_page_shows_the_table():
    from gpu.compilation.document import PAGE, with_table
    from gpu.compilation.table import TABLE, read

    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text, read(TABLE)) == text
    with pytest.raises(ValueError, match="2 places"):
        with_table(text + text, read(TABLE))
