"""``bootprob dea game``: who would object to a joint selection of outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bootprob.cli.dea.efficiency import print_rows
from bootprob.cli.dea.options import (
    Result,
    Search,
    SearchName,
    Size,
    UnitOptions,
)
from bootprob.cli.dea.tables import check_named, check_result, print_where, read_units, write_result
from bootprob.cli.options import takes_options

if TYPE_CHECKING:
    from bootprob.dea import SelectionGame

__all__ = ["game"]


@takes_options
def game(
    *,
    source: UnitOptions,
    size: Size,
    joint: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="The selection in question, with commas. Default: that of the best mean "
            "efficiency.",
        ),
    ] = None,
    group_column: Annotated[
        str | None,
        typer.Option(
            "--group-column",
            metavar="COLUMN",
            help="Groups of units; says for each which selection most of it would gain by.",
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            help="Also find the best selection to which so many units do not object.",
        ),
    ] = None,
    method: SearchName = Search.exchange,
    time_limit: Annotated[
        float,
        typer.Option("--time-limit", min=0.01, metavar="SECONDS", help="For each unit."),
    ] = 10.0,
    output: Result = None,
) -> None:
    """Tell who would object to a joint selection of outputs.

    Every unit has a selection under which it looks best itself. Support is
    the share of the units that gain if that replaces the joint one.

    [bold]Examples[/bold]

    bootprob dea game grids.csv --inputs cost --outputs 'y*' -p 3
    bootprob dea game grids.csv --inputs cost --outputs 'y*' -p 3 --share 60 -o game.json
    """
    if share is not None and not 0 < share <= 100:
        raise typer.BadParameter(f"--share {share:g} is no percentage above 0 and at most 100.")
    check_result(output, source.table)
    units = read_units(source)
    panel, groups = units.panel, units.labels(group_column)
    chosen = None
    if joint is not None:
        wanted = [part.strip() for part in joint.split(",") if part.strip()]
        wanted = [joint] if joint in panel.output_names else wanted
        check_named(panel, "outputs", wanted)
        chosen = panel.positions("outputs", wanted)

    from bootprob.dea import play_selection_game, supported_selection
    from bootprob.dea.study.content import game_content, panel_content, supported_content
    from bootprob.runtime.progress import progress_bar

    with progress_bar("Units", panel.n_units, shown=True) as advance:
        played = play_selection_game(
            panel, size, joint=chosen, method=method.value, time_limit=time_limit, progress=advance
        )
    content: dict[str, Any] = {
        "format": {"name": "bootprob dea: game", "version": 1},
        "data": panel_content(panel),
        **game_content(played, panel),
    }
    if groups is not None:
        coalitions = played.coalitions(groups)
        content["coalitions"] = coalitions.reset_index().to_dict("records")
    accepted = None
    if share is not None:
        rivals = [*set(played.strategies), played.joint]
        accepted = supported_selection(panel, size, rivals, share=share)
        content["supported"] = supported_content(accepted, share)
    frame = played.to_frame()
    frame["selection"] = [", ".join(one["strategy"]) for one in content["units"]]
    write_result(output, frame, content)
    _print_game(played, content)
    if groups is not None:
        _print_coalitions(content["coalitions"])
    if accepted is not None:
        enough = "" if accepted.enough else f", which is less than {share:g} %"
        proof = "" if accepted.status == "optimal" else " Not all selections were tried."
        typer.echo(
            f"Supported by {accepted.support:.1f} % against each of these selections{enough}: "
            f"{', '.join(accepted.outputs)}, mean efficiency {accepted.objective:.4f}.{proof}"
        )
    print_where(output)


def _print_game(game: SelectionGame, content: dict[str, Any]) -> None:
    rows = [
        [
            one["unit"], f"{one['joint']:.4f}", f"{one['own']:.4f}", f"{one['support']:.1f}",
            ", ".join(one["strategy"]),
        ]
        for one in sorted(content["units"], key=lambda one: -float(one["support"]))
    ]  # fmt: skip
    typer.echo(f"Joint selection: {', '.join(content['joint'])}.")
    print_rows(
        ["unit", "joint", "own", "support %", "own selection"], rows,
        "Efficiency under the joint and the own selection, and who supports the latter",
    )  # fmt: skip
    idle = (
        "1 unit gains nothing by its own."
        if content["n_content"] == 1
        else f"{content['n_content']} units gain nothing by their own."
    )
    have = "has" if content["n_majorities"] == 1 else "have"
    typer.echo(
        f"{content['n_majorities']} of {len(game.units)} own selections {have} more than half of "
        f"the units behind them; the most support is {content['most_support']:.1f} %. {idle}"
    )
    if not all(game.proven):
        are = "is" if content["n_proven"] == 1 else "are"
        typer.echo(
            f"Of the {len(game.units)} own selections {content['n_proven']} {are} proven to be the "
            "best of their unit; --method exact proves more."
        )


def _print_coalitions(coalitions: list[dict[str, Any]]) -> None:
    rows = [
        [
            str(one["group"]), str(one["members"]), one["prefers"] if one["share"] else "none",
            f"{one['share']:.1f}",
            f"{one['mean gain']:+.4f}".replace("-", "−"), f"{one['support']:.1f}",
        ]
        for one in coalitions
    ]  # fmt: skip
    headings = ["group", "members", "prefers that of", "share %", "mean gain", "support %"]
    print_rows(headings, rows, "Groups, and the selection that most of each prefer")
