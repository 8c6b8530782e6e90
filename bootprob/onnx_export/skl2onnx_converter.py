"""A converter for skl2onnx, so that pipelines that end in a `BootstrapSVC` become one graph."""

from __future__ import annotations

from typing import Any

from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.exceptions import DataError
from bootprob.onnx_export.export import onnx_model
from bootprob.tables.model import TableModel

__all__ = ["register_skl2onnx"]

# Those of skl2onnx for any classifier.
_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [False],
    "raw_scores": [True, False],  # else who asks for scores is given probabilities as such
    "output_class_labels": [False, True],
}


def register_skl2onnx() -> None:
    """Have skl2onnx convert a `BootstrapSVC`, alone or in a scikit-learn pipeline.

    The graph is that of `export_onnx`: float64 inside, probabilities in the type of the inputs.
    Of models fitted on data frames columns are inputs, which only `export_onnx` makes.

    Raises
    ------
    DataError
        skl2onnx is missing. Converting raises it for what `export_onnx` refuses, for a model that
        was fitted on a data frame, and where scores are asked for.

    Examples
    --------
    >>> import numpy as np, skl2onnx
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from bootprob import BootstrapSVC
    >>> from bootprob.onnx_export import register_skl2onnx
    >>> register_skl2onnx()
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> svc = BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0)
    >>> pipeline = make_pipeline(StandardScaler(), svc).fit(X, X[:, 0] > 0)
    >>> made = skl2onnx.to_onnx(pipeline, X, options={"zipmap": False})
    >>> [output.name for output in made.graph.output]
    ['label', 'probabilities']
    """
    try:
        from skl2onnx import update_registered_converter
        from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes
    except ImportError as error:
        raise DataError(f"{error}; pip install skl2onnx.") from error
    update_registered_converter(
        BootstrapSVC,
        "BootprobBootstrapSVC",
        calculate_linear_classifier_output_shapes,
        _convert,
        options=_OPTIONS,
    )


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of a model to that of skl2onnx."""
    from onnx import TensorProto, helper
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    svc = operator.raw_operator
    if TableModel.of(svc) is not None:
        raise DataError(
            "The model was fitted on a data frame, and has an input for each column: write it with "
            "bootprob.onnx_export.export_onnx, or fit it on numbers."
        )
    if container.get_options(svc, {"raw_scores": False})["raw_scores"]:
        raise DataError(
            "Scores of a BootstrapSVC are not converted, which CalibratedClassifierCV and "
            "OneVsRestClassifier ask for; its probabilities are calibrated without."
        )
    of_label, of_probability = operator.outputs
    double = isinstance(of_probability.type, DoubleTensorType)
    made = onnx_model(
        svc,
        dtype="float64" if double else "float32",
        interval=None,
        prefix=f"{scope.get_unique_variable_name('svc')}:",
    )
    graph = made.graph
    probability, label = (each.name for each in graph.output)
    text = isinstance(of_label.type, StringTensorType)
    kind = TensorProto.STRING if text else TensorProto.INT64  # of truth values and floats too
    container.nodes += [
        helper.make_node("Identity", [operator.inputs[0].onnx_name], [graph.input[0].name]),
        *graph.node,
        helper.make_node("Identity", [probability], [of_probability.onnx_name]),
        helper.make_node("Cast", [label], [of_label.onnx_name], to=kind),
    ]
    container.initializers.extend(graph.initializer)
    container.node_domain_version_pair_sets.update(
        (each.domain, each.version) for each in made.opset_import
    )
