"""What more a posterior may hold: curves that the evidence asks for, or does not rule out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bootprob.ensemble.uncertainty.column_sets import (
    ColumnSet,
    moderators,
    score_statistics,
    singles_and_pairs,
    telling_triples,
)
from bootprob.ensemble.uncertainty.composite_columns import Found
from bootprob.ensemble.uncertainty.composite_model import CURVED, Model, Rest
from bootprob.ensemble.uncertainty.curves import OF_ALL_COLUMNS, Curve
from bootprob.ensemble.uncertainty.expectation_propagation import Link, factor_of
from bootprob.ensemble.uncertainty.labelled_rows import LabelledRows
from bootprob.ensemble.uncertainty.link_tails import LOGIT
from bootprob.runtime.arrays import Floats
from bootprob_gpu.hardware.threads import one_core_for_each

__all__ = ["Added", "Additions"]

_MOST_SETS = 20  # of columns that are looked at
_NEAR_ODDS, _OF_STRAIGHT = 1.0, 1 / 4  # of a rest, beside curves without, and beside none
_MOST_NEAR, _LEAST_NEAR = 8, 0.03  # curves of a rest, and how probable each is at least
_LEAST_NEW = 1e-6  # of a term, that others do not say
_TINY = torch.finfo(torch.float64).tiny
_MOST_SAID = 10.0  # logits, of any row by a curve of a rest


class Added(NamedTuple):
    """A curve, the σ that is the best, and the logarithm of its odds."""

    log_odds: float
    curve: Curve
    scale: float


class Additions:
    """A posterior, and what the evidence gains if curves are added while its factors stay.

    With another link than the logit those of labels less likely than not have the information that
    was expected at least: they may have none, and a curve of their rows would gain without bound.

    Parameters
    ----------
    data : LabelledRows
    model : Model
    base : Found
        The posterior.
    found : dict of Curve to Added
        What `best` has said of it before; more is added.
    link : callable
        From what coefficients make, (n,), to the logits of the rows.
    n_threads : int
        That look at curves.
    """

    def __init__(
        self,
        data: LabelledRows,
        model: Model,
        base: Found,
        found: dict[Curve, Added],
        link: Link,
        n_threads: int = 1,
    ) -> None:
        self._n_threads = n_threads
        self._model, self._kernel, self._found = model, base.setting.kernel, found
        scales = model.unit(base.setting.tails) * np.array(CURVED)
        self._variances = torch.from_numpy(scales**2)
        self._seen = model.landmarks.seen(data.rows, OF_ALL_COLUMNS)
        which, precision = base.columns.of(base.setting)
        known = torch.cat([part for _, part in base.columns.blocks(which)])
        sites = base.found.sites.without(base.columns.missing(base.setting))
        self.logits = known @ base.found.mean
        self._residual = sites.shift - sites.precision * self.logits
        self._tau = sites.precision
        if base.setting.tails != LOGIT:
            against = ((1 - 2 * data.label) * link(self.logits)).exp().clamp_min(1.0)
            expected = self._residual.square() / (data.weight * against)
            self._tau = torch.maximum(self._tau, expected)
        weighted = (known * self._tau.unsqueeze(1)).T
        factor = factor_of(torch.diag(precision) + weighted @ known)
        self._reach = torch.linalg.solve_triangular(factor, weighted, upper=False)

    @cached_property
    def statistics(self) -> Tensor:
        """Of terms in one or two columns, from `score_statistics`."""
        bent = sorted({column for curve in self._kernel for column in curve.columns})
        known = self._seen, self._tau, self._residual, self._reach
        return score_statistics(*known, bent, self._n_threads)

    def scores_of(self, terms: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of coefficients of terms (n, k) at 0, and the information on each, (k,)."""
        reached = (self._reach @ terms).square().sum(0)
        whole = (terms.square() * self._tau.unsqueeze(1)).sum(0)
        return terms.mT @ self._residual, (whole - reached).clamp_min(_LEAST_NEW * whole + _TINY)

    @cached_property
    def triples(self) -> list[ColumnSet]:
        """From `telling_triples`."""
        known = self._seen, self._tau, self._residual, self._reach
        return telling_triples(*known, self.statistics, self._n_threads)

    def gains(self, curve: Curve) -> Floats:
        """Logarithm of the factor by which the evidence grows, for each σ of `CURVED`.

        With columns Φ of the curve, of unit variance, and residuals ``r = ν − W A m``:
        ``½ rᵀ Φ (M + σ⁻²)⁻¹ Φᵀ r − ½ log det(1 + σ² M)``, where M is
        ``Φᵀ W Φ − Φᵀ W A (Aᵀ W A + P)⁻¹ Aᵀ W Φ``; what its landmarks do not reach is left out.
        """
        phi = self._model.probes.values(curve, self._seen) @ self._model.probes.basis(curve)
        reached = self._reach @ phi
        matrix = phi.T @ (phi * self._tau.unsqueeze(1)) - reached.T @ reached
        variances = self._variances.to(phi.device)
        diagonals = variances.reciprocal().unsqueeze(1).expand(-1, len(matrix))
        factors = factor_of(matrix + torch.diag_embed(diagonals))  # quicker than eigenvalues
        scores = (phi.T @ self._residual).expand(len(variances), 1, -1).mT
        fitted = torch.linalg.solve_triangular(factors, scores, upper=False).square().sum((1, 2))
        log_determinants = 2 * factors.diagonal(dim1=1, dim2=2).log().sum(1)
        log_determinants += len(matrix) * variances.log()
        return ((fitted - log_determinants) / 2).cpu().numpy()

    def best(self, curve: Curve) -> Added:
        """With the σ that has most of the odds; prior odds of the columns are not in it."""
        if curve not in self._found:
            odds = self.gains(curve) + self._model.log_shares
            k = int(odds.argmax())
            self._found[curve] = Added(float(odds[k]), curve, float(CURVED[k]))
        return self._found[curve]

    def best_each(self, curves: Sequence[Curve]) -> list[Added]:
        """The same of several."""
        return one_core_for_each(self.best, curves, self._n_threads)

    def of_set(self, columns: ColumnSet) -> Added:
        """The best of the curves in a set of columns, with their prior odds."""
        every = map(self.best, self._model.among(columns, self._model.plain))
        best = max(every, key=lambda each: each.log_odds)
        prior = self._model.log_odds_beside(self._kernel, len(columns))
        return best._replace(log_odds=best.log_odds + prior)

    def of_sets(self, sets: Iterable[ColumnSet]) -> list[Added]:
        """The same of several."""
        return one_core_for_each(self.of_set, list(sets), self._n_threads)

    def likely(self) -> list[Added]:
        """The best curves in the columns, pairs and triples with the largest statistics."""
        pairs = singles_and_pairs(self.statistics)[:_MOST_SETS]
        found = self.of_sets(dict.fromkeys([*pairs, *self.triples, *moderators(self.statistics)]))
        return sorted(found, key=lambda each: -each.log_odds)

    def _largest_scale(self, curve: Curve) -> float:
        """The σ with which a curve says no more of any row than it may in a rest."""
        return float(_MOST_SAID / self._model.landmarks.diagonal(curve, self._seen).max().sqrt())

    def near(self) -> Rest | None:
        """Curves in few columns that are possible and too little to be sure of, if there are any.

        Each has its variance times its probability, as coefficients under a spike and a slab have
        (T. Mitchell, J. Beauchamp, J. Am. Stat. Assoc. 83 (1988) 1023–1032).
        """
        probable = [(1 / (1 + np.exp(-each.log_odds)), each) for each in self.likely()]
        kept = [(share, each) for share, each in probable if share > _LEAST_NEAR][:_MOST_NEAR]
        if not kept:
            return None
        scales = tuple(
            min(float(each.scale * np.sqrt(share)), self._largest_scale(each.curve))
            for share, each in kept
        )
        odds = _NEAR_ODDS if self._kernel else _OF_STRAIGHT
        return Rest(tuple(each.curve for _, each in kept), scales, float(np.log(odds)))
