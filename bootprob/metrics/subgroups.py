"""Metrics, calibration and decisions of each subgroup of rows, with intervals for all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm

from bootprob.intervals import check_level
from bootprob.intervals.shares import effective_rows, exact_interval
from bootprob.metrics.decision_rates import predictive_values
from bootprob.metrics.intervals import MetricInterval, metric_intervals
from bootprob.metrics.metrics import METRICS
from bootprob.metrics.reliability import (
    check_rows,
    groups_of_rows,
    kept_decisions,
    kept_numbers,
    kept_rows,
)
from bootprob.metrics.subgroup_rows import subgroups_of_rows
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OF_SUBGROUPS", "Subgroup", "Subgroups", "subgroup_metrics"]

OF_SUBGROUPS = {
    "observed_share": ("Observed share", "Share of the rows that are positive."),
    "observed_over_expected": (
        "Observed over expected",
        "Positive rows over the sum of their stated probabilities: 1 where these are right on "
        "average, above 1 where they are too low.",
    ),
    "calibration_intercept": (
        "Calibration intercept",
        "What has to be added to the log-odds of all probabilities to make them right on average: "
        "0 where they are, above 0 where they are too low.",
    ),
    "selection_rate": ("Decided positive", "Share of the rows that are decided positive."),
    **METRICS,
    "ppv": (
        "Precision",
        "Share of the rows decided positive that are (positive predictive value).",
    ),
    "npv": ("Negative predictive value", "Share of the rows decided negative that are."),
}
"""Name of each number -> label and description, in the order of tables."""

_LARGE = float(np.log(2))  # on log-odds: what a subgroup should at least tell from nothing
_FARTHEST = 40.0  # log-odds beyond which an intercept has no bound
_CLOSEST = 1e-12


@dataclass(frozen=True)
class Subgroup:
    """What is known of the rows of one subgroup.

    Attributes
    ----------
    name : str
        Value that its rows share.
    n_rows, n_positive : int
        Rows with a probability, and the positive ones of them.
    stated : float
        Weighted mean of the probabilities.
    numbers : dict of str to MetricInterval
        Those of `OF_SUBGROUPS` that its rows allow: with rows of one class alone there are no
        metrics but shares. Bounds may be infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.metrics import subgroup_metrics
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.uniform(size=600), np.repeat(["a", "b"], 300)
    >>> found = subgroup_metrics(rng.uniform(size=600) < p, p, site)
    >>> found.subgroups[0].name, found.subgroups[0].n_rows, found.subgroups[0].too_small
    ('a', 300, False)
    """

    name: str
    n_rows: int
    n_positive: int
    stated: float
    numbers: dict[str, MetricInterval]

    @property
    def too_small(self) -> bool:
        """Whether so large a mistake could go unnoticed as true odds of half, or twice, the stated.

        That is where both lie within the interval of ``calibration_intercept``, ± log 2.
        """
        intercept = self.numbers["calibration_intercept"]
        return intercept.lower < -_LARGE and intercept.upper > _LARGE

    @property
    def miscalibrated(self) -> bool:
        """Whether the interval of ``observed_over_expected`` excludes 1."""
        ratio = self.numbers["observed_over_expected"]
        return not ratio.lower <= 1 <= ratio.upper


@dataclass(frozen=True)
class Subgroups:
    """All subgroups of some rows.

    Attributes
    ----------
    every : Subgroup
        All rows together, at the level itself.
    subgroups : list of Subgroup
        In sorted order.
    level : float
        With which the intervals of one number hold for all subgroups at once.
    level_of_each : float
        That of each interval, ``1 − (1 − level) / G`` of G subgroups (Bonferroni).
    n_left_out : int
        Rows without a probability.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.metrics import subgroup_metrics
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.uniform(size=600), np.repeat(["a", "b"], 300)
    >>> found = subgroup_metrics(rng.uniform(size=600) < p, p, site)
    >>> found.level_of_each
    0.975
    """

    every: Subgroup
    subgroups: list[Subgroup]
    level: float
    level_of_each: float
    n_left_out: int

    def to_frame(self) -> pd.DataFrame:
        """One row a subgroup, all rows first; bounds are columns ``..._lower``, ``..._upper``.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.metrics import subgroup_metrics
        >>> rng = np.random.default_rng(0)
        >>> p, site = rng.uniform(size=600), np.repeat(["a", "b"], 300)
        >>> found = subgroup_metrics(rng.uniform(size=600) < p, p, site)
        >>> found.to_frame().index.tolist()
        ['all', 'a', 'b']
        """
        import pandas as pd

        rows, shown = [], (self.every, *self.subgroups)
        for each in shown:
            row: dict[str, Any] = {
                "n_rows": each.n_rows,
                "n_positive": each.n_positive,
                "stated": each.stated,
            }
            for name in OF_SUBGROUPS:
                found = each.numbers.get(name)
                bounds = (found.value, found.lower, found.upper) if found else (np.nan,) * 3
                row |= dict(zip((name, f"{name}_lower", f"{name}_upper"), bounds, strict=True))
            row |= {"too_small": each.too_small, "miscalibrated": each.miscalibrated}
            rows.append(row)
        return pd.DataFrame(rows, index=[each.name for each in shown])


def subgroup_metrics(
    y: ArrayLike,
    p: ArrayLike,
    by: ArrayLike,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    *,
    decided: ArrayLike | None = None,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    seed: int = 0,
) -> Subgroups:
    """Measure probabilities and decisions in each subgroup of rows that took no part in training.

    Each number has an interval at ``1 − (1 − level) / G`` in each of G subgroups, so that with the
    stated confidence all G of them hold at once: the largest of many differences does not stand
    out by chance. Numbers of one subgroup are not corrected for each other.

    Parameters
    ----------
    y, p, weights, decided, ranks, groups, seed
        As in `bootprob.metrics.metric_intervals`.
    by : array_like, shape (n,)
        What tells the subgroups apart, such as a site or a sex; a column of more than 10 different
        numbers is cut at its quartiles, and rows without a value are a subgroup of their own. Rows
        without probability or weight tell none.
    level : float, default 0.95
        With which the intervals of one number hold in all subgroups at once.

    Returns
    -------
    Subgroups

    Raises
    ------
    DataError
        As in `bootprob.metrics.metric_intervals`, or for a `by` of one value, of more than 30, or
        of another length.

    Notes
    -----
    Observed over expected, ``Σ w y / Σ w p``, has Clopper and Pearson's interval of the share over
    the mean probability. The intercept a solves ``Σ w (y − expit(logit p + a)) = 0`` (D. R. Cox,
    Biometrika 45 (1958) 562–565, with the slope held at 1), and its interval inverts the score
    test, which has bounds where no row, or every row, is positive.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.uniform(size=600), np.repeat(["a", "b", "c"], 200)
    >>> y = rng.uniform(size=600) < np.where(site == "c", p**3, p)
    >>> found = subgroup_metrics(y, p, site)
    >>> [each.name for each in found.subgroups if each.miscalibrated]
    ['c']
    """
    level = check_level(level)
    labels, stated, mass, n_left_out = check_rows(y, p, weights)
    names, codes = subgroups_of_rows(by, kept_rows(p, weights))
    rows = _Rows(
        labels,
        stated,
        mass,
        stated > 0.5 if decided is None else kept_decisions(decided, p, weights),
        stated if ranks is None else kept_numbers("ranks", ranks, p, weights),
        groups_of_rows(groups, p, weights),
        seed,
    )
    present = np.unique(codes)  # between two quartiles there may be no row
    each = 1 - (1 - level) / len(present)
    return Subgroups(
        every=rows.measured("all", np.ones(len(labels), dtype=bool), level),
        subgroups=[rows.measured(names[k], codes == k, each) for k in present],
        level=level,
        level_of_each=each,
        n_left_out=n_left_out,
    )


@dataclass(frozen=True)
class _Rows:
    """Rows to be measured, of which each subgroup takes its own."""

    y: Floats
    p: Floats
    weights: Floats
    decided: NDArray[np.bool_]
    ranks: Floats
    groups: Groups | None
    seed: int

    def measured(self, name: str, members: NDArray[np.bool_], level: float) -> Subgroup:
        y, p, weights = (values[members] for values in (self.y, self.p, self.weights))
        decided = self.decided[members]
        groups = None if self.groups is None else self.groups[members]
        n, n_rows = len(y), effective_rows(weights, groups)
        stated = float(np.average(p, weights=weights))

        def of_share(values: NDArray[Any], over: float = 1.0) -> tuple[float, float, float]:
            share = float(np.average(values, weights=weights))
            lower, upper = exact_interval(min(share, 1.0), n_rows, level)
            return share / over, lower / over, upper / over

        found = {
            "observed_share": of_share(y),
            "observed_over_expected": of_share(y, max(stated, _CLOSEST)),
            "calibration_intercept": _intercept(y, p, weights, n_rows, level),
            "selection_rate": of_share(decided),
        }
        for key, rate in predictive_values(y == 1, decided, weights, level, groups).items():
            if rate is not None:
                found[key] = rate.value, rate.lower, rate.upper
        how = {"calibration_intercept": "score"}
        numbers = {
            key: MetricInterval(key, *OF_SUBGROUPS[key], *bounds, level, how.get(key, "exact"), n)
            for key, bounds in found.items()
        }
        if y.min() < y.max():
            alone = groups is not None and len(np.unique(groups)) == 1  # one subject: no variation
            if not alone:
                numbers |= metric_intervals(
                    y,
                    p,
                    weights,
                    level,
                    decided=decided,
                    ranks=self.ranks[members],
                    groups=groups,
                    seed=self.seed,
                )
        ordered = {key: numbers[key] for key in OF_SUBGROUPS if key in numbers}
        return Subgroup(name, n, int(y.sum()), stated, ordered)


def _intercept(
    y: Floats, p: Floats, weights: Floats, n_rows: float, level: float
) -> tuple[float, float, float]:
    """Calibration intercept and the interval of its score test; infinite where there is no bound.

    The variance is that of independent rows, times by how much these tell less.
    """
    z = float(norm.ppf((1 + level) / 2))
    eta = logit(p.clip(_CLOSEST, 1 - _CLOSEST))
    weights = weights / weights.max()
    observed = weights @ y
    less = effective_rows(weights) / n_rows

    def standardised(a: float) -> float:
        q, rest = expit(eta + a), expit(-eta - a)
        score = weights @ (y * rest - (1 - y) * q)
        return float(score / np.sqrt(less * (np.square(weights) @ (q * rest))))

    def crossing(at: float) -> float:
        if standardised(-_FARTHEST) <= at:
            return -np.inf
        if standardised(_FARTHEST) >= at:
            return np.inf
        return float(brentq(lambda a: standardised(a) - at, -_FARTHEST, _FARTHEST))

    if observed == 0:
        return -np.inf, -np.inf, crossing(-z)
    if observed >= weights.sum() * (1 - _CLOSEST):
        return np.inf, crossing(z), np.inf
    return crossing(0.0), crossing(z), crossing(-z)
