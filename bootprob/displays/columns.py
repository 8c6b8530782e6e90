"""What columns do to probabilities: contributions to that of a row, curves, and importance."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bootprob.displays.style import COLORS, Display, percent_axis
from bootprob.exceptions import DataError
from bootprob.explanation import (
    Contributions,
    PartialDependence,
    PermutationImportance,
    contributions,
    partial_dependence,
    permutation_importance,
)
from bootprob.explanation.row_values import METRICS
from bootprob.runtime.whole_numbers import checked_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["ContributionsDisplay", "ImportanceDisplay", "PartialDependenceDisplay"]


class ContributionsDisplay(Display):
    """Contributions of the columns to the log-odds of one row, with intervals.

    Parameters
    ----------
    found : Contributions
        From `bootprob.explanation.contributions`.
    row : int, default 0
        Which of its rows.
    n_columns : int, default 12
        Those that contribute most.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from matplotlib.figure import Figure
    >>> from bootprob.displays import ContributionsDisplay
    >>> from bootprob.explanation import contributions
    >>> found = contributions(model, X[:2])  # of two rows
    >>> display = ContributionsDisplay(found, row=1, n_columns=3).plot(Figure().subplots())
    >>> display.ax_.get_xlabel()
    'contribution to the log-odds'
    """

    def __init__(self, found: Contributions, row: int = 0, n_columns: int = 12) -> None:
        n = len(found.contribution)
        if not isinstance(row, Integral) or not -n <= int(row) < n:
            raise DataError(f"row is {row!r}; there are {n}, counted from 0.")
        self.found: Contributions = found
        self.row: int = int(row)
        self.n_columns: int = checked_whole("n_columns", n_columns, 1)

    @classmethod
    def from_estimator(
        cls,
        estimator: BootstrapSVC | TableModel,
        X: ArrayLike,
        background: ArrayLike | None = None,
        *,
        n_columns: int = 12,
        level: float = 0.95,
        label: Any = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the first of some rows.

        Parameters
        ----------
        estimator, X, background, level, label
            As for `bootprob.explanation.contributions`.
        n_columns : int, default 12
            How many, the most telling ones.
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.hlines`.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from bootprob.displays import ContributionsDisplay
        >>> display = ContributionsDisplay.from_estimator(model, X[:1], ax=Figure().subplots())
        >>> display.figure_.savefig("contributions.png")  # doctest: +SKIP
        """
        first = X[:1]  # type: ignore[index]
        found = contributions(estimator, first, background, level=level, label=label)
        return cls(found, n_columns=n_columns).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.hlines`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from matplotlib.figure import Figure
        >>> from bootprob.displays import ContributionsDisplay
        >>> from bootprob.explanation import contributions
        >>> display = ContributionsDisplay(contributions(model, X[:1]))
        >>> left, right = Figure().subplots(ncols=2)  # plot into axes of your own
        >>> display.plot(right, linewidth=3).ax_ is right
        True
        """
        ax, value = self._on(ax), self.found.contribution[self.row]
        order = np.argsort(-np.abs(value), kind="stable")[: self.n_columns][::-1]
        colours = [COLORS["positive" if value[k] > 0 else "negative"] for k in order]
        lower, upper = self.found.interval[self.row, order].T
        height = np.arange(len(order))
        ax.axvline(0, color=COLORS["ink"], linewidth=0.8)
        style: dict[str, Any] = {"color": colours, "linewidth": 1.6} | kwargs
        ax.hlines(height, lower, upper, **style)
        ax.scatter(value[order], height, color=colours, s=22, zorder=3)
        ax.set_yticks(height, [self.found.columns[k] for k in order])
        ax.set_xlabel("contribution to the log-odds")
        ax.set_title(f"probability {self.found.probability[self.row]:.3g}", loc="left")
        return self


class PartialDependenceDisplay(Display):
    """Probability by the value of a column, with a band.

    Parameters
    ----------
    found : PartialDependence
        From `bootprob.explanation.partial_dependence`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from matplotlib.figure import Figure
    >>> from bootprob.displays import PartialDependenceDisplay
    >>> from bootprob.explanation import partial_dependence
    >>> found = partial_dependence(model, 3, X[:20], n_values=5)
    >>> display = PartialDependenceDisplay(found).plot(Figure().subplots())
    >>> display.ax_.get_ylabel()
    'probability'
    """

    def __init__(self, found: PartialDependence) -> None:
        self.found = found

    @classmethod
    def from_estimator(
        cls,
        estimator: BootstrapSVC | TableModel,
        column: str | int,
        background: ArrayLike | None = None,
        *,
        level: float = 0.95,
        label: Any = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a column of a fitted model.

        Parameters
        ----------
        estimator, column, background, level, label
            As for `bootprob.explanation.partial_dependence`.
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.plot`; of levels, for `Axes.errorbar`.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from bootprob.displays import PartialDependenceDisplay
        >>> ax = Figure().subplots()
        >>> display = PartialDependenceDisplay.from_estimator(model, 2, X[:20], ax=ax)
        >>> display.figure_.savefig("petal_length.png")  # doctest: +SKIP
        """
        found = partial_dependence(estimator, column, background, level=level, label=label)
        return cls(found).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.plot`; of levels, for `Axes.errorbar`.

        Examples
        --------
        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from bootprob.displays import PartialDependenceDisplay
        >>> from bootprob.explanation import PartialDependence
        >>> bounds = np.array([[-2.0, 0.0], [0.5, 1.5]])  # of the log-odds at ages 30 and 60
        >>> found = PartialDependence("age", np.array([30, 60]), np.array([-1.0, 1.0]), bounds)
        >>> PartialDependenceDisplay(found).plot(Figure().subplots()).ax_.get_xlabel()
        'age'
        """
        ax, found = self._on(ax), self.found
        style: dict[str, Any] = {"color": COLORS["ink"]} | kwargs
        p, (lower, upper) = found.probability, found.probability_interval.T
        if found.values.dtype == object:  # levels
            height = np.arange(len(p))
            sides = [p - lower, upper - p]
            ax.errorbar(height, p, yerr=sides, linestyle="none", marker="o", **style)
            ax.set_xticks(height, [str(value) for value in found.values])
        else:
            ax.plot(found.values, p, **style)
            band: dict[str, Any] = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
            ax.fill_between(found.values, lower, upper, **band)
        ax.set(xlabel=found.column, ylabel="probability", ylim=(-0.03, 1.03))
        ax.yaxis.set_major_formatter(percent_axis(0))
        return self


class ImportanceDisplay(Display):
    """How much worse probabilities become when a column is permuted, with intervals.

    Parameters
    ----------
    found : PermutationImportance
        From `bootprob.explanation.permutation_importance`.
    n_columns : int, default 12
        The most important ones.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from matplotlib.figure import Figure
    >>> from bootprob.displays import ImportanceDisplay
    >>> from bootprob.explanation import permutation_importance
    >>> found = permutation_importance(model, X, y, n_repeats=2)
    >>> display = ImportanceDisplay(found, n_columns=2).plot(Figure().subplots())
    >>> len(display.ax_.get_yticks())  # the two most important of four columns
    2
    """

    def __init__(self, found: PermutationImportance, n_columns: int = 12) -> None:
        self.found, self.n_columns = found, checked_whole("n_columns", n_columns, 1)

    @classmethod
    def from_estimator(
        cls,
        estimator: BootstrapSVC | TableModel,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        held_out: bool = False,
        metric: str = "log_loss",
        n_columns: int = 12,
        level: float = 0.95,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the columns of a fitted model.

        Parameters
        ----------
        estimator, X, y, held_out, metric, level
            As for `bootprob.explanation.permutation_importance`.
        n_columns : int, default 12
            How many, the most telling ones.
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.hlines`.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from bootprob.displays import ImportanceDisplay
        >>> display = ImportanceDisplay.from_estimator(model, X, y, ax=Figure().subplots())
        >>> display.figure_.savefig("importance.png")  # doctest: +SKIP
        """
        found = permutation_importance(
            estimator, X, y, held_out=held_out, metric=metric, level=level
        )
        return cls(found, n_columns).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.hlines`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from matplotlib.figure import Figure
        >>> from bootprob.displays import ImportanceDisplay
        >>> from bootprob.explanation import permutation_importance
        >>> display = ImportanceDisplay(permutation_importance(model, X, y, n_repeats=2))
        >>> display.plot(Figure().subplots(), color="teal").ax_.get_xlabel()
        'rise of the log-loss'
        """
        ax, found = self._on(ax), self.found
        shown = found.to_frame()[: self.n_columns][::-1]
        height = np.arange(len(shown))
        sure = (shown["lower"] > 0).to_numpy()
        ax.axvline(0, color=COLORS["ink"], linewidth=0.8)
        style: dict[str, Any] = {"color": COLORS["ink"], "linewidth": 1.6} | kwargs
        ax.hlines(height, shown["lower"], shown["upper"], **style)
        for members, inside in ((sure, style["color"]), (~sure, "white")):
            points: dict[str, Any] = {"color": inside, "edgecolors": style["color"]}
            ax.scatter(shown["importance"][members], height[members], s=22, zorder=3, **points)
        ax.set_yticks(height, shown["column"].tolist())
        metric = METRICS[found.metric]
        ax.set_xlabel(f"{'fall' if metric.better > 0 else 'rise'} of the {metric.label}")
        return self
