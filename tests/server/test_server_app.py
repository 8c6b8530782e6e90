"""What is common to all requests: the token, metrics, logs, mounting, health."""

from __future__ import annotations

import copy
import logging
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from server_clients import post

from bootprob.exceptions import DataError
from bootprob.server import Limits, create_app
from bootprob.server.served_model import ServedModel

TOKEN = "a-token-that-is-long-enough"
ROW = {"x0": 0.125, "x1": -1, "x2": 31415.9265}
PROTECTED = [
    "/v2",
    "/v2/models/model",
    "/v2/models/model/ready",
    "/docs/operations",
    "/openapi.json",
    "/metrics",
]


def _metric(client: TestClient, name: str) -> float:
    [value] = re.findall(
        rf"^{re.escape(name)} (\S+)$", client.get("/metrics").text, flags=re.MULTILINE
    )
    return float(value)


def test_everything_but_health_needs_the_token(array_model):
    wrong = ["", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN]
    with TestClient(create_app(array_model, token=TOKEN)) as client:
        for health in ("live", "ready"):
            assert client.get(f"/v2/health/{health}").status_code == 200
        for given in [*wrong, "Bearer \xff" + TOKEN]:
            headers = {"Authorization": given.encode("latin-1")}
            for path in PROTECTED:
                reply = client.get(path, headers=headers)
                assert reply.status_code == 401, (path, given)
                assert reply.headers["www-authenticate"] == "Bearer"
            # Refused before the body is looked at.
            assert client.post("/predict", content=b"no json", headers=headers).status_code == 401
            infer = client.post("/v2/models/model/infer", content=b"{", headers=headers)
            assert infer.status_code == 401
        right = {"Authorization": f"Bearer {TOKEN}"}
        for path in PROTECTED:
            assert client.get(path, headers=right).status_code == 200
        reply = client.post("/predict", json={"records": [ROW]}, headers=right)
        assert reply.status_code == 200


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "with blanks in between", "ümlaut" * 4])
def test_tokens_that_are_none(array_model, token):
    with pytest.raises(DataError, match="token"):
        create_app(array_model, token=token)


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"name": "a/b"}, {"name": ".."}, {"version": "1\n"}, {"name": 5}]
)
def test_names_that_are_none(array_model, wrong):
    with pytest.raises(DataError, match=next(iter(wrong))):
        create_app(array_model, **wrong)


def test_metrics_count_requests_rows_and_drift(array_model, rng):
    X = rng.normal(size=(30, 3)) + 0.5
    records = [{f"x{k}": value for k, value in enumerate(row)} for row in X.tolist()]
    with TestClient(create_app(array_model)) as client:
        for part in (records[:10], records[10:]):
            assert client.post("/predict", json={"records": part}).status_code == 200
        client.post("/predict", json={})
        assert (
            _metric(
                client, 'bootprob_requests_total{endpoint="/predict",model="model",status="200"}'
            )
            == 2
        )
        assert (
            _metric(
                client, 'bootprob_requests_total{endpoint="/predict",model="model",status="422"}'
            )
            == 1
        )
        assert _metric(client, 'bootprob_rows_served{model="model"}') == 30
        assert _metric(client, 'bootprob_batch_rows_sum{model="model"}') == 30
        assert _metric(client, 'bootprob_queue_rows{model="model"}') == 0
        total = array_model.predict_proba(X)[:, 1].sum()
        assert _metric(
            client, 'bootprob_probability_sum{class="7",model="model"}'
        ) == pytest.approx(total)
        oob = array_model.oob_proba_[np.isfinite(array_model.oob_proba_).all(axis=1), 1]
        error = oob.std() * np.sqrt(1 / 30 + 1 / len(oob))
        z = (total / 30 - oob.mean()) / error
        assert _metric(
            client, 'bootprob_probability_drift_z{class="7",model="model"}'
        ) == pytest.approx(z)


def test_without_metrics_there_are_none(array_model):
    with TestClient(create_app(array_model, metrics=False)) as client:
        assert client.get("/metrics").status_code == 404


@pytest.mark.parametrize(
    ("found", "said", "words"),
    [
        ({"p_value": 0.5, "informative_rows": 4000.0}, (False, False), None),
        ({"p_value": 0.5, "informative_rows": 80.0}, (False, True), "model: Few rows"),
        ({"p_value": 1e-4, "informative_rows": 80.0}, (True, False), "model: Intervals cover"),
    ],
)
def test_doubts_are_logged_once_and_told(array_model, caplog, found, said, words):
    model = copy.copy(array_model)
    model.lack_of_fit_ = found
    with TestClient(create_app(model)) as client:
        told = client.get("/v2/models/model").json()["parameters"]
        client.post("/predict", json={"records": [ROW]})
    assert (told["lack_of_fit"], told["few_rows"]) == said
    logged = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(logged) == (words is not None)
    assert all(each.startswith(words) for each in logged)


def test_logs_hold_nothing_that_was_sent(array_client, caplog):
    caplog.set_level(logging.DEBUG)
    secret = "s3cret"
    array_client.post(f"/predict?name={secret}", json={"records": [ROW]})
    array_client.get(f"/{secret}")
    array_client.get(f"/v2/models/{secret}")
    post(array_client, f'{{"{secret}": "{secret}')
    array_client.post("/predict", json={"records": [{secret: secret}], secret: secret})
    array_client.get("/v2", headers={"X-Name": secret})
    ours = [each.getMessage() for each in caplog.records if each.name.startswith("bootprob")]
    assert len(ours) == 6
    assert not [text for text in ours if secret in text or "31415" in text]


def test_a_failing_model_is_a_500_and_its_message_stays_out_of_the_log(
    array_model, caplog, monkeypatch
):
    app = create_app(array_model)

    def fail(self: ServedModel, X: np.ndarray) -> None:
        raise RuntimeError("holds 31415.9265")

    monkeypatch.setattr(ServedModel, "check", fail)
    with TestClient(app) as client:
        reply = client.post("/predict", json={"records": [ROW]})
    assert reply.status_code == 500
    assert reply.json()["request_id"] == reply.headers["x-request-id"]
    assert list(reply.json()) == ["error", "request_id"]
    assert "31415" not in reply.text + caplog.text
    assert "RuntimeError at " in caplog.text


def test_a_request_that_waits_too_long_is_a_503_with_retry_after(array_model):
    app = create_app(array_model, limits=Limits(deadline=0.2, max_delay=5))
    with TestClient(app) as client:
        reply = client.post("/predict", json={"records": [ROW]})
    assert reply.status_code == 503
    assert int(reply.headers["retry-after"]) >= 1


@pytest.mark.parametrize("mounted", ["", "/scores"])
def test_no_more_requests_at_once_than_allowed(array_model, monkeypatch, mounted):
    begun, go_on = threading.Event(), threading.Event()
    score = ServedModel.score

    def wait(self, X, level):
        if level == 0.875:
            begun.set()
            assert go_on.wait(30)
        return score(self, X, level)

    monkeypatch.setattr(ServedModel, "score", wait)
    app = create_app(array_model, limits=Limits(max_requests=1))
    if mounted:
        site = FastAPI()
        site.mount(mounted, app)
        app = site
    with TestClient(app) as client, ThreadPoolExecutor() as pool:
        row = {"records": [ROW], "level": 0.875}
        first = pool.submit(client.post, f"{mounted}/predict", json=row)
        assert begun.wait(30)
        try:
            refused = client.post(f"{mounted}/predict", json=row)
            assert client.get(f"{mounted}/v2").status_code == 503
            for open_to_all in ("/v2/health/live", "/v2/health/ready", "/metrics"):
                assert client.get(mounted + open_to_all).status_code == 200
        finally:
            go_on.set()
        assert first.result().status_code == 200
        assert client.post(f"{mounted}/predict", json=row).status_code == 200
        for endpoint in ("/predict", "/v2"):
            counted = (
                f'bootprob_requests_total{{endpoint="{endpoint}",model="model",status="503"}} 1.0'
            )
            assert counted in client.get(f"{mounted}/metrics").text
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"
    assert "1 request is being answered already" in refused.json()["error"]


def test_it_can_be_mounted_beside_others(array_model):
    site = FastAPI()
    site.mount("/scores", create_app(array_model, token=TOKEN))
    right = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(site) as client:
        assert client.post("/scores/predict", json={"records": [ROW]}).status_code == 401
        reply = client.post("/scores/predict", json={"records": [ROW]}, headers=right)
        assert reply.status_code == 200
        assert client.get("/scores/v2/health/ready").status_code == 200
        for path in ("/scores/docs", "/scores/docs/docs.js"):
            assert client.get(path).status_code == 200
        assert client.get("/scores/docs/operations").status_code == 401
        assert client.get("/scores/docs/operations", headers=right).status_code == 200


def test_the_document_describes_the_columns(client):
    document = client.get("/openapi.json").json()
    assert document == client.get("/openapi.json").json()
    record = document["components"]["schemas"]["Record"]
    assert set(record["required"]) == {
        "status", "months", "purpose", "amount", "foreign", "persons", "branch",
    }  # fmt: skip
    assert "/v2/models/{name}/infer" in document["paths"]


def test_after_shutdown_it_is_not_ready(array_model):
    app = create_app(array_model)
    with TestClient(app):
        pass
    after = TestClient(app)  # without its lifespan
    assert after.get("/v2/health/live").status_code == 200
    assert after.get("/v2/health/ready").status_code == 503
    assert after.get("/v2/models/model/ready").status_code == 503
    assert after.post("/predict", json={"records": [ROW]}).status_code == 503


def test_told_to_stop_it_is_not_ready_and_asks_clients_to_connect_anew(array_model):
    app = create_app(array_model)
    with TestClient(app) as client:
        before = client.post("/predict", json={"records": [ROW]})
        app.state.stopping.begun = True
        assert client.get("/v2/health/ready").status_code == 503
        assert client.get("/v2/models/model/ready").status_code == 503
        assert client.get("/v2/health/live").status_code == 200
        after = client.post("/predict", json={"records": [ROW]})
    assert "connection" not in before.headers
    assert after.status_code == 200
    assert after.headers["connection"] == "close"
    assert after.json() == before.json()


def test_the_package_itself_does_not_load_the_server():
    heavy = ["fastapi", "uvicorn", "starlette", "prometheus_client"]
    code = f"import sys, bootprob.cli.__main__; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_without_its_packages_it_says_what_to_install():
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'fastapi' else find(name, *rest)\n"
        "sys.argv = ['bootprob', 'serve', 'any.model']\n"
        "from bootprob.cli.__main__ import main; main()"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 1
    assert 'pip install "bootprob[server]"' in out.stderr
