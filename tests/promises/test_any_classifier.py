"""Do intervals around classifiers of others contain the true probability, and how wide are they?

Beside the default stand the percentiles of the calibrated replicates and the jackknife, which know
no more than resampling shows.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from scipy.special import rel_entr
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bootprob import BootstrapClassifier
from bootprob.exceptions import FewRowsWarning, LackOfFitWarning
from docs.studies.coverage.known_truths import BANK
from docs.studies.coverage.other_intervals import NEW_ROWS, training_sets

TRIALS, BOOTSTRAPS, LEVEL, N = 12, 40, 0.95, 500
METHODS = ("corrected", "percentile", "jackknife")
_WARNINGS = (FewRowsWarning, LackOfFitWarning)


def _light(seed):
    lightgbm = pytest.importorskip("lightgbm")
    return lightgbm.LGBMClassifier(verbose=-1, n_jobs=1, random_state=seed)


def _cat(seed):
    catboost = pytest.importorskip("catboost")
    quiet = {"verbose": False, "thread_count": 1, "allow_writing_files": False}
    return catboost.CatBoostClassifier(iterations=100, random_seed=seed, **quiet)


BASES = {
    "LightGBM": _light,
    "CatBoost": _cat,
    "HistGradientBoosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "random forest": lambda _: RandomForestClassifier(min_samples_leaf=3),
    "logistic regression": lambda _: make_pipeline(StandardScaler(), LogisticRegression()),
}
TRUTHS = {
    each.name: each
    for each in BANK
    if each.name in ("linear, 5 columns", "hills", "a step", "two thresholds", "two interactions")
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("base", BASES)
def test_any_classifier(base, name, record):
    truth, of_methods, limits = replace(TRUTHS[name], n=N), {each: [] for each in METHODS}, []
    shares, losses, warned = [], [], []
    for trial, X, y, new in islice(training_sets(truth), TRIALS):
        model = BootstrapClassifier(
            BASES[base](trial), n_bootstraps=BOOTSTRAPS, tolerance=0, random_state=trial
        ).fit(X, y)
        p = truth.probability(new)
        for method, found in of_methods.items():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                lower, upper = model.proba_interval(new, LEVEL, method)[:, 1].T
            found.append((np.mean((lower <= p) & (p <= upper)), np.mean(upper - lower)))
            if method == "corrected":
                warned.append(any(issubclass(each.category, _WARNINGS) for each in caught))
        limits.append(np.diff(truth.limit(X, y, new, LEVEL)).mean())
        shares.append(model.posterior_share_ or 0.0)
        truly = np.stack([1 - p, p], axis=1)
        others = BASES[base](trial), CalibratedClassifierCV(BASES[base](trial))
        said = model, *(each.fit(X, y) for each in others)
        probabilities = [each.predict_proba(new).clip(1e-6, 1 - 1e-6) for each in said]
        losses.append([rel_entr(truly, each).sum(axis=1).mean() for each in probabilities])
    measured = {
        method: {
            "coverage": round(float(np.mean(of_sets)), 4),
            "standard error of the coverage": round(
                float(np.std(of_sets, ddof=1) / np.sqrt(TRIALS)), 4
            ),
            "mean width": round(float(np.mean(widths)), 4),
            "width over the limit's": round(float(np.mean(widths) / np.mean(limits)), 3),
        }
        for method, (of_sets, widths) in (
            (method, np.array(found).T) for method, found in of_methods.items()
        )
    }
    record(
        f"any_classifier_{base}_{name}".replace(" ", "_").replace(",", ""),
        {
            "base": base,
            "truth": name,
            "n": N,
            "training sets": TRIALS,
            "new rows of each": NEW_ROWS,
            "bootstraps": BOOTSTRAPS,
            "intervals": measured,
            "mean share of the posterior": round(float(np.mean(shares)), 3),
            "mean excess of the log-loss": {
                name: round(float(loss), 4)
                for name, loss in zip(
                    ("BootstrapClassifier", "alone", "CalibratedClassifierCV"),
                    np.mean(losses, axis=0),
                    strict=True,
                )
            },
            "share of training sets that warned": round(float(np.mean(warned)), 3),
        },
    )
    found = measured["corrected"]
    luck = 3 * found["standard error of the coverage"]
    assert found["coverage"] >= (0.93 if truth.linear else 0.90) - luck
    if truth.linear:
        assert found["width over the limit's"] <= 1.5 * 1.09
