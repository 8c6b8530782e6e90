"""Classifiers fitted to data frames with categories and gaps, or before, are explained as given."""

from __future__ import annotations

import json
from itertools import combinations
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from scipy.special import logit
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

from bootprob import BootstrapClassifier
from bootprob.cli.__main__ import app
from bootprob.ensemble import cross_fitted_proba
from bootprob.ensemble.out_of_bag_proba import cross_fitted_calibrators
from bootprob.ensemble.state import two_class_state
from bootprob.exceptions import DataError
from bootprob.explanation import contributions, partial_dependence, permutation_importance
from bootprob.explanation.given_values import GivenValues
from bootprob.explanation.permuted_rows import permutations
from bootprob.intervals.replicates import percentile
from bootprob.persistence.save_load import save
from bootprob.report import write_report
from bootprob.server import create_app

pytestmark = pytest.mark.filterwarnings(
    "ignore::bootprob.LackOfFitWarning", "ignore::bootprob.FewRowsWarning"
)
Frame = tuple[pd.DataFrame, np.ndarray]


def applicants(n: int = 80) -> Frame:
    """Gaps that tell, categories in an order of their own, integers, and text that never recurs."""
    rng = np.random.default_rng(3)
    age, size = rng.normal(size=(2, n))
    y = (age + np.sin(3 * size) + 0.5 * rng.normal(size=n) > 0).astype(int)
    frame = pd.DataFrame({"age": age, "kids": rng.integers(0, 3, n)})
    houses = np.where(size > 0, "own", "rent").astype(object)
    houses[::6] = None
    frame["house"] = pd.Categorical(houses, ["rent", "own", "ship"])
    frame["letter"] = [f"row{k} {'dear' if one else 'oh'}" for k, one in enumerate(y)]
    frame.loc[y == 1, "age"] = frame.loc[y == 1, "age"].where(rng.random((y == 1).sum()) < 0.7)
    return frame, y


def pipeline() -> Any:
    """That what is missing tells, the posterior cannot know."""
    columns = make_column_transformer(
        (CountVectorizer(vocabulary=["dear", "oh"]), "letter"),
        (OneHotEncoder(handle_unknown="ignore"), ["house", "kids"]),
        (SimpleImputer(strategy="constant", fill_value=0.0, add_indicator=True), ["age"]),
    )
    return make_pipeline(columns, LogisticRegression())


@pytest.fixture(scope="module")
def frame() -> Frame:
    return applicants()


@pytest.fixture(scope="module")
def fitted(frame: Frame) -> BootstrapClassifier:
    return BootstrapClassifier(pipeline(), n_bootstraps=12, random_state=0).fit(*frame)


@pytest.fixture(scope="module")
def frozen(frame: Frame) -> BootstrapClassifier:
    X, y = frame
    before = FrozenEstimator(pipeline().fit(X[:30], y[:30]))
    return BootstrapClassifier(before, n_bootstraps=15, random_state=0).fit(X[30:], y[30:])


def log_odds(model: Any, X: pd.DataFrame) -> np.ndarray:
    return logit(model.predict_proba(X)[:, 1])


def shapley(answer: Any, row: pd.DataFrame, others: pd.DataFrame) -> dict[str, Any]:
    """By definition, over all coalitions and all other rows."""
    names, m = list(row.columns), len(others)
    worth = {}
    for size in range(len(names) + 1):
        for inside in combinations(names, size):
            mixed = others.reset_index(drop=True)
            for name in inside:
                mixed[name] = pd.concat([row[name]] * m, ignore_index=True)
            worth[frozenset(inside)] = answer(mixed.astype(row.dtypes)).mean(axis=0)
    q = len(names)
    found = {}
    for name in names:
        rest = [each for each in worth if name not in each]
        share = {k: factorial(k) * factorial(q - 1 - k) / factorial(q) for k in range(q)}
        found[name] = sum(share[len(each)] * (worth[each | {name}] - worth[each]) for each in rest)
    return found


@pytest.mark.parametrize("which", ["fitted", "frozen"])
def test_contributions_are_shapley_values_of_what_was_given(
    which: str, frame: Frame, request: pytest.FixtureRequest
) -> None:
    model = request.getfixturevalue(which)
    X, others = frame[0].iloc[[0, 6, 13]], frame[0].iloc[40:44]
    found = contributions(model, X, others)
    assert set(found.columns) == set(X.columns)
    for k in range(3):
        expected = shapley(lambda mixed: log_odds(model, mixed), X.iloc[[k]], others)
        own = dict(zip(found.columns, found.contribution[k], strict=True))
        assert own == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(found.probability, model.predict_proba(X)[:, 1])
    assert found.base == pytest.approx(log_odds(model, others).mean())
    lower, upper = found.interval[..., 0], found.interval[..., 1]
    assert ((lower <= found.contribution) & (found.contribution <= upper)).all()


def test_intervals_of_one_fitted_before_are_those_of_its_calibration(
    frozen: BootstrapClassifier, frame: Frame
) -> None:
    X, others = frame[0].iloc[[6]], frame[0].iloc[40:44]
    found = contributions(frozen, X, others, level=0.8)
    scored = shapley(frozen.estimators_[0][0].decision_function, X, others)
    slopes = frozen.sigmoid_replicates_[:, 0]
    for at, name in enumerate(found.columns):
        lower, upper = np.quantile(slopes * scored[name], [0.1, 0.9])
        value = found.contribution[0, at]
        assert found.interval[0, at, 0] == pytest.approx(min(lower, value), abs=0.05)
        assert found.interval[0, at, 1] == pytest.approx(max(upper, value), abs=0.05)


def test_intervals_of_what_the_posterior_does_not_see_are_percentiles(
    fitted: BootstrapClassifier, frame: Frame
) -> None:
    X, others = frame[0].iloc[[13]], frame[0].iloc[40:44]
    found = contributions(fitted, X, others)
    at = found.columns.index("letter")

    def of_replicates(mixed: pd.DataFrame) -> np.ndarray:
        return logit(fitted.bootstrap_proba(mixed)[..., 1]).T

    expected = percentile(shapley(of_replicates, X, others)["letter"][None], 0.95)[0]
    np.testing.assert_allclose(found.interval[0, at], expected)
    assert expected[0] < found.contribution[0, at] < expected[1]


@pytest.mark.parametrize("which", ["fitted", "frozen"])
def test_curves_are_means_over_what_was_given(
    which: str, frame: Frame, request: pytest.FixtureRequest
) -> None:
    model, others = request.getfixturevalue(which), frame[0].iloc[:20]
    of_houses = partial_dependence(model, "house", others)
    assert of_houses.values.tolist() == ["own", "rent"]
    for value, told in zip(of_houses.values, of_houses.log_odds, strict=True):
        same = pd.Categorical([value] * 20, others["house"].cat.categories)
        assert told == pytest.approx(log_odds(model, others.assign(house=same)).mean())
    for name, values in {"age": [-0.5, 1.25], "kids": [0, 2]}.items():
        curve = partial_dependence(model, name, others, values=values)
        for value, told in zip(values, curve.log_odds, strict=True):
            assert told == pytest.approx(log_odds(model, others.assign(**{name: value})).mean())
    with pytest.raises(DataError, match="'letter' is one that the classifiers alone look at"):
        partial_dependence(model, "letter", others)


def test_importance_of_held_out_rows(fitted: BootstrapClassifier, frame: Frame) -> None:
    X, y = frame
    found = permutation_importance(fitted, X, y, held_out=True, n_repeats=2, seed=5)
    loss = log_loss(y, fitted.predict_proba(X)[:, 1])
    assert found.baseline == pytest.approx(loss)
    donors = permutations(80, 2, np.random.default_rng(5))
    for name, rises in zip(found.columns, found.importances, strict=True):
        for donor, rise in zip(donors, rises, strict=True):
            dealt = X[name].iloc[donor].reset_index(drop=True)
            moved = log_loss(y, fitted.predict_proba(X.assign(**{name: dealt}))[:, 1])
            assert rise == pytest.approx(moved - loss)
    both = permutation_importance(fitted, X, columns={"two": ["house", "age"]}, n_repeats=2)
    assert both.columns == ["two"]


def test_importance_out_of_bag(fitted: BootstrapClassifier, frame: Frame) -> None:
    X, y = frame
    found = permutation_importance(fitted, X, n_repeats=2)
    assert found.baseline == pytest.approx(log_loss(y, cross_fitted_proba(fitted)))
    assert found.to_frame()["column"].iloc[0] in ("age", "letter")
    with pytest.raises(DataError, match="These are not the rows of fit"):
        permutation_importance(fitted, X[::-1])


def test_importance_for_one_fitted_before(frozen: BootstrapClassifier, frame: Frame) -> None:
    X, y = frame[0][30:].reset_index(drop=True), frame[1][30:]
    found = permutation_importance(frozen, X, n_repeats=2, seed=1)
    loss = log_loss(y, cross_fitted_proba(frozen))
    assert found.baseline == pytest.approx(loss)
    calibrators = cross_fitted_calibrators(two_class_state(frozen, "tests"))[0]
    donors = permutations(50, 2, np.random.default_rng(1))
    for name, rises in zip(found.columns, found.importances, strict=True):
        for donor, rise in zip(donors, rises, strict=True):
            dealt = X.assign(**{name: X[name].iloc[donor].reset_index(drop=True)})
            score = frozen.decision_function(dealt)
            moved = log_loss(y, calibrators.predict(score, None))
            assert rise == pytest.approx(moved - loss, abs=1e-9)


def test_a_matrix_with_gaps() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] > 0
    X[::5, 1] = np.nan
    boosting = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5)
    model = BootstrapClassifier(boosting, n_bootstraps=6, random_state=0).fit(X, y)
    others, row = X[10:14], X[[5]]
    found = contributions(model, row, others)
    expected = shapley(
        lambda mixed: log_odds(model, mixed.to_numpy()), pd.DataFrame(row), pd.DataFrame(others)
    )
    np.testing.assert_allclose(found.contribution[0], list(expected.values()), atol=1e-9)
    curve = partial_dependence(model, 1, others, values=[0.5])
    moved = np.column_stack([others[:, 0], np.full(4, 0.5)])
    assert curve.log_odds[0] == pytest.approx(log_odds(model, moved).mean())


def test_values_of_several_frames_are_told_apart() -> None:
    first = pd.DataFrame({"a": pd.Categorical(["x", None], ["y", "x"]), "b": [1, 2]})
    second = pd.DataFrame({"a": pd.Categorical(["new"], ["new"]), "b": [7]}, index=[9])
    given = GivenValues(
        [
            {"name": "a", "kind": "text", "categories": ["y", "x"], "ordered": False},
            {"name": "b", "kind": "number", "dtype": "int64"},
        ]
    )
    given.numbered(first)
    apart = given.copy()
    assert given.numbered(second).tolist() == [[2.0, 2.0]]
    made = given.rows(np.array([[2, 0], [0, 2], [1, 1]]))
    assert made["a"].cat.categories.tolist() == ["y", "x", "new"]
    assert made["a"].astype(object).where(made["a"].notna(), None).tolist() == ["new", "x", None]
    assert made["b"].tolist() == [1, 7, 2]
    assert made["b"].dtype == np.int64
    assert apart.number_values(0, ["y"]).tolist() == [2.0]  # it knows nothing of the second
    assert apart.rows(np.array([[2, 1]]))["a"].tolist() == ["y"]


def test_reports_say_it_too(fitted: BootstrapClassifier, frame: Frame, tmp_path: Path) -> None:
    content = write_report({"m": fitted}, tmp_path / "r.html", title="T", training=frame[0])
    effects = content["models"][0]["effects"]
    importance = permutation_importance(fitted, frame[0], n_repeats=3, max_rows=500)
    assert effects["importance"]["columns"] == importance.to_frame().to_dict("records")
    assert "letter" not in [curve["column"] for curve in effects["dependence"]]
    assert effects["importance"]["without_curve"] == ["letter"]
    page = " ".join((tmp_path / "r.html").read_text(encoding="utf-8").split())
    assert "letter: without a curve" in page


def test_reports_of_several_classes_say_it_too(frame: Frame, tmp_path: Path) -> None:
    X, y = frame
    three = np.where(X["age"] > 0.5, 2, y)
    model = BootstrapClassifier(pipeline(), n_bootstraps=6, random_state=0).fit(X, three)
    content = write_report({"m": model}, tmp_path / "r.html", title="T", training=X)
    assert content["models"][0]["effects"]["importance"]["without_curve"] == ["letter"]
    page = " ".join((tmp_path / "r.html").read_text(encoding="utf-8").split())
    assert page.count("letter: without a curve") == 1


def test_the_command_line(fitted: BootstrapClassifier, frame: Frame, tmp_path: Path) -> None:
    X, y = frame
    save(fitted, tmp_path / "m.model")
    X.assign(**{"class": y}).to_csv(tmp_path / "t.csv", index=False)
    X[:3].to_parquet(tmp_path / "new.parquet")

    def run(*arguments: object) -> Any:
        given = ["explain", tmp_path / "m.model", *arguments]
        result = CliRunner().invoke(app, [*map(str, given), "--trust", "numpy.dtype"])
        assert result.exit_code == 0, result.output
        return result

    background = ["--background", tmp_path / "t.csv"]
    run(tmp_path / "new.parquet", "-o", tmp_path / "why.csv", *background)
    written = pd.read_csv(tmp_path / "why.csv")
    expected = contributions(fitted, X[:3], X).to_frame()
    np.testing.assert_allclose(written["contribution"], expected["contribution"], atol=1e-9)
    assert written["column"].tolist() == expected["column"].tolist()
    for rows in ("training", "held-out"):
        run(tmp_path / "t.csv", "--importance", rows, "-o", tmp_path / "columns.csv")
        told = permutation_importance(fitted, X, y, held_out=rows == "held-out").to_frame()
        written = pd.read_csv(tmp_path / "columns.csv")
        np.testing.assert_allclose(written["importance"], told["importance"], atol=1e-9)
    given = ["report", tmp_path / "m.model", "--held-out", tmp_path / "t.csv", "--trust"]
    result = CliRunner().invoke(app, [*map(str, given), "numpy.dtype", "-o", f"{tmp_path}/r.html"])
    assert result.exit_code == 0, result.output
    numbers = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["models"][0]
    found = {
        each["column"]: each["importance"] for each in numbers["effects"]["importance"]["columns"]
    }
    told = permutation_importance(fitted, X, y, held_out=True, n_repeats=3, max_rows=500)
    assert found == pytest.approx(dict(zip(told.columns, told.importances_mean, strict=True)))
    assert numbers["stability"]["held_out"]


def test_the_server_explains_by_rows_that_the_posterior_keeps(frame: Frame) -> None:
    X, y = frame
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="error"), ["kids"]),  # it is told integers
        (OneHotEncoder(handle_unknown="ignore"), ["house"]),
        (SimpleImputer(add_indicator=True), ["age"]),
    )
    model = BootstrapClassifier(
        make_pipeline(columns, LogisticRegression()), n_bootstraps=6, random_state=0
    ).fit(X[["age", "kids", "house"]], y)
    with TestClient(create_app(model)) as client:
        assert client.get("/v2/models/model").json()["parameters"]["explains"]
        records = [{"age": None, "kids": 1, "house": "own"}, {"age": 0.5, "kids": 2, "house": None}]
        for _ in range(2):
            reply = client.post("/predict", json={"records": records, "explain": True})
            assert reply.status_code == 200, reply.text
            for each in reply.json()["predictions"]:
                told = each["explanation"]
                total = told["base"] + sum(one["contribution"] for one in told["contributions"])
                assert total == pytest.approx(logit(each["probability"]))


@pytest.mark.parametrize(
    ("which", "said"), [("fitted", "look at 'letter'"), ("frozen", "does not keep its training")]
)
def test_what_a_server_cannot_compare_with(
    which: str, said: str, request: pytest.FixtureRequest
) -> None:
    with TestClient(create_app(request.getfixturevalue(which))) as client:
        record = {"age": 0.1, "kids": 1, "house": "own", "letter": "oh"}
        reply = client.post("/predict", json={"records": [record], "explain": True})
        assert reply.status_code == 422
        assert said in reply.text
