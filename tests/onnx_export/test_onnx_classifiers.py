"""Graphs of linear classifiers of others say what the package says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from bootprob import BootstrapClassifier, BootstrapSVC
from bootprob.exceptions import DataError
from bootprob.onnx_export import export_onnx, tree_classifiers

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.filterwarnings(
    "ignore::bootprob.LackOfFitWarning", "ignore::bootprob.FewRowsWarning"
)

STRAIGHT = {
    "logistic": LogisticRegression(max_iter=1000),
    "whitened": make_pipeline(MinMaxScaler(), PCA(2, whiten=True), LinearSVC()),
    "discriminant": make_pipeline("passthrough", MaxAbsScaler(), LinearDiscriminantAnalysis()),
    "ridge": make_pipeline(RobustScaler(), RidgeClassifier()),
    "two": [make_pipeline(StandardScaler(), SGDClassifier()), LinearDiscriminantAnalysis()],
}


def rows(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Columns of other units, and what the first two of them say."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * [1, 10, 0.1] + [0, 100, 3]
    return X, X[:, 0] + (X[:, 1] - 100) / 10 + rng.normal(size=n)


def answers(path: Path, X: np.ndarray) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


@pytest.mark.parametrize("kind", STRAIGHT)
def test_linear_classifiers(kind: str, tmp_path: Path) -> None:
    X, said = rows()
    new = X + 0.5
    model = BootstrapClassifier(STRAIGHT[kind], n_bootstraps=10, random_state=0).fit(X, said > 0)
    export_onnx(model, tmp_path / "m.onnx", interval=0.9)
    found = answers(tmp_path / "m.onnx", new)
    np.testing.assert_allclose(found["probability"], model.predict_proba(new), atol=1e-9)
    assert found["label"].tolist() == model.predict(new).tolist()
    bounds = np.stack([found["probability_lower"], found["probability_upper"]], axis=-1)
    np.testing.assert_allclose(bounds, model.proba_interval(new, 0.9), atol=1e-8)


@pytest.mark.parametrize("kind", ["logistic", "two"])
def test_several_classes(kind: str, tmp_path: Path) -> None:
    X, said = rows()
    new = X + 0.5
    three = np.array(["low", "middle", "high"])[np.digitize(said, [-1, 1])]
    model = BootstrapClassifier(STRAIGHT[kind], n_bootstraps=10, random_state=0).fit(X, three)
    export_onnx(model, tmp_path / "m.onnx")
    found = answers(tmp_path / "m.onnx", new)
    np.testing.assert_allclose(found["probability"], model.predict_proba(new), atol=1e-9)
    assert found["label"].tolist() == model.predict(new).tolist()


TREES = {
    "tree": DecisionTreeClassifier(max_depth=4),
    "random": ExtraTreeClassifier(),
    "forest": RandomForestClassifier(7, bootstrap=False, max_depth=5),
    "own trees": RandomForestClassifier(30),
    "extra trees": ExtraTreesClassifier(6),
    "boosting": HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5),
    "grid": (HistGradientBoostingClassifier(min_samples_leaf=5), {"max_iter": [3, 9]}),
    "beside": [LogisticRegression(max_iter=1000), DecisionTreeClassifier(max_depth=3)],
}


OF_LIGHTGBM = {
    "default": {},
    "forest": {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1},
    "stumps": {"max_depth": 1},
    "one leaf": {"min_child_samples": 10_000},
    "a score for each": {"objective": "multiclassova"},
}


def model_of_trees(kind: str, **params: Any) -> BootstrapClassifier:
    found = TREES[kind]
    estimator, grid = found if isinstance(found, tuple) else (found, None)
    return BootstrapClassifier(estimator, grid, n_bootstraps=10, random_state=0, **params)


def on_edges(X: np.ndarray) -> np.ndarray:
    """Other rows, and those of training, whose midpoints are the thresholds of trees."""
    middles = np.sort(X, axis=0)
    return np.concatenate([X + 0.5, X, (middles[1:] + middles[:-1]) / 2])


@pytest.mark.parametrize("kind", TREES)
def test_trees(kind: str, tmp_path: Path) -> None:
    X, said = rows()
    new, model = on_edges(X), model_of_trees(kind).fit(X, said > 0)
    export_onnx(model, tmp_path / "m.onnx", interval=0.9)
    found = answers(tmp_path / "m.onnx", new)
    np.testing.assert_allclose(found["probability"], model.predict_proba(new), atol=1e-6)
    bounds = np.stack([found["probability_lower"], found["probability_upper"]], axis=-1)
    np.testing.assert_allclose(bounds, model.proba_interval(new, 0.9), atol=1e-6)


@pytest.mark.parametrize("kind", TREES)
def test_trees_of_several_classes_and_their_votes(kind: str, tmp_path: Path) -> None:
    X, said = rows()
    new = on_edges(X)
    three = np.array(["low", "middle", "high"])[np.digitize(said, [-1, 1])]
    model = model_of_trees(kind).fit(X, three)
    export_onnx(model, tmp_path / "m.onnx")
    found = answers(tmp_path / "m.onnx", new)
    np.testing.assert_allclose(found["probability"], model.predict_proba(new), atol=1e-6)
    graph = onnx.load(tmp_path / "m.onnx").graph
    used = [node.op_type for node in graph.node].count("TreeEnsembleRegressor")
    assert used == (2 if kind == "grid" else 1)  # not one for each pair
    votes = model_of_trees(kind, calibration=None, interval="wald").fit(X, said > 0)
    export_onnx(votes, tmp_path / "v.onnx")
    found = answers(tmp_path / "v.onnx", new)
    apart = np.abs(found["probability"] - votes.predict_proba(new)).max(axis=1)
    assert np.quantile(apart, 0.98) < 1e-9  # scores that are 0 vote as they are rounded


@pytest.mark.parametrize("kind", OF_LIGHTGBM)
@pytest.mark.parametrize("edges", [[0], [-1, 1]])
def test_trees_of_lightgbm(kind: str, edges: list[float], tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    X, said = rows()
    params = dict(OF_LIGHTGBM[kind])
    if "objective" in params:
        params["num_class"] = len(edges) + 1
    boosting = lightgbm.LGBMClassifier(n_estimators=9, num_leaves=7, n_jobs=1, verbose=-1, **params)
    model = BootstrapClassifier(boosting, n_bootstraps=8, random_state=0)
    model.fit(X, np.digitize(said, edges))
    export_onnx(model, tmp_path / "m.onnx")
    new = np.concatenate([on_edges(X), np.zeros((1, 3))])
    found = answers(tmp_path / "m.onnx", new)
    np.testing.assert_allclose(found["probability"], model.predict_proba(new), atol=1e-6)
    nodes = [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert nodes.count("TreeEnsembleRegressor") == 1


@pytest.mark.filterwarnings("ignore:categorical_feature")
@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"categorical_feature": [0]}, "splits categories"),
        ({"linear_tree": True}, "linear models in its leaves"),
        ({"zero_as_missing": True}, "zero_as_missing"),
        ({"pred_early_stop": True}, "pred_early_stop leaves trees out"),
    ],
)
def test_other_trees_of_lightgbm_are_refused(params: Any, said: str, tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    X, of_rows = rows()
    X[:, 0] = np.arange(90) % 6
    boosting = lightgbm.LGBMClassifier(
        n_estimators=3, min_data_per_group=5, cat_smooth=1, n_jobs=1, verbose=-1, **params
    )
    model = BootstrapClassifier(boosting, n_bootstraps=3, calibration=None, interval="wald")
    model.fit(X, X[:, 0] % 2 + 0.2 * of_rows > 0.5)
    with pytest.raises(DataError, match=said):
        export_onnx(model, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_nodes_of_trees_take_less_than_60_bytes(tmp_path: Path, monkeypatch: Any) -> None:
    X, said = rows(400)
    sizes, n_nodes = [], []
    for depth in (2, 9):
        model = BootstrapClassifier(
            RandomForestClassifier(40, max_depth=depth), calibration=None, interval="wald"
        ).fit(X, said > 0)
        export_onnx(model, tmp_path / "m.onnx")
        sizes.append((tmp_path / "m.onnx").stat().st_size)
        n_nodes.append(sum(tree.tree_.node_count for [tree] in model.estimators_))
    assert sizes[1] - sizes[0] < 60 * (n_nodes[1] - n_nodes[0])
    monkeypatch.setattr(tree_classifiers, "MOST_BYTES", 60 * n_nodes[1] - 1)
    with pytest.raises(DataError, match=f"The trees have {n_nodes[1]:,} nodes"):
        export_onnx(model, tmp_path / "n.onnx")
    monkeypatch.setitem(sys.modules, "skl2onnx.common", None)
    with pytest.raises(DataError, match="pip install skl2onnx"):
        export_onnx(model, tmp_path / "n.onnx")
    assert not (tmp_path / "n.onnx").exists()


def test_columns_with_names_votes_and_one_fitted_before(tmp_path: Path) -> None:
    X, said = rows()
    frame = pd.DataFrame(X, columns=["age", "size", "kids"])
    made = {
        "votes": (LogisticRegression(max_iter=1000), {"calibration": None, "interval": "wald"}),
        "isotonic": (LogisticRegression(max_iter=1000), {"calibration": "isotonic"}),
        "frozen": (FrozenEstimator(STRAIGHT["ridge"].fit(frame[:50], said[:50] > 0)), {}),
        "frozen trees": (
            FrozenEstimator(RandomForestClassifier(5).fit(frame[:50], said[:50] > 0)),
            {},
        ),
        "ties": (
            FrozenEstimator(DecisionTreeClassifier(max_depth=2).fit(frame[:50], said[:50] > 0)),
            {"calibration": "venn-abers"},
        ),
    }
    for name, (estimator, params) in made.items():
        model = BootstrapClassifier(estimator, n_bootstraps=8, random_state=0, **params)
        model.fit(frame[50:], said[50:] > 0)
        export_onnx(model, tmp_path / "m.onnx")
        found = answers(tmp_path / "m.onnx", X)["probability"]
        np.testing.assert_allclose(found, model.predict_proba(frame), atol=1e-9, err_msg=name)
        if name == "frozen trees":
            with pytest.raises(DataError, match="that was fitted before are not exported"):
                export_onnx(model, tmp_path / "m.onnx", interval=0.9)


def test_leaves_that_are_nearly_pure_are_told_apart(tmp_path: Path) -> None:
    """Of a share near 1, as float32, what is left has few digits; the other class's has all."""
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(20_000, 2)), rng.normal(size=(4000, 2))
    flipped = rng.random(20_000) < 0.001
    tree = DecisionTreeClassifier(max_leaf_nodes=6, min_samples_leaf=500, random_state=0)
    before = FrozenEstimator(tree.fit(X, (X[:, 0] > 0) ^ flipped))
    model = BootstrapClassifier(
        before, n_bootstraps=10, calibration="venn-abers", random_state=0
    ).fit(new, new[:, 0] + 0.3 * rng.normal(size=4000) > 0)
    export_onnx(model, tmp_path / "m.onnx")
    found = answers(tmp_path / "m.onnx", new)["probability"]
    np.testing.assert_allclose(found, model.predict_proba(new), atol=1e-6)


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (GaussianNB(), "GaussianNB is not exported as ONNX: a graph has linear classifiers"),
        (make_pipeline(StandardScaler(), DecisionTreeClassifier()), "Pipeline is not exported"),
        (HistGradientBoostingClassifier(max_iter=2, categorical_features=[0]), "splits categories"),
        (make_pipeline(MinMaxScaler(clip=True), LogisticRegression()), "Pipeline is not exported"),
        (make_pipeline(PolynomialFeatures(), RidgeClassifier()), "Pipeline is not exported"),
        (
            make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
            "Pipeline is not exported",
        ),
        ([DecisionTreeClassifier(), GaussianNB()], "GaussianNB is not exported"),
        ([BootstrapSVC(kernel="linear", C=1.0), LogisticRegression()], "BootstrapSVC among"),
    ],
)
def test_others_are_refused(estimator: Any, said: str, tmp_path: Path) -> None:
    X, of_rows = rows(50)
    params: dict[str, Any] = {"n_bootstraps": 4, "calibration": None, "interval": "wald"}
    model = BootstrapClassifier(estimator, random_state=0, **params).fit(X.round(), of_rows > 0)
    with pytest.raises(DataError, match=said):
        export_onnx(model, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


class Bent(LogisticRegression):
    """Calls itself linear, and is not."""

    def decision_function(self, X: Any) -> Any:
        return np.abs(super().decision_function(X))


def test_what_is_bent_is_seen_to_be_and_tables_are_refused(tmp_path: Path) -> None:
    X, said = rows(50)
    params: dict[str, Any] = {"n_bootstraps": 4, "calibration": None, "interval": "wald"}
    model = BootstrapClassifier(Bent(max_iter=1000), random_state=0, **params).fit(X, said > 0)
    with pytest.raises(DataError, match="Bent is not exported"):
        export_onnx(model, tmp_path / "m.onnx")
    frame = pd.DataFrame({"age": X[:, 0], "house": np.where(X[:, 1] > 100, "own", "rent")})
    pipeline = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    model = BootstrapClassifier(pipeline, random_state=0, **params).fit(frame, said > 0)
    with pytest.raises(DataError, match="given a data frame with categories, or gaps"):
        export_onnx(model, tmp_path / "m.onnx")
