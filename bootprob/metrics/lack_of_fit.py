"""Do intervals promise too much? Tests of what a fitted model's interval takes for granted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

from bootprob.metrics.forest_scores import forest_knows_more
from bootprob.metrics.repeated_rows import repeated_rows
from bootprob.metrics.residual_neighbours import residual_neighbours
from bootprob.metrics.score_tests import LinearLogit
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, one_of_each

__all__ = ["COLUMNS", "ENOUGH", "SHARES", "SIGNIFICANT", "ScoreNoise", "lack_of_fit"]


SIGNIFICANT = 0.01
"""p-value below which intervals warn."""

SHARES = {
    "repeated": 0.05, "unreliable": 0.05, "bends": 0.7, "link": 0.2, "trees": 0.4,
    "neighbours": 0.5,
}  # fmt: skip
"""Of the level, for each test: no model has tests whose shares are more than 1 together.

What explains the others comes first: repeated rows look like bends, and bends like another link.
"""

COLUMNS = ("column", "other_column", "third_column")
"""Of the term that stands out."""

ENOUGH = 400
"""Rows of two equally frequent classes that show most curves which matter.

Of known truths whose logits bend, the default's intervals of nominal 95 % covered .72 to .95 with
200 such rows and .92 to .96 with 500 (docs/adaptive.md), .79 to .94 with 300 (24 training sets).
"""

_LEAST = 1e-4  # p-values below it are extrapolated too far
_ROWS = {"neighbours": 1000, "bends": 2000, "trees": 1000}
_ROWS_PER_COLUMN = {"repeated": 5, "bends": 10}  # for a logistic regression on them
_RELIABLE = 0.75  # of scores where the columns could separate any labels


@dataclass(frozen=True)
class ScoreNoise:
    """What is known of the scores of a linear kernel.

    Attributes
    ----------
    reliability : float
        λ of `bootprob.ensemble.uncertainty.true_logit.TrueLogit`, at least one half.
    slope : float
        Of the sigmoid, in standard errors.
    """

    reliability: float
    slope: float

    def p_value(self, n: int, n_columns: int) -> float:
        """Of noise in the scores that intervals cannot make up for.

        λ on its floor says so, unless there is no signal at all, which the sigmoid's slope tells:
        its p-value counts. With as many columns as rows nothing tells; it is 0 then unless scores
        are reliable.
        """
        if n_columns >= n:
            return 0.0 if self.reliability < _RELIABLE else 1.0
        return float(norm.sf(self.slope)) if self.reliability <= 0.5 else 1.0


def lack_of_fit(
    rows: Floats,
    positive: NDArray[np.bool_],
    probability: Floats,
    weight: Floats,
    *,
    precomputed: bool = False,
    noise: ScoreNoise | None = None,
    groups: Groups | None = None,
    effects: Floats | None = None,
    of_interval: Floats | None = None,
) -> dict[str, float]:
    """Test what intervals take for granted: independent rows, and a truth within reach.

    Of all kernels: whether rows are repeated measurements (`repeated_rows`). Of a linear kernel:
    whether its scores are mostly noise (`ScoreNoise`), and, with ten rows a column, whether the
    logit bends, and the link (`LinearLogit`). Of others, and with fewer rows: whether out-of-bag
    residuals of neighbouring rows agree (`residual_neighbours`). Of the composite posterior:
    whether a forest knows more (`forest_knows_more`). Each has its share of the level
    (Bonferroni).

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        Standardised training rows.
    positive : ndarray of bool, shape (n,)
    probability : ndarray, shape (n,)
        Out-of-bag probabilities, NaN for a row never out of bag.
    weight : ndarray, shape (n,)
        Row weights; rows without weight, or without probability, are left out.
    precomputed : bool, default False
        Whether `rows` is the matrix of a kernel, (n, n), which has the distances between them.
    noise : ScoreNoise, optional
        Of a linear kernel; None for others.
    groups : ndarray of int, shape (n,), optional
        Of rows that belong together. The tests are of independent rows: of one a group.
    effects : ndarray, shape (n,), optional
        By how much rows of groups tell less than independent ones, as
        `bootprob.metrics.intraclass.design_effects` says.
    of_interval : ndarray, shape (n,), optional
        Probabilities of a composite posterior, each row left out. Those of one kernel are drawn
        to their mean where it is wide: a forest knows more than they say, not than their intervals.

    Returns
    -------
    dict
        "p_value" of all tests together (at least 0.0001; 1 for fewer than ten rows),
        "statistic" (the largest of the terms, or of the forms of neighbours, in standard
        deviations), "n_rows" that it is of, "informative_rows" (how many of two equally frequent
        classes would say as much, ``4 p (1 − p) (Σ w/d)² / Σ w²/d`` with design effects d), the
        p-value of each test that was made ("repeated", "unreliable", "bends", "link", "trees",
        "neighbours"), and "column", "other_column" and, where it has three, "third_column" of the
        term if one stands out.
    """
    stated, weighed = np.isfinite(probability), weight > 0
    known = np.flatnonzero(stated & one_of_each(weighed, groups))
    found = {"p_value": 1.0, "statistic": 0.0, "n_rows": float(len(known))}
    found["informative_rows"] = _informative(positive, weight, effects, stated & weighed)
    if len(known) < 10:
        return found
    n_columns = int(np.count_nonzero(np.ptp(rows[known], axis=0)))
    used = _evenly(known, _ROWS["bends"])
    rows_per_column = len(used) / n_columns if n_columns else 0.0
    fit = None
    if not precomputed:
        of_rows = probability
        both = 0 < np.count_nonzero(positive[used]) < len(used)
        if both and rows_per_column >= _ROWS_PER_COLUMN["repeated"]:
            fit = LinearLogit.fit(rows[used], positive[used], weight[used])
            of_rows = expit(fit.predict(rows))
        found["repeated"] = repeated_rows(rows[known], positive[known], of_rows[known])
    if noise is not None:
        found["unreliable"] = noise.p_value(len(known), n_columns)
    if fit is not None and noise is not None and rows_per_column >= _ROWS_PER_COLUMN["bends"]:
        bend = fit.bend()
        found |= {"bends": bend.p_value, "link": fit.link_p_value()}
        found |= dict(zip(COLUMNS, map(float, bend.columns), strict=False))
        statistic, n = bend.statistic, len(used)
    else:
        used = _evenly(known, _ROWS["neighbours"])
        found["neighbours"], statistic = residual_neighbours(
            rows[np.ix_(used, used)] if precomputed else rows[used],
            positive[used], probability[used], weight[used], precomputed=precomputed,
        )  # fmt: skip
        n = len(used)
    if of_interval is not None and not precomputed:
        used = _evenly(known, _ROWS["trees"])
        found["trees"], _ = forest_knows_more(
            rows[used], positive[used], of_interval[used], weight[used]
        )
    p_value = min(found[test] / share for test, share in SHARES.items() if test in found)
    return found | {
        "p_value": min(max(p_value, _LEAST), 1.0), "statistic": statistic, "n_rows": float(n)
    }  # fmt: skip


def _informative(
    positive: NDArray[np.bool_], weight: Floats, effects: Floats | None, known: NDArray[np.bool_]
) -> float:
    if not known.any():
        return 0.0
    positive, weight = positive[known], weight[known]
    told = weight if effects is None else weight / effects[known]
    share = float(told @ positive / told.sum())
    return float(4 * share * (1 - share) * told.sum() ** 2 / (told @ weight))


def _evenly(known: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    if len(known) <= most:
        return known
    return known[np.linspace(0, len(known) - 1, most).astype(np.intp)]
