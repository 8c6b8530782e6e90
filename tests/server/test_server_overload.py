"""More requests than a slow model answers in time, while its file is replaced again and again."""

import asyncio
import gc
import hashlib
import shutil
import threading
import time
from collections import Counter

import httpx2
import numpy as np
import pytest

from bootprob import BootstrapSVC
from bootprob.persistence.save_load import save
from bootprob.server.limits import Limits
from bootprob.server.running import _make_server
from bootprob.server.served_model import ServedModel

TOKEN = "a-token-that-is-long-enough"
SLOW = 0.1  # seconds of each call of the model, of which the deadline has four
LIMITS = Limits(max_rows=2, queue_rows=20, deadline=0.4)


@pytest.fixture(scope="module")
def models(array_model, tmp_path_factory):
    """Two models by the versions that the server gives to their files."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 1] + rng.normal(size=60) > 0, 7, 2)
    other = BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0).fit(X, y)
    found, folder = {}, tmp_path_factory.mktemp("models")
    for name, model in (("first", array_model), ("second", other)):
        save(model, path := folder / name)
        found[hashlib.sha256(path.read_bytes()).hexdigest()[:12]] = path, model
    return found


@pytest.fixture
def slow(monkeypatch):
    score = ServedModel.score

    def slowly(*given):
        time.sleep(SLOW)
        return score(*given)

    monkeypatch.setattr(ServedModel, "score", slowly)


def served(path, talk):
    """What `talk` gives, a coroutine that is told of a client of a server of this file."""

    async def both():
        server = _make_server(
            {"m": path}, workers=1, drain_delay=0.0, token=TOKEN, metrics=True, limits=LIMITS
        )
        client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(server), base_url="http://x", timeout=60,
            headers={"Authorization": f"Bearer {TOKEN}"},
        )  # fmt: skip
        async with server._served(), client:
            return await talk(client)

    found = asyncio.run(both())
    gc.collect()  # a task that failed unseen says so when it is forgotten
    return found


async def replaced(client, path, by):
    shutil.copy(by, fresh := path.with_suffix(".new"))
    fresh.replace(path)
    assert (await client.post("/v2/repository/models/m/load")).status_code == 200


def test_each_request_is_answered_right_or_told_when_to_come_back(models, slow, tmp_path, caplog):
    """None is lost, has the numbers of other rows or of another model, or fails."""
    path, rows = tmp_path / "m.model", np.random.default_rng(1).normal(size=(40, 3))
    files = [path for path, _ in models.values()]
    shutil.copy(files[0], path)
    offline = {version: model.predict_proba(rows) for version, (_, model) in models.items()}
    statuses, versions = Counter(), Counter()

    async def ask(client, k):
        record = dict(zip(("x0", "x1", "x2"), rows[k].tolist(), strict=True))
        if k % 2:
            reply = await client.post("/predict", json={"records": [record]})
        else:
            tensor = {"name": "X", "shape": [1, 3], "datatype": "FP64", "data": rows[k].tolist()}
            reply = await client.post("/v2/models/m/infer", json={"inputs": [tensor]})
        statuses[reply.status_code] += 1
        said = reply.json()
        if reply.status_code != 200:
            assert reply.status_code in (429, 503), reply.text
            assert int(reply.headers["retry-after"]) >= 1
            assert said["error"].endswith("try again later.")
            return
        version = said.get("version") or said["model_version"]
        versions[version] += 1
        probability = (
            said["predictions"][0]["probability"] if k % 2 else said["outputs"][0]["data"][1]
        )
        assert probability == pytest.approx(offline[version][k, 1], abs=1e-12)

    async def talk(client):
        async def client_of(k):
            for _ in range(4):
                await ask(client, k)

        clients = [asyncio.create_task(client_of(k)) for k in range(len(rows))]
        for turn in range(3):
            await replaced(client, path, files[(turn + 1) % 2])
        await asyncio.gather(*clients)
        assert statuses.total() == 160
        assert statuses[429] + statuses[503] > 20  # 40 at once, of which two take 0.1 s
        before, until = statuses[200], time.monotonic() + 60
        while statuses[200] == before and time.monotonic() < until:  # in peace
            await ask(client, 0)

    served(path, talk)
    assert [*models][1] in versions
    assert not [each for each in caplog.records if each.levelname == "ERROR"], caplog.text


def test_a_call_that_nobody_waits_for_ends_before_its_model_goes(
    models, monkeypatch, tmp_path, caplog
):
    """The deadline overtakes it, and then another model."""
    path, (first, second) = tmp_path / "m.model", [path for path, _ in models.values()]
    shutil.copy(first, path)
    score, go_on, ended = ServedModel.score, threading.Event(), threading.Event()

    def held(self, X, level):
        if level == 0.5:
            assert go_on.wait(60)
            ended.set()
        return score(self, X, level)

    monkeypatch.setattr(ServedModel, "score", held)

    async def talk(client):
        asked = {"records": [{"x0": 0.1, "x1": 0.0, "x2": 0.0}]}
        late = await client.post("/predict", json=asked | {"level": 0.5})
        await replaced(client, path, second)
        after = await client.post("/predict", json=asked)
        await asyncio.sleep(0.1)  # what waits for the call would have gone on
        go_on.set()
        assert await asyncio.to_thread(ended.wait, 60)
        await asyncio.sleep(0.1)
        return late.status_code, after.status_code

    assert served(path, talk) == (503, 200)
    assert not [each for each in caplog.records if each.levelname == "ERROR"], caplog.text
