"""Seconds that a peer takes for a whole job, from a stratified sample of its models.

A model is a pair (bootstrap sample b, grid point r). A *round* has every grid point once, each with
a bootstrap sample drawn at random without replacement, so the mean over rounds is an unbiased
estimate of the mean over all models however steeply the cost grows with C. A first round warms up
and tells how many rounds the time allows; it counts only where there is no time for two more, since
a number of rounds that depends on the measurement would bias it.

A peer that runs on one core gets as many processes as there are cores, each held to a core of its
own, and its seconds are those of perfect load balance: seconds a model × models / cores. A peer
with threads of its own is tried both ways and keeps the better one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from bootprob.preparation.grids import DEFAULT_C
from bootprob.runtime.arrays import Floats
from gpu.benchmarks.crew import Crew, Timed
from gpu.benchmarks.peers import load
from gpu.benchmarks.svm import Machine

if TYPE_CHECKING:
    from gpu.benchmarks.workloads import Workload

__all__ = ["crews", "estimate", "lower_bounds", "rounds", "time_peer"]

Model = tuple[int, int]

_ROUNDS = 40  # more would make the standard error smaller than what the machine's noise is worth


def rounds(rng: np.random.Generator, replicates: int, models: int) -> Iterator[list[Model]]:
    """Endless rounds of (replicate, grid point); every pair comes once before any comes twice.

    Parameters
    ----------
    rng : Generator
    replicates, models : int
        B and R.
    """
    while True:
        orders = np.array([rng.permutation(replicates) for _ in range(models)])
        for drawn in orders.T:
            yield [(int(b), r) for r, b in enumerate(drawn)]


def estimate(seconds: Floats) -> tuple[float, float | None]:
    """Mean seconds a model, and its standard error.

    Parameters
    ----------
    seconds : ndarray, shape (rounds, R)

    Returns
    -------
    mean : float
    error : float or None
        Of the stratified mean, ``√(Σ_r s_r² / rounds) / R`` with ``s_r`` the spread within grid
        point r; None with a single round.
    """
    if len(seconds) == 1:
        return float(seconds.mean()), None
    variance = seconds.var(axis=0, ddof=1) / len(seconds)
    return float(seconds.mean()), float(np.sqrt(variance.sum()) / seconds.shape[1])


def lower_bounds(solved: list[Timed | None], path: int) -> Floats:
    """Seconds of each model of a round, or less than those where it was stopped.

    A model that was stopped, or not begun, counts for what had been spent on it or for the longest
    one before it on its path of rising C, whichever is more: cost grows with C.

    Parameters
    ----------
    solved : list of Timed or None
        In the order of the grid; None for models that were not begun.
    path : int
        Number of values of C.
    """
    seconds: list[float] = []
    for k, timed in enumerate(solved):
        finished = timed is not None and timed.objective is not None
        spent = 0.0 if timed is None else timed.seconds
        before = seconds[k - k % path :]
        seconds.append(spent if finished else max([spent, *before]))
    return np.array(seconds)


def crews(key: str, cores: list[int]) -> dict[str, Crew]:
    """The ways in which a peer can use all cores; processes start when they are first needed."""
    ways = {f"{len(cores)} processes, a core each": Crew(key, cores)}
    if load(key).OWN_THREADS and len(cores) > 1:
        ways["its own threads"] = Crew(key, None)
    return ways


def time_peer(
    key: str, ways: dict[str, Crew], workload: Workload, dual: Floats, seed: int = 0
) -> dict[str, Any]:
    """Measure one peer on one job.

    Parameters
    ----------
    key : str
        File name of the peer.
    ways : dict of str to Crew
        Of `crews`.
    workload : Workload
    dual : ndarray, shape (B, R)
        Lower bounds of the optima, from our certificates.
    seed : int
        Of the sample of models; the same one for every peer.

    Returns
    -------
    dict
        For the JSON; seconds of the whole job under ``"seconds"``.
    """
    peer = load(key)
    B, R = dual.shape
    draw = rounds(np.random.default_rng(seed), B, R)

    def machines(models: list[Model]) -> list[Callable[[], Machine]]:
        return [partial(workload.machine, *model) for model in models]

    middle = machines([(0, R // 2)])[0]
    tried = {way: _try(crew, middle) for way, crew in ways.items()} if len(ways) > 1 else {}
    way = min(tried, key=tried.__getitem__) if tried else next(iter(ways))
    crew = ways[way]
    crew.start()
    models = next(draw)
    started = perf_counter()
    solved = crew.solve(machines(models), workload.peer_seconds)
    spent = perf_counter() - started
    complete = all(timed is not None and timed.objective is not None for timed in solved)
    more = min(_ROUNDS, int((workload.peer_seconds - spent) / spent)) if complete else 0
    if more >= 2:
        models = [model for _ in range(more) for model in next(draw)]
        solved = crew.solve(machines(models))
    seconds = (
        lower_bounds(solved, len(DEFAULT_C)) if len(solved) == R else _finished(solved)
    ).reshape(-1, R)
    mean, error = estimate(seconds)
    share = workload.models / len(crew)
    answers = [
        (model, timed)
        for model, timed in zip(models, solved, strict=True)
        if timed is not None and timed.objective is not None
    ]
    return {
        "name": peer.NAME,
        "note": peer.NOTE,
        "same problem": peer.SAME_PROBLEM,
        "run as": way,
        "seconds a model, tried": tried,
        "rounds": len(seconds),
        "models solved": len(answers),
        "models stopped or not begun": len(models) - len(answers),
        "models unconverged": sum(not timed.converged for _, timed in answers),
        "seconds a model by grid point": [round(float(s), 6) for s in seconds.mean(axis=0)],
        "seconds": mean * share,
        "standard error": None if error is None else error * share,
        "suboptimality": _suboptimality(answers, dual) if peer.SAME_PROBLEM else None,
    }


def _finished(solved: list[Timed | None]) -> Floats:
    return np.array([timed.seconds for timed in solved if timed is not None])


def _try(crew: Crew, machine: Callable[[], Machine]) -> float:
    """Seconds a model, of one model of the middle of the grid."""
    return float(_finished(crew.solve([machine] * len(crew))).mean()) / len(crew)


def _suboptimality(answers: list[tuple[Model, Timed]], dual: Floats) -> dict[str, float] | None:
    """``(primal − lower bound of the optimum) / primal`` of the peer's answers."""
    if not answers:
        return None
    primal = np.array([timed.objective for _, timed in answers], dtype=np.float64)
    gap = (primal - np.array([dual[model] for model, _ in answers])) / primal
    return {"median": float(np.median(gap)), "largest": float(gap.max())}
