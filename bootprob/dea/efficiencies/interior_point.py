"""Best weights of many units at once: a batched interior point, on any device of torch.

Every unit has the same constraints, the rows of one table, and an objective and a normalisation of
its own: min c'w so that a'w = 1, G w ≤ 0, w ≥ 0. The method is Mehrotra's predictor and corrector
(S. Mehrotra, SIAM J. Optimization 2 (1992) 575–601) for all of them in step. The normal matrices
Σ_j (λ_j / s_j) g_j g_j' of all units are one product with the table of g_j g_j'.

Two things keep them well conditioned where the optimum is one point. At the optimum w itself is
all but a null vector of the normal matrix; as a'dw is known, ρ a a' is added to it. And a unit that
is efficient has λ = 1 on itself alone, which leaves all other directions without curvature; the
caller therefore leaves its own row out (`own`), and stops once the objective passes what the own
row would have allowed (`enough`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

__all__ = ["BatchedWeights", "solve_weights"]

_TARGET = 1e-10  # of gap and residuals
_ACCEPTED = 1e-9
_FEASIBLE = 1e-12
_MOST_ITERATIONS = 50
_BEGINNING = 1e3  # complementarity; a small one starts too near the boundary
_LEAST = 1e-13  # complementarity in all, below which steps are rounding
_TINY = 1e-300
_JITTER = 1e-15  # of a matrix with a diagonal of ones
_SHORT_OF_BOUNDARY = 0.995
_SHARED = {"rows", "products", "places", "signs"}  # by all units


@dataclass(frozen=True)
class BatchedWeights:
    """Solutions, one line for each unit.

    Attributes
    ----------
    weights : Tensor (U, s)
    multipliers : Tensor (U, A)
        λ of the rows.
    objective : Tensor (U,)
    solved : Tensor of bool (U,)
        To a relative gap and residuals of 1e-9, or good enough.
    enough : Tensor of bool (U,)
        Stopped before the optimum: the weights are feasible, and their objective is below
        what was asked for.
    """

    weights: Tensor
    multipliers: Tensor
    objective: Tensor
    solved: Tensor
    enough: Tensor


def solve_weights(
    rows: Tensor,
    normal: Tensor,
    cost: Tensor,
    signed: Tensor,
    *,
    own: Tensor | None = None,
    enough: float | None = None,
) -> BatchedWeights:
    """Solve min c'w so that a'w = 1, G w ≤ 0 and w ≥ 0, for every unit.

    Parameters
    ----------
    rows : Tensor (A, s)
        G, in double precision, its entries about 1.
    normal, cost : Tensor (U, s)
        a and c.
    signed : Tensor of bool (s,)
        Which w must not be negative; the others are free.
    own : Tensor of int64 (U,), optional
        A row that does not hold for the unit; A or more for none.
    enough : float, optional
        Stop a unit with feasible weights whose objective is below it.

    Returns
    -------
    BatchedWeights
        On the device of the arguments.
    """
    state = _State.begin(rows, normal, cost, signed, own)
    best = _Best.none(len(normal), rows)
    for _ in range(_MOST_ITERATIONS):
        error, stopped = state.judged(enough)
        best.keep(state, error, stopped)
        left = (state.mean * state.count)[:, 0]
        going = (best.error[state.unit] >= _TARGET) & (left >= _LEAST)  # not if that is NaN
        n_going = int(going.sum())
        if not n_going:
            break
        if n_going <= 0.7 * len(going):
            state = state.of(going)
            going = going[going]
        state.advance(going[:, None])
    return BatchedWeights(
        best.weights, best.multipliers, best.objective, best.error < _ACCEPTED, best.enough
    )


@dataclass
class _Best:
    """What each unit's smallest error was reached with."""

    weights: Tensor
    multipliers: Tensor
    objective: Tensor
    error: Tensor
    enough: Tensor

    @classmethod
    def none(cls, n_units: int, rows: Tensor) -> _Best:
        nothing = rows.new_full((n_units,), torch.inf)
        return cls(
            rows.new_zeros((n_units, rows.shape[1])), rows.new_zeros((n_units, len(rows))),
            rows.new_full((n_units,), torch.nan), nothing, torch.isnan(nothing),
        )  # fmt: skip

    def keep(self, state: _State, error: Tensor, stopped: Tensor) -> None:
        better = torch.nonzero((error < self.error[state.unit]) | stopped)[:, 0]
        at = state.unit[better]
        self.weights[at], self.multipliers[at] = state.w[better], state.lam[better]
        self.objective[at], self.error[at] = state.objective[better, 0], error[better]
        self.enough[at] = stopped[better]


@dataclass
class _State:
    """Iterates of the units that are going on, and what their steps are made of.

    Attributes
    ----------
    rows : Tensor (A, s)
    products : Tensor (A, s (s + 1) / 2)
        g_j g_j', upper triangles; `places` (s s,) unfolds them.
    signs : Tensor (s,)
        1.0 where w must not be negative.
    unit : Tensor of int64 (U,)
        Place among all units.
    a, c, scale : Tensor (U, s)
        `scale` is the size of a weight that matters, by the unit's own amounts.
    holds, size : Tensor (U, A)
        0.0 for the own row; size of a row's terms under the first weights.
    count : Tensor (U, 1)
        Of complementarity products.
    w, v : Tensor (U, s)
    slack, lam : Tensor (U, A)
    theta : Tensor (U, 1)
        Multiplier of the normalisation.
    """

    rows: Tensor
    products: Tensor
    places: Tensor
    signs: Tensor
    unit: Tensor
    a: Tensor
    c: Tensor
    scale: Tensor
    holds: Tensor
    size: Tensor
    count: Tensor
    w: Tensor
    v: Tensor
    slack: Tensor
    lam: Tensor
    theta: Tensor

    @classmethod
    def begin(
        cls, rows: Tensor, a: Tensor, c: Tensor, signed: Tensor, own: Tensor | None
    ) -> _State:
        n_rows, s = rows.shape
        upper = torch.triu_indices(s, s, device=rows.device)
        places = torch.empty((s, s), dtype=torch.long, device=rows.device)
        places[upper[0], upper[1]] = places[upper[1], upper[0]] = torch.arange(
            upper.shape[1], device=rows.device
        )
        signs = signed.to(rows.dtype)
        amount = a + c.abs()
        scale = 1 / torch.where(amount > 0, amount, rows.abs().amax(0).clamp(min=_TINY))
        w = scale * signs
        w = w / (w * a).sum(1, keepdim=True)
        size = w @ rows.abs().T
        slack = torch.maximum(-(w @ rows.T), 0.5 * size)
        holds = torch.ones_like(slack)
        if own is not None:
            known = own < n_rows
            holds[known, own[known]] = 0.0
        first = _BEGINNING / n_rows
        return cls(
            rows, rows[:, upper[0]] * rows[:, upper[1]], places.reshape(-1), signs,
            torch.arange(len(a), device=rows.device), a, c, scale, holds, size,
            holds.sum(1, keepdim=True) + signs.sum(), w, first / w.clamp(min=_TINY) * signs,
            slack, first / slack * holds, torch.ones_like(w[:, :1]),
        )  # fmt: skip

    def of(self, going: Tensor) -> _State:
        """The same of some units only."""
        return replace(self, **{k: v[going] for k, v in vars(self).items() if k not in _SHARED})

    @property
    def mean(self) -> Tensor:
        """Complementarity μ; (U, 1)."""
        in_all = (self.lam * self.slack).sum(1, keepdim=True)
        return (in_all + (self.v * self.w).sum(1, keepdim=True)) / self.count

    @property
    def objective(self) -> Tensor:
        """c'w; (U, 1)."""
        return (self.c * self.w).sum(1, keepdim=True)

    def _residuals(self) -> tuple[Tensor, Tensor, Tensor]:
        stationary = self.c + self.lam @ self.rows - self.v - self.theta * self.a
        feasible = (self.w @ self.rows.T + self.slack) * self.holds
        return stationary, feasible, (self.w * self.a).sum(1, keepdim=True) - 1

    def judged(self, enough: float | None) -> tuple[Tensor, Tensor]:
        """Largest of gap and residuals, and who has enough (its error is then zero); (U,) each."""
        stationary, feasible, normalised = self._residuals()
        gap = (self.objective - self.theta).abs() / self.objective.abs().clamp(min=1)
        off = torch.maximum((feasible.abs() / self.size).amax(1), normalised.abs()[:, 0])
        error = torch.maximum(
            torch.maximum(gap[:, 0], off), (stationary.abs() * self.scale).amax(1)
        )
        error = torch.where(torch.isfinite(error), error, torch.inf)
        if enough is None:
            return error, torch.zeros_like(error, dtype=torch.bool)
        stopped = (off < _FEASIBLE) & (self.objective[:, 0] < enough)
        return torch.where(stopped, 0.0, error), stopped

    def advance(self, going: Tensor) -> None:
        """One predictor and one corrector, of those that go on."""
        stationary, feasible, normalised = self._residuals()
        per_slack = 1 / self.slack
        per_weight = self.signs / torch.where(self.w > 0, self.w, 1.0)
        products = self.lam * self.slack, self.v * self.w
        mean = self.mean
        matrix = ((self.lam * per_slack) @ self.products)[:, self.places]
        matrix = matrix.reshape(*self.w.shape, -1)
        matrix.diagonal(dim1=1, dim2=2).add_(self.v * per_weight)
        diagonal = matrix.diagonal(dim1=1, dim2=2)
        rho = (diagonal * self.scale * self.scale).amax(1, keepdim=True)
        matrix = matrix + (rho * self.a)[:, :, None] * self.a[:, None, :]
        solve = _Factor.of(matrix)
        along = solve(self.a)
        curvature = (self.a * along).sum(1, keepdim=True)

        def direction(of_slack: Tensor, of_weight: Tensor) -> tuple[Tensor, ...]:
            right = of_weight * per_weight - stationary - rho * normalised * self.a
            right = right - ((of_slack + self.lam * feasible) * per_slack * self.holds) @ self.rows
            straight = solve(right)
            d_theta = (-normalised - (self.a * straight).sum(1, keepdim=True)) / curvature
            d_w = straight + along * d_theta
            d_slack = (-feasible - d_w @ self.rows.T) * self.holds
            d_lam = (of_slack - self.lam * d_slack) * per_slack * self.holds
            return d_w, d_slack, d_lam, (of_weight - self.v * d_w) * per_weight, d_theta

        def lengths(step: tuple[Tensor, ...], short_of: float) -> tuple[Tensor, Tensor]:
            d_w, d_slack, d_lam, d_v, _ = step
            primal = torch.maximum(_rate(self.slack, d_slack), _rate(self.w, d_w * self.signs))
            dual = torch.maximum(_rate(self.lam, d_lam), _rate(self.v, d_v))
            return short_of / primal.clamp(min=short_of), short_of / dual.clamp(min=short_of)

        step = direction(-products[0], -products[1])
        d_w, d_slack, d_lam, d_v, _ = step
        primal, dual = lengths(step, 1.0)
        predicted = ((self.lam + dual * d_lam) * (self.slack + primal * d_slack)).sum(1)
        predicted += ((self.v + dual * d_v) * (self.w + primal * d_w)).sum(1)
        reached = predicted[:, None] / self.count
        target = (reached / mean).clamp(0, 1) ** 3 * mean
        step = direction(
            (target - products[0] - d_lam * d_slack) * self.holds,
            (target - products[1] - d_v * d_w) * self.signs,
        )
        d_w, d_slack, d_lam, d_v, d_theta = step
        primal, dual = (
            torch.where(going, length, 0.0) for length in lengths(step, _SHORT_OF_BOUNDARY)
        )
        self.w, self.slack = self.w + primal * d_w, self.slack + primal * d_slack
        self.lam, self.v = self.lam + dual * d_lam, self.v + dual * d_v
        self.theta = self.theta + dual * d_theta


class _Factor:
    """Cholesky factors of matrices brought to a diagonal of ones, refined once."""

    def __init__(self, scaled: Tensor, scale: Tensor, lower: Tensor) -> None:
        self._scaled, self._scale, self._lower = scaled, scale, lower

    @classmethod
    def of(cls, matrix: Tensor) -> _Factor:
        scale = matrix.diagonal(dim1=1, dim2=2).clamp(min=_TINY).rsqrt()
        scaled = matrix * scale[:, :, None] * scale[:, None, :]
        damped = scaled.clone()
        damped.diagonal(dim1=1, dim2=2).add_(_JITTER)
        lower, failed = torch.linalg.cholesky_ex(damped)
        # What cannot be factorised is left where it is, and not taken for solved.
        lower = torch.where((failed > 0)[:, None, None], torch.inf, lower)
        return cls(scaled, scale, lower)

    def __call__(self, right: Tensor) -> Tensor:
        scaled = (right * self._scale)[:, :, None]
        found = torch.cholesky_solve(scaled, self._lower)
        found = found + torch.cholesky_solve(scaled - self._scaled @ found, self._lower)
        return found[:, :, 0] * self._scale


def _rate(values: Tensor, change: Tensor) -> Tensor:
    """1 over the longest step that keeps values from turning negative; (U, 1)."""
    positive = values > 0
    return torch.where(positive, -change / torch.where(positive, values, 1.0), 0.0).amax(
        1, keepdim=True
    )
