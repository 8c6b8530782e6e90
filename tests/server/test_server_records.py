"""POST /predict: the same as offline, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from server_clients import post, records_of
from sklearn.datasets import load_iris

from bootprob.server import Limits, create_app
from bootprob.tables.model import TableModel
from bootprob.tables.roles import ColumnRoles
from mixed_tables import credit_table

GOOD = {
    "status": "A11", "months": 12, "purpose": "car", "amount": 900.5, "foreign": False,
    "persons": 1, "branch": "01",
}  # fmt: skip


def _new_rows(rng: np.random.Generator, n: int = 40) -> pd.DataFrame:
    table = credit_table(n, seed=int(rng.integers(2**31)), missing=0.2).drop(columns="risk")
    table.loc[0, "purpose"] = "never seen"
    return table


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_replies_are_what_the_model_says_offline(client, table_model, rng, level):
    table = _new_rows(rng)
    reply = client.post("/predict", json={"records": records_of(table), "level": level})
    assert reply.status_code == 200
    found = reply.json()
    assert (found["model"], found["version"], found["positive"]) == ("model", "1", "bad")
    assert found["level"] == level
    offline = table_model.predict(table, level)
    assert [row["label"] for row in found["predictions"]] == offline["label"].tolist()
    probability = [row["probability"] for row in found["predictions"]]
    np.testing.assert_allclose(probability, offline["probability"], rtol=0, atol=1e-12)
    bounds = [row["interval"] for row in found["predictions"]]
    np.testing.assert_allclose(
        bounds, offline[["probability_lower", "probability_upper"]], rtol=0, atol=1e-12
    )


def test_rows_are_encoded_as_a_data_frame_is(table_model, rng):
    table = _new_rows(rng)
    records = records_of(table)
    # Kinds that JSON has and this table has not: a code as a number, yes/no as text and as 0 or 1.
    odd = [
        GOOD | {"branch": 1, "foreign": "TRUE"},
        GOOD | {"branch": 2.0, "foreign": 0},
        GOOD | {"branch": " 01 ", "foreign": "maybe", "status": "  "},
        GOOD | {"branch": None, "foreign": None, "status": None, "amount": None},
    ]
    for record in [*records, *odd]:
        values = {name: [value] for name, value in record.items()}
        found = table_model.preprocessor.encoder_.encode(values, 1).X
        frame = pd.DataFrame(
            {name: pd.Series(value, dtype=object) for name, value in values.items()}
        )
        np.testing.assert_array_equal(found, table_model.preprocessor.transform(frame))
    together = table_model.preprocessor.encoder_.encode(
        {name: [record[name] for record in records] for name in GOOD}, len(records)
    )
    np.testing.assert_array_equal(together.X, table_model.preprocessor.transform(table))


def test_columns_may_come_in_any_order_and_others_are_ignored(client):
    turned = dict(reversed(GOOD.items())) | {"nobody": {"knows": ["me"]}}
    replies = [client.post("/predict", json={"records": [each]}) for each in (GOOD, turned)]
    assert replies[0].status_code == 200
    assert replies[0].json() == replies[1].json()


def test_arrays_have_columns_by_number(array_client, array_model, rng):
    X = rng.normal(size=(12, 3))
    records = [{f"x{k}": value for k, value in enumerate(row)} for row in X.tolist()]
    found = array_client.post("/predict", json={"records": records}).json()["predictions"]
    assert [row["label"] for row in found] == array_model.predict(X).tolist()
    np.testing.assert_allclose(
        [row["probability"] for row in found], array_model.predict_proba(X)[:, 1], atol=1e-12
    )
    missing = array_client.post("/predict", json={"records": [{"x0": 1, "x1": None, "x2": 0}]})
    assert missing.status_code == 422


def test_several_classes_are_named(iris_model, rng):
    X, _ = load_iris(return_X_y=True, as_frame=True)
    X = X.iloc[rng.choice(150, 8, replace=False)]
    with TestClient(create_app(iris_model)) as client:
        reply = client.post("/predict", json={"records": records_of(X)}).json()
    assert reply["positive"] is None
    found = reply["predictions"]
    probability = [[row["probability"][k] for k in "012"] for row in found]
    np.testing.assert_allclose(probability, iris_model.predict_proba(X), atol=1e-12)
    bounds = [[row["interval"][k] for k in "012"] for row in found]
    np.testing.assert_allclose(bounds, iris_model.proba_interval(X), atol=1e-12)
    assert [row["label"] for row in found] == iris_model.predict(X).tolist()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"months": "12"}, "valid number"),
        ({"months": True}, "valid number"),
        ({"months": [12]}, "valid number"),
        ({"months": 1e151}, "less than or equal"),
        ({"months": 10**400}, "number"),
        ({"purpose": ["car"]}, "text, a number"),
        ({"foreign": {}}, "text, a number"),
    ],
)
def test_a_bad_value_is_told_by_row_and_column(client, change, problem):
    [column] = change
    reply = client.post("/predict", json={"records": [GOOD, GOOD | change, GOOD]})
    assert reply.status_code == 422
    [told] = reply.json()["problems"]
    assert (told["row"], told["column"]) == (1, column)
    assert problem in told["problem"]
    assert reply.json()["error"].startswith(f"row 1, column '{column}': ")


def test_a_missing_column_is_told(client):
    record = {name: value for name, value in GOOD.items() if name != "amount"}
    reply = client.post("/predict", json={"records": [record]})
    assert reply.status_code == 422
    [told] = reply.json()["problems"]
    assert told == {"row": 0, "column": "amount", "problem": "Field required"}


@pytest.mark.parametrize(
    "document",
    [
        5, [], "records", None, {}, {"records": []}, {"records": {}}, {"records": [5]},
        {"records": [GOOD], "level": 1}, {"records": [GOOD], "level": 0},
        {"records": [GOOD], "x": 1},
        {"records": [GOOD], "level": "0.9"}, {"records": [GOOD], "level": True},
    ],
)  # fmt: skip
def test_other_documents_are_refused(client, document):
    reply = post(client, json.dumps(document))
    assert reply.status_code == 422
    assert reply.json()["error"]


def test_a_number_beyond_all_reason_is_refused_before_it_reaches_a_batch(client):
    reply = client.post("/predict", json={"records": [GOOD | {"months": 1e149}]})
    assert reply.status_code == 422
    problem = {"row": 0, "column": "months", "problem": "Input is too far from the training rows"}
    assert reply.json()["problems"] == [problem]


def test_more_rows_than_allowed_are_refused(table_model):
    with TestClient(create_app(table_model, limits=Limits(max_rows=3))) as client:
        assert client.post("/predict", json={"records": [GOOD] * 3}).status_code == 200
        assert client.post("/predict", json={"records": [GOOD] * 4}).status_code == 422


def test_a_single_row_and_a_constant_table(client, table_model):
    found = client.post("/predict", json={"records": [GOOD] * 5}).json()["predictions"]
    for row in found:  # where in a batch a row stands may move the last bits
        assert row["interval"] == pytest.approx(found[0]["interval"], abs=1e-12)
    [alone] = client.post("/predict", json={"records": [GOOD]}).json()["predictions"]
    assert alone["probability"] == pytest.approx(found[0]["probability"], abs=1e-12)
    offline = table_model.predict(pd.DataFrame([GOOD]))
    assert alone["probability"] == pytest.approx(offline["probability"][0], abs=1e-12)


def test_numbers_survive_the_way_to_the_bit(array_client, array_model, rng):
    X = rng.normal(size=(1, 3))
    body = json.dumps({"records": [{f"x{k}": value for k, value in enumerate(X[0])}]})
    reply = post(array_client, body)
    [row] = json.loads(reply.text)["predictions"]
    offline = array_model.summarize(X, score_interval=False)
    assert row["probability"] == offline["probability"][0]
    assert row["interval"] == offline["probability_interval"][0].tolist()


def test_only_fitted_models_of_ours_are_served(table_model):
    with pytest.raises(TypeError, match="BootstrapClassifier or TableModel"):
        create_app(table_model.preprocessor)


_TENSOR = {"name": "x", "shape": [1], "datatype": "FP64", "data": [0.0]}


@pytest.mark.parametrize(
    ("path", "document", "said"),
    [
        ("/predict", {"record": []},
         "The key 'record' is not known; known are records, level, explain (did you mean "
         "'records'?)."),
        ("/predict", {"records": [GOOD], "{nothing}": 0},
         "The key '{nothing}' is not known; known are records, level, explain."),
        ("/predict", {"k" * 999: 0, "level": 0.9},
         f"The key '{'k' * 40}' is not known; known are records, level, explain."),
        ("/v2/models/model/infer", {"inputs": [_TENSOR], "parameters": {"levl": 0.9}},
         "parameters: The key 'levl' is not known; known are level, binary_data_output (did you "
         "mean 'level'?)."),
        ("/v2/models/model/infer", {"inputs": [_TENSOR | {"parameters": {"binary_data_size": 8}}]},
         "inputs.0.parameters: The key 'binary_data_size' is not known; none is."),
    ],
)  # fmt: skip
def test_a_key_that_is_not_known_is_named(client, path, document, said):
    reply = client.post(path, json=document)
    assert reply.status_code == 422
    assert reply.json() == {"error": said, "problems": [{"problem": said.removesuffix(".")}]}


@pytest.mark.parametrize(("minutes", "form"), [(0, "%Y-%m-%d"), (60 * 24, "%Y-%m-%dT%H:%M")])
def test_the_example_of_a_column_of_dates_is_a_date(rng, minutes, form):
    day = pd.Series(np.datetime64("2024-02-03") + rng.integers(300, size=60).astype("m8[D]"))
    day += pd.to_timedelta(rng.integers(minutes + 1, size=60), unit="min")
    table = pd.DataFrame({"day": day, "x": rng.normal(size=60)})
    model = TableModel.fit(
        table.assign(y=table["x"] + rng.normal(size=60) > 0), "y",
        roles=ColumnRoles(dates=("day",)), kernel="linear", C=1.0, n_bootstraps=5, random_state=0,
    )  # fmt: skip
    with TestClient(create_app(model)) as client:
        operation = client.get("/openapi.json").json()["paths"]["/predict"]["post"]
        example = operation["requestBody"]["content"]["application/json"]["example"]
        assert example["records"][0]["day"] == day.sort_values().iloc[29].strftime(form)
        assert client.post("/predict", json=example).status_code == 200
