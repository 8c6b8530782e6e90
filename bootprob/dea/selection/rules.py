"""Rules on which outputs may be chosen together: costs, clusters, correlation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from bootprob.dea.panel import Panel, require_panel
from bootprob.dea.panel_tables import by_name
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["InfeasibleSelectionError", "SelectionRules"]


_ROUNDING = 1e-9  # relative, of sums of costs


class InfeasibleSelectionError(DataError):
    """No selection meets the rules."""


@dataclass(frozen=True)
class SelectionRules:
    """Linear rules on the zero-one vector z of chosen outputs, and pairs that exclude each other.

    Attributes
    ----------
    rows : ndarray, shape (L, M)
        A row for each linear rule, over the M outputs.
    limits : ndarray, shape (L,)
        ``rows z ≤ limits``: the budget (5.10), then clusters' maxima (5.11) and minima (5.12).
    clashes : ndarray of bool, shape (M, M)
        Symmetric; pairs of which at most one may be chosen, (5.13).

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import SelectionRules
    >>> rules = SelectionRules.of(toy, costs=[3, 1, 1], budget=3)
    >>> rules.rows.tolist(), rules.limits.round(3).tolist()  # 3 z₁ + z₂ + z₃ ≤ 3
    ([[3.0, 1.0, 1.0]], [3.0])
    >>> rules.trivial, rules.hereditary
    (False, True)
    """

    rows: Floats
    limits: Floats
    clashes: Bools

    @classmethod
    def of(
        cls,
        panel: Panel,
        *,
        costs: Any = None,
        budget: float | None = None,
        clusters: Mapping[str, Iterable[int | str]] | Sequence[Any] | None = None,
        cluster_min: int | Mapping[str, int] | None = None,
        cluster_max: int | Mapping[str, int] | None = None,
        max_correlation: float | None = None,
    ) -> Self:
        """Make the rules of costs, clusters and correlations, and check what was given.

        Parameters
        ----------
        panel : Panel
            The units with what they use and make.
        costs : array_like of shape (M,), or dict or named Series of output to float, optional
            c of (5.10); outputs that a dict lacks cost nothing. Default 1 each.
        budget : float, optional
            C of (5.10).
        clusters : dict of str to outputs, or sequence of M labels, optional
            H of (5.11): members by position or name; an output is in one cluster at most. A Series
            has the label of each output that its index names.
        cluster_min, cluster_max : int or dict of str to int, optional
            How many are chosen of every cluster, or of those named, at least and at most.
        max_correlation : float, optional
            Outputs whose correlation over the units exceeds it are not chosen together, (5.13).
            A constant output is correlated with none.

        Returns
        -------
        SelectionRules

        Raises
        ------
        DataError
            Something is unknown, no number, or given without what it belongs to.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import SelectionRules
        >>> groups = {"care": ["output 1", "output 2"], "research": ["output 3"]}
        >>> rules = SelectionRules.of(toy, clusters=groups, cluster_max={"care": 1})
        >>> rules.allows([0, 1]), rules.allows([0, 2])
        (False, True)
        """
        require_panel(panel)
        m = panel.n_outputs
        rows: list[Floats] = []
        limits: list[float] = []
        if costs is not None and budget is None:
            raise DataError("costs are given without a budget (--budget); give both.")
        if budget is not None:
            paid = _costs(costs, panel)
            if not isinstance(budget, Real) or isinstance(budget, bool) or not budget >= 0:
                raise DataError(f"budget is {budget!r}; give 0 or a positive number.")
            if np.isfinite(budget):
                rows.append(paid)
                limits.append(float(budget) * (1 + _ROUNDING))
        if clusters is None and (cluster_min is not None or cluster_max is not None):
            raise DataError("cluster_min and cluster_max need clusters.")
        members = {} if clusters is None else _clusters(clusters, panel)
        for counts, sign in ((cluster_max, 1.0), (cluster_min, -1.0)):
            for name, count in _counts(counts, list(members)).items():
                row = np.zeros(m)
                row[members[name]] = sign
                rows.append(row)
                limits.append(sign * count)
        clashes = np.zeros((m, m), dtype=bool)
        if max_correlation is not None:
            if (
                not isinstance(max_correlation, Real)
                or isinstance(max_correlation, bool)
                or not -1 <= max_correlation <= 1
            ):
                raise DataError(
                    f"max_correlation is {max_correlation!r}; give a number from -1 to 1."
                )
            clashes = correlation(panel.outputs) > max_correlation
            np.fill_diagonal(clashes, False)
        return cls(np.array(rows).reshape(-1, m), np.array(limits), clashes)

    @property
    def trivial(self) -> bool:
        """Whether every subset is allowed."""
        return not len(self.rows) and not self.clashes.any()

    @property
    def hereditary(self) -> bool:
        """Whether part of an allowed selection is allowed: no cluster has a minimum."""
        return bool((self.rows >= 0).all())

    def allows(self, chosen: Sequence[int]) -> bool:
        """Whether a selection keeps all rules.

        Parameters
        ----------
        chosen : sequence of int
            Positions of the outputs selected.

        Returns
        -------
        bool

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import SelectionRules
        >>> rules = SelectionRules.of(toy, costs=[3, 1, 1], budget=3)
        >>> rules.allows([0]), rules.allows([0, 1]), rules.allows([1, 2])
        (True, False, True)
        """
        chosen = list(chosen)
        held = (self.rows[:, chosen].sum(axis=1) <= self.limits + _ROUNDING).all()
        return bool(held) and not self.clashes[np.ix_(chosen, chosen)].any()

    def completion(self, chosen: Sequence[int], size: int) -> tuple[int, ...] | None:
        """Some allowed selection of `size` outputs that holds those chosen; None if there is none.

        Parameters
        ----------
        chosen : sequence of int
            Positions of outputs that have to be among them.
        size : int
            p.

        Returns
        -------
        tuple of int or None

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import SelectionRules
        >>> rules = SelectionRules.of(toy, costs=[3, 1, 1], budget=3)
        >>> rules.completion([1], 2)
        (1, 2)
        >>> rules.completion([0], 2) is None  # the first output takes the whole budget
        True
        """
        m = self.clashes.shape[0]
        if self.trivial:
            others = [j for j in range(m) if j not in chosen]
            return (*chosen, *others[: size - len(chosen)]) if size <= m else None
        from scipy.optimize import Bounds, LinearConstraint, milp

        pairs = np.argwhere(np.triu(self.clashes))
        apart = np.zeros((len(pairs), m))
        apart[np.arange(len(pairs))[:, None], pairs] = 1.0
        table = np.concatenate([np.ones((1, m)), self.rows, apart])
        upper = np.concatenate([[size], self.limits, np.ones(len(pairs))])
        lower = np.full(len(table), -np.inf)
        lower[0] = size
        held = np.zeros(m)
        held[list(chosen)] = 1.0
        found = milp(
            np.zeros(m),
            integrality=np.ones(m, dtype=np.int64),
            bounds=Bounds(held, np.ones(m)),
            constraints=LinearConstraint(table, lower, upper),
        )
        if found.x is None:
            return None
        return tuple(np.flatnonzero(found.x > 0.5).tolist())

    def require(self, size: int) -> tuple[int, ...]:
        """Some selection of p outputs that keeps all rules.

        Parameters
        ----------
        size : int
            p.

        Returns
        -------
        tuple of int
            Positions of p outputs that keep all rules.

        Raises
        ------
        InfeasibleSelectionError
            There is none.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import SelectionRules
        >>> rules = SelectionRules.of(toy, costs=[3, 1, 1], budget=3)
        >>> rules.require(2)
        (1, 2)
        >>> rules.require(3)
        Traceback (most recent call last):
            ...
        bootprob.dea.selection.rules.InfeasibleSelectionError: No 3 of the 3 outputs keep...
        """
        some = self.completion((), size)
        if some is None:
            raise InfeasibleSelectionError(
                f"No {size} of the {len(self.clashes)} outputs keep all the rules. Raise the "
                "budget, the clusters' maxima or max_correlation, lower the clusters' minima, or "
                "choose another number of outputs."
            )
        return some

    def program(self, z: Any) -> list[Any]:
        """The rules as constraints of CVXPY, for mixed-integer programs of one's own.

        Parameters
        ----------
        z : cvxpy.Variable, shape (M,)
            1 for an output that is chosen, else 0.

        Returns
        -------
        list of cvxpy constraints
            One for all linear rules, one for all pairs; none where every subset is allowed.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> import cvxpy as cp
        >>> from bootprob.dea import SelectionRules
        >>> z = cp.Variable(3, boolean=True)
        >>> len(SelectionRules.of(toy, costs=[3, 1, 1], budget=3).program(z))  # the budget
        1
        """
        constraints = [self.rows @ z <= self.limits] if len(self.rows) else []
        first, second = np.nonzero(np.triu(self.clashes))
        if len(first):
            constraints.append(z[first] + z[second] <= 1)
        return constraints


def correlation(outputs: Floats) -> Floats:
    """Correlation matrix of the columns, shape (M, M); 0 for constant columns."""
    centred = outputs - outputs.mean(axis=0)
    spread = np.abs(outputs).max(axis=0)
    norm = np.sqrt(np.square(centred / np.where(spread > 0, spread, 1)).sum(axis=0)) * spread
    constant = norm <= 1e-12 * np.maximum(spread, 1e-300)
    unit = np.where(constant, 0.0, centred / np.where(constant, 1.0, norm))
    return unit.T @ unit


def _costs(costs: Any, panel: Panel) -> Floats:
    costs = by_name(costs, "costs")
    if costs is not None and (isinstance(costs, (str, bytes)) or not hasattr(costs, "__iter__")):
        raise DataError(f"costs is {costs!r}; give a number for each output.")
    if isinstance(costs, Mapping):
        values = np.zeros(panel.n_outputs)
        given = list(costs.values())
        values_at = panel.positions("outputs", list(costs))
    else:
        values = np.ones(panel.n_outputs)
        given = [1.0] * panel.n_outputs if costs is None else list(costs)
        values_at = list(range(panel.n_outputs))
    try:
        numbers = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise DataError("costs are no numbers; give one for each output.") from None
    if numbers.shape != (len(values_at),):
        raise DataError(
            f"costs have the shape {numbers.shape}; give one for each of {panel.n_outputs} outputs."
        )
    unusable = ~(np.isfinite(numbers) & (numbers >= 0))
    if unusable.any():
        k = int(unusable.argmax())
        name = panel.output_names[values_at[k]]
        raise DataError(f"The cost of {name!r} is {numbers[k]:g}; give 0 or a positive number.")
    values[values_at] = numbers
    return values


def _clusters(clusters: Any, panel: Panel) -> dict[str, list[int]]:
    if isinstance(clusters, Mapping):
        members = {
            str(name): panel.positions("outputs", outputs) for name, outputs in clusters.items()
        }
    else:
        labels = None
        named = by_name(clusters, "clusters")
        if isinstance(named, Mapping):
            panel.positions("outputs", list(named))  # all are outputs
            labels = [named[name] for name in panel.output_names if name in named]
        elif not isinstance(clusters, (str, bytes)) and hasattr(clusters, "__iter__"):
            labels = list(clusters)
        if labels is None or len(labels) != panel.n_outputs:
            raise DataError(
                f"clusters is {clusters!r}; give a label for each of the {panel.n_outputs} "
                "outputs, or a dict of names to outputs."
            )
        members = {}
        for position, label in enumerate(labels):
            members.setdefault(str(label), []).append(position)
    everyone = [position for positions in members.values() for position in positions]
    twice = sorted({position for position in everyone if everyone.count(position) > 1})
    if twice:
        raise DataError(
            f"Output {panel.output_names[twice[0]]!r} is in more than one cluster, or twice in "
            "one; clusters do not overlap."
        )
    return members


def _counts(counts: Any, names: list[str]) -> dict[str, int]:
    if counts is None:
        return {}
    named = dict.fromkeys(names, counts)
    if isinstance(counts, Mapping):
        named = {str(name): count for name, count in counts.items()}
    for name, count in named.items():
        if name not in names:
            raise DataError(f"There is no cluster {name!r}; there are {', '.join(names)}.")
        if not isinstance(count, Integral) or isinstance(count, bool) or count < 0:
            raise DataError(f"The number for cluster {name!r} is {count!r}; give 0, 1, 2, ….")
    return named
