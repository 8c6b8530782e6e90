"""Bodies that are no strict JSON, too large, too deep, too slow or of another type."""

from __future__ import annotations

import json
import time

import pytest
from fastapi.testclient import TestClient
from server_clients import post

from bootprob.server import Limits, create_app
from bootprob.server.bodies import parse_json
from bootprob.server.errors import RequestError

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
        ("[" * 100_000, "deep"),
        ('{"a":' * 100_000, "deep"),
        ("[" * 17 + "]" * 17, "deep"),
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
    assert parse_json(json.dumps(document).encode(), 1) == document
    with pytest.raises(RequestError, match="deep"):
        parse_json(json.dumps([document]).encode(), 1)


@pytest.mark.parametrize("unit", [b'"\\"', b'"', b"\\", b'"[', b"[]", b'\\"'])
def test_hostile_texts_take_linear_time(unit):
    started = time.process_time()
    with pytest.raises(RequestError):
        parse_json(unit * (2**20 // len(unit)), 16)
    assert time.process_time() - started < 3  # quadratic time would be hours


@pytest.mark.parametrize("depth", [1, 5, 16])
def test_the_deepest_allowed_nesting_is_allowed(depth):
    assert parse_json(b"[" * depth + b"]" * depth, 16) is not None


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
