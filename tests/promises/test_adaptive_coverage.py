"""Does the default's interval contain the true probability, whatever the shape of the truth?

`BootstrapSVC()` knows nothing of the truths of the bank. Its intervals are a posterior's, which the
number of bootstrap samples does not move.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from bootprob import BootstrapSVC
from bootprob.exceptions import FewRowsWarning, LackOfFitWarning
from docs.studies.coverage.known_truths import BANK, BENT
from docs.studies.coverage.other_intervals import NEW_ROWS, training_sets

_WARNINGS = (FewRowsWarning, LackOfFitWarning)
EVERY = (*BANK, *BENT)
TRIALS, BOOTSTRAPS, LEVEL, TENTHS = 60, 20, 0.95, 10
NOT_KEPT = pytest.mark.xfail(
    reason="A logit that bends a little, or in many directions, looks straight in 500 rows.",
    raises=AssertionError,
    strict=True,
)
WIDER = pytest.mark.xfail(
    reason="With 2,000 rows these straight truths have 1.18 and 1.19 of the limit's width.",
    raises=AssertionError,
    strict=False,  # by a hair
)
UNWARNED = pytest.mark.xfail(
    reason="Of 2,000 rows of subjects measured with noise half the tables short are warned of.",
    raises=AssertionError,
    strict=True,
)
DRAWN_TOGETHER = pytest.mark.xfail(
    reason="Squares and products of components are thought alike likely, and one of them counts.",
    raises=AssertionError,
    strict=False,  # by a hair
)
NOT_ALWAYS_SEEN = pytest.mark.xfail(
    reason="Some tables of 500 rows look as if their logit were as steep for all rows.",
    raises=AssertionError,
    strict=False,  # by a hair
)
LOOK_STRAIGHT = ("a jump between grades", "Friedman's function")
SHORT_OF_2000 = {
    "uneven scales": WIDER,
    "strong signal": WIDER,
    "five rows a subject, measured with noise": UNWARNED,
}


def _marks(truth, n):
    if truth.name == "noise that grows with a column":
        return NOT_ALWAYS_SEEN
    if truth.family == "weak bends" or truth.name in LOOK_STRAIGHT:
        return NOT_KEPT
    if truth.name == "a bend where such columns differ":
        return DRAWN_TOGETHER
    return SHORT_OF_2000.get(truth.name, ()) if n == 2000 else ()


NUMBERED = [
    pytest.param(k, n, marks=_marks(each, n))
    for n in (2000, 500, 200)
    for k, each in enumerate(EVERY)
    if n in each.sizes
]


@pytest.mark.parametrize(("number", "n"), NUMBERED, ids=lambda each: str(each))
def test_adaptive_coverage(number, n, record):
    truth = replace(EVERY[number], n=n)
    trues, covered, widths, limits, warned = [], [], [], [], []
    for trial, X, y, new in islice(training_sets(truth), TRIALS):
        model = BootstrapSVC(n_bootstraps=BOOTSTRAPS, random_state=trial).fit(X, y)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lower, upper = model.proba_interval(new, LEVEL)[:, 1].T
        p = truth.probability(new)
        trues.append(p)
        covered.append((lower <= p) & (p <= upper))
        widths.append((upper - lower).mean())
        limits.append(np.diff(truth.limit(X, y, new, LEVEL)).mean())
        warned.append(any(issubclass(each.category, _WARNINGS) for each in caught))
    trues, covered = np.array(trues), np.array(covered)
    edges = np.quantile(trues, np.linspace(0, 1, TENTHS + 1))
    tenth = np.clip(np.searchsorted(edges, trues, side="right") - 1, 0, TENTHS - 1)
    of_sets = covered.mean(axis=1)
    coverage, error = float(of_sets.mean()), float(of_sets.std(ddof=1) / np.sqrt(len(of_sets)))
    ratio = float(np.mean(widths) / np.mean(limits))
    short = of_sets < 0.9
    record(
        f"adaptive_coverage_{number}_{n}",
        {
            "truth": truth.name,
            "family": truth.family,
            "smooth": truth.smooth,
            "linear": truth.linear,
            "n": n,
            "training sets": len(covered),
            "new rows of each": NEW_ROWS,
            "bootstraps": BOOTSTRAPS,
            "coverage": round(coverage, 4),
            "standard error of the coverage": round(error, 4),
            "coverage in tenths of the true probability": [
                round(float(covered[tenth == k].mean()), 3) if (tenth == k).any() else None
                for k in range(TENTHS)
            ],
            "mean width": round(float(np.mean(widths)), 4),
            "mean width of the true model's limit": round(float(np.mean(limits)), 4),
            "width over the limit's": round(ratio, 3),
            "share of training sets that warned": round(float(np.mean(warned)), 3),
            "share of sets covered less than 90 % that warned": (
                round(float(np.mean(np.array(warned)[short])), 3) if short.any() else None
            ),
        },
    )
    luck, independent = 3 * error, truth.family != "clustered rows"
    if truth.smooth and independent and n >= 500:
        assert coverage >= 0.93 - luck
        if truth.linear and ratio > 1.15 and truth.family == "more columns than rows":
            pytest.xfail("Of hundreds of columns the limit knows the five that count.")
        if truth.linear:
            assert ratio <= 1.15
    elif not (truth.smooth and independent):
        assert coverage >= 0.90 - luck or np.mean(np.array(warned)[short]) >= 0.95
