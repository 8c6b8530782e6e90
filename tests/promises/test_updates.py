"""Are alarms as rare as stated, and does recalibration do what a new fit would?

`test_false_alarms` shows rows of no change to models, up to a million each. `test_prior_shift`
moves the base rate and looks at log-loss, coverage and rows until the alarm.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from scipy.special import expit, logit, rel_entr

from bootprob import BootstrapSVC
from docs.studies.coverage.known_truths import BANK
from docs.studies.coverage.other_intervals import training_sets

N, B = 500, 20
TRUTHS = {each.name: replace(each, n=N) for each in BANK}
STREAMS = {  # truth, kernel: models, rows
    ("linear, 5 columns", "linear"): (100, 1_000_000),
    ("hills", "linear"): (40, 1_000_000),
    ("hills", "auto"): (30, 20_000),
}
SHOWN = 100_000  # rows at once
SETS, LABELS = 40, 200


@pytest.mark.parametrize("case", STREAMS, ids=", ".join)
def test_false_alarms(case, record):
    (name, kernel), (models, rows) = case, STREAMS[case]
    truth, alarms = TRUTHS[name], {"calibration": 0, "drift": 0, "either": 0}
    for trial, X, y, _ in islice(training_sets(truth), models):
        model = BootstrapSVC(kernel=kernel, n_bootstraps=B, random_state=trial).fit(X, y)
        generator = np.random.default_rng([11, trial])
        for start in range(0, rows, SHOWN):
            drawn = truth.sample(generator, min(SHOWN, rows - start))
            new, p = drawn
            model = model.watched(new, (generator.random(len(p)) < p).astype(int))
        found = model.history_[-1]["alarms"]
        for each in found:
            alarms[each] += 1
        alarms["either"] += bool(found)
    record(
        f"updates_false_alarms_{kernel}_{name.replace(' ', '_').replace(',', '')}",
        {
            "truth": name,
            "kernel": kernel,
            "n": N,
            "models": models,
            "rows shown": rows,
            "share with an alarm": {what: round(k / models, 3) for what, k in alarms.items()},
        },
    )
    luck = 3 * np.sqrt(0.05 * 0.95 / models)
    assert alarms["either"] / models <= 0.05 + luck


def shifted(truth, generator, n, shift):
    """Rows whose odds of the positive class are exp(shift) times those of the truth."""
    rows, labels, probabilities = [], [], []
    while sum(map(len, rows)) < n:
        X, p = truth.sample(generator, n)
        y = generator.random(n) < p
        kept = generator.random(n) < np.where(y, np.exp(min(shift, 0)), np.exp(min(-shift, 0)))
        rows.append(X[kept])
        labels.append(y[kept])
        probabilities.append(expit(logit(p[kept]) + shift))
    return (np.concatenate(each)[:n] for each in (rows, labels, probabilities))


def judged(model, X, p):
    """Log-loss above the truth's, coverage and width."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said, interval = model.predict_proba(X, return_interval=True)
    lower, upper = interval[:, 1].T
    truly = np.stack([1 - p, p], axis=1)
    excess = rel_entr(truly, said.clip(1e-9, 1)).sum(axis=1).mean()
    return excess, np.mean((lower <= p) & (p <= upper)), np.mean(upper - lower)


@pytest.mark.parametrize("shift", [-1.0, 1.0])
@pytest.mark.parametrize("name", ["linear, 5 columns", "hills"])
def test_prior_shift(name, shift, record):
    truth, found, until, of_truth = TRUTHS[name], {}, [], []
    for trial, X, y, _ in islice(training_sets(truth), SETS):
        model = BootstrapSVC(n_bootstraps=B, random_state=trial).fit(X, y)
        generator = np.random.default_rng([12, trial])
        new, labels, _ = shifted(truth, generator, LABELS, shift)
        asked, _, p = shifted(truth, generator, 2_000, shift)
        more, more_labels, _ = shifted(truth, generator, N, shift)
        rate = float(np.mean(p))
        answers = {
            "as it was": model,
            "200 labels": model.recalibrated(new, labels.astype(int)),
            "200 rows without labels": model.recalibrated(new),
            "the base rate": model.recalibrated(base_rate=rate),
            "a fit to 500 new rows": BootstrapSVC(n_bootstraps=B, random_state=trial).fit(
                more, more_labels.astype(int)
            ),
        }
        for what, each in answers.items():
            found.setdefault(what, []).append(judged(each, asked, p))
        of_truth.append(-np.mean(p * np.log(p) + (1 - p) * np.log1p(-p)))
        watched, alarms = model, []
        stream, stream_labels, _ = shifted(truth, generator, 3_000, shift)
        for start in range(0, len(stream), 50):
            rows = slice(start, start + 50)
            watched = watched.watched(stream[rows], stream_labels[rows].astype(int))
            alarms = watched.history_[-1]["alarms"]
            if alarms:
                break
        until.append(start + 50 if alarms else np.inf)
    least = float(np.mean(of_truth))
    measured = {what: np.mean(each, axis=0) for what, each in found.items()}
    refit = least + measured["a fit to 500 new rows"][0]
    record(
        f"updates_prior_shift_{name.replace(' ', '_').replace(',', '')}_{shift:g}",
        {
            "truth": name,
            "n": N,
            "training sets": SETS,
            "logit moved by": shift,
            "log-loss of the true probabilities": round(least, 4),
            "of": {
                what: {
                    "log-loss": round(least + excess, 4),
                    "over a new fit's": round((least + excess) / refit, 4),
                    "coverage": round(coverage, 3),
                    "mean width": round(width, 3),
                }
                for what, (excess, coverage, width) in measured.items()
            },
            "rows until an alarm, median": float(np.median(until)),
            "share of streams of 3,000 rows with an alarm": round(
                float(np.mean(np.isfinite(until))), 3
            ),
        },
    )
    assert (least + measured["200 labels"][0]) / refit <= 1.01
    if name != "hills":
        assert measured["200 labels"][1] >= 0.93
