"""Explanations of several classes, beside brute force, the package's intervals and two classes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations as orders_of
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

from bootprob import BootstrapClassifier, BootstrapSVC, save
from bootprob.calibration.coupling import class_pairs, couple
from bootprob.cli.__main__ import app
from bootprob.ensemble import cross_fitted_proba
from bootprob.ensemble.fitted import ensemble_of
from bootprob.ensemble.left_out_classes import LeftOutClasses
from bootprob.exceptions import DataError
from bootprob.explanation import (
    class_log_odds,
    contributions,
    known_rows,
    partial_dependence,
    permutation_importance,
)
from bootprob.explanation.answers import Explained
from bootprob.explanation.permuted_rows import permutations
from bootprob.runtime.row_blocks import row_blocks
from bootprob.tables import TableModel

pytestmark = pytest.mark.filterwarnings(
    "ignore::bootprob.LackOfFitWarning", "ignore::bootprob.FewRowsWarning"
)

Rows = tuple[np.ndarray, np.ndarray]
MODELS = {
    "bayes": BootstrapClassifier(GaussianNB(), n_bootstraps=12, random_state=0),
    "auto": BootstrapSVC(effort="low", n_bootstraps=12, random_state=0),
    "linear": BootstrapSVC(kernel="linear", C=[0.1, 1.0], n_bootstraps=12, random_state=0),
    "rbf": BootstrapSVC(kernel="rbf", C=1.0, n_bootstraps=12, random_state=0),
}


@pytest.fixture(scope="module")
def rows() -> Rows:
    """The first column tells "low" from the others, the second these; the third nothing."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 3))
    said = np.stack([-1.5 * X[:, 0], X[:, 1], -X[:, 1]], axis=1) + rng.gumbel(size=(120, 3))
    return X, np.array(["low", "mid", "top"])[said.argmax(axis=1)]


@pytest.fixture(scope="module", params=MODELS)
def fitted(request: pytest.FixtureRequest, rows: Rows) -> Any:
    return clone(MODELS[request.param]).fit(*rows)


def log_odds(model: Any, X: np.ndarray, k: int) -> np.ndarray:
    return logit(model.predict_proba(X)[:, k])


@pytest.mark.parametrize("label", ["low", "top"])
def test_contributions_are_shapley_values_of_the_class(fitted: Any, rows: Rows, label: str) -> None:
    X, others, k = rows[0][:2], rows[0][10:12], list(fitted.classes_).index(label)
    found = contributions(fitted, X, others, label=label)
    assert found.label == label
    orders = list(orders_of(range(3)))
    paths = np.repeat(others[:, None, None], 6, axis=1).repeat(4, axis=2)  # (2, 6, 4, 3)
    for order, path in zip(orders, np.moveaxis(paths, 1, 0), strict=True):
        for step, column in enumerate(order):
            path[:, step + 1 :, column] = X[0, column]
    added = np.diff(log_odds(fitted, paths.reshape(-1, 3), k).reshape(2, 6, 4), axis=2)
    expected = np.zeros(3)
    for order, of_order in zip(orders, added.mean(axis=0), strict=True):
        expected[list(order)] += of_order / 6
    np.testing.assert_allclose(found.contribution[0], expected, atol=1e-8)
    total = found.base + found.contribution.sum(axis=1)
    np.testing.assert_allclose(total, log_odds(fitted, X, k), atol=1e-8)
    lower, upper = np.moveaxis(found.interval, -1, 0)
    assert ((lower <= found.contribution) & (found.contribution <= upper)).all()


def test_intervals_of_single_rows_are_those_of_their_probability(fitted: Any, rows: Rows) -> None:
    """Where nothing is combined: of posteriors `proba_interval`, of others coupled replicates."""
    X, explained = rows[0][:4], Explained.of_class(fitted, "top")[0]
    found = explained.intervals(X, np.eye(4), 0.9)
    replicates = logit(ensemble_of(fitted).replicate_proba(explained.taken(X))[..., 2])
    expected = np.quantile(replicates, [0.05, 0.95], axis=1).T
    if getattr(fitted, "kernel", "auto") == "auto":
        expected = logit(fitted.proba_interval(X, 0.9)[:, 2])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    shares = np.full((1, 4), 0.25)
    middle, alone = explained.intervals(X, shares, 0.9)[0], found.mean(axis=0)
    assert alone[0] < middle[0] < middle[1] < alone[1]  # errors of rows do not all go together


def test_replicates_are_asked_block_by_block(
    fitted: Any, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, explained, n_rows = rows[0][:4], Explained.of_class(fitted, "top")[0], []
    mixing = np.array([[0.25, 0.25, 0.25, 0.25], [1.0, -1.0, 0.0, 0.0]])
    expected = explained.intervals(X, mixing, 0.9)

    def single(n: int, numbers_per_row: int) -> Iterator[slice]:
        n_rows.append(n)
        return row_blocks(n, numbers_per_row, 1)

    monkeypatch.setattr(class_log_odds, "row_blocks", single)
    np.testing.assert_allclose(explained.intervals(X, mixing, 0.9), expected, atol=1e-9)
    assert set(n_rows) == {4}


def test_curves_follow_the_class(fitted: Any, rows: Rows) -> None:
    X = rows[0][:6]
    found = partial_dependence(fitted, "x1", X, values=[-1.0, 1.0], label="mid")
    for value, expected in zip(found.values, found.log_odds, strict=True):
        moved = X.copy()
        moved[:, 1] = value
        assert log_odds(fitted, moved, 1).mean() == pytest.approx(expected)
    assert found.label == "mid"
    assert found.log_odds[0] < found.log_odds[1]


def test_importance_of_held_out_rows_is_of_the_log_loss(fitted: Any, rows: Rows) -> None:
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 3)), rng.permutation(np.repeat(["low", "mid", "top"], 20))
    found = permutation_importance(fitted, X, y, held_out=True, n_repeats=2, seed=3)
    before = log_loss(y, fitted.predict_proba(X), labels=fitted.classes_)
    assert found.baseline == pytest.approx(before)
    for k, donors in enumerate(permutations(60, 2, np.random.default_rng(3))):
        moved = X.copy()
        moved[:, 0] = X[donors, 0]
        after = log_loss(y, fitted.predict_proba(moved), labels=fitted.classes_)
        assert found.importances[0, k] == pytest.approx(after - before)


def test_training_rows_are_asked_out_of_bag(rows: Rows) -> None:
    """Every pair by the replicates that did not draw a row, calibrated without its label."""
    X, y = rows
    model = clone(MODELS["linear"]).fit(X, y)
    changed = X + 1
    outside = model.bootstrap_counts().T == 0

    def of_pair(pair: BootstrapSVC, at: np.ndarray) -> np.ndarray:
        raw = np.concatenate(list(pair.bootstrap_scores(at)))  # (n, R, B)
        scores = np.einsum("nrb,r->nb", raw, pair.weights_) / pair.score_scale_
        return ((scores + pair.score_offset_) * outside).sum(axis=1) / outside.sum(axis=1)

    second, moved = np.empty((120, 3)), np.empty((120, 3))
    for p, (pair, classes) in enumerate(zip(model.pair_ensembles_, class_pairs(3), strict=True)):
        own = np.isin(y, model.classes_[[*classes]])
        slope, intercept = pair.sigmoid_
        second[:, p] = expit(slope * of_pair(pair, X) + intercept)
        second[own, p] = cross_fitted_proba(pair)
        moved[:, p] = of_pair(pair, changed)
    expected = couple(second)[np.arange(120), model.y_]
    found = permutation_importance(model, X, y, n_repeats=2)
    assert found.baseline == pytest.approx(-np.log(expected).mean())
    assert found.interval[0, 0] > 0
    assert found.interval[1, 0] > 0
    assert found.interval[2, 0] < 0 < found.interval[2, 1]
    whole = Explained.of(model)
    asked = LeftOutClasses(whole.ensemble, whole.state, np.arange(120), X, whole.taken)
    some = slice(30, 80)
    [said] = asked.said(some, iter([changed[None, some]]))
    np.testing.assert_allclose(said.score[1], moved[some], atol=1e-9)
    assert (said.doubt > 0).all()


def test_importance_out_of_bag_of_posteriors_and_of_one_fitted_before(rows: Rows) -> None:
    X, y = rows
    frozen = FrozenEstimator(GaussianNB().fit(X[:60], y[:60]))
    models = {
        "auto": (clone(MODELS["auto"]), rows),
        "votes": (clone(MODELS["linear"]).set_params(calibration="sigmoid-both"), rows),
        "frozen": (BootstrapClassifier(frozen, n_bootstraps=12, random_state=0), (X[60:], y[60:])),
    }
    for name, (model, of_fit) in models.items():
        found = permutation_importance(model.fit(*of_fit), *of_fit, n_repeats=2)
        assert (found.interval[:2, 0] > 0).all(), name
        assert found.interval[2, 0] < 0 < found.interval[2, 1], name
        assert found.baseline < np.log(3), name
    with pytest.raises(DataError, match="These are not the rows of fit"):
        permutation_importance(models["auto"][0], X[::-1])


def test_tables_with_text_are_explained_by_class(rows: Rows, tmp_path: Path) -> None:
    X, y = rows
    frame = pd.DataFrame({"age": X[:, 0], "home": np.where(X[:, 1] > 0, "own", "rent"), "kind": y})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame[:3].to_csv(tmp_path / "few.csv", index=False)
    model = TableModel.fit(
        frame, "kind", all_classes=True, kernel="rbf", C=1.0, n_bootstraps=8, random_state=0
    )
    save(model, tmp_path / "m.model")

    def run(rows: str, *given: str, said: str = "") -> pd.DataFrame:
        written = tmp_path / "why.csv"
        rest = [str(tmp_path / rows), "-o", str(written), *given]
        found = CliRunner().invoke(app, ["explain", str(tmp_path / "m.model"), *rest])
        assert found.exit_code == 0, found.output
        assert said in " ".join(found.stdout.split())
        return pd.read_csv(written)

    lines = run("few.csv", said="a line for each class and column.")
    assert len(lines) == 3 * 2 * 3
    first = lines[(lines["row"] == 1) & (lines["class"] == "top")]
    expected = contributions(model, frame[:1], label="top")
    one = dict(zip(first["column"], first["contribution"], strict=True))
    assert one == pytest.approx(
        dict(zip(expected.columns, expected.contribution[0], strict=True)), abs=1e-6
    )
    one = run("few.csv", "--class", "mid", said="a line for each column, of the log-odds of mid.")
    assert set(one["class"]) == {"mid"}
    columns = run("rows.csv", "--importance", "training")
    assert sorted(columns["column"]) == ["age", "home"]
    assert (columns["lower"] > 0).all()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "no label is given; the model has low, mid, top"),
        ({"label": "mad"}, "label is 'mad'; the model has low, mid, top"),
        ({"label": np.array(["low", "mid"])}, r"label is array.*; the model has low, mid, top"),
    ],
)
def test_a_class_has_to_be_said(wrong: dict[str, Any], said: str, rows: Rows) -> None:
    X, y = rows
    model = clone(MODELS["linear"]).fit(X, y)
    with pytest.raises(DataError, match=said):
        contributions(model, X[:1], X, **wrong)
    with pytest.raises(DataError, match=said):
        partial_dependence(model, 0, X, **wrong)
    with pytest.raises(DataError, match="of several classes importance is by the log-loss"):
        permutation_importance(model, X, y, metric="auc")
    low = y == "low"
    sizes = rf"of each class \[{low.sum()}, 0, 0\]; 10 rows of two classes or more are needed"
    with pytest.raises(DataError, match=sizes):
        permutation_importance(model, X[low], y[low], held_out=True)


def test_classes_are_listed_in_short() -> None:
    many = SimpleNamespace(classes_=np.arange(20))
    with pytest.raises(DataError, match=r"those of the model, 0, 1, .*, 13, 14 …"):
        known_rows._codes(many, np.array([3, 20]))


def test_of_two_classes_either_can_be_explained(rows: Rows) -> None:
    X, y = rows[0], rows[1] == "low"
    for model in (clone(MODELS["linear"]), clone(MODELS["auto"])):
        model.fit(X, y)
        one, other = (contributions(model, X[:2], X[:9], label=each) for each in (True, False))
        np.testing.assert_allclose(one.contribution, -other.contribution)
        np.testing.assert_allclose(one.interval, -other.interval[..., ::-1])
        np.testing.assert_allclose(one.probability, 1 - other.probability)
        np.testing.assert_allclose(
            one.contribution, contributions(model, X[:2], X[:9]).contribution
        )
