"""``bootprob dea select`` and ``bootprob dea unit``: which outputs to use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bootprob.cli.dea.efficiency import print_rows
from bootprob.cli.dea.options import (
    Objective,
    ObjectiveName,
    Percentile,
    Result,
    Search,
    SearchName,
    Size,
    TimeLimit,
    UnitOptions,
    WeightColumn,
)
from bootprob.cli.dea.rules import Rules
from bootprob.cli.dea.tables import check_named, check_result, print_where, read_units, write_result
from bootprob.cli.options import takes_options

if TYPE_CHECKING:
    from bootprob.dea import JointSelection, SelectionCurve

__all__ = ["select", "unit"]

InputCount = Annotated[
    int | None,
    typer.Option("--n-inputs", min=1, metavar="P", help="How many inputs to choose as well."),
]


@takes_options
def select(
    *,
    source: UnitOptions,
    size: Size,
    curve: Annotated[
        bool, typer.Option("--curve", help="For 1 to P outputs, with what each contributes.")
    ] = False,
    n_inputs: InputCount = None,
    objective: ObjectiveName = Objective.mean,
    weight_column: WeightColumn = None,
    percentile: Percentile = None,
    method: SearchName = Search.exact,
    time_limit: TimeLimit = 60.0,
    rules: Rules,
    output: Result = None,
) -> None:
    """Choose the outputs under which all units together look best.

    Efficiencies are input-oriented, with constant returns. The bound is what
    no selection can exceed; the status "optimal" says that it is reached.
    Columns weight_min and weight_max of --output-table bound the weights of
    chosen outputs, such that a unit's weighted inputs sum to 1.

    [bold]Examples[/bold]

    bootprob dea select grids.csv --inputs cost --outputs '*' -p 3
    bootprob dea select grids.csv --inputs cost --outputs 'y*' -p 8 --curve -o curve.csv
    bootprob dea select grids.csv --inputs cost --outputs 'y*' -p 3 --max-correlation 0.9
    bootprob dea select clinics.csv --inputs 'x*' --outputs 'y*' -p 2 --n-inputs 1
    """
    check_result(output, source.table, *rules.files)
    units = read_units(source)
    options: dict[str, Any] = {
        "objective": objective.value,
        "weights": units.numbers(weight_column),
        "percentile": percentile,
        "method": method.value,
        "time_limit": time_limit,
        "n_inputs": n_inputs,
        **rules.read(units.panel),
    }

    from bootprob.dea import select_outputs, selection_curve
    from bootprob.dea.study.content import curve_content, panel_content, selection_content

    content: dict[str, Any] = {
        "format": {"name": "bootprob dea: selection of outputs", "version": 1},
        "data": panel_content(units.panel),
    }
    if curve:
        found = selection_curve(units.panel, size, **options)
        write_result(output, found.to_frame(), content | {"curve": curve_content(found)})
        weights = options["weights"]
        of_all = 1.0 if weights is None else sum(weights) / len(weights)  # where all are efficient
        _print_curve(found, n_inputs is not None, units.panel.n_outputs, 0.01 * of_all)
    else:
        one = select_outputs(units.panel, size, **options)
        write_result(output, one.to_frame(), content | selection_content(one))
        _print_selection(one, n_inputs is not None)
    print_where(output)


@takes_options
def unit(
    *,
    source: UnitOptions,
    name: Annotated[
        str, typer.Argument(metavar="UNIT", help="Its name, or its number where units have none.")
    ],
    size: Size,
    n_inputs: InputCount = None,
    method: SearchName = Search.exact,
    time_limit: TimeLimit = 60.0,
    rules: Rules,
    output: Result = None,
) -> None:
    """Choose the outputs, and inputs, under which one unit looks best.

    Weights are in the units of the data, such that the unit's weighted inputs
    sum to 1; columns weight_min and weight_max of --output-table bound them.

    [bold]Examples[/bold]

    bootprob dea unit grids.csv Norte --unit-column name --inputs cost --outputs 'y*' -p 3
    bootprob dea unit clinics.csv 4 --inputs 'x*' --outputs 'y*' -p 2 --n-inputs 1
    """
    check_result(output, source.table, *rules.files)
    units = read_units(source)
    check_named(units.panel, "units", [name])

    from bootprob.dea import select_for_unit
    from bootprob.dea.study.content import panel_content, unit_selection_content

    found = select_for_unit(
        units.panel, name, size, n_inputs=n_inputs, method=method.value, time_limit=time_limit,
        **rules.read(units.panel),
    )  # fmt: skip
    content = unit_selection_content(found)
    rows = [
        [one["name"], side, f"{one['weight']:.6g}"]
        for side in ("output", "input")
        for one in content[f"{side}s"]
    ]

    import pandas as pd

    frame = pd.DataFrame(rows, columns=["column", "side", "weight"]).set_index("column")
    frame["weight"] = [one["weight"] for side in ("outputs", "inputs") for one in content[side]]
    head = {
        "format": {"name": "bootprob dea: selection for a unit", "version": 1},
        "data": panel_content(units.panel),
    }
    write_result(output, frame, head | content)
    print_rows(["column", "side", "weight"], rows, f"Chosen for unit {found.unit}")
    typer.echo(_found("efficiency", found))
    print_where(output)


def _print_selection(found: JointSelection, inputs_chosen: bool) -> None:
    typer.echo(f"Chosen: {', '.join(found.outputs)}.")
    if inputs_chosen:
        typer.echo(f"Inputs: {', '.join(found.inputs)}.")
    typer.echo(_found(_called(found), found))
    e = found.efficiencies
    n_efficient = int((e >= 1 - 1e-6).sum())
    typer.echo(
        f"Efficiencies: from {e.min():.4f} to {e.max():.4f}, mean {e.mean():.4f}; "
        f"{n_efficient} of {len(e)} units {'is' if n_efficient == 1 else 'are'} efficient."
    )


def _print_curve(curve: SelectionCurve, inputs_chosen: bool, most: int, least: float) -> None:
    rows = [
        [
            str(size), f"{one.objective:.4f}",
            "" if marginal != marginal else f"{marginal:+.4f}".replace("-", "−"),
            f"{one.bound:.4f}", f"{one.gap:.1%}", one.status, ", ".join(one.outputs),
            *([", ".join(one.inputs)] if inputs_chosen else []),
        ]
        for size, one, marginal in zip(
            curve.sizes, curve.selections, curve.marginal, strict=True
        )
    ]  # fmt: skip
    headings = ["p", _called(curve.selections[0]), "contributes", "bound", "gap", "status"]
    headings += ["outputs", "inputs"] if inputs_chosen else ["outputs"]
    print_rows(headings, rows, "Selections of p outputs")

    from bootprob.dea.selection.summary import suggested_size

    last, enough = curve.sizes[-1], suggested_size(curve, least)
    if enough < last:
        typer.echo(f"Of p = {enough + 1} to {last}, none contributes {least:.3g} or more.")
    elif len(curve.sizes) > 1 and last < most:
        said = f"The last of {last} outputs contributes {least:.3g} or more"
        typer.echo(f"{said}: a larger P may pay.")


def _called(selection: JointSelection) -> str:
    return {
        "mean": "mean efficiency", "weighted": "weighted sum / K",
        "quadratic": "mean squared distance", "minimum": "least efficiency",
    }.get(selection.objective_name, selection.objective_name)  # fmt: skip


def _found(what: str, found: Any) -> str:
    proof = {
        "optimal": "proven to be the best",
        "time limit": "not proven within the time limit",
        "heuristic": "found by exchanges, nothing was proven",
    }[found.status]
    return (
        f"{what[0].upper()}{what[1:]} {found.objective:.4f}, bound {found.bound:.4f}, gap "
        f"{found.gap:.2%}: {proof} ({found.seconds:.1f} s)."
    )
