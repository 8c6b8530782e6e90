"""Options that the commands of ``bootprob dea`` share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Objective",
    "ObjectiveName",
    "Orientation",
    "OrientationName",
    "Percentile",
    "Replicates",
    "Result",
    "Returns",
    "ReturnsName",
    "Search",
    "SearchName",
    "Seed",
    "Size",
    "TimeLimit",
    "UnitOptions",
    "WeightColumn",
]


class Returns(StrEnum):
    """Returns to scale."""

    constant = "constant"
    variable = "variable"
    non_increasing = "non-increasing"
    non_decreasing = "non-decreasing"


class Orientation(StrEnum):
    """What is to be improved."""

    input = "input"
    output = "output"


class Objective(StrEnum):
    """What makes a selection for all units good."""

    mean = "mean"
    weighted = "weighted"
    quadratic = "quadratic"
    minimum = "minimum"
    percentile = "percentile"


class Search(StrEnum):
    """How a selection is found."""

    exact = "exact"
    exchange = "exchange"


@dataclass(frozen=True, kw_only=True)
class UnitOptions:
    """Which table is read, and which of its columns."""

    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="CSV or Parquet file, one row for each unit.")
    ]
    inputs: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMNS",
            help="What units use: names with commas between them, or a pattern such as 'cost*'. "
            "May be given more than once.",
        ),
    ]
    outputs: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMNS",
            help="What units produce, in the same way; '*' is every column that is not named "
            "otherwise.",
        ),
    ]
    unit_column: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that names the units. Default: they are numbered from 1.",
        ),
    ] = None


ReturnsName = Annotated[
    Returns,
    typer.Option(help="Returns to scale; variable compares units of one size with each other."),
]
OrientationName = Annotated[
    Orientation,
    typer.Option(
        help="input: which part of its inputs would do; output: how many times its outputs it "
        "could have."
    ),
]
Replicates = Annotated[
    int,
    typer.Option(
        "--replicates",
        min=100,
        metavar="B",
        help="Bootstrap samples; each scores every unit once.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Same seed, same intervals.")]
Result = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Also write the results: a table (.csv, .parquet), or all numbers (.json).",
    ),
]
Size = Annotated[
    int, typer.Option("-p", "--size", min=1, metavar="P", help="How many outputs to choose.")
]
ObjectiveName = Annotated[
    Objective,
    typer.Option(
        help="Of the efficiencies: their mean, weighted sum over K, mean squared distance from 1, "
        "minimum, or a percentile."
    ),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(
        "--weight-column",
        metavar="COLUMN",
        help="How much each unit counts; for --objective weighted.",
    ),
]
Percentile = Annotated[
    float | None,
    typer.Option(
        metavar="PERCENT", help="Which percentile, above 0 to 100; for --objective percentile."
    ),
]
SearchName = Annotated[
    Search,
    typer.Option(
        "--method", help="exact proves what it finds, if time suffices; exchange is quicker."
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        "--time-limit",
        min=0.01,
        metavar="SECONDS",
        help="After that the best known is told, with a bound on what is better.",
    ),
]
