"""The Open Inference Protocol v2: what goes in, what comes out, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from server_clients import post, records_of
from sklearn.datasets import load_iris

from bootprob.server import Limits, create_app
from mixed_tables import credit_table

INFER = "/v2/models/model/infer"


def _tensor(X: np.ndarray, **changes: Any) -> dict[str, Any]:
    shape, data = list(X.shape), X.ravel().tolist()
    return {"name": "X", "shape": shape, "datatype": "FP64", "data": data} | changes


def _outputs(reply: Any) -> dict[str, np.ndarray]:
    assert reply.status_code == 200, reply.text
    return {
        each["name"]: np.array(each["data"]).reshape(each["shape"])
        for each in reply.json()["outputs"]
    }


def test_the_same_as_offline(array_client, array_model, rng):
    X = rng.normal(size=(9, 3))
    body = {"id": "ours", "inputs": [_tensor(X)], "parameters": {"level": 0.8}}
    for address in (INFER, "/v2/models/model/versions/1/infer"):
        reply = array_client.post(address, json=body)
        found = _outputs(reply)
        np.testing.assert_allclose(
            found["probability"], array_model.predict_proba(X), rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(
            found["probability_interval"], array_model.proba_interval(X, 0.8), rtol=0, atol=1e-12
        )
        assert found["label"].tolist() == array_model.predict(X).tolist()
        assert reply.json()["id"] == "ours"
        assert reply.json()["outputs"][2]["datatype"] == "INT64"


def test_nested_and_single_precision_data(array_client, array_model, rng):
    X = rng.normal(size=(4, 3))
    nested = _outputs(array_client.post(INFER, json={"inputs": [_tensor(X, data=X.tolist())]}))
    flat = _outputs(array_client.post(INFER, json={"inputs": [_tensor(X)]}))
    np.testing.assert_allclose(nested["probability"], flat["probability"], atol=1e-12)
    single = _outputs(array_client.post(INFER, json={"inputs": [_tensor(X, datatype="FP32")]}))
    rounded = X.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(
        single["probability"], array_model.predict_proba(rounded), rtol=0, atol=1e-12
    )
    whole = np.round(X).astype(int)
    integers = _outputs(
        array_client.post(INFER, json={"inputs": [_tensor(whole, datatype="INT32")]})
    )
    np.testing.assert_allclose(
        integers["probability"], array_model.predict_proba(whole), atol=1e-12
    )


def test_only_the_outputs_asked_for(array_client, rng):
    X = rng.normal(size=(2, 3))
    wanted = [{"name": "label"}, {"name": "probability"}]
    reply = array_client.post(INFER, json={"inputs": [_tensor(X)], "outputs": wanted})
    assert list(_outputs(reply)) == ["label", "probability"]
    unknown = {"inputs": [_tensor(X)], "outputs": [{"name": "other"}]}
    assert array_client.post(INFER, json=unknown).status_code == 422


def test_tables_take_a_tensor_for_each_column(client, table_model, rng):
    table = credit_table(15, seed=int(rng.integers(2**31)), missing=0.2).drop(columns="risk")
    records = records_of(table)
    meant = {each["name"]: each for each in client.get("/v2/models/model").json()["inputs"]}
    assert set(meant) == set(table.columns)
    inputs = [
        {
            "name": name,
            "shape": [15, 1] if name == "months" else [15],
            "datatype": meant[name]["datatype"],
            "data": [[r[name]] if name == "months" else r[name] for r in records],
        }
        for name in rng.permutation(table.columns).tolist()
    ]
    found = _outputs(client.post(INFER, json={"inputs": inputs}))
    offline = table_model.predict(table)
    np.testing.assert_allclose(
        found["probability"][:, 1], offline["probability"], rtol=0, atol=1e-12
    )
    assert found["label"].tolist() == offline["label"].tolist()


def test_several_classes(iris_model, rng):
    X = load_iris(return_X_y=True, as_frame=True)[0].iloc[rng.choice(150, 5, replace=False)]
    with TestClient(create_app(iris_model, name="iris", version="a1")) as client:
        about = client.get("/v2/models/iris").json()
        found = _outputs(
            client.post("/v2/models/iris/infer", json={"inputs": [_tensor(X.to_numpy())]})
        )
    shapes = {each["name"]: each["shape"] for each in about["outputs"]}
    assert shapes == {"probability": [-1, 3], "probability_interval": [-1, 3, 2], "label": [-1]}
    np.testing.assert_allclose(found["probability"], iris_model.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(
        found["probability_interval"], iris_model.proba_interval(X), atol=1e-12
    )


X23 = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("tensor", "status"),
    [
        (_tensor(X23, name="Y"), 422),
        (_tensor(X23, shape=[3, 2]), 422),
        (_tensor(X23, shape=[6]), 422),
        (_tensor(X23, shape=[2, 3, 1]), 422),
        (_tensor(X23, shape=[-1, 3]), 422),
        (_tensor(X23, shape=[0, 3], data=[]), 422),
        (_tensor(X23, shape=[10**9, 3]), 413),
        (_tensor(X23, data=[1, 2, 3]), 422),
        (_tensor(X23, data=[[1, 2, 3], [1, 2]]), 422),
        (_tensor(X23, data=[[1, 2, 3], 4, 5, 6]), 422),
        (_tensor(X23, data=[1, 2, 3, 4, 5, None]), 422),
        (_tensor(X23, data=[1, 2, 3, 4, 5, "6"]), 422),
        (_tensor(X23, data=[1, 2, 3, 4, 5, True]), 422),
        (_tensor(X23, data=[1, 2, 3, 4, 5, 1e200]), 422),
        (_tensor(X23, data=[1, 2, 3, 4, 5, 10**400]), 422),
        (_tensor(X23, data=[1, 2, 3, 4, 5, 1e149]), 422),
        (_tensor(X23, datatype="FP32", data=[1, 2, 3, 4, 5, 1e39]), 422),
        (_tensor(X23, datatype="INT32", data=[1, 2, 3, 4, 5, 2**31]), 422),
        (_tensor(X23, datatype="INT64", data=[1, 2, 3, 4, 5, 0.5]), 422),
        (_tensor(X23, datatype="BYTES", data=["a"] * 6), 422),
        (_tensor(X23, datatype="BOOL", data=[True] * 6), 422),
        (_tensor(X23, datatype="FP16"), 422),
        (_tensor(X23, datatype=None), 422),
    ],
)
def test_tensors_that_do_not_fit_are_refused(array_client, tensor, status):
    reply = array_client.post(INFER, json={"inputs": [tensor]})
    assert reply.status_code == status, reply.text
    assert reply.json()["error"]


@pytest.mark.parametrize(
    "changes",
    [
        {"inputs": [_tensor(X23, parameters={"binary_data_size": 48})]},
        {"inputs": [_tensor(X23, parameters={"other": 1})]},
        {"inputs": [_tensor(X23, parameters=[])]},
        {"outputs": [{"name": "label", "parameters": {"binary_data": 0}}]},
        {"outputs": [{"name": "label", "parameters": {"classification": 2}}]},
        {"parameters": {"binary_data_output": 1}},
    ],
)
def test_parameters_that_are_not_known_are_refused(array_client, changes):
    reply = array_client.post(INFER, json={"inputs": [_tensor(X23)]} | changes)
    assert reply.status_code == 422
    assert reply.json()["error"]
    assert "outputs" not in reply.json()


def test_parameters_that_ask_for_what_is_done_anyway_are_taken(array_client):
    plain = {"inputs": [_tensor(X23)], "outputs": [{"name": "label"}]}
    said = {
        "inputs": [_tensor(X23, parameters={})],
        "outputs": [{"name": "label", "parameters": {"binary_data": False}}],
    }
    replies = [array_client.post(INFER, json=each) for each in (plain, said)]
    assert replies[0].status_code == 200
    assert replies[0].json() == replies[1].json()


def test_numbers_beyond_float64_are_refused(array_client):
    body = '{"inputs":[{"name":"X","shape":[1,3],"datatype":"FP64","data":[1,2,-1e999]}]}'
    assert post(array_client, body, INFER).status_code == 422


def test_inputs_that_are_missing_twice_or_too_many(array_client):
    for inputs in ([], [_tensor(X23)] * 2, [_tensor(X23), _tensor(X23, name="Y")]):
        assert array_client.post(INFER, json={"inputs": inputs}).status_code == 422


def test_rows_beyond_the_cap(array_model):
    with TestClient(create_app(array_model, limits=Limits(max_rows=2))) as client:
        assert client.post(INFER, json={"inputs": [_tensor(X23)]}).status_code == 200
        three = _tensor(np.zeros((3, 3)))
        assert client.post(INFER, json={"inputs": [three]}).status_code == 413


@pytest.mark.parametrize(
    "address", ["/v2/models/other", "/v2/models/model/versions/2", "/v2/models/model/versions/1/x"]
)
def test_other_models_and_versions_are_not_found(array_client, address):
    for path in (address, f"{address}/ready"):
        reply = array_client.get(path)
        assert reply.status_code == 404
        assert reply.json()["error"]
    assert array_client.post(f"{address}/infer", json={"inputs": [_tensor(X23)]}).status_code == 404


def test_the_server_and_the_model_describe_themselves(array_client):
    assert array_client.get("/v2").json()["name"] == "bootprob"
    assert array_client.get("/v2/health/live").json() == {"live": True}
    assert array_client.get("/v2/health/ready").json() == {"ready": True}
    for path in ("", "/versions/1"):
        about = array_client.get(f"/v2/models/model{path}").json()
        assert about["versions"] == ["1"]
        assert about["inputs"] == [{"name": "X", "datatype": "FP64", "shape": [-1, 3]}]
        assert about["parameters"]["classes"] == [2, 7]
        assert array_client.get(f"/v2/models/model{path}/ready").json()["ready"] is True
