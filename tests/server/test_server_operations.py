"""What runs a server for long: TLS, tokens that change, ids, logs, counts of several processes."""

import json
import logging
import logging.config
import os
import re
import ssl
import time

import httpx2
import numpy as np
import pytest
import trustme
from fastapi.testclient import TestClient
from server_clients import running

from bootprob.exceptions import DataError
from bootprob.persistence.save_load import save
from bootprob.server import create_app
from bootprob.server.logs import log_config
from bootprob.server.tokens import Tokens
from bootprob.server.traces import send_traces

OLD, NEW = "the-old-token-of-clients", "the-new-token-of-clients"


@pytest.fixture(scope="module")
def model_file(array_model, tmp_path_factory):
    path = tmp_path_factory.mktemp("operations") / "rows.bootprob"
    save(array_model, path)
    return path


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test turns on."""
    now = [0.0]
    monkeypatch.setattr("bootprob.server.tokens.time.monotonic", lambda: now[0])
    return now


def test_tokens_of_a_file_rotate(tmp_path, clock, caplog):
    path = tmp_path / "tokens"
    path.write_text(f"{OLD}\n")
    tokens = Tokens(path)
    assert tokens.allow(OLD.encode())
    assert not tokens.allow(NEW.encode())
    assert not tokens.allow(b"")
    for text, allowed in [
        (f"{OLD}\n\n  {NEW}  \n", {OLD, NEW}),
        (f"{NEW}\n", {NEW}),
        ("short\n", {NEW}),  # unusable: all stays
        ("", {NEW}),
    ]:
        path.write_text(text)
        clock[0] += 0.5
        clock[0] += 1.0
        assert {each for each in (OLD, NEW) if tokens.allow(each.encode())} == allowed
    path.unlink()
    clock[0] += 2
    assert tokens.allow(NEW.encode())
    path.write_text(f"{OLD}\n")
    clock[0] += 2
    assert tokens.allow(OLD.encode())
    assert not tokens.allow(NEW.encode())
    assert "tokens stay as they were" in caplog.text
    assert OLD not in caplog.text


def test_the_file_is_looked_at_once_a_second(tmp_path, clock):
    path = tmp_path / "tokens"
    path.write_text(OLD)
    tokens = Tokens(path)
    path.write_text(NEW)
    clock[0] += 0.9
    assert tokens.allow(OLD.encode())
    clock[0] += 0.2
    assert not tokens.allow(OLD.encode())


def test_tokens_that_are_none(tmp_path):
    with pytest.raises(DataError, match="16 or more"):
        Tokens("short")
    with pytest.raises(OSError, match="No such file"):
        Tokens(tmp_path / "none")


def test_requests_have_ids(array_model, caplog):
    caplog.set_level(logging.INFO, "bootprob.server")
    with TestClient(create_app(array_model)) as client:
        given = client.get("/v2", headers={"X-Request-ID": "trace-7f.3"})
        assert given.headers["x-request-id"] == "trace-7f.3"
        for bad in ("", "a b", "x" * 200, "ä"):
            made = client.get("/v2", headers={"X-Request-ID": bad.encode()})
            assert re.fullmatch("[0-9a-f]{32}", made.headers["x-request-id"])
        missing = client.get("/nowhere")
        assert missing.status_code == 404
        assert re.fullmatch("[0-9a-f]{32}", missing.headers["x-request-id"])
    first = next(each for each in caplog.records if getattr(each, "request_id", "") == "trace-7f.3")
    assert (first.method, first.route, first.status) == ("GET", "/v2", 200)
    assert first.milliseconds > 0
    assert "trace-7f.3" in first.getMessage()


def test_the_log_is_json_if_asked(capfd):
    logger = logging.getLogger("bootprob.server")
    before = logger.handlers, logger.level, logger.propagate
    try:
        logging.config.dictConfig(log_config("json"))
        logger.info("GET %s", "/v2", extra={"request_id": "a", "status": 200})
        found = json.loads(capfd.readouterr().err.splitlines()[-1])
        expected = {"level": "INFO", "message": "GET /v2", "request_id": "a", "status": 200}
        assert expected.items() <= found.items()
        assert found["process"] == os.getpid()
        assert found["time"]
    finally:
        logger.handlers, logger.level, logger.propagate = before
        logging.getLogger("uvicorn").handlers = []
    with pytest.raises(DataError, match="'text' or 'json'"):
        log_config("xml")


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.endurance)])
def test_tls_tokens_logs_and_counts(model_file, tmp_path, rng, workers):
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    chain, key, tokens = tmp_path / "chain.pem", tmp_path / "key.pem", tmp_path / "tokens"
    own.private_key_pem.write_to_path(key)
    for part in own.cert_chain_pems:
        part.write_to_path(chain, append=True)
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    tokens.write_text(OLD)
    options = ["--certificate", chain, "--key", key, "--token-file", tokens, "--log", "json"]
    records = [{f"x{k}": value for k, value in enumerate(row)} for row in rng.normal(size=(4, 3))]
    with running(model_file, *map(str, options), "--workers", str(workers)) as server:
        trusted = ssl.create_default_context(cafile=tmp_path / "authority.pem")

        def ask(token, address="/predict", **more):
            with httpx2.Client(base_url=server.address, verify=trusted, timeout=30) as client:
                headers = {"Authorization": f"Bearer {token}", "X-Request-ID": "seen"}
                if address == "/predict":
                    return client.post(address, json={"records": records}, headers=headers)
                return client.get(address, headers=headers)

        for _ in range(12):  # each by a connection of its own, to whichever worker takes it
            assert ask(OLD).status_code == 200
        text = ask(OLD, "/metrics").text
        assert re.search(
            r'bootprob_requests_total\{endpoint="/predict",model="rows",status="200"\} 12.0', text
        ), text
        assert 'bootprob_rows_served{model="rows"} 48.0' in text
        sums = [float(x) for x in re.findall(r"bootprob_probability_sum\{.*\} (\S+)", text)]
        assert np.isclose(sum(sums), 48)
        assert len(re.findall("bootprob_probability_drift_z", text)) == 4
        tokens.write_text(NEW)
        until = time.monotonic() + 30
        while ask(NEW).status_code != 200 and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(1.2)
        assert {ask(NEW).status_code for _ in range(8)} == {200}
        assert {ask(OLD).status_code for _ in range(8)} == {401}
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(server.address.replace("https", "http") + "/v2/health/live")
        lines = [json.loads(line) for line in server.said().splitlines()]
        asked = [line for line in lines if line.get("request_id") == "seen"]
        assert {line["status"] for line in asked} >= {200, 401}
        assert OLD not in server.said()
        assert len({line["process"] for line in asked}) == workers


def test_a_client_that_asks_too_often_waits(array_model):
    row = {"records": [{"x0": 1.0, "x1": 0.0, "x2": 0.0}]}
    with TestClient(create_app(array_model, rate_limit="3 per minute")) as client:
        found = [client.post("/predict", json=row) for _ in range(4)]
        assert [each.status_code for each in found] == [200, 200, 200, 429]
        assert 1 <= int(found[3].headers["retry-after"]) <= 60
        assert "3 per 1 minute" in found[3].json()["error"]
        other = {"Authorization": "Bearer of-something-else"}  # an address is an address
        assert client.post("/predict", json=row, headers=other).status_code == 429
        for always in ("/v2/health/live", "/v2/health/ready"):
            assert client.get(always).status_code == 200


def test_clients_are_told_apart_by_their_tokens(array_model, tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"{OLD}\n{NEW}\n")
    made = create_app(array_model, token=Tokens(path), rate_limit="2/minute")
    with TestClient(made) as client:

        def ask(token):
            return client.get("/v2", headers={"Authorization": f"Bearer {token}"}).status_code

        assert [ask(OLD) for _ in range(3)] == [200, 200, 429]
        assert [ask("wrong") for _ in range(3)] == [401, 401, 401]
        assert [ask(NEW) for _ in range(3)] == [200, 200, 429]
        for spelled in (f"bearer {OLD}", f"BEARER   {OLD}", f"Bearer {OLD} "):
            assert client.get("/v2", headers={"Authorization": spelled}).status_code == 429


@pytest.mark.parametrize(
    "rate",
    [
        "often",
        "",
        "3",
        "-1/second",
        "0/second",
        "3/fortnight",
        "5/minute;2/second",
    ],
)
def test_rates_that_are_none(array_model, rate):
    with pytest.raises(DataError, match="The rate is"):
        create_app(array_model, rate_limit=rate)


def test_requests_have_spans(array_model, monkeypatch):
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)  # FastAPI's own way
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    with TestClient(create_app(array_model)) as client:
        client.get("/v2", headers={"traceparent": parent, "X-Request-ID": "mine"})
        client.get("/secret-place?patient=Smith")
        monkeypatch.setattr("bootprob.server.app.json_reply", lambda *_: 1 / 0)
        assert client.get("/v2").status_code == 500
    first, second, third = spans.get_finished_spans()
    assert first.name == "GET /v2"
    assert f"{first.context.trace_id:032x}" == parent[3:35]
    assert dict(first.attributes) == {
        "http.request.method": "GET",
        "http.route": "/v2",
        "http.response.status_code": 200,
        "bootprob.request_id": "mine",
        "bootprob.model": "model",
    }
    assert second.name == "GET (none)"
    assert "secret" not in second.to_json()
    assert not third.status.is_ok
    assert "division" not in third.to_json()


def test_spans_are_sent(monkeypatch):
    from opentelemetry import trace

    given = []
    monkeypatch.setattr(trace, "set_tracer_provider", given.append)
    send_traces()
    [provider] = given
    assert provider.resource.attributes["service.name"] == "bootprob"
    provider.shutdown()
