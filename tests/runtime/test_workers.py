"""Workers that are told to stop while they start."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import joblib
import pytest

from bootprob.runtime.workers import outcomes_of


class _Starting:
    """A pool that gets a signal when its workers have begun to start, and not ended."""

    def __init__(self, *sent: signal.Signals) -> None:
        self.sent = sent
        self.started = self.closed = False

    def __call__(self, calls: Any) -> Iterator[Any]:
        for each in self.sent:
            signal.raise_signal(each)
        self.started = True

        def outcomes() -> Iterator[Any]:
            try:
                yield from (function(*given) for function, given, _ in calls)
            finally:
                self.closed = True

        found = outcomes()
        next(found)
        return found


_CALLS = [joblib.delayed(abs)(-each) for each in range(4)]


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_they_run(sent: signal.Signals) -> None:
    def handler(number: int, _: Any) -> None:
        raise KeyboardInterrupt(number)

    before = {each: signal.signal(each, handler) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        pool = _Starting(sent, signal.SIGINT)
        with pytest.raises(KeyboardInterrupt) as raised, outcomes_of(pool, _CALLS):  # type: ignore[arg-type]
            pytest.fail("The signal was lost.")
        assert raised.value.args == (sent,)
        assert pool.started
        assert pool.closed
        assert all(signal.getsignal(each) is handler for each in before)
    finally:
        for number, each in before.items():
            signal.signal(number, each)


def test_those_that_are_left_are_ended() -> None:
    pool = _Starting()
    with outcomes_of(pool, _CALLS) as outcomes:  # type: ignore[arg-type]
        assert next(outcomes) == 1
        assert not pool.closed
    assert pool.closed


def test_in_a_thread_as_in_the_main_one() -> None:
    found: list[int] = []

    def work() -> None:
        pool = joblib.Parallel(n_jobs=2, return_as="generator")
        with outcomes_of(pool, _CALLS) as outcomes:
            found.extend(outcomes)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert found == [0, 1, 2, 3]


def test_what_the_manager_of_ended_workers_says() -> None:
    def missing() -> None:
        raise KeyError(1)

    said: list[str] = []

    class Pool(_Starting):
        def __call__(self, calls: Any) -> Iterator[Any]:
            outcomes = super().__call__(calls)
            try:
                yield from outcomes
            finally:
                for name in ("ExecutorManagerThread", "another"):
                    thread = threading.Thread(target=missing, name=name)
                    thread.start()
                    thread.join()

    def hook(given: threading.ExceptHookArgs) -> None:
        assert given.thread is not None
        said.append(given.thread.name)

    before, threading.excepthook = threading.excepthook, hook
    try:
        with outcomes_of(Pool(), _CALLS) as outcomes:  # type: ignore[arg-type]
            next(outcomes)
        assert said == ["another"]
        assert threading.excepthook is hook
    finally:
        threading.excepthook = before
