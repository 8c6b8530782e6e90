"""Which bounds each metric gets, and what takes their place where they have no width."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bootprob.intervals import percentile
from bootprob.intervals.shares import effective_rows, exact_interval
from bootprob.metrics.bounds import (
    auc_score_interval,
    bca,
    bca_or_student,
    concordance,
    unseen_share,
)
from bootprob.metrics.metrics import ROW_LOSSES, SHARE_OF
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, sums_of_groups

__all__ = ["ROUNDING", "MeasuredRows"]


# Misordered rows of a class, or groups with a mistake, from which the bootstrap knows how the AUC,
# or a share, varies.
_ENOUGH_MISORDERED = 5

ROUNDING = 1e-9
"""Of metrics: what varies by less does not vary."""


@dataclass(frozen=True)
class MeasuredRows:
    """Rows that metrics were computed from, and the level of their bounds.

    Attributes
    ----------
    y, p, weights : ndarray, shape (n,)
        Labels 0 and 1, probabilities and positive weights.
    decided : ndarray of bool, shape (n,)
        Whether each row is decided positive.
    ranks : ndarray, shape (n,)
        What orders the rows for the AUC.
    level : float
    groups : ndarray of int, shape (n,), optional
        Of rows that belong together; so many groups, and not rows, are what shares are of.
    """

    y: Floats
    p: Floats
    weights: Floats
    decided: NDArray[np.bool_]
    ranks: Floats
    level: float
    groups: Groups | None = None

    @cached_property
    def _n_rows(self) -> dict[str, float]:
        """Effective number of rows that each share is of."""
        rows = {name: members(self.y) for name, members in SHARE_OF.items()}
        codes = {name: None if self.groups is None else self.groups[m] for name, m in rows.items()}
        return {name: effective_rows(self.weights[m], codes[name]) for name, m in rows.items()}

    def interval(
        self, name: str, estimate: float, replicates: Floats, method: str
    ) -> tuple[float, float, str]:
        """Bounds of a metric other than the calibration error, and where they come from."""
        if method != "auto":
            lower, upper = self._resampled(name, estimate, replicates, method, self.level)
            if upper - lower > ROUNDING:
                return lower, upper, method
        if name == "auc":
            if self._few_misordered(estimate) or np.ptp(replicates) <= ROUNDING:
                of_class = self._n_rows["sensitivity"], self._n_rows["specificity"]
                return *auc_score_interval(estimate, *of_class, self.level), "score"
        elif name in SHARE_OF and (
            np.ptp(replicates) <= ROUNDING or not self._many_groups_mistaken(name)
        ):
            return *exact_interval(min(estimate, 1.0), self._n_rows[name], self.level), "exact"
        elif np.ptp(replicates) <= ROUNDING:
            return *self._all_alike(name, estimate), "unseen"
        n_units = effective_rows(self.weights, self.groups)
        influence = sums_of_groups(self._influence(name, estimate), self.groups)
        lower, upper, used = bca_or_student(estimate, replicates, influence, self.level, n_units)
        if name in ROW_LOSSES:
            upper += sum(self._unseen_mistakes(name, label) for label in (0, 1))
        return *_within_range(name, lower, upper), used

    def _resampled(
        self, name: str, estimate: float, replicates: Floats, method: str, level: float
    ) -> tuple[float, float]:
        """Bootstrap interval, cut where no metric can be."""
        if method == "bca":
            influence = sums_of_groups(self._influence(name, estimate), self.groups)
            lower, upper = bca(estimate, replicates, influence, level)
        else:
            lower, upper = map(float, percentile(replicates, level))
        if method == "basic":
            lower, upper = 2 * estimate - upper, 2 * estimate - lower
        return _within_range(name, lower, upper)

    def _influence(self, name: str, estimate: float) -> Floats:
        """What a little more weight on each row adds to a metric, in any unit, shape (n,)."""
        y, p, weights = self.y, self.p, self.weights
        if name == "auc":
            mass = np.where(y == 1, weights @ y, weights @ (1 - y))
            return weights * (concordance(y, self.ranks, weights) - estimate) / mass
        if name in ROW_LOSSES:
            return weights * (ROW_LOSSES[name](y, p) - estimate)
        return weights * SHARE_OF[name](y) * ((self.decided == y) - estimate)

    def _many_groups_mistaken(self, name: str) -> bool:
        """Whether rows of a share belong to groups, of which enough to resample hold a mistake."""
        wrong = SHARE_OF[name](self.y) & (self.decided != self.y)
        return self.groups is not None and self._units(wrong) >= _ENOUGH_MISORDERED

    def _few_misordered(self, auc: float) -> bool:
        """Whether a class has too few rows that are not on the right side of all of the other."""
        right = concordance(self.y, self.ranks, self.weights)
        off = (right if auc > 0.5 else 1 - right) < 1 - ROUNDING
        return min(self._units(off & (self.y == label)) for label in (0, 1)) < _ENOUGH_MISORDERED

    def _units(self, rows: NDArray[np.bool_]) -> int:
        """How many rows, or groups that hold one."""
        if self.groups is None:
            return int(np.count_nonzero(rows))
        return len(np.unique(self.groups[rows]))

    def _all_alike(self, name: str, estimate: float) -> tuple[float, float]:
        """Bounds of a loss that is the same in all rows; rows of another kind may be unseen."""
        n_rows = self._n_rows["accuracy"]
        share = unseen_share(n_rows, self.level)
        worst = max(ROW_LOSSES[name](1 - self.y, self.p).max(), estimate)
        # As sure as n rows can make: Laplace's rule of succession.
        worst = max(worst, 1.0 if name == "brier_score" else float(np.log(n_rows + 2)))
        return (1 - share) * estimate, (1 - share) * estimate + share * worst

    def _unseen_mistakes(self, name: str, label: int) -> float:
        """What a loss could gain by mistakes in a class that shows none.

        So many as this many rows cannot exclude, each as costly as a row of the class would be
        with the probability of a row that is decided otherwise.
        """
        rows, decided = self.y == label, self.decided
        if (decided[rows] != label).any():
            return 0.0
        loss, otherwise = ROW_LOSSES[name], decided != label
        p, weights = (self.p[otherwise], self.weights[otherwise]) if otherwise.any() else (0.5, 1.0)
        cost = np.average(loss(np.full(np.shape(p), label), p), weights=weights)
        cost -= np.average(loss(self.y[rows], self.p[rows]), weights=self.weights[rows])
        share = unseen_share(self._n_rows["sensitivity" if label else "specificity"], self.level)
        return float(share * cost * self.weights[rows].sum() / self.weights.sum())


def _within_range(name: str, lower: float, upper: float) -> tuple[float, float]:
    """Bounds cut where no metric can be."""
    return max(lower, 0.0), upper if name == "log_loss" else min(upper, 1.0)
