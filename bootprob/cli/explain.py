"""The command ``bootprob explain``: what each column contributes to the probability of each row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bootprob.cli.models import load_table_model
from bootprob.cli.options import CsvSafe, Encoding, Level
from bootprob.runtime.files import check_output
from bootprob.tables.suffixes import table_suffix

if TYPE_CHECKING:
    from bootprob.explanation import Contributions

__all__ = ["explain"]

_SHOWN = 12  # columns


def explain(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that bootprob fit wrote.")],
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE", help="Rows to explain: .csv, .tsv (.gz too), .parquet or .xlsx."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="CSV or Parquet file to write.")
    ],
    background: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Rows to compare with, of which 16 are drawn. Default: training rows that the "
            "model keeps.",
        ),
    ] = None,
    level: Level = 0.95,
    encoding: Encoding = None,
    csv_safe: CsvSafe = False,
) -> None:
    """Say which columns make the probability of a row what it is, with intervals.

    Writes for each row of TABLE a line for each column, those that contribute
    most first: row (from 1), probability, column, value, contribution, lower, upper.
    Contributions are log-odds (Shapley values): what the column adds, beside
    rows of the background. An interval above 0 says that it speaks for the
    positive class.

    [bold]Examples[/bold]

    bootprob explain loans.model applicants.csv -o why.csv
    bootprob explain loans.model applicants.csv --background april.csv -o why.parquet
    """
    import pandas as pd

    from bootprob.tables.files import read_table, write_table

    table_suffix(output, written=True)
    inputs = (model, table) if background is None else (model, table, background)
    check_output(output, inputs=inputs)
    fitted = load_table_model(model)
    texts = fitted.preprocessor.text_columns_
    frame, others = (
        None if path is None else read_table(path, text_columns=texts, encoding=encoding)
        for path in (table, background)
    )
    from bootprob.explanation import contributions

    assert frame is not None
    found = contributions(fitted, frame, others, level=level, progress=True)
    lines = found.to_frame()
    cells = frame[found.columns].astype(object).to_numpy()
    at = lines["column"].map({name: k for k, name in enumerate(found.columns)})
    values = cells[lines["row"], at]
    lines.insert(3, "value", ["" if pd.isna(value) else str(value) for value in values])
    lines["row"] += 1
    write_table(lines, output, csv_safe=csv_safe)
    _show(found)
    typer.echo(f"{len(frame)} rows are explained in {output}, a line for each of their columns.")


def _show(found: Contributions) -> None:
    """Columns by the size of what they contribute."""
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    size = np.abs(found.contribution).mean(axis=0)
    sure = (found.interval[..., 0] > 0) | (found.interval[..., 1] < 0)
    table = Table(title="Contributions to the log-odds, over the rows", title_justify="left")
    table.add_column("")
    for heading in ("mean size", "rows whose interval leaves 0 out"):
        table.add_column(heading, justify="right")
    for k in np.argsort(-size, kind="stable")[:_SHOWN]:
        table.add_row(found.columns[k], f"{size[k]:.3f}", f"{sure[:, k].mean():.0%}")
    Console().print(table)
