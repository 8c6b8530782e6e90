"""Do intervals of metrics contain what the fitted model reaches on new rows, as often as said?"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from bootprob import BootstrapSVC
from bootprob.ensemble import out_of_bag_intervals
from bootprob.metrics import metric_intervals
from bootprob.metrics.reliability import equal_mass_bins
from docs.studies.coverage.known_truths import TRUTHS, KnownTruth

TRIALS, BOOTSTRAPS, NEW_ROWS, LEVEL = 300, 60, 10_000, 0.95
METHODS = ("auto", "percentile")
CASES = (
    replace(TRUTHS[0], n=200),
    replace(TRUTHS[0], n=500),
    replace(TRUTHS[1], n=500),
    # So few mistakes that many a test set shows none.
    KnownTruth("nearly separable", 200, 5, lambda X: 25 * (X @ [1.0, -0.8, 0.6, 0.4, 0.0])),
)


@pytest.mark.parametrize("truth", CASES, ids=lambda truth: f"{truth.name}, n = {truth.n}")
def test_metric_intervals_cover(truth, record):
    covered, width, methods = {}, {}, {}
    for trial in range(TRIALS):
        generator = np.random.default_rng([2027, trial])
        X, y = _with_both_classes(truth, generator)
        model = BootstrapSVC(
            kernel="linear", C=[0.1, 1.0], n_bootstraps=BOOTSTRAPS, random_state=trial
        )
        model.fit(X, y)
        new = truth.rows(generator, NEW_ROWS)
        wanted = _true_metrics(truth.probability(new), model.predict_proba(new)[:, 1])
        X, y = _with_both_classes(truth, generator)
        held_out = y, model.predict_proba(X)[:, 1]
        for method in METHODS:
            for rows, found in (
                ("held out", metric_intervals(*held_out, level=LEVEL, method=method)),
                ("out of bag", out_of_bag_intervals(model, LEVEL, method)),
            ):
                for name, interval in found.items():
                    key = rows, method, name
                    hit = interval.lower <= wanted[name] <= interval.upper
                    covered.setdefault(key, []).append(hit)
                    width.setdefault(key, []).append(interval.upper - interval.lower)
                    if method == "auto":
                        counts = methods.setdefault(f"{rows}, {name}", {})
                        counts[interval.method] = counts.get(interval.method, 0) + 1
    coverage = {key: float(np.mean(values)) for key, values in covered.items()}
    record(
        f"metric_intervals_{CASES.index(truth)}",
        {
            "truth": truth.name,
            "n": truth.n,
            "training sets": TRIALS,
            "bootstraps": BOOTSTRAPS,
            "level": LEVEL,
            "coverage / mean width": {
                rows: {
                    name: {
                        method: [
                            round(coverage[rows, method, name], 3),
                            round(float(np.mean(width[rows, method, name])), 4),
                        ]
                        for method in METHODS
                    }
                    for name in wanted
                }
                for rows in ("held out", "out of bag")
            },
            "methods taken by auto": methods,
        },
    )
    assert min(min(values) for values in width.values()) > 0
    # 300 training sets leave 1.3 points of noise in a coverage of 95 %.
    # The weights of C know the out-of-bag labels; nearly all rows certain is the hardest case.
    for rows, least in (("held out", 0.91), ("out of bag", 0.88)):
        for name in wanted:
            assert coverage[rows, "auto", name] >= least, (rows, name)


FEW_GROUPS, ROWS_OF_EACH, ALIKE, SETS = (5, 10, 20), 10, (0.0, 0.8), 600


def test_metric_intervals_of_few_groups_cover(record):
    """The probabilities are the true ones, so no model is fitted."""
    slope = 1.5
    truths = expit(slope * norm.ppf((np.arange(200_000) + 0.5) / 200_000))  # of normal scores
    wanted = _true_metrics(truths, truths)
    found = {}
    for n_groups, alike in product(FEW_GROUPS, ALIKE):
        rng, covered = np.random.default_rng([2028, n_groups, round(10 * alike)]), []
        while len(covered) < SETS:
            own = rng.normal(size=(n_groups, ROWS_OF_EACH))
            score = np.sqrt(alike) * rng.normal(size=(n_groups, 1)) + np.sqrt(1 - alike) * own
            p = expit(slope * score).ravel()
            y = rng.random(p.shape) < p
            if y.min() == y.max():
                continue
            intervals = metric_intervals(
                y, p, level=LEVEL, groups=np.repeat(np.arange(n_groups), ROWS_OF_EACH)
            )
            covered.append([each.lower <= wanted[k] <= each.upper for k, each in intervals.items()])
        coverage = dict(zip(intervals, np.mean(covered, axis=0).round(3).tolist(), strict=True))
        found[f"{n_groups} groups, correlation {alike:g}"] = coverage
    record(
        "metric_intervals_of_few_groups",
        {"sets": SETS, "rows of each group": ROWS_OF_EACH, "level": LEVEL, "coverage": found},
    )
    # 600 sets leave .9 points of noise.
    for name, coverage in found.items():
        assert min(coverage.values()) >= (0.86 if name.startswith("5 groups") else 0.90), name


def _with_both_classes(truth, generator):
    while True:
        X, y = truth.draw(generator)
        if 2 <= y.sum() <= len(y) - 2:
            return X, y


def _true_metrics(truth, stated):
    """Metrics of probabilities `stated` on rows whose true ones are known, labels averaged out."""
    tiny = np.finfo(float).eps  # where the log-loss clips
    stated = np.clip(stated, tiny, 1 - tiny)
    decided = stated > 0.5
    order = np.argsort(stated)
    positive, negative = truth[order], 1 - truth[order]
    below = np.cumsum(negative) - negative / 2
    members = equal_mass_bins(stated, np.ones(len(stated)), 10)
    return {
        "brier_score": np.mean(truth * (1 - stated) ** 2 + (1 - truth) * stated**2),
        "log_loss": -np.mean(truth * np.log(stated) + (1 - truth) * np.log1p(-stated)),
        "calibration_error": np.abs((truth - stated) @ members).sum() / len(stated),
        "accuracy": np.mean(np.where(decided, truth, 1 - truth)),
        "sensitivity": truth[decided].sum() / truth.sum(),
        "specificity": (1 - truth)[~decided].sum() / (1 - truth).sum(),
        "auc": positive @ below / (positive.sum() * negative.sum()),
    }
