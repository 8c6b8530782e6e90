"""Centres in the place of rows, kernel factors in the place of kernels, and the split of rows."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from bootprob import DataError
from bootprob.constrained.condensation import condense
from bootprob.constrained.kernel_factor import KernelFactor
from bootprob.constrained.row_sets import split_rows
from bootprob_gpu.kernels.linear import Linear
from bootprob_gpu.kernels.named import kernel_function


def test_centres_keep_masses_means_and_proportions(rng):
    rows, positive = rng.normal(size=(300, 3)), np.arange(300) % 5 == 0
    weight = rng.uniform(0.5, 2, 300)
    (centres, label, mass), own = condense(rows, positive, weight, 50)
    assert label.sum() == 10
    assert len(label) == 50
    for which in (False, True):
        assert mass[label == which].sum() == pytest.approx(weight[positive == which].sum())
        mean = mass[label == which] @ centres[label == which]
        assert mean == pytest.approx(weight[positive == which] @ rows[positive == which])
    assert (label[own] == positive).all()
    assert np.bincount(own, weight) == pytest.approx(mass)


def test_fewer_distinct_rows_than_centres(rng):
    rows = np.repeat(rng.normal(size=(4, 2)), 30, axis=0)
    positive = np.arange(120) < 60
    (centres, _, mass), own = condense(rows, positive, np.ones(120), 40)
    np.testing.assert_allclose(centres[own], rows)
    assert sorted(map(tuple, np.round(centres, 9))) == sorted(
        map(tuple, np.round(np.unique(rows, axis=0), 9))
    )
    assert (mass == 30).all()


@pytest.mark.parametrize("duplicates", [1, 3])
def test_rbf_factor_is_the_kernel(rng, duplicates):
    rows = np.repeat(rng.normal(size=(30, 4)), duplicates, axis=0)
    factor = KernelFactor.of(kernel_function("rbf", 0.3), rows)
    columns = factor.transform(rows)
    assert columns.shape[1] <= 30
    assert columns @ columns.T == pytest.approx(rbf_kernel(rows, gamma=0.3), abs=1e-7)
    coef, new = rng.normal(size=columns.shape[1]), rng.normal(size=(7, 4))
    assert factor.values(new) @ factor.pull_back(coef) == pytest.approx(
        factor.transform(new) @ coef, abs=1e-6
    )


@pytest.mark.parametrize("kernel", ["poly", "precomputed"])
def test_a_long_row_hides_no_short_one(rng, kernel):
    rows = rng.normal(size=(12, 2)) * 10.0 ** rng.integers(-3, 4, 12)[:, None]
    rows[3] = 0
    K, support = (rows @ rows.T) ** 2, np.array([0, 1, 3, 4, 5, 8])
    length = np.sqrt(K.diagonal()) + (K.diagonal() == 0)
    if kernel == "poly":
        factor, given = KernelFactor.of(kernel_function(kernel, 1.0, degree=2), rows[support]), rows
    else:
        factor, given = KernelFactor.of(kernel_function(kernel), K[support], support), K
    columns = factor.transform(given) / length[:, None]
    cosines = K / length[:, None] / length  # six rows span all polynomials of the second degree
    assert columns @ columns.T == pytest.approx(cosines, abs=1e-9)
    assert columns.shape == (12, 3)


def test_a_kernel_that_is_0_has_a_column(rng):
    factor = KernelFactor.of(kernel_function("precomputed"), np.zeros((4, 4)))
    assert factor.transform(rng.normal(size=(3, 4))).tolist() == [[0.0]] * 3


def test_a_factor_of_fewer_columns_about_a_machine(rng):
    rows = rng.normal(size=(30, 4))
    factor = KernelFactor.of(kernel_function("rbf", 0.3), rows)
    coef, new = rng.normal(size=factor.projection.shape[1]), rng.normal(size=(7, 4))
    for n_columns in (0, 5, 1000):
        narrow, same = factor.about(coef, n_columns)
        columns = narrow.transform(new)
        assert columns.shape[1] == len(same) == min(n_columns + 1, len(coef))
        assert columns @ same == pytest.approx(factor.transform(new) @ coef)
        assert same @ same == pytest.approx(coef @ coef)
        assert narrow.values(new) @ narrow.pull_back(same) == pytest.approx(columns @ same)
        # Orthonormal directions: inner products of the rows' own columns are never exceeded.
        full = factor.transform(rows)
        assert (np.linalg.eigvalsh(full.T @ full)[-1] * (1 + 1e-9)) >= np.linalg.norm(
            narrow.transform(rows), 2
        ) ** 2


def test_linear_factor_keeps_inner_products_with_few_columns(rng):
    rows = rng.normal(size=(8, 40)) @ np.diag(10.0 ** rng.integers(-3, 4, 40))
    factor = KernelFactor.of(Linear(), rows)
    columns = factor.transform(rows)
    assert columns.shape[1] <= 8
    assert columns @ columns.T == pytest.approx(rows @ rows.T, rel=1e-6, abs=1e-6 * rows.max() ** 2)
    coef = rng.normal(size=columns.shape[1])
    assert rows @ factor.pull_back(coef) == pytest.approx(columns @ coef)
    assert factor.push_forward(factor.pull_back(coef)) == pytest.approx(coef)
    assert KernelFactor.of(Linear(), rows.T).transform(rows.T) is not None
    assert KernelFactor.of(Linear(), np.zeros((2, 5))).transform(np.zeros((2, 5))).shape == (2, 1)


def test_halves_are_disjoint_and_hold_both_classes(rng):
    positive = rng.uniform(size=41) < 0.3
    positive[:4] = [True, True, False, False]
    used = rng.uniform(size=41) < 0.8
    used[:4] = True
    I, J = split_rows("halves", positive, used, shuffle=True, random_state=np.random.RandomState(0))  # noqa: E741
    assert np.array_equal(np.sort(np.concatenate([I, J])), np.flatnonzero(used))
    for label in (positive, ~positive):
        assert 0 <= label[I].sum() - label[J].sum() <= 1
    both = split_rows("all", positive, used, shuffle=True, random_state=np.random.RandomState(0))
    assert np.array_equal(*both)
    with pytest.raises(DataError, match="no negative row"):
        split_rows(~positive, positive, used, shuffle=True, random_state=np.random.RandomState(0))
