"""Whole runs: files in, files out, killed and resumed, in constant memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from batch_runs import alone, cut_small, nothing_left, read, rows_of, saved_model, write
from filelock import FileLock
from typer.testing import CliRunner, Result

from bootprob import BootstrapSVC
from bootprob.batch_scoring import BadRowsError, ScoringOptions, score_dataset
from bootprob.cli.__main__ import app
from bootprob.exceptions import DataError, ModelFileError
from bootprob.persistence.save_load import load, save
from bootprob.tables.files import read_table
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

RESULTS = ["probability", "probability_lower", "probability_upper", "label", "threshold"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model."""
    return saved_model(tmp_path_factory.mktemp("scoring"))


@pytest.fixture(scope="module")
def model(folder: Path) -> TableModel:
    found = load(folder / "m.model")
    assert isinstance(found, TableModel)
    return found


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)


# -- what comes out --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (".csv", ".csv"),
        (".csv", ".parquet"),
        (".parquet", ""),
        (".parquet", ".feather"),
        (".arrow", ".parquet"),
        (".feather", ".csv"),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_a_file_is_scored_as_predict_does(
    folder: Path,
    model: TableModel,
    tmp_path: Path,
    rng: np.random.Generator,
    given: str,
    wanted: str,
) -> None:
    source = write(rows_of(rng, 1000).assign(purpose="boat"), tmp_path / f"in{given}")
    frame = read(source) if given != ".csv" else read_table(source, text_columns=["branch"])
    output = tmp_path / f"out{wanted}"
    summary = score_dataset(folder / "m.model", source, output, ScoringOptions(level=0.8))
    expected = model.predict(frame, level=0.8)[RESULTS]
    pd.testing.assert_frame_equal(read(output), expected, rtol=1e-9, atol=1e-12)
    assert (summary.n_rows, summary.n_resumed, summary.n_bad) == (1000, 0, 0)
    assert summary.unknown == {"purpose": {"rows": 1000, "levels": {"boat": 1000}}}
    assert summary.rate > 0
    assert set(summary.busy) == {"reading", "preparing", "scoring", "writing"}
    if not wanted:
        assert len(list(output.iterdir())) > 1
    alone(output)
    stored = json.loads((tmp_path / f"{output.name}.summary.json").read_text())
    assert stored["n_rows"] == 1000


@pytest.mark.usefixtures("small_blocks")
def test_a_folder_of_partitions(
    folder: Path, model: TableModel, tmp_path: Path, rng: np.random.Generator
) -> None:
    frame = rows_of(rng, 700).sort_values(["branch", "persons"], kind="stable")
    for (branch, persons), part in frame.groupby(["branch", "persons"]):
        inside = tmp_path / "in" / f"branch={branch}" / f"persons={persons}"
        inside.mkdir(parents=True)
        write(part.drop(columns=["branch", "persons"]), inside / "a.parquet")
    (tmp_path / "in" / "_SUCCESS").touch()
    (tmp_path / "in" / ".b.parquet").write_text("no table")
    output = tmp_path / "out.parquet"
    options = ScoringOptions(keep=("branch", "id"), scores=True)
    score_dataset(model, tmp_path / "in", output, options)
    found = read(output)
    assert found["id"].tolist() == frame["id"].tolist()
    assert found["branch"].tolist() == frame["branch"].tolist()
    expected = model.predict(frame).reset_index(drop=True)
    pd.testing.assert_frame_equal(found[expected.columns], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("small_blocks")
def test_kept_columns_of_csv_are_as_written(
    folder: Path, tmp_path: Path, rng: np.random.Generator
) -> None:
    frame = rows_of(rng, 100).assign(id="007", note='say "1,5"', when="2024-01-01")
    source = write(frame, tmp_path / "in.csv")
    output = tmp_path / "out.csv"
    options = ScoringOptions(keep=("id", "note", "when", "branch"))
    score_dataset(folder / "m.model", source, output, options)
    found = read_table(output, text_columns=["id", "branch"])
    pd.testing.assert_frame_equal(found[list(options.keep)], frame[list(options.keep)])


@pytest.mark.parametrize("given", [".csv", ".parquet"])
@pytest.mark.usefixtures("small_blocks")
def test_bad_rows(folder: Path, tmp_path: Path, rng: np.random.Generator, given: str) -> None:
    frame = rows_of(rng, 900)
    bad = sorted(rng.choice(900, 7, replace=False).tolist())
    good = frame.drop(index=bad)
    frame.loc[bad, "amount"] = np.inf
    frame["months"] = frame["months"].map(lambda x: None if np.isnan(x) else f"{x}")
    frame.loc[bad[2:4], "months"] = "many"
    source = write(frame, tmp_path / f"in{given}")
    output = tmp_path / "out.parquet"
    with pytest.raises(BadRowsError) as refused:
        score_dataset(folder / "m.model", source, output)
    assert f"row {bad[0] + 1} of in{given} (amount: infinite)" in str(refused.value)
    nothing_left(output)
    summary = score_dataset(folder / "m.model", source, output, ScoringOptions(bad_rows="null"))
    assert summary.n_bad == 7
    assert [each.row for each in summary.bad] == [at + 1 for at in bad]
    assert summary.bad[2].cells == {"months": "not a number", "amount": "infinite"}
    found = read(output)
    assert found.loc[bad].isna().all(axis=None)
    expected = load(folder / "m.model").predict(good)[RESULTS]  # type: ignore[arg-type, call-overload]
    pd.testing.assert_frame_equal(
        found.drop(index=bad), expected, rtol=1e-9, check_index_type=False
    )
    stored = json.loads((tmp_path / "out.parquet.summary.json").read_text())
    assert stored["bad"][0] == {
        "file": f"in{given}",
        "row": bad[0] + 1,
        "cells": {"amount": "infinite"},
    }


@pytest.mark.parametrize("given", [".csv", ".parquet", ".arrow"])
@pytest.mark.parametrize("wanted", [".csv", ".parquet", ".arrow", ""])
def test_a_day_without_rows(
    folder: Path, tmp_path: Path, rng: np.random.Generator, given: str, wanted: str
) -> None:
    options = ScoringOptions(keep=("id", "months"))
    outputs = []
    for name, n_rows in (("full", 30), ("empty", 0)):
        source = write(rows_of(rng, 30).iloc[:n_rows], tmp_path / f"{name}{given}")
        outputs.append(tmp_path / f"{name}-out{wanted}")
        summary = score_dataset(folder / "m.model", source, outputs[-1], options)
        assert (summary.n_rows, summary.rate > 0) == (n_rows, n_rows > 0)
        alone(outputs[-1])
    if wanted == ".csv":
        assert outputs[1].read_text().splitlines() == outputs[0].read_text().splitlines()[:1]
        return
    read_any = pd.read_feather if wanted == ".arrow" else pd.read_parquet
    found = [read_any(each) for each in outputs]
    assert len(found[1]) == 0
    assert found[1].columns.tolist() == found[0].columns.tolist()
    numbers = ["months", *RESULTS[:3]]
    pd.testing.assert_series_equal(found[1][numbers].dtypes, found[0][numbers].dtypes)


@pytest.mark.parametrize("given", [".csv", ".parquet"])
def test_a_folder_whose_first_day_has_no_rows(
    folder: Path, model: TableModel, tmp_path: Path, rng: np.random.Generator, given: str
) -> None:
    rows = rows_of(rng, 40)
    (tmp_path / "in").mkdir()
    for day, part in enumerate((rows.iloc[:0], rows.iloc[:25], rows.iloc[:0], rows.iloc[25:])):
        write(part, tmp_path / "in" / f"day{day}{given}")
    options = ScoringOptions(keep=("months", "foreign"))
    output = tmp_path / "out.parquet"
    assert score_dataset(model, tmp_path / "in", output, options).n_rows == 40
    found = read(output)
    np.testing.assert_array_equal(found["months"], rows["months"])
    assert found["foreign"].tolist() == rows["foreign"].tolist()
    expected = model.predict(rows)[RESULTS]
    pd.testing.assert_frame_equal(found[RESULTS], expected, rtol=1e-9, atol=1e-12)


def test_a_day_without_rows_and_with_another_header(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("months,amount\n")
    with pytest.raises(DataError, match=r"in\.csv lacks 'status'"):
        score_dataset(folder / "m.model", tmp_path / "in.csv", tmp_path / "out.csv")


@pytest.mark.parametrize("given", [".csv", ".parquet", ".arrow"])
def test_blanks_around_names(
    folder: Path, model: TableModel, tmp_path: Path, rng: np.random.Generator, given: str
) -> None:
    rows = rows_of(rng, 150)
    source = write(rows.rename(columns=lambda name: f" {name}  "), tmp_path / f"in{given}")
    output = tmp_path / "out.parquet"
    score_dataset(folder / "m.model", source, output, ScoringOptions(keep=("id", "status")))
    found = read(output)
    assert found.columns.tolist() == ["id", "status", *RESULTS]
    assert found["status"].tolist() == rows["status"].tolist()
    expected = model.predict(rows)[RESULTS]
    pd.testing.assert_frame_equal(found[RESULTS], expected, rtol=1e-9, atol=1e-12)
    twice = rows.assign(**{"months ": rows["months"]})
    with pytest.raises(DataError, match="several columns named 'months'"):
        score_dataset(folder / "m.model", write(twice, source), tmp_path / "other.parquet")


@pytest.mark.parametrize("given", [".csv", ".parquet"])
@pytest.mark.usefixtures("small_blocks")
def test_text_that_a_spreadsheet_would_run(
    folder: Path, tmp_path: Path, rng: np.random.Generator, given: str
) -> None:
    cells = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\tx", "＝1", "-1.5", "+3e2", "a=b"]
    safe = [f"'{cell}" for cell in cells[:6]] + cells[6:]
    rows = rows_of(rng, 900).assign(**{"=note": cells * 100, "delta": -1.5})
    source, output = write(rows, tmp_path / f"in{given}"), tmp_path / "out.csv"
    keep = ("=note", "delta")
    score_dataset(folder / "m.model", source, output, ScoringOptions(keep=keep))
    plain = output.read_text()
    given = ["score", folder / "m.model", source, "-o", output, "--keep", ",".join(keep)]
    assert _run(*given, "--csv-safe").exit_code == 0
    expected = plain.replace('"=note"', '"\'=note"')
    for cell, made in zip(cells, safe, strict=True):
        expected = expected.replace(f'"{cell}"', f'"{made}"')
    assert output.read_text() == expected
    assert expected.count("\"'") == 601
    # Other kinds of files need no such thing.
    output = tmp_path / "out.parquet"
    score_dataset(folder / "m.model", source, output, ScoringOptions(keep=keep, csv_safe=True))
    assert read(output)["=note"].tolist() == cells * 100


@pytest.mark.parametrize("csv_safe", [False, True])
def test_kept_bytes_that_are_no_text(
    folder: Path, tmp_path: Path, rng: np.random.Generator, csv_safe: bool
) -> None:
    table = pa.Table.from_pandas(rows_of(rng, 5), preserve_index=False)
    cells = [b"\xff\xfe", *[b"text"] * 4]
    source = tmp_path / "in.parquet"
    pq.write_table(table.append_column("raw", pa.array(cells, pa.binary())), source)
    options = ScoringOptions(keep=("raw",), csv_safe=csv_safe)
    with pytest.raises(DataError, match="'raw', which is to be kept, holds bytes"):
        score_dataset(folder / "m.model", source, tmp_path / "out.csv", options)
    assert score_dataset(folder / "m.model", source, tmp_path / "out.parquet", options)
    assert not (tmp_path / "out.csv").exists()


# -- what cannot be --------------------------------------------------------------------------------


def test_refused_before_any_work(folder: Path, tmp_path: Path, rng: np.random.Generator) -> None:
    good = write(rows_of(rng, 10), tmp_path / "good.parquet")
    lake = tmp_path / "lake"
    (lake / "empty").mkdir(parents=True)
    shutil.copy(good, lake / "a.parquet")
    write(rows_of(rng, 10), tmp_path / "both.csv")
    (tmp_path / "broken.parquet").write_bytes(good.read_bytes()[:-100])
    (tmp_path / "broken.arrow").write_bytes(b"ARROW1")
    (tmp_path / "names.csv").write_text("months,amount\n1,2\n")
    (tmp_path / "case.csv").write_text("months,amount,STATUS\n1,2,x\n")
    shutil.copy(good, tmp_path / "parquet.csv")
    (tmp_path / "nothing.csv").touch()
    packed, linked = tmp_path / "packed", tmp_path / "linked"
    for each in (packed, linked):
        each.mkdir()
        write(rows_of(rng, 10), each / "a.csv")
    (packed / "b.csv.gz").write_bytes(b"")
    (linked / "b.csv").symlink_to(tmp_path / "gone.csv")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    cases = [
        (tmp_path / "none.csv", "out.csv", "does not exist"),
        (lake / "empty", "out.csv", "has no tables"),
        (tmp_path, "../out.csv", "and in one of these"),
        (packed, "out.csv", "has a.csv and b.csv.gz; all of its tables"),
        (linked, "out.csv", "b.csv is a link that leads nowhere"),
        (folder / "m.model", "out.csv", "must end in .csv"),
        (tmp_path / "broken.parquet", "out.csv", "broken.parquet cannot be read"),
        (tmp_path / "broken.arrow", "out.csv", "broken.arrow cannot be read"),
        (tmp_path / "names.csv", "out.csv", "names.csv lacks 'status'"),
        (tmp_path / "case.csv", "out.csv", "Is it 'STATUS' for 'status'"),
        (tmp_path / "parquet.csv", "out.csv", "by its content a Parquet file"),
        (tmp_path / "nothing.csv", "out.csv", "nothing.csv is empty"),
        (lake, "lake/out.parquet", "lies in the folder that is read"),
        (good, "good.parquet", "is the file that is read"),
        (good, "out.xlsx", "an output is a file whose name ends in"),
        (good, "full", "is not empty"),
        (good, "nowhere/out.csv", "does not exist"),
    ]
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match="/ is no name for an output"):
        score_dataset(folder / "m.model", good, Path("/"))
    for source, output, message in cases:
        with pytest.raises(DataError, match=message):
            score_dataset(folder / "m.model", source, tmp_path / output)
        assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(ModelFileError):
        score_dataset(good, good, tmp_path / "out.csv")
    arrays = BootstrapSVC(kernel="linear", n_bootstraps=5).fit(
        rng.normal(size=(30, 2)), np.arange(30) % 2
    )
    save(arrays, tmp_path / "arrays.model")
    with pytest.raises(DataError, match="fitted to an array of 2 columns without names"):
        score_dataset(tmp_path / "arrays.model", good, tmp_path / "out.csv")
    nested = write(rows_of(rng, 10).assign(id=[[1]] * 10), tmp_path / "nested.parquet")
    with pytest.raises(DataError, match=r"cannot be written to \.csv"):
        score_dataset(
            folder / "m.model", nested, tmp_path / "out.csv", ScoringOptions(keep=("id",))
        )
    nothing_left(tmp_path / "out.csv")


def test_one_process_at_a_time(folder: Path, tmp_path: Path, rng: np.random.Generator) -> None:
    source, output = write(rows_of(rng, 10), tmp_path / "in.csv"), tmp_path / "out.csv"
    work = tmp_path / ".out.csv.scoring"
    work.mkdir()
    with (
        FileLock(work / "lock"),
        pytest.raises(DataError, match="Another process is writing"),
    ):
        score_dataset(folder / "m.model", source, output)
    assert work.exists()
    score_dataset(folder / "m.model", source, output)
    alone(output)


# -- memory ----------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.endurance
def test_memory_does_not_grow_with_rows(folder: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from bootprob.batch_scoring import row_scoring, score_dataset\n"
        "from bootprob.cli.console import peak_memory\n"
        "row_scoring._LINEAR_AT_ONCE = 2**12\n"  # small blocks, so that few rows are many
        "score_dataset(*sys.argv[1:]); print(peak_memory())"
    )
    table = credit_table(50_000).drop(columns="risk")
    rows = pa.Table.from_pandas(table, preserve_index=False)
    few, many, peaks = 10, 40, []
    for n in (few, many):
        source = tmp_path / f"{n}.parquet"
        with pq.ParquetWriter(source, rows.schema) as writer:
            for _ in range(n):
                writer.write_table(rows)
        arguments = [folder / "m.model", source, tmp_path / f"{n}.out.parquet"]
        run = [sys.executable, "-c", program, *map(str, arguments)]
        done = subprocess.run(run, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 0.3 * (many - few) * rows.nbytes


# -- the command -----------------------------------------------------------------------------------


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command(
    folder: Path, model: TableModel, tmp_path: Path, rng: np.random.Generator
) -> None:
    frame = rows_of(rng, 40).assign(purpose="boat")
    source, output = write(frame, tmp_path / "in.csv"), tmp_path / "out.csv"
    given = ["score", folder / "m.model", source, "-o", output]
    result = _run(*given, "--level", "0.9", "--scores", "--keep", "id, months", "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert f"40 rows are in {output}: " in result.stdout
    assert "Column 'purpose' has values that the model does not know (rows): 'boat' (40)." in (
        result.stderr
    )
    found = read_table(output)
    assert found.columns[:2].tolist() == ["id", "months"]
    predicted = model.predict(read_table(source, text_columns=["branch"]), level=0.9)
    pd.testing.assert_frame_equal(found[predicted.columns], predicted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("given", [".csv", ".parquet"])
def test_the_command_keeps_columns_with_commas_in_their_names(
    folder: Path, tmp_path: Path, rng: np.random.Generator, given: str
) -> None:
    frame = rows_of(rng, 5).assign(**{"weight, kg": 1.0})
    source, output = write(frame, tmp_path / f"in{given}"), tmp_path / "out.csv"
    result = _run("score", folder / "m.model", source, "-o", output, "--keep", "weight, kg",
                  "--keep", "id, months")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert read_table(output).columns[:3].tolist() == ["weight, kg", "id", "months"]


def test_the_command_tells_bad_rows(folder: Path, tmp_path: Path, rng: np.random.Generator) -> None:
    frame = rows_of(rng, 40)
    frame.loc[[3, 17], "amount"] = np.inf
    source, output = write(frame, tmp_path / "in.parquet"), tmp_path / "out.csv"
    given = ["score", folder / "m.model", source, "-o", output]
    result = _run(*given)
    assert result.exit_code == 1
    assert "row 4 of in.parquet (amount: infinite); row 18" in result.stderr
    assert "--bad-rows null" in result.stderr
    nothing_left(output)
    result = _run(*given, "--bad-rows", "null")
    assert result.exit_code == 0, result.output
    assert "2 rows have no results, as they cannot be used: row 4 of in.parquet" in result.stderr
    result = _run(*given, "--device", "abacus")
    assert result.exit_code == 2
    result = _run("score", folder / "m.model", tmp_path / "none.csv", "-o", output)
    assert result.exit_code == 1
    assert "does not exist" in result.stderr
