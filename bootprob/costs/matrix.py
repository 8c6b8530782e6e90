"""What decisions cost: from a cost matrix to the threshold and the decisions of least cost.

With a probability p of the positive class, deciding "positive" is expected to cost
``(1 − p) c_01 + p c_11`` and deciding "negative" ``(1 − p) c_00 + p c_10``, where ``c_ij`` is the
cost of a row of class i that is predicted j. The first is the smaller one where p is above

    p* = (c_01 − c_00) / ((c_01 − c_00) + (c_10 − c_11)),

C. Elkan, "The foundations of cost-sensitive learning", IJCAI 2001, (2), whose indices stand the
other way round. Nothing is tuned: the costs alone give the threshold, provided that p is a
probability, that is, calibrated.

A person who is asked costs a, whatever the class: asking is the decision of least expected cost
where a is below both of the above, which is an interval of probabilities around p* (C. K. Chow,
"On optimum recognition error and reject tradeoff", IEEE Trans. Information Theory 16 (1970) 41–46).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.costs.decisions import Decisions
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Bools, Floats
from bootprob.runtime.counted import counted

__all__ = ["CostMatrix"]

Cost = float | Floats

_ASK = 2  # beside 0 and 1, the answers
_ROUNDING = 4 * np.finfo(np.float64).eps  # of an expected cost, beside its two parts
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
    ask : float or ndarray, shape (m,), optional
        Cost of asking a person instead of deciding, what that person's own mistakes cost on average
        included. None: nobody can be asked.

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
    >>> CostMatrix(false_positive=1, false_negative=19, ask=0.5).asking_between.round(3)
    array([0.026, 0.5  ])
    """

    false_positive: Cost
    false_negative: Cost
    true_negative: Cost = 0.0
    true_positive: Cost = 0.0
    ask: Cost | None = None

    def __post_init__(self) -> None:
        lengths = {}
        for name in (field.name for field in fields(self)):
            if getattr(self, name) is None and name == "ask":
                continue
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
        table = _numbers("cost_matrix", cost)
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
        *cells, _ = np.broadcast_arrays(
            self.true_negative, self.false_positive, self.false_negative, self.true_positive,
            0.0 if self.ask is None else self.ask,
        )  # fmt: skip
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
        return float(share) if self.n_rows is None else np.broadcast_to(share, self.n_rows).copy()

    @property
    def asking_between(self) -> Floats | None:
        """Probabilities between which asking costs less than deciding, (2,), or (m, 2) by rows.

        Both are `threshold` where asking never does; None where nobody can be asked.
        """
        if self.ask is None:
            return None
        at_0, at_1 = np.moveaxis(self.array, (-2, -1), (0, 1))[..., None]  # (2, m or none, 1)
        ask = np.asarray(self.ask)[..., None]
        slope = at_1 - at_0
        with np.errstate(divide="ignore", invalid="ignore"):
            crossed = (ask - at_0) / slope
        lowest = np.where(slope > 0, crossed, 0.0).max(axis=0)
        highest = np.where(slope < 0, crossed, 1.0).min(axis=0)
        # The better answer is dearest at the threshold, or at an end: there asking pays, if at all.
        threshold = np.atleast_1d(self.threshold)
        dearest = np.zeros_like(threshold), threshold, np.ones_like(threshold)
        pays = np.any([self._least(p) == _ASK for p in dearest], axis=0)[:, None]
        pays = (pays if self.n_rows is not None else pays[0]) & (lowest < highest)
        found = np.concatenate([lowest, highest], axis=-1).clip(0, 1)
        return np.where(pays, found, np.asarray(self.threshold)[..., None])

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

    def incurred(
        self, positive: ArrayLike, decided: ArrayLike, asked: ArrayLike | None = None
    ) -> Floats:
        """What decisions have cost once the classes are known, shape (m,).

        Parameters
        ----------
        positive, decided : array_like of bool, shape (m,)
            Whether each row is positive, and whether it was decided positive.
        asked : array_like of bool, shape (m,), optional
            Rows of which a person was asked instead.

        Raises
        ------
        DataError
            For other values than true and false, or 1 and 0, or of another number of rows.

        Examples
        --------
        >>> from bootprob import CostMatrix
        >>> costs = CostMatrix(false_positive=1, false_negative=5)
        >>> costs.incurred(positive=[False, True, True], decided=[True, False, True])
        array([1., 5., 0.])
        """
        is_positive = _flags("positive", positive)
        n = len(is_positive)
        self._check_length(n)
        as_positive = _flags("decided", decided, n)
        wrong = np.where(is_positive, self.false_negative, self.false_positive)
        right = np.where(is_positive, self.true_positive, self.true_negative)
        cost = np.where(is_positive == as_positive, right, wrong)
        if asked is None:
            return cost
        if self.ask is None:
            raise DataError("Rows were asked about, and the costs do not say what that costs: ask.")
        return np.where(_flags("asked", asked, n), self.ask, cost)

    def decide(
        self,
        probability: ArrayLike,
        interval: ArrayLike | None = None,
        classes: ArrayLike = (False, True),
    ) -> Decisions:
        """Take the decision of least expected cost for each row; ties go to an answer, negative.

        Asking and an answer are tied, too, where only rounding tells their costs apart.

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
            For probabilities outside [0, 1] or NaN, bounds that do not fit them, other than two
            classes, or another number of rows than the costs have.

        Examples
        --------
        >>> from bootprob import CostMatrix
        >>> CostMatrix(false_positive=1, false_negative=5).decide([0.1, 0.5]).label
        array([False,  True])
        """
        p, labels = self._checked(probability), np.asarray(classes)
        if labels.shape != (2,):
            raise DataError(f"classes is {classes!r}; give two labels, the positive one last.")
        threshold = np.broadcast_to(self.threshold, p.shape)
        expected, taken = self._options(p), self._least(p)
        rows, positive = np.arange(len(p)), p > threshold
        other = np.where(np.arange(expected.shape[1]) == taken[:, None], np.inf, expected)
        second = other.argmin(axis=1)
        bounds: dict[str, Any] = {}
        if interval is not None:
            lower, upper = _checked_interval(interval, len(p)).T
            ends = np.stack([self._options(lower), self._options(upper)], axis=-1)
            ends.sort(axis=-1)  # a cost falls in p where the row had better be positive
            bounds = {
                "probability_interval": np.column_stack([lower, upper]),
                "cost_interval": ends[rows, taken],
                "other_cost_interval": ends[rows, second],
                # What each decision is the best of are intervals of probabilities.
                "stable": self._least(lower) == self._least(upper),
            }
        return Decisions(
            label=labels[positive.astype(int)],
            probability=p,
            threshold=threshold.copy(),
            cost=expected[rows, taken],
            other_cost=expected[rows, second],
            ask=None if self.ask is None else taken == _ASK,
            **bounds,
        )

    def take(self, rows: NDArray[Any] | slice) -> CostMatrix:
        """Costs of some rows, given by a mask, by indices or by a slice.

        Parameters
        ----------
        rows : ndarray of bool or int, or slice
            Which rows; without effect where the costs are the same for all.

        Examples
        --------
        >>> from bootprob import CostMatrix
        >>> CostMatrix(false_positive=1, false_negative=[5.0, 9.0, 2.0]).take([0, 2]).false_negative
        array([5., 2.])
        """
        if self.n_rows is None:
            return self
        ask = self.ask[rows] if isinstance(self.ask, np.ndarray) else self.ask
        return replace(CostMatrix.from_array(self.array[rows]), ask=ask)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CostMatrix) or (self.ask is None) != (other.ask is None):
            return False
        same = self.ask is None or np.array_equal(*np.broadcast_arrays(self.ask, other.ask))  # type: ignore[arg-type]
        return same and np.array_equal(self.array, other.array)

    __hash__ = None  # type: ignore[assignment]

    def _options(self, p: Floats) -> Floats:
        """Expected cost of "negative", "positive" and, where there is somebody, asking."""
        answers = self.expected(p)
        if self.ask is None:
            return answers
        return np.column_stack([answers, np.broadcast_to(self.ask, p.shape)])

    def _least(self, p: Floats) -> NDArray[np.intp]:
        """Position among these of the decision to take, shape (m,)."""
        taken = (p > self.threshold).astype(np.intp)
        if self.ask is None:
            return taken
        return np.where(self.ask < self._surely(p).min(axis=1), _ASK, taken)

    def _surely(self, p: Floats) -> Floats:
        """What the answers are expected to cost at least, whatever was rounded, shape (m, 2)."""
        of_negative, of_positive = np.abs(self.array[..., 0, :]), np.abs(self.array[..., 1, :])
        p = p[:, None]
        # Of p near 1 the last digit is many of those of 1 − p.
        rounded = _ROUNDING * of_negative * np.maximum(p, 1 - p) + _ROUNDING * of_positive * p
        return self.expected(p[:, 0]) - rounded

    def _checked(self, probability: ArrayLike) -> Floats:
        p = _numbers("probability", probability)
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


def _numbers(name: str, given: ArrayLike) -> Floats:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must hold numbers: {error}") from error


def _flags(name: str, given: ArrayLike, n: int | None = None) -> Bools:
    values = _numbers(name, given)
    if values.ndim != 1 or not np.isin(values, (0, 1)).all():
        raise DataError(f"{name} must be true or false, or 1 or 0, for each row.")
    if n is not None and len(values) != n:
        raise DataError(f"{name} has {counted(len(values), 'row')}, and positive has {n}.")
    return values == 1


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
    bounds = _numbers("interval", interval)
    if bounds.shape != (n, 2):
        raise DataError(
            f"interval has the shape {bounds.shape}; give a lower and an upper bound "
            f"for each of {counted(n, 'row')}, ({n}, 2)."
        )
    if not (bounds[:, 0] <= bounds[:, 1]).all():
        raise DataError("interval has lower bounds above the upper ones, or NaN.")
    return bounds.clip(0, 1)
