"""Importance of columns beside brute force, scikit-learn, closed forms and known truths."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit
from scipy.stats import binom
from sklearn.base import clone
from sklearn.inspection import permutation_importance as of_scikit_learn
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from bootprob import BootstrapSVC, DataError
from bootprob.calibration import Sigmoid
from bootprob.calibration.cross_fitting import CrossFitted
from bootprob.ensemble.fitted import two_classes_of
from bootprob.ensemble.left_out_rows import LeftOutRows, Said
from bootprob.ensemble.state import state_of
from bootprob.ensemble.uncertainty.curves import FAMILIES, Curve, Landmarks
from bootprob.explanation import permutation_importance
from bootprob.explanation.permuted_rows import HeldOutRows, Permuted, permutations
from bootprob.explanation.row_values import METRICS, Judged, Metric
from bootprob.intervals.shares import in_effective_rows
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

SCORES = {"log_loss": log_loss, "brier_score": brier_score_loss, "auc": roc_auc_score}


def rows_and_labels(n, seed=0, p=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, 1.5 * X[:, 0] - X[:, 1] + rng.logistic(size=n) > 0


@pytest.fixture(scope="module")
def linear():
    X, y = rows_and_labels(120)
    svc = BootstrapSVC(
        kernel="linear", C=[0.1, 1.0], calibration="sigmoid", n_bootstraps=15, random_state=0
    )
    weight = np.random.default_rng(1).uniform(0.5, 2, 120)
    return X, y, svc.fit(X, y, sample_weight=weight)


@pytest.fixture(scope="module")
def auto():
    X, y = rows_and_labels(60)
    return X, y, BootstrapSVC(n_bootstraps=5, effort="low", random_state=0).fit(X, y)


def by_hand(model, X, donors, column):
    """Out-of-bag scores (k, n) with a column permuted, replicate by replicate."""
    found = []
    for of in donors:
        moved = X.copy()
        moved[:, column] = X[of, column]
        seen, coef = (moved - model.center_) / model.scale_, model.bootstrap_coef_
        total, count = np.zeros(len(X)), np.zeros(len(X))
        for b, drawn in enumerate(model.bootstrap_counts()):
            score = (seen @ coef[b].T + model.bootstrap_intercept_[b]) @ model.weights_
            outside = drawn == 0
            total += outside * (score / model.score_scale_[b] + model.score_offset_[b])
            count += outside
        found.append(total / count)
    return np.array(found)


@pytest.mark.parametrize("metric", SCORES)
def test_importance_is_what_permuting_by_hand_costs(linear, metric):
    X, y, model = linear
    state = state_of(model)
    known = state.calibration_rows()[0]
    assert known.all()
    found = permutation_importance(model, X, y, metric=metric, n_repeats=3, seed=5)
    rng = np.random.default_rng(5)
    donors = permutations(120, 3, rng)
    fitted = CrossFitted.fit(
        Sigmoid,
        model.oob_decision_function_,
        np.zeros(120),
        y,
        in_effective_rows(model.sample_weight_),
    )
    slope, intercept = model.sigmoid_

    def score(scores):
        p = fitted.predict(scores, None)
        if metric == "auc":
            p = expit(slope * scores + intercept)
        return SCORES[metric](y, p, sample_weight=model.sample_weight_)

    baseline = score(model.oob_decision_function_)
    assert found.baseline == pytest.approx(baseline)
    sign = -1 if metric == "auc" else 1
    for column in range(3):
        by_hands = [score(each) for each in by_hand(model, X, donors, column)]
        expected = sign * (np.array(by_hands) - baseline)
        np.testing.assert_allclose(found.importances[column], expected, atol=1e-9)
    np.testing.assert_allclose(found.importances_mean, found.importances.mean(axis=1))
    lower, upper = found.interval.T
    assert lower[0] > 0
    assert lower[2] < 0 < upper[2]
    assert found.to_frame()["column"].tolist()[0] == "x0"


@pytest.mark.parametrize(
    "parameters",
    [
        {"kernel": "auto", "effort": "low"},
        {"kernel": "rbf", "C": [0.5, 2.0], "calibration": "isotonic"},
        {"kernel": "rbf", "C": 1.0, "feature_map": "nystroem", "n_components": 40},
        {"kernel": "linear", "C": 1.0, "calibration": "sigmoid-both"},
        {"kernel": "linear", "C": 1.0, "dtype": "float32"},
        {"kernel": "linear", "C": 1.0, "control": "threshold", "rates": {"tpr": 0.8}},
    ],
    ids=lambda given: "-".join(map(str, given.values())),
)
def test_rows_as_they_are_have_their_out_of_bag_scores(parameters):
    X, y = rows_and_labels(50)
    X, groups = X[:, : 1 if parameters["kernel"] == "auto" else 3], np.arange(50) // 2
    model = BootstrapSVC(n_bootstraps=12, random_state=0, **parameters).fit(X, y, groups=groups)
    ensemble, which = two_classes_of(model, "tests"), np.arange(3, 50)
    rows = LeftOutRows(ensemble, which, X[which])
    known = model.oob_decision_function_[which]
    np.testing.assert_allclose(rows.as_they_are(), known, atol=1e-4)
    [said] = rows.said(slice(None), [X[which][None]])
    assert said.score.shape == (2, 47)
    np.testing.assert_allclose(said.score[1], known, atol=1e-4)
    assert (said.doubt < 1e-3).all()
    if said.votes is not None:
        np.testing.assert_allclose(said.votes[1], model.oob_vote_proba_[which, 1], atol=1e-9)
    found = permutation_importance(model, X, y, n_repeats=1)
    assert found.importances_mean[0] > 0


def test_the_posterior_follows_what_a_row_says_of_itself(auto):
    """Beside the joint normal of both logits, divided by the row's factor."""
    X, _, model = auto
    scores = two_classes_of(model, "tests").scores
    state, weight = state_of(model), model.kernel_posterior_["weight"]
    rows, changed = X[:5], X[:5] + np.array([0.5, 0.0, -1.0])
    left_out = state.oob_kernel_logits_[:5]
    added, doubt = scores.posterior_without(rows, changed[None], left_out)
    both = np.vstack([rows, changed])
    mixing = np.concatenate([np.eye(10), np.eye(10)[:5] + np.eye(10)[5:]])
    moments = scores.combined_logits(both, mixing)  # (15, g, 2)
    for i in range(5):
        mean = moments[[i, 5 + i], :, 0]
        own, other, together = moments[[i, 5 + i, 10 + i], :, 1] ** 2
        expected, apart = np.empty((2, len(weight))), np.empty((2, len(weight)))
        for g in range(len(weight)):
            between = (together[g] - own[g] - other[g]) / 2
            covariance = np.array([[own[g], between], [between, other[g]]])
            precision = np.linalg.inv(covariance)
            shift = precision @ mean[:, g]
            precision[0, 0] += 1 / left_out[i, g, 1] ** 2 - 1 / own[g]
            shift[0] += left_out[i, g, 0] / left_out[i, g, 1] ** 2 - mean[0, g] / own[g]
            without = np.linalg.inv(precision)
            center = without @ shift
            expected[:, g] = center[1], without[1, 1]
            apart[:, g] = center[1] - center[0], [-1, 1] @ without @ [-1, 1]
        nodes, weights = np.polynomial.hermite.hermgauss(32)
        at = expected[0] + np.sqrt(2 * expected[1]) * nodes[:, None]
        p = weights @ expit(at) @ weight / np.sqrt(np.pi)
        expected_added = model.posterior_slope_ * np.log(p / (1 - p))
        assert added[0, i] == pytest.approx(expected_added, rel=1e-6, abs=1e-6)
        spread = apart[1] + (apart[0] - apart[0] @ weight) ** 2
        deviation = model.posterior_slope_ * np.sqrt(spread @ weight)
        assert doubt[0, i] == pytest.approx(deviation, rel=1e-5, abs=1e-6)


def test_curves_of_all_families_beside_a_row(auto):
    X, _, model = auto
    rows = torch.from_numpy((X[:40] - model.center_) / model.scale_)
    landmarks = Landmarks(rows, state_of(model).kernel.of_columns)
    seen = landmarks.seen(rows)
    others = {view: columns.roll(1, 0) for view, columns in seen.items()}
    for family in FAMILIES[1:]:
        for view, columns in (("columns", ()), ("scores", (0, 2))):
            curve = Curve(family, view, 0.7, columns)
            expected = landmarks.between(curve, seen, seen).roll(1, 1).diagonal()
            torch.testing.assert_close(landmarks.beside(curve, seen, others), expected)


@pytest.mark.parametrize("metric", SCORES)
def test_numbers_of_rows_have_the_metric_as_their_mean(metric):
    rng = np.random.default_rng(0)
    p, positive, weight = rng.random(80).round(1), rng.random(80) < 0.4, rng.uniform(0, 3, 80)
    weight /= weight.mean()
    p = p.clip(0.05, 0.95)
    rows = Judged(positive, weight, p, p)
    found = METRICS[metric].values(rows, rows)
    assert found.mean() == pytest.approx(SCORES[metric](positive, p, sample_weight=weight))
    assert len(np.unique(found)) > 10


def test_no_row_gives_its_own_value():
    donors = permutations(9, 200, np.random.default_rng(0))
    assert (donors != np.arange(9)).all()
    np.testing.assert_array_equal(np.sort(donors, axis=1), np.tile(np.arange(9), (200, 1)))


@pytest.mark.parametrize("of_groups", [False, True])
def test_intervals_cover_the_mean_over_pairs_of_rows(of_groups):
    """Of ``x z`` with z permuted it is a covariance; rows in groups are copies of each other."""
    product = Metric("product", lambda rows, among: rows.probability, better=1)
    covered, widths, errors, n = 0, [], [], 60
    for seed in range(400):
        rng = np.random.default_rng(seed)
        x, e = rng.normal(1, 1, n), rng.normal(size=n)
        z = 0.5 + 0.6 * x + 0.8 * e
        groups = None
        if of_groups:
            x, z, groups = np.repeat(x[: n // 2], 2), np.repeat(z[: n // 2], 2), np.arange(n) // 2
        donors = permutations(n, 3, rng)
        said = Said(np.stack([x * z, *(x * z[of] for of in donors)]), None, np.zeros((3, n)))
        asked = HeldOutRows(None, np.zeros((n, 1)))
        rows = Permuted(asked, asked.rows, x > 0, np.ones(n), groups, donors)
        _, rises, (lower, upper) = rows.rise(said, product, 0.9)
        covered += lower <= 0.6 <= upper
        widths.append(upper - lower)
        errors.append(rises.mean() - 0.6)
    assert binom.ppf(1e-7, 400, 0.86) <= covered <= binom.ppf(1 - 1e-7, 400, 0.94)
    assert np.mean(widths) / (2 * 1.67 * np.std(errors)) == pytest.approx(1, abs=0.2)


def test_held_out_rows_as_scikit_learn_has_them(linear):
    _, _, model = linear
    X, y = rows_and_labels(150, seed=3)
    ours = permutation_importance(model, X, y, held_out=True, n_repeats=40)
    theirs = of_scikit_learn(model, X, y, scoring="neg_log_loss", n_repeats=40, random_state=0)
    error = np.hypot(ours.importances_std, theirs.importances_std) / np.sqrt(40)
    assert ours.baseline == pytest.approx(log_loss(y, model.predict_proba(X)[:, 1]))
    assert (np.abs(ours.importances_mean - theirs.importances_mean) < 6 * error + 2e-3).all()
    few = permutation_importance(model, X, y, held_out=True, max_rows=50, columns=["x1"])
    assert few.n_rows == 50
    assert few.columns == ["x1"]
    doubled = permutation_importance(
        model, np.repeat(X, 2, axis=0), np.repeat(y, 2), held_out=True, groups=np.arange(300) // 2
    )
    plain = permutation_importance(model, X, y, held_out=True)
    np.testing.assert_allclose(np.diff(doubled.interval), np.diff(plain.interval), rtol=0.35)


def test_columns_of_tables_and_groups_of_columns():
    table = credit_table(100)
    model = TableModel.fit(
        table, "risk", "bad", kernel="linear", C=1.0, n_bootstraps=15, random_state=0
    )
    found = permutation_importance(model, table)
    assert found.columns == list(model.preprocessor.kinds_)
    assert found.importances_mean[found.columns.index("status")] > 0
    given = permutation_importance(
        model, table, table["risk"], columns={"both": ["months", "status"]}
    )
    assert given.columns == ["both"]
    single = dict(zip(found.columns, found.importances_mean, strict=True))
    assert given.importances_mean[0] > max(single["months"], single["status"])
    new = credit_table(60, seed=1)
    aside = permutation_importance(model, new, held_out=True)
    assert aside.held_out
    again = permutation_importance(model, new.drop(columns="risk"), new["risk"], held_out=True)
    np.testing.assert_array_equal(again.interval, aside.interval)
    frame = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5, random_state=0)
    svc = frame.fit(table.drop(columns="risk"), table["risk"])
    assert permutation_importance(svc, table.drop(columns="risk")).columns == found.columns


def test_rows_that_the_model_keeps(auto, linear):
    X, y, model = auto
    given = permutation_importance(model, X, y, n_repeats=2, columns=["x0"])
    kept = permutation_importance(model, n_repeats=2, columns="x0")
    np.testing.assert_allclose(kept.importances, given.importances, atol=1e-9)
    with pytest.raises(DataError, match="does not keep its training rows"):
        permutation_importance(linear[2])


def test_what_has_no_importance(linear, auto):
    X, y, model = linear
    for given, said in {
        "not the rows of fit, or in another order": (X[::-1], y),
        "y holds other classes than fit was given": (X, ~y),
        "40 rows are given, and the model was fitted to 120": (X[:40], y[:40]),
    }.items():
        with pytest.raises(DataError, match=given):
            permutation_importance(model, *said)
    for said, more in {
        "metric is 'f1'; give one of log_loss, brier_score, auc": {"metric": "f1"},
        "n_repeats is 0; give a whole number, 1 or more": {"n_repeats": 0},
        "max_rows is 5; give a whole number, 10 or more": {"max_rows": 5},
        "give names of the model's: x0, x1, x2": {"columns": ["x7"]},
        "have the weights and groups of fit": {"groups": np.arange(120)},
        "y holds other classes than those of the model": {"held_out": True, "y": np.full(120, 3)},
        "level": {"level": 95},
    }.items():
        with pytest.raises(DataError, match=said):
            permutation_importance(model, X, **more)
    for said, given in {
        "give X": (None, y),
        "classes of held-out rows are not known": (X, None),
        "X has 120 rows, y the shape": (X, y[:50]),
        "8 rows can be asked": (X[:8], y[:8]),
    }.items():
        with pytest.raises(DataError, match=said):
            permutation_importance(model, *given, held_out=True)
    with pytest.raises(DataError, match="finite numbers, 0 or more"):
        permutation_importance(model, X, y, held_out=True, sample_weight=np.full(120, -1.0))
    with pytest.raises(DataError, match="calibration=None"):
        permutation_importance(BootstrapSVC.paper(n_bootstraps=5).fit(X, y), X, y)
    three = clone(model).set_params(n_bootstraps=5).fit(X, np.arange(120) % 3)
    with pytest.raises(DataError, match="of several classes importance is by the log-loss"):
        permutation_importance(three, X, metric="auc")
    assert isinstance(permutation_importance(model, pd.DataFrame(X), y).baseline, float)
