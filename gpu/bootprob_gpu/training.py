"""Training of a whole problem, at once or block by block of replicates."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bootprob_gpu.interior_point.blocks import train_linear
from bootprob_gpu.models import FittedBatch
from bootprob_gpu.problem import Problem
from bootprob_gpu.smo.blocks import train_dual
from bootprob_gpu.solvers import Options, Solver

__all__ = ["fit", "iter_fit"]


def fit(
    problem: Problem,
    *,
    solver: Solver = "auto",
    tol: float | None = None,
    kkt_tol: float | None = None,
    max_iter: int | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float64,
    memory_limit: int | None = None,
) -> FittedBatch:
    """Train all models of a problem.

    Parameters
    ----------
    problem : Problem
        What to train.
    solver : str, default "auto"
        "interior-point": linear kernel, float64, any device; "interior-point-compiled": the same
        on the CPU, problem by problem. "smo-batched": all kernels, any device; "smo-compiled":
        the same on the CPU, path by path; "smo-fused": the same on CUDA, each path by one program
        of a Triton kernel. "auto" takes an interior point for a linear kernel with no more
        columns than rows, else SMO; compiled on the CPU where Numba can be loaded, fused on CUDA
        where triton is installed.
    tol : float, optional
        Relative duality gap to reach; default 1e-7 for the linear kernel and 1e-6 for others in
        float64, 1e-4 in float32.
    kkt_tol : float, optional
        Stop a model also when its largest violation of the KKT conditions, ``m(a) − M(a)``, is at
        most this: the rule of libsvm, whose `tol` is 1e-3 by default. `Status.CONVERGED` then
        means that the gap is within `tol` or the violation within `kkt_tol`; the gap that was
        reached is in the certificate all the same. For SMO only.
    max_iter : int, optional
        Iterations allowed for each model; default 100 for an interior point, 200,000 for
        "smo-batched" and 2,000,000 for the other kinds of SMO.
    device : str or torch.device, default "cpu"
        Where to train.
    dtype : torch.dtype, default torch.float64
        Precision of later scoring, and of the Gram matrices that "smo-batched" and "smo-fused"
        iterate with (on CUDA those of RBF kernels are float32 either way). The solvers' own
        arithmetic is float64, and so are the matrices by which models end and are certified.
    memory_limit : int, optional
        Bytes that a block may use; default half of the free memory.

    Returns
    -------
    FittedBatch
        Models that were not solved say so in their status; nothing is ever NaN.

    Raises
    ------
    InputError
        If an option is unknown or does not fit the problem.
    MemoryError
        If a single replicate does not fit into memory.

    Examples
    --------
    >>> from bootprob_gpu import Problem
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
    >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
    >>> problem = Problem(X, y, counts, C=[0.1, 1.0])
    >>> from bootprob_gpu import fit
    >>> models = fit(problem)
    >>> models.coef.shape, bool(models.gap.max() < 1e-6)
    (torch.Size([2, 2, 1]), True)
    """
    blocks = []
    for block in iter_fit(
        problem,
        solver=solver,
        tol=tol,
        kkt_tol=kkt_tol,
        max_iter=max_iter,
        device=device,
        dtype=dtype,
        memory_limit=memory_limit,
    ):
        block.train_scores = None  # of all blocks, these would fill the memory
        blocks.append(block)
    return FittedBatch.concatenate(blocks)


def iter_fit(
    problem: Problem,
    *,
    solver: Solver = "auto",
    tol: float | None = None,
    kkt_tol: float | None = None,
    max_iter: int | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float64,
    memory_limit: int | None = None,
) -> Iterator[FittedBatch]:
    """Train block by block of replicates, as `fit` does, and hand each block out when done.

    Scores of the training rows come along in each block (`FittedBatch.train_scores`), so that
    a caller can reduce them before the next block starts; they are never held for all
    replicates at once.

    Parameters
    ----------
    problem, solver, tol, kkt_tol, max_iter, device, dtype, memory_limit
        As for `fit`.

    Returns
    -------
    iterator of FittedBatch
        Consecutive blocks of replicates. Options are checked before this function returns.

    Examples
    --------
    >>> from bootprob_gpu import Problem
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
    >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
    >>> problem = Problem(X, y, counts, C=[0.1, 1.0])
    >>> from bootprob_gpu import iter_fit
    >>> for block in iter_fit(problem):  # as many replicates as fit into memory
    ...     print(block.replicates, tuple(block.train_scores.shape))
    slice(0, 2, None) (2, 2, 4)
    """
    options = Options.checked(problem, solver, tol, kkt_tol, max_iter, device, dtype, memory_limit)
    return (train_linear if options.back_end.is_interior_point else train_dual)(problem, options)
