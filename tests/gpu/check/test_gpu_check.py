"""`make gpu-check` rehearsed on the CPU: the JSON that it leaves, however it ends."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from gpu_check import (
    CHECK,
    ENDLESS,
    ENVIRONMENT,
    ROOT,
    command,
    copied,
    names,
    only,
    parts,
    run,
    written,
)

from gpu.check import __main__ as command_line
from gpu.check import tuning as tuning_part
from gpu.check.contract import _environment
from gpu.check.machine import facts
from gpu.check.plan import PARTS
from gpu.check.record import Record
from gpu.check.test_log import _back_end
from gpu.check.verdict import is_complete, verdict
from gpu.check.worker import _do

# What comes with CUDA and its profilers; a machine with them would have more to say.
NO_TOOLS = {"compute-sanitizer", "Nsight Compute"}


def names_of_parts() -> list[str]:
    return [part["name"] for part in parts()]


def rehearsed(folder: Path, *options: str) -> tuple[subprocess.CompletedProcess, Path]:
    return run(CHECK, folder, *options), folder


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> tuple[subprocess.CompletedProcess, Path]:
    return rehearsed(tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="module")
def second(tmp_path_factory) -> tuple[subprocess.CompletedProcess, Path]:
    return rehearsed(tmp_path_factory.mktemp("second"), "--second")


@pytest.fixture
def copy(tmp_path) -> Path:
    return copied(tmp_path)


# --- the plan ------------------------------------------------------------------------------------


@pytest.mark.parametrize("second", [False, True])
def test_the_parts_of_a_command_fit_into_eight_minutes(second):
    """With some seconds for the worker to start, which loads torch."""
    chosen = [part for part in parts() if part["second"] == second]
    assert sum(part["seconds"] for part in chosen) <= 480 - 15
    assert all(0 < part["least"] <= part["seconds"] for part in chosen)


def test_every_part_can_be_found_and_has_its_own_name():
    assert len(set(names_of_parts())) == len(parts())
    for part in PARTS:
        module, function = part.code.split(":")
        assert callable(getattr(import_module(f"gpu.check.{module}"), function)), part


# --- whole runs ----------------------------------------------------------------------------------


def check_whole(done: subprocess.CompletedProcess, out: Path, command: str) -> None:
    result = written(out)
    assert list(result["parts"]) == names(second=command == "second")
    statuses = {name: part["status"] for name, part in result["parts"].items()}
    skipped = {name for name, status in statuses.items() if status == "skipped"}
    assert skipped <= {*NO_TOOLS, "tuning"}, statuses
    assert set(statuses.values()) - {"skipped"} == {"passed"}, statuses
    assert all(
        promise["holds"]
        for part in result["parts"].values()
        for promise in part.get("promises", [])
    )
    assert (result["format"], result["command"], result["rehearsal"]) == (2, command, True)
    assert result["complete"] == (not skipped)
    if skipped:
        assert done.returncode == 3
        assert result["verdict"].startswith("incomplete: ")
        assert "nothing failed" not in done.stdout
    else:
        assert (done.returncode, result["verdict"]) == (0, "nothing failed")
    assert result["versions"]["torch"] == torch.__version__
    assert result["device"]["name"].startswith("CPU rehearsal")
    (path,) = out.iterdir()  # nothing half-written beside it
    commit = result["source"]["commit"]
    ending = "-second" if command == "second" else ""
    assert re.fullmatch(
        rf"cpu-rehearsal-.*-\d{{4}}-\d\d-\d\d-{commit[:7]}{ending}\.json", path.name
    )


@pytest.mark.endurance
def test_every_part_of_the_first_command_is_written_down(first):
    check_whole(*first, "first")


@pytest.mark.endurance
def test_every_part_of_the_second_command_is_written_down(second):
    check_whole(*second, "second")


@pytest.mark.endurance
def test_a_rehearsal_does_not_go_to_the_results(first):
    names = [path.name for path in (ROOT / "gpu" / "results").glob("*.json")]
    assert not [name for name in names if "rehearsal" in name]


@pytest.mark.endurance
def test_each_half_of_the_agreement_is_written_down(first):
    part = written(first[1])["parts"]["agreement"]
    assert len(part["promises"]) == 4
    for title in ("Wisconsin 569 × 30, linear", "Wisconsin 569 × 30, rbf"):
        for half in ("CPU, float64", "float64", "float32"):
            assert part["measured"][f"{title}, {half}"]["seconds to fit"] >= 0


@pytest.mark.endurance
def test_every_kernel_was_launched_beside_its_twin(first):
    part = written(first[1])["parts"]["each kernel against its twin"]
    kernels = {name.split(";")[0] for name in part["measured"]}
    assert {"votes", "smo", "Cholesky factor", "interior point: step"} <= kernels


@pytest.mark.endurance
def test_memory_ran_out_in_training_and_in_scoring(second):
    measured = written(second[1])["parts"]["out of memory"]["measured"]
    for what in ("training", "scoring"):
        assert measured[what]["times that memory ran out"] >= 1
    sizes = measured["training"]["replicates in the blocks that were done"]
    assert max(sizes) < sum(sizes) == 8


@pytest.mark.endurance
def test_times_stand_beside_the_floor_that_the_ceilings_set(first):
    parts = written(first[1])["parts"]
    ceilings = parts["ceilings"]["measured"]
    jobs = {
        **parts["linear training times"]["measured"],
        **parts["RBF training times"]["measured"],
        **parts["scoring times"]["measured"],
    }
    assert len(jobs) == 3 + 4 + 6
    for name, job in jobs.items():
        precision = re.search(r"float(32|64)", name)[0]
        arithmetic = job["FLOPs"] / ceilings[f"GEMM {precision}, FLOP/s"]["rate"]
        memory = job["bytes"] / ceilings["copy on the device, bytes/s"]["rate"]
        assert job["floor, ms"] == pytest.approx(1e3 * max(arithmetic, memory))
        assert job["time / floor"] == pytest.approx(job["median, ms"] / job["floor, ms"])
        assert job["least, ms"] <= job["median, ms"]
    linear = parts["linear training times"]["measured"]["Wisconsin 120 × 30, linear, float64, "
                                                        "Triton where it can"]  # fmt: skip
    # 2 n q (q + 1) / 2 operations for the lower triangle, n rows × q (q + 1) / 2 products.
    iterations = linear["mean iterations"] * linear["models"]
    assert linear["FLOPs"] == pytest.approx(iterations * (120 * 31 * 32 + 31**3 / 3))


@pytest.mark.endurance
def test_jobs_are_timed_without_triton_too(second):
    measured = written(second[1])["parts"]["times without Triton"]["measured"]
    assert len(measured) == 3 + 1 + 2
    assert all(name.endswith("plain torch") for name in measured)


@pytest.mark.endurance
def test_estimators_say_where_the_time_of_the_host_goes(first):
    measured = written(first[1])["parts"]["estimator times"]["measured"]
    assert len(measured) == 6
    for job in measured.values():
        host = job["host"]
        assert job["least, s"] > 0
        assert sum(each["seconds"] for each in host["functions"]) <= 1.01 * (
            host["seconds under the profiler"] + 1e-3
        )


@pytest.mark.endurance
def test_shares_of_the_kernels_add_up(second):
    for job in written(second[1])["parts"]["kernel shares"]["measured"].values():
        total = sum(kernel["share"] for kernel in job["kernels"]) + job["others, share"]
        assert total == pytest.approx(1)
        assert job["device busy, seconds"] <= job["seconds under the profiler"]


@pytest.mark.endurance
def test_the_contract_suite_is_counted_by_back_end(second):
    tests = written(second[1])["parts"]["contract suite"]["measured"]["tests"]
    assert tests["passed"] > 0
    assert tests["failed"] == 0
    assert tests["not run for want of a package"] == {}
    by_back_end = tests["by back end"]
    assert by_back_end["linear-interior-point-float64-cpu"]["passed"] >= 1
    assert sum(each["passed"] for each in by_back_end.values()) <= tests["passed"]
    assert not any(name.endswith("cuda") for name in by_back_end)


# --- the device that is asked for ----------------------------------------------------------------


def test_the_contract_suite_runs_on_the_device_that_was_asked_for():
    for device in ("cpu", "cuda", "cuda:1"):
        record = SimpleNamespace(device=torch.device(device))
        name = _environment(record, Path("log"), 1)["BOOTPROB_TEST_DEVICE"]
        assert name == device
        test = f"test_contract.py::test_plain[plain-rbf-smo-fused-float64-{name}-2]"
        assert _back_end(test) == f"rbf-smo-fused-float64-{device}"


# --- verdicts ------------------------------------------------------------------------------------


def test_only_what_was_done_to_its_end_is_a_verdict_that_nothing_failed():
    def of(*statuses):
        parts = {str(k): {"status": each, "why": "why"} for k, each in enumerate(statuses)}
        return [*verdict(parts), is_complete(parts)]

    assert [
        of("passed", "passed"), of("passed", "skipped"), of("passed", "incomplete"),
        of("passed", "not run"), of("passed", "running"), of("skipped", "skipped"),
        of("failed", "passed"), of("crashed", "skipped"),
    ] == [
        ["nothing failed", 0, True],
        ["incomplete: 1 (skipped: why)", 3, False],
        ["incomplete: 1 (incomplete: why)", 3, False],
        ["incomplete: 1 (not run: why)", 3, False],
        ["incomplete: 1 (running: why)", 3, False],
        ["incomplete: nothing was checked: 0 (skipped: why), 1 (skipped: why)", 3, False],
        ["FAILED: 0", 1, True],
        ["FAILED: 0; incomplete: 1 (skipped: why)", 1, False],
    ]  # fmt: skip


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
    (copy / "twins.py").write_text(
        "from gpu.check.record import PartIncompleteError\n"
        "def run(record):\n    raise PartIncompleteError('half of it')\n"
    )
    (copy / "kernel_shares.py").write_text(
        "import warnings\nfrom bootprob_gpu.hardware.triton_choice import KernelFallbackWarning\n"
        "def run(record):\n    warnings.warn('no compiler', KernelFallbackWarning)\n"
    )
    plan = (copy / "plan.py").read_text(encoding="utf-8")
    short = re.sub(r'("training_times:linear"), \d+, \d+', r"\1, 1, 1", plan)
    assert short != plan
    (copy / "plan.py").write_text(short, encoding="utf-8")
    wanted = (
        "agreement", "reruns", "ceilings", "linear training times", "scoring times",
        "kernel shares", "out of memory", "Triton against plain torch",
    )  # fmt: skip
    done = run(copy, tmp_path / "out", *only(*wanted), "--commit", "0123456789ab")
    assert done.returncode == 1, done.stdout + done.stderr
    result = written(tmp_path / "out")
    found = result["parts"]
    assert {name: part["status"] for name, part in found.items()} == {
        "agreement": "error",
        "reruns": "crashed",
        "ceilings": "passed",
        "linear training times": "stopped",
        "scoring times": "skipped",
        "kernel shares": "failed",
        "out of memory": "failed",
        "Triton against plain torch": "incomplete",
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
    assert result["complete"] is False
    assert result["command"].startswith("only agreement, ")
    assert result["source"]["commit"] == "0123456789ab"
    assert result["source"]["changed"] is None
    for said in (done.stdout, result["verdict"]):
        assert "FAILED: agreement, reruns, linear training times" in said
        assert "Triton against plain torch (incomplete: half of it)" in said


def begun(copy: Path, out: Path) -> subprocess.Popen:
    """A run in the midst of its second part."""
    (copy / "training_times.py").write_text(ENDLESS.replace("def run", "def linear"))
    wanted = only("ceilings", "linear training times", "scoring times")
    process = subprocess.Popen(command(out, *wanted), cwd=copy.parents[1], env=ENVIRONMENT)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
        if list(out.glob("*.json")) and "something" in str(written(out)):
            return process
    process.kill()
    pytest.fail("the run did not get to its second part")


def ends(processes: list[psutil.Process]) -> bool:
    deadline = time.monotonic() + 20
    while any(map(_works, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(_works, processes))


def _works(process: psutil.Process) -> bool:
    """Whether it has not ended; nobody may have asked how."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_run_that_is_killed_leaves_what_it_found(copy, tmp_path):
    process = begun(copy, tmp_path / "out")
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.kill()
    process.wait()
    result = written(tmp_path / "out")
    parts = result["parts"]
    assert {name: part["status"] for name, part in parts.items()} == {
        "ceilings": "passed",
        "linear training times": "running",
        "scoring times": "not run",
    }
    assert result["verdict"] == "incomplete: the run has not ended"
    assert result["complete"] is False
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
    assert result["verdict"].startswith("FAILED: linear training times; incomplete: scoring times")
    assert result["parts"]["linear training times"]["status"] == "interrupted"
    assert result["parts"]["scoring times"] == {"status": "not run", "why": "interrupted"}
    assert ends(children)


class NoProcess:
    """Stands in for a worker that is asked for facts only."""

    def __init__(self, arguments: list[str], variables: dict[str, str]) -> None:
        self.device = arguments[0]

    def ready(self) -> dict:
        return facts(self.device)

    def kill(self) -> None:
        pass


@pytest.fixture
def run_here(monkeypatch, capsys):
    """The command in this process: its exit status and what it says."""
    monkeypatch.setattr(command_line, "Worker", NoProcess)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)

    def run_here(words: list[str]) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", words)
        return command_line.main(), capsys.readouterr().out

    return run_here


def test_what_does_not_fit_into_the_time_is_not_begun(tmp_path, run_here):
    status, said = run_here(command(tmp_path, "--seconds", "0.1")[2:])
    assert status == 3, said
    result = written(tmp_path)
    assert set(result["parts"]) == set(names(second=False))
    for part in result["parts"].values():
        assert part == {"status": "not run", "why": "no time left"}
    assert result["complete"] is False
    assert "incomplete: nothing was checked" in said
    assert "nothing failed" not in said


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_it_says_how_to_rehearse(tmp_path, run_here):
    status, said = run_here(["gpu.check", "--out", str(tmp_path)])
    assert status == 2
    assert "There is no device 'cuda' here" in said
    assert not list(tmp_path.iterdir())


# --- a bare machine ------------------------------------------------------------------------------


def bare_tree(folder: Path) -> Path:
    """The files that git would carry, without its history; what is ignored stays behind."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
    ).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    return folder


def on_a_bare_machine(folder: Path, *options: str) -> dict:
    """What a rehearsal says with torch, Triton, NumPy, scikit-learn and pytest alone."""
    tree = bare_tree(folder / "tree")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYTHONPATH"] = str(ROOT / "tests" / "gpu" / "bare")
    done = subprocess.run(
        command(folder / "out", *options),
        capture_output=True,
        text=True,
        env={**environment, "OMP_NUM_THREADS": "1"},
        cwd=tree,
        timeout=500,
        check=False,
    )
    assert done.returncode in (0, 3), done.stdout + done.stderr
    return written(folder / "out")


def test_a_bare_machine_is_told_apart(tmp_path):
    result = on_a_bare_machine(tmp_path, *only("ceilings", "estimator times"))
    assert (result["verdict"], result["complete"]) == ("nothing failed", True)
    assert result["versions"]["numba"] is None
    assert result["versions"]["cvxpy"] is None
    assert result["source"]["changed"] is None
    assert len(result["parts"]["estimator times"]["measured"]) == 6


@pytest.mark.endurance
def test_the_first_command_on_a_bare_machine(tmp_path):
    result = on_a_bare_machine(tmp_path)
    statuses = {name: part["status"] for name, part in result["parts"].items()}
    assert statuses.pop("compute-sanitizer") == "skipped"
    assert set(statuses.values()) == {"passed"}, result["parts"]
    assert result["verdict"].startswith("incomplete: compute-sanitizer (skipped")
    tests = result["parts"]["kernel tests"]["measured"]["tests"]
    assert set(tests["not run for want of a package"]) == {"llvmlite", "numba"}
    by = {job["CPU by"] for job in result["parts"]["agreement"]["measured"].values()}
    assert by == {"plain torch"}


@pytest.mark.endurance
def test_without_clarabel_only_what_needs_it_is_left_out_by_name(tmp_path):
    result = on_a_bare_machine(tmp_path, *only("contract suite"))
    part = result["parts"]["contract suite"]
    tests = part["measured"]["tests"]
    (package,) = tests["not run for want of a package"]
    left_out = tests["not run for want of a package"][package]
    assert package == "clarabel"
    assert all(name.startswith("tests/gpu/test_contract.py::") for name in left_out)
    assert part["status"] == "incomplete"
    assert part["why"] == f"tests left out for want of clarabel: {len(left_out)}"
    assert tests["passed"] > 0
    assert tests["failed"] == 0


# --- tuning --------------------------------------------------------------------------------------


@pytest.fixture
def tuning(tmp_path, monkeypatch):
    """The part in this process, with a program that stands in for gpu/tuning."""
    program = tmp_path / "gpu" / "tuning"
    program.mkdir(parents=True)
    for folder in (program.parent, program):
        (folder / "__init__.py").touch()
    monkeypatch.setattr(tuning_part, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)

    def done(ending: str, seconds: float) -> tuple[dict, dict]:
        (program / "__main__.py").write_text(
            "import json, sys\nfrom pathlib import Path\n"
            "given = dict(zip(sys.argv[1:-1:2], sys.argv[2:-1:2]))\n"
            "Path(given['--out'], 'found.json').write_text(json.dumps(given['--device']))\n"
            + ending
        )
        channel = io.StringIO()
        end = _do("tuning:run", Record(channel, "cpu", True, seconds, {}), set())
        (event,) = map(json.loads, channel.getvalue().splitlines())
        return end, {event["name"]: event["value"]}

    return done


@pytest.mark.parametrize(
    ("ending", "seconds", "status", "said"),
    [
        ("", 60, "passed", "nothing failed"),
        ("sys.exit(1)", 60, "error", "FAILED: tuning"),
        ("__import__('time').sleep(600)", 7.5, "incomplete", "incomplete: nothing was checked"),
    ],
)
def test_what_tuning_wrote_is_kept(tuning, ending, seconds, status, said):
    """However it ends. Of the seconds it has all but six."""
    end, measured = tuning(ending, seconds)
    assert end["status"] == status
    assert measured == {"found.json": "cpu"}
    assert verdict({"tuning": end})[0].startswith(said)
