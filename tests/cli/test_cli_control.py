"""Rates that must hold and rows set aside, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from test_cli import QUICK, _refused, _run

from bootprob import BootstrapSVC
from bootprob.cli import control
from bootprob.cli.control import Bound, Control, control_parameters
from bootprob.metrics import rates
from bootprob.persistence.save_load import load, save
from bootprob.tables.files import read_table, write_table
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

BAD = ["--target", "risk", "--positive", "bad", *QUICK]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a training table, rows set aside and a model under control."""
    folder = tmp_path_factory.mktemp("control")
    write_table(credit_table(160), folder / "loans.csv")
    write_table(credit_table(60, seed=1), folder / "april.csv")
    given = ["--tpr", "0.8", "--confidence", "0.9", "-o", folder / "loans.model"]
    fitted = _run("fit", folder / "loans.csv", *BAD, *given)
    assert fitted.exit_code == 0, fitted.output
    (folder / "said.txt").write_text(fitted.output)
    return folder


def loaded(path: Path) -> TableModel:
    model = load(path)
    assert isinstance(model, TableModel)
    return model


def test_a_rate_alone_means_the_threshold(folder: Path) -> None:
    svc = loaded(folder / "loans.model").svc
    assert (svc.control, svc.rates, svc.confidence) == ("threshold", {"tpr": 0.8}, 0.9)
    assert svc.bound == BootstrapSVC(kernel="linear").bound


def test_what_was_wanted_and_reached_is_shown(folder: Path) -> None:
    said = " ".join((folder / "said.txt").read_text().split())
    [rate] = loaded(folder / "loans.model").svc.controlled_rates_
    assert "Rates of linear under control (threshold, wanted with confidence 0.9)" in said
    shown = said.partition("without control")[2]
    assert f"Sensitivity │ ≥ 0.8 │ {rate['required_share']:.3f} │ {rate['out_of_bag']:.3f}" in shown
    assert "│ Specificity │ – │ – │ " in shown
    threshold = loaded(folder / "loans.model").svc.decision_threshold_
    assert f"decided positive where its own is above {threshold:.3g}" in shown


def test_without_rates_nothing_of_it_is_shown(folder: Path, tmp_path: Path) -> None:
    result = _run("fit", folder / "loans.csv", *BAD, "-o", tmp_path / "m.model")
    assert result.exit_code == 0, result.output
    assert "control" not in result.output
    assert loaded(tmp_path / "m.model").svc.control is None


def test_predict_needs_nothing(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    result = _run("predict", folder / "loans.model", folder / "april.csv", "-o", output)
    assert result.exit_code == 0, result.output
    found = read_table(output)
    np.testing.assert_array_equal(
        found["label"] == "bad", found["probability"] > found["threshold"]
    )


def test_constrained_machines_of_a_polynomial_kernel(folder: Path, tmp_path: Path) -> None:
    given = ["--kernel", "poly", "--degree", "2", "--control", "constrained", "--tnr", "0.8"]
    given += ["--n-bootstraps", "2", "-o", tmp_path / "m.model"]
    result = _run("fit", folder / "loans.csv", *BAD, *given)
    assert result.exit_code == 0, result.output
    svc = loaded(tmp_path / "m.model").svc
    assert (svc.kernel, svc.degree, svc.control) == ("poly", 2, "constrained")
    assert svc.control_gap_ is not None


def test_constrained_machines_and_both_rates(folder: Path, tmp_path: Path) -> None:
    given = ["--control", "constrained", "--tpr", "0.6", "--tnr", "0.5", "-o", tmp_path / "m.model"]
    result = _run("fit", folder / "loans.csv", *BAD, "--kernel", "rbf", "--C", "1", *given)
    assert result.exit_code == 0, result.output
    svc = loaded(tmp_path / "m.model").svc
    assert (svc.control, svc.rates) == ("constrained", {"tpr": 0.6, "tnr": 0.5})
    said = " ".join(result.output.split())
    assert "that promises nothing of other rows" in said
    assert "without control" not in said


@pytest.mark.usefixtures("undrawn")
def test_report_with_rows_set_aside(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "loans.html"
    result = _run(
        "report", folder / "loans.model", "--held-out", folder / "april.csv", "-o", output
    )
    assert result.exit_code == 0, result.output
    numbers = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
    tpr, tnr = numbers["models"][0]["control"]["rates"]
    april = read_table(folder / "april.csv")
    labels = loaded(folder / "loans.model").predict(april)["label"]
    for rate, name in ((tpr, "bad"), (tnr, "good")):
        members = april["risk"] == name
        assert rate["held_out"]["n_rows"] == members.sum()
        assert rate["held_out"]["value"] == pytest.approx((labels == name)[members].mean())
    assert "Rates under control" in output.read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn")
def test_report_of_a_table_under_control(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "r.html"
    given = ["--tnr", "0.7", "--held-out", folder / "april.csv", "-o", output]
    result = _run("report", folder / "loans.csv", *BAD, *given)
    assert result.exit_code == 0, result.output
    numbers = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
    assert numbers["models"][0]["control"]["rates"][1]["wanted"] == 0.7
    assert numbers["models"][0]["held_out"]["n_rows"] == 60


def test_rates_that_cannot_be_kept(folder: Path, tmp_path: Path) -> None:
    fit = ["fit", folder / "loans.csv", *BAD, "-o", tmp_path / "m.model"]
    _refused(_run(*fit, "--tpr", "0.99", "--confidence", "0.95"), "give at least 299 positives")
    result = _run(*fit, "--tpr", "0.97", "--tnr", "0.97")  # known only after training
    assert result.exit_code == 1
    error = result.stderr[result.stderr.index("Error: ") :]
    assert "No threshold keeps both tpr ≥ 0.97 and tnr ≥ 0.97" in error
    assert len(error.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--control", "threshold"],
            "--control threshold needs a rate to keep: --tpr, --tnr, --ppv",
        ),
        (["--confidence", "0.9"], "--confidence needs a rate to keep"),
        (["--bound", "hoeffding"], "--bound needs --confidence"),
        (["--tpr", "0.9", "--bound", "hoeffding"], "--bound needs --confidence"),
        (["--tpr", "95"], "95 is no rate above 0, up to 1; write 95 % as 0.95."),
        (["--tnr", "0"], "0 is no rate above 0"),
        (["--tpr", "nan"], "nan is no rate"),
        (["--tpr", "0.9", "--confidence", "1"], "1 does not lie between 0 and 1; 0.95 is usual."),
        (["--tpr", "0.9", "--control", "magic"], "'magic'"),
        (["--tpr", "0.9", "--calibration", "isotonic"], "isotonic"),
        (["--ppv", "0.9", "--control", "constrained"], "--ppv needs --control threshold"),
        (["--ppv", "90"], "write 95 % as 0.95"),
        (["--npv", "0.9", "--rate", "bad=0.9"], "--all-classes"),
    ],
)
def test_wrong_command_lines(
    folder: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    fit = ["fit", folder / "loans.csv", *BAD, "-o", tmp_path / "m.model"]
    _refused(_run(*fit, *options), message, code=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("undrawn")
def test_control_does_not_apply_to_a_model(folder: Path, tmp_path: Path) -> None:
    given = ["--tpr", "0.9", "-o", tmp_path / "r.html"]
    _refused(_run("report", folder / "loans.model", *given), "fitted already", code=2)


@pytest.mark.usefixtures("undrawn")
def test_tables_that_cannot_be_held_out(folder: Path, tmp_path: Path) -> None:
    report = ["report", folder / "loans.model", "-o", tmp_path / "r.html", "--held-out"]
    _refused(_run(*report, tmp_path / "no.csv"), "There is no file")
    _refused(_run(*report, folder / "loans.model"), "must end in .csv, .tsv, .parquet or .xlsx")
    april = read_table(folder / "april.csv")
    for name, frame, message in (
        ("unlabelled.csv", april.drop(columns="risk"), "has no column 'risk'"),
        ("bad.csv", april[april["risk"] == "bad"], "The held-out rows have none of class 'good'"),
        ("ugly.csv", april.assign(risk="ugly"), "has the label 'ugly' in rows 1, 2,"),
        ("few.csv", april.drop(columns="months"), "lacks the column"),
    ):
        write_table(frame, tmp_path / name)
        _refused(_run(*report, tmp_path / name), message)
    again = ["report", folder / "loans.csv", *BAD, "-o", tmp_path / "r.html"]
    _refused(_run(*again, "--held-out", folder / "loans.csv"), "hold out other rows")
    assert not (tmp_path / "r.html").exists()


@pytest.mark.usefixtures("undrawn")
def test_a_model_of_arrays_takes_no_other_table(folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    model = BootstrapSVC(kernel="linear", n_bootstraps=4, C=1.0).fit(
        rng.normal(size=(20, 2)), np.arange(20) % 2
    )
    save(model, tmp_path / "m.model")
    given = ["--held-out", folder / "april.csv", "-o", tmp_path / "r.html"]
    _refused(_run("report", tmp_path / "m.model", *given), "was fitted to an array of 2 columns")


def test_rates_are_those_of_the_ensemble() -> None:
    assert control.OF_TWO_CLASSES == rates.OF_TWO_CLASSES


def test_only_what_was_given_reaches_the_ensemble() -> None:
    assert control_parameters(None, {"tpr": None}, None, None) == {}
    assert control_parameters(
        Control.constrained, {"tpr": 0.9, "tnr": 0.8, "ppv": None}, 0.95, Bound.hoeffding
    ) == {
        "control": "constrained",
        "rates": {"tpr": 0.9, "tnr": 0.8},
        "confidence": 0.95,
        "bound": "hoeffding",
    }
    assert control_parameters(None, {"tpr": None, "tnr": 0.8}, None, None) == {
        "control": "threshold",
        "rates": {"tnr": 0.8},
    }


@pytest.mark.usefixtures("undrawn")
def test_predictive_values_from_the_command_line(folder: Path, tmp_path: Path) -> None:
    asked = ("--ppv", "0.6", "--confidence", "0.8")
    result = _run("fit", folder / "loans.csv", *BAD, *asked, "-o", tmp_path / "m.model")
    assert result.exit_code == 0, result.output
    assert "Precision" in result.stdout
    result = _run("report", tmp_path / "m.model", "-o", tmp_path / "m.html",
                  "--held-out", folder / "april.csv")  # fmt: skip
    assert result.exit_code == 0, result.output
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert "a precision of at least" in page
    assert "of rows decided bad" in page
    [model] = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))["models"]
    *_, ppv = model["control"]["rates"]
    assert (ppv["rate"], ppv["wanted"], ppv["confidence"]) == ("ppv", 0.6, 0.8)
    assert 0 < ppv["held_out"]["value"] <= 1


@pytest.mark.usefixtures("undrawn")
def test_rows_left_undecided_from_the_command_line(folder: Path, tmp_path: Path) -> None:
    asked = ("--tpr", "0.9", "--tnr", "0.9", "--decided", "0.1")
    result = _run("fit", folder / "loans.csv", *BAD, *asked, "-o", tmp_path / "m.model")
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "Share decided" in said
    assert "left undecided" in said
    result = _run("predict", tmp_path / "m.model", folder / "april.csv", "-o", tmp_path / "p.csv")
    n = int(read_table(tmp_path / "p.csv")["undecided"].astype(str).eq("True").sum())
    assert f"; {n} are left undecided" in result.stdout
    result = _run("report", tmp_path / "m.model", "-o", tmp_path / "m.html",
                  "--held-out", folder / "april.csv")  # fmt: skip
    assert result.exit_code == 0, result.output
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert "are left <b>undecided</b>" in page
    [model] = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))["models"]
    assert [r["rate"] for r in model["control"]["rates"]] == ["tpr", "tnr", "decided"]
    assert model["control"]["rates"][2]["held_out"]["value"] == pytest.approx(1 - n / 60)
