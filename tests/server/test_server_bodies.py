"""Bodies that are no strict JSON, too large, too deep, too slow or of another type."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from server_clients import post
from starlette.requests import Request

from bootprob.server import Limits, answering, create_app, strict_json
from bootprob.server.bodies import BodyReader
from bootprob.server.errors import RequestError
from bootprob.server.strict_json import PIECE, parse_json

RECORD = '{"x0": 1, "x1": 2, "x2": 3}'


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ('{"records": [], }', "no JSON"),
        ("\ufeff{}", "no JSON"),
        ('{"records": [{"x0": NaN}]}', "NaN"),
        ('{"records": [{"x0": -Infinity}]}', "NaN"),
        ('{"records": [], "records": []}', "twice"),
        ('{"records": [{"x0": 1, "x0": 2}]}', "twice"),
        (b'{"records": "\xff"}', "UTF-8"),
        ('{"records": []}'.encode("utf-16"), "UTF-8"),
        ("[" + "9" * 5000 + "]", "digits"),
        ("[" * 60_000, "deep"),
        ('{"a":' * 60_000, "deep"),
        ("[" * 17 + "]" * 17, "deep"),
        ("[" + "," * 500_000 + "]", "between commas"),
    ],
)
def test_what_is_no_strict_json_is_refused(array_client, body, said):
    reply = post(array_client, body)
    assert reply.status_code == 400
    assert said in reply.json()["error"]


def test_a_number_beyond_float64_is_refused(array_client):
    reply = post(array_client, '{"records": [{"x0": 1e999, "x1": 2, "x2": 3}]}')
    assert reply.status_code == 422
    assert reply.json()["problems"][0]["column"] == "x0"


def test_brackets_in_texts_do_not_count_as_nesting(rng):
    texts = ['[{"' * 50, '\\"' * 30 + "[" * 40, "]" * 20, "\\", '"']
    document = {str(k): texts[i] for k, i in enumerate(rng.permutation(len(texts)))}
    assert parse_json(json.dumps(document).encode(), Limits(max_depth=1)) == document
    with pytest.raises(RequestError, match="deep"):
        parse_json(json.dumps([document]).encode(), Limits(max_depth=1))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("[" + "[]," * 65_535 + "[]]", "65536 arrays and objects"),
        ('{"a": "' + "b" * PIECE + '"}', "A text or number is longer"),
        ("[" + "9" * (PIECE + 1) + "]", "A text or number is longer"),
        ('{"' + "b" * PIECE + '": 0}', "A text or number is longer"),
        (json.dumps({f"k{k}": 0 for k in range(2**16 + 1)}), "65536 keys"),
    ],
)
def test_too_many_values_and_too_long_ones_are_refused(array_client, body, said):
    reply = post(array_client, body)
    assert reply.status_code == 413
    assert said in reply.json()["error"]


def _random_document(rng: np.random.Generator, depth: int = 0) -> Any:
    kind = rng.integers(7 if depth < 4 else 5)
    if kind == 5:
        return [_random_document(rng, depth + 1) for _ in range(rng.integers(6))]
    if kind == 6:
        return {f"k{k}" + "é\\\"" * rng.integers(2): _random_document(rng, depth + 1)
                for k in range(rng.integers(6))}  # fmt: skip
    texts = ["", 'a"b', "\\", "[{,:", "\U0001f600\n", "}" * 9]
    return [None, True, -1.5e-7, 12, texts[rng.integers(len(texts))]][kind]


@pytest.mark.parametrize("piece", [60, 200])
def test_in_pieces_it_is_the_same_as_at_once(rng, monkeypatch, piece):
    """Also of what is damaged: the same is refused."""
    monkeypatch.setattr(strict_json, "PIECE", piece)  # no text or number here is longer
    monkeypatch.setattr(strict_json, "_AT_ONCE", piece // 2)
    monkeypatch.setattr(strict_json, "_OTHERS", 0)
    decode = strict_json._DECODER.decode
    n_refused = 0
    for _ in range(400):
        ascii_, indent = bool(rng.integers(2)), [None, 3][rng.integers(2)]
        document = [_random_document(rng) for _ in range(4)]
        body = json.dumps(document, ensure_ascii=ascii_, indent=indent).encode()
        assert parse_json(body, Limits()) == document
        for _ in range(4):
            damaged = bytearray(body)
            place = rng.integers(len(damaged))
            if rng.integers(2):
                del damaged[place : place + rng.integers(1, 3)]
            else:
                damaged[place] = rng.choice(list(b'[]{},:"\\ 1a'))
            try:
                expected = decode(damaged.decode())
            except (ValueError, RequestError):
                n_refused += 1
                with pytest.raises(RequestError):
                    parse_json(bytes(damaged), Limits())
            else:
                assert parse_json(bytes(damaged), Limits()) == expected
    assert n_refused > 200


def test_where_a_large_body_is_wrong_is_told():
    body = b"[" + b"1,\n" * 30_000 + b"2 3]"
    with pytest.raises(RequestError, match=r"line 30001, column 3\)"):
        parse_json(body, Limits())
    with pytest.raises(RequestError, match="twice"):
        parse_json(b'{"a": 0, ' + b'"b":"' + b"c" * 20_000 + b'",' + b'"d":"' + b"c" * 20_000
                   + b'", "a": 1}', Limits())  # fmt: skip


def test_large_bodies_are_read_off_the_loop(array_client, monkeypatch):
    threads = []

    def parse(body, limits):
        threads.append(threading.current_thread().name)
        return parse_json(body, limits)

    monkeypatch.setattr(answering, "parse_json", parse)
    record = {"x0": 1, "x1": 2, "x2": 3}
    for n in (1, 4000):
        assert array_client.post("/predict", json={"records": [record] * n}).status_code == 200
    X = {"name": "X", "shape": [4000, 3], "datatype": "FP64", "data": [0.25] * 12_000}
    reply = array_client.post("/v2/models/model/infer", json={"inputs": [X]})
    assert reply.status_code == 200
    assert [name.startswith("bootprob-read") for name in threads] == [False, True, True]


def test_no_more_bytes_of_bodies_are_held_than_allowed():
    """A second large body is refused while the first one is held; small ones are not."""
    limits = Limits(max_body=100_000, max_held=100_000)

    async def run() -> None:
        reader = BodyReader(limits)
        until = asyncio.get_running_loop().time() + 20
        async with reader.body(_request(90_000), until) as body:
            assert len(body) == 90_000
            assert reader.held == 90_000 - 2**15
            async with reader.body(_request(2**15), until):
                pass
            with pytest.raises(RequestError, match="large bodies") as refused:
                async with reader.body(_request(90_000), until):
                    pass
            assert (refused.value.status, refused.value.retry_after) == (503, 1)
            assert reader.held == 90_000 - 2**15
        assert reader.held == 0
        with pytest.raises(RequestError, match="larger than"):
            async with reader.body(_request(100_001), until):
                pass
        assert reader.held == 0

    asyncio.run(run())


def _request(size: int) -> Request:
    parts = [b"a" * 1000] * (size // 1000) + [b"a" * (size % 1000)]

    async def receive() -> dict[str, Any]:
        part = parts.pop()
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    headers = [(b"content-type", b"application/json")]
    return Request({"type": "http", "method": "POST", "headers": headers}, receive)


@pytest.mark.parametrize("depth", [1, 5, 16])
def test_the_deepest_allowed_nesting_is_allowed(depth):
    assert parse_json(b"[" * depth + b"]" * depth, Limits()) is not None


def test_bodies_beyond_the_cap_are_refused_with_and_without_a_length(array_model):
    with TestClient(create_app(array_model, limits=Limits(max_body=1000))) as client:
        fits = json.dumps({"records": [json.loads(RECORD)]}).ljust(1000)
        assert post(client, fits).status_code == 200
        assert post(client, fits + " ").status_code == 413
        sent = []

        def endless():
            for _ in range(10_000):
                sent.append(1)
                yield b" " * 100

        reply = client.post(
            "/predict", content=endless(), headers={"content-type": "application/json"}
        )
        assert reply.status_code == 413
        assert post(client, "{}", content_length="99999999999999999999999").status_code == 413


@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": "text/plain"},
        {"content_type": ""},
        {"content_type": "application/json; charset=latin-1"},
        {"content_type": "application/jsonp"},
        {"content_encoding": "gzip"},
        {"content_encoding": "br"},
    ],
)
def test_other_types_and_compressed_bodies_are_refused(array_client, headers):
    assert post(array_client, f'{{"records": [{RECORD}]}}', **headers).status_code == 415


def test_the_charset_may_be_said(array_client):
    for kind in ("application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"'):
        reply = post(array_client, f'{{"records": [{RECORD}]}}', content_type=kind)
        assert reply.status_code == 200
