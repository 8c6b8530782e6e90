"""What a fitted ensemble of two classes says of rows: probabilities and their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob import intervals
from bootprob.calibration import Sigmoid, VennAbers
from bootprob.calibration.calibrated import Calibrated, both, both_intervals
from bootprob.calibration.recalibration import Recalibration
from bootprob.ensemble.scores import Scores
from bootprob.ensemble.scoring.moments import ScoreMoments
from bootprob.ensemble.scoring.rows import Rows
from bootprob.ensemble.specs import PredictionSpec
from bootprob.ensemble.state import TwoClassState
from bootprob.ensemble.uncertainty.probability_intervals import (
    NEEDS_REPLICATES,
    OF_PROBABILITIES,
    ProbabilityIntervals,
    check_method,
)
from bootprob.ensemble.uncertainty.true_logit import TrueLogit
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

__all__ = ["TwoClasses"]

_SIGMA = 0.6826894921370859  # level of one standard deviation to either side


@dataclass(frozen=True)
class TwoClasses:
    """Probabilities; `BootstrapSVC` says what its methods give. Rows come checked."""

    state: TwoClassState
    spec: PredictionSpec

    @cached_property
    def scores(self) -> Scores:
        """What its machines say."""
        return Scores(self.state, self.spec)

    @cached_property
    def calibrated(self) -> Calibrated:
        """What turns scores into probabilities."""
        state = self.state
        return Calibrated.restore(
            state.calibration_ or "sigmoid",
            state.calibrator_,
            Sigmoid(*state.sigmoid_, state.sigmoid_information_),
            state.score_threshold_,
            float(state.oob_counts_.mean()),
        )

    @cached_property
    def recalibration(self) -> Recalibration | None:
        """What new rows have taught since the fit."""
        learnt = self.state.recalibration_
        return None if learnt is None else Recalibration(**learnt)

    @property
    def n_replicates(self) -> int:
        """Number of bootstrap samples, B."""
        return self.state.n_replicates

    @cached_property
    def decision_threshold(self) -> float:
        """Probability of the second class above which it is said."""
        if self.spec.calibration is None:
            return 0.5
        before = self.calibrated.decision_threshold
        if self.recalibration is None or self.calibrated.threshold == 0:
            return before
        return float(self.recalibration.predict(np.array(before)))

    def undecided(self, probability: Floats) -> NDArray[np.bool_] | None:
        """Which rows of such probabilities are left undecided; None of a model that leaves none."""
        if self.state.undecided_between_ is None:
            return None
        lower, upper = self.recalibrated(self.state.undecided_between_)
        return (probability > lower) & (probability <= upper)

    def predict(self, X: Rows) -> NDArray[Any]:
        """Classes, shape (m,)."""
        return self._labels(self.predict_proba(X)[:, 1])

    def decision_function(self, X: Rows) -> Floats:
        """Mean scores, shape (m,)."""
        return self.scores.mean(X)

    def vote_proba(self, X: Rows) -> Floats:
        """Shares of votes, shape (m, 2)."""
        return self.scores.votes(X)

    def predict_proba(self, X: Rows) -> Floats:
        """Probabilities, shape (m, 2)."""
        if self.spec.calibration is None:
            return self.vote_proba(X)
        probability = self.calibrated.predict(self.scores.mean(X), self._votes(X))
        return both(self.recalibrated(probability))

    def proba_interval(
        self, X: Rows, level: float, method: str | None = None, *, clip: bool = False
    ) -> Floats:
        """Intervals of the probabilities, shape (m, 2, 2)."""
        level, method = intervals.check_level(level), self.checked_method(method)
        if method in intervals.OF_VOTES:
            vote = self.vote_proba(X)[:, 1]
            bounds = intervals.of_votes(vote, self.n_replicates, level, method, clip=clip)
            return both_intervals(bounds)
        parts = self._parts(X, level, method, of_scores=False)
        return both_intervals(np.concatenate([part[-1] for part in parts]))

    def summarize(
        self, X: Rows, level: float, method: str, *, score_interval: bool
    ) -> dict[str, NDArray[Any]]:
        """Everything in one pass over the ensemble, or two for votes; the level comes checked."""
        of_votes = method in intervals.OF_VOTES
        parts = self._parts(X, level, None if of_votes else method, of_scores=score_interval)
        score, basic, probability, interval = (
            np.concatenate(part) for part in zip(*parts, strict=True)
        )
        if of_votes:
            vote = self.vote_proba(X)[:, 1]
            interval = intervals.of_votes(vote, self.n_replicates, level, method)
            probability = vote if self.spec.calibration is None else probability
        found = {
            "probability": probability,
            "probability_interval": interval,
            "score": score,
            "score_interval": basic,
            "label": self._labels(probability),
        }
        if not score_interval:
            del found["score_interval"]
        undecided = self.undecided(probability)
        return found if undecided is None else found | {"undecided": undecided}

    def oob_proba_interval(self, level: float, method: str | None, *, clip: bool) -> Floats:
        """Intervals for the training rows, shape (n, 2, 2)."""
        level, method, state = intervals.check_level(level), self.checked_method(method), self.state
        if method in NEEDS_REPLICATES:
            raise DataError(
                f"method={method!r} needs all replicate scores of the training rows, which are not "
                "kept; use 'corrected' or 'normal', or proba_interval on new rows."
            )
        if method in OF_PROBABILITIES:
            moments = ScoreMoments(
                state.oob_decision_function_,
                state.oob_score_variance_,
                state.oob_jackknife_variance_,
            )
            votes = state.oob_vote_proba_[:, 1]
            reported = self.calibrated.logit(moments.mean, votes)
            known = state.oob_kernel_logits_, reported
            return both_intervals(
                self.probability_intervals.of_moments(moments, *known, level, method)
            )
        with np.errstate(divide="ignore"):
            vote, n_votes = state.oob_vote_proba_[:, 1], state.oob_counts_
            return both_intervals(intervals.of_votes(vote, n_votes, level, method, clip=clip))

    def replicate_logits(self, X: Rows) -> Floats:
        """Logits in every replicate, scores and sigmoid resampled together, shape (m, B)."""
        return self._logits(self.scores.of_replicates(X))

    def logits_both_ways(self, X: Rows) -> Floats:
        """The same, and with what is not known of a posterior's logit the other way; (m, 2 B).

        So no machine goes along with it by chance: what the replicates have together are the
        covariances of machines and those of what is not known.
        """
        posterior = self.state.posterior_slope_ is not None
        known = self.scores.kernel_logits(X) if posterior else None
        scores = np.concatenate(list(self.scores.of_replicates(X, known)))
        reverse = scores
        if known is not None:
            added = self.scores.of_posterior(X, known)[:, None]
            reverse = scores - 2 * (self.scores.spread_over_replicates(known) - added)
        return np.hstack([self._logits([scores]), self._logits([reverse])])

    def _logits(self, scores: Iterable[Floats]) -> Floats:
        logits = np.concatenate([self.probability_intervals.replicate_logits(s) for s in scores])
        return logits if self.recalibration is None else self.recalibration.logit(logits)

    def replicate_proba(self, X: Rows) -> Floats:
        """Probabilities of the second class by every replicate alone, shape (m, B).

        By its machines with the weights of the ensemble, and its own sigmoid; another calibrator
        moves all replicates of a row alike, from the sigmoid's logit to its own.

        Raises
        ------
        DataError
            The model is not calibrated: a replicate alone has votes, and no probability.
        """
        if self.spec.calibration is None:
            raise DataError(
                "With calibration=None a probability is a share of the replicates' votes, and one "
                "replicate alone has none; fit with calibration='sigmoid'."
            )
        made = self.probability_intervals
        reported = self.calibrated.logit(self.scores.mean(X), self._votes(X))
        found, done = np.empty((len(X), self.n_replicates)), 0
        for scores in self.scores.of_replicates(X):
            rows = slice(done, done + len(scores))
            of_rows = made.replicate_probabilities(scores, reported[rows])
            found[rows] = self.recalibrated(of_rows)
            done = rows.stop
        return found

    def checked_method(self, method: str | None) -> str:
        """The method of intervals asked for, or the default; a DataError for one it has not."""
        method = self.spec.interval if method is None else method
        method = check_method(method, calibrated=self.spec.calibration is not None)
        state = self.state
        if method == "corrected" and not state.kernel.has_features and not state.kernel_posterior_:
            raise DataError(
                "method='corrected' needs k(x, x) of new rows, which only a precomputed kernel of "
                "equal numbers on its diagonal tells; divide k(x, z) by sqrt(k(x, x) k(z, z)), or "
                "use 'normal'."
            )
        return method

    @cached_property
    def probability_intervals(self) -> ProbabilityIntervals:
        """What intervals of probabilities are made of."""
        state = self.state
        counts = cache(state.bootstrap_counts)  # drawn once for all rows, if at all

        def accelerations(replicates: Floats) -> Floats:
            return intervals.acceleration(replicates, counts(), state.units)

        return ProbabilityIntervals(
            self.calibrated,
            TrueLogit(self.calibrated.sigmoid, *state.true_logit_.tolist()),
            state.kernel_posterior_.get("weight", np.empty(0)),
            state.sigmoid_replicates_,
            state.counts_gram_,
            cache(lambda: VennAbers.fit(*state.calibration_rows()[1:])),
            accelerations,
        )

    def refuse_recalibrated(self, what: str) -> None:
        """Raise a DataError for what is of the model as it was fitted, named in the plural."""
        if self.recalibration is not None:
            raise DataError(
                f"{what} are of the model as it was fitted, and it was recalibrated since; ask the "
                "model of before, or fit again with the new rows."
            )

    def _votes(self, X: Rows) -> Floats | None:
        """Shares for the second class, where the calibrator needs them."""
        return self.vote_proba(X)[:, 1] if self.calibrated.calibrator.needs_votes else None

    def recalibrated(self, probability: Floats) -> Floats:
        """Probabilities of the fit as new rows have moved them."""
        found = self.recalibration
        return probability if found is None else found.predict(probability)

    def _labels(self, probability: Floats) -> NDArray[Any]:
        return self.state.classes_[(probability > self.decision_threshold).astype(int)]

    def _parts(
        self, X: Rows, level: float, method: str | None, *, of_scores: bool
    ) -> Iterator[tuple[Floats, ...]]:
        """Score, its basic interval, probability and its interval, some rows at a time.

        An interval that is not asked for has no rows: of the score without `of_scores`, of the
        probability without a method.
        """
        made, votes, moved = self.probability_intervals, self._votes(X), self.recalibration
        corrected = method == "corrected"
        known_logits = None
        if corrected or self.state.posterior_slope_ is not None:
            known_logits = self.scores.kernel_logits(X)
        kernel_logits = known_logits if corrected else None
        none, done = np.zeros((0, 2)), 0
        parts: Iterator[Floats | ScoreMoments]
        if of_scores or method in NEEDS_REPLICATES:
            parts = self.scores.of_replicates(X, known_logits)
        elif kernel_logits is not None:  # all that the interval needs besides
            parts = iter([ScoreMoments.of_means(self.scores.mean(X, known_logits))])
        else:
            parts = self.scores.moments(X, known_logits)
        for part in parts:
            mean = part.mean if isinstance(part, ScoreMoments) else part.mean(axis=1)
            rows = slice(done, done + len(mean))
            done = rows.stop
            seen = None if votes is None else votes[rows]
            known = None if kernel_logits is None else kernel_logits[rows]
            before = made.calibrated.predict(mean, seen)
            reported = made.calibrated.logit(mean, seen)
            basic, interval, one_deviation = none, none, None
            if isinstance(part, ScoreMoments):
                if method is not None:
                    interval = made.of_moments(part, known, reported, level, method)
            else:
                if of_scores:
                    basic = intervals.basic(part, level)
                if method is not None:
                    interval = made.of_replicates(part, known, reported, level, method)
                if moved is not None and moved.replaced.any() and method in NEEDS_REPLICATES:
                    one_deviation = made.of_replicates(part, known, reported, _SIGMA, method)
            if moved is not None and method is not None:
                interval = moved.bounds(
                    before, interval, intervals.normal_quantile(level), one_deviation
                )
            yield mean, basic, self.recalibrated(before), interval
