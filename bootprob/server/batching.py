"""Rows of many requests, scored together: a micro-batcher that counts rows, not requests.

An engine call costs nearly the same for one row as for hundreds. While one call runs, requests
wait, and the next call takes as many whole requests, in order, as `Limits.max_rows` lets in.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from bootprob.exceptions import ClassifierError
from bootprob.runtime.counted import counted
from bootprob.server.errors import RequestError, of_model
from bootprob.server.limits import Limits
from bootprob.server.served_model import Scores, ServedRows

__all__ = ["MicroBatcher"]


_LONGEST_RETRY = 60  # seconds
_FORGET = 0.9  # of the past, with every call, in the measured rate


@dataclass(eq=False)
class _Waiting:
    """One request's rows."""

    X: ServedRows
    level: float
    result: asyncio.Future[Scores]
    counted: bool = True


class MicroBatcher:
    """Score rows of concurrent requests in as few calls as possible, in one thread.

    Requests must be validated before: a call that fails is halved until the request at fault is
    alone, and only that one gets the error.

    Parameters
    ----------
    score : callable
        Takes rows, shape (m, p), and a level, and returns their `Scores`.
    limits : Limits
    observe : callable, optional
        Told the `Scores` of every call and the seconds it took.
    joined : callable, optional
        Puts rows of several requests under each other; default those of a matrix.
    is_well : callable, optional
        Whether the model scores a row that it is known to take; asked where its classifiers fail.
    """

    def __init__(
        self,
        score: Callable[[Any, float], Scores],
        limits: Limits,
        observe: Callable[[Scores, float], None] | None = None,
        joined: Callable[[Sequence[Any]], Any] = np.concatenate,
        is_well: Callable[[], bool] = lambda: False,
    ) -> None:
        self._score, self._limits, self.observe = score, limits, observe
        self._joined, self._is_well = joined, is_well
        self._queue: deque[_Waiting] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bootprob-score")
        self._recent_rows, self._recent_seconds = 0.0, 0.0
        self.queued_rows = 0
        self.closed = False

    async def submit(self, X: ServedRows, level: float, until: float) -> Scores:
        """Queue the rows of one request and wait for their result.

        Parameters
        ----------
        X : ndarray, shape (m, p)
            Valid rows, 1 to `Limits.max_rows`.
        level : float
            Of the intervals.
        until : float
            Deadline, on the clock of the running event loop.

        Returns
        -------
        Scores
            Of these rows, in their order.

        Raises
        ------
        RequestError
            429 if the queue is full, 503 if the server is stopping or the deadline passes, 422 if
            the model refuses these rows, 500 if it fails on them.
        """
        if self.closed:
            raise RequestError(503, "The server is stopping.", retry_after=1)
        if self.queued_rows + len(X) > self._limits.queue_rows:
            queued = counted(self.queued_rows, "row is", "rows are")
            message = f"{queued} waiting already; try again later."
            raise RequestError(429, message, retry_after=self.retry_after())
        loop = asyncio.get_running_loop()
        waiting = _Waiting(X, level, loop.create_future())
        self._queue.append(waiting)
        self.queued_rows += len(X)
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._work())
        try:
            async with asyncio.timeout_at(until):
                return await waiting.result
        except TimeoutError:
            message = f"No result within {self._limits.deadline:g} s; try again later."
            raise RequestError(503, message, retry_after=self.retry_after()) from None
        finally:  # cancelled or late: the rows are not scored any more
            self._uncount(waiting)

    def retry_after(self) -> int:
        """Seconds, 1 to 60, until what waits now will have been scored at the rate measured."""
        if self._recent_rows == 0:
            return 1
        seconds = self.queued_rows * self._recent_seconds / self._recent_rows
        return min(max(1, math.ceil(seconds)), _LONGEST_RETRY)

    def close(self) -> None:
        """Take no more rows; what is queued is still scored."""
        self.closed = True

    async def ended(self) -> None:
        """Wait until nothing is scored any more, calls among it whose requests are all too late."""
        if self._worker is not None:
            await asyncio.wait({self._worker})

    async def _work(self) -> None:
        """Score until nothing waits."""
        if self.queued_rows < self._limits.max_rows:
            await asyncio.sleep(self._limits.max_delay)
        while batch := self._take():
            by_level: dict[float, list[_Waiting]] = {}
            for waiting in batch:
                by_level.setdefault(waiting.level, []).append(waiting)
            for level, group in by_level.items():
                await self._score_group(group, level)

    def _take(self) -> list[_Waiting]:
        """Whole requests from the front, as many as fit into a call."""
        batch: list[_Waiting] = []
        rows = 0
        while self._queue:
            first = self._queue[0]
            if first.result.done():
                self._queue.popleft()
                continue
            rows += len(first.X)
            if batch and rows > self._limits.max_rows:
                break
            self._uncount(first)
            batch.append(self._queue.popleft())
        return batch

    def _uncount(self, waiting: _Waiting) -> None:
        if waiting.counted:
            waiting.counted = False
            self.queued_rows -= len(waiting.X)

    async def _score_group(self, group: list[_Waiting], level: float) -> None:
        group = [waiting for waiting in group if not waiting.result.done()]
        if not group:
            return
        X = group[0].X if len(group) == 1 else self._joined([each.X for each in group])
        loop = asyncio.get_running_loop()
        started = time.perf_counter()
        try:
            scores = await loop.run_in_executor(self._thread, self._score, X, level)
        except Exception as error:
            if len(group) == 1:
                is_well = False
                if isinstance(error, ClassifierError):
                    is_well = await loop.run_in_executor(self._thread, self._is_well)
                if not group[0].result.done():
                    group[0].result.set_exception(of_model(error, is_well=is_well))
                return
            for half in (group[: len(group) // 2], group[len(group) // 2 :]):
                await self._score_group(half, level)
            return
        self._measure(scores, time.perf_counter() - started)
        done = 0
        for waiting in group:
            rows = slice(done, done + len(waiting.X))
            done = rows.stop
            if not waiting.result.done():
                waiting.result.set_result(scores[rows])

    def _measure(self, scores: Scores, seconds: float) -> None:
        self._recent_rows = _FORGET * self._recent_rows + len(scores.probability)
        self._recent_seconds = _FORGET * self._recent_seconds + seconds
        if self.observe is not None:
            self.observe(scores, seconds)
