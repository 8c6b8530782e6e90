"""Models fitted to plain numbers in Python take tables: by names, else by the order of columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from bootprob import BootstrapClassifier, BootstrapSVC
from bootprob.batch_scoring import ScoringOptions, score_dataset
from bootprob.cli.__main__ import app
from bootprob.exceptions import DataError, ModelFileError, TargetColumnError
from bootprob.persistence.save_load import save
from bootprob.tables import HeldOut
from bootprob.tables.model import TableModel
from linear_models import linear

VOTES: dict[str, Any] = {"n_bootstraps": 4, "calibration": None, "interval": "wald"}
TREE = "sklearn.tree._tree.Tree"


def rows(n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    X = np.random.default_rng(1).normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.5 * np.sin(5 * X[:, 1]) > 0, "yes", "no")
    return pd.DataFrame(X, columns=["age", "size", "kids"]), y


def svc(named: bool) -> BootstrapSVC:
    X, y = rows()
    return linear(n_bootstraps=5, C=1.0, random_state=0).fit(X if named else X.to_numpy(), y)


def classifier(named: bool) -> BootstrapClassifier:
    """Columns are told by their names, so that it matters what the classifiers are given."""
    X, y = rows()
    bayes: Any = GaussianNB()
    if named:
        bayes = make_pipeline(make_column_transformer(("passthrough", ["kids", "age"])), bayes)
    model = BootstrapClassifier(bayes, random_state=0, **VOTES)
    return model.fit(X if named else X.to_numpy(), y)


MODELS = {"svc": svc, "classifier": classifier}


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", MODELS)
def test_the_command_line_says_what_python_does(kind: str, named: bool, tmp_path: Path) -> None:
    model, (X, y) = MODELS[kind](named), rows()
    save(model, tmp_path / "m.model")
    table = X[["size", "kids", "age"]].assign(name="a") if named else X
    table.to_csv(tmp_path / "new.csv", index=False)
    table.to_parquet(tmp_path / "new.parquet")
    expected = model.predict_proba(X if named else X.to_numpy())[:, 1]
    for command, source in (("predict", "csv"), ("score", "csv"), ("score", "parquet")):
        given = [tmp_path / "m.model", tmp_path / f"new.{source}", "-o", tmp_path / "out.csv"]
        told = run(command, *given)
        assert told.exit_code == 0, told.output
        found = pd.read_csv(tmp_path / "out.csv")
        np.testing.assert_allclose(found["probability"], expected, rtol=0, atol=1e-12)
        assert found["label"].tolist() == model.predict(X if named else X.to_numpy()).tolist()
        is_noted = "they are taken in this order: age, size, kids." in told.stderr
        assert is_noted == (not named)
    labelled = table.assign(churn=y)
    labelled.to_csv(tmp_path / "old.csv", index=False)
    given = ["--held-out", tmp_path / "old.csv", "--target", "churn", "-o", tmp_path / "r.html"]
    told = run("report", tmp_path / "m.model", *given)
    assert told.exit_code == 0, told.output
    assert "Prediction of churn" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", MODELS)
def test_columns_called_as_python_calls_them(kind: str) -> None:
    model, (X, _) = MODELS[kind](False), rows()
    names = ["id", "x2", "x0", "x1"]
    table = TableModel.of(model, names)
    assert table is not None
    frame = pd.DataFrame({"x2": X["kids"], "x0": X["age"], "x1": X["size"], "id": 1})
    found = table.predict(frame, sets=0.9 if kind == "svc" else None)
    expected = model.predict_proba(X.to_numpy())[:, 1]
    np.testing.assert_allclose(found["probability"], expected, rtol=0, atol=1e-12)
    with pytest.raises(DataError, match=r"array of 3 columns without names, and the table has 2"):
        TableModel.of(model, ["a", "b"])
    with pytest.raises(DataError, match="learnt nothing to be stored"):
        table.preprocessor.to_dict()


@pytest.mark.parametrize("kind", MODELS)
def test_gaps_and_text_are_refused(kind: str, tmp_path: Path) -> None:
    model, (X, _) = MODELS[kind](False), rows(5)
    table = TableModel.of(model, list(X))
    assert table is not None
    gap, text = X.copy(), X.astype({"size": object})
    gap.loc[[1, 3], "kids"] = np.nan
    text.loc[2, "size"] = "large"
    with pytest.raises(DataError, match=r"'kids' has no value in rows 2 and 4, and the model was"):
        table.predict(gap)
    with pytest.raises(DataError, match="'large' is not a number"):
        table.predict(text)
    save(model, tmp_path / "m.model")
    gap.to_csv(tmp_path / "gap.csv", index=False)
    given = tmp_path / "m.model", tmp_path / "gap.csv", tmp_path / "out.csv"
    with pytest.raises(DataError, match="missing"):
        score_dataset(*given)
    summary = score_dataset(*given, ScoringOptions(bad_rows="null"))
    found = pd.read_csv(tmp_path / "out.csv")["probability"]
    assert found.isna().tolist() == [False, True, False, True, False]
    expected = model.predict_proba(X.to_numpy())[[0, 2, 4], 1]
    np.testing.assert_allclose(found.dropna(), expected, rtol=0, atol=1e-12)
    assert summary.n_bad == 2


def test_types_of_a_model_file_are_trusted_by_name(tmp_path: Path) -> None:
    X, y = rows()
    trees = BootstrapClassifier(DecisionTreeClassifier(max_depth=2), random_state=0, **VOTES)
    trees.fit(X, y)
    save(trees, tmp_path / "m.model")
    X.to_parquet(tmp_path / "new.parquet")
    given = tmp_path / "m.model", tmp_path / "new.parquet", tmp_path / "out.parquet"
    with pytest.raises(ModelFileError, match=TREE):
        score_dataset(*given)
    score_dataset(*given, trusted=[TREE])
    found = pd.read_parquet(tmp_path / "out.parquet")["probability"]
    np.testing.assert_array_equal(found, trees.predict_proba(X)[:, 1])
    table = TableModel.of(trees, list(X))
    assert table is not None
    with pytest.raises(DataError, match="trusted is of a model's file"):
        score_dataset(table, *given[1:], trusted=[TREE])


@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning", "ignore::bootprob.FewRowsWarning")
@pytest.mark.parametrize("named", [False, True])
def test_explanations_of_plain_numbers(named: bool, tmp_path: Path) -> None:
    from bootprob.explanation import contributions, permutation_importance

    X, y = rows()
    given = X if named else X.to_numpy()
    model = BootstrapClassifier(GaussianNB(), n_bootstraps=10, random_state=0).fit(given, y)
    save(model, tmp_path / "m.model")
    X.to_csv(tmp_path / "t.csv", index=False)
    X.assign(churn=y).to_csv(tmp_path / "old.csv", index=False)
    explain = ["explain", tmp_path / "m.model"]
    told = run(*explain, tmp_path / "t.csv", "-o", tmp_path / "why.csv")
    assert told.exit_code == 0, told.output
    written = pd.read_csv(tmp_path / "why.csv")
    expected = contributions(model, given).to_frame()
    np.testing.assert_allclose(written["contribution"], expected["contribution"], atol=1e-9)
    assert set(written["column"]) == {"age", "size", "kids"}
    held_out = ["--importance", "held-out", "--target", "churn", "-o", tmp_path / "c.csv"]
    told = run(*explain, tmp_path / "old.csv", *held_out)
    assert told.exit_code == 0, told.output
    importance = permutation_importance(model, given, y, held_out=True).to_frame()
    np.testing.assert_allclose(
        pd.read_csv(tmp_path / "c.csv")["importance"], importance["importance"], atol=1e-9
    )
    report = ["report", tmp_path / "m.model", "--held-out", tmp_path / "old.csv"]
    told = run(*report, "--target", "churn", "-o", tmp_path / "r.html")
    assert told.exit_code == 0, told.output
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "What do the probabilities depend on?" in page
    hint = " Or say which column holds them: --target COLUMN.\n"
    for command in (
        [*report, "-o", tmp_path / "r.html"],
        [*explain, tmp_path / "old.csv", *held_out[:2], "-o", tmp_path / "c.csv"],
    ):
        told = run(*command)
        assert told.exit_code == 1
        assert told.stderr.endswith(hint), told.stderr


def test_options_are_named_by_commands_that_have_them(tmp_path: Path) -> None:
    X, y = rows()
    save(svc(named=False), tmp_path / "m.model")
    X.assign(churn=y).to_csv(tmp_path / "old.csv", index=False)
    said = r"If one of these holds the classes, leave that column out\.$"
    with pytest.raises(TargetColumnError, match=said):
        TableModel.of(svc(named=False), [*X, "churn"])
    for command in ("predict", "score"):
        told = run(command, tmp_path / "m.model", tmp_path / "old.csv", "-o", tmp_path / "o.csv")
        assert told.exit_code == 1
        assert told.stderr.endswith("leave that column out.\n")
    table = TableModel.of(svc(named=True), list(X))
    assert table is not None
    with pytest.raises(TargetColumnError, match=r"to measure the model on them\.$"):
        HeldOut.of_table(table, X)
    table = TableModel.of(svc(named=True), list(X), "churn")
    assert table is not None
    with pytest.raises(DataError, match="no column 'churn'") as refused:
        HeldOut.of_table(table, X)
    assert type(refused.value) is DataError  # its name was said


def test_a_precomputed_kernel_has_no_columns() -> None:
    X, y = rows()
    model = BootstrapSVC(kernel="precomputed", C=1.0, n_bootstraps=4).fit(X @ X.T, y)
    with pytest.raises(DataError, match="precomputed kernel"):
        TableModel.of(model, [str(k) for k in range(60)])
