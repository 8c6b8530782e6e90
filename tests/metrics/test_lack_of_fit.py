"""Tests of what intervals take for granted, against other ways to the same numbers."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression

from bootprob.metrics.drawn_labels import drawn_residuals, smallest_p_value, tail_p_values
from bootprob.metrics.forest_scores import forest_knows_more
from bootprob.metrics.intraclass import design_effects
from bootprob.metrics.lack_of_fit import SHARES, ScoreNoise, lack_of_fit
from bootprob.metrics.lack_of_fit_reasons import few_rows, reason_of
from bootprob.metrics.repeated_rows import repeated_rows
from bootprob.metrics.residual_neighbours import residual_neighbours
from bootprob.metrics.score_tests import LinearLogit

SURE = ScoreNoise(reliability=0.95, slope=9.0)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def labels(rng, logit):
    return rng.uniform(size=len(logit)) < expit(logit)


def test_tails_reach_beyond_the_draws(rng):
    squares = np.square(rng.normal(size=(1000, 40)))
    squares[0] = np.linspace(0.1, 25, 40)
    found, exact = tail_p_values(squares)[0], chi2.sf(squares[0], 1)
    error = np.abs(np.log10(found / exact))
    assert (error[exact > 0.01] < 0.2).all()
    assert (error < 1).all()  # down to a millionth
    assert (tail_p_values(np.ones((1000, 2))) == 1).all()
    # The least of 40 independent p-values: Sidak.
    squares[0] = 1.0
    squares[0, 3] = 12.0
    sidak = 1 - (1 - chi2.sf(12.0, 1)) ** 40
    assert smallest_p_value(squares) == pytest.approx(sidak, rel=0.5)


def test_drawn_residuals_have_the_moments_of_labels():
    p = np.array([0.02, 0.5, 0.9])
    found = drawn_residuals(np.array([False, True, True]), p)
    np.testing.assert_allclose(found[0], [-0.02, 0.5, 0.1])
    np.testing.assert_allclose(found[1:].mean(axis=0), 0, atol=0.08)
    np.testing.assert_allclose(found[1:].var(axis=0), p * (1 - p), atol=0.03)


def test_the_fit_is_logistic_regression(rng):
    X = rng.normal(size=(300, 4))
    y = labels(rng, X @ [1, -1, 0.5, 0] + 0.5)
    weight = rng.uniform(0.5, 2, 300)
    ours = LinearLogit.fit(X, y, weight)
    theirs = LogisticRegression(C=10.0, tol=1e-10).fit(X, y, ours.weight)
    np.testing.assert_allclose(ours.logit, theirs.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(ours.slopes, theirs.coef_[0], atol=1e-3)
    likelihood = theirs.predict_log_proba(X)[np.arange(300), y.astype(int)]
    assert ours.log_likelihood() == pytest.approx(ours.weight @ likelihood, rel=1e-5)


def test_classes_may_weigh_what_they_like(rng):
    X = rng.normal(size=(200, 2))
    y = labels(rng, X[:, 0] - 2)
    plain, weighted = (LinearLogit.fit(X, y, np.where(y, w, 1.0)) for w in (1.0, 50.0))
    assert weighted.bend() == plain.bend()


def test_of_three_values_the_statistic_is_pearson_s(rng):
    """A logit linear in three values has one alternative, and the score test is Pearson's X²."""
    x = rng.integers(-1, 2, 2000).astype(float)
    y = labels(rng, 1.2 * x + 0.25 * x**2 - 0.4)
    fit = LinearLogit.fit(x[:, None], y, np.ones(2000))
    pearson = 0.0
    for value in (-1, 0, 1):
        rows = x == value
        p = expit(fit.predict(np.array([[float(value)]])))[0]
        pearson += rows.sum() * (y[rows].mean() - p) ** 2 / (p * (1 - p))
    assert pearson > 1
    found = fit.bend()
    assert found.statistic**2 == pytest.approx(pearson, rel=0.05)
    assert found.p_value == pytest.approx(chi2.sf(pearson, 1), rel=0.3)


def test_p_values_are_those_of_permuted_labels(rng):
    """Without signal labels can be permuted, which needs no theory."""
    X = rng.normal(size=(70, 2))
    y = rng.uniform(size=70) < 0.4
    X[:, 1] += 0.5 * np.square(X[:, 0]) * y
    given = LinearLogit.fit(X, y, np.ones(70)).bend().p_value
    permuted = [
        LinearLogit.fit(X, rng.permutation(y), np.ones(70)).bend().p_value for _ in range(120)
    ]
    assert np.mean(np.array(permuted) <= given) == pytest.approx(given, abs=0.1)


def test_the_likelihood_ratio_of_the_link(rng):
    X = rng.normal(size=(1500, 3))
    logit = X @ [2.0, -1.5, 1.0]
    right, wrong = labels(rng, logit), labels(rng, logit)
    wrong &= rng.uniform(size=1500) > 0.3  # positives that are missed
    fits = [LinearLogit.fit(X, y, np.ones(1500)) for y in (right, wrong)]
    assert fits[0].link_p_value() > 0.01
    assert fits[1].link_p_value() < 1e-4
    square = np.square(fits[1].logit)
    added = np.column_stack([X, square * (fits[1].logit > 0), square * (fits[1].logit <= 0)])
    models = [
        LogisticRegression(C=1e6, tol=1e-8, max_iter=1000).fit(Z, wrong) for Z in (X, added / 10)
    ]
    likelihoods = [
        model.predict_log_proba(Z)[np.arange(1500), wrong.astype(int)].sum()
        for model, Z in zip(models, (X, added / 10), strict=True)
    ]
    expected = chi2.isf(fits[1].link_p_value(), 2)
    assert 2 * (likelihoods[1] - likelihoods[0]) == pytest.approx(expected, rel=0.02)


SHAPES = {
    "a product": (lambda X: X[:, 0] + 1.5 * X[:, 1] * X[:, 2], {1, 2}),
    "a square": (lambda X: X[:, 0] + 1.2 * X[:, 1] ** 2, {1}),
    "a product of three": (lambda X: X[:, 0] + 1.5 * X[:, 1] * X[:, 2] * X[:, 4], {1, 2, 4}),
    "a column divided by another": (lambda X: 2 * X[:, 1] / (np.abs(X[:, 2]) + 0.2), {1, 2}),
    "a step": (lambda X: X[:, 0] + 4 * (X[:, 3] > 0.5), {3}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_columns_that_bend_are_named(rng, shape):
    truth, columns = SHAPES[shape]
    X = rng.normal(size=(500, 5))
    y = labels(rng, truth(X) - np.median(truth(X)))
    found = LinearLogit.fit(X, y, np.ones(500)).bend()
    assert found.p_value < 1e-3
    assert set(found.columns) == columns


def test_a_right_model_is_rarely_doubted(rng):
    """By chance one in a hundred is; six of 60 or more are once in a million times."""
    doubted, neighbours = 0, []
    for _ in range(60):
        X = rng.normal(size=(100, 3))
        p = expit(X @ [1, -1, 0.5])
        y = rng.uniform(size=100) < p
        doubted += reason_of(lack_of_fit(X, y, p, np.ones(100), noise=SURE)) is not None
        neighbours.append(residual_neighbours(X, y, p, np.ones(100))[0])
    assert doubted < 6
    assert 0.3 < np.mean(neighbours) < 0.7


def subjects(rng, n_subjects=80):
    X = np.repeat(rng.normal(size=(n_subjects, 4)), 5, axis=0)
    X += 0.2 * rng.normal(size=X.shape)
    return X, np.repeat(labels(rng, 2 * X[::5, 0]), 5)


def test_repeated_rows_are_told_from_rough_truths(rng):
    X, y = subjects(rng)
    p = expit(LinearLogit.fit(X, y, np.ones(400)).logit)
    assert repeated_rows(X, y, p) < 1e-6
    assert repeated_rows(X, rng.uniform(size=400) < p, p) == 1  # measured again, labels too
    copies = np.repeat(X[::5], 5, axis=0)
    assert repeated_rows(copies, y, p) == 1  # of which there is another warning
    U = rng.uniform(-2, 2, size=(400, 2))
    checkers = (np.floor(2 * U).sum(axis=1) % 2) > 0
    assert repeated_rows(U, checkers, np.full(400, 0.5)) == 1
    assert repeated_rows(X[:59], y[:59], p[:59]) == 1
    found = lack_of_fit(X, y, p, np.ones(400))  # of a kernel that bends
    assert reason_of(found).test == "repeated"
    assert "the subject of each row as groups" in reason_of(found).advice


def stairs(X):
    """A tree of depth three."""
    left = np.where(X[:, 1] > 0.2, np.where(X[:, 2] > 0, 2.5, -2.0), np.where(X[:, 3] > 0, 1, -2.5))
    right = np.where(X[:, 2] > -0.3, np.where(X[:, 1] > 0, -2.5, 2), np.where(X[:, 3] > 0, -1, 2.5))
    return np.where(X[:, 0] > 0, left, right)


def test_a_forest_knows_more_of_stairs_alone(rng):
    """Beside a straight model of them; beside the truth the statistic is a standard normal."""
    known, straight = [], []
    for _ in range(20):
        X = rng.normal(size=(300, 4))
        p = expit(stairs(X))
        y = rng.uniform(size=300) < p
        known.append(forest_knows_more(X, y, p, np.ones(300))[1])
        blind = LogisticRegression().fit(X, y).predict_proba(X)[:, 1]
        straight.append(forest_knows_more(X, y, blind, np.ones(300))[1])
    assert np.mean(straight) > 4
    # The mean and the mean square of 20 are further off once in a million times.
    assert abs(np.mean(known)) < 4.9 / np.sqrt(20)
    assert np.mean(np.square(known)) < 3.4
    found = lack_of_fit(X, y, p, np.ones(300), of_interval=blind)
    assert reason_of(found).test == "trees"
    assert "a forest of trees knows more" in reason_of(found).what
    assert reason_of(lack_of_fit(X, y, p, np.ones(300), of_interval=p)) is None


def test_a_forest_of_weighted_and_few_rows(rng):
    X = rng.normal(size=(200, 3))
    y = labels(rng, X[:, 0])
    p = np.full(200, 0.5)
    of_ones = forest_knows_more(X, y, p, np.ones(200))
    assert forest_knows_more(X, y, p, np.full(200, 7.0)) == pytest.approx(of_ones)
    assert forest_knows_more(X, y, p, rng.uniform(0.5, 2, 200))[1] == pytest.approx(
        of_ones[1], abs=2
    )
    assert forest_knows_more(X[:99], y[:99], p[:99], np.ones(99)) == (1, 0)
    assert forest_knows_more(X, np.arange(200) < 9, p, np.ones(200)) == (1, 0)
    assert forest_knows_more(np.ones((200, 1)), y, p, np.ones(200))[0] > 0.01
    sure = np.where(y, 1.0, 0.0)
    assert forest_knows_more(X, y, sure, np.ones(200))[0] > 0.01


def test_the_agreement_of_nearest_rows_has_its_variance(rng):
    """The p-value of labels that agree by chance: that of a standard normal."""
    X, _ = subjects(rng)
    p = np.full(400, 0.5)
    strongest = min(repeated_rows(X, labels(rng, 0 * p), p) for _ in range(20))
    assert strongest > 0.001


def test_noise_of_scores():
    assert ScoreNoise(0.8, 9.0).p_value(500, 10) == 1
    assert ScoreNoise(0.5, 5.0).p_value(500, 300) < 1e-6
    assert ScoreNoise(0.5, 0.0).p_value(500, 300) == 0.5  # no signal is no misfit
    assert ScoreNoise(0.6, 0.0).p_value(100, 300) == 0  # which none can tell here
    assert ScoreNoise(0.9, 5.0).p_value(100, 300) == 1


def ugly(rng, case):
    n = {"two rows a class": 4, "ten": 10}.get(case, 60)
    X = rng.normal(size=(n, 2))
    y = np.arange(n) < n // 2 if n < 60 else labels(rng, X[:, 0])
    if case == "separable":
        y = X[:, 0] > 0
    if case == "constant column":
        X[:, 1] = 3.0
    if case == "constant columns":
        X[:] = 1.0
    if case == "one column of two values":
        X = (X[:, :1] > 0).astype(float)
    if case == "duplicated rows":
        X, y = X[np.arange(n) // 4 * 4], y[np.arange(n) // 4 * 4]
    if case == "more columns than rows":
        X = rng.normal(size=(n, 90))
    if case == "equal columns":
        X = np.repeat(X[:, :1], 3, axis=1)
    if case == "far out":
        X[0] = 1e6
    if case == "one class":
        y = np.ones(n, dtype=bool)
    if case == "one of a class":
        y = np.arange(n) == 7
    return X, y


@pytest.mark.parametrize(
    "case",
    [
        "separable", "constant column", "constant columns", "one column of two values",
        "duplicated rows", "more columns than rows", "equal columns", "far out", "one class",
        "one of a class", "two rows a class", "ten", "sure", "weights",
    ],
)  # fmt: skip
@pytest.mark.parametrize("noise", [SURE, ScoreNoise(0.5, 0.0), None])
def test_ugly_tables_have_finite_p_values(rng, case, noise):
    X, y = ugly(rng, case)
    p = np.where(y, 1.0, 0.0) if case == "sure" else np.full(len(y), 0.5)
    weight = np.ones(len(y))
    if case == "weights":
        weight = 10.0 ** rng.uniform(-6, 6, len(y))
        weight[:5] = 0.0
        p[5:9] = np.nan
    found = lack_of_fit(X, y, p, weight, noise=noise)
    assert np.isfinite(list(found.values())).all()
    assert 0 < found["p_value"] <= 1
    assert sum(SHARES[test] for test in SHARES if test in found) <= 1 + 1e-12


def test_of_next_to_nothing_nothing_is_said(rng):
    y = rng.uniform(size=50) < 0.5
    few = np.where(np.arange(50) < 9, 0.5, np.nan)
    found = lack_of_fit(rng.normal(size=(50, 2)), y, few, np.ones(50), noise=SURE)
    assert found.pop("informative_rows") < 9
    assert found == {"p_value": 1.0, "statistic": 0.0, "n_rows": 9.0}
    assert reason_of(found) is None


def test_many_rows_and_columns_are_looked_at_in_part(rng):
    X = rng.normal(size=(2100, 60))
    y = labels(rng, 2 * X[:, 0] + 2 * X[:, 1] * X[:, 0] + X[:, 1])
    found = lack_of_fit(X, y, np.full(2100, 0.5), np.ones(2100), noise=SURE)
    assert found["n_rows"] == 2000
    assert {found["column"], found["other_column"]} == {0, 1}


def test_reasons_come_in_order():
    three = {"p_value": 0.001, "statistic": 5.0, "n_rows": 90.0}
    assert reason_of(three).test == "neighbours"  # of older versions
    bend = {
        **three,
        "repeated": 1.0,
        "bends": 1e-4,
        "link": 1e-4,
        "column": 0.0,
        "other_column": 1.0,
    }
    assert reason_of(bend).what.startswith("X[:, 0] and X[:, 1] interact")
    assert reason_of(bend, ["age", "sex"]).what.startswith("'age' and 'sex' interact")
    assert reason_of(bend | {"repeated": 1e-6}).test == "repeated"
    assert reason_of(bend | {"bends": 0.5}).test == "link"
    assert "no column alone" in reason_of({**three, "bends": 1e-4}).what
    assert reason_of(bend | {"p_value": 0.02}) is None


@pytest.mark.parametrize(
    ("n_positive", "n_negative", "scale", "few"),
    [(199, 199, 1, True), (200, 200, 7, False), (110, 1090, 1, True), (120, 1080, 0.1, False)],
)
def test_few_rows_are_told_by_their_labels(rng, n_positive, n_negative, scale, few):
    """Of 1 in ten 4 p q is .36: 1,111 rows are as many as 400."""
    n = n_positive + n_negative
    positive = np.arange(n) < n_positive
    found = lack_of_fit(
        rng.normal(size=(n, 1)), positive, np.full(n, n_positive / n), np.full(n, float(scale))
    )
    exact = 4 * n_positive * n_negative / n
    assert found["informative_rows"] == pytest.approx(exact)
    assert (few_rows(found) is not None) == few == (exact < 400)


def test_rows_of_unequal_weight_are_fewer(rng):
    """Kish: of weights 1 and 0 those that count, of other weights (Σ w)² / Σ w²."""
    rows, positive = rng.normal(size=(600, 1)), np.arange(600) % 2 == 0
    weight = np.where(np.arange(600) < 300, 1.0, 0.0)
    found = lack_of_fit(rows, positive, np.full(600, 0.5), weight)
    assert found["informative_rows"] == pytest.approx(300)
    found = lack_of_fit(rows, positive, np.full(600, 0.5), weight + 0.5)
    assert found["informative_rows"] == pytest.approx(480)
    assert few_rows({"p_value": 1.0}) is None  # of a model file of an older version


def test_rows_of_groups_are_worth_their_design_effect(rng):
    """As many independent rows as have a mean that varies as much, from the whole covariance."""
    groups, rho = rng.integers(40, size=200), 0.3
    positive, weight = np.arange(200) % 2 == 0, np.ones(200)
    effects = design_effects(weight, groups, rho)
    found = lack_of_fit(
        rng.normal(size=(200, 1)), positive, np.full(200, 0.5), weight,
        groups=groups, effects=effects,
    )  # fmt: skip
    covariance = np.where(groups[:, None] == groups, rho, 0.0) + (1 - rho) * np.eye(200)
    told = 1 / effects
    share = told @ positive / told.sum()
    worth = told.sum() ** 2 / (told @ covariance @ told)
    assert found["informative_rows"] == pytest.approx(4 * share * (1 - share) * worth)
    assert found["n_rows"] == len(np.unique(groups))
