"""Do rates stated with confidence hold in each of two subgroups on new rows?"""

import numpy as np
import pytest

from bootprob import BootstrapSVC, UnattainableRateError
from bootprob.ensemble import subgroup_rates
from docs.studies.coverage.known_truths import BANK

TRIALS, BOOTSTRAPS, NEW_ROWS, CONFIDENCE = 100, 30, 20_000, 0.95
NAMES = (
    "linear, 5 columns", "strong signal", "heavy tails (t, 3 df)", "two interactions",
    "labels flipped (10 %)",
)  # fmt: skip
TRUTHS = [next(truth for truth in BANK if truth.name == name) for name in NAMES]
WANTED = {"tpr": 0.8, "tnr": 0.8}


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_the_rates_hold_in_each_subgroup(truth, record):
    kept = {rate: [] for rate in WANTED}
    refused = dict.fromkeys(WANTED, 0)
    for trial in range(TRIALS):
        generator = np.random.default_rng([2032, trial])
        X, y = truth.draw(generator)
        model = BootstrapSVC(
            kernel="linear", C=[0.1, 1.0], n_bootstraps=BOOTSTRAPS, random_state=trial
        ).fit(X, y)
        new = truth.rows(generator, NEW_ROWS)
        p = truth.probability(new)
        for rate, least in WANTED.items():
            try:
                found = subgroup_rates(model, X[:, 0] > 0, {rate: least}, CONFIDENCE)
            except UnattainableRateError:
                refused[rate] += 1
                continue
            decided = found.predict(new, new[:, 0] > 0) == model.classes_[1]
            weight, right = (p, decided) if rate == "tpr" else (1 - p, ~decided)
            for own in (new[:, 0] > 0, new[:, 0] <= 0):
                reached = weight[own & right].sum() / weight[own].sum()
                kept[rate].append(reached >= least)
    shares = {rate: float(np.mean(each)) if each else None for rate, each in kept.items()}
    record(
        f"subgroup_rates_{TRUTHS.index(truth)}",
        {
            "truth": truth.name,
            "n": truth.n,
            "training sets": TRIALS,
            "bootstraps": BOOTSTRAPS,
            "wanted": WANTED,
            "confidence": CONFIDENCE,
            "promises made, share of training sets": {
                rate: 1 - each / TRIALS for rate, each in refused.items()
            },
            "kept on new rows, share of promises in a subgroup": shares,
        },
    )
    for rate, each in kept.items():
        if each:
            assert np.mean(each) >= CONFIDENCE - 3 * np.sqrt(0.05 * 0.95 / len(each)), rate
