"""A `BootstrapSVC` among classifiers of others, on the same bootstrap samples."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bootprob.ensemble.bases.class_scores import of_pair
from bootprob.ensemble.bases.training import Trained
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.fitting import ReadyFit, ready
from bootprob.ensemble.machines import Machines, for_pair
from bootprob.ensemble.scoring.rows import warn_of_unsolved
from bootprob.ensemble.specs import FitSpec, PredictionSpec
from bootprob.ensemble.state import TwoClassState
from bootprob.ensemble.training.train import train_shards
from bootprob.exceptions import CopiedRowsWarning, DataError, DoubtfulTableWarning
from bootprob.preparation.feature_map import check_exact_rows
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups
from bootprob_gpu import resolve_device

__all__ = ["ReadyMachines", "machines_of", "told_apart", "with_machines"]

_ALONE: dict[str, Any] = {"calibration": None, "interval": "wald"}  # both are the whole's
_MEASURED = 10  # samples that say what the others will take
_LITTLE = 0.02  # of a budget


def told_apart(
    candidates: Sequence[Any], n: int, time_budget: float | None
) -> tuple[list[Any], list[BootstrapSVC]]:
    """Classifiers that are fitted to each bootstrap sample, and those that do that themselves.

    Parameters
    ----------
    candidates : sequence of classifier
        Unfitted.
    n : int
        Rows.
    time_budget : float or None
        Of the whole.

    Raises
    ------
    DataError
        A `BootstrapSVC` is alone, has a precomputed kernel, controls a rate, or has a checkpoint
        beside a time budget; or its kernel is of more rows than fit into memory.
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
        if svc.checkpoint is not None and time_budget is not None:
            raise DataError(
                "A checkpoint of a BootstrapSVC is of as many samples as there are, and with "
                "time_budget that is another number each time; leave the checkpoint of the "
                "BootstrapSVC out, or time_budget."
            )
        if svc.kernel not in ("auto", "linear") and svc.feature_map is None:
            n_gamma = np.size(svc.gamma)
            device = resolve_device(svc.device)
            check_exact_rows(n, n_gamma, device, svc.memory_limit, svc.kernel)
    return others, machines


@dataclass(frozen=True)
class ReadyMachines:
    """Machines that are to be trained on the samples that classifiers are fitted to.

    Attributes
    ----------
    svc : BootstrapSVC
        Unfitted.
    fit : ReadyFit
        Its rows and kernels, with as many bootstrap samples as there may be.
    seconds : float
        What that took.
    """

    svc: BootstrapSVC
    fit: ReadyFit
    seconds: float

    @classmethod
    def of(
        cls,
        svc: BootstrapSVC,
        X: Floats,
        y: NDArray[Any],
        weight: Floats,
        groups: Groups | None,
        n_bootstraps: int,
        seed: int,
    ) -> Self:
        """Choose the kernels.

        Parameters
        ----------
        svc : BootstrapSVC
            Unfitted.
        X : ndarray, shape (n, p)
        y : ndarray, shape (n,)
        weight : ndarray, shape (n,)
        groups : ndarray of int, shape (n,), or None
        n_bootstraps : int
            The most samples that there may be.
        seed : int
            Of the samples.
        """
        started = perf_counter()
        svc = clone(svc).set_params(n_bootstraps=n_bootstraps, random_state=seed, **_ALONE)
        spec = FitSpec.of(svc.get_params(deep=False) | {"whole_samples": True})
        with warnings.catch_warnings():
            for told in (CopiedRowsWarning, DoubtfulTableWarning):
                warnings.simplefilter("ignore", told)
            fit = ready(spec, X, y, weight, groups)
        return cls(svc, fit, perf_counter() - started)

    def seconds_a_sample(self, budget: float) -> float:
        """What a bootstrap sample takes, measured in this process.

        On the first one, and where that takes little of the budget on more: machines of several
        samples are trained faster.
        """
        self._seconds_of(1)  # once before, to load what is used
        alone = self._seconds_of(1)
        if alone > _LITTLE * budget:
            return alone
        several = min(_MEASURED, len(self.fit.table.counts))
        return self._seconds_of(several) / several

    def _seconds_of(self, n_bootstraps: int) -> float:
        """Train machines of the first samples, and let them go."""
        started, first = perf_counter(), self.fit.first(n_bootstraps)
        work, device = first.work, first.table.device
        for each in work.shards(device):
            deque(train_shards(work, [each], device), maxlen=0)
        return perf_counter() - started

    def trained(self, counts: NDArray[np.unsignedinteger[Any]]) -> BootstrapSVC:
        """Train them on the first samples, which `counts` (B, n) has to be."""
        started, fit = perf_counter(), self.fit.first(len(counts))
        if not np.array_equal(fit.table.counts, counts):
            raise AssertionError("a BootstrapSVC has drawn other samples than it was given")
        svc = self.svc.set_params(n_bootstraps=len(counts))
        learnt, of_pairs = fit.learn()
        svc.n_features_in_ = len(learnt["center_"])
        learnt["preprocessor_"] = learnt["later_rows_"] = None
        svc._take(learnt, of_pairs, self.seconds + perf_counter() - started)
        warn_of_unsolved(svc._certificates(), stacklevel=6)
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
