"""Views of the columns as ONNX nodes."""

from __future__ import annotations

import numpy as np
import torch
from onnx import TensorProto

from bootprob.onnx_export.graph import Graph
from bootprob.runtime.arrays import Floats, Integers
from bootprob_gpu.kernels.views import RELEVANT, ColumnViews, View

__all__ = ["SeenRows"]


class SeenRows:
    """Rows and the views of them, each of which is added when it is first asked for.

    Parameters
    ----------
    graph : Graph
    rows : str
        Standardised, float64, shape (m, p).
    views : ColumnViews
    """

    def __init__(self, graph: Graph, rows: str, views: ColumnViews) -> None:
        self.graph = graph
        self.views = views
        self._seen: dict[View, str] = {"columns": rows}
        self._some: dict[tuple[View, tuple[int, ...]], str] = {}

    @property
    def width(self) -> int:
        """Number of columns, p."""
        return len(self.views.knots)

    def of(self, view: View) -> str:
        """A view of the rows, shape (m, p), or of relevant columns; NaN where the rows are."""
        if view not in self._seen:
            self._seen[view] = self._add(view)
        return self._seen[view]

    def among(self, view: View, columns: tuple[int, ...]) -> str:
        """Some columns of a view, or all where none are named."""
        if not columns:
            return self.of(view)
        if (view, columns) not in self._some:
            found = self.graph.add("Gather", self.of(view), np.array(columns), axis=1)
            self._some[view, columns] = found
        return self._some[view, columns]

    def of_known(self, view: View, rows: Floats) -> Floats:
        """The same of rows (l, p) that are known now."""
        return self.views.of(view, torch.from_numpy(rows)).numpy()

    def _add(self, view: View) -> str:
        graph, rows, views = self.graph, self._seen["columns"], self.views
        if view.startswith(RELEVANT):
            assert views.relevance is not None
            relevance = views.relevance.numpy()
            which = np.flatnonzero(relevance)
            whole: View = view.removeprefix(RELEVANT)  # type: ignore[assignment]
            some = graph.add("Gather", self.of(whole), which, axis=1)
            return graph.add("Mul", some, relevance[None, which])
        if view == "components":
            assert views.components is not None
            return graph.add("MatMul", rows, views.components.numpy())
        found = (_add_levels if view == "levels" else _add_scores)(graph, rows, views)
        return graph.add("Where", graph.add("IsNaN", rows), rows, found)


def _add_levels(graph: Graph, rows: str, views: ColumnViews) -> str:
    at, first, _ = _add_search(graph, rows, views.thresholds.numpy())
    return graph.add("Cast", graph.add("Sub", at, first), to=TensorProto.DOUBLE)


def _add_scores(graph: Graph, rows: str, views: ColumnViews) -> str:
    knots, scores = views.knots.numpy(), views.scores.numpy()
    at, first, length = _add_search(graph, rows, knots)
    within = graph.add("Min", graph.add("Max", at, first + 1), first + knots.shape[1] - 1)
    left = graph.add("Sub", within, np.int64(1))
    width = np.diff(knots)

    def of_interval(values: Floats) -> str:
        filled = np.pad(values, ((0, 0), (0, length - values.shape[1])))
        return graph.add("Gather", filled.ravel(), left)

    along = graph.add("Sub", rows, of_interval(knots[:, :-1]))
    share = graph.add("Div", along, of_interval(np.where(width > 0, width, 1.0)))
    inside = graph.add("Clip", share, np.float64(0.0), np.float64(1.0))
    rise = graph.add("Mul", inside, of_interval(np.diff(scores)))
    return graph.add("Add", of_interval(scores[:, :-1]), rise)


def _add_search(graph: Graph, rows: str, ascending: Floats) -> tuple[str, Integers, int]:
    """As `torch.searchsorted`, by bisection: how many numbers of its column each entry is above.

    Parameters
    ----------
    graph : Graph
    rows : str
        Shape (m, p).
    ascending : ndarray, shape (p, k)

    Returns
    -------
    at : str
        That number, counted from `first`, shape (m, p): an index into all columns, one after the
        other, each filled up to `length`.
    first : ndarray of int, shape (1, p)
    length : int
    """
    steps = 2 ** np.arange(ascending.shape[1].bit_length())[::-1]
    p, length = len(ascending), int(steps.sum())
    filled = np.full((p, length), np.inf)
    filled[:, : ascending.shape[1]] = ascending
    numbers = graph.constant(filled.ravel())
    first = np.arange(p)[None] * length
    at = graph.constant(first)
    for step in steps:
        middle = graph.add("Gather", numbers, graph.add("Add", at, np.int64(step - 1)))
        above = graph.add("Cast", graph.add("Greater", rows, middle), to=TensorProto.INT64)
        at = graph.add("Add", at, graph.add("Mul", above, np.int64(step)))
    return at, first, length
