"""Do predictive values stated with confidence hold on new rows, one or two at once?"""

import numpy as np
import pytest

from bootprob import BootstrapSVC, UnattainableRateError
from docs.studies.coverage.known_truths import BANK

TRIALS, BOOTSTRAPS, NEW_ROWS, CONFIDENCE = 100, 30, 20_000, 0.95
NAMES = (
    "linear, 5 columns", "rare class (6 %)", "20 columns, 14 of them noise",
    "heavy tails (t, 3 df)", "correlated columns", "strong signal", "two interactions",
    "labels flipped (10 %)", "complementary log-log", "five rows a subject, measured with noise",
)  # fmt: skip
TRUTHS = [next(truth for truth in BANK if truth.name == name) for name in NAMES]


def _floors(truth):
    """Three quarters of what the true probability of the likeliest third adds to guessing."""
    p = np.sort(truth.probability(truth.rows(np.random.default_rng(0), 20_000)))
    third = len(p) // 3
    of_negatives, of_positives = 1 - p[:third].mean(), p[-third:].mean()
    return {
        "ppv": round(0.25 * p.mean() + 0.75 * of_positives, 2),
        "npv": round(0.25 * (1 - p.mean()) + 0.75 * of_negatives, 2),
        "tpr": 0.3,
        "tnr": 0.85,
        "decided": 0.2,
    }


@pytest.mark.parametrize(
    "names", [("ppv",), ("npv",), ("tpr", "ppv"), ("tpr", "tnr", "decided")], ids="+".join
)
@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_the_stated_values_hold(truth, names, record):
    floors = {name: _floors(truth)[name] for name in names}
    if "decided" in names:  # more than one threshold keeps together
        floors |= {"tpr": 0.85}
    kept, decided_positive, refused = [], [], 0
    for trial in range(TRIALS):
        generator = np.random.default_rng([2031, trial])
        X, y = truth.draw(generator)
        model = BootstrapSVC(
            kernel="linear", C=[0.1, 1.0], n_bootstraps=BOOTSTRAPS, random_state=trial,
            control="threshold", rates=floors, confidence=CONFIDENCE,
        )  # fmt: skip
        subjects = np.arange(len(y)) // truth.rows_of_subject
        try:
            model.fit(X, y, groups=subjects if truth.rows_of_subject > 1 else None)
        except UnattainableRateError:
            refused += 1
            continue
        new = truth.rows(generator, NEW_ROWS)
        p = truth.probability(new)
        if truth.of_subjects is not None:
            p = truth.of_subjects(new)
        decided, undecided = model.predict(new) == model.classes_[1], model.undecided(new)
        as_positive, as_negative = decided & ~undecided, ~decided & ~undecided
        found = {
            "ppv": p[as_positive].mean() if as_positive.any() else 1.0,
            "npv": 1 - p[as_negative].mean() if as_negative.any() else 1.0,
            "tpr": 1 - p[as_negative].sum() / p.sum(),
            "tnr": 1 - (1 - p[as_positive]).sum() / (1 - p).sum(),
            "decided": 1 - undecided.mean(),
        }
        kept.append([found[name] >= floors[name] for name in names])
        decided_positive.append(as_positive.mean())
    shares = np.mean(kept, axis=0) if kept else np.ones(len(names))
    together = float(np.mean(np.all(kept, axis=1))) if kept else None
    record(
        f"predictive_values_{TRUTHS.index(truth)}_{'_'.join(names)}",
        {
            "truth": truth.name,
            "n": truth.n,
            "training sets": TRIALS,
            "bootstraps": BOOTSTRAPS,
            "wanted": floors,
            "confidence": CONFIDENCE,
            "promises made, share of training sets": 1 - refused / TRIALS,
            "kept on new rows, share of promises": dict(zip(names, shares.tolist(), strict=True)),
            "all kept together": together,
            "mean share decided positive": (
                round(float(np.mean(decided_positive)), 3) if decided_positive else None
            ),
        },
    )
    # A training set that shows too little makes no promise. Of 100, .05 at most make a wrong one in
    # the mean, for each rate; more than .13 would be seen in one case of 2,000.
    wrong = (1 - shares) * (1 - refused / TRIALS)
    assert (wrong <= 0.13).all()
