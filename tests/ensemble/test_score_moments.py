"""Mean and variances of replicate scores without a score for each replicate."""

import numpy as np
import pytest

from bootprob import BootstrapSVC
from bootprob.ensemble.fitted import ensemble_of
from bootprob.ensemble.scoring.moments import ScoreMoments, average_models
from bootprob.ensemble.scoring.rows import model_scores
from linear_models import linear

OPTIONS = {
    "linear": {},
    "float32": {"dtype": "float32"},
    "scaled once": {"standardize": "global"},
    "controlled": {"control": "threshold", "rates": {"tpr": 0.7}},
    "votes": {"calibration": "sigmoid-both"},
    "rbf": {"kernel": "rbf", "C": [0.5, 2.0], "gamma": [0.1, 1.0]},
    "rbf, own scales": {"kernel": "rbf", "C": [0.5, 2.0], "gamma": 0.3},
    "map": {"kernel": "rbf", "gamma": 0.03, "feature_map": "nystroem", "n_components": 30},
}


@pytest.fixture
def table(rng):
    X = rng.normal(size=(120, 4)) * [1, 1e3, 1e-3, 1] + [0, 5e3, 1, 0]
    X[:, 3] = 7.0  # constant
    y = rng.uniform(size=120) < 1 / (1 + np.exp(-2 * (X[:, 0] + X[:, 1] / 1e3 - 5)))
    return X, y


@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")
@pytest.mark.parametrize("name", OPTIONS)
def test_moments_are_those_of_the_replicate_scores(rng, table, name):
    model = linear(**{"C": [0.1, 1.0], "n_bootstraps": 35, "random_state": 0} | OPTIONS[name])
    model.fit(*table)
    new = table[0] * rng.uniform(0.5, 1.5, size=(120, 1))
    scores = np.concatenate(list(ensemble_of(model).scores.of_replicates(new)))
    expected = ScoreMoments.of(scores, model.counts_gram_)
    found = list(ensemble_of(model).scores.moments(new))
    rtol, atol = (1e-5, 1e-3) if name == "float32" else (1e-7, 1e-10)
    for field in ("mean", "spread", "jackknife"):
        ours = np.concatenate([getattr(part, field) for part in found])
        np.testing.assert_allclose(ours, getattr(expected, field), rtol=rtol, atol=atol)
    np.testing.assert_allclose(model.decision_function(new), expected.mean, atol=atol)
    with_scores = model.summarize(new, 0.9)
    without = model.summarize(new, 0.9, score_interval=False)
    assert "score_interval" not in without
    for key, value in without.items():
        if key != "label":
            np.testing.assert_allclose(value, with_scores[key], atol=max(atol, 1e-9))
    interval = model.proba_interval(new, 0.9)[:, 1]
    np.testing.assert_allclose(interval, without["probability_interval"], atol=1e-12)


@pytest.mark.parametrize("name", ["linear", "rbf, shared scale", "map"])
def test_average_models_say_the_mean_of_each_model(rng, table, name):
    options = OPTIONS.get(name, {"kernel": "rbf", "gamma": [0.1, 1.0], "standardize": "global"})
    model = linear(**{"C": [0.1, 1.0], "n_bootstraps": 9, "random_state": 0} | options)
    model.fit(*table)
    scale = rng.uniform(0.5, 2, size=9)
    averaged = average_models(ensemble_of(model).scores.machines.models, scale)
    rows = ensemble_of(model).scores.machines.rows(table[0])
    (found,) = model_scores(averaged, rows)
    (each,) = model_scores(ensemble_of(model).scores.machines.models, rows)
    np.testing.assert_allclose(found[..., 0], (each / scale).mean(axis=2), atol=1e-9)


def test_kernels_with_own_scales_have_no_average(table):
    model = BootstrapSVC(kernel="rbf", C=[1.0], gamma=0.3, n_bootstraps=9, random_state=0)
    model.fit(*table)
    assert average_models(ensemble_of(model).scores.machines.models, np.ones(9)) is None


@pytest.mark.parametrize("n_bootstraps", [2, 3, 5, 6])  # fewer and more than p + 1
def test_few_replicates(table, n_bootstraps):
    model = BootstrapSVC(kernel="linear", C=[1.0], n_bootstraps=n_bootstraps, random_state=3).fit(
        *table
    )
    scores = np.concatenate(list(ensemble_of(model).scores.of_replicates(table[0])))
    expected = ScoreMoments.of(scores, model.counts_gram_)
    spread = np.concatenate([part.spread for part in ensemble_of(model).scores.moments(table[0])])
    np.testing.assert_allclose(spread, expected.spread, rtol=1e-7, atol=1e-12)
