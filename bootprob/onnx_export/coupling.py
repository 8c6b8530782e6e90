"""Probabilities of several classes from those of their pairs, as ONNX nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bootprob.calibration.coupling import class_pairs, number_of_classes
from bootprob.onnx_export.graph import Graph

__all__ = ["add_coupling"]


def add_coupling(graph: Graph, second: Sequence[str]) -> str:
    """Add Wu, Lin and Weng's coupling, `bootprob.calibration.coupling`, in closed form.

    As ``Σ p = 1``, the conditions ``Q p + β 1 = 0`` are ``(Q + 1 1ᵀ) p = (1 − β) 1``: p is the
    solution for the right side 1, divided by its sum. The matrix is positive definite, so that
    Gauss and Jordan's elimination needs no pivots: K steps of a few nodes each.

    Parameters
    ----------
    graph : Graph
    second : sequence of str
        For each pair of classes the probability of its second one, shape (m, 1).

    Returns
    -------
    str
        Shape (m, K).
    """
    P, K = len(second), number_of_classes(len(second))
    of_second = graph.add("Concat", *second, axis=1)
    of_first = graph.add("Sub", np.ones((1, P)), of_second)
    nothing = graph.add("Sub", second[0], second[0])
    known = graph.add("Concat", of_first, of_second, nothing, axis=1)
    place = np.full((K, K), 2 * P)  # of r_ij, the probability of i against j, among the known
    for pair, (i, j) in enumerate(class_pairs(K)):
        place[i, j], place[j, i] = pair, P + pair
    won, lost = (graph.add("Gather", known, each, axis=1) for each in (place, place.T))
    squares = graph.add("ReduceSum", graph.add("Mul", won, won), np.array([1]), keepdims=1)
    diagonal = graph.add("Mul", squares, np.eye(K)[None])
    matrix = graph.add(
        "Sub", graph.add("Add", diagonal, np.ones((1, K, K))), graph.add("Mul", won, lost)
    )
    # The right side, of as many rows as there are: squares are finite.
    ones = graph.add("Add", graph.add("Mul", squares, np.zeros((1, 1, K))), np.ones((1, 1, K)))
    system = graph.add("Concat", matrix, graph.add("Transpose", ones, perm=[0, 2, 1]), axis=2)
    for k in range(K):
        row = graph.add("Gather", system, np.array([k]), axis=1)
        scaled = graph.add("Div", row, graph.add("Gather", row, np.array([k]), axis=2))
        column = graph.add("Gather", system, np.array([k]), axis=2)
        # In row k itself less what leaves the scaled one.
        removed = graph.add("Sub", column, np.eye(K)[None, :, [k]])
        system = graph.add("Sub", system, graph.add("Mul", removed, scaled))
    solution = graph.add(
        "Squeeze", graph.add("Gather", system, np.array([K]), axis=2), np.array([2])
    )
    p = graph.add("Max", solution, np.float64(0.0))
    return graph.add("Div", p, graph.add("ReduceSum", p, np.array([1]), keepdims=1))
