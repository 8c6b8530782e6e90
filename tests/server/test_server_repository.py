"""Several models in a server, and files that are replaced while it answers."""

import asyncio
import re
import threading
import time
import weakref
from contextlib import contextmanager
from functools import partial

import httpx2
import numpy as np
import pytest
from fastapi.testclient import TestClient
from server_clients import running
from typer.testing import CliRunner

from bootprob import BootstrapSVC
from bootprob.cli.__main__ import app
from bootprob.persistence.save_load import save
from bootprob.runtime.version import __version__
from bootprob.server.limits import Limits
from bootprob.server.running import _make_server

TOKEN = "a-token-that-is-long-enough"
ROWS = {"records": [{"x0": 0.5, "x1": -1.0, "x2": 0.0}]}


@pytest.fixture(scope="module")
def other_model():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 1] + rng.normal(size=60) > 0, 7, 2)
    return BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0).fit(X, y)


@pytest.fixture
def folder(array_model, other_model, tmp_path):
    save(array_model, tmp_path / "a.model")
    save(other_model, tmp_path / "b.model")
    return tmp_path


@contextmanager
def serving(folder, *names, token=None):
    server = _make_server(
        {name: folder / f"{name}.model" for name in names},
        workers=1, drain_delay=0.0, token=token, metrics=True, limits=Limits(), costs=None,
    )  # fmt: skip
    server.lifespan = server._served  # without signals, which only a main thread takes
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with TestClient(server, headers=headers) as client:
        yield client, server


def probability(client, address="/predict"):
    reply = client.post(address, json=ROWS)
    assert reply.status_code == 200, reply.text
    return reply.json()["predictions"][0]["probability"], reply.json()["version"]


def expected(model):
    return pytest.approx(model.predict_proba([[0.5, -1.0, 0.0]])[0, 1], abs=1e-12)


def model_of(server, name):
    """A weak reference to what is served, which the routes alone know."""
    app = server._entries[name].serving.app
    cells = app.state.release.__closure__
    answering = next(each.cell_contents for each in cells if hasattr(each.cell_contents, "served"))
    return weakref.ref(answering.served.svc)


def is_gone(reference):
    until = time.monotonic() + 10
    while reference() is not None and time.monotonic() < until:
        time.sleep(0.05)
    return reference() is None


def state(client, name):
    listed = {each["name"]: each for each in client.post("/v2/repository/index").json()}
    return listed[name]


def test_each_model_has_its_addresses(folder, array_model, other_model):
    with serving(folder, "a", "b") as (client, _):
        assert probability(client, "/a/predict")[0] == expected(array_model)
        assert probability(client, "/b/predict")[0] == expected(other_model)
        tensor = {"name": "X", "shape": [1, 3], "datatype": "FP64", "data": [0.5, -1.0, 0.0]}
        for name, model in (("a", array_model), ("b", other_model)):
            reply = client.post(f"/v2/models/{name}/infer", json={"inputs": [tensor]})
            assert reply.json()["outputs"][0]["data"][1] == expected(model)
            assert client.get(f"/v2/models/{name}").json()["name"] == name
            assert client.get(f"/{name}/docs").status_code == 200
            assert client.get(f"/{name}/openapi.json").status_code == 200
        assert client.get("/v2").json() == client.get("/a/v2").json()
        assert client.get("/v2").json()["version"] == __version__
        for read in ("/v2", "/v2/health/live", "/v2/health/ready", "/metrics"):
            assert [client.request(m, read).status_code for m in ("HEAD", "POST")] == [405] * 2
        assert client.get("/v2/health/live").json() == {"live": True}
        assert client.get("/v2/health/ready").json() == {"ready": True}
        for nowhere in ("/predict", "/c/predict", "/v2/models/c", "/a", "/"):
            reply = client.post(nowhere, json=ROWS)
            assert reply.status_code == 404
            assert reply.headers["x-request-id"]
        text = client.get("/metrics").text
        assert 'bootprob_rows_served{model="a"} 2.0' in text
        assert 'bootprob_rows_served{model="b"} 2.0' in text
        assert text.count("# TYPE bootprob_rows_served gauge") == 1
        assert text.count("bootprob_model{") == 2
        assert text == client.get("/a/metrics").text or "bootprob_requests_total" in text


def test_a_single_model_is_at_the_root(folder, array_model):
    with serving(folder, "a") as (client, _):
        assert probability(client)[0] == expected(array_model)
        assert client.get("/docs").status_code == 200
        assert client.get("/v2/health/ready").status_code == 200
        assert [each["name"] for each in client.post("/v2/repository/index").json()] == ["a"]


def test_a_replaced_file_takes_its_place(folder, array_model, other_model):
    with serving(folder, "a", "b") as (client, server):
        before, replaced = probability(client, "/a/predict"), model_of(server, "a")
        (folder / "b.model").replace(folder / "a.model")
        until = time.monotonic() + 20
        while probability(client, "/a/predict") == before and time.monotonic() < until:
            time.sleep(0.1)
        after, version = probability(client, "/a/predict")
        assert after == expected(other_model)
        assert is_gone(replaced)
        assert state(client, "a") == {
            "name": "a", "version": version, "state": "READY", "reason": "",
        }  # fmt: skip
        assert probability(client, "/b/predict")[0] == expected(other_model)  # its file is gone
        assert f'bootprob_model{{model="a",version="{version}"}} 1.0' in client.get("/metrics").text


def test_an_unusable_file_changes_nothing(folder, array_model):
    with serving(folder, "a", token=TOKEN) as (client, _):
        (folder / "a.model").write_bytes(b"nothing of use")
        reply = client.post("/v2/repository/models/a/load")
        assert reply.status_code == 400
        assert "no bootprob model" in reply.json()["error"]
        assert "no bootprob model" in state(client, "a")["reason"]
        assert probability(client)[0] == expected(array_model)
        save(array_model, folder / "a.model")
        assert client.post("/v2/repository/models/a/load").status_code == 200
        assert state(client, "a")["reason"] == ""


def test_models_are_unloaded_and_loaded(folder, array_model, caplog):
    with serving(folder, "a", "b", token=TOKEN) as (client, server):
        gone = model_of(server, "a")
        assert probability(client, "/a/predict")
        caplog.set_level("INFO", "bootprob.server")
        assert client.post("/v2/repository/models/a/unload").status_code == 200
        assert client.post("/a/predict", json=ROWS).status_code == 404
        assert client.get("/v2/models/a/ready").status_code == 404
        assert client.get("/v2/health/ready").status_code == 200
        found = state(client, "a")
        assert (found["state"], found["reason"]) == ("UNAVAILABLE", "unloaded")
        assert "POST /v2/repository/models/a/unload 200 " in caplog.text
        shown = client.get("/metrics").text
        assert 'model="a"' not in shown.split("bootprob_model{", 1)[1]
        assert not re.findall(r'bootprob_(?:rows_served|queue_rows|probability_sum)\{.*"a"', shown)
        assert is_gone(gone)
        assert probability(client, "/b/predict")
        of_b = [each for each in caplog.records if getattr(each, "model", None) == "b"]
        assert [each.route for each in of_b] == ["/predict"]
        assert client.post("/v2/repository/models/a/load").status_code == 200
        assert probability(client, "/a/predict")[0] == expected(array_model)
        for wrong, status in [
            ("models/c/load", 404), ("models/a/delete", 404), ("models/a", 404), ("other", 404),
        ]:  # fmt: skip
            assert client.post(f"/v2/repository/{wrong}").status_code == status
        assert client.get("/v2/repository/index").status_code == 405


def test_the_repository_wants_the_token(folder):
    with serving(folder, "a", "b", token=TOKEN) as (client, _):
        right = {"Authorization": client.headers.pop("Authorization")}
        for address in ("/v2/repository/index", "/v2/repository/models/a/unload", "/c/predict"):
            assert client.post(address).status_code == 401
            wrong = {"Authorization": f"Basic {TOKEN}"}
            assert client.post(address, headers=wrong).status_code == 401
        assert client.get("/metrics").status_code == 401
        assert client.get("/v2").status_code == 401
        assert client.get("/v2", headers=right).json()["name"] == "bootprob"
        assert client.get("/metrics", headers=right).status_code == 200
        assert client.post("/v2/repository/index", headers=right).status_code == 200
        assert client.get("/v2/health/ready").status_code == 200


def test_without_a_token_nobody_unloads(folder, array_model):
    with serving(folder, "a") as (client, _):
        for what in ("load", "unload"):
            assert client.post(f"/v2/repository/models/a/{what}").status_code == 403
        assert probability(client)[0] == expected(array_model)


def test_a_server_without_models_is_not_ready(folder):
    with serving(folder, "a", token=TOKEN) as (client, _):
        assert client.post("/v2/repository/models/a/unload").status_code == 200
        assert client.get("/v2/health/ready").status_code == 503


def test_an_error_that_nobody_foresaw_does_not_end_the_watch(folder, other_model, caplog):
    with serving(folder, "a") as (client, server):
        make, before = server._make, probability(client)
        server._make = lambda *_: 1 / 0
        save(other_model, folder / "a.model")
        until = time.monotonic() + 20
        while not state(client, "a")["reason"] and time.monotonic() < until:
            time.sleep(0.1)
        assert "ZeroDivisionError" in state(client, "a")["reason"]
        assert probability(client) == before
        server._make = make
        save(other_model, folder / "a.model")
        while probability(client) == before and time.monotonic() < until:
            time.sleep(0.1)
        assert probability(client)[0] == expected(other_model)


def test_what_was_accepted_is_finished(folder):
    with serving(folder, "a", token=TOKEN) as (client, server):
        entry = server._entries["a"]
        old, go_on = entry.serving, threading.Event()
        inner = old.app

        async def slow(scope, receive, send):
            while not go_on.is_set():
                await asyncio.sleep(0.01)
            await inner(scope, receive, send)

        old.app = slow
        found = []
        thread = threading.Thread(target=lambda: found.append(client.post("/predict", json=ROWS)))
        thread.start()
        while not old.answering:
            time.sleep(0.01)
        assert client.post("/v2/repository/models/a/load").status_code == 200
        assert entry.serving is not old
        assert probability(client)
        go_on.set()
        thread.join(20)
        assert found[0].status_code == 200


def test_names_on_the_command_line(folder):
    run = partial(CliRunner().invoke, app)
    for given, words in [
        (["a.model", "a.model"], "names of their own"),
        (["a.model", "b.model", "--name", "x"], "give --name once for each"),
        (["a.model", "b.model", "--name", "v2", "--name", "x"], "is an address of the server"),
    ]:
        at = [str(folder / each) if each.endswith(".model") else each for each in given]
        found = run(["serve", *at])
        assert found.exit_code == 2
        assert words in " ".join(found.stderr.replace("│", " ").split())


@pytest.mark.endurance
def test_no_request_fails_while_files_are_replaced(folder, array_model, other_model):
    """Over two workers, by eight clients."""
    path, stop, statuses, answers = folder / "a.model", threading.Event(), [], set()
    with running(path, "--workers", "2") as server:

        def ask():
            with httpx2.Client(base_url=server.address, timeout=30) as client:
                while not stop.is_set():
                    reply = client.post("/predict", json=ROWS)
                    statuses.append(reply.status_code)
                    if reply.status_code == 200:
                        found = reply.json()["predictions"][0]["probability"]
                        answers.add((reply.json()["version"], round(found, 10)))

        clients = [threading.Thread(target=ask) for _ in range(8)]
        for each in clients:
            each.start()
        for k in range(6):
            time.sleep(2.5)
            save(other_model if k % 2 == 0 else array_model, path)
        time.sleep(3)
        stop.set()
        for each in clients:
            each.join()
    assert set(statuses) == {200}
    assert len(statuses) > 500
    right = {
        round(model.predict_proba([[0.5, -1.0, 0.0]])[0, 1], 10)
        for model in (array_model, other_model)
    }
    assert {found for _, found in answers} == right
    assert len({version for version, _ in answers}) == 2


def test_names_with_marks_of_addresses_are_unloaded_and_loaded(folder, array_model):
    save(array_model, folder / "a#b?c.model")
    with serving(folder, "a", "a#b?c", token=TOKEN) as (client, _):
        for asked in ("unload", "load"):
            reply = client.post(f"/v2/repository/models/a%23b%3Fc/{asked}")
            assert (reply.status_code, reply.json()) == (200, {})
        assert client.get("/v2/models/a%23b%3Fc/ready").status_code == 200
