"""``bootprob serve`` as a process: signals, killed workers, slow and vanished clients."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import httpx2
import numpy as np
import psutil
import pytest
from server_clients import Server, running
from typer.testing import CliRunner

from bootprob.cli.__main__ import app
from bootprob.persistence.save_load import save

TOKEN = "a-token-that-is-long-enough"


@pytest.fixture(scope="module")
def model_file(array_model, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("server") / "rows.bootprob"
    save(array_model, path)
    return path


def _records(X: np.ndarray) -> dict[str, object]:
    return {"records": [{f"x{k}": value for k, value in enumerate(row)} for row in X.tolist()]}


def _probability(reply: httpx2.Response) -> list[float]:
    assert reply.status_code == 200, reply.text
    return [row["probability"] for row in reply.json()["predictions"]]


@pytest.mark.endurance
def test_a_slow_client_holds_nobody_up_and_sigterm_ends_well(model_file, array_model, rng):
    X = rng.normal(size=(4, 3))
    offline = array_model.predict_proba(X)[:, 1]
    right = {"Authorization": f"Bearer {TOKEN}"}
    with (
        running(model_file, "--deadline", "5", BOOTPROB_TOKEN=TOKEN) as server,
        httpx2.Client(base_url=server.address, verify=False, timeout=30) as client,
    ):
        with _connected(server) as slow:
            slow.sendall(
                b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Authorization: Bearer " + TOKEN.encode() + b"\r\nContent-Length: 99\r\n\r\n{"
            )
            found = _probability(client.post("/predict", json=_records(X), headers=right))
            np.testing.assert_allclose(found, offline, rtol=0, atol=1e-12)
            assert client.post("/predict", json=_records(X)).status_code == 401
            assert slow.recv(100).startswith(b"HTTP/1.1 408")
        with _connected(server) as gone:
            gone.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Le")
        with _connected(server) as garbage:
            garbage.sendall(b"\x16\x03\x01 s3cret\r\n\r\n")
        _probability(client.post("/predict?s3cret=1", json=_records(X), headers=right))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
        assert "POST /predict 408" in server.said()
        assert "s3cret" not in server.said()
        assert TOKEN not in server.said()


def _connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def test_sigterm_finishes_what_was_accepted(model_file, array_model, rng):
    X = rng.normal(size=(2000, 3))
    offline = array_model.predict_proba(X)[:, 1]
    lost, answered, started = [], [], threading.Event()

    def ask(server_address: str) -> None:
        with httpx2.Client(base_url=server_address, verify=False) as client:
            while True:
                rows = np.random.default_rng().choice(len(X), 200)
                try:
                    reply = client.post("/predict", json=_records(X[rows]), timeout=20)
                except httpx2.TimeoutException as error:
                    lost.append(repr(error))
                    return
                except httpx2.TransportError:
                    return  # not accepted any more
                if reply.status_code == 503:
                    return
                np.testing.assert_allclose(_probability(reply), offline[rows], atol=1e-12)
                answered.append(time.monotonic())
                started.set()

    with running(model_file) as server:
        clients = [threading.Thread(target=ask, args=(server.address,)) for _ in range(4)]
        for client in clients:
            client.start()
        assert started.wait(20)
        time.sleep(0.1)
        told = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(20)
        assert server.process.wait(20) == 0
        assert lost == []
        assert max(answered) > told - 1
        # Every reply that the server logged has arrived.
        assert server.said().count("POST /predict 200") == len(answered)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.endurance)])
def test_told_to_stop_it_says_so_before_it_stops_listening(model_file, rng, workers):
    body = _records(rng.normal(size=(3, 3)))
    several = ("--workers", str(workers), "--no-metrics") if workers > 1 else ()
    with running(model_file, "--drain-delay", "1.5", *several) as server:
        with httpx2.Client(base_url=server.address, verify=False, timeout=30) as client:
            assert "connection" not in client.post("/predict", json=body).headers
        told = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        replies = []
        while server.process.poll() is None:
            with httpx2.Client(base_url=server.address, verify=False, timeout=30) as client:
                try:
                    ready = client.get("/v2/health/ready")
                    if ready.status_code == 503:
                        replies.append((ready, client.post("/predict", json=body)))
                except httpx2.TransportError:
                    break  # it has stopped listening
            time.sleep(0.05)
        assert time.monotonic() - told > 1.4
        assert len(replies) >= 3
        for ready, reply in replies:
            assert ready.json() == {"ready": False}
            assert reply.status_code == 200
            assert ready.headers["connection"] == reply.headers["connection"] == "close"
        assert server.process.wait(30) == 0


def test_a_second_ctrl_c_ends_the_delay(model_file):
    with running(model_file, "--drain-delay", "600") as server:
        server.process.send_signal(signal.SIGINT)
        with httpx2.Client(base_url=server.address, verify=False, timeout=30) as client:
            while client.get("/v2/health/ready").status_code == 200:
                time.sleep(0.05)
        server.process.send_signal(signal.SIGTERM)  # not by this one
        time.sleep(0.2)
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(30) == 130


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.endurance
def test_a_killed_worker_is_replaced(model_file, rng):
    body = _records(rng.normal(size=(3, 3)))
    with running(model_file, "--workers", "2", "--no-metrics") as server:
        parent = psutil.Process(server.process.pid)

        def workers() -> set[int]:
            found = set()
            for child in parent.children(recursive=True):
                with suppress(psutil.NoSuchProcess):  # it died just now
                    if "spawn_main" in " ".join(child.cmdline()):
                        found.add(child.pid)
            return found

        before = workers()
        assert len(before) == 2
        os.kill(min(before), signal.SIGKILL)
        served, until = 0, time.monotonic() + 120
        with httpx2.Client(base_url=server.address, verify=False, timeout=30) as client:
            while len(workers() - {min(before)}) < 2 or served < 20:
                assert time.monotonic() < until, server.said()
                try:
                    reply = client.post("/predict", json=body)
                except httpx2.TransportError:
                    continue  # its connection was the killed worker's
                assert reply.status_code == 200
                served += 1
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.endurance
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_workers_end_with_their_parent(model_file, sent, code):
    with running(model_file, "--workers", "2", "--no-metrics") as server:
        workers = psutil.Process(server.process.pid).children(recursive=True)
        server.process.send_signal(sent)
        assert server.process.wait(60) == code
        assert not psutil.wait_procs(workers, timeout=60)[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines"),
        (["--host", "::"], "can be reached from other machines"),
        (["--host", "example.org"], "can be reached from other machines"),
        (["--key", __file__], "give --certificate too"),
        (["--certificate", "none.pem"], "does not exist"),
        (["--certificate", __file__], "cannot be used for TLS"),
        (["--queue-rows", "5"], "queue_rows"),
        (["--deadline", "0"], "deadline"),
        (["--header-deadline", "0"], "header_deadline"),
        (["--drain-delay", "-1"], "drain_delay"),
        (["--drain-delay", "nan"], "drain_delay"),
        (["--max-connections", "1000"], "max_connections"),
        (["--name", "a/b"], "name"),
    ],
)
def test_options_that_contradict_each_other(model_file, options, said):
    found = CliRunner().invoke(app, ["serve", str(model_file), *options])
    assert found.exit_code == 1
    assert said in found.stderr


@pytest.mark.parametrize(
    "ports", [["--port", "8123", "--grpc-port", "8123"], ["--grpc-port", "8000"]]
)
def test_one_port_is_not_listened_on_for_both(ports):
    found = CliRunner().invoke(app, ["serve", __file__, *ports])  # no model: nothing would be run
    assert found.exit_code == 1
    assert f"Port {ports[-1]} cannot be listened on for HTTP and for gRPC" in found.stderr


def test_token_files_and_model_files_that_are_none(model_file, tmp_path):
    empty, short, binary = tmp_path / "empty", tmp_path / "short", tmp_path / "binary"
    empty.write_text("\n")
    short.write_text("abc\n")
    binary.write_bytes(b"\xff\xfe\x00")
    for file, said in ((empty, "empty"), (short, "token must be"), (binary, "no text"),
                       (tmp_path / "none", "No such file")):  # fmt: skip
        found = CliRunner().invoke(app, ["serve", str(model_file), "--token-file", str(file)])
        assert found.exit_code == 1
        assert said in found.stderr
    found = CliRunner().invoke(app, ["serve", str(binary)])
    assert found.exit_code == 1
    assert "no bootprob model" in found.stderr


def test_a_port_that_is_taken(model_file):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        found = CliRunner().invoke(app, ["serve", str(model_file), "--port", port])
    assert found.exit_code == 1
    assert "cannot be listened on" in found.stderr
    with warnings.catch_warnings(action="ignore"):  # uvicorn does not close what it cannot bind
        del found
        gc.collect()
