"""Mean scores and vote shares of an ensemble as ONNX nodes.

A mean score is linear in the coefficients of all machines, so that these are averaged before
anything is written: a linear ensemble is one vector, and an RBF ensemble one kernel sum for each γ,
or one for each γ and replicate where replicates standardise the columns each for itself. Kernels of
views share their views and distances. Votes need every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from bootprob.ensemble.mean_hyperplane import replicate_coefficients
from bootprob.ensemble.state import TwoClassState
from bootprob.ensemble.uncertainty.composite_posterior import CompositePosterior
from bootprob.onnx_export.composite_posterior import add_logit_of_mixture, add_posterior_moments
from bootprob.onnx_export.graph import Graph
from bootprob.onnx_export.kernels import KnownRows, add_exponential, add_squared_distances
from bootprob.onnx_export.linear_classifiers import (
    is_straight,
    plane_of_candidate,
    planes_of_classifiers,
    refusal,
    refuse_unknown,
)
from bootprob.onnx_export.tree_classifiers import add_tree_scores, are_trees
from bootprob.onnx_export.views import SeenRows
from bootprob.runtime.arrays import Floats
from bootprob_gpu.kernels.views import ViewKernels, ViewSum

__all__ = ["Scored", "add_scores_and_votes"]


@dataclass(frozen=True)
class Scored:
    """What a graph knows of rows once they are scored.

    Attributes
    ----------
    score : str
        Shape (m, 1), as `decision_function`.
    votes : str or None
        Shape (m, 1), as `vote_proba`; where they are wanted.
    rows : str
        Standardised, shape (m, p).
    seen : SeenRows or None
        Their views, of a kernel that has some.
    moments : tuple of str, or None
        Mean and standard deviation of the logit under each part of the posterior, (m, g) each,
        where it has a share in the score.
    """

    score: str
    votes: str | None
    rows: str
    seen: SeenRows | None
    moments: tuple[str, str] | None


def add_scores_and_votes(graph: Graph, state: TwoClassState, X: str, *, votes: bool) -> Scored:
    """Add the mean score, and the vote share of the positive class.

    Parameters
    ----------
    graph : Graph
    state : TwoClassState
    X : str
        Rows, float64, shape (m, p).
    votes : bool
        Whether vote shares are wanted.
    """
    rows = graph.add("Div", graph.add("Sub", X, state.center_), state.scale_)
    kernel, seen = state.kernel, None
    of_classifiers = state.estimators_ is not None
    if isinstance(kernel, ViewKernels):
        scaled = rows if of_classifiers else graph.add("Div", rows, state.bootstrap_scale_)
        seen = SeenRows(graph, scaled, kernel.of_columns)
    if of_classifiers:
        found = _of_classifiers(graph, state, X, votes=votes)
    elif seen is not None and state.feature_map_ is None:
        found = _view_sums(graph, state, seen, votes=votes)
    elif state.gamma_ is not None and state.feature_map_ is None:
        found = _kernel_sums(graph, state, rows, votes=votes)
    else:
        features, taken = _features(graph, state, rows, seen)
        every = replicate_coefficients(state, _used(state))
        coefs = (coef @ taken if taken.ndim else coef * taken for coef in every)
        machines = _Machines.of(state, _used(state), coefs, votes=votes)
        found = machines.side_by_side().add(graph, features)
    score = graph.add("Add", found[0], np.array([state.score_offset_.mean()]))
    moments = None
    if state.posterior_slope_ is not None:
        assert seen is not None
        posterior = CompositePosterior(**state.kernel_posterior_)
        moments = add_posterior_moments(graph, seen, posterior)
        logit = add_logit_of_mixture(graph, *moments, posterior.weight)
        score = graph.add("Add", score, graph.add("Mul", logit, state.posterior_slope_))
    share = graph.add("Clip", found[1], np.float64(0.0), np.float64(1.0)) if votes else None
    return Scored(score, share, rows, seen, moments)


def _of_classifiers(graph: Graph, state: TwoClassState, X: str, *, votes: bool) -> list[str]:
    """Score, and votes where they are wanted; where all are linear, of one vector."""
    refuse_unknown(state)
    assert state.estimators_ is not None
    used, first = _used(state), state.estimators_[0]
    for each in first:
        if not (is_straight(each) or are_trees(each)):
            raise refusal(each)
    if all(map(is_straight, first)):
        coef, intercept = planes_of_classifiers(state)
        machines = _Machines.of(
            state, used, coef[:, used], votes=votes, intercept=intercept[:, used]
        )
        return machines.side_by_side().add(graph, X)
    B, parts = len(state.estimators_), []
    of_score = 1 / state.score_scale_ / state.n_replicates
    if B == 1:  # fitted before
        of_score = of_score.sum(keepdims=True)
    for r in used.tolist():
        if are_trees(first[r]):
            scores = add_tree_scores(graph, state, X, r)
        else:
            planes = plane_of_candidate(state, r)
            straight = graph.product(X, planes[:, :-1].T, len(state.center_))
            scores = graph.add("Add", straight, planes[None, :, -1])
        if state.candidate_units_ is not None:
            slope, intercept = state.candidate_units_[r]
            scores = graph.add("Add", graph.add("Mul", scores, slope), intercept)
        weight = state.weights_[r]
        own = [graph.product(scores, weight * of_score[:, None], B)]
        if votes:
            above = graph.add("Greater", scores, np.float64(state.vote_thresholds_[r]))
            above = graph.add("Cast", above, to=TensorProto.DOUBLE)
            own.append(graph.product(above, np.full((B, 1), weight / B), B))
        parts.append(own)
    return [graph.add("Sum", *each) for each in zip(*parts, strict=True)]


def _used(state: TwoClassState) -> NDArray[np.intp]:
    return np.flatnonzero(state.weights_)


@dataclass(frozen=True)
class _Machines:
    """Machines as columns on D features; c of them for each of the replicates.

    Attributes
    ----------
    coef : ndarray, shape (B, D, c)
    intercept : ndarray, shape (B, 1, c)
    score : ndarray, shape (B, c, 1)
        Weight of each score in the mean score.
    threshold : ndarray, shape (B, 1, c)
        Score above which a machine votes.
    vote : ndarray, shape (B, c, 1)
        Weight of each vote; of no machine where no votes are wanted.
    """

    coef: Floats
    intercept: Floats
    score: Floats
    threshold: Floats
    vote: Floats

    @classmethod
    def of(
        cls,
        state: TwoClassState,
        models: NDArray[np.intp],
        coefs: Iterable[Floats],
        *,
        votes: bool,
        intercept: Floats | None = None,
    ) -> _Machines:
        """Take these models of all replicates, each with coefficients of shape (R', D).

        Without votes those of a replicate are put together, already weighted. Intercepts (B, R')
        are those of machines, where none are given.
        """
        weights, B = state.weights_[models], state.n_replicates
        scores = np.outer(1 / state.score_scale_ / B, weights)[:, :, None]
        intercept = state.bootstrap_intercept_[:, models] if intercept is None else intercept
        intercept = intercept[:, None]
        if votes:
            coef = np.stack([each.T for each in coefs])
            threshold = np.broadcast_to(state.vote_thresholds_[models], intercept.shape)
            vote = np.broadcast_to(weights[:, None] / B, scores.shape)
            return cls(coef, intercept, scores, threshold, vote)
        coef = np.stack([each.T @ weight for each, weight in zip(coefs, scores, strict=True)])
        nobody = np.zeros((B, 0, 1))
        return cls(coef, intercept @ scores, np.ones((B, 1, 1)), nobody, nobody)

    def side_by_side(self) -> _Machines:
        """All replicates as one, for features that they share."""
        if self.vote.size == 0:
            total, intercept = self.coef.sum(axis=0), self.intercept.sum(axis=0)
            return _Machines(
                total[None], intercept[None], self.score[:1], self.threshold[:1], self.vote[:1]
            )
        across = np.concatenate([*self.coef], axis=1)[None]
        return _Machines(
            across,
            self.intercept.reshape(1, 1, -1),
            self.score.reshape(1, -1, 1),
            self.threshold.reshape(1, 1, -1),
            self.vote.reshape(1, -1, 1),
        )

    def arrays(self) -> list[Floats]:
        """What `add_sums` needs of each replicate."""
        own = [self.coef, self.intercept]
        return own if self.vote.size == 0 else [*own, self.score, self.threshold, self.vote]

    def add(self, graph: Graph, features: str) -> list[str]:
        """Add the sums of the only replicate."""
        arrays = [graph.constant(array[0]) for array in self.arrays()]
        return _add_sums(graph, features, self.coef.shape[1], arrays)


def _add_sums(graph: Graph, features: str, width: int, of: Sequence[str]) -> list[str]:
    """Score, and votes where they are wanted, of a replicate with `_Machines.arrays`."""
    scores = graph.add("Add", graph.product(features, of[0], width), of[1])
    if len(of) == 2:
        return [scores]
    above = graph.add("Cast", graph.add("Greater", scores, of[3]), to=TensorProto.DOUBLE)
    return [graph.add("MatMul", scores, of[2]), graph.add("MatMul", above, of[4])]


# -- linear machines, on columns or on a feature map -----------------------------------------------


def _features(
    graph: Graph, state: TwoClassState, rows: str, views: SeenRows | None
) -> tuple[str, Floats]:
    """What linear machines are given of rows, and what their coefficients are multiplied by."""
    if state.feature_map_ is None:
        return rows, np.array(1.0)
    if isinstance(state.kernel, ViewSum):
        assert views is not None
        return _kernel_sum(graph, state, state.kernel, views)
    assert state.gamma_ is not None
    seen, arrays = graph.add("Div", rows, state.bootstrap_scale_), state.feature_map_
    if "landmarks" in arrays:
        landmarks = arrays["landmarks"]
        known = graph.constant(landmarks)
        distances = add_squared_distances(graph, seen, known, landmarks.shape[1])
        return add_exponential(graph, distances, state.gamma_[0]), arrays["normalization"]
    frequencies = graph.constant(arrays["frequencies"])
    projected = graph.product(seen, frequencies, len(arrays["frequencies"]))
    cosines = graph.add("Cos", graph.add("Add", projected, arrays["phases"]))
    return cosines, np.sqrt(np.array(2 / len(arrays["phases"])))


# -- kernels with the training rows ----------------------------------------------------------------


def _kernel_sums(graph: Graph, state: TwoClassState, rows: str, *, votes: bool) -> list[str]:
    """Sums for all replicates at once, or for each where each has a scale of its own."""
    assert state.bootstrap_dual_coef_ is not None
    assert state.gamma_ is not None
    assert state.X_fit_ is not None
    X, used = state.X_fit_, _used(state)
    others = graph.constant(X)
    gammas, machines = np.unique(state.gamma_[used]).tolist(), []
    for gamma in gammas:
        models = used[state.gamma_[used] == gamma]
        coefs = (dual[models] for dual in state.bootstrap_dual_coef_)
        machines.append(_Machines.of(state, models, coefs, votes=votes))

    def sums(inner: Graph, scale: str, *names: str) -> list[str]:
        seen, theirs = (inner.add("Div", each, scale) for each in (rows, others))
        distances = add_squared_distances(inner, seen, theirs, X.shape[1])
        kernels = [add_exponential(inner, distances, gamma) for gamma in gammas]
        size = len(names) // len(gammas)
        parts = [
            _add_sums(inner, each, len(X), names[k * size :][:size])
            for k, each in enumerate(kernels)
        ]
        return [inner.add("Sum", *part) for part in zip(*parts, strict=True)]

    if state.bootstrap_scale_.ndim == 1:
        arrays = [array[0] for each in machines for array in each.side_by_side().arrays()]
        return sums(graph, *map(graph.constant, (state.bootstrap_scale_, *arrays)))
    zeros = graph.add("MatMul", rows, np.zeros((len(state.center_), 1)))
    arrays = [array for each in machines for array in each.arrays()]
    return graph.sum_over([state.bootstrap_scale_, *arrays], [zeros] * (1 + votes), sums)


def _kernel_sum(
    graph: Graph, state: TwoClassState, kernel: ViewSum, seen: SeenRows
) -> tuple[str, Floats]:
    """As `_features`, of the map of a sum of kernels of views."""
    assert state.feature_map_ is not None
    known = KnownRows(seen, state.feature_map_["landmarks"])
    of_each = zip(kernel.families, kernel.views, kernel.gamma.tolist(), strict=True)
    parts = [
        graph.add("Mul", known.kernel(*each), share)
        for each, share in zip(of_each, kernel.shares.tolist(), strict=True)
    ]
    return graph.add("Sum", *parts), state.feature_map_["normalization"]


def _view_sums(graph: Graph, state: TwoClassState, seen: SeenRows, *, votes: bool) -> list[str]:
    """Sums of kernels of views, of which a linear one is a vector for each machine."""
    kernel = state.kernel
    assert isinstance(kernel, ViewKernels)
    assert state.bootstrap_dual_coef_ is not None
    assert state.X_fit_ is not None
    known, used, found = KnownRows(seen, state.X_fit_ / state.bootstrap_scale_), _used(state), []
    of_each = np.arange(len(state.weights_)).reshape(kernel.n_values, -1)
    parts = zip(kernel.families, kernel.views, kernel.gamma.tolist(), of_each, strict=True)
    for family, view, gamma, own in parts:
        models = np.intersect1d(own, used)
        if not len(models):
            continue
        coefs = (dual[models] for dual in state.bootstrap_dual_coef_)
        if family == "linear":
            features, taken = seen.of(view), gamma * known.of(view)
            coefs = (dual @ taken for dual in coefs)
        else:
            features = known.kernel(family, view, gamma)
        machines = _Machines.of(state, models, coefs, votes=votes)
        found.append(machines.side_by_side().add(graph, features))
    return [graph.add("Sum", *part) for part in zip(*found, strict=True)]
