"""Classifiers of others behind HTTP: the answers are those of the model in Python."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from bootprob import BootstrapClassifier
from bootprob.exceptions import ClassifierError
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


class Fragile(GaussianNB):
    """Fails as the code of others does, on some rows or on all, and quotes what it was given."""

    broken = False

    def predict_proba(self, X: Any) -> Any:
        if (np.asarray(X)[:, 0] > 1e6).any():
            raise KeyError("secret of row 1234567")
        if self.broken:
            raise RuntimeError("secret of /etc")
        return super().predict_proba(X)


def test_classifiers_that_fail_by_other_errors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    X, y = rows()
    model = BootstrapClassifier(Fragile(), **VOTES).fit(X, y)
    good, odd = {"x0": 0.5, "x1": 0.1}, {"x0": 1234567.0, "x1": 0.1}
    named = {"headers": {"X-Request-Id": "one"}}
    with pytest.raises(ClassifierError, match="fails on these rows: KeyError") as raised:
        model.predict_proba([[1234567.0, 0.1]])
    assert isinstance(raised.value.__cause__, KeyError)
    with (
        caplog.at_level("INFO", "bootprob.server"),
        TestClient(create_app(model, name="churn"), raise_server_exceptions=False) as client,
    ):
        with ThreadPoolExecutor(2) as threads:  # the one that is to blame is told apart
            sent = [{"records": [good]}, {"records": [good, odd]}]
            replies = list(threads.map(lambda each: client.post("/predict", json=each), sent))
        assert [each.status_code for each in replies] == [200, 422]
        assert replies[1].json() == {"error": "A classifier does not take these rows (KeyError)."}
        monkeypatch.setattr(Fragile, "broken", True)
        failed = client.post("/predict", json={"records": [good]}, **named)
        assert failed.status_code == 500
        assert failed.json() == {
            "error": "The model failed on these rows; the log of the server says where.",
            "request_id": "one",
        }
        assert failed.headers["x-request-id"] == "one"
    logged = [each for each in caplog.records if each.levelname == "ERROR"]
    said = [each.getMessage() for each in logged]
    assert said[0].startswith("churn: KeyError at ")
    assert said[1].startswith("churn: RuntimeError at ")
    assert "test_server_classifiers.py" in said[1]
    assert said[1].endswith(" one")
    assert [each.model for each in logged] == ["churn", "churn"]  # type: ignore[attr-defined]
    assert "secret" not in caplog.text + "".join(each.text for each in (*replies, failed))
    assert "Traceback" not in caplog.text


@pytest.mark.filterwarnings("ignore::bootprob.FewRowsWarning", "ignore::bootprob.LackOfFitWarning")
def test_explaining_fails_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    model = BootstrapClassifier(Fragile(), n_bootstraps=6, random_state=0).fit(X, y)
    with TestClient(create_app(model), raise_server_exceptions=False) as client:
        sent = {"records": [{"x0": 0.5, "x1": 0.1}], "explain": True}
        assert client.post("/predict", json=sent).status_code == 200
        real = Fragile.predict_proba

        def few(self: Fragile, X: Any) -> Any:
            if len(X) > 1:
                raise RuntimeError("secret")
            return real(self, X)

        monkeypatch.setattr(Fragile, "predict_proba", few)
        failed = client.post("/predict", json=sent)
        assert failed.status_code == 500
        assert "the log of the server says where" in failed.json()["error"]
        assert "secret" not in failed.text


def test_a_forest_refuses_rows_too() -> None:
    X, y = rows()
    forest = RandomForestClassifier(5, max_depth=2)
    model = BootstrapClassifier(forest, **VOTES).fit(X, y)
    with TestClient(create_app(model)) as client:
        reply = client.post("/predict", json={"records": [{"x0": 1e60, "x1": 0.1}]})
        assert reply.status_code == 422
        assert "A classifier does not take these rows: Input contains infinity" in reply.text


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
