"""Values of columns as classifiers were given them, of which rows can be mixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bootprob.encoding.frames import dense
from bootprob.encoding.given_columns import GivenColumns
from bootprob.runtime.arrays import Floats

__all__ = ["GivenValues"]


class GivenValues:
    """The q columns of some rows as classifiers are given them, each value known by a number.

    There is more in them than in the matrix of the posterior: gaps, types, and columns that it
    leaves out. So a row that is mixed of several has of each column the number of the row whose
    value it has.

    Parameters
    ----------
    described : sequence of dict, or None
        What columns of a data frame are like, as of `GivenColumns`; None of a matrix.
    """

    def __init__(self, described: Sequence[Mapping[str, Any]] | None) -> None:
        self._described, self._parts = described, list[Any]()
        self._joined: tuple[int, Any] = (0, None)  # of how many parts; what they are together

    def copy(self) -> Self:
        """One that can be told more rows without this one's knowing."""
        made = type(self)(self._described)
        made._parts, made._joined = [*self._parts], self._joined
        return made

    def numbered(self, given: Any) -> Floats:
        """Keep rows (m, q), a data frame or a matrix; numbers of their values, shape (m, q)."""
        given = dense(given) if self._described is None else given.reset_index(drop=True)
        first = sum(map(len, self._parts))
        self._parts.append(given)
        numbers = np.arange(first, first + len(given), dtype=np.float64)
        return np.repeat(numbers[:, None], given.shape[1], axis=1)

    def number_values(self, column: int, values: Sequence[Any]) -> Floats:
        """Numbers (k,) of new values of a column, which become what the column holds.

        Parameters
        ----------
        column : int
        values : sequence of float or str, length k
            Numbers or levels.

        Raises
        ------
        DataError
            No values of the column's type can be made.
        """
        k, some = len(values), self._parts[0]
        if self._described is None:
            made = np.repeat(some[:1], k, axis=0)
            made[:, column] = values
            return self.numbered(made)[:, column]
        own = GivenColumns([self._described[column]])
        [name] = own.kinds
        made = some.iloc[np.zeros(k, dtype=np.intp)].reset_index(drop=True)
        columns = [made.iloc[:, at] for at in range(made.shape[1])]
        columns[column] = own.frame({name: list(values)}, k, {}, {}).iloc[:, 0]
        return self.numbered(pd.concat(columns, axis=1))[:, column]

    def rows(self, numbers: Floats) -> Any:
        """Rows as classifiers take them, of numbers (m, q) of their values."""
        of_parts, together = self._joined
        if of_parts != len(self._parts):
            together = self._together()
            self._joined = len(self._parts), together
        at: NDArray[np.intp] = numbers.astype(np.intp)
        if self._described is None:
            return together[at, np.arange(at.shape[1])]
        made = [
            column.take(own).reset_index(drop=True)
            for column, own in zip(together, at.T, strict=True)
        ]
        return pd.concat(made, axis=1).set_axis(self._parts[0].columns, axis=1)

    def _together(self) -> Any:
        """All rows that are kept: a matrix, or the columns of a data frame."""
        if self._described is None:
            return np.concatenate(self._parts)
        q = range(len(self._described))
        return [_joined([part.iloc[:, at] for part in self._parts]) for at in q]


def _joined(parts: Sequence[pd.Series]) -> pd.Series:
    """Columns one under the other; categories that one has and another has not come last."""
    if len(parts) > 1 and all(isinstance(each.dtype, pd.CategoricalDtype) for each in parts):
        known = dict.fromkeys(level for each in parts for level in each.cat.categories)
        of_all = pd.CategoricalDtype(list(known), parts[0].cat.ordered)
        parts = [each.astype(of_all) for each in parts]
    return pd.concat(parts, ignore_index=True)
