"""Out-of-bag probabilities that owe nothing to a row's own label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.calibration import CALIBRATORS, vote_logits
from bootprob.calibration.cross_fitting import CrossFitted
from bootprob.ensemble.fitted import as_fitted
from bootprob.ensemble.state import TwoClassState, two_class_state
from bootprob.runtime.arrays import Floats

__all__ = [
    "controlled_decisions",
    "cross_fitted_calibrators",
    "cross_fitted_proba",
    "out_of_bag_ranks",
]


def cross_fitted_proba(model: Any) -> Floats:
    """Out-of-bag probabilities of the positive class by calibrators that did not see the row.

    The attribute `oob_proba_` comes from the model's own calibrator, which was fitted to all
    labels: metrics of it are too good. Here the calibrator was fitted to the rows of the other
    nine of ten folds; the scores are those of the replicates that left the row out, as they are.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted.

    Returns
    -------
    ndarray, shape (n,)
        NaN for a row that was never out of bag or has no weight. The out-of-bag vote shares of a
        model without calibration.

    Notes
    -----
    What else the fit learned from all labels stays: the weights of the models of the grid, and
    which calibration ``calibration="auto"`` chose. docs/metric_intervals.md has what is left of
    the optimism.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from bootprob.ensemble import cross_fitted_proba
    >>> cross_fitted_proba(model).shape
    (100,)
    """
    state = two_class_state(model, "cross-fitted probabilities")
    if state.calibration_ is None:
        return state.oob_vote_proba_[:, 1].copy()
    known = state.calibration_rows()[0]
    probability = np.full(len(known), np.nan)
    if np.count_nonzero(known) < 2:  # a row alone teaches nothing of itself
        return probability
    fitted, scores, logits = cross_fitted_calibrators(state)
    probability[known] = fitted.predict(scores, logits)
    return probability


def cross_fitted_calibrators(state: TwoClassState) -> tuple[CrossFitted, Floats, Floats]:
    """The calibrators of `cross_fitted_proba`, and the scores and vote logits of their rows.

    Their rows are those of `TwoClassState.calibration_rows`, of which there must be two.
    """
    known, scores, positive, weight = state.calibration_rows()
    logits = vote_logits(state.oob_vote_proba_[known, 1], float(state.oob_counts_.mean()))
    groups = None if state.groups_ is None else state.groups_[known]
    assert state.calibration_ is not None
    kind = CALIBRATORS[state.calibration_]
    return CrossFitted.fit(kind, scores, logits, positive, weight, groups), scores, logits


def controlled_decisions(model: Any) -> NDArray[np.bool_] | None:
    """Which training rows are decided positive under control of a rate, shape (n,).

    By the model's own calibrator: the threshold was chosen on these rows as it sees them. None
    without control, where one half of `cross_fitted_proba` decides.
    """
    if model.control is None:
        return None
    return model.oob_proba_[:, 1] > as_fitted(model).decision_threshold_


def out_of_bag_ranks(model: Any) -> Floats:
    """What orders the training rows for an out-of-bag AUC, shape (n,); NaN if never out of bag.

    Cross-fitting moves each probability away from the row's own label, and pairs of rows that are
    close come to be misordered: too low an AUC. So the order is that of the model's own
    calibrator, which the labels hardly touch where it is smooth; where it is made of steps, which
    they do, that of the scores.
    """
    kind = model.calibration_
    if kind is not None and CALIBRATORS[kind].of_steps:
        return model.oob_decision_function_.copy()
    return model.oob_proba_[:, 1].copy()
