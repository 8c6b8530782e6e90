"""What the trained machines of an ensemble of two classes say of rows: scores and votes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bootprob.calibration.coupling import class_pairs
from bootprob.ensemble.scoring.moments import PrincipalReplicates, ScoreMoments, average_models
from bootprob.ensemble.scoring.rows import (
    NewRows,
    Rows,
    WeighedScores,
    model_scores,
    model_scores_there,
    vote_shares,
)
from bootprob.ensemble.scoring.table_rows import TableRows
from bootprob.ensemble.specs import PredictionSpec
from bootprob.ensemble.state import TwoClassState
from bootprob.preparation.feature_map import FeatureMap
from bootprob.preparation.standardization import LARGEST
from bootprob.preparation.view_map import ViewMap
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import DeviceRows
from bootprob_gpu import Certificate, FittedBatch, resolve_device
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.linear import Linear
from bootprob_gpu.kernels.views import ViewSum

__all__ = ["Machines", "farthest_rows", "for_pair"]


_LARGEST_FLOAT32 = 1e30


def farthest_rows(kernel: KernelFunction, dtype: str = "float64") -> float:
    """Standard deviations beyond which a kernel, or sums of it, would overflow."""
    if kernel.power == 1:
        return LARGEST
    return (LARGEST if dtype == "float64" else _LARGEST_FLOAT32) ** (0.5 / kernel.power)


def for_pair(svc: Any, pair: tuple[int, int]) -> Any:
    """A fitted `BootstrapSVC` itself, or of several classes that of a pair of their numbers."""
    if not svc.pair_ensembles_:
        return svc
    return svc.pair_ensembles_[class_pairs(len(svc.classes_)).index(pair)]


@dataclass(frozen=True)
class Machines:
    """Support vector machines of bootstrap samples: `bootprob.ensemble.scores.Replicates`."""

    state: TwoClassState
    spec: PredictionSpec

    def votes(self, X: Rows) -> Floats:
        """Weighted shares of votes for the second class, thesis (3.4), shape (m,)."""
        thresholds = torch.from_numpy(self.state.vote_thresholds_).to(self.models.intercept)
        models = replace(self.models, intercept=self.models.intercept - thresholds)
        return vote_shares(models, self.rows(X), self.state.weights_)

    def mean(self, X: Rows) -> Floats | None:
        """Mean over the replicates of ``score / score_scale_``; None where all are to be asked."""
        if self._average is None:
            return None
        return np.concatenate(list(self._average.of(self.rows(X))))[:, 0]

    def weighed(self, X: Rows) -> Iterator[Floats]:
        """Weighted scores of each replicate in chunks (m, B)."""
        return self._weighed.of(self.rows(X))

    def of_models(self, X: Rows, chunk_size: int | None = None) -> Iterator[NDArray[Any]]:
        """Raw scores under every model in chunks (m, R, B)."""
        return model_scores(self.models, self.rows(X), chunk_size)

    def of_models_there(self, X: Rows, chunk_size: int | None = None) -> Iterator[torch.Tensor]:
        """The same, left on the models' device."""
        return model_scores_there(self.models, self.rows(X), chunk_size)

    def moments(self, X: Rows) -> Iterator[ScoreMoments] | None:
        """Moments of aligned scores, some rows at a time; None where there is no short way."""
        return None if self._principal is None else self._principal.moments(self.rows(X))

    def as_seen(self, X: Rows, rows: slice) -> torch.Tensor:
        """Some of the rows as the posterior knows them."""
        state, seen = self.state, self.unmapped(X).standardized(rows)
        if state.kernel.has_features and state.bootstrap_scale_.ndim == 1:
            seen = seen / torch.as_tensor(state.bootstrap_scale_, device=seen.device)
        return seen

    def rows(self, X: Rows) -> NewRows:
        """Rows on their way to the models, which copies nothing of float64 or float32."""
        return replace(self.unmapped(X), feature_map=None if self._map is None else self._mapped)

    def unmapped(self, X: Rows) -> NewRows:
        """The same, but for the feature map."""
        assert not isinstance(X, TableRows)  # which are of classifiers
        given, state = X.tensor if isinstance(X, DeviceRows) else X, self.state
        if state.kernel.has_features:
            return NewRows(given, state.center_, state.scale_, farthest=self._farthest)
        if state.shared_draws_ is not None:  # of the whole table's columns the pair's
            given = given[:, state.shared_draws_["rows"]]
        return NewRows(given, np.zeros(given.shape[1]), np.ones(given.shape[1]))

    @cached_property
    def models(self) -> FittedBatch:
        """The trained models on the device."""
        state, spec = self.state, self.spec
        scale, kernel = state.bootstrap_scale_, state.kernel
        if self._map is not None:
            scale, kernel = np.ones(self._map.n_components), Linear()
        elif not kernel.has_features:
            scale = np.ones(len(state.y_))
        device = resolve_device(spec.device)

        def tensor(values: NDArray[Any] | None) -> torch.Tensor | None:
            return None if values is None else torch.from_numpy(values).to(device)

        intercept = torch.from_numpy(state.bootstrap_intercept_).to(device)
        certificates = {name: torch.from_numpy(v) for name, v in state.certificates_.items()}
        return FittedBatch(
            intercept=intercept,
            coef=tensor(state.bootstrap_coef_),
            dual_coef=tensor(state.bootstrap_dual_coef_),
            X=tensor(state.X_fit_) if kernel.has_features else None,
            center=torch.zeros(scale.shape[-1], dtype=torch.float64, device=device),
            scale=torch.from_numpy(scale).to(device),
            kernel=kernel.to(device),
            certificate=Certificate(**certificates),
            replicates=slice(0, len(intercept)),
            dtype=getattr(torch, spec.dtype),
            memory_limit=spec.memory_limit,
        )

    @cached_property
    def _weighed(self) -> WeighedScores:
        return WeighedScores(self.models, self.state.weights_)

    @cached_property
    def _average(self) -> WeighedScores | None:
        average = average_models(self.models, self.state.score_scale_)
        return None if average is None else WeighedScores(average, self.state.weights_)

    @cached_property
    def _principal(self) -> PrincipalReplicates | None:
        """None where rows have more columns than there are replicates, or a kernel."""
        state, coef = self.state, self.models.coef
        if coef is None or coef.shape[2] >= len(coef):
            return None
        return PrincipalReplicates(
            self.models, state.weights_, state.score_scale_, state.score_offset_, state.counts_gram_
        )

    @cached_property
    def _farthest(self) -> float:
        return farthest_rows(self.state.kernel, self.spec.dtype)

    @cached_property
    def _map(self) -> FeatureMap | ViewMap | None:
        if self.state.feature_map_ is None:
            return None
        if isinstance(self.state.kernel, ViewSum):
            return ViewMap.restore(self.state.kernel, self.state.feature_map_)
        assert self.state.gamma_ is not None
        return FeatureMap(self.state.gamma_[0], self.state.feature_map_)

    def _mapped(self, rows: Floats) -> Floats:
        assert self._map is not None
        return self._map.transform(rows / self.state.bootstrap_scale_)
