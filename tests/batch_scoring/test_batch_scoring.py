"""Batches, sources and fragments: what goes in comes out scored, in order, the same however cut."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bootprob import BootstrapSVC
from bootprob.batch_scoring import (
    BadRowsError,
    ScoringOptions,
    Tally,
    result_schema,
    score_batches,
    score_dataset,
)
from bootprob.batch_scoring.ahead import one_ahead
from bootprob.batch_scoring.csv_source import CsvSource
from bootprob.batch_scoring.fragments import Fragment, blocks_of, cut
from bootprob.batch_scoring.row_scoring import PreparedRows, RowScorer
from bootprob.batch_scoring.sources import ArrowSource, ParquetSource
from bootprob.batch_scoring.tally import MOST_BAD_ROWS, MOST_LEVELS
from bootprob.exceptions import DataError
from bootprob.tables.csv_pieces import CsvLayout
from bootprob.tables.files import read_table
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

RESULTS = ["probability", "probability_lower", "probability_upper", "label", "threshold"]
SCORES = ["score", "score_lower", "score_upper"]


@pytest.fixture(scope="module")
def model() -> TableModel:
    return TableModel.fit(
        credit_table(80), "risk", "bad", kernel="linear", n_bootstraps=20, random_state=0
    )


def _batch(frame: pd.DataFrame) -> pa.RecordBatch:
    return pa.RecordBatch.from_pandas(frame, preserve_index=False)


def _new_rows(rng: np.random.Generator, n: int = 60) -> pd.DataFrame:
    return credit_table(n, seed=int(rng.integers(2**31))).drop(columns="risk")


def _scored(model: TableModel, *batches: pa.RecordBatch, **options: object) -> pd.DataFrame:
    found = score_batches(model, batches, ScoringOptions(**options))  # type: ignore[arg-type]
    return pa.Table.from_batches(list(found)).to_pandas()


# -- the matrix ------------------------------------------------------------------------------------


def _prepared(model: TableModel, batch: pa.RecordBatch) -> tuple[PreparedRows, Tally]:
    tally = Tally()
    scorer = RowScorer(model, ScoringOptions(bad_rows="null"), batch.schema)
    return scorer.prepare(batch, tally, file=None, first=0), tally


def test_the_matrix_is_that_of_transform(model: TableModel, rng: np.random.Generator) -> None:
    frame = _new_rows(rng, 200)
    frame.loc[rng.random(200) < 0.1, "purpose"] = "boat"
    frame["foreign"] = frame["foreign"].map({True: "TRUE", False: " 0 "})
    frame["persons"] = frame["persons"].astype(str)
    prepared, tally = _prepared(model, _batch(frame))
    np.testing.assert_array_equal(prepared.X, model.preprocessor.transform(frame))
    assert tally.unknown_levels == model.preprocessor.unknown_levels(frame)
    assert prepared.bad == {}
    assert prepared.bad_rows is None


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.assign(persons=f["persons"].astype("Int8"), months=f["months"].astype("f4")),
        lambda f: f.assign(status=f["status"].astype("category")),
        lambda f: f.assign(foreign=f["foreign"].astype("boolean").where(f.index % 3 > 0)),
        lambda f: f.assign(foreign=f["foreign"].astype(int)),
        lambda f: f.assign(branch=[1, 2] * (len(f) // 2)),
        lambda f: f.assign(branch=pd.Series([1, None] * (len(f) // 2))),
        lambda f: f.assign(persons=[Decimal("1.5"), None] * (len(f) // 2)),
        lambda f: f.assign(status="  A11 "),
        lambda f: f.assign(status=None, months=np.nan, foreign=None),
        lambda f: f.assign(months=f["months"].astype("category")),
        lambda f: f.assign(purpose=""),
    ],
)
def test_every_type_becomes_the_same_matrix(
    model: TableModel, rng: np.random.Generator, change: object
) -> None:
    frame = change(_new_rows(rng))  # type: ignore[operator]
    prepared, tally = _prepared(model, _batch(frame))
    np.testing.assert_array_equal(prepared.X, model.preprocessor.transform(frame))
    assert tally.unknown_levels == model.preprocessor.unknown_levels(frame)


def test_dictionaries_of_any_make(model: TableModel, rng: np.random.Generator) -> None:
    frame = _new_rows(rng, 6)
    codes = pa.array([0, 1, 2, None, 2, 0], pa.int8())
    made = pa.DictionaryArray.from_arrays(codes, pa.array(["A14", None, " A14"]))
    batch = _batch(frame.drop(columns="status")).append_column("status", made)
    expected = frame.assign(status=["A14", None, "A14", None, "A14", "A14"])
    prepared, _ = _prepared(model, batch)
    np.testing.assert_array_equal(prepared.X, model.preprocessor.transform(expected))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("abc", "not a number"),
        ("inf", "infinite"),
        (np.inf, "infinite"),
        (-np.inf, "infinite"),
        (1e151, "too large"),
        ("-1e200", "too large"),
        (1e140, "too far from the training rows"),
        ("1e140", "too far from the training rows"),
    ],
)
def test_bad_rows_are_those_that_predict_refuses(
    model: TableModel, rng: np.random.Generator, value: object, reason: str
) -> None:
    frame = _new_rows(rng).astype({"amount": object if isinstance(value, str) else float})
    if isinstance(value, str):
        frame["amount"] = frame["amount"].map(lambda x: None if pd.isna(x) else str(x))
    bad = sorted(rng.choice(60, 3, replace=False).tolist())
    good = model.predict(frame.drop(index=bad))
    frame.loc[bad, "amount"] = value
    for row in bad:
        with pytest.raises(DataError):
            model.predict(frame.loc[[row]])
    tally, batch = Tally(), _batch(frame)
    found = list(score_batches(model, [batch, batch], ScoringOptions(bad_rows="null"), tally))
    for part in found:
        scored = part.to_pandas()
        assert scored.loc[bad].isna().all(axis=None)
        np.testing.assert_array_equal(scored.drop(index=bad)["label"], good["label"])
        expected = good[RESULTS[:3]].to_numpy()
        np.testing.assert_allclose(scored.drop(index=bad)[RESULTS[:3]], expected, rtol=1e-9)
    assert tally.n_bad == 6
    assert [each.row for each in tally.bad] == [at + 1 + more for more in (0, 60) for at in bad]
    assert all(each.cells == {"amount": reason} for each in tally.bad)
    with pytest.raises(BadRowsError, match=rf"row {bad[0] + 1} \(amount: {reason}\)"):
        list(score_batches(model, [batch]))


def test_a_row_of_several_bad_cells(model: TableModel, rng: np.random.Generator) -> None:
    frame = _new_rows(rng, 5).assign(months=np.inf, persons=["1", "x", "2", "1", "1"])
    tally = Tally()
    [scored] = score_batches(model, [_batch(frame)], ScoringOptions(bad_rows="null"), tally)
    assert scored["label"].null_count == 5
    assert tally.bad[1].cells == {"months": "infinite", "persons": "not a number"}


@pytest.mark.parametrize(
    "values",
    [pd.date_range("2024-01-01", periods=5), [[1], [2], [3], [4], [5]], [b"a"] * 5],
)
def test_columns_of_no_use_are_refused_whatever_is_asked(
    model: TableModel, rng: np.random.Generator, values: object
) -> None:
    for name in ("months", "status"):
        batch = _batch(_new_rows(rng, 5).assign(**{name: values}))
        with pytest.raises(DataError, match=f"Column '{name}' holds"):
            list(score_batches(model, [batch], ScoringOptions(bad_rows="null")))


# -- batches ---------------------------------------------------------------------------------------


def test_batches_are_scored_as_the_table(model: TableModel, rng: np.random.Generator) -> None:
    frame = _new_rows(rng, 90)
    expected = model.predict(frame, level=0.8)
    cuts = [0, *sorted(rng.integers(0, 91, 3).tolist()), 90]
    batches = [_batch(frame.iloc[a:b]) for a, b in pairwise(cuts)]
    batches = [each.cast(_batch(frame).schema) for each in batches]
    for scores in (False, True):
        found = _scored(model, *batches, level=0.8, scores=scores)
        names = RESULTS + SCORES * scores
        pd.testing.assert_frame_equal(found, expected[names], rtol=1e-9, atol=1e-12)


def test_batches_keep_columns(model: TableModel, rng: np.random.Generator) -> None:
    frame = _new_rows(rng, 20).assign(id=np.arange(20), tags=[["a"]] * 20)
    frame["status"] = frame["status"].astype("category")
    found = _scored(model, _batch(frame), keep=("id", "status", "tags"))
    assert found.columns.tolist() == ["id", "status", "tags", *RESULTS]
    assert found["id"].tolist() == frame["id"].tolist()
    pd.testing.assert_series_equal(found["status"], frame["status"].astype("str"))
    schema = result_schema(model, ScoringOptions(keep=("id",)), _batch(frame).schema)
    assert schema.names == ["id", *RESULTS]
    assert schema.field("id").type == pa.int64()


def test_kept_values_are_what_they_were_or_refused(
    model: TableModel, rng: np.random.Generator, tmp_path: Path
) -> None:
    """Ids 0020 became 20 where the first file had numbers, and yes became 1."""
    first, second = _new_rows(rng, 20), _new_rows(rng, 20)
    folder, output = tmp_path / "in", tmp_path / "out.parquet"
    folder.mkdir()
    options = ScoringOptions(keep=("id",))
    numbers, texts = np.arange(20), [f"00{k}" for k in range(20)]
    days = pd.date_range("2024", periods=20)
    for own, other in ((numbers, texts), (numbers, numbers > 3), (days, days.strftime("%Y-%m-%d"))):
        first.assign(id=own).to_parquet(folder / "1.parquet")
        second.assign(id=other).to_parquet(folder / "2.parquet")
        with pytest.raises(DataError, match=r"'id', which is to be kept, holds .* at first"):
            score_dataset(model, folder, output, options)
    for own, other, expected in (
        (numbers, numbers.astype(np.int32), [*numbers, *numbers]),
        ([None] * 20, texts, [None] * 20 + texts),
    ):
        first.assign(id=own).to_parquet(folder / "1.parquet")
        second.assign(id=other).to_parquet(folder / "2.parquet")
        score_dataset(model, folder, output, options)
        assert pq.read_table(output)["id"].to_pylist() == expected


def test_several_classes(rng: np.random.Generator) -> None:
    table = credit_table(90)
    several = TableModel.fit(
        table, "purpose", kernel="linear", all_classes=True, n_bootstraps=10, random_state=0
    )
    frame = credit_table(20, seed=int(rng.integers(2**31)))
    frame.loc[3, "amount"] = np.inf
    found = _scored(several, _batch(frame), bad_rows="null")
    expected = several.predict(frame.drop(index=3))
    assert found.columns.tolist() == expected.columns.tolist()
    assert found.loc[3].isna().all()
    pd.testing.assert_frame_equal(found.drop(index=3), expected, rtol=1e-9, check_index_type=False)
    with pytest.raises(DataError, match="scores are of two"):
        _scored(several, _batch(frame), scores=True)


@pytest.mark.parametrize("calibration", [None, "sigmoid-votes", "isotonic"])
def test_models_of_other_makes(rng: np.random.Generator, calibration: str | None) -> None:
    made = TableModel.fit(
        credit_table(80),
        "risk",
        "bad",
        n_bootstraps=10,
        random_state=0,
        kernel="linear" if calibration else "rbf",
        calibration=calibration,
        interval="wilson" if calibration is None else "normal",
    )
    frame = _new_rows(rng, 15)
    expected = made.predict(frame)[RESULTS]
    pd.testing.assert_frame_equal(_scored(made, _batch(frame)), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("labels", [(False, True), (0, 1), (1.5, 2.5), ("no", "yes")])
def test_labels_have_the_type_that_predict_gives(labels: tuple[object, object]) -> None:
    table = credit_table(60)
    table["risk"] = np.array(labels)[(table["risk"] == "bad").to_numpy().astype(int)]
    made = TableModel.fit(table, "risk", kernel="linear", n_bootstraps=10, random_state=0)
    found = _scored(made, _batch(table))
    pd.testing.assert_series_equal(found["label"], made.predict(table)["label"])


def test_what_batches_cannot_be(model: TableModel, rng: np.random.Generator) -> None:
    frame = _new_rows(rng, 5)
    with pytest.raises(DataError, match="lacks 'months', 'amount'"):
        _scored(model, _batch(frame.drop(columns=["amount", "months"])))
    with pytest.raises(DataError, match="lacks 'id'"):
        _scored(model, _batch(frame), keep=("id",))
    with pytest.raises(DataError, match="called like results: 'label'"):
        _scored(model, _batch(frame.assign(label=1)), keep=("label",))
    with pytest.raises(DataError, match="kept twice: 'id'"):
        ScoringOptions(keep=("id", "id"))
    for keep in ("region", 3, ("id", 3)):
        with pytest.raises(DataError, match="give a tuple of names"):
            ScoringOptions(keep=keep)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="costs is 3; give MistakeCosts"):
        ScoringOptions(costs=3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="'drop'"):
        ScoringOptions(bad_rows="drop")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="level"):
        ScoringOptions(level=95)
    twice = pa.RecordBatch.from_arrays(
        [*_batch(frame).columns, pa.array([1.0] * 5)], [*frame.columns, "months"]
    )
    with pytest.raises(DataError, match="several columns named 'months'"):
        list(score_batches(model, [twice]))
    assert list(score_batches(model, [])) == []
    [empty] = score_batches(model, [_batch(frame).slice(0, 0)])
    assert empty.num_rows == 0
    assert empty.schema.names == RESULTS


def test_tallies_stay_small() -> None:
    from bootprob.batch_scoring import BadRow

    whole = Tally()
    for part in range(3):
        tally = Tally(n_rows=2000)
        tally.add_bad(
            900, [BadRow("a.csv", part * 2000 + at, {"x": "infinite"}) for at in range(900)]
        )
        tally.add_unknown({"town": {f"{part}-{at}": 2 for at in range(80)}})
        whole.add(Tally.from_dict(tally.to_dict()))
    assert (whole.n_rows, whole.n_bad, len(whole.bad)) == (6000, 2700, MOST_BAD_ROWS)
    assert whole.bad[900].row == 2000
    assert whole.unknown_rows == {"town": 480}
    assert len(whole.unknown_levels["town"]) == MOST_LEVELS


# -- fragments and sources -------------------------------------------------------------------------


def test_fragments_cover_a_file(rng: np.random.Generator) -> None:
    for _ in range(50):
        chunks = rng.integers(0, 300, rng.integers(1, 12)).tolist()
        rows = int(rng.integers(1, 400))
        found = cut(chunks, rows)
        assert [row for a, b in found for row in range(a, b)] == list(range(sum(chunks)))
        assert all(b > a for a, b in found)
        assert max((b - a for a, b in found), default=0) < 2 * rows + max(chunks)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_any_fragments_are_read_alone(
    tmp_path: Path, rng: np.random.Generator, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bootprob.tables.csv_pieces._PIECE", 700)
    n = 1000
    frame = pd.DataFrame({"at": np.arange(n), "text": rng.choice(["a", "b,\n", 'c"'], n)})
    path = tmp_path / f"table{suffix}"
    chunk, size = int(rng.integers(1, 400)), int(rng.integers(1, 300))
    if suffix == ".parquet":
        frame.to_parquet(path, row_group_size=chunk)
        source = ParquetSource(path, int(rng.integers(1, 200)))
    elif suffix == ".arrow":
        with pa.ipc.new_file(path, pa.Schema.from_pandas(frame)) as writer:
            writer.write_table(pa.Table.from_pandas(frame), max_chunksize=chunk)
        source = ArrowSource(path, int(rng.integers(1, 200)))
    else:
        frame.to_csv(path, index=False)
        source = CsvSource(path, CsvLayout.find(path, []), ["at"])
        assert len(source.chunks) > 3
    assert sum(source.chunks) == n
    fragments = [Fragment(k, 0, a, b) for k, (a, b) in enumerate(cut(source.chunks, 90))]
    chosen = [each for each in fragments if rng.random() < 0.5]
    read: dict[int, list[pd.DataFrame]] = {each.number: [] for each in chosen}
    for block in blocks_of(source, chosen, ["at", "text"], ["text"], size):
        part = block.batch.to_pandas()
        assert block.first == part["at"].iloc[0]
        assert block.batch.num_rows < 2 * size + chunk
        read[block.fragment.number].append(part)
    for each in chosen:
        found = pd.concat(read[each.number], ignore_index=True)
        expected = frame.iloc[each.start : each.stop].reset_index(drop=True)
        assert found["at"].tolist() == expected["at"].tolist()
        assert found["text"].tolist() == expected["text"].tolist()


def test_small_row_groups_make_full_blocks(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"at": range(1000)}), path, row_group_size=7)
    source = ParquetSource(path, 100)
    fragments = [Fragment(0, 0, 0, 500), Fragment(1, 0, 500, 1000)]
    sizes = [each.batch.num_rows for each in blocks_of(source, fragments, ["at"], [], 100)]
    assert sum(sizes) == 1000
    assert len(sizes) <= 10


@pytest.mark.parametrize("row_group", [20_000, 1_000_000])
def test_reading_parquet_holds_little(
    tmp_path: Path, rng: np.random.Generator, row_group: int
) -> None:
    """Of many row groups as of a large one; what Arrow holds is counted to the byte."""
    path = tmp_path / "t.parquet"
    columns = {name: rng.normal(size=1_000_000) for name in "abcde"}
    pq.write_table(pa.table(columns), path, row_group_size=row_group, use_dictionary=False)
    del columns
    source = ParquetSource(path, 20_000)
    before, held = pa.total_allocated_bytes(), []
    for batch in source.read(range(len(source.chunks)), list("abcde"), [], 4096):
        held.append(pa.total_allocated_bytes() - before)
        del batch
    assert max(held) < path.stat().st_size / 2


AWKWARD_CSV = {
    "number after many": ["a,b"] + ["1,x"] * 300 + ["word,y"],
    "yes and no, then numbers": ["a,b"] + ["True,x"] * 300 + ["0,y"],
    "yes and no with gaps": ["a,b"] + ["True,x"] * 300 + [",y", "FALSE,z"],
    "gaps only, then numbers": ["a,b"] + [",x"] * 300 + ["3.5,y"],
    "decimal commas": ["a;b"] + ["1,5;x"] * 300 + ["2;y"],
    "decimal commas late": ["a;b"] + ["1;x"] * 300 + ["2,5;y"],
    "points behind semicolons": ["a;b"] + ["1.5;x"] * 300 + ["2;y"],
    "points and commas": ["a;b;c"] + ["1.5;x;2"] * 300 + ["2,5;y;3"],
    "quoted line ends": ["a,b"] + ['1,"x\ny"'] * 300 + ['2,"z\n\n\n"'],
    "quotes inside": ["a,b"] + ['1,5" pipe', '2,"6"" pipe"'] * 150,
    "blank lines and blanks": ["", " a , b", ""] + ["1 , x ", "", "?, NA"] * 150,
    "short rows": ["a,b,c"] + ["1,x", "2"] * 150,
    "no last line end": ["a,b"] + ["1,x"] * 300,
    "windows": ["a,b\r"] + ["1,x\r"] * 300,
    "quoted names": ['"a","b\n2"'] + ["1,x"] * 300,
    "quoted names behind semicolons": ['a;"b\n\n2"'] + ["1;x"] * 300,
    "lines of blanks": ["", "  ", "\r", " \r", "a,b"] + ["1,x"] * 300,
}


@pytest.mark.parametrize("case", AWKWARD_CSV)
def test_csv_is_read_as_read_table_reads_it(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr("bootprob.tables.csv_pieces._PIECE", int(rng.integers(40, 600)))
    path = tmp_path / "t.csv"
    text = "\n".join(AWKWARD_CSV[case]) + ("" if "no last" in case else "\n")
    path.write_bytes(("\ufeff" if rng.random() < 0.5 else "").encode() + text.encode())
    whole = read_table(path)
    steps: list[int] = []
    layout = CsvLayout.find(path, [], steps.append)
    assert sum(steps) == path.stat().st_size
    source = CsvSource(path, CsvLayout(**layout.to_dict()), list(whole.columns))
    assert len(source.chunks) > 1
    names = list(whole.columns)
    batches = source.read(range(len(source.chunks)), names, [], 50)
    found = pa.Table.from_batches(batches).to_pandas()
    for name in names:
        if pd.api.types.is_numeric_dtype(whole[name]) and whole[name].dtype != bool:
            np.testing.assert_allclose(found[name], whole[name], rtol=1e-15)
        else:
            same = (found[name] == whole[name]) | (found[name].isna() & whole[name].isna())
            assert same.all(), name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n1,2,3\n", "beyond row 0: Expected 2 fields"),
        ("a,b\n1,2,3\n", "more cells than its first line"),
        ("a,a\n1,2\n", "several columns named 'a'"),
        ('a,b\n1,"2\n3,4\n', "a quoted cell that does not end"),
        ("", "is empty"),
        ("a;b\tc\n1;2\n", "separate the cells is not clear"),
        ("a" * 200_000 + ",b\n1,2\n", "has no line of names: field larger than field limit"),
        ("a,b\r1,2\r\n", "lines that end in CR alone; save it with LF or CRLF"),
    ],
)
def test_csv_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        CsvLayout.find(path, [])
    path.write_bytes("a,b\nä,1\n".encode("latin-1"))
    with pytest.raises(DataError, match="is not UTF-8 text"):
        CsvLayout.find(path, [])


@pytest.mark.parametrize(("before", "names"), [("\n", "a,b"), ("  \r\n", "a,b"), ("", 'a,"{}b"')])
def test_long_heads_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, names: str
) -> None:
    """20,000 blank lines, or line ends in a name, take as many calls of pandas as two."""
    calls = []
    read_csv = pd.read_csv

    def counted(given, *arguments, **options):  # type: ignore[no-untyped-def]
        calls.append(given.getbuffer().nbytes if isinstance(given, BytesIO) else 0)
        return read_csv(given, *arguments, **options)

    monkeypatch.setattr(pd, "read_csv", counted)
    path = tmp_path / "t.csv"
    sizes = []
    for n in (2, 20_000):
        head = before * n + names.format("\n" * n)
        path.write_text(f"{head}\n" + "1,x\n" * 300)
        layout = CsvLayout.find(path, [])
        assert [rows for *_, rows in layout.pieces] == [300]
        assert layout.header == (len(before) * n, len(head) - len(before) * n + 1)
        sizes.append((len(calls), sum(calls)))
        calls.clear()
    assert sizes[0][0] == sizes[1][0]
    assert sizes[1][1] <= sizes[0][1] + 20_000


# -- one item ahead --------------------------------------------------------------------------------


def test_one_ahead_keeps_order_and_bounds() -> None:
    made: list[int] = []

    def numbers():  # type: ignore[no-untyped-def]
        for at in range(100):
            made.append(at)
            yield at

    with closing(one_ahead(numbers())) as items:
        for at, item in enumerate(items):
            assert item == at
            assert len(made) <= at + 2
    assert made == list(range(100))


def test_one_ahead_passes_errors_and_closes() -> None:
    closed = []

    def failing():  # type: ignore[no-untyped-def]
        try:
            yield 1
            raise OSError("the disk is gone")
        finally:
            closed.append(1)

    with closing(one_ahead(failing())) as items:
        assert next(items) == 1
        with pytest.raises(OSError, match="the disk is gone"):
            next(items)

    def interrupted() -> None:
        with closing(one_ahead(failing())) as items:
            assert next(items) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert closed == [1, 1]


def test_an_ensemble_of_plain_numbers_scores_files(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    svc = BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0).fit(X, X[:, 0] > 0)
    pd.DataFrame(X, columns=["x0", "x1", "x2"]).to_parquet(tmp_path / "in.parquet")
    score_dataset(svc, tmp_path / "in.parquet", tmp_path / "out.parquet")
    found = pd.read_parquet(tmp_path / "out.parquet")["probability"]
    np.testing.assert_allclose(found, svc.predict_proba(X)[:, 1], rtol=1e-12)
    with pytest.raises(DataError, match="give a fitted model, or the file of one"):
        score_dataset(3, tmp_path / "in.parquet", tmp_path / "other.parquet")  # type: ignore[arg-type]
