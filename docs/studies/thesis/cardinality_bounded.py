"""Columns by a bound on their number: the method that thesis chapter 4 compares with.

A. B. Chan, N. Vasconcelos, G. Lanckriet, "Direct convex relaxations of sparse SVM", ICML 2007, and
B. Ghaddar, J. Naoum-Sawaya, "High dimensional data classification and feature selection using
support vector machines", EJOR 265 (2018), bound the number of columns of a machine through the
ℓ₁ norm of its coefficients. Here, as in the second, the ℓ₁ norm is made smaller until no more
columns than allowed are left, then the machine is trained on these. The ℓ₁ machine is
scikit-learn's, whose slack is squared.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from bootprob.runtime.arrays import Bools, Floats, Indices

__all__ = ["cardinality_bounded"]

_STEPS = 18
_LEAST, _MOST = 1e-5, 1e3  # C of the ℓ₁ machine


def cardinality_bounded(X: Floats, positive: Bools, most: int) -> Indices:
    """Columns with a coefficient in the ℓ₁ machine of the largest C that has `most` at most.

    Parameters
    ----------
    X : ndarray, shape (n, p)
        Standardised.
    positive : ndarray of bool, shape (n,)
    most : int
        1 or more.

    Returns
    -------
    ndarray of int
        Column numbers. If every C tried has more or none, the largest coefficients of the one
        with the fewest.
    """
    low, high = np.log10(_LEAST), np.log10(_MOST)
    best = np.zeros(0, dtype=np.intp)
    fewest = None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        machine = LinearSVC(
            penalty="l1", dual=False, C=10**middle, tol=1e-3, max_iter=2000, random_state=0
        )
        with warnings.catch_warnings():  # columns are counted, converged or not
            warnings.simplefilter("ignore", ConvergenceWarning)
            size = np.abs(machine.fit(X, positive).coef_[0])
        used = np.flatnonzero(size > 1e-8)
        if len(used) > most:
            high = middle
            if fewest is None or len(used) < np.count_nonzero(fewest):
                fewest = np.where(size > 1e-8, size, 0)
        else:
            low = middle
            best = used if len(used) >= len(best) else best
    if len(best) == 0 and fewest is not None:
        best = np.sort(np.argsort(-fewest)[:most])
    return best
