"""Paths of C solved by the compiled interior point: one thread a path, on the rows of weight."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob_gpu.certificate import Certificate, Status, relative_gap
from bootprob_gpu.hardware.compiled_blas import workspaces
from bootprob_gpu.hardware.process_setting import one_blas_thread, one_openmp_thread
from bootprob_gpu.interior_point.compiled import (
    BLOCK_NUMBERS,
    OVER_COLUMNS,
    OVER_ROWS,
    interior_point_path,
)

__all__ = ["solve_paths"]

Floats = NDArray[np.float64]


def solve_paths(
    columns: tuple[Tensor, Tensor, Tensor],
    y: Floats,
    upper: Floats,
    penalty: Floats,
    *,
    tol: float,
    max_iter: int,
    threads: int,
) -> tuple[Tensor, Tensor, Certificate, Tensor]:
    """Solve the paths of some replicates.

    What a replicate gets is the same to the last bit however replicates are put into blocks. Arrays
    of its own are part of that: the bits depend on where within a cache line an array begins.

    Parameters
    ----------
    columns : tuple of Tensor
        From `unit_columns`.
    y : ndarray, shape (n,) or (b, n)
        Labels, −1 or +1; of all replicates, or of each its own.
    upper : ndarray, shape (b, R, n)
        Box bounds.
    penalty : ndarray, shape (b, p)
        What the squares of the coefficients weigh.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Iterations allowed for each model.
    threads : int
        Threads that solve at the same time.

    Returns
    -------
    coef : Tensor, shape (b, R, p)
    intercept : Tensor, shape (b, R)
    certificate : Certificate
        With tensors of that shape.
    scores : Tensor, shape (b, R, n)
    """
    X1, center, spread = columns
    (b, R, n), q = upper.shape, X1.shape[1]
    coef, intercept = X1.new_empty(b, R, q - 1), X1.new_empty(b, R)
    scores = X1.new_empty(b, R, n)
    ends = np.zeros((2, b, R))  # primal and dual
    work = np.zeros((2, b, R), dtype=np.int64)  # iterations and status
    work[1] = Status.SINGLE_CLASS
    blas = workspaces(b)
    padded = np.ones((b, -(-q // 4) * 4))  # BLAS likes multiples of a vector's length
    padded[:, :q] = np.column_stack([penalty, np.zeros(b)])
    Q = padded.shape[1]

    def solve(path: int) -> None:
        box, label = upper[path], y if y.ndim == 1 else y[path]
        w, inside = X1.new_zeros(R, q), box > 0
        balance = box[:, label > 0].sum(1), box[:, label < 0].sum(1)
        single = (balance[0] == 0) | (balance[1] == 0)
        w.numpy()[single, -1] = np.sign(balance[0] - balance[1])[single]
        both = np.flatnonzero(~single)
        # A row that one model of the path lacks has no interior there: such models go one by one.
        together = len(both) > 0 and (inside[both] == inside[both[:1]]).all()
        for models in [both] if together else both[:, None]:
            rows = np.flatnonzero(inside[models].all(axis=0))
            m, k = len(rows), len(models)
            found, end, spent = np.zeros((k, q)), np.zeros((2, k)), np.zeros((2, k), np.int64)
            interior_point_path(
                X1.numpy(), label, rows, np.ascontiguousarray(box[np.ix_(models, rows)]),
                padded[path], tol, max_iter, found, *end, *spent, np.zeros((Q, m)),
                np.empty((Q, Q)), tuple(np.zeros((OVER_COLUMNS, Q))),
                tuple(np.empty((OVER_ROWS, m))), np.empty(max(BLOCK_NUMBERS, 64 * Q)), np.empty(2),
                blas[path],
            )  # fmt: skip
            w.numpy()[models] = found
            ends[:, path, models], work[:, path, models] = end, spent
        own = w[:, :-1] / spread
        coef[path], intercept[path] = own, w[:, -1] - own @ center
        scores[path] = w @ X1.T

    # Threads of a matrix product inside threads of a path would fight for the cores.
    with one_blas_thread, ThreadPoolExecutor(threads, initializer=one_openmp_thread) as pool:
        try:
            list(pool.map(solve, range(b)))
        except BaseException:  # Ctrl-C above all: what has not begun need not
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    (primal, dual), (n_iter, status) = torch.from_numpy(ends), torch.from_numpy(work)
    gap = relative_gap(primal, dual)
    return coef, intercept, Certificate(primal, dual, gap, n_iter, status), scores
