"""Interrupted runs: resumed if nothing has changed, and nothing of them is left behind."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from batch_runs import alone, cut_small, nothing_left, read, rows_of, saved_model, stop_after, write

from bootprob.batch_scoring import ScoringOptions, row_scoring, score_dataset
from bootprob.batch_scoring.checked_files import (
    checksum_of_file,
    read_checked,
    unchanged,
    write_checked,
)
from bootprob.batch_scoring.input_identity import InputIdentity
from bootprob.batch_scoring.sources import find_files
from bootprob.batch_scoring.work_folder import WorkFolder
from bootprob.exceptions import DataError
from bootprob.persistence.save_load import load
from bootprob.tables.model import TableModel
from mixed_tables import credit_table

PROGRAM = "from bootprob.cli.__main__ import main; main()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model."""
    return saved_model(tmp_path_factory.mktemp("scoring"))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    few_blocks(monkeypatch)


def few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 20 rows, of which 3 are a fragment, and about as many a piece of CSV."""
    cut_small(monkeypatch)
    monkeypatch.setattr("bootprob.tables.csv_pieces._PIECE", 3000)
    monkeypatch.setattr("bootprob.batch_scoring.dataset_scoring._BLOCKS_OF_FRAGMENT", 3)


@pytest.fixture
def interrupt(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Score until 14 blocks are done, which are two parts or more."""

    def interrupted(source: Path, output: Path, options: ScoringOptions | None = None) -> None:
        with monkeypatch.context() as patch:
            stop_after(patch, 14, KeyboardInterrupt())
            with pytest.raises(KeyboardInterrupt):
                score_dataset(folder / "m.model", source, output, options)

    return interrupted


def _equal_to_a_whole_run(folder: Path, source: Path, output: Path) -> None:
    whole = output.parent / f"whole{output.suffix}"
    score_dataset(folder / "m.model", source, whole)
    pd.testing.assert_frame_equal(read(output), read(whole))
    alone(output)


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
    tmp_path: Path,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    given: str,
    wanted: str,
    error: BaseException,
) -> None:
    source, output = write(rows_of(rng, 400), tmp_path / f"in{given}"), tmp_path / wanted
    with monkeypatch.context() as patch:
        stop_after(patch, int(rng.integers(8, 13)), error)
        with pytest.raises(type(error)):
            score_dataset(folder / "m.model", source, output)
    assert not output.exists()
    assert not (tmp_path / f"{wanted}.summary.json").exists()
    with monkeypatch.context() as patch:
        scored = stop_after(patch, 1000, error)
        summary = score_dataset(folder / "m.model", source, output)
    assert summary.n_resumed > 0
    assert summary.n_resumed + sum(scored) == 400 == summary.n_rows
    whole = tmp_path / f"whole{Path(wanted).suffix}"
    score_dataset(folder / "m.model", source, whole)
    pd.testing.assert_frame_equal(read(output), read(whole))
    alone(output)


@pytest.mark.usefixtures("small_blocks")
def test_doubts_are_told_once_and_not_of_each_block(
    folder: Path, tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, told = write(rows_of(rng, 400), tmp_path / "in.csv"), []
    monkeypatch.setattr(row_scoring, "warn_of_doubts", lambda *given: told.append(given))
    score_dataset(folder / "m.model", source, tmp_path / "out.csv")
    assert len(told) == 1


# -- the same run, or another ----------------------------------------------------------------------


@pytest.mark.usefixtures("small_blocks")
def test_a_run_is_of_the_model_that_was_loaded(
    folder: Path, tmp_path: Path, rng: np.random.Generator, interrupt: Callable[..., None]
) -> None:
    """Another file that took its place while the input was read was said to have scored."""
    source, output = write(rows_of(rng, 400), tmp_path / "in.csv"), tmp_path / "out.csv"
    interrupt(source, output)
    file = tmp_path / "m.model"
    file.write_bytes((folder / "m.model").read_bytes())
    loaded, before = load(file), checksum_of_file(file)
    assert isinstance(loaded, TableModel)
    file.write_bytes(b"another")
    done = score_dataset(loaded, source, output, model_file=file, model_checksum=before)
    assert done.n_resumed > 0
    with pytest.raises(DataError, match="changed while it was read"), unchanged(file):
        file.write_bytes(b"one more")


@pytest.mark.usefixtures("small_blocks")
def test_only_the_same_run_is_resumed(
    folder: Path, tmp_path: Path, rng: np.random.Generator, interrupt: Callable[..., None]
) -> None:
    source, output = write(rows_of(rng, 400), tmp_path / "in.parquet"), tmp_path / "out.parquet"
    interrupt(source, output)
    os.utime(source, ns=(0, 0))
    assert score_dataset(folder / "m.model", source, output).n_resumed > 0
    interrupt(source, output)
    loaded, file = load(folder / "m.model"), folder / "m.model"
    assert isinstance(loaded, TableModel)
    assert score_dataset(loaded, source, output, model_file=file).n_resumed > 0
    interrupt(source, output)
    other = ScoringOptions(level=0.5)
    assert score_dataset(folder / "m.model", source, output, other).n_resumed == 0
    interrupt(source, output)
    another = TableModel.fit(
        credit_table(80), "risk", "bad", kernel="linear", n_bootstraps=19, random_state=0
    )
    assert score_dataset(another, source, output).n_resumed == 0
    interrupt(source, output)
    # The same rows, cut into other fragments.
    monkeypatch = pytest.MonkeyPatch()
    with monkeypatch.context() as patch:
        patch.setattr("bootprob.batch_scoring.dataset_scoring._BLOCKS_OF_FRAGMENT", 5)
        assert score_dataset(folder / "m.model", source, output).n_resumed == 0
    _equal_to_a_whole_run(folder, source, output)


@pytest.mark.parametrize("suffix", [".arrow", ".parquet", ".csv"])
@pytest.mark.parametrize("in_place", [False, True], ids=["two paths", "one path"])
@pytest.mark.usefixtures("small_blocks")
def test_another_day_of_the_same_name_size_and_time(
    folder: Path,
    tmp_path: Path,
    rng: np.random.Generator,
    interrupt: Callable[..., None],
    suffix: str,
    in_place: bool,
) -> None:
    days = [tmp_path / name / f"data{suffix}" for name in ("day1", "day2")]
    rows = rows_of(rng, 400).assign(amount=1.5)
    for day, amount in zip(days, (1.5, 2.5), strict=True):
        day.parent.mkdir()
        write(rows.assign(amount=amount), day)
        os.utime(day, ns=(10**18, 10**18))
    assert days[0].stat().st_size == days[1].stat().st_size
    output = tmp_path / "out.parquet"
    interrupt(days[0], output)
    if in_place:
        shutil.copy2(days[1], days[0])
    second = days[0] if in_place else days[1]
    assert score_dataset(folder / "m.model", second, output).n_resumed == 0
    _equal_to_a_whole_run(folder, days[1], output)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_every_byte_counts(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, n_threads: int
) -> None:
    monkeypatch.setattr("bootprob.batch_scoring.input_identity._PIECE", 48)
    monkeypatch.setattr("bootprob.batch_scoring.input_identity._AT_ONCE", 16)
    monkeypatch.setattr("torch.get_num_threads", lambda: n_threads)
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    content = rng.bytes(110)
    changed = [
        *(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(110)),
        *(content[:length] for length in range(110)),
        content[48:96] + content[:48] + content[96:],
        content + b"\0",
    ]
    other.write_bytes(content)
    stated = set()
    for each in [content, *changed]:
        path.write_bytes(each)
        first, second = InputIdentity(find_files(tmp_path), progress=False).stated
        assert (first[-1] == second[-1]) == (each == content)
        stated.add(first[-1])
    assert len(stated) == 1 + len(changed)


@pytest.mark.parametrize("same", [True, False], ids=["touched", "changed"])
@pytest.mark.usefixtures("small_blocks")
def test_input_that_changes_meanwhile(
    folder: Path,
    tmp_path: Path,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    same: bool,
) -> None:
    rows = rows_of(rng, 400).assign(amount=1.5)
    source, output = write(rows, tmp_path / "in.csv"), tmp_path / "out.parquet"
    stamp = source.stat()
    finish = WorkFolder.finish

    def finishing(self, fragment, suffix, tally):  # type: ignore[no-untyped-def]
        finish(self, fragment, suffix, tally)
        if fragment.number == 1:
            # In place, as another file would not be seen by who has opened this one.
            data = source.read_bytes()
            source.write_bytes(data if same else data.replace(b",1.5,", b",2.5,"))
            os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    monkeypatch.setattr(WorkFolder, "finish", finishing)
    if same:
        assert score_dataset(folder / "m.model", source, output).n_rows == 400
    else:
        with pytest.raises(DataError, match=r"in\.csv was changed while it was scored"):
            score_dataset(folder / "m.model", source, output)
        assert not output.exists()
        monkeypatch.undo()
        few_blocks(monkeypatch)
        assert score_dataset(folder / "m.model", source, output).n_resumed == 0
    _equal_to_a_whole_run(folder, source, output)


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", ["out.csv", "out", "out.parquet"])
@pytest.mark.usefixtures("small_blocks")
def test_a_part_with_one_digit_changed(
    folder: Path,
    tmp_path: Path,
    rng: np.random.Generator,
    interrupt: Callable[..., None],
    wanted: str,
) -> None:
    source, output = write(rows_of(rng, 400), tmp_path / "in.parquet"), tmp_path / wanted
    interrupt(source, output)
    part = min((tmp_path / f".{wanted}.scoring" / "parts").iterdir())
    data = bytearray(part.read_bytes())
    at = data.index(b"0.") + 4 if wanted == "out.csv" else len(data) // 2
    data[at] = ord("7") if data[at] != ord("7") else ord("3")
    part.write_bytes(data)
    with pytest.warns(UserWarning, match=rf"{part.name} is damaged\. Its rows are scored again"):
        summary = score_dataset(folder / "m.model", source, output)
    assert 0 < summary.n_resumed < 200
    _equal_to_a_whole_run(folder, source, output)


DAMAGED = [b"", b"{}", b"[]", b"null", b"\xff", b"[" * 10**5, b'{"checksum": 1, "content": {}}']


@pytest.mark.parametrize("damage", DAMAGED)
def test_checked_json(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "x.json"
    content = {"b": [1.5, None, "é"], "a": {"2": True}}
    assert read_checked(path, "Never mind.") is None
    write_checked(path, content)
    assert read_checked(path, "Never mind.") == content
    path.write_bytes(damage)
    with pytest.warns(UserWarning, match=r"x\.json is damaged\. Never mind\."):
        assert read_checked(path, "Never mind.") is None


@pytest.mark.parametrize("name", ["run.json", "part-00001.json", "layout-00000.json"])
@pytest.mark.usefixtures("small_blocks")
def test_damaged_files_of_a_run(
    folder: Path,
    tmp_path: Path,
    rng: np.random.Generator,
    interrupt: Callable[..., None],
    name: str,
) -> None:
    source, output = write(rows_of(rng, 400), tmp_path / "in.csv"), tmp_path / "out.csv"
    interrupt(source, output)
    path = tmp_path / ".out.csv.scoring" / name
    # The last digit, whatever it means.
    start, digit, end = re.fullmatch(r"(.*)(\d)(\D*)", path.read_text()).groups()  # type: ignore[union-attr]
    path.write_text(start + str((int(digit) + 1) % 10) + end)
    with pytest.warns(UserWarning, match=f"{name} is damaged"):
        summary = score_dataset(folder / "m.model", source, output)
    assert (summary.n_resumed == 0) == (name == "run.json")
    _equal_to_a_whole_run(folder, source, output)


@pytest.mark.usefixtures("small_blocks")
def test_a_full_disk(
    folder: Path, tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = write(rows_of(rng, 400), tmp_path / "in.parquet"), tmp_path / "out.parquet"
    with monkeypatch.context() as patch:
        stop_after(patch, 10, OSError(errno.ENOSPC, "No space left on device"))
        with pytest.raises(OSError, match="No space left") as failed:
            score_dataset(folder / "m.model", source, output)
    assert failed.value.filename == str(output)
    assert not output.exists()
    assert score_dataset(folder / "m.model", source, output).n_resumed > 0


# -- kills -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", ["out.csv", "out"])
@pytest.mark.usefixtures("small_blocks")
def test_what_kills_left_is_removed(
    folder: Path,
    tmp_path: Path,
    rng: np.random.Generator,
    interrupt: Callable[..., None],
    wanted: str,
) -> None:
    source, output = write(rows_of(rng, 400), tmp_path / "in.parquet"), tmp_path / wanted
    interrupt(source, output)
    work = tmp_path / f".{wanted}.scoring"
    left = [
        work / ".run.json.0123abcd.part",
        work / "parts" / ".part-00003.parquet.0123abcd.part",
        work / "parts" / "part-00777.parquet",
        tmp_path / f".{wanted}.summary.json.0123abcd.part",
    ]
    others = [tmp_path / f".{wanted}.0123abcd.part.bak", tmp_path / ".other.csv.0123abcd.part"]
    if output.suffix:
        left.append(tmp_path / f".{wanted}.0123abcd.part")
    for each in [*left, *others]:
        each.touch()
    assert score_dataset(folder / "m.model", source, output).n_resumed > 0
    assert all(each.exists() for each in others)
    others[0].unlink()
    if not output.suffix:
        assert {each.name for each in output.iterdir()} == {
            f"part-{k:05}.parquet" for k in range(6)
        }
    _equal_to_a_whole_run(folder, source, output)


@pytest.fixture
def published(
    folder: Path, tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path]:
    """Input and output of a run that was killed between its folder and its summary."""
    source, output = write(rows_of(rng, 50), tmp_path / "in.parquet"), tmp_path / "out"

    def killed(self: WorkFolder, summary: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(WorkFolder, "put_summary", killed)
        with pytest.raises(KeyboardInterrupt):
            score_dataset(folder / "m.model", source, output)
    return source, output


def test_killed_between_the_folder_and_its_summary(
    folder: Path, published: tuple[Path, Path]
) -> None:
    source, output = published
    written = read(output)
    source.touch()
    assert score_dataset(folder / "m.model", source, output).n_rows == 50
    pd.testing.assert_frame_equal(read(output), written)
    alone(output)


def test_another_run_after_such_a_kill(
    folder: Path, published: tuple[Path, Path], rng: np.random.Generator
) -> None:
    source, output = published
    written = read(output)
    write(rows_of(rng, 50), source)
    with pytest.raises(DataError, match="holds the results of an earlier run, of other input"):
        score_dataset(folder / "m.model", source, output)
    pd.testing.assert_frame_equal(read(output), written)
    stored = json.loads((output.parent / "out.summary.json").read_text())
    assert stored["n_rows"] == 50
    alone(output)
    with pytest.raises(DataError, match="is not empty; remove it or give another name"):
        score_dataset(folder / "m.model", source, output)
    shutil.rmtree(output)
    assert score_dataset(folder / "m.model", source, output).n_rows == 50
    _equal_to_a_whole_run(folder, source, output)


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_summary_after_such_a_kill(
    folder: Path, published: tuple[Path, Path], damage: bytes
) -> None:
    source, output = published
    (output.parent / ".out.scoring" / "summary.json").write_bytes(damage)
    with (
        pytest.warns(UserWarning, match=r"summary\.json is damaged\. Whether"),
        pytest.raises(DataError, match="is not empty; remove it or give another name"),
    ):
        score_dataset(folder / "m.model", source, output)
    shutil.rmtree(output)
    nothing_left(output)
    assert score_dataset(folder / "m.model", source, output).n_rows == 50


@pytest.mark.usefixtures("small_blocks")
def test_a_folder_that_is_filled_meanwhile(
    folder: Path, tmp_path: Path, rng: np.random.Generator, interrupt: Callable[..., None]
) -> None:
    source, output = write(rows_of(rng, 400), tmp_path / "in.parquet"), tmp_path / "out"
    interrupt(source, output)
    output.mkdir()
    (output / "mine").touch()
    with pytest.raises(DataError, match="is not empty; remove it or give another name"):
        score_dataset(folder / "m.model", source, output)
    (output / "mine").unlink()
    assert score_dataset(folder / "m.model", source, output).n_resumed > 0
    _equal_to_a_whole_run(folder, source, output)


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
    alone(output)
    found = pq.read_table(output)
    assert found.num_rows == n
    first = found.slice(0, 50_000)
    for at in range(1, n // 50_000):
        # The same rows again; blocks are cut elsewhere, which may move the last bits.
        part = found.slice(at * 50_000, 50_000)
        np.testing.assert_allclose(part["probability"], first["probability"], rtol=1e-9)
        assert part["label"].equals(first["label"])


@pytest.mark.skipif(os.name != "posix", reason="forks, and kills by signal")
@pytest.mark.parametrize("wanted", ["out.csv", "out.parquet", "out"])
@pytest.mark.parametrize("moment", ["any", "each-file-operation"])
@pytest.mark.endurance
def test_many_kills(folder: Path, tmp_path: Path, wanted: str, moment: str) -> None:
    """Killed anywhere, then run again: what a run without kills writes, and nothing else."""
    seed = os.environ["BOOTPROB_TEST_SEED"]
    source = write(rows_of(np.random.default_rng(int(seed)), 1600), tmp_path / "in.csv")
    program = [sys.executable, Path(__file__).with_name("killed_runs.py")]
    arguments = [folder / "m.model", source, tmp_path / "kills" / wanted, moment, seed]
    done = subprocess.run(
        [str(each) for each in (*program, *arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    print(wanted, moment, counts)
    assert counts["killed"] >= 40
