"""Sollich's machine: evidence and posterior against numerical integration, and its mode."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import invgauss, kstest, norm
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bootprob.baselines import SollichSVC
from bootprob.baselines.hinge_posterior import (
    INTERCEPT_SD,
    PriorColumns,
    _inverse_gaussian,
    chained_evidence,
    gibbs,
    log_kappa,
)
from bootprob.baselines.laplace_evidence import laplace_evidence
from bootprob.baselines.sollich import log_likelihood


def hinge(margin):
    return np.maximum(0.0, 1 - margin)


def one_column(rng, n):
    """Standardised rows of a single column, and labels −1 and +1 that depend on it."""
    x = rng.normal(size=n)
    label = np.where(x + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    label[np.argmin(x)], label[np.argmax(x)] = -1.0, 1.0
    return ((x - x.mean()) / x.std())[:, None], label


class OnAGrid:
    """The posterior of (v, b) of one column, summed over a fine grid."""

    def __init__(self, x, label, C, amplitude, most_b=35.0, n_b=1401):
        v = np.linspace(-7, 7, 1201) * np.sqrt(amplitude)
        b = np.linspace(-most_b, most_b, n_b)
        self.v, self.b = v[:, None], b[None]
        loss = sum(hinge(t * (self.v * z + self.b)) for z, t in zip(x[:, 0], label, strict=True))
        log = norm.logpdf(self.v, 0, np.sqrt(amplitude)) + norm.logpdf(self.b, 0, INTERCEPT_SD)
        log = log - C * loss + len(label) * log_kappa(C)
        cell = (v[1] - v[0]) * (b[1] - b[0])
        self.weight = np.exp(log - log.max())
        self.log_evidence = np.log(self.weight.sum() * cell) + log.max()
        self.weight /= self.weight.sum()

    def mean(self, values):
        return float((self.weight * values).sum())


def test_inverse_gaussians_are_those_of_scipy(rng):
    for mean in (1e-3, 0.7, 40.0, 1e6):
        drawn = _inverse_gaussian(np.full(4000, mean), rng)
        # scipy's invgauss(μ) has mean μ and shape 1; its distribution function loses digits beyond.
        if mean < 1e3:
            assert kstest(drawn, invgauss(mean).cdf).pvalue > 1e-5
        else:  # 1 / χ²₁ in the limit
            assert kstest(1 / np.sqrt(drawn), lambda z: 2 * norm.cdf(z) - 1).pvalue > 1e-5


def test_evidence_by_chaining_is_the_integral(rng):
    x, label = one_column(rng, 14)
    C, amplitude = np.array([0.25, 1.0, 4.0]), np.array([0.25, 16.0])
    found = chained_evidence(x, label, C, amplitude, 1000, rng)
    for (a, A), (c, cost) in itertools.product(enumerate(amplitude), enumerate(C)):
        assert found[a, c] == pytest.approx(OnAGrid(x, label, cost, A).log_evidence, abs=0.6)


def test_draws_and_probabilities_are_those_of_the_posterior(rng):
    x, label = one_column(rng, 25)
    C, A = 1.0, 9.0
    truth = OnAGrid(x, label, C, A)
    model = SollichSVC(C=C, amplitude=A, n_draws=2500, random_state=int(rng.integers(2**31)))
    model.fit(x, label)
    v, b = model.draws_.T
    for drawn, values in ((v, truth.v + 0 * truth.b), (b, truth.b + 0 * truth.v)):
        mean = truth.mean(values)
        sd = np.sqrt(truth.mean(np.square(values - mean)))
        # Draws depend on each other: a tenth of them at least count in full.
        assert abs(drawn.mean() - mean) < 5 * sd / np.sqrt(len(drawn) / 10)
        assert drawn.std() == pytest.approx(sd, rel=0.25)
    for new in (-1.0, 0.1, 0.8):
        theta = truth.v * new + truth.b
        plus = truth.mean(np.exp(-C * hinge(theta)))
        minus = truth.mean(np.exp(-C * hinge(-theta)))
        found = model.predict_proba([[new]])[0, 1]
        assert found == pytest.approx(plus / (plus + minus), abs=0.03)


def test_chains_do_not_depend_on_how_their_matrices_are_made(rng):
    columns = rng.normal(size=(40, 3))
    label = np.where(columns[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)

    def mean_loss(chains):
        C, A = np.full(chains, 0.5), np.full(chains, 4.0)
        path = gibbs(columns, label, C, A, np.zeros((chains, 4)), rng)
        kept = [next(path)[1] for _ in range(8000 // chains)]
        return np.mean(kept[50:])

    assert mean_loss(2) == pytest.approx(mean_loss(20), rel=0.05)  # one by one, and all at once


def test_the_closed_form_is_the_integral_where_little_is_near_the_margin(rng):
    # Two rows hold the machine against a strong prior, and the next are far from the margin.
    x = np.concatenate([-1 - np.arange(4), 1 + np.arange(4.0)])[:, None]
    x = x + 0.05 * rng.normal(size=x.shape)
    x /= np.sqrt(np.square(x).mean())
    label = np.repeat([-1.0, 1.0], 4)
    prior = PriorColumns.of(x, None)
    C, A = np.array([60.0]), np.array([0.2])
    found = laplace_evidence(prior, x, label, C, A, None, device="cpu", tol=1e-9)[0, 0]
    exact = OnAGrid(x, label, 60.0, 0.2, 2.0, 2001).log_evidence
    # The closed form has a flat prior of density 1 where the model has that of b = 0.
    assert found + norm.logpdf(0, 0, INTERCEPT_SD) == pytest.approx(exact, abs=0.35)


def test_the_closed_form_term_by_term(rng):
    """Against the formula in the dense way: a wide but proper prior of b inside K."""
    X = StandardScaler().fit_transform(rng.normal(size=(30, 2)))
    label = np.where(X[:, 0] + rng.normal(size=30) > 0, 1.0, -1.0)
    gamma, A, C = 0.4, 5.0, 0.8
    K = A * rbf_kernel(X, gamma=gamma)
    machine = SVC(kernel="precomputed", C=C, tol=1e-10).fit(K, label)
    alpha = np.zeros(30)
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    m = (alpha > 1e-5 * C) & (alpha < C * (1 - 1e-5))
    slopes, wide = alpha[m], 1e4
    L = 2 * np.pi * np.square(slopes * (C - slopes) / C)
    beta = alpha * label
    expected = -0.5 * beta @ K @ beta - C * hinge(label * machine.decision_function(K)).sum()
    expected += 30 * log_kappa(C)
    sign, logdet = np.linalg.slogdet(np.diag(L) @ (K[np.ix_(m, m)] + wide**2))
    assert sign > 0
    expected += -0.5 * logdet + np.log(wide * np.sqrt(2 * np.pi))  # to density 1 at b
    prior = PriorColumns.of(X, gamma)
    found = laplace_evidence(
        prior, X, label, np.array([C]), np.array([A]), gamma, device="cpu", tol=1e-10
    )
    assert found[0, 0] == pytest.approx(expected, abs=2e-2)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_mode_is_the_machine_and_its_probability_the_papers(rng, kernel):
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60) > 0
    C, A = 0.7, 5.0
    model = SollichSVC(C=C, amplitude=A, kernel=kernel, gamma=0.3, probability="map").fit(X, y)
    seen = StandardScaler().fit_transform(X)
    # Mean of k(x, x): 3 for standardised columns, 1 for RBF.
    cost = C * A / (3 if kernel == "linear" else 1)
    theta = SVC(C=cost, gamma=0.3, kernel=kernel, tol=1e-8).fit(seen, y).decision_function(seen)
    np.testing.assert_allclose(model.machine_score(X), theta, atol=2e-3)
    inside = np.abs(theta) <= 1
    expected = np.where(inside, expit(2 * C * theta), expit(C * (theta + np.sign(theta))))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, atol=2e-3)


@pytest.mark.parametrize("shape", [(12, 3), (6, 20)])
@pytest.mark.parametrize("gamma", [None, 0.5])
def test_columns_of_the_prior_make_the_kernel(rng, shape, gamma):
    rows, new = rng.normal(size=shape), rng.normal(size=(5, shape[1]))
    prior = PriorColumns.of(rows, gamma)
    everything = np.vstack([rows, new])
    kernel = everything @ everything.T if gamma is None else rbf_kernel(everything, gamma=gamma)
    kernel = kernel / np.diag(kernel)[: len(rows)].mean()
    columns, residual = prior.of_new(new, rows, gamma)
    n = len(rows)
    np.testing.assert_allclose(prior.columns @ prior.columns.T, kernel[:n, :n], atol=1e-8)
    np.testing.assert_allclose(columns @ prior.columns.T, kernel[n:, :n], atol=1e-8)
    own = np.square(columns).sum(axis=1) + residual
    np.testing.assert_allclose(own, np.diag(kernel)[n:], atol=1e-8)
    again, none = prior.of_new(rows, rows, gamma)
    np.testing.assert_allclose(again, prior.columns, atol=1e-7)
    np.testing.assert_allclose(none, 0, atol=1e-7)
    if gamma is not None:
        few = prior.leading(4)
        values = np.linalg.eigvalsh(kernel[:n, :n])
        error = np.square(few @ few.T - kernel[:n, :n]).sum()
        assert error == pytest.approx(np.square(values[:-4]).sum(), rel=1e-6)


def test_likelihood_averaged_over_a_normal_score(rng):
    for _ in range(20):
        mean, variance, C = rng.normal(0, 2), rng.uniform(0.01, 4), rng.uniform(0.1, 5)
        sd = np.sqrt(variance)

        def integrand(t, mean=mean, sd=sd, C=C):
            return np.exp(-C * hinge(t)) * norm.pdf(t, mean, sd)

        exact = quad(integrand, mean - 12 * sd, mean + 12 * sd, points=[1.0], limit=200, epsabs=0)[
            0
        ]
        found = log_likelihood(np.array([mean]), np.array([variance]), C)[0]
        assert found == pytest.approx(np.log(exact), abs=1e-6)
    known = log_likelihood(np.array([0.25, 3.0]), np.zeros(2), 2.0)
    np.testing.assert_allclose(known, [-1.5, 0.0])


def test_far_from_all_rows_nothing_but_the_intercept_is_known(rng):
    X = rng.normal(size=(120, 2))
    y = X[:, 0] > 0
    model = SollichSVC(C=2.0, amplitude=16.0, kernel="rbf", gamma=1.0, random_state=0).fit(X, y)
    near, far = model.predict_proba([[0.8, 0.0], [60.0, 60.0]])[:, 1]
    assert near > 0.65
    assert abs(far - 0.5) < 0.25


def test_evidence_prefers_sharp_labels_where_they_are_sharp(rng):
    X = rng.normal(size=(120, 2))
    sharp = X[:, 0] > 0
    noisy = np.where(rng.random(120) < 0.25, ~sharp, sharp)
    grid = {"C": [0.125, 0.5, 2.0, 8.0], "amplitude": [4.0, 64.0], "n_draws": 300}
    seed = int(rng.integers(2**31))
    chosen = [SollichSVC(**grid, random_state=seed).fit(X, y).C_ for y in (sharp, noisy)]
    assert chosen[0] > chosen[1]
