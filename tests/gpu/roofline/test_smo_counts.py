"""The program that counts what SMO does on a GPU walks as the kernel does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from problems import bootstrap_counts, overlapping

from bootprob_gpu import Problem, fit
from bootprob_gpu.smo.triton_paths import launch

pytest.importorskip("triton")
from gpu.roofline import smo_counts


@pytest.mark.parametrize("rounded", [False, True])
def test_a_walk_is_that_of_the_kernel(rng, rounded):
    """To the bit until something is summed up, in another order."""
    X, y = overlapping(rng, n=13, p=3)
    exact = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
    K = exact.astype(np.float32) if rounded else exact
    upper = 5.0 * rng.integers(1, 4, size=(1, 13)).astype(float)
    touched = np.zeros(13, np.bool_)
    found = smo_counts.walk(K, exact, y, upper, 0.0, 12, 16, touched)
    expected = launch(
        torch.from_numpy(K)[None], torch.from_numpy(y), torch.from_numpy(upper)[None],
        exact=torch.from_numpy(exact)[None], tol=0.0, max_iter=12, unit_diagonal=True,
    )  # fmt: skip
    assert found[2].tolist() == expected[2].n_iter[0].tolist()
    np.testing.assert_array_equal(found[0], expected[0][0].numpy())
    assert (touched >= (found[0][0] != 0)).all()
    assert found[3].tolist() == [(found[0][0] != 0).sum()]


@pytest.mark.parametrize("rounded", [False, True])
def test_walks_solve(rng, rounded):
    X, y = overlapping(rng, n=40, p=3)
    scale = rng.uniform(0.5, 2.0, size=(2, 3))
    problem = Problem(X, y, bootstrap_counts(rng, 2, y), [0.1, 10.0], kernel="rbf",
                      gamma=[0.1, 1.0], scale=scale)  # fmt: skip
    found = smo_counts.walks(problem, rounded=rounded)
    assert found.given_up == 0
    assert found.largest_gap <= 1e-6
    assert found.sizes.tolist() == (problem.counts > 0).sum(1).tolist()
    # As many steps as any SMO with this choice of pairs takes, but for when it looks at the gap.
    theirs = fit(problem, solver="smo-compiled").n_iter.sum()
    assert 0.3 * theirs - 200 <= found.n_iter.sum() <= 3 * theirs + 200


def test_schedules():
    assert smo_counts.makespan([1, 1, 1, 3], 2) == 4
    assert smo_counts.makespan([3, 1, 1, 1], 2) == 3
    n_iter = np.array([[1, 5, 2]] * 4)
    found = smo_counts.schedules(n_iter, np.array([0.1, 1.0, 10.0]), places=4, block=4)
    assert found == {
        "by number": 10, "hardest γ first": 8, "longest path first": 8, "no shorter than": 8
    }  # fmt: skip
