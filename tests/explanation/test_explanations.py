"""Contributions and partial dependence beside brute force, closed forms and what is known."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import logit
from sklearn.base import clone

from bootprob import BootstrapSVC, DataError
from bootprob.ensemble.fitted import two_classes_of
from bootprob.ensemble.uncertainty.curves import FAMILIES, Curve, Landmarks
from bootprob.explanation import contributions, partial_dependence, permutation_importance
from bootprob.explanation.coalitions import Coalitions
from bootprob.persistence.save_load import load, save
from bootprob.preparation.views import learn_views
from bootprob.tables.model import TableModel
from mixed_tables import credit_table


def by_all_orders(answer, row, background):
    """Shapley values by their definition."""
    q = len(row)
    found = np.zeros(q)
    for order in permutations(range(q)):
        for other in background:
            at = other.copy()
            for column in order:
                before = answer(at[None])[0]
                at[column] = row[column]
                found[column] += answer(at[None])[0] - before
    return found / (len(list(permutations(range(q)))) * len(background))


def some_function(rows):
    return rows[:, 0] * rows[:, 1] - np.exp(rows[:, 2]) + 2 * rows[:, 3]


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(1).normal(size=(8, 4))


def test_all_coalitions_are_all_orders(rows):
    row, background = rows[0], rows[1:4]
    every = Coalitions.of(4, 3, 0, np.random.default_rng(0))
    assert every.orders is None
    found = every.mixing @ some_function(every.between(row, background))
    np.testing.assert_allclose(found, by_all_orders(some_function, row, background), atol=1e-12)


def contributions_of_sum(q, n_background):
    """Of a linear machine with more columns than coalitions are looked at for; and the truth."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, q))
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5, random_state=0)
    model.fit(X, X[:, 0] + rng.normal(size=60) > 0)
    found = contributions(model, X[:1], X[:n_background])
    slope = model.sigmoid_[0] * model.coef_[0]
    assert found.base == pytest.approx(logit(model.predict_proba(X[:n_background])[:, 1]).mean())
    return found.contribution[0], slope * (X[0] - X[:n_background].mean(axis=0))


def test_random_orders_are_exact_without_interactions_and_near_with(rows):
    row, background = rows[0], rows[1:4]

    def additive(X):
        return np.exp(X[:, 2]) + 2 * X[:, 3]

    uneven = contributions_of_sum(7, 16)
    np.testing.assert_allclose(*uneven, atol=1e-9)
    drawn = Coalitions._sampled(4, 3, 300, np.random.default_rng(0))
    assert (drawn.error(additive(drawn.between(row, background))) < 1e-12).all()
    between = drawn.between(row, background)
    found = drawn.mixing @ additive(between)
    np.testing.assert_allclose(found, by_all_orders(additive, row, background), atol=1e-12)
    answers = some_function(between)
    true, error = by_all_orders(some_function, row, background), drawn.error(answers)
    assert (np.abs(drawn.mixing @ answers - true) <= 5 * error + 1e-12).all()
    assert (error[:2] > 0).all()
    assert error.max() < 0.1


def test_error_is_that_of_drawing_orders_also_where_an_order_and_its_reverse_agree(rows):
    """tanh between a row and its mirror image: both have the same difference, and it is none."""
    row, n_pairs = np.full(12, 0.8), 38
    values, errors = [], []
    for seed in range(200):
        drawn = Coalitions.of(12, 1, n_pairs, np.random.default_rng(seed))
        answers = np.tanh(drawn.between(row, -row[None])[:, :6].sum(axis=1))
        values.append((drawn.mixing @ answers)[:6])
        errors.append(drawn.error(answers)[:6])
    assert drawn.degrees_of_freedom == n_pairs - 1
    said = np.sqrt(np.square(errors).mean(axis=0))
    np.testing.assert_allclose(said, np.std(values, axis=0, ddof=1), rtol=0.25)
    held = np.abs(np.array(values) - np.mean(values)) <= 2 * np.array(errors)
    assert held.mean() > 0.9


@pytest.fixture(scope="module")
def straight():
    """Two columns that count, one that does not; a model of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = 1.5 * X[:, 0] - X[:, 1] + rng.logistic(size=150) > 0
    return X, BootstrapSVC(n_bootstraps=10, effort="low", random_state=0).fit(X, y)


def test_contributions_are_those_of_predict_proba(straight):
    X, model = straight
    background = X[:5]

    def log_odds(rows):
        return logit(model.predict_proba(rows)[:, 1])

    found = contributions(model, X[100:102], background)
    expected = [by_all_orders(log_odds, row, background) for row in X[100:102]]
    np.testing.assert_allclose(found.contribution, expected, atol=1e-9)
    assert found.base == pytest.approx(log_odds(background).mean())
    np.testing.assert_allclose(
        found.base + found.contribution.sum(axis=1), logit(found.probability), atol=1e-9
    )
    assert found.columns == ["x0", "x1", "x2"]
    tensors = contributions(model, torch.from_numpy(X[100:102]), torch.from_numpy(background))
    np.testing.assert_array_equal(tensors.interval, found.interval)
    assert (found.error == 0).all()
    lower, upper = found.interval[..., 0], found.interval[..., 1]
    assert ((lower <= found.contribution) & (found.contribution <= upper)).all()
    narrower = contributions(model, X[100:102], background, level=0.5).interval
    assert ((lower <= narrower[..., 0]) & (narrower[..., 1] <= upper)).all()


def test_what_counts_is_told_from_what_does_not(straight):
    _, model = straight
    row, background = np.array([[1.5, 1.5, 1.5]]), np.zeros((1, 3))
    found = contributions(model, row, background, level=0.95)
    [lower], [upper] = found.interval[..., 0], found.interval[..., 1]
    assert lower[0] > 0
    assert upper[1] < 0
    assert lower[2] < 0 < upper[2]
    frame = found.to_frame()
    assert frame["column"].tolist() == ["x0", "x1", "x2"]
    assert frame.columns.tolist() == [
        *("row", "probability", "column", "contribution", "lower", "upper")
    ]


def test_posterior_s_combinations_have_the_moments_of_logits_that_vary_together(straight):
    """Of single rows those that intervals are made of; of sums and differences a bilinear form."""
    X, model = straight
    scores = two_classes_of(model, "tests").scores
    rows = X[:6]
    single = scores.kernel_logits(rows)
    np.testing.assert_allclose(scores.combined_logits(rows, np.eye(6)), single, atol=1e-7)
    one, other = np.eye(6)[0], np.eye(6)[3]
    both = scores.combined_logits(rows, np.stack([one + other, one - other, one - one, 3 * one]))
    variance = both[..., 1] ** 2
    expected = 2 * (single[0, :, 1] ** 2 + single[3, :, 1] ** 2)
    np.testing.assert_allclose(variance[0] + variance[1], expected, rtol=1e-6)
    assert (both[2, :, 1] <= 1e-5).all()
    np.testing.assert_allclose(both[3], 3 * single[0], rtol=1e-6)
    twin = scores.combined_logits(X[[0, 0]], np.array([[1.0, -1.0]]))
    assert (np.abs(twin) <= 1e-4).all()


def test_curves_of_all_families_between_rows():
    """Kernels between rows are those with landmarks, where the rows are the landmarks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    rows = torch.from_numpy((X - X.mean(axis=0)) / X.std(axis=0))
    landmarks = Landmarks(rows, learn_views(rows.numpy(), np.ones(60)))
    seen = landmarks.seen(rows)
    for family in FAMILIES[1:]:
        for view, columns in (("columns", ()), ("scores", (0, 2))):
            curve = Curve(family, view, 0.7, columns)
            between = landmarks.between(curve, seen, seen)
            torch.testing.assert_close(between.diagonal(), landmarks.diagonal(curve, seen))
            torch.testing.assert_close(between, between.mT)
            if family in ("rbf", "laplacian"):
                known = between[:, :: landmarks.of(curve).stride]
                torch.testing.assert_close(known, landmarks.values(curve, seen))
            if family == "additive":
                own = curve.of(seen[view])
                apart = (own[:, None] - own[None]).square()
                torch.testing.assert_close(between, (-0.7 * apart).exp().mean(2))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_other_kernels_have_intervals_of_replicates(kernel, straight):
    X, _ = straight
    y = X[:, 0] + np.random.default_rng(2).normal(size=150) > 0
    model = BootstrapSVC(kernel=kernel, C=1.0, n_bootstraps=40, random_state=0).fit(X, y)
    found = contributions(model, X[:3], X[:4])
    assert (np.diff(found.interval) > 0).all()
    if kernel == "rbf":
        contributions(model, X[:1])  # which keeps its rows
    else:
        slope = model.sigmoid_[0] * model.coef_[0]
        straight_line = slope * (X[:3] - X[:4].mean(axis=0))
        np.testing.assert_allclose(found.contribution, straight_line, rtol=1e-6)
        beside_all = slope * (X[:3] - X.mean(axis=0))  # by the mean row, which the model has
        exact = contributions(model, X[:3])
        np.testing.assert_allclose(exact.contribution, beside_all, rtol=1e-6)
        assert exact.base == pytest.approx(logit(model.predict_proba(X)[:, 1]).mean())
        logits = two_classes_of(model, "tests").replicate_logits
        for j in range(X.shape[1]):  # of all training rows with one column moved
            moved = np.repeat(X[None], 3, axis=0)
            moved[:, :, j] = X[:3, j, None]
            added = [logits(each).mean(axis=0) - logits(X).mean(axis=0) for each in moved]
            bounds = np.percentile(added, [2.5, 97.5], axis=1).T
            np.testing.assert_allclose(exact.interval[:, j], bounds, rtol=1e-6, atol=1e-9)
        steps = clone(model).set_params(calibration="isotonic").fit(X, y)
        with pytest.raises(DataError, match="does not keep its training rows"):
            contributions(steps, X[:1])


def test_partial_dependence_is_the_mean_over_rows(straight):
    X, model = straight
    found = partial_dependence(model, "x1", X[:10], values=[-1.0, 0.0, 2.0])
    for k, value in enumerate(found.values):
        moved = X[:10].copy()
        moved[:, 1] = value
        assert found.log_odds[k] == pytest.approx(logit(model.predict_proba(moved)[:, 1]).mean())
    assert (np.diff(found.log_odds) < 0).all()
    assert (found.interval[:, 0] <= found.log_odds).all()
    assert (found.log_odds <= found.interval[:, 1]).all()
    assert (found.probability_interval[:, 0] <= found.probability).all()
    assert len(partial_dependence(model, np.int64(0)).values) == 20
    assert len(partial_dependence(model, 0, n_values=200).values) == 200


@pytest.fixture(scope="module")
def loans():
    return TableModel.fit(
        credit_table(80), "risk", "bad", kernel="rbf", C=1.0, n_bootstraps=20, random_state=0
    )


def test_columns_of_a_table_are_explained_as_such(loans, tmp_path):
    """Levels of a column count together; a file explains as the model does."""
    table = credit_table(6, seed=1).drop(columns="risk")
    found = contributions(loans, table)
    assert found.columns == list(loans.preprocessor.kinds_)
    predicted = loans.predict(table)["probability"]
    np.testing.assert_allclose(found.probability, predicted)
    np.testing.assert_allclose(found.base + found.contribution.sum(axis=1), logit(predicted))
    purposes = partial_dependence(loans, "purpose")
    assert purposes.values.tolist() == loans.preprocessor.levels_["purpose"]
    save(loans, tmp_path / "m")
    again = contributions(load(tmp_path / "m"), table)
    np.testing.assert_array_equal(again.interval, found.interval)
    frame = BootstrapSVC(kernel="rbf", C=1.0, n_bootstraps=5, random_state=0)
    svc = frame.fit(credit_table(80).drop(columns="risk"), credit_table(80)["risk"])
    assert contributions(svc, table[:1]).columns == found.columns


def test_what_cannot_be_explained(straight, loans):
    X, model = straight
    some = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5)
    positive = X[:, 0] > 0.1
    votes = BootstrapSVC.paper(n_bootstraps=5).fit(X, positive)
    with pytest.raises(DataError, match="calibration=None"):
        contributions(votes, X[:1], X)
    three = clone(some).fit(X, np.arange(150) % 3)
    with pytest.raises(DataError, match="no label is given; the model has 0, 1, 2"):
        contributions(three, X[:1], X)
    given = clone(some).set_params(kernel="precomputed").fit(X @ X.T, positive)
    with pytest.raises(DataError, match="precomputed kernel knows no columns"):
        contributions(given, X @ X.T)
    wide = np.random.default_rng(4).normal(size=(40, 1001))
    many = clone(some).fit(wide, wide[:, 0] > 0)
    with pytest.raises(DataError, match="1,001 columns are too many to be explained one by one"):
        contributions(many, wide[:1])
    with pytest.raises(DataError, match="501 values of 'x0' are too many"):
        partial_dependence(model, 0, X, n_values=501)
    with pytest.raises(DataError, match="values of 'purpose' are levels of it"):
        partial_dependence(loans, "purpose", values="x")
    with pytest.raises(DataError, match="n_orders is 2; give a whole number, 4 or more"):
        contributions(model, X[:1], n_orders=2)
    with pytest.raises(DataError, match="level"):
        contributions(model, X[:1], level=95)
    with pytest.raises(DataError, match="There is no column 'x7'; the model has x0, x1, x2"):
        partial_dependence(model, "x7")
    with pytest.raises(DataError, match="and rows come after it; got ndarray"):
        partial_dependence(model, X, 0)
    with pytest.raises(DataError, match="give finite numbers for the column 'x0'"):
        partial_dependence(model, 0, values=[np.nan])
    with pytest.raises(DataError, match="values of 'purpose' are levels of it"):
        partial_dependence(loans, "purpose", values=["boat"])
    with pytest.raises(DataError, match="give a data frame, not ndarray"):
        contributions(loans, np.zeros((1, 7)))
    with pytest.raises(ValueError, match="features"):
        contributions(model, X[:1, :2])


def test_a_pair_of_classes_of_a_table_takes_the_matrix():
    table = credit_table(90)
    X, y = table.drop(columns="purpose"), table["purpose"]
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5, random_state=0).fit(X, y)
    with pytest.raises(DataError, match=r"pair_ensembles_ \(with preprocessor_.transform\(X\)\)"):
        model.metric_intervals()
    rows = model.preprocessor_.transform(X)
    assert contributions(model.pair_ensembles_[0], rows[:2], rows).contribution.shape[0] == 2


def test_names_of_data_frames(straight):
    X, _ = straight
    frame = pd.DataFrame(X, columns=["age", "dose", "noise"])
    y = X[:, 0] + np.random.default_rng(3).normal(size=150) > 0
    model = BootstrapSVC(kernel="linear", n_bootstraps=5, random_state=0).fit(frame, y)
    assert contributions(model, frame[:2], frame).columns == ["age", "dose", "noise"]
    assert partial_dependence(model, "dose", frame).column == "dose"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (lambda m, X: contributions(m, X[:2], n_orders=4.5), "n_orders is 4.5"),
        (lambda m, X: contributions(m, X[:2], seed=-1), "seed is -1"),
        (lambda m, X: partial_dependence(m, 0, X, n_values=2.5), "n_values is 2.5"),
        (lambda m, X: partial_dependence(m, 0, X, n_values=0), "n_values is 0"),
        (lambda m, X: partial_dependence(m, 0, X, values="a"), "finite numbers for the column"),
        (lambda m, X: permutation_importance(m, X, X[:, 0] > 0, n_repeats=1.5), "n_repeats is 1.5"),
        (lambda m, X: permutation_importance(m, X, X[:, 0] > 0, metric=["auc"]), "metric is"),
    ],
)
def test_parameters_that_are_no_whole_numbers_are_refused(asked, told):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(DataError, match=told):
        asked(model, X)
