"""Laplacian kernels: as their own values, precomputed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics.pairwise import laplacian_kernel

from bootprob import BootstrapSVC, ConstrainedSVC, load, save
from bootprob_gpu.kernels.laplacian import Laplacian

pytestmark = pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")
FEW = {"n_bootstraps": 20, "random_state": 0, "C": [0.5, 2.0]}


@pytest.fixture(scope="module")
def circle():
    """A class inside the other: rows, labels, new rows."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 3))
    return X, (np.square(X).sum(axis=1) + rng.normal(size=90) > 3).astype(int), X[:12] + 0.1


def test_a_laplacian_kernel_is_its_values_precomputed(circle):
    X, y, new = circle
    settings = FEW | {"tol": 1e-9}
    by_name = BootstrapSVC(kernel="laplacian", gamma=0.3, standardize=None, **settings).fit(X, y)
    given = BootstrapSVC(kernel="precomputed", **settings).fit(laplacian_kernel(X, gamma=0.3), y)
    values = laplacian_kernel(new, X, gamma=0.3)
    found, expected = by_name.predict_proba(new), given.predict_proba(values)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    found, expected = by_name.proba_interval(new), given.proba_interval(values)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("standardize", ["bootstrap", "global"])
def test_files_and_rules_for_gamma(circle, tmp_path, standardize):
    X, y, new = circle
    model = BootstrapSVC(kernel="laplacian", gamma="median", standardize=standardize, **FEW)
    model.fit(X, y)
    seen = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(model.gamma_, 1 / np.median(pdist(seen, "cityblock")), rtol=1e-2)
    save(model, tmp_path / "m.model")
    again = load(tmp_path / "m.model")
    np.testing.assert_array_equal(again.proba_interval(new), model.proba_interval(new))


def test_a_machine_under_constraints_keeps_its_rate(circle):
    X, y, _ = circle
    svc = ConstrainedSVC(kernel="laplacian", gamma="median", rates={"tpr": 0.95}, anchors="all")
    svc.fit(X, y)
    assert (svc.decision_function(X)[y == 1] > 0).mean() >= 0.95


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_two", [8, 20])
def test_columns_of_two_values_are_those_of_differences(rng, dtype, n_two):
    """Rows may have any value in them; constant columns are of two values, too."""
    others = rng.normal(size=(30, n_two + 3))
    others[:, :n_two] = np.where(rng.uniform(size=(30, n_two)) < 0.5, rng.normal(size=n_two), 1.7)
    others[:, 0] = 4.0
    rows = np.vstack([rng.normal(size=(12, n_two + 3)) * 2, others[:3]])
    kernel = Laplacian(torch.tensor([0.3, 1.0], dtype=torch.float64))
    for of, to in ((rows, others), (rows[:, :n_two], others[:, :n_two]), (rows[:2], others)):
        found = kernel.gram(torch.from_numpy(of).to(dtype), torch.from_numpy(to).to(dtype))
        expected = np.exp(-np.array([0.3, 1.0])[:, None, None] * cdist(of, to, "cityblock"))
        assert found.dtype == dtype
        np.testing.assert_allclose(
            found.numpy(), expected, rtol=1e-4 if dtype == torch.float32 else 1e-12
        )
