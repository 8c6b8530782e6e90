"""Calibrators in graphs where scores are far out."""

from __future__ import annotations

import numpy as np
import pytest

from bootprob.calibration import Beta, Sigmoid
from bootprob.calibration.calibrated import Calibrated

onnxruntime = pytest.importorskip("onnxruntime")

from onnx import TensorProto  # noqa: E402

from bootprob.onnx_export.calibration import add_calibration, add_logit  # noqa: E402
from bootprob.onnx_export.graph import Graph  # noqa: E402


@pytest.mark.parametrize("a", [0.0, 0.7])
@pytest.mark.parametrize("b", [0.0, 2.0])
def test_beta_of_far_scores(a: float, b: float):
    # A coefficient of 0 times a Softplus that overflows would be NaN.
    beta = Beta(np.array([1.5, 0.2]), np.array([a, b, -0.3]))
    calibrated = Calibrated(Sigmoid(1.5, 0.2, np.eye(2)), beta, 0.0, 9.0)
    graph = Graph()
    found = {
        "p": add_calibration(graph, calibrated, "X", None),
        "logit": add_logit(graph, calibrated, "X", None),
    }
    made = graph.model(
        [("X", TensorProto.DOUBLE, ["rows", 1])],
        [(name, value, TensorProto.DOUBLE, ["rows", 1]) for name, value in found.items()],
        description="",
        properties={},
        producer_version="",
    )
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    far = np.array([300.0, 480.0, 1e3, 1e6, 1e200])
    scores = np.concatenate([-far, np.linspace(-50, 50, 201), far, [np.nan]])
    p, logit = session.run(None, {"X": scores[:, None]})
    np.testing.assert_allclose(p[:, 0], calibrated.predict(scores), rtol=0, atol=1e-12)
    np.testing.assert_allclose(logit[:, 0], calibrated.logit(scores), rtol=1e-12, atol=1e-12)
    assert np.isnan(p[:, 0]).tolist() == np.isnan(scores).tolist()
