"""Prediction sets of the training rows, from the replicates that did not see each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.ensemble.conformal import ROUNDING
from bootprob.ensemble.specs import PredictionSpec
from bootprob.ensemble.state import State, TwoClassState, state_of
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

__all__ = ["out_of_bag_p_values"]


def out_of_bag_p_values(model: Any) -> Floats | None:
    """How many other training rows fit their class no better than a row fits each class.

    As `bootprob.ensemble.conformal_p_values` with the row for a new one and all others to compare
    with, but every row has the mean score over the replicates that left it out, and not those that
    left out both: the jackknife+ would score each training row again. Over all rows together the
    true class has a p-value above α in just about ``1 − α`` of them, as ranks are; what is found is
    how this falls to the classes, and how large sets are.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted.

    Returns
    -------
    ndarray, shape (n, K), or None
        NaN for a row of no weight or that was never out of bag. None of several classes in a model
        that does not have `oob_class_scores_`. Rows of the same group are not compared.
    """
    state = state_of(model)
    scores = _class_scores(state)
    if scores is None:
        return None
    counted, left_out = state.sample_weight_ > 0, state.oob_counts_ > 0
    rows, ties = np.flatnonzero(counted & left_out), counted & ~left_out
    found = np.full(scores.shape, np.nan)
    if not len(rows):
        return found
    mass, n_units = _mass(counted, state.groups_)
    own = scores[rows, state.y_[rows]]
    own -= ROUNDING[PredictionSpec.of(vars(model)).dtype] * np.abs(own).max()
    order = np.argsort(own)
    below = np.concatenate([[0.0], np.cumsum(mass[rows][order])])
    no_better = below[np.searchsorted(own[order], scores[rows], side="right")]
    for members in _together(rows, state.groups_):
        ascending = members[np.argsort(own[members])]
        alike = np.concatenate([[0.0], np.cumsum(mass[rows[ascending]])])
        at = np.searchsorted(own[ascending], scores[rows[members]], side="right")
        no_better[members] -= alike[at]
    found[rows] = (1 + mass[ties].sum() + no_better) / n_units
    return found


def _class_scores(state: State) -> Floats | None:
    """How well each class fits each row out of bag, all models of the grid alike, shape (n, K)."""
    if not isinstance(state, TwoClassState):
        return state.oob_class_scores_
    second = state.oob_model_scores_.mean(axis=1)
    return np.stack([-second, second], axis=1)


def _mass(counted: NDArray[np.bool_], groups: Groups | None) -> tuple[Floats, int]:
    """What each row counts, and how many rows, or groups, there are."""
    if groups is None:
        return np.ones(len(counted)), int(counted.sum())
    sizes = np.bincount(groups, counted)
    return 1 / np.maximum(sizes[groups], 1), int((sizes > 0).sum())


def _together(rows: NDArray[np.intp], groups: Groups | None) -> list[NDArray[np.intp]]:
    """Positions among the rows of those that are not compared with each other."""
    if groups is None:
        return np.split(np.arange(len(rows)), len(rows))
    order = np.argsort(groups[rows], kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[rows][order])) + 1)
