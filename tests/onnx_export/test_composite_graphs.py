"""Nodes of views, kernels and composite posteriors give what the engine and the package give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from bootprob.ensemble.uncertainty.composite_posterior import (
    CompositePosterior,
    stored_curves,
)
from bootprob.ensemble.uncertainty.curves import FAMILIES, VIEWS, Curve, Landmarks
from bootprob.ensemble.uncertainty.link_tails import bent
from bootprob.ensemble.uncertainty.steepness import THRESHOLDS
from bootprob.intervals.mixtures import logit_of_mixture
from bootprob.preparation.views import learn_views
from bootprob_gpu.kernels.views import ColumnViews, View, ViewKernels

onnxruntime = pytest.importorskip("onnxruntime")

from onnx import TensorProto  # noqa: E402

from bootprob.onnx_export.composite_posterior import (  # noqa: E402
    _add_bent,
    add_logit_of_mixture,
    add_posterior_moments,
)
from bootprob.onnx_export.graph import Graph  # noqa: E402
from bootprob.onnx_export.kernels import KnownRows  # noqa: E402
from bootprob.onnx_export.views import SeenRows  # noqa: E402


def _answers(rows: np.ndarray, add: Callable[[Graph, str], str]) -> np.ndarray:
    """What the value that `add` adds to a graph is for rows."""
    graph = Graph()
    value = add(graph, graph.add("Identity", "X"))
    made = graph.model(
        [("X", TensorProto.DOUBLE, ["rows", rows.shape[1]])],
        [("found", value, TensorProto.DOUBLE, ["rows", "columns"])],
        description="",
        properties={},
        producer_version="",
    )
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["found"], {"X": rows})[0]


def _known(rng: np.random.Generator, n: int = 60) -> np.ndarray:
    """Rows of columns of two, four, 17 and all values, and a constant one."""
    columns = [rng.integers(0, k, n) for k in (2, 4, 17)]
    return np.stack([*columns, rng.normal(size=n), np.zeros(n)], axis=1).astype(np.float64)


def _rows(known: np.ndarray, views: ColumnViews, rng: np.random.Generator) -> np.ndarray:
    """Known rows and their neighbours, knots, thresholds, and rows far outside."""
    on_knots = views.knots.numpy().T
    on_thresholds = views.thresholds.numpy().T
    ties = on_thresholds[(on_thresholds < 1e9).all(axis=1)]
    near = known + rng.normal(size=known.shape)
    between = np.where(on_thresholds < 1e9, on_thresholds, 0.5)
    return np.concatenate([known, near, on_knots, ties, between, near * 1e6, -near * 1e12])


@pytest.fixture
def known(rng: np.random.Generator) -> np.ndarray:
    return _known(rng)


@pytest.fixture
def views(known: np.ndarray) -> ColumnViews:
    return learn_views(known, np.ones(len(known)))


@pytest.fixture
def relevant(views: ColumnViews) -> ColumnViews:
    """The same of which columns are relevant, with components."""
    relevance = torch.tensor([0.5, 0.0, 2.0, 1.0, 0.0], dtype=torch.float64)
    components = torch.tensor([[0.5, 1.0], [2.0, 0.0], [0.1, 0.1], [0.0, 3.0], [1.0, 0.0]])
    return replace(views, relevance=relevance, components=components.double())


@pytest.fixture
def rows(known: np.ndarray, views: ColumnViews, rng: np.random.Generator) -> np.ndarray:
    return _rows(known, views, rng)


@pytest.mark.parametrize("view", VIEWS)
def test_views(view: View, rows: np.ndarray, relevant: ColumnViews) -> None:
    views = relevant

    def add(graph: Graph, X: str) -> str:
        return graph.add("Identity", SeenRows(graph, X, views).of(view))

    expected = views.of(view, torch.from_numpy(rows)).numpy()
    added = 4 * np.abs(rows).sum(axis=1, keepdims=True) if view == "components" else 1.0
    assert np.isclose(_answers(rows, add), expected, rtol=1e-14, atol=1e-14 * added).all()
    assert _answers(rows[:0], add).shape == (0, expected.shape[1])
    strange = np.array([np.nan, np.inf, -np.inf])[:, None].repeat(rows.shape[1], axis=1)
    expected = views.of(view, torch.from_numpy(strange)).numpy()
    expected[0] = np.nan
    if view == "levels":
        np.testing.assert_array_equal(_answers(strange, add), expected)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("family", ["rbf", "laplacian"])
def test_kernels(
    family: str, view: View, rows: np.ndarray, known: np.ndarray, relevant: ColumnViews
) -> None:
    views = relevant

    def add(graph: Graph, X: str) -> str:
        return KnownRows(SeenRows(graph, X, views), known).kernel(family, view, 0.3)

    kernel = ViewKernels(
        gamma=torch.tensor([0.3], dtype=torch.float64),
        families=(family,),
        views=(view,),
        of_columns=views,
    )
    expected = kernel.gram(torch.from_numpy(rows), torch.from_numpy(known))[0].numpy()
    np.testing.assert_allclose(_answers(rows, add), expected, rtol=0, atol=1e-11)
    assert _answers(rows[:0], add).shape == (0, len(known))


@pytest.mark.parametrize("levels", [(0.0, 0.0), (0.1, 0.0), (0.02, 0.3)], ids=str)
@pytest.mark.parametrize("alphas", [(0.5, 0.5), (-0.5, 0.0), (0.0, 0.25), (0.1, -1.0)], ids=str)
def test_links(alphas: tuple[float, float], levels: tuple[float, float]) -> None:
    tails = (*alphas, *levels)
    logits = np.linspace(-40, 40, 81)[:, None]
    found = _answers(logits, lambda graph, X: _add_bent(graph, X, tails))
    expected = bent(torch.from_numpy(logits), tails).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def _posterior(
    known: np.ndarray,
    views: ColumnViews,
    rng: np.random.Generator,
    families: tuple[str, ...],
    *,
    directions: bool,
) -> CompositePosterior:
    """Parts of some families and all views, with arbitrary coefficients."""
    p, scored = known.shape[1], np.array([1, 2, 3])
    curves = [Curve(family, "columns", 0.2) for family in families]
    curves += [Curve(family, "scores", 0.2) for family in families]
    curves += [Curve(family, "scores", 0.2, (1, 3)) for family in families]
    curves += [Curve("rbf", "levels", 0.2), Curve("laplacian", "levels", 0.2)]
    if views.relevance is not None:
        curves += [Curve("additive", "relevant scores", 0.2), Curve("rbf", "relevant levels", 0.2)]
        curves += [Curve(family, "components", 0.2) for family in ("linear", "rbf", "quadratic")]
    kernels = [(), *((curve,) for curve in curves)]
    kernels += [(curves[0], Curve("laplacian", "scores", 0.3, (2,)), curves[-1])]
    deviation = np.zeros((len(kernels), 5))
    deviation[:, :2] = 0.4, 0.7
    deviation[0, 1] = deviation[1, 1] = deviation[2, 0] = 0
    for part, kernel in enumerate(kernels):
        deviation[part, 2 : 2 + len(kernel)] = (0.9, 0.4, 0.2)[: len(kernel)]
    tails = rng.choice([0.0, 0.0, 0.4, -0.4], size=(len(kernels), 2))
    levels = rng.choice([0.0, 0.0, 0.02, 0.3], size=(len(kernels), 2))
    landmarks = Landmarks(torch.from_numpy(known), views)
    seen = landmarks.seen(landmarks.rows)
    most = max(
        sum(landmarks.values(curve, seen).shape[1] for curve in kernel) for kernel in kernels
    )
    steps = 5 if views.relevance is not None else 0
    kept = [np.linalg.qr(rng.normal(size=(width, 2)))[0] for width in (p, len(scored) + steps)]
    size = 1 + (4 if directions else p + len(scored) + steps) + most
    roots = rng.normal(size=(len(kernels), size, size)) / size
    return CompositePosterior(
        weight=np.full(len(kernels), 1 / len(kernels)),
        **stored_curves(kernels, p, 3),
        deviation=deviation,
        tails=tails,
        levels=levels,
        steep=rng.integers(0, p, len(kernels)),
        rates=rng.choice([0.0, 0.8, -0.4], size=len(kernels)),
        shapes=rng.integers(0, 1 + len(THRESHOLDS), len(kernels)),
        coefficients=rng.normal(size=(len(kernels), size)) / 2,
        quadratic=roots @ roots.transpose(0, 2, 1) - 0.01 * np.eye(size),
        landmarks=known,
        scored=scored,
        column_directions=kept[0] if directions else None,
        score_directions=kept[1] if directions else None,
        stepped=rng.integers(0, p, steps) if steps else None,
        thresholds=rng.normal(size=steps) if steps else None,
    )


@pytest.mark.parametrize(
    ("families", "atol"),
    [
        (tuple(each for each in FAMILIES[1:] if each not in ("interaction", "moderated")), 1e-12),
        (("interaction", "moderated"), 1e-9),  # sums and differences, divided by small numbers
    ],
    ids=["others", "of small numbers"],
)
@pytest.mark.parametrize("directions", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_posteriors(
    directions: bool,
    large: bool,
    families: tuple[str, ...],
    atol: float,
    known: np.ndarray,
    views: ColumnViews,
    relevant: ColumnViews,
    rng: np.random.Generator,
) -> None:
    views = relevant if large else views
    posterior = _posterior(known, views, rng, families, directions=directions)
    rows = np.concatenate([known, known + rng.normal(size=known.shape)])
    kernel = ViewKernels(
        gamma=torch.ones(1, dtype=torch.float64),
        families=("linear",),
        views=("columns",),
        of_columns=views,
    )
    moments = posterior.moments(rows, kernel, torch.device("cpu"))
    expected = logit_of_mixture(moments, posterior.weight)
    assert expected.std() > 0.01

    def add(graph: Graph, X: str) -> str:
        moments = add_posterior_moments(graph, SeenRows(graph, X, views), posterior)
        return add_logit_of_mixture(graph, *moments, posterior.weight)

    np.testing.assert_allclose(_answers(rows, add)[:, 0], expected, rtol=0, atol=atol)
    assert _answers(rows[:0], add).shape == (0, 1)
