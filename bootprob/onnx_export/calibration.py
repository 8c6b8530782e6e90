"""Calibrators as ONNX nodes: from mean scores and vote shares to probabilities."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from bootprob.calibration import Beta, Isotonic, Sigmoid, VennAbers
from bootprob.calibration.calibrated import Calibrated
from bootprob.calibration.votes import ScoreAndVoteSigmoid
from bootprob.onnx_export.graph import Graph

__all__ = ["add_calibration", "add_logit"]


def add_calibration(graph: Graph, calibrated: Calibrated, score: str, votes: str | None) -> str:
    """Add the probability of the positive class.

    Parameters
    ----------
    graph : Graph
    calibrated : Calibrated
    score, votes : str
        Shape (m, 1); votes where the calibrator needs them.

    Returns
    -------
    str
        Shape (m, 1), as `Calibrated.predict`.

    Raises
    ------
    NotImplementedError
        For a calibrator that is not known here.
    """
    logit = add_logit(graph, calibrated, score, votes)
    if logit is not None:
        return graph.add("Sigmoid", logit)
    score = _before(graph, calibrated, score)
    match calibrated.calibrator:
        case Isotonic(scores, probabilities):
            return _interpolation(graph, score, scores, probabilities)
        case VennAbers(scores, lower, upper) as pairs:
            # Odd at a calibration score, even between two, as in `VennAbers.bounds`.
            position = graph.add(
                "Add",
                _count(graph, graph.add("Greater", score, scores + pairs.reach)),
                _count(graph, graph.add("GreaterOrEqual", score, scores - pairs.reach)),
            )
            return graph.add("Gather", upper / (1 - lower + upper), position)
    raise NotImplementedError(f"{type(calibrated.calibrator).__name__} as ONNX")


def add_logit(graph: Graph, calibrated: Calibrated, score: str, votes: str | None) -> str | None:
    """Add the probability's logit, of all digits; None of a calibrator without a formula for it.

    onnxruntime's ``Sigmoid`` keeps 16 decimals, and of 1e-15 no digits.

    Parameters
    ----------
    graph : Graph
    calibrated : Calibrated
    score, votes : str
        As for `add_calibration`.

    Returns
    -------
    str or None
        Shape (m, 1), as `Calibrated.logit`.
    """
    score = _before(graph, calibrated, score)
    match calibrated.calibrator:
        case Sigmoid(slope, intercept):
            return _affine(graph, score, slope, intercept)
        case ScoreAndVoteSigmoid(coefficients):
            assert votes is not None
            a, b, c = coefficients
            logits = graph.add("Mul", _vote_logits(graph, votes, calibrated.n_votes), np.float64(b))
            return graph.add("Add", _affine(graph, score, a, c), logits)
        case Beta(sigmoid, coefficients):
            logit = _affine(graph, score, *sigmoid)
            # ln s = −softplus(−l) and −ln(1 − s) = softplus(l)
            below, above = _softplus(graph, graph.add("Neg", logit)), _softplus(graph, logit)
            a, b, c = coefficients
            parts = [
                graph.add("Mul", each, np.float64(coefficient))
                for each, coefficient in ((below, -a), (above, b))
                if coefficient
            ]
            if not parts:  # constant, but NaN of NaN
                parts = [graph.add("Mul", logit, np.float64(0.0))]
            return graph.add("Sum", *parts, np.float64(c))
    return None


def _before(graph: Graph, calibrated: Calibrated, score: str) -> str:
    """The score before control of a rate has moved it."""
    if calibrated.threshold == 0:
        return score
    return graph.add("Add", score, np.float64(calibrated.threshold))


def _affine(graph: Graph, score: str, slope: float, intercept: float) -> str:
    return graph.add("Add", graph.add("Mul", score, np.float64(slope)), np.float64(intercept))


def _softplus(graph: Graph, value: str) -> str:
    """``ln(1 + eˣ)``; that of onnxruntime is infinite from 710 on."""
    rest = graph.add("Exp", graph.add("Neg", graph.add("Abs", value)))
    rest = graph.add("Log", graph.add("Add", rest, np.float64(1.0)))
    return graph.add("Add", graph.add("Max", value, np.float64(0.0)), rest)


def _vote_logits(graph: Graph, votes: str, n_votes: float) -> str:
    """As `bootprob.calibration.vote_logits`."""
    half = np.float64(0.5 / n_votes)
    odds = graph.add(
        "Div", graph.add("Add", votes, half), graph.add("Sub", np.float64(1 + half), votes)
    )
    return graph.add("Log", odds)


def _interpolation(graph: Graph, score: str, knots: np.ndarray, values: np.ndarray) -> str:
    """As `numpy.interp`: linear between knots, constant beyond."""
    if len(knots) == 1:
        return _affine(graph, score, 0.0, values[0])
    inside = graph.add("Max", graph.add("Min", score, knots[-1]), knots[0])
    # The knot on the left, of a score at the last one that before it.
    left = _count(graph, graph.add("GreaterOrEqual", inside, knots[1:-1]))
    steps = graph.add("Gather", np.diff(values) / np.diff(knots), left)
    along = graph.add("Sub", inside, graph.add("Gather", knots, left))
    return graph.add("Add", graph.add("Gather", values, left), graph.add("Mul", steps, along))


def _count(graph: Graph, true: str) -> str:
    """How many of the columns are true, shape (m, 1)."""
    numbers = graph.add("Cast", true, to=TensorProto.INT64)
    return graph.add("ReduceSum", numbers, np.array([1]), keepdims=1)
