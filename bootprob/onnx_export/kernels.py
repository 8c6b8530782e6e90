"""Kernels between rows and rows that are known, as ONNX nodes."""

from __future__ import annotations

import numpy as np

from bootprob.onnx_export.graph import Graph
from bootprob.onnx_export.views import SeenRows
from bootprob.runtime.arrays import Floats
from bootprob_gpu.kernels.views import View

__all__ = ["KnownRows", "add_exponential", "add_squared_distances"]

_FEW = 16  # values of a column whose differences cost no more as a product of matrices


class KnownRows:
    """Rows (l, p) that are known now, beside rows that are not; distances are added once.

    Parameters
    ----------
    seen : SeenRows
    rows : ndarray, shape (l, p)
        Standardised.
    """

    def __init__(self, seen: SeenRows, rows: Floats) -> None:
        self._seen, self._rows = seen, rows
        self._distances: dict[tuple[str, View, tuple[int, ...], int], str] = {}

    def of(self, view: View, columns: tuple[int, ...] = ()) -> Floats:
        """A view of these rows, shape (l, p), or some columns of it."""
        found = self._seen.of_known(view, self._rows)
        return found[:, list(columns)] if columns else found

    def kernel(
        self,
        family: str,
        view: View,
        gamma: float,
        columns: tuple[int, ...] = (),
        stride: int = 1,
    ) -> str:
        """Add the kernel "linear", "rbf" or "laplacian" of a view, or columns of it, (m, l).

        Of the known rows, those of a stride.
        """
        if family == "linear":
            taken = gamma * self.of(view, columns)[::stride].T
            return self._seen.graph.product(self._seen.among(view, columns), taken, len(taken))
        which = family, view, columns, stride
        if which not in self._distances:
            graph, rows = self._seen.graph, self._seen.among(view, columns)
            known = self.of(view, columns)[::stride]
            self._distances[which] = (
                add_squared_distances(graph, rows, graph.constant(known), known.shape[1])
                if family == "rbf"
                else _add_absolute_distances(graph, rows, known)
            )
        return add_exponential(self._seen.graph, self._distances[which], gamma)


def add_squared_distances(graph: Graph, rows: str, others: str, width: int) -> str:
    """Add those of rows (m, width) and (l, width), shape (m, l), as the engine's."""
    products = graph.product(rows, graph.add("Transpose", others, perm=[1, 0]), width)
    squares = [
        graph.add("ReduceSum", graph.add("Mul", each, each), np.array([1]), keepdims=1)
        for each in (rows, others)
    ]
    total = graph.add("Add", squares[0], graph.add("Transpose", squares[1], perm=[1, 0]))
    distances = graph.add("Sub", total, graph.add("Mul", products, np.float64(2.0)))
    return graph.add("Max", distances, np.float64(0.0))


def _add_absolute_distances(graph: Graph, rows: str, known: Floats) -> str:
    """Add ``Σ_j |x_j − z_j|`` of rows (m, p) and known ones (l, p), shape (m, l).

    There is never an array (m, l, p). Where the known rows have few values v of a column,
    ``|x − z| = Σ_v |x − v| [z = v]`` is a product of matrices; other columns are added one by one.
    """
    values = [np.unique(column) for column in known.T]
    few = [j for j, own in enumerate(values) if len(own) <= _FEW]
    many = [j for j, own in enumerate(values) if len(own) > _FEW]
    found = []
    if few:
        columns = np.repeat(few, [len(values[j]) for j in few])
        stacked = np.concatenate([values[j] for j in few])
        apart = graph.add("Sub", graph.add("Gather", rows, columns, axis=1), stacked[None])
        same = (known[:, columns] == stacked).T.astype(np.float64)
        found.append(graph.product(graph.add("Abs", apart), same, len(stacked)))
    if many:
        zeros = graph.product(rows, np.zeros((known.shape[1], len(known))), known.shape[1])
        of_columns = graph.add("Transpose", graph.add("Gather", rows, many, axis=1), perm=[1, 0])

        def apart_in(inner: Graph, column: str, others: str) -> list[str]:
            own = inner.add("Unsqueeze", column, np.array([1]))
            return [inner.add("Abs", inner.add("Sub", own, others))]

        found += graph.sum_over([of_columns, known.T[many]], [zeros], apart_in)
    return graph.add("Sum", *found)


def add_exponential(graph: Graph, distances: str, gamma: float) -> str:
    """Add ``exp(−γ d)`` of distances."""
    return graph.add("Exp", graph.add("Mul", distances, np.float64(-gamma)))
