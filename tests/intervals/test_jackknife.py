"""Jackknife variances from Gram matrices, against their sums over training rows."""

import functools

import numpy as np
import pytest

from bootprob import intervals
from bootprob.runtime.row_blocks import row_blocks


@pytest.fixture
def drawn(rng):
    n, B, m = 30, 80, 6
    counts = rng.multinomial(n, np.full(n, 1 / n), size=B).astype(np.uint8)
    used = rng.uniform(size=n) < 0.9
    scores = rng.normal(size=(m, B)) + rng.normal(size=(m, n)) @ counts.T
    return counts, used, scores


def test_infinitesimal_jackknife_is_the_sum_of_squared_covariances(drawn):
    counts, used, scores = drawn
    B = len(counts)
    covariance = np.array([[np.cov(row, c, bias=True)[0, 1] for c in counts[:, used].T]
                           for row in scores])  # fmt: skip
    noise = counts[:, used].var(axis=0).sum() * scores.var(axis=1) / B
    gram = intervals.counts_gram(counts, used)
    np.testing.assert_allclose(
        intervals.jackknife_variance(scores, gram), (covariance**2).sum(axis=1) - noise, rtol=1e-9
    )


def test_infinitesimal_jackknife_over_some_replicates(drawn, rng):
    counts, used, scores = drawn
    outside = rng.uniform(size=scores.shape) < 0.4
    outside[-1] = False
    gram = intervals.counts_gram(counts, used)
    found = intervals.jackknife_variance(scores, gram, outside)
    centered = counts[:, used] - counts[:, used].mean(axis=0)
    for row, out, value in zip(scores[:-1], outside[:-1], found[:-1], strict=True):
        deviation = row[out] - row[out].mean()
        covariance = deviation @ centered[out] / out.sum()
        noise = np.square(centered[out]).sum() * np.square(deviation).mean() / out.sum() ** 2
        assert value == pytest.approx(max((covariance**2).sum() - noise, 0), rel=1e-9)
    assert np.isnan(found[-1])


def test_jackknife_after_bootstrap_is_the_jackknife_of_means_without_each_row(drawn):
    counts, used, scores = drawn
    B, n = len(counts), used.sum()
    without = np.array([scores[:, counts[:, i] == 0].mean(axis=1) for i in np.flatnonzero(used)])
    squares = np.square(without - scores.mean(axis=1)).sum(axis=0)
    expected = (n - 1) / n * squares - (np.e - 1) * n / B * scores.var(axis=1)
    gram = intervals.after_bootstrap_gram(counts, used)
    found = intervals.after_bootstrap_variance(scores, gram, n)
    np.testing.assert_allclose(found, np.maximum(expected, 0), rtol=1e-9)


def test_both_find_the_variance_of_a_mean(rng):
    """The bagged mean of a sample: its variance is known, that of a replicate is larger."""
    n, B = 60, 4000
    x = rng.normal(size=n)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=B).astype(np.uint8)
    used = np.ones(n, dtype=bool)
    scores = ((counts @ x) / n)[None] + rng.normal(scale=0.1, size=B)  # unstable replicates
    expected = x.var() / n
    gram = intervals.counts_gram(counts, used)
    assert intervals.jackknife_variance(scores, gram)[0] == pytest.approx(expected, rel=0.25)
    outside = intervals.after_bootstrap_gram(counts, used)
    after = intervals.after_bootstrap_variance(scores, outside, n)[0]
    assert after == pytest.approx(expected, rel=0.3)
    assert scores.var() > 1.3 * expected


def test_acceleration_is_a_sixth_of_the_skewness_of_influences(drawn):
    counts, used, scores = drawn
    centered = counts[:, used] - counts[:, used].mean(axis=0)
    U = (scores - scores.mean(axis=1, keepdims=True)) @ centered / len(counts)
    expected = (U**3).sum(axis=1) / (6 * (U**2).sum(axis=1) ** 1.5)
    np.testing.assert_allclose(intervals.acceleration(scores, counts, used), expected, rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-110, 1e110])
def test_acceleration_has_no_unit(drawn, unit):
    counts, used, scores = drawn
    expected = intervals.acceleration(scores, counts, used)
    np.testing.assert_allclose(intervals.acceleration(unit * scores, counts, used), expected)


def test_blocks_change_nothing(drawn, monkeypatch):
    counts, used, scores = drawn
    whole = (
        intervals.counts_gram(counts, used),
        intervals.after_bootstrap_gram(counts, used),
        intervals.acceleration(scores, counts, used),
    )
    by_three = functools.partial(row_blocks, at_once=3 * len(counts))
    monkeypatch.setattr("bootprob.intervals.jackknife.row_blocks", by_three)
    parts = (
        intervals.counts_gram(counts, used),
        intervals.after_bootstrap_gram(counts, used),
        intervals.acceleration(scores, counts, used),
    )
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_constant_scores_have_no_variance(drawn):
    counts, used, _ = drawn
    constant = np.full((2, len(counts)), 3.0)
    assert not intervals.jackknife_variance(constant, intervals.counts_gram(counts, used)).any()
    gram = intervals.after_bootstrap_gram(counts, used)
    assert not intervals.after_bootstrap_variance(constant, gram, used.sum()).any()
    assert not intervals.acceleration(constant, counts, used).any()
