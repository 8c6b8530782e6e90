"""The report of a table scored by a model of several classes: its numbers against plain numpy."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_iris
from test_report import HOSTILE, Page, numbers_in
from typer.testing import CliRunner

from bootprob.cli.__main__ import app
from bootprob.costs.matrix import CostMatrix
from bootprob.exceptions import DataError
from bootprob.persistence.save_load import save
from bootprob.report import write_scored_report
from bootprob.report.scored import table as reading
from bootprob.tables.files import write_table
from bootprob.tables.model import TableModel
from report_pages import check_accessible, check_tables_of_figures

NAMES = ["ash", "birch", "cedar", HOSTILE]


def scored(rng, n=300):
    p = rng.dirichlet(np.full(4, 0.6), n)
    columns = {}
    for k, name in enumerate(NAMES):
        columns[f"p_{name}"] = p[:, k]
        columns[f"low_{name}"] = p[:, k] * rng.uniform(0.5, 1, n)
        columns[f"high_{name}"] = p[:, k] + (1 - p[:, k]) * rng.uniform(0, 0.5, n)
    return pd.DataFrame(columns).assign(label=np.array(NAMES)[p.argmax(axis=1)], secret=9876543)


def written(table, folder, name="s.parquet", **options):
    write_table(table, folder / name)
    numbers = write_scored_report(folder / name, folder / "r.html", **options)
    assert json.loads((folder / "r.json").read_text(encoding="utf-8")) == numbers
    return numbers


@pytest.mark.parametrize("name", ["s.parquet", "s.csv"])
def test_numbers(rng, tmp_path, monkeypatch, name):
    monkeypatch.setattr(reading, "_BATCH_ROWS", 64)
    table = scored(rng)
    table.iloc[5, :-2] = np.nan
    table.loc[9, "label"] = NAMES[(NAMES.index(table.loc[9, "label"]) + 1) % 4]
    found, kept = written(table, tmp_path, name), table.drop(index=5)
    label = kept["label"].to_numpy()
    p, low, high = (
        kept[[f"{each}_{name}" for name in NAMES]].to_numpy() for each in ("p", "low", "high")
    )
    assert found["table"] == {
        "name": name, "n_rows": 300, "n_scored": 299, "n_without_probability": 1
    }  # fmt: skip
    assert [each["name"] for each in found["classes"]] == NAMES
    for k, each in enumerate(found["classes"]):
        own, width = label == NAMES[k], high[:, k] - low[:, k]
        assert each["n_given"] == own.sum()
        assert each["share_given"] == pytest.approx(own.mean())
        ends = [each[f"expected{end}"] for end in ("", "_lower", "_upper")]
        assert ends == pytest.approx([a[:, k].mean() for a in (p, low, high)])
        histogram = each["probabilities"]["scored"]["histogram"]
        assert histogram["share"] == pytest.approx(
            np.histogram(p[:, k], np.arange(21) / 20)[0] / 299
        )
        assert each["widths"]["mean"] == pytest.approx(width.mean())
        for rows, of in ((width, "all"), (width[own], "own")):
            for share, said in ((0.5, "median"), (0.9, "ninetieth")):
                exact = np.quantile(rows, share, method="inverted_cdf")
                assert each["widths"][of][said] == pytest.approx(exact, abs=1.1e-4)
    given = np.array([NAMES.index(each) for each in label])
    best_other = np.where(np.arange(4) == given[:, None], -1, high).max(axis=1)
    undecided = best_other >= low[np.arange(299), given]
    assert found["decisions"] == {
        "n_undecided": undecided.sum(),
        "share_undecided": pytest.approx(undecided.mean()),
        "n_otherwise": 1,
    }
    assert found["model"] is found["drift"] is None


def test_the_page_keeps_what_pages_keep(rng, tmp_path):
    numbers = written(scored(rng), tmp_path, command="bootprob <b>")
    source = (tmp_path / "r.html").read_text(encoding="utf-8")
    known, page = set(numbers_in(numbers)), Page(source)
    assert len(page.shown) > 150
    for value, text in page.shown:
        assert value in known
        if "<" not in text and ">" not in text:
            shown = float(re.sub(r"[,\u202f%]", "", text).replace("−", "-"))
            scale = 100 if "%" in text else 1
            assert min(abs(shown - scale * value), abs(shown - 100 * value)) <= 0.051
    check_tables_of_figures(source, 5)
    check_accessible(source)
    assert "9876543" not in source
    assert HOSTILE not in source
    assert "<script" not in source


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p_ash": 1.5}, "row 8: a probability does not lie between 0 and 1"),
        ({"p_ash": np.nan}, "row 8: a probability does not lie between 0 and 1"),
        ({"p_ash": 0.1, "p_birch": 0.1, "p_cedar": 0.1, f"p_{HOSTILE}": 0.1}, "add up to 1"),
        ({"low_ash": 0.9, "high_ash": 0.8}, "row 8: the interval of a probability is missing"),
        ({"label": "oak"}, "row 8: the label is none of the classes"),
        ({"label": None}, "row 8: the label is none of the classes"),
    ],
)
def test_rows_that_no_prediction_has(rng, tmp_path, change, message):
    table = scored(rng, 20)
    for name, value in change.items():
        table.loc[7, name] = value
    with pytest.raises(DataError, match=message):
        written(table, tmp_path)
    assert not (tmp_path / "r.html").exists()


def test_tables_and_options_that_are_refused(rng, tmp_path):
    table = scored(rng, 20)
    for given, message in (
        (table.drop(columns="low_birch"), "it lacks 'low_birch'"),
        (table[["p_ash", "low_ash", "high_ash", "label"]], "it has fewer than three"),
        (table.head(0), "has no row with probabilities"),
    ):
        with pytest.raises(DataError, match=message):
            written(given, tmp_path)
    for options, message in (
        ({"costs": CostMatrix(1, 1)}, "leave out costs"),
        ({"id_column": "secret"}, "none are listed"),
        ({"input_table": "in.csv"}, "needs the model"),
        ({"level": 95}, "level"),
    ):
        with pytest.raises(DataError, match=message):
            written(table, tmp_path, **options)


def test_numbers_as_classes(rng, tmp_path):
    """``1.0`` of a CSV file, in which some rows have no label, is class 1."""
    table = scored(rng, 30)
    names = {
        f"{a}_{name}": f"{a}_{k}" for k, name in enumerate(NAMES) for a in ("p", "low", "high")
    }
    table = table.rename(columns=names)
    table["label"] = [float(NAMES.index(each)) for each in table["label"]]
    table.loc[3, [each for each in table.columns if each != "secret"]] = np.nan
    table.to_csv(tmp_path / "s.csv", index=False)
    found = write_scored_report(tmp_path / "s.csv", tmp_path / "r.html")
    assert sum(each["n_given"] for each in found["classes"]) == 29


def test_with_the_model_and_what_it_scored(tmp_path):
    frame = load_iris(as_frame=True).frame
    frame["target"] = np.array(["setosa", "versicolor", "virginica"])[frame["target"]]
    model = TableModel.fit(
        frame[::2], "target", all_classes=True, kernel="linear", C=[1.0], n_bootstraps=15,
        random_state=0,
    )  # fmt: skip
    new = frame[1::2].reset_index(drop=True)
    new["sepal width (cm)"] += 1.5
    write_table(new, tmp_path / "new.csv")
    save(model, tmp_path / "m.model")
    out = [tmp_path / "s.parquet", tmp_path / "r.html"]
    for command in (
        ["predict", tmp_path / "m.model", tmp_path / "new.csv", "-o", out[0]],
        ["report", out[0], "--model", tmp_path / "m.model", "--input", tmp_path / "new.csv"],
    ):
        more = ["-o", out[1]] if command[0] == "report" else []
        result = CliRunner().invoke(app, list(map(str, [*command, *more])))
        assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    undecided = found["decisions"]["n_undecided"]
    assert f"75 scored rows, {undecided} of them undecided" in result.stdout
    moved = [each["column"] for each in found["drift"]["input"]["columns"] if each["moved"]]
    assert moved == ["sepal width (cm)"]
    p = model.predict(new)
    for k, each in enumerate(found["classes"]):
        out_of_bag = model.svc.oob_proba_[:, k]
        known = stats.ks_2samp(p[f"p_{each['name']}"], out_of_bag[np.isfinite(out_of_bag)])
        assert each["kolmogorov_smirnov"]["value"] == pytest.approx(known.statistic)
        assert each["in_training"]["training"] == pytest.approx((model.svc.y_ == k).mean())
    source = out[1].read_text(encoding="utf-8")
    check_accessible(source)
    check_tables_of_figures(source, 4)
    write_table(new[::-1], tmp_path / "other.csv")
    with pytest.raises(DataError, match="is not what the model says of row 1"):
        write_scored_report(out[0], out[1], model=model, input_table=tmp_path / "other.csv")
    write_table(p.rename(columns=lambda name: name.replace("setosa", "rose")), out[0])
    with pytest.raises(DataError, match="It was scored by another model"):
        write_scored_report(out[0], out[1], model=model)
