"""Processes that solve machines with one peer, and the clock in each of them."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from gpu.benchmarks.peers import Peer, load
from gpu.benchmarks.svm import Kernel, Machine

__all__ = ["Crew", "Timed"]

_SHORT = 0.1  # seconds below which a solve is repeated and the best time taken
_REPEATS = 3
_KERNELS: dict[Kernel, float | None] = {"linear": None, "rbf": 1.0}


@dataclass(frozen=True)
class Timed:
    """One model given to a peer; `objective` and `converged` are None where it was stopped."""

    seconds: float
    objective: float | None = None
    converged: bool | None = None


class Crew:
    """Processes that solve machines with one peer; one that runs into the deadline is ended.

    Parameters
    ----------
    key : str
        File name of the peer.
    cores : list of int or None
        A process is started for each and held to that core; None starts one process without
        bounds.
    """

    def __init__(self, key: str, cores: list[int] | None) -> None:
        self._key = key
        self._cores: list[int | None] = [None] if cores is None else [*cores]
        self._workers: list[tuple[Any, Connection] | None] = [None] * len(self._cores)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._cores)

    def start(self) -> None:
        """Start the processes that are not running; `solve` does it where nobody has."""
        spawn = multiprocessing.get_context("spawn")  # a fork would inherit threads' locks
        starting = []
        for worker, core in enumerate(self._cores):
            if self._workers[worker] is None:
                ours, theirs = spawn.Pipe()
                process = spawn.Process(target=_work, args=(theirs, self._key, core), daemon=True)
                process.start()
                theirs.close()  # or a process that dies would be waited for
                self._workers[worker] = process, ours
                starting.append(ours)
        for connection in starting:
            self._receive(connection)

    def close(self) -> None:
        """End the processes."""
        for worker in range(len(self)):
            self._end(worker)

    def solve(
        self, machines: list[Callable[[], Machine]], seconds: float | None = None
    ) -> list[Timed | None]:
        """Solve machines in the order given, as many at once as there are processes.

        Parameters
        ----------
        machines : list of callable
            Each makes a machine, outside the clock.
        seconds : float, optional
            After that long what runs is stopped and what waits is not begun.

        Returns
        -------
        list of Timed or None
            None for machines that were not begun.
        """
        self.start()
        deadline = np.inf if seconds is None else time.perf_counter() + seconds
        waiting = SimpleQueue[int]()
        for k in range(len(machines)):
            waiting.put(k)
        done: list[Timed | None] = [None] * len(machines)

        def drive(worker: int) -> None:
            with suppress(Empty):
                while time.perf_counter() < deadline:
                    k = waiting.get_nowait()
                    done[k] = self._solve_one(worker, machines[k](), deadline)

        with ThreadPoolExecutor(len(self)) as pool:
            list(pool.map(drive, range(len(self))))
        return done

    def _solve_one(self, worker: int, machine: Machine, deadline: float) -> Timed:
        running = self._workers[worker]
        assert running is not None
        _, connection = running
        connection.send(machine)
        self._receive(connection)  # all is prepared, the peer's clock starts
        started = time.perf_counter()
        if connection.poll(None if np.isinf(deadline) else max(0.0, deadline - started)):
            return self._receive(connection)
        elapsed = time.perf_counter() - started
        self._end(worker)
        return Timed(elapsed)

    def _receive(self, connection: Connection) -> Any:
        try:
            return connection.recv()
        except EOFError as error:
            raise RuntimeError(f"A process of the peer {self._key!r} ended by itself.") from error

    def _end(self, worker: int) -> None:
        running = self._workers[worker]
        if running is not None:
            process, connection = running
            process.kill()
            process.join()
            connection.close()
            self._workers[worker] = None


def _work(connection: Connection, key: str, core: int | None) -> None:
    """Solve machines as they come, in a process of its own."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})  # before the peer counts the cores
    peer = load(key)
    with threadpool_limits(None if core is None else 1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what has not converged says so in its answer
        _warm_up(peer)
        connection.send("the peer is warm")
        while True:
            machine = connection.recv()
            prepared = peer.prepare(machine)
            connection.send("all is prepared")
            connection.send(_timed(peer, machine, prepared))


def _warm_up(peer: Peer) -> None:
    """Have a peer solve something tiny: threads are started, and modules loaded, at first use."""
    rows = np.linspace(-1, 1, 8)[:, None]
    labels = np.where(np.arange(8) % 3, 1.0, -1.0)
    for kernel, gamma in _KERNELS.items():
        machine = Machine(kernel, rows, labels, np.ones(8), 1.0, gamma)
        if peer.solves(kernel, *rows.shape):
            _timed(peer, machine, peer.prepare(machine))


def _timed(peer: Peer, machine: Machine, prepared: Any) -> Timed:
    seconds: list[float] = []
    while not seconds or (seconds[0] < _SHORT and len(seconds) < _REPEATS):
        started = time.perf_counter()
        solved = peer.solve(machine, prepared)
        seconds.append(time.perf_counter() - started)
    answer = peer.answer(machine, prepared, solved)
    return Timed(min(seconds), machine.objective(answer), bool(answer.converged))
