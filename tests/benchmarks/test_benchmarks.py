"""The benchmark: peers solve the right problem, samples are unbiased, the document says what is."""

import json
import runpy
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import cvxpy as cp
import numpy as np
import pytest

from bootprob.preparation.bootstrap import bootstrap_counts
from gpu.benchmarks.common.environment import describe
from gpu.benchmarks.common.tables import figures
from gpu.benchmarks.crew import Crew, Timed
from gpu.benchmarks.gpu_results import newest
from gpu.benchmarks.growth import slopes
from gpu.benchmarks.our_timing import PeakMemory, time_best, train
from gpu.benchmarks.peer_timing import crews, estimate, lower_bounds, rounds, time_peer
from gpu.benchmarks.peers import installed
from gpu.benchmarks.report import main, render
from gpu.benchmarks.svm import Machine
from gpu.benchmarks.synthetic import adult_like, gene_like
from gpu.benchmarks.targets import TARGETS, runs_so_far
from gpu.benchmarks.workloads import Workload

ROOT = Path(__file__).parents[2]
PEERS = {key: peer for key, peer in installed() if peer is not None}


def machine(rng, kernel: str, n: int = 60, p: int = 4, C: float = 0.05) -> Machine:
    rows = rng.normal(size=(n, p))
    labels = np.where(rows[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    labels[:2] = 1, -1
    weight = rng.integers(1, 4, n).astype(float)
    return Machine(kernel, rows, labels, weight, C, 1 / p if kernel == "rbf" else None)


def optimum(machine: Machine, *, penalised: bool = False) -> float:
    """By CVXPY; `penalised` adds half the square of the intercept to the objective."""
    n = len(machine.labels)
    root = np.linalg.cholesky(machine.gram() + 1e-10 * np.eye(n))
    w, b = cp.Variable(n), cp.Variable()
    hinge = machine.weight @ cp.pos(1 - cp.multiply(machine.labels, root @ w + b))
    norm = cp.sum_squares(w) + (cp.square(b) if penalised else 0)
    return cp.Problem(cp.Minimize(0.5 * norm + machine.C * hinge)).solve(solver=cp.CLARABEL)


def workload(rng, kernel: str = "linear", **changes: object) -> Workload:
    X = rng.normal(size=(80, 3)) * [1, 10, 0.1]
    positive = X[:, 0] + rng.normal(size=80) > 0
    counts, _ = bootstrap_counts(positive, np.ones(80), range(6), [int(rng.integers(2**32))])
    given = {"gamma": "scale", "chunk": None, "estimator": False, "peer_seconds": 0.3}
    return Workload("made up", X, positive, counts, kernel, **{**given, **changes})


# The peers


def test_peers_that_are_not_installed_are_named(monkeypatch):
    packages = {"rehline", "sklearnex"}
    for name in {*packages, *(name for name in sys.modules if name.split(".")[0] in packages)}:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith("gpu.benchmarks.peers.")]:
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(
            sys.modules["gpu.benchmarks.peers"], name.rpartition(".")[2], raising=False
        )
    named = [key for key, peer in installed() if peer is None]
    assert named == ["intelex", "rehline", "rehline_default"]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("key", PEERS)
def test_a_peer_finds_the_optimum(rng, key, kernel):
    peer, given = PEERS[key], machine(rng, kernel)
    if not peer.solves(kernel, *given.rows.shape):
        pytest.skip(f"{peer.NAME} has no {kernel} kernel")
    prepared = peer.prepare(given)
    answer = peer.answer(given, prepared, peer.solve(given, prepared))
    reached, best = given.objective(answer), optimum(given)
    assert reached >= best * (1 - 1e-6)
    worst = best if peer.SAME_PROBLEM else optimum(given, penalised=True)
    assert reached <= worst * (1 + 5e-3)
    assert answer.converged


def test_scikit_learn_stays_unpatched():
    from sklearn.svm import SVC

    assert SVC.__module__ == "sklearn.svm._classes"


def test_a_peer_that_ran_out_of_iterations_says_so(rng):
    peer, given = PEERS["linear_svc"], machine(rng, "linear", n=300, p=20, C=1e4)
    with pytest.warns(Warning, match="converge"):
        solved = peer.solve(given, None)
    assert not peer.answer(given, None, solved).converged


# Which models are timed, and what is made of it


def test_every_model_is_drawn_once_and_every_round_has_the_whole_grid(rng):
    drawn = list(islice(rounds(rng, 7, 4), 14))
    assert all([r for _, r in one] == [0, 1, 2, 3] for one in drawn)
    for cycle in (drawn[:7], drawn[7:]):
        assert len({model for one in cycle for model in one}) == 28


def test_the_estimate_is_unbiased_and_knows_its_error(rng):
    cost = np.exp(rng.normal(size=(30, 5)) + np.arange(5))  # steep along the grid
    means, errors = [], []
    for _ in range(2000):
        sample = islice(rounds(rng, 30, 5), 4)
        mean, error = estimate(np.array([[cost[model] for model in one] for one in sample]))
        means.append(mean)
        errors.append(error)
    spread = np.std(means)
    assert abs(np.mean(means) - cost.mean()) < 5 * spread / np.sqrt(2000)
    # Drawing without replacement is a little better than the formula knows.
    known = np.sqrt(np.mean(np.square(errors)))
    assert known == pytest.approx(spread / np.sqrt(1 - 4 / 30), rel=0.15)


def test_one_round_has_no_standard_error():
    assert estimate(np.array([[1.0, 3.0]])) == (2.0, None)


def test_models_stopped_or_not_begun_count_for_less_than_they_cost():
    def done(seconds):
        return Timed(seconds, 1.0, True)

    paths = [done(1), done(4), Timed(2.0), None, done(2), Timed(3.0), None, None]
    assert lower_bounds(paths, 4).tolist() == [1, 4, 4, 4, 2, 3, 3, 3]


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    """A process that has loaded what it solves with, for all tests."""
    with Crew("svc", [0]) as crew:
        yield crew


def test_a_crew_solves_and_stops(rng, crew):
    quick = [machine(rng, "linear") for _ in range(3)]
    endless = machine(rng, "linear", n=1000, p=40, C=1e8)
    peer = PEERS["svc"]
    first = crew.solve([partial(lambda given: given, given) for given in quick])
    stopped, not_begun = crew.solve([lambda: endless, lambda: quick[0]], seconds=0.3)
    (again,) = crew.solve([lambda: quick[0]])
    for given, timed in zip([*quick, quick[0]], [*first, again], strict=True):
        expected = given.objective(peer.answer(given, None, peer.solve(given, None)))
        assert timed.objective == pytest.approx(expected)
        assert 0 < timed.seconds < 10
    assert stopped.objective is None
    assert 0 < stopped.seconds < 10
    assert not_begun is None


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_peer_and_the_engine_are_given_the_same_problem(rng, kernel):
    job = workload(rng, kernel)
    ours = train(job)
    assert ours["models measured"] == 66
    assert ours["models unconverged"] == 0
    peer = PEERS["svc"]
    for b, r in [(0, 0), (3, 5), (5, 10)]:
        given = job.machine(b, r)
        reached = given.objective(peer.answer(given, None, peer.solve(given, None)))
        assert ours["dual"][b, r] <= reached * (1 + 1e-9)
        assert reached == pytest.approx(ours["dual"][b, r], rel=1e-2)


def test_a_peer_is_timed_for_the_whole_job(rng, crew):
    job = workload(rng, peer_seconds=1.0)
    dual = train(job)["dual"]
    (way,) = crews("svc", [0])
    found = time_peer("svc", {way: crew}, job, dual)
    assert found["models solved"] == 11 * found["rounds"]
    assert found["models stopped or not begun"] == found["models unconverged"] == 0
    by_grid_point = np.mean(found["seconds a model by grid point"])
    assert found["seconds"] == pytest.approx(5500 * by_grid_point, rel=1e-2)
    assert 0 <= found["suboptimality"]["median"] <= found["suboptimality"]["largest"] < 0.02


# Ours


def test_chunks_are_extrapolated_to_the_whole_job(rng):
    found = train(workload(rng, chunk=2))
    assert found["models measured"] == 66
    assert found["seconds"] == pytest.approx(found["seconds measured"] * 500 / 6)
    assert found["standard error"] > 0


def in_a_process_of_its_own(words: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "gpu.benchmarks.our_timing", *words], check=True)


def here(words: list[str]) -> None:
    """Without the seconds in which a process loads torch."""
    with patch.object(sys, "argv", ["our_timing", *words]):
        runpy.run_path(str(ROOT / "gpu" / "benchmarks" / "our_timing.py"), run_name="__main__")


@pytest.mark.parametrize(
    "run", [here, pytest.param(in_a_process_of_its_own, marks=pytest.mark.endurance)]
)
def test_a_job_is_measured_and_written_down(tmp_path, run):
    run(["gene-linear", "--quick", "--into", str(tmp_path)])
    ours = json.loads((tmp_path / "gene-linear.json").read_text(encoding="utf-8"))
    dual = np.load(tmp_path / "gene-linear.npy")
    assert dual.size == ours["default gap"]["models measured"] == 88
    assert ours["default gap"]["largest gap"] <= 1e-7
    # The optimum never falls as C grows.
    assert (np.diff(dual, axis=1) >= -1e-7 * dual[:, 1:]).all()


def test_short_work_is_repeated_and_long_work_is_not():
    seconds, result = time_best(lambda: 7, repeats=3)
    assert len(seconds) == 3
    assert result == 7


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the mark is the kernel's")
def test_peak_memory_is_seen_though_it_is_gone_again():
    with PeakMemory() as memory:
        np.ones(2**23).sum()  # 64 MiB
    assert 60 * 2**20 < memory.bytes < 100 * 2**20


def test_the_environment_names_what_is_missing():
    found = describe(["numpy", "no-such-distribution"])
    assert found["versions"]["numpy"] == np.__version__
    assert found["versions"]["no-such-distribution"] is None
    assert found["cores"] >= 1


def test_slopes_of_a_power_law(rng):
    exponent = rng.uniform(0.5, 3)
    sizes = [10, 20, 40, 80, 160]
    seconds = [0.01 * size**exponent for size in sizes]
    assert slopes(sizes, seconds) == pytest.approx((exponent, exponent))


def test_synthetic_tables_are_what_they_are_called():
    X, y = adult_like(3000)
    assert X.shape == (3000, 100)
    assert y.mean() == pytest.approx(0.24, abs=0.001)
    assert np.isin(X[:, 6:], (0, 1)).all()
    assert (X[:, 6:].sum(axis=1) == 8).all()
    X, y = gene_like(65, 500)
    assert X.shape == (65, 500)
    assert (X > 0).all()
    assert 0 < y.sum() < 65


# The document


def a_peer(name: str, seconds: float, **changes: object) -> dict:
    return {
        "name": name, "note": f"{name} is a peer.", "same problem": True, "run as": "2 processes",
        "seconds a model, tried": {},
        "rounds": 2, "models solved": 22, "models stopped or not begun": 0, "models unconverged": 0,
        "seconds": seconds, "standard error": None,
        "suboptimality": {"median": 1e-4, "largest": 1e-3}, **changes,
    }  # fmt: skip


def measured(seconds: float = 2.0) -> dict:
    training = {
        "seconds": seconds, "standard error": None, "seconds measured": seconds,
        "models measured": 5500, "runs, best taken": 3, "largest gap": 9.9e-8, "median gap": 1e-9,
        "models unconverged": 0, "median iterations": 15.0, "peak memory, MiB": 20.0,
    }  # fmt: skip
    ours = {
        "title": "German credit 900 × 61, linear", "rows": 900, "columns": 61, "models": 5500,
        "solver": "interior-point-compiled", "threads": 2, "default gap": training,
    }  # fmt: skip
    return {
        "command": "make bench", "quick": False, "peers not installed": ["intelex"],
        "environment": {
            "date": "2026-01-02", "commit": "0123456789ab", "uncommitted changes": False,
            "processor": "a processor", "cores": 2, "memory, GiB": 8, "load before": 0.0,
            "system": "Linux", "versions": {"python": "3.11.0", "rehline": None},
        },
        "left out": {"leukemia-linear": "no such file"}, "compilation, seconds": 20.0,
        "seconds": 400.0,
        "jobs": {"german-linear": {"ours": ours, "peers": {"svc": a_peer("SVC", 300.0)}}},
        "scoring": [
            {
                "rows": rows, "columns": 61, "models": 5500, "dtype": "float32", "threads": 2,
                "votes, rows per second": 80.0, "bare product, rows per second": 100.0,
                "weighted scores, rows per second": 900.0, "votes / bare product": ratio,
                "fastest product": "torch, rows first", "peak memory beyond the rows, MiB": 3.0,
            }
            for rows, ratio in ((1000, 0.5), (2000, 0.8))
        ],
        "growth": {
            kernel: {
                "base": {"n": 5, "p": 2, "B": 3, "R": 2},
                **{letter: {"sizes": [1, 2, 4], "seconds": [1.0, 2.0, 4.0]} for letter in "npBR"},
            }
            for kernel in ("linear", "rbf")
        },
    }  # fmt: skip


def target_row(text: str, beginning: str) -> str:
    (row,) = [line for line in text.splitlines() if line.startswith(f"| {beginning}")]
    return row


def write(folder: Path, results: dict, gpu: dict[str, dict] | None = None) -> str:
    (folder / "docs" / "results").mkdir(parents=True)
    (folder / "gpu").mkdir()
    (folder / "docs" / "results" / "benchmarks.json").write_text(json.dumps(results))
    for name, content in (gpu or {}).items():
        (folder / "gpu" / name).write_text(json.dumps(content))
    return main(folder / "docs", folder / "gpu").read_text(encoding="utf-8")


def test_the_document_renders_and_says_what_was_not_measured(tmp_path):
    text = write(tmp_path, measured())
    assert "Not measured: there is no result of `make gpu-check`" in text
    assert "2026-01-02" in text
    assert "0123456789ab" in text
    assert "leukemia-linear was left out: no such file" in text
    assert "**intelex**: not installed here, not measured." in text
    assert "not measured |" in target_row(text, "Wisconsin, linear")
    assert "| linear | 1.00 / 1.00 | 1.00 / 1.00 | 1.00 / 1.00 | 1.00 / 1.00 |" in text
    assert (tmp_path / "docs" / "results" / "growth.svg").read_text().startswith("<?xml")


def test_targets_are_judged_by_the_numbers():
    row = partial(target_row, beginning="German credit, linear, against SVC")
    assert row(render(measured(2.0), None)).endswith("| 150 | SVC | – | met |")
    assert row(render(measured(4.0), None)).endswith("| 75.0 | SVC | – | **not met** |")
    results = measured(4.0)
    results["jobs"]["german-linear"]["peers"]["svc"]["models stopped or not begun"] = 3
    assert row(render(results, None)).endswith("| ≥ 75.0 | SVC | – | open |")


def test_a_peer_that_did_not_solve_its_problem_counts_in_no_target():
    results = measured(2.0)
    peers = results["jobs"]["german-linear"]["peers"]
    peers["svc"]["models unconverged"] = 1
    text = render(results, None)
    assert "22, 1 unsolved" in text
    assert "not measured" in target_row(text, "German credit, linear, against SVC")


def test_the_fastest_of_three_needs_all_three():
    results = measured(1.0)
    jobs = results["jobs"]
    jobs["wisconsin-linear"] = jobs.pop("german-linear")
    (target,) = [each for each in TARGETS if each.promise.startswith("Wisconsin, linear")]
    assert target.measure(results) is None
    for key, seconds in (("svc_precomputed", 5.0), ("intelex", 50.0)):
        jobs["wisconsin-linear"]["peers"][key] = a_peer(key, seconds)
    assert target.measure(results).ratio == pytest.approx(5)


def test_the_same_kkt_tolerance_has_a_ratio_of_its_own():
    results = measured(2.0)
    job = results["jobs"].pop("german-linear")
    job["ours"]["KKT tolerance 1e-3"] = {**job["ours"]["default gap"], "seconds": 0.5}
    job["peers"] = {"svc_precomputed": a_peer("SVC, Gram given", 3.0)}
    results["jobs"]["german-rbf"] = job
    text = render(results, None)
    assert target_row(text, "German credit, RBF, KKT").endswith(
        "| 6.00 | SVC, Gram given | – | met |"
    )
    assert target_row(text, "German credit, RBF, default").endswith("given | – | **not met** |")
    assert "| SVC, Gram given | 3.00 | 1.50 | 6.00 | 1e-4 / 1e-3 | 22 |" in text


def test_a_run_remembers_the_ratios_of_those_before():
    first, last = measured(2.0), measured(3.0)
    first["environment"]["processor"] = "another processor"
    second = {**measured(1.0), "earlier runs": runs_so_far(first)}
    last["earlier runs"] = runs_so_far(second)
    assert [run["processor"] for run in last["earlier runs"]] == [
        "another processor",
        "a processor",
    ]
    text = render(last, None)
    assert "on another processor, a processor:" in text
    row = target_row(text, "German credit, linear, against SVC")
    assert "| 100 | SVC | 150 – 300 (2) | met |" in row
    assert runs_so_far({**second, "quick": True}) == second["earlier runs"]
    assert "| – | **not met** |" in target_row(
        render(measured(9.0), None), "German credit, linear, against SVC"
    )


def test_scoring_is_judged_by_the_most_rows():
    text = render(measured(), None)
    assert "| 2,000 × 61, 5,500 models, float32 | 80.0 | 100 | 0.800 | 900 | 3.00 |" in text
    assert target_row(text, "Scoring, float32").endswith("| 0.800 | torch, rows first | – | met |")
    assert "not measured" in target_row(text, "Scoring, float64")


def test_parts_that_were_left_out_are_not_measured():
    results = {key: value for key, value in measured().items() if key not in ("growth", "scoring")}
    assert render(results, None).count("\nNot measured.\n") == 2


def test_a_trial_run_is_marked():
    assert "Its numbers mean nothing" not in render(measured(), None)
    assert "Its numbers mean nothing" in render({**measured(), "quick": True}, None)


def gpu_result(started: str, **changes: object) -> dict:
    times = {"median, ms": 12.5, "least, ms": 12.0, "runs": 7, "clock": "CUDA events"}
    job = {
        **times,
        "models": 5500,
        "floor, ms": 2.5,
        "time / floor": 5.0,
        "replicates": "500 of 500",
    }
    return {
        "format": 1, "rehearsal": False, "complete": True, "started": started,
        "source": {"commit": "fedcba9876543210", "changed": False, "sha256": "0"},
        "device": {"name": "A card"}, "versions": {"torch": "2.11", "triton": None},
        "parts": {
            "agreement": {
                "status": "failed",
                "promises": [{"promise": "they agree", "holds": False}], "measured": {},
            },
            "linear training times": {
                "status": "passed",
                "measured": {
                    "Wisconsin, linear": {**job, "peak memory, bytes": 2**20},
                    "adult-like, linear": "not run: no time left",
                },
            },
            "ceilings": {"status": "passed", "measured": {"copy, bytes/s": {"rate": 4e12}}},
            "kernel shares": {
                "status": "passed",
                "measured": {"training": {"kernels": [{"name": "k", "share": 0.5, "calls": 3}]}},
            },
            "contract suite": {"status": "not run", "why": "no time left"},
        },
        **changes,
    }  # fmt: skip


def test_the_newest_result_of_a_gpu_is_shown(tmp_path):
    of_old_code = {"commit": "0123456789abcdef", "changed": False, "sha256": "1"}
    files = {
        "b-old.json": gpu_result("2026-01-01T00:00:00+00:00", source=of_old_code),
        "a-new.json": gpu_result("2026-03-01T00:00:00+00:00"),
        "z-rehearsal.json": gpu_result("2026-09-01T00:00:00+00:00", rehearsal=True),
        "predictions.json": {"jobs": [{"job": "Wisconsin, linear", "between, s": [0.008, 0.02]}]},
    }
    text = write(tmp_path, measured(), files)
    assert "a-new.json" in text
    assert "b-old.json" not in text
    assert "**broken**: they agree (agreement)" in text
    assert "**contract suite: not run**, no time left" in text
    assert (
        "| Wisconsin, linear (500 of 500 replicates) | 5,500 | 12.5 | 2.50 | 5.00 | 8.00 to 20.0 "
        "| 1.00 |" in text
    )
    assert "adult-like, linear" not in text
    assert "`k` 50 %" in text


def test_the_two_commands_of_a_check_are_shown_as_one(tmp_path):
    first = gpu_result(
        "2026-03-01T00:00:00+00:00", format=2, command="first", verdict="nothing failed"
    )
    counters = {"gpu__time_duration.sum": {"unit": "ns", "values": [3e6, 1e6, 2e6]}}
    estimator = {"first fit, s": 2.5, "least, s": 0.25, "predict_proba, s": 0.125}
    first["parts"]["estimator times"] = {
        "status": "passed", "measured": {"Wisconsin, linear": estimator},
    }  # fmt: skip
    promises = [{"promise": f"promise {k}", "holds": True} for k in range(9)]
    first["parts"]["each kernel against its twin"] = {"status": "passed", "promises": promises}
    second = {
        **first, "command": "second", "started": "2026-03-01T00:10:00+00:00",
        "verdict": "incomplete: tuning (skipped: there is no gpu/tuning)",
        "parts": {
            "Nsight Compute": {"status": "passed", "measured": {
                "_factor": {"metrics": counters, "launches": 3},
            }},
            "tuning": {"status": "skipped", "why": "there is no gpu/tuning"},
        },
    }  # fmt: skip
    other = {**second, "source": {**second["source"], "sha256": "1"}}
    single = {
        **first, "command": "only ceilings", "started": "2026-03-01T00:20:00+00:00",
        "parts": {"ceilings": {"status": "stopped", "why": "no time"}},
    }  # fmt: skip
    text = write(
        tmp_path,
        measured(),
        {"c.json": first, "c-second.json": second, "c-2.json": single, "d-second.json": other},
    )
    assert "c-2.json" in text
    other["started"] = "2026-04-01T00:00:00+00:00"
    (tmp_path / "gpu" / "d-second.json").write_text(json.dumps(other))
    text = main(tmp_path / "docs", tmp_path / "gpu").read_text(encoding="utf-8")
    assert "d-second.json" in text  # the newest, of other code: it stands alone
    assert "c.json" not in text
    other["started"] = "2026-02-01T00:00:00+00:00"
    (tmp_path / "gpu" / "d-second.json").write_text(json.dumps(other))
    text = main(tmp_path / "docs", tmp_path / "gpu").read_text(encoding="utf-8")
    assert "d-second.json" not in text
    assert "- [c.json](../gpu/results/c.json): nothing failed\n" in text
    assert "- [c-second.json](../gpu/results/c-second.json): incomplete: tuning (skipped" in text
    assert "holds: 9 promises (each kernel against its twin)" in text
    assert "- `_factor`: time 2e+06 ns" in text
    assert "| Wisconsin, linear | 2.50 | 0.250 | 0.125 |" in text
    assert "**ceilings: stopped**, no time" in text  # the last run counts


def test_a_rehearsal_is_no_result(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps(gpu_result("2026-01-01", rehearsal=True)))
    assert newest(tmp_path) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.5, "1,230"), (12.345, "12.3"), (0.001234, "0.00123"), (0, "0"), (None, "–")],
)
def test_figures(value, text):
    assert figures(value) == text
