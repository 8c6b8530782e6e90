"""Costs that decide the rows of tables: predicted, scored in batches and reported alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from bootprob import DataError
from bootprob.batch_scoring import (
    BadRowsError,
    ScoringOptions,
    Tally,
    score_batches,
    score_dataset,
)
from bootprob.cli.__main__ import app
from bootprob.costs.matrix import CostMatrix
from bootprob.persistence.save_load import save
from bootprob.report.scored.content import scored_content
from bootprob.tables.files import read_table
from bootprob.tables.mistake_costs import MistakeCosts
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

QUICK = {"n_bootstraps": 20, "random_state": 0}


@pytest.fixture(scope="module")
def model() -> TableModel:
    return TableModel.fit(credit_table(120), "risk", "bad", kernel="linear", **QUICK)


@pytest.fixture(scope="module")
def new() -> pd.DataFrame:
    table = credit_table(90, seed=3).drop(columns="risk")
    return table.assign(loss=np.linspace(0.2, 9.0, 90))


def _scored(model: TableModel, frame: pd.DataFrame, **options: object) -> pd.DataFrame:
    batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    found = score_batches(model, [batch], ScoringOptions(**options))  # type: ignore[arg-type]
    return pa.Table.from_batches(list(found)).to_pandas()


@pytest.mark.parametrize("costs", [MistakeCosts(1, 5), MistakeCosts(2.0, "loss"),
                                   MistakeCosts("loss", "loss")])  # fmt: skip
def test_the_label_is_that_of_least_expected_cost(
    model: TableModel, new: pd.DataFrame, costs: MistakeCosts
) -> None:
    found = model.predict(new, costs=costs)
    matrix = CostMatrix(
        *(new[cost] if isinstance(cost, str) else cost
          for cost in (costs.false_positive, costs.false_negative))
    )  # fmt: skip
    p = found["probability"]
    alarm, miss = (1 - p) * matrix.false_positive, p * matrix.false_negative
    np.testing.assert_array_equal(found["label"] == "bad", alarm < miss)
    np.testing.assert_allclose(found["threshold"], matrix.threshold)
    plain = model.predict(new)
    same = ["probability", "probability_lower", "probability_upper", "score"]
    pd.testing.assert_frame_equal(found[same], plain[same])
    assert (plain["threshold"] == 0.5).all()
    scored = _scored(model, new, costs=costs)
    pd.testing.assert_frame_equal(scored, found[[*same[:3], "label", "threshold"]])


def test_rows_whose_cost_is_none(model: TableModel, new: pd.DataFrame) -> None:
    costs = MistakeCosts(1, "loss")
    spoiled = new.assign(loss=new["loss"].astype(object))
    for row, value in ((1, None), (4, "much"), (5, 0), (8, -2.0), (9, np.inf), (11, 1e200)):
        spoiled.loc[row, "loss"] = value
    spoiled["loss"] = [None if value is None else str(value) for value in spoiled["loss"]]
    words = r"'loss' is given as a cost, which takes .* 'much' is not a number \(row 5\)"
    with pytest.raises(DataError, match=words):
        model.predict(spoiled, costs=costs)
    with pytest.raises(DataError, match="no cost in rows 3 and 4"):
        model.predict(new.assign(loss=new["loss"].where(~new.index.isin([2, 3]))), costs=costs)
    with pytest.raises(BadRowsError, match="loss"):
        _scored(model, spoiled, costs=costs)
    tally = Tally()
    batch = pa.RecordBatch.from_pandas(spoiled, preserve_index=False)
    options = ScoringOptions(costs=costs, bad_rows="null")
    [scored] = score_batches(model, [batch], options, tally)
    result = scored.to_pandas()
    bad = result.index.isin([1, 4, 5, 8, 9, 11])
    assert result[bad].isna().all(axis=None)
    assert tally.n_bad == 6
    expected = model.predict(new, costs=costs)
    np.testing.assert_array_equal(result.loc[~bad, "label"], expected.loc[~bad, "label"])


def test_a_column_of_costs_that_the_model_knows_is_read_once(
    model: TableModel, new: pd.DataFrame
) -> None:
    costs = MistakeCosts(100, "amount")
    known = new.dropna(subset=["amount"])
    found = model.predict(known, costs=costs)
    np.testing.assert_allclose(found["threshold"], 100 / (100 + known["amount"]))
    scored = _scored(model, known, costs=costs, keep=("amount",))
    np.testing.assert_array_equal(scored["label"], found["label"])


@pytest.mark.parametrize("cost", [0, -1.0, np.nan, np.inf, 1e200, ""])
def test_what_is_no_cost(cost: float | str) -> None:
    with pytest.raises(DataError, match="give a number above 0"):
        MistakeCosts(1, cost)
    with pytest.raises(DataError, match="The cost of a false positive"):
        MistakeCosts(cost, 1)


def test_models_that_costs_cannot_decide(new: pd.DataFrame) -> None:
    table = credit_table(120)
    costs = MistakeCosts(1, 5)
    votes = TableModel.fit(
        table, "risk", "bad", kernel="linear", calibration=None, interval="wilson", **QUICK
    )
    rates = TableModel.fit(
        table, "risk", "bad", kernel="linear", control="threshold", rates={"tpr": 0.8}, **QUICK
    )
    several = TableModel.fit(
        table.assign(risk=np.resize(["a", "b", "c"], len(table))),
        "risk",
        kernel="linear",
        all_classes=True,
        **QUICK,
    )
    for model, words in ((votes, "no calibration"), (rates, "rate holds"), (several, "3 classes")):
        with pytest.raises(DataError, match=words):
            model.predict(new, costs=costs)
        with pytest.raises(DataError, match=words):
            _scored(model, new, costs=costs)


def test_costs_that_are_none(model: TableModel, new: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="costs is 3; give MistakeCosts"):
        model.predict(new, costs=3)  # type: ignore[arg-type]


def test_a_missing_column_of_costs_is_named(model: TableModel, new: pd.DataFrame) -> None:
    costs = MistakeCosts(1, "price")
    with pytest.raises(DataError, match="no column 'price'"):
        model.predict(new, costs=costs)
    with pytest.raises(DataError, match="lacks 'price'"):
        _scored(model, new, costs=costs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, model: TableModel, new: pd.DataFrame) -> Path:
    folder = tmp_path_factory.mktemp("costs")
    save(model, folder / "loans.model")
    new.to_csv(folder / "new.csv", index=False)
    return folder


class TestCommands:
    def run(self, folder: Path, command: str, *options: str) -> str:
        given = [str(folder / word) if "." in word and word[0] != "-" else word
                 for word in command.split()]  # fmt: skip
        result = CliRunner().invoke(app, [*given, *options])
        assert result.exit_code == 0, result.output
        return result.output

    @pytest.mark.parametrize("verb", ["predict", "score"])
    def test_file_and_report_say_the_same(self, folder: Path, verb: str) -> None:
        costs = ("--cost-false-positive", "1", "--cost-false-negative", "5")
        self.run(folder, f"{verb} loans.model new.csv -o {verb}ed.csv", *costs)
        decided = read_table(folder / f"{verb}ed.csv")
        n_bad = int((decided["label"] == "bad").sum())
        np.testing.assert_allclose(decided["threshold"], 1 / 6)
        self.run(folder, f"report {verb}ed.csv -o {verb}.html", *costs)
        found = scored_content(folder / f"{verb}ed.csv", costs=CostMatrix(1, 5))
        decisions = found["decisions"]
        assert decisions["threshold"] == pytest.approx(1 / 6)
        assert decisions["n_positive"] + decisions["n_undecided_positive"] == n_bad
        rules = {rule["name"]: rule for rule in found["cost"]["rules"]}
        assert rules["least_cost"]["n_positive"] == rules["as_labelled"]["n_positive"] == n_bad
        assert found["labels"]["n_against_threshold"] == 0
        undecided = (decided["probability_lower"] <= 1 / 6) & (decided["probability_upper"] > 1 / 6)
        assert decisions["n_undecided"] == undecided.sum()
        assert "were not made for them" not in (folder / f"{verb}.html").read_text("utf-8")

    def test_other_costs_than_the_file_was_decided_by_are_told(self, folder: Path) -> None:
        self.run(folder, "predict loans.model new.csv -o half.csv")
        self.run(folder, "report half.csv -o half.html", "--cost-fp", "1", "--cost-fn", "5")
        assert "were not made for them" in (folder / "half.html").read_text("utf-8")
        found = scored_content(folder / "half.csv", costs=CostMatrix(1, 5))
        rules = {rule["name"]: rule["n_positive"] for rule in found["cost"]["rules"]}
        assert found["decisions"]["threshold"] == 0.5
        assert rules["as_labelled"] < rules["least_cost"]

    def test_costs_of_rows(self, folder: Path, model: TableModel, new: pd.DataFrame) -> None:
        costs = ("--cost-fp", "2", "--cost-fn", "loss")
        self.run(folder, "score loans.model new.csv -o rows.parquet", *costs)
        found = read_table(folder / "rows.parquet")
        expected = model.predict(new, costs=MistakeCosts(2, "loss"))
        assert found["label"].tolist() == expected["label"].tolist()
        self.run(folder, "report rows.parquet -o rows.html")
        text = (folder / "rows.html").read_text("utf-8")
        assert "a threshold of its own, between" in text
        decisions = scored_content(folder / "rows.parquet")["decisions"]
        assert decisions["threshold"] is None
        assert decisions["lowest_threshold"] == pytest.approx(2 / 11)

    @pytest.mark.parametrize("verb", ["predict", "score"])
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--cost-fp", "1"], "belong together"),
            (["--cost-fp", "0", "--cost-fn", "2"], "give a number above 0"),
        ],
    )
    def test_a_wrong_option_is_told_before_anything_is_read(
        self, tmp_path: Path, verb: str, options: list[str], words: str
    ) -> None:
        given = [verb, str(tmp_path / "no.model"), str(tmp_path), "-o", str(tmp_path / "o.csv")]
        result = CliRunner().invoke(app, [*given, *options])
        assert result.exit_code == 2
        assert words in " ".join(result.output.replace("│", " ").split())


def test_a_controlled_table_says_where_it_decides(new: pd.DataFrame, tmp_path: Path) -> None:
    plain = TableModel.fit(credit_table(120), "risk", "bad", kernel="linear", **QUICK)
    model = TableModel.fit(
        credit_table(120),
        "risk",
        "bad",
        kernel="linear",
        control="threshold",
        rates={"tpr": 0.9},
        **QUICK,
    )
    found, before = model.predict(new), plain.predict(new)
    threshold = model.svc.decision_threshold_
    assert 0 < threshold < 0.5
    assert (found["threshold"] == threshold).all()
    np.testing.assert_array_equal(found["label"] == "bad", found["probability"] > threshold)
    same = ["probability", "probability_lower", "probability_upper"]
    pd.testing.assert_frame_equal(found[same], before[same])
    pd.testing.assert_frame_equal(_scored(model, new), found[[*same, "label", "threshold"]])
    found.to_csv(tmp_path / "scored.csv", index=False)
    content = scored_content(tmp_path / "scored.csv", model=model)
    assert content["decisions"]["threshold"] == threshold
    assert content["cost"]["rules"]  # calibrated, so costs follow
    assert content["labels"]["n_against_threshold"] == 0


def test_a_csv_file_of_decimal_commas_is_scored_as_predicted(
    model: TableModel, new: pd.DataFrame, tmp_path: Path
) -> None:
    path, costs = tmp_path / "new.csv", MistakeCosts(1.0, "loss")
    new.to_csv(path, index=False, sep=";", decimal=",")
    score_dataset(model, path, tmp_path / "scored.csv", ScoringOptions(costs=costs))
    found, expected = (
        read_table(tmp_path / "scored.csv"),
        model.predict(read_table(path), costs=costs),
    )
    np.testing.assert_allclose(found["threshold"], expected["threshold"])
    assert found["label"].tolist() == expected["label"].tolist()
