"""Every part of gpu/check on the pretended CUDA device, with tables of a few rows."""

from __future__ import annotations

import importlib
import io
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu_check import ENVIRONMENT, ROOT, names, written

from bootprob_gpu import fit, iter_fit
from bootprob_gpu.hardware.triton_choice import triton_kernels
from linear_models import linear

HERE = Path(__file__).parents[1]
AT_START = os.pathsep.join(
    map(str, (HERE / "pretended_cuda" / "at_start", HERE, ROOT, ROOT / "gpu"))
)

# These train as far as a solver goes, again and again, or score many rows, which takes interpreted
# kernels a minute; what they are about does not hang on kernels.
IN_PLAIN_TORCH = ("agreement", "reruns", "out of memory", "kernel shares", "estimator times")
ELSEWHERE = ("kernel tests", "tuning")  # in another process
TOOLS = {"compute-sanitizer": "compute-sanitizer", "Nsight Compute": "ncu"}

SUITE = "contract suite"


@pytest.fixture
def check(monkeypatch) -> Any:
    """Imports modules of the check anew, and forgets them: they keep what is replaced in others."""

    def of_the_check() -> list[str]:
        return [name for name in sys.modules if f"{name}.".startswith("gpu.check.")]

    for name in of_the_check():
        monkeypatch.delitem(sys.modules, name)
    yield lambda name: importlib.import_module(f"gpu.check.{name}")
    for name in of_the_check():
        del sys.modules[name]


@pytest.fixture
def few_rows(check, monkeypatch, request) -> None:
    """Kernels are interpreted, one by one: 10 rows, 2 columns, 1 or 2 replicates and C, one γ."""
    jobs = check("jobs")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 2))
    small = jobs.Table("small", X, X[:, 0] + rng.normal(size=10) > 0)
    monkeypatch.setattr(jobs, "_loaded", lambda name: small._replace(name=f"small {name}"))
    if request.getfixturevalue("name") == "out of memory":
        return  # most of it must be in what can be halved: replicates
    batch = jobs.batch
    name = request.getfixturevalue("name")
    few = 1 if name.endswith("training times") or name == "kernel shares" else 2
    monkeypatch.setattr(
        jobs, "batch", lambda source, kernel, B, **grid: batch(source, kernel, min(B, few), **grid)
    )
    monkeypatch.setattr(jobs, "DEFAULT_C", np.array([0.5, 2.0])[:few])
    monkeypatch.setattr(jobs, "gamma_grid", lambda *given: np.array([0.5]))
    monkeypatch.setattr("bootprob.preparation.grids.DEFAULT_C", np.array([0.5, 2.0]))


def parts() -> list[Any]:
    """Tuning is long, and tests/gpu/tuning/test_gpu_tune.py has its candidates.

    Kernel tests start a pytest of their own; test_tests_are_run_on_the_device starts one for two.
    """
    slow = pytest.mark.endurance
    return [
        pytest.param(name, marks=slow if name in ELSEWHERE else ())
        for name in names(False) + names(True)
        if name != SUITE
    ]


@pytest.mark.parametrize("name", parts())
def test_a_part_passes(pretended_gpu, few_rows, check, monkeypatch, name):
    (part,) = (each for each in check("plan").PARTS if each.name == name)
    monkeypatch.setenv("PYTHONPATH", AT_START)  # of the processes that it starts
    if name == "scoring times":
        monkeypatch.setattr(check("scoring_times"), "_MOST_RUNS", 1)
    if name == "estimator times":
        rough = {"tol": 0.1, "n_bootstraps": 2, "C": 1.0}
        monkeypatch.setattr(
            check("estimator_times"), "BootstrapSVC", lambda **given: linear(**given | rough)
        )
    if part.code.startswith("training_times:"):
        monkeypatch.setattr(check("training_times"), "iter_fit", partial(iter_fit, tol=0.1))
    if name in ("kernel shares", "reruns"):  # whose models may be rough
        module = check(part.code.split(":")[0])
        monkeypatch.setattr(module, "fit", partial(fit, tol=0.1))
    if name == "kernel tests":
        run_tests = check("contract")._run
        monkeypatch.setattr(
            check("contract"), "_run", lambda on, files, *more: run_tests(on, files[:1], *more)
        )
    if name == "each kernel against its twin":  # test_gpu_check_kernels.py has them to the end
        monkeypatch.setattr(check("each_kernel"), "_TOL", 0.1)
    if name in TOOLS:  # they watch the hardware
        monkeypatch.setattr(check(part.code.split(":")[0]), "find_tool", lambda name: None)
        with pytest.raises(check("record").PartSkippedError, match=f"{TOOLS[name]} not found"):
            passes(check, part)
        return
    passes(check, part)
    if name not in ELSEWHERE:
        assert pretended_gpu.launches


@pytest.mark.endurance
def test_the_contract_suite_passes(pretended_gpu, check, monkeypatch):
    """All that the rehearsal on a CPU has, in some minutes."""
    monkeypatch.setenv("PYTHONPATH", AT_START)
    passes(check, contract_suite(check))


@pytest.mark.endurance
def test_tests_are_run_on_the_device(pretended_gpu, check, monkeypatch):
    """A few of the contract suite and of the kernel tests, by one pytest."""
    monkeypatch.setenv("PYTHONPATH", AT_START)
    contract = check("contract")
    run = contract._run
    of_kernels = []

    def note(record, files, options, beside):
        of_kernels.append(files[0])
        assert options == ["-k", "not kernel"]

    monkeypatch.setattr(contract, "_run", note)
    contract.kernels(check("record").Record(io.StringIO(), "cuda:0", True, 60.0, {}))

    def run_both(record, files, options):
        # By its name, as all the others would be collected first.
        few = [Path(f"{file}::test_two_rows") for file in files]
        run(record, few + of_kernels, ["-k", "40.0 or triton_choice and not kernel"])

    monkeypatch.setattr(contract, "_run", run_both)
    (measured,) = passes(check, contract_suite(check))
    tests = measured["value"]
    by_back_end = sum(each["passed"] for each in tests["by back end"].values())
    assert 0 < by_back_end < tests["passed"]


def contract_suite(check) -> Any:
    (part,) = (each for each in check("plan").PARTS if each.name == SUITE)
    return part


def passes(check, part) -> list[dict[str, Any]]:
    """Do a part here, hear that every promise holds, and what was measured."""
    channel = io.StringIO()
    module, function = part.code.split(":")
    record = check("record").Record(channel, "cuda:0", True, 10 * part.seconds, {})
    with triton_kernels("never" if part.name in IN_PLAIN_TORCH else "auto"):
        getattr(check(module), function)(record)
    events = [json.loads(line) for line in channel.getvalue().splitlines()]
    measured = [each for each in events if each["event"] == "measured"]
    assert measured
    broken = [each for each in events if each["event"] == "promise" and not each["holds"]]
    assert broken == [], json.dumps(events, indent=1)
    return measured


def test_a_whole_run_is_written_down(no_gpu_seen, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "gpu.check", "--device", "cuda:0", "--tiny", "--only", "ceilings",
         "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([AT_START, *sys.path])},
        cwd=ROOT,
        timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    result = written(tmp_path)
    assert result["device"]["name"] == "Pretended CUDA device"
    assert result["rehearsal"] is True
    (copies,) = (
        each
        for name, each in result["parts"]["ceilings"]["measured"].items()
        if name.startswith("copy from pinned")
    )
    assert copies["clock"] == "CUDA events"
