"""Classifiers of others behind HTTP: the answers are those of the model in Python."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from bootprob import BootstrapClassifier
from bootprob.server import create_app

VOTES: dict[str, Any] = {
    "n_bootstraps": 4,
    "calibration": None,
    "interval": "wald",
    "random_state": 0,
}
INFER = "/v2/models/model/infer"


def rows(n: int = 50) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(6).normal(size=(n, 2))
    return X, np.where(X[:, 0] + 0.4 * np.sin(7 * X[:, 1]) > 0, "yes", "no")


def same(replies: list[dict[str, Any]], model: BootstrapClassifier, X: Any) -> None:
    probability = [each["probability"] for each in replies]
    np.testing.assert_allclose(probability, model.predict_proba(X)[:, 1], rtol=0, atol=1e-12)
    interval = [each["interval"] for each in replies]
    np.testing.assert_allclose(interval, model.proba_interval(X)[:, 1], rtol=0, atol=1e-12)
    assert [each["label"] for each in replies] == model.predict(X).tolist()


def mixed(n: int = 50) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = rows(n)
    frame = pd.DataFrame({"age": X[:, 0], "house": np.where(X[:, 1] > 0, "own", "rent")})
    frame["zip"] = pd.Categorical((X[:, 1] > 0.5).astype(int) + 100)
    frame.loc[::7, "house"] = np.nan
    return frame, y


def pipeline() -> Any:
    dummies = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((dummies, ["house", "zip"]), ("passthrough", ["age"]))
    return make_pipeline(columns, LogisticRegression())


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in frame.astype(object).to_dict("records")
    ]


def test_a_data_frame_of_several_kinds() -> None:
    frame, y = mixed()
    model = BootstrapClassifier(pipeline(), **VOTES).fit(frame, y)
    with TestClient(create_app(model)) as client:
        reply = client.post("/predict", json={"records": records(frame)})
        assert reply.status_code == 200, reply.text
        same(reply.json()["predictions"], model, frame)
        odd = frame.head(3).assign(house=["boat", "own", "rent"], zip=[102, 100, 101])
        reply = client.post("/predict", json={"records": records(odd)})
        same(reply.json()["predictions"], model, odd)
        inputs = [
            {"name": "age", "shape": [50], "datatype": "FP64", "data": frame["age"].tolist()},
            {"name": "zip", "shape": [50], "datatype": "INT64", "data": frame["zip"].tolist()},
        ]
        houses = [each["house"] for each in records(frame)]
        inputs.append({"name": "house", "shape": [50], "datatype": "BYTES", "data": houses})
        reply = client.post(INFER, json={"inputs": inputs})
        assert reply.status_code == 200, reply.text
        found = np.reshape(reply.json()["outputs"][0]["data"], (50, 2))
        np.testing.assert_allclose(found, model.predict_proba(frame), rtol=0, atol=1e-12)
        metadata = client.get("/v2/models/model").json()
        assert {each["name"] for each in metadata["inputs"]} == {"age", "house", "zip"}
        assert not metadata["parameters"]["explains"]
        explained = client.post("/predict", json={"records": records(odd), "explain": True})
        assert explained.status_code == 422
        assert 'bootprob_rows_served{model="model"} 103.0' in client.get("/metrics").text
        example = client.get("/openapi.json").json()["paths"]["/predict"]["post"]["requestBody"]
        sent = example["content"]["application/json"]["example"]
        assert client.post("/predict", json=sent).status_code == 200


def test_requests_at_once_are_told_apart() -> None:
    frame, y = mixed()
    model = BootstrapClassifier(pipeline(), **VOTES).fit(frame, y)
    given = [frame.iloc[[k, k + 1]].reset_index(drop=True) for k in range(0, 24, 2)]
    with TestClient(create_app(model)) as client, ThreadPoolExecutor(12) as threads:
        replies = threads.map(
            lambda each: client.post("/predict", json={"records": records(each)}), given
        )
        for reply, each in zip(replies, given, strict=True):
            same(reply.json()["predictions"], model, each)


def test_rows_that_a_classifier_does_not_take() -> None:
    frame, y = mixed()
    model = BootstrapClassifier(pipeline(), **VOTES).fit(frame, y)
    with TestClient(create_app(model)) as client:
        without = [{"age": None, "house": "own", "zip": 100}]
        reply = client.post("/predict", json={"records": without})
        assert reply.status_code == 422
        assert "A classifier does not take these rows: Input X contains NaN" in reply.text


@pytest.mark.parametrize("named", [False, True])
def test_plain_numbers(named: bool) -> None:
    X, y = rows()
    frame = pd.DataFrame(X, columns=["age", "size"]) if named else X
    estimator = make_pipeline(
        make_column_transformer(("passthrough", ["size", "age"])), GaussianNB()
    )
    model = BootstrapClassifier(estimator if named else GaussianNB(), **VOTES).fit(frame, y)
    names = ["age", "size"] if named else ["x0", "x1"]
    with TestClient(create_app(model)) as client:
        sent = [dict(zip(names, row, strict=True)) for row in X.tolist()]
        reply = client.post("/predict", json={"records": sent})
        same(reply.json()["predictions"], model, frame)
        tensor = {"name": "X", "shape": [50, 2], "datatype": "FP64", "data": X.ravel().tolist()}
        reply = client.post(INFER, json={"inputs": [tensor]})
        found = np.reshape(reply.json()["outputs"][0]["data"], (50, 2))
        np.testing.assert_allclose(found, model.predict_proba(frame), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")
def test_several_classes() -> None:
    frame, y = mixed(90)
    three = np.where(frame["age"] > 0.9, "maybe", y)
    frozen = FrozenEstimator(pipeline().fit(frame[:40], three[:40]))
    model = BootstrapClassifier(frozen, n_bootstraps=6, random_state=0).fit(frame[40:], three[40:])
    with TestClient(create_app(model)) as client:
        reply = client.post("/predict", json={"records": records(frame.head(4))})
        assert reply.status_code == 200, reply.text
        expected, bounds = model.predict_proba(frame.head(4), return_interval=True)
        for k, each in enumerate(reply.json()["predictions"]):
            names = model.classes_.tolist()
            np.testing.assert_allclose([each["probability"][c] for c in names], expected[k])
            np.testing.assert_allclose([each["interval"][c] for c in names], bounds[k])
