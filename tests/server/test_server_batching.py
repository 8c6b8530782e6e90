"""The micro-batcher by itself: what it puts together, drops, refuses, and never mixes up."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest

from bootprob.exceptions import DataError
from bootprob.server.batching import MicroBatcher
from bootprob.server.errors import RequestError
from bootprob.server.limits import Limits
from bootprob.server.served_model import Scores

POISON = -1.0


class Engine:
    """Scores that say whose rows they are; fails on poison, and waits while it is held."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.calls: list[tuple[int, float]] = []
        self.seconds = seconds
        self.free = threading.Event()
        self.free.set()

    def __call__(self, X: np.ndarray, level: float) -> Scores:
        self.calls.append((len(X), level))
        self.free.wait(10)
        time.sleep(self.seconds)
        if (X == POISON).any():
            raise DataError("poison")
        p = X[:, 0]
        interval = np.stack([np.column_stack([p, p + level])] * 2, axis=1)
        return Scores(np.column_stack([1 - p, p]), interval, np.arange(len(X)))


def _until(seconds: float = 20.0) -> float:
    return asyncio.get_running_loop().time() + seconds


def _rows(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


async def _all_queued(batcher: MicroBatcher, rows: int) -> None:
    async with asyncio.timeout(20):
        while batcher.queued_rows < rows:
            await asyncio.sleep(0.001)


def test_everyone_gets_their_own_rows(rng):
    async def run() -> None:
        engine = Engine(seconds=0.002)
        batcher = MicroBatcher(engine, Limits(max_rows=50, queue_rows=10**6))
        requests = [
            (rng.uniform(size=(rng.integers(1, 20), 1)), rng.choice([0.5, 0.9])) for _ in range(400)
        ]

        async def ask(X: np.ndarray, level: float) -> None:
            await asyncio.sleep(float(rng.uniform(0, 0.05)))
            scores = await batcher.submit(X, level, _until())
            np.testing.assert_array_equal(scores.probability[:, 1], X[:, 0])
            np.testing.assert_array_equal(scores.interval[:, 1, 1], X[:, 0] + level)

        await asyncio.gather(*(ask(*each) for each in requests))
        assert sum(rows for rows, _ in engine.calls) == sum(len(X) for X, _ in requests)
        assert max(rows for rows, _ in engine.calls) <= 50
        assert len(engine.calls) < len(requests)  # by how much is a matter of the machine
        assert batcher.queued_rows == 0

    asyncio.run(run())


def test_rows_count_and_levels_are_kept_apart():
    async def run() -> None:
        engine = Engine()
        engine.free.clear()
        batcher = MicroBatcher(engine, Limits(max_rows=4, queue_rows=100))
        first = asyncio.create_task(batcher.submit(_rows(0), 0.9, _until()))
        while not engine.calls:
            await asyncio.sleep(0.001)
        sizes, levels = (2, 1, 3, 1, 4), (0.9, 0.8, 0.9, 0.9, 0.9)
        rest = [
            asyncio.create_task(batcher.submit(_rows(*range(size)), level, _until()))
            for size, level in zip(sizes, levels, strict=True)
        ]
        await _all_queued(batcher, sum(sizes))
        engine.free.set()
        await asyncio.gather(first, *rest)
        assert engine.calls == [(1, 0.9), (2, 0.9), (1, 0.8), (4, 0.9), (4, 0.9)]

    asyncio.run(run())


def test_only_the_guilty_request_fails(rng):
    async def run() -> None:
        engine = Engine()
        batcher = MicroBatcher(engine, Limits())
        guilty = set(rng.choice(60, 3, replace=False).tolist())
        rows = [_rows(POISON if k in guilty else k, k) for k in range(60)]
        found = await asyncio.gather(
            *(batcher.submit(X, 0.9, _until()) for X in rows), return_exceptions=True
        )
        for k, each in enumerate(found):
            if k in guilty:
                assert isinstance(each, RequestError)
                assert each.status == 422
            else:
                assert isinstance(each, Scores)
                assert each.probability[:, 1].tolist() == [k, k]

    asyncio.run(run())


def test_a_failure_that_is_no_refusal_is_a_500():
    def broken(X: np.ndarray, level: float) -> Scores:
        raise RuntimeError("secret")

    async def run() -> None:
        with pytest.raises(RequestError) as caught:
            await MicroBatcher(broken, Limits()).submit(_rows(1), 0.9, _until())
        assert caught.value.status == 500
        assert "secret" not in caught.value.message

    asyncio.run(run())


def test_a_full_queue_refuses_and_says_when_to_come_back():
    async def run() -> None:
        engine = Engine(seconds=0.05)
        batcher = MicroBatcher(engine, Limits(max_rows=10, queue_rows=20))
        await batcher.submit(_rows(0), 0.9, _until())  # 20 rows a second, or less
        engine.free.clear()
        tasks = [asyncio.create_task(batcher.submit(_rows(0), 0.9, _until()))]
        while len(engine.calls) < 2:
            await asyncio.sleep(0.001)
        tasks += [
            asyncio.create_task(batcher.submit(_rows(*range(10)), 0.9, _until())) for _ in range(2)
        ]
        await _all_queued(batcher, 20)
        with pytest.raises(RequestError) as caught:
            await batcher.submit(_rows(0), 0.9, _until())
        assert caught.value.status == 429
        assert caught.value.retry_after is not None
        assert 1 <= caught.value.retry_after <= 60
        engine.free.set()
        assert len(await asyncio.gather(*tasks)) == 3
        await batcher.submit(_rows(0), 0.9, _until())  # there is room again

    asyncio.run(run())


def test_late_and_cancelled_requests_are_not_scored():
    async def run() -> None:
        engine = Engine()
        engine.free.clear()
        batcher = MicroBatcher(engine, Limits(max_rows=8, queue_rows=8))
        first = asyncio.create_task(batcher.submit(_rows(0), 0.9, _until()))
        while not engine.calls:
            await asyncio.sleep(0.001)
        late = asyncio.create_task(batcher.submit(_rows(1, 1), 0.9, _until(0.05)))
        left = asyncio.create_task(batcher.submit(_rows(2, 2, 2), 0.9, _until()))
        stays = asyncio.create_task(batcher.submit(_rows(3), 0.9, _until()))
        await _all_queued(batcher, 6)
        left.cancel()
        with pytest.raises(RequestError) as caught:
            await late
        assert caught.value.status == 503
        assert caught.value.retry_after is not None
        assert batcher.queued_rows == 1
        engine.free.set()
        await first
        assert (await stays).probability[:, 1].tolist() == [3]
        assert engine.calls == [(1, 0.9), (1, 0.9)]
        assert left.cancelled()

    asyncio.run(run())


def test_closed_it_finishes_what_is_queued_and_takes_no_more():
    async def run() -> None:
        engine = Engine()
        engine.free.clear()
        batcher = MicroBatcher(engine, Limits(max_rows=2, queue_rows=50))
        tasks = [asyncio.create_task(batcher.submit(_rows(k), 0.9, _until())) for k in range(10)]
        await _all_queued(batcher, 8)  # of which two at most are being scored
        batcher.close()
        engine.free.set()
        with pytest.raises(RequestError) as caught:
            await batcher.submit(_rows(0), 0.9, _until())
        assert caught.value.status == 503
        found = await asyncio.gather(*tasks)
        assert [each.probability[0, 1] for each in found] == list(range(10))

    asyncio.run(run())


def test_it_outlives_an_event_loop():
    batcher = MicroBatcher(Engine(), Limits())

    async def ask(value: float) -> float:
        return float((await batcher.submit(_rows(value), 0.9, _until())).probability[0, 1])

    assert [asyncio.run(ask(k)) for k in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_rows": 0}, {"max_rows": 1.5}, {"max_rows": True}, {"queue_rows": 10},
        {"deadline": 0}, {"deadline": float("nan")}, {"deadline": "1"}, {"max_delay": -1},
        {"max_body": float("inf")},
    ],
)  # fmt: skip
def test_limits_that_make_no_sense(wrong):
    with pytest.raises(DataError, match=next(iter(wrong))):
        Limits(**wrong)
