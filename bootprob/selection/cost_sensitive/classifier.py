"""The machine of largest margin on chosen columns, with the rows of (P1) kept: (P2) and (P3)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from bootprob.constrained import ConstrainedSVC
from bootprob.runtime.arrays import Floats

__all__ = ["train_on_kept"]


def train_on_kept(
    X: Floats,
    y: NDArray[Any],
    kept: NDArray[np.bool_],
    *,
    kernel: Literal["linear", "rbf"] = "linear",
    C: float = 1.0,
    gamma: str | float = "scale",
) -> Pipeline:
    """Train the machine (P2), or (P3) with an RBF kernel, with the z of (P1).

    ``½ ‖w‖² + C Σ ξ`` over all rows, with ``y f(x) ≥ 1`` for the rows kept. With z fixed, as the
    thesis has it in both, this is convex, and solved to optimality.

    Parameters
    ----------
    X : ndarray, shape (n, k)
        The columns chosen.
    y : ndarray, shape (n,)
        Labels of two classes.
    kept : ndarray of bool, shape (n,)
        Rows with ``z_i = 1``.
    kernel : {"linear", "rbf"}
    gamma : {"scale", "median"} or float

    Returns
    -------
    Pipeline
        Of a `StandardScaler` and a fitted `ConstrainedSVC`.

    Raises
    ------
    UnattainableRateError
        The kernel cannot keep the rows: its γ is too small for them.
    """
    scaler = StandardScaler()
    rows = scaler.fit_transform(X)
    machine = ConstrainedSVC(
        kernel=kernel,
        C=C,
        gamma=gamma,
        rates={"tpr": 1.0, "tnr": 1.0},
        # I is all rows, J those kept, once more.
        anchors=np.arange(len(rows), len(rows) + int(kept.sum())),
        standardize=False,
        max_rows=None,
    )
    machine.fit(np.concatenate([rows, rows[kept]]), np.concatenate([y, y[kept]]))
    return Pipeline([("scale", scaler), ("machine", machine)])
