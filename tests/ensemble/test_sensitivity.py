"""Sensitivity of probabilities against finite differences of refits through the engine."""

import warnings

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from bootprob import BootstrapSVC, CopiedRowsWarning, DataError
from bootprob.ensemble.fitted import ensemble_of
from bootprob.ensemble.sensitivity import probability_sensitivity
from bootprob_gpu import Problem, fit
from bootprob_gpu.derivatives.active_sets import SetStatus
from bootprob_gpu.derivatives.kkt import solve_exactly
from linear_models import linear

STEP = 1e-6
SETTINGS = {
    "linear": {},
    "linear, no scale, weighted": {"standardize": None, "class_weight": {0: 1.0, 1: 3.0}},
    "rbf": {"kernel": "rbf", "gamma": [0.1, 0.5]},
    "rbf, one scale": {"kernel": "rbf", "gamma": 0.2, "standardize": "global"},
    "isotonic": {"calibration": "isotonic"},
    "threshold": {"control": "threshold", "rates": {"tpr": 0.8}},
}


def drawn(rng, n=50, p=3):
    X = rng.normal(size=(n, p)) * np.array([1, 10, 0.1])[:p] + 3
    y = rng.permutation(np.where(np.arange(n) < n // 2, "sick", "well"))
    return X + (y == "sick")[:, None] * np.array([1, 10, 0.1])[:p], y


def fitted(rng, setting, **changes):
    X, y = drawn(rng)
    weight = rng.uniform(0.5, 2, size=len(y))
    options = {"C": [0.1, 1.0], "n_bootstraps": 4, "random_state": 0, **SETTINGS[setting]}
    if "class_weight" in options:
        options["class_weight"] = dict(zip(("sick", "well"), (1.0, 3.0), strict=True))
    model = linear(**options, **changes).fit(X, y, weight)
    return model, X, drawn(rng, n=5)[0]


def refitted(model, X, new, log_weight, log_gamma=0.0):
    """Scores of new rows by machines trained anew on other weights, and the sets they have."""
    positive = model.y_ == 1
    factor = np.ones(len(positive))
    if model.class_weight == "balanced":
        total = model.sample_weight_.sum()
        masses = [model.sample_weight_[~positive].sum(), model.sample_weight_[positive].sum()]
        factor = (total / (2 * np.array(masses)))[model.y_]
    rows, seen = ((each - model.center_) / model.scale_ for each in (X, new))
    gamma = None if model.gamma_ is None else np.unique(model.gamma_) * np.exp(log_gamma)
    n_C = len(model.C_) // (1 if gamma is None else len(gamma))
    problem = Problem(
        rows,
        np.where(positive, 1.0, -1.0),
        model.bootstrap_counts(),
        model.C_[:n_C],
        kernel="linear" if gamma is None else "rbf",
        gamma=gamma,
        row_weight=model.sample_weight_ * factor * np.exp(log_weight),
        scale=model.bootstrap_scale_,
    )
    upper = torch.from_numpy(problem.upper_of(slice(0, problem.n_replicates)))
    y = torch.from_numpy(problem.y)
    machines = solve_exactly(fit(problem), torch.from_numpy(rows), y, upper)
    scores = np.einsum("brm,r->mb", machines.scores(torch.from_numpy(seen)), model.weights_)
    return (scores / model.score_scale_ + model.score_offset_).mean(axis=1), machines


def change(model, X, new, log_weight, log_gamma=0.0):
    """Central difference of the scores, or None where a machine changes its sets on the way."""
    above, first = refitted(model, X, new, STEP * log_weight, STEP * log_gamma)
    below, second = refitted(model, X, new, -STEP * log_weight, -STEP * log_gamma)
    if not (torch.equal(first.free, second.free) and torch.equal(first.at_bound, second.at_bound)):
        return None
    return (above - below) / (2 * STEP)


@pytest.mark.parametrize("setting", SETTINGS)
def test_against_refits(rng, setting):
    model, X, new = fitted(rng, setting)
    found = probability_sensitivity(model, new, X)
    np.testing.assert_allclose(found.probability, model.predict_proba(new)[:, 1])
    np.testing.assert_allclose(found.score, model.decision_function(new))
    if set(found.status) - {SetStatus.REGULAR, SetStatus.SINGULAR}:
        pytest.skip("a machine without free support vectors: its intercept jumps")
    n, positive = len(X), model.y_ == 1
    row = int(np.abs(found.row_weight).sum(axis=0).argmax())
    directions = {
        "row": (np.eye(n)[row], 0.0, found.row_weight[:, row]),
        "C": (np.ones(n), 0.0, found.log_C),
        "C+": (positive * 1.0, 0.0, found.log_cost_positive),
        "C-": (~positive * 1.0, 0.0, found.log_cost_negative),
    }
    if model.gamma_ is None:
        assert found.log_gamma is None
    else:
        directions["gamma"] = (np.zeros(n), 1.0, found.log_gamma)
    for log_weight, log_gamma, derivative in directions.values():
        expected = change(model, X, new, log_weight, log_gamma)
        if expected is not None:
            expected = expected * found.probability_per_score
            np.testing.assert_allclose(derivative, expected, rtol=1e-4, atol=1e-6)


def test_the_slope_is_that_of_the_calibrator(rng):
    for setting in ("linear", "isotonic", "threshold"):
        model, X, new = fitted(rng, setting)
        found = probability_sensitivity(model, new, X)
        calibrated = ensemble_of(model).calibrated
        step = 1e-6
        difference = calibrated.predict(found.score + step) - calibrated.predict(found.score - step)
        if setting == "isotonic":
            knots = model.calibrator_["scores"]
            clear = np.abs(knots - found.score[:, None]).min(axis=1) > 2 * step
        else:
            clear = np.ones(len(new), dtype=bool)
        expected = difference / (2 * step)
        np.testing.assert_allclose(
            found.probability_per_score[clear], expected[clear], rtol=1e-4, atol=1e-7
        )


def test_parts_add_up_and_chunks_change_nothing(rng, monkeypatch):
    model, X, new = fitted(rng, "rbf")
    found = probability_sensitivity(model, new)
    np.testing.assert_allclose(found.log_C, found.log_cost_positive + found.log_cost_negative)
    monkeypatch.setattr("bootprob.ensemble.sensitivity._AT_ONCE", 2**14)
    again = probability_sensitivity(model, new, X)
    np.testing.assert_allclose(again.row_weight, found.row_weight, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(again.log_gamma, found.log_gamma, rtol=1e-6, atol=1e-9)
    assert again.status == found.status


def test_feature_maps_are_linear_machines_on_their_columns(rng):
    X, y = drawn(rng)
    model = BootstrapSVC(
        kernel="rbf", feature_map="nystroem", n_components=40, gamma=0.05, C=1.0, n_bootstraps=3
    ).fit(X, y)
    found = probability_sensitivity(model, X[:3], X)
    assert found.log_gamma is None
    assert np.isfinite(found.row_weight).all()
    assert np.abs(found.row_weight).max() > 0


def test_more_columns_than_rows_and_duplicates(rng):
    X = np.repeat(rng.normal(size=(15, 40)), 2, axis=0)
    y = np.repeat(rng.permutation(np.arange(15) % 2), 2)
    model = BootstrapSVC(kernel="linear", C=[0.01, 1.0], n_bootstraps=5, random_state=0)
    with pytest.warns(CopiedRowsWarning, match="30 of 30 rows"):
        model.fit(X, y)
    found = probability_sensitivity(model, X[:4])
    assert np.isfinite(found.row_weight).all()
    assert sum(found.status.values()) == 10


def test_rows_without_weight_have_no_say(rng):
    X, y = drawn(rng)
    weight = np.ones(len(y))
    weight[:5] = 0
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=4, random_state=0).fit(X, y, weight)
    assert (probability_sensitivity(model, X[:3], X).row_weight[:, :5] == 0).all()


def test_what_cannot_be_differentiated_is_refused(rng):
    model, X, new = fitted(rng, "linear")
    with pytest.raises(DataError, match="does not keep its training rows"):
        probability_sensitivity(model, new)
    with pytest.raises(DataError, match=r"X_train has shape .*fitted to"):
        probability_sensitivity(model, new, X[:-1])
    with pytest.raises(DataError, match="not what the model was fitted to"):
        probability_sensitivity(model, new, X + 1)
    votes, X, new = fitted(rng, "linear", calibration=None)
    with pytest.raises(DataError, match="calibration=None"):
        probability_sensitivity(votes, new, X)
    X, y = drawn(rng)
    constrained = BootstrapSVC(
        kernel="linear",
        C=1.0,
        n_bootstraps=3,
        control="constrained",
        rates={"tpr": 0.9},
        random_state=0,
    ).fit(X, y)
    with pytest.raises(DataError, match="under constraints"):
        probability_sensitivity(constrained, new, X)


def test_rows_in_another_order_are_noticed(rng):
    """Means and spreads agree, but the machines are others."""
    X, y = drawn(rng)
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=4, random_state=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="scores up to .* in the same order"):
        probability_sensitivity(model, X[:5], X[::-1])


@pytest.mark.parametrize("seed", range(4))
def test_they_are_noticed_where_intercepts_are_free(seed):
    """Of few rows some machines have no free support vector."""
    rng = np.random.default_rng(seed)
    X, y = drawn(rng, 24)
    options = {"kernel": "linear", "C": [0.01, 100.0], "n_bootstraps": 20, "random_state": 0}
    model = BootstrapSVC(**options).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        right = probability_sensitivity(model, X[:5], X)
    assert SetStatus.NO_FREE in right.status
    with pytest.warns(ConvergenceWarning, match="in the same order"):
        probability_sensitivity(model, X[:5], rng.permutation(X))


def test_a_probability_moves_as_announced(rng):
    """To first order, over a step that a person can see."""
    model, X, new = fitted(rng, "rbf, one scale")
    found = probability_sensitivity(model, new)
    row = int(np.abs(found.row_weight).sum(axis=0).argmax())
    moved, _ = refitted(model, X, new, np.eye(len(X))[row] * 1e-3)
    slope, intercept = model.sigmoid_
    probability = expit(slope * moved + intercept)
    announced = found.probability + 1e-3 * found.row_weight[:, row]
    np.testing.assert_allclose(probability, announced, atol=1e-4)
