"""(DEA(k)) of the thesis, (1.1) to (1.5): the linear program of one unit's weights."""

from __future__ import annotations

import numpy as np

from bootprob.exceptions import BootprobError
from bootprob.runtime.arrays import Floats

__all__ = ["best_weights"]


def best_weights(
    inputs: Floats, outputs: Floats, unit: int, bounds: tuple[Floats, Floats] | None = None
) -> tuple[float, Floats, Floats] | None:
    """Efficiency of a unit and weights that attain it, by HiGHS.

    Parameters
    ----------
    inputs : ndarray, shape (K, N)
    outputs : ndarray, shape (K, p)
    unit : int
        It uses something.
    bounds : tuple of ndarray of shape (p,), optional
        Least and greatest weights of the outputs, (5.9).

    Returns
    -------
    efficiency : float
    alpha, beta : ndarray, shape (N,) and (p,)
        None instead of all if no weights are within their bounds.

    Raises
    ------
    BootprobError
        HiGHS gave up.
    """
    from scipy.optimize import linprog

    n, p = inputs.shape[1], outputs.shape[1]
    lower, upper = (np.zeros(p), np.full(p, np.inf)) if bounds is None else bounds
    if (lower > upper).any():
        return None
    found = linprog(
        np.concatenate([np.zeros(n), -outputs[unit]]),
        A_ub=np.hstack([-inputs, outputs]), b_ub=np.zeros(len(inputs)),
        A_eq=np.concatenate([inputs[unit], np.zeros(p)])[None], b_eq=np.ones(1),
        bounds=[(0.0, np.inf)] * n + list(zip(lower.tolist(), upper.tolist(), strict=True)),
    )  # fmt: skip
    if found.status == 2:
        return None
    if found.status != 0 or found.x is None:
        raise BootprobError(
            f"The linear program of unit {unit} could not be solved ({found.message}). Rescale "
            "inputs and outputs: their sizes may differ too much."
        )
    # HiGHS keeps bounds to 1e-7 only.
    alpha, beta = np.maximum(found.x[:n], 0.0), np.clip(found.x[n:], lower, upper)
    return min(1.0, float(outputs[unit] @ beta)), alpha, beta
