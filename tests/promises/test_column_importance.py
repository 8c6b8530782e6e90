"""Is importance out of bag what a large test set shows of the same model?

Three of six columns bear on the labels, one of them (not with the linear kernel) by its square.
What is true of the others is 0; of these three it is the importance on 4,000 new rows, whose own
error is a tenth of the intervals' width.
"""

from __future__ import annotations

import numpy as np
import pytest

from bootprob import BootstrapSVC
from bootprob.explanation import permutation_importance

N, NEW, LEVEL = 200, 4_000, 0.95
# Kernel -> bootstrap samples, training sets.
KERNELS = {"linear": (50, 200), "rbf": (50, 60), "auto": (20, 20)}


def rows_of(rng, n, kernel):
    X = rng.normal(size=(n, 6))
    bent = 0.0 if kernel == "linear" else 0.6
    logits = 1.2 * X[:, 0] - 0.6 * X[:, 1] + bent * (X[:, 2] ** 2 - 1)
    return X, logits + rng.logistic(size=n) > 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_importance_out_of_bag(kernel, record):
    bootstraps, trials = KERNELS[kernel]
    n_true = 2 if kernel == "linear" else 3
    covered, zero, widths, found_of, true_of = [], [], [], [], []
    for trial in range(trials):
        rng = np.random.default_rng([20, trial])
        X, y = rows_of(rng, N, kernel)
        model = BootstrapSVC(kernel=kernel, n_bootstraps=bootstraps, random_state=trial).fit(X, y)
        found = permutation_importance(model, X, y, level=LEVEL, seed=trial)
        new = permutation_importance(
            model, *rows_of(rng, NEW, kernel), held_out=True, max_rows=None, n_repeats=2
        )
        lower, upper = found.interval.T
        true = new.importances_mean
        covered.append(((lower <= true) & (true <= upper))[:n_true].mean())
        zero.append(((lower <= 0) & (upper >= 0))[3:].mean())
        widths.append((upper - lower)[:n_true].mean())
        found_of.append(found.importances_mean[:n_true])
        true_of.append(true[:n_true])
    coverage, error = np.mean(covered), np.std(covered, ddof=1) / np.sqrt(trials)
    of_noise, noise_error = np.mean(zero), np.std(zero, ddof=1) / np.sqrt(trials)
    apart = np.mean(found_of, axis=0) - np.mean(true_of, axis=0)
    record(
        f"column_importance_{kernel}",
        {
            "kernel": kernel,
            "n": N,
            "training sets": trials,
            "bootstraps": bootstraps,
            "coverage": round(float(coverage), 4),
            "standard error of the coverage": round(float(error), 4),
            "of columns without effect": round(float(of_noise), 4),
            "standard error of these": round(float(noise_error), 4),
            "mean width": round(float(np.mean(widths)), 3),
            "mean importance": round(float(np.mean(found_of)), 3),
            "on new rows": round(float(np.mean(true_of)), 3),
        },
    )
    assert coverage >= 0.92 - 3 * error
    assert of_noise >= 0.95 - 3 * noise_error
    assert (np.abs(apart) <= 5 * np.std(np.subtract(found_of, true_of), axis=0) / trials**0.5).all()
