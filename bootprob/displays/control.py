"""What one class gains and the other loses: sensitivity against specificity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bootprob.displays.style import COLORS, Display, percent_axis, positives, rows_of
from bootprob.ensemble.controlled_rates import rates_under_control
from bootprob.ensemble.state import two_class_state
from bootprob.exceptions import DataError
from bootprob.intervals.levels import check_level
from bootprob.metrics.decision_rates import TradeOff, trade_off
from bootprob.metrics.reliability import numbers_of_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["ControlDisplay"]

# Label -> colour, marker, whether it is filled.
_POINTS = {
    "without control": ("vote", "D", False),
    "held-out rows": ("positive", "s", False),
    "under control": ("ink", "o", True),
}


class ControlDisplay(Display):
    """Sensitivity against specificity for all thresholds, with rates wanted and reached.

    Parameters
    ----------
    curve : TradeOff
        Sensitivity and specificity of all thresholds.
    wanted : (float or None, float or None)
        Least true positive and true negative rate.
    points : mapping of str to (tpr, tnr)
        By the label, "under control", "held-out rows" or "without control", both rates as value,
        lower and upper bound.

    Examples
    --------
    >>> from bootprob import BootstrapSVC
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
    >>> model.set_params(control="threshold", rates={"tpr": 0.9}).fit(X[50:], y[50:])
    BootstrapSVC(...)
    >>> from bootprob.displays import ControlDisplay
    >>> display = ControlDisplay.from_estimator(model, ax=Figure().subplots())
    >>> display.wanted, list(display.points)
    ((0.9, None), ['without control', 'under control'])
    """

    def __init__(
        self,
        curve: TradeOff,
        wanted: tuple[float | None, float | None],
        points: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    ) -> None:
        self.curve, self.wanted, self.points = curve, wanted, points

    @classmethod
    def from_estimator(
        cls,
        estimator: BootstrapSVC | TableModel,
        *,
        level: float = 0.95,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the rates of a fitted model, out of bag.

        Parameters
        ----------
        estimator : BootstrapSVC or TableModel
            Fitted to two classes, under control or not.
        level : float, default 0.95
            Of the intervals of the rates.
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.plot`, of the curve.

        Raises
        ------
        DataError
            The model is of several classes.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from bootprob.displays import ControlDisplay
        >>> display = ControlDisplay.from_estimator(model, ax=Figure().subplots())
        >>> display.figure_.savefig("control.png")  # doctest: +SKIP
        """
        level = check_level(level)
        svc, *_ = rows_of(estimator, None, None)
        state, calibrated = two_class_state(svc, "figures"), svc.calibration is not None
        scores = state.oob_decision_function_ if calibrated else state.oob_vote_proba_[:, 1]
        curve = trade_off(state.y_ == 1, scores, state.sample_weight_)
        rates = rates_under_control(svc, level)
        wanted = [None if rate.floor is None else rate.floor.at_least for rate in rates]
        points: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
        for label in ("without control", "under control"):
            of = "out_of_bag" if label == "under control" else "without_control"
            reached = [getattr(rate, of) for rate in rates[:2]]  # those of the two axes
            if rates and None not in reached:
                tpr, tnr = ((each.value, each.lower, each.upper) for each in reached)
                points[label] = tpr, tnr
        least_tpr, least_tnr = wanted[:2] or (None, None)
        return cls(curve, (least_tpr, least_tnr), points).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        sample_weight: Any = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of probabilities, of any model.

        Parameters
        ----------
        y_true : array_like, shape (n,)
            1 for the positive class, 0 for the other.
        y_prob : array_like, shape (n,)
            Probabilities or scores.
        sample_weight : array_like, shape (n,), optional
            Row weights; default 1.
        ax, kwargs
            As for `from_estimator`.

        Raises
        ------
        DataError
            The shapes do not go together, numbers or weights are infinite, weights negative, or
            no row of a class is left.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from bootprob.displays import ControlDisplay
        >>> ax = Figure().subplots()
        >>> display = ControlDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], ax=ax)
        >>> display.figure_.savefig("control.png")  # doctest: +SKIP
        """
        positive, scores = positives(y_true), numbers_of_rows("y_prob", y_prob)
        weight = np.ones(scores.shape)
        if sample_weight is not None:
            weight = numbers_of_rows("sample_weight", sample_weight)
        if not positive.shape == scores.shape == weight.shape or scores.ndim != 1:
            given = positive.shape, scores.shape, weight.shape
            raise DataError(f"Three times the shape (n,) is wanted, not {given}.")
        if np.isinf(scores).any():
            raise DataError("y_prob holds infinity; give numbers, or NaN where there is none.")
        if not (np.isfinite(weight) & (weight >= 0)).all():
            raise DataError("sample_weight must be finite and at least 0.")
        counted = positive[~np.isnan(scores) & (weight > 0)]
        if len(np.unique(counted)) < 2:
            raise DataError(
                "A curve is between two rates: give rows of both classes, with a y_prob and a "
                "weight above 0."
            )
        return cls(trade_off(positive, scores, weight), (None, None), {}).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.plot`, of the curve.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from bootprob.displays import ControlDisplay
        >>> first, second = Figure().subplots(ncols=2)
        >>> display = ControlDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], ax=first)
        >>> display.plot(second, linewidth=3).ax_ is second  # once more, elsewhere
        True
        """
        ax = self._on(ax)
        self._draw_wanted(ax)
        style: dict[str, Any] = {"color": COLORS["negative"], "linewidth": 1.4} | kwargs
        ax.plot(self.curve.specificity, self.curve.sensitivity, zorder=2, **style)
        for label, (tpr, tnr) in self.points.items():
            _draw_point(ax, label, tpr, tnr)
        ax.set(
            xlim=(1.03, -0.03),
            ylim=(-0.03, 1.03),
            xlabel="specificity (true negative rate)",
            ylabel="sensitivity (true positive rate)",
        )
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(percent_axis(0))
        if self.points:
            ax.legend(loc="lower right", handletextpad=0.2, borderaxespad=0.2)
        return self

    def _draw_wanted(self, ax: Axes) -> None:
        """Lines at the rates wanted; what lies beyond both keeps them."""
        tpr, tnr = self.wanted
        if tpr is None and tnr is None:
            return
        line: dict[str, Any] = {
            "color": COLORS["quiet"],
            "linewidth": 0.8,
            "linestyle": (0, (3, 2)),
            "zorder": 1,
        }
        if tpr is not None:
            ax.axhline(tpr, **line)
        if tnr is not None:
            ax.axvline(tnr, **line)
        ax.fill_between(
            [1.03, -0.03 if tnr is None else tnr],
            -0.03 if tpr is None else tpr,
            1.03,
            color=COLORS["faint"],
            alpha=0.35,
            linewidth=0,
            zorder=0,
        )


def _draw_point(ax: Axes, label: str, tpr: Sequence[float], tnr: Sequence[float]) -> None:
    colour, marker, filled = _POINTS[label]
    crossed: dict[str, Any] = {}
    if label != "without control":  # the same curve: a cross there would say nothing of the choice
        for side, (value, lower, upper) in (("xerr", tnr), ("yerr", tpr)):
            crossed[side] = np.abs([[value - lower], [upper - value]])
    ax.errorbar(
        tnr[0],
        tpr[0],
        **crossed,
        linestyle="none",
        elinewidth=1.0,
        marker=marker,
        markersize=6.0,
        color=COLORS[colour],
        mfc=COLORS[colour] if filled else "white",
        label=label,
        zorder=4 if filled else 3,
    )
