"""What decisions cost: from a cost matrix to the threshold and the decisions of least cost.

With a probability p of the positive class, deciding "positive" is expected to cost
``(1 − p) c_01 + p c_11`` and deciding "negative" ``(1 − p) c_00 + p c_10``, where ``c_ij`` is the
cost of a row of class i that is predicted j. The first is the smaller one where p is above

    p* = (c_01 − c_00) / ((c_01 − c_00) + (c_10 − c_11)),

C. Elkan, "The foundations of cost-sensitive learning", IJCAI 2001, (2), whose indices stand the
other way round. Nothing is tuned: the costs alone give the threshold, provided that p is a
probability, that is, calibrated.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats
from bootprob.runtime.counted import counted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CostMatrix", "Decisions"]

Cost = float | Floats

_WHAT_IS_NEEDED = (
    "In each class the wrong decision has to cost more than the right one: "
    "false_positive > true_negative and false_negative > true_positive."
)


@dataclass(frozen=True, eq=False)
class CostMatrix:
    """Costs of the four outcomes, in any unit: for all rows alike, or one for each row.

    Attributes
    ----------
    false_positive : float or ndarray, shape (m,)
        Cost of a negative row that is decided positive, ``c_01``.
    false_negative : float or ndarray, shape (m,)
        Cost of a positive row that is decided negative, ``c_10``.
    true_negative, true_positive : float or ndarray, shape (m,), default 0
        Costs of right decisions, ``c_00`` and ``c_11``; benefits are negative costs.

    Raises
    ------
    DataError
        For costs that are not finite numbers, vectors of different lengths, or a wrong decision
        that costs no more than the right one: no probability would divide the decisions then.

    Examples
    --------
    >>> CostMatrix(false_positive=1, false_negative=19).threshold
    0.05
    >>> loans = CostMatrix(false_positive=50, false_negative=[100.0, 950.0])
    >>> loans.threshold.round(3)
    array([0.333, 0.05 ])
    """

    false_positive: Cost
    false_negative: Cost
    true_negative: Cost = 0.0
    true_positive: Cost = 0.0

    def __post_init__(self) -> None:
        lengths = {}
        for name in (field.name for field in fields(self)):
            cost = _as_cost(name, getattr(self, name))
            object.__setattr__(self, name, cost)
            if isinstance(cost, np.ndarray):
                lengths[name] = len(cost)
        if len(set(lengths.values())) > 1:
            raise DataError(f"Costs of rows must be equally many, got {lengths}.")
        self._check_excess("false_positive", "true_negative", "positive")
        self._check_excess("false_negative", "true_positive", "negative")

    @classmethod
    def from_array(cls, cost: ArrayLike) -> Self:
        """Take costs from an array, shape (2, 2), or (m, 2, 2) for one matrix a row.

        Parameters
        ----------
        cost : array_like
            ``cost[i, j]`` is what a row of class i costs that is decided j; 1 is the positive
            class.

        Examples
        --------
        >>> from bootprob import CostMatrix
        >>> costs = CostMatrix.from_array([[0, 1], [5, 0]])
        >>> costs.false_negative, round(costs.threshold, 3)
        (5.0, 0.167)
        """
        try:
            table = np.asarray(cost, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"cost_matrix must hold numbers: {error}") from error
        if table.ndim not in (2, 3) or table.shape[-2:] != (2, 2):
            raise DataError(
                f"cost_matrix has the shape {table.shape}; give (2, 2), true classes down and "
                "predicted classes across, or (m, 2, 2) for one matrix a row."
            )
        return cls(
            true_negative=table[..., 0, 0],
            false_positive=table[..., 0, 1],
            false_negative=table[..., 1, 0],
            true_positive=table[..., 1, 1],
        )

    @property
    def array(self) -> Floats:
        """The costs as ``array[..., true class, decided class]``: (2, 2), or (m, 2, 2) by rows."""
        cells = np.broadcast_arrays(
            self.true_negative, self.false_positive, self.false_negative, self.true_positive
        )
        return np.stack(cells, axis=-1).reshape(*cells[0].shape, 2, 2)

    @property
    def n_rows(self) -> int | None:
        """Number of rows that the costs belong to; None if they are the same for all."""
        return None if self.array.ndim == 2 else len(self.array)

    @property
    def threshold(self) -> Cost:
        """Probability above which "positive" costs less, p*; in [0, 1], shape (m,) by rows."""
        of_negatives = np.subtract(self.false_positive, self.true_negative)
        of_positives = np.subtract(self.false_negative, self.true_positive)
        share = of_negatives / (of_negatives + of_positives)
        return float(share) if self.n_rows is None else share

    def expected(self, probability: ArrayLike) -> Floats:
        """Expected cost of deciding "negative" and "positive", shape (m, 2).

        Parameters
        ----------
        probability : array_like, shape (m,)
            Of the positive class.

        Examples
        --------
        >>> from bootprob import CostMatrix
        >>> CostMatrix(false_positive=1, false_negative=5).expected([0.1, 0.5])
        array([[0.5, 0.9],
               [2.5, 0.5]])
        """
        p = self._checked(probability)[:, None]
        return (1 - p) * self.array[..., 0, :] + p * self.array[..., 1, :]

    def incurred(self, positive: ArrayLike, decided: ArrayLike) -> Floats:
        """What decisions have cost once the classes are known, shape (m,).

        Parameters
        ----------
        positive, decided : array_like of bool, shape (m,)
            Whether each row is positive, and whether it was decided positive.

        Examples
        --------
        >>> from bootprob import CostMatrix
        >>> costs = CostMatrix(false_positive=1, false_negative=5)
        >>> costs.incurred(positive=[False, True, True], decided=[True, False, True])
        array([1., 5., 0.])
        """
        is_positive, as_positive = (np.asarray(v, dtype=bool) for v in (positive, decided))
        self._check_length(len(is_positive))
        wrong = np.where(is_positive, self.false_negative, self.false_positive)
        right = np.where(is_positive, self.true_positive, self.true_negative)
        return np.where(is_positive == as_positive, right, wrong)

    def decide(
        self,
        probability: ArrayLike,
        interval: ArrayLike | None = None,
        classes: ArrayLike = (False, True),
    ) -> Decisions:
        """Take the decision of least expected cost for each row.

        Parameters
        ----------
        probability : array_like, shape (m,)
            Calibrated probabilities of the positive class.
        interval : array_like, shape (m, 2), optional
            Their lower and upper bounds; what passes 0 or 1 is cut off.
        classes : array_like, shape (2,)
            Labels of the decisions, the positive one last.

        Raises
        ------
        DataError
            For probabilities outside [0, 1] or NaN, bounds that do not fit them, or another
            number of rows than the costs have.

        Examples
        --------
        >>> from bootprob import CostMatrix
        >>> CostMatrix(false_positive=1, false_negative=5).decide([0.1, 0.5]).label
        array([False,  True])
        """
        p = self._checked(probability)
        threshold = np.broadcast_to(self.threshold, p.shape)
        positive = p > threshold
        rows, chosen = np.arange(len(p)), positive.astype(int)
        cost = self.expected(p)
        bounds: dict[str, Any] = {}
        if interval is not None:
            lower, upper = _checked_interval(interval, len(p)).T
            ends = np.stack([self.expected(lower), self.expected(upper)], axis=-1)
            ends.sort(axis=-1)  # a cost falls in p where the row had better be positive
            bounds = {
                "probability_interval": np.column_stack([lower, upper]),
                "cost_interval": ends[rows, chosen],
                "other_cost_interval": ends[rows, 1 - chosen],
                "stable": (lower > threshold) | (upper <= threshold),
            }
        return Decisions(
            label=np.asarray(classes)[chosen],
            probability=p,
            threshold=threshold.copy(),
            cost=cost[rows, chosen],
            other_cost=cost[rows, 1 - chosen],
            **bounds,
        )

    def take(self, rows: NDArray[Any]) -> CostMatrix:
        """Costs of some rows, given by a mask or by indices.

        Parameters
        ----------
        rows : ndarray of bool or int
            Which rows; without effect where the costs are the same for all.

        Examples
        --------
        >>> from bootprob import CostMatrix
        >>> CostMatrix(false_positive=1, false_negative=[5.0, 9.0, 2.0]).take([0, 2]).false_negative
        array([5., 2.])
        """
        return self if self.n_rows is None else CostMatrix.from_array(self.array[rows])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CostMatrix) and np.array_equal(self.array, other.array)

    __hash__ = None  # type: ignore[assignment]

    def _checked(self, probability: ArrayLike) -> Floats:
        p = np.asarray(probability, dtype=np.float64)
        if p.ndim != 1:
            raise DataError(f"probability has the shape {p.shape}; give that of the positive class")
        if not ((p >= 0) & (p <= 1)).all():
            raise DataError(
                "Probabilities must lie between 0 and 1; leave out rows that have none (NaN)."
            )
        self._check_length(len(p))
        return p

    def _check_length(self, n: int) -> None:
        if self.n_rows not in (None, n):
            given, rows = counted(self.n_rows or 0, "row"), counted(n, "row")
            raise DataError(f"There are costs of {given}, and {rows}; give one each.")

    def _check_excess(self, wrong: str, right: str, decision: str) -> None:
        costs, instead = np.broadcast_arrays(getattr(self, wrong), getattr(self, right))
        with np.errstate(over="ignore"):
            excess = costs - instead
        if (excess > np.finfo(np.float64).max / 2).any():  # the sum of two must not overflow
            raise DataError(f"{wrong} and {right} lie too far apart; use a larger unit of cost.")
        bad = np.flatnonzero(excess <= 0)
        if bad.size:
            first = bad[0]
            where = (
                "" if costs.ndim == 0 else f" in row {first} ({counted(bad.size, 'row')} in all)"
            )
            raise DataError(
                f"{wrong} is {costs.flat[first]:g} and {right} is {instead.flat[first]:g}{where}: "
                f'"{decision}" would cost no more than the other decision whatever the class, and '
                f"no threshold divides the two. {_WHAT_IS_NEEDED} In an array the true classes go "
                "down and the predicted ones across. Rows that one decision suits anyway need "
                "no probability; leave them out."
            )


@dataclass(frozen=True)
class Decisions:
    """The decision of least expected cost for each of m rows, and what it is expected to cost.

    The intervals are those of the probability carried over: an expected cost is linear in it. They
    are intervals for the cost of a *fixed* decision, the one that the probability itself led to,
    and hold for a row at the stated confidence, not for a sum over rows.

    Attributes
    ----------
    label : ndarray, shape (m,)
        The decision.
    probability : ndarray, shape (m,)
        Of the positive class.
    threshold : ndarray, shape (m,)
        Probability above which the decision is positive.
    cost, other_cost : ndarray, shape (m,)
        Expected cost of the decision and of the opposite one.
    probability_interval, cost_interval, other_cost_interval : ndarray, shape (m, 2), or None
        Lower and upper bounds; None where the probabilities have none.
    stable : ndarray of bool, shape (m,), or None
        Whether all probabilities of the interval lead to the same decision.
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


def _as_cost(name: str, value: Any) -> Cost:
    """A float, or a vector that nobody can write to."""
    try:
        cost = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be a number, or one number a row: {error}") from error
    if cost.ndim > 1:
        raise DataError(f"{name} has the shape {cost.shape}; give a number, or one number a row.")
    if not np.isfinite(cost).all():
        bad = np.flatnonzero(~np.isfinite(cost))
        where = "" if cost.ndim == 0 else f" in row {bad[0]} ({counted(bad.size, 'row')} in all)"
        raise DataError(f"{name} is {cost.flat[bad[0]]}{where}; costs must be finite.")
    if cost.ndim == 0:
        return float(cost)
    cost.setflags(write=False)
    return cost


def _checked_interval(interval: ArrayLike, n: int) -> Floats:
    bounds = np.asarray(interval, dtype=np.float64)
    if bounds.shape != (n, 2):
        raise DataError(
            f"interval has the shape {bounds.shape}; give a lower and an upper bound "
            f"for each of {counted(n, 'row')}, ({n}, 2)."
        )
    if not (bounds[:, 0] <= bounds[:, 1]).all():
        raise DataError("interval has lower bounds above the upper ones, or NaN.")
    return bounds.clip(0, 1)
