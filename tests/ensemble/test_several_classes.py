"""Several classes from their pairs: against the pair itself, Monte Carlo, and a known truth."""

from __future__ import annotations

from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest
from scipy.special import expit, logit, softmax
from scipy.stats import kstest

from bootprob import BootstrapSVC
from bootprob.calibration.coupling import class_pairs, couple
from bootprob.ensemble.fitted import ensemble_of
from bootprob.ensemble.scoring.out_of_bag import quantiles
from bootprob.ensemble.several_classes import (
    SeveralClasses,
    couple_known,
    coupled_interval,
)
from bootprob.exceptions import DataError

METHODS = ["wu-lin-weng", "hastie-tibshirani"]


class LogisticPair:
    """Logistic regression of a pair, by maximum likelihood, with one Newton step per replicate.

    It has what several classes ask of a pair's ensemble, and under a softmax truth it is right:
    so whatever the intervals miss is the coupling's.
    """

    def __init__(self, X: np.ndarray, first: np.ndarray, second: np.ndarray, counts: np.ndarray):
        used = first | second
        Z, t = self._design(X[used]), second[used].astype(float)
        theta = np.zeros(Z.shape[1])
        for _ in range(30):
            p = expit(Z @ theta)
            information = (Z.T * (p * (1 - p))) @ Z + 1e-9 * np.eye(len(theta))
            theta = theta + np.linalg.solve(information, Z.T @ (t - p))
        weights = counts[:, used].astype(float)
        steps = np.linalg.solve(information, ((weights * (t - p)) @ Z).T).T
        self.theta, self.thetas = theta, theta + steps - steps.mean(axis=0)
        self.n_replicates = len(counts)
        self.covariance = np.linalg.inv(information)

    def checked_method(self, method: str | None) -> str:
        return method or "normal"

    @staticmethod
    def _design(X: np.ndarray) -> np.ndarray:
        return np.column_stack([X, np.ones(len(X))])

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        second = expit(self._design(X) @ self.theta)
        return np.stack([1 - second, second], axis=1)

    def proba_interval(self, X: np.ndarray, level: float = 0.95, method: str | None = None):
        Z = self._design(X)
        variance = np.einsum("mi,ij,mj->m", Z, self.covariance, Z)
        half = NormalDist().inv_cdf(0.5 + level / 2) * np.sqrt(variance)
        second = expit(np.stack([Z @ self.theta - half, Z @ self.theta + half], axis=1))
        return np.stack([1 - second[:, ::-1], second], axis=1)

    def logits_both_ways(self, X: np.ndarray) -> np.ndarray:
        return self._design(X) @ self.thetas.T


def draw(rng: np.random.Generator, K: int, n: int, coef: np.ndarray):
    X = rng.normal(size=(n, coef.shape[1]))
    p = softmax(X @ coef.T, axis=1)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    return X, p, y


def ensembles(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, K: int, *, shared: bool):
    def counts() -> np.ndarray:
        return rng.multinomial(len(X), np.full(len(X), 1 / len(X)), size=100)

    once = counts()
    return [
        LogisticPair(X, y == i, y == j, once if shared else counts()) for i, j in class_pairs(K)
    ]


@pytest.mark.parametrize("method", METHODS)
def test_intervals_cover_a_softmax_truth(rng, method):
    """With the pairs' correlations as they are; without them the intervals are too narrow."""
    K, inside, alone, widths = 5, [], [], []
    for _ in range(12):
        coef = 0.7 * rng.normal(size=(K, 3))
        X, _, y = draw(rng, K, 700, coef)
        new, truth, _ = draw(rng, K, 150, coef)
        for shared, covered in ((True, inside), (False, alone)):
            model = SeveralClasses(np.arange(K), ensembles(rng, X, y, K, shared=shared), method)
            bounds = model.proba_interval(new)
            covered.append(((bounds[..., 0] <= truth) & (truth <= bounds[..., 1])).mean())
            widths.append(np.diff(bounds).mean())
    assert 0.91 <= np.mean(inside) <= 0.985
    assert np.mean(alone) < np.mean(inside) - 0.01
    assert np.mean(widths[1::2]) < np.mean(widths[::2])


@pytest.mark.parametrize("method", METHODS)
def test_the_delta_method_is_right_where_errors_are_small(rng, method):
    """Against coupled draws of normal pair logits with a covariance of its own for every row."""
    m, P = 3, 6
    center = rng.normal(size=(m, P))
    factor = 0.02 * rng.normal(size=(m, P, P))
    replicates = center[:, None] + rng.normal(size=(m, 20_000, P)) @ factor.transpose(0, 2, 1)
    z = NormalDist().inv_cdf(0.975)
    half = z * replicates.std(axis=1)
    of_pairs = expit(np.stack([center - half, center + half], axis=-1))
    bounds = coupled_interval(expit(center), of_pairs, replicates, method)
    draws = logit(couple(expit(replicates.reshape(-1, P)), method)).reshape(m, -1, 4)
    ends = logit(bounds)
    np.testing.assert_allclose(np.diff(ends)[..., 0] / 2, z * draws.std(axis=1), rtol=0.03)
    np.testing.assert_allclose(ends.mean(-1), logit(couple(expit(center), method)), atol=1e-8)


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray, list[BootstrapSVC]]:
    """Fitted pair by pair, so without shared draws."""
    from sklearn.datasets import load_iris

    data = load_iris()
    y, fitted = data.target, []
    for i, j in class_pairs(3):
        rows = np.isin(y, (i, j))
        svc = BootstrapSVC(kernel="linear", n_bootstraps=20, C=[0.1, 1.0], random_state=0)
        fitted.append(svc.fit(data.data[rows], y[rows]))
    return data.data, y, fitted


@pytest.mark.parametrize("method", [None, "normal", "percentile"])
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_of_two_classes_intervals_are_the_pairs_own(rng, method, calibration):
    X, _, y = draw(rng, 2, 120, rng.normal(size=(2, 3)))
    svc = BootstrapSVC(
        kernel="linear", n_bootstraps=30, C=[0.1, 1.0], calibration=calibration, random_state=1
    )
    svc.fit(X, np.array(["no", "yes"])[y])
    model = SeveralClasses(svc.classes_, [ensemble_of(svc)])
    np.testing.assert_allclose(model.predict_proba(X), svc.predict_proba(X), rtol=1e-12)
    assert (model.predict(X) == svc.predict(X)).all()
    for level in (0.8, 0.95):
        np.testing.assert_allclose(
            model.proba_interval(X, level, method),
            svc.proba_interval(X, level, method),
            rtol=1e-6,
            atol=1e-10,
        )


def test_replicates_move_with_the_sigmoid(iris):
    """Its slope and intercept taken back, they are the replicate scores."""
    X, _, (_, _, svc) = iris
    logits = ensemble_of(svc).replicate_logits(X)
    assert logits.shape == (150, 20)
    slope, intercept = svc.sigmoid_replicates_.T
    scores = (logits - intercept) / slope
    np.testing.assert_allclose(scores.mean(axis=1), svc.decision_function(X), rtol=1e-8, atol=1e-8)


def test_iris(iris):
    X, y, fitted = iris
    names = np.array(["virginica", "setosa", "versicolor"])
    model = SeveralClasses(names, [ensemble_of(svc) for svc in fitted])
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (model.predict(X) == names[p.argmax(axis=1)]).all()
    assert (model.predict(X) == names[y]).mean() > 0.93
    wide = model.proba_interval(X)
    assert (wide[..., 0] <= p).all()
    assert (p <= wide[..., 1]).all()
    assert (wide[..., 1] > wide[..., 0]).all()
    assert (wide >= 0).all()
    assert (wide <= 1).all()
    inner, outer = (model.proba_interval(X, level, "normal") for level in (0.9, 0.95))
    assert (outer[..., 0] <= inner[..., 0]).all()
    assert (inner[..., 1] <= outer[..., 1]).all()


def test_names_of_classes_do_not_move_intervals():
    """What a posterior leaves open of a class goes to all of its pairs, whatever their order."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3))
    y = (1.2 * X + rng.gumbel(size=X.shape)).argmax(axis=1)
    widths = []
    for names in ([0, 1, 2], [1, 0, 2], [0, 2, 1]):
        model = BootstrapSVC(n_bootstraps=200, effort="low", random_state=0)
        model.fit(X, np.array(names)[y])
        assert all(each.posterior_share_ for each in model.pair_ensembles_)
        widths.append(np.ptp(model.proba_interval(X[:40])[:, names], axis=2).mean(axis=0))
    np.testing.assert_allclose(widths, np.broadcast_to(widths[0], (3, 3)), rtol=0.08)


@pytest.mark.parametrize("n", [20, 2000])
def test_pairs_with_a_class_in_common_share_its_quantiles(n):
    of_pairs = np.stack([quantiles(n, pair) for pair in [(0, 1), (0, 2), (1, 2), (3, 4)]])
    np.testing.assert_allclose(of_pairs.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(of_pairs.std(axis=1, ddof=1), 1)
    expected = [[1, 0.5, -0.5, 0], [0.5, 1, 0.5, 0], [-0.5, 0.5, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(np.corrcoef(of_pairs), expected, atol=1e-12)
    assert kstest(quantiles(2000, (1, 2)), "norm").pvalue > 0.01


@pytest.mark.parametrize("n", [2, 3, 4])
def test_fewer_samples_than_classes_have_quantiles_too(n):
    found = np.stack([quantiles(n, pair) for pair in combinations(range(7), 2)])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.std(axis=1, ddof=1), 1)


def test_names_of_classes_hardly_move_intervals():
    """Beside a posterior, of which each class has numbers of its own."""
    rng = np.random.default_rng(0)
    X, _, y = draw(rng, 4, 160, 1.5 * rng.normal(size=(4, 3)))
    renamed = np.array([3, 0, 7, 2])
    one, other = (
        BootstrapSVC(n_bootstraps=40, effort="low", random_state=0).fit(X, named)
        for named in (y, renamed[y])
    )
    assert one.pair_ensembles_[0].posterior_share_ > 0.2
    found, again = one.proba_interval(X), other.proba_interval(X)[:, renamed.argsort().argsort()]
    np.testing.assert_allclose(found, again, atol=0.03)
    np.testing.assert_allclose(
        np.ptp(again, axis=2).mean(), np.ptp(found, axis=2).mean(), rtol=0.02
    )


def test_blocks_of_rows_change_nothing(iris, monkeypatch):
    X, _, fitted = iris
    model = SeveralClasses(np.arange(3), [ensemble_of(svc) for svc in fitted])
    whole = model.proba_interval(X)
    monkeypatch.setattr("bootprob.ensemble.several_classes._AT_ONCE", 60 * 40)
    np.testing.assert_allclose(model.proba_interval(X), whole, rtol=1e-9, atol=1e-12)
    assert model.proba_interval(X[:0]).shape == (0, 3, 2)


def test_lopsided_intervals_stay_so(rng):
    """A pair that may only gain lets its second class gain and its first class lose."""
    second = np.full((1, 3), 0.5)
    bounds = np.array([[[0.5, 0.9], [0.5, 0.5], [0.5, 0.5]]])
    found = coupled_interval(second, bounds, rng.normal(size=(1, 9, 3)))[0] - 1 / 3
    assert found[0, 0] < -0.01
    assert found[1, 1] > 0.01
    np.testing.assert_allclose([found[0, 1], found[1, 0]], 0, atol=1e-12)


def test_pairs_that_are_certain_have_intervals():
    """Probabilities and bounds of 0 and 1, replicates that never move."""
    second = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.9]])
    bounds = np.stack([np.maximum(second - 0.1, 0), np.minimum(second + 0.1, 1)], axis=-1)
    found = coupled_interval(second, bounds, np.zeros((2, 5, 3)))
    assert np.isfinite(found).all()
    assert (found[..., 0] <= couple(second) + 1e-12).all()
    assert (couple(second) <= found[..., 1] + 1e-12).all()


def test_rows_unknown_to_a_pair_stay_unknown(rng):
    second = rng.random((5, 3))
    second[2, 1] = np.nan
    p = couple_known(second)
    assert np.isnan(p).any(axis=1).tolist() == [False, False, True, False, False]
    np.testing.assert_allclose(p[[0, 1, 3, 4]], couple(second[[0, 1, 3, 4]]))


def test_what_does_not_go_together_is_refused(rng):
    coef = rng.normal(size=(3, 2))
    X, _, y = draw(rng, 3, 100, coef)
    pairs = ensembles(rng, X, y, 3, shared=True)
    with pytest.raises(DataError, match=r"3 classes and 2 ensembles.*here 3"):
        SeveralClasses(np.arange(3), pairs[:2])
    with pytest.raises(DataError, match=r"1 classes and 0 ensembles"):
        SeveralClasses(np.arange(1), [])
    pairs[1].n_replicates = 7
    with pytest.raises(DataError, match=r"\[7, 100\] replicates.*same bootstrap draws"):
        SeveralClasses(np.arange(3), pairs)
    pairs[1].n_replicates = 100
    model = SeveralClasses(np.arange(3), pairs)
    for method in ("wald", "venn-abers"):
        with pytest.raises(DataError, match=rf"'{method}'.*several pairs.*'corrected'"):
            model.proba_interval(X, method=method)
    with pytest.raises(DataError, match=r"level is 2"):
        model.proba_interval(X, 2)
