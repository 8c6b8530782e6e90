"""The command ``bootprob score``: files of any size through a fitted model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bootprob.cli.console import note, note_unknown
from bootprob.cli.costs import CostOptions
from bootprob.cli.models import load_for
from bootprob.cli.options import CsvSafe, Device, Level, Trust, listed_names, takes_options
from bootprob.exceptions import DataError
from bootprob.runtime.counted import counted

if TYPE_CHECKING:
    from bootprob.batch_scoring import ScoringSummary

__all__ = ["score"]


class BadRows(StrEnum):
    """What becomes of rows that cannot be used."""

    refuse = "refuse"
    null = "null"


@takes_options
def score(
    *,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that bootprob fit wrote.")],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT", help="CSV, Parquet or Arrow file, or a folder of files of one kind."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="CSV, Parquet or Arrow file to write, or a folder for Parquet files.",
        ),
    ],
    level: Level = 0.95,
    scores: Annotated[
        bool, typer.Option("--scores", help="Write the score and its interval too; slower by far.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN,...",
            help="Columns of INPUT that are written too, with commas between them; may be given "
            "several times.",
        ),
    ] = None,
    bad_rows: Annotated[
        BadRows,
        typer.Option(
            help="Rows with text or infinity where a number belongs: refuse the input, or leave "
            "their results empty."
        ),
    ] = BadRows.refuse,
    costs: CostOptions,
    csv_safe: CsvSafe = False,
    device: Device = None,
    trust: Trust = None,
) -> None:
    """Score tables of any size, in constant memory.

    Writes what bootprob predict writes, without the score unless it is asked
    for, one line for each row of INPUT and in its order. What was odd in the
    rows is in a file beside OUT whose name ends in .summary.json.

    Nothing is visible before all is done. A run that was stopped goes on where
    it was when the same command is given again.

    [bold]Examples[/bold]

    bootprob score loans.model applicants.parquet -o scored.parquet
    bootprob score loans.model lake/applicants -o scored --keep id,day
    bootprob score loans.model applicants.csv -o scored.csv --bad-rows null
    bootprob score loans.model new.csv -o decided.csv --cost-fp 1 --cost-fn 5
    """
    from bootprob.batch_scoring import ScoringOptions, score_dataset
    from bootprob.batch_scoring.checked_files import unchanged
    from bootprob.batch_scoring.run_input import column_names
    from bootprob.batch_scoring.sources import find_files

    mistakes = costs.mistakes()
    files = find_files(source)  # a wrong path is told before torch is loaded
    options = ScoringOptions(
        level=level,
        scores=scores,
        keep=tuple(listed_names(keep, [*column_names(files[0]), *files[0].partition]))
        if keep
        else (),
        costs=mistakes,
        bad_rows=bad_rows.value,
        csv_safe=csv_safe,
    )
    with unchanged(model) as checksum:
        fitted = load_for(model, trust, lambda: column_names(files[0]))
    if device is not None:
        if "device" not in fitted.svc.get_params(deep=False):
            raise DataError("--device is of support vector machines; leave it out for classifiers.")
        _check_device(device)
        fitted.svc.set_params(device=device)
    summary = score_dataset(
        fitted, source, output, options, model_file=model, model_checksum=checksum, progress=True
    )
    _tell(summary, output)


def _check_device(device: str) -> None:
    from bootprob_gpu import InputError, resolve_device

    try:
        resolve_device(device)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None


def _tell(summary: ScoringSummary, output: Path) -> None:
    note_unknown({name: found["levels"] for name, found in summary.unknown.items()})
    if summary.n_bad:
        shown = "; ".join(map(str, summary.bad[:5]))
        more = f"; and {summary.n_bad - 5} more" if summary.n_bad > 5 else ""
        bad = counted(
            summary.n_bad,
            "row has no results, as it cannot",
            "rows have no results, as they cannot",
        )
        note(f"{bad} be used: {shown}{more}.")
    resumed = f", {summary.n_resumed} of them by an earlier run" if summary.n_resumed else ""
    typer.echo(
        f"{counted(summary.n_rows, 'row is', 'rows are')} in {output}{resumed}: "
        f"{summary.seconds:.1f} s, {summary.rate:,.0f} rows a second."
    )
