"""The posterior of an adaptive ensemble as ONNX nodes, from views of rows to the logit it states.

Functions are those of `bootprob.ensemble.uncertainty.composite_posterior`, `curves`, `steepness`
and `link_tails`, and of `bootprob.intervals.mixtures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import permutations

import numpy as np
import torch
from onnx import TensorProto

from bootprob.ensemble.uncertainty.composite_posterior import CompositePosterior
from bootprob.ensemble.uncertainty.curve_families import INTERACTION, Near
from bootprob.ensemble.uncertainty.curves import MODERATED, VARYING, Curve, Landmarks
from bootprob.ensemble.uncertainty.kernel_posterior import LEAST_VARIANCE
from bootprob.ensemble.uncertainty.link_tails import OUTER, STEEPEST
from bootprob.ensemble.uncertainty.steepness import FARTHEST, THRESHOLDS, Steepness
from bootprob.intervals.mixtures import CLOSEST, NODES, WEIGHTS
from bootprob.onnx_export.graph import Graph
from bootprob.onnx_export.kernels import KnownRows
from bootprob.onnx_export.views import SeenRows
from bootprob.runtime.arrays import Floats

__all__ = ["add_logit_of_mixture", "add_posterior_moments"]


def add_posterior_moments(
    graph: Graph, seen: SeenRows, posterior: CompositePosterior
) -> tuple[str, str]:
    """Add mean and standard deviation of the logit under each part, shape (m, g) each.

    Parameters
    ----------
    graph : Graph
    seen : SeenRows
        By the views that the posterior was fitted with.
    posterior : CompositePosterior
    """
    moments = _add_moments(graph, seen, posterior)
    mean, deviation = (graph.add("Concat", *each, axis=1) for each in zip(*moments, strict=True))
    return mean, deviation


def _add_moments(
    graph: Graph, seen: SeenRows, posterior: CompositePosterior
) -> list[tuple[str, str]]:
    """Mean and standard deviation of the logit under each part, each of shape (m, 1)."""
    straight, missing = _add_straight(graph, seen, posterior)
    curved = _Curved(graph, seen, posterior.landmarks)
    found = []
    for part, deviation in enumerate(posterior.deviation):
        variances = np.square(deviation)
        blocks = list(straight)
        prior = [
            graph.add("Mul", lost, variance)
            for lost, variance in zip(missing, variances[:2], strict=True)
            if lost is not None and variance > 0
        ]
        curves = posterior.curves(part)
        for curve, of_curve in zip(curves, variances[2:], strict=False):
            blocks.append(curved.values(curve))
            prior.append(graph.add("Mul", curved.diagonal(curve), of_curve))
        used = [*posterior.blocks(part), *range(3, 3 + len(curves))]
        starts = np.cumsum([0, *(width for _, width in blocks)])
        at = np.concatenate([np.arange(starts[block], starts[block + 1]) for block in used])
        columns = graph.add("Concat", *(blocks[block][0] for block in used), axis=1)
        form, mean = posterior.quadratic[part][np.ix_(at, at)], posterior.coefficients[part, at]
        products = graph.product(columns, form, len(at))
        explained = _add_sum(graph, graph.add("Mul", products, columns))
        variance = graph.add("Max", graph.add("Sum", explained, *prior), LEAST_VARIANCE)
        center = graph.product(columns, mean[:, None], len(at))
        deviation = graph.add("Sqrt", variance)
        if (steepness := posterior.steepness.get(part)) is not None:
            factor = _add_factor(graph, seen, steepness)
            center, deviation = (graph.add("Mul", each, factor) for each in (center, deviation))
        found.append(_add_bent_moments(graph, center, deviation, posterior.links[part]))
    return found


def _add_straight(
    graph: Graph, seen: SeenRows, posterior: CompositePosterior
) -> tuple[list[tuple[str, int]], list[str | None]]:
    """Columns of the constant and the linear parts with their number, and the squares not kept."""
    rows, scored = seen.of("columns"), posterior.scored
    ones = graph.add("Add", graph.product(rows, np.zeros((seen.width, 1)), seen.width), 1.0)
    found = [(ones, 1)]
    missing: list[str | None] = []
    others, n_others = graph.add("Gather", seen.of("scores"), scored, axis=1), len(scored)
    if posterior.stepped is not None and posterior.thresholds is not None:
        stepping = graph.add("Gather", rows, posterior.stepped, axis=1)
        above = graph.add("Greater", stepping, posterior.thresholds[None])
        steps = graph.add("Sub", graph.add("Cast", above, to=TensorProto.DOUBLE), 0.5)
        others = graph.add("Concat", others, steps, axis=1)
        n_others += len(posterior.stepped)
    whole = [(rows, seen.width), (others, n_others)]
    every = posterior.column_directions, posterior.score_directions
    for (part, width), directions in zip(whole, every, strict=True):
        if directions is None:
            found.append((part, width))
            missing.append(None)
            continue
        kept = graph.product(part, directions, width)
        squares = [_add_sum(graph, graph.add("Mul", each, each)) for each in (part, kept)]
        found.append((kept, directions.shape[1]))
        missing.append(graph.add("Max", graph.add("Sub", *squares), 0.0))
    return found, missing


class _Curved:
    """As `Landmarks`: kernels between rows and what is known of landmarks, each added once."""

    def __init__(self, graph: Graph, seen: SeenRows, landmarks: Floats) -> None:
        self._graph, self._seen = graph, seen
        self._landmarks = Landmarks(torch.from_numpy(landmarks), seen.views)
        self._known = KnownRows(seen, landmarks)
        self._values: dict[Curve, tuple[str, int]] = {}

    def values(self, curve: Curve) -> tuple[str, int]:
        """Those of a kernel, shape (m, width), and the width."""
        if curve not in self._values:
            self._values[curve] = self._add_values(curve)
        return self._values[curve]

    def diagonal(self, curve: Curve) -> str | Floats:
        """Kernel between rows and themselves, shape (m, 1) or (1, 1)."""
        if curve.family in ("rbf", "laplacian", "additive"):
            return np.ones((1, 1))
        graph, known = self._graph, self._landmarks.of(curve)
        if curve.family == "product":
            values, _ = self.values(curve)
            return graph.add("Mul", values, values)
        own = self._own(curve)
        if curve.family in VARYING:
            sized = graph.add("Div", own, known.size_of_columns.numpy()[None])
            squares = _add_sum(graph, graph.add("Mul", sized, sized))
            return graph.add("Div", squares, float(known.rows.shape[1]))
        if curve.family == MODERATED:
            squares = graph.add("Mul", own, own)
            return graph.product(squares, _of_slopes(known)[:, None], known.rows.shape[1])
        if curve.family == "interaction":
            constant = self._add_constants(curve)
            left = graph.add("Sub", 1.0, graph.add("Mul", constant, constant))
            return _add_product(
                graph, left, known.rows.shape[1], _size_of_interaction(curve, known)
            )
        squares = _add_sum(graph, graph.add("Mul", own, own))
        if curve.family == "linear":
            return graph.add("Mul", squares, curve.gamma)
        length = graph.add("Div", squares, known.size)
        quadratic = graph.add("Mul", length, length)
        if curve.family == "quadratic":
            return quadratic
        return graph.add("Mul", graph.add("Add", quadratic, 1.0), 0.5)

    def _own(self, curve: Curve) -> str:
        """The columns that a curve looks at."""
        return self._seen.among(curve.view, curve.order(self._landmarks.of(curve).rows.shape[1]))

    def _add_values(self, curve: Curve) -> tuple[str, int]:
        graph, own = self._graph, self._own(curve)
        known = self._landmarks.of(curve)
        p = known.rows.shape[1]
        if curve.family == "both":
            parts = [self.values(replace(curve, family=each)) for each in ("additive", "quadratic")]
            names, widths = zip(*parts, strict=True)
            return graph.add("Concat", *names, axis=1), sum(widths)
        if curve.family == "additive":
            return _add_near(graph, own, known, range(p), curve.gamma), known.knots.numel()
        if curve.family in VARYING:
            slope, other = zip(*permutations(range(p), 2), strict=True)
            rough = curve.family == "varying roughly"
            near = _add_near(graph, own, known, other, curve.gamma, rough=rough)
            sized = graph.add("Div", own, known.size_of_columns.numpy()[None])
            slopes = graph.add("Gather", sized, np.repeat(slope, known.n_knots), axis=1)
            return graph.add("Mul", near, slopes), len(slope) * known.n_knots
        if curve.family == "linear":
            return own, p
        if curve.family == MODERATED:
            of_landmarks = known.spread.numpy() * _of_slopes(known)
            moderator = graph.add("Gather", own, np.array([0]), axis=1)
            apart = graph.add("Sub", moderator, known.spread[:, 0].numpy()[None])
            near = graph.add("Mul", graph.add("Mul", apart, apart), -curve.gamma)
            products = graph.product(own, of_landmarks.T, p)
            return graph.add("Mul", products, graph.add("Exp", near)), len(of_landmarks)
        if curve.family == "quadratic":
            enough = known.rows[: p * (p + 1)] / known.size
            products = graph.product(own, enough.T.numpy(), p)
            return graph.add("Mul", products, products), len(enough)
        if curve.family == "product":
            return _add_product(graph, own, p, known.size_of_product), 1
        if curve.family == "interaction":
            return self._add_interaction(curve), len(known.spread)
        of_rows = curve.view, curve.gamma, curve.columns, known.stride
        return self._known.kernel(curve.family, *of_rows), len(known.spread)

    def _add_interaction(self, curve: Curve) -> str:
        """Products of centred kernels of the columns, shape (m, l)."""
        graph, own = self._graph, self._seen.among(curve.view, curve.columns)
        known, of_rows = self._landmarks.of(curve), self._add_constants(curve)
        of_landmarks = INTERACTION.constant(curve.gamma, known.spread, known).numpy()
        centred = []
        for j, (landmarks, constants) in enumerate(
            zip(known.spread.T.numpy(), of_landmarks.T, strict=True)
        ):
            column, constant = (
                graph.add("Gather", each, np.array([j]), axis=1) for each in (own, of_rows)
            )
            distance = graph.add("Abs", graph.add("Sub", column, landmarks[None]))
            near = graph.add("Exp", graph.add("Mul", distance, -curve.gamma))
            centred.append(graph.add("Sub", near, graph.add("Mul", constant, constants[None])))
        product = reduce(lambda first, second: graph.add("Mul", first, second), centred)
        return graph.add("Div", product, _size_of_interaction(curve, known))

    def _add_constants(self, curve: Curve) -> str:
        """Of each column, whose products are what is constant in its kernel, shape (m, q)."""
        graph, own = self._graph, self._seen.among(curve.view, curve.columns)
        known, q = self._landmarks.of(curve), len(curve.columns) or self._landmarks.rows.shape[1]
        near = _add_near(graph, own, known, range(q), curve.gamma, rough=True)
        of_knots = np.eye(q) / (INTERACTION.unit(curve.gamma, known).numpy() * known.n_knots)
        means = np.repeat(of_knots, known.n_knots, axis=0)
        return graph.product(near, means, q)


def _of_slopes(known: Near) -> Floats:
    """What the products of each column count in slopes that vary with the first, (q,)."""
    found = 1 / (known.size_of_columns.square().numpy() * (known.rows.shape[1] - 1))
    return np.where(np.arange(len(found)) > 0, found, 0.0)


def _size_of_interaction(curve: Curve, known: Near) -> float:
    return float(INTERACTION.size(curve.gamma, known).prod())


def _add_near(
    graph: Graph, own: str, known: Near, which: Sequence[int], gamma: float, *, rough: bool = False
) -> str:
    """Kernels of some columns with their knots, shape (m, columns × knots)."""
    columns = graph.add("Gather", own, np.repeat(which, known.n_knots), axis=1)
    apart = graph.add("Sub", columns, known.knots.numpy()[list(which)].reshape(1, -1))
    distance = graph.add("Abs", apart) if rough else graph.add("Mul", apart, apart)
    return graph.add("Exp", graph.add("Mul", distance, -gamma))


def _add_factor(graph: Graph, seen: SeenRows, steepness: Steepness) -> str:
    """What logits are multiplied by, shape (m, 1)."""
    score = graph.add("Gather", seen.of("scores"), np.array([steepness.column]), axis=1)
    if steepness.shape:
        above = graph.add("Greater", score, THRESHOLDS[steepness.shape - 1])
        return graph.add("Where", above, *np.exp([steepness.rate, -steepness.rate]))
    near = graph.add("Clip", score, np.float64(-FARTHEST), np.float64(FARTHEST))
    return graph.add("Exp", graph.add("Mul", near, steepness.rate))


def _add_bent_moments(
    graph: Graph, mean: str, deviation: str, tails: Sequence[float]
) -> tuple[str, str]:
    if not any(tails):
        return mean, deviation
    reach = graph.add("Mul", deviation, OUTER)
    lower, upper = (
        _add_bent(graph, graph.add(sign, mean, reach), tails) for sign in ("Sub", "Add")
    )
    middle = graph.add("Mul", graph.add("Add", lower, upper), 0.5)
    return middle, graph.add("Div", graph.add("Sub", upper, lower), 2 * OUTER)


def _add_bent(graph: Graph, logit: str, tails: Sequence[float]) -> str:
    *alphas, short, over = tails
    if any(alphas):
        size = graph.add("Abs", logit)
        above, below = (_add_tail(graph, size, alpha) for alpha in alphas)
        positive = graph.add("Greater", logit, 0.0)
        logit = graph.add("Where", positive, above, graph.add("Neg", below))
    if not (short or over):
        return logit
    right = 1 - short - over
    against = _add_levelled(graph, graph.add("Neg", logit), right, short)
    return graph.add("Sub", _add_levelled(graph, logit, right, over), against)


def _add_levelled(graph: Graph, logit: str, right: float, wrong: float) -> str:
    """Logarithm of ``wrong + right · expit logit``."""
    if not wrong:
        near = graph.add("Exp", graph.add("Neg", graph.add("Abs", logit)))
        share = graph.add(
            "Sub", graph.add("Min", logit, 0.0), graph.add("Log", graph.add("Add", near, 1.0))
        )
        return graph.add("Add", share, float(np.log(right)))
    share = graph.add("Mul", graph.add("Sigmoid", logit), right)
    return graph.add("Log", graph.add("Add", share, wrong))


def _add_tail(graph: Graph, size: str, alpha: float) -> str:
    if alpha == 0:
        return size
    if alpha < 0:
        bounded = graph.add("Log", graph.add("Add", graph.add("Mul", size, -alpha), 1.0))
        return graph.add("Div", bounded, -alpha)
    scaled = graph.add("Mul", size, alpha)
    near = graph.add("Min", scaled, STEEPEST)
    slope = graph.add("Exp", near)
    straight = graph.add("Mul", graph.add("Sub", scaled, near), slope)
    risen = graph.add("Add", graph.add("Sub", slope, 1.0), straight)
    return graph.add("Div", risen, alpha)


def add_logit_of_mixture(graph: Graph, mean: str, deviation: str, weight: Floats) -> str:
    """Add the logit of the mean probability, shape (m, 1), a node of the quadrature at a time.

    Parameters
    ----------
    graph : Graph
    mean, deviation : str
        Of each part, shape (m, g).
    weight : ndarray, shape (g,)
    """
    weights = graph.constant(weight[:, None])

    def at_node(inner: Graph, node: str, share: str) -> list[str]:
        logits = inner.add("Add", mean, inner.add("Mul", deviation, node))
        expected = inner.product(inner.add("Sigmoid", logits), weights, len(weight))
        return [inner.add("Mul", expected, share)]

    zeros = graph.product(mean, np.zeros((len(weight), 1)), len(weight))
    (found,) = graph.sum_over([np.sqrt(2) * NODES, WEIGHTS], [zeros], at_node)
    probability = graph.add("Clip", found, np.float64(CLOSEST), np.float64(1 - CLOSEST))
    return graph.add("Log", graph.add("Div", probability, graph.add("Sub", 1.0, probability)))


def _add_product(graph: Graph, values: str, width: int, size: float) -> str:
    """Of the columns, shape (m, 1); double precision has no ReduceProd everywhere."""
    columns = (graph.add("Gather", values, np.array([j]), axis=1) for j in range(width))
    product = reduce(lambda first, second: graph.add("Mul", first, second), columns)
    return graph.add("Div", product, size)


def _add_sum(graph: Graph, values: str) -> str:
    """Over the columns, shape (m, 1)."""
    return graph.add("ReduceSum", values, np.array([1]), keepdims=1)
