"""Connections to ``bootprob serve``: slow, many, idle, and of peers that speak another HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from select import select

import pytest
from server_clients import Server, running

from bootprob.exceptions import DataError
from bootprob.persistence.save_load import save
from bootprob.server import descriptors
from bootprob.server.connections import MAX_HEADERS

HEALTH = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
RECORD = b'{"records": [{"x0": 1, "x1": 2, "x2": 3}]}'
MOST = 12


@pytest.fixture(scope="module")
def server(array_model, tmp_path_factory) -> Iterator[Server]:
    """Takes few connections and waits for headers a second."""
    save(array_model, path := tmp_path_factory.mktemp("server") / "rows.bootprob")
    options = ("--max-connections", str(MOST), "--max-requests", "6", "--header-deadline", "1")
    with running(path, *options) as server:
        yield server


def _connected(server: Server, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    connection.sendall(sent)
    return connection


def _all(connection: socket.socket) -> bytes:
    """What comes until the server closes."""
    found = b""
    try:
        while part := connection.recv(2**16):
            found += part
    except ConnectionResetError:
        pass  # it did not read all of what was sent
    return found


def _status(connection: socket.socket) -> int:
    with closing(http.client.HTTPResponse(connection)) as reply:
        reply.begin()
        reply.read()
        return reply.status


def _answer(server: Server, *parts: bytes) -> bytes:
    """What is answered to bytes that arrive part by part, after which the server closes."""
    with closing(_connected(server)) as connection:
        for part in parts:
            connection.sendall(part)
            if select([connection], [], [], 0.1 if len(parts) > 1 else 0)[0]:
                break
        return _all(connection)


def test_headers_must_come_in_time(server):
    """Also of a second request; and bytes that trickle in give no further time."""
    started = time.monotonic()
    with ExitStack() as stack:
        sent = {
            stack.enter_context(closing(_connected(server, begun))): begun
            for begun in (b"", b"GET", HEALTH, HEALTH + b"\r\n" + HEALTH)
        }
        while sent and time.monotonic() < started + 20:
            said = select(list(sent), [], [], 0.3)[0]
            for connection in list(sent):
                try:
                    if connection not in said:
                        connection.sendall(b"X" if sent[connection] else b"")
                    elif connection.recv(2**16):
                        continue
                    else:
                        del sent[connection]
                except ConnectionError:
                    del sent[connection]
                assert connection in sent or time.monotonic() - started > 0.9
    assert not sent, "They were never closed."


def test_whoever_waits_longest_makes_room_for_others(server):
    """Half-open connections cannot keep health from being answered."""
    with ExitStack() as stack:
        for sent in [HEALTH] * 5 * MOST:
            stack.enter_context(closing(_connected(server, sent)))
        with closing(_connected(server, HEALTH + b"\r\n")) as connection:
            assert _status(connection) == 200


def test_a_connection_that_works_is_not_closed_for_others(server):
    with ExitStack() as stack:
        busy = stack.enter_context(
            closing(_connected(server, POST + b"Content-Length: %d\r\n\r\n{" % len(RECORD)))
        )
        for _ in range(3 * MOST):
            stack.enter_context(closing(_connected(server)))
        with closing(_connected(server, HEALTH + b"\r\n")) as connection:
            assert _status(connection) == 200
        busy.sendall(RECORD[1:])
        assert _status(busy) == 200
        busy.sendall(HEALTH + b"\r\n")  # it is kept
        assert _status(busy) == 200


def test_two_lengths_are_refused(server):
    for lengths in (
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\ncontent-length: 42\r\n",
    ):
        smuggled = HEALTH + b"\r\n"
        answer = _answer(server, POST + lengths + b"\r\n0\r\n\r\n" + smuggled)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert b"connection: close" in head.lower()
        assert "contradict each other" in json.loads(body)["error"]  # and no second reply
    for method in (b"HEAD", b"CONNECT"):
        answer = _answer(server, method + (POST + lengths)[4:] + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.endswith(b"\r\n\r\n") is (method == b"HEAD")
    chunked = POST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    whole = b"%x\r\n%s\r\n0\r\n\r\n" % (len(RECORD), RECORD)
    assert _answer(server, chunked + whole).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("n_parts", [1, 2, 5])
def test_headers_are_bounded_however_they_arrive(server, n_parts):
    for size, status in ((MAX_HEADERS, 200), (MAX_HEADERS + 1, 400), (3 * MAX_HEADERS, 400)):
        head = HEALTH + b"Connection: close\r\nX-Long: "
        sent = head + b"a" * (size - len(head) - 4) + b"\r\n\r\n"
        assert len(sent) == size
        step = -(-size // n_parts)
        answer = _answer(server, *(sent[k : k + step] for k in range(0, size, step)))
        assert answer.startswith(b"HTTP/1.1 %d " % status), (size, answer)


def test_tiny_chunks_are_refused_only_by_the_thousand(server):
    head = POST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    one_by_one = b"".join(b"1\r\n%c\r\n" % byte for byte in RECORD)
    assert _answer(server, head + one_by_one + b"0\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    answer = _answer(server, head + b"1\r\n \r\n" * 40_000)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"chunks are smaller" in answer
    rows = b"28\r\n" + b" " * 40 + b"\r\n"
    large = head + rows * 20_000 + one_by_one + b"0\r\n\r\n"
    assert _answer(server, large).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_what_is_no_http_is_refused_whatever_came_before(server, method):
    with closing(_connected(server, HEALTH.replace(b"GET", method, 1) + b"\r\n")) as connection:
        with closing(http.client.HTTPResponse(connection, method=method.decode())) as reply:
            reply.begin()
            reply.read()
            assert reply.status in (200, 405)
        connection.sendall(b"garbage\r\n\r\n")
        head, _, body = _all(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert "error" in json.loads(body)


def test_nothing_of_this_is_a_failure_in_the_log(server):
    assert "Traceback" not in server.said()


@pytest.mark.endurance
def test_half_open_connections_do_not_use_up_the_files(array_model, tmp_path):
    save(array_model, path := tmp_path / "rows.bootprob")
    with running(path, most_files=256) as server, ExitStack() as stack:
        assert "The limit on open files is 256" in server.said()
        for _ in range(400):
            stack.enter_context(closing(_connected(server, HEALTH)))
            with closing(_connected(server, HEALTH + b"\r\n")) as connection:
                assert _status(connection) == 200
        assert "Traceback" not in server.said()


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        (1024, 2**20, (2000, 1000, 2048)),  # raised as far as needed
        (-1, -1, (2000, 1000, 2048)),
        (256, 256, (138, 103, 46)),
        (256, 1024, (714, 535, 238)),
    ],
)
def test_connections_fit_into_the_limit_on_files(monkeypatch, soft, hard, expected):
    import resource

    raised = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    monkeypatch.setattr(descriptors.psutil.Process, "num_fds", lambda _: 40)
    room = descriptors.room_for(2000, 1000)
    assert (room.connections, room.requests, room.backlog) == expected
    assert 40 + room.connections + room.backlog < (raised[0][0] if raised else 2**31)
    assert room.requests < room.connections


def test_what_is_asked_for_is_not_raised(monkeypatch):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: None)
    monkeypatch.setattr(descriptors.psutil.Process, "num_fds", lambda _: 40)
    for connections, requests in ((100, 50), (20, 10)):
        room = descriptors.room_for(connections, requests)
        assert (room.connections, room.requests) == (connections, requests)
        assert 200 < room.backlog < 2048


def test_too_few_files_to_serve(monkeypatch):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (60, 60))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: None)
    monkeypatch.setattr(descriptors.psutil.Process, "num_fds", lambda _: 20)
    with pytest.raises(DataError, match="ulimit"):
        descriptors.room_for(2000, 1000)
