"""Export a fitted model as ONNX, for runtimes without Python.

    from bootprob.onnx_export.export import export_onnx

The graph takes any number of rows and gives ``probability`` (m, 2), as `predict_proba`, and
``label`` (m,), as `predict`. Arithmetic is in float64 whatever the rows are in: scores are sums
over many machines, in which float32 would lose digits.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.fitted import two_classes_of
from bootprob.exceptions import DataError
from bootprob.runtime.files import check_output, replace_when_complete
from bootprob.runtime.version import __version__
from bootprob.tables.model import TableModel

if TYPE_CHECKING:
    from bootprob.onnx_export.graph import Graph

__all__ = ["Dtype", "export_onnx"]

Dtype = Literal["float64", "float32"]

_MOST_BYTES = 2**31 - 2**24  # of an ONNX file
_KERNELS = ("auto", "linear", "rbf")
_OUTPUTS = ("probability", "label")


def export_onnx(
    model: BootstrapSVC | TableModel, path: str | os.PathLike[str], *, dtype: Dtype = "float64"
) -> None:
    """Write what `predict_proba` and `predict` do as an ONNX file.

    Parameters
    ----------
    model : BootstrapSVC or TableModel
        Fitted, of two classes. A `BootstrapSVC` becomes a graph with the input ``X`` (m, p). A
        `TableModel`, or a `BootstrapSVC` with a `preprocessor_`, becomes one with an input (m, 1)
        for each column in use, called as the column: numbers, NaN where one is missing, or text as
        `bootprob.encoding.columns.level_text` spells it, empty where it is missing.
    path : path-like
        The file; an existing one is replaced, entirely or not at all.
    dtype : {"float64", "float32"}, default "float64"
        Of the numbers that go in and the probabilities that come out.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    TypeError
        The model is of another type.
    DataError
        The package onnx is missing, the model has several classes, another kernel than "auto",
        "linear" or "rbf", labels of several types, a column that is called as an output, or more
        than 2 GB, or the file cannot be written.
    """
    if not isinstance(model, (BootstrapSVC, TableModel)):
        raise TypeError(f"A BootstrapSVC or TableModel is exported, not {type(model).__name__}.")
    if dtype not in get_args(Dtype):
        raise DataError(f"dtype is {dtype!r}; give 'float64' or 'float32'.")
    check_is_fitted(model.svc if isinstance(model, TableModel) else model)
    if isinstance(model, BootstrapSVC):
        model = TableModel.of(model) or model
    svc = model.svc if isinstance(model, TableModel) else model
    if len(svc.classes_) > 2:
        raise DataError(
            f"The model has {len(svc.classes_)} classes, and coupling their pairs is no ONNX "
            "operator; export the models in pair_ensembles_, or fit one class against the rest."
        )
    labels = _labels(model.target.labels if isinstance(model, TableModel) else svc.classes_)
    target = check_output(path)
    try:
        from onnx import TensorProto

        from bootprob.onnx_export.graph import Graph
    except ImportError as error:
        raise DataError(f"{error}; pip install 'bootprob[onnx]'.") from error
    from bootprob.onnx_export.calibration import add_calibration
    from bootprob.onnx_export.scores import add_scores_and_votes

    graph, element = Graph(), getattr(TensorProto, {"float64": "DOUBLE"}.get(dtype, "FLOAT"))
    if isinstance(model, TableModel):
        inputs, X = _table_inputs(graph, model, element)
    else:
        inputs = [("X", element, ["rows", svc.n_features_in_])]
        X = graph.add("Cast", "X", to=TensorProto.DOUBLE)
    ensemble = two_classes_of(svc, "ONNX graphs")
    if ensemble.state.kernel.name not in _KERNELS:
        raise DataError(
            f"kernel={svc.kernel!r} is not exported; fit a model with kernel='auto', 'linear' or "
            "'rbf'."
        )
    calibrated = ensemble.calibrated
    votes = svc.calibration is None or calibrated.calibrator.needs_votes
    score, share = add_scores_and_votes(graph, ensemble.state, X, votes=votes)
    if svc.calibration is None:
        assert share is not None
        positive = share
    else:
        positive = add_calibration(graph, calibrated, score, share)
    if graph.n_bytes > _MOST_BYTES:
        raise DataError(
            f"The graph has {graph.n_bytes / 1e9:.1f} GB, and an ONNX file may have 2; fit with "
            "fewer bootstrap samples, a feature map or standardize='global'."
        )
    both = graph.add("Concat", graph.add("Sub", np.float64(1.0), positive), positive, axis=1)
    above = graph.add("Greater", positive, np.float64(ensemble.decision_threshold))
    index = graph.add("Squeeze", graph.add("Cast", above, to=TensorProto.INT64), np.array([1]))
    label_kinds = {"i": TensorProto.INT64, "f": TensorProto.DOUBLE, "b": TensorProto.BOOL}
    made = graph.model(
        inputs,
        [
            ("probability", graph.add("Cast", both, to=element), element, ["rows", 2]),
            (
                "label",
                graph.add("Gather", graph.constant(labels), index),
                label_kinds.get(labels.dtype.kind, TensorProto.STRING),
                ["rows"],
            ),
        ],
        description="Probabilities of two classes from bootstrapped support vector machines.",
        properties={"classes": json.dumps([str(label) for label in labels.tolist()])},
        producer_version=__version__,
    )
    with replace_when_complete(target) as file:
        file.write(made.SerializeToString())


def _labels(classes: Any) -> NDArray[Any]:
    """Labels as one ONNX type."""
    plain = np.asarray(classes).tolist() if isinstance(classes, np.ndarray) else list(classes)
    for kind, dtype in ((str, np.str_), (bool, np.bool_), (int, np.int64), (float, np.float64)):
        if all(type(label) is kind for label in plain):
            try:
                return np.array(plain, dtype=dtype)
            except OverflowError:
                break
    raise DataError(
        f"The classes are {plain[0]!r} and {plain[1]!r}; ONNX takes labels that are all text, all "
        "booleans, all floating-point or all whole numbers of 64 bits. Fit the model on such ones."
    )


def _table_inputs(
    graph: Graph, model: TableModel, element: int
) -> tuple[list[tuple[str, int, list[int | str]]], str]:
    """Inputs for the columns of a table, and the matrix that the preprocessing makes of them."""
    from onnx import TensorProto

    from bootprob.onnx_export.graph import PREFIX

    preprocessor = model.preprocessor
    for name, kind in preprocessor.kinds_.items():
        if kind == "date":
            raise DataError(
                f"The column {name!r} holds dates, of which ONNX knows nothing; turn it into "
                "numbers before the fit, or leave it out."
            )
        if name in _OUTPUTS or name.startswith(PREFIX):
            raise DataError(
                f"The column {name!r} is called as something in the graph; rename it in the table "
                "and fit again."
            )
    inputs: list[tuple[str, int, list[int | str]]] = []
    numbers, dummies, fills = [], [], preprocessor.fills_
    for name, kind in preprocessor.kinds_.items():
        fill = fills[name]
        if kind == "number":
            inputs.append((name, element, ["rows", 1]))
            value = graph.add("Cast", name, to=TensorProto.DOUBLE)
            missing = graph.add("IsNaN", value)
            numbers.append(graph.add("Where", missing, np.array([[fill]]), value))
            continue
        inputs.append((name, TensorProto.STRING, ["rows", 1]))
        levels = preprocessor.levels_[name]
        code = graph.add(
            "LabelEncoder",
            name,
            keys_strings=[*levels, ""],
            values_int64s=[*range(len(levels)), levels.index(str(fill))],
            default_int64=-1,
        )
        known = graph.add("Equal", code, np.arange(len(levels))[None])
        dummies.append(graph.add("Cast", known, to=TensorProto.DOUBLE))
    return inputs, graph.add("Concat", *numbers, *dummies, axis=1)
