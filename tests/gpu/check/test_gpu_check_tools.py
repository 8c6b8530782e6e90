"""NVIDIA's tools in `make gpu-check`: what they print is read, and what they could not do is said.

The samples are laid out as the tools' manuals show them; no GPU is needed.
"""

import io
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from gpu_check import CHECK, copied, only, run, written

from gpu.check import nsight_compute, sanitizer
from gpu.check.plan import ROOT, own_paths
from gpu.check.record import Record
from gpu.check.supervisor import _note
from gpu.check.tools import find_tool, kernel_functions
from gpu.check.verdict import verdict
from gpu.check.worker import _do

CLEAN = """========= COMPUTE-SANITIZER
A line of the program itself
========= ERROR SUMMARY: 0 errors
"""
OVERRUN = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 8 bytes
=========     at _move+0x4f0 in triton_interior_point.py:181
=========     by thread (37,0,0) in block (2,0,0)
=========     Address 0x7f5a00c01258 is out of bounds
=========     and is 89 bytes after the nearest allocation at 0x7f5a00c00000 of size 4,608 bytes
=========
A line of the program itself
========= Invalid __global__ read of size 8 bytes
=========     at _move+0x4f0 in triton_interior_point.py:181
=========     by thread (38,0,0) in block (2,0,0)
=========     Address 0x7f5a00c01260 is out of bounds
=========     and is 97 bytes after the nearest allocation at 0x7f5a00c00000 of size 4,608 bytes
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on \
CUDA API call to cudaDeviceSynchronize.
=========
========= ERROR SUMMARY: 3 errors
"""
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at path_in_tiles+0x1b20 in \
triton_smo_tiles.py:88
=========     and Read access at path_in_tiles+0x1c80 in triton_smo_tiles.py:91 [248 hazards]
=========     and Read access at path_in_tiles+0x1d00 in triton_smo_tiles.py:92 [16 hazards]
=========
========= Warning: Race reported between Write access at 0x50 in _votes
=========     and Write access at 0x90 in _votes [4 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""
NO_RACE = """========= COMPUTE-SANITIZER
========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)
"""
DIVERGENT = """========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in warp.
=========     at _factor+0xb0 in triton_cholesky.py:38
=========     by thread (19,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""
# Of CUDA 13.5's on a machine without a GPU.
NO_DEVICE = """========= COMPUTE-SANITIZER
========= Error: process didn't terminate successfully
=========     The application may have hit an error when dereferencing Unified Memory from the \
host. Please rerun the application under cuda-gdb or a host debugger to catch host side errors.
========= Error: Target application terminated before first instrumented API call
"""
CUT_OFF = "========= COMPUTE-SANITIZER\n"


@pytest.fixture(scope="module")
def reports() -> dict[str, dict]:
    samples = {
        "clean": CLEAN, "overrun": OVERRUN, "race": RACE, "no race": NO_RACE,
        "divergent": DIVERGENT, "no device": NO_DEVICE, "cut off": CUT_OFF,
    }  # fmt: skip
    return {name: asdict(sanitizer.parse(each)) for name, each in samples.items()}


def test_a_clean_report(reports):
    for name in ("clean", "no race"):
        assert reports[name] == {
            "errors": 0, "warnings": 0, "findings": [], "kernels": {}, "broken": [],
        }  # fmt: skip


def test_findings_are_told_by_kernel(reports):
    report = reports["overrun"]
    assert report["errors"] == 3
    assert report["kernels"] == {"_move": 2, None: 1}
    assert report["findings"][0] == "Invalid __global__ read of size 8 bytes [at _move]"
    assert len(report["findings"]) == 3
    assert reports["divergent"]["errors"] == 1
    assert reports["divergent"]["kernels"] == {"_factor": 1}


def test_races_are_errors_and_warnings(reports):
    report = reports["race"]
    assert (report["errors"], report["warnings"]) == (1, 1)
    assert report["kernels"] == {"path_in_tiles": 1, "_votes": 1}
    assert len(report["findings"]) == 2


def test_a_tool_that_could_not_work_found_nothing_out(reports):
    assert reports["no device"]["errors"] is None
    assert "before first instrumented API call" in reports["no device"]["broken"][1]
    assert reports["no device"]["findings"] == []
    assert reports["cut off"]["errors"] is None


# --- the part, with a program of the tool's name -------------------------------------------------


def tool(folder: Path, name: str, script: str) -> dict[str, str]:
    """A program on PATH that prints what the real one would, instead of watching a GPU."""
    folder.mkdir()
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def prints(text: str) -> str:
    return f"cat <<'END'\n{text}END\n"


def done(code: str) -> tuple[dict, int]:
    """A part done in this process as the worker does it, and the exit status of its verdict."""
    channel = io.StringIO()
    end = _do(code, Record(channel, "cpu", True, 60, {}), set())
    part: dict[str, Any] = {}
    for line in channel.getvalue().splitlines():
        _note(part, json.loads(line))
    return part | end, verdict({"part": part | end})[1]


@pytest.fixture
def sanitized(tmp_path, monkeypatch):
    def of(memcheck: str, racecheck: str, synccheck: str) -> tuple[dict, int]:
        script = f"""
case "$*" in
*"--tool memcheck"*) {memcheck} ;;
*"--tool racecheck"*) {racecheck} ;;
*"--tool synccheck"*) {synccheck} ;;
esac"""
        for name, value in tool(tmp_path / "bin", "compute-sanitizer", script).items():
            monkeypatch.setenv(name, value)
        return done("sanitizer:run")

    return of


def test_a_sanitizer_that_finds_nothing(sanitized):
    part, status = sanitized(prints(CLEAN), prints(NO_RACE), prints(CLEAN))
    assert (status, part["status"]) == (0, "passed")
    assert {promise["promise"] for promise in part["promises"]} == {
        f"{name} finds nothing" for name in ("memcheck", "racecheck", "synccheck")
    }


def test_what_a_sanitizer_finds_is_a_failure(sanitized):
    part, status = sanitized(prints(OVERRUN), prints(RACE), prints(CLEAN))
    assert (status, part["status"]) == (1, "failed")
    broken = {each["promise"]: each["found"] for each in part["promises"] if not each["holds"]}
    assert broken == {"memcheck finds nothing": 3, "racecheck finds nothing": 2}
    assert part["measured"]["racecheck"]["findings by kernel"] == {"path_in_tiles": 1, "_votes": 1}


def test_a_sanitizer_that_could_not_work_makes_the_verdict_incomplete(sanitized):
    part, status = sanitized(f"{prints(NO_DEVICE)} exit 255", prints(NO_RACE), prints(CLEAN))
    assert (status, part["status"]) == (3, "incomplete")
    assert part["why"] == "memcheck: process didn't terminate successfully"
    assert part["measured"]["racecheck"]["errors"] == 0


def test_a_program_that_fails_under_the_sanitizer_was_not_checked(sanitized):
    part, status = sanitized(f"{prints(CLEAN)} exit 1", prints(NO_RACE), prints(CLEAN))
    assert status == 3
    assert "exit status 1" in part["why"]


@pytest.mark.endurance
def test_what_is_launched_under_a_sanitizer_launches_kernels(tmp_path):
    """The command behind the tool's options, run by itself."""
    script = 'while [ "${1#-}" != "$1" ]; do shift 2; done; exec "$@"'
    variables = tool(tmp_path / "bin", "compute-sanitizer", f'echo "$@" >&2\n{script}')
    done = run(CHECK, tmp_path / "out", *only("compute-sanitizer"), **variables)
    part = written(tmp_path / "out")["parts"]["compute-sanitizer"]
    assert done.returncode == 3
    for found in part["measured"].values():  # the launches end well, and there is no summary
        assert found["exit status"] == 0, found["last lines"]
        assert found["could not be done"] == "it wrote no summary"


# --- Nsight Compute ------------------------------------------------------------------------------

HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
)


def row(launch: int, kernel: str, metric: str, unit: str, value: str) -> str:
    return (
        f'"{launch}","1234","python3.12","127.0.0.1","{kernel}","1","7","(128, 1, 1)",'
        f'"(5500, 1, 1)","0","9.0","Command line profiler metrics","{metric}","{unit}","{value}"'
    )


COUNTERS = "\n".join(
    [
        '==PROF== Connected to process 1234 (/usr/bin/python3.12)',
        '==PROF== Profiling "_factor" - 0: 0%....50%....100% - 8 passes',
        "A line of the program itself",
        "==PROF== Disconnected from process 1234",
        HEADER,
        row(0, "_factor", "gpu__time_duration.sum", "ns", "1,234,567"),
        row(0, "_factor", "launch__registers_per_thread", "register/thread", "168"),
        row(1, "_factor", "gpu__time_duration.sum", "ns", "1,200,000.5"),
        row(1, "_factor", "launch__registers_per_thread", "register/thread", "168"),
        row(2, "path_in_registers", "gpu__time_duration.sum", "ns", "n/a"),
        "",
    ]
)  # fmt: skip
FORBIDDEN = """==PROF== Connected to process 1234 (/usr/bin/python3.12)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance \
Counters on the target device 0.
==PROF== Disconnected from process 1234
==WARNING== No kernels were profiled.
"""


def test_counters_are_read_launch_by_launch():
    assert json.loads(json.dumps(nsight_compute.parse(COUNTERS))) == {
        "_factor": {
            "grid": "(5500, 1, 1)", "block": "(128, 1, 1)", "launches": 2,
            "metrics": {
                "gpu__time_duration.sum": {"unit": "ns", "values": [1234567.0, 1200000.5]},
                "launch__registers_per_thread": {
                    "unit": "register/thread", "values": [168.0, 168.0],
                },
            },
        },
        "path_in_registers": {
            "grid": "(5500, 1, 1)", "block": "(128, 1, 1)", "launches": 1,
            "metrics": {"gpu__time_duration.sum": {"unit": "ns", "values": ["n/a"]}},
        },
    }  # fmt: skip


def test_the_heaviest_kernels_are_those_with_the_most_time_over_all_jobs():
    def job(seconds, **shares):
        kernels = [{"name": name, "share": share, "calls": 1} for name, share in shares.items()]
        return {"device busy, seconds": seconds, "kernels": kernels}

    shares = {
        "a": job(1.0, _factor=0.5, _move=0.2, gemm=0.3),
        "b": job(10.0, path_in_registers=0.9, _move=0.1),
        "c": job(0.1, _votes=1.0, _solve=0.0, _judge=0.0, _weigh=0.0),
    }
    ours = {"_factor", "_move", "_votes", "path_in_registers", "_solve", "_judge", "_weigh"}
    found = nsight_compute.heaviest(shares, ours)
    assert list(found)[:4] == ["path_in_registers", "_move", "_factor", "_votes"]
    assert len(found) == 5


def test_counters_that_may_not_be_read_make_the_verdict_incomplete(tmp_path, monkeypatch):
    for name, value in tool(tmp_path / "bin", "ncu", f"{prints(FORBIDDEN)} exit 1").items():
        monkeypatch.setenv(name, value)
    part, status = done("nsight_compute:run")
    assert (status, part["status"]) == (3, "incomplete")
    assert part["why"].startswith("ncu: ERR_NVGPUCTRPERM")


def test_the_command_writes_down_counters_findings_and_errors(tmp_path):
    """Of two tools, and of a part that goes wrong."""
    check = copied(tmp_path / "copy")
    (check / "twins.py").write_text("def run(record):\n    raise ValueError('on purpose')\n")
    clean = f'case "$*" in *racecheck*) {prints(NO_RACE)} ;; *) {prints(CLEAN)} ;; esac'
    tools = {"ncu": prints(COUNTERS), "compute-sanitizer": clean}
    folders = [tool(tmp_path / name, name, script)["PATH"] for name, script in tools.items()]
    wanted = only("compute-sanitizer", "Nsight Compute", "Triton against plain torch")
    ended = run(check, tmp_path / "out", *wanted, PATH=os.pathsep.join(folders))
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "holds: memcheck finds nothing" in ended.stdout
    sanitizer, counters, twins = written(tmp_path / "out")["parts"].values()
    assert (sanitizer["status"], counters["status"]) == ("passed", "passed")
    assert set(counters["measured"]) == {"_factor", "path_in_registers"}
    assert (twins["status"], twins["why"]) == ("error", "ValueError: on purpose")


def test_kernels_are_known_by_their_names():
    names = kernel_functions()
    assert {"_factor", "_votes", "_judge", "path_in_registers", "path_in_tiles"} <= names
    assert not names & {"_rows", "gain", "box"}  # parts of kernels


def test_a_tool_is_found_in_a_carried_package(tmp_path, monkeypatch):
    """As the package nvidia-cuda-sanitizer-api has it."""
    program = tmp_path / "nvidia" / "cu13" / "bin" / "a-tool-of-nvidia"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert find_tool("a-tool-of-nvidia") is None  # it cannot be run
    program.chmod(0o755)
    assert find_tool("a-tool-of-nvidia") == str(program)


def test_what_a_tool_says_names_no_path_of_the_machine():
    assert own_paths(f"at {ROOT}/gpu/a.py:3, in {ROOT}/b.py") == "at gpu/a.py:3, in b.py"
