"""The report of a scored table: its numbers against plain numpy, and what it refuses."""

import json
import math
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import test_report
from scored_tables import scored_table
from test_report import HOSTILE, Page, numbers_in

from bootprob.costs.matrix import CostMatrix
from bootprob.exceptions import DataError
from bootprob.report import write_scored_report
from bootprob.report.scored.content import scored_content
from bootprob.report.scored.counts import EDGES, quantiles
from bootprob.report.scored.table import ScoredTable
from bootprob.tables.files import write_table
from report_pages import check_accessible, check_tables_of_figures

COSTS = CostMatrix(false_positive=2.0, false_negative=6.0, true_negative=-0.5, true_positive=0.25)


def numbers_of(table, folder, **options):
    """The numbers of the report of a table that is written first."""
    path = folder / "scored.parquet"
    write_table(table, path)
    return scored_content(path, **options)


def written(table, folder, **options):
    """The same from the JSON file beside the page."""
    path = folder / "scored.parquet"
    write_table(table, path)
    numbers = write_scored_report(path, folder / "r.html", **options)
    stored = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert stored == numbers
    return stored


@pytest.fixture
def table(rng):
    return scored_table(rng)


class TestNumbers:
    def test_shares_means_and_histograms(self, table, tmp_path):
        found = numbers_of(table, tmp_path)
        p = table["probability"]
        assert found["table"] == {
            "name": "scored.parquet",
            "n_rows": 400,
            "n_scored": 400,
            "n_without_probability": 0,
        }
        assert found["classes"] == {"positive": "bad", "negative": "good"}
        rows = {entry["label"]: entry["n_rows"] for entry in found["labels"]["shares"]}
        assert rows == table["label"].value_counts().to_dict()
        assert found["labels"]["n_against_threshold"] == 0
        scored = found["probabilities"]["scored"]
        assert scored["mean"] == pytest.approx(p.mean())
        share = np.histogram(p, np.arange(21) / 20)[0] / 400
        np.testing.assert_allclose(scored["histogram"]["share"], share)
        width = table["probability_upper"] - table["probability_lower"]
        assert found["widths"]["mean"] == pytest.approx(width.mean())
        assert sum(entry["n_rows"] for entry in found["widths"]["by_probability"]) == 400
        for entry in found["widths"]["by_probability"]:
            inside = width[(p >= entry["from"]) & (p < entry["to"])]
            assert len(inside) == entry["n_rows"]
            assert inside.min() - 1e-4 <= entry["tenth"] <= entry["median"] <= entry["ninetieth"]
            assert (inside <= entry["median"] + 1e-4).mean() >= 0.5
            assert (inside < entry["median"] - 1e-4).mean() <= 0.5

    def test_quantiles_are_as_exact_as_is_said(self, rng):
        for values in (rng.uniform(size=3000), rng.beta(0.01, 5, 3000), np.array([0.3])):
            counts = np.histogram(values, EDGES)[0]
            shares = np.array([0.01, 0.1, 0.5, 0.9, 0.99])
            found = quantiles(counts, shares)
            exact = np.quantile(values, shares, method="inverted_cdf")
            room = np.maximum(1e-9, np.minimum(1.01e-4, 0.0125 * np.minimum(exact, 1 - exact)))
            assert (np.abs(found - exact) <= room).all()

    @pytest.mark.parametrize("costs", [None, COSTS])
    def test_undecided_rows_are_those_that_are_not_stable(self, table, tmp_path, costs):
        found = numbers_of(table, tmp_path, costs=costs, id_column="customer")["decisions"]
        used = costs or CostMatrix(1.0, 1.0)
        bounds = table[["probability_lower", "probability_upper"]].to_numpy()
        made = used.decide(table["probability"], bounds)
        assert found["threshold"] == pytest.approx(used.threshold)
        assert found["n_undecided"] == (~made.stable).sum() > 10
        assert found["n_undecided_positive"] == (~made.stable & made.label).sum()
        assert found["n_positive"] == (made.stable & made.label).sum()
        assert found["n_negative"] == (made.stable & ~made.label).sum()
        t = used.threshold
        reach = np.where(made.label, t - bounds[:, 0], bounds[:, 1] - t)
        reach[made.stable] = -np.inf
        expected = np.argsort(-reach, kind="stable")[: min(50, found["n_undecided"])]
        assert [row["row"] - 1 for row in found["listed"]] == expected.tolist()
        assert [row["id"] for row in found["listed"]] == table["customer"][expected].tolist()
        for row in found["listed"]:
            assert row["probability"] == table["probability"][row["row"] - 1]
            assert row["reach"] == pytest.approx(reach[row["row"] - 1])

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_what_the_model_left_undecided(self, table, tmp_path, rng, suffix):
        table.insert(6, "threshold", 0.5)
        table.insert(7, "undecided", rng.random(400) < 0.1)
        assert list(table)[5:8] == ["label", "threshold", "undecided"]
        write_table(table, tmp_path / f"scored.{suffix}")
        found = scored_content(tmp_path / f"scored.{suffix}")["decisions"]
        assert found["n_left_undecided"] == table["undecided"].sum()
        assert found["n_undecided"] == numbers_of(table, tmp_path)["decisions"]["n_undecided"]
        own = table.rename(columns={"undecided": "kept"}).assign(undecided="of the user's")
        assert numbers_of(own, tmp_path)["decisions"]["n_left_undecided"] is None

    def test_expected_costs_row_by_row(self, table, tmp_path, rng):
        table["label"] = np.where(rng.random(400) < 0.2 + 0.6 * table["probability"], "bad", "good")
        found = numbers_of(table, tmp_path, costs=COSTS)["cost"]
        p = table["probability"].to_numpy()
        decided = {
            "least_cost": p > COSTS.threshold,
            "as_labelled": (table["label"] == "bad").to_numpy(),
            "all_positive": np.ones(400, bool),
            "all_negative": np.zeros(400, bool),
        }
        rows = np.arange(400)
        assert [rule["name"] for rule in found["rules"]] == list(decided)
        for rule in found["rules"]:
            chosen = decided[rule["name"]].astype(int)
            cost, low, high = (
                COSTS.expected(table[name])[rows, chosen]
                for name in ("probability", "probability_lower", "probability_upper")
            )
            assert rule["cost"] == pytest.approx(cost.mean())
            assert rule["total"] == pytest.approx(cost.sum())
            assert rule["lower"] == pytest.approx(np.minimum(low, high).mean())
            assert rule["upper"] == pytest.approx(np.maximum(low, high).mean())
            assert rule["n_positive"] == chosen.sum()
            drawn = rng.random((4000, 400)) < p
            incurred = np.where(drawn, COSTS.array[1, chosen], COSTS.array[0, chosen]).mean(axis=1)
            assert rule["standard_deviation"] == pytest.approx(incurred.std(), rel=0.06)
        best = found["rules"][0]["cost"]
        assert all(best <= rule["cost"] + 1e-12 for rule in found["rules"])

    def test_without_costs_every_mistake_counts_one(self, table, tmp_path):
        found = numbers_of(table, tmp_path)["cost"]
        p = table["probability"]
        assert not found["given"]
        assert found["rules"][0]["cost"] == pytest.approx(np.minimum(p, 1 - p).mean())

    def test_rows_without_a_probability_are_counted_and_left_out(self, table, tmp_path, rng):
        gone = rng.random(400) < 0.1
        gone[0], gone[1] = True, False
        table.loc[gone, ["probability", "probability_lower", "probability_upper", "label"]] = None
        found = numbers_of(table, tmp_path)
        assert found["table"]["n_without_probability"] == gone.sum()
        assert found["table"]["n_scored"] == (~gone).sum()
        assert found["probabilities"]["scored"]["mean"] == pytest.approx(
            table["probability"].mean()
        )
        rows = [row["row"] - 1 for row in found["decisions"]["listed"]]
        assert not gone[rows].any()

    def test_bounds_beyond_zero_and_one_are_cut(self, table, tmp_path):
        table["probability_lower"] -= 0.5
        table["probability_upper"] += 0.5
        found = numbers_of(table, tmp_path)
        cut = table["probability_upper"].clip(upper=1) - table["probability_lower"].clip(lower=0)
        assert found["widths"]["mean"] == pytest.approx(cut.mean())

    def test_nothing_in_the_numbers_is_nan(self, table, tmp_path):
        assert all(map(math.isfinite, numbers_in(written(table, tmp_path))))


class TestFiles:
    @pytest.fixture
    def expected(self, table, tmp_path):
        (tmp_path / "first").mkdir()
        return numbers_of(table, tmp_path / "first", id_column="customer")

    @staticmethod
    def same(found, expected):
        assert found["labels"] == expected["labels"]
        assert found["decisions"] == expected["decisions"]
        for part in ("probabilities", "widths", "cost"):  # sums depend on the batches a little
            numbers = list(numbers_in(expected[part]))
            assert list(numbers_in(found[part])) == pytest.approx(numbers, rel=1e-12), part

    @pytest.mark.parametrize(
        "kind",
        ["csv", "blanks", "semicolons", "decimal commas", "tabs", "feather", "arrow", "dictionary"],
    )
    def test_every_kind_says_the_same(self, table, tmp_path, expected, kind):
        path = tmp_path / "scored.csv"
        separators = {"csv": ",", "semicolons": ";", "decimal commas": ";", "tabs": "\t"}
        if kind in separators:
            decimal = "," if kind == "decimal commas" else "."
            table.to_csv(path, index=False, sep=separators[kind], decimal=decimal)
        elif kind == "blanks":
            path.write_text("\n" + table.to_csv(index=False).replace(",", ", "))
        else:
            path = tmp_path / f"scored.{'parquet' if kind == 'dictionary' else kind}"
            if kind == "dictionary":
                table["label"] = table["label"].astype("category")
                table.to_parquet(path)
            else:
                pyarrow.feather.write_feather(pa.Table.from_pandas(table), path)
        self.same(scored_content(path, id_column="customer"), expected)

    def test_a_folder_is_read_in_the_order_of_its_names(self, table, tmp_path, expected):
        folder = tmp_path / "parts"
        folder.mkdir()
        (folder / "_SUCCESS").write_text("")
        (folder / ".hidden.parquet").write_text("no table")
        for k, start in enumerate(range(0, 400, 150)):
            table.iloc[start : start + 150].to_parquet(folder / f"part-{k}.parquet", index=False)
        self.same(scored_content(folder, id_column="customer"), expected)

    def test_batches_do_not_matter(self, rng, tmp_path, monkeypatch):
        table = scored_table(rng, 3000)
        whole = numbers_of(table, tmp_path)
        monkeypatch.setattr("bootprob.report.scored.table._BATCH_ROWS", 64)
        pieces = numbers_of(table, tmp_path)
        assert pieces["decisions"] == whole["decisions"]
        assert pieces["widths"]["by_probability"] == whole["widths"]["by_probability"]
        assert pieces["cost"]["rules"][0]["cost"] == pytest.approx(
            whole["cost"]["rules"][0]["cost"]
        )

    @pytest.mark.parametrize("values", [[0, 1], [0.0, 1.0], [False, True]])
    def test_labels_that_are_no_text(self, table, tmp_path, values):
        table["label"] = np.where(table["probability"] > 0.5, *values[::-1])
        found = numbers_of(table, tmp_path)
        texts = ["False", "True"] if values[1] is True else ["0", "1"]
        assert found["classes"] == {"positive": texts[1], "negative": texts[0]}

    def test_one_label_only(self, table, tmp_path):
        high = table[table["probability"] > 0.5]
        found = numbers_of(high, tmp_path)
        assert found["classes"] == {"positive": "bad", "negative": None}
        assert found["cost"]["rules"][1]["n_positive"] == len(high)
        one = numbers_of(table[table["probability"] < 0.5].head(1), tmp_path)
        assert one["classes"] == {"positive": None, "negative": "good"}
        assert one["cost"]["rules"][1]["n_positive"] == 0

    @pytest.mark.endurance
    def test_memory_does_not_grow_with_rows(self, rng, tmp_path):
        """In a process of its own: 2,400,000 rows (three numbers: 58 MB) take what 400,000 do."""
        program = (
            "import sys; from bootprob.cli.console import peak_memory\n"
            "from bootprob.costs.matrix import CostMatrix\n"
            "from bootprob.report.scored.counts import ScoredCounts\n"
            "from bootprob.report.scored.table import ScoredTable\n"
            "for path in sys.argv[1:]:\n"
            "    counts = ScoredCounts(CostMatrix(1.0, 1.0))\n"
            "    for batch in ScoredTable(path).batches(): counts.add(batch)\n"
            "    print(counts.n_rows, peak_memory())"
        )
        part = pa.Table.from_pandas(scored_table(rng, 50_000).drop(columns=["customer", "secret"]))
        paths = [tmp_path / "small.parquet", tmp_path / "large.parquet"]
        for path, n_parts in zip(paths, (8, 48), strict=True):
            with pq.ParquetWriter(path, part.schema) as writer:
                for _ in range(n_parts):
                    writer.write_table(part)
        run = [sys.executable, "-c", program, *paths]
        said = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
        assert said[::2] == ["400000", "2400000"]
        assert int(said[3]) - int(said[1]) < 25_000_000


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"probability": 1.5}, "row 8: the probability does not lie between 0 and 1"),
            ({"probability": np.inf}, "row 8: the probability does not lie between 0 and 1"),
            ({"probability_lower": np.nan}, "row 8: the interval of the probability is missing"),
            ({"probability_upper": -0.1}, "row 8: the interval of the probability is missing or"),
            (
                {"probability_lower": 1.2, "probability_upper": 1.3},
                "row 8: the interval lies beyond 0 and 1",
            ),
            ({"label": None}, "row 8: there is a probability and no label"),
            ({"label": "ugly"}, "more than two classes"),
        ],
    )
    def test_rows_that_no_prediction_has(self, table, tmp_path, change, message):
        for name, value in change.items():
            table.loc[7, name] = value
        with pytest.raises(DataError, match=message):
            written(table, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["scored.parquet"]

    def test_text_where_numbers_belong(self, table, tmp_path):
        table["probability"] = "high"
        with pytest.raises(DataError, match=r"'probability' holds .*string, not numbers"):
            numbers_of(table, tmp_path)
        table.to_csv(tmp_path / "t.csv", index=False)
        with pytest.raises(DataError, match=r"cannot be read as a scored table: .*'high'"):
            write_scored_report(tmp_path / "t.csv", tmp_path / "r.html")

    def test_tables_that_are_not_scored(self, table, tmp_path):
        with pytest.raises(DataError, match=r"no scored table: .* it lacks 'probability_upper'"):
            numbers_of(table.drop(columns="probability_upper"), tmp_path)
        several = table[["label"]].assign(p_a=0.1, low_a=0.1, high_a=0.2)
        with pytest.raises(DataError, match="of several classes; these numbers are of two"):
            numbers_of(several, tmp_path)
        with pytest.raises(DataError, match="no row with a probability"):
            numbers_of(table.head(0), tmp_path)
        with pytest.raises(DataError, match="no row with a probability"):
            numbers_of(table.head(3).assign(probability=np.nan), tmp_path)
        with pytest.raises(DataError, match="There is no file"):
            write_scored_report(tmp_path / "none.csv", tmp_path / "r.html")
        with pytest.raises(DataError, match="no column 'name' to tell rows apart"):
            numbers_of(table, tmp_path, id_column="name")
        (tmp_path / "empty").mkdir()
        with pytest.raises(DataError, match="has no tables"):
            write_scored_report(tmp_path / "empty", tmp_path / "r.html")
        table.to_csv(tmp_path / "empty" / "a.csv", index=False)
        table.to_csv(tmp_path / "empty" / "b.csv.gz", index=False)
        with pytest.raises(DataError, match=r"has a.csv and b.csv.gz"):
            write_scored_report(tmp_path / "empty", tmp_path / "r.html")
        (tmp_path / "damaged.parquet").write_bytes(b"PAR1 and no more")
        with pytest.raises(DataError, match="cannot be read as a scored table"):
            write_scored_report(tmp_path / "damaged.parquet", tmp_path / "r.html")
        assert not (tmp_path / "r.html").exists()

    def test_labels_that_say_nothing(self, table, tmp_path):
        pairs = pd.DataFrame({"probability": [0.2, 0.2, 0.8, 0.8], "label": ["a", "b", "a", "b"]})
        pairs["probability_lower"], pairs["probability_upper"] = 0.1, 0.9
        with pytest.raises(DataError, match="do not say which class"):
            numbers_of(pairs, tmp_path)

    def test_options(self, table, tmp_path):
        with pytest.raises(DataError, match="single rows"):
            numbers_of(table, tmp_path, costs=CostMatrix(np.ones(400), np.ones(400)))
        with pytest.raises(DataError, match="needs the model"):
            numbers_of(table, tmp_path, input_table=tmp_path / "in.csv")
        with pytest.raises(DataError, match="level"):
            numbers_of(table, tmp_path, level=95)
        with pytest.raises(DataError, match="n_listed is -1"):
            numbers_of(table, tmp_path, n_listed=-1)
        assert numbers_of(table, tmp_path, n_listed=0)["decisions"]["listed"] == []


class TestPage:
    @pytest.fixture
    def page(self, table, tmp_path):
        write_table(table, tmp_path / "s.csv")
        write_scored_report(
            tmp_path / "s.csv", tmp_path / "r.html", costs=COSTS, command="bootprob <b>"
        )
        source = (tmp_path / "r.html").read_text(encoding="utf-8")
        return source, Page(source), json.loads((tmp_path / "r.json").read_text("utf-8"))

    def test_every_number_shown_is_in_the_json_file_and_rounded_rightly(self, page):
        _, parsed, numbers = page
        known = set(numbers_in(numbers))
        assert len(parsed.shown) > 150
        for value, text in parsed.shown:
            assert value in known
            if "<" in text or ">" in text:
                continue
            shown = float(re.sub(r"[,\u202f%]", "", text).replace("−", "-"))
            scale = 100 if "%" in text else 1
            assert shown == pytest.approx(scale * value, rel=5.1e-4, abs=0.5001), text
            digits = len(text.partition(".")[2].rstrip("\u202f%"))
            if "e" not in text and digits and "%" in text:
                assert abs(shown - scale * value) <= 0.5001 * 10**-digits

    def test_what_is_drawn_is_also_a_table(self, page):
        source, parsed, numbers = page
        check_tables_of_figures(source, n_figures=3)
        check_accessible(source)
        shown = {value for value, _ in parsed.shown}
        assert set(numbers["probabilities"]["scored"]["histogram"]["share"]) <= shown
        assert set(numbers["widths"]["histogram"]["share"]) <= shown
        assert {entry["median"] for entry in numbers["widths"]["by_probability"]} <= shown
        assert {row["probability"] for row in numbers["decisions"]["listed"]} <= shown

    def test_it_loads_nothing_runs_nothing_and_keeps_other_columns_to_itself(self, page, table):
        source, parsed, numbers = page
        assert not {tag for tag, _ in parsed.elements} & {"script", "link", "img", "iframe"}
        assert not re.search(r"url\((?!#)|@import|https?:|//[a-z]", source)
        ids = [value for _, name, value in parsed.attributes() if name == "id"]
        assert len(ids) == len(set(ids))
        for text in (source, json.dumps(numbers)):
            for secret in (*table["secret"].astype(str), *table["customer"]):
                assert secret not in text

    def test_hostile_names_stay_text(self, table, tmp_path):
        table["label"] = np.where(table["probability"] > 0.5, HOSTILE, "$x_1$ & |")
        table = table.rename(columns={"customer": "<b>"})
        table["<b>"] = HOSTILE
        numbers = written(table, tmp_path, id_column="<b>", title=HOSTILE)
        source = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert "script" not in {tag for tag, _ in Page(source).elements}
        assert numbers["classes"]["positive"] == HOSTILE

    def test_the_same_table_gives_the_same_bytes_apart_from_the_time(self, table, tmp_path):
        found = []
        for _ in range(2):
            written(table, tmp_path)
            source = (tmp_path / "r.html").read_text(encoding="utf-8")
            found.append(re.sub(r"<time.*?</time>", "", source))
        assert found[0] == found[1]

    @pytest.mark.skipif(test_report.CHROMIUM is None, reason="no Chromium on PATH")
    def test_nothing_is_cut_off(self, page, tmp_path):
        test_report.check_layout(page[0], tmp_path, n_pictures=3)


def test_the_number_of_rows_is_known_where_the_file_says_it(table, tmp_path):
    for suffix, expected in ((".parquet", 400), (".csv", None)):
        write_table(table, tmp_path / f"t{suffix}")
        assert ScoredTable(tmp_path / f"t{suffix}").n_rows() == expected
