"""Bootstrap samples: the right distribution, reproducible shard by shard."""

import numpy as np
import pytest
from scipy.stats import chisquare

from bootprob.exceptions import DataError
from bootprob.preparation.bootstrap import _compiled_is_numpys, bootstrap_counts, draw_entropy
from bootprob.preparation.seed_sequences import pcg64_seeds

POSITIVE = np.arange(40) % 2 == 0
EVEN = np.ones(40)


def test_each_sample_has_as_many_draws_as_rows():
    counts, _ = bootstrap_counts(POSITIVE, EVEN, range(50), [1, 2, 3, 4])
    assert (counts.sum(axis=1) == 40).all()


def test_rows_are_drawn_evenly():
    counts, _ = bootstrap_counts(POSITIVE, EVEN, range(2000), [5])
    assert chisquare(counts.sum(axis=0)).pvalue > 1e-4
    assert abs((counts == 0).mean() - (1 - 1 / 40) ** 40) < 0.01


def test_any_shard_can_be_drawn_alone():
    whole, _ = bootstrap_counts(POSITIVE, EVEN, range(20), [9, 9])
    shard, _ = bootstrap_counts(POSITIVE, EVEN, range(7, 13), [9, 9])
    assert np.array_equal(whole[7:13], shard)


def test_samples_without_a_class_are_drawn_again_and_counted():
    positive = np.array([True, False, False, False])
    counts, redrawn = bootstrap_counts(positive, np.ones(4), range(400), [3])
    assert (counts[:, 0] > 0).all()
    assert (counts[:, 1:].sum(axis=1) > 0).all()
    # P(no positive) = (3/4)^4, P(no negative) = (1/4)^4: expect 400 q / (1 - q) redraws.
    q = 0.75**4 + 0.25**4
    assert abs(redrawn - 400 * q / (1 - q)) < 5 * np.sqrt(400 * q) / (1 - q)


def test_a_class_counts_only_where_it_has_weight():
    positive = np.array([True, True, False, False])
    weight = np.array([1.0, 0.0, 1.0, 1.0])
    counts, _ = bootstrap_counts(positive, weight, range(100), [4])
    assert (counts[:, 0] > 0).all()


def test_entropy_comes_from_the_random_state():
    first = draw_entropy(np.random.RandomState(0))
    assert first == draw_entropy(np.random.RandomState(0))
    assert first != draw_entropy(np.random.RandomState(1))
    assert all(0 <= word < 2**32 for word in first)


def test_draws_do_not_change_with_the_version():
    """A fitted model keeps its seed, not its samples: they have to come out again as they were."""
    counts, _ = bootstrap_counts(POSITIVE[:8], EVEN[:8], range(3), [1, 2, 3, 4])
    as_in_0_1_0 = [[2, 0, 0, 0, 2, 1, 1, 2], [0, 2, 2, 1, 1, 0, 1, 1], [1, 0, 2, 1, 0, 1, 2, 1]]
    assert counts.tolist() == as_in_0_1_0


def test_counts_take_a_byte_each(rng):
    counts, _ = bootstrap_counts(rng.uniform(size=5000) < 0.3, np.ones(5000), range(4), [6])
    assert counts.dtype == np.uint8
    assert (counts.sum(axis=1) == 5000).all()


@pytest.mark.parametrize("often", [255, 256, 70_000])
def test_a_row_drawn_more_than_255_times_is_counted_in_full(monkeypatch, often):
    class Repetitive:
        """Draws row 1 over and over, as a generator of its own would do once in aeons."""

        def integers(self, low, high, size):
            return np.where(np.arange(size) < often, 1, 2)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Repetitive())
    monkeypatch.setattr("bootprob.preparation.bootstrap._WORTH_COMPILING", np.inf)
    positive = np.arange(often + 9) % 2 == 0
    counts, _ = bootstrap_counts(positive, np.ones(often + 9), range(2), [7])
    assert counts[:, 1:3].tolist() == [[often, 9], [often, 9]]
    assert counts.dtype == np.min_scalar_type(often)


def test_every_class_of_several_occurs_in_every_sample(rng):
    codes = np.repeat([0, 1, 2], [3, 5, 20])
    counts, redrawn = bootstrap_counts(codes, np.ones(28), range(500), [int(rng.integers(2**32))])
    present = np.stack([counts[:, codes == code].sum(axis=1) for code in range(3)])
    assert (present > 0).all()
    missing = np.prod(1 - (1 - np.array([3, 5, 20]) / 28) ** 28)  # but for their dependence
    assert 0.5 < (redrawn + 1) / (500 * (1 / missing - 1)) < 2


def test_samples_that_hardly_ever_hold_every_class_are_refused():
    with pytest.raises(DataError, match=r"20 classes, of which the smallest has 1 of 20 rows"):
        bootstrap_counts(np.arange(20), np.ones(20), range(2), [0])


@pytest.mark.parametrize(
    "entropy", [[0], [1, 2, 3, 4], [2**32 - 1] * 4, [2**40, 5, 6, 7, 8], [3] * 11, [2**200]]
)
def test_seeds_are_those_of_numpys_sequences(entropy):
    keys = range(2, 2**32, 2**28 + 1)
    asked = [np.random.SeedSequence(entropy, spawn_key=(b,)) for b in keys]
    seeds = np.stack([sequence.generate_state(4, np.uint64) for sequence in asked])
    np.testing.assert_array_equal(pcg64_seeds(entropy, keys), seeds)


# Of 1,073,742 rows one draw in 4,000 is rejected, of a power of two none.
@pytest.mark.parametrize(
    ("n", "replicates"),
    [
        *((n, range(40, 90)) for n in (2, 3, 4, 7, 64, 569, 1024)),
        *((n, range(3)) for n in (29_000, 2**16 - 1, 2**16, 2**16 + 1)),
        (1_073_742, range(1)),
    ],
)
def test_compiled_draws_are_numpys(rng, monkeypatch, n, replicates):
    codes, weight = rng.integers(0, 2, n), rng.integers(0, 3, n).astype(float)
    codes[:2], weight[:2] = [0, 1], 1  # the smallest samples often lack one of them
    both_ways(monkeypatch, codes, weight, replicates, draw_entropy(np.random.RandomState(n)))


def test_compiled_draws_are_numpys_with_several_classes_and_threads(rng, monkeypatch):
    codes = np.repeat([0, 2, 3, 5], [3, 5, 20, 1])
    weight = np.where(codes == 5, 0.0, 1.0)  # a class of no weight need not be drawn
    monkeypatch.setattr("bootprob.preparation.bootstrap.workers", lambda: 3)
    monkeypatch.setattr("bootprob.preparation.bootstrap._WORTH_A_THREAD", 1)
    _, redrawn = both_ways(monkeypatch, codes, weight, range(400), [int(rng.integers(2**32))])
    assert redrawn > 0


def test_what_a_byte_cannot_count_is_drawn_by_numpy(rng, monkeypatch):
    monkeypatch.setattr(
        "bootprob.preparation.bootstrap._HIGHEST", 3
    )  # one sample in twenty has more
    counts, _ = both_ways(
        monkeypatch, np.arange(6) % 2, np.ones(6), range(300), [int(rng.integers(2**32))]
    )
    assert (counts.max(axis=1) > 3).any()
    assert (counts.max(axis=1) <= 3).any()


def test_a_numpy_that_draws_in_another_way_is_followed(monkeypatch, caplog):
    monkeypatch.setattr(
        np.random, "default_rng", lambda seed: np.random.Generator(np.random.MT19937(seed))
    )
    _compiled_is_numpys.cache_clear()
    try:
        both_ways(monkeypatch, POSITIVE, EVEN, range(5), [8])
    finally:
        _compiled_is_numpys.cache_clear()
    assert "draws integers in a way of its own" in caplog.text


def both_ways(monkeypatch, codes, weight, replicates, entropy):
    """Samples drawn by the compiled loop, which have to be those of numpy's own generators."""
    found = []
    for worth_compiling in (np.inf, 0):
        monkeypatch.setattr("bootprob.preparation.bootstrap._WORTH_COMPILING", worth_compiling)
        found.append(bootstrap_counts(codes, weight, replicates, entropy))
    (numpys, redrawn), (ours, redrawn_of_ours) = found
    np.testing.assert_array_equal(ours, numpys)
    assert ours.dtype == numpys.dtype == np.uint8
    assert redrawn == redrawn_of_ours
    return ours, redrawn


def test_this_numpy_draws_as_the_compiled_loop_does():
    assert _compiled_is_numpys()
