"""The kernels that "auto" chooses are not trained on more samples than take the usual time."""

import numpy as np
import pytest

from bootprob import BootstrapSVC
from bootprob.preparation.large_tables import samples_of


@pytest.mark.parametrize(
    ("n", "asked", "most", "found"),
    [
        (2, 500, 50, (500, None)),
        (1000, 500, 50, (500, None)),
        (2000, 500, 50, (125, None)),
        (2000, 4000, 50, (1000, None)),
        (3000, 500, 50, (56, None)),
        (3000, 500, 200, (200, None)),
        (3000, 30, 50, (30, None)),
        (3001, 500, 50, (50, 3001)),
        (40_000, 500, 20, (20, 10_000)),
    ],
)
def test_samples_of_tables(n, asked, most, found):
    assert samples_of(np.ones(n), asked, most) == found
    beside = np.append(np.ones(n), np.zeros(3))  # rows of no weight take no time
    assert samples_of(beside, asked, most)[0] == found[0]


def test_a_kernel_that_is_named_has_all_of_its_samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 1))
    y = rng.random(1200) < 1 / (1 + np.exp(-X[:, 0]))
    chosen = BootstrapSVC(effort="low", n_bootstraps=40, random_state=0).fit(X, y)
    assert chosen.n_replicates_ == 28
    assert chosen.bootstrap_counts().sum(axis=1).tolist() == [1200] * 28
    named = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=40, random_state=0).fit(X, y)
    assert named.n_replicates_ == 40
