"""Graphs of several classes: the coupling alone, and whole models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bootprob import BootstrapSVC
from bootprob.calibration.coupling import class_pairs, couple
from bootprob.exceptions import DataError
from bootprob.onnx_export.export import export_onnx
from bootprob.tables.model import TableModel
from linear_models import linear

onnxruntime = pytest.importorskip("onnxruntime")

from onnx import TensorProto  # noqa: E402

from bootprob.onnx_export.coupling import add_coupling  # noqa: E402
from bootprob.onnx_export.graph import Graph  # noqa: E402

QUICK: dict[str, Any] = {"n_bootstraps": 7, "C": [0.25, 1.0], "random_state": 0}


def _session(made: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("K", [3, 4, 10, 25])
def test_the_coupling_is_the_solution_of_its_linear_system(K: int, rng: np.random.Generator):
    P = len(class_pairs(K))
    graph = Graph()
    columns = [graph.add("Gather", "X", np.array([k]), axis=1) for k in range(P)]
    made = graph.model(
        [("X", TensorProto.DOUBLE, ["rows", P])],
        [("p", add_coupling(graph, columns), TensorProto.DOUBLE, ["rows", K])],
        description="",
        properties={},
        producer_version="",
    )
    session = _session(made.SerializeToString())
    second = np.concatenate(
        [
            rng.random((50, P)),
            rng.beta(0.01, 0.01, size=(50, P)),  # pairs that are all but certain
            (rng.random((20, P)) > 0.5).astype(float),  # and quite so, also in a circle
            np.full((1, P), 0.5),
        ]
    )
    np.testing.assert_allclose(session.run(["p"], {"X": second})[0], couple(second), atol=1e-10)
    assert session.run(["p"], {"X": second[:0]})[0].shape == (0, K)


def _data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(90, 3)) * [1, 20, 0.1]
    return X, np.digitize(X[:, 0] + 0.6 * rng.normal(size=90), [-0.5, 0.5])


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"kernel": "auto", "effort": "low", "n_bootstraps": 4, "C": [1.0]},
        {"kernel": "rbf", "gamma": 0.3, "calibration": "isotonic"},
        {"calibration": None, "interval": "wald"},
    ],
    ids=str,
)
@pytest.mark.usefixtures("one_link")
def test_models_say_the_same(params: dict[str, Any], tmp_path: Path, rng: np.random.Generator):
    X, y = _data(rng)
    names = np.array(["ä", "b", "c"])
    model = linear(**QUICK | params).fit(X, names[y])
    export_onnx(model, tmp_path / "m.onnx")
    session = _session(str(tmp_path / "m.onnx"))
    for m in (1, 200):
        rows = X[rng.integers(0, len(X), m)] + rng.normal(size=(m, 3)) * X.std(axis=0)
        probability, label = session.run(["probability", "label"], {"X": rows})
        expected = model.predict_proba(rows)
        np.testing.assert_allclose(probability, expected, rtol=0, atol=1e-9)
        first, second = np.sort(expected, axis=1)[:, :-3:-1].T
        clear = first - second > 1e-9
        assert clear.any()
        assert label[clear].tolist() == model.predict(rows)[clear].tolist()


def test_tables(tmp_path: Path, rng: np.random.Generator):
    X, y = _data(rng)
    table = pd.DataFrame({"x": X[:, 0], "kind": rng.choice(["u", "v"], 90), "t": y})
    fit = {"all_classes": True, "estimator": linear(**QUICK)}
    model = TableModel.fit(table, "t", **fit)
    export_onnx(model, tmp_path / "m.onnx", dtype="float32")
    inputs = {
        "x": table[["x"]].to_numpy(np.float32),
        "kind": table[["kind"]].to_numpy(dtype=object),
    }
    probability, label = _session(str(tmp_path / "m.onnx")).run(None, inputs)
    expected = model.predict(table.assign(x=table["x"].astype(np.float32)))
    np.testing.assert_allclose(probability, expected[["p_0", "p_1", "p_2"]], atol=1e-5)
    assert (label == expected["label"]).mean() > 0.98


def test_a_coupling_by_iterations_is_refused(tmp_path: Path, rng: np.random.Generator):
    X, y = _data(rng)
    model = linear(**QUICK, coupling="hastie-tibshirani").fit(X, y)
    with pytest.raises(DataError, match="set coupling='wu-lin-weng', which has a closed form"):
        export_onnx(model, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()
    assert isinstance(model, BootstrapSVC)
    export_onnx(model.set_params(coupling="wu-lin-weng"), tmp_path / "m.onnx")
