"""Paths of C solved by compiled SMO on the CPU: threads, scratch memory, Gram matrices."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob_gpu.certificate import Certificate, relative_gap
from bootprob_gpu.hardware.process_setting import one_blas_thread, one_openmp_thread
from bootprob_gpu.hardware.threads import workers
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.rbf import Rbf
from bootprob_gpu.smo.compiled import OVER_ROWS, smo_path
from bootprob_gpu.smo.compiled_gram import PADDING, scaled_grams
from bootprob_gpu.solvers import Limits

__all__ = ["CompiledPaths"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_PIECES = 4  # pieces of a block for each thread: the last ones to end should not be long
_GRAM_CELLS = 2**22  # entries of all Gram matrices that a piece holds, where each has its own


class _Scratch:
    """Memory of one thread, kept from path to path: new arrays each time would riddle the heap."""

    def __init__(self) -> None:
        self.part = self.products = self.values = np.empty(0)
        self.inverse = np.empty(0, dtype=np.float32)

    def make_room(self, m: int, n: int, *, products: bool, values: bool) -> None:
        """For m rows of weight among n."""
        if self.part.size < m * n:
            cells = min(n * n, m * n + m * n // 16)  # the next replicate may have a few more
            self.part, self.inverse = np.empty(cells), np.empty(cells, dtype=np.float32)
            self.products = np.empty(cells if products else 0)
            self.values = np.empty(cells if values else 0)


@dataclass
class _Job:
    """What all threads read, and what they fill in."""

    y: Floats  # (n,), or (b, n)
    upper: Floats  # (b, grid, per_path, n)
    scale: Floats  # (b, p), or (1, p)
    orders: Indices  # (b, n): the rows of weight first
    sizes: Indices  # (b,): how many these are
    limits: Limits  # a negative violation is never reached
    found: _Found


class CompiledPaths:
    """Solves paths on some rows with a kernel; one thread a path, on the rows of weight only.

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
    """

    def __init__(
        self, rows: Tensor, center: Tensor, kernel: KernelFunction, gram: Floats | None
    ) -> None:
        self.rows, self.X, self.center = rows, rows.numpy(), center
        self.kernel, self.gram = kernel, gram
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
        numbers = 12 + 8 * self._own_products + 8 * self._own_values
        return workers() * len(self.X) ** 2 * numbers

    @property
    def bytes_per_replicate(self) -> int:
        """Memory for a linear Gram matrix of a replicate's own, where it has one."""
        return 8 * (len(self.X) + PADDING) ** 2 if self._own_grams else 0

    def solve(
        self,
        y: Floats,
        upper: Floats,
        scale: Floats,
        limits: Limits,
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
        limits : Limits

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
            limits=limits._replace(kkt_tol=-1.0 if limits.kkt_tol is None else limits.kkt_tol),
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
        first, last = paths.start // self.grid, (paths.stop - 1) // self.grid
        scratch.make_room(
            int(job.sizes[first : last + 1].max()),
            len(self.X),
            products=self._own_products,
            values=self._own_values,
        )
        grams = self._grams(job, slice(first, last + 1)) if self._own_grams else None
        before, base, index, squares = -1, self.X, job.orders[0], np.empty(0)
        rows = products = self.X
        places = np.arange(len(self.X))  # columns of products stand in the order already
        gammas = [] if self.kernel.gamma is None else self.kernel.gamma.tolist()
        for path in paths:
            k, g = divmod(path, self.grid)
            if self.gram is not None:
                base, index = self.gram[g], job.orders[k]
            elif grams is not None:
                base, index = grams[k - first], np.arange(job.sizes[k])
            else:
                if k != before:
                    rows, products = self._products(job, k, scratch)
                    before, index = k, places
                    squares = np.einsum("ij,ij->i", rows, rows)
                base = products if self._on_demand else self._values(rows, products, g, scratch)
            m, c = int(job.sizes[k]), len(index)
            found = (each[path] for each in vars(job.found).values())
            smo_path(
                base, index, squares, gammas[g] if self._on_demand else None, job.orders[k],
                job.y if job.y.ndim == 1 else job.y[k], job.upper[k, g], *job.limits,
                scratch.part[: m * c].reshape(m, c), scratch.inverse[: m * m].reshape(m, m),
                np.zeros(m, dtype=np.bool_), tuple(np.zeros((OVER_ROWS, m))), np.zeros(c), *found,
            )  # fmt: skip
        if self.kernel.is_linear:  # one after the other: all rows are in the cache then
            for path in paths:
                self._move(job, path)

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
        out = scratch.products[: m * n].reshape(m, n)
        if self.kernel.needs_products:
            np.matmul(rows[:m], rows.T, out=out)
        return rows, out

    def _values(self, rows: Floats, products: Floats, g: int, scratch: _Scratch) -> Floats:
        """Kernel values of one γ from products."""
        of_g, seen = self.kernel.take(slice(g, g + 1)), torch.from_numpy(rows)
        if not of_g.needs_products:
            return of_g.gram(seen[: len(products)], seen)[0].numpy()
        values = scratch.values[: products.size].reshape(products.shape)
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
