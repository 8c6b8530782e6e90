"""With groups, do intervals cover and stated rates hold for rows of new subjects?"""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold

from bootprob import BootstrapSVC
from bootprob.datasets.catalog import CATALOG
from bootprob.datasets.finding import places, present
from bootprob.datasets.loading import load
from docs.studies.coverage.grouped_truths import GROUPED

N, TRIALS, BOOTSTRAPS, LEVEL, NEW_GROUPS = 500, 60, 20, 0.95, 40
RATE_TRIALS, RATE_BOOTSTRAPS, LEAST, CONFIDENCE = 200, 50, 0.8, 0.95


@pytest.mark.parametrize("truth", GROUPED, ids=lambda truth: truth.name)
def test_group_coverage(truth, record):
    covered, widths, losses = [], [], []
    for trial in range(TRIALS):
        rng = np.random.default_rng([2121, trial])
        X, y, groups, _ = truth.draw(rng, N // truth.size)
        model = BootstrapSVC(n_bootstraps=BOOTSTRAPS, random_state=trial).fit(X, y, groups=groups)
        new, _, _, p = truth.draw(rng, NEW_GROUPS)
        lower, upper = model.proba_interval(new, LEVEL)[:, 1].T
        covered.append(((lower <= p) & (p <= upper)).mean())
        widths.append((upper - lower).mean())
        losses.append(_loss(model.oob_proba_[:, 1], y) - _loss(model.predict_proba(new)[:, 1], p))
    coverage, error = np.mean(covered), np.std(covered, ddof=1) / np.sqrt(TRIALS)
    record(
        f"group_coverage_{GROUPED.index(truth)}",
        {
            "truth": truth.name,
            "n": N,
            "training sets": TRIALS,
            "bootstraps": BOOTSTRAPS,
            "coverage": round(float(coverage), 4),
            "standard error of the coverage": round(float(error), 4),
            "mean width": round(float(np.mean(widths)), 4),
            "mean of out-of-bag less true log-loss": round(float(np.mean(losses)), 4),
        },
    )
    assert coverage >= 0.93 - 3 * error


@pytest.mark.parametrize("truth", GROUPED, ids=lambda truth: truth.name)
def test_the_stated_rate_holds_for_new_subjects(truth, record):
    rates = {"with groups": [], "without": []}
    for trial in range(RATE_TRIALS):
        rng = np.random.default_rng([2122, trial])
        X, y, groups, _ = truth.draw(rng, N // truth.size)
        new, _, _, p = truth.draw(rng, 20_000 // truth.size)
        for how, given in zip(rates, (groups, None), strict=True):
            model = BootstrapSVC(
                kernel="linear",
                n_bootstraps=RATE_BOOTSTRAPS,
                random_state=trial,
                control="threshold",
                rates={"tpr": LEAST},
                confidence=CONFIDENCE,
            ).fit(X, y, groups=given)
            decided = model.predict(new) == model.classes_[1]
            rates[how].append(np.average(decided, weights=p))
    kept = {how: float(np.mean(np.array(found) >= LEAST)) for how, found in rates.items()}
    record(
        f"group_rates_{GROUPED.index(truth)}",
        {
            "truth": truth.name,
            "n": N,
            "training sets": RATE_TRIALS,
            "bootstraps": RATE_BOOTSTRAPS,
            "wanted": f"tpr >= {LEAST} with confidence {CONFIDENCE}",
            "kept on new subjects, share of training sets": kept,
            "mean excess": round(float(np.mean(rates["with groups"])) - LEAST, 4),
        },
    )
    assert kept["with groups"] >= 0.93


def _loss(stated, true):
    known = np.isfinite(stated)
    stated, true = stated[known], np.asarray(true, dtype=float)[known]
    return float(-np.mean(true * np.log(stated) + (1 - true) * np.log1p(-stated)))


def test_parkinsons(record):
    """195 recordings of 32 people: out of bag beside people left out in eight folds."""
    files = present(CATALOG["parkinsons"], places(None))
    if files is None:
        pytest.skip("the parkinsons data are not here (BOOTPROB_DATASETS)")
    data = load("parkinsons")
    people = pd.read_csv(files[0])["name"].str.split("_").str[2].to_numpy()
    losses = {}
    for how, given in (("with groups", people), ("without", None)):

        def fitted(rows, given=given):
            model = BootstrapSVC(n_bootstraps=100, random_state=0)
            groups = None if given is None else given[rows]
            return model.fit(data.X[rows], data.y[rows], groups=groups)

        stated = np.empty(len(data.y))
        for taught, asked in GroupKFold(8).split(data.X, data.y, people):
            stated[asked] = fitted(taught).predict_proba(data.X[asked])[:, 1]
        out_of_bag = fitted(np.arange(len(data.y))).oob_proba_[:, 1]
        losses[how] = {
            "out of bag": round(_loss(out_of_bag, data.y), 4),
            "people left out": round(_loss(stated, data.y), 4),
        }
    record("group_parkinsons", {"bootstraps": 100, "folds": 8, "log-loss": losses})
    assert abs(np.diff([*losses["with groups"].values()])[0]) <= 0.05
