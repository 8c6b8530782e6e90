"""Options of the command line for rates that must hold, and for rows set aside."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from bootprob.tables.held_out import HeldOut
    from bootprob.tables.model import TableModel

__all__ = [
    "OF_TWO_CLASSES",
    "Bound",
    "BoundName",
    "Confidence",
    "Control",
    "ControlName",
    "HeldOutTable",
    "LeastDecided",
    "LeastNpv",
    "LeastOfClasses",
    "LeastPpv",
    "LeastTnr",
    "LeastTpr",
    "check_held_out",
    "control_parameters",
    "read_held_out",
]


class Control(StrEnum):
    """Ways to make rates hold."""

    threshold = "threshold"
    constrained = "constrained"


class Bound(StrEnum):
    """Where a confidence gets the share of rows that has to be right from."""

    binomial = "binomial"
    hoeffding = "hoeffding"


def _check_rate(value: float | None) -> float | None:
    if value is not None and not 0 < value <= 1:
        raise typer.BadParameter(f"{value:g} is no rate above 0, up to 1; write 95 % as 0.95.")
    return value


def _check_confidence(value: float | None) -> float | None:
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"{value:g} does not lie between 0 and 1; 0.95 is usual.")
    return value


OF_TWO_CLASSES = ("tpr", "tnr", "ppv", "npv", "decided")
"""As in bootprob.metrics.rates, which is heavy to import; a test compares them."""

_PANEL = "Rates that must hold"

LeastTpr = Annotated[
    float | None,
    typer.Option(
        "--tpr",
        metavar="RATE",
        callback=_check_rate,
        rich_help_panel=_PANEL,
        help="Find at least this share of the positive class (true positive rate, sensitivity).",
    ),
]
LeastTnr = Annotated[
    float | None,
    typer.Option(
        "--tnr",
        metavar="RATE",
        callback=_check_rate,
        rich_help_panel=_PANEL,
        help="Leave alone at least this share of the negative class (true negative rate, "
        "specificity).",
    ),
]
LeastPpv = Annotated[
    float | None,
    typer.Option(
        "--ppv",
        metavar="RATE",
        callback=_check_rate,
        rich_help_panel=_PANEL,
        help="Of the rows decided positive, at least this share is (precision).",
    ),
]
LeastNpv = Annotated[
    float | None,
    typer.Option(
        "--npv",
        metavar="RATE",
        callback=_check_rate,
        rich_help_panel=_PANEL,
        help="Of the rows decided negative, at least this share is (negative predictive value).",
    ),
]
LeastDecided = Annotated[
    float | None,
    typer.Option(
        "--decided",
        metavar="RATE",
        callback=_check_rate,
        rich_help_panel=_PANEL,
        help="Rows may be left undecided so that the other rates hold, but at least this share is "
        "decided.",
    ),
]
LeastOfClasses = Annotated[
    list[str] | None,
    typer.Option(
        "--rate",
        metavar="CLASS=RATE",
        rich_help_panel=_PANEL,
        help="With --all-classes: give at least this share of a class's rows that class, such as "
        "setosa=0.9; repeat it for others.",
    ),
]
ControlName = Annotated[
    Control | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="How rates are made to hold. threshold (the default) moves the score threshold until "
        "they do out of bag; constrained trains every machine under --tpr and --tnr, without a "
        "promise for other rows.",
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        metavar="LEVEL",
        callback=_check_confidence,
        rich_help_panel=_PANEL,
        help="How sure each rate is to hold on new rows, such as 0.95: more of the rows at hand "
        "have to be right. Without it, just that share of them is.",
    ),
]
BoundName = Annotated[
    Bound | None,
    typer.Option(
        rich_help_panel=_PANEL,
        help="What --confidence rests on: binomial (exact, the default), or hoeffding as in the "
        "thesis, which asks for more.",
    ),
]
HeldOutTable = Annotated[
    Path | None,
    typer.Option(
        "--held-out",
        metavar="TABLE",
        help="CSV or Parquet file with rows that were not fitted on, and their labels: the report "
        "measures the model on them, too.",
    ),
]


def control_parameters(
    control: Control | None,
    of_two: dict[str, float | None],
    confidence: float | None,
    bound: Bound | None,
    of_classes: list[str] | None = None,
) -> dict[str, Any]:
    """Parameters of `BootstrapSVC` from the options given; a rate alone means the threshold.

    `of_two` are rates of two classes by name, None where not given; `of_classes` CLASS=RATE.

    Raises
    ------
    typer.BadParameter
        An option lacks the one it belongs to.
    """
    rates: dict[str, float]
    rates = {name: value for name, value in of_two.items() if value is not None}
    named = " and ".join(f"--{name}" for name in rates)
    if of_classes and rates:
        raise typer.BadParameter(
            f"--rate is of several classes, {named} of two; leave one of the two out."
        )
    if control is Control.constrained and (
        of_decisions := {"ppv", "npv", "decided"} & rates.keys()
    ):
        raise typer.BadParameter(
            f"--control constrained keeps --tpr and --tnr; --{min(of_decisions)} needs --control "
            "threshold."
        )
    others = ", ".join(f"--{name}" for name in of_two)
    for name, value in map(_of_class, of_classes or ()):
        if name in rates:
            raise typer.BadParameter(f"--rate names {name!r} twice; leave one of the two out.")
        rates[name] = value
    if not rates:
        if control is not None or confidence is not None:
            alone = "--confidence" if control is None else f"--control {control}"
            raise typer.BadParameter(f"{alone} needs a rate to keep: {others} or --rate.")
        if bound is not None:
            raise typer.BadParameter(f"--bound needs --confidence, and {others} or --rate.")
        return {}
    if bound is not None and confidence is None:
        raise typer.BadParameter("--bound needs --confidence, which is what it is for.")
    given = {"confidence": confidence, "bound": bound and bound.value}
    return {
        "control": (control or Control.threshold).value,
        "rates": rates,
        **{name: value for name, value in given.items() if value is not None},
    }


def _of_class(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = float("nan")
    if not name or not 0 < value <= 1:
        raise typer.BadParameter(
            f"--rate {text!r} is no class and a rate above 0, up to 1, such as setosa=0.9."
        )
    return name, value


def check_held_out(path: Path, source: Path) -> None:
    """Find out what can be known before anything is fitted.

    Raises
    ------
    DataError
        There is no such table, or it is the one that is fitted on.
    """
    from bootprob.exceptions import DataError
    from bootprob.tables.suffixes import table_suffix

    table_suffix(path)
    if not path.exists():
        raise DataError(f"There is no file {path}.")
    if source.exists() and path.samefile(source):
        raise DataError(f"{path} is what the model is fitted on; hold out other rows.")


def read_held_out(model: TableModel, path: Path, encoding: str | None = None) -> HeldOut:
    """Read rows set aside, as the model knows its columns.

    Raises
    ------
    DataError
        The table cannot be read, or does not fit the model.
    """
    from bootprob.tables.files import read_table
    from bootprob.tables.held_out import HeldOut, text_columns

    frame = read_table(path, text_columns=text_columns(model), encoding=encoding)
    return HeldOut.of_table(model, frame)
