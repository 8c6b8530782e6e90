"""Who trains the shards of a fit: this process, its GPUs, or whatever joblib's engine is.

Everything comes back in the order of the shards, so nobody downstream knows who trained them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from queue import SimpleQueue
from typing import Any

import joblib
import numpy as np
import torch
from joblib.parallel import (
    LokyBackend,
    MultiprocessingBackend,
    SequentialBackend,
    ThreadingBackend,
    get_active_backend,
)
from numpy.typing import NDArray
from torch import Tensor

from bootprob.ensemble.specs import ScheduleSpec
from bootprob.ensemble.training.checkpoints import Checkpoint
from bootprob.ensemble.training.made_of import made_of
from bootprob.ensemble.training.shards import Draws, Recipe, Shard, ShardResult, Work
from bootprob.ensemble.training.train import train_shards
from bootprob.ensemble.training.trained_ensemble import TrainedEnsemble
from bootprob.runtime.progress import progress_bar
from bootprob.runtime.workers import end_with_parent, outcomes_of
from bootprob_gpu import Problem
from bootprob_gpu.hardware.memory import free_bytes

__all__ = ["train_ensembles"]

Arrays = dict[str, NDArray[Any]]
Advance = Callable[[int], None]

_OF_THIS_MACHINE = (LokyBackend, MultiprocessingBackend, SequentialBackend, ThreadingBackend)
_LOSSES = 3  # of workers in a row, without a shard finished in between, that are made good


def train_ensembles(
    work: Work,
    device: torch.device,
    spec: ScheduleSpec,
    checkpoint: Checkpoint | None,
    description: str,
) -> Generator[TrainedEnsemble, None, None]:
    """Train all shards of a fit, under a progress bar.

    Parameters
    ----------
    work : Work
        What to train.
    device : torch.device
        Where.
    spec : ScheduleSpec
    checkpoint : Checkpoint or None
        Where finished shards are kept.
    description : str
        Of the progress bar.

    Yields
    ------
    TrainedEnsemble
        Of each pair of classes; its shards are trained when it is asked for.
    """
    if checkpoint is not None:
        checkpoint.bind(made_of(work, device))
    n_ensembles, shards = len(work.weight), work.shards(device)
    with progress_bar(description, work.problem.n_replicates, shown=spec.verbose > 0) as advance:
        results = _results(work, shards, device, spec.n_jobs, checkpoint, advance)
        with closing(results):
            for _ in range(n_ensembles):
                yield TrainedEnsemble.of(islice(results, len(shards) // n_ensembles), work.drawn)


def _results(
    work: Work,
    shards: Sequence[Shard],
    device: torch.device,
    n_jobs: int | None,
    checkpoint: Checkpoint | None,
    advance: Advance,
) -> Generator[ShardResult, None, None]:
    """Train all shards of a fit, or read those that a checkpoint has, in their order."""
    stored = set() if checkpoint is None else checkpoint.intact(range(len(shards)))
    missing = [shard for shard in shards if shard.number not in stored]
    trained = _train(work, missing, device, n_jobs, advance)
    ahead: dict[int, ShardResult] = {}
    rows: list[Tensor] = []  # on the device, once anything is restored

    def restored(shard: Shard, arrays: Arrays) -> ShardResult:
        if not rows:
            rows.append(torch.from_numpy(_writable(work.problem.X)).to(device))
        return ShardResult.from_arrays(arrays, work.problem, shard, rows[0], work.recipe)

    try:
        for shard in shards:
            if shard.number in stored:
                assert checkpoint is not None
                advance(shard.size)
                yield restored(shard, checkpoint.read(shard.number))
                continue
            while shard.number not in ahead:
                number, found = next(trained)
                if checkpoint is not None:
                    arrays = found if isinstance(found, dict) else found.to_arrays()
                    checkpoint.write(number, arrays)
                ahead[number] = (
                    restored(shards[number], found) if isinstance(found, dict) else found
                )
            yield ahead.pop(shard.number)
    finally:
        trained.close()


def _train(
    work: Work,
    shards: Sequence[Shard],
    device: torch.device,
    n_jobs: int | None,
    advance: Advance,
) -> Generator[tuple[int, ShardResult | Arrays], None, None]:
    """Train shards, in any order; choose who does it."""
    backend, _ = get_active_backend()
    here = isinstance(backend, _OF_THIS_MACHINE)
    jobs = joblib.effective_n_jobs(n_jobs)
    if n_jobs == 1 or (here and jobs == 1):
        return _in_this_process(work, shards, device, advance)
    if not here:
        return _through_joblib(work, shards, [str(device)], advance, n_jobs=n_jobs)
    if device.type == "cuda":
        gpus = _gpus(device, jobs)
        if len(gpus) == 1:
            return _in_this_process(work, shards, device, advance)
        return _through_joblib(work, shards, gpus, advance)
    limit = free_bytes(device, work.recipe.memory_limit) // jobs
    share = replace(work, recipe=replace(work.recipe, memory_limit=max(1, limit)))
    return _through_joblib(share, shards, [str(device)], advance, n_jobs=n_jobs)


def _gpus(device: torch.device, jobs: int) -> list[str]:
    """The GPUs of this machine to train on: all, if none was named, but no more than jobs."""
    if device.index is not None:
        return [str(device)]
    return [f"cuda:{index}" for index in range(min(jobs, torch.cuda.device_count()))]


def _in_this_process(
    work: Work, shards: Sequence[Shard], device: torch.device, advance: Advance
) -> Generator[tuple[int, ShardResult], None, None]:
    """One batch after the other: on a CPU as many shards as stand together, on CUDA each alone."""
    run: list[Shard] = []
    for shard, following in zip(shards, [*shards[1:], None], strict=True):
        run.append(shard)
        ends = following is None or following.number != shard.number + 1
        if ends or device.type == "cuda":
            found = train_shards(work, run, device, advance)
            yield from ((each.number, next(found)) for each in run)
            run = []


def _through_joblib(
    work: Work,
    shards: Sequence[Shard],
    devices: Sequence[str],
    advance: Advance,
    *,
    n_jobs: int | None = None,
) -> Generator[tuple[int, Arrays], None, None]:
    """Shards as joblib's tasks; on several devices, a thread of this process for each of them.

    What a shard raises comes back as a value. So whatever else is raised says that a worker was
    lost, and what it had not handed in is trained again.
    """
    options: dict[str, Any] = {"n_jobs": n_jobs}
    free: SimpleQueue[str] | None = None
    if len(devices) > 1:
        options = {"n_jobs": len(devices), "backend": "threading"}
        free = SimpleQueue()
        for device in devices:
            free.put(device)
    source = _source(work)
    waiting = {shard.number: shard for shard in shards}
    losses = 0
    while waiting:
        pool = joblib.Parallel(
            **options, batch_size=1, return_as="generator_unordered", mmap_mode="c"
        )
        scale = work.problem.scale
        calls = (
            joblib.delayed(_train_alone if free is None else _train_on_free)(
                devices[0] if free is None else free,
                shard,
                (scale if scale.ndim == 1 else scale[shard.replicates],),
                *source,
            )
            for shard in list(waiting.values())
        )
        failure: Exception | None = None
        try:
            with outcomes_of(pool, calls) as outcomes:
                for number, found in outcomes:
                    if isinstance(found, Exception):
                        failure = found
                        break
                    advance(waiting.pop(number).size)
                    losses = 0
                    yield number, found
        except Exception as error:
            losses += 1
            if losses > _LOSSES:
                raise
            are = "is" if len(waiting) == 1 else "are"
            warnings.warn(
                f"A worker was lost ({type(error).__name__}); {len(waiting)} of "
                f"{len(shards)} shards {are} trained again.",
                stacklevel=2,
            )
        if failure is not None:
            raise failure


def _source(work: Work) -> tuple[Any, ...]:
    """What all shards share.

    Arrays stand alone: joblib maps them into the memory of processes on this machine, and hands
    them to a cluster once. What is in a tuple goes with each task.
    """
    problem = work.problem
    labels = problem.y[None]
    if not problem.shares_labels:
        labels = problem.y[:: len(work.drawn)].astype(np.float64)
    grid = {"C": problem.C, "kernel": problem.kernel_function}
    draws = work.draws
    return (
        problem.X,
        labels,
        work.members,
        work.weight,
        problem.row_weight,
        draws.codes,
        draws.weight,
        draws.groups,
        (draws.entropy, draws.size, grid, work.recipe),
    )


def _train_on_free(free: SimpleQueue[str], *given: Any) -> tuple[int, Arrays | Exception]:
    device = free.get()
    try:
        return _train_alone(device, *given)
    finally:
        free.put(device)


def _train_alone(
    device: str,
    shard: Shard,
    own: tuple[NDArray[Any]],
    X: NDArray[Any],
    labels: NDArray[Any],
    members: NDArray[Any] | None,
    weight: NDArray[Any],
    row_weight: NDArray[Any],
    codes: NDArray[Any],
    drawing_weight: NDArray[Any],
    groups: NDArray[Any] | None,
    small: tuple[list[int], int | None, dict[str, Any], Recipe],
) -> tuple[int, Arrays | Exception]:
    """Train one shard wherever this is called; its number and arrays, or what was raised."""
    end_with_parent()
    [scale], (entropy, size, grid, recipe) = own, small
    try:
        draws = Draws(codes, drawing_weight, entropy, size, groups)
        drawn = draws.counts(shard.drawn)
        counts = drawn if members is None else drawn * members[shard.pair]
        X, y, weight, row_weight, scale = map(
            _writable, (X, labels[shard.pair], weight[shard.pair], row_weight, scale)
        )
        problem = Problem(X, y, counts, row_weight=row_weight, scale=scale, **grid)
        everything = slice(0, shard.size)
        work = Work(problem, drawn, weight[None], recipe, draws)
        alone = Shard(0, 0, everything, everything)
        [found] = train_shards(work, [alone], torch.device(device))
        return shard.number, found.to_arrays()
    except Exception as error:
        return shard.number, error


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """Make arrays that torch may share memory with: it warns of those that it may not write to."""
    return array if array.flags.writeable else array.copy()
