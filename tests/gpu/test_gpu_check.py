"""`make gpu-check` rehearsed on the CPU: the JSON that it leaves, however it ends."""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "gpu" / "check"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
# A part that reports something and then does not end.
ENDLESS = """
import time
def run(record):
    record.measured("something", 1.0)
    time.sleep(600)
"""


def command(check: Path, out: Path, *options: str) -> list[str]:
    return [sys.executable, str(check), "--device", "cpu", "--tiny", "--out", str(out), *options]


def only(*parts: str) -> list[str]:
    return [word for part in parts for word in ("--only", part)]


def names_of_parts() -> list[str]:
    """Read from the source: imported, its modules would be in the way of others of their names."""
    tree = ast.parse((CHECK / "plan.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "Part"
    ]


def written(out: Path) -> dict:
    (path,) = out.glob("*.json")
    return json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory) -> tuple[subprocess.CompletedProcess, Path]:
    out = tmp_path_factory.mktemp("rehearsal")
    done = subprocess.run(
        command(CHECK, out), capture_output=True, text=True, env=ENVIRONMENT, timeout=400
    )
    return done, out


@pytest.fixture
def copy(tmp_path) -> Path:
    """A copy of the check whose parts can be replaced; it has no git history."""
    for folder in ("check", "benchmarks"):
        shutil.copytree(
            ROOT / "gpu" / folder,
            tmp_path / "gpu" / folder,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    return tmp_path / "gpu" / "check"


# --- a whole run ---------------------------------------------------------------------------------


@pytest.mark.endurance
def test_every_part_passes_and_is_written_down(rehearsal):
    done, out = rehearsal
    assert done.returncode == 0, done.stdout + done.stderr
    result = written(out)
    assert list(result["parts"]) == names_of_parts()
    assert {part["status"] for part in result["parts"].values()} == {"passed"}
    assert all(
        promise["holds"]
        for part in result["parts"].values()
        for promise in part.get("promises", [])
    )
    assert (result["complete"], result["rehearsal"]) == (True, True)
    assert result["versions"]["torch"] == torch.__version__
    assert result["device"]["name"].startswith("CPU rehearsal")
    (path,) = out.iterdir()  # nothing half-written beside it
    commit = result["source"]["commit"]
    assert re.fullmatch(rf"cpu-rehearsal-.*-\d{{4}}-\d\d-\d\d-{commit[:7]}\.json", path.name)


@pytest.mark.endurance
def test_a_rehearsal_does_not_go_to_the_results(rehearsal):
    names = [path.name for path in (ROOT / "gpu" / "results").glob("*.json")]
    assert not [name for name in names if "rehearsal" in name]
    for path in (ROOT / "gpu" / "results").glob("*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["rehearsal"] is False


@pytest.mark.endurance
def test_memory_ran_out_in_training_and_in_scoring(rehearsal):
    measured = written(rehearsal[1])["parts"]["out of memory"]["measured"]
    for what in ("training", "scoring"):
        assert measured[what]["times that memory ran out"] >= 1
    sizes = measured["training"]["replicates in the blocks that were done"]
    assert max(sizes) < sum(sizes) == 8


@pytest.mark.endurance
def test_times_stand_beside_the_floor_that_the_ceilings_set(rehearsal):
    parts = written(rehearsal[1])["parts"]
    ceilings = parts["ceilings"]["measured"]
    jobs = {
        **parts["linear training times"]["measured"],
        **parts["RBF training times"]["measured"],
        **parts["scoring times"]["measured"],
    }
    assert len(jobs) == 6 + 4 + 8
    for name, job in jobs.items():
        precision = re.search(r"float(32|64)", name)[0]
        arithmetic = job["FLOPs"] / ceilings[f"GEMM {precision}, FLOP/s"]["rate"]
        memory = job["bytes"] / ceilings["copy on the device, bytes/s"]["rate"]
        assert job["floor, ms"] == pytest.approx(1e3 * max(arithmetic, memory))
        assert job["time / floor"] == pytest.approx(job["median, ms"] / job["floor, ms"])
        assert job["least, ms"] <= job["median, ms"]
    linear = parts["linear training times"]["measured"]["Wisconsin 120 × 30, linear, float64, "
                                                        "plain torch"]  # fmt: skip
    # 2 n q (q + 1) / 2 operations for the lower triangle, n rows × q (q + 1) / 2 products.
    iterations = linear["mean iterations"] * linear["models"]
    assert linear["FLOPs"] == pytest.approx(iterations * (120 * 31 * 32 + 31**3 / 3))


@pytest.mark.endurance
def test_shares_of_the_kernels_add_up(rehearsal):
    for job in written(rehearsal[1])["parts"]["kernel shares"]["measured"].values():
        total = sum(kernel["share"] for kernel in job["kernels"]) + job["others, share"]
        assert total == pytest.approx(1)
        assert job["device busy, seconds"] <= job["seconds under the profiler"]


@pytest.mark.endurance
def test_the_contract_suite_is_counted_by_back_end(rehearsal):
    tests = written(rehearsal[1])["parts"]["contract suite"]["measured"]["tests"]
    assert tests["passed"] > 0
    assert tests["failed"] == 0
    by_back_end = tests["by back end"]
    assert by_back_end["linear-interior-point-float64-cpu"]["passed"] >= 1
    assert sum(each["passed"] for each in by_back_end.values()) <= tests["passed"]
    assert not any(name.endswith("cuda") for name in by_back_end)


# --- the device that is asked for ----------------------------------------------------------------


def test_the_contract_suite_runs_on_the_device_that_was_asked_for(tmp_path):
    script = """
from pathlib import Path
from types import SimpleNamespace
import torch
from contract import _environment
from test_log import _back_end
for device in ("cpu", "cuda", "cuda:1"):
    record = SimpleNamespace(device=torch.device(device))
    name = _environment(record, Path("log"), 1)["BOOTPROB_TEST_DEVICE"]
    print(name, _back_end(f"test_contract.py::test_plain[plain-rbf-smo-fused-float64-{name}-2]"))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=CHECK,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{device} rbf-smo-fused-float64-{device}" for device in ("cpu", "cuda", "cuda:1")
    ]


# --- runs that go wrong --------------------------------------------------------------------------


@pytest.mark.endurance
def test_what_goes_wrong_is_recorded_and_the_rest_goes_on(copy, tmp_path):
    (copy / "agreement.py").write_text("def run(record):\n    raise ValueError('on purpose')\n")
    (copy / "reruns.py").write_text(
        "import os\ndef run(record):\n    record.measured('before', 1)\n    os._exit(7)\n"
    )
    (copy / "out_of_memory.py").write_text(
        "def run(record):\n    record.promise('two is three', 2 == 3, found=float('nan'))\n"
    )
    (copy / "training_times.py").write_text(ENDLESS.replace("def run", "def linear"))
    (copy / "scoring_times.py").write_text("import a_package_that_is_not_there\n")
    (copy / "kernel_shares.py").write_text(
        "import warnings\nfrom bootprob_gpu.triton_choice import KernelFallbackWarning\n"
        "def run(record):\n    warnings.warn('no compiler', KernelFallbackWarning)\n"
    )
    plan = (copy / "plan.py").read_text(encoding="utf-8")
    short = re.sub(r'("training_times:linear"), \d+, \d+', r"\1, 2, 1", plan)
    assert short != plan
    (copy / "plan.py").write_text(short, encoding="utf-8")
    parts = (
        "agreement", "reruns", "out of memory", "ceilings", "linear training times",
        "scoring times", "kernel shares",
    )  # fmt: skip
    done = subprocess.run(
        command(copy, tmp_path / "out", *only(*parts), "--commit", "0123456789ab"),
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=400,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    result = written(tmp_path / "out")
    found = result["parts"]
    assert {name: part["status"] for name, part in found.items()} == {
        "agreement": "error",
        "reruns": "crashed",
        "out of memory": "failed",
        "ceilings": "passed",
        "linear training times": "stopped",
        "scoring times": "skipped",
        "kernel shares": "failed",
    }
    assert found["agreement"]["why"] == "ValueError: on purpose"
    (*_, frame) = found["agreement"]["traceback"]
    assert frame.startswith("gpu/check/agreement.py:2 in run")
    assert "exit status 7" in found["reruns"]["why"]
    assert found["reruns"]["measured"] == {"before": 1}
    assert found["out of memory"]["promises"] == [
        {"promise": "two is three", "holds": False, "found": "nan"}
    ]
    assert found["linear training times"]["measured"] == {"something": 1.0}
    assert found["linear training times"]["seconds"] < 30
    assert "a_package_that_is_not_there is not installed" in found["scoring times"]["why"]
    assert any("no compiler" in said for said in found["kernel shares"]["warnings"])
    assert result["complete"] is True
    assert result["source"]["commit"] == "0123456789ab"
    assert result["source"]["changed"] is None
    assert "FAILED: agreement, reruns, out of memory, linear training times" in done.stdout


def begun(copy: Path, out: Path) -> subprocess.Popen:
    """A run in the midst of its second part."""
    (copy / "training_times.py").write_text(ENDLESS.replace("def run", "def linear"))
    parts = only("ceilings", "linear training times", "scoring times")
    process = subprocess.Popen(command(copy, out, *parts), env=ENVIRONMENT)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
        if list(out.glob("*.json")) and "something" in str(written(out)):
            return process
    process.kill()
    pytest.fail("the run did not get to its second part")


def ends(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=20)
    return not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE]


def test_a_run_that_is_killed_leaves_what_it_found(copy, tmp_path):
    process = begun(copy, tmp_path / "out")
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.kill()
    process.wait()
    parts = written(tmp_path / "out")["parts"]
    assert {name: part["status"] for name, part in parts.items()} == {
        "ceilings": "passed",
        "linear training times": "running",
        "scoring times": "not run",
    }
    assert parts["ceilings"]["measured"]["GEMM float64, FLOP/s"]["rate"] > 0
    assert parts["linear training times"]["measured"] == {"something": 1.0}
    assert ends(children)  # nothing goes on without it


def test_a_run_that_is_asked_to_stop_says_so(copy, tmp_path):
    process = begun(copy, tmp_path / "out")
    children = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    result = written(tmp_path / "out")
    assert result["complete"] is False
    assert result["parts"]["linear training times"]["status"] == "interrupted"
    assert result["parts"]["scoring times"] == {"status": "not run", "why": "interrupted"}
    assert ends(children)


def test_what_does_not_fit_into_the_time_is_not_begun(tmp_path):
    done = subprocess.run(
        command(CHECK, tmp_path, "--seconds", "0.1"),
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    result = written(tmp_path)
    assert set(result["parts"]) == set(names_of_parts())
    for part in result["parts"].values():
        assert part == {"status": "not run", "why": "no time left"}
    assert result["complete"] is False
    assert "nothing was checked" in done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_it_says_how_to_rehearse(tmp_path):
    done = subprocess.run(
        [sys.executable, str(CHECK), "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
    )
    assert done.returncode == 2
    assert "There is no device 'cuda' here" in done.stdout
    assert not list(tmp_path.iterdir())
