"""Do intervals of contributions contain what each column contributes to the true log-odds?

True contributions are those of the truth's own log-odds, with all coalitions and the same
background rows; those of columns that bear on nothing are 0.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from scipy.special import logit, softmax

from bootprob import BootstrapSVC
from bootprob.explanation import contributions
from bootprob.explanation.coalitions import Coalitions
from docs.studies.coverage.known_truths import BANK
from docs.studies.coverage.other_intervals import training_sets

TRIALS, BOOTSTRAPS, LEVEL, ROWS, BACKGROUND = 40, 20, 0.95, 10, 16
NAMED = {each.name: each for each in BANK if 500 in each.sizes and each.smooth}
TRUTHS = [
    "linear, 5 columns",
    "two interactions",
    "a logarithm beside straight columns",
    "a quarter has the opposite slope",
    "hills",
]


@pytest.mark.parametrize("name", TRUTHS)
def test_contributions_of_known_truths(name, record):
    truth = NAMED[name]
    covered, widths, sizes = [], [], []
    for trial, X, y, new in islice(training_sets(truth), TRIALS):
        model = BootstrapSVC(n_bootstraps=BOOTSTRAPS, random_state=trial).fit(X, y)
        background, rows = X[:BACKGROUND], new[:ROWS]
        found = contributions(model, rows, background, level=LEVEL, seed=trial)
        every = Coalitions.of(X.shape[1], BACKGROUND, 0, np.random.default_rng(0), exact=True)
        true = np.stack(
            [
                every.mixing @ logit(truth.probability(every.between(row, background)))
                for row in rows
            ]
        )
        inside = (found.interval[..., 0] <= true) & (true <= found.interval[..., 1])
        covered.append(inside.mean())
        widths.append(np.diff(found.interval).mean())
        sizes.append(np.abs(true).mean())
    _check(record, TRUTHS.index(name), truth.name, covered, widths, sizes)


# Of each class its logits; the last column bears on nothing.
LOGITS = np.array([[0.0, 1.2, 0.4], [0.0, -0.8, 1.0], [0.0, 0.0, -0.6], [0.0, 0.0, 0.0]])


def test_contributions_of_three_classes(record):
    """Of each class against all others."""
    covered, widths, sizes = [], [], []
    every = Coalitions.of(len(LOGITS), BACKGROUND, 0, np.random.default_rng(0), exact=True)
    for trial in range(TRIALS):
        rng = np.random.default_rng(1000 + trial)
        X, rows = rng.normal(size=(500, len(LOGITS))), rng.normal(size=(ROWS, len(LOGITS)))
        y = (X @ LOGITS + rng.gumbel(size=(500, 3))).argmax(axis=1)
        model = BootstrapSVC(n_bootstraps=BOOTSTRAPS, random_state=trial).fit(X, y)
        between = np.stack([every.between(row, X[:BACKGROUND]) for row in rows])
        of_classes = every.mixing @ logit(softmax(between @ LOGITS, axis=-1))  # (rows, q, 3)
        for label, true in enumerate(np.moveaxis(of_classes, -1, 0)):
            found = contributions(model, rows, X[:BACKGROUND], level=LEVEL, label=label, seed=trial)
            inside = (found.interval[..., 0] <= true) & (true <= found.interval[..., 1])
            covered.append(inside.mean())
            widths.append(np.diff(found.interval).mean())
            sizes.append(np.abs(true).mean())
    of_sets = np.reshape(covered, (TRIALS, 3)).mean(axis=1)  # classes of one set go together
    _check(record, len(TRUTHS), "three classes, straight logits", of_sets, widths, sizes)


def _check(record, number, truth, covered, widths, sizes):
    coverage, error = np.mean(covered), np.std(covered, ddof=1) / np.sqrt(len(covered))
    record(
        f"contributions_{number}",
        {
            "truth": truth,
            "n": 500,
            "training sets": len(covered),
            "rows of each": ROWS,
            "bootstraps": BOOTSTRAPS,
            "coverage": round(float(coverage), 4),
            "standard error of the coverage": round(float(error), 4),
            "mean width": round(float(np.mean(widths)), 3),
            "mean size of the true contribution": round(float(np.mean(sizes)), 3),
        },
    )
    assert coverage >= 0.93 - 3 * error
