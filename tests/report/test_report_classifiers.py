"""Reports and cards of classifiers of others: what was fitted, and nothing of machines."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from bootprob import BootstrapClassifier, BootstrapSVC, save
from bootprob.cli.__main__ import app
from bootprob.explanation import partial_dependence, permutation_importance
from bootprob.report import model_card, write_report
from bootprob.report.model.members import candidate_names, weights_of
from bootprob.report.wording import percent
from linear_models import linear

VOTES: dict[str, Any] = {
    "n_bootstraps": 5,
    "calibration": None,
    "interval": "wald",
    "random_state": 0,
}
TREE = "sklearn.tree._tree.Tree"


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(2).normal(size=(80, 2))
    return X, np.where(X[:, 0] + 0.6 * np.sin(8 * X[:, 1]) > 0, "yes", "no")


def page(models: dict[str, Any], path: Path, **more: Any) -> tuple[str, dict[str, Any]]:
    """The words of a page, without figures, and its numbers."""
    content = write_report(models, path / "report.html", title="T", **more)
    text = (path / "report.html").read_text(encoding="utf-8")
    text = re.sub(r"<(svg|style|head).*?</\1>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split()), content


def says_nothing_of_machines(text: str) -> None:
    text = text.replace("(Algorithm 2: bootstrap support vector machines)", "")  # of formulas
    assert not re.findall(r"[^.]*(?:machine|kernel|γ|duality|Undefined)[^.]*", text, re.IGNORECASE)


def test_a_grid(table: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": [0.01, 1.0]}
    model = BootstrapClassifier(estimator, grid, **VOTES).fit(*table)
    text, content = page({"logistic": model}, tmp_path)
    says_nothing_of_machines(text)
    assert "a committee of 10 classifiers (StandardScaler and LogisticRegression)" in text
    assert "each row was judged only by classifiers that had not seen it" in text
    [found] = content["models"]
    assert found["convergence"] is None
    assert found["grid"]["candidate"] == [
        "logisticregression__C = 0.01",
        "logisticregression__C = 1.0",
    ]
    np.testing.assert_allclose(found["grid"]["weight"], model.weights_)
    np.testing.assert_allclose(found["grid"]["accuracy"], np.nanmean(model.accuracy_, axis=0))
    assert "Parameters of the classifier are settings" in text
    assert "param_grid {'logisticregression__C': [0.01, 1.0]}" in text


def test_one_classifier_has_no_settings(
    table: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    forest = RandomForestClassifier(12, min_samples_leaf=3)
    text, content = page({"f": BootstrapClassifier(forest, **VOTES).fit(*table)}, tmp_path)
    says_nothing_of_machines(text)
    assert "a forest of 12 trees, and each row was judged only by trees" in text
    assert "Which settings carry the answer?" not in text
    assert content["models"][0]["grid"] is None


def test_several_beside_machines(table: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    both = BootstrapClassifier([GaussianNB(), GaussianNB(), LogisticRegression()], **VOTES)
    both.fit(*table)
    assert candidate_names(both) == ["GaussianNB (1)", "GaussianNB (2)", "LogisticRegression"]
    svc = linear(n_bootstraps=5, C=[0.1, 1.0], random_state=0).fit(*table)
    text, content = page({"svm": svc, "others": both}, tmp_path)
    assert "10 of 10 machines solved to tolerance" in text or "15 classifiers of" in text
    assert "Was every machine solved?" in text
    assert [model["classifier"] for model in content["models"]] == [
        None,
        "GaussianNB + LogisticRegression",
    ]
    assert "Kernel or classifier" in text


@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")
def test_one_that_was_fitted_before(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    order, X = rng.permutation(150), X + rng.normal(size=X.shape)
    known, new = order[:75], order[75:]
    frozen = FrozenEstimator(GaussianNB().fit(X[known], y[known]))
    model = BootstrapClassifier(frozen, n_bootstraps=10, random_state=0).fit(X[new], y[new])
    text, _ = page({"bayes": model}, tmp_path)
    says_nothing_of_machines(text)
    assert "a classifier that was fitted before (GaussianNB), calibrated on these rows" in text
    card = model_card(model).render()
    assert "A classifier that was fitted before (GaussianNB; calibrated on 10 bootstrap" in card
    assert "machine" not in card
    two = new[y[new] > 0]
    frozen = FrozenEstimator(GaussianNB().fit(X[known][y[known] > 0], y[known][y[known] > 0]))
    model = BootstrapClassifier(frozen, n_bootstraps=10, random_state=0).fit(X[two], y[two])
    text, _ = page({"bayes": model}, tmp_path)
    says_nothing_of_machines(text)
    assert "the probability is that among rows with the same score" in text


@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning", "ignore::bootprob.FewRowsWarning")
@pytest.mark.parametrize("forest", [False, True])
def test_what_probabilities_depend_on(
    table: tuple[np.ndarray, np.ndarray], tmp_path: Path, forest: bool
) -> None:
    X, y = table
    estimator = RandomForestClassifier(40, min_samples_leaf=3) if forest else GaussianNB()
    model = BootstrapClassifier(estimator, n_bootstraps=40, random_state=0).fit(X, y)
    text, content = page({"m": model}, tmp_path, training=X)
    assert "What do the probabilities depend on?" in text
    judged = "trees" if forest else "classifiers"
    assert f"rows, each judged by {judged} that had not seen it, with 95 %" in text
    says_nothing_of_machines(text)
    effects = content["models"][0]["effects"]
    importance = permutation_importance(model, X, n_repeats=3, max_rows=500)
    assert effects["importance"]["columns"] == importance.to_frame().to_dict("records")
    for curve in effects["dependence"]:
        again = partial_dependence(model, curve["column"], X, values=curve["values"])
        np.testing.assert_allclose(curve["log_odds"], again.log_odds)
        np.testing.assert_allclose(curve["interval"], again.interval)
    assert effects["dependence"][0]["column"] == "x0"
    assert effects["contributions"]
    for row in effects["contributions"]:
        total = row["base"] + sum(each["contribution"] for each in row["columns"])
        own = logit(model.predict_proba(X[row["row"] - 1 : row["row"]])[0, 1])
        assert total == pytest.approx(own)


def test_weights_are_shares_of_the_whole(table: tuple[np.ndarray, np.ndarray]) -> None:
    model = BootstrapClassifier([GaussianNB(), LogisticRegression()], **VOTES).fit(*table)
    model.posterior_share_ = 0.25
    found = weights_of(model)
    assert found["posterior"] == 0.25
    assert sum(found.values()) == pytest.approx(1)
    assert found["GaussianNB"] == pytest.approx(0.75 * model.weights_[0])


def test_the_command_line_and_scored_tables(
    table: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X, y = table
    frame = pd.DataFrame({"age": X[:, 0], "house": np.where(X[:, 1] > 0, "own", "rent")})
    columns = make_column_transformer((OneHotEncoder(), ["house"]), ("passthrough", ["age"]))
    model = BootstrapClassifier(make_pipeline(columns, GaussianNB()), **VOTES).fit(frame, y)
    save(model, tmp_path / "m.model")
    frame.to_csv(tmp_path / "new.csv", index=False)

    def run(*arguments: object) -> str:
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        assert result.exit_code == 0, result.output
        return result.output

    run("report", tmp_path / "m.model", "-o", tmp_path / "r.html", "--card", tmp_path / "r.md")
    assert "ColumnTransformer and GaussianNB" in (tmp_path / "r.html").read_text(encoding="utf-8")
    card = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "5 classifiers (ColumnTransformer and GaussianNB, 5 bootstrap samples" in card
    assert "load('m.model', trusted=[])" in card
    run("predict", tmp_path / "m.model", tmp_path / "new.csv", "-o", tmp_path / "scored.csv")
    given = ["--model", tmp_path / "m.model", "--input", tmp_path / "new.csv"]
    run("report", tmp_path / "scored.csv", *given, "-o", tmp_path / "scored.html")
    text = (tmp_path / "scored.html").read_text(encoding="utf-8")
    assert "The model: ColumnTransformer and GaussianNB, no calibration" in text
    assert "judged by classifiers that had not seen it" in text


def test_machines_are_called_as_ever() -> None:
    X, y = load_iris(return_X_y=True)
    svc = BootstrapSVC(kernel="linear", n_bootstraps=3, C=1.0, random_state=0).fit(X[50:], y[50:])
    assert weights_of(svc) == svc.kernel_weights_


@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning", "ignore::bootprob.FewRowsWarning")
def test_a_posterior_is_named_beside_the_machines(
    table: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X, y = table
    svc = BootstrapSVC(effort="low", n_bootstraps=5, random_state=0).fit(X, y)
    text, _ = page({"m": svc}, tmp_path)
    share = " ".join(percent(svc.kernel_weights_["posterior"], 0).split())
    assert f"support vector machines, beside a posterior that has {share} of the weight" in text
    assert "judged only by machines and a posterior that had not seen it" in text


@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning", "ignore::bootprob.FewRowsWarning")
def test_posteriors_of_pairs_are_named(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    svc = BootstrapSVC(effort="low", n_bootstraps=5, random_state=0).fit(X[::3], y[::3])
    text, _ = page({"m": svc}, tmp_path)
    share = " ".join(percent(weights_of(svc)["posterior"], 0).split())
    assert f"in all, beside posteriors that have {share} of the weight" in text
