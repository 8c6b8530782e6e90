"""Calibrators against scikit-learn and against the definition."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from bootprob import DataError
from bootprob.calibration import (
    CALIBRATORS,
    Beta,
    Isotonic,
    ScoreAndVoteSigmoid,
    Sigmoid,
    VennAbers,
    VoteSigmoid,
    choose_calibration,
    held_out_losses,
    sigmoid_replicates,
    vote_logits,
)
from bootprob.calibration.calibrated import Calibrated
from bootprob.calibration.logistic import fit_each, fit_logistic


@pytest.fixture
def scored(rng):
    scores = rng.normal(size=400) * 3 + 1
    positive = rng.uniform(size=400) < expit(0.8 * scores - 0.5)
    return scores, positive, rng.uniform(0.5, 2, 400)


def test_sigmoid_solves_the_modified_score_equations(scored):
    """Firth (1993): the score plus, for each row, its leverage times one half less its p."""
    scores, positive, weight = scored
    sigmoid = Sigmoid.fit(scores, positive, weight)
    p = sigmoid.predict(scores)
    design = np.column_stack([scores, np.ones_like(scores)])
    root = np.sqrt(weight * p * (1 - p))[:, None] * design
    leverage = np.diag(root @ np.linalg.solve(root.T @ root, root.T))
    modified = design.T @ (weight * (positive - p) + leverage * (0.5 - p))
    np.testing.assert_allclose(modified, 0, atol=1e-5)


def test_sigmoid_is_the_likeliest_when_rows_are_many(rng):
    scores = rng.normal(size=50_000)
    positive = rng.uniform(size=50_000) < expit(2 * scores - 1)
    sigmoid = Sigmoid.fit(scores, positive, np.ones(50_000))
    reference = LogisticRegression(C=np.inf, tol=1e-10).fit(scores[:, None], positive)
    assert sigmoid.slope == pytest.approx(reference.coef_[0, 0], abs=1e-3)
    assert sigmoid.intercept == pytest.approx(reference.intercept_[0], abs=1e-3)


def _fit(columns, positive, weight):
    slopes, intercept = fit_logistic(columns, positive.astype(float), weight)
    return np.array([*slopes, intercept])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("slope", [-2.0, 0.0, 1.0, 40.0, 1e5])
def test_columns_fitted_together_are_those_fitted_by_themselves(rng, slope):
    """Of all scales; one constant, one that separates the classes, and where few rows say much."""
    score = rng.normal(size=90)
    positive = rng.uniform(size=90) < expit(slope * score)
    positive[:2] = True, False
    columns = score + 0.3 * rng.normal(size=(6, 90))
    columns[1:3] *= [[1e6], [1e-6]]
    columns[3], columns[4] = 3.0, positive
    weight = rng.choice([1e-5, 0.5, 2.0], size=90)
    weight[:2] = 1
    slopes, intercepts = fit_each(columns, positive.astype(float), weight)
    for column, slope, intercept in zip(columns, slopes, intercepts, strict=True):
        (own,), base = fit_logistic(column[None], positive.astype(float), weight)
        np.testing.assert_allclose(slope * column + intercept, own * column + base, atol=1e-4)
    few = np.where(positive, 1e-5, 1.0)
    slopes, intercepts = fit_each(columns, positive.astype(float), few)
    assert not slopes.any()
    assert len(set(intercepts)) == 1


@pytest.mark.parametrize("apart", [0.5, 6.0])  # of 6 deviations the scores are separated
def test_jeffreys_prior_has_no_better_parameters(rng, apart):
    positive = np.arange(40) < 15
    weight = rng.integers(1, 4, size=40).astype(float)
    found = np.zeros(3)
    while not (found[:-1] > 0).all():  # a slope held at 0 has a prior of its own
        columns = rng.normal(size=(2, 40)) + apart * positive
        found = _fit(columns, positive, weight)
        assert (found[:-1] >= 0).all()
    design = np.vstack([columns, np.ones(40)])
    best = _penalised(found, design, positive, weight)
    for _ in range(200):
        other = found * (1 + 0.1 * rng.normal(size=3)) + 1e-3 * rng.normal(size=3)
        if (other[:-1] >= 0).all():
            assert _penalised(other, design, positive, weight) >= best - 1e-7
    repeated = _fit(
        np.repeat(columns, weight.astype(int), axis=1),
        np.repeat(positive, weight.astype(int)),
        np.ones(int(weight.sum())),
    )
    np.testing.assert_allclose(repeated, found, rtol=1e-5)
    scaled = _fit(columns * [[1e6], [1e-6]] + 3, positive, weight)
    logits = found @ np.vstack([columns, weight * 0 + 1])
    np.testing.assert_allclose(
        scaled @ np.vstack([columns * [[1e6], [1e-6]] + 3, weight * 0 + 1]), logits, rtol=1e-4
    )


def test_jeffreys_prior_without_slope_is_half_a_row_of_each_class(rng):
    positive = rng.random(30) < 0.3
    positive[0] = True
    k = positive.sum()
    expected = np.log((k + 0.5) / (30 - k + 0.5))
    constant = _fit(np.full((1, 30), 7.0), positive, np.ones(30))
    np.testing.assert_allclose(constant, [0, expected], atol=1e-8)
    wrong_way = np.where(positive, -1.0, 1.0)[None]
    np.testing.assert_allclose(_fit(wrong_way, positive, np.ones(30)), constant, atol=1e-8)


def test_a_class_of_next_to_no_weight_says_nothing_of_slopes(rng):
    positive = np.arange(30) < 12
    weight = np.where(positive, 1e-7, 30 / 18)
    found = _fit(rng.normal(size=(1, 30)) - positive, positive, weight)
    np.testing.assert_allclose(found, [0, np.log(0.5 / 30.5)], rtol=1e-5)


def test_sigmoid_of_few_rows_has_less_bias_than_the_likeliest(rng):
    """What Jeffreys' prior is for, where the likelihood has a maximum at all."""
    ours, likeliest = [], []
    for _ in range(400):
        scores = rng.normal(size=40)
        positive = rng.uniform(size=40) < expit(1.5 * scores)
        if scores[positive].min() >= scores[~positive].max():
            continue
        ours.append(Sigmoid.fit(scores, positive, np.ones(40)).slope)
        fit = LogisticRegression(C=np.inf, tol=1e-8).fit(scores[:, None], positive)
        likeliest.append(fit.coef_[0, 0])
    assert abs(np.mean(ours) - 1.5) < 0.7 * abs(np.mean(likeliest) - 1.5)


def test_fisher_information_gives_the_delta_method(scored):
    scores, positive, weight = scored
    sigmoid = Sigmoid.fit(scores, positive, weight)
    p = sigmoid.predict(scores)
    design = np.column_stack([scores, np.ones_like(scores)])
    information = design.T @ np.diag(weight * p * (1 - p)) @ design
    new = np.array([-2.0, 0.0, 5.0])
    g = np.column_stack([new, np.ones(3)])
    expected = np.diag(g @ np.linalg.inv(information) @ g.T)
    np.testing.assert_allclose(sigmoid.logit_variance(new), expected, rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_sigmoid_does_not_depend_on_the_units_of_the_score(scored, scale):
    scores, positive, weight = scored
    p = Sigmoid.fit(scores, positive, weight).predict(scores)
    q = Sigmoid.fit(scores * scale, positive, weight).predict(scores * scale)
    np.testing.assert_allclose(p, q, atol=1e-6)


def test_separable_scores_stay_finite():
    scores = np.concatenate([np.full(20, -1.0), np.full(30, 1.0)])
    positive = scores > 0
    p = Sigmoid.fit(scores, positive, np.ones(50)).predict(scores)
    # Two groups and two parameters: Jeffreys' prior of each share.
    np.testing.assert_allclose(p[[0, -1]], [0.5 / 21, 30.5 / 31], atol=1e-6)


def test_scores_that_point_the_wrong_way_give_the_base_rate(rng):
    scores = rng.normal(size=100)
    positive = scores < 0.3
    sigmoid = Sigmoid.fit(scores, positive, np.ones(100))
    assert sigmoid.slope == 0
    assert sigmoid.predict(scores)[0] == pytest.approx(positive.mean(), abs=0.01)


def test_constant_scores_give_the_base_rate():
    positive = np.arange(40) < 10
    p = Sigmoid.fit(np.full(40, 3.0), positive, np.ones(40)).predict(np.array([3.0]))
    assert p[0] == pytest.approx(0.25, abs=0.02)


def test_isotonic_is_scikit_learns_on_platts_targets(scored):
    scores, positive, weight = scored
    isotonic = Isotonic.fit(scores, positive, weight)
    up = (weight[positive].sum() + 1) / (weight[positive].sum() + 2)
    down = 1 / (weight[~positive].sum() + 2)
    reference = IsotonicRegression(out_of_bounds="clip").fit(
        scores, np.where(positive, up, down), sample_weight=weight
    )
    new = np.linspace(-20, 20, 101)
    np.testing.assert_allclose(isotonic.predict(new), reference.predict(new), atol=1e-12)
    assert 0 < isotonic.predict(new).min() < isotonic.predict(new).max() < 1


def _penalised(parameters, design, positive, weight):
    """Log-loss less half the logarithm of the information's determinant."""
    logit = parameters @ design
    p = expit(logit)
    _, log_determinant = np.linalg.slogdet((design * (weight * p * (1 - p))) @ design.T)
    return weight @ (np.logaddexp(0, logit) - positive * logit) - log_determinant / 2


def test_sigmoid_on_both_is_the_likeliest_with_jeffreys_prior(rng):
    for slope in (0.8, -0.4):  # where the vote helps, and where it would get a negative slope
        scores = rng.normal(size=150)
        logits = scores + rng.normal(size=150)
        positive = rng.uniform(size=150) < expit(scores + slope * logits)
        weight = rng.uniform(0.5, 2, 150)
        fitted = ScoreAndVoteSigmoid.fit(scores, positive, weight, logits).coefficients
        best = _likeliest(np.stack([scores, logits, np.ones(150)]), positive, weight)
        if (best[:2] < 0).any():
            best = np.zeros(3)
            best[[0, 2]] = _likeliest(np.stack([scores, np.ones(150)]), positive, weight)
        np.testing.assert_allclose(fitted, best, atol=2e-4)
        alone = VoteSigmoid.fit(scores, positive, weight, logits)
        assert alone.coefficients[0] == 0
        expected = Sigmoid.fit(logits, positive, weight).predict(logits)
        np.testing.assert_allclose(alone.predict(scores, logits), expected, rtol=1e-9)


def _likeliest(design, positive, weight):
    start = np.zeros(len(design))
    return minimize(
        _penalised, start, args=(design, positive, weight), method="BFGS", options={"gtol": 1e-6}
    ).x


def test_beta_is_the_likeliest_of_its_family_and_holds_the_sigmoid(rng):
    scores = rng.normal(size=300)
    positive = rng.uniform(size=300) < expit(np.where(scores > 0, 4 * scores, 0.5 * scores))
    weight = np.ones(300)
    beta, sigmoid = Beta.fit(scores, positive, weight), Sigmoid.fit(scores, positive, weight)
    q = sigmoid.predict(scores)
    design = np.stack([np.log(q), -np.log1p(-q), np.ones(300)])
    # To Platt's targets.
    target = np.where(
        positive, (positive.sum() + 1) / (positive.sum() + 2), 1 / (302 - positive.sum())
    )

    def loss(parameters):
        logit = parameters @ design
        return (np.logaddexp(0, logit) - target * logit).sum()

    ours = loss(beta.coefficients)
    assert ours < loss(np.array([1.0, 1.0, 0.0]))
    best = minimize(
        loss,
        [1, 1, 0],
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000},
    )
    assert ours <= best.fun + 1e-6 or (best.x[:2] < 0).any()
    assert (np.diff(beta.predict(np.linspace(-800, 800, 99))) >= 0).all()


def test_venn_abers_is_isotonic_regression_with_one_row_more(rng):
    for _ in range(6):
        n = int(rng.integers(2, 30))
        scores = np.round(rng.normal(size=n), 1)  # with ties
        positive, weight = rng.uniform(size=n) < expit(scores), rng.uniform(0.2, 3, n)
        venn_abers = VennAbers.fit(scores, positive, weight)
        asked = np.concatenate([scores, np.round(rng.normal(size=8) * 2, 1), [-99.0, 99.0]])
        bounds = venn_abers.bounds(asked)
        for score, pair in zip(asked, bounds, strict=True):
            for label, found in enumerate(pair):
                again = IsotonicRegression().fit(
                    np.append(scores, score),
                    np.append(positive, label),
                    sample_weight=np.append(weight, 1.0),
                )
                assert found == pytest.approx(again.predict([score])[0], abs=1e-12)
        assert (bounds[:, 0] < bounds[:, 1]).all()
        p = venn_abers.predict(asked)
        np.testing.assert_allclose(p, bounds[:, 1] / (1 - bounds[:, 0] + bounds[:, 1]))
        assert 0 < p.min() <= p.max() < 1


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize("case", ["usual", "constant", "ties", "separable", "backwards", "tiny"])
def test_every_calibrator_stays_between_0_and_1(rng, kind, case):
    n = 4 if case == "tiny" else 60
    scores = {"constant": np.full(n, 2.0), "ties": rng.integers(0, 3, n).astype(float)}.get(
        case, rng.normal(size=n) * 1e3
    )
    positive = rng.uniform(size=n) < 0.4
    if case in ("separable", "backwards"):
        positive = (scores > 0) == (case == "separable")
    positive[:2] = True, False
    votes = vote_logits((scores > 0).astype(float), 100)
    fitted = CALIBRATORS[kind].fit(scores, positive, np.ones(n), votes)
    asked = np.concatenate([scores, [-1e6, 1e6]])
    p = fitted.predict(asked, np.concatenate([votes, votes[:2]]))
    assert p.shape == asked.shape
    assert ((p >= 0) & (p <= 1)).all()
    # Of rows that are far enough the steep slope of separable scores makes 1.
    if case != "separable" or not kind.startswith("sigmoid"):
        inside = p[:-2]
        assert ((inside > 0) & (inside < 1)).all()


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_derivatives_are_those_of_the_probabilities(rng, kind):
    scores = rng.normal(size=200)
    positive = rng.uniform(size=200) < expit(2 * scores)
    votes = vote_logits(np.round(expit(3 * scores), 2), 100)
    fitted = CALIBRATORS[kind].fit(scores, positive, np.ones(200), votes)
    asked, logits, step = rng.normal(size=40), np.zeros(40), 1e-6
    up, down = (fitted.predict(asked + s, logits) for s in (step, -step))
    clear = np.abs(asked[:, None] - scores).min(axis=1) > 2 * step  # of the knots
    np.testing.assert_allclose(
        fitted.derivative(asked, logits)[clear], ((up - down) / (2 * step))[clear],
        rtol=1e-4, atol=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_logits_have_their_digits_where_probabilities_have_none(scored, kind):
    scores, positive, weight = scored
    shares = np.round(expit(scores), 2)
    sigmoid = Sigmoid.fit(scores, positive, weight)
    fitted = CALIBRATORS[kind].fit(scores, positive, weight, vote_logits(shares, 20))
    calibrated = Calibrated(sigmoid, fitted, 0.3, 20.0)
    p = calibrated.predict(scores, shares)
    np.testing.assert_allclose(expit(calibrated.logit(scores, shares)), p, rtol=1e-9)
    far, votes = np.array([-500.0, -400.0, -300.0, 300.0, 400.0, 500.0]), np.full(6, 0.5)
    logits = calibrated.logit(far, votes)
    p = calibrated.predict(far, votes)
    if kind in ("sigmoid", "sigmoid-both", "beta"):  # which rise without end, as straight lines
        rises = np.diff(logits)
        assert (rises > 10).all()
        assert rises[0] == pytest.approx(rises[1])
        assert rises[3] == pytest.approx(rises[4])
        np.testing.assert_allclose(p, expit(logits), rtol=1e-9)
    else:
        np.testing.assert_allclose(logits, np.log(p / (1 - p)), rtol=1e-9)


def test_weights_count_as_repetitions(rng):
    scores = rng.normal(size=40)
    positive, times = rng.uniform(size=40) < expit(2 * scores), rng.integers(1, 4, 40)
    votes = vote_logits(expit(scores), 50)
    repeated = [np.repeat(a, times) for a in (scores, positive, np.ones(40), votes)]
    for kind, calibrator in CALIBRATORS.items():
        once = calibrator.fit(scores, positive, times.astype(float), votes)
        again = calibrator.fit(*repeated)
        np.testing.assert_allclose(
            once.predict(scores, votes), again.predict(scores, votes), rtol=1e-5, err_msg=kind
        )


def test_the_choice_leaves_the_sigmoid_only_for_what_is_clearly_better(rng):
    scores = np.concatenate([rng.normal(size=3000), rng.uniform(-3, 3, 1000)])
    n, weight = len(scores), np.ones(len(scores))
    votes = vote_logits(np.full(n, 0.5), 100)
    right = rng.uniform(size=n) < expit(1.5 * scores - 0.3)
    losses = held_out_losses(scores, votes, right, weight)
    chosen = choose_calibration(scores, votes, right, weight)
    gain = losses["sigmoid"] - losses[chosen]
    assert chosen == "sigmoid" or gain.sum() > gain.std() * np.sqrt(n)
    step = rng.uniform(size=n) < np.where(scores > 0.2, 0.55, np.where(scores > -1, 0.45, 0.02))
    assert choose_calibration(scores, votes, step, weight) in ("isotonic", "venn-abers")
    few = np.arange(30) < 4
    assert choose_calibration(rng.normal(size=30), votes[:30], few, np.ones(30)) == "sigmoid"


def test_held_out_losses_are_of_rows_that_taught_nothing(rng):
    scores, weight = rng.normal(size=80), np.ones(80)
    positive, votes = rng.uniform(size=80) < 0.5, vote_logits(np.full(80, 0.3), 100)
    losses = held_out_losses(scores, votes, positive, weight)
    assert losses.keys() == CALIBRATORS.keys()
    for kind, calibrator in CALIBRATORS.items():
        p = calibrator.fit(scores, positive, weight, votes).predict(scores, votes)
        own = -np.log(np.where(positive, p, 1 - p))
        assert losses[kind].mean() > own.mean() - 1e-12


def test_sigmoid_replicates_are_those_of_a_refit_to_first_order(rng):
    n, B = 4000, 40
    scores = rng.normal(size=n)
    positive, weight = rng.uniform(size=n) < expit(1.2 * scores - 1), rng.uniform(0.5, 1.5, n)
    sigmoid = Sigmoid.fit(scores, positive, weight)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=B).astype(np.uint8)
    found = sigmoid_replicates(sigmoid, scores, positive, weight, counts)
    again = [Sigmoid.fit(scores, positive, weight * count) for count in counts]
    refit = np.array([[each.slope, each.intercept] for each in again])
    moved = refit - refit.mean(axis=0)
    error = found - found.mean(axis=0) - moved
    assert (error.std(axis=0) < 0.1 * moved.std(axis=0)).all()


def test_scores_that_are_rounded_are_still_tied_to_those_of_calibration() -> None:
    scores = np.array([-3.0, -1.0, -1.0, -1.0 + 1e-9, 0.0, 2.0])
    found = VennAbers.fit(scores, np.array([False, True, False, True, False, True]), np.ones(6))
    at, off = found.bounds(found.scores), found.scores * 1e-15
    np.testing.assert_array_equal(found.bounds(found.scores + off), at)
    np.testing.assert_array_equal(found.bounds(found.scores - off), at)
    assert len(np.unique(found.bounds(np.array([-1.0, -1.0 + 5e-10, -1.0 + 1e-9])), axis=0)) == 3
    assert (found.bounds(np.array([1.9])) != at[-1]).any()


@pytest.mark.parametrize("unit", [1e-9, 1e-5, 1e6])
def test_pairs_do_not_depend_on_the_unit_of_scores(rng, unit):
    scores, weight = rng.normal(size=100), rng.uniform(0.1, 3, size=100)
    positive = rng.uniform(size=100) < expit(2 * scores)
    asked = np.r_[scores, (scores[1:] + scores[:-1]) / 2, np.linspace(-4, 4, 801)]
    pairs, others = (
        VennAbers.fit(scores * each, positive, weight).bounds(asked * each) for each in (1.0, unit)
    )
    far = np.abs(asked[:, None] - scores).min(axis=1) > 1e-4
    np.testing.assert_allclose(others[far], pairs[far], rtol=1e-9)
    at = slice(0, len(scores))
    np.testing.assert_allclose(others[at], pairs[at], rtol=1e-9)


def test_scores_that_are_all_0_are_found_again():
    found = VennAbers.fit(np.zeros(9), np.arange(9) < 3, np.ones(9))
    np.testing.assert_array_equal(found.bounds(np.array([1e-17, -1e-17])), found.bounds([0.0, 0.0]))


@pytest.mark.parametrize("calibrator", [Isotonic, Beta, Sigmoid, VennAbers])
def test_labels_of_0_and_1_are_labels(rng, calibrator):
    scores, weight = rng.normal(size=100), rng.uniform(0.1, 3, size=100)
    positive = rng.uniform(size=100) < expit(2 * scores)
    one, other = (calibrator.fit(scores, each, weight) for each in (positive.astype(int), positive))
    np.testing.assert_array_equal(one.predict(scores), other.predict(scores))


def test_losses_far_out_are_those_of_the_formula_and_choose():
    """Probabilities that round to 1 lost infinity, and the sigmoid stayed for want of a number."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=100)
    positive = rng.random(100) < expit(4 * scores)
    scores[0], positive[0] = 30, False
    ones = np.ones(100)
    losses = held_out_losses(scores, scores, positive, ones)
    assert all(np.isfinite(each).all() for each in losses.values())
    assert losses["sigmoid"][0] > 100
    difference = losses["sigmoid"] - losses["venn-abers"]
    assert difference.sum() > difference.std(ddof=1) * 10
    assert choose_calibration(scores, scores, positive, ones) == "venn-abers"


@pytest.mark.parametrize("name", CALIBRATORS)
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"weight": [-1.0, 1, 1, 1]}, "weight must be"),
        ({"weight": [0.0, 0, 0, 0]}, "weight must be"),
        ({"positive": [1, 2, 1, 2]}, "positive must hold"),
        ({"positive": ["0", "1", "0", "1"]}, "positive must hold"),
        ({"positive": [True, False]}, "of the same rows"),
        ({"scores": [0.1, np.nan, 0.3, 0.4]}, "scores must be finite"),
    ],
)
def test_calibrators_refuse_what_they_cannot_learn_from(name, wrong, told):
    given = {
        "scores": [-2.0, -1.0, 1.0, 2.0], "positive": [0, 1, 0, 1], "weight": [1.0] * 4,
        "vote_logits": np.array([-3.0, -1.0, 1.0, 3.0]),
    }  # fmt: skip
    with pytest.raises(DataError, match=told):
        CALIBRATORS[name].fit(**given | wrong)
    fitted = CALIBRATORS[name].fit(**given)
    assert np.isfinite(fitted.predict(np.array([0.0]), np.array([0.0]))).all()
    if fitted.needs_votes:
        with pytest.raises(DataError, match="goes by votes"):
            fitted.predict(np.array([0.0]))
