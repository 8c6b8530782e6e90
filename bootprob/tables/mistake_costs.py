"""What the two mistakes cost in a table: numbers, or columns with a number for each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bootprob.costs.decisions import Decisions
from bootprob.costs.matrix import CostMatrix
from bootprob.encoding.columns import LARGEST_CELL
from bootprob.exceptions import DataError
from bootprob.intervals import OF_VOTES
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC

__all__ = ["ASKING_COLUMNS", "MistakeCosts", "asking_columns"]

ASKING_COLUMNS = ("ask", "cost", "cost_lower", "cost_upper", "stable")
"""What tables say of rows besides, where a person can be asked about them."""


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
    ask : float or str, optional
        What it costs to ask a person about a row; likewise. None: nobody can be asked.

    Raises
    ------
    DataError
        For a number that is not above 0 and at most 1e150, or a column without a name.
    """

    false_positive: float | str
    false_negative: float | str
    ask: float | str | None = None

    def __post_init__(self) -> None:
        given = {"a false positive": self.false_positive, "a false negative": self.false_negative}
        if self.ask is not None:
            given["asking"] = self.ask
        for what, cost in given.items():
            usable = bool(cost) if isinstance(cost, str) else 0 < cost <= LARGEST_CELL
            if not usable:
                raise DataError(
                    f"The cost of {what} is {cost!r}; give a number above 0, up to "
                    f"{LARGEST_CELL:g}, in any unit, or the name of a column of such numbers."
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that hold costs."""
        given = (self.false_positive, self.false_negative, self.ask)
        return tuple(dict.fromkeys(cost for cost in given if isinstance(cost, str)))

    @property
    def threshold(self) -> float | None:
        """Probability above which "positive" costs less; None where rows have their own."""
        if isinstance(self.false_positive, str) or isinstance(self.false_negative, str):
            return None
        return float(CostMatrix(self.false_positive, self.false_negative).threshold)

    @property
    def never_asks(self) -> bool:
        """Whether asking costs as much as the better answer whatever the probability; of numbers.

        False where a column says what something costs.
        """
        if self.ask is None or self.columns:
            return False
        lowest, highest = self.matrix({}).asking_between  # type: ignore[misc]
        return bool(lowest == highest)

    def matrix(self, columns: Mapping[str, Floats]) -> CostMatrix:
        """The costs of rows.

        Parameters
        ----------
        columns : mapping of str to ndarray, shape (m,)
            What `columns` names, above 0 and finite.
        """
        given = (self.false_positive, self.false_negative, self.ask)
        wrong, missed, ask = (columns[c] if isinstance(c, str) else c for c in given)
        assert wrong is not None
        assert missed is not None
        return CostMatrix(wrong, missed, ask=ask)

    @staticmethod
    def unusable(values: Floats) -> NDArray[np.bool_]:
        """Which values of a column are no costs: missing, too large, or not above 0."""
        return ~((values > 0) & (values <= LARGEST_CELL))

    def check_model(self, model: BootstrapSVC) -> None:
        """Refuse a fitted model whose decisions cannot follow from costs.

        Raises
        ------
        DataError
            It has several classes or no calibration, or controls a rate; or a person can be asked,
            and its intervals are about votes.
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
        if self.ask is not None and model.interval in OF_VOTES:
            raise DataError(
                f"interval={model.interval!r} is about vote shares, and no interval for a cost "
                "follows from it; fit the model with another, or leave the cost of asking out."
            )


def asking_columns(decisions: Decisions) -> dict[str, NDArray[Any]]:
    """Values of `ASKING_COLUMNS`, of decisions with intervals and somebody to ask."""
    frame = decisions.to_frame()
    return {name: frame[name].to_numpy() for name in ASKING_COLUMNS}
