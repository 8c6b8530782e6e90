"""Export a fitted model as ONNX, for runtimes without Python.

    from bootprob.onnx_export.export import export_onnx

The graph takes any number of rows and gives ``probability`` (m, K), as `predict_proba`, and
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

from bootprob.calibration.logits import CLOSEST
from bootprob.ensemble.classifier import BootstrapClassifier
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.fitted import ensemble_of
from bootprob.ensemble.several_classes import SeveralClasses
from bootprob.ensemble.state import state_of
from bootprob.exceptions import DataError
from bootprob.runtime.files import check_output, replace_when_complete
from bootprob.runtime.version import __version__
from bootprob.tables.model import TableModel

if TYPE_CHECKING:
    from onnx import ModelProto

    from bootprob.ensemble.two_classes import TwoClasses
    from bootprob.onnx_export.graph import Graph
    from bootprob.onnx_export.scores import Scored

__all__ = ["Dtype", "export_onnx", "onnx_model"]

Dtype = Literal["float64", "float32"]

_KERNELS = ("auto", "linear", "rbf")
_TIE = 1e-12  # how far a share of votes may be above another by rounding
_OUTPUTS = ("probability", "label", "probability_lower", "probability_upper")


def export_onnx(
    model: BootstrapSVC | BootstrapClassifier | TableModel,
    path: str | os.PathLike[str],
    *,
    dtype: Dtype = "float64",
    interval: float | None = None,
) -> None:
    """Write what `predict_proba` and `predict` do as an ONNX file.

    Parameters
    ----------
    model : BootstrapSVC, BootstrapClassifier or TableModel
        Fitted. Of classifiers linear ones of scikit-learn, alone or in a Pipeline after scalers or
        PCA, its trees, forests and HistGradientBoostingClassifier, which need skl2onnx, and
        LightGBM's LGBMClassifier, that were given plain numbers. An ensemble becomes a graph with
        the input ``X`` (m, p); a `TableModel`, or a `BootstrapSVC` with a `preprocessor_`, becomes
        one with an input (m, 1) for each column in use, called as the column: numbers, NaN where
        one is missing, or text as `bootprob.encoding.columns.level_text` spells it, empty where it
        is missing. Where nothing is known that fills a gap (`TableModel.of` with `columns`) all
        numbers that come out of such a row are NaN, and its label means nothing.
    path : path-like
        The file; an existing one is replaced, entirely or not at all.
    dtype : {"float64", "float32"}, default "float64"
        Of the numbers that go in and the probabilities that come out.
    interval : float, optional
        Level, such as 0.95, of intervals that come out as well: ``probability_lower`` and
        ``probability_upper``, (m, 2), as `proba_interval` by the model's parameter `interval`.
        "corrected" of every kernel that is exported, "normal" and "jackknife" of linear ones.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    TypeError
        The model is of another type.
    DataError
        The package onnx is missing, the model has classifiers of another kind, or another kernel
        than "auto", "linear" or "rbf",
        several classes with another coupling than "wu-lin-weng", labels of several types, a column
        that is called as an output, an `interval` that cannot be had (it says why), or more than
        2 GB, or the file cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from bootprob.onnx_export import export_onnx
    >>> with TemporaryDirectory() as folder:
    ...     export_onnx(model, Path(folder, "iris.onnx"), interval=0.95)
    ...     Path(folder, "iris.onnx").stat().st_size > 1000
    True
    """
    target = check_output(path)
    made = onnx_model(model, dtype=dtype, interval=interval)
    with replace_when_complete(target) as file:
        file.write(made.SerializeToString())


def onnx_model(
    model: BootstrapSVC | BootstrapClassifier | TableModel,
    *,
    dtype: Dtype,
    interval: float | None,
    prefix: str = "",
) -> ModelProto:
    """Make the graph that `export_onnx` writes; see there for parameters and errors.

    A `prefix` begins all names but those of columns, so that it may become a part of another.
    """
    if not isinstance(model, (BootstrapSVC, BootstrapClassifier, TableModel)):
        raise TypeError(
            "A BootstrapSVC, BootstrapClassifier or TableModel is exported, not "
            f"{type(model).__name__}."
        )
    if dtype not in get_args(Dtype):
        raise DataError(f"dtype is {dtype!r}; give 'float64' or 'float32'.")
    check_is_fitted(model.svc if isinstance(model, TableModel) else model)
    if isinstance(model, BootstrapSVC):
        model = TableModel.of(model) or model
    svc = model.svc if isinstance(model, TableModel) else model
    if len(svc.classes_) > 2 and svc.coupling != "wu-lin-weng":
        raise DataError(
            f"coupling={svc.coupling!r} is found by iterations that end when they have converged, "
            "which no graph of fixed length does; set coupling='wu-lin-weng', which has a closed "
            "form, or export the models in pair_ensembles_."
        )
    if interval is not None and len(svc.classes_) > 2:
        raise DataError(
            f"The model has {len(svc.classes_)} classes, whose intervals need the score of every "
            "replicate of every pair for the correlations of their errors; leave the interval out, "
            "or export the models in pair_ensembles_."
        )
    labels = _labels(model.target.labels if isinstance(model, TableModel) else svc.classes_)
    try:
        from onnx import TensorProto

        from bootprob.onnx_export.graph import MOST_BYTES, Graph
    except ImportError as error:
        raise DataError(f'{error}; pip install "bootprob[onnx]".') from error
    graph = Graph(prefix=prefix)
    element = getattr(TensorProto, {"float64": "DOUBLE"}.get(dtype, "FLOAT"))
    has_gap = None
    if isinstance(model, TableModel):
        inputs, X, has_gap = _table_inputs(graph, model, element)
    else:
        inputs = [(f"{prefix}X", element, ["rows", svc.n_features_in_])]
        X = graph.add("Cast", f"{prefix}X", to=TensorProto.DOUBLE)
    if state_of(svc).kernel.name not in _KERNELS:
        raise DataError(
            f"kernel={svc.kernel!r} is not exported; fit a model with kernel='auto', 'linear' or "
            "'rbf'."
        )
    probability, index, bounds = _add_answers(graph, ensemble_of(svc), X, interval)
    if graph.n_bytes > MOST_BYTES:
        raise DataError(
            f"The graph has {graph.n_bytes / 1e9:.1f} GB, and an ONNX file may have 2; fit with "
            "fewer bootstrap samples, a feature map or standardize='global'."
        )
    label_kinds = {"i": TensorProto.INT64, "f": TensorProto.DOUBLE, "b": TensorProto.BOOL}
    label_kind = label_kinds.get(labels.dtype.kind, TensorProto.STRING)
    label = graph.add("Gather", graph.constant(labels), index)
    numbers = {"probability": probability} | bounds
    if has_gap is not None:  # votes of a gap would be numbers: a comparison with NaN is false
        numbers = {
            name: graph.add("Where", has_gap, np.float64(np.nan), value)
            for name, value in numbers.items()
        }
    outputs: list[tuple[str, str, int, list[int | str]]] = [
        (prefix + name, graph.add("Cast", value, to=element), element, ["rows", len(labels)])
        for name, value in numbers.items()
    ]
    outputs.insert(1, (f"{prefix}label", label, label_kind, ["rows"]))
    of_what = "classifiers" if isinstance(svc, BootstrapClassifier) else "support vector machines"
    return graph.model(
        inputs,
        outputs,
        description=f"Probabilities of classes from bootstrapped {of_what}.",
        properties={"classes": json.dumps([str(label) for label in labels.tolist()])},
        producer_version=__version__,
    )


def _add_answers(
    graph: Graph,
    ensemble: TwoClasses | SeveralClasses[TwoClasses],
    X: str,
    interval: float | None,
) -> tuple[str, str, dict[str, str]]:
    """Probabilities (m, K), the position of the label (m,), and bounds (m, 2) by their names."""
    from onnx import TensorProto

    from bootprob.onnx_export.coupling import add_coupling
    from bootprob.onnx_export.intervals import add_interval, check_interval

    if isinstance(ensemble, SeveralClasses):
        second = [_add_positive(graph, each, X)[0] for each in ensemble.ensembles]
        probability = add_coupling(graph, second)
        deciding = probability
        if ensemble.offsets is not None:
            inside = graph.add("Clip", probability, np.float64(CLOSEST), np.float64(1 - CLOSEST))
            odds = graph.add("Div", inside, graph.add("Sub", np.float64(1.0), inside))
            deciding = graph.add("Add", graph.add("Log", odds), ensemble.offsets[None])
        return probability, graph.add("ArgMax", deciding, axis=1, keepdims=0), {}
    ensemble.refuse_recalibrated("ONNX graphs")
    level = None if interval is None else check_interval(ensemble, interval)
    positive, scored = _add_positive(graph, ensemble, X)
    threshold = ensemble.decision_threshold
    if ensemble.spec.calibration is None:  # a tie of votes, which are added in another order
        threshold += _TIE
    above = graph.add("Greater", positive, np.float64(threshold))
    index = graph.add("Squeeze", graph.add("Cast", above, to=TensorProto.INT64), np.array([1]))
    bounds = {}
    if level is not None:
        lower, upper = add_interval(graph, ensemble, scored, positive, level)
        bounds["probability_lower"] = _add_both(graph, upper, lower)
        bounds["probability_upper"] = _add_both(graph, lower, upper)
    return _add_both(graph, positive, positive), index, bounds


def _add_both(graph: Graph, of_first: str, of_second: str) -> str:
    """What is said of both classes, shape (m, 2); of the first it is 1 less a number."""
    return graph.add("Concat", graph.add("Sub", np.float64(1.0), of_first), of_second, axis=1)


def _add_positive(graph: Graph, ensemble: TwoClasses, X: str) -> tuple[str, Scored]:
    """Probability of the second of two classes, shape (m, 1), and what it is made of."""
    from bootprob.onnx_export.calibration import add_calibration
    from bootprob.onnx_export.scores import add_scores_and_votes

    of_votes = ensemble.spec.calibration is None
    votes = of_votes or ensemble.calibrated.calibrator.needs_votes
    scored = add_scores_and_votes(graph, ensemble.state, X, votes=votes)
    if of_votes:
        assert scored.votes is not None
        return scored.votes, scored
    return add_calibration(graph, ensemble.calibrated, scored.score, scored.votes), scored


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
) -> tuple[list[tuple[str, int, list[int | str]]], str, str | None]:
    """Inputs for the columns of a table, and the matrix that the preprocessing makes of them.

    Last, of columns of numbers whose gaps nothing fills, whether a row has one, shape (m, 1).
    """
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
    has_gap: str | None = None
    for name, kind in preprocessor.kinds_.items():
        if kind == "number":
            inputs.append((name, element, ["rows", 1]))
            value = graph.add("Cast", name, to=TensorProto.DOUBLE)
            missing = graph.add("IsNaN", value)
            if name in fills:
                value = graph.add("Where", missing, np.array([[fills[name]]]), value)
            else:
                has_gap = missing if has_gap is None else graph.add("Or", has_gap, missing)
            numbers.append(value)
            continue
        inputs.append((name, TensorProto.STRING, ["rows", 1]))
        levels = preprocessor.levels_[name]
        code = graph.add(
            "LabelEncoder",
            name,
            keys_strings=[*levels, ""],
            values_int64s=[*range(len(levels)), levels.index(str(fills[name]))],
            default_int64=-1,
        )
        known = graph.add("Equal", code, np.arange(len(levels))[None])
        dummies.append(graph.add("Cast", known, to=TensorProto.DOUBLE))
    return inputs, graph.add("Concat", *numbers, *dummies, axis=1), has_gap
