"""How good a fitted model is, out of bag."""

from __future__ import annotations

from typing import Any

import numpy as np

from bootprob.costs.matrix import CostMatrix
from bootprob.costs.rules import RuleCost, cost_of_rules
from bootprob.ensemble.out_of_bag_proba import (
    controlled_decisions,
    cross_fitted_proba,
    out_of_bag_ranks,
)
from bootprob.ensemble.state import state_of, two_class_state
from bootprob.exceptions import DataError
from bootprob.metrics.class_intervals import class_metric_intervals
from bootprob.metrics.intervals import Method, MetricInterval, metric_intervals

__all__ = ["out_of_bag_class_intervals", "out_of_bag_costs", "out_of_bag_intervals"]


def out_of_bag_intervals(
    model: Any, level: float = 0.95, method: Method = "auto", *, seed: int = 0
) -> dict[str, MetricInterval]:
    """Intervals for the performance of a fitted model on new rows, from its out-of-bag rows.

    A row counts with the probability that the replicates give it which did not see it, calibrated
    without its label (`bootprob.ensemble.cross_fitted_proba`); no rows have to be held back.
    Rows that were in every bootstrap sample have none; they are left out and counted. Not in the
    intervals is that the scores come from about a third of the replicates, and the weights of the
    grid from all labels, as is the threshold of a rate that is controlled.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted.
    level, method, seed
        As in `bootprob.metrics.metric_intervals`.

    Returns
    -------
    dict of str to MetricInterval

    Raises
    ------
    DataError
        If the rows that were out of bag are all of one class, or as in
        `bootprob.metrics.metric_intervals`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob import BootstrapSVC
    >>> from bootprob.ensemble import out_of_bag_intervals
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=50, random_state=0)
    >>> auc = out_of_bag_intervals(model.fit(*load_breast_cancer(return_X_y=True)))["auc"]
    >>> bool(0.97 < auc.lower < auc.value < auc.upper <= 1)
    True
    """
    state = two_class_state(model, "metrics with intervals")
    return metric_intervals(
        state.y_,
        cross_fitted_proba(model),
        state.sample_weight_,
        level,
        method,
        decided=controlled_decisions(model),
        ranks=out_of_bag_ranks(model),
        groups=state.groups_,
        seed=seed,
    )


def out_of_bag_costs(
    model: Any, costs: CostMatrix, level: float = 0.95, *, seed: int = 0
) -> dict[str, RuleCost]:
    """What decisions by costs cost a row on average, and other rules, by the same probabilities.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted to two classes.
    costs : CostMatrix
        For all rows alike, or one for each of the training rows.
    level, seed
        As in `bootprob.costs.cost_of_rules`.
    """
    state = two_class_state(model, "costs of decisions")
    return cost_of_rules(
        state.y_,
        cross_fitted_proba(model),
        costs,
        state.sample_weight_,
        level=level,
        groups=state.groups_,
        seed=seed,
    )


def out_of_bag_class_intervals(model: Any, level: float = 0.95) -> dict[str, MetricInterval]:
    """The same of a model of several classes, by `class_metric_intervals`, of its decisions.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted.
    level : float, default 0.95

    Raises
    ------
    DataError
        If no row was ever out of bag, or only rows of one class were.
    """
    state = state_of(model)
    known = np.isfinite(state.oob_proba_).all(axis=1) & (state.sample_weight_ > 0)
    if not known.any():
        raise DataError("No row was ever out of bag; raise n_bootstraps.")
    return class_metric_intervals(
        state.y_,
        state.oob_proba_,
        state.sample_weight_,
        level,
        decided=state.oob_decision_function_.argmax(axis=1),
        groups=state.groups_,
    )
