"""``bootprob report`` of a table that was scored already, and of model cards: options, wiring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bootprob.cli.console import command_line, print_report
from bootprob.cli.options import check_level, given_options
from bootprob.exceptions import DataError
from bootprob.runtime.counted import counted
from bootprob.runtime.files import check_output
from bootprob.tables.suffixes import is_table_name

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = [
    "CardFile",
    "ScoredOptions",
    "check_card",
    "is_table",
    "report_scored",
    "write_card",
]

_PANEL = "Of a scored table"


def _check_cost(value: float | None) -> float | None:
    if value is None:
        return value
    from bootprob.encoding.columns import LARGEST_CELL

    if not 0 < value <= LARGEST_CELL:
        raise typer.BadParameter(
            f"{value:g} is no cost; give a positive number, up to {LARGEST_CELL:g}, in any unit."
        )
    return value


CardFile = Annotated[
    Path | None,
    typer.Option(
        "--card",
        metavar="MARKDOWN",
        help="Also write a model card with the same numbers; needs skops.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ScoredOptions:
    """Options that only the report of a scored table has."""

    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            rich_help_panel=_PANEL,
            help="The model that scored the table; the report then says whether its probabilities "
            "have drifted away from those of training.",
        ),
    ] = None
    input_table: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="TABLE",
            rich_help_panel=_PANEL,
            help="The table that was scored, CSV or Parquet, to see which columns have drifted; "
            "needs --model.",
        ),
    ] = None
    cost_fp: Annotated[
        float | None,
        typer.Option(
            "--cost-false-positive",
            "--cost-fp",
            metavar="COST",
            callback=_check_cost,
            rich_help_panel=_PANEL,
            help="What a row of the negative class costs that is decided positive; needs "
            "--cost-false-negative. What was decided, the table says.",
        ),
    ] = None
    cost_fn: Annotated[
        float | None,
        typer.Option(
            "--cost-false-negative",
            "--cost-fn",
            metavar="COST",
            callback=_check_cost,
            rich_help_panel=_PANEL,
            help="What a row of the positive class costs that is decided negative.",
        ),
    ] = None
    cost_ask: Annotated[
        float | None,
        typer.Option(
            "--cost-ask",
            metavar="COST",
            callback=_check_cost,
            rich_help_panel=_PANEL,
            help="What it costs to ask a person about a row.",
        ),
    ] = None
    level: Annotated[
        float | None,
        typer.Option(
            "--level",
            metavar="LEVEL",
            callback=check_level,
            rich_help_panel=_PANEL,
            help="Level that the intervals of the table were made at. Default: 0.95.",
        ),
    ] = None
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            rich_help_panel=_PANEL,
            help="A column of the scored table that tells rows apart; shown beside undecided rows.",
        ),
    ] = None

    @property
    def inputs(self) -> list[Path]:
        """Files that are read, which the report must not replace."""
        return [path for path in (self.model, self.input_table) if path is not None]

    def refuse(self, source: Path, why: str) -> None:
        """Refuse options that were given where there is no scored table.

        Raises
        ------
        typer.BadParameter
            One of them was given.
        """
        given = given_options(self)
        if given:
            raise typer.BadParameter(
                f"{', '.join(given)}: only for a table that was scored already, and {source.name} "
                f"{why}."
            )


def is_table(source: Path) -> bool:
    """Whether a report is of a table, scored or to be fitted, and not of a model."""
    return source.is_dir() or is_table_name(source)


def report_scored(
    source: Path,
    output: Path,
    options: ScoredOptions,
    fitting: Sequence[str],
    trusted: Sequence[str] = (),
    encoding: str | None = None,
) -> None:
    """Write the report of a table without a target, which therefore has to be a scored one.

    Options in `fitting` were given, and are for fitting a table; types of the model's file are
    `trusted`, and the `encoding` is of the table that was scored.

    Raises
    ------
    typer.BadParameter
        The table is no scored one, or options are missing or of no use.
    DataError
        As `bootprob.report.write_scored_report` says.
    """
    from bootprob.report.scored.table import SCORED_COLUMNS, ScoredTable

    table = ScoredTable(source, options.id_column)
    if table.missing and not table.of_several_classes:
        some = len(table.missing) < len(SCORED_COLUMNS)
        lacks = f"; this one lacks {', '.join(table.missing)}" if some else ""
        raise typer.BadParameter(
            f"{source.name} is a table and needs --target COLUMN. (A scored table does not, but "
            f"has the columns {', '.join(SCORED_COLUMNS)}{lacks}.)"
        )
    if fitting:
        raise typer.BadParameter(
            f"{source.name} is a scored table, and nothing is fitted: leave out "
            f"{', '.join(fitting)}, or give --target COLUMN to fit the table."
        )
    if (options.cost_fp is None) != (options.cost_fn is None):
        raise typer.BadParameter(
            "--cost-false-positive and --cost-false-negative belong together; give both."
        )
    if options.cost_ask is not None and options.cost_fp is None:
        raise typer.BadParameter(
            "--cost-ask needs --cost-false-positive and --cost-false-negative, which say what it "
            "costs not to ask."
        )
    if options.input_table is not None and options.model is None:
        raise typer.BadParameter("--input needs --model, the model that scored it.")

    from bootprob.costs.matrix import CostMatrix
    from bootprob.persistence.save_load import load
    from bootprob.report import write_scored_report
    from bootprob.runtime.progress import progress_bar

    costs = None
    if options.cost_fp is not None and options.cost_fn is not None:
        costs = CostMatrix(options.cost_fp, options.cost_fn, ask=options.cost_ask)
    n_rows = table.n_rows()  # which a CSV file does not say
    with progress_bar("Reading rows", n_rows or 0, shown=n_rows is not None) as advance:
        content = write_scored_report(
            source,
            output,
            model=None if options.model is None else load(options.model, trusted),
            input_table=options.input_table,
            encoding=encoding,
            costs=costs,
            level=0.95 if options.level is None else options.level,
            id_column=options.id_column,
            command=command_line(),
            progress=advance,
        )
    decisions = content["decisions"]
    left = decisions.get("n_left_undecided")  # of two classes
    typer.echo(
        f"{counted(content['table']['n_scored'], 'scored row')}, "
        f"{decisions['n_undecided']} of them undecided "
        f"({decisions['share_undecided']:.1%})"
        + (f" by their intervals; the model leaves {left} undecided." if left is not None else ".")
    )
    print_report(output)


def check_card(path: Path, report: Path, *inputs: Path) -> None:
    """Refuse a card that could not be written, before any work is done.

    Raises
    ------
    DataError
        The file cannot be written, is one of `inputs`, or is where the report or its numbers go;
        or skops is not installed.
    """
    from bootprob.report.model.card_files import check_card_file

    check_card_file(path)
    check_output(path, inputs=inputs)
    for taken, what in ((report, "the report"), (report.with_suffix(".json"), "its numbers")):
        if path.resolve() == taken.resolve():
            raise DataError(
                f"--card {path} is where {what} would go (--output {report}); give the card "
                "another name."
            )


def write_card(
    content: dict[str, Any], model: BootstrapSVC | TableModel, path: Path, source: Path
) -> None:
    """Write the model card of the numbers of a report."""
    from bootprob.report.model.card_files import write_card as write
    from bootprob.tables.model import TableModel

    table_model = model if isinstance(model, TableModel) else None
    svc = model.svc if isinstance(model, TableModel) else model
    write(content, svc, path, table_model=table_model, file=None if is_table(source) else source)
    typer.echo(f"The model card is in {path}.")
