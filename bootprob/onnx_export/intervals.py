"""Intervals of the probability of two classes as ONNX nodes.

Functions are those of `bootprob.ensemble.uncertainty.probability_intervals`, `true_logit` and
`kernel_posterior`, and of `bootprob.intervals.mixtures`.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy.special import erfcx, ndtri

from bootprob.calibration.logits import CLOSEST
from bootprob.ensemble.mean_hyperplane import replicate_coefficients
from bootprob.ensemble.scoring.moments import principal_directions
from bootprob.ensemble.state import TwoClassState
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.ensemble.uncertainty.composite_posterior import CompositePosterior
from bootprob.ensemble.uncertainty.kernel_posterior import LEAST_VARIANCE, KernelPosterior
from bootprob.ensemble.uncertainty.true_logit import ROUNDING
from bootprob.exceptions import DataError
from bootprob.intervals import check_level, normal_quantile, student_quantile
from bootprob.onnx_export.calibration import add_logit
from bootprob.onnx_export.composite_posterior import add_posterior_moments
from bootprob.onnx_export.graph import Graph
from bootprob.onnx_export.kernels import add_exponential, add_squared_distances
from bootprob.onnx_export.scores import Scored
from bootprob.runtime.arrays import Floats

__all__ = ["add_interval", "check_interval"]

_MOMENTS = ("corrected", "normal", "jackknife")
_HALVINGS = 60  # of what is known of a quantile
_DEGREE = 22  # relative error of the tail 3e-14


def check_interval(ensemble: TwoClasses, level: float) -> float:
    """Check that a graph can have the interval of a model's default method; returns the level.

    Raises
    ------
    DataError
        For a level outside (0, 1), or where it cannot; says why.
    """
    level, method = check_level(level), ensemble.spec.interval
    if ensemble.spec.calibration is None:
        raise DataError(
            "Intervals are exported of calibrated probabilities, and this model has "
            "calibration=None; leave the interval out, or fit it with calibration='sigmoid'."
        )
    if method not in _MOMENTS:
        raise DataError(
            f"interval={method!r} is not exported: a graph has 'corrected' of all calibrated "
            "models, and 'normal' and 'jackknife' of linear ones; set interval='corrected'."
        )
    ensemble.checked_method(method)
    if ensemble.state.estimators_ is not None and not ensemble.state.kernel_posterior_:
        raise DataError(
            "Intervals of a classifier that was fitted before are not exported; leave the interval "
            "out."
        )
    if method != "corrected" and not ensemble.state.kernel.is_linear:
        raise DataError(
            f"interval={method!r} of this kernel needs the score of every replicate, and a graph "
            "has their mean; set interval='corrected'."
        )
    return level


def add_interval(
    graph: Graph, ensemble: TwoClasses, scored: Scored, probability: str, level: float
) -> tuple[str, str]:
    """Add the bounds of the positive class's probability, as `proba_interval`, (m, 1) each.

    Parameters
    ----------
    graph : Graph
    ensemble : TwoClasses
        As `check_interval` takes it.
    scored : Scored
    probability : str
        The one that is reported, shape (m, 1).
    level : float
    """
    calibrated, method = ensemble.calibrated, ensemble.spec.interval
    sigmoid = calibrated.sigmoid
    before = graph.add("Add", scored.score, np.float64(calibrated.threshold))
    logit = _affine(graph, before, sigmoid.slope, sigmoid.intercept)
    own = calibrated.calibrator is sigmoid
    reported = logit
    if not own:
        found = add_logit(graph, calibrated, scored.score, scored.votes)
        reported = found or _add_logit_of(graph, probability)
    if ensemble.state.kernel.is_linear:
        bounds = _add_of_scores(graph, ensemble, scored, before, logit, level)
        if method == "corrected":
            bounds = _around(graph, logit, *bounds)
        if not own:
            moved = graph.add("Sub", reported, logit)
            lower, upper = graph.add("Add", bounds[0], moved), graph.add("Add", bounds[1], moved)
            if method == "corrected":
                lower, upper = (
                    graph.add("Min", bounds[0], lower),
                    graph.add("Max", bounds[1], upper),
                )
            bounds = lower, upper
    else:
        mean, deviation = _add_moments(graph, ensemble.state, scored)
        weight = ensemble.state.kernel_posterior_["weight"]
        bounds = _around(graph, reported, *_add_quantiles(graph, mean, deviation, weight, level))
    return graph.add("Sigmoid", bounds[0]), graph.add("Sigmoid", bounds[1])


def _around(graph: Graph, reported: str, lower: str, upper: str) -> tuple[str, str]:
    below = graph.add("Sub", reported, np.float64(ROUNDING))
    above = graph.add("Add", reported, np.float64(ROUNDING))
    return graph.add("Min", lower, below), graph.add("Max", upper, above)


# -- linear kernels: the variance of the score -------------------------------------------------


def _add_of_scores(
    graph: Graph, ensemble: TwoClasses, scored: Scored, before: str, logit: str, level: float
) -> tuple[str, str]:
    """Bounds of the logit by the noise of the mean score."""
    method, made, state = ensemble.spec.interval, ensemble.probability_intervals, ensemble.state
    sigmoid, true_logit = ensemble.calibrated.sigmoid, made.true_logit
    directions, values = principal_directions(_planes(state), state.counts_gram_)
    width = len(state.center_)
    along = graph.product(scored.rows, np.ascontiguousarray(directions[:, :-1].T), width)
    along = graph.add("Add", along, directions[None, :, -1])
    squares = graph.add("Mul", along, along)
    spread, jackknife = (
        graph.add("Max", graph.add("MatMul", squares, each[:, None]), np.float64(0.0))
        for each in (np.full(len(values), 1 / (state.n_replicates - 1)), values)
    )
    quantile = normal_quantile(level)
    if method == "corrected":
        both = graph.add("Add", spread, graph.add("Mul", jackknife, np.float64(2.0)))
        variance = graph.add("Mul", both, np.float64(1 / 3))
        quantile = student_quantile(level, true_logit.degrees_of_freedom) / true_logit.reliability
    else:
        variance = spread if method == "normal" else jackknife
    inverse = np.linalg.pinv(sigmoid.information)
    line = _affine(graph, before, inverse[0, 0], 2 * inverse[0, 1])
    of_fit = graph.add("Add", graph.add("Mul", line, before), inverse[1, 1])
    of_fit = graph.add("Max", of_fit, np.float64(0.0))
    total = graph.add("Add", graph.add("Mul", variance, np.float64(sigmoid.slope**2)), of_fit)
    half = graph.add("Mul", graph.add("Sqrt", total), np.float64(quantile))
    center = logit
    if method == "corrected":
        # l − (1 − 2 expit l) τ² / 2, and away from its mean by 1 / λ
        steep = _affine(
            graph, graph.add("Sigmoid", logit), true_logit.spread, -true_logit.spread / 2
        )
        reliability, mean = true_logit.reliability, true_logit.center
        center = _affine(
            graph, graph.add("Add", logit, steep), 1 / reliability, mean - mean / reliability
        )
    return graph.add("Sub", center, half), graph.add("Add", center, half)


def _planes(state: TwoClassState) -> Floats:
    """Coefficients and intercept of each replicate's aligned score, shape (B, p + 1)."""
    weights = state.weights_
    coef = [each.T @ weights for each in replicate_coefficients(state, np.arange(len(weights)))]
    planes = np.column_stack([np.stack(coef), state.bootstrap_intercept_ @ weights])
    planes /= state.score_scale_[:, None]
    planes[:, -1] += state.score_offset_
    return planes


def _affine(graph: Graph, value: str, slope: float, intercept: float) -> str:
    scaled = graph.add("Mul", value, np.float64(slope))
    return graph.add("Add", scaled, np.float64(intercept))


def _add_logit_of(graph: Graph, probability: str) -> str:
    inside = graph.add("Clip", probability, np.float64(CLOSEST), np.float64(1 - CLOSEST))
    return graph.add("Log", graph.add("Div", inside, graph.add("Sub", np.float64(1.0), inside)))


# -- other kernels: the posterior of the logit --------------------------------------------------


def _add_moments(graph: Graph, state: TwoClassState, scored: Scored) -> tuple[str, str]:
    """Mean and standard deviation of the logit under each part, (m, g) each."""
    if scored.moments is not None:
        return scored.moments
    if scored.seen is not None:
        posterior = CompositePosterior(**state.kernel_posterior_)
        return add_posterior_moments(graph, scored.seen, posterior)
    known, rows = KernelPosterior(**state.kernel_posterior_), scored.rows
    assert known.landmarks is not None
    if state.bootstrap_scale_.ndim == 1:
        rows = graph.add("Div", rows, state.bootstrap_scale_)
    landmarks, width = graph.constant(known.landmarks), known.landmarks.shape[1]
    distances = add_squared_distances(graph, rows, landmarks, width)
    ones = graph.add("Add", graph.product(rows, np.zeros((width, 1)), width), np.float64(1.0))
    columns = {
        gamma: graph.add("Concat", ones, add_exponential(graph, distances, gamma), axis=1)
        for gamma in set(known.gamma.tolist())
    }
    means, deviations = [], []
    for gamma, prior, coefficients, form in zip(
        known.gamma.tolist(),
        known.prior_variance.tolist(),
        known.coefficients,
        known.quadratic,
        strict=True,
    ):
        own, size = columns[gamma], len(coefficients)
        explained = graph.add("Mul", graph.product(own, form, size), own)
        explained = graph.add("ReduceSum", explained, np.array([1]), keepdims=1)
        variance = graph.add("Add", explained, np.float64(prior))
        variance = graph.add("Max", variance, np.float64(LEAST_VARIANCE))
        means.append(graph.product(own, coefficients[:, None], size))
        deviations.append(graph.add("Sqrt", variance))
    return graph.add("Concat", *means, axis=1), graph.add("Concat", *deviations, axis=1)


def _add_quantiles(
    graph: Graph, mean: str, deviation: str, weight: Floats, level: float
) -> tuple[str, str]:
    """As `of_mixture`, by halving; ``Erf`` of float64 is in no runtime that was looked at."""
    found = []
    weights = graph.constant(weight[:, None])
    for share in ((1 - level) / 2, (1 + level) / 2):
        reach = graph.add("Mul", deviation, np.float64(ndtri(share)))
        ends = graph.add("Add", mean, reach)
        lower, upper = (
            graph.add(each, ends, np.array([1]), keepdims=1) for each in ("ReduceMin", "ReduceMax")
        )
        if len(weight) > 1:
            lower, upper = _add_halvings(graph, lower, upper, mean, deviation, weights, share)
        found.append(graph.add("Mul", graph.add("Add", lower, upper), np.float64(0.5)))
    return found[0], found[1]


def _add_halvings(
    graph: Graph, lower: str, upper: str, mean: str, deviation: str, weights: str, share: float
) -> list[str]:
    """What is left of the two ends between which the share lies, shape (m, 1) each."""
    tail = min(share, 1 - share)  # of which side, so that no digits are lost
    sign = 1.0 if share < 0.5 else -1.0

    def halve(inner: Graph, low: str, high: str) -> list[str]:
        middle = inner.add("Mul", inner.add("Add", low, high), np.float64(0.5))
        apart = inner.add("Div", inner.add("Sub", middle, mean), deviation)
        beyond = inner.add("MatMul", _add_tail(inner, apart, sign), weights)
        # Of the lower tail more is beyond the quantile, of the upper one less.
        passed = inner.add("Greater" if share < 0.5 else "Less", beyond, np.float64(tail))
        return [inner.add("Where", passed, low, middle), inner.add("Where", passed, middle, high)]

    return graph.repeat(_HALVINGS, [lower, upper], halve)


def _tail_polynomial() -> Floats:
    """Of ``ln(erfcx(z) / t)`` with ``t = 2 / (2 + z)``, in powers of ``2 t − 1``."""

    def value(x: Floats) -> Floats:
        t = (np.maximum(x, -1 + 1e-12) + 1) / 2
        return np.log(erfcx(2 / t - 2) / t)

    fitted = Chebyshev.interpolate(value, _DEGREE)
    return np.asarray(fitted.convert(kind=Polynomial).coef, dtype=np.float64)


_TAIL = _tail_polynomial()


def _add_tail(graph: Graph, apart: str, sign: float) -> str:
    """Share of a normal distribution below (sign 1) or above (−1) so many deviations."""
    z = graph.add("Mul", graph.add("Abs", apart), np.float64(np.sqrt(0.5)))
    t = graph.add("Div", np.float64(2.0), graph.add("Add", z, np.float64(2.0)))
    x = _affine(graph, t, 2.0, -1.0)
    polynomial = graph.add("Add", graph.add("Mul", x, _TAIL[-1]), _TAIL[-2])
    for coefficient in _TAIL[-3::-1]:
        polynomial = graph.add("Add", graph.add("Mul", polynomial, x), coefficient)
    exponent = graph.add("Sub", polynomial, graph.add("Mul", z, z))
    outer = graph.add("Mul", graph.add("Mul", t, graph.add("Exp", exponent)), np.float64(0.5))
    inner = graph.add("Sub", np.float64(1.0), outer)
    is_outer = graph.add("Less" if sign > 0 else "Greater", apart, np.float64(0.0))
    return graph.add("Where", is_outer, outer, inner)
