"""Models of plain numbers that were given columns: graphs, servers and drift fill no gap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from sklearn.linear_model import LogisticRegression

from bootprob import BootstrapClassifier, BootstrapSVC
from bootprob.exceptions import DataError
from bootprob.onnx_export import export_onnx
from bootprob.report.scored.column_drift import column_drift
from bootprob.server import create_app
from bootprob.tables.model import TableModel
from linear_models import linear

pytestmark = pytest.mark.filterwarnings(
    "ignore::bootprob.LackOfFitWarning", "ignore::bootprob.FewRowsWarning"
)

VOTES: dict[str, Any] = {"calibration": None, "interval": "wald"}


def rows(n: int = 80) -> tuple[pd.DataFrame, np.ndarray]:
    """A number and a count, and what they say, with some noise."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"age": rng.normal(50, 10, n), "kids": rng.integers(0, 5, n)})
    return X, (X["age"] - 50) / 10 + rng.normal(size=n) * 0.7


def _logistic(**params: Any) -> BootstrapClassifier:
    return BootstrapClassifier(
        LogisticRegression(max_iter=3000), n_bootstraps=8, random_state=0, **params
    )


MODELS: dict[str, Callable[[], Any]] = {
    "linear": lambda: linear(n_bootstraps=8, C=1.0, random_state=0),
    "rbf": lambda: BootstrapSVC(kernel="rbf", C=1.0, n_bootstraps=8, random_state=0),
    "votes": lambda: linear(n_bootstraps=8, C=1.0, random_state=0, **VOTES),
    "classifier": _logistic,
    "classifier votes": lambda: _logistic(**VOTES),
}


def table_of(kind: str, named: bool, n_classes: int = 2) -> tuple[TableModel, Any, pd.DataFrame]:
    X, said = rows()
    y = said > 0 if n_classes == 2 else np.digitize(said, [-0.7, 0.7])
    given = X if named else X.to_numpy(dtype=float)
    model = MODELS[kind]().fit(given, np.asarray(y).astype(int))
    table = TableModel.of(model, list(X))
    assert table is not None
    return table, model.predict_proba(given), X


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", MODELS)
def test_graphs(kind: str, named: bool, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    n_classes = 3 if named and "votes" not in kind else 2
    interval = 0.9 if kind in ("linear", "classifier") and n_classes == 2 else None
    table, expected, X = table_of(kind, named, n_classes)
    export_onnx(table, tmp_path / "m.onnx", interval=interval)
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs() if each.name != "label"]
    assert len(names) == (1 if interval is None else 3)
    cells = {name: X[[name]].to_numpy(dtype=float, copy=True) for name in X}
    whole = session.run(names, cells)
    np.testing.assert_allclose(whole[0], expected, rtol=0, atol=1e-9)
    cells["age"][3], cells["kids"][[3, 7]] = np.nan, np.nan
    kept = ~np.isin(np.arange(len(X)), [3, 7])
    for found, before in zip(session.run(names, cells), whole, strict=True):
        assert np.isnan(found[~kept]).all()
        np.testing.assert_allclose(found[kept], before[kept], rtol=0, atol=1e-12)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", ["linear", "classifier"])
def test_servers(kind: str, named: bool) -> None:
    table, expected, X = table_of(kind, named)
    infer, of_rows = "/v2/models/model/infer", X[:2].to_dict("records")
    tensors = [
        {"name": name, "shape": [2], "datatype": "FP64", "data": X[name][:2].tolist()} for name in X
    ]
    with TestClient(create_app(table)) as client:
        found = client.post("/predict", json={"records": of_rows, "explain": True}).json()
        probability = [each["probability"] for each in found["predictions"]]
        np.testing.assert_allclose(probability, expected[:2, 1], rtol=0, atol=1e-12)
        found = client.post(infer, json={"inputs": tensors}).json()["outputs"][0]["data"]
        np.testing.assert_allclose(found, expected[:2].ravel(), rtol=0, atol=1e-12)

        of_rows[1]["kids"] = None
        refused = client.post("/predict", json={"records": of_rows})
        assert refused.status_code == 422
        problem = {"row": 1, "column": "kids", "problem": "Input should be a valid number"}
        assert refused.json()["problems"] == [problem]
        tensors[1]["data"][1] = None
        refused = client.post(infer, json={"inputs": tensors})
        assert refused.status_code == 422
        assert refused.json()["error"].startswith("The input 'kids' must have no null")

        document = client.get("/openapi.json").json()
        for column in document["components"]["schemas"]["Record"]["properties"].values():
            assert column["type"] == "number"  # and nothing else
        example = document["paths"]["/predict"]["post"]["requestBody"]
        [example] = [example["content"]["application/json"]["example"]]
        assert client.post("/predict", json=example).status_code == 200


def test_drift() -> None:
    table, _, X = table_of("linear", named=False)
    n_rows, found = column_drift(table, [X])
    assert (n_rows, [each.value for each in found]) == (80, pytest.approx([0, 0], abs=1e-9))
    X.loc[4, "age"] = np.nan
    with pytest.raises(DataError, match="Column 'age' has no value in row 5"):
        column_drift(table, [X])
