"""What the linear engine would do on a GPU, counted from a CPU's iterations by the engine's rules.

    python -m gpu.roofline.interior_point_counts [NAME ...]

Trains jobs of `workloads` by the batched interior point in plain torch, which takes the same steps
as the kernels, and counts problem-iterations, launches, waits and bytes: as the rules of
`bootprob_gpu.interior_point.answered_problems` have it, and as they were before ("before": no
kernel skipped a problem, no replayed batch shrank, every count was waited for). Prints the table of
docs/engine.md. A job of fewer bootstrap samples than 500 is counted as if they came again and
again. No time is in here: nothing but counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bootprob_gpu import fit
from bootprob_gpu.interior_point.answered_problems import leave
from bootprob_gpu.interior_point.batched import _REPLAYED_CELLS
from bootprob_gpu.interior_point.blocks import gpu_block
from gpu.benchmarks.workloads import BOOTSTRAPS, WORKLOADS, absent, make

__all__ = [
    "STEP_LAUNCHES", "Executed", "executed", "job", "kernel_bytes", "product_bytes",
    "product_operations",
]  # fmt: skip

JOBS = ("wisconsin-linear", "german-linear", "adult-linear")

# Launches of a step: 7 matrix products, 9 kernels, 1 of the counter; of the certificates alone,
# with which a batch starts; of finding out how many are at work; of taking problems out, about.
STEP_LAUNCHES = 17
START_LAUNCHES = 4
COUNT_LAUNCHES = 2
LEAVE_LAUNCHES = 30
# Numbers that kernels read and write for a row of a problem in a step: losses 6, weights 6,
# corrector 16, move 15; and that matrix products do.
KERNEL_NUMBERS = 43
PRODUCT_NUMBERS = 7

COLUMNS = ("kernels", "products", "steps", "launches", "waits", "captures")

Rule = Callable[..., bool]


@dataclass(frozen=True)
class Executed:
    """What a job does.

    Attributes
    ----------
    needed : int
        Problem-iterations before each problem was answered.
    kernels, products : int
        Problem-iterations that kernels work on and that matrix products go over.
    steps : int
        Steps of all batches.
    left : int
        Times that problems left a batch.
    captures : int
        Graphs captured.
    launches : int
        Of the host: kernels, products, copies and graphs; those that are captured, too.
    waits : int
        Times that the device has nothing to do while the host waits for a count.
    """

    needed: int
    kernels: int
    products: int
    steps: int
    left: int
    captures: int
    launches: int
    waits: int

    def __add__(self, other: Executed) -> Executed:
        return Executed(*(getattr(self, n) + getattr(other, n) for n in vars(self)))


def executed(
    n_iter: NDArray[np.integer],
    n_rows: int,
    *,
    replayed: bool,
    rule: Rule = leave,
    late: bool = True,
    skipping: bool = True,
) -> Executed:
    """Count one batch.

    Parameters
    ----------
    n_iter : ndarray of int, shape (problems,)
        Iterations after which each problem is answered.
    n_rows : int
    replayed : bool
        Whether its steps are replayed as a graph.
    rule : callable
        When answered problems leave, as `bootprob_gpu.interior_point.answered_problems.leave`.
    late : bool
        Whether the count of a replayed batch comes an iteration late.
    skipping : bool
        Whether kernels skip answered problems.
    """
    batch = len(n_iter)
    delay = int(late and replayed)
    kernels = products = steps = left = captures = 0
    launches = START_LAUNCHES
    fresh = 0  # steps since the tensors were made: one is run, one is captured, others follow
    while True:
        working = int((n_iter > steps - delay).sum()) if steps >= delay else batch
        launches += COUNT_LAUNCHES
        if working == 0:
            break
        if rule(working, batch, n_rows, replayed=replayed):
            batch, left, fresh = working, left + 1, 0
            launches += LEAVE_LAUNCHES
        launches += 1 if replayed and fresh > 1 else STEP_LAUNCHES
        captures += replayed and fresh == 1
        products += batch
        kernels += int((n_iter > steps).sum()) if skipping else batch
        steps, fresh = steps + 1, fresh + 1
    waits = 0 if delay else steps + 1
    return Executed(int(n_iter.sum()), kernels, products, steps, left, captures, launches, waits)


def job(
    n_iter: NDArray[np.integer],
    n_rows: int,
    *,
    before: bool = False,
    replayed_cells: float = _REPLAYED_CELLS,
) -> Executed:
    """Count a job, in the blocks that the engine plans where memory is no bound.

    Parameters
    ----------
    n_iter : ndarray of int, shape (B, R)
    n_rows : int
    before : bool, default False
        By the rules before.
    replayed_cells : float
        Problems × rows of the largest batch whose steps are replayed.
    """
    block = gpu_block(*n_iter.shape, n_rows)
    total = Executed(*[0] * 8)
    for start in range(0, len(n_iter), block):
        batch = n_iter[start : start + block].ravel()
        replayed = batch.size * n_rows <= replayed_cells
        rules = {}
        if before:
            rules = {"rule": _before, "late": False, "skipping": False}
        total += executed(batch, n_rows, replayed=replayed, **rules)
    return total


def _before(working: int, batch: int, n_rows: int, *, replayed: bool) -> bool:
    return not replayed and leave(working, batch, n_rows, replayed=False)


def kernel_bytes(n: int, q: int) -> int:
    """Bytes that kernels read and write in an iteration of a problem, q columns with the ones.

    Arrays over rows; the normal matrix read and its factor written, read forwards and backwards in
    two solutions.
    """
    return 8 * (KERNEL_NUMBERS * n + q * (q + 1) // 2 + 5 * q * q)


def product_bytes(n: int, q: int) -> int:
    """Bytes of a problem that matrix products read and write in an iteration."""
    return 8 * (PRODUCT_NUMBERS * n + q * (q + 1) // 2 + 6 * q)


def product_operations(n: int, q: int) -> int:
    """Additions and multiplications of the matrix products in an iteration of a problem."""
    return 2 * n * (q * (q + 1) // 2) + 6 * 2 * n * q


def main(names: list[str]) -> None:
    head = ["job", "needed", *COLUMNS, "GB moved by kernels"]
    print("|", " | ".join(head), "|\n| --- |" + (len(head) - 1) * " ---: |")
    for name in names:
        if reason := absent(name):
            print(f"| {name} | {reason} |")
            continue
        work = make(name)
        problem = work.problem()
        n, p = problem.X.shape
        trained = fit(problem, solver="interior-point", device="cpu").n_iter.numpy()
        n_iter = np.resize(trained, (BOOTSTRAPS, trained.shape[1]))
        other = (np.inf, "were it replayed")
        if n_iter[: gpu_block(*n_iter.shape, n)].size * n <= _REPLAYED_CELLS:
            other = (0, "were it not replayed")
        for limit, title in ((_REPLAYED_CELLS, work.title), other):
            was, now = (job(n_iter, n, before=b, replayed_cells=limit) for b in (True, False))
            cells = [f"{getattr(was, name):,} → {getattr(now, name):,}" for name in COLUMNS]
            moved = " → ".join(
                f"{1e-9 * e.kernels * kernel_bytes(n, p + 1):,.0f}" for e in (was, now)
            )
            print("|", " | ".join([title, f"{now.needed:,}", *cells, moved]), "|", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*WORKLOADS, []])
    main(parser.parse_args().names or list(JOBS))
