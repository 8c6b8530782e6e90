"""Jobs that are timed with one launch shape and another, and whether what they find is right.

Rows are drawn by formula: only their number, and that of the columns, matters to a kernel's speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from bootprob_gpu import FittedBatch, Problem, Status, fit
from bootprob_gpu.hardware.triton_choice import triton_kernels
from bootprob_gpu.scoring.votes import vote_counter

__all__ = ["Job", "linear", "rbf", "votes"]

_C = 2.0 ** np.arange(-5, 6, 2)
_TOL = {"linear": 1e-7, "rbf": 1e-6}


class Job:
    """Work on a device, and the twin's answer to it.

    Parameters
    ----------
    work : callable
        Does the work with the launch shapes that are on trial.
    is_right : callable
        Whether what `work` returned is what the twin says.
    kernels : {"always", "never"}
        With Triton's kernels, or in plain torch.
    """

    def __init__(
        self,
        work: Callable[[], Any],
        is_right: Callable[[Any], bool],
        kernels: Literal["always", "never"] = "always",
    ) -> None:
        self._work, self.is_right, self._kernels = work, is_right, kernels

    def __call__(self) -> Any:
        """Do the work; a kernel that cannot be compiled is an error."""
        with triton_kernels(self._kernels):
            return self._work()


def votes(
    device: torch.device,
    dtype: torch.dtype,
    precision: Literal["ieee", "tf32x3"],
    *,
    m: int,
    p: int,
    models: int,
    replicates: int,
) -> Job:
    """Votes of models × replicates linear models on m rows of p columns.

    In small whole numbers, whose products are exact in any order: counts must be equal.
    """
    from bootprob_gpu.scoring.triton_votes import count_votes

    draws = torch.Generator(device).manual_seed(0)

    def whole(*shape: int) -> Tensor:
        return torch.randint(-3, 4, shape, device=device, generator=draws).to(dtype)

    rows = whole(m, p)
    coef, intercept = whole(models, p, replicates), whole(models, replicates) + 0.5
    with triton_kernels("never"):
        expected = vote_counter(coef, intercept)(rows)
    return Job(
        lambda: count_votes(rows, coef, intercept, precision=precision),
        lambda found: torch.equal(found, expected),
    )


def linear(
    device: torch.device,
    *,
    n: int,
    p: int,
    replicates: int,
    n_C: int = 6,
    kernels: Literal["always", "never"] = "always",
) -> Job:
    """Linear models of `n_C` values of C."""
    problem = _problem(n, p, replicates, "linear", n_C)
    return _training(problem, device, "interior-point", kernels)


def rbf(
    device: torch.device,
    *,
    n: int,
    replicates: int,
    n_C: int = 6,
    dtype: torch.dtype = torch.float64,
) -> Job:
    """RBF models of `n_C` values of C and 3 of γ, on ten columns."""
    problem = _problem(n, 10, replicates, "rbf", n_C)
    return _training(problem, device, "smo-fused", "always", dtype)


def _training(problem, device, solver, kernels, dtype=torch.float64) -> Job:  # type: ignore[no-untyped-def]
    tol = _TOL[problem.kernel] if dtype == torch.float64 else 1e-4
    options = {"device": device, "dtype": dtype, "tol": tol}
    twin = {"smo-fused": "smo-batched"}.get(solver, solver)
    few = problem.take(slice(0, 2))  # the twin may be slow
    with triton_kernels("never"):
        expected = fit(few, solver=twin, **options).primal

    def is_right(found: FittedBatch) -> bool:
        """All are solved, and the first ones are the twin's within both duality gaps."""
        apart = (found.primal[: len(expected)] - expected).abs()
        solved = bool((found.status == Status.CONVERGED).all())
        return solved and bool((apart <= 2 * tol * expected).all())

    return Job(lambda: fit(problem, solver=solver, **options), is_right, kernels)


def _problem(
    n: int, p: int, replicates: int, kernel: Literal["linear", "rbf"], n_C: int
) -> Problem:
    rng = np.random.default_rng([n, p])
    X = rng.normal(size=(n, p))
    latent = X @ rng.normal(size=p) / np.sqrt(p) + rng.logistic(scale=0.5, size=n)
    y = np.where(latent > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    counts = rng.multinomial(n, np.full(n, 1 / n), size=replicates)
    counts += 1  # all rows have weight: SMO's block is that of n
    gamma = np.array([0.3, 1.0, 3.0]) / p if kernel == "rbf" else None
    return Problem(X, y, counts, _C[:n_C], kernel=kernel, gamma=gamma)
