"""Tables of decision-making units on the command line: read into a panel, results written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bootprob.cli.console import note
from bootprob.cli.dea.options import UnitOptions
from bootprob.cli.options import listed_names
from bootprob.exceptions import DataError
from bootprob.runtime.files import check_output, replace_when_complete

if TYPE_CHECKING:
    import pandas as pd

    from bootprob.dea import Panel

__all__ = ["UnitTable", "check_named", "check_result", "print_where", "read_units", "write_result"]

_SUFFIXES = (".csv", ".parquet", ".json")
_WILD = frozenset("*?[")


@dataclass(frozen=True)
class UnitTable:
    """A table that was read.

    Attributes
    ----------
    path : Path
    frame : DataFrame
        All of its columns.
    panel : Panel
        Its units, with the inputs and outputs that were chosen.
    """

    path: Path
    frame: pd.DataFrame
    panel: Panel

    def labels(self, column: str | None) -> list[str] | None:
        """What a column says of each unit, as text; None without a column.

        Raises
        ------
        DataError
            There is no such column, or a cell of it is empty.
        """
        if column is None:
            return None
        values = self._column(column)
        if values.isna().any():
            row = int(values.isna().to_numpy().argmax())
            unit = self.panel.units[row]
            raise DataError(f"Column {column!r} of {self.path} says nothing of unit {unit!r}.")
        return [str(value) for value in values]

    def numbers(self, column: str | None) -> list[float] | None:
        """Numbers in a column, one for each unit; None without a column.

        Raises
        ------
        DataError
            There is no such column, or a cell of it is no number.
        """
        if column is None:
            return None
        values: list[float] = _numeric(self._column(column), column, self.path).tolist()
        return values

    def _column(self, column: str) -> pd.Series:
        if column not in self.frame.columns:
            raise DataError(_no_column(self.path, column, list(self.frame.columns)))
        return self.frame[column]


def read_units(source: UnitOptions) -> UnitTable:
    """Read a table with one row for each unit; patterns match columns that are not named otherwise.

    Raises
    ------
    DataError
        The table cannot be read, a column is not there or holds no numbers.
    PanelError
        The numbers are not those of a panel, see `bootprob.dea.Panel`.
    """
    from bootprob.tables.files import read_table

    table, unit_column = source.table, source.unit_column
    frame = read_table(table, text_columns=[] if unit_column is None else [unit_column])
    columns = [str(name) for name in frame.columns]
    if unit_column is not None and unit_column not in columns:
        raise DataError(_no_column(table, unit_column, columns))
    taken = {unit_column} | _exact(source.inputs, columns) | _exact(source.outputs, columns)
    used = _chosen(table, columns, source.inputs, "--inputs", taken)
    made = _chosen(table, columns, source.outputs, "--outputs", taken | set(used))

    from bootprob.dea import Panel

    for name in (*used, *made):
        frame[name] = _numeric(frame[name], name, table)
    units = None if unit_column is None else _unit_names(frame[unit_column], unit_column, table)
    if units is None:
        _hint(frame, {*used, *made})
    return UnitTable(table, frame, Panel.of(frame[used], frame[made], units=units))


def check_named(panel: Panel, kind: str, wanted: Sequence[str]) -> None:
    """Refuse names of units or outputs that there are not; here, nothing is chosen by position.

    Raises
    ------
    DataError
        One is not there.
    """
    known = panel.units if kind == "units" else panel.output_names
    for name in wanted:
        if name not in known:
            raise DataError(
                f"There is no {name!r} among the {len(known)} {kind}: {_shown(list(known))}."
            )


def check_result(output: Path | None, *inputs: Path) -> None:
    """Refuse a file of results that cannot be written, before any work is done.

    Raises
    ------
    DataError
        The suffix is unknown, the file cannot be written, or it is one of `inputs`.
    """
    if output is None:
        return
    if output.suffix.lower() not in _SUFFIXES:
        raise DataError(f"{output}: the name of results must end in .csv, .parquet or .json.")
    check_output(output, inputs=inputs)


def write_result(output: Path | None, frame: pd.DataFrame, content: dict[str, Any]) -> None:
    """Write a table, or everything as JSON, by the suffix; nothing without a file.

    The frame's index goes to the first column.
    """
    if output is None:
        return
    if output.suffix.lower() == ".json":
        _write_json(output, content)
        return
    from bootprob.tables.files import write_table

    write_table(frame.reset_index(), output)


def print_where(output: Path | None) -> None:
    """Say where the results are, if they were written."""
    if output is not None:
        typer.echo(f"The results are in {output}.")


def _write_json(output: Path, content: dict[str, Any]) -> None:
    import json

    from bootprob.report.plain import plain

    text = json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False)
    with replace_when_complete(output) as file:
        file.write(f"{text}\n".encode())


def _exact(given: Sequence[str], columns: Sequence[str]) -> set[str | None]:
    return {part for part in listed_names(given, columns) if part in columns}


def _chosen(
    table: Path, columns: list[str], given: Sequence[str], option: str, taken: set[str | None]
) -> list[str]:
    names: list[str] = []
    for part in listed_names(given, columns):
        if part in columns:
            names.append(part)
            continue
        if not _WILD & set(part):
            raise DataError(_no_column(table, part, columns))
        found = [name for name in columns if fnmatchcase(name, part) and name not in taken]
        if not found:
            raise DataError(f"{option} {part} matches no column of {table} that is left.")
        names += found
    if not names:
        raise DataError(f"{option} names no column of {table}; it has {_shown(columns)}.")
    return list(dict.fromkeys(names))


def _no_column(table: Path, name: str, columns: list[str]) -> str:
    return f"{table} has no column {name!r}; it has {_shown(columns)}."


def _shown(names: list[str], at_most: int = 8) -> str:
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return ", ".join(names[:at_most]) + more


def _numeric(column: pd.Series, name: str, table: Path) -> pd.Series:
    """Numbers; missing ones stay so, which `Panel` tells with the unit."""
    import pandas as pd

    values = pd.to_numeric(column, errors="coerce")
    bad = (values.isna() & column.notna()).to_numpy()
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"Column {name!r} of {table} has {column.iloc[row]!r} in row {row + 1}, which is no "
            "number; correct it, or choose other columns."
        )
    return values


def _unit_names(column: pd.Series, name: str, table: Path) -> list[str]:
    if column.isna().any():
        row = int(column.isna().to_numpy().argmax())
        raise DataError(f"Column {name!r} of {table} has no name in row {row + 1}.")
    return [str(value) for value in column]


def _hint(frame: pd.DataFrame, chosen: set[str]) -> None:
    import pandas as pd

    texts = [
        str(name)
        for name in frame.columns
        if name not in chosen
        and not pd.api.types.is_numeric_dtype(frame[name])
        and frame[name].notna().all()
        and frame[name].is_unique
    ]
    if len(texts) == 1 and len(frame) > 1:
        note(f"Units are numbered; --unit-column {texts[0]!r} would name them.")
