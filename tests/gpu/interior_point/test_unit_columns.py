"""Columns are shifted by their medians and divided by their spread, on every device alike."""

import numpy as np
import pytest
import torch

from bootprob_gpu.interior_point import unit_columns as module
from bootprob_gpu.interior_point.unit_columns import unit_columns


def lower_median(X: np.ndarray) -> np.ndarray:
    return np.sort(X, axis=0)[(len(X) - 1) // 2]


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_columns_by_definition(rng, n, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_NUMBERS", 3 * n)  # three columns at a time
    X = rng.normal(size=(n, 5)) * [1, 1e6, 1e-6, 1, 1] + [0, 1, 2, 3, 4]
    X[:, 3] = 7.0  # constant
    X[:, 4] = np.arange(n) == 0  # a dummy: most rows are equal
    X1, center, spread = (each.numpy() for each in unit_columns(torch.from_numpy(X)))
    np.testing.assert_array_equal(center, lower_median(X))
    width = lower_median(np.abs(X - center))
    width = np.where(width > 0, width, np.sqrt(np.square(X - center).mean(axis=0)))
    np.testing.assert_allclose(spread, np.where(width > 1e-13, width, 1.0), rtol=1e-15)
    np.testing.assert_array_equal(X1[:, :-1], (X - center) / spread)
    np.testing.assert_array_equal(X1[:, -1], 1.0)


class OnCuda:
    """A tensor that says it is on CUDA, and knows only what torch does there deterministically."""

    device = torch.device("cuda", 0)

    def __init__(self, tensor):
        self._tensor = tensor

    def __len__(self):
        return len(self._tensor)

    def sort(self, dim):
        return self._tensor.sort(dim=dim)


@pytest.mark.parametrize("n", [1, 2, 9, 10])
def test_medians_are_the_same_without_torchs_median(rng, n):
    part = torch.from_numpy(rng.integers(0, 4, size=(n, 6)).astype(float))
    assert torch.equal(module._median(OnCuda(part)), module._median(part))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_that_must_be_deterministic(rng):
    X = torch.from_numpy(rng.normal(size=(101, 7)))
    torch.use_deterministic_algorithms(True)
    try:
        found = unit_columns(X.cuda())
    finally:
        torch.use_deterministic_algorithms(False)
    for one, other in zip(found, unit_columns(X), strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-14, atol=1e-14)
