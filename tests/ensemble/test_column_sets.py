"""Columns that bend a logit: score statistics, the search of sets, and what a posterior gains."""

import numpy as np
import pytest
import torch
from scipy.special import expit

from bootprob.ensemble.uncertainty.column_sets import (
    likely_sets,
    score_statistics,
    telling_triples,
)
from bootprob.ensemble.uncertainty.composite_posterior_fit import fit_composite_posterior
from bootprob.ensemble.uncertainty.expectation_propagation import Sites, approximate
from bootprob.intervals import of_mixture
from bootprob.preparation.views import learn_views, view_kernels

CPU = torch.device("cpu")


def of_each(evidence):
    return lambda sets: [evidence(each) for each in sets]


def linear_posterior(rows, label):
    columns = torch.from_numpy(np.column_stack([np.ones(len(rows)), rows]))
    label = torch.from_numpy(label.astype(float))
    precision = torch.full((columns.shape[1],), 0.1, dtype=torch.float64)
    ones = torch.ones_like(label)
    start = Sites.beginning(label, ones)
    found = approximate([(slice(0, len(rows)), columns)], label, ones, precision, start)
    return columns, found, precision


def statistics(rows, label):
    views, given = learn_views(rows, np.ones(len(rows))), torch.from_numpy(rows)
    seen = {view: views.of(view, given) for view in ("columns", "scores", "levels")}
    columns, found, precision = linear_posterior(rows, label)
    tau, nu = found.sites.precision, found.sites.shift
    weighted = (columns * tau[:, None]).T
    factor = torch.linalg.cholesky(torch.diag(precision) + weighted @ columns)
    reach = torch.linalg.solve_triangular(factor, weighted, upper=False)
    residual = nu - tau * (columns @ found.mean)
    return seen, score_statistics(seen, tau, residual, reach), (tau, residual, reach)


def test_a_statistic_is_what_a_term_adds_to_the_quadratic(rng):
    """The largest of views, each by the regression on the factors with and without the term."""
    n = 80
    rows = rng.normal(size=(n, 3))
    rows[:, 2] = rng.exponential(size=n)
    label = rng.uniform(size=n) < expit(rows[:, 0])
    columns, found, precision = linear_posterior(rows, label)
    seen, got, _ = statistics(rows, label)
    tau, target = found.sites.precision, found.sites.shift / found.sites.precision

    def loss(design, prior):
        matrix = design.T @ (design * tau[:, None]) + torch.diag(prior)
        beta = torch.linalg.solve(matrix, design.T @ (tau * target))
        return (tau * (target - design @ beta) ** 2).sum() + (prior * beta**2).sum()

    def gained(term):
        wider = torch.column_stack([columns, term - term.mean()])
        free = torch.cat([precision, precision.new_zeros(1)])
        return float(loss(columns, precision) - loss(wider, free))

    for j, k in ((0, 1), (1, 2), (2, 0)):
        expected = max(
            gained(seen[view][:, j] ** a * seen[view][:, k] ** b)
            for view in ("columns", "scores")
            for a, b in ((1, 1), (1, 2), (2, 1))
        )
        assert got[j, k] == got[k, j] == pytest.approx(expected, rel=1e-6)
    for j in range(3):
        powers = [gained(seen[v][:, j] ** k) for v in ("columns", "scores") for k in (2, 3)]
        expected = max(*powers, gained(seen["levels"][:, j]))
        assert got[j, j] == pytest.approx(expected, rel=1e-6)


def test_statistics_of_constant_repeated_and_many_columns(rng):
    rows = rng.normal(size=(40, 80))
    rows[:, 0], rows[:, 1] = 0, rows[:, 2]
    _, got, _ = statistics(rows, rng.uniform(size=40) < 0.5)
    assert torch.isfinite(got).all()
    assert (got >= 0).all()
    assert not got[0].any()
    assert torch.equal(got[1, 1], got[2, 2])
    assert 0 < (got.triu(1) > 0).sum() <= 64 * 63 / 2


def test_products_of_columns_with_curves_are_looked_at_first():
    """What a curve has said of its column alone is no longer there to tell of its products."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 90))
    seen, got, known = statistics(rows, rng.uniform(size=300) < 0.5)
    apart = got.diagonal().argsort()[:2].tolist()  # of these no products
    assert (got[apart] > 0).sum() == 2
    again = score_statistics(seen, *known, bent=apart)
    assert (again[apart] > 0).sum() == 2 * 64
    torch.testing.assert_close(again.diagonal(), got.diagonal())


def test_three_columns_tell_where_no_column_and_no_pair_does():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(400, 24))
    noise, product = rng.uniform(size=400), 2 * rows[:, 3] * rows[:, 11] * rows[:, 20]
    for label, wanted in ((noise < expit(product), [(3, 11, 20)]), (noise < 0.5, [])):
        seen, known, factors = statistics(rows, label)
        assert telling_triples(seen, *factors, known)[:1] == wanted
    seen, known, factors = statistics(rows[:, [3, 11, 20]], noise < expit(product))
    assert telling_triples(seen, *factors, known) == []  # that is all columns


def test_the_search_finds_the_set_with_the_largest_evidence():
    """From a pair to three columns, and from all of them, over sets that were never asked about."""
    wanted = {1, 3, 4}
    for p in (6, 30):
        known = torch.zeros(p, p)
        known[1, 3] = known[3, 1] = 9
        known[3, 4] = known[4, 3] = 5
        asked = []

        def evidence(sets, asked=asked):
            asked += sets
            return [-5.0 * len(wanted ^ set(columns)) for columns in sets]

        found = likely_sets(known, [], evidence)
        assert found == [(1, 3, 4)]
        assert len(asked) == len(set(asked)) < 45
        assert all(columns == tuple(sorted(columns)) for columns in asked)
        assert all(0 < len(columns) < p for columns in asked)


def test_the_search_begins_with_triples_too():
    wanted = {1, 3, 4}
    found = likely_sets(
        torch.zeros(6, 6),
        [(0, 2, 5), (1, 3, 4)],
        of_each(lambda columns: -len(wanted ^ {*columns})),
    )
    assert found[0] == (1, 3, 4)


def test_sets_that_are_nearly_as_good_are_kept_and_two_columns_have_single_ones():
    both = likely_sets(torch.ones(3, 3), [], of_each(lambda columns: -0.5 * len(columns)))
    assert len(both) == 2
    assert all(len(columns) == 1 for columns in both)
    assert likely_sets(torch.eye(2), [], of_each(lambda columns: -columns[0])) == [(0,), (1,)]
    assert likely_sets(torch.zeros(2, 2), [], of_each(lambda columns: 0.0)) == []


@pytest.mark.parametrize("columns", [[4, 7], [4, 7, 9]], ids=str)
def test_an_interaction_among_many_columns_is_found_and_narrow(columns, one_link):
    n, p, rng = 400, 12, np.random.default_rng(3)
    rows, new = rng.normal(size=(n, p)), rng.normal(size=(400, p))

    def logit(rows):
        return 2 * rows[:, columns].prod(axis=1) + rows[:, 0]

    positive = rng.uniform(size=n) < expit(logit(rows))
    kernels = view_kernels(rows, np.ones(n))
    posterior, _ = fit_composite_posterior(rows, positive, np.ones(n), kernels, CPU)
    looked_at = posterior.columns_of_curve[:, 0]  # of the first curve
    few = looked_at.sum(axis=1) < 5
    assert (looked_at[few][:, columns] == 1).all()
    assert posterior.weight[few].sum() > 0.9
    bounds = expit(of_mixture(posterior.moments(new, kernels, CPU), posterior.weight, 0.95))
    truth = expit(logit(new))
    assert ((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).mean() > 0.8
    assert np.diff(bounds).mean() < 0.3
