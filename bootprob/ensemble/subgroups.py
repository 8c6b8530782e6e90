"""How good a fitted model is in each subgroup of its training rows, out of bag."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from bootprob.ensemble.out_of_bag_proba import (
    controlled_decisions,
    cross_fitted_proba,
    out_of_bag_ranks,
)
from bootprob.ensemble.state import two_class_state
from bootprob.metrics.subgroups import Subgroups, subgroup_metrics

__all__ = ["out_of_bag_subgroups"]


def out_of_bag_subgroups(
    model: Any, by: ArrayLike, level: float = 0.95, *, seed: int = 0
) -> Subgroups:
    """Metrics, calibration and decisions in each subgroup of the training rows.

    Each row counts with the probability that the replicates give it which did not see it, as for
    `bootprob.ensemble.out_of_bag_intervals`.

    Parameters
    ----------
    model : BootstrapSVC or BootstrapClassifier
        Fitted to two classes.
    by : array_like, shape (n,)
        What tells the subgroups apart, in the order of the training rows; it need not be a column
        that the model has seen.
    level, seed
        As in `bootprob.metrics.subgroup_metrics`.

    Returns
    -------
    Subgroups

    Raises
    ------
    DataError
        As in `bootprob.metrics.subgroup_metrics`, or with several classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> found = out_of_bag_subgroups(model, X[:, 0] > 15)
    >>> [(each.name, each.n_rows, each.miscalibrated) for each in found.subgroups]
    [('False', 396, False), ('True', 173, False)]
    """
    state = two_class_state(model, "subgroups")
    return subgroup_metrics(
        state.y_,
        cross_fitted_proba(model),
        by,
        state.sample_weight_,
        level,
        decided=controlled_decisions(model),
        ranks=out_of_bag_ranks(model),
        groups=state.groups_,
        seed=seed,
    )
