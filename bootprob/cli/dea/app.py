"""The commands of ``bootprob dea``: benchmarking of decision-making units."""

from __future__ import annotations

import typer

from bootprob.cli.console import PlainHelp
from bootprob.cli.dea.efficiency import cross, efficiency
from bootprob.cli.dea.game import game
from bootprob.cli.dea.report import report
from bootprob.cli.dea.selection import select, unit

__all__ = ["app"]

app = typer.Typer(
    name="dea",
    cls=PlainHelp,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def dea() -> None:
    """Benchmark units by what they use and produce (data envelopment analysis).

    [bold]Examples[/bold]

    bootprob dea efficiency clinics.csv --inputs doctors,nurses --outputs patients
    bootprob dea select grids.csv --inputs cost --outputs '*' -p 5 --curve
    bootprob dea report grids.csv --inputs cost --outputs '*' -o grids.html
    """


for command in (efficiency, cross, select, unit, game, report):
    app.command()(command)
