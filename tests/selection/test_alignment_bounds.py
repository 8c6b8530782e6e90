"""What bounds say of all larger subsets, and how pairs of rows are merged."""

from itertools import combinations

import numpy as np
import pytest
import torch

from bootprob import DataError
from bootprob.selection import KernelAlignmentSelector
from bootprob.selection.alignment import selector as alignment_selector
from bootprob.selection.alignment.alignment import AlignmentPairs, NormalisedPairs
from bootprob.selection.alignment.bounds import bound_columns, bound_pairs
from bootprob.selection.alignment.objectives import CentroidDistance, NormalisedAlignment
from bootprob.selection.alignment.search import SubsetSearch


@pytest.mark.parametrize("more", [2, 3, 4, 5])
@pytest.mark.parametrize("columnwise", [False, True])
def test_no_subset_is_above_its_bounds(rng, more, columnwise):
    m, n = 7, 40
    factors = rng.uniform(0, 1, (m, n)) ** rng.choice([0.05, 1, 4])
    weight = rng.normal(size=n)
    rise, fall = np.maximum(weight, 0), np.maximum(-weight, 0)
    rising, falling = torch.from_numpy(factors @ rise), torch.from_numpy(factors @ fall)
    columns = bound_columns(rising, falling, float(fall.sum()), more)
    pairs = None
    if more > 2:
        pairs = bound_pairs(
            falling,
            torch.from_numpy((factors * rise) @ factors.T),
            torch.from_numpy((factors * fall) @ factors.T),
            more,
            columnwise=columnwise,
        )
    for size in range(2, more + 1):
        for subset in combinations(range(m), size):
            value = factors[list(subset)].prod(axis=0) @ weight
            for k in subset:
                assert value <= float(columns[k]) + 1e-12
            for k, j in combinations(subset, 2) if size > 2 else ():
                assert value <= min(float(pairs[k, j]), float(pairs[j, k])) + 1e-12


@pytest.mark.parametrize("more", [2, 3, 4, 5])
@pytest.mark.parametrize("columnwise", [False, True])
@pytest.mark.parametrize("best", [0.05, 0.3, 0.9])
def test_no_subset_is_above_its_bounds_of_the_normalised_alignment(rng, more, columnwise, best):
    """Whatever is known to be reached."""
    m, n = 6, 30
    X = rng.normal(size=(n, m))
    pairs = NormalisedPairs.of_rows(X, rng.permutation(np.arange(n) < 12))
    factors = pairs.factors(rng.choice([0.02, 0.2, 1.0]))
    objective = NormalisedAlignment(
        *map(torch.from_numpy, (factors, pairs.weight, pairs.count)), pairs.n
    )

    def sums(*columns):
        terms = factors[list(columns)].prod(axis=0)
        parts = np.maximum(pairs.weight, 0), np.maximum(-pairs.weight, 0)
        return [*(part @ terms for part in parts), pairs.count @ terms**2]

    single = torch.tensor([sums(j) for j in range(m)]).T
    double = torch.tensor([[sums(j, k) for k in range(m)] for j in range(m)]).permute(2, 0, 1)
    columns = objective.of_columns(single, torch.tensor(sums()), more, best)
    both = None
    if more > 2:
        both = objective.of_pairs(single, double, more, best, columnwise=columnwise)
    for size in range(2, more + 1):
        for subset in combinations(range(m), size):
            value = float(objective.value(torch.tensor(sums(*subset))))
            for k in subset:
                assert value <= float(columns[k]) + 1e-12
            for k, j in combinations(subset, 2) if size > 2 else ():
                assert value <= min(float(both[k, j]), float(both[j, k])) + 1e-12


def test_bounds_exclude_most_subsets(rng):
    """Less than half of what a search without bounds would evaluate."""
    X = rng.normal(size=(60, 16))
    y = X[:, 0] + X[:, 1] > 0
    pairs = AlignmentPairs.of_rows((X - X.mean(0)) / X.std(0), y)
    weight = torch.from_numpy(pairs.weight)
    search = SubsetSearch(CentroidDistance(torch.from_numpy(pairs.factors(0.4)), weight), 5)
    search.improve()
    assert search.exhaust()
    assert search.n_evaluated < search.n_subsets / 2


@pytest.mark.parametrize("levels", [2, 3])
def test_merged_pairs_sum_to_the_same(rng, levels):
    X = rng.integers(0, levels, (40, 4)) * rng.uniform(0.1, 3, 4)
    y = rng.permutation(np.arange(40) < 15)
    pairs = AlignmentPairs.of_rows(X, y)
    assert pairs.squares.shape[1] == len(pairs.weight) < 40 * 39 / 4
    assert len(np.unique(pairs.squares.round(9), axis=1).T) == len(pairs.weight)
    positive = pairs.weight > 0
    assert (np.sort(positive)[::-1] == positive).all()
    psi = np.where(y, 1 / 15, -1 / 25)
    for subset in ([], [0], [1, 3], [0, 1, 2, 3]):
        support = np.isin(np.arange(4), subset)
        distances = np.square(X[:, None, support] - X[None, :, support]).sum(axis=2)
        expected = psi @ np.exp(-0.3 * distances) @ psi
        assert pairs.alignment(0.3, support) == pytest.approx(expected, abs=1e-12)


def test_pairs_of_both_signs_that_cancel(rng):
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    pairs = AlignmentPairs.of_rows(X, np.array([True, True, False, False]))
    assert pairs.alignment(1.0, np.array([True])) == pytest.approx(0, abs=1e-15)
    found = KernelAlignmentSelector(1).fit(X, [1, 1, 0, 0]).result_
    assert found.status == "optimal"
    assert found.features == ()


def test_too_many_rows_for_the_memory(rng, monkeypatch):
    monkeypatch.setattr(alignment_selector, "free_bytes", lambda device: 10_000)
    with pytest.raises(DataError, match=r"All pairs of 30 rows in 5 columns take .* GiB"):
        KernelAlignmentSelector(2).fit(rng.normal(size=(30, 5)), np.arange(30) % 2)


def test_a_search_that_goes_on_lowers_the_bound(rng):
    X = rng.normal(size=(50, 18))
    y = rng.permutation(np.arange(50) < 25)
    stopped = [
        KernelAlignmentSelector(6, time_limit=seconds).fit(X, y).result_ for seconds in (1e-9, 0.05)
    ]
    for result in stopped:
        assert result.bound >= result.objective
        assert result.status in ("time limit", "optimal")
    assert stopped[1].bound <= stopped[0].bound + 1e-12
