"""A model fitted by workers, or from a checkpoint, beside itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bootprob import BootstrapSVC

__all__ = ["fitted_elsewhere_is_the_same"]


def fitted_elsewhere_is_the_same(
    model: BootstrapSVC, X: NDArray[Any], y: NDArray[Any], folder: Path
) -> None:
    """Fit the model's table again by two workers, and twice with a checkpoint, to the last bit."""
    kept = {"checkpoint": str(folder / "shards")}
    for options in ({"n_jobs": 2}, kept, kept):
        other = clone(model).set_params(**options).fit(X, y)
        np.testing.assert_array_equal(other.weights_, model.weights_)
        np.testing.assert_array_equal(other.predict_proba(X[:9]), model.predict_proba(X[:9]))
