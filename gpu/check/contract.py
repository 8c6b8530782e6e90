"""The project's own tests on the device: of what only a GPU does, and the contract suite."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpu.check.plan import ROOT
from gpu.check.record import PartIncompleteError, PartSkippedError, Record

__all__ = ["kernels", "suite"]

_REHEARSALS = ("test_gpu_check", "test_rehearsed", "test_pretended")  # of this, on a CPU
_PROCESSES = 4  # tests launch many short kernels: one process cannot keep a GPU busy
_SHOWN = 15  # failures
_GRACE = 4.0  # seconds to stop the tests and read what they said


def kernels(record: Record) -> None:
    """Tests of what only a GPU does: compiled kernels against their twins, graphs, streams."""
    folder = ROOT / "tests" / "gpu"
    files = [file for file in sorted(folder.rglob("test_*.py")) if _needs_a_gpu(file)]
    tiny = [folder / "hardware" / "test_triton_choice.py", folder / "scoring" / "test_votes.py"]
    # Loops that Numba compiles are the CPU's: that their tests were left out is no loss here.
    _run(
        record,
        record.size(files, tiny),
        record.size([], ["-k", "not kernel"]),
        {"numba", "llvmlite"},
    )


def _needs_a_gpu(file: Path) -> bool:
    """Whether tests in a file take the fixture `kernel_device`, or are skipped without a GPU."""
    text = file.read_text(encoding="utf-8")
    looks = file.match("test_triton_*") or "kernel_device" in text or "cuda.is_available" in text
    return looks and not any(file.match(f"{name}*") for name in _REHEARSALS)


def suite(record: Record) -> None:
    """What every solver promises, for the back ends of the device only."""
    some = ["-k", "objective and plain and interior or refused"]
    _run(record, [ROOT / "tests" / "gpu" / "test_contract.py"], record.size([], some))


def _run(
    record: Record, files: list[Path], options: list[str], beside: Collection[str] = ()
) -> None:
    """Run tests; those for want of a package make the part incomplete, but for some packages."""
    if find_spec("pytest") is None:
        raise PartSkippedError("the package pytest is not installed")
    seed = secrets.randbelow(2**32)
    parallel = find_spec("xdist") is not None and (os.cpu_count() or 1) > _PROCESSES
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "tests.jsonl"
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short"),
                *("-p", "gpu.check.test_log", "-p", "no:cacheprovider", "-o", "addopts="),
                *("-p", "no:schemathesis"),  # tests of the server's, and slow to load
                # Other versions of packages may warn; but a twin must not stand in unnoticed.
                *("-W", "default"),
                *("-W", "error::bootprob_gpu.hardware.triton_choice.KernelFallbackWarning"),
                *(("-n", str(_PROCESSES)) if parallel else ()),
                *options,
                *(str(file.relative_to(ROOT)) for file in files),
            ],
            cwd=ROOT,
            env=_environment(record, log, seed),
            stdout=subprocess.DEVNULL,
        )
        stopped = not _wait(process, record.seconds_left() - 2 * _GRACE)
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    # A process that was killed may have left half a line.
    tests = [json.loads(line) for line in lines if line.endswith("}")]
    outcomes = Counter(test["outcome"] for test in tests)
    failed = [test for test in tests if test["outcome"] == "failed"]
    lacking: dict[str, list[str]] = {}
    for test in tests:
        if test["lacks"] is not None:
            lacking.setdefault(test["lacks"], []).append(test["test"])
    found: dict[str, Any] = {
        "files": [file.name for file in files],
        "BOOTPROB_TEST_SEED": seed,
        "passed": outcomes["passed"],
        "failed": outcomes["failed"],
        "skipped": outcomes["skipped"],
        "not run for want of a package": lacking,
        "stopped for want of time": stopped,
        "exit status of pytest": process.returncode,
        "processes": _PROCESSES if parallel else 1,
        "by back end": _by_back_end(tests),
        "failures": [{key: test[key] for key in ("test", "message")} for test in failed[:_SHOWN]],
    }
    record.measured("tests", found)
    record.promise(
        "no test fails" + (", as far as they came" if stopped else ""),
        (outcomes["passed"] > 0 or bool(lacking))
        and not failed
        and (stopped or process.returncode == 0),
        passed=outcomes["passed"],
        failed=outcomes["failed"],
    )
    unknown = [
        f"tests left out for want of {package}: {len(names)}"
        for package, names in lacking.items()
        if package not in beside
    ]
    unknown += ["stopped for want of time"] if stopped else []
    if unknown:
        raise PartIncompleteError("; ".join(unknown))


def _environment(record: Record, log: Path, seed: int) -> dict[str, str]:
    environment = {
        # Those of a pytest around this one, as in the project's own tests, would mislead it.
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        "BOOTPROB_TEST_DEVICE": str(record.device),
        "BOOTPROB_TEST_SEED": str(seed),
        "GPU_CHECK_TEST_LOG": str(log),
        "OMP_NUM_THREADS": "1",
        # Tests that poison fresh memory ask torch for determinism, which asks cuBLAS for this.
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }
    if record.device.type == "cuda":
        environment.pop("TRITON_INTERPRET", None)
    return environment


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a process ends in time; else it is asked to stop, then made to."""
    try:
        process.wait(max(0.0, seconds))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return False
    return True


def _by_back_end(tests: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Outcomes of the tests that name a back end, such as "linear-smo-batched-float64-cuda"."""
    table: dict[str, Counter[str]] = {}
    for test in tests:
        if test["back end"] is not None:
            table.setdefault(test["back end"], Counter())[test["outcome"]] += 1
    return {name: dict(counts) for name, counts in sorted(table.items())}
