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
