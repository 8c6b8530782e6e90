"""Do the intervals contain the true probability as often as they say?"""

import numpy as np
import pytest
from known_truths import TRUTHS
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from bootprob import BootstrapSVC

TRIALS, BOOTSTRAPS, NEW_ROWS, LEVEL = 30, 300, 200, 0.95
METHODS = ("normal", "replicate", "wald", "wilson")


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_coverage(truth, record):
    covered = {method: [] for method in (*METHODS, "true model's Fisher interval")}
    width = {method: [] for method in covered}
    error = {"calibrated": [], "vote": []}
    for trial in range(TRIALS):
        generator = np.random.default_rng([2026, trial])
        X, y = truth.draw(generator)
        new = truth.rows(generator, NEW_ROWS)
        p = truth.probability(new)
        model = BootstrapSVC(n_bootstraps=BOOTSTRAPS, random_state=trial).fit(X, y)
        bounds = {m: model.proba_interval(new, LEVEL, m)[:, 1] for m in METHODS}
        bounds["true model's Fisher interval"] = _fisher_interval(X, y, new)
        for method, (lower, upper) in ((m, b.T) for m, b in bounds.items()):
            covered[method].append(((lower <= p) & (p <= upper)).mean())
            width[method].append((upper - lower).mean())
        error["calibrated"].append(np.square(model.predict_proba(new)[:, 1] - p).mean())
        error["vote"].append(np.square(model.vote_proba(new)[:, 1] - p).mean())
    coverage = {method: float(np.mean(values)) for method, values in covered.items()}
    record(
        f"coverage_{TRUTHS.index(truth)}",
        {
            "truth": truth.name,
            "n": truth.n,
            "training sets": TRIALS,
            "bootstraps": BOOTSTRAPS,
            "level": LEVEL,
            "coverage": {m: round(c, 3) for m, c in coverage.items()},
            "standard error of the coverage": {
                m: round(float(np.std(v, ddof=1) / np.sqrt(TRIALS)), 3) for m, v in covered.items()
            },
            "mean width": {m: round(float(np.mean(v)), 3) for m, v in width.items()},
            "root mean squared error": {
                k: round(float(np.sqrt(np.mean(v))), 3) for k, v in error.items()
            },
        },
    )
    # A training set is one draw, so 30 of them leave about a point of noise in the mean.
    assert (0.93 if truth.n >= 500 else 0.90) <= coverage["normal"] <= 0.98
    assert coverage["wald"] < coverage["normal"]
    assert np.mean(width["normal"]) < 1.6 * np.mean(width["true model's Fisher interval"])
    assert np.mean(error["calibrated"]) < 0.5 * np.mean(error["vote"])


def _fisher_interval(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Interval of the true model's maximum likelihood: as narrow as can be had."""
    model = LogisticRegression(C=np.inf, max_iter=1000).fit(X, y)
    p = model.predict_proba(X)[:, 1]
    design, new_design = (np.column_stack([Z, np.ones(len(Z))]) for Z in (X, new))
    information = (design * (p * (1 - p))[:, None]).T @ design
    deviation = np.sqrt(np.einsum("ij,ij->i", new_design @ np.linalg.inv(information), new_design))
    center = logit(model.predict_proba(new)[:, 1])
    half = 1.959964 * deviation
    return np.column_stack([expit(center - half), expit(center + half)])
