"""``bootprob dea report``: all of a benchmarking study on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bootprob.cli.console import command_line, print_report
from bootprob.cli.dea.options import (
    Orientation,
    OrientationName,
    Returns,
    ReturnsName,
    Seed,
    UnitOptions,
)
from bootprob.cli.dea.tables import read_units
from bootprob.cli.options import Level, Report, takes_options
from bootprob.cli.report import check_report

__all__ = ["report"]


@takes_options
def report(
    *,
    source: UnitOptions,
    returns: ReturnsName = Returns.constant,
    orientation: OrientationName = Orientation.input,
    level: Level = 0.95,
    replicates: Annotated[
        int,
        typer.Option(
            "--replicates", min=0, metavar="B", help="Bootstrap samples; 0 for no intervals."
        ),
    ] = 1000,
    seed: Seed = 0,
    most_outputs: Annotated[
        int,
        typer.Option(
            "--most-outputs", min=1, metavar="P", help="Select from 1 to so many outputs."
        ),
    ] = 10,
    size: Annotated[
        int | None,
        typer.Option(
            "-p",
            "--size",
            min=1,
            metavar="P",
            help="The number of outputs to look at more closely. Default: the smallest after which "
            "none contributes 0.01 or more.",
        ),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit",
            min=0.01,
            metavar="SECONDS",
            help="For the selections, and again for the units' own selections.",
        ),
    ] = 60.0,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Heading of the report.")
    ] = None,
    output: Report = Path("report.html"),
) -> None:
    """Write a report on units: efficiencies, peers, weights, selection, game.

    Its numbers are written as JSON beside it. The selection of outputs is of
    efficiencies in input orientation under constant returns.

    [bold]Example[/bold]

    bootprob dea report grids.csv --inputs cost --outputs 'y*' --unit-column name -o grids.html
    """
    check_report(output, source.table)
    if 0 < replicates < 100:
        raise typer.BadParameter(f"--replicates {replicates} are too few; give 0, or 100 or more.")
    units = read_units(source)

    from bootprob.dea.study.study import benchmark_study
    from bootprob.report.dea.report import write_dea_report

    study = benchmark_study(
        units.panel, returns=returns.value, orientation=orientation.value, level=level,
        n_replicates=replicates, seed=seed, most_outputs=most_outputs, size=size,
        time_limit=time_limit, progress=lambda step: typer.echo(f"{step} …", err=True),
    )  # fmt: skip
    content = write_dea_report(
        study, output, title=title or f"Efficiency of the units of {source.table.name}",
        source=source.table.name, command=command_line(),
    )  # fmt: skip
    k = content["efficiency"]["n_efficient"]
    are = "is" if k == 1 else "are"
    typer.echo(f"{k} of {content['data']['n_units']} units {are} efficient.")
    print_report(output)
