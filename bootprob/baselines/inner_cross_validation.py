"""The best C by inner cross-validation: all folds × C (× γ) in one call of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from bootprob.ensemble.scoring.rows import warn_of_unsolved
from bootprob.exceptions import DataError
from bootprob.preparation.grids import DEFAULT_C
from bootprob.preparation.standardization import bootstrap_scale
from bootprob.runtime.arrays import Bools, Floats
from bootprob_gpu import Kernel, Problem, iter_fit, resolve_device

__all__ = ["PAPER_C", "CrossValidated", "best_of_grid", "cross_validate", "inner_folds"]


PAPER_C = tuple(C / 2 for C in DEFAULT_C)
"""The thesis's grid 2⁻⁵ … 2⁵ of ``‖w‖² + C Σ ξ`` in the convention used here, 2⁻⁶ … 2⁴."""


@dataclass(frozen=True)
class CrossValidated:
    """What inner cross-validation found.

    Attributes
    ----------
    C : float
        Best value of C.
    gamma : float or None
        Best γ; None for the linear kernel.
    accuracy : ndarray, shape (n_gamma, n_C)
        Mean over the folds of the accuracy on held-out rows; one row for the linear kernel.
    scores : ndarray, shape (n,)
        Score of each row under the machine with the best C and γ that did not see it.
    """

    C: float
    gamma: float | None
    accuracy: Floats
    scores: Floats


def inner_folds(
    positive: Bools, n_folds: int, random_state: np.random.RandomState | int | None
) -> Bools:
    """Draw stratified folds, shape (folds, n): True where a row is held out.

    A class with fewer rows than folds gets as many folds as it has rows; `DataError` if that is
    one.
    """
    fewest = int(min(positive.sum(), (~positive).sum()))
    if fewest < 2:
        raise DataError(
            f"A class has {fewest} row, and cross-validation holds it out; give at least two rows "
            "of each class."
        )
    splitter = StratifiedKFold(min(n_folds, fewest), shuffle=True, random_state=random_state)
    held_out = np.zeros((splitter.n_splits, len(positive)), dtype=bool)
    for fold, (_, rows) in enumerate(splitter.split(np.zeros((len(positive), 1)), positive)):
        held_out[fold, rows] = True
    return held_out


def cross_validate(
    rows: Floats,
    positive: Bools,
    C: Floats,
    gamma: Floats | None,
    held_out: Bools,
    *,
    device: str,
    tol: float | None,
) -> CrossValidated:
    """Find C (and γ) with the best accuracy on held-out rows.

    The columns are standardised inside each training fold. The folds take the place of bootstrap
    samples: a row occurs once where it trains and not at all where it is held out.

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        Columns of mean near 0 and about unit scale.
    positive : ndarray of bool, shape (n,)
    C : ndarray, shape (n_C,)
        Ascending.
    gamma : ndarray, shape (n_gamma,), or None
        None for the linear kernel.
    held_out : ndarray of bool, shape (folds, n)
        Each row in one fold.
    tol : float or None
        As for `bootprob.BootstrapSVC`.
    """
    counts = (~held_out).astype(np.uint8)
    kernel: Kernel = "linear" if gamma is None else "rbf"
    problem = Problem(
        rows,
        np.where(positive, 1.0, -1.0),
        counts,
        C,
        kernel=kernel,
        gamma=gamma,
        scale=bootstrap_scale(rows, counts, np.ones(len(rows))),
    )
    scores = np.empty((problem.n_models, len(rows)))
    certificates: dict[str, list[NDArray[Any]]] = {"status": [], "gap": []}
    for block in iter_fit(problem, tol=tol, device=resolve_device(device)):
        assert block.train_scores is not None
        for fold, found in enumerate(block.train_scores.cpu().numpy(), block.replicates.start):
            scores[:, held_out[fold]] = found[:, held_out[fold]]
        for name, values in certificates.items():
            values.append(getattr(block, name).cpu().numpy())
    warn_of_unsolved({name: np.concatenate(values) for name, values in certificates.items()})
    best, accuracy = best_of_grid(scores, positive, held_out)
    return CrossValidated(
        C=float(problem.C_per_model[best]),
        gamma=None if gamma is None else float(problem.gamma_per_model[best]),  # type: ignore[index]
        accuracy=accuracy.reshape(-1, len(C)),
        scores=scores[best],
    )


def best_of_grid(scores: Floats, positive: Bools, held_out: Bools) -> tuple[int, Floats]:
    """Find the model of the best mean accuracy, of equally good ones the first.

    With it come all accuracies (R,). `scores` (R, n) are those of each row when it was held
    out, under each model of the grid; `held_out` is (folds, n).
    """
    right = (scores > 0) == positive
    accuracy = np.mean([right[:, rows].mean(axis=1) for rows in held_out], axis=0)
    return int(np.argmax(accuracy.round(12))), accuracy  # equal but for rounding is equal
