"""What the machines of a fitted ensemble of two classes say of rows: scores and votes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bootprob import intervals
from bootprob.calibration.calibrated import shares
from bootprob.ensemble.scoring.moments import PrincipalReplicates, ScoreMoments, average_models
from bootprob.ensemble.scoring.out_of_bag import quantiles
from bootprob.ensemble.scoring.rows import (
    NewRows,
    Rows,
    WeighedScores,
    model_scores,
    model_scores_there,
    vote_shares,
)
from bootprob.ensemble.specs import PredictionSpec
from bootprob.ensemble.state import TwoClassState
from bootprob.ensemble.uncertainty.composite_posterior import (
    LEAST_VARIANCE,
    CompositePosterior,
    Moments,
)
from bootprob.ensemble.uncertainty.kernel_posterior import KernelPosterior
from bootprob.intervals.mixtures import deviation_of_mixture, logit_of_mixture
from bootprob.preparation.feature_map import FeatureMap
from bootprob.preparation.standardization import LARGEST
from bootprob.preparation.view_map import ViewMap
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import DeviceRows
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import Certificate, FittedBatch, resolve_device
from bootprob_gpu.kernels.linear import Linear
from bootprob_gpu.kernels.views import ViewKernels, ViewSum

__all__ = ["Scores"]


_LARGEST_FLOAT32 = 1e30


@dataclass(frozen=True)
class Scores:
    """Scores and votes; `BootstrapSVC` says what its methods give. Rows come checked."""

    state: TwoClassState
    spec: PredictionSpec

    def votes(self, X: Rows) -> Floats:
        """Weighted shares of votes for both classes, thesis (3.4), shape (m, 2)."""
        thresholds = torch.from_numpy(self.state.vote_thresholds_).to(self.models.intercept)
        models = replace(self.models, intercept=self.models.intercept - thresholds)
        return shares(vote_shares(models, self.rows(X), self.state.weights_))

    def mean(self, X: Rows, logits: Floats | None = None) -> Floats:
        """Weighted mean scores, shape (m,); with the `kernel_logits` of the rows, if at hand."""
        if self._average is None:
            return np.concatenate([part.mean(axis=1) for part in self.of_replicates(X, logits)])
        scores = np.concatenate(list(self._average.of(self.rows(X))))[:, 0]
        scores = scores + self.state.score_offset_.mean()
        if self.state.posterior_slope_ is not None:
            scores += self.of_posterior(X, logits)
        return scores

    def of_replicates(self, X: Rows, logits: Floats | None = None) -> Iterator[Floats]:
        """Weighted scores of each replicate, aligned, in chunks (m, B); else as `mean`."""
        state, done = self.state, 0
        if state.posterior_slope_ is not None and logits is None:
            logits = self.kernel_logits(X)
        for aligned in self.of_machines(X):
            if state.posterior_slope_ is not None:
                assert logits is not None
                aligned += self.spread_over_replicates(logits[done : done + len(aligned)])
            done += len(aligned)
            yield aligned

    def of_machines(self, X: Rows) -> Iterator[Floats]:
        """The same without the posterior's own logit."""
        for scores in self._weighed.of(self.rows(X)):
            yield scores / self.state.score_scale_ + self.state.score_offset_

    def of_models(self, X: Rows, chunk_size: int | None = None) -> Iterator[NDArray[Any]]:
        """Raw scores under every model in chunks (m, R, B)."""
        return model_scores(self.models, self.rows(X), chunk_size)

    def of_models_there(self, X: Rows, chunk_size: int | None = None) -> Iterator[torch.Tensor]:
        """The same, left on the models' device."""
        return model_scores_there(self.models, self.rows(X), chunk_size)

    def moments(self, X: Rows, logits: Floats | None = None) -> Iterator[ScoreMoments]:
        """Mean and variances of the replicate scores of rows, some at a time; else as `mean`."""
        if self._principal is not None:
            yield from self._principal.moments(self.rows(X))
            return
        for scores in self.of_replicates(X, logits):
            yield ScoreMoments.of(scores, self.state.counts_gram_)

    def interval(self, X: Rows, level: float, method: str) -> Floats:
        """Bootstrap intervals for the score, shape (m, 2)."""
        level = intervals.check_level(level)
        method = intervals.check_score_method(method)
        counts = used = gram = None
        if method in ("bca", "studentised"):
            counts, used = self.state.bootstrap_counts(), self.state.units
            if method == "studentised":
                gram = intervals.after_bootstrap_gram(counts, used)

        def of(scores: Floats) -> Floats:
            if method == "basic":
                return intervals.basic(scores, level)
            if method == "percentile":
                return intervals.percentile(scores, level)
            assert counts is not None
            assert used is not None
            if method == "bca":
                return intervals.bca(scores, level, intervals.acceleration(scores, counts, used))
            assert gram is not None
            shared = self.state.shared_draws_
            n = len(used) if shared is None else len(shared["classes"])
            share = (self.state.n_drawn_ or n) / n
            variance = intervals.after_bootstrap_variance(scores, gram, int(used.sum()), share)
            return intervals.studentised(scores, level, np.sqrt(variance))

        return intervals.separated(np.concatenate([of(part) for part in self.of_replicates(X)]))

    def kernel_logits(self, X: Rows) -> Floats | None:
        """Moments of the kernel's posterior, shape (m, g, 2); None for the linear kernel."""
        state = self.state
        if not state.kernel_posterior_:
            return None
        new = self.unmapped(X)
        found = np.empty((len(new.X), len(state.kernel_posterior_["weight"]), 2))
        for block in row_blocks(*new.X.shape):
            found[block] = self._posterior(self._as_seen(new, block))
        return found

    def combined_logits(self, X: Rows, mixing: Floats) -> Floats | None:
        """Moments of combinations (q, m) of the logits of rows under the posterior, (q, g, 2).

        None where there is no posterior of straight and curved parts.
        """
        if not self.state.kernel_posterior_ or not isinstance(self._posterior, Moments):
            return None
        new = self.unmapped(X)
        return self._posterior.combined(self._as_seen(new, slice(0, len(new.X))), mixing)

    def posterior_without(
        self, X: Rows, changed: Floats, left_out: Floats
    ) -> tuple[Floats, Floats]:
        """What the posterior's own logit adds to scores of training rows that were changed.

        It is without the row's own label: in place of what the posterior says of the row itself
        comes what it says without that label, and the logits that vary with it follow, as normal
        variables do. Of rows in groups those of the others follow as far as through the row's own.

        Parameters
        ----------
        X : Rows, shape (m, p)
            Training rows.
        changed : ndarray, shape (k, m, p)
            Each of them k times, changed.
        left_out : ndarray, shape (m, g, 2)
            Moments of the logits of X without their labels: of `oob_kernel_logits_`.

        Returns
        -------
        added : ndarray, shape (k, m)
        doubt : ndarray, shape (k, m)
            Standard deviation of how far it differs from that of the row as it is.
        """
        assert isinstance(self._posterior, Moments)
        slope, weight = self.state.posterior_slope_, self.state.kernel_posterior_["weight"]
        assert slope is not None
        new = self.unmapped(X)
        rows = self._as_seen(new, slice(0, len(new.X)))
        others = [self._as_seen(self.unmapped(each), slice(0, len(each))) for each in changed]
        mean, deviation, together = np.moveaxis(
            self._posterior.beside(rows, torch.stack(others)), -1, 0
        )
        follows = together[1:] / np.square(deviation[0])
        moved, before = left_out[..., 0] - mean[0], np.square(left_out[..., 1])
        after = mean[1:] + follows * moved
        more = before - np.square(deviation[0])
        variance = np.maximum(np.square(deviation[1:]) + np.square(follows) * more, 0)
        apart = np.maximum(variance + before - 2 * follows * before, 0)
        parts = np.stack([after, np.sqrt(np.maximum(variance, LEAST_VARIANCE))], axis=-1)
        differences = np.stack([after - left_out[..., 0], np.sqrt(apart)], axis=-1)
        shape = (-1, *parts.shape[2:])
        added = slope * logit_of_mixture(parts.reshape(shape), weight)
        doubt = slope * deviation_of_mixture(differences.reshape(shape), weight)
        return added.reshape(len(changed), -1), doubt.reshape(len(changed), -1)

    @property
    def out_of_bag_of_posterior(self) -> Floats:
        """The same as `of_posterior` of the training rows, each left out, shape (n,)."""
        state = self.state
        if state.posterior_slope_ is None:
            return np.zeros(len(state.y_))
        assert state.oob_kernel_logits_ is not None
        return self._added(state.oob_kernel_logits_)

    def of_posterior(self, X: Rows, logits: Floats | None = None) -> Floats:
        """What the posterior's own logit adds to the mean score, shape (m,).

        Its `kernel_logits` are made where they are not given.
        """
        if self.state.posterior_slope_ is None:
            return np.zeros(len(self.unmapped(X).X))
        logits = self.kernel_logits(X) if logits is None else logits
        assert logits is not None
        return self._added(logits)

    def spread_over_replicates(self, logits: Floats) -> Floats:
        """The same with what is not known of the logit, a quantile for each replicate; (m, B)."""
        slope, weight = self.state.posterior_slope_, self.state.kernel_posterior_["weight"]
        assert slope is not None
        doubt = slope * deviation_of_mixture(logits, weight)
        return self._added(logits)[:, None] + doubt[:, None] * quantiles(self.state.n_replicates)

    def _added(self, logits: Floats) -> Floats:
        slope, weight = self.state.posterior_slope_, self.state.kernel_posterior_["weight"]
        assert slope is not None
        return slope * logit_of_mixture(logits, weight)

    def rows(self, X: Rows) -> NewRows:
        """Rows on their way to the models, which copies nothing of float64 or float32."""
        return replace(self.unmapped(X), feature_map=None if self._map is None else self._mapped)

    def unmapped(self, X: Rows) -> NewRows:
        """The same, but for the feature map."""
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

    def _as_seen(self, new: NewRows, rows: slice) -> torch.Tensor:
        """Rows as the posterior knows them."""
        state, seen = self.state, new.standardized(rows)
        if state.kernel.has_features and state.bootstrap_scale_.ndim == 1:
            seen = seen / torch.as_tensor(state.bootstrap_scale_, device=seen.device)
        return seen

    @cached_property
    def _posterior(self) -> Callable[[torch.Tensor], Floats]:
        """Moments of the true logits of standardised rows."""
        kernel, arrays = self.state.kernel, self.state.kernel_posterior_
        device = resolve_device(self.spec.device)
        if isinstance(kernel, ViewKernels):
            return CompositePosterior(**arrays).on(kernel, device)
        return partial(KernelPosterior(**arrays).moments, kernel=kernel, device=device)

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
        """Standard deviations beyond which the kernel, or sums of it, would overflow."""
        power = self.state.kernel.power
        if power == 1:
            return LARGEST
        return (LARGEST if self.spec.dtype == "float64" else _LARGEST_FLOAT32) ** (0.5 / power)

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
