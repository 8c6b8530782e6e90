"""The section of subgroups: its numbers, what it warns of, and where it finds the column."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from test_report import Page, numbers_in
from typer.testing import CliRunner

from bootprob import BootstrapSVC, DataError
from bootprob.cli.__main__ import app
from bootprob.metrics import subgroup_metrics
from bootprob.persistence.save_load import save
from bootprob.report import write_report
from bootprob.tables.held_out import HeldOut
from bootprob.tables.model import TableModel
from mixed_tables import credit_table
from report_pages import check_accessible

QUICK = {"kernel": "linear", "C": 1.0, "n_bootstraps": 30, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    frame = credit_table(160)
    site = np.random.default_rng(0).choice(
        ["north", "<b>south</b>", "west"], 160, p=[0.6, 0.37, 0.03]
    )
    return frame.assign(site=site)


@pytest.fixture(scope="module")
def model(table):
    return TableModel.fit(table.drop(columns="site"), "risk", "bad", **QUICK)


def written(model, path, **options):
    named = {"linear": model.svc_with_class_names()}
    write_report(named, path, title="Loans", table=model, **options)
    source = path.read_text(encoding="utf-8")
    return source, json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def test_numbers_of_the_section_are_those_of_the_rows(model, table, tmp_path):
    held_out = credit_table(90, seed=4).assign(site=np.resize(["north", "west"], 90))
    source, numbers = written(
        model, tmp_path / "r.html", training=table, by="site",
        held_out=HeldOut.of_table(model, held_out),
    )  # fmt: skip
    told = numbers["models"][0]["subgroups"]
    assert told["by"] == "site"
    found = model.svc.subgroup_metrics(table["site"])
    every, *own = told["out_of_bag"]["subgroups"]
    assert every["name"] == "all"
    assert [each["name"] for each in own] == ["<b>south</b>", "north", "west"]
    for each, expected in zip(own, found.subgroups, strict=True):
        assert each["n_rows"] == (table["site"] == each["name"]).sum()
        for name, number in expected.numbers.items():
            shown = each["numbers"][name]
            assert shown["value"] == (number.value if np.isfinite(number.value) else None)
        assert 0 <= each["in_set"]["lower"] <= each["in_set"]["value"] <= 1
    assert every["in_set"]["value"] == pytest.approx(0.95, abs=0.02)
    p = model.predict(held_out)["probability"]
    aside = subgroup_metrics(held_out["risk"] == "bad", p, held_out["site"])
    for each, expected in zip(told["held_out"]["subgroups"][1:], aside.subgroups, strict=True):
        assert each["numbers"]["auc"]["value"] == pytest.approx(expected.numbers["auc"].value)
    page = Page(source)
    known = set(numbers_in(numbers))
    assert all(value in known for value, _ in page.shown)
    assert "Is it as good for all subgroups?" in page.words()
    assert "Too few rows to say: west" in page.words()
    assert "<b>south</b>" in page.words()  # as text
    assert "<b>south" not in source
    check_accessible(source)


def test_only_what_was_asked_for(model, table, tmp_path):
    source, numbers = written(model, tmp_path / "r.html", training=table)
    assert numbers["models"][0]["subgroups"] is None
    assert 'id="subgroups"' not in source
    values = pd.Series(np.resize(["x", "y"], 160), name="half")
    _, numbers = written(model, tmp_path / "r.html", by=values)
    assert numbers["models"][0]["subgroups"]["by"] == "half"


def test_subgroups_of_one_class_have_shares_and_no_metrics(model, table, tmp_path):
    training, held_out = (
        rows.assign(kind=np.where(np.arange(len(rows)) % 3, "both", rows["risk"].astype(str)))
        for rows in (table, credit_table(90, seed=4))
    )
    source, numbers = written(
        model, tmp_path / "r.html", training=training, by="kind",
        held_out=HeldOut.of_table(model, held_out),
    )  # fmt: skip
    told = numbers["models"][0]["subgroups"]
    for where in ("out_of_bag", "held_out"):
        [bad] = [each for each in told[where]["subgroups"] if each["name"] == "bad"]
        assert bad["n_positive"] == bad["n_rows"]
        assert "auc" not in bad["numbers"]
        assert bad["numbers"]["observed_share"]["value"] == 1
    cells = re.findall(r"<tr><th scope=\"row\">bad<small>.*?</tr>", source)
    assert len(cells) == 2
    for row in cells:  # Brier score and AUC are of both classes
        assert row.endswith("<td>–</td><td>–</td></tr>")
        assert "<td><" in row
    check_accessible(source)


def test_columns_that_are_not_at_hand(model, table, tmp_path):
    for options, words in (
        ({"training": table, "by": "country"}, "the training table has none"),
        ({"by": "site"}, "a model does not keep its table"),
        ({"training": table, "by": table["site"][:5]}, "by has 5 values, and there are 160 rows"),
    ):
        with pytest.raises(DataError, match=words):
            written(model, tmp_path / "r.html", **options)
    three = BootstrapSVC(**QUICK).fit(np.arange(60.0)[:, None] % 7, np.arange(60) % 3)
    with pytest.raises(DataError, match="Subgroups are told of two classes"):
        write_report({"a": three}, tmp_path / "r.html", title="Three", by=np.arange(60) % 2)
    assert not (tmp_path / "r.html").exists()


@pytest.mark.usefixtures("undrawn")
def test_command_line(model, table, tmp_path):
    table.to_csv(tmp_path / "loans.csv", index=False)
    save(model, tmp_path / "loans.model")

    def run(*given, code=0):
        result = CliRunner().invoke(
            app, ["report", *map(str, given), "-o", str(tmp_path / "r.html")]
        )
        assert result.exit_code == code, result.output
        return " ".join(result.output.replace("│", " ").split())

    fitting = ("--target", "risk", "--positive", "bad", "--kernel", "linear", "--n-bootstraps", 20)
    run(tmp_path / "loans.csv", *fitting, "--drop", "site", "--by", "site")
    [entry] = json.loads((tmp_path / "r.json").read_text("utf-8"))["models"]
    assert len(entry["subgroups"]["out_of_bag"]["subgroups"]) == 4
    run(tmp_path / "loans.model", "--held-out", tmp_path / "loans.csv", "--by", "site")
    [entry] = json.loads((tmp_path / "r.json").read_text("utf-8"))["models"]
    assert entry["subgroups"]["out_of_bag"] is None
    assert "give --held-out TABLE" in run(tmp_path / "loans.model", "--by", "site", code=2)
    missing = run(tmp_path / "loans.csv", *fitting, "--by", "country", code=1)
    assert "has no column 'country'" in missing
    assert "Fitted" not in missing
