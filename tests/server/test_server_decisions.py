"""What the server's labels follow: one half, a rate that is kept, or costs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from server_clients import records_of

from bootprob import BootstrapSVC, CostMatrix, DataError
from bootprob.server import create_app
from bootprob.tables.mistake_costs import MistakeCosts
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

INFER = "/v2/models/model/infer"
PARAMETERS = "/v2/models/model"


@pytest.fixture(scope="module")
def new():
    table = credit_table(30, seed=8).drop(columns="risk")
    return table.assign(loss=np.linspace(0.1, 9, 30))


@pytest.fixture(scope="module")
def controlled():
    return TableModel.fit(
        credit_table(120), "risk", "bad", control="threshold", rates={"tpr": 0.9},
        kernel="rbf", C=1.0, n_bootstraps=15, random_state=0,
    )  # fmt: skip


def _predicted(client, table):
    reply = client.post("/predict", json={"records": records_of(table)})
    assert reply.status_code == 200, reply.text
    return {
        name: np.array([row[name] for row in reply.json()["predictions"]])
        for name in ("label", "probability", "interval", "threshold")
    }


def _tensors(client, inputs, **more):
    reply = client.post(INFER, json={"inputs": inputs, **more})
    assert reply.status_code == 200, reply.text
    return {
        each["name"]: np.array(each["data"]).reshape(each["shape"])
        for each in reply.json()["outputs"]
    }


def test_a_rate_moves_the_label_and_not_the_probability(controlled, table_model, new):
    with TestClient(create_app(controlled)) as client:
        found = _predicted(client, new)
        threshold = client.get(PARAMETERS).json()["parameters"]["threshold"]
    assert threshold == controlled.svc.decision_threshold_ < 0.5
    assert (found["threshold"] == threshold).all()
    np.testing.assert_array_equal(found["label"] == "bad", found["probability"] > threshold)
    plain = table_model.predict(new)
    np.testing.assert_allclose(found["probability"], plain["probability"], atol=1e-9)
    bounds = plain[["probability_lower", "probability_upper"]]
    np.testing.assert_allclose(found["interval"], bounds, atol=1e-9)


@pytest.mark.parametrize(
    "costs", [MistakeCosts(1, 5), MistakeCosts(2, "loss"), MistakeCosts("loss", "amount")]
)
def test_costs_decide_as_offline(table_model, new, costs):
    known = new.dropna(subset=["amount"])
    with TestClient(create_app(table_model, costs=costs)) as client:
        found = _predicted(client, known)
        threshold = client.get(PARAMETERS).json()["parameters"]["threshold"]
    offline = table_model.predict(known, costs=costs)
    assert found["label"].tolist() == offline["label"].tolist()
    np.testing.assert_allclose(found["threshold"], offline["threshold"])
    np.testing.assert_allclose(found["probability"], offline["probability"], atol=1e-12)
    assert threshold == costs.threshold


def test_costs_of_rows_are_tensors_of_their_own(array_model, rng):
    X, loss = rng.normal(size=(12, 3)), rng.uniform(0.5, 9, 12)
    inputs = [
        {"name": "X", "shape": [12, 3], "datatype": "FP64", "data": X.ravel().tolist()},
        {"name": "loss", "shape": [12], "datatype": "FP64", "data": loss.tolist()},
    ]
    app = create_app(array_model, costs=MistakeCosts(1, "loss"))
    with TestClient(app) as client:
        described = client.get(PARAMETERS).json()
        found = _tensors(client, inputs)
        picked = _tensors(client, inputs, outputs=[{"name": "threshold"}])
        missing = client.post(INFER, json={"inputs": inputs[:1]})
        none = [inputs[0], inputs[1] | {"data": [0.0, *loss[1:]]}]
        unusable = client.post(INFER, json={"inputs": none})
    assert [each["name"] for each in described["inputs"]] == ["X", "loss"]
    assert described["outputs"][-1] == {"name": "threshold", "datatype": "FP64", "shape": [-1]}
    assert described["parameters"]["threshold"] is None
    np.testing.assert_allclose(found["threshold"], 1 / (1 + loss))
    positive = array_model.predict_proba(X)[:, 1] > 1 / (1 + loss)
    assert found["label"].tolist() == np.where(positive, 7, 2).tolist()
    assert list(picked) == ["threshold"]
    assert (missing.status_code, unusable.status_code) == (422, 422)
    assert "'loss' must hold costs" in unusable.json()["error"]


@pytest.mark.parametrize("value", [0, -1, None, "2", True, 1e200])
def test_what_is_no_cost_is_told_by_row_and_column(table_model, new, value):
    records = records_of(new.head(3))
    records[1]["loss"] = value
    with TestClient(create_app(table_model, costs=MistakeCosts(1, "loss"))) as client:
        reply = client.post("/predict", json={"records": records})
        del records[1]["loss"]
        missing = client.post("/predict", json={"records": records})
        schema = client.get("/openapi.json").json()["components"]["schemas"]
    assert reply.status_code == missing.status_code == 422
    [problem] = reply.json()["problems"]
    assert (problem["row"], problem["column"]) == (1, "loss")
    assert missing.json()["problems"][0]["problem"] == "Field required"
    assert schema["Record"]["properties"]["loss"]["exclusiveMinimum"] == 0


def test_several_classes_have_no_threshold(iris_model):
    row = {"name": "X", "shape": [1, 4], "datatype": "FP64", "data": [5.0, 3.0, 1.5, 0.2]}
    with TestClient(create_app(iris_model)) as client:
        assert "threshold" not in _tensors(client, [row])
        wanted = {"inputs": [row], "outputs": [{"name": "threshold"}]}
        assert client.post(INFER, json=wanted).status_code == 422
        records = [dict(zip(iris_model.feature_names_in_, row["data"], strict=True))]
        reply = client.post("/predict", json={"records": records})
        assert "threshold" not in reply.json()["predictions"][0]


def test_models_and_columns_that_costs_do_not_fit(iris_model, controlled, table_model, array_model):
    for model, costs, words in (
        (iris_model, MistakeCosts(1, 2), "3 classes"),
        (controlled, MistakeCosts(1, 2), "rate holds"),
        (table_model, MistakeCosts(1, "purpose"), "holds categories"),
        (array_model, MistakeCosts(1, "X"), "tensor of all columns"),
    ):
        with pytest.raises(DataError, match=words):
            create_app(model, costs=costs)
    votes = BootstrapSVC.paper(n_bootstraps=5, C=[1.0], random_state=0)
    votes.fit(np.arange(20.0)[:, None] % 7, np.arange(20) % 2)
    with pytest.raises(DataError, match="no calibration"):
        create_app(votes, costs=MistakeCosts(1, 2))


@pytest.mark.parametrize("costs", [MistakeCosts(1, 5, 0.3), MistakeCosts(2, "loss", "ask")])
def test_somebody_to_ask(table_model, new, costs):
    rows = new.assign(ask=np.linspace(0.5, 0.1, 30))
    found = table_model.predict(rows, costs=costs)
    assert 0 < found["ask"].mean() < 1
    with TestClient(create_app(table_model, costs=costs)) as client:
        reply = client.post("/predict", json={"records": records_of(rows)}).json()
        outputs = client.get("/v2/models/model").json()["outputs"]
    served = pd.DataFrame(reply["predictions"])
    assert served["ask"].tolist() == found["ask"].tolist()
    assert served["stable"].tolist() == found["stable"].tolist()
    bounds = np.stack(served["cost_interval"])
    np.testing.assert_allclose(bounds, found[["cost_lower", "cost_upper"]], atol=1e-9)
    assert [each["name"] for each in outputs][-4:] == ["ask", "cost", "cost_interval", "stable"]


def test_rows_left_undecided():
    model = TableModel.fit(
        credit_table(160), "risk", "bad", control="threshold", kernel="linear", C=1.0,
        rates={"tpr": 0.9, "tnr": 0.9, "decided": 0.1}, n_bootstraps=25, random_state=0,
    )  # fmt: skip
    new = credit_table(30, seed=8).drop(columns="risk")
    with TestClient(create_app(model)) as client:
        reply = client.post("/predict", json={"records": records_of(new)}).json()
        outputs = [each["name"] for each in client.get(PARAMETERS).json()["outputs"]]
    offline = model.predict(new)
    assert [each["undecided"] for each in reply["predictions"]] == offline["undecided"].tolist()
    assert 0 < offline["undecided"].mean() < 1
    assert outputs[-1] == "undecided"


def test_tensors_of_asking():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    svm = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=20, random_state=0)
    svm.fit(X, X[:, 0] + rng.normal(size=80) > 0)
    tensor = {"name": "X", "shape": [80, 2], "datatype": "FP64", "data": X.ravel().tolist()}
    with TestClient(create_app(svm, costs=MistakeCosts(1, 2, 0.2))) as client:
        wanted = {"inputs": [tensor], "outputs": [{"name": "cost_interval"}, {"name": "ask"}]}
        outputs = client.post("/v2/models/model/infer", json=wanted).json()["outputs"]
    expected = svm.decide(X, CostMatrix(1, 2, ask=0.2))
    assert [each["shape"] for each in outputs] == [[80, 2], [80]]
    np.testing.assert_allclose(outputs[0]["data"], expected.cost_interval.ravel(), atol=1e-9)
    assert outputs[1]["data"] == expected.ask.tolist()
    with TestClient(create_app(svm)) as client:
        refused = client.post("/v2/models/model/infer", json=wanted)
    assert refused.status_code == 422
    assert "what asking a person costs" in refused.json()["error"]
