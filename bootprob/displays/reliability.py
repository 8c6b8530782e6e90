"""Observed frequencies against stated probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bootprob.displays.style import COLORS, Display, percent_axis, rows_of
from bootprob.ensemble.out_of_bag_proba import cross_fitted_proba
from bootprob.ensemble.state import two_class_state
from bootprob.exceptions import DataError
from bootprob.metrics.reliability import ReliabilityCurve, reliability_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["ReliabilityDisplay"]


class ReliabilityDisplay(Display):
    """Reliability diagram with an interval for each group of rows.

    Parameters
    ----------
    curve : ReliabilityCurve
        From `bootprob.metrics.reliability.reliability_curve`.
    name : str, optional
        In the legend.

    Attributes
    ----------
    ax_, figure_
        Where `plot` drew.
    """

    def __init__(self, curve: ReliabilityCurve, name: str | None = None) -> None:
        self.curve, self.name = curve, name

    @classmethod
    def from_estimator(
        cls,
        estimator: BootstrapSVC | TableModel,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        n_bins: int = 10,
        level: float = 0.95,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a fitted model's: out of bag, each row calibrated without its label, or of new rows.

        Parameters
        ----------
        estimator : BootstrapSVC or TableModel
            Fitted to two classes.
        X, y : array_like, optional
            Rows that it was not fitted to, and their classes; default the training rows.
        n_bins, level
            As for `reliability_curve`.
        name, ax, kwargs
            As for `from_predictions`.

        Raises
        ------
        DataError
            The model is of several classes, or one of X and y is missing.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from bootprob.displays import ReliabilityDisplay
        >>> display = ReliabilityDisplay.from_estimator(model, ax=Figure().subplots())  # out of bag
        >>> display.figure_.savefig("reliability.png")  # doctest: +SKIP
        """
        if (X is None) != (y is None):
            raise DataError("Give both X and y, or neither for the training rows, out of bag.")
        svc, rows, positive = rows_of(estimator, X, y)
        if positive is None:
            state = two_class_state(svc, "figures")
            curve = reliability_curve(
                *(state.y_, cross_fitted_proba(svc), state.sample_weight_),
                n_bins=n_bins,
                level=level,
                groups=state.groups_,
            )
        else:
            probability = np.asarray(svc.predict_proba(rows))[:, 1]
            curve = reliability_curve(positive, probability, n_bins=n_bins, level=level)
        return cls(curve, name or type(estimator).__name__).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        n_bins: int = 10,
        level: float = 0.95,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw that of probabilities, of any model.

        Parameters
        ----------
        y_true : array_like, shape (n,)
            1 for the positive class, 0 for the other.
        y_prob : array_like, shape (n,)
        sample_weight, groups, n_bins, level
            As for `bootprob.metrics.reliability.reliability_curve`.
        name : str, optional
            In the legend.
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.errorbar`.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from bootprob.displays import ReliabilityDisplay
        >>> display = ReliabilityDisplay.from_predictions(
        ...     [0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9], ax=Figure().subplots()
        ... )
        >>> display.figure_.savefig("reliability.png")  # doctest: +SKIP
        """
        curve = reliability_curve(
            y_true, y_prob, sample_weight, n_bins=n_bins, level=level, groups=groups
        )
        return cls(curve, name).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.errorbar`.
        """
        ax, curve = self._on(ax), self.curve
        ax.plot([0, 1], [0, 1], color=COLORS["faint"], linewidth=1.0, zorder=0)
        style: dict[str, Any] = {"color": COLORS["ink"], "marker": "o", "ms": 5.5} | kwargs
        style.setdefault("label", self.name)
        below, above = curve.observed - curve.lower, curve.upper - curve.observed
        ax.errorbar(
            curve.probability,
            curve.observed,
            yerr=[below, above],
            linestyle="none",
            elinewidth=0.9,
            **style,
        )
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        ax.set(xlabel="probability stated", ylabel="observed frequency")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(percent_axis(0))
        if style["label"]:
            ax.legend(loc="upper left")
        return self
