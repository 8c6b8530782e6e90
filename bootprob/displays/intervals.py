"""Probabilities of rows with their intervals."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.displays.style import COLORS, Display, percent_axis, positives, rows_of
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["IntervalDisplay"]


class IntervalDisplay(Display):
    """Rows in the order of their probability, each with its interval.

    Parameters
    ----------
    probability : ndarray, shape (m,)
        Of the positive class.
    interval : ndarray, shape (m, 2)
        Lower and upper bounds.
    positive : ndarray of bool, shape (m,), optional
        Rows that are of the positive class in truth, which are coloured.
    threshold : float, default 0.5
        Probability above which the positive class is said.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from bootprob.displays import IntervalDisplay
    >>> interval = np.array([[0.1, 0.4], [0.5, 0.8]])
    >>> display = IntervalDisplay(np.array([0.2, 0.7]), interval, threshold=0.3)
    >>> display.plot(Figure().subplots()).ax_.get_ylabel()
    'rows'
    """

    def __init__(
        self,
        probability: Floats,
        interval: Floats,
        positive: NDArray[np.bool_] | None = None,
        threshold: float = 0.5,
    ) -> None:
        self.probability, self.interval = probability, interval
        self.positive, self.threshold = positive, threshold

    @classmethod
    def from_estimator(
        cls,
        estimator: BootstrapSVC | TableModel,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        level: float = 0.95,
        method: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw rows of a fitted model.

        Parameters
        ----------
        estimator : BootstrapSVC or TableModel
            Fitted to two classes.
        X : array_like, shape (m, p)
            Rows.
        y : array_like, shape (m,), optional
            Their classes.
        level, method
            As for `BootstrapSVC.proba_interval`.
        ax, kwargs
            As for `from_predictions`.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from bootprob.displays import IntervalDisplay
        >>> display = IntervalDisplay.from_estimator(model, X[::5], y[::5], ax=Figure().subplots())
        >>> display.ax_.get_xlabel()
        'probability'
        """
        svc, rows, positive = rows_of(estimator, X, y)
        said = svc.summarize(rows, level, method, score_interval=False)
        return cls.from_predictions(
            said["probability"],
            said["probability_interval"],
            positive,
            threshold=svc.decision_threshold_,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_prob: ArrayLike,
        interval: ArrayLike,
        y_true: ArrayLike | None = None,
        *,
        threshold: float = 0.5,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw probabilities with intervals, of any model.

        Parameters
        ----------
        y_prob : array_like, shape (m,)
            Probabilities of the positive class.
        interval : array_like, shape (m, 2)
            Lower and upper bounds.
        y_true : array_like, shape (m,), optional
            1 for the positive class, 0 for the other.
        threshold : float, default 0.5
            Probability above which the positive class is said.
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.hlines`.

        Raises
        ------
        DataError
            The shapes do not go together, or the numbers are no probabilities and bounds.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from bootprob.displays import IntervalDisplay
        >>> display = IntervalDisplay.from_predictions(
        ...     [0.2, 0.7], [[0.1, 0.4], [0.5, 0.8]], y_true=[0, 1], ax=Figure().subplots()
        ... )
        >>> display.figure_.savefig("intervals.png")  # doctest: +SKIP
        """
        probability, bounds = np.asarray(y_prob, dtype=float), np.asarray(interval, dtype=float)
        positive = None if y_true is None else positives(y_true)
        rows = probability.shape
        fits = len(rows) == 1 and bounds.shape == (*rows, 2)
        if not fits or (positive is not None and positive.shape != rows):
            given = [rows, bounds.shape, *([] if positive is None else [positive.shape])]
            raise DataError(f"Shapes (m,), (m, 2) and (m,) are wanted, not {given}.")
        if not ((probability >= 0) & (probability <= 1)).all():
            raise DataError("y_prob must hold probabilities between 0 and 1, without gaps.")
        if not (bounds[:, 0] <= bounds[:, 1]).all():
            raise DataError("interval must hold a lower bound and an upper one, without gaps.")
        if not (isinstance(threshold, Real) and 0 <= threshold <= 1):
            raise DataError(f"threshold is {threshold!r}; give a number between 0 and 1.")
        return cls(probability, bounds, positive, threshold).plot(ax, **kwargs)

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
        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from bootprob.displays import IntervalDisplay
        >>> display = IntervalDisplay(np.array([0.2, 0.7]), np.array([[0.1, 0.4], [0.5, 0.8]]))
        >>> display.plot(Figure().subplots(), linewidth=3).ax_.get_xlabel()
        'probability'
        """
        ax, order = self._on(ax), np.argsort(self.probability, kind="stable")
        height = np.empty(len(order))
        height[order] = np.arange(len(order))
        ax.axvline(self.threshold, color=COLORS["ink"], linewidth=0.8, linestyle=(0, (2, 2)))
        every = np.ones(len(order), dtype=bool)
        parts: list[tuple[NDArray[np.bool_], str, str]] = [(every, "ink", "o")]
        if self.positive is not None:
            parts = [(self.positive, "positive", "D"), (~self.positive, "negative", "o")]
        for members, colour, marker in parts:
            style: dict[str, Any] = {"color": COLORS[colour], "linewidth": 1.4} | kwargs
            lower, upper = self.interval[members].T
            ax.hlines(height[members], lower, upper, **style)
            ax.plot(
                *(self.probability[members], height[members], marker),
                color=style["color"],
                markersize=4,
            )
        ax.set(xlim=(-0.03, 1.03), xlabel="probability", ylabel="rows", yticks=[])
        ax.xaxis.set_major_formatter(percent_axis(0))
        return self
