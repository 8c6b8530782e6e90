"""ONNX graphs, a node at a time. Needs the package onnx (the extra ``onnx``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

__all__ = ["MOST_BYTES", "OPSET", "PREFIX", "Graph"]

OPSET = 18
"""Version of the operators; those of ``ai.onnx.ml`` are of version 3."""

MOST_BYTES = 2**31 - 2**24
"""Of an ONNX file."""

PREFIX = "bootprob:"
"""Begins the names of all values inside a graph, so that inputs may be called as columns are."""

_OF_MODELS = ("LabelEncoder", "TreeEnsembleRegressor")
_IR_VERSION = 8  # the file format that belongs to the operators


class Graph:
    """Nodes and constants of a graph under construction; values are known by their names.

    Parameters
    ----------
    outer : Graph, optional
        The graph that this one is the body of a loop in; its values may be used.
    prefix : str, default ""
        Begins all names, so that graphs may become parts of one.

    Attributes
    ----------
    n_bytes : int
        Of all constants and trees.
    shared : dict of str to str
        Values that several parts of the graph take, by what they are.
    """

    def __init__(self, outer: Graph | None = None, *, prefix: str = "") -> None:
        self._root: Graph = self if outer is None else outer._root
        self._prefix = prefix
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._n_names = 0
        self.n_bytes = 0
        self.shared: dict[str, str] = {}

    def constant(self, values: ArrayLike) -> str:
        """Add an array: numbers as they are, text as ONNX has it."""
        name, array = self._name(), np.asarray(values)
        self._root.n_bytes += array.nbytes
        if array.dtype.kind in "UO":
            made = numpy_helper.from_array(array.astype(object), name)
        else:
            made = numpy_helper.from_array(np.asarray(array, order="C"), name)
        self._root._constants.append(made)
        return name

    def add(self, operator: str, *inputs: str | ArrayLike, **attributes: Any) -> str:
        """Add a node with one output and return its name; arrays among the inputs are constants."""
        output = self._name()
        self._node(operator, inputs, [output], **attributes)
        return output

    def add_trees(self, rows: str, n_bytes: int, made: dict[str, Any]) -> str:
        """Add an ensemble of regression trees, by attributes of ``TreeEnsembleRegressor``."""
        self._root.n_bytes += n_bytes
        tensors = {
            name: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
            for name, value in made.items()
        }
        return self.add("TreeEnsembleRegressor", rows, **tensors)

    def product(self, left: str, right: str | ArrayLike, width: int) -> str:
        """Add a product of matrices (m, width) and (width, n).

        onnxruntime 1.31 puts a constant of one entry that multiplies or divides one of them into
        the product, as float32: "Mul" is the product of a column with a row, and keeps float64.
        """
        return self.add("Mul" if width == 1 else "MatMul", left, right)

    def sum_over(
        self,
        scanned: Sequence[ArrayLike],
        start: Sequence[str],
        body: Callable[..., Sequence[str]],
    ) -> list[str]:
        """Add up what `body` gives for each entry of the first axis of arrays.

        Parameters
        ----------
        scanned : sequence of array_like or str
            Arrays, or names of values, of float64 and the same length.
        start : sequence of str
            What to add to; float64, of two axes.
        body : callable
            Takes a graph and the names of an entry of each array, and returns as many names of
            what is to be added as there are in `start`.
        """

        def summed(inner: Graph, *names: str) -> Sequence[str]:
            sums, entries = names[: len(start)], names[len(start) :]
            added = body(inner, *entries)
            return [inner.add("Add", *each) for each in zip(sums, added, strict=True)]

        return self._scan(scanned, start, summed)

    def repeat(
        self, times: int, start: Sequence[str], body: Callable[..., Sequence[str]]
    ) -> list[str]:
        """Do the same to values as often as that.

        Parameters
        ----------
        times : int
        start : sequence of str
            The values at first; float64, of two axes.
        body : callable
            Takes a graph and the names of the values, and returns those of the new ones.
        """

        def step(inner: Graph, *names: str) -> Sequence[str]:
            return body(inner, *names[:-1])

        return self._scan([np.zeros(times)], start, step)

    def _scan(
        self,
        scanned: Sequence[ArrayLike],
        start: Sequence[str],
        body: Callable[..., Sequence[str]],
    ) -> list[str]:
        """Values after `body` was given them and an entry of each array, one after the other."""
        inner = Graph(self)
        sums = [inner._name() for _ in start]
        entries = [inner._name() for _ in scanned]
        new = body(inner, *sums, *entries)
        arrays = [each if isinstance(each, str) else np.asarray(each) for each in scanned]
        shapes = [None if isinstance(each, str) else each.shape[1:] for each in arrays]
        shape = ["rows", "columns"]
        graph = helper.make_graph(
            inner._nodes,
            "body",
            [
                *(helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape) for name in sums),
                *(
                    helper.make_tensor_value_info(name, TensorProto.DOUBLE, of_entry)
                    for name, of_entry in zip(entries, shapes, strict=True)
                ),
            ],
            [helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape) for name in new],
        )
        outputs = [self._name() for _ in start]
        self._node("Scan", [*start, *arrays], outputs, body=graph, num_scan_inputs=len(arrays))
        return outputs

    def model(
        self,
        inputs: Sequence[tuple[str, int, Sequence[int | str]]],
        outputs: Sequence[tuple[str, str, int, Sequence[int | str]]],
        *,
        description: str,
        properties: dict[str, str],
        producer_version: str,
    ) -> onnx.ModelProto:
        """Make a checked model.

        Parameters
        ----------
        inputs : sequence of (name, element type, shape)
        outputs : sequence of (name, value in the graph, element type, shape)
        description, properties, producer_version
            What a person may want to know of it.
        """
        for name, value, _, _ in outputs:
            self._nodes.append(helper.make_node("Identity", [value], [name]))
        graph = helper.make_graph(
            self._nodes,
            "bootprob",
            [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
            [helper.make_tensor_value_info(name, kind, shape) for name, _, kind, shape in outputs],
            self._constants,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 3)],
            ir_version=_IR_VERSION,
            producer_name="bootprob",
            producer_version=producer_version,
            doc_string=description,
        )
        helper.set_model_props(model, properties)
        onnx.checker.check_model(model, full_check=True)
        return model

    def _node(
        self, operator: str, inputs: Sequence[Any], outputs: list[str], **attributes: Any
    ) -> None:
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        domain = "ai.onnx.ml" if operator in _OF_MODELS else ""
        self._nodes.append(helper.make_node(operator, names, outputs, domain=domain, **attributes))

    def _name(self) -> str:
        self._root._n_names += 1
        return f"{self._root._prefix}{PREFIX}{self._root._n_names}"
