"""Pipelines that end in a BootstrapSVC, converted by skl2onnx, say what scikit-learn says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bootprob import BootstrapSVC
from bootprob.exceptions import DataError
from bootprob.onnx_export import register_skl2onnx

onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

from skl2onnx.common.data_types import (  # noqa: E402
    DoubleTensorType,
    FloatTensorType,
    StringTensorType,
)

QUICK: dict[str, Any] = {"n_bootstraps": 7, "C": [0.25, 1.0], "random_state": 0}
KINDS = {
    "auto": {"n_bootstraps": 8, "effort": "low", "random_state": 0},
    "linear": QUICK | {"kernel": "linear"},
    "votes": QUICK | {"kernel": "linear", "calibration": None},
    # Loops over replicates whose bodies use values from outside.
    "rbf": QUICK | {"kernel": "rbf", "gamma": 0.1},
}


@pytest.fixture(autouse=True)
def _registered() -> None:
    register_skl2onnx()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def _data(rng: np.random.Generator, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 4)) * rng.uniform(0.1, 9, 4)
    return X, (X[:, 0] / X[:, 0].std() + rng.normal(size=n) > 0).astype(int)


def _converted(model: Any, X: np.ndarray, **options: Any) -> Any:
    kind = DoubleTensorType if X.dtype == np.float64 else FloatTensorType
    inputs = [("X", kind([None, X.shape[1]]))]
    return skl2onnx.to_onnx(model, initial_types=inputs, **{"options": {"zipmap": False}} | options)


def _run(made: Any, inputs: dict[str, np.ndarray]) -> list[Any]:
    return onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    ).run(None, inputs)


@pytest.mark.parametrize("kind", KINDS)
def test_pipelines_end_in_it(kind, rng):
    X, y = _data(rng)
    model = make_pipeline(StandardScaler(), PCA(3), BootstrapSVC(**KINDS[kind]))
    model.fit(X, y)
    made = _converted(model, X)
    for rows in (X[:1], X, X[rng.integers(0, 60, 300)]):
        label, probability = _run(made, {"X": rows})
        expected = model.predict_proba(rows)
        np.testing.assert_allclose(probability, expected, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(label, model.predict(rows))
    assert np.ptp(expected) > 0.1


@pytest.mark.parametrize(
    "labels", [np.array([False, True]), np.array([1.0, 2.0]), np.array(["fig", "pear"])]
)
def test_labels_and_types(labels, rng):
    X, y = _data(rng)
    model = make_pipeline(StandardScaler(), BootstrapSVC(**KINDS["linear"])).fit(X, labels[y])
    rows = X.astype(np.float32)
    label, probability = _run(_converted(model, rows), {"X": rows})
    assert probability.dtype == np.float32
    np.testing.assert_allclose(probability, model.predict_proba(rows), rtol=0, atol=1e-5)
    assert label.dtype == (object if labels.dtype.kind == "U" else np.int64)  # as skl2onnx has it
    np.testing.assert_array_equal(label.astype(labels.dtype), model.predict(rows))


def test_several_classes_and_a_map_of_each_row(rng):
    X, y = _data(rng, 90)
    three = np.array(["a", "b", "c"])[y + (X[:, 1] > 0)]
    svc = BootstrapSVC(**KINDS["linear"]).fit(X, three)
    rows = X.astype(np.float32)  # maps hold float32 alone
    _, maps = _run(_converted(svc, rows, options={}), {"X": rows})
    found = np.array([[row[name] for name in "abc"] for row in maps])
    np.testing.assert_allclose(found, svc.predict_proba(rows), rtol=0, atol=1e-5)


def test_several_in_one_graph(rng):
    """Their values are called differently, and other models combine them."""
    X, y = _data(rng)
    members = [(kind, BootstrapSVC(**KINDS[kind])) for kind in ("linear", "rbf")]
    model = VotingClassifier(members, voting="soft", flatten_transform=False).fit(X, y)
    _, probability = _run(_converted(model, X), {"X": X})
    np.testing.assert_allclose(probability, model.predict_proba(X), rtol=0, atol=1e-9)


def test_columns_of_text_before_it(rng):
    X, y = _data(rng)
    frame = pd.DataFrame({"size": X[:, 0], "kind": np.array(["a", "b", "c"])[np.arange(60) % 3]})
    columns = make_column_transformer((StandardScaler(), ["size"]), (OneHotEncoder(), ["kind"]))
    model = make_pipeline(columns, BootstrapSVC(**KINDS["linear"])).fit(frame, y)
    inputs = [("size", DoubleTensorType([None, 1])), ("kind", StringTensorType([None, 1]))]
    made = skl2onnx.to_onnx(model, initial_types=inputs, options={"zipmap": False})
    _, probability = _run(made, {name: frame[[name]].to_numpy() for name in frame})
    # skl2onnx codes text as float32, and joins the columns in that.
    np.testing.assert_allclose(probability, model.predict_proba(frame), rtol=0, atol=1e-5)


def test_what_is_refused(rng):
    X, y = _data(rng)
    other = BootstrapSVC(**QUICK, kernel="laplacian", gamma=0.1).fit(X, y)
    with pytest.raises(DataError, match="kernel='laplacian' is not exported"):
        _converted(other, X)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(e=np.array(["x", "y"])[y])
    framed = BootstrapSVC(**KINDS["linear"]).fit(frame, y)
    with pytest.raises(DataError, match="an input for each column: write it with"):
        _converted(framed, X)
    plain = BootstrapSVC(**KINDS["linear"])
    with pytest.raises(DataError, match="Scores of a BootstrapSVC are not converted"):
        _converted(CalibratedClassifierCV(plain, cv=3).fit(X, y), X)
    plain.fit(X, y)
    with pytest.raises(RuntimeError, match="opset 17 is too low"):
        _converted(plain, X, target_opset={"": 17, "ai.onnx.ml": 3})


def test_without_skl2onnx_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "skl2onnx", None)
    with pytest.raises(DataError, match="pip install skl2onnx"):
        register_skl2onnx()
