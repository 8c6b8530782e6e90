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
from bootprob_gpu.hardware.threads import in_the_callers_mode, workers
from bootprob_gpu.interior_point.compiled import (
    BLOCK_NUMBERS,
    OVER_COLUMNS,
    OVER_ROWS,
    interior_point_path,
)
from bootprob_gpu.problem import Problem
from bootprob_gpu.solvers import Limits

__all__ = ["CompiledPaths"]

_BLOCK_NUMBERS = 2**24  # box bounds and scores in a block, if that is enough
_PATH_ARRAYS = 20  # arrays of shape (n,) that a path holds besides its rows


class CompiledPaths:
    """Solves paths of a problem of linear machines.

    What a replicate gets is the same to the last bit however replicates are put into blocks. Arrays
    of its own are part of that: the bits depend on where within a cache line an array begins.

    Parameters
    ----------
    problem : Problem
    columns : tuple of Tensor
        From `unit_columns`.
    penalty : ndarray, shape (B, p)
        What the squares of the coefficients of those columns weigh.

    Attributes
    ----------
    largest : int
        Replicates of a block at most.
    fixed_bytes, bytes_per_replicate : float
        Memory that is held whatever their number, and for each of them.
    """

    def __init__(
        self, problem: Problem, columns: tuple[Tensor, Tensor, Tensor], penalty: NDArray[np.float64]
    ) -> None:
        self._problem, self._columns, self._penalty = problem, columns, penalty
        (n, p), R, threads = problem.X.shape, problem.n_models, workers()
        self.largest = max(threads, min(8 * threads, _BLOCK_NUMBERS // (R * n)))
        self.fixed_bytes = 8 * threads * n * (p + 1 + _PATH_ARRAYS + 3 * R)
        # Box bounds, scores, and what is made of them; and labels.
        self.bytes_per_replicate = 8.0 * (3 * R * n + (0 if problem.shares_labels else n))
        self._threads, self._blas = threads, workspaces(self.largest)

    def solve(self, items: slice, limits: Limits) -> tuple[Tensor, Tensor, Certificate, Tensor]:
        """Solve the paths of some replicates.

        Parameters
        ----------
        items : slice
            The replicates.
        limits : Limits

        Returns
        -------
        coef : Tensor, shape (b, R, p)
        intercept : Tensor, shape (b, R)
        certificate : Certificate
            With tensors of that shape.
        scores : Tensor, shape (b, R, n)
        """
        y, upper = self._problem.y, self._problem.upper_of(items)
        X1, center, spread = self._columns
        (b, R, n), q = upper.shape, X1.shape[1]
        Q = -(-q // 4) * 4  # BLAS likes multiples of a vector's length
        penalty = np.ones((b, Q))
        penalty[:, : q - 1], penalty[:, q - 1] = self._penalty[items], 0.0
        coef, intercept = X1.new_empty(b, R, q - 1), X1.new_empty(b, R)
        scores = X1.new_empty(b, R, n)
        ends = np.zeros((2, b, R))  # primal and dual
        spent = np.zeros((2, b, R), dtype=np.int64)  # iterations, and status
        spent[1] = Status.SINGLE_CLASS

        def work(path: int) -> None:
            box, label = upper[path], y if y.ndim == 1 else y[items][path].astype(np.float64)
            w, inside = X1.new_zeros(R, q), box > 0
            positive, negative = box[:, label > 0].sum(1), box[:, label < 0].sum(1)
            single = (positive == 0) | (negative == 0)
            w.numpy()[single, -1] = np.sign(positive - negative)[single]
            both = np.flatnonzero(~single)
            # A row that one model of the path lacks has no interior there: they go one by one.
            together = len(both) > 0 and (inside[both] == inside[both[:1]]).all()
            for models in [both] if together else both[:, None]:
                rows = np.flatnonzero(inside[models].all(axis=0))
                m, k = len(rows), len(models)
                found, end, counts = np.zeros((k, q)), np.zeros((2, k)), np.zeros((2, k), np.int64)
                interior_point_path(
                    X1.numpy(), label, rows, np.ascontiguousarray(box[np.ix_(models, rows)]),
                    penalty[path], limits.tol, limits.max_iter, found, end[0], end[1], counts[0],
                    counts[1], np.zeros((Q, m)), np.empty((Q, Q)),
                    tuple(np.zeros((OVER_COLUMNS, Q))), tuple(np.empty((OVER_ROWS, m))),
                    np.empty(max(BLOCK_NUMBERS, 64 * Q)), np.empty(2), self._blas[path],
                )  # fmt: skip
                w.numpy()[models] = found
                ends[:, path, models], spent[:, path, models] = end, counts
            own = w[:, :-1] / spread
            coef[path], intercept[path] = own, w[:, -1] - own @ center
            scores[path] = w @ X1.T

        # Threads of a matrix product inside threads of a path would fight for the cores.
        with one_blas_thread, ThreadPoolExecutor(self._threads, "", one_openmp_thread) as pool:
            try:
                list(pool.map(in_the_callers_mode(work), range(b)))
            except BaseException:  # Ctrl-C above all: what has not begun need not
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        (primal, dual), (n_iter, status) = torch.from_numpy(ends), torch.from_numpy(spent)
        gap = relative_gap(primal, dual)
        return coef, intercept, Certificate(primal, dual, gap, n_iter, status), scores
