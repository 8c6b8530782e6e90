"""What the two mistakes cost in a table: numbers, or columns with a number for each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bootprob.costs.matrix import CostMatrix
from bootprob.encoding.columns import LARGEST_CELL
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC

__all__ = ["MistakeCosts"]


@dataclass(frozen=True)
class MistakeCosts:
    """Costs that decide the rows of a table; right decisions cost nothing.

    Attributes
    ----------
    false_positive : float or str
        What a row of the negative class costs that is decided positive, above 0; or the column
        that says it for each row.
    false_negative : float or str
        What a row of the positive class costs that is decided negative; likewise.

    Raises
    ------
    DataError
        For a number that is not above 0 and at most 1e150, or a column without a name.
    """

    false_positive: float | str
    false_negative: float | str

    def __post_init__(self) -> None:
        for what, cost in (("positive", self.false_positive), ("negative", self.false_negative)):
            usable = bool(cost) if isinstance(cost, str) else 0 < cost <= LARGEST_CELL
            if not usable:
                raise DataError(
                    f"The cost of a false {what} is {cost!r}; give a number above 0 in any unit, "
                    "or the name of a column of such numbers."
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that hold costs."""
        given = (self.false_positive, self.false_negative)
        return tuple(dict.fromkeys(cost for cost in given if isinstance(cost, str)))

    @property
    def threshold(self) -> float | None:
        """Probability above which "positive" costs less; None where rows have their own."""
        if isinstance(self.false_positive, str) or isinstance(self.false_negative, str):
            return None
        return float(CostMatrix(self.false_positive, self.false_negative).threshold)

    def thresholds(self, columns: Mapping[str, Floats], n_rows: int) -> Floats:
        """The threshold of each row, shape (m,).

        Parameters
        ----------
        columns : mapping of str to ndarray, shape (m,)
            What `columns` names, above 0 and finite.
        n_rows : int
            m.
        """
        costs = (
            columns[cost] if isinstance(cost, str) else cost
            for cost in (self.false_positive, self.false_negative)
        )
        return np.broadcast_to(CostMatrix(*costs).threshold, (n_rows,)).astype(np.float64)

    @staticmethod
    def unusable(values: Floats) -> NDArray[np.bool_]:
        """Which values of a column are no costs: missing, too large, or not above 0."""
        return ~((values > 0) & (values <= LARGEST_CELL))

    @staticmethod
    def check_model(model: BootstrapSVC) -> None:
        """Refuse a fitted model whose decisions cannot follow from costs.

        Raises
        ------
        DataError
            It has several classes or no calibration, or controls a rate.
        """
        if len(model.classes_) > 2:
            raise DataError(
                f"The model has {len(model.classes_)} classes, and costs of false positives and "
                "false negatives are of two."
            )
        if model.calibration is None:
            raise DataError(
                "The model has no calibration, and no cost follows from a share of votes; fit it "
                "with calibration='sigmoid'."
            )
        if model.control is not None:
            raise DataError(
                f"The model decides so that a rate holds (control={model.control!r}), and costs "
                "would decide otherwise; leave the costs out, or fit it without control."
            )
