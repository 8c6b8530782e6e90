"""A `BootstrapSVC` among classifiers of others, on the same bootstrap samples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bootprob.ensemble.bases.training import Trained
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.machines import Machines
from bootprob.ensemble.specs import PredictionSpec
from bootprob.ensemble.state import two_class_state
from bootprob.exceptions import CopiedRowsWarning, DataError, DoubtfulTableWarning
from bootprob.preparation.large_tables import is_large
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

__all__ = ["machines_beside", "machines_of", "told_apart", "with_machines"]

_ALONE: dict[str, Any] = {"calibration": None, "interval": "wald"}  # both are the whole's


def told_apart(
    candidates: Sequence[Any], K: int, weight: Floats
) -> tuple[list[Any], list[BootstrapSVC]]:
    """Classifiers that are fitted to each bootstrap sample, and those that do that themselves.

    Raises
    ------
    DataError
        A `BootstrapSVC` is alone, of several classes, or of more rows than all samples may have.
    """
    machines = [each for each in candidates if isinstance(each, BootstrapSVC)]
    others = [each for each in candidates if not isinstance(each, BootstrapSVC)]
    if not machines:
        return others, machines
    if not others:
        raise DataError("A BootstrapSVC needs no BootstrapClassifier around it; fit it itself.")
    if K > 2:
        raise DataError(
            f"The table has {K} classes, and a BootstrapSVC among others is of two; give "
            "scikit-learn's SVC instead."
        )
    if is_large(int(np.count_nonzero(weight))):
        raise DataError(
            "Of more than 3,000 rows a BootstrapSVC draws samples of its own, smaller ones; leave "
            "it out of the list: the posterior beside the classifiers is its."
        )
    return others, machines


def machines_beside(
    svc: BootstrapSVC,
    X: Floats,
    y: NDArray[Any],
    weight: Floats,
    groups: Groups | None,
    trained: Trained,
    seed: int,
) -> BootstrapSVC:
    """Train a `BootstrapSVC` on the bootstrap samples that classifiers were fitted to.

    Parameters
    ----------
    svc : BootstrapSVC
        Unfitted.
    X : ndarray, shape (n, p)
    y : ndarray, shape (n,)
    weight : ndarray, shape (n,)
    groups : ndarray of int, shape (n,), or None
    trained : Trained
        The classifiers.
    seed : int
        Of the samples.
    """
    svc = clone(svc).set_params(n_bootstraps=len(trained.counts), random_state=seed, **_ALONE)
    with warnings.catch_warnings():
        for told in (CopiedRowsWarning, DoubtfulTableWarning):
            warnings.simplefilter("ignore", told)
        svc.fit(X, y, sample_weight=weight, groups=groups)
    if not np.array_equal(svc.bootstrap_counts(), trained.counts):
        raise AssertionError("a BootstrapSVC has drawn other samples than it was given")
    return svc


def machines_of(svc: BootstrapSVC, X: Floats) -> Floats:
    """Weighted scores of rows by each replicate of a fitted one, shape (m, B)."""
    state = two_class_state(svc, "machines beside classifiers")
    return np.concatenate(list(Machines(state, PredictionSpec.of(vars(svc))).weighed(X)))


def with_machines(trained: Trained, beside: Sequence[BootstrapSVC], X: Floats) -> Floats:
    """Out-of-bag scores of classifiers and machines, shape (n, R, B, 1); 0 in bag."""
    if not beside:
        return trained.scores
    outside = trained.counts.T == 0
    more = [(machines_of(svc, X) * outside)[:, None, :, None] for svc in beside]
    return np.concatenate([trained.scores, *more], axis=1)
