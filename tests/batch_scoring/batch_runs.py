"""Runs of batch scoring for the tests: a model, rows in files of any kind, and how runs stop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bootprob.batch_scoring import row_scoring
from bootprob.persistence.save_load import save
from bootprob.tables.files import read_table
from bootprob.tables.model import TableModel
from mixed_tables import credit_table


def saved_model(folder: Path) -> Path:
    """Save a small model as ``m.model``; returns the folder."""
    model = TableModel.fit(
        credit_table(80), "risk", "bad", kernel="linear", n_bootstraps=20, random_state=0
    )
    save(model, folder / "m.model")
    return folder


def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 20 rows and fragments of 320."""
    monkeypatch.setattr(row_scoring, "_LINEAR_AT_ONCE", 20)
    monkeypatch.setattr("bootprob.tables.csv_pieces._PIECE", 2000)


def rows_of(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """New rows for the model, with a column ``id`` that it does not use."""
    frame = credit_table(n, seed=int(rng.integers(2**31))).drop(columns="risk")
    return frame.assign(id=np.arange(n))


def write(frame: pd.DataFrame, path: Path) -> Path:
    """Write a file of the kind that its name says; returns its path."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=70)
    else:
        frame.to_feather(path, chunksize=70)
    return path


def read(path: Path) -> pd.DataFrame:
    """Read an output of any kind."""
    if path.suffix in (".arrow", ".feather"):
        return pd.read_feather(path)
    return pd.read_parquet(path) if path.is_dir() else read_table(path)


def alone(output: Path) -> None:
    """See that nothing is left but the output and its summary."""
    left = {each.name for each in output.parent.iterdir() if output.name in each.name}
    assert left == {output.name, f"{output.name}.summary.json"}


def nothing_left(output: Path) -> None:
    """See that there is nothing of an output."""
    assert not [each for each in output.parent.iterdir() if output.name in each.name]


def stop_after(monkeypatch: pytest.MonkeyPatch, n_blocks: int, error: BaseException) -> list[int]:
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
