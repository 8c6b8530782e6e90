"""Dates: the same numbers from whatever a file or a library calls a date, and in all ways in."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from bootprob import BootstrapSVC
from bootprob.batch_scoring import ScoringOptions, score_dataset
from bootprob.cli.__main__ import app
from bootprob.encoding.preprocessing import TablePreprocessor
from bootprob.exceptions import CopiedRowsWarning, DataError
from bootprob.explanation import contributions, partial_dependence
from bootprob.onnx_export import export_onnx
from bootprob.persistence import load, save
from bootprob.report.scored.column_drift import column_drift
from bootprob.server.columns import Columns
from bootprob.server.errors import RequestError
from bootprob.server.records import RecordForm
from bootprob.server.served_model import ServedModel
from bootprob.server.tensors import rows_of
from bootprob.tables.model import TableModel
from bootprob.tables.roles import ColumnRoles

pytestmark = pytest.mark.filterwarnings("ignore::bootprob.exceptions.LackOfFitWarning")

DATES = ColumnRoles(dates=("opened", "seen"))


def _table(n: int = 150, seed: int = 0) -> pd.DataFrame:
    """`opened` is a day, `seen` has a time; gaps in both."""
    rng = np.random.default_rng(seed)
    opened = pd.Series(
        np.datetime64("2021-03-07", "s") + rng.integers(0, 900, n).astype("timedelta64[D]")
    )
    seen = pd.Series(
        np.datetime64("2023-01-01", "us") + rng.integers(0, 10**13, n).astype("timedelta64[us]")
    )
    late = (opened - opened.min()).dt.days.to_numpy() > 450
    return pd.DataFrame(
        {
            "amount": rng.normal(size=n).round(3),
            "opened": opened.where(rng.random(n) > 0.05),
            "seen": seen.where(rng.random(n) > 0.05),
            "paid": np.where(rng.random(n) < np.where(late, 0.85, 0.2), "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def model() -> TableModel:
    return TableModel.fit(
        _table(), "paid", "yes", roles=DATES, kernel="linear", n_bootstraps=10, random_state=0
    )


def test_features_are_those_of_pandas() -> None:
    table = _table().drop(columns="paid")
    preprocessor = TablePreprocessor(dates=["opened", "seen"]).fit(table)
    names = preprocessor.get_feature_names_out().tolist()
    found = pd.DataFrame(preprocessor.transform(table), columns=names)
    assert "opened: hour" not in names  # midnight, all of them
    for name in ("opened", "seen"):
        known = table[name].dropna()
        at = table[name].fillna(known.sort_values().iloc[(len(known) - 1) // 2])
        days = (at - known.min()) / pd.Timedelta(days=1)
        np.testing.assert_allclose(found[f"{name}: days"], days, rtol=1e-14)
        for part, values in (("month", at.dt.month_name()), ("weekday", at.dt.day_name())):
            dummies = found.filter(regex=f"^{name}: {part}=")
            assert (dummies.sum(axis=1) == 1).all()
            assert dummies.shape[1] == values.nunique()
            told = dummies.idxmax(axis=1).str.split("=").str[1]
            assert (told == values.str[:3]).all()
    at = table["seen"].dropna()
    midnight = at.dt.floor("D")
    hours = (at - midnight) / pd.Timedelta(hours=1)
    np.testing.assert_allclose(found["seen: hour"][at.index], hours, rtol=1e-12)


def _forms(given: pd.Series) -> dict[str, Any]:
    """The same days as libraries and files hold them."""
    days = [None if pd.isna(day) else day.date() for day in given]
    texts = pd.Series([None if day is None else day.isoformat() for day in days], dtype=object)
    return {
        "nanoseconds": given.astype("datetime64[ns]"),
        "seconds": given.astype("datetime64[s]"),
        "UTC": given.astype("datetime64[us]").dt.tz_localize("UTC"),
        "Berlin": given.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"),
        "python": pd.Series(days, dtype=object),
        "text": texts,
        "categories": texts.astype("category"),
        "with zones": pd.Series(
            [None if pd.isna(day) else f"{day}+02:00" for day in given + pd.Timedelta(hours=2)]
        ),
        "compact": texts.str.replace("-", ""),
        "arrow": pa.table({"x": pa.array(days, pa.date32())}).to_pandas()["x"],
        "arrow dtype": pd.Series(pd.array(days, dtype=pd.ArrowDtype(pa.date32()))),
        "arrow time": pd.Series(pd.array(given, dtype=pd.ArrowDtype(pa.timestamp("ms")))),
    }


def test_a_date_is_a_date_in_every_form() -> None:
    given = _table()["opened"]
    fitted = TablePreprocessor(dates=["x"]).fit(pd.DataFrame({"x": given}))
    expected = fitted.transform(pd.DataFrame({"x": given}))
    for name, column in _forms(given).items():
        frame = pd.DataFrame({"x": column})
        np.testing.assert_array_equal(fitted.transform(frame), expected, err_msg=name)
        again = TablePreprocessor(dates=["x"]).fit(frame)
        assert again.to_dict() == fitted.to_dict(), name
    as_json = [None if pd.isna(day) else str(day) for day in given]
    np.testing.assert_array_equal(fitted.encoder_.encode({"x": as_json}, 150).X, expected)


def test_all_ways_give_one_probability(model: TableModel, tmp_path: Path) -> None:
    rows = _table(60, seed=1).drop(columns="paid")
    expected = model.predict(rows)["probability"].to_numpy()
    save(model, tmp_path / "m.bootprob")
    again = load(tmp_path / "m.bootprob")
    assert isinstance(again, TableModel)
    assert again.preprocessor.to_dict() == model.preprocessor.to_dict()
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet")
    days = rows.assign(opened=rows["opened"].dt.date)  # date32, and text that is a time
    days["seen"] = days["seen"].astype(str).where(days["seen"].notna())
    days.to_parquet(tmp_path / "days.parquet")
    assert (
        str(pa.parquet.read_schema(tmp_path / "days.parquet").field("opened").type) == "date32[day]"
    )
    for name in ("rows.csv", "rows.parquet", "days.parquet"):
        score_dataset(again, tmp_path / name, tmp_path / "scored.parquet")
        scored = pd.read_parquet(tmp_path / "scored.parquet")["probability"]
        np.testing.assert_array_equal(scored, expected, err_msg=name)
        (tmp_path / "scored.parquet").unlink()
        done = CliRunner().invoke(
            app, ["predict", str(tmp_path / "m.bootprob"), str(tmp_path / name), "-o",
                  str(tmp_path / "out.parquet")]
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        found = pd.read_parquet(tmp_path / "out.parquet")["probability"]
        np.testing.assert_array_equal(found, expected, err_msg=name)
    served = ServedModel(again, "m", "1")
    records = rows.astype(object).where(rows.notna(), None)
    for name in ("opened", "seen"):
        records[name] = pd.Series(
            [None if at is None else str(at) for at in records[name]], dtype=object
        )
    _, values = RecordForm(served.columns, 100).read({"records": records.to_dict("records")})
    X = served.columns.encoder.encode(values, len(rows)).X
    tensors = [
        {"name": name, "shape": [60], "datatype": "FP64" if name == "amount" else "BYTES",
         "data": records[name].tolist()}
        for name in records
    ]  # fmt: skip
    np.testing.assert_array_equal(rows_of(tensors, served.columns, 100)[0], X)
    np.testing.assert_array_equal(X, again.preprocessor.transform(rows))


def test_fit_from_files_on_request(tmp_path: Path) -> None:
    table = _table(90)
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    options = ["--target", "paid", "--kernel", "linear", "--n-bootstraps", "5", "--seed", "0"]
    run = CliRunner().invoke
    found = []
    for name in ("t.csv", "t.parquet"):
        out = tmp_path / f"{name}.model"
        command = ["fit", str(tmp_path / name), *options, "-o", str(out)]
        done = run(app, [*command, "--dates", "opened", "--dates", "seen"])
        assert done.exit_code == 0, done.output
        model = load(out)
        assert isinstance(model, TableModel)
        found.append(model.predict(table)["probability"].to_numpy())
        if name == "t.parquet":
            refused = run(app, command)
            assert refused.exit_code == 1
            assert "Column 'opened' holds dates" in " ".join(refused.output.split())
            assert "--dates" in refused.output
    np.testing.assert_array_equal(*found)


def test_what_is_no_date_is_told(model: TableModel, tmp_path: Path) -> None:
    rows = _table(5, seed=2).drop(columns="paid").astype({"opened": object, "seen": object})
    rows.loc[3, "opened"] = "31.12.2024"
    message = r"'opened' is one of dates, but '31\.12\.2024' is none \(row 4\); write"
    with pytest.raises(DataError, match=message):
        model.predict(rows)
    texts = rows.assign(**{name: rows[name].astype(str) for name in ("opened", "seen")})
    texts = texts.replace({"NaT": None, "nan": None})
    texts.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(DataError, match=r"row 4 of rows.csv \(opened: not a date\)"):
        score_dataset(model, tmp_path / "rows.csv", tmp_path / "no.csv")
    options = ScoringOptions(bad_rows="null")
    summary = score_dataset(model, tmp_path / "rows.csv", tmp_path / "out.csv", options)
    assert summary.n_bad == 1
    assert pd.read_csv(tmp_path / "out.csv")["probability"].isna().tolist() == [False] * 3 + [
        True,
        False,
    ]
    columns = Columns.of(model)
    record = {"amount": 1.0, "opened": "2022-02-30", "seen": None}
    with pytest.raises(RequestError, match="row 0, column 'opened': Input should be a date as"):
        RecordForm(columns, 10).read({"records": [record]})
    inputs = [
        {"name": "amount", "shape": [1], "datatype": "FP64", "data": [1.0]},
        {"name": "opened", "shape": [1], "datatype": "BYTES", "data": ["soon"]},
        {"name": "seen", "shape": [1], "datatype": "BYTES", "data": [None]},
    ]
    with pytest.raises(RequestError, match="'opened' must hold dates"):
        rows_of(inputs, columns, 10)
    far = pd.Series(np.array(["2021-05-05", "12021-05-05"], dtype="datetime64[s]"))
    with pytest.raises(DataError, match=r"'opened' is one of dates, but .* \(row 2\)"):
        model.predict(rows[:2].assign(opened=far))


def test_columns_that_are_no_dates() -> None:
    table = _table()
    features = table.drop(columns="paid")
    with pytest.raises(DataError, match=r"'opened' holds dates .* TablePreprocessor\(dates=\['o"):
        BootstrapSVC(n_bootstraps=5).fit(features, table["paid"])
    with pytest.raises(DataError, match="no column 'open' that could hold dates; the table has"):
        TablePreprocessor(dates=["open"]).fit(features)
    with pytest.raises(DataError, match="give a list of columns"):
        TablePreprocessor(dates="opened").fit(features)
    with pytest.raises(DataError, match=r"'amount' is one of dates, but '-0\.077' is none"):
        TablePreprocessor(dates=["opened", "seen", "amount"]).fit(features)
    with pytest.raises(DataError, match="'opened' is given as drop and as dates"):
        TableModel.fit(table, "paid", roles=ColumnRoles(drop=("opened",), dates=("opened",)))
    texts = pd.DataFrame({"a": ["2024-01-01", "2024-02-01"] * 3, "b": range(6)})
    texts["c"] = [f"2024-01-0{day}" for day in range(1, 7)]
    [left_out, taken] = TablePreprocessor().fit(texts).notes_
    assert "'c' is left out" in left_out
    assert "--dates" in left_out
    assert "'a' holds dates and is taken as 2 categories; name it as dates (--dates)" in taken


def test_only_what_varies() -> None:
    days = pd.Series(pd.date_range("2024-01-01", periods=4, freq="7D"))  # Mondays of January
    fitted = TablePreprocessor(dates=["x"]).fit(pd.DataFrame({"x": days}))
    assert fitted.get_feature_names_out().tolist() == ["x: days"]
    days = pd.Series(pd.to_datetime(["2024-01-01T00:00", "2024-02-05T06:30", None]))
    frame = pd.DataFrame({"x": days})
    fitted = TablePreprocessor(dates=["x"]).fit(frame)
    names = ["x: days", "x: hour", "x: month=Jan", "x: month=Feb"]
    assert fitted.get_feature_names_out().tolist() == names
    assert fitted.transform(frame).tolist() == [
        [0, 0, 1, 0],
        [35 + 6.5 / 24, 6.5, 0, 1],
        [0, 0, 1, 0],
    ]
    later = pd.DataFrame({"x": ["2025-07-04", None, "2023-12-31T12:00", "2025-07-04T01:00"]})
    assert fitted.unknown_levels(later) == {"x": {"Jul": 2, "Dec": 1}}
    assert fitted.transform(later)[:, 2:].tolist() == [[0, 0], [1, 0], [0, 0], [0, 0]]
    empty = frame.assign(y=range(3), x=pd.Series([pd.NaT] * 3))
    assert TablePreprocessor(dates=["x"]).fit(empty).dropped_ == {"x": "it has no values"}


@pytest.mark.parametrize(
    "damage",
    [
        {"first": "soon"},
        {"fill": "2020-01-01"},  # before the first
        {"hours": 1},
        {"months": [3]},
        {"months": [3, 2]},
        {"months": [3, 12]},
        {"weekdays": [True, 2]},
        {"weekdays": "01"},
        {"levels": ["a"]},
    ],
)
def test_damaged_dates_are_refused(model: TableModel, damage: dict[str, Any]) -> None:
    stored = model.preprocessor.to_dict()
    [column] = [each for each in stored["columns"] if each["name"] == "opened"]
    assert TablePreprocessor.from_dict(stored).to_dict() == stored
    column.update(damage)
    with pytest.raises(DataError, match="The stored preprocessing is damaged"):
        TablePreprocessor.from_dict(stored)


def test_explanations_take_a_date_as_one_column(model: TableModel) -> None:
    rows = _table(3, seed=3).drop(columns="paid")
    background = _table(20, seed=4).drop(columns="paid")
    found = contributions(model, rows, background)
    assert found.columns == ["amount", "opened", "seen"]
    at = ["2021-04-01", "2023-04-01"]
    curve = partial_dependence(model, "opened", background, values=at)
    for value, log_odds in zip(at, curve.log_odds, strict=True):
        p = model.predict(background.assign(opened=value))["probability"]
        assert log_odds == pytest.approx(np.log(p / (1 - p)).mean(), abs=1e-9)
    every = partial_dependence(model, "opened", background, n_values=5)
    assert every.values.dtype.kind == "M"
    assert (np.diff(every.values) > np.timedelta64(0)).all()
    with pytest.raises(DataError, match="give dates"):
        partial_dependence(model, "opened", background, values=["spring"])


def test_drift_of_dates(model: TableModel) -> None:
    later = _table(80, seed=5)
    later["opened"] += pd.Timedelta(days=800)
    _, columns = column_drift(model, [later])
    found = {each.column: each for each in columns}
    assert found["opened"].kind == "date"
    assert found["opened"].moved
    assert not found["seen"].moved
    days = model.preprocessor.plain(later)["opened"]
    expected = (days.mean() - model.svc.center_[1]) / model.svc.scale_[1]
    assert found["opened"].value == pytest.approx(expected, rel=0.05)


def test_onnx_refuses_dates(model: TableModel, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    with pytest.raises(DataError, match="'opened' holds dates, of which ONNX knows nothing"):
        export_onnx(model, tmp_path / "m.onnx")


def test_days_that_agree_by_chance_are_no_copies() -> None:
    rng = np.random.default_rng(0)
    day = np.datetime64("2024-01-01", "s") + rng.integers(0, 365, 1000).astype("timedelta64[D]")
    table = pd.DataFrame({"day": day, "house": rng.random(1000) < 0.5})
    table["y"] = rng.random(1000) < 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error", CopiedRowsWarning)
        model = TableModel.fit(
            table, "y", roles=ColumnRoles(dates=("day",)), kernel="linear", n_bootstraps=3,
            C=1.0, random_state=0,
        )  # fmt: skip
    assert model.svc.remarks_ == []
