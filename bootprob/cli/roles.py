"""Options of the command line for columns that are no features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bootprob.tables.roles import ColumnRoles

__all__ = ["RoleOptions"]


@dataclass(frozen=True, kw_only=True)
class RoleOptions:
    """Columns of the training table that are not to be learned from."""

    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Which rows belong together, such as a patient's number: they are drawn, and left "
            "out, together.",
        ),
    ] = None
    weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="How much each row counts, from 0 on.")
    ] = None
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="When each row is from, such as 2026-03-01: neighbours are drawn, and left out, "
            "together, and a second model shows how rows of the last tenth fare by those before.",
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Leave a column out; may be given several times."),
    ] = None

    def roles(self) -> ColumnRoles:
        """What columns are besides features and the target."""
        from bootprob.tables.roles import ColumnRoles

        return ColumnRoles(self.groups, self.weight, tuple(self.drop or ()), self.time)
