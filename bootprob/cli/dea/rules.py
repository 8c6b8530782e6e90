"""Rules on outputs for ``bootprob dea``: costs, clusters, correlation, bounds on weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bootprob.exceptions import DataError

if TYPE_CHECKING:
    from bootprob.dea import Panel

__all__ = ["Rules"]

_RULES = "Which outputs may be chosen together"


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Rules on outputs, as they were given."""

    output_table: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            rich_help_panel=_RULES,
            help="CSV or Parquet file that describes outputs: its columns are output, and any of "
            "cost, cluster, weight_min and weight_max.",
        ),
    ] = None
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="COST",
            rich_help_panel=_RULES,
            help="What the chosen outputs may cost together. Without a column cost each costs 1.",
        ),
    ] = None
    cluster_min: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTS",
            rich_help_panel=_RULES,
            help="Outputs to choose from each cluster at least: 1, or lines=1,cables=2.",
        ),
    ] = None
    cluster_max: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTS",
            rich_help_panel=_RULES,
            help="Outputs to choose from each cluster at most.",
        ),
    ] = None
    max_correlation: Annotated[
        float | None,
        typer.Option(
            metavar="R",
            rich_help_panel=_RULES,
            help="Outputs that are correlated more than this are not chosen together.",
        ),
    ] = None

    @property
    def files(self) -> list[Path]:
        """Files that are read."""
        return [] if self.output_table is None else [self.output_table]

    def read(self, panel: Panel) -> dict[str, Any]:
        """As the keyword arguments of `select_outputs` and `select_for_unit`.

        Raises
        ------
        DataError
            The table cannot be read, describes an output that there is not, or lacks what an
            option needs; or an option cannot be understood.
        """
        found: dict[str, Any] = {
            "budget": self.budget,
            "max_correlation": self.max_correlation,
            "cluster_min": _counts(self.cluster_min, "--cluster-min"),
            "cluster_max": _counts(self.cluster_max, "--cluster-max"),
        }
        if self.output_table is not None:
            found |= _described(self.output_table, panel)
        for option, given in (("min", self.cluster_min), ("max", self.cluster_max)):
            if given is not None and "clusters" not in found:
                raise DataError(f"--cluster-{option} needs an --output-table with column cluster.")
        return {name: value for name, value in found.items() if value is not None}


def _counts(text: str | None, option: str) -> int | dict[str, int] | None:
    if text is None:
        return None
    try:
        if "=" not in text:
            return int(text)
        pairs = [part.rsplit("=", 1) for part in text.split(",")]
        return {name.strip(): int(count) for name, count in pairs}
    except ValueError:
        raise DataError(
            f"{option} is {text!r}; give a whole number, or lines=1,cables=2."
        ) from None


def _described(table: Path, panel: Panel) -> dict[str, Any]:
    from bootprob.tables.files import read_table

    frame = read_table(table, text_columns=["output", "cluster"])
    known = {"output", "cost", "cluster", "weight_min", "weight_max"}
    strange = [str(name) for name in frame.columns if name not in known]
    if "output" not in frame.columns or strange:
        what = f"has {strange[0]!r}" if strange else "lacks 'output'"
        raise DataError(
            f"{table} {what}; its columns are output, cost, cluster, weight_min and weight_max."
        )
    named = [str(name).strip() for name in frame["output"]]
    for name in named:
        if name not in panel.output_names:
            raise DataError(f"{table} describes {name!r}, which is no output that was chosen.")
        if named.count(name) > 1:
            raise DataError(f"{table} describes {name!r} more than once.")
    found: dict[str, Any] = {}
    if "cost" in frame.columns:
        found["costs"] = dict(zip(named, _amounts(frame["cost"], "cost", table), strict=True))
    if "cluster" in frame.columns:
        clusters: dict[str, list[str]] = {}
        for name, cluster in zip(named, frame["cluster"], strict=True):
            if isinstance(cluster, str) and cluster.strip():
                clusters.setdefault(cluster.strip(), []).append(name)
        found["clusters"] = clusters
    bounded = [name for name in ("weight_min", "weight_max") if name in frame.columns]
    if bounded:
        ends = [
            _amounts(frame[name], name, table, empty=empty)
            if name in frame.columns
            else [empty] * len(named)
            for name, empty in (("weight_min", 0.0), ("weight_max", float("inf")))
        ]
        found["weight_bounds"] = dict(zip(named, zip(*ends, strict=True), strict=True))
    return found


def _amounts(column: Any, name: str, table: Path, empty: float = 0.0) -> list[float]:
    import pandas as pd

    values = pd.to_numeric(column, errors="coerce")
    bad = (values.isna() & column.notna()).to_numpy()
    if bad.any():
        raise DataError(
            f"{table} has the {name} {column[bad].iloc[0]!r} in row {int(bad.argmax()) + 1}, which "
            "is no number."
        )
    amounts: list[float] = values.fillna(empty).tolist()
    return amounts
