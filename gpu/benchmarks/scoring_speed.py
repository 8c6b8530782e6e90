"""Votes of many rows beside the bare matrix product, on the CPU, in one run.

    python -m gpu.benchmarks.scoring_speed [--rows 1000000] [--columns 61]
        [--dtypes float32 float64]

The bare product makes the scores of all models for the same rows in the same precision and with the
same threads, and throws them away block by block: the fastest of torch and numpy, either operand
first, and several sizes of block. Both sides are repeated in turn and the best time of each is
taken, as other work on the machine can only slow a run down.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from bootprob_gpu import Certificate, FittedBatch
from bootprob_gpu.kernels.linear import Linear
from bootprob_gpu.scoring.scorers import ReplicateScores, Votes
from gpu.benchmarks.our_timing import PeakMemory

__all__ = ["measure"]

_B, _R = 500, 11  # 5,500 models
_BLOCKS = (256, 1024, 4096)
_TRIAL_ROWS = 8192
_REPEATS = 3

Product = Callable[[int], None]


def measure(n_rows: int, p: int, dtype: torch.dtype) -> dict[str, Any]:
    """Time votes, weighted scores and the bare product for rows in memory.

    Parameters
    ----------
    n_rows : int
        Rows to score.
    p : int
        Columns.
    dtype : torch.dtype
        Precision of the scores, and of the rows.

    Returns
    -------
    dict
        Rows per second of each, the ratio of votes to the bare product, which product was the
        fastest, and the peak memory that votes took beyond the rows and what the process had been
        given before; call it in a fresh process to know it.
    """
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.standard_normal((n_rows, p), dtype=np.float32)).to(dtype)
    models, weights = _models(rng, p, dtype), torch.full((_R,), 1 / _R)
    votes, scores = Votes(models, weights), ReplicateScores(models, weights)
    votes.shares(rows[:256])  # compiles
    with PeakMemory() as memory:  # before the heap has grown for anything else
        votes.shares(rows)
    name, product = _fastest_product(rows, models)
    jobs: dict[str, Callable[[], object]] = {
        "votes": lambda: votes.shares(rows),
        "bare product": lambda: product(n_rows),
        "weighted scores": lambda: [scores(block) for block in rows.split(2048)],
    }
    seconds = dict.fromkeys(jobs, float("inf"))
    for _ in range(_REPEATS):
        for job, work in jobs.items():
            seconds[job] = min(seconds[job], _seconds(work))
    return {
        "rows": n_rows,
        "columns": p,
        "models": _B * _R,
        "dtype": str(dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        **{f"{job}, rows per second": n_rows / seconds[job] for job in jobs},
        "votes / bare product": seconds["bare product"] / seconds["votes"],
        "fastest product": name,
        "votes, GFLOP/s": 2e-9 * n_rows * p * _B * _R / seconds["votes"],
        "peak memory beyond the rows, MiB": memory.bytes / 2**20,
    }


def _models(rng: np.random.Generator, p: int, dtype: torch.dtype) -> FittedBatch:
    def normal(*shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.normal(size=shape))

    nothing = torch.zeros(_B, _R)
    return FittedBatch(
        intercept=normal(_B, _R),
        coef=normal(_B, _R, p),
        dual_coef=None,
        X=None,
        center=torch.zeros(p, dtype=torch.float64),
        scale=torch.ones(p, dtype=torch.float64),
        kernel=Linear(),
        certificate=Certificate(*[nothing] * 5),
        replicates=slice(0, _B),
        dtype=dtype,
    )


def _fastest_product(rows: torch.Tensor, models: FittedBatch) -> tuple[str, Product]:
    """Of several ways to make all scores of `n` rows, the one that took the least time."""
    assert models.coef is not None
    coef = models.coef.to(rows.dtype).flatten(0, 1)
    trial = min(_TRIAL_ROWS, len(rows))
    products: dict[str, Product] = {}
    for size in _BLOCKS:
        by_rows = torch.empty(size, len(coef), dtype=rows.dtype)
        by_models = torch.empty(len(coef), size, dtype=rows.dtype)

        def torch_rows(n: int, out: torch.Tensor = by_rows, size: int = size) -> None:
            for block in rows[:n].split(size):
                torch.mm(block, coef.T, out=out[: len(block)])

        def torch_models(n: int, out: torch.Tensor = by_models, size: int = size) -> None:
            for block in rows[:n].split(size):
                if len(block) == size:
                    torch.mm(coef, block.T, out=out)
                else:
                    torch.mm(coef, block.T)

        def numpy_rows(n: int, out: torch.Tensor = by_rows, size: int = size) -> None:
            for block in rows[:n].split(size):
                np.matmul(block.numpy(), coef.numpy().T, out=out[: len(block)].numpy())

        def numpy_models(n: int, out: torch.Tensor = by_models, size: int = size) -> None:
            for block in rows[:n].split(size):
                np.matmul(coef.numpy(), block.numpy().T, out=out[:, : len(block)].numpy())

        for product in (torch_rows, torch_models, numpy_rows, numpy_models):
            library, first = product.__name__.split("_")
            products[f"{library}, {first} first, {size} rows at a time"] = product
    times = {
        name: min(_seconds(lambda product=product: product(trial)) for _ in range(_REPEATS))
        for name, product in products.items()
    }
    best = min(times, key=times.__getitem__)
    return best, products[best]


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description="Votes of many rows beside the bare product.")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--columns", type=int, default=61)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    with threadpool_limits(given.threads):
        for dtype in given.dtypes:
            for n_rows in given.rows:
                for name, value in measure(n_rows, given.columns, getattr(torch, dtype)).items():
                    print(
                        f"{name}: {value:,.3g}" if isinstance(value, float) else f"{name}: {value}"
                    )
                print()


if __name__ == "__main__":
    main()
