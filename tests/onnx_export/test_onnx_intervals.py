"""Intervals in graphs are those of `proba_interval`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bootprob.calibration import CALIBRATORS
from bootprob.cli.__main__ import app
from bootprob.exceptions import DataError
from bootprob.intervals.mixtures import of_mixture
from bootprob.onnx_export.export import export_onnx
from bootprob.persistence.save_load import save
from bootprob.tables.model import TableModel
from linear_models import linear
from mixed_tables import credit_table

onnxruntime = pytest.importorskip("onnxruntime")

from onnx import TensorProto  # noqa: E402

from bootprob.onnx_export.graph import Graph  # noqa: E402
from bootprob.onnx_export.intervals import _add_quantiles  # noqa: E402

QUICK: dict[str, Any] = {"n_bootstraps": 9, "C": [0.25, 1.0], "random_state": 0}
BOUNDS = ["probability_lower", "probability_upper"]


def _session(made: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])


def _data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(70, 3)) * [1, 20, 0.1]
    return X, (X[:, 0] + rng.normal(size=70) > 0).astype(int)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("g", [1, 7])
def test_quantiles_of_mixtures(level: float, g: int, rng: np.random.Generator):
    mean, deviation = rng.normal(size=(40, g)) * 5, rng.exponential(size=(40, g)) + 1e-3
    weight = rng.dirichlet(np.ones(g))
    graph = Graph()
    of_parts = [graph.add("Gather", "X", np.arange(k, k + g), axis=1) for k in (0, g)]
    lower, upper = _add_quantiles(graph, *of_parts, weight, level)
    made = graph.model(
        [("X", TensorProto.DOUBLE, ["rows", 2 * g])],
        [("both", graph.add("Concat", lower, upper, axis=1), TensorProto.DOUBLE, ["rows", 2])],
        description="",
        properties={},
        producer_version="",
    )
    rows = np.concatenate([mean, deviation], axis=1)
    found = _session(made.SerializeToString()).run(None, {"X": rows})[0]
    expected = of_mixture(np.stack([mean, deviation], axis=-1), weight, level)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"standardize": None, "C": [0.01], "interval": "normal"},
        {"interval": "jackknife", "control": "threshold", "rates": {"tpr": 0.9}},
        {"calibration": "isotonic"},
        {"kernel": "rbf", "gamma": [0.1, 0.5]},
        {"kernel": "rbf", "gamma": 0.3, "feature_map": "nystroem", "n_components": 12},
        {"kernel": "rbf", "gamma": 0.3, "standardize": "global", "calibration": "beta"},
        {"kernel": "auto", "effort": "low", "n_bootstraps": 4, "C": [1.0]},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::bootprob.exceptions.LackOfFitWarning")
@pytest.mark.filterwarnings("ignore:The feature map's kernel")
def test_models_say_the_same(params: dict[str, Any], tmp_path: Path, rng: np.random.Generator):
    X, y = _data(rng)
    model = linear(**QUICK | params).fit(X, y)
    export_onnx(model, tmp_path / "m.onnx", interval=0.9)
    session = _session(str(tmp_path / "m.onnx"))
    assert [each.name for each in session.get_outputs()] == ["probability", "label", *BOUNDS]
    for m in (1, 150):
        rows = X[rng.integers(0, len(X), m)] + rng.normal(size=(m, 3)) * X.std(axis=0)
        probability, lower, upper = session.run(["probability", *BOUNDS], {"X": rows})
        np.testing.assert_allclose(probability, model.predict_proba(rows), rtol=0, atol=1e-9)
        found = np.stack([lower, upper], axis=-1)
        np.testing.assert_allclose(found, model.proba_interval(rows, 0.9), rtol=0, atol=1e-8)


@pytest.mark.parametrize("calibration", CALIBRATORS)
@pytest.mark.parametrize("interval", ["corrected", "normal"])
def test_far_rows(calibration: str, interval: Any, tmp_path: Path):
    # Sigmoids of onnxruntime keep 16 decimals: of probabilities of 1e-15 few digits are left.
    rng = np.random.default_rng(13)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + 0.2 * rng.normal(size=60) > 0).astype(int)
    params = {"n_bootstraps": 8, "C": [1.0], "random_state": 0}
    model = linear(**params, calibration=calibration, interval=interval).fit(X, y)
    export_onnx(model, tmp_path / "m.onnx", interval=0.95)
    far = np.linspace(-40, 40, 801)
    rows = np.stack([far, np.zeros_like(far)], axis=1)
    found = np.stack(_session(str(tmp_path / "m.onnx")).run(BOUNDS, {"X": rows}), axis=-1)
    np.testing.assert_allclose(found, model.proba_interval(rows), rtol=0, atol=1e-8)


def test_the_command_writes_those_of_a_table(tmp_path: Path):
    table = credit_table(90)
    model = TableModel.fit(table, "risk", "bad", estimator=linear(**QUICK))
    save(model, tmp_path / "m.model")
    given = [str(tmp_path / "m.model"), "--interval", "0.8", "-o", str(tmp_path / "m.onnx")]
    result = CliRunner().invoke(app, ["export", *given])
    assert result.exit_code == 0, result.output
    inputs = {
        name: (
            table[[name]].to_numpy(np.float64)
            if kind == "number"
            else table[[name]].map(lambda v: "" if pd.isna(v) else str(v)).to_numpy(dtype=object)
        )
        for name, kind in model.preprocessor.kinds_.items()
    }
    lower, upper = _session(str(tmp_path / "m.onnx")).run(BOUNDS, inputs)
    expected = model.predict(table, 0.8)
    np.testing.assert_allclose(lower[:, 1], expected["probability_lower"], atol=1e-8)
    np.testing.assert_allclose(upper[:, 1], expected["probability_upper"], atol=1e-8)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"interval": "bca"}, "interval='bca' is not exported"),
        ({"calibration": None, "interval": "wilson"}, "this model has calibration=None"),
        ({"kernel": "rbf", "interval": "normal"}, "needs the score of every replicate"),
    ],
    ids=str,
)
def test_what_cannot_be_had_is_refused(
    params: dict[str, Any], said: str, tmp_path: Path, rng: np.random.Generator
):
    X, y = _data(rng)
    model = linear(**QUICK | params).fit(X, y)
    with pytest.raises(DataError, match=said):
        export_onnx(model, tmp_path / "m.onnx", interval=0.9)
    with pytest.raises(DataError, match="level"):
        export_onnx(model.set_params(interval="corrected"), tmp_path / "m.onnx", interval=95)
    assert list(tmp_path.iterdir()) == []


def test_of_several_classes_it_is_refused(tmp_path: Path, rng: np.random.Generator):
    X, y = _data(rng)
    y[:10] = 2
    with pytest.raises(DataError, match="every pair for the correlations of their errors"):
        export_onnx(linear(**QUICK).fit(X, y), tmp_path / "m.onnx", interval=0.9)
