"""Records that are explained on request: what is said, what is refused, and who waits."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from fastapi.testclient import TestClient
from scipy.special import logit
from server_clients import records_of
from sklearn.base import clone
from sklearn.datasets import load_iris

from bootprob import BootstrapSVC
from bootprob.exceptions import DataError
from bootprob.explanation import contributions
from bootprob.server import Limits, create_app
from mixed_tables import credit_table


def asked(client, n, **more):
    records = records_of(credit_table(n, seed=1).drop(columns="risk"))
    return client.post("/predict", json={"records": records, **more})


def test_a_record_is_explained_as_offline(client, table_model):
    reply = asked(client, 2, explain=True, level=0.9)
    assert reply.status_code == 200, reply.text
    table = credit_table(2, seed=1).drop(columns="risk")
    expected = contributions(table_model, table, level=0.9)
    for k, said in enumerate(reply.json()["predictions"]):
        found = said["explanation"]
        parts = {each["column"]: each for each in found["contributions"]}
        assert list(parts) == expected.to_frame().query("row == @k")["column"].tolist()
        total = found["base"] + sum(each["contribution"] for each in parts.values())
        assert total == pytest.approx(logit(said["probability"]), abs=1e-9)
        for j, column in enumerate(expected.columns):
            assert parts[column]["contribution"] == pytest.approx(expected.contribution[k, j])
            assert parts[column]["interval"] == pytest.approx(expected.interval[k, j].tolist())
    for plain in (asked(client, 2), asked(client, 2, explain=False)):
        assert all("explanation" not in said for said in plain.json()["predictions"])
    assert client.get("/v2/models/model").json()["parameters"]["explains"]
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["PredictRequest"]["properties"]["explain"]["default"] is False
    assert "contributions" in schemas["Explanation"]["properties"]


def test_linear_models_are_explained_beside_the_mean_row(array_client, array_model):
    row = [0.5, -1.0, 2.0]
    record = dict(zip(["x0", "x1", "x2"], row, strict=True))
    reply = array_client.post("/predict", json={"records": [record], "explain": True})
    assert reply.status_code == 200, reply.text
    [said] = reply.json()["predictions"]
    found = {each["column"]: each for each in said["explanation"]["contributions"]}
    # Of a straight line: slope times the distance from the mean.
    expected = array_model.sigmoid_[0] * array_model.coef_[0] * (row - array_model.center_)
    for j, name in enumerate(record):
        assert found[name]["contribution"] == pytest.approx(expected[j], rel=1e-6)
        lower, upper = found[name]["interval"]
        assert lower < found[name]["contribution"] < upper
    total = said["explanation"]["base"] + expected.sum()
    assert total == pytest.approx(logit(said["probability"]), abs=1e-6)
    assert array_client.get("/v2/models/model").json()["parameters"]["explains"]


def test_what_is_refused(client, array_model, iris_model):
    many = asked(client, 9, explain=True)
    assert many.status_code == 422
    assert many.json()["error"] == "Up to 8 records are explained in a request."
    assert asked(client, 1, explain="yes").status_code == 422
    steps = clone(array_model).set_params(calibration="isotonic")
    steps.fit(np.random.default_rng(5).normal(size=(40, 3)), np.arange(40) % 2)
    with TestClient(create_app(iris_model)) as of_iris, TestClient(create_app(steps)) as of_steps:
        record = dict.fromkeys(iris_model.feature_names_in_, 1.0)
        refused = {
            "does not keep its training rows": (of_steps, dict.fromkeys(["x0", "x1", "x2"], 1)),
            "not keep its training rows": (of_iris, record),
        }
        for reason, (of_model, row) in refused.items():
            reply = of_model.post("/predict", json={"records": [row], "explain": True})
            assert reply.status_code == 422
            assert reason in reply.json()["error"]
            assert not of_model.get("/v2/models/model").json()["parameters"]["explains"]


def test_of_several_classes_the_label_is_explained():
    X, y = load_iris(return_X_y=True)
    model = BootstrapSVC(kernel="rbf", C=1.0, n_bootstraps=6, random_state=0).fit(X, y)
    with TestClient(create_app(model)) as client:
        for row in X[[0, 60, 120]]:
            record = dict(zip(["x0", "x1", "x2", "x3"], row, strict=True))
            reply = client.post("/predict", json={"records": [record], "explain": True})
            [said] = reply.json()["predictions"]
            why = said["explanation"]
            assert why["label"] == said["label"]
            total = why["base"] + sum(each["contribution"] for each in why["contributions"])
            assert total == pytest.approx(logit(said["probability"][str(said["label"])]))


def test_a_deadline_and_others_who_wait(table_model, monkeypatch):
    """No more than four requests' records wait, and what is late is left."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_, **__):
        begun.set()
        go_on.wait(20)
        return np.zeros(1)

    app = create_app(table_model, limits=Limits(deadline=2.0, max_explained=1))
    with TestClient(app) as client:
        monkeypatch.setattr("bootprob.server.explaining._Ready.of", slow)
        monkeypatch.setattr("bootprob.server.explaining._REQUESTS", 1)
        replies = []
        first = threading.Thread(target=lambda: replies.append(asked(client, 1, explain=True)))
        first.start()
        assert begun.wait(20)
        second = asked(client, 1, explain=True)
        assert second.status_code == 429
        assert second.json()["error"] == "1 record waits to be explained; try again later."
        assert asked(client, 1).status_code == 200  # others are served meanwhile
        first.join()
        go_on.set()
        [late] = replies
        assert late.status_code == 503
        assert "0 of 1 records were explained within 2 s" in late.json()["error"]


def test_a_limit_that_is_none():
    with pytest.raises(DataError, match="max_explained is 0; it must be positive"):
        Limits(max_explained=0)
