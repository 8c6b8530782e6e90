"""Does a rate stated with confidence hold on new rows, and how much more is given than asked?"""

import numpy as np
import pytest

from bootprob import BootstrapSVC
from docs.studies.coverage.known_truths import TRUTHS

TRIALS, BOOTSTRAPS, NEW_ROWS, CONFIDENCE = 200, 50, 20_000, 0.95
LEAST = 0.8
GRID = [2.0**-5, 2.0**-2, 2.0**1]


@pytest.mark.parametrize("calibration", ["sigmoid", None])
@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_the_stated_rate_holds(truth, calibration, record):
    true_rates, other_rates, asked = [], [], []
    for trial in range(TRIALS):
        generator = np.random.default_rng([2028, trial])
        X, y = truth.draw(generator)
        model = BootstrapSVC(
            kernel="linear",
            C=GRID,
            n_bootstraps=BOOTSTRAPS,
            random_state=trial,
            calibration=calibration,
            control="threshold",
            rates={"tpr": LEAST},
            confidence=CONFIDENCE,
        ).fit(X, y)
        new = truth.rows(generator, NEW_ROWS)
        p, decided = truth.probability(new), model.predict(new) == model.classes_[1]
        true_rates.append(np.average(decided, weights=p))
        other_rates.append(np.average(~decided, weights=1 - p))
        asked.append(model.controlled_rates_[0]["required_share"])
    kept = float(np.mean(np.array(true_rates) >= LEAST))
    excess = float(np.mean(true_rates) - LEAST)
    # What n positives need at the least: their own share varies by this much.
    needed = float(np.mean(asked) - LEAST)
    record(
        f"controlled_rates_{TRUTHS.index(truth)}_{calibration or 'votes'}",
        {
            "truth": truth.name,
            "n": truth.n,
            "decided by": "calibrated probability" if calibration else "votes",
            "training sets": TRIALS,
            "bootstraps": BOOTSTRAPS,
            "wanted": f"tpr >= {LEAST} with confidence {CONFIDENCE}",
            "kept on new rows, share of training sets": kept,
            "mean excess of the true rate": round(excess, 4),
            "mean excess that the binomial bound asks for": round(needed, 4),
            "mean true negative rate": round(float(np.mean(other_rates)), 4),
        },
    )
    assert kept >= 0.93
    assert excess <= needed + 0.03
