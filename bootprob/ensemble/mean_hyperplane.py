"""The mean score of linear machines as one hyperplane, in the units of the columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bootprob.ensemble.state import TwoClassState
from bootprob.runtime.arrays import Floats

__all__ = ["mean_hyperplane", "replicate_coefficients"]


def mean_hyperplane(state: TwoClassState) -> tuple[Floats, float]:
    """Coefficients and intercept with ``decision_function(X) = X @ coef + intercept``.

    The score of replicate b is ``Σ_r ω_r (w_br · z + c_br) / s_b + o_b`` on the standardised row
    ``z = (x − center) / scale``, with its own scale s_b and offset o_b; the mean over b of such
    planes is a plane. It is made anew each time, so that it follows whatever moves the scores.

    Parameters
    ----------
    state : TwoClassState
        Of linear machines on the columns themselves.

    Returns
    -------
    coef : ndarray, shape (p,)
        What one unit of a column adds to the mean score. A constant column, whose scale is 1,
        keeps what its machines say of it: 0.
    intercept : float
        Mean score of the row of zeros.
    """
    share = 1 / state.score_scale_ / state.n_replicates
    used = np.flatnonzero(state.weights_)
    weights, coef = state.weights_[used], np.zeros(len(state.center_))
    for each, of_replicate in zip(share, replicate_coefficients(state, used), strict=True):
        coef += each * (weights @ of_replicate)
    coef /= state.scale_
    at_center = share @ state.bootstrap_intercept_ @ state.weights_ + state.score_offset_.mean()
    return coef, float(at_center - state.center_ @ coef)


def replicate_coefficients(state: TwoClassState, models: NDArray[np.intp]) -> Iterator[Floats]:
    """Coefficients of linear machines, replicate by replicate.

    Parameters
    ----------
    state : TwoClassState
        Linear in the columns or in those of a feature map.
    models : ndarray of int, shape (R',)
        Which of the R models.

    Yields
    ------
    ndarray, shape (R', D)
        On ``(X - center_) / scale_``, or on the feature map of it; those of machines that were
        trained through the Gram matrix from their dual coefficients.
    """
    for b in range(state.n_replicates):
        if state.bootstrap_coef_ is not None:
            yield state.bootstrap_coef_[b, models]
            continue
        assert state.bootstrap_dual_coef_ is not None
        assert state.X_fit_ is not None
        coef = state.bootstrap_dual_coef_[b, models] @ state.X_fit_
        if state.feature_map_ is None:
            scale = state.bootstrap_scale_
            coef /= np.square(scale if scale.ndim == 1 else scale[b])
        yield coef
