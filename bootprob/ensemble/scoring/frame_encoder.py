"""Rows of files and requests for classifiers that were fitted to a data frame: frame and matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from bootprob.encoding.columns import Kind, numbers_and_bad
from bootprob.encoding.dates import DateParts
from bootprob.encoding.encoder import Column, EncodedRows, TableEncoder
from bootprob.encoding.given_columns import GivenColumns
from bootprob.ensemble.scoring.table_rows import TableRows
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    from bootprob.encoding.preprocessing import TablePreprocessor

__all__ = ["FrameEncoder", "encoder_of", "rows_of_matrix"]

_SOME: dict[Kind, float | str] = {"number": 0.0, "boolean": "False", "text": ""}


@dataclass(frozen=True, eq=False)
class FrameEncoder:
    """What `TableEncoder` is to machines: it needs all columns that classifiers were given.

    Attributes
    ----------
    table : TableEncoder
        What makes the matrix.
    given : GivenColumns
        The data frame that classifiers were fitted to, or a matrix with gaps.
    is_frame : bool
        Which of the two.
    """

    table: TableEncoder
    given: GivenColumns
    is_frame: bool

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """Columns of the matrix, and then those that only classifiers see."""
        return self.table.kinds | self.beside

    @cached_property
    def beside(self) -> dict[str, Kind]:
        """Columns that only classifiers see."""
        known = self.table.kinds
        return {name: kind for name, kind in self.given.kinds.items() if name not in known}

    @cached_property
    def fills(self) -> dict[str, float | str]:
        """What a missing value becomes in the matrix, and some value of columns beside it."""
        return self.table.fills | {name: _SOME[kind] for name, kind in self.beside.items()}

    @property
    def levels(self) -> dict[str, list[str]]:
        """Of the categories of the matrix."""
        return self.table.levels

    @property
    def dates(self) -> dict[str, DateParts]:
        """There are none."""
        return self.table.dates

    @property
    def n_features(self) -> int:
        """Columns of the matrix."""
        return self.table.n_features

    def standardizing(self, center: Floats, scale: Floats) -> Self:
        """The same, that refuses numbers too far from the training rows."""
        return replace(self, table=self.table.standardizing(center, scale))

    def encode(
        self, columns: Mapping[str, Column], n_rows: int, *, mark_bad: bool = False
    ) -> EncodedRows:
        """Rows for classifiers and for the posterior, `TableRows`; else as of `TableEncoder`."""
        found = self.table.encode(columns, n_rows, mark_bad=mark_bad)
        bad = dict(found.bad)
        for name, kind in self.beside.items():
            column = columns[name]
            cells = (
                numbers_and_bad(column, name)[1]
                if kind == "number" and not isinstance(column, list)
                else []
            )
            if cells and not mark_bad:
                raise cells[0].refusal(name)
            if cells:
                bad[name] = {each.reason: each.rows for each in cells}
        frame = self.given.frame(columns, n_rows, self.fills, bad)
        given = frame if self.is_frame else frame.to_numpy(dtype=np.float64)
        return replace(found, X=TableRows(given, found.X), bad=bad)

    def joined(self, parts: Sequence[TableRows]) -> TableRows:
        """Rows one under the other."""
        matrix = np.concatenate([each.matrix for each in parts])
        if not self.is_frame:
            return TableRows(np.concatenate([each.given for each in parts]), matrix)
        columns = {
            str(name): [value for each in parts for value in each.given[name]]
            for name in parts[0].given.columns
        }
        series = {name: pd.Series(values, dtype=object) for name, values in columns.items()}
        return TableRows(self.given.frame(series, len(matrix), {}, {}), matrix)


def encoder_of(model: Any, preprocessor: TablePreprocessor) -> FrameEncoder:
    """What makes rows for classifiers of the columns of a file or a request.

    Parameters
    ----------
    model : BootstrapClassifier
    preprocessor : TablePreprocessor
        Its own, or one of plain numbers where it has none.

    Raises
    ------
    DataError
        Classifiers were given columns that these cannot have.
    """
    learnt = preprocessor.encoder_
    if model.frame_columns_ is not None:
        found = FrameEncoder(learnt, GivenColumns(model.frame_columns_), is_frame=True)
    else:
        of_numbers = {"kind": "number", "dtype": "float64"}
        names = preprocessor.feature_names_in_
        given = GivenColumns([{"name": name, **of_numbers} for name in names])
        found = FrameEncoder(learnt, given, is_frame=False)
    found.given.kinds  # noqa: B018 - its error, before there are rows
    return found


def rows_of_matrix(model: Any, X: Floats) -> Floats | TableRows:
    """Rows of plain numbers, (m, p), for a model without a `preprocessor_`, as it takes them."""
    if getattr(model, "estimators_", None) is None:
        return X
    if model.frame_columns_ is None:
        return TableRows(X, X)
    given = GivenColumns(model.frame_columns_)
    columns = {str(each["name"]): X[:, at] for at, each in enumerate(given.columns)}
    made = {name: pd.Series(values) for name, values in columns.items()}
    return TableRows(given.frame(made, len(X), {}, {}), X)
