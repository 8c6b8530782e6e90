"""What the model adds to the report of a scored table: drift, and whether files belong together."""

import copy
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from bootprob import BootstrapSVC
from bootprob.cli.__main__ import app
from bootprob.costs.matrix import CostMatrix
from bootprob.exceptions import DataError
from bootprob.persistence.save_load import save
from bootprob.report import write_scored_report
from bootprob.report.scored.column_drift import column_drift
from bootprob.report.scored.content import scored_content
from bootprob.report.scored.drift import Reference, kolmogorov_smirnov, population_stability
from bootprob.tables.files import write_table
from bootprob.tables.model import TableModel
from mixed_tables import credit_table
from report_pages import check_accessible, check_tables_of_figures


@pytest.fixture(scope="module")
def model():
    return TableModel.fit(
        credit_table(150),
        "risk",
        "bad",
        kernel="linear",
        n_bootstraps=30,
        C=[0.1, 1.0],
        random_state=0,
    )


@pytest.fixture
def new(rng):
    return credit_table(260, seed=int(rng.integers(2**31)))


def numbers_of(model, new, folder, *, scored=None, page=False, **options):
    write_table(model.predict(new) if scored is None else scored, folder / "scored.csv")
    if page:
        return write_scored_report(folder / "scored.csv", folder / "r.html", model=model, **options)
    return scored_content(folder / "scored.csv", model=model, **options)


def cells(values, among):
    left, right = (np.searchsorted(among, values, side=side) for side in ("left", "right"))
    return np.bincount(left + right, minlength=2 * len(among) + 1)


def doubted_model(model: TableModel, found: dict[str, float]) -> TableModel:
    """The same, of which the test of lack of fit found something else."""
    svc = copy.copy(model.svc)
    svc.lack_of_fit_ = found
    return TableModel(model.preprocessor, model.target, svc)


class TestDistances:
    @pytest.mark.parametrize("digits", [1, 2, 8])
    def test_kolmogorov_smirnov_is_scipys_with_and_without_ties(self, rng, digits):
        old, new = rng.beta(1, 2, 90).round(digits), rng.beta(1.2, 2, 140).round(digits)
        values, counts = np.unique(old, return_counts=True)
        found = kolmogorov_smirnov(cells(new, values), Reference(values, counts / 90, 90.0), 0.95)
        expected = stats.ks_2samp(old, new, method="asymp")
        assert found.value == pytest.approx(expected.statistic)
        assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)

    def test_weights_are_repeated_rows(self, rng):
        model = BootstrapSVC.__new__(BootstrapSVC)
        p, weight = rng.random(40), rng.integers(0, 4, 40).astype(float)
        p[3] = np.nan
        weight[5] = 2.0
        model.oob_proba_, model.sample_weight_ = np.column_stack([1 - p, p]), weight
        found = Reference.of_model(model)
        repeated = np.repeat(p, weight.astype(int))
        values, counts = np.unique(repeated[~np.isnan(repeated)], return_counts=True)
        np.testing.assert_array_equal(found.values, values)
        np.testing.assert_allclose(found.share, counts / counts.sum())
        kept = weight[~np.isnan(p)]
        assert found.n_effective == pytest.approx(kept.sum() ** 2 / (kept**2).sum())
        model.sample_weight_ = np.zeros(40)
        with pytest.raises(DataError, match="ever out of bag"):
            Reference.of_model(model)

    def test_population_stability_by_hand_and_by_chance(self, rng):
        old, new = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
        found = population_stability(new, old, 1e9, 1e9, 0.95)
        assert found.value == pytest.approx(0.1 * np.log(5 / 4) + 0.1 * np.log(4 / 3), rel=1e-6)
        assert found.p_value == 0
        values = []
        for a, b in zip(
            rng.multinomial(300, old, 1500) / 300, rng.multinomial(500, old, 1500) / 500,
            strict=True,
        ):  # fmt: skip
            values.append(population_stability(a, b, 300, 500, 0.95))
        drawn = np.array([each.value for each in values])
        assert drawn.mean() == pytest.approx(values[0].by_chance, rel=0.13)
        share = (drawn > values[0].by_chance_upper).mean()
        assert share == pytest.approx(0.05, abs=0.025)
        assert population_stability(np.ones(1), np.ones(1), 9, 9, 0.95) is None
        assert np.isfinite(population_stability(np.eye(2)[0], np.eye(2)[1], 9, 9, 0.95).value)


class TestColumns:
    def test_against_the_training_table_itself(self, model, new):
        old = credit_table(150)
        n_rows, found = column_drift(model, [new.iloc[:100], new.iloc[100:]])
        assert n_rows == 260
        columns = {column.column: column for column in found}
        assert columns.keys() == model.preprocessor.kinds_.keys()
        for name in ("months", "amount", "persons"):
            fill = old[name].median()
            before, after = old[name].fillna(fill), new[name].fillna(fill)
            expected = (after.mean() - before.mean()) / before.std(ddof=0)
            assert columns[name].value == pytest.approx(expected)
            ratio = after.std(ddof=0) / before.std(ddof=0)
            assert columns[name].spread_ratio == pytest.approx(ratio)
            assert columns[name].n_missing == new[name].isna().sum()
        levels = sorted(old["purpose"].unique())
        p, q = (t["purpose"].value_counts(normalize=True)[levels].to_numpy() for t in (new, old))
        expected = population_stability(p, q, 260, 150, 1 - 0.05 / 7)
        assert columns["purpose"].value == pytest.approx(expected.value)
        assert columns["purpose"].by_chance_upper == pytest.approx(expected.by_chance_upper)

    def test_the_training_table_has_not_moved(self, model):
        _, found = column_drift(model, [credit_table(150)])
        assert not any(column.moved for column in found)
        for column in found:
            assert column.value == pytest.approx(0, abs=1e-9)

    def test_what_has_moved_comes_first(self, model, new):
        new["months"] += 60
        new.loc[:25, "purpose"] = "boat"
        new.loc[26, "purpose"] = "<b>"
        _, found = column_drift(model, [new])
        assert found[0].column == "months"
        assert found[0].moved
        [purpose] = [column for column in found if column.column == "purpose"]
        assert purpose.unknown == {"boat": 26, "<b>": 1}
        assert purpose.n_unknown == 27

    def test_columns_of_one_level(self, rng):
        table = pd.DataFrame(
            {"size": rng.normal(size=80), "flag": np.where(rng.random(80) < 0.4, "X", None)}
        )
        table["late"] = np.where(rng.logistic(size=80) < table["size"], "yes", "no")
        fitted = TableModel.fit(table, "late", "yes", kernel="linear", C=1.0, n_bootstraps=10)
        assert fitted.preprocessor.get_feature_names_out().tolist() == ["size", "flag=X"]
        _, found = column_drift(fitted, [table])
        assert {column.column: column.moved for column in found} == {"size": False, "flag": False}

    def test_ugly_tables(self, model, new):
        with pytest.raises(DataError, match="lacks the column 'months'"):
            column_drift(model, [new.drop(columns="months")])
        with pytest.raises(DataError, match="no rows"):
            column_drift(model, [new.head(0)])
        new["purpose"] = "boat"
        new["months"] = 1e149
        _, found = column_drift(model, [new])
        values = {column.column: column.value for column in found}
        assert values["purpose"] is None
        assert np.isfinite(values["months"])
        _, found = column_drift(model, [credit_table(1)])
        assert len(found) == 7


class TestReport:
    def test_drift_of_the_probabilities(self, model, new, tmp_path):
        found = numbers_of(model, new, tmp_path)["drift"]
        p = model.predict(new)["probability"].to_numpy()
        old = model.svc.oob_proba_[:, 1]
        expected = stats.ks_2samp(old, p, method="asymp")
        assert found["kolmogorov_smirnov"]["value"] == pytest.approx(expected.statistic)
        assert sum(each["scored"] for each in found["bins"]) == pytest.approx(1)
        assert [each["training"] for each in found["bins"]] == pytest.approx([0.1] * 10)
        edges = [each["to"] for each in found["bins"][:-1]]
        shares = np.bincount(np.searchsorted(edges, p), minlength=10) / len(p)
        assert [each["scored"] for each in found["bins"]] == pytest.approx(shares)
        assert found["prevalence"]["expected"] == pytest.approx(p.mean())
        assert found["prevalence"]["training"] == pytest.approx(model.svc.y_.mean())
        assert found["input"] is None

    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    @pytest.mark.usefixtures("undrawn")
    def test_with_the_input(self, model, new, tmp_path, suffix):
        new["months"] += 60
        path = tmp_path / f"new{suffix}"
        write_table(new, path)
        found = numbers_of(model, new, tmp_path, page=True, input_table=path)
        assert found["drift"]["input"]["columns"][0]["column"] == "months"
        assert found["drift"]["kolmogorov_smirnov"]["p_value"] < 1e-3
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert "months (moved)" in page
        assert "otherwise than in training" in page
        check_tables_of_figures(page, page.count("<figure"))
        check_accessible(page)

    @pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")
    @pytest.mark.usefixtures("undrawn")
    def test_files_that_do_not_belong_together(self, model, new, tmp_path):
        write_table(new, tmp_path / "new.csv")
        write_table(new.iloc[::-1], tmp_path / "turned.csv")
        write_table(new.head(200), tmp_path / "short.csv")
        aside = {"input_table": tmp_path / "new.csv"}
        with pytest.raises(DataError, match="the probability is not what the model says"):
            numbers_of(model, new, tmp_path, input_table=tmp_path / "turned.csv")
        with pytest.raises(DataError, match=r"short\.csv has 200 rows"):
            numbers_of(model, new, tmp_path, input_table=tmp_path / "short.csv")
        with pytest.raises(DataError, match=r"made at another level than 0\.8"):
            numbers_of(model, new, tmp_path, level=0.8, **aside)
        assert numbers_of(model, new, tmp_path, scored=model.predict(new, 0.8), level=0.8, **aside)
        renamed = model.predict(new).replace({"label": {"bad": "worse"}})
        with pytest.raises(DataError, match="'worse'; the model knows 'good' and 'bad'"):
            numbers_of(model, new, tmp_path, scored=renamed)
        signs = new.assign(risk=new["risk"].map({"good": "+yes", "bad": "-no"}))
        steered = TableModel.fit(
            signs, "risk", "-no", kernel="linear", n_bootstraps=5, C=1.0, random_state=0
        )
        write_table(steered.predict(signs), tmp_path / "safe.csv", csv_safe=True)
        assert scored_content(tmp_path / "safe.csv", model=steered)
        with pytest.raises(DataError, match="There is no file"):
            numbers_of(model, new, tmp_path, input_table=tmp_path / "none.parquet")
        (tmp_path / "bad.parquet").write_text("no")
        with pytest.raises(DataError, match="cannot be read as Parquet"):
            numbers_of(model, new, tmp_path, input_table=tmp_path / "bad.parquet")
        with pytest.raises(DataError, match="needs the model of a table"):
            write_scored_report(tmp_path / "scored.csv", tmp_path / "q.html", **aside)

    @pytest.mark.usefixtures("undrawn")
    def test_shares_of_votes_are_no_frequencies(self, model, new, tmp_path):
        svc, said = copy.copy(model.svc), "share of votes"
        svc.calibration = None
        other = TableModel(model.preprocessor, model.target, svc)
        scored = model.predict(new)
        found = numbers_of(other, new, tmp_path, scored=scored, page=True)
        assert said in found["cost"]["refused"]
        assert found["cost"]["rules"] == []
        assert found["drift"]["prevalence"] is None
        assert said in (tmp_path / "r.html").read_text(encoding="utf-8")
        with pytest.raises(DataError, match=said):
            numbers_of(other, new, tmp_path, scored=scored, costs=CostMatrix(1.0, 2.0))

    @pytest.mark.usefixtures("undrawn")
    @pytest.mark.parametrize(
        ("found", "said"),
        [
            ({"p_value": 0.001, "statistic": 9.0, "n_rows": 150.0}, "intervals promise too much"),
            ({"p_value": 0.001, "informative_rows": 120.0}, "intervals promise too much"),
            ({"p_value": 0.5, "informative_rows": 120.0}, "as much as 120 rows"),
        ],
    )
    def test_doubts_are_said_first(self, model, new, tmp_path, found, said):
        doubted = doubted_model(model, found)
        numbers_of(doubted, new, tmp_path, scored=model.predict(new), page=True)
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert page.index(said) < page.index("What this report cannot tell")
        assert ("learned from few rows" in page) == (found["p_value"] == 0.5)

    @pytest.mark.usefixtures("undrawn")
    def test_lack_of_fit_names_columns(self, model, new, tmp_path):
        found = {"p_value": 0.001, "bends": 1e-5, "column": 0.0, "other_column": 1.0}
        doubted = doubted_model(model, found)
        told = numbers_of(doubted, new, tmp_path, scored=model.predict(new))
        first, second = model.preprocessor.get_feature_names_out()[:2]
        assert f"{first!r} and {second!r} interact" in told["model"]["lack_of_fit"]["what"]

    @pytest.mark.usefixtures("undrawn")
    def test_models_of_arrays(self, rng, tmp_path):
        X = rng.normal(size=(80, 2))
        svc = BootstrapSVC(kernel="linear", n_bootstraps=20, C=1.0, random_state=0)
        svc.fit(X, X[:, 0] + rng.normal(size=80) > 0)
        said = svc.summarize(X)
        scored = pd.DataFrame({"probability": said["probability"], "label": said["label"]})
        scored[["probability_lower", "probability_upper"]] = said["probability_interval"]
        found = numbers_of(svc, None, tmp_path, scored=scored)
        assert found["classes"] == {"positive": "True", "negative": "False"}
        assert found["drift"]["kolmogorov_smirnov"]["value"] < 0.3


class TestCommand:
    @pytest.fixture
    def folder(self, model, new, tmp_path):
        save(model, tmp_path / "m.model")
        write_table(new, tmp_path / "new.csv")
        write_table(model.predict(new).assign(id=range(260)), tmp_path / "scored.csv")
        return tmp_path

    @staticmethod
    def run(folder, *arguments):
        names = [f"{folder / a}" if "." in a and a[0].isalpha() else a for a in arguments]
        return CliRunner().invoke(app, ["report", *names])

    @pytest.mark.usefixtures("undrawn")
    def test_everything_at_once(self, folder):
        options = [
            "--model",
            "m.model",
            "--input",
            "new.csv",
            "--cost-fp",
            "1",
            "--cost-fn",
            "5",
            "--id",
            "id",
        ]
        result = self.run(folder, "scored.csv", *options, "-o", "r.html")
        assert result.exit_code == 0, result.output
        assert "260 scored rows" in result.stdout
        numbers = json.loads((folder / "r.json").read_text(encoding="utf-8"))
        assert numbers["decisions"]["threshold"] == 0.5  # as the table was decided
        assert numbers["cost"]["threshold"] == pytest.approx(1 / 6)
        assert "id" in numbers["decisions"]["listed"][0]
        assert numbers["drift"]["input"]["n_rows"] == 260

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            ("new.csv", 2, "is a table and needs --target COLUMN. (A scored table does not"),
            ("scored.csv --seed 1", 2, "nothing is fitted: leave out --seed, or give --target"),
            ("scored.csv --held-out new.csv", 2, "leave out --held-out"),
            (
                "scored.csv --cost-fp 1",
                2,
                "--cost-false-positive and --cost-false-negative belong together",
            ),
            ("scored.csv --cost-fp 1 --cost-fn -1", 2, "-1 is no cost"),
            ("scored.csv --cost-fp 1 --cost-fn 1e160", 2, "1e+160 is no cost"),
            ("scored.csv --level 95", 2, "does not lie between 0 and 1"),
            ("scored.csv --input new.csv", 2, "--input needs --model"),
            ("m.model --level 0.9", 2, "--level: only for a table that was scored already"),
            ("m.model --id x", 2, "--id: only for a table that was scored already"),
            ("m.model --cost-fp 1", 2, "--cost-false-positive: only for a table that was"),
            ("new.csv --target risk --model m.model", 2, "--model: only for a table that was"),
            ("none.csv", 1, "There is no file"),
            ("scored.csv --model scored.csv", 1, "is no bootprob model"),
            ("scored.csv --id name", 1, "no column 'name' to tell rows apart"),
        ],
    )
    def test_wrong_command_lines(self, folder, arguments, code, message):
        before = sorted(folder.iterdir())
        result = self.run(folder, *arguments.split(), "-o", "r.html")
        said = " ".join(result.stderr.replace("│", " ").split())
        assert result.exit_code == code, result.output
        assert message in said
        assert sorted(folder.iterdir()) == before

    def test_an_input_is_never_replaced(self, folder):
        (folder / "m.html").write_bytes((folder / "m.model").read_bytes())
        result = self.run(folder, "scored.csv", "--model", "m.html", "-o", "m.html")
        assert result.exit_code == 1
        assert "is the file that is read" in result.stderr
        assert (folder / "m.html").read_bytes() == (folder / "m.model").read_bytes()
