"""The command ``bootprob report``: of a model, or of a table that was scored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bootprob.cli.console import command_line, print_report
from bootprob.cli.control import HeldOutTable, check_held_out, read_held_out
from bootprob.cli.fitting import FittingOptions
from bootprob.cli.models import (
    as_table,
    check_all_classes,
    check_strict,
    fit_table,
    print_training,
)
from bootprob.cli.options import (
    AllClasses,
    Encoding,
    Positive,
    Report,
    Trust,
    given_options,
    takes_options,
    takes_target,
)
from bootprob.cli.report_scored import (
    CardFile,
    ScoredOptions,
    check_card,
    is_table,
    report_scored,
    write_card,
)
from bootprob.cli.roles import RoleOptions
from bootprob.exceptions import DataError
from bootprob.runtime.files import check_output

if TYPE_CHECKING:
    from bootprob.ensemble.classifier import BootstrapClassifier
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.held_out import HeldOut
    from bootprob.tables.model import TableModel

__all__ = ["check_report", "report", "write_html_report"]


@takes_options
@takes_target
def report(
    *,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL|TABLE",
            help="A file that bootprob fit wrote, a table that bootprob predict wrote, or a table "
            "to fit first.",
        ),
    ],
    output: Report = Path("report.html"),
    held_out: HeldOutTable = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="Measure the subgroups of rows that this column tells apart by themselves, such "
            "as a site; of a MODEL, in the held-out table. The model need not know the column.",
        ),
    ] = None,
    card: CardFile = None,
    scored: ScoredOptions,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column to predict; of a MODEL that was fitted in Python, that of the classes "
            "in the held-out table (default class).",
        ),
    ] = None,
    positive: Positive = None,
    all_classes: AllClasses = False,
    encoding: Encoding = None,
    columns: RoleOptions,
    options: FittingOptions,
    trust: Trust = None,
) -> None:
    """Write a report on a model, or on a scored table, readable by a person.

    Its numbers are written as JSON beside it. The options from --target on
    are for a TABLE that is fitted first. A TABLE without --target has to be
    one that was scored already.

    [bold]Examples[/bold]

    bootprob report loans.model -o loans.html
    bootprob report loans.model --held-out april.csv -o loans.html
    bootprob report loans.model --card loans.md -o loans.html
    bootprob report loans.csv --target risk -o loans.html
    bootprob report loans.csv --target risk --by branch -o loans.html
    bootprob report flowers.csv --target species --all-classes -o flowers.html
    bootprob report scored.parquet --model loans.model -o scored.html
    bootprob report scored.csv --cost-fp 1 --cost-fn 5 -o scored.html
    """
    read = [source, *scored.inputs, *([] if held_out is None else [held_out])]
    check_report(output, *read)
    if held_out is not None:
        check_held_out(held_out, source)
    if card is not None:
        check_card(card, output, *read)

    if all_classes:
        check_all_classes(positive, options)
    of_table = is_table(source)
    if of_table and target is None:
        others = {
            "--positive": positive,
            "--all-classes": all_classes or None,
            "--held-out": held_out,
            "--by": by,
            "--card": card,
            "--encoding": None if scored.input_table is not None else encoding,
        }
        fitting = [name for name, value in others.items() if value is not None]
        given = [*given_options(columns), *given_options(options)]
        report_scored(source, output, scored, [*given, *fitting], trust or (), encoding)
        return
    fitted_by = [
        target if held_out is None else None,  # of a model of Python: what its classes are called
        positive,
        all_classes or None,
        *given_options(columns),
        *given_options(options),
    ]
    if not of_table and any(each is not None for each in fitted_by):
        raise typer.BadParameter(
            f"{source.name} is no table but a model that is fitted "
            "already; the options from --target on do not apply (--target does with --held-out)."
        )
    if by is not None and not of_table and held_out is None:
        raise typer.BadParameter(
            f"--by needs rows with the column {by!r}, and a model does not keep its table: give "
            "--held-out TABLE, or the training table with --target to fit it."
        )
    if encoding is not None and not of_table and held_out is None:
        raise typer.BadParameter("--encoding is of a table, and none is read.")
    scored.refuse(source, "is fitted first" if of_table else "is a model")

    reported: BootstrapSVC | BootstrapClassifier | TableModel
    saved: BootstrapSVC | BootstrapClassifier | TableModel
    training = None
    if of_table and target is not None:
        reported, training = fit_table(
            source,
            target,
            positive,
            options,
            all_classes=all_classes,
            columns=columns,
            encoding=encoding,
            needed=by,
        )
        saved = reported
    else:
        from bootprob.persistence.save_load import load
        from bootprob.tables.files import read_table

        reported = saved = load(source, trust or ())
        if (rows := held_out) is not None:
            reported = as_table(saved, lambda: read_table(rows, encoding=encoding).columns, target)

    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.report.model.members import label_of
    from bootprob.tables.model import TableModel

    set_aside = None
    if isinstance(reported, TableModel):
        svc, title = reported.svc_with_class_names(), f"Prediction of {reported.target.name}"
        set_aside = None if held_out is None else read_held_out(reported, held_out, encoding)
    else:
        svc = reported
        are_machines = isinstance(reported, BootstrapSVC)
        title = f"Bootstrapped {'support vector machines' if are_machines else 'classifiers'}"
    explained = reported if isinstance(reported, TableModel) else None
    content = write_html_report(
        {label_of(svc): svc}, output, title, set_aside, training=training, table=explained, by=by
    )
    if card is not None:
        write_card(content, saved, card, source)
    print_report(output)
    if training is not None and isinstance(reported, TableModel):
        print_training(reported, len(training))
        check_strict(reported, options)


def check_report(output: Path, *inputs: Path) -> None:
    """Refuse a place for a report and its numbers that cannot be written, before any work."""
    if output.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"{output}: the name of a report must end in .html.")
    check_output(output, inputs=inputs)
    check_output(output.with_suffix(".json"), inputs=inputs)


def write_html_report(
    models: dict[str, BootstrapSVC],
    output: Path,
    title: str,
    held_out: HeldOut | None = None,
    **explained: Any,
) -> dict[str, Any]:
    """Write the report of models; returns its numbers.

    Options of `write_report` say what is explained.
    """
    from bootprob.report import write_report

    return write_report(
        models, output, title=title, command=command_line(), held_out=held_out, **explained
    )
