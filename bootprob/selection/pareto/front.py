"""The Pareto front of margin and cost, as found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bootprob.optimization.search_result import Found
from bootprob.runtime.arrays import Floats
from bootprob.selection.pareto.margin import Rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ParetoFront", "ParetoPoint", "supported", "undominated"]


_NEAR = 0.06  # of the range of costs, as wide as a number


@dataclass(frozen=True, eq=False)
class ParetoPoint:
    """A rule that no other one beats in both margin and cost.

    Attributes
    ----------
    cost : float
        Of measuring its columns.
    margin : float
        Of the training rows, as `ParetoSVC` was told to measure it: soft or hard.
    bound : float
        No rule that costs as little has a larger margin.
    features : tuple of int
        Columns that it needs, ascending; none in the rule that always says the largest class.
    rule : Rule
        Its score functions on the standardised products of columns.
    status : {"optimal", "time limit", "heuristic"}
        "optimal": no rule that costs as little has a larger margin. Otherwise whether a program
        found it, and ran out of time, or none did.
    seconds : float
        Since the search began.
    supported : bool
        Whether it is a vertex of the convex hull of all points: the best for some weights in (30).
    training_accuracy : float
        Share of the training rows that it gets right.
    cv_accuracy : float
        Share of the rows that it gets right when its coefficients, but not its columns, are found
        without them; NaN where there are no folds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob.selection import ParetoSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = ParetoSVC(budget=2).fit(X[::2], y[::2])
    >>> point = model.front_.points[1]
    >>> point.cost, point.features, point.status
    (1.0, (3,), 'optimal')
    >>> bool(0.9 < point.cv_accuracy < 1)
    True
    """

    cost: float
    margin: float
    bound: float
    features: tuple[int, ...]
    rule: Rule
    status: str
    seconds: float
    supported: bool = False
    training_accuracy: float = np.nan
    cv_accuracy: float = np.nan

    @property
    def gap(self) -> float:
        """Distance of margin and bound, relative to the larger of 1e-12 and the margin."""
        return abs(self.bound - self.margin) / max(abs(self.margin), 1e-12)


@dataclass(frozen=True)
class ParetoFront:
    """Result of a search for all rules that are worth choosing from.

    Attributes
    ----------
    points : tuple of ParetoPoint
        By cost, ascending, and so by margin.
    status : {"optimal", "time limit"}
        "optimal": these are all of them, or all that were asked for.
    seconds : float
        Of the whole search.
    n_programs : int
        Mixed-integer programs solved.
    path : tuple of Found
        Every rule found, in that order; those that turned out to be dominated, too.
    unproven : tuple of (float, float)
        Costs, above the first number and up to the second, at which rules may be missing and those
        that are there may not be the best. Everywhere else the front is complete; empty if it is
        "optimal".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob.selection import ParetoSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = ParetoSVC(budget=2).fit(X[::2], y[::2])
    >>> front = model.front_
    >>> front.status, front.costs.tolist(), [point.features for point in front.points]
    ('optimal', [0.0, 1.0, 2.0], [(), (3,), (2, 3)])
    >>> bool((front.margins[1:] > front.margins[:-1]).all())  # who pays more gets more
    True
    """

    points: tuple[ParetoPoint, ...]
    status: str
    seconds: float
    n_programs: int
    path: tuple[Found, ...]
    unproven: tuple[tuple[float, float], ...] = ()

    @property
    def costs(self) -> Floats:
        """Cost of each point."""
        return np.array([point.cost for point in self.points])

    @property
    def margins(self) -> Floats:
        """Margin of each point."""
        return np.array([point.margin for point in self.points])

    @property
    def training_accuracies(self) -> Floats:
        """Share of the training rows that each point gets right."""
        return np.array([point.training_accuracy for point in self.points])

    @property
    def cv_accuracies(self) -> Floats:
        """Share of the rows that each point gets right in cross-validation."""
        return np.array([point.cv_accuracy for point in self.points])

    def plot(self, chosen: int | None = None, figure: Figure | None = None) -> Figure:
        """Draw margin and accuracy against cost; each point is marked with its number.

        Parameters
        ----------
        chosen : int, optional
            A point to mark.
        figure : matplotlib Figure, optional
            Where to draw; default a new one.

        Returns
        -------
        Figure

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.selection import ParetoSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = ParetoSVC(budget=2).fit(X[::2], y[::2])
        >>> left, right = model.front_.plot(chosen=1).axes
        >>> left.get_ylabel(), right.get_ylabel()
        ('margin', 'share of rows right')
        """
        if figure is None:
            from matplotlib.figure import Figure

            figure = Figure(figsize=(9, 4), layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True)
        costs = self.costs
        left.step(costs, self.margins, where="post", color="0.8", zorder=0)
        for label, of_kind in (("supported", True), ("other", False)):
            some = np.array([point.supported == of_kind for point in self.points])
            if some.any():
                fill = "C0" if of_kind else "white"
                left.plot(
                    costs[some],
                    self.margins[some],
                    "o",
                    color="C0",
                    markerfacecolor=fill,
                    label=label,
                )
        for place, (low, high) in enumerate(self.unproven):
            shade = left.axvspan(low, high, color="0.94", zorder=-1)
            if place == 0:
                shade.set_label("not proven")
        below = False
        for number, point in enumerate(self.points):
            # Above the stairs, but every second one of points close to each other below them.
            near = number > 0 and point.cost - costs[number - 1] < _NEAR * np.ptp(costs)
            below = near and not below
            left.annotate(
                str(number),
                (point.cost, point.margin),
                (4, -12) if below else (-4, 4),
                textcoords="offset points",
                horizontalalignment="left" if below else "right",
            )
        left.margins(0.08)
        shown = {"training rows": self.training_accuracies, "cross-validated": self.cv_accuracies}
        for label, accuracies in shown.items():
            if np.isfinite(accuracies).any():
                right.plot(costs, accuracies, marker=".", label=label)
        if chosen is not None:
            point = self.points[chosen]
            left.plot(point.cost, point.margin, "o", color="C3", fillstyle="none", ms=13)
            right.axvline(point.cost, color="C3", linewidth=0.8)
        left.set_ylabel("margin")
        right.set_ylabel("share of rows right")
        for axes in (left, right):
            axes.set_xlabel("cost of measuring")
            axes.legend(frameon=False, loc="lower right")  # "best" is slow
        return figure


def undominated(points: Sequence[ParetoPoint], tolerance: float) -> list[ParetoPoint]:
    """Points whose margin exceeds that of all cheaper ones by more than a tolerance, by cost."""
    kept: list[ParetoPoint] = []
    for point in sorted(points, key=lambda point: (point.cost, -point.margin)):
        if not kept or point.margin > kept[-1].margin + tolerance:
            kept.append(point)
    return kept


def supported(points: Sequence[ParetoPoint], tolerance: float) -> list[bool]:
    """Which points of a front, by cost, are vertices of its upper convex hull.

    A point has to lie above the line between its neighbours by `tolerance` of margin.
    """
    hull: list[int] = []
    for place, point in enumerate(points):
        while len(hull) > 1:
            first, last = points[hull[-2]], points[hull[-1]]
            share = (last.cost - first.cost) / (point.cost - first.cost)
            line = first.margin + share * (point.margin - first.margin)
            if last.margin > line + tolerance:
                break
            hull.pop()
        hull.append(place)
    return [place in hull for place in range(len(points))]
