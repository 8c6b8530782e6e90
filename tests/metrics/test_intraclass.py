"""What rows of a group have in common, on labels whose correlation is known."""

import numpy as np
import pytest

from bootprob.metrics.intraclass import design_effects, intraclass_correlation


@pytest.mark.parametrize("size", [2, 7])
@pytest.mark.parametrize("correlation", [0.0, 0.3, 1.0])
def test_the_correlation_of_labels_is_found(size, correlation):
    rng = np.random.default_rng(0)
    n_groups = 40_000
    p = np.repeat(rng.uniform(0.2, 0.8, n_groups), size)
    # Each row takes the group's label with probability √ρ, else one of its own: correlation ρ.
    shared = np.repeat(rng.random(n_groups), size) < p
    takes = rng.random(len(p)) < np.sqrt(correlation)
    positive = np.where(takes, shared, rng.random(len(p)) < p)
    groups = np.repeat(rng.permutation(n_groups), size)
    found = intraclass_correlation(positive, p, np.ones(len(p)), groups)
    assert found == pytest.approx(correlation, abs=0.03)


def test_a_weighted_row_is_as_many():
    rng = np.random.default_rng(1)
    p, positive = rng.uniform(0.2, 0.8, 60), rng.random(60) < 0.5
    groups = np.repeat(np.arange(20), 3)
    found = intraclass_correlation(positive, p, np.full(60, 2.5), groups)
    assert found == pytest.approx(intraclass_correlation(positive, p, np.ones(60), groups))


def test_where_nothing_tells_rows_of_a_group_are_taken_for_one():
    groups = np.array([0, 1, 2])
    assert (
        intraclass_correlation(np.array([True, False, True]), np.full(3, 0.5), np.ones(3), groups)
        == 1
    )


def test_design_effects_are_those_of_a_mean():
    groups = np.array([0, 0, 0, 1, 2, 2])
    weight = np.array([1.0, 1.0, 1.0, 5.0, 1.0, 0.0])
    found = design_effects(weight, groups, 0.25)
    assert found == pytest.approx([1.5, 1.5, 1.5, 1.0, 1.0, 1.0])
    # The variance of a mean of m rows of correlation ρ is (1 + (m − 1) ρ) / m.
    covariance = 0.75 * np.eye(3) + 0.25
    assert covariance.mean() == pytest.approx(found[0] / 3)
