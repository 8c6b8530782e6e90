"""The command line from a person's chair: what it writes, what it says, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
import typer
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner, Result

from bootprob import BootstrapSVC
from bootprob.cli.__main__ import app
from bootprob.cli.fitting import FittingOptions
from bootprob.cli.models import check_strict
from bootprob.ensemble.out_of_bag_metrics import out_of_bag_class_intervals
from bootprob.exceptions import DataError
from bootprob.explanation import contributions, permutation_importance
from bootprob.persistence.save_load import load, save
from bootprob.runtime.version import __version__
from bootprob.tables.files import read_table, write_table
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

PROGRAM = "from bootprob.cli.__main__ import main; main()"
_TARGET = ["--target", "risk"]
QUICK = ["--kernel", "linear", "--n-bootstraps", "10", "--seed", "0", "--device", "cpu"]


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def _shell(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the program as its users do."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,  # type: ignore[call-overload]
    )


def _refused(result: Result, message: str, code: int = 1) -> None:
    assert result.exit_code == code, result.output
    said = " ".join(result.stderr.replace("│", " ").split())
    assert message in said
    if code == 1:
        assert result.stderr.startswith("Error: ")
        assert len(result.stderr.strip().splitlines()) <= 2
        assert result.stdout == ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a training table, new rows and a fitted model."""
    folder = tmp_path_factory.mktemp("cli")
    write_table(credit_table(80), folder / "loans.csv")
    write_table(credit_table(30, seed=1).drop(columns="risk"), folder / "new.parquet")
    fitted = _run(
        "fit",
        folder / "loans.csv",
        "--target",
        "risk",
        "--positive",
        "bad",
        *QUICK,
        "-o",
        folder / "loans.model",
    )
    assert fitted.exit_code == 0, fitted.output
    (folder / "said.txt").write_text(fitted.output)
    return folder


def test_fit_says_what_it_did(folder: Path) -> None:
    said = (folder / "said.txt").read_text()
    assert "Fitted 80 rows, 7 columns (14 features) in " in said
    table = read_table(folder / "loans.csv")
    n_bad = (table["risk"] == "bad").sum()
    assert f"risk: positive = bad ({n_bad} rows), negative = good ({80 - n_bad} rows)." in said
    assert "Note: Missing values were filled in: " in said
    assert "Brier score" in said
    assert "Out of bag, with 95% intervals" in said
    assert "loans.model (" in said
    right = load(folder / "loans.model").svc.metric_intervals()["accuracy"]
    words = [
        line for line in said.splitlines() if line.startswith("In words: of 100 rows kept out")
    ]
    assert len(words) == 1
    assert f"about {100 * right.value:.0f} get the right label" in words[0]
    assert f"({100 * right.lower:.0f} to {100 * right.upper:.0f})" in words[0]
    most = table["risk"].value_counts(normalize=True)
    said_of_most = f"to say {most.index[0]} each time would get {100 * most.iloc[0]:.0f} right."
    assert words[0].endswith(said_of_most)


def test_fit_is_the_library_s_fit(folder: Path) -> None:
    model = load(folder / "loans.model")
    assert isinstance(model, TableModel)
    table = read_table(folder / "loans.csv")
    same = TableModel.fit(table, "risk", "bad", kernel="linear", n_bootstraps=10, random_state=0)
    pd.testing.assert_frame_equal(model.predict(table), same.predict(table))
    assert model.svc.verbose == 0


def test_effort_is_the_library_s(folder: Path, tmp_path: Path) -> None:
    given = ["fit", folder / "loans.csv", "--target", "risk", *QUICK]
    given += ["--kernel", "auto", "--effort", "low", "--n-bootstraps", "4"]
    assert _run(*given, "-o", tmp_path / "m").exit_code == 0
    model = load(tmp_path / "m")
    assert isinstance(model, TableModel)
    assert model.svc.effort == "low"
    assert len(model.svc.C_) <= 4


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_predict(folder: Path, tmp_path: Path, suffix: str) -> None:
    output = tmp_path / f"out{suffix}"
    new = read_table(folder / "new.parquet")
    write_table(new.assign(purpose="boat", extra=1)[new.columns[::-1]], tmp_path / "new.csv")
    result = _run(
        "predict", folder / "loans.model", tmp_path / "new.csv", "-o", output, "--level", "0.8"
    )
    assert result.exit_code == 0, result.output
    model = load(folder / "loans.model")
    assert isinstance(model, TableModel)
    expected = model.predict(new.assign(purpose="boat"), level=0.8)
    pd.testing.assert_frame_equal(read_table(output), expected, rtol=1e-12)
    assert "Note: Column 'purpose' has values that the model does not know" in result.stderr
    assert "'boat' (30)." in result.stderr
    n_bad = (expected["label"] == "bad").sum()
    assert result.stdout == f"30 rows are in {output}, {n_bad} of them labelled risk = bad.\n"


def test_predict_tells_of_gaps_and_of_rows_cut_short(folder: Path, tmp_path: Path) -> None:
    new = read_table(folder / "new.parquet").dropna()
    new.iloc[:3, 0] = np.nan
    write_table(new, tmp_path / "new.csv")
    lines = (tmp_path / "new.csv").read_text().splitlines()
    lines[-1] = lines[-1].rpartition(",")[0]
    (tmp_path / "new.csv").write_text("\n".join([*lines, ""]))
    result = _run("predict", folder / "loans.model", tmp_path / "new.csv", "-o", tmp_path / "o.csv")
    assert result.exit_code == 0, result.output
    said = f"'{new.columns[0]}' (3 rows), '{new.columns[-1]}' (1 row)"
    assert f"Missing values are filled as the model learned to: {said}." in result.stderr


def test_predict_neutralises_on_request(folder: Path, tmp_path: Path) -> None:
    table = credit_table(60)
    table["risk"] = table["risk"].map({"bad": "=bad", "good": "good"})
    model = TableModel.fit(table, "risk", "=bad", kernel="linear", n_bootstraps=10, random_state=0)
    save(model, tmp_path / "m")
    given = ["predict", tmp_path / "m", folder / "new.parquet", "-o", tmp_path / "out.csv"]
    assert _run(*given).exit_code == 0
    plain = read_table(tmp_path / "out.csv")
    assert set(plain["label"]) == {"=bad", "good"}
    assert _run(*given, "--csv-safe").exit_code == 0
    safe = read_table(tmp_path / "out.csv")
    assert (plain["score"] < 0).any()
    expected = plain.assign(label=plain["label"].replace("=bad", "'=bad"))
    pd.testing.assert_frame_equal(safe, expected)


def test_predict_writes_sets(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    arguments = ["predict", folder / "loans.model", folder / "new.parquet", "-o", output]
    result = _run(*arguments, "--sets", "0.8")
    assert result.exit_code == 0, result.output
    model = load(folder / "loans.model")
    assert isinstance(model, TableModel)
    expected = model.predict(read_table(folder / "new.parquet"), sets=0.8)
    pd.testing.assert_frame_equal(read_table(output), expected, rtol=1e-12)
    assert set(expected["set"]) & {"good", "bad"}
    _refused(_run(*arguments, "--sets", "80"), "80.0 does not lie between 0 and 1", code=2)


@pytest.mark.usefixtures("undrawn")
def test_all_classes(folder: Path, tmp_path: Path) -> None:
    model, output = tmp_path / "m.model", tmp_path / "out.csv"
    given = ["fit", folder / "loans.csv", "--target", "purpose", "--all-classes", *QUICK]
    given += ["--kernel", "linear"]
    result = _run(*given, "-o", model)
    assert result.exit_code == 0, result.output
    assert "Target purpose: 4 classes, car (" in result.stdout
    found = out_of_bag_class_intervals(load(model).svc)["accuracy"]
    within = f"{found.value:.3f}  ({found.lower:.3f} to {found.upper:.3f})"
    assert "Out of bag, with 95% intervals" in result.stdout
    assert f"│ Accuracy    │ {within} │" in result.stdout
    of_100 = f"{100 * found.lower:.0f} to {100 * found.upper:.0f}"
    assert f"get the right label ({of_100}); to say " in result.stdout
    predict = ["predict", model, folder / "loans.csv", "-o", output]
    result = _run(*predict)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"80 rows are in {output}, with 4 classes.\n"
    written = read_table(output)
    assert written.columns[:4].tolist() == ["p_car", "low_car", "high_car", "p_other"]
    shares = written[[name for name in written.columns if name.startswith("p_")]]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    fitted = load(model)
    assert isinstance(fitted, TableModel)
    expected = fitted.predict(read_table(folder / "loans.csv"))
    pd.testing.assert_frame_equal(written, expected, rtol=1e-12)
    result = _run("report", model, "-o", tmp_path / "r.html")
    assert result.exit_code == 0, result.output
    reported = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["models"][0]
    assert reported["metrics"]["accuracy"] == asdict(found)
    result = _run(*predict, "--sets", "0.9")
    assert result.exit_code == 0, result.output
    sets = read_table(output)["set"].fillna("").str.split(" | ", regex=False)
    inside = fitted.svc.prediction_sets(
        fitted.preprocessor.transform(read_table(folder / "loans.csv")), 0.9
    )
    names = fitted.target.labels
    assert [set(each) - {""} for each in sets] == [
        {name for name, is_in in zip(names, row, strict=True) if is_in} for row in inside
    ]
    for more in (["--positive", "car"], ["--paper"], ["--calibration", "none"]):
        _refused(_run(*given, *more, "-o", model), "--all-classes", code=2)
    _refused(_run(*given, "--tpr", "0.9", "-o", model), "say --rate CLASS=RATE", code=2)


@pytest.mark.usefixtures("undrawn")
def test_several_values_that_become_two_classes_are_told(folder: Path, tmp_path: Path) -> None:
    given = ["fit", folder / "loans.csv", "--target", "purpose", *QUICK, "-o", tmp_path / "m"]
    named = _run(*given, "--positive", "radio")
    assert named.exit_code == 0, named.output
    assert (
        "Note: The target column 'purpose' has 4 values, which became two classes: 'radio' is "
        "positive, against all others together ('car', 'other', 'school'). --all-classes keeps "
        "them apart.\n"
    ) in named.stderr
    most = read_table(folder / "loans.csv")["purpose"].mode()[0]
    unnamed = _run(*given)
    assert f"'{most}', the most frequent, is negative, and all others (" in unnamed.stderr
    assert f") are one positive class, 'not {most}'. --positive names another" in unnamed.stderr
    for more in (["--target", "risk"], ["--all-classes"]):
        assert "which became two classes" not in _run(*given, *more).stderr


@pytest.mark.usefixtures("undrawn")
def test_columns_that_are_no_features(folder: Path, tmp_path: Path) -> None:
    table = read_table(folder / "loans.csv")
    table["customer"] = np.arange(80) // 2
    table["importance"] = np.where(np.arange(80) < 40, 1.0, 2.0)
    write_table(table, tmp_path / "loans.csv")
    columns = ["--groups", "customer", "--weight", "importance"]
    columns += ["--drop", "branch", "--drop", "purpose"]
    fit = ["fit", tmp_path / "loans.csv", *_TARGET, *QUICK]
    said = _run(*fit, *columns, "-o", tmp_path / "loans.model")
    assert said.exit_code == 0, said.output
    assert "Fitted 80 rows of 40 groups, 5 columns" in said.output
    model = load(tmp_path / "loans.model")
    assert not {"customer", "importance", "branch", "purpose"} & {*model.preprocessor.kinds_}
    assert model.svc.groups_.tolist() == (np.arange(80) // 2).tolist()
    assert model.svc.sample_weight_.tolist() == table["importance"].tolist()
    report = ["report", tmp_path / "loans.csv", *_TARGET, *QUICK, *columns]
    written = _run(*report, "-o", tmp_path / "loans.html")
    assert written.exit_code == 0, written.output
    assert "80 rows of 40 groups, " in (tmp_path / "loans.html").read_text()
    wrong = _run("report", folder / "loans.model", "--drop", "branch", "-o", tmp_path / "no.html")
    _refused(wrong, "the options from --target on do not apply", 2)
    twice = _run(*fit, "--groups", "risk", "-o", tmp_path / "no.model")
    _refused(twice, "The column 'risk' is given as target and as groups")


@pytest.mark.filterwarnings("default::bootprob.LaterRowsWarning")
@pytest.mark.usefixtures("undrawn")
def test_time_and_what_later_rows_say(tmp_path: Path) -> None:
    """Told by fit, kept in the file, shown by report and card; an error on request."""
    rng = np.random.default_rng(0)
    x, n = rng.normal(size=240), 240
    turned = np.where(np.arange(n) < 216, 2.0, -2.0)
    bad = rng.random(n) < 1 / (1 + np.exp(-turned * x))
    day = pd.Timestamp("2025-03-01") + pd.to_timedelta(np.arange(n), unit="D")
    table = pd.DataFrame({"x": x, "day": day.strftime("%Y-%m-%d"), "soon": "soon"})
    table["risk"] = np.where(bad, "bad", "good")
    source, page, card = tmp_path / "t.csv", tmp_path / "t.html", tmp_path / "t.md"
    write_table(table.sample(frac=1, random_state=0), source)
    fit = ["fit", source, *_TARGET, *QUICK, "--drop", "soon"]
    fit += ["--time", "day", "-o", tmp_path / "t.model"]
    said = _run(*fit, "--strict")
    assert said.exit_code == 1
    worse = "Later rows are worse: on the 24 rows from 2025-10-03 on a model of the 216"
    assert f"Error: {worse}" in said.stderr
    assert "The file is written all the same" in said.stderr
    assert "Fitted 240 rows in " in said.stdout
    assert " blocks of time, 1 column (" in said.stdout
    assert "Later rows: the 24 from 2025-10-03 on, by a model of the 216 before" in said.stdout
    later = load(tmp_path / "t.model").svc.later_rows_
    for which in ("metrics", "out_of_bag"):
        value, lower, upper = later[which]["log_loss"]
        assert f"{value:.3f}  ({lower:.3f} to {upper:.3f})" in said.stdout
    wrote = _run("report", tmp_path / "t.model", "-o", page, "--card", card)
    assert wrote.exit_code == 0, wrote.output
    text = page.read_text(encoding="utf-8")
    head = text.split("<h3")[0]
    assert "On the last tenth (the 24 rows from 2025-10-03 on)" in head
    assert "Later rows are worse" in head
    assert '<h2 id="h-later">' in text
    shown = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    assert shown["models"][0]["later_rows"] == later
    assert shown["data"]["n_groups"] is None
    assert f"{later['metrics']['auc'][0]:.4f}" in card.read_text(encoding="utf-8")
    few = table.iloc[100:190].drop(columns="soon")
    write_table(few, source)
    reported = _run("report", source, *_TARGET, *QUICK, "--time", "day", "-o", page)
    assert reported.exit_code == 0, reported.output
    assert "Nothing was measured:" in page.read_text(encoding="utf-8")
    both = _run("fit", source, *_TARGET, "--time", "day", "--groups", "x", "-o", tmp_path / "n")
    write_table(table, source)
    _refused(both, "no column beside")
    both = _run("fit", source, *_TARGET, "--time", "day", "--groups", "soon", "-o", tmp_path / "n")
    _refused(both, "groups and time are both given")
    no_time = _run("fit", source, *_TARGET, "--time", "soon", "-o", tmp_path / "n")
    _refused(no_time, "The column of time 'soon' holds 'soon' in row 1, which is no date")


@pytest.mark.filterwarnings("default::bootprob.DoubtfulTableWarning")
@pytest.mark.usefixtures("undrawn")
def test_a_table_that_is_too_good_to_be_true(folder: Path, tmp_path: Path) -> None:
    """Told, shown and kept; an error on request, before anything is trained."""
    table = read_table(folder / "loans.csv")
    table["paid"] = (table["risk"] == "good") * (1 + np.arange(80) % 7)
    write_table(table, tmp_path / "leak.csv")
    model, page = tmp_path / "leak.model", tmp_path / "leak.html"
    leak = "Column 'paid' alone gives the target: it puts 0 of 80 rows on the wrong side."
    fit = ["fit", tmp_path / "leak.csv", *_TARGET, *QUICK, "-o", model]
    refused = _run(*fit, "--strict")
    _refused(refused, f"Error: {leak}")
    assert "No model is written, as --strict asks." in refused.stderr
    assert not model.exists()
    fitted = _run(*fit)
    assert fitted.exit_code == 0
    assert f"Warning: {leak}" in fitted.stderr
    assert load(model).svc.remarks_[0].startswith(leak)
    assert _run("report", model, "-o", page, "--card", tmp_path / "leak.md").exit_code == 0
    assert "Column &#39;paid&#39; alone gives" in page.read_text(encoding="utf-8").split("<h3")[0]
    assert leak in (tmp_path / "leak.md").read_text(encoding="utf-8")
    dropped = _run(*fit, "--drop", "paid", "--strict")
    assert dropped.exit_code == 0, dropped.output
    assert load(model).svc.remarks_ == []


def test_strict_writes_what_lies_at_the_edge_of_a_grid(folder: Path) -> None:
    """What was trained is not lost."""
    options = FittingOptions(strict=True)
    model = load(folder / "loans.model")
    assert isinstance(model, TableModel)
    model.svc.remarks_ = ["The largest value of C, 3, has 60% of the weight."]
    with pytest.raises(DataError, match="The file is written all the same"):
        check_strict(model, options)
    check_strict(model, FittingOptions())


def test_options_of_a_polynomial_kernel_reach_the_ensemble(folder: Path, tmp_path: Path) -> None:
    given = ["fit", folder / "loans.csv", "--target", "risk", *QUICK, "-o", tmp_path / "m.model"]
    result = _run(*given, "--kernel", "poly", "--gamma", "0.1,1", "--degree", 2, "--coef0", 0.5)
    assert result.exit_code == 0, result.output
    svc = load(tmp_path / "m.model").svc
    assert (svc.kernel, svc.gamma, svc.degree, svc.coef0) == ("poly", [0.1, 1.0], 2, 0.5)


def test_fit_options_reach_the_ensemble(folder: Path, tmp_path: Path) -> None:
    given = ["fit", folder / "loans.csv", "--target", "risk", *QUICK, "-o", tmp_path / "m.model"]
    options = ["--kernel", "rbf", "--gamma", "0.1,1", "--C", "0.5,2", "--calibration", "none"]
    result = _run(*given, *options)
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "m.model")
    assert isinstance(model, TableModel)
    assert model.svc.kernel == "rbf"
    assert model.svc.gamma == [0.1, 1.0]
    assert model.svc.C == [0.5, 2.0]
    assert model.svc.calibration is None
    assert model.target.positive == "good"
    result = _run("predict", tmp_path / "m.model", folder / "new.parquet", "-o", tmp_path / "o.csv")
    assert result.exit_code == 0, result.output
    assert read_table(tmp_path / "o.csv").notna().all(axis=None)


def test_paper(folder: Path, tmp_path: Path) -> None:
    result = _run(
        "fit",
        folder / "loans.csv",
        "--target",
        "risk",
        *QUICK,
        "--paper",
        "-o",
        tmp_path / "m.model",
    )
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "m.model")
    assert isinstance(model, TableModel)
    paper = BootstrapSVC.paper(n_bootstraps=10, random_state=0, device="cpu")
    expected, stored = paper.get_params(), model.svc.get_params()
    np.testing.assert_equal(stored, expected)


def test_paper_without_calibration_is_the_paper(folder: Path, tmp_path: Path) -> None:
    given = ["fit", folder / "loans.csv", "--target", "risk", *QUICK, "-o", tmp_path / "m.model"]
    result = _run(*given, "--paper", "--calibration", "none")
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "m.model")
    assert isinstance(model, TableModel)
    paper = BootstrapSVC.paper(n_bootstraps=10, random_state=0, device="cpu")
    assert paper.interval == "wald"
    np.testing.assert_equal(model.svc.get_params(), paper.get_params())


def test_metrics_said_are_those_of_the_model(folder: Path) -> None:
    said = (folder / "said.txt").read_text()
    model = load(folder / "loans.model")
    assert isinstance(model, TableModel)
    for metric in model.svc.metric_intervals().values():
        shown = f"{metric.value:.3f}  ({metric.lower:.3f} to {metric.upper:.3f})"
        assert any(metric.label in line and shown in line for line in said.splitlines())


def test_a_table_with_semicolons_and_decimal_commas(folder: Path, tmp_path: Path) -> None:
    credit_table(80).to_csv(tmp_path / "loans.csv", sep=";", decimal=",", index=False)
    given = ["--target", "risk", "--positive", "bad", *QUICK, "-o", tmp_path / "m.model"]
    result = _run("fit", tmp_path / "loans.csv", *given)
    assert result.exit_code == 0, result.output
    german, english = load(tmp_path / "m.model"), load(folder / "loans.model")
    assert isinstance(german, TableModel)
    assert isinstance(english, TableModel)
    new = credit_table(30, seed=1).drop(columns="risk")
    pd.testing.assert_frame_equal(german.predict(new), english.predict(new))
    new.to_csv(tmp_path / "new.csv", sep=";", decimal=",", index=False)
    result = _run("predict", tmp_path / "m.model", tmp_path / "new.csv", "-o", tmp_path / "o.csv")
    assert result.exit_code == 0, result.output
    pd.testing.assert_frame_equal(read_table(tmp_path / "o.csv"), german.predict(new), rtol=1e-12)


def test_explain(folder: Path, tmp_path: Path) -> None:
    curved = tmp_path / "curved.model"  # which keeps its training rows
    fit = ["fit", folder / "loans.csv", *_TARGET, *QUICK, "--kernel", "rbf", "--C", "1"]
    assert _run(*fit, "-o", curved).exit_code == 0
    explain = ["explain", curved, folder / "new.parquet", "-o"]
    said = _run(*explain, tmp_path / "why.csv")
    assert said.exit_code == 0, said.output
    assert "30 rows are explained in " in said.stdout
    assert "rows whose interval leaves 0 out" in " ".join(said.stdout.split())
    why = pd.read_csv(tmp_path / "why.csv", dtype={"value": str})
    model, new = load(curved), read_table(folder / "new.parquet")
    assert isinstance(model, TableModel)
    expected = contributions(model, new).to_frame()
    assert why["row"].tolist() == (expected["row"] + 1).tolist()
    np.testing.assert_allclose(why["upper"], expected["upper"])
    own = why.query("column == 'purpose'").set_index("row")["value"]
    assert own.tolist() == new["purpose"].tolist()
    given = _run(*explain, tmp_path / "b.csv", "--background", folder / "loans.csv")
    assert given.exit_code == 0, given.output
    other = model.target.labels[0]
    given = _run(*explain, tmp_path / "other.csv", "--class", other)
    assert f"log-odds of {other}, over" in " ".join(given.stdout.split())
    assert f"a line for each column, of the log-odds of {other}." in " ".join(given.stdout.split())
    against = pd.read_csv(tmp_path / "other.csv")
    assert set(against.pop("class")) == {other}
    assert list(against) == list(why)
    np.testing.assert_allclose(against["contribution"], -why["contribution"], atol=1e-9)
    _refused(_run(*explain, tmp_path / "why.xlsx"), "must end in .csv or .parquet")
    _refused(_run(*explain, folder / "new.parquet"), "is the file that is read")


def test_importance(folder: Path, tmp_path: Path) -> None:
    explain = ["explain", folder / "loans.model", folder / "loans.csv"]
    importance = [*explain, "--importance", "training"]
    said = _run(*importance, "--metric", "brier-score", "-o", tmp_path / "columns.csv")
    assert said.exit_code == 0, said.output
    assert "Rise of the brier-score" in said.stdout
    assert "out-of-bag rows" in " ".join(said.stdout.split())
    model, table = load(folder / "loans.model"), read_table(folder / "loans.csv")
    assert isinstance(model, TableModel)
    found = permutation_importance(model, table, metric="brier_score").to_frame()
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "columns.csv"), found)
    held_out = _run(*explain, "--importance", "held-out", "-o", tmp_path / "new.csv")
    assert held_out.exit_code == 0, held_out.output
    other = ["explain", folder / "loans.model", folder / "new.parquet", "--importance", "training"]
    _refused(_run(*other, "-o", tmp_path / "o.csv"), "the model was fitted to")
    both = _run(*importance, "--background", folder / "loans.csv", "-o", tmp_path / "o.csv")
    _refused(both, "--background is of contributions", code=2)
    metric = _run(*explain, "--metric", "auc", "-o", tmp_path / "o.csv")
    _refused(metric, "--metric is of --importance", code=2)


@pytest.mark.usefixtures("undrawn")
def test_files_of_other_programs(folder: Path, tmp_path: Path) -> None:
    """An Excel sheet, and text that was saved on Windows; the report reads them too."""
    table = credit_table(80).replace({"purpose": {"car": "Kölner Straße"}})
    table.to_excel(tmp_path / "loans.xlsx", index=False)
    table.to_csv(tmp_path / "loans.tsv.gz", sep="\t", index=False, encoding="cp1252")
    options = ["--target", "risk", *QUICK]
    models = []
    for name, more in (("loans.xlsx", []), ("loans.tsv.gz", ["--encoding", "cp1252"])):
        fitted = _run("fit", tmp_path / name, *options, *more, "-o", tmp_path / "m")
        assert fitted.exit_code == 0, fitted.output
        models.append(load(tmp_path / "m"))
        predict = ["predict", tmp_path / "m", tmp_path / name, *more, "-o", tmp_path / "o.csv"]
        assert _run(*predict).exit_code == 0
    pd.testing.assert_frame_equal(models[0].predict(table), models[1].predict(table))
    report = ["report", tmp_path / "loans.tsv.gz", *options, "-o", tmp_path / "r.html"]
    assert _run(*report, "--encoding", "cp1252").exit_code == 0
    _refused(_run(*report), "is not UTF-8 text. If ")


@pytest.mark.usefixtures("undrawn")
def test_report_of_a_model(folder: Path, tmp_path: Path) -> None:
    result = _run("report", folder / "loans.model", "-o", tmp_path / "loans.html")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "loans.html").read_text(encoding="utf-8")
    assert "Prediction of risk" in page
    assert "bad" in page
    numbers = json.loads((tmp_path / "loans.json").read_text(encoding="utf-8"))
    assert numbers["data"]["positive_class"] == "bad"
    assert numbers["data"]["negative_class"] == "good"
    assert f"The report is in {tmp_path / 'loans.html'}, its numbers" in result.stdout


@pytest.mark.usefixtures("undrawn")
def test_report_of_a_table(folder: Path, tmp_path: Path) -> None:
    result = _run(
        "report",
        folder / "loans.csv",
        "--target",
        "risk",
        "--positive",
        "good",
        *QUICK,
        "-o",
        tmp_path / "loans.html",
    )
    assert result.exit_code == 0, result.output
    numbers = json.loads((tmp_path / "loans.json").read_text(encoding="utf-8"))
    assert numbers["data"]["positive_class"] == "good"


@pytest.mark.usefixtures("undrawn")
def test_report_of_a_model_of_arrays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    model = BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0).fit(
        X, X[:, 0] + rng.normal(size=40) > 0
    )
    save(model, tmp_path / "m.model")
    result = _run("report", tmp_path / "m.model", "-o", tmp_path / "m.html")
    assert result.exit_code == 0, result.output
    write_table(credit_table(), tmp_path / "t.csv")
    _refused(
        _run("predict", tmp_path / "m.model", tmp_path / "t.csv", "-o", tmp_path / "o.csv"),
        "The model was fitted to an array of 2 columns without names, and the table has 8",
    )


@pytest.mark.parametrize(
    ("rows", "columns"), [(150, 5), pytest.param(569, 30, marks=pytest.mark.endurance)]
)
def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, columns: int) -> None:
    monkeypatch.chdir(tmp_path)
    data = load_breast_cancer()
    data.update(data=data.data[:rows, :columns], target=data.target[:rows])
    monkeypatch.setattr("sklearn.datasets.load_breast_cancer", lambda: data)
    result = _run("demo", "--n-bootstraps", 8)
    assert result.exit_code == 0, result.output
    assert "Brier score" in result.stdout
    assert "auto" in result.stdout
    assert "linear" in result.stdout
    assert (
        "The report is in demo/report.html, its numbers are in demo/report.json." in result.stdout
    )
    assert "MB of memory" in result.stdout
    numbers = json.loads((tmp_path / "demo/report.json").read_text(encoding="utf-8"))
    assert numbers["data"]["positive_class"] == "malignant"
    assert [model["label"] for model in numbers["models"]] == ["auto", "linear"]
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"report.html", "report.json"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.csv", "--target", "risk"], "There is no file no.csv."),
        (["loans.csv", "--target", "Risk"], "no column 'Risk'. Did you mean 'risk'?"),
        (["loans.csv", "--target", "risk", "--positive", "poor"], "it has 'bad', 'good'."),
        (["one.csv", "--target", "risk"], "'risk' has one value only, 'bad'; two classes"),
        (["gaps.csv", "--target", "risk"], "'risk' has 2 missing values, in rows 1 and 2;"),
        (["huge.csv", "--target", "risk"], "Column 'amount' holds 1.7e+308 in rows 1, 2, 3, 4, 5"),
        (["bad.parquet", "--target", "risk"], "bad.parquet cannot be read as Parquet: "),
        (["loans.model", "--target", "risk"], "with .gz, .bz2, .xz after it), not in .model."),
    ],
)
def test_fit_with_unusable_tables(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loans.csv").symlink_to(folder / "loans.csv")
    table = credit_table(20)
    write_table(table.assign(risk="bad"), "one.csv")
    write_table(table.assign(amount=1.7e308), "huge.csv")
    write_table(table.assign(risk=[None, None, *table["risk"][2:]]), "gaps.csv")
    (tmp_path / "bad.parquet").write_text("risk,age\n")
    _refused(_run("fit", *arguments, *QUICK, "-o", "new.model"), message)
    assert not (tmp_path / "new.model").exists()


@pytest.mark.usefixtures("undrawn")
def test_outputs_are_checked_before_any_work(folder: Path, tmp_path: Path) -> None:
    # None of the inputs exists, so another message would come if work had begun.
    absent = tmp_path / "absent"
    _refused(_run("fit", "no.csv", "--target", "y", "-o", absent / "m"), "absent does not exist")
    _refused(_run("predict", "no", "no.csv", "-o", absent / "o.csv"), "absent does not exist")
    _refused(_run("predict", "no", "no.csv", "-o", tmp_path / "o.xlsx"), "not in .xlsx")
    _refused(_run("report", "no", "-o", absent / "r.html"), "absent does not exist")
    _refused(_run("report", "no", "-o", tmp_path / "r.pdf"), "report must end in .html")
    _refused(_run("demo", "-o", absent / "r.html"), "absent does not exist")
    _refused(_run("fit", "no.csv", "--target", "y", "-o", tmp_path), "is a folder")
    table = folder / "loans.csv"
    before = table.read_bytes()
    _refused(_run("fit", table, "--target", "risk", "-o", table), "is the file that is read")
    _refused(
        _run("fit", "no.csv", "--target", "y", "-o", table),
        "loans.csv is the name of a table; give the model another one, such as loans.model.",
    )
    assert table.read_bytes() == before


@pytest.mark.usefixtures("undrawn")
def test_models_that_cannot_be_read(folder: Path, tmp_path: Path) -> None:
    new, output = folder / "new.parquet", tmp_path / "out.csv"
    _refused(_run("predict", "no.model", new, "-o", output), "There is no file no.model.")
    damaged = tmp_path / "damaged.model"
    damaged.write_bytes((folder / "loans.model").read_bytes()[:-9])
    _refused(
        _run("predict", damaged, new, "-o", output), "damaged.model is no bootprob model or is"
    )
    _refused(_run("report", damaged, "-o", tmp_path / "r.html"), "is no bootprob model or is")
    swapped = _run("predict", folder / "loans.csv", folder / "loans.model", "-o", output)
    _refused(swapped, "or is damaged. The model comes first, then the table.")
    write_table(read_table(new).drop(columns=["months", "branch"]), tmp_path / "few.csv")
    _refused(
        _run("predict", folder / "loans.model", tmp_path / "few.csv", "-o", output),
        "The table lacks 2 columns 'months', 'branch' that the model was fitted on.",
    )
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "loans.csv", "-o", "m"], "Missing option '--target'. The column to predict."),
        (["fit", "loans.csv", "--target", "risk"], "Missing option '--output'"),
        (["fit", "loans.csv", "--target", "risk", "--kernel", "cubic", "-o", "m"], ": 'cubic'"),
        (
            ["fit", "loans.csv", "--target", "risk", "--n-bootstraps", "1", "-o", "m"],
            "should be greater",
        ),
        (["fit", "loans.csv", "--target", "risk", "--gamma", "1", "-o", "m"], "needs --kernel rbf"),
        (
            ["fit", "loans.csv", *_TARGET, "--kernel", "rbf", "--effort", "low", "-o", "m"],
            "--effort needs --kernel auto",
        ),
        (
            ["fit", "loans.csv", "--target", "risk", "--degree", "2", "-o", "m"],
            "needs --kernel poly",
        ),
        (
            ["fit", "loans.csv", "--target", "risk", "--kernel", "rbf", "--coef0", "1", "-o", "m"],
            "--coef0 needs --kernel poly.",
        ),
        (
            ["fit", "loans.csv", *_TARGET, "--kernel", "poly", "--gamma", "grid", "-o", "m"],
            "--gamma grid goes by distances",
        ),
        *(
            (
                ["fit", "loans.csv", "--target", "risk", "-o", "m", "--paper", "--calibration", x],
                f"--paper and --calibration {x} contradict each other: the thesis does not",
            )
            for x in ("sigmoid", "isotonic")
        ),
        (
            ["fit", "loans.csv", "--target", "risk", "--kernel", "rbf", "--gamma", "x", "-o", "m"],
            "'x' is neither scale nor median nor positive numbers such as 0.1",
        ),
        (
            ["fit", "loans.csv", "--target", "risk", "--device", "abacus", "-o", "m"],
            "device is 'abacus'; give 'auto', 'cpu', 'cuda'",
        ),
        (
            ["predict", "loans.model", "loans.csv", "-o", "o.csv", "--level", "95"],
            "95.0 does not lie between 0 and 1; 0.95 is usual.",
        ),
        (
            ["report", "loans.csv", "-o", "r.html"],
            "loans.csv is a table and needs --target COLUMN.",
        ),
        (
            ["report", "loans.model", "--kernel", "rbf", "-o", "r.html"],
            "loans.model is no table but a model that is fitted already;",
        ),
        (["fit", "loans.csv", *_TARGET, "--C", "1,-1", "-o", "m"], "'1,-1' is no list of positive"),
        (["report", "loans.model", "--encoding", "cp1252", "-o", "r.html"], "and none is read."),
        (["reprot"], "No such command 'reprot'"),
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_wrong_command_lines(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("loans.csv", "loans.model"):
        (tmp_path / name).symlink_to(folder / name)
    _refused(_run(*arguments), message, code=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loans.csv", "loans.model"]


@pytest.mark.parametrize("command", ["demo", "fit", "predict", "report"])
def test_help_has_examples(command: str) -> None:
    result = _run(command, "--help")
    assert result.exit_code == 0
    assert f"bootprob {command}" in result.stdout.split("Example")[1]


@pytest.mark.usefixtures("undrawn")
def test_help_and_version_load_nothing_heavy() -> None:
    program = (
        "import sys; from bootprob.cli.__main__ import app; "
        "app(['--help'], standalone_mode=False); "
        "sys.exit(' '.join({'torch', 'pandas', 'sklearn', 'numba', 'matplotlib', 'pyarrow'} "
        "& sys.modules.keys()))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.stderr == "\n"
    for command in ("demo", "fit", "predict", "report"):
        assert f"│ {command} " in result.stdout
    assert _shell("--version").stdout.startswith("bootprob ")


def test_python_runs_the_package_as_the_command_does() -> None:
    given = [sys.executable, "-m", "bootprob"]
    result = subprocess.run([*given, "--version"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, f"bootprob {__version__}\n")
    wrong = [*given, "predict", "none.model", "none.csv", "-o", "never.csv"]
    result = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("Error: ")


def _raising(error: BaseException) -> Result:
    """A command that fails in the way given, run by the same machinery."""
    from bootprob.cli.console import Commands

    failing = typer.Typer(cls=Commands, pretty_exceptions_enable=False)
    failing.callback()(lambda: None)

    @failing.command()
    def work() -> None:
        raise error

    return CliRunner().invoke(failing, ["work"])


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (DataError("Too [bold]bad[/bold]."), 1, "Error: Too [bold]bad[/bold].\n"),
        (
            OSError(28, "No space left on device", "m.model"),
            1,
            "Error: m.model: No space left on device.\n",
        ),
        (OSError(28, "No space left on device"), 1, "Error: No space left on device.\n"),
        (
            PermissionError(13, "Permission denied", "t.csv"),
            1,
            "Error: t.csv: Permission denied.\n",
        ),
        (
            MemoryError(),
            1,
            "Error: There is not enough memory; use fewer rows or a smaller --n-bootstraps.\n",
        ),
        (KeyboardInterrupt(), 130, "Stopped.\n"),
    ],
)
def test_what_goes_wrong_is_said_in_a_line(error: BaseException, code: int, said: str) -> None:
    result = _raising(error)
    assert result.exit_code == code
    assert result.stderr == said


def test_a_bug_keeps_its_traceback() -> None:
    result = _raising(ZeroDivisionError("a bug"))
    assert isinstance(result.exception, ZeroDivisionError)


def test_warnings_are_one_line() -> None:
    from bootprob.cli.console import Commands

    warning = typer.Typer(cls=Commands)
    warning.callback()(lambda: None)

    @warning.command()
    def work() -> None:
        warnings.simplefilter("always")
        warnings.warn("3 of 5500 models were not solved.", UserWarning, stacklevel=1)

    result = CliRunner().invoke(warning, ["work"])
    assert result.exit_code == 0
    assert result.stderr == "Warning: 3 of 5500 models were not solved.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.parametrize(
    ("sent", "code", "jobs"), [(signal.SIGINT, 130, "1"), (signal.SIGTERM, 143, "2")]
)
def test_a_fit_is_stopped(
    folder: Path, tmp_path: Path, sent: signal.Signals, code: int, jobs: str
) -> None:
    (tmp_path / "m.model").write_text("old")
    arguments = ["fit", folder / "loans.csv", *_TARGET, "--kernel", "rbf", "--n-bootstraps", "5000"]
    arguments += ["--jobs", jobs]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments), "-o", "m.model"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        env=os.environ | {"FORCE_COLOR": "1"},  # so that the progress bar moves
        # Whoever runs the tests in the background may have them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process:
        assert process.stderr is not None
        said = b""
        while b"SVMs" not in said and process.poll() is None:
            said += process.stderr.read1()  # type: ignore[attr-defined]
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(sent)
        said += process.communicate(timeout=60)[1]
    assert process.returncode == code, said
    assert not psutil.wait_procs(workers, timeout=30)[1]
    assert said.decode().splitlines()[-1].endswith("Stopped.")
    assert b"Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["m.model"]
    assert (tmp_path / "m.model").read_text() == "old"


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_workers_do_not_outlive_a_killed_fit(folder: Path, tmp_path: Path) -> None:
    arguments = ["fit", folder / "loans.csv", *_TARGET, "--kernel", "rbf", "--n-bootstraps", "5000"]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments), "--jobs", "2", "-o", "m.model"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        env=os.environ | {"FORCE_COLOR": "1"},  # so that the progress bar moves
    )
    with process:
        assert process.stderr is not None
        said = b""
        while said.count(b"SVMs") < 20 and process.poll() is None:  # workers are at work
            said += process.stderr.read1()  # type: ignore[attr-defined]
        workers = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        assert not psutil.wait_procs(workers, timeout=60)[1]
    assert len(workers) >= 2
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk(folder: Path, tmp_path: Path) -> None:
    import resource

    output = tmp_path / "out.csv"
    output.write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        result = _run("predict", folder / "loans.model", folder / "new.parquet", "-o", output)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == f"Error: {output}: File too large."
    assert list(tmp_path.iterdir()) == [output]
    assert output.read_text() == "old"


def test_peak_memory_grows_with_what_is_held() -> None:
    program = (
        "from bootprob.cli.console import peak_memory; before = peak_memory(); "
        "held = b'x' * 50_000_000; print(peak_memory() - before)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert 40e6 < int(result.stdout) < 80e6
