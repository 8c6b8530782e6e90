"""Observed frequencies against stated probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bootprob.displays.style import COLORS, Display, percent_axis, rows_of
from bootprob.ensemble.out_of_bag_proba import cross_fitted_proba
from bootprob.ensemble.state import two_class_state
from bootprob.exceptions import DataError
from bootprob.metrics.calibration_bands import CalibrationBand, calibration_band, has_band
from bootprob.metrics.reliability import (
    ReliabilityCurve,
    check_rows,
    groups_of_rows,
    reliability_curve,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["ReliabilityDisplay", "band_or_bins"]


class ReliabilityDisplay(Display):
    """Reliability diagram: a band that contains the whole curve, or groups of rows with intervals.

    Parameters
    ----------
    curve : CalibrationBand or ReliabilityCurve
        From `bootprob.metrics.calibration_band`, or for groups of rows
        `bootprob.metrics.reliability_curve`.
    name : str, optional
        In the legend.

    Attributes
    ----------
    ax_, figure_
        Where `plot` drew.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from bootprob.displays import ReliabilityDisplay
    >>> from bootprob.metrics import reliability_curve
    >>> y, p = [0, 0, 0, 1, 1, 1, 0, 1], [0.1, 0.1, 0.2, 0.3, 0.8, 0.9, 0.7, 0.9]
    >>> display = ReliabilityDisplay(reliability_curve(y, p, n_bins=2), name="test rows")
    >>> display.plot(Figure().subplots()).ax_.get_ylabel()
    'observed frequency'
    """

    def __init__(self, curve: CalibrationBand | ReliabilityCurve, name: str | None = None) -> None:
        self.curve, self.name = curve, name

    @classmethod
    def from_estimator(
        cls,
        estimator: BootstrapSVC | TableModel,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        n_bins: int | None = None,
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
            As for `from_predictions`.
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
            p, weights, groups = cross_fitted_proba(svc), state.sample_weight_, state.groups_
            curve = band_or_bins(state.y_, p, weights, groups, n_bins, level)
        else:
            p = np.asarray(svc.predict_proba(rows))[:, 1]
            curve = band_or_bins(positive, p, None, None, n_bins, level)
        return cls(curve, name or type(estimator).__name__).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        n_bins: int | None = None,
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
            Probabilities of the positive class.
        sample_weight, groups, level
            As for `bootprob.metrics.reliability_curve`.
        n_bins : int, optional
            Draw so many groups of rows with Wilson intervals; default the band, or ten groups of
            rows that have different weights or belong together, of which there is no band.
        name : str, optional
            In the legend.
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.plot` of the curve, or `Axes.errorbar` of groups.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from bootprob.displays import ReliabilityDisplay
        >>> display = ReliabilityDisplay.from_predictions(
        ...     [0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9], ax=Figure().subplots()
        ... )
        >>> display.figure_.savefig("reliability.png")  # doctest: +SKIP
        """
        curve = band_or_bins(y_true, y_prob, sample_weight, groups, n_bins, level)
        return cls(curve, name).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.plot` of the curve, or `Axes.errorbar` of groups.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from bootprob.displays import ReliabilityDisplay
        >>> from bootprob.metrics import calibration_band
        >>> display = ReliabilityDisplay(calibration_band([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9]))
        >>> display.plot(Figure().subplots(), color="teal").ax_.get_xlabel()
        'probability stated'
        """
        ax, curve = self._on(ax), self.curve
        ax.plot([0, 1], [0, 1], color=COLORS["faint"], linewidth=1.0, zorder=0)
        style: dict[str, Any] = {"color": COLORS["ink"], "label": self.name} | kwargs
        if isinstance(curve, CalibrationBand):
            _draw_band(ax, curve, style)
        else:
            _draw_bins(ax, curve, style)
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        ax.set(xlabel="probability stated", ylabel="observed frequency")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(percent_axis(0))
        if style["label"]:
            ax.legend(loc="upper left")
        return self


def band_or_bins(
    y: ArrayLike,
    p: ArrayLike,
    weights: ArrayLike | None,
    groups: ArrayLike | None,
    n_bins: int | None,
    level: float,
) -> CalibrationBand | ReliabilityCurve:
    """What a reliability diagram shows of rows; parameters as of `from_predictions`."""
    if n_bins is None:
        _, _, mass, _ = check_rows(y, p, weights)
        if has_band(mass, groups_of_rows(groups, p, weights)):
            return calibration_band(y, p, weights, level, groups=groups)
    return reliability_curve(y, p, weights, 10 if n_bins is None else n_bins, level, groups=groups)


def _draw_band(ax: Axes, band: CalibrationBand, style: dict[str, Any]) -> None:
    x = band.probability
    # From each value to the next: the lower bound of the one before, the upper of the one after.
    ends = np.repeat(x, 2)[1:-1]
    lower, upper = np.repeat(band.lower[:-1], 2), np.repeat(band.upper[1:], 2)
    ax.fill_between(ends, lower, upper, color=style["color"], alpha=0.15, linewidth=0)
    ax.plot(band.stated, band.observed, **{"linewidth": 1.6} | style)
    for start, end in band.miscalibrated:
        ax.plot([start, end], [start, end], color=COLORS["positive"], linewidth=2.2)


def _draw_bins(ax: Axes, curve: ReliabilityCurve, style: dict[str, Any]) -> None:
    of_points: dict[str, Any] = {"marker": "o", "ms": 5.5} | style
    below, above = curve.observed - curve.lower, curve.upper - curve.observed
    ax.errorbar(
        curve.probability,
        curve.observed,
        yerr=[below, above],
        linestyle="none",
        elinewidth=0.9,
        **of_points,
    )
