"""Options of the command line for the costs of mistakes, which decide rows in place of one half."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from bootprob.cli.console import note

if TYPE_CHECKING:
    from bootprob.tables.mistake_costs import MistakeCosts

__all__ = ["CostOptions"]

_PANEL = "Costs of mistakes"
_NUMBER = "a number above 0 in any unit, or the column that says it for each row."


@dataclass(frozen=True, kw_only=True)
class CostOptions:
    """What the two mistakes cost."""

    cost_false_positive: Annotated[
        str | None,
        typer.Option(
            "--cost-false-positive",
            "--cost-fp",
            metavar="COST",
            rich_help_panel=_PANEL,
            help=f"What a row of the negative class costs that is decided positive: {_NUMBER} The "
            "label is then that of least expected cost, and needs --cost-false-negative.",
        ),
    ] = None
    cost_false_negative: Annotated[
        str | None,
        typer.Option(
            "--cost-false-negative",
            "--cost-fn",
            metavar="COST",
            rich_help_panel=_PANEL,
            help=f"What a row of the positive class costs that is decided negative: {_NUMBER}",
        ),
    ] = None

    cost_ask: Annotated[
        str | None,
        typer.Option(
            "--cost-ask",
            metavar="COST",
            rich_help_panel=_PANEL,
            help=f"What it costs to ask a person about a row: {_NUMBER} Where that is less than "
            "the better label is expected to cost, ask is true; cost is written beside it.",
        ),
    ] = None

    def mistakes(self) -> MistakeCosts | None:
        """Understand the options; None where none was given. Says so where asking never pays.

        Raises
        ------
        typer.BadParameter
            One was given without the others, or a number is no cost.
        """
        if self.cost_false_positive is None and self.cost_false_negative is None:
            if self.cost_ask is not None:
                raise typer.BadParameter(
                    "--cost-ask needs --cost-false-positive and --cost-false-negative, which say "
                    "what it costs not to ask."
                )
            return None
        if self.cost_false_positive is None or self.cost_false_negative is None:
            raise typer.BadParameter(
                "--cost-false-positive and --cost-false-negative belong together; give both."
            )
        from bootprob.exceptions import DataError
        from bootprob.tables.mistake_costs import MistakeCosts

        try:
            costs = MistakeCosts(
                _number_or_name(self.cost_false_positive),
                _number_or_name(self.cost_false_negative),
                None if self.cost_ask is None else _number_or_name(self.cost_ask),
            )
        except DataError as error:
            raise typer.BadParameter(str(error)) from None
        if costs.never_asks:
            note(
                f"Asking at {self.cost_ask} never pays: at no probability is the better label "
                "expected to cost more."
            )
        return costs


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text.strip()
