"""Options of the command line for the costs of mistakes, which decide rows in place of one half."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bootprob.tables.mistake_costs import MistakeCosts

__all__ = ["CostOfFalseAlarm", "CostOfMiss", "mistake_costs"]

_PANEL = "Costs of mistakes"
_NUMBER = "a number above 0 in any unit, or the column that says it for each row."

CostOfFalseAlarm = Annotated[
    str | None,
    typer.Option(
        "--cost-false-positive",
        "--cost-fp",
        metavar="COST",
        rich_help_panel=_PANEL,
        help=f"What a row of the negative class costs that is decided positive: {_NUMBER} The "
        "label is then that of least expected cost, and needs --cost-false-negative.",
    ),
]
CostOfMiss = Annotated[
    str | None,
    typer.Option(
        "--cost-false-negative",
        "--cost-fn",
        metavar="COST",
        rich_help_panel=_PANEL,
        help=f"What a row of the positive class costs that is decided negative: {_NUMBER}",
    ),
]


def mistake_costs(false_positive: str | None, false_negative: str | None) -> MistakeCosts | None:
    """Understand both options; None where neither was given.

    Raises
    ------
    typer.BadParameter
        One was given without the other, or a number is no cost.
    """
    if false_positive is None and false_negative is None:
        return None
    if false_positive is None or false_negative is None:
        raise typer.BadParameter(
            "--cost-false-positive and --cost-false-negative belong together; give both."
        )
    from bootprob.exceptions import DataError
    from bootprob.tables.mistake_costs import MistakeCosts

    try:
        return MistakeCosts(_number_or_name(false_positive), _number_or_name(false_negative))
    except DataError as error:
        raise typer.BadParameter(str(error)) from None


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text.strip()
