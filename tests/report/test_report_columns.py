"""What a report says of the table's columns."""

import json

import numpy as np
import pandas as pd
import pytest

from bootprob import BootstrapSVC, load, save
from bootprob.report import write_report
from bootprob.tables.model import TableModel
from bootprob.tables.roles import ColumnRoles
from mixed_tables import credit_table
from report_pages import check_accessible

SETTINGS = {"kernel": "linear", "n_bootstraps": 20, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    table = credit_table(80)
    return table.assign(
        number=[f"no. {k}" for k in range(80)], who=np.arange(80) // 2, note="", count=1.0
    )


@pytest.mark.usefixtures("undrawn")
def test_used_and_left_out(table, tmp_path):
    roles = ColumnRoles(groups="who", weight="count", drop=("branch",))
    model = TableModel.fit(table, "risk", "bad", roles=roles, **SETTINGS)
    save(model, tmp_path / "loans.model")
    written = []
    for each in (model, load(tmp_path / "loans.model")):
        content = write_report(
            {"linear": each.svc_with_class_names()},
            tmp_path / "page.html",
            title="Loans",
            table=each,
        )
        written.append(content["models"][0]["columns"])
    found, again = written
    assert found == again
    used = {each["name"]: each for each in found["used"]}
    assert list(used) == ["status", "months", "purpose", "amount", "foreign", "persons"]
    for name, column in used.items():
        assert column["n_missing"] == table[name].isna().sum()
        levels = table[name].dropna().unique() if column["kind"] != "number" else None
        assert column["n_levels"] == (None if levels is None else len(levels))
        filled = "the median" if levels is None else "the most frequent one"
        assert column["filled_with"] == filled
    assert used["months"]["n_missing"] > 0
    left_out = {each["name"]: each["reason"] for each in found["left_out"]}
    assert left_out.keys() == {"number", "note", "branch", "who", "count"}
    assert "identifier" in left_out["number"]
    assert left_out["branch"] == "it was to be dropped (drop)"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    check_accessible(page)
    assert "6 columns of the table were learned from, 5 left out." in page
    assert f"<td>category, {table['status'].nunique()} levels</td>" in page
    assert json.loads((tmp_path / "page.json").read_text())["models"][0]["columns"] == found


@pytest.mark.usefixtures("undrawn")
def test_a_model_of_a_data_frame_has_its_own(table, tmp_path):
    X, y = table[["months", "foreign"]], table["risk"]
    model = BootstrapSVC(**SETTINGS).fit(X, y)
    content = write_report({"linear": model}, tmp_path / "page.html", title="Loans")
    assert [each["kind"] for each in content["models"][0]["columns"]["used"]] == [
        "number",
        "boolean",
    ]


@pytest.mark.usefixtures("undrawn")
def test_of_a_matrix_nothing_is_said(tmp_path):
    rng = np.random.default_rng(0)
    model = BootstrapSVC(**SETTINGS).fit(rng.normal(size=(60, 2)), np.arange(60) % 2)
    content = write_report({"linear": model}, tmp_path / "page.html", title="Noise")
    assert content["models"][0]["columns"] is None
    assert "h-columns" not in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn")
def test_a_table_of_many_columns_is_cut(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 103))).add_prefix("gene").assign(kind=["a", "b"] * 20)
    model = BootstrapSVC(**SETTINGS | {"C": [1.0]}).fit(X, rng.integers(0, 2, 40))
    content = write_report({"linear": model}, tmp_path / "page.html", title="Genes")
    page = (tmp_path / "page.html").read_text(encoding="utf-8").split('id="columns"')[1]
    page = page.split("</section>")[0]
    assert len(content["models"][0]["columns"]["used"]) == 104
    assert "gene99<" in page
    assert "gene100<" not in page
    assert "All of them are in <code>page.json</code>." in page
