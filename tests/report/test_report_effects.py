"""What a report says of columns is what explanations say; and no more than it may."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from bootprob import BootstrapSVC, DataError
from bootprob.explanation import partial_dependence, permutation_importance
from bootprob.report import write_report
from bootprob.report.model import column_effects
from bootprob.report.wording import fine_probability
from bootprob.tables.held_out import HeldOut
from bootprob.tables.model import TableModel
from bootprob.tables.roles import ColumnRoles
from mixed_tables import credit_table

TABLE = credit_table(120)


@pytest.fixture(scope="module")
def loans():
    return TableModel.fit(
        TABLE, "risk", "bad", kernel="linear", C=1.0, n_bootstraps=20, random_state=0
    )


def report(model, path, **more):
    svc = model.svc_with_class_names() if isinstance(model, TableModel) else model
    write_report({"loans": svc}, path / "r.html", title="Loans", **more)
    numbers = json.loads((path / "r.json").read_text(encoding="utf-8"))
    return (path / "r.html").read_text(encoding="utf-8"), numbers["models"][0]["effects"]


def test_importance_curves_and_contributions(loans, tmp_path):
    page, said = report(loans, tmp_path, training=TABLE, table=loans)
    assert "What do the probabilities depend on?" in page
    assert page.count("<figure") == 9
    importance = permutation_importance(loans, TABLE, n_repeats=3, max_rows=500)
    assert said["importance"]["columns"] == importance.to_frame().to_dict("records")
    assert said["importance"]["n_rows"] == importance.n_rows
    assert not said["importance"]["held_out"]
    by_name = {curve["column"]: curve for curve in said["dependence"]}
    assert list(by_name) == importance.to_frame().query("lower > 0")["column"].tolist()
    status, months = by_name["status"], by_name["months"]
    assert status["of_levels"]
    assert set(status["values"]) <= set(loans.preprocessor.levels_["status"])
    assert len(months["values"]) == 20
    assert TABLE["months"].min() < min(months["values"]) < max(months["values"])
    assert max(months["values"]) < TABLE["months"].max()
    curve = partial_dependence(loans, "months", TABLE, values=months["values"])
    assert all(f">{fine_probability(p)}<" in page for p in months["probability"])
    np.testing.assert_allclose(months["interval"], curve.interval)
    rows = said["contributions"]
    assert 1 <= len(rows) <= 4
    for row in rows:
        own = TABLE.iloc[[row["row"] - 1]]
        assert row["positive"] == (own["risk"].item() == "bad")
        assert row["probability"] == pytest.approx(loans.predict(own)["probability"].item())
        total = row["base"] + sum(each["contribution"] for each in row["columns"])
        odds = row["probability"] / (1 - row["probability"])
        assert total + row["not_listed"] == pytest.approx(np.log(odds))
    assert all(f"{value:.2f}" not in page for value in TABLE["amount"].dropna())


@pytest.mark.usefixtures("undrawn")
def test_held_out_rows_do_where_no_others_are_at_hand(loans, tmp_path):
    page, said = report(loans, tmp_path, table=loans)
    assert said is None
    assert 'id="effects"' not in page
    assert page.count("<figure") == 5
    new = credit_table(100, seed=1)
    held_out = HeldOut.of_table(loans, new)
    page, said = report(loans, tmp_path, table=loans, held_out=held_out)
    found = permutation_importance(loans, new, held_out=True, n_repeats=3).to_frame()
    assert said["importance"]["columns"] == found.to_dict("records")
    assert said["importance"]["held_out"]
    assert said["contributions"] == []
    assert "held-out rows, with 95" in " ".join(page.split())
    arrays = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=10, random_state=0)
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = X[:, 0] > np.random.default_rng(1).normal(size=80)
    arrays.fit(X, y)
    _, said = report(arrays, tmp_path, held_out=HeldOut(X[:40], y[:40]))
    assert {each["column"] for each in said["importance"]["columns"]} == {"x0", "x1"}


@pytest.mark.usefixtures("undrawn")
def test_models_and_tables_without_a_section(loans, tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] > np.random.default_rng(1).normal(size=60)
    votes = BootstrapSVC.paper(n_bootstraps=10, random_state=0).fit(X, y)
    assert report(votes, tmp_path, training=X)[1] is None
    given = BootstrapSVC(kernel="precomputed", C=1.0, n_bootstraps=10).fit(rbf_kernel(X), y)
    assert report(given, tmp_path)[1] is None
    with pytest.raises(DataError, match="not the rows of fit"):
        report(loans, tmp_path, training=TABLE[::-1], table=loans)
    svc = loans.svc_with_class_names()
    with pytest.raises(DataError, match="the one model that is reported"):
        write_report({"a": svc, "b": svc}, tmp_path / "r.html", title="Two", table=loans)
    monkeypatch.setattr(column_effects, "_WORK", 500 * 7 * 70)  # of which 70 rows can be scored
    _, said = report(loans, tmp_path, training=TABLE, table=loans)
    assert (said["importance"]["n_rows"], said["importance"]["n_repeats"]) == (70, 1)
    monkeypatch.setattr(column_effects, "_WORK", 1_000)
    assert report(loans, tmp_path, training=TABLE, table=loans)[1] is None


@pytest.mark.parametrize("with_model", [False, True])
def test_curves_of_dates(tmp_path, with_model):
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + np.arange(150).astype("timedelta64[D]")
    table = pd.DataFrame({"opened": days.astype(str), "size": rng.normal(size=150)})
    table["late"] = np.where(rng.logistic(size=150) < (np.arange(150) - 75) / 15, "yes", "no")
    fitting = {"kernel": "linear", "C": 1.0, "n_bootstraps": 10, "random_state": 0}
    model = TableModel.fit(table, "late", "yes", roles=ColumnRoles(dates=("opened",)), **fitting)
    training = {"training": table} if with_model else {"held_out": HeldOut.of_table(model, table)}
    page, said = report(model, tmp_path, table=model, **training)
    curve = said["dependence"][0]
    assert curve["column"] == "opened"
    assert days[0] < np.datetime64(curve["values"][0])
    assert np.datetime64(curve["values"][-1]) < days[-1]
    expected = partial_dependence(model, "opened", table, values=curve["values"])
    np.testing.assert_allclose(curve["log_odds"], expected.log_odds)
    assert all(f">{day}<" in page for day in curve["values"])
