"""Paths of C solved by compiled SMO on the CPU: threads, scratch memory, Gram matrices."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from bootprob_gpu.certificate import Certificate, relative_gap
from bootprob_gpu.hardware.process_setting import one_blas_thread, one_openmp_thread
from bootprob_gpu.hardware.threads import workers
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.rbf import Rbf
from bootprob_gpu.smo.compiled import OVER_ROWS, smo_path
from bootprob_gpu.smo.compiled_descent import MIN_CURVATURE, STEEPEST
from bootprob_gpu.smo.compiled_gram import PADDING, scaled_grams
from bootprob_gpu.solvers import Limits

__all__ = ["CompiledPaths"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
# Rows, inverse curvatures, and which are there.
_Gram = tuple[Floats, NDArray[np.float32], NDArray[np.bool_]]

_FEW = 2  # rows by those that steps may be taken among alone
_PIECES = 4  # pieces of a block for each thread: the last ones to end should not be long
_NONE: Floats = np.empty(0)
_GRAM_CELLS = 2**22  # entries of all Gram matrices that a piece holds, where each has its own


class _Scratch:
    """Memory of one thread, kept from path to path: new arrays each time would riddle the heap."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, int], dtype: DTypeLike = np.float64) -> Any:
        """Room for an array; what was last there is in it."""
        cells = math.prod(shape)
        if name not in self._kept or self._kept[name].size < cells:
            # The next replicate may have a few more rows.
            self._kept[name] = np.empty(cells + cells // 16, dtype)
        return self._kept[name][:cells].reshape(shape)

    def gram(self, m: int, c: int) -> _Gram:
        """Room for m rows of a Gram matrix, none of which is there."""
        inverse = self.array("inverse", (m, m), np.float32)
        return self.array("gram", (m, c)), inverse, np.zeros(m, dtype=np.bool_)

    def of_few(self, m: int) -> tuple[Floats, NDArray[np.float32]]:
        """Room for the Gram matrix of few of m rows, and for inverse curvatures."""
        shape = (m // _FEW, m // _FEW)
        return self.array("few", shape), self.array("inverse of few", shape, np.float32)


def _inverse_curvatures(gram: Floats) -> NDArray[np.float32]:
    """Of all pairs of rows, as `fetch_row` makes them."""
    diagonal = gram.diagonal()
    curvature = diagonal[:, None] + diagonal - 2 * gram
    unit = max(diagonal.max(), MIN_CURVATURE)
    return np.minimum(unit / np.maximum(curvature, MIN_CURVATURE), STEEPEST).astype(np.float32)


@dataclass
class _Job:
    """What all threads read, and what they fill in."""

    y: Floats  # (n,), or (b, n)
    upper: Floats  # (b, grid, per_path, n)
    scale: Floats  # (b, p), or (1, p)
    orders: Indices  # (b, n): the rows of weight first
    sizes: Indices  # (b,): how many these are
    found: _Found


class CompiledPaths:
    """Solves paths on some rows with a kernel; one thread a path.

    On the rows of weight only, but where each path is one model and replicates share Gram matrices:
    those are read as they are, if half of the rows or more have weight.

    Parameters
    ----------
    rows : Tensor, shape (n, p)
        Less the centre.
    center : Tensor, shape (p,)
        Near the rows where the kernel ignores an offset, else 0.
    kernel : KernelFunction
        On the CPU.
    gram : ndarray, shape (grid, n, n), optional
        Gram matrices, where all replicates share their scale.
    per_path : int
        Models of a path.
    limits : Limits
    """

    def __init__(
        self,
        rows: Tensor,
        center: Tensor,
        kernel: KernelFunction,
        gram: Floats | None,
        per_path: int,
        limits: Limits,
    ) -> None:
        self.rows, self.X, self.center = rows, rows.numpy(), center
        self.kernel, self.gram, self.limits = kernel, gram, limits
        # A path of many values of C takes so many steps that a Gram matrix of the rows of weight
        # alone is worth its making.
        whole = () if gram is None or per_path > 1 else gram
        self._inverse = [_inverse_curvatures(each) for each in whole]
        self.grid = kernel.n_values
        self._own_grams = gram is None and kernel.is_linear
        self._own_products = gram is None and not kernel.is_linear
        # The compiled loop makes a row of RBF kernels when it needs it, and knows no others.
        self._on_demand = self._own_products and type(kernel) is Rbf
        self._own_values = self._own_products and not self._on_demand
        self._scratch = SimpleQueue[_Scratch]()
        for _ in range(workers()):
            self._scratch.put(_Scratch())

    @property
    def fixed_bytes(self) -> int:
        """Memory that is held whatever the number of paths."""
        numbers = 12 + 12 / _FEW**2 + 8 * self._own_products + 8 * self._own_values
        return int((workers() * numbers + 4 * len(self._inverse)) * len(self.X) ** 2)

    @property
    def bytes_per_replicate(self) -> int:
        """Memory for a linear Gram matrix of a replicate's own, where it has one."""
        return 8 * (len(self.X) + PADDING) ** 2 if self._own_grams else 0

    def solve(
        self,
        y: Floats,
        upper: Floats,
        scale: Floats,
    ) -> tuple[Tensor, Tensor, Certificate, Tensor]:
        """Solve the paths of some replicates.

        Parameters
        ----------
        y : ndarray, shape (n,) or (b, n)
            Labels, −1 or +1; of all replicates, or of each its own.
        upper : ndarray, shape (b, grid, per_path, n)
            Box bounds.
        scale : ndarray, shape (b, p), or (1, p) for all
            What each replicate divides the columns by.

        Returns
        -------
        dual_coef : Tensor, shape (b, grid, per_path, n)
        intercept : Tensor, shape (b, grid, per_path)
        certificate : Certificate
            With tensors of that shape.
        scores : Tensor, shape (b, grid, per_path, n)
            Of the training rows.
        """
        b, _, per_path, n = upper.shape
        weighted = upper.any(axis=(1, 2))
        found = _Found.empty((b * self.grid, per_path), n)
        job = _Job(
            y=y,
            upper=upper,
            scale=scale,
            orders=np.argsort(~weighted, axis=1, kind="stable"),
            sizes=weighted.sum(axis=1),
            found=found,
        )

        def work(paths: range) -> None:
            scratch = self._scratch.get()
            try:
                self._work(job, paths, scratch)
            finally:
                self._scratch.put(scratch)

        size = -(-len(found.status) // (_PIECES * workers()))
        if self._own_grams:
            size = max(1, min(size, _GRAM_CELLS // (n + PADDING) ** 2))
        stops = range(size, len(found.status) + size, size)
        pieces = [range(stop - size, min(stop, len(found.status))) for stop in stops]
        # Threads of a matrix product inside threads of a path would fight for the cores.
        linear = self.kernel.is_linear
        alone = one_blas_thread if self._own_products or linear else nullcontext()
        prepare = one_openmp_thread if self._own_values or linear else None
        with alone, ThreadPoolExecutor(workers(), initializer=prepare) as pool:
            try:
                list(pool.map(work, pieces))
            except BaseException:  # Ctrl-C above all: what has not begun need not
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return found.tensors(upper.shape)

    def _work(self, job: _Job, paths: range, scratch: _Scratch) -> None:
        """Solve consecutive paths in this thread."""
        if self.gram is not None:
            self._with_shared_grams(job, paths, scratch, self.gram)
        else:
            self._with_own_grams(job, paths, scratch)
        if self.kernel.is_linear:  # one after the other: all rows are in the cache then
            for path in paths:
                self._move(job, path)

    def _with_shared_grams(self, job: _Job, paths: range, scratch: _Scratch, grams: Floats) -> None:
        """Solve paths, of one matrix after the other: the cache does not hold them all."""
        n, every = len(self.X), np.arange(len(self.X))
        for path in paths:
            g, k = divmod(path, len(job.sizes))
            m, order = int(job.sizes[k]), job.orders[k]
            if self._inverse and m >= n // _FEW:  # all rows, and no time for making any
                there = (grams[g], self._inverse[g], np.ones(n, dtype=np.bool_))
                self._solve(job, (k, g), scratch, grams[g], every, every, there)
            else:
                self._solve(job, (k, g), scratch, grams[g], order, order, scratch.gram(m, n))

    def _with_own_grams(self, job: _Job, paths: range, scratch: _Scratch) -> None:
        """Solve paths, of one replicate after the other."""
        first, last = paths.start // self.grid, (paths.stop - 1) // self.grid
        grams = self._grams(job, slice(first, last + 1)) if self._own_grams else None
        before, rows, products, squares = -1, self.X, self.X, np.empty(0)
        places = np.arange(len(self.X))  # columns of products stand in the order already
        gammas = [] if self.kernel.gamma is None else self.kernel.gamma.tolist()
        for path in paths:
            k, g = divmod(path, self.grid)
            m, index, order, gamma = int(job.sizes[k]), places, job.orders[k], None
            if grams is not None:
                base, index = grams[k - first], places[:m]
            else:
                if k != before:
                    rows, products = self._products(job, k, scratch)
                    before, squares = k, np.einsum("ij,ij->i", rows, rows)
                if self._on_demand:
                    base, gamma = products, gammas[g]
                else:
                    base = self._values(rows, products, g, scratch)
            room = scratch.gram(m, len(index))
            self._solve(job, (k, g), scratch, base, index, order, room, squares, gamma)

    def _solve(
        self,
        job: _Job,
        path: tuple[int, int],
        scratch: _Scratch,
        base: Floats,
        index: Indices,
        order: Indices,
        rows: _Gram,
        squares: Floats = _NONE,
        gamma: float | None = None,
    ) -> None:
        """Solve a path, of a replicate and a kernel; see `smo_path`."""
        (m, c), (k, g) = rows[0].shape, path
        found = (each[k * self.grid + g] for each in vars(job.found).values())
        tol, kkt_tol, max_iter = self.limits
        smo_path(
            base, index, squares, gamma, order, job.y if job.y.ndim == 1 else job.y[k],
            job.upper[k, g], tol, -1.0 if kkt_tol is None else kkt_tol, max_iter, *rows,
            *scratch.of_few(m), tuple(np.zeros((OVER_ROWS, m))), np.zeros(c), *found,
        )  # fmt: skip

    def _move(self, job: _Job, k: int) -> None:
        """Move intercepts of linear models to the rows' own coordinates; score all rows.

        Replicate by replicate, so that the last bits are the same however they are put into blocks.
        """
        # A copy: bits depend on where in memory it begins.
        own = torch.from_numpy(job.found.dual_coef[k]).clone()
        intercept = torch.from_numpy(job.found.intercept[k])
        # Its square may be too small for a number.
        divisor = torch.from_numpy(job.scale[k if len(job.scale) > 1 else 0])
        if self._own_grams:  # made for the rows of weight alone
            # Where no bound is touched all models of larger C are the same: most of the work.
            new = torch.ones(len(own), dtype=torch.bool, device="cpu")
            new[1:] = (own[1:] != own[:-1]).any(-1)
            coef = (own[new] @ self.rows).div_(divisor).div_(divisor)
            scores = (coef @ self.rows.T)[new.cumsum(0) - 1] + intercept[:, None]
            job.found.scores[k] = scores.numpy()
        intercept -= own @ (self.rows @ (self.center / divisor).div_(divisor))

    def _grams(self, job: _Job, replicates: slice) -> Floats:
        """Linear Gram matrices of the rows of weight of some replicates."""
        sizes = job.sizes[replicates]
        grams = np.empty((len(sizes), *(2 * [int(sizes.max()) + PADDING])))
        inverse = 1 / np.maximum(job.scale[replicates], 1e-300)  # subnormals have no reciprocal
        scaled_grams(self.X, inverse, job.orders[replicates], sizes, grams)
        return grams

    def _products(self, job: _Job, k: int, scratch: _Scratch) -> tuple[Floats, Floats]:
        """All rows as a replicate sees them, and products of those of weight with all."""
        m, n = int(job.sizes[k]), len(self.X)
        rows = self.X[job.orders[k]] / job.scale[k]
        out: Floats = scratch.array("products", (m, n))
        if self.kernel.needs_products:
            np.matmul(rows[:m], rows.T, out=out)
        return rows, out

    def _values(self, rows: Floats, products: Floats, g: int, scratch: _Scratch) -> Floats:
        """Kernel values of one γ from products."""
        of_g, seen = self.kernel.take(slice(g, g + 1)), torch.from_numpy(rows)
        if not of_g.needs_products:
            return of_g.gram(seen[: len(products)], seen)[0].numpy()
        values: Floats = scratch.array("values", products.shape)
        values[:] = products
        return of_g.of_products(torch.from_numpy(values), seen[: len(values)], seen)[0].numpy()


@dataclass
class _Found:
    """Room for solutions, in the order of `smo_path`; first dimensions (paths, per_path)."""

    dual_coef: Floats
    intercept: Floats
    scores: Floats
    primal: Floats
    dual: Floats
    n_iter: NDArray[np.int64]
    status: NDArray[np.int64]

    @classmethod
    def empty(cls, shape: tuple[int, int], n: int) -> _Found:
        """To be filled in, path by path."""
        return cls(
            dual_coef=np.zeros((*shape, n)),
            scores=np.zeros((*shape, n)),
            intercept=np.zeros(shape),
            primal=np.zeros(shape),
            dual=np.zeros(shape),
            n_iter=np.zeros(shape, dtype=np.int64),
            status=np.zeros(shape, dtype=np.int64),
        )

    def tensors(self, shape: tuple[int, ...]) -> tuple[Tensor, Tensor, Certificate, Tensor]:
        """Of the shape given, where that ends in rows."""
        names = ("primal", "dual", "n_iter", "status")
        primal, dual, n_iter, status = (
            torch.from_numpy(getattr(self, name)).view(shape[:-1]) for name in names
        )
        return (
            torch.from_numpy(self.dual_coef).view(shape),
            torch.from_numpy(self.intercept).view(shape[:-1]),
            Certificate(primal, dual, relative_gap(primal, dual), n_iter, status),
            torch.from_numpy(self.scores).view(shape),
        )
