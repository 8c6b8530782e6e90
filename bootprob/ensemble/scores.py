"""Scores and votes of a fitted ensemble of two classes, of replicates and of a posterior."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from bootprob import intervals
from bootprob.calibration.calibrated import shares
from bootprob.ensemble.bases.classifiers import Classifiers
from bootprob.ensemble.machines import Machines
from bootprob.ensemble.scoring.moments import ScoreMoments
from bootprob.ensemble.scoring.out_of_bag import quantiles
from bootprob.ensemble.scoring.rows import Rows
from bootprob.ensemble.specs import PredictionSpec
from bootprob.ensemble.state import TwoClassState
from bootprob.ensemble.uncertainty.composite_posterior import CompositePosterior, Moments
from bootprob.ensemble.uncertainty.kernel_posterior import LEAST_VARIANCE, KernelPosterior
from bootprob.intervals.mixtures import deviation_of_mixture, logit_of_mixture
from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import resolve_device
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["Replicates", "Scores"]


class Replicates(Protocol):
    """What was trained on the bootstrap samples, and how it sees rows, which come checked."""

    def votes(self, X: Any) -> Floats:
        """Weighted shares of votes for the second class, thesis (3.4), shape (m,)."""

    def mean(self, X: Any) -> Floats | None:
        """Mean over the replicates of ``score / score_scale_``; None where all are to be asked."""

    def weighed(self, X: Any) -> Iterator[Floats]:
        """Weighted scores of each replicate in chunks (m, B)."""

    def of_models(self, X: Any, chunk_size: int | None = None) -> Iterator[NDArray[Any]]:
        """Raw scores under every model in chunks (m, R, B)."""

    def moments(self, X: Any) -> Iterator[ScoreMoments] | None:
        """Moments of aligned scores, some rows at a time; None where there is no short way."""

    def as_seen(self, X: Any, rows: slice) -> torch.Tensor:
        """Some of the rows as the posterior knows them."""


@dataclass(frozen=True)
class Scores:
    """Scores and votes; `BootstrapSVC` says what its methods give. Rows come checked."""

    state: TwoClassState
    spec: PredictionSpec

    @cached_property
    def replicates(self) -> Replicates:
        """What was trained."""
        if self.state.estimators_ is None:
            return self.machines
        return Classifiers(self.state, self.spec)

    @cached_property
    def machines(self) -> Machines:
        """Support vector machines."""
        return Machines(self.state, self.spec)

    def votes(self, X: Rows) -> Floats:
        """Weighted shares of votes for both classes, thesis (3.4), shape (m, 2)."""
        return shares(self.replicates.votes(X))

    def mean(self, X: Rows, logits: Floats | None = None) -> Floats:
        """Weighted mean scores, shape (m,); with the `kernel_logits` of the rows, if at hand."""
        scores = self.replicates.mean(X)
        if scores is None:
            return np.concatenate([part.mean(axis=1) for part in self.of_replicates(X, logits)])
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
        for scores in self.replicates.weighed(X):
            yield scores / self.state.score_scale_ + self.state.score_offset_

    def of_models(self, X: Rows, chunk_size: int | None = None) -> Iterator[NDArray[Any]]:
        """Raw scores under every model in chunks (m, R, B)."""
        return self.replicates.of_models(X, chunk_size)

    def moments(self, X: Rows, logits: Floats | None = None) -> Iterator[ScoreMoments]:
        """Mean and variances of the replicate scores of rows, some at a time; else as `mean`."""
        if (moments := self.replicates.moments(X)) is not None:
            yield from moments
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
        found = np.empty((len(X), len(state.kernel_posterior_["weight"]), 2))
        for block in row_blocks(len(X), len(state.center_)):
            found[block] = self._posterior(self.replicates.as_seen(X, block))
        return found

    def combined_logits(self, X: Rows, mixing: Floats) -> Floats | None:
        """Moments of combinations (q, m) of the logits of rows under the posterior, (q, g, 2).

        None where there is no posterior of straight and curved parts.
        """
        if not self.state.kernel_posterior_ or not isinstance(self._posterior, Moments):
            return None
        return self._posterior.combined(self._seen(X), mixing)

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
        rows, others = self._seen(X), [self._seen(each) for each in changed]
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
            return np.zeros(len(X))
        logits = self.kernel_logits(X) if logits is None else logits
        assert logits is not None
        return self._added(logits)

    def spread_over_replicates(self, logits: Floats) -> Floats:
        """The same with what is not known of the logit, a quantile for each replicate; (m, B)."""
        slope, weight = self.state.posterior_slope_, self.state.kernel_posterior_["weight"]
        assert slope is not None
        doubt = slope * deviation_of_mixture(logits, weight)
        return self._added(logits)[:, None] + doubt[:, None] * self._quantiles

    @cached_property
    def _quantiles(self) -> Floats:
        pair = None if self.state.shared_draws_ is None else self.state.pair
        return quantiles(self.state.n_replicates, pair)

    def _added(self, logits: Floats) -> Floats:
        slope, weight = self.state.posterior_slope_, self.state.kernel_posterior_["weight"]
        assert slope is not None
        return slope * logit_of_mixture(logits, weight)

    def _seen(self, X: Rows) -> torch.Tensor:
        return self.replicates.as_seen(X, slice(0, len(X)))

    @cached_property
    def _posterior(self) -> Callable[[torch.Tensor], Floats]:
        """Moments of the true logits of standardised rows."""
        kernel, arrays = self.state.kernel, self.state.kernel_posterior_
        device = resolve_device(self.spec.device)
        if isinstance(kernel, ViewKernels):
            return CompositePosterior(**arrays).on(kernel, device)
        return partial(KernelPosterior(**arrays).moments, kernel=kernel, device=device)
