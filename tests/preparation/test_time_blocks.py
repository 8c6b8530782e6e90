"""Blocks of neighbours in time, against what they are by definition."""

import numpy as np
import pytest
from scipy.signal import lfilter

from bootprob.preparation.time_blocks import block_length, later_from, time_blocks


@pytest.mark.parametrize("n_instants", [2, 7, 90, 100_000])
@pytest.mark.parametrize("length", [1, 5.3, 40, 1000])
def test_blocks_are_of_neighbours(rng, n_instants, length):
    ranks = np.unique(rng.integers(n_instants, size=200), return_inverse=True)[1]
    blocks = time_blocks(ranks, length)
    assert np.array_equal(np.unique(blocks), np.arange(blocks.max() + 1))
    for instant in np.unique(ranks):
        assert len(np.unique(blocks[ranks == instant])) == 1
    order = np.argsort(ranks, kind="stable")
    assert (np.diff(blocks[order]) >= 0).all()
    sizes, largest = np.bincount(blocks), np.bincount(ranks).max()
    aim = 200 / max(1, int(200 / length))
    assert sizes.max() < aim + max(largest, 1)
    if largest == 1:  # all as long as can be, and none shorter than asked
        assert sizes.max() - sizes.min() <= 1
        assert sizes.mean() >= min(length, 200)


def test_an_instant_of_many_rows_is_whole():
    ranks = np.repeat([0, 1, 2, 3], [3, 100, 3, 100])
    assert np.array_equal(time_blocks(ranks, 5), ranks)
    ranks = np.repeat([0, 1], [1, 199])  # a block of its own, however few are before it
    assert np.array_equal(time_blocks(ranks, 10), ranks)


def test_labels_that_hang_together_make_blocks_longer():
    """Against the optimum for an autoregression, (2 ρ / (1 − ρ²))^(2/3) n^(1/3)."""
    n, found = 8000, []
    ranks = np.arange(n)
    for trial in range(5):
        rng = np.random.default_rng(trial)
        stays = rng.random(n) > 0.2  # a chain of labels with correlation .8 at lag 1
        start = np.maximum.accumulate(np.where(stays, 0, ranks))
        found.append(block_length(ranks, rng.integers(2, size=n)[start]))
    optimum = (2 * 0.8 / (1 - 0.8**2)) ** (2 / 3) * n ** (1 / 3)
    assert np.mean(found) == pytest.approx(optimum, rel=0.2)


def test_independent_labels_have_blocks_of_the_cube_root(rng):
    shuffled = rng.permutation(1000)
    lengths = [block_length(shuffled, rng.integers(3, size=1000)) for _ in range(20)]
    assert min(lengths) >= 10 - 1e-9
    assert np.median(lengths) < 13


def test_there_are_twenty_blocks_whatever_labels_do():
    latent = np.sign(lfilter([1], [1, -0.999], np.random.default_rng(0).normal(size=600)))
    for n, codes in ((600, latent > 0), (600, np.arange(600) >= 300), (30, np.arange(30) >= 15)):
        length = block_length(np.arange(n), codes.astype(int))
        assert time_blocks(np.arange(n), length).max() + 1 >= 20


@pytest.mark.parametrize(
    ("sizes", "first"),
    [
        ([1] * 100, 90),
        ([10] * 10, 9),
        ([1, 1], 1),
        ([97, 3], 1),
        ([3, 97], 1),
        ([85, 6, 9], 2),
        ([50, 38, 12], 2),
        ([50, 45, 5], 2),
        ([80, 11, 9], 2),
    ],
)
def test_the_last_tenth_keeps_instants_whole(sizes, first):
    ranks = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    assert later_from(ranks) == first
    n, wanted = len(ranks), len(ranks) // 10
    shares = [abs((ranks >= k).sum() - max(1, wanted)) for k in range(1, len(sizes))]
    assert abs((ranks >= first).sum() - max(1, wanted)) == min(shares)
    assert 0 < (ranks >= first).sum() < n
