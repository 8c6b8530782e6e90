"""The linear program behind one unit's efficiency, in that unit's own scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from bootprob.dea.panel import Panel, PanelError
from bootprob.exceptions import DataError

__all__ = ["Orientation", "Program", "Returns", "check_options", "check_range", "unit_program"]

Returns = Literal["constant", "variable", "non-increasing", "non-decreasing"]
Orientation = Literal["input", "output"]

_WEIGHT_SUM = {
    "variable": (1.0, 1.0), "non-increasing": (-np.inf, 1.0), "non-decreasing": (1.0, np.inf)
}  # fmt: skip
_SMALLEST_SHARE = 1e-12


@dataclass(frozen=True)
class Program:
    """Envelopment side: minimise cost'v, rows between bounds, the last column the score.

    Rows: inputs, outputs, and the sum of the λ unless returns are constant. Each row is divided
    by the unit's own amount and each column by its largest entry, so that the solver's absolute
    tolerances are relative ones whatever the units of measurement.

    Attributes
    ----------
    matrix : ndarray (K + 1, rows)
        One line for each column of the program.
    cost, lower, upper : ndarray (K + 1,)
    row_lower, row_upper : ndarray (rows,)
    input_unit, output_unit : ndarray (N,) and (M,)
        What the rows were divided by.
    column_unit : ndarray (K,)
        What the columns were divided by: λ is the program's variable divided by it.
    """

    matrix: np.ndarray
    cost: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    row_lower: np.ndarray
    row_upper: np.ndarray
    input_unit: np.ndarray
    output_unit: np.ndarray
    column_unit: np.ndarray

    def with_most_slack(self, score: float, worth: np.ndarray, room: float = 0.0) -> Program:
        """Second phase: at the score of the first, the most slack in all.

        `worth` (K,) are outputs less inputs of each unit, in the scale in which slacks are
        added up; `room` is by how much the score may be worse, relative to it where it is
        above 1.
        """
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[-1] = upper[-1] = score + np.sign(self.cost[-1]) * room * max(abs(score), 1.0)
        cost = np.append(-worth / self.column_unit, 0.0)
        largest = np.abs(cost).max()
        return replace(self, cost=cost / (largest or 1.0), lower=lower, upper=upper)


def unit_program(
    X: np.ndarray,
    Y: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    returns: Returns,
    orientation: Orientation,
    excluded: int | None = None,
) -> Program:
    """Envelopment program of a unit (x, y) against the units X (K, N) and Y (K, M).

    Input orientation: min θ, Σλx ≤ θx, Σλy ≥ y; output orientation: max φ, Σλx ≤ x, Σλy ≥ φy.
    The unit `excluded` is no peer, for super-efficiency.
    """
    (K, N), M = X.shape, Y.shape[1]
    input_unit, output_unit = _own_unit(x, X), _own_unit(y, Y)
    parts = [X / input_unit, Y / output_unit]
    if returns != "constant":
        parts.append(np.ones((K, 1)))
    matrix = np.zeros((K + 1, sum(part.shape[1] for part in parts)))
    columns = np.hstack(parts)
    column_unit = columns.max(axis=1)
    matrix[:K] = columns / column_unit[:, None]
    row_lower = np.full(matrix.shape[1], -np.inf)
    row_upper = np.full(matrix.shape[1], np.inf)
    uses, makes = x / input_unit, y / output_unit  # 1, or 0 where the unit's amount is zero
    row_upper[:N], row_lower[N : N + M] = uses, makes
    if orientation == "input":
        matrix[K, :N], row_upper[:N] = -uses, 0.0
    else:
        matrix[K, N : N + M], row_lower[N : N + M] = -makes, 0.0
    if returns != "constant":
        row_lower[-1], row_upper[-1] = _WEIGHT_SUM[returns]
    upper = np.full(K + 1, np.inf)
    if excluded is not None:
        upper[excluded] = 0.0
    cost = np.zeros(K + 1)
    cost[-1] = 1.0 if orientation == "input" else -1.0
    lower = np.zeros(K + 1)
    # The score is not below zero anyway; a bound that says so would, at zero, take the place of
    # the input weights, and leave them without α'x = 1.
    lower[-1] = -np.inf
    return Program(
        matrix, cost, lower, upper, row_lower, row_upper,
        input_unit, output_unit, column_unit,
    )  # fmt: skip


def _own_unit(amounts: np.ndarray, table: np.ndarray) -> np.ndarray:
    largest = table.max(axis=0)
    return np.where(amounts > 0, amounts, np.where(largest > 0, largest, 1.0))


def check_options(returns: str, orientation: str) -> None:
    """Check the two names; `DataError` if one is unknown."""
    for name, given, known in (
        ("returns", returns, get_args(Returns)),
        ("orientation", orientation, get_args(Orientation)),
    ):
        if given not in known:
            raise DataError(f"{name} is {given!r}; give {', '.join(map(repr, known))}.")


def check_range(panel: Panel) -> None:
    """Check that no column spans more than double precision can reckon with.

    `PanelError` if an amount above zero is less than 1e-12 of the column's largest.
    """
    for values, names in (
        (panel.inputs, panel.input_names), (panel.outputs, panel.output_names)
    ):  # fmt: skip
        largest = values.max(axis=0)
        row, column = np.nonzero((values > 0) & (values < _SMALLEST_SHARE * largest))
        if len(row):
            name, unit = names[column[0]], panel.units[row[0]]
            raise PanelError(
                f"{name!r} of unit {unit!r} is {values[row[0], column[0]]:.3g}, the largest "
                f"{largest[column[0]]:.3g}; more than twelve powers of ten apart they cannot be "
                "compared. Give zero or correct it.",
                units=[unit],
                columns=[name],
            )
