"""Quantiles of mixtures of normal distributions."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from bootprob.intervals import of_mixture


@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-9])
def test_bounds_leave_as_much_on_either_side(rng, level):
    """Also where parts are far apart, alike, or one is a spike."""
    m, g = 300, 5
    mean = rng.normal(size=(m, g)) * 10.0 ** rng.integers(-3, 4, size=(m, 1))
    deviation = 10.0 ** rng.uniform(-4, 3, size=(m, g))
    mean[:50], deviation[:50] = mean[:50, :1], deviation[:50, :1]
    weight = rng.dirichlet(np.full(g, 0.5))
    found = of_mixture(np.stack([mean, deviation], axis=-1), weight, level)
    for side, share in enumerate(((1 - level) / 2, (1 + level) / 2)):
        reached = ndtr((found[:, side, None] - mean) / deviation) @ weight
        density = (
            np.exp(-(((found[:, side, None] - mean) / deviation) ** 2) / 2) / deviation @ weight
        )
        off = 1e-12 * (1 + np.abs(found[:, side])) * density + 1e-13
        assert (np.abs(reached - share) <= off).all()


def test_one_part_is_a_normal_distribution():
    found = of_mixture(np.array([[[2.0, 3.0]]]), np.ones(1), 0.9)
    np.testing.assert_allclose(found[0], 2 + 3 * ndtri([0.05, 0.95]))


def test_a_row_has_the_same_bits_whatever_rows_are_beside_it(rng):
    parts = rng.uniform(0.1, 3, size=(1000, 11, 2))
    weight = rng.dirichlet(np.ones(11))
    together = of_mixture(parts, weight, 0.95)
    for rows in (slice(3), slice(3, 4), slice(4, 11), slice(11, 1000)):
        np.testing.assert_array_equal(of_mixture(parts[rows], weight, 0.95), together[rows])
