"""The command ``bootprob explain``: what columns do to the probabilities of rows."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bootprob.cli.models import load_for
from bootprob.cli.options import CsvSafe, Encoding, Level, Trust, takes_target
from bootprob.runtime.counted import counted
from bootprob.runtime.files import check_output
from bootprob.tables.suffixes import table_suffix

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from bootprob.explanation import Contributions, PermutationImportance
    from bootprob.tables.model import TableModel

__all__ = ["explain"]

_SHOWN = 12  # columns


class Importance(StrEnum):
    """Of which rows."""

    TRAINING = "training"
    HELD_OUT = "held-out"


class Metric(StrEnum):
    """By what importance is measured."""

    LOG_LOSS = "log-loss"
    BRIER_SCORE = "brier-score"
    AUC = "auc"


@takes_target
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
            "model keeps, or the mean of all where machines of two classes are linear with a "
            "sigmoid; linear machines of several classes have no default.",
        ),
    ] = None,
    importance: Annotated[
        Importance | None,
        typer.Option(
            help="Instead say which columns the probabilities depend on: how much worse they "
            "become when one is permuted. TABLE is the one fitted on, whose rows are asked out of "
            "bag (training), or one with known labels that took no part (held-out).",
        ),
    ] = None,
    metric: Annotated[
        Metric | None,
        typer.Option(
            help="By what importance is measured; default log-loss, the only one of several "
            "classes."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The classes of held-out rows, of a model that was fitted in Python and so does "
            "not know what they are called; default class.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--class",
            metavar="CLASS",
            help="The class whose log-odds are explained; default the positive one of two, each "
            "of several.",
        ),
    ] = None,
    level: Level = 0.95,
    encoding: Encoding = None,
    csv_safe: CsvSafe = False,
    trust: Trust = None,
) -> None:
    """Say which columns make the probability of a row what it is, with intervals.

    Writes for each row of TABLE a line for each column, those that contribute
    most first: row (from 1), probability, column, value, contribution, lower, upper.
    Contributions are log-odds (Shapley values): what the column adds, beside
    rows of the background. An interval above 0 says that it speaks for the
    positive class, or for that of --class; of several classes there are lines
    for each, and the log-odds are against all others. With either, a column
    class says which it is. With --importance a line for each column: column,
    importance, lower, upper.

    [bold]Examples[/bold]

    bootprob explain loans.model applicants.csv -o why.csv
    bootprob explain loans.model applicants.csv --background april.csv -o why.parquet
    bootprob explain loans.model loans.csv --importance training -o columns.csv
    """
    from rich.console import Console

    from bootprob.tables.files import read_table, write_table

    if importance is None and metric is not None:
        raise typer.BadParameter("--metric is of --importance, which is not given.")
    if importance is not None and label is not None:
        raise typer.BadParameter("--class is of contributions; --importance is of all classes.")
    if importance is not None and background is not None:
        raise typer.BadParameter("--background is of contributions, and --importance has none.")
    table_suffix(output, written=True)
    inputs = (model, table) if background is None else (model, table, background)
    check_output(output, inputs=inputs)
    fitted = load_for(model, trust, lambda: read_table(table, encoding=encoding).columns, target)
    texts = fitted.text_columns
    frame, others = (
        None if path is None else read_table(path, text_columns=texts, encoding=encoding)
        for path in (table, background)
    )
    assert frame is not None
    if importance is None:
        lines, shown = _contributions(fitted, frame, others, level, label)
        explained = counted(len(frame), "row is", "rows are")
        each = "column" if label is not None or "class" not in lines else "class and column"
        of = "" if label is None else f", of the log-odds of {label}"
        said = f"{explained} explained in {output}, a line for each {each}{of}."
    else:
        lines, shown = _importance(fitted, frame, importance, metric or Metric.LOG_LOSS, level)
        said = f"The importance of {counted(len(lines), 'column')} is in {output}."
    write_table(lines, output, csv_safe=csv_safe)
    Console().print(*shown, sep="\n")
    typer.echo(said)


def _contributions(
    fitted: TableModel,
    frame: pd.DataFrame,
    others: pd.DataFrame | None,
    level: float,
    label: str | None,
) -> tuple[pd.DataFrame, list[Table]]:
    """A line for each column of each row; the columns by what they contribute, to be shown."""
    import pandas as pd

    from bootprob.encoding.columns import level_text
    from bootprob.explanation import contributions

    labels = {level_text(each): each for each in fitted.target.labels}
    if label is not None and label not in labels:
        raise typer.BadParameter(f"--class is {label!r}; the model has {', '.join(labels)}.")
    named, parts, shown = label is not None or len(labels) > 2, [], []
    names = [label] if label is not None else list(labels) if named else [[*labels][1]]
    for name in names:
        found = contributions(fitted, frame, others, level=level, label=labels[name], progress=True)
        lines = found.to_frame()
        cells = frame[found.columns].astype(object).to_numpy()
        at = lines["column"].map({name: k for k, name in enumerate(found.columns)})
        values = cells[lines["row"], at]
        lines.insert(3, "value", ["" if pd.isna(value) else str(value) for value in values])
        lines["row"] += 1
        if named:
            lines.insert(1, "class", name)
        parts.append(lines)
        shown.append(_by_size(found, f" of {name}" if named else ""))
    return pd.concat(parts).sort_values("row", kind="stable", ignore_index=True), shown


def _importance(
    fitted: TableModel, frame: pd.DataFrame, importance: Importance, metric: Metric, level: float
) -> tuple[pd.DataFrame, list[Table]]:
    """A line for each column; the most important, to be shown."""
    from bootprob.explanation import permutation_importance

    found = permutation_importance(
        fitted,
        frame,
        held_out=importance is Importance.HELD_OUT,
        metric=metric.value.replace("-", "_"),
        level=level,
        progress=True,
    )
    lines = found.to_frame()
    return lines, [_most_important(found, lines[:_SHOWN], metric)]


def _by_size(found: Contributions, of: str) -> Table:
    """Columns by the size of what they contribute."""
    import numpy as np
    from rich.table import Table

    size = np.abs(found.contribution).mean(axis=0)
    sure = (found.interval[..., 0] > 0) | (found.interval[..., 1] < 0)
    table = Table(title=f"Contributions to the log-odds{of}, over the rows", title_justify="left")
    table.add_column("")
    for heading in ("mean size", "rows whose interval leaves 0 out"):
        table.add_column(heading, justify="right")
    for k in np.argsort(-size, kind="stable")[:_SHOWN]:
        table.add_row(found.columns[k], f"{size[k]:.3f}", f"{sure[:, k].mean():.0%}")
    return table


def _most_important(found: PermutationImportance, lines: pd.DataFrame, metric: Metric) -> Table:
    """The most important columns."""
    from rich.table import Table

    moved = "Fall of the AUC" if metric is Metric.AUC else f"Rise of the {metric.value}"
    of = "held-out" if found.held_out else "out-of-bag"
    title = f"{moved} ({found.baseline:.3f}) of {found.n_rows:,} {of} rows by permuting"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for heading in (moved.split()[0].lower(), f"{found.level:.0%} interval"):
        table.add_column(heading, justify="right")
    for column, *numbers in lines.itertuples(index=False):
        value, lower, upper = (f"{each:.3f}" for each in numbers)
        table.add_row(column, value, f"{lower} to {upper}")
    return table
