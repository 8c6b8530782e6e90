"""The command ``bootprob update``: a model beside rows that came later."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bootprob.cli.console import file_size, note
from bootprob.cli.models import as_table, check_model_name, load_model
from bootprob.cli.options import Encoding, Trust, takes_target
from bootprob.exceptions import DataError
from bootprob.runtime.counted import counted
from bootprob.runtime.files import check_output

if TYPE_CHECKING:
    import pandas as pd

    from bootprob.tables.model import TableModel

__all__ = ["update"]

_SHOWN = (0.1, 0.5, 0.9)  # probabilities, before and after


def _check_share(value: float | None) -> float | None:
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"{value:g} is no share; give a number between 0 and 1.")
    return value


@takes_target
def update(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that bootprob fit wrote.")],
    table: Annotated[
        Path | None,
        typer.Argument(
            metavar="TABLE",
            help="Later rows in their order, with the target if it is known: .csv, .tsv (.gz too), "
            ".parquet or .xlsx.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="The model file to write; default: MODEL."
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Only look for a change; probabilities stay as they are."),
    ] = False,
    base_rate: Annotated[
        float | None,
        typer.Option(
            "--base-rate",
            metavar="SHARE",
            callback=_check_share,
            help="Share of the positive class from now on, where it is known; without TABLE.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The classes in TABLE, of a model that was fitted in Python and so does not know "
            "what they are called; default class.",
        ),
    ] = None,
    encoding: Encoding = None,
    trust: Trust = None,
) -> None:
    """Bring a model up to date with rows that came after its fit.

    First the rows are looked at as evidence that something has changed since:
    the calibration, where TABLE has the target, and what rows are like (drift).
    An alarm may be looked for as often as there are rows; without a change, at
    most one model in twenty ever gives one.

    Then probabilities and intervals follow the labels, beginning with what the
    model knows: few labels change little. Without labels, the base rate of the
    rows is estimated. What labels show that cannot be mended so is said: fit
    again then, with the new rows.

    The file keeps the history. Show each row once.

    [bold]Examples[/bold]

    bootprob update loans.model june.csv --watch
    bootprob update loans.model june.csv -o loans-june.model
    bootprob update loans.model --base-rate 0.12 -o loans-abroad.model
    bootprob update python.model june.csv --target risk -o june.model
    """
    if (table is None) == (base_rate is None):
        raise typer.BadParameter("Give either TABLE or --base-rate.")
    if watch and table is None:
        raise typer.BadParameter("--watch looks at rows: give TABLE.")
    if target is not None and table is None:
        raise typer.BadParameter("--target is a column of TABLE, which is not given.")
    written = model if output is None else output
    check_model_name(written)
    check_output(written, inputs=() if table is None else (table,))

    from bootprob.ensemble.fitted import with_column_names
    from bootprob.ensemble.updates import with_updates_of
    from bootprob.persistence.save_load import save
    from bootprob.tables.files import read_table
    from bootprob.tables.held_out import text_columns
    from bootprob.tables.model import TableModel

    known, evidence = load_model(model, trust), None
    if table is None:
        svc = known.svc if isinstance(known, TableModel) else known
        changed = svc.recalibrated(base_rate=base_rate)
    else:
        read = partial(read_table, table, encoding=encoding)
        fitted = as_table(known, lambda: read().columns, target)
        frame = read(text_columns=text_columns(fitted))
        if target is not None and target not in frame.columns:
            raise DataError(
                f"{table} has no column {target!r}, as --target says; name the column of the "
                "classes, or leave --target out, for rows without labels."
            )
        advice = "" if fitted is known else " (--target says what it is called)"
        rows = _rows(fitted, frame, advice)
        svc = with_column_names(fitted.svc, fitted.preprocessor.get_feature_names_out())
        changed = svc.watched(*rows)
        evidence = changed.history_[-1]
        if not watch:
            changed = changed.recalibrated(*rows)

    of_table = isinstance(known, TableModel)
    updated = with_updates_of(changed, known.svc if of_table else known)
    save(replace(known, svc=updated) if of_table else updated, written)
    if evidence is not None:
        _tell_evidence(evidence)
    if not watch:
        _tell_change(changed.history_[-1])
    typer.echo(f"The model is in {written} ({file_size(written)}).")


def _rows(fitted: TableModel, frame: pd.DataFrame, advice: str) -> tuple[Any, Any]:
    """Encoded rows of a table and their labels, if it has them."""
    from bootprob.tables.held_out import known_codes

    X = fitted.preprocessor.encode(frame, fitted.encoder).X
    if fitted.target.name not in frame.columns:
        note(
            f"The table has no column {fitted.target.name!r}{advice}: rows are looked at without "
            "labels."
        )
        return X, None
    return X, fitted.svc.classes_[known_codes(fitted.target, frame)]


def _tell_evidence(entry: dict[str, Any]) -> None:
    shown = ", ".join(f"{name} {value:.3g}" for name, value in entry["e_values"].items())
    labelled = " with labels" if entry["n_labels"] else ""
    typer.echo(
        f"{counted(entry['n_rows'], 'row')}{labelled}. Largest e-values so far: {shown} "
        "(an alarm from 80 on)."
    )
    for name in entry["alarms"]:
        what = {
            "calibration": "Probabilities are no longer calibrated",
            "drift": "Rows are no longer like those of the fit",
        }[name]
        note(f"{what} (e-value {entry['e_values'][name]:.3g}).")


def _tell_change(entry: dict[str, Any]) -> None:
    from scipy.special import expit, logit

    intercept, slope = entry["intercept"][0], entry["slope"][0]
    moved = ", ".join(
        f"{before:.0%} is now {expit(intercept + slope * logit(before)):.1%}" for before in _SHOWN
    )
    typer.echo(f"Of the probabilities of the fit, {moved} ({entry['what']}).")
    if entry["log_loss_after"] is not None:
        typer.echo(
            f"Log-loss of these rows: {entry['log_loss']:.4f} before, "
            f"{entry['log_loss_after']:.4f} after."
        )
    if entry["refit"] is not None:
        note(f"That is not enough, fit again with the new rows: {entry['refit']}.")
