"""`BootstrapSVC` and the command line on the pretended CUDA device, beside the CPU.

On rows that are always the same: thresholds and votes jump, and no draw should decide whether the
last bits of two devices matter. Most of it in plain torch, which the interpreter does not slow
down; the kernels have their own jobs in `test_rehearsed_engine`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from pretended_cuda import pretended_cuda
from typer.testing import CliRunner

from bootprob import BootstrapSVC
from bootprob.baselines import BestCSVC, PlattSVC, SollichSVC
from bootprob.cli.__main__ import app
from bootprob.ensemble.sensitivity import probability_sensitivity
from bootprob.ensemble.uncertainty import composite_model, composite_search
from bootprob.persistence.save_load import load, save
from bootprob_gpu.hardware.triton_choice import triton_kernels
from mixed_tables import credit_table

CLOSE = 1e-6  # probabilities of two devices in float64, as `make gpu-check` has it
TIGHT = {"linear": 1e-10, "rbf": 1e-9, "auto": 1e-3}
METHODS = (
    "corrected", "normal", "jackknife", "percentile", "basic", "bca", "wald", "wilson",
    "venn-abers",
)  # fmt: skip


def table(classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """40 rows of classes that overlap."""
    rng = np.random.default_rng(1994)
    X = rng.normal(size=(40, 3))
    latent = X[:, 0] + 0.7 * rng.normal(size=40)
    return X, np.digitize(latent, [-0.4, 0.5] if classes == 3 else [0.1])


NEW = np.random.default_rng(7).normal(size=(9, 3))


@dataclass
class Job:
    """An ensemble, and what it answers."""

    parameters: dict[str, Any] = field(default_factory=dict)
    make: Callable[..., BootstrapSVC] = BootstrapSVC
    classes: int = 2
    weighted: bool = False
    kernels: Literal["auto", "never"] = "never"
    close: float = CLOSE
    methods: tuple[str, ...] = ("corrected",)

    def fitted(self, device: str, **changes: Any) -> BootstrapSVC:
        X, y = table(self.classes)
        weight = np.linspace(0.5, 2.0, len(X)) if self.weighted else None
        usual = {
            "kernel": "linear", "n_bootstraps": 10, "C": (0.5, 4.0), "random_state": 0,
            "device": device,
        }  # fmt: skip
        kernel = "linear" if "feature_map" in self.parameters else self.parameters.get("kernel")
        if self.parameters.get("dtype") != "float32":
            usual["tol"] = TIGHT[kernel or "linear"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few rows: coarse maps, rates within an error
            return self.make(**usual | self.parameters | changes).fit(X, y, sample_weight=weight)

    def answers(self, model: BootstrapSVC) -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = {
                "probabilities": model.predict_proba(NEW),
                "labels": model.predict(NEW),
                "out of bag": model.oob_proba_,
                "votes": model.vote_proba(NEW),
                **{f"interval {m}": model.proba_interval(NEW, method=m) for m in self.methods},
            }
            if self.classes > 2:
                return found
            replicates = np.concatenate(list(model.bootstrap_scores(NEW)))
            return found | {
                "scores": model.decision_function(NEW),
                "score intervals": model.score_interval(NEW),
                # Where all support vectors are at their bounds, any of many intercepts is optimal.
                "replicates": replicates - replicates.mean(axis=0),
                "sets": model.prediction_sets(NEW),
                "metrics": {
                    name: np.array([each.lower, each.value, each.upper])
                    for name, each in model.metric_intervals().items()
                },
            }


RBF = {"kernel": "rbf", "gamma": (0.3, 1.0), "n_bootstraps": 8}
FEW = {"n_bootstraps": 5, "C": (2.0,), "gamma": (0.5,), "tol": 1e-6}
ROUGH = 1e-2  # with that tolerance
# A probability of float32 is 1e-4 from that of float64 on either device.
SINGLE = {"dtype": "float32", "n_bootstraps": 6}
JOBS = {
    "linear": Job(methods=METHODS),
    "weights": Job(weighted=True),
    "paper": Job({"C": None, "n_bootstraps": 8}, BootstrapSVC.paper, methods=("wald", "wilson")),
    "auto calibration": Job({"calibration": "auto", "standardize": "global"}),
    "several classes": Job(classes=3),
    "threshold": Job({"control": "threshold", "rates": {"tpr": 0.6}, "confidence": 0.8}),
    "constrained": Job({"control": "constrained", "rates": {"tpr": 0.6}, "n_bootstraps": 5}),
    "nystroem": Job({"kernel": "rbf", "feature_map": "nystroem", "n_components": 8, "gamma": 0.5}),
    "random features": Job(
        {"kernel": "rbf", "feature_map": "random-features", "n_components": 8, "gamma": 0.5}
    ),
    "auto": Job({"kernel": "auto", "n_bootstraps": 4, "C": (0.3,), "effort": "low"}, close=ROUGH),
    "rbf": Job(RBF, methods=METHODS),
    "rbf, one scale": Job(RBF | FEW | {"standardize": "global"}, close=ROUGH),
    "rbf, several classes": Job(RBF | FEW, classes=3, close=ROUGH),
    "rbf, threshold": Job(RBF | FEW | {"control": "threshold", "rates": {"tnr": 0.6}}, close=ROUGH),
    "rbf, constrained": Job(
        RBF | FEW | {"control": "constrained", "rates": {"tnr": 0.6}}, close=ROUGH
    ),
    "linear, float32": Job(SINGLE, close=1e-3),
    "rbf, float32": Job(RBF | SINGLE | {"gamma": 0.5}, close=1e-2),
    "linear, kernels": Job(
        {"n_bootstraps": 4, "C": (0.3,), "tol": 1e-4}, kernels="auto", close=1e-2
    ),
    "rbf, kernels": Job(
        RBF | FEW | {"n_bootstraps": 4, "C": (0.3,), "tol": 1e-3}, kernels="auto", close=1e-2
    ),
}
# By `make endurance` only: each takes the branches of jobs that are left, in another combination.
COMBINED = {
    "weights", "constrained", "several classes", "rbf, one scale", "rbf, float32",
    "linear, kernels",
}  # fmt: skip


def rest(name: str) -> Any:
    """A parameter that is left to `make endurance`."""
    return pytest.param(name, marks=pytest.mark.endurance)


def same(found: Any, expected: Any, close: float, name: str) -> None:
    """Compare what may be numbers, labels or collections of them."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            same(found[key], value, close, f"{name}, {key}")
    elif isinstance(expected, np.ndarray) and expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=close, atol=close, err_msg=name)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.parametrize("name", [rest(name) if name in COMBINED else name for name in JOBS])
def test_an_ensemble_says_what_that_of_a_cpu_says(pretended_gpu, monkeypatch, name):
    job = JOBS[name]
    # A few of the links and settings: each is like the others.
    monkeypatch.setattr(composite_model, "TAILS", ((-0.3, -0.3, 0.0, 0.0),))
    monkeypatch.setattr(composite_search, "_MOST_EXAMINED", 4)
    with triton_kernels(job.kernels):
        found = job.fitted("cuda")
        assert found.device_ == "cuda"
        answers = job.answers(found)
    used = [each for each in pretended_gpu.launches if each.startswith("triton ")]
    assert bool(used) == (job.kernels == "auto")
    expected = job.fitted("cpu")
    probabilities = answers["probabilities"] - expected.predict_proba(NEW)
    assert np.abs(probabilities).max() <= job.close
    if job.close == CLOSE:
        same(answers, job.answers(expected), 100 * CLOSE, name)


@pytest.mark.parametrize("name", ["linear", "rbf", "nystroem"])
def test_what_a_probability_hangs_on(pretended_gpu, name):
    parameters = {"n_bootstraps": 5, "C": (2.0,), "gamma": (0.5,)} if name == "rbf" else {}
    job = Job({**JOBS[name].parameters, **parameters})
    X, _ = table()
    moved = []
    for device in ("cuda", "cpu"):
        with warnings.catch_warnings(), triton_kernels("never"):
            warnings.simplefilter("ignore")
            found = probability_sensitivity(job.fitted(device), NEW[:2], X)
        moved.append(found)
    for each in fields(moved[0]):
        one, other = (getattr(found, each.name) for found in moved)
        if isinstance(one, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4, err_msg=each.name)


@pytest.mark.parametrize("name", [rest("linear"), "rbf"])
def test_a_model_is_saved_and_loaded(pretended_gpu, tmp_path, name):
    job = Job(JOBS[name].parameters | FEW | {"tol": 1e-4})
    with triton_kernels("never"):
        model = job.fitted("cuda")
        save(model, tmp_path / "m.model")
        again = load(tmp_path / "m.model")
        assert (again.device, again.device_) == ("cuda", "cuda")
        same(job.answers(again), job.answers(model), 1e-12, name)
        here = load(tmp_path / "m.model").set_params(device="cpu")
    same(here.predict_proba(NEW), model.predict_proba(NEW), 1e-9, name)


def test_a_file_of_a_gpu_is_loaded_where_there_is_none(no_gpu_seen, tmp_path):
    with pretended_cuda(), triton_kernels("never"):
        model = Job(SINGLE).fitted("cuda")
        expected = model.predict_proba(NEW)
        save(model, tmp_path / "m.model")
    again = load(tmp_path / "m.model")
    assert (again.device, again.device_) == ("auto", "cuda")
    np.testing.assert_allclose(again.predict_proba(NEW), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [rest("linear"), "rbf"])
def test_a_stopped_fit_goes_on(pretended_gpu, tmp_path, monkeypatch, name):
    for constant, value in {"_REPLICATES": 4, "_CUDA_MODELS": 1, "_CUDA_CELLS": 1}.items():
        monkeypatch.setattr(f"bootprob.ensemble.training.shards.{constant}", value)
    job = Job(JOBS[name].parameters | FEW | {"tol": 1e-2})
    with triton_kernels("never"):
        whole = job.fitted("cuda").predict_proba(NEW)
        first = job.fitted("cuda", checkpoint=str(tmp_path / "fit")).predict_proba(NEW)
        shards = sorted((tmp_path / "fit").glob("*.safetensors"))
        assert len(shards) > 1
        shards[0].unlink()
        again = job.fitted("cuda", checkpoint=str(tmp_path / "fit")).predict_proba(NEW)
    np.testing.assert_array_equal(first, whole)
    np.testing.assert_array_equal(again, whole)


def test_files_are_scored(pretended_gpu, tmp_path):
    table = credit_table(60)
    table.to_csv(tmp_path / "train.csv", index=False)
    table.drop(columns="risk").to_csv(tmp_path / "new.csv", index=False)
    run = CliRunner()
    fit = [
        "fit",
        "train.csv",
        "--target",
        "risk",
        "--positive",
        "bad",
        "--kernel",
        "linear",
        "--n-bootstraps",
        "8",
    ]
    paths = {name: str(tmp_path / name) for name in ("train.csv", "new.csv", "m.model")}

    def done(*words: str) -> str:
        result = run.invoke(app, [paths.get(word, word) for word in words])
        assert result.exit_code == 0, result.output
        return result.output

    with triton_kernels("never"):
        done(*fit, "--device", "cuda", "-o", "m.model")
        scored = {}
        for device in ("cuda", "cpu"):
            out = tmp_path / f"{device}.csv"
            done("score", "m.model", "new.csv", "-o", str(out), "--scores", "--device", device)
            scored[device] = pd.read_csv(out)
    assert pretended_gpu.waits["copy to the device (pageable memory)"] > 0
    pd.testing.assert_frame_equal(scored["cuda"], scored["cpu"], rtol=1e-6)


@pytest.mark.parametrize("make", [PlattSVC, BestCSVC, SollichSVC])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_baselines(pretended_gpu, make, kernel):
    X, y = table()
    with triton_kernels("never"):
        found, expected = (
            make(kernel=kernel, C=1.0, gamma=0.5, device=device, tol=1e-8, random_state=0)
            .fit(X, y)
            .predict_proba(NEW)
            for device in ("cuda", "cpu")
        )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
