"""What it costs to measure columns: each by itself, and some together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

__all__ = ["FeatureCosts"]

_ROUNDING = 1e-9  # of a sum of costs


@dataclass(frozen=True)
class FeatureCosts:
    """Costs of columns, and of groups that are paid once, whoever of the group is measured.

    Attributes
    ----------
    own : ndarray, shape (p,)
        Cost of each column by itself.
    groups : tuple of (ndarray of bool of shape (p,), float)
        Columns that share a cost, such as those of one blood sample, and that cost.

    Examples
    --------
    >>> from bootprob.selection import FeatureCosts
    >>> costs = FeatureCosts.of([1, 2, 5], [([1, 2], 10)], 3)  # the last two share a blood sample
    >>> costs.own.tolist(), costs.total([1]), costs.total([1, 2])
    ([1.0, 2.0, 5.0], 12.0, 17.0)
    """

    own: Floats
    groups: tuple[tuple[NDArray[np.bool_], float], ...] = ()

    @classmethod
    def of(
        cls,
        costs: ArrayLike | Mapping[str, float] | None,
        shared_costs: Iterable[tuple[Sequence[int | str], float]] | None,
        n_features: int,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Make the costs of p columns, and check what was given.

        Parameters
        ----------
        costs : array_like of shape (p,), dict of str to float, or None
            None: 1 each. A dict names columns, as the index of a Series does, unless it counts
            them; those that it lacks cost nothing of their own.
        shared_costs : iterable of (columns, float), optional
            Columns by position or name, and what is paid once for any of them.
        n_features : int
            p.
        names : sequence of str, optional
            Of the columns, where they have any.

        Returns
        -------
        FeatureCosts

        Raises
        ------
        DataError
            A cost is negative or no number, or a column is unknown.

        Examples
        --------
        >>> from bootprob.selection import FeatureCosts
        >>> costs = FeatureCosts.of({"scan": 40}, None, 2, ["age", "scan"])
        >>> costs.own.tolist()  # to ask for the age is free
        [0.0, 40.0]
        """
        own, costs = np.zeros(n_features), _by_name(costs)
        if costs is None:
            own[:] = 1.0
        elif isinstance(costs, Mapping):
            for column, cost in costs.items():
                own[_position(column, n_features, names)] = _number(cost, column)
        else:
            given = np.asarray(costs, dtype=object)
            if given.shape != (n_features,):
                raise DataError(
                    f"costs has the shape {given.shape}; give one for each of {n_features} columns."
                )
            own[:] = [_number(cost, column) for column, cost in enumerate(given)]
        groups = []
        for each in shared_costs or ():
            columns, cost = _columns_and_cost(each)
            members = np.zeros(n_features, dtype=bool)
            members[[_position(column, n_features, names) for column in columns]] = True
            groups.append((members, _number(cost, columns)))
        return cls(own, tuple(groups))

    @classmethod
    def stated_by(cls, selector: Any) -> Self:
        """By the parameters of an estimator, for the columns that it has seen.

        Parameters
        ----------
        selector : estimator
            With the parameters that state costs, fitted to columns.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.selection import CostSensitiveSelector, FeatureCosts
        >>> X, y = load_iris(return_X_y=True)
        >>> selector = CostSensitiveSelector({"tpr": 0.9, "tnr": 0.9}, costs=[1, 1, 2, 2])
        >>> FeatureCosts.stated_by(selector.fit(X[50:], y[50:])).own.tolist()
        [1.0, 1.0, 2.0, 2.0]
        """
        names = list(getattr(selector, "feature_names_in_", [])) or None
        return cls.of(selector.costs, selector.shared_costs, selector.n_features_in_, names)

    def total(self, features: Sequence[int]) -> float:
        """What it costs to measure some columns, by position.

        Parameters
        ----------
        features : sequence of int
            Their positions.

        Returns
        -------
        float

        Raises
        ------
        DataError
            There is no such column.

        Examples
        --------
        >>> from bootprob.selection import FeatureCosts
        >>> costs = FeatureCosts.of(None, [([1, 2], 10)], 3)  # 10 for either of two, or both
        >>> costs.total([]), costs.total([0]), costs.total([0, 1, 2])
        (0.0, 1.0, 13.0)
        """
        chosen = sorted(set(features))
        if chosen and not 0 <= chosen[0] <= chosen[-1] < len(self.own):
            raise DataError(f"features are {chosen}; there are {len(self.own)}, counted from 0.")
        shared = (cost for members, cost in self.groups if members[chosen].any())
        return float(self.own[chosen].sum() + sum(shared))

    def affordable(self, features: Sequence[int], budget: float) -> bool:
        """Whether some columns, by position, cost no more than a budget; sums of costs round.

        Parameters
        ----------
        features : sequence of int
            Their positions.
        budget : float
            In the unit of the costs.

        Returns
        -------
        bool

        Examples
        --------
        >>> from bootprob.selection import FeatureCosts
        >>> FeatureCosts.of([0.1, 0.2], None, 2).affordable([0, 1], 0.3)  # .1 + .2 > .3
        True
        """
        return affordable(self.total(features), budget)


def affordable(cost: float, budget: float) -> bool:
    """Whether a sum of costs, which rounds, is no more than a budget."""
    return cost <= budget + _ROUNDING * max(1.0, abs(budget))


def _by_name(costs: Any) -> Any:
    """A Series as a dict, by its index, unless that counts from 0; anything else as it is."""
    if not hasattr(costs, "iloc") or hasattr(costs, "columns"):
        return costs
    index = costs.index
    if list(index) == list(range(len(costs))):
        return costs
    if not index.is_unique:
        twice = index[index.duplicated()][0]
        raise DataError(f"The index of costs has {twice!r} twice; give each column one cost.")
    return dict(zip(index, costs.tolist(), strict=True))


def _columns_and_cost(given: Any) -> tuple[list[Any], Any]:
    """An entry of `shared_costs`."""
    try:
        columns, cost = given
        if isinstance(columns, str):
            raise TypeError
        return list(columns), cost
    except (TypeError, ValueError):
        raise DataError(
            f"shared_costs has {given!r}; give pairs of columns and a cost, such as ([0, 2], 10)."
        ) from None


def _number(cost: Any, column: Any) -> float:
    try:
        value = float(cost)
    except (TypeError, ValueError):
        raise DataError(f"The cost of {column!r} is {cost!r}, which is no number.") from None
    if not (np.isfinite(value) and value >= 0):
        raise DataError(f"The cost of {column!r} is {value:g}; give 0 or a positive number.")
    return value


def _position(column: Any, n_features: int, names: Sequence[str] | None) -> int:
    if isinstance(column, str):
        if names is None or column not in names:
            raise DataError(f"There is no column {column!r} to have a cost.")
        return list(names).index(column)
    if isinstance(column, bool) or not isinstance(column, Integral):
        raise DataError(f"{column!r} is no column; give positions from 0 on, or names.")
    if not 0 <= int(column) < n_features:
        raise DataError(f"There is no column {column}; they go from 0 to {n_features - 1}.")
    return int(column)
