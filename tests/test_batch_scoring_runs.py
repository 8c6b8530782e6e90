"""Whole runs: files in, files out, killed and resumed, in constant memory."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filelock import FileLock
from typer.testing import CliRunner, Result

from bootprob import BootstrapSVC
from bootprob.batch_scoring import BadRowsError, ScoringOptions, row_scoring, score_dataset
from bootprob.cli import app
from bootprob.exceptions import DataError, ModelFileError
from bootprob.persistence import load, save
from bootprob.table_files import read_table
from bootprob.tables import TableModel
from mixed_tables import credit_table

RESULTS = ["probability", "probability_lower", "probability_upper", "label", "threshold"]
PROGRAM = "from bootprob.cli import main; main()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model."""
    folder = tmp_path_factory.mktemp("scoring")
    model = TableModel.fit(credit_table(80), "risk", "bad", n_bootstraps=20, random_state=0)
    save(model, folder / "m.model")
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> TableModel:
    found = load(folder / "m.model")
    assert isinstance(found, TableModel)
    return found


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 20 rows and fragments of 320."""
    monkeypatch.setattr(row_scoring, "_LINEAR_AT_ONCE", 20)
    monkeypatch.setattr("bootprob.batch_scoring.csv_source._PIECE", 2000)


def _rows(rng: np.random.Generator, n: int) -> pd.DataFrame:
    frame = credit_table(n, seed=int(rng.integers(2**31))).drop(columns="risk")
    return frame.assign(id=np.arange(n))


def _write(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=70)
    else:
        frame.to_feather(path, chunksize=70)
    return path


def _read(path: Path) -> pd.DataFrame:
    if path.suffix in (".arrow", ".feather"):
        return pd.read_feather(path)
    return pd.read_parquet(path) if path.is_dir() else read_table(path)


def _alone(output: Path) -> None:
    """Nothing is left but the output and its summary."""
    left = {each.name for each in output.parent.iterdir() if output.name in each.name}
    assert left == {output.name, f"{output.name}.summary.json"}


def _nothing_left(output: Path) -> None:
    assert not [each for each in output.parent.iterdir() if output.name in each.name]


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
    source = _write(_rows(rng, 1000).assign(purpose="boat"), tmp_path / f"in{given}")
    frame = _read(source) if given != ".csv" else read_table(source, text_columns=["branch"])
    output = tmp_path / f"out{wanted}"
    summary = score_dataset(folder / "m.model", source, output, ScoringOptions(level=0.8))
    expected = model.predict(frame, level=0.8)[RESULTS]
    pd.testing.assert_frame_equal(_read(output), expected, rtol=1e-9, atol=1e-12)
    assert (summary.n_rows, summary.n_resumed, summary.n_bad) == (1000, 0, 0)
    assert summary.unknown == {"purpose": {"rows": 1000, "levels": {"boat": 1000}}}
    assert summary.rate > 0
    assert set(summary.busy) == {"reading", "preparing", "scoring", "writing"}
    if not wanted:
        assert len(list(output.iterdir())) > 1
    _alone(output)
    stored = json.loads((tmp_path / f"{output.name}.summary.json").read_text())
    assert stored["n_rows"] == 1000


@pytest.mark.usefixtures("small_blocks")
def test_a_folder_of_partitions(
    folder: Path, model: TableModel, tmp_path: Path, rng: np.random.Generator
) -> None:
    frame = _rows(rng, 700).sort_values(["branch", "persons"], kind="stable")
    for (branch, persons), part in frame.groupby(["branch", "persons"]):
        inside = tmp_path / "in" / f"branch={branch}" / f"persons={persons}"
        inside.mkdir(parents=True)
        _write(part.drop(columns=["branch", "persons"]), inside / "a.parquet")
    (tmp_path / "in" / "_SUCCESS").touch()
    (tmp_path / "in" / ".b.parquet").write_text("no table")
    output = tmp_path / "out.parquet"
    options = ScoringOptions(keep=("branch", "id"), scores=True)
    score_dataset(model, tmp_path / "in", output, options)
    found = _read(output)
    assert found["id"].tolist() == frame["id"].tolist()
    assert found["branch"].tolist() == frame["branch"].tolist()
    expected = model.predict(frame).reset_index(drop=True)
    pd.testing.assert_frame_equal(found[expected.columns], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("small_blocks")
def test_kept_columns_of_csv_are_as_written(
    folder: Path, tmp_path: Path, rng: np.random.Generator
) -> None:
    frame = _rows(rng, 100).assign(id="007", note='say "1,5"', when="2024-01-01")
    source = _write(frame, tmp_path / "in.csv")
    output = tmp_path / "out.csv"
    options = ScoringOptions(keep=("id", "note", "when", "branch"))
    score_dataset(folder / "m.model", source, output, options)
    found = read_table(output, text_columns=["id", "branch"])
    pd.testing.assert_frame_equal(found[list(options.keep)], frame[list(options.keep)])


@pytest.mark.parametrize("given", [".csv", ".parquet"])
@pytest.mark.usefixtures("small_blocks")
def test_bad_rows(folder: Path, tmp_path: Path, rng: np.random.Generator, given: str) -> None:
    frame = _rows(rng, 900)
    bad = sorted(rng.choice(900, 7, replace=False).tolist())
    good = frame.drop(index=bad)
    frame.loc[bad, "amount"] = np.inf
    frame["months"] = frame["months"].map(lambda x: None if np.isnan(x) else f"{x}")
    frame.loc[bad[2:4], "months"] = "many"
    source = _write(frame, tmp_path / f"in{given}")
    output = tmp_path / "out.parquet"
    with pytest.raises(BadRowsError) as refused:
        score_dataset(folder / "m.model", source, output)
    assert f"row {bad[0] + 1} of in{given} (amount: infinite)" in str(refused.value)
    _nothing_left(output)
    summary = score_dataset(folder / "m.model", source, output, ScoringOptions(bad_rows="null"))
    assert summary.n_bad == 7
    assert [each.row for each in summary.bad] == [at + 1 for at in bad]
    assert summary.bad[2].cells == {"months": "not a number", "amount": "infinite"}
    found = _read(output)
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


# -- what cannot be --------------------------------------------------------------------------------


def test_refused_before_any_work(folder: Path, tmp_path: Path, rng: np.random.Generator) -> None:
    good = _write(_rows(rng, 10), tmp_path / "good.parquet")
    lake = tmp_path / "lake"
    (lake / "empty").mkdir(parents=True)
    shutil.copy(good, lake / "a.parquet")
    _write(_rows(rng, 10), tmp_path / "both.csv")
    (tmp_path / "broken.parquet").write_bytes(good.read_bytes()[:-100])
    (tmp_path / "broken.arrow").write_bytes(b"ARROW1")
    (tmp_path / "names.csv").write_text("months,amount\n1,2\n")
    _write(_rows(rng, 10).iloc[:0], tmp_path / "empty.parquet")
    _rows(rng, 10).iloc[:0].to_csv(tmp_path / "empty.csv", index=False)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    cases = [
        (tmp_path / "none.csv", "out.csv", "does not exist"),
        (lake / "empty", "out.csv", "has no files"),
        (tmp_path, "../out.csv", "files of several kinds"),
        (folder / "m.model", "out.csv", "must end in .csv"),
        (tmp_path / "broken.parquet", "out.csv", "broken.parquet cannot be read"),
        (tmp_path / "broken.arrow", "out.csv", "broken.arrow cannot be read"),
        (tmp_path / "names.csv", "out.csv", "names.csv lacks 'status'"),
        (tmp_path / "empty.parquet", "out.csv", "no rows"),
        (tmp_path / "empty.csv", "out.csv", "no rows"),
        (lake, "lake/out.parquet", "lies in the folder that is read"),
        (good, "good.parquet", "is the file that is read"),
        (good, "out.xlsx", "an output is a file whose name ends in"),
        (good, "full", "is not empty"),
        (good, "nowhere/out.csv", "does not exist"),
    ]
    before = sorted(tmp_path.rglob("*"))
    for source, output, message in cases:
        with pytest.raises(DataError, match=message):
            score_dataset(folder / "m.model", source, tmp_path / output)
        assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(ModelFileError):
        score_dataset(good, good, tmp_path / "out.csv")
    arrays = BootstrapSVC(n_bootstraps=5).fit(rng.normal(size=(30, 2)), np.arange(30) % 2)
    save(arrays, tmp_path / "arrays.model")
    with pytest.raises(DataError, match="fitted on arrays"):
        score_dataset(tmp_path / "arrays.model", good, tmp_path / "out.csv")
    nested = _write(_rows(rng, 10).assign(id=[[1]] * 10), tmp_path / "nested.parquet")
    with pytest.raises(DataError, match=r"cannot be written to \.csv"):
        score_dataset(
            folder / "m.model", nested, tmp_path / "out.csv", ScoringOptions(keep=("id",))
        )
    _nothing_left(tmp_path / "out.csv")


def test_one_process_at_a_time(folder: Path, tmp_path: Path, rng: np.random.Generator) -> None:
    source, output = _write(_rows(rng, 10), tmp_path / "in.csv"), tmp_path / "out.csv"
    work = tmp_path / ".out.csv.scoring"
    work.mkdir()
    with (
        FileLock(work / "lock"),
        pytest.raises(DataError, match="Another process is writing"),
    ):
        score_dataset(folder / "m.model", source, output)
    assert work.exists()
    score_dataset(folder / "m.model", source, output)
    _alone(output)


# -- interrupted -----------------------------------------------------------------------------------


def _stop_after(monkeypatch: pytest.MonkeyPatch, n_blocks: int, error: BaseException) -> list[int]:
    """Let scoring fail after some blocks; returns the numbers of rows of the blocks scored."""
    scored: list[int] = []
    score = row_scoring.RowScorer.score

    def failing(self, batch, prepared):  # type: ignore[no-untyped-def]
        if len(scored) == n_blocks:
            raise error
        scored.append(batch.num_rows)
        return score(self, batch, prepared)

    monkeypatch.setattr(row_scoring.RowScorer, "score", failing)
    return scored


@pytest.mark.parametrize(
    ("given", "wanted", "error"),
    [
        (".csv", "out.csv", KeyboardInterrupt()),
        (".csv", "out", MemoryError()),
        (".parquet", "out.parquet", DataError("no luck")),
        (".parquet", "out", KeyboardInterrupt()),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_a_run_resumes(
    folder: Path,
    model: TableModel,
    tmp_path: Path,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    given: str,
    wanted: str,
    error: BaseException,
) -> None:
    source, output = _write(_rows(rng, 1600), tmp_path / f"in{given}"), tmp_path / wanted
    with monkeypatch.context() as patch:
        _stop_after(patch, int(rng.integers(30, 50)), error)
        with pytest.raises(type(error)):
            score_dataset(folder / "m.model", source, output)
    assert not output.exists()
    assert not (tmp_path / f"{wanted}.summary.json").exists()
    with monkeypatch.context() as patch:
        scored = _stop_after(patch, 1000, error)
        summary = score_dataset(folder / "m.model", source, output)
    assert summary.n_resumed > 0
    assert summary.n_resumed + sum(scored) == 1600 == summary.n_rows
    whole = tmp_path / f"whole{Path(wanted).suffix}"
    score_dataset(folder / "m.model", source, whole)
    pd.testing.assert_frame_equal(_read(output), _read(whole))
    _alone(output)


@pytest.mark.usefixtures("small_blocks")
def test_only_the_same_run_is_resumed(
    folder: Path, tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"

    def interrupted() -> None:
        _write(_rows(rng, 1600), source)
        with monkeypatch.context() as patch:
            _stop_after(patch, 40, KeyboardInterrupt())
            with pytest.raises(KeyboardInterrupt):
                score_dataset(folder / "m.model", source, output)

    interrupted()
    os.utime(source, ns=(0, 0))
    assert score_dataset(folder / "m.model", source, output).n_resumed == 0
    interrupted()
    other = ScoringOptions(level=0.5)
    assert score_dataset(folder / "m.model", source, output, other).n_resumed == 0
    interrupted()
    another = TableModel.fit(credit_table(80), "risk", "bad", n_bootstraps=19, random_state=0)
    assert score_dataset(another, source, output).n_resumed == 0
    interrupted()
    # A damaged part does not count.
    parts = sorted((tmp_path / ".out.parquet.scoring" / "parts").iterdir())
    parts[0].write_bytes(parts[0].read_bytes()[:-1])
    summary = score_dataset(folder / "m.model", source, output)
    whole = score_dataset(folder / "m.model", source, tmp_path / "whole.parquet")
    assert summary.n_resumed < 40 * 20 <= whole.n_rows
    pd.testing.assert_frame_equal(_read(output), _read(tmp_path / "whole.parquet"))


def test_a_folder_that_was_published_before_the_kill(
    folder: Path, tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = _write(_rows(rng, 50), tmp_path / "in.parquet"), tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(
            "bootprob.batch_scoring.dataset_scoring.summary_of",
            lambda path: (_ for _ in ()).throw(KeyboardInterrupt),
        )
        with pytest.raises(KeyboardInterrupt):
            score_dataset(folder / "m.model", source, output)
    written = _read(output)
    assert score_dataset(folder / "m.model", source, output).n_rows == 50
    pd.testing.assert_frame_equal(_read(output), written)
    _alone(output)


@pytest.mark.usefixtures("small_blocks")
def test_a_full_disk(
    folder: Path, tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = _write(_rows(rng, 1600), tmp_path / "in.parquet"), tmp_path / "out.parquet"
    with monkeypatch.context() as patch:
        _stop_after(patch, 40, OSError(errno.ENOSPC, "No space left on device"))
        with pytest.raises(OSError, match="No space left") as failed:
            score_dataset(folder / "m.model", source, output)
    assert failed.value.filename == str(output)
    assert not output.exists()
    assert score_dataset(folder / "m.model", source, output).n_resumed > 0


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.endurance
def test_a_killed_process_leaves_nothing_visible_and_is_resumed(
    folder: Path, tmp_path: Path, kill: int
) -> None:
    n = 200_000
    table = pa.Table.from_pandas(credit_table(50_000).drop(columns="risk"), preserve_index=False)
    with pq.ParquetWriter(tmp_path / "in.parquet", table.schema) as writer:
        for _ in range(n // 50_000):
            writer.write_table(table)
    output = tmp_path / "out.parquet"
    arguments = [
        sys.executable,
        "-c",
        PROGRAM,
        "score",
        *map(str, (folder / "m.model", tmp_path / "in.parquet", "-o", output, "--scores")),
    ]
    process = subprocess.Popen(
        arguments,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        # Background jobs of a shell ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    work = tmp_path / ".out.parquet.scoring"
    while not list(work.glob("part-*.json")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(kill)
    said = process.communicate()[1].decode()
    if kill == signal.SIGINT:
        assert process.returncode == 130, said
        assert "Traceback" not in said
    else:
        assert process.returncode == -signal.SIGKILL
    visible = {each.name for each in tmp_path.iterdir() if not each.name.startswith(".")}
    assert visible == {"in.parquet"}
    again = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert " of them by an earlier run" in again.stdout
    _alone(output)
    found = pq.read_table(output)
    assert found.num_rows == n
    first = found.slice(0, 50_000)
    for at in range(1, n // 50_000):
        # The same rows again; blocks are cut elsewhere, which may move the last bits.
        part = found.slice(at * 50_000, 50_000)
        np.testing.assert_allclose(part["probability"], first["probability"], rtol=1e-9)
        assert part["label"].equals(first["label"])


# -- memory ----------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.endurance
def test_memory_does_not_grow_with_rows(folder: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from bootprob.batch_scoring import row_scoring, score_dataset\n"
        "from bootprob.console import peak_memory\n"
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
    frame = _rows(rng, 40).assign(purpose="boat")
    source, output = _write(frame, tmp_path / "in.csv"), tmp_path / "out.csv"
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


def test_the_command_tells_bad_rows(folder: Path, tmp_path: Path, rng: np.random.Generator) -> None:
    frame = _rows(rng, 40)
    frame.loc[[3, 17], "amount"] = np.inf
    source, output = _write(frame, tmp_path / "in.parquet"), tmp_path / "out.csv"
    given = ["score", folder / "m.model", source, "-o", output]
    result = _run(*given)
    assert result.exit_code == 1
    assert "row 4 of in.parquet (amount: infinite); row 18" in result.stderr
    assert "--bad-rows null" in result.stderr
    _nothing_left(output)
    result = _run(*given, "--bad-rows", "null")
    assert result.exit_code == 0, result.output
    assert "2 rows have no results, as they cannot be used: row 4 of in.parquet" in result.stderr
    result = _run(*given, "--device", "abacus")
    assert result.exit_code == 2
    result = _run("score", folder / "m.model", tmp_path / "none.csv", "-o", output)
    assert result.exit_code == 1
    assert "does not exist" in result.stderr
