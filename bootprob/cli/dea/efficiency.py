"""``bootprob dea efficiency`` and ``bootprob dea cross``: who makes the most of what it uses."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bootprob.cli.console import note
from bootprob.cli.dea.options import (
    Orientation,
    OrientationName,
    Replicates,
    Result,
    Returns,
    ReturnsName,
    Seed,
    UnitOptions,
)
from bootprob.cli.dea.tables import check_result, print_where, read_units, write_result
from bootprob.cli.options import Level, takes_options
from bootprob.runtime.counted import counted

if TYPE_CHECKING:
    from bootprob.dea import EfficiencyInterval, EfficiencyResult, Panel

__all__ = ["bootstrap_intervals", "cross", "efficiency", "print_rows"]

_SHOWN = 60


class Goal(StrEnum):
    """Secondary goals of cross-efficiency."""

    benevolent = "benevolent"
    aggressive = "aggressive"


@takes_options
def efficiency(
    *,
    source: UnitOptions,
    returns: ReturnsName = Returns.constant,
    orientation: OrientationName = Orientation.input,
    super_efficiency: Annotated[
        bool,
        typer.Option("--super", help="Measure each unit against the others only, to rank them."),
    ] = False,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Add bootstrap intervals; takes a while.")
    ] = False,
    level: Level = 0.95,
    replicates: Replicates = 2000,
    seed: Seed = 0,
    output: Result = None,
) -> None:
    """Measure how efficient each unit is, against all of them.

    Shows score and peers. The file written has targets, slacks, weights and
    the certificate of every score as well.

    [bold]Examples[/bold]

    bootprob dea efficiency clinics.csv --inputs doctors,nurses --outputs outpatients,inpatients
    bootprob dea efficiency farms.csv --inputs 'x*' --outputs milk --returns variable --intervals
    bootprob dea efficiency farms.csv --inputs 'x*' --outputs milk --super -o ranks.csv
    """
    if super_efficiency and intervals:
        raise typer.BadParameter(
            "--super and --intervals do not go together; intervals are of the usual scores."
        )
    if not intervals and (level, replicates, seed) != (0.95, 2000, 0):
        raise typer.BadParameter(
            "--level, --replicates and --seed are of --intervals, which is not given."
        )
    check_result(output, source.table)
    panel = read_units(source).panel

    from bootprob.dea import efficiency as measure
    from bootprob.dea.study.content import efficiency_content, panel_content

    result = measure(
        panel, returns=returns.value, orientation=orientation.value,
        super_efficiency=super_efficiency,
    )  # fmt: skip
    interval = (
        bootstrap_intervals(panel, returns, orientation, level, replicates, seed)
        if intervals
        else None
    )
    frame = result.to_frame()
    if interval is not None:
        found = interval.to_frame().drop(columns="score")
        for place, name in enumerate(found.columns):
            frame.insert(1 + place, name, found[name])
    content = {"format": _format("efficiencies"), "data": panel_content(panel)}
    write_result(output, frame, content | efficiency_content(result, interval))
    _print_scores(result, interval)
    print_where(output)


@takes_options
def cross(
    *,
    source: UnitOptions,
    goal: Annotated[
        Goal,
        typer.Option(help="Of a unit's best weights, those that suit the others best, or least."),
    ] = Goal.benevolent,
    output: Result = None,
) -> None:
    """Value each unit at the weights that are best for every other.

    Constant returns, inputs. A table that is written holds the matrix: the
    units whose weights are used in rows, those that are valued in columns.

    [bold]Example[/bold]

    bootprob dea cross clinics.csv --inputs doctors,nurses --outputs outpatients,inpatients
    """
    check_result(output, source.table)
    panel = read_units(source).panel

    from bootprob.dea import cross_efficiency
    from bootprob.dea.study.content import cross_content, panel_content

    crossed = cross_efficiency(panel, goal=goal.value)
    content = cross_content(crossed)
    rows = [
        [one["unit"], f"{one['own']:.4f}", f"{one['cross']:.4f}", f"{one['maverick']:.1%}"]
        for one in sorted(content["units"], key=lambda one: int(one["rank"]))
    ]
    head = {"format": _format("cross-efficiencies"), "data": panel_content(panel)}
    write_result(output, crossed.to_frame(), head | content)
    print_rows(["unit", "own", "cross", "maverick"], rows, "Cross-efficiencies, the best first")
    print_where(output)


def bootstrap_intervals(
    panel: Panel, returns: Returns, orientation: Orientation, level: float, replicates: int,
    seed: int,
) -> EfficiencyInterval:  # fmt: skip
    """Bootstrap intervals, with a progress bar."""
    from bootprob.dea import efficiency_interval
    from bootprob.runtime.progress import progress_bar

    with progress_bar("Bootstrap samples", replicates, shown=True) as advance:
        return efficiency_interval(
            panel, returns=returns.value, orientation=orientation.value, level=level,
            n_replicates=replicates, seed=seed, progress=advance,
        )  # fmt: skip


def print_rows(headings: list[str], rows: list[list[str]], title: str) -> None:
    """Show a table, the first heading and the last to the left; of long ones the beginning."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    typer.echo(f"{title}:")
    table = Table()
    for place, heading in enumerate(headings):
        words = place == 0 or any(row[place][:1].isalpha() for row in rows)
        table.add_column(
            heading, justify="left" if words else "right", no_wrap=not words, overflow="fold"
        )
    for row in rows[:_SHOWN]:
        table.add_row(*(Text(cell) for cell in row))  # a name may look like rich's markup
    Console().print(table)
    if len(rows) > _SHOWN:
        more = counted(len(rows) - _SHOWN, "more row is", "more rows are")
        note(f"{more} not shown; -o writes all of them.")


def _print_scores(result: EfficiencyResult, interval: EfficiencyInterval | None) -> None:
    headings = ["unit", "score"]
    if interval is not None:
        headings += [f"{interval.level:.0%} interval", "corrected"]
    headings.append("peers")
    peers = result.peers
    rows = []
    for k, unit in enumerate(result.panel.units):
        score = result.scores[k]
        row = [unit, f"{score:.4f}" if result.status[k] == "optimal" else result.status[k]]
        if interval is not None:
            row += [
                f"{interval.lower[k]:.3f} to {interval.upper[k]:.3f}",
                f"{interval.corrected[k]:.4f}",
            ]
        row.append(", ".join(f"{peer} {part:.2f}" for peer, part in peers[unit].items()))
        rows.append(row)
    kind = "Super-efficiencies" if result.super_efficiency else "Efficiencies"
    side = f"{result.orientation} orientation"
    print_rows(headings, rows, f"{kind}, {result.returns} returns, {side}")
    solved = result.scores[~(result.scores != result.scores)]
    mean = f"; mean score {solved.mean():.4f}" if len(solved) else ""
    k = int(result.efficient.sum())
    are = "is" if k == 1 else "are"
    typer.echo(f"{k} of {result.panel.n_units} units {are} efficient{mean}.")


def _format(what: str) -> dict[str, Any]:
    return {"name": f"bootprob dea: {what}", "version": 1}
