"""The columns a request has to give, and the matrix they become.

The same values as `TablePreprocessor.transform` makes of a data frame, without the data frame,
which would take longer than scoring a request's rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats
from bootprob.tables.columns import Kind, level_text
from bootprob.tables.model import TableModel

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC

__all__ = ["Columns"]


_YES_NO = {"true": "True", "1": "True", "false": "False", "0": "False"}


@dataclass(frozen=True)
class Columns:
    """Columns by name, in the order of the matrix, and those of costs after them.

    Attributes
    ----------
    kinds : dict of str to {"number", "boolean", "text", "cost"}
        Numbers first; "cost" where the model does not know the column.
    fills : dict of str to (float or str)
        What a missing value becomes; empty where none may be missing.
    levels : dict of str to dict of str to int
        The column of the matrix for each level of each category.
    n_features : int
        Columns of the matrix.
    is_table : bool
        Whether the model was fitted on a table; else on a matrix.
    costs : tuple of str
        Columns that hold what mistakes cost; the model may know them as numbers.
    """

    kinds: dict[str, Kind | Literal["cost"]]
    fills: dict[str, float | str]
    levels: dict[str, dict[str, int]]
    n_features: int
    is_table: bool
    costs: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: BootstrapSVC | TableModel) -> Self:
        """Columns of a table model, or of the matrix: `feature_names_in_` or x0, x1, …."""
        if not isinstance(model, TableModel):
            p = model.n_features_in_
            names = getattr(model, "feature_names_in_", [f"x{k}" for k in range(p)])
            return cls({str(name): "number" for name in names}, {}, {}, p, False)
        preprocessor = model.preprocessor
        by_kind = sorted(preprocessor.kinds_.items(), key=lambda item: item[1] != "number")
        done = sum(kind == "number" for _, kind in by_kind)
        levels = {}
        for name, found in preprocessor.levels_.items():
            levels[name] = {level: done + k for k, level in enumerate(found)}
            done += len(found)
        return cls(dict(by_kind), preprocessor.fills_, levels, done, True)

    def with_costs(self, names: Sequence[str]) -> Self:
        """The same, and columns of costs.

        Raises
        ------
        DataError
            One of them holds categories.
        """
        kinds = dict(self.kinds)
        for name in names:
            if kinds.setdefault(name, "cost") not in ("number", "cost"):
                raise DataError(f"The column {name!r} holds categories in the model, not costs.")
            if name == "X" and not self.is_table:
                raise DataError("Costs cannot be in 'X', which is the tensor of all columns.")
        return replace(self, kinds=kinds, costs=tuple(names))

    def encode(self, values: Mapping[str, Sequence[Any]], n_rows: int) -> Floats:
        """Make the matrix.

        Parameters
        ----------
        values : mapping of str to sequence, shape (m,)
            For each column its values, of the kinds that `bootprob.server.schemas` lets in; None
            where one is missing.
        n_rows : int
            m.

        Returns
        -------
        ndarray, shape (m, n_features)
            A category that the model does not know is zero in all its columns.
        """
        X = np.zeros((n_rows, self.n_features))
        rows = np.arange(n_rows)
        for k, (name, kind) in enumerate(self.kinds.items()):
            if kind == "number":
                column = np.array(values[name], dtype=np.float64)  # None becomes NaN
                if name in self.fills:
                    column[np.isnan(column)] = self.fills[name]
                X[:, k] = column
            elif kind != "cost":
                places = self._places(name, kind, values[name])
                known = places >= 0
                X[rows[known], places[known]] = 1.0
        return X

    def _places(self, name: str, kind: Kind, values: Sequence[Any]) -> NDArray[np.intp]:
        """Column of the matrix for each value of a category, −1 for an unknown one."""
        levels, fill = self.levels[name], str(self.fills[name])
        found = np.empty(len(values), dtype=np.intp)
        for row, value in enumerate(values):
            text = "" if value is None else level_text(value)
            if kind == "boolean":
                text = _YES_NO.get(text.casefold(), text)
            found[row] = levels.get(text or fill, -1)
        return found
