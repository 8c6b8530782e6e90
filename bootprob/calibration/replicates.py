"""The sigmoid in every bootstrap replicate, one Newton step from that of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.calibration.sigmoid import Sigmoid
from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["sigmoid_replicates"]


def sigmoid_replicates(
    sigmoid: Sigmoid,
    scores: Floats,
    positive: NDArray[np.bool_],
    weight: Floats,
    counts: NDArray[np.unsignedinteger[Any]],
) -> Floats:
    """Slope and intercept if the rows were weighted as in each replicate, shape (B, 2).

    ``θ_b = θ + I_b⁻¹ Σ_i N_bi w_i (y_i − p_i) g_i − mean over b`` with ``g_i = (score_i, 1)`` and
    the information ``I_b`` of the replicate's rows: what resampling does to the calibrator, to
    first order. The slope is never below 0.

    Parameters
    ----------
    sigmoid : Sigmoid
        Fitted to all rows.
    scores : ndarray, shape (n,)
        What it was fitted to; NaN for a row that was never out of bag.
    positive : ndarray of bool, shape (n,)
        Which rows are of the positive class.
    weight : ndarray, shape (n,)
        Row weights.
    counts : ndarray of int, shape (B, n)
        How often each row is in each replicate.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.calibration import Sigmoid, sigmoid_replicates
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=200)
    >>> positive = rng.random(200) < 1 / (1 + np.exp(-2 * scores))
    >>> sigmoid = Sigmoid.fit(scores, positive, np.ones(200))
    >>> counts = rng.multinomial(200, np.full(200, 1 / 200), size=50).astype(np.uint8)
    >>> found = sigmoid_replicates(sigmoid, scores, positive, np.ones(200), counts)
    >>> found.shape, bool(found[:, 0].std() > 0.05)  # how unsure the slope is
    ((50, 2), True)
    """
    used = np.flatnonzero(np.isfinite(scores) & (weight > 0))
    m, w = scores[used], weight[used]
    p = sigmoid.predict(m)
    residual, mass = w * (positive[used] - p), w * p * (1 - p)
    # Five sums over the rows of each replicate: the two of the gradient, three of the information.
    columns = np.stack([residual * m, residual, mass * m * m, mass * m, mass], axis=1)
    sums = np.zeros((len(counts), 5))
    for block in row_blocks(len(used), len(counts)):
        sums += counts[:, used[block]].astype(np.float64) @ columns[block]
    gradient = sums[:, :2] - sums[:, :2].mean(axis=0)  # the prior leaves a rest at θ
    information = sums[:, [2, 3, 3, 4]].reshape(-1, 2, 2)
    steps = np.einsum("bij,bj->bi", np.linalg.pinv(information, hermitian=True), gradient)
    found = np.array([sigmoid.slope, sigmoid.intercept]) + steps
    found[:, 0] = np.maximum(found[:, 0], 0.0)
    return found
