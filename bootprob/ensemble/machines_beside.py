"""A `BootstrapSVC` among classifiers of others, on the same bootstrap samples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bootprob.ensemble.bases.class_scores import of_pair
from bootprob.ensemble.bases.training import Trained
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.machines import Machines, for_pair
from bootprob.ensemble.specs import PredictionSpec
from bootprob.ensemble.state import TwoClassState
from bootprob.exceptions import CopiedRowsWarning, DataError, DoubtfulTableWarning
from bootprob.preparation.feature_map import check_exact_rows
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups
from bootprob_gpu import resolve_device

__all__ = ["machines_beside", "machines_of", "told_apart", "with_machines"]

_ALONE: dict[str, Any] = {"calibration": None, "interval": "wald"}  # both are the whole's


def told_apart(candidates: Sequence[Any], n: int) -> tuple[list[Any], list[BootstrapSVC]]:
    """Classifiers that are fitted to each bootstrap sample, and those that do that themselves.

    Parameters
    ----------
    candidates : sequence of classifier
        Unfitted.
    n : int
        Rows.

    Raises
    ------
    DataError
        A `BootstrapSVC` is alone, has a precomputed kernel or controls a rate, or its kernel is of
        more rows than fit into memory.
    """
    machines = [each for each in candidates if isinstance(each, BootstrapSVC)]
    others = [each for each in candidates if not isinstance(each, BootstrapSVC)]
    if not machines:
        return others, machines
    if not others:
        raise DataError("A BootstrapSVC needs no BootstrapClassifier around it; fit it itself.")
    for svc in machines:
        svc._validate_params()
        if svc.kernel == "precomputed":
            raise DataError(
                "A BootstrapSVC among others is given the columns of the table, and one with "
                "kernel='precomputed' takes values of the kernel; name another kernel."
            )
        if svc.control is not None:
            raise DataError(
                "Rates are those of the whole: give control to the BootstrapClassifier, and leave "
                "it out of the BootstrapSVC among its candidates."
            )
        if svc.kernel not in ("auto", "linear") and svc.feature_map is None:
            n_gamma = np.size(svc.gamma)
            device = resolve_device(svc.device)
            check_exact_rows(n, n_gamma, device, svc.memory_limit, svc.kernel)
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
        svc._fit(X, y, weight, groups, None, None, whole_samples=True)
    if not np.array_equal(svc.bootstrap_counts(), trained.counts):
        raise AssertionError("a BootstrapSVC has drawn other samples than it was given")
    return svc


def machines_of(svc: BootstrapSVC, pair: tuple[int, int], X: Floats) -> Floats:
    """Weighted scores of rows for a pair of classes by each replicate of a fitted one, (m, B)."""
    own = vars(for_pair(svc, pair))
    return np.concatenate(list(Machines(TwoClassState(own), PredictionSpec.of(own)).weighed(X)))


def with_machines(
    trained: Trained, beside: Sequence[BootstrapSVC], pair: tuple[int, int], X: Floats
) -> Floats:
    """Out-of-bag scores for a pair of classes of classifiers and machines, (n, R, B); 0 in bag."""
    own = of_pair(trained.scores, *pair)
    if not beside:
        return own
    outside = trained.counts.T == 0
    more = [(machines_of(svc, pair, X) * outside)[:, None] for svc in beside]
    return np.concatenate([own, *more], axis=1)
