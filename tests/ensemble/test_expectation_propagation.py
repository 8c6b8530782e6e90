"""Expectation propagation beside integrals over a grid, and beside fits without a row."""

import numpy as np
import pytest
import torch
from scipy.special import expit, log_expit, logsumexp
from sklearn.exceptions import ConvergenceWarning

from bootprob.ensemble.uncertainty import expectation_propagation
from bootprob.ensemble.uncertainty.expectation_propagation import (
    Sites,
    approximate,
    attempt,
    factor_of,
    sums,
)


def approximated(columns, label, weight, precision):
    tensors = [torch.from_numpy(np.asarray(each, float)) for each in (label, weight, precision)]
    held = [(slice(0, len(label)), torch.from_numpy(columns))]
    return approximate(held, *tensors, Sites.beginning(*tensors[:2]))


def integrated(columns, label, weight, precision):
    """Evidence, mean and covariance of two coefficients by sums over a fine grid."""
    reach = 8 / np.sqrt(precision)
    axes = [np.linspace(-r, r, 601) for r in reach]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    log = -0.5 * np.square(grid) @ precision + 0.5 * np.log(precision / (2 * np.pi)).sum()
    sign = 2 * np.asarray(label) - 1
    for row, s, w in zip(columns, sign, weight, strict=True):
        log += w * log_expit(s * (grid @ row))
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    share = np.exp(log - logsumexp(log))
    mean = share @ grid
    return logsumexp(log) + np.log(cell), mean, (grid - mean).T @ ((grid - mean) * share[:, None])


@pytest.mark.parametrize("case", ["plain", "weights", "separable", "one row", "wide prior"])
def test_two_coefficients_are_those_of_the_integral(rng, case):
    n = 1 if case == "one row" else 25
    columns = np.column_stack([np.ones(n), rng.normal(size=n)])
    label = (rng.uniform(size=n) < expit(columns @ [0.3, 1.5])).astype(float)
    if case == "separable":
        label = (columns[:, 1] > 0).astype(float)
    weight = rng.uniform(0.1, 4, size=n) if case == "weights" else np.ones(n)
    precision = np.array([0.5, 0.1 if case != "wide prior" else 0.02])
    found = approximated(columns, label, weight, precision)
    evidence, mean, covariance = integrated(columns, label, weight, precision)
    deviation = np.sqrt(np.diag(covariance))
    assert found.evidence == pytest.approx(evidence, abs=0.1)
    assert (np.abs(found.mean.numpy() - mean) < 0.05 * deviation).all()
    np.testing.assert_allclose(np.sqrt(found.covariance.diagonal().numpy()), deviation, rtol=0.2)


def test_a_row_left_out_is_as_if_it_had_not_been_there(rng):
    n = 30
    columns = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    label = (rng.uniform(size=n) < expit(columns @ [0.0, 1.0, -1.0])).astype(float)
    precision = np.array([0.01, 0.25, 0.25])
    every = approximated(columns, label, np.ones(n), precision)
    for row in range(0, n, 7):
        kept = np.arange(n) != row
        without = approximated(columns[kept], label[kept], np.ones(n - 1), precision)
        mean = columns[row] @ without.mean.numpy()
        variance = columns[row] @ without.covariance.numpy() @ columns[row]
        assert every.left_out_mean[row] == pytest.approx(mean, abs=0.25 * variance**0.5)
        assert every.left_out_variance[row] == pytest.approx(variance, rel=0.3)


def test_a_weight_of_two_is_a_row_twice(rng):
    columns = np.column_stack([np.ones(20), rng.normal(size=20)])
    label = (rng.uniform(size=20) < expit(columns[:, 1])).astype(float)
    precision = np.array([0.1, 0.1])
    heavy = approximated(columns, label, np.full(20, 2.0), precision)
    twice = approximated(np.tile(columns, (2, 1)), np.tile(label, 2), np.ones(40), precision)
    deviation = twice.covariance.diagonal().sqrt()
    assert ((heavy.mean - twice.mean).abs() < 0.1 * deviation).all()
    torch.testing.assert_close(heavy.covariance, twice.covariance, rtol=0.1, atol=0.01)


def test_factors_that_have_not_settled_warn(rng, monkeypatch):
    monkeypatch.setattr(expectation_propagation, "_ITERATIONS", 2)
    columns = np.column_stack([np.ones(9), rng.normal(size=9)])
    label = (columns[:, 1] > 0).astype(float)
    with pytest.warns(ConvergenceWarning, match="rough"):
        approximated(columns, label, np.ones(9), np.array([0.01, 1e-4]))


def test_factors_without_bound_end_what_is_tried_and_no_more(rng, monkeypatch):
    """What was before them is the result; it has not settled, and has an evidence."""
    A = torch.from_numpy(rng.normal(size=(30, 2)))
    label = torch.from_numpy((rng.random(30) < 0.5).astype(float))
    given = [(slice(0, 30), A)], label, torch.ones(30, dtype=torch.float64), torch.ones(2).double()
    start = Sites.beginning(*given[1:3])
    real, matrices = expectation_propagation.sums, []

    def counted(*known):
        matrix, vector = real(*known)
        matrices.append(matrix)
        return matrix - 1e30 * torch.eye(2) if len(matrices) == 3 else matrix, vector

    monkeypatch.setattr(expectation_propagation, "sums", counted)
    found = attempt(*given, start)
    assert len(matrices) == 3
    assert not found.settled
    assert np.isfinite(found.evidence)
    torch.testing.assert_close(found.covariance, matrices[1].inverse())
    monkeypatch.undo()
    assert attempt(*given, start).settled


def test_factors_that_lead_astray_are_begun_anew(rng):
    """Of a steep problem they were: precisions of 1e38 stood still, and the evidence was 1e28."""
    columns = torch.from_numpy(np.column_stack([np.ones(40), rng.normal(size=40)]))
    label = torch.from_numpy((rng.uniform(size=40) < 0.5).astype(float))
    weight, precision = torch.ones_like(label), torch.tensor([0.01, 0.4], dtype=torch.float64)
    problem = [(slice(0, 40), columns)], label, weight, precision
    beginning = Sites.beginning(label, weight)
    far = Sites(weight * 1e38, weight * 1e38 * torch.linspace(-4e3, 4e3, 40, dtype=torch.float64))
    expected, found = attempt(*problem, beginning), attempt(*problem, far)
    assert expected.settled
    assert found.settled
    assert found.evidence == expected.evidence


def test_factors_where_rounding_leaves_none():
    """Columns that are 1e9 times as far apart as a prior is wide, and the same but for rounding."""
    column = torch.tensor([1.0, 1.0 / 3, -7.0], dtype=torch.float64)
    uneven = 1e18 * torch.outer(column, column) + torch.eye(3, dtype=torch.float64)
    even = torch.diag(torch.tensor([4.0, 9.0, 16.0], dtype=torch.float64))
    assert torch.linalg.cholesky_ex(uneven).info > 0
    factors = factor_of(torch.stack([uneven, even]))
    torch.testing.assert_close(factors[1], even.sqrt())
    torch.testing.assert_close(factors[0] @ factors[0].T, uneven, rtol=1e-7, atol=0)
    with pytest.raises(RuntimeError, match="not positive-definite"):
        factor_of(-even)


def test_sums_are_made_below_the_diagonal_in_panels(rng):
    columns, precision = torch.from_numpy(rng.normal(size=(50, 230))), torch.eye(230).double()
    sites = Sites(*torch.from_numpy(rng.uniform(0.1, 2, size=(2, 50))))
    blocks = [(slice(0, 20), columns[:20]), (slice(20, 50), columns[20:])]
    matrix, vector = sums(blocks, sites, precision, torch.ones(230).double())
    expected = precision + columns.T @ (columns * sites.precision[:, None])
    torch.testing.assert_close(matrix.tril(), expected.tril())
    torch.testing.assert_close(vector, 1 + columns.T @ sites.shift)
