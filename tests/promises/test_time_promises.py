"""With time, what do out-of-bag log-loss and that of the last tenth say of rows still to come?"""

import warnings

import numpy as np
import pytest

from bootprob import BootstrapSVC
from docs.studies.coverage.timed_truths import TIMED

N, NEXT, TRIALS, BOOTSTRAPS, GRID = 500, 50, 100, 20, (0.03, 0.3, 3.0)
SMALL = 0.1


@pytest.mark.parametrize("truth", TIMED, ids=lambda truth: truth.name)
def test_out_of_bag_beside_rows_still_to_come(truth, record):
    losses = {name: [] for name in ("without time", "with time", "last tenth", "still to come")}
    warned, blocks, small = [], [], []
    for trial in range(TRIALS):
        X, y, p = truth.draw(np.random.default_rng([2323, trial]), N, NEXT)
        fitted = {}
        for how, time in (("without time", None), ("with time", np.arange(N))):
            model = BootstrapSVC(
                kernel="linear", C=GRID, n_bootstraps=BOOTSTRAPS, random_state=trial
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of drift, and of the grid where nothing is told
                fitted[how] = model.fit(X[:N], y[:N], time=time)
            losses[how].append(fitted[how].metric_intervals()["log_loss"].value)
        model = fitted["with time"]
        stated = model.predict_proba(X[N:])[:, 1]
        losses["last tenth"].append(model.later_rows_["metrics"]["log_loss"][0])
        losses["still to come"].append(
            -np.mean(p[N:] * np.log(stated) + (1 - p[N:]) * np.log1p(-stated))
        )
        warned.append(any(each.startswith("Later rows are worse") for each in model.remarks_))
        small.append(model.later_rows_["p_value"] < SMALL)
        blocks.append(model.groups_.max() + 1)
    apart = {
        name: np.array(found) - losses["still to come"]
        for name, found in losses.items()
        if name != "still to come"
    }
    record(
        f"time_{TIMED.index(truth)}",
        {
            "truth": truth.name,
            "n": N,
            "rows still to come": NEXT,
            "training sets": TRIALS,
            "bootstraps": BOOTSTRAPS,
            "blocks": round(float(np.mean(blocks)), 1),
            "mean log-loss": {
                name: round(float(np.mean(each)), 4) for name, each in losses.items()
            },
            "mean less that still to come, and its standard error": {
                name: [
                    round(float(each.mean()), 4),
                    round(float(each.std(ddof=1) / TRIALS**0.5), 4),
                ]
                for name, each in apart.items()
            },
            "warned": float(np.mean(warned)),
            f"p-value below {SMALL}": float(np.mean(small)),
        },
    )
    error = apart["last tenth"].std(ddof=1) / np.sqrt(TRIALS)
    assert abs(apart["last tenth"].mean()) <= 0.05 + 3 * error
    if not truth.persistence and not truth.turn:  # a share that chance exceeds once in a thousand
        assert np.mean(small) <= SMALL + 3.1 * np.sqrt(SMALL * (1 - SMALL) / TRIALS)
