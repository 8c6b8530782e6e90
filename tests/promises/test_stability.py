"""Do replicates show how far a model moves with other training rows?

Models of many tables of one population are asked about the same new rows: how far two of them are
apart, beside what the stability of each says. A replicate is as far from the model as the model is
from the mean of all models.
"""

from dataclasses import replace

import numpy as np
import pytest

from bootprob import BootstrapSVC
from docs.studies.coverage.known_truths import BANK

TABLES, BOOTSTRAPS, NEW_ROWS = 30, 60, 300
TRUTHS = {each.name: each for each in BANK}
CASES = (
    ("linear", "linear, 5 columns", 200),
    ("linear", "linear, 5 columns", 1000),
    ("linear", "20 columns, 14 of them noise", 200),
    ("rbf", "hills", 300),
    ("auto", "two interactions", 300),
)


@pytest.mark.parametrize("number", range(len(CASES)))
@pytest.mark.filterwarnings("ignore::bootprob.FewRowsWarning", "ignore::bootprob.LackOfFitWarning")
@pytest.mark.filterwarnings("ignore::bootprob.DoubtfulTableWarning")
def test_stability(number, record):
    kernel, name, n = CASES[number]
    truth = replace(TRUTHS[name], n=n)
    new, true = truth.sample(np.random.default_rng(2031), NEW_ROWS)
    y_new = (np.random.default_rng(2032).random(NEW_ROWS) < true).astype(int)
    options = {"effort": "low"} if kernel == "auto" else {"C": [2.0**k for k in (-4, 0, 4)]}
    p, found = [], []
    for trial in range(TABLES):
        X, y = truth.draw(np.random.default_rng([2033, number, trial]))
        model = BootstrapSVC(
            kernel=kernel, n_bootstraps=BOOTSTRAPS, random_state=trial, **options
        ).fit(X, y)
        said = model.stability(new, y_new)
        p.append(said.probability)
        found.append(said)
    p = np.array(p)
    first, second = np.triu_indices(TABLES, 1)
    apart = np.abs(p[first] - p[second]).mean()
    decided = ((p[first] > 0.5) != (p[second] > 0.5)).mean()
    sizes = np.median(p.mean(axis=0) * (1 - p.mean(axis=0)) / p.var(axis=0, ddof=1))

    def mean(name):
        return float(np.mean([getattr(each, name) for each in found]))

    said_size = np.mean([np.median(each.effective_sample_size) for each in found])
    measured = {
        "kernel": kernel,
        "truth": name,
        "n": n,
        "tables": TABLES,
        "bootstrap samples": BOOTSTRAPS,
        "mean absolute error": {
            "of replicates": round(mean("mean_absolute_error"), 4),
            "of models of two tables": round(float(apart), 4),
        },
        "decided otherwise": {
            "by replicates": round(mean("mean_classification_instability"), 4),
            "by models of two tables": round(float(decided), 4),
        },
        "median effective sample size": {
            "of replicates": round(float(said_size), 1),
            "of models of many tables": round(float(sizes), 1),
        },
    }
    record(f"stability_{number}", measured)
    # Two models are √2 times as far apart as one is from the mean of all.
    assert 0.8 < np.sqrt(2) * mean("mean_absolute_error") / apart < 1.3
    assert 0.8 < np.sqrt(2) * mean("mean_classification_instability") / decided < 1.3
    assert 0.6 < said_size / sizes < 1.4
