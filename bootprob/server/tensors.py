"""Tensors of the Open Inference Protocol v2, as rows and from scores.

A model of arrays takes one input ``X`` of shape [m, p]; a model of a table takes an input for each
column, of shape [m] or [m, 1], in which null stands for a missing value where the model fills gaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from bootprob.encoding.columns import LARGEST_CELL
from bootprob.encoding.dates import dates_and_bad
from bootprob.runtime.arrays import Floats
from bootprob.runtime.counted import counted
from bootprob.server.columns import Columns
from bootprob.server.errors import RequestError
from bootprob.server.problems import encoded, valid
from bootprob.server.schemas import InferInput
from bootprob.server.served_model import Scores, ServedModel, ServedRows

__all__ = ["input_metadata", "output_metadata", "reply_tensors", "rows_of"]


_NUMBERS = ("FP64", "FP32", "INT64", "INT32")
_INTEGERS: dict[str, type[np.signedinteger[Any]]] = {"INT64": np.int64, "INT32": np.int32}
_KINDS: dict[str, TypeAdapter[Any]] = {
    "FP": TypeAdapter(Annotated[list[float | None], Field(fail_fast=True)]),
    "INT": TypeAdapter(Annotated[list[int | None], Field(fail_fast=True)]),
    "BOOL": TypeAdapter(Annotated[list[bool | None], Field(fail_fast=True)]),
    "BYTES": TypeAdapter(Annotated[list[str | None], Field(fail_fast=True)]),
}
_INPUT = TypeAdapter(InferInput)
_ASKING = {"ask": "BOOL", "cost": "FP64", "cost_interval": "FP64", "stable": "BOOL"}
_AT_ONCE = 2**13  # values: no other thread runs while they are checked


def rows_of(
    inputs: list[Any], columns: Columns, max_rows: int
) -> tuple[ServedRows, dict[str, list[Any]]]:
    """The matrix that the inputs of a request stand for, and the values of its columns by name.

    Parameters
    ----------
    inputs : list
        Not yet checked.
    columns : Columns
    max_rows : int

    Raises
    ------
    RequestError
        422 for tensors that are missing, unknown, of another form, type or shape, or hold values
        that cannot be used; 413 for too many rows.
    """
    wanted = list(columns.kinds) if columns.is_table else ["X", *columns.costs]
    if len(inputs) > len(wanted):
        found = counted(len(inputs), "input")
        message = f"The request has {found}; send {len(wanted)}, each of them once."
        raise RequestError(422, message)
    given: dict[str, InferInput] = {}
    for k, each in enumerate(inputs):
        tensor = valid(_INPUT, each, "inputs", k)
        if tensor.name in given:
            raise RequestError(422, "An input is given twice.")
        given[tensor.name] = tensor
    for name in wanted:
        if name not in given:
            raise RequestError(422, f"The input {name!r} is missing.")
    n_rows = given[wanted[0]].shape[0]
    if not 0 < n_rows <= max_rows:
        status = 413 if n_rows else 422
        raise RequestError(
            status, f"The request has {counted(n_rows, 'row')}; send 1 to {max_rows}."
        )
    values = {}
    for name in wanted:
        if name == "X" and not columns.is_table:
            continue
        tensor, kind = given[name], columns.kinds[name]
        if tensor.shape not in ([n_rows], [n_rows, 1]):
            raise RequestError(422, f"The input {name!r} must have the shape [{n_rows}].")
        is_number = kind in ("number", "cost")
        if is_number and tensor.datatype not in _NUMBERS:
            raise RequestError(422, f"The input {name!r} must be one of {', '.join(_NUMBERS)}.")
        pieces = _pieces(tensor, _flat(tensor, 1), is_number)
        values[name] = [value for piece in pieces for value in piece]
        if kind == "date" and (tensor.datatype != "BYTES" or dates_and_bad(values[name])[1]):
            raise RequestError(422, f"The input {name!r} must hold dates of ISO 8601 as BYTES.")
        if name in columns.costs and not all(value and value > 0 for value in values[name]):
            raise RequestError(422, f"The input {name!r} must hold costs: numbers above 0.")
        if is_number and not columns.fills_gaps_of(name) and None in values[name]:
            raise RequestError(422, f"The input {name!r} must have no null: nothing fills a gap.")
    if not columns.is_table:
        return _matrix(given["X"], n_rows, columns.n_features), values
    return encoded(columns.encoder, values, n_rows), values


def _matrix(tensor: InferInput, n_rows: int, p: int) -> Floats:
    if tensor.shape != [n_rows, p]:
        raise RequestError(422, f"The input 'X' must have the shape [{n_rows}, {p}].")
    if tensor.datatype not in _NUMBERS:
        raise RequestError(422, f"The input 'X' must be one of {', '.join(_NUMBERS)}.")
    X = np.empty(n_rows * p)
    done = 0
    for piece in _pieces(tensor, _flat(tensor, p), is_number=True):
        if None in piece:
            raise RequestError(422, "The input 'X' must have no null: every number is needed.")
        X[done : done + len(piece)] = piece
        done += len(piece)
    return X.reshape(n_rows, p)


def _flat(tensor: InferInput, width: int) -> list[Any]:
    """Values in row-major order; nested ones are rows."""
    data = tensor.data
    if len(tensor.shape) == 2 and data and isinstance(data[0], list):
        if len(data) != tensor.shape[0]:
            raise _unlike(tensor)
        if not all(isinstance(row, list) and len(row) == width for row in data):
            raise _unlike(tensor)
        data = [value for row in data for value in row]
    if len(data) != tensor.shape[0] * width:
        raise _unlike(tensor)
    return data


def _unlike(tensor: InferInput) -> RequestError:
    return RequestError(422, f"The data of the input {tensor.name!r} do not have its shape.")


def _pieces(tensor: InferInput, data: list[Any], is_number: bool) -> Iterator[list[Any]]:
    """Values of the datatype stated, in range, some at a time."""
    for first in range(0, len(data), _AT_ONCE):
        yield _checked(tensor, data[first : first + _AT_ONCE], is_number)


def _checked(tensor: InferInput, data: list[Any], is_number: bool) -> list[Any]:
    kind = tensor.datatype.rstrip("0123456789")
    try:
        values = _KINDS[kind].validate_python(data, strict=True)
    except ValidationError:
        message = f"The input {tensor.name!r} has data which are not {tensor.datatype}."
        raise RequestError(422, message) from None
    if kind not in ("FP", "INT"):
        return values
    known = [value for value in values if value is not None]
    if kind == "INT" and known:
        range_ = np.iinfo(_INTEGERS[tensor.datatype])
        if min(known) < range_.min or max(known) > range_.max:
            raise RequestError(422, f"The input {tensor.name!r} exceeds {tensor.datatype}.")
    if kind == "FP":
        if tensor.datatype == "FP32":
            with np.errstate(over="ignore"):  # becomes infinite and is refused
                values = [None if value is None else float(np.float32(value)) for value in values]
        bound = LARGEST_CELL if is_number else np.finfo(np.float64).max
        if not all(abs(value) <= bound for value in values if value is not None):
            raise RequestError(422, f"The input {tensor.name!r} has numbers that are too large.")
    return values


def reply_tensors(
    scores: Scores, served: ServedModel, wanted: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Outputs of a reply, in the order wanted; all if none is named."""
    codes = scores.label.tolist()
    found: dict[str, tuple[str, list[int], list[Any]]] = {
        "probability": (
            "FP64", list(scores.probability.shape), scores.probability.ravel().tolist(),
        ),
        "probability_interval": (
            "FP64", list(scores.interval.shape), scores.interval.ravel().tolist(),
        ),
        "label": (_label_datatype(served), [len(codes)], [served.classes[k] for k in codes]),
    }  # fmt: skip
    if scores.threshold is not None:
        found["threshold"] = ("FP64", [len(codes)], scores.threshold.tolist())
    if scores.undecided is not None:
        found["undecided"] = ("BOOL", [len(codes)], scores.undecided.tolist())
    if scores.decisions is not None:
        for name in ("ask", "cost", "cost_interval", "stable"):
            values = getattr(scores.decisions, name)
            found[name] = (_ASKING[name], list(values.shape), values.ravel().tolist())
    return [
        {"name": name, "datatype": found[name][0], "shape": found[name][1], "data": found[name][2]}
        for name in wanted or found
    ]


def input_metadata(columns: Columns) -> list[dict[str, Any]]:
    """What a request has to give; −1 stands for the number of rows."""
    if not columns.is_table:
        costs = [{"name": name, "datatype": "FP64", "shape": [-1]} for name in columns.costs]
        return [{"name": "X", "datatype": "FP64", "shape": [-1, columns.n_features]}, *costs]
    datatypes = {"number": "FP64", "cost": "FP64", "boolean": "BOOL"}
    return [
        {"name": name, "datatype": datatypes.get(kind, "BYTES"), "shape": [-1]}
        for name, kind in columns.kinds.items()
    ]


def output_metadata(served: ServedModel) -> list[dict[str, Any]]:
    """What a reply may hold."""
    n_classes = len(served.classes)
    threshold = {"name": "threshold", "datatype": "FP64", "shape": [-1]}
    undecided = {"name": "undecided", "datatype": "BOOL", "shape": [-1]}
    asking = [
        {"name": name, "datatype": kind, "shape": [-1, 2] if "interval" in name else [-1]}
        for name, kind in _ASKING.items()
    ]
    return [
        {"name": "probability", "datatype": "FP64", "shape": [-1, n_classes]},
        {"name": "probability_interval", "datatype": "FP64", "shape": [-1, n_classes, 2]},
        {"name": "label", "datatype": _label_datatype(served), "shape": [-1]},
        *([threshold] if n_classes == 2 else []),
        *([undecided] if served.leaves_undecided else []),
        *(asking if served.costs is not None and served.costs.ask is not None else []),
    ]


def _label_datatype(served: ServedModel) -> str:
    first = served.classes[0]
    if isinstance(first, bool):
        return "BOOL"
    if all(isinstance(label, int) for label in served.classes):
        return "INT64"
    return "BYTES" if isinstance(first, str) else "FP64"
