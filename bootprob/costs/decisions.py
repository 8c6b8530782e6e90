"""Decisions of least expected cost, and what each is expected to cost."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Decisions"]


@dataclass(frozen=True)
class Decisions:
    """The decision of least expected cost for each of m rows, and what it is expected to cost.

    The intervals are those of the probability carried over: an expected cost is linear in it. They
    are intervals for the cost of a *fixed* decision, the one that the probability itself led to,
    and hold for a row at the stated confidence, not for a sum over rows. What asking a person costs
    is known: its interval has no width.

    Attributes
    ----------
    label : ndarray, shape (m,)
        The decision; of a row to `ask` about, the better answer.
    probability : ndarray, shape (m,)
        Of the positive class.
    threshold : ndarray, shape (m,)
        Probability above which the decision is positive.
    cost, other_cost : ndarray, shape (m,)
        Expected cost of the decision and of the next best one: the opposite, or with somebody to
        ask the better of the other two.
    probability_interval, cost_interval, other_cost_interval : ndarray, shape (m, 2), or None
        Lower and upper bounds; None where the probabilities have none.
    stable : ndarray of bool, shape (m,), or None
        Whether all probabilities of the interval lead to the same decision.
    ask : ndarray of bool, shape (m,), or None
        Whether to ask a person: where that costs less than the better answer is expected to. None
        where the costs name nobody to ask.

    Examples
    --------
    >>> from bootprob import CostMatrix
    >>> found = CostMatrix(false_positive=1, false_negative=5, ask=0.4).decide([0.01, 0.15, 0.9])
    >>> found.ask
    array([False,  True, False])
    """

    label: NDArray[Any]
    probability: Floats
    threshold: Floats
    cost: Floats
    other_cost: Floats
    probability_interval: Floats | None = None
    cost_interval: Floats | None = None
    other_cost_interval: Floats | None = None
    stable: NDArray[np.bool_] | None = None
    ask: NDArray[np.bool_] | None = None

    def to_frame(self, index: Any = None) -> pd.DataFrame:
        """One row a decision; intervals become columns ``..._lower`` and ``..._upper``.

        Parameters
        ----------
        index : Index, optional
            Names of the rows; default their numbers.

        Examples
        --------
        >>> from bootprob import CostMatrix
        >>> decisions = CostMatrix(false_positive=1, false_negative=5).decide([0.1, 0.5])
        >>> decisions.to_frame()["label"].tolist()
        [False, True]
        """
        import pandas as pd

        columns: dict[str, NDArray[Any]] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and value.ndim == 2:
                name = field.name.removesuffix("_interval")
                columns[f"{name}_lower"], columns[f"{name}_upper"] = value.T
            elif value is not None:
                columns[field.name] = value
        return pd.DataFrame(columns, index=index)
