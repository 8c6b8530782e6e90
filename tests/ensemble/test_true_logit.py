"""The logit behind noisy scores, and the test of lack of fit."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, logit

from bootprob import BootstrapSVC, DataError, FewRowsWarning, LackOfFitWarning
from bootprob.calibration import Sigmoid
from bootprob.ensemble.uncertainty.probability_intervals import OF_PROBABILITIES
from bootprob.ensemble.uncertainty.true_logit import TrueLogit


def test_true_logits_are_found_behind_noise(rng):
    """Scores are true logits plus noise of known variance, at two base rates."""
    n = 40_000
    for base in (0.0, -3.0):
        truth = base + 1.5 * rng.normal(size=n)
        noise = 0.8
        scores = 2 * (truth + noise * rng.normal(size=n)) + 5  # in units of their own
        positive = rng.uniform(size=n) < expit(truth)
        variance = np.full(n, 4 * noise**2)
        sigmoid = Sigmoid.fit(scores, positive, np.ones(n))
        found = TrueLogit.fit(sigmoid, scores, variance, np.ones(n))
        assert found.reliability == pytest.approx(1.5**2 / (1.5**2 + noise**2), abs=0.02)
        # Of rows of one truth the corrected logits are centred on it, the sigmoid's drawn inwards.
        for low, high in ((-1.7, -1.3), (-0.2, 0.2), (1.3, 1.7)):
            rows = (truth - base > 1.5 * low) & (truth - base < 1.5 * high)
            error = (found.corrected(sigmoid.logit(scores[rows])) - truth[rows]).mean()
            assert abs(error) < 0.3  # to second order only
        far = truth - base > 2.5
        plain = sigmoid.slope * scores[far] + sigmoid.intercept - truth[far]
        assert plain.mean() < -0.3
        half = found.half_width(scores, variance, 0.95)
        error = np.abs(found.corrected(sigmoid.logit(scores)) - truth)
        assert (error <= half).mean() == pytest.approx(0.95, abs=0.03)


def test_few_events_and_few_rows_make_wider_intervals(rng):
    scores = rng.normal(size=300)
    zero, halves = np.zeros(1), []
    for positives in (6, 150):
        positive = np.zeros(300, dtype=bool)
        positive[np.argsort(scores + rng.normal(size=300))[-positives:]] = True
        sigmoid = Sigmoid.fit(scores, positive, np.ones(300))
        found = TrueLogit.fit(sigmoid, scores, np.full(300, 0.01), np.ones(300))
        halves.append(found.half_width(zero, zero, 0.95)[0])
    assert halves[0] > 2 * halves[1]
    assert found.degrees_of_freedom == 298
    normal = found.sigmoid.logit_variance(zero)[0] ** 0.5 / found.reliability
    assert halves[1] == pytest.approx(stats.t.ppf(0.975, 298) * normal)


@pytest.mark.parametrize("case", ["noise", "constant", "separable", "all noise variance", "two"])
def test_ugly_scores(rng, case):
    n = 4 if case == "two" else 60
    scores = np.full(n, 1.0) if case == "constant" else rng.normal(size=n)
    positive = rng.uniform(size=n) < 0.5
    if case == "separable":
        positive = scores > 0
    positive[:2] = True, False
    variance = np.full(n, 10.0 if case == "all noise variance" else 0.1)
    variance[-1] = np.nan  # a row with one replicate out of bag
    sigmoid = Sigmoid.fit(scores, positive, np.ones(n))
    found = TrueLogit.fit(sigmoid, scores, variance, np.ones(n))
    assert 0.5 <= found.reliability <= 1
    asked = np.array([-50.0, 0.0, 50.0])
    assert np.isfinite(found.corrected(sigmoid.logit(asked))).all()
    half = found.half_width(asked, np.full(3, 0.1), 0.95)
    assert np.isfinite(half).all()
    assert (half > 0).all()


@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")  # two labels are wrong
@pytest.mark.parametrize("kind", ["sigmoid", "sigmoid-both", "isotonic", "venn-abers"])
def test_no_interval_has_width_0(rng, kind):
    """Constant columns, ties, rows far out and a class that scores separate."""
    X = np.column_stack([np.round(rng.normal(size=40)), np.ones(40)])
    y = X[:, 0] > 0
    y[:2] = False, True
    model = BootstrapSVC(
        kernel="linear", C=[1.0], n_bootstraps=20, calibration=kind, random_state=0
    ).fit(X, y)
    asked = np.vstack([X, [[1e6, 1.0], [-1e6, 1.0], [0.0, 5.0]]])
    for method in OF_PROBABILITIES:
        lower, upper = model.proba_interval(asked, method=method)[:, 1].T
        assert (lower < upper).all(), method
        assert ((lower >= 0) & (upper <= 1)).all(), method
    for method in ("basic", "percentile", "bca", "studentised"):
        lower, upper = model.score_interval(asked, method=method).T
        assert (lower < upper).all(), method


@pytest.mark.parametrize("kind", ["isotonic", "sigmoid-votes"])
def test_the_interval_holds_that_of_the_sigmoid_and_the_same_moved(kind):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + rng.logistic(size=120) > 0
    model = BootstrapSVC(kernel="linear", C=[1.0], n_bootstraps=20, random_state=0).fit(X, y)
    of_sigmoid, before = model.proba_interval(X)[:, 1], model.predict_proba(X)[:, 1]
    model.set_params(calibration=kind).fit(X, y)
    lower, upper = model.proba_interval(X)[:, 1].T
    moved = logit(model.predict_proba(X)[:, 1].clip(1e-9, 1 - 1e-9)) - logit(before)
    both = np.stack([logit(of_sigmoid), logit(of_sigmoid) + moved[:, None]])
    inside = np.abs(moved) < 5  # where no probability is 0 or 1
    np.testing.assert_allclose(lower[inside], expit(both[..., 0].min(axis=0))[inside], rtol=1e-6)
    np.testing.assert_allclose(upper[inside], expit(both[..., 1].max(axis=0))[inside], rtol=1e-6)


def test_columns_that_say_nothing_give_the_base_rate_with_an_interval():
    X, y = np.ones((30, 2)), np.arange(30) < 10
    model = BootstrapSVC(kernel="linear", C=[1.0], n_bootstraps=20, random_state=0).fit(X, y)
    for method in set(OF_PROBABILITIES) - {"venn-abers"}:  # which says little but the rate itself
        lower, upper = model.proba_interval(X[:1], method=method)[0, 1]
        assert 0 < lower < 1 / 3 < upper < 1, method


def test_two_rows_a_class_and_two_samples():
    """Whatever was left out there are intervals, where it was some of each class."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    seen = set()
    for seed in range(40):
        model = BootstrapSVC(kernel="linear", C=[1.0], n_bootstraps=2, random_state=seed)
        try:
            model.fit(X, y)
        except DataError as error:
            assert "out of bag" in str(error)  # noqa: PT017
            continue
        seen.add(tuple(model.y_[model.oob_counts_ > 0].tolist()))
        for method in OF_PROBABILITIES:
            lower, upper = model.proba_interval(X, method=method)[:, 1].T
            assert (lower < upper).all(), method
    assert {len(set(labels)) for labels in seen} == {2}


def test_a_curved_truth_is_out_of_a_linear_kernels_reach(rng):
    X = rng.normal(size=(400, 2))
    y = rng.uniform(size=400) < expit(4 * np.cos(2 * X[:, 0]))
    linear = BootstrapSVC(kernel="linear", C=[1.0], n_bootstraps=30, random_state=0).fit(X, y)
    assert linear.lack_of_fit_["p_value"] == 0.0001
    with pytest.warns(LackOfFitWarning, match=r"bends in X\[:, 0\]: the truth is out of the ker"):
        linear.proba_interval(X)
    table = pd.DataFrame(X, columns=["age", "sex"])
    named = BootstrapSVC(kernel="linear", C=[1.0], n_bootstraps=30, random_state=0)
    with pytest.warns(LackOfFitWarning, match="bends in 'age'"):
        named.fit(table, y).proba_interval(table)
    linear.proba_interval(X, method="wald")  # which claims nothing
    few = BootstrapSVC(kernel="linear", C=[1.0], n_bootstraps=30, random_state=0)
    few.fit(X[:150], X[:150, 0] > 0)
    with pytest.warns(FewRowsWarning, match=r"as much as 1[45]\d rows of two equally frequent"):
        few.proba_interval(X[:1])
    few.proba_interval(X[:1], method="wald")
    linear.predict_proba(X)
    rbf = BootstrapSVC(kernel="rbf", C=[1.0], gamma=1.0, n_bootstraps=30, random_state=0).fit(X, y)
    assert rbf.lack_of_fit_["p_value"] > 0.01
    assert BootstrapSVC.paper(C=[1.0], n_bootstraps=5).fit(X, y).lack_of_fit_ is None
