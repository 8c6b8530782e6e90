"""Bodies made to stop the server: no more is made of them than of honest ones."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hostile_bodies import INFER, PREDICT, attacks, honest
from server_clients import post, running
from server_under_attack import LONGEST_WAIT, MOST_MEMORY, REPEATS, effect, model, table_model, warm

from bootprob.persistence.save_load import save
from bootprob.server import Limits, create_app

UNKNOWN = {f"k{k}": 0 for k in range(60_000)}
X = {"name": "X", "shape": [1, 300], "datatype": "FP64", "data": [0] * 300}


@pytest.fixture(scope="module")
def wide_model():
    """300 columns of an array."""
    return model()


@pytest.mark.parametrize(
    ("address", "document"),
    [
        (PREDICT, {"records": [{}] * 4096}),
        (PREDICT, {"records": [0] * 125_000}),
        (PREDICT, {"records": [{f"x{k}": "" for k in range(300)}] * 500}),
        (PREDICT, {"records": [UNKNOWN]}),
        (PREDICT, UNKNOWN),
        (INFER, UNKNOWN),
        (INFER, {"inputs": [{}] * 60_000}),
        (INFER, {"inputs": [0] * 125_000}),
        (INFER, {"inputs": [X] * 1000}),
        (INFER, {"inputs": [UNKNOWN]}),
        (INFER, {"inputs": [X | {"parameters": UNKNOWN}]}),
        (INFER, {"inputs": [X | {"shape": [""] * 125_000}]}),
        (INFER, {"inputs": [X | {"shape": [500, 300], "data": [""] * 150_000}]}),
        (INFER, {"inputs": [X], "parameters": UNKNOWN}),
        (INFER, {"inputs": [X], "outputs": [0] * 125_000}),
        (INFER, {"inputs": [X], "outputs": [UNKNOWN]}),
    ],
)
def test_a_request_is_checked_no_further_than_to_what_is_wrong_first(wide_model, address, document):
    body = json.dumps(document).encode()
    with TestClient(create_app(wide_model, name="rows")) as client:
        post(client, body[:100], address)  # what is allocated once
        tracemalloc.start()
        try:
            reply = post(client, body, address)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert reply.status_code == 422, reply.text
    assert len(reply.json().get("problems", [])) <= 20
    assert len(reply.content) < 5000
    assert peak < 2**23 + 40 * len(body)


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel for the peak of memory")
@pytest.mark.endurance
@pytest.mark.parametrize("make", [model, table_model])
def test_whatever_is_sent_others_are_answered_and_memory_is_bounded(make, tmp_path: Path):
    save(make(), path := tmp_path / "rows.bootprob")
    with running(path) as server:
        idle = warm(server)
        for name, (address, body) in (honest() | attacks()).items():
            # Somebody else's load can only make a wait longer: the best of some tries counts.
            tries = [effect(server, address, body, idle) for _ in range(REPEATS)]
            assert min(each.longest_wait for each in tries) <= LONGEST_WAIT, (name, tries)
            assert max(each.memory for each in tries) <= MOST_MEMORY, (name, tries)
            assert {each.status for each in tries} <= {200, 400, 404, 413, 422}, (name, tries)
        address, body = attacks()["data: 0"]
        together = effect(server, address, body, idle, at_once=24)
        assert together.memory <= MOST_MEMORY + Limits().max_held, together
