"""Paths of C solved all at once by SMO on any device: rows of weight, Gram matrices, scores."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bootprob_gpu.box_bounds import labels_on, upper_on, weighted_rows
from bootprob_gpu.certificate import Certificate, Status
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.problem import Problem
from bootprob_gpu.solvers import Limits

__all__ = ["BatchedPaths"]

# K (G, N, N), y (n,) or (P, n), upper (P, R, n) → dual_coef, intercept, certificate: `smo_fused`.
Solve = Callable[..., tuple[Tensor, Tensor, Certificate]]

_PATH_ARRAYS = 24  # tensors of shape (n,) that a path of a batch holds besides its box bounds


class BatchedPaths:
    """Solves paths of a problem, each on the rows of weight only.

    Where scales are shared, one Gram matrix of all rows for each γ serves all replicates, through
    an index of the rows that carry weight: reading a row so costs as much as reading all of it
    (of 8 neighbours in a sector of memory hardly one is missing), but a copy of the part for each
    replicate would be B times as much memory as may stay in a GPU's cache. Where every replicate
    has a scale of its own, its matrix is made of the products of its rows of weight with all rows.

    Parameters
    ----------
    problem : Problem
    rows : Tensor of float64, shape (n, p)
        Rows on the device; centred near 0 where the kernel ignores an offset.
    scale : Tensor of float64, shape (p,) or (B, p)
    kernel : KernelFunction
    shared : Tensor of float64, shape (grid, n, n), or None
        Gram matrices, where all replicates share their scale.
    rounded : bool
        Iterate with Gram matrices in float32: half the memory traffic. Models end, and are
        certified, by float64 ones all the same; those for which that does not work out are solved
        again with these.
    solve : callable
        `smo_fused` or `smo_batched`.
    """

    def __init__(
        self,
        problem: Problem,
        rows: Tensor,
        scale: Tensor,
        kernel: KernelFunction,
        shared: Tensor | None,
        *,
        rounded: bool,
        solve: Solve,
    ) -> None:
        self.problem, self.X, self.scale, self.kernel = problem, rows, scale, kernel
        self.rounded, self._solve = rounded, solve
        self.grid = kernel.n_values
        # The same for all blocks: what a replicate gets does not depend on its block.
        self.size = max(1, _most_rows(problem))
        self._shared = shared
        self._shared_rounded = shared.float() if shared is not None and rounded else None
        self._hardest = _middle_first(kernel.gamma) if kernel.gamma is not None else None

    @property
    def bytes_per_replicate(self) -> float:
        """Memory that a replicate takes, but for its box bounds and what comes of them."""
        n, p, m = *self.X.shape, self.size
        own_labels = 0 if self.problem.shares_labels else n
        needed = 8.0 * self.grid * (_PATH_ARRAYS * n + 2 * own_labels)
        if self._shared is None:
            needed += 8.0 * ((2 + 2 * self.grid) * m * n + 2 * n * p)
            needed += 4.0 * self.grid * m * m if self.rounded else 0.0
        return needed

    def solve(self, items: slice, limits: Limits) -> tuple[Tensor, Tensor, Certificate, Tensor]:
        """Solve the paths of some replicates.

        Parameters
        ----------
        items : slice
            The replicates.
        limits : Limits

        Returns
        -------
        dual_coef : Tensor, shape (b, grid, per_path, n)
        intercept : Tensor, shape (b, grid, per_path)
            For centred rows.
        certificate : Certificate
            With tensors of that shape.
        scores : Tensor, shape (b, grid, per_path, n)
            Of all rows.
        """
        device, grid, m = self.X.device, self.grid, self.size
        n = len(self.X)
        order = self._order(items) if m < n else None
        rows = None if order is None else order[:, :m]
        upper = upper_on(device, self.problem, items, rows).unflatten(1, (grid, -1))
        b, _, per_path, _ = upper.shape
        y = labels_on(device, self.problem, items, grid)
        path = torch.arange(b * grid, device=device)
        if rows is not None:
            rows = rows.repeat_interleave(grid, dim=0)
            y = y[rows] if y.ndim == 1 else y.gather(1, rows)
        if self._shared is not None:
            exact, rounded, matrix = self._shared, self._shared_rounded, path % grid
        else:
            exact, matrix = self._own(items, order), path
            rounded = exact[..., :m].float() if self.rounded else None
        own_rows = None if self._shared is None else rows
        dual_coef, intercept, certificate = self._solved(
            exact, rounded, y, upper.flatten(0, 1), matrix, own_rows, limits
        )
        if grid > 1:
            # What took long in these replicates will in the next ones.
            taken = certificate.n_iter.view(b, grid, per_path).sum(dim=(0, 2))
            self._hardest = taken.argsort(descending=True)
        products = None
        if self._shared is None:
            products = _spread(dual_coef @ exact, order, grid)
        if rows is not None:
            dual_coef = dual_coef.new_zeros(*dual_coef.shape[:2], n).scatter_(
                2, rows[:, None].expand_as(dual_coef), dual_coef
            )
        dual_coef = dual_coef.unflatten(0, (b, grid))
        if self._shared is not None:
            products = dual_coef.transpose(0, 1).flatten(1, 2) @ self._shared
            products = products.unflatten(1, (b, per_path)).transpose(0, 1)
        assert products is not None
        intercept = intercept.unflatten(0, (b, grid))
        scores = products.reshape(dual_coef.shape) + intercept.unsqueeze(-1)
        return dual_coef, intercept, certificate.view(b, grid, per_path), scores

    def _order(self, items: slice) -> Tensor:
        """All rows, those of weight first, shape (b, n)."""
        weighted = torch.from_numpy(weighted_rows(self.problem, items)).to(self.X.device)
        return (~weighted).to(torch.uint8).argsort(dim=1, stable=True)

    def _own(self, items: slice, order: Tensor | None) -> Tensor:
        """Kernels between the rows of weight and all rows in that order, (b · grid, m, n)."""
        rows = self.X if order is None else self.X[order]
        rows = rows / self.scale[items].unsqueeze(-2)
        return self.kernel.gram(rows[:, : self.size], rows).flatten(0, 1)

    def _solved(
        self,
        exact: Tensor,
        rounded: Tensor | None,
        y: Tensor,
        upper: Tensor,
        matrix: Tensor,
        rows: Tensor | None,
        limits: Limits,
    ) -> tuple[Tensor, Tensor, Certificate]:
        """Solve all paths; those that stall with rounded matrices, again with exact ones."""
        options = limits._asdict() | {"unit_diagonal": self.kernel.has_unit_diagonal}
        P, grid = len(upper), self.grid
        order = None
        if self._hardest is not None:
            order = (torch.arange(0, P, grid, device=upper.device) + self._hardest[:, None]).ravel()
        if rounded is None:
            return self._solve(exact, y, upper, matrix=matrix, rows=rows, order=order, **options)
        dual_coef, intercept, certificate = self._solve(
            rounded, y, upper, exact=exact, matrix=matrix, rows=rows, order=order, **options
        )
        lost = (certificate.status == Status.STALLED).any(1).nonzero().squeeze(1)
        if len(lost):
            before = certificate.n_iter[lost]
            dual_coef[lost], intercept[lost], again = self._solve(
                exact,
                y if y.ndim == 1 else y[lost],
                upper[lost],
                matrix=matrix[lost],
                rows=None if rows is None else rows[lost],
                **options,
            )
            certificate.put(lost, again)
            certificate.n_iter[lost] += before
        return dual_coef, intercept, certificate


def _most_rows(problem: Problem) -> int:
    """Most rows of weight that a replicate has."""
    B = problem.n_replicates
    step = B if problem.upper is None else 1  # explicit bounds may be larger than memory
    blocks = (weighted_rows(problem, slice(b, b + step)) for b in range(0, B, step))
    return max(int(block.sum(axis=1).max()) for block in blocks)


def _middle_first(gamma: Tensor) -> Tensor:
    """Indices of γ by distance from the middle of the grid.

    Between a kernel that is nearly linear and one that is nearly the identity, it takes SMO the
    most iterations: with the default grids two to four times as many as at the ends.
    """
    logarithm = gamma.log()
    return (logarithm - 0.5 * (logarithm.min() + logarithm.max())).abs().argsort(stable=True)


def _spread(products: Tensor, order: Tensor | None, grid: int) -> Tensor:
    """Columns (paths, R, n) that stand in the order of each replicate, put where they belong."""
    if order is None:
        return products
    places = order.repeat_interleave(grid, dim=0)[:, None].expand_as(products)
    return torch.empty_like(products).scatter_(2, places, products)
