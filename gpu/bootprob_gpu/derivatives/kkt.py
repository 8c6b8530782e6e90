"""Derivatives of the scores of support vector machines with respect to box bounds and γ.

With the free support vectors F, those at their bound U, ``s = y a`` and ``s_U = y_U u_U``, a
solution satisfies

``K_FF s_F + K_FU s_U + β 1 = y_F``,  ``Σ s = 0``,

and its scores are ``f(x) = Σ_i s_i k(x_i, x) + β``. As long as no row changes its set, which is
so at almost all ``u`` and γ, differentiating these linear equations gives the derivative:

- forward: ``[K_FF, 1; 1ᵀ, 0] [ds_F; dβ] = −[K_FU ds_U + dK_F s; Σ ds_U]`` with ``ds_U = y_U du_U``;
- reverse, of a loss L with ``g = dL/df`` and ``h = K(X, new) g``: one solve of
  ``[K_FF, 1; 1ᵀ, 0] [v; ν] = [h_F; Σ g]``, then ``dL/du_j = y_j (h_j − K_jF v − ν)`` for j in U and
  0 for all others, and ``dL/dγ = gᵀ (dK_new/dγ) s − vᵀ (dK_F/dγ) s``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bootprob_gpu.derivatives.active_sets import ActiveSets, find_active_sets
from bootprob_gpu.derivatives.kernel_products import GramProducts, KernelProducts, kernel_products
from bootprob_gpu.inputs import InputError
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.linear import Linear
from bootprob_gpu.kernels.rbf import Rbf
from bootprob_gpu.models import FittedBatch
from bootprob_gpu.problem import Problem
from bootprob_gpu.training import fit

__all__ = ["SolvedModels", "differentiable_scores", "solve_exactly"]

_AT_BOUND = 1e-9  # of a box: SMO leaves variables at their bounds there exactly
_LEAST_DISTANCE = 1e-7  # from a margin of 1, below which an interior point's say is rounding


@dataclass(frozen=True)
class SolvedModels:
    """B × R models solved to rounding, ready to be scored and differentiated.

    Attributes
    ----------
    sets : ActiveSets
        Solutions and sets, in groups of models that share a kernel matrix.
    """

    sets: ActiveSets
    _layout: _Layout
    _products: KernelProducts
    _y: Tensor
    _rows: Tensor
    _center: Tensor
    _scale: Tensor
    _kernel: KernelFunction
    _scored: dict[int, tuple[Tensor, int, KernelProducts]] = field(default_factory=dict, repr=False)

    @property
    def status(self) -> Tensor:
        """Values of `SetStatus`, shape (B, R)."""
        return self._layout.restore(self.sets.status)

    @property
    def violation(self) -> Tensor:
        """Largest violation of the KKT conditions, shape (B, R)."""
        return self._layout.restore(self.sets.violation)

    @property
    def dual_coef(self) -> Tensor:
        """``y_i a_i``, shape (B, R, n)."""
        return self._layout.restore(self.sets.dual_coef)

    @property
    def free(self) -> Tensor:
        """Which rows are free support vectors, shape (B, R, n)."""
        return self._layout.restore(self.sets.free)

    @property
    def at_bound(self) -> Tensor:
        """Which rows are support vectors at their bound, shape (B, R, n)."""
        return self._layout.restore(self.sets.at_bound)

    def scores(self, X: Tensor) -> Tensor:
        """Scores of rows (m, p) under the exact solutions, shape (B, R, m)."""
        scores = self._against(X).times(self.sets.dual_coef) + self.sets.intercept[..., None]
        return self._layout.restore(scores)

    def pullback(self, X: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor | None]:
        """Gradient of losses of the scores: a vector–Jacobian product, one solve for each.

        Parameters
        ----------
        X : Tensor, shape (m, p)
            The rows scored.
        cotangent : Tensor, shape (B, R, m) or (B, R, k, m)
            Derivative of a loss, or of k losses, with respect to each score.

        Returns
        -------
        d_upper : Tensor, shape (B, R, n) or (B, R, k, n)
            With respect to each box bound.
        d_gamma : Tensor, shape (B, R) or (B, R, k), or None
            With respect to γ of each model; None for a kernel without γ.
        """
        several, cotangent = cotangent.ndim == 4, cotangent.to(self._y)
        arranged = self._layout.arrange(cotangent if several else cotangent[:, :, None])
        against = self._against(X)
        d_upper, d_gamma = self._pull(against, arranged, _flat(against.adjoint, arranged))
        return self._restored(d_upper, several), self._restored(d_gamma, several)

    def derivatives(self, X: Tensor) -> tuple[Tensor, Tensor | None]:
        """Derivative of every score: `pullback` of m losses, which are the scores themselves.

        Parameters
        ----------
        X : Tensor, shape (m, p)

        Returns
        -------
        d_upper : Tensor, shape (B, R, m, n)
        d_gamma : Tensor, shape (B, R, m), or None
        """
        B, R = self.status.shape
        each = torch.eye(len(X), dtype=self._y.dtype, device=self._y.device)
        return self.pullback(X, each.expand(B, R, -1, -1))

    def pushforward(self, X: Tensor, d_upper: Tensor, d_gamma: Tensor | None = None) -> Tensor:
        """Change of the scores along a change of the bounds and of γ: a Jacobian–vector product.

        Parameters
        ----------
        X : Tensor, shape (m, p)
        d_upper : Tensor, shape (B, R, n)
        d_gamma : Tensor, shape (B, R), optional

        Returns
        -------
        Tensor, shape (B, R, m)
        """
        sets, against = self.sets, self._against(X)
        ds = sets.at_bound * self._y * self._layout.arrange(d_upper.to(self._y))
        change, total = self._products.times(ds), ds.sum(-1)
        if d_gamma is not None:
            rate = self._layout.arrange(d_gamma.to(self._y))[..., None]
            of_rows = self._with_gamma(self._products).times_derivative(sets.dual_coef)
            change = change + rate * of_rows
        free, beta = sets.system.solve(sets.system.gather(-change[:, :, None]), -total[..., None])
        ds = ds + sets.system.scatter(free)[:, :, 0]
        scores = against.times(ds) + beta
        if d_gamma is not None:
            scores = scores + rate * self._with_gamma(against).times_derivative(sets.dual_coef)
        return self._layout.restore(scores)

    def _pull(
        self, against: KernelProducts, cotangent: Tensor, h: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """`pullback` in groups, with k losses."""
        sets = self.sets
        v, nu = sets.system.solve_adjoint(sets.system.gather(h), cotangent.sum(-1))
        v = sets.system.scatter(v)
        y = self._y if self._y.ndim == 1 else self._y[:, :, None]
        rest = h - _flat(self._products.times, v) - nu[..., None]
        d_upper = torch.where(sets.at_bound[:, :, None], y * rest, 0.0)
        if self._kernel.gamma is None:
            return d_upper, None
        assert isinstance(against, GramProducts)
        of_new = against.times_derivative(sets.dual_coef)
        of_rows = self._with_gamma(self._products).times_derivative(sets.dual_coef)
        d_gamma = (cotangent @ of_new[..., None] - v @ of_rows[..., None])[..., 0]
        return d_upper, d_gamma

    def _restored(self, values: Any, several: bool) -> Any:
        if values is None:
            return None
        restored = self._layout.restore(values)
        return restored if several else restored[:, :, 0]

    def _against(self, X: Tensor) -> KernelProducts:
        if X.ndim != 2 or X.shape[1] != self._rows.shape[1]:
            raise InputError(
                f"Rows to score have shape {tuple(X.shape)}; the models know "
                f"{self._rows.shape[1]} columns."
            )
        # Rows scored are mostly differentiated next: their kernel is kept until others come.
        kept, version, products = self._scored.get(0, (None, -1, None))
        if kept is not X or version != X._version or products is None:
            new = X.to(self._rows) - self._center
            products = kernel_products(new, self._rows, self._scale, self._kernel)
            self._scored[0] = (X, X._version, products)
        return products

    def _with_gamma(self, products: KernelProducts) -> GramProducts:
        if not isinstance(products, GramProducts) or products.gamma is None:
            raise InputError(
                f"d_gamma was given, but the {self._kernel.name} kernel has no gamma; leave it out."
            )
        return products


def solve_exactly(fitted: FittedBatch, X: Tensor, y: Tensor, upper: Tensor) -> SolvedModels:
    """Find the sets of trained models and solve these to rounding.

    Parameters
    ----------
    fitted : FittedBatch
        Trained to any gap; the smaller, the fewer corrections.
    X : Tensor of float64, shape (n, p)
        The training rows.
    y : Tensor of float64, shape (n,) or (B, n)
        Labels, −1 or +1.
    upper : Tensor of float64, shape (B, R, n)
        The box bounds that the models were trained with.

    Returns
    -------
    SolvedModels
        Takes n × n numbers for every scale and γ, or the rows for every scale (linear).
    """
    B, R, n = upper.shape
    if tuple(fitted.intercept.shape) != (B, R) or len(X) != n or y.shape not in ((n,), (B, n)):
        raise InputError(
            f"upper has shape {tuple(upper.shape)}, X {tuple(X.shape)} and y {tuple(y.shape)}; "
            f"the models are (B, R) = {tuple(fitted.intercept.shape)}, over n rows."
        )
    device = fitted.intercept.device
    X, y, upper = (each.detach().to(device, torch.float64) for each in (X, y, upper))
    kernel = fitted.kernel
    center = X.mean(0) if kernel.ignores_offset else torch.zeros_like(X[0])
    rows = X - center
    scale = fitted.scale.to(torch.float64)
    layout = _Layout(B, kernel.n_values, scale.ndim == 1)
    scale = scale[None] if scale.ndim == 1 else scale
    of_models = y if y.ndim == 1 else y[:, None].expand(B, R, n)
    products = kernel_products(rows, rows, scale, kernel)
    if fitted.dual_coef is not None:
        a = of_models * fitted.dual_coef
        at_bound = a >= upper * (1 - _AT_BOUND)
        free = (a > upper * _AT_BOUND) & ~at_bound
        start = layout.arrange(fitted.dual_coef)
    else:
        assert fitted.coef is not None
        free, at_bound = _sets_of_margins(fitted, X, of_models, upper)
        start = None
    box, free, at_bound = (layout.arrange(each) for each in (upper, free, at_bound))
    y = y if y.ndim == 1 else layout.arrange(of_models)
    sets = find_active_sets(products, y, box, free, at_bound, start)
    return SolvedModels(sets, layout, products, y, rows, center, scale, kernel)


def differentiable_scores(
    X: Tensor,
    y: Tensor,
    upper: Tensor,
    new: Tensor,
    *,
    kernel: KernelFunction | None = None,
    gamma: Tensor | None = None,
    scale: Tensor | None = None,
    tol: float | None = None,
) -> tuple[Tensor, SolvedModels]:
    """Train models and score rows, with gradients for the box bounds and for γ.

    Parameters
    ----------
    X : Tensor, shape (n, p)
        Training rows; models are trained on their device.
    y : Tensor, shape (n,) or (B, n)
        Labels, −1 or +1; of all replicates, or of each its own.
    upper : Tensor of float64, shape (B, R, n)
        Box bounds, ``C · class cost · weight``; a row of bound 0 takes no part. May require grad.
    new : Tensor, shape (m, p)
        Rows to score.
    kernel : KernelFunction, optional
        Default: linear without `gamma`, RBF with it.
    gamma : Tensor of float64, shape () or (n_gamma,), optional
        In place of the kernel's γ. R is a multiple of n_gamma, models of one γ together. May
        require grad.
    scale : Tensor, shape (p,) or (B, p), optional
        As for `Problem`.
    tol : float, optional
        As for `fit`; the models are then solved to rounding.

    Returns
    -------
    scores : Tensor, shape (B, R, m)
        Differentiable once.
    models : SolvedModels
        Its `status` tells where a derivative is not to be trusted.

    Examples
    --------
    >>> X = torch.tensor([[0.0], [1.0], [2.0], [3.0]], dtype=torch.float64)
    >>> y = torch.tensor([-1.0, 1.0, -1.0, 1.0], dtype=torch.float64)
    >>> C = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    >>> scores, _ = differentiable_scores(X, y, C * torch.ones(1, 1, 4, dtype=C.dtype), X[:1])
    >>> scores.sum().backward()
    >>> bool(torch.isfinite(C.grad))
    True
    """
    B, R, _ = upper.shape
    grid = None if gamma is None else gamma.reshape(-1)
    if grid is not None:
        values = grid.detach().cpu().double()
        kernel = Rbf(values) if kernel is None else kernel.with_gamma(values)
    kernel = Linear() if kernel is None else kernel
    per_gamma = R // kernel.n_values
    problem = Problem(
        X.detach().cpu().numpy(),
        y.detach().cpu().numpy(),
        np.ones((B, len(X)), dtype=np.int64),
        np.ones(max(per_gamma, 1)),
        kernel=kernel,
        upper=upper.detach().cpu().double().numpy(),
        scale=None if scale is None else scale.detach().cpu().numpy(),
    )
    fitted = fit(problem, tol=tol, device=X.device)
    models = solve_exactly(fitted, X, y, upper)
    return _Scores.apply(upper, grid, new.detach(), models), models


class _Scores(torch.autograd.Function):
    """Scores of solved models, whose reverse derivative is `SolvedModels.pullback`."""

    @staticmethod
    def forward(
        ctx: Any, upper: Tensor, gamma: Tensor | None, new: Tensor, models: SolvedModels
    ) -> Tensor:
        ctx.models, ctx.new, ctx.dtype = models, new, upper.dtype
        ctx.n_gamma = 0 if gamma is None else len(gamma)
        return models.scores(new)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        d_upper, d_gamma = ctx.models.pullback(ctx.new, cotangents[0])
        d_upper = d_upper.to(ctx.dtype)
        if ctx.n_gamma == 0:  # not asked for
            return d_upper, None, None, None
        d_gamma = d_gamma.unflatten(1, (ctx.n_gamma, -1)).sum((0, 2))
        return d_upper, d_gamma, None, None


@dataclass(frozen=True)
class _Layout:
    """From (B, R, ...) to groups (G, M, ...) of models that share a kernel matrix, and back."""

    B: int
    n_gamma: int
    shares_scale: bool

    def arrange(self, values: Tensor) -> Tensor:
        values = values.unflatten(1, (self.n_gamma, -1))
        if self.shares_scale:
            return values.transpose(0, 1).flatten(1, 2)
        return values.flatten(0, 1)

    def restore(self, values: Tensor) -> Tensor:
        if self.shares_scale:
            return values.unflatten(1, (self.B, -1)).transpose(0, 1).flatten(1, 2)
        return values.unflatten(0, (self.B, self.n_gamma)).flatten(1, 2)


def _flat(product: Any, values: Tensor) -> Tensor:
    """A product of (G, M, k, ...) as if there were M · k models."""
    return product(values.flatten(1, 2)).unflatten(1, values.shape[1:3])


def _sets_of_margins(
    fitted: FittedBatch, X: Tensor, y: Tensor, upper: Tensor
) -> tuple[Tensor, Tensor]:
    """Sets of linear models from their margins, as near as the duality gap tells; (B, R, n).

    A gap of g keeps the margin of a free support vector within ``g / min(a, u − a)`` of 1. No more
    than p + 1 rows can be on the margin but for degeneracy, so the nearest are taken.
    """
    assert fitted.coef is not None
    slack = 1 - y * (fitted.coef @ X.T + fitted.intercept[..., None])
    gap = (fitted.gap * fitted.primal).to(X.device)[..., None]
    near = (10 * gap / upper.clamp_min(torch.finfo(upper.dtype).tiny)).clamp(_LEAST_DISTANCE, 0.1)
    distance = torch.where(upper > 0, slack.abs() / near, torch.inf)
    most = min(X.shape[1] + 1, len(X))
    limit = distance.kthvalue(most, dim=-1, keepdim=True).values.clamp_max(1.0)
    free = distance <= limit
    return free, (slack > 0) & ~free
