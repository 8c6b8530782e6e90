"""How far predictions, decisions and curves differ between bootstrap replicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from bootprob.displays.style import COLORS, Display, percent_axis, positives, rows_of
from bootprob.exceptions import DataError
from bootprob.intervals.levels import listed
from bootprob.metrics.prediction_stability import THRESHOLDS, Stability, stability
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["StabilityDisplay", "draw_intervals"]

Kind = Literal["prediction", "error", "classification", "calibration", "net_benefit"]


class StabilityDisplay(Display):
    """Instability plots after Riley and Collins.

    Parameters
    ----------
    found : Stability
        From `BootstrapSVC.stability` or `bootprob.metrics.stability`.
    kind : {"prediction", "error", "classification", "calibration", "net_benefit"}, \
default "prediction"
        - "prediction": where most of the replicates put each row, by the model's probability;
        - "error": the mean absolute prediction error of each row;
        - "classification": the share of replicates that decide each row otherwise;
        - "calibration", "net_benefit": calibration and decision curves of model and replicates.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=200)
    >>> y = (rng.uniform(size=200) < p).astype(int)
    >>> replicates = np.clip(p + rng.normal(0, 0.05, size=(20, 200)), 0.01, 0.99)
    >>> from matplotlib.figure import Figure
    >>> from bootprob.metrics import stability
    >>> display = StabilityDisplay(stability(y, p, replicates), "error")
    >>> display.plot(Figure().subplots()).kind
    'error'
    """

    def __init__(self, found: Stability, kind: Kind = "prediction") -> None:
        self.found, self.kind = found, kind

    @classmethod
    def from_estimator(
        cls,
        estimator: BootstrapSVC | TableModel,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        kind: Kind = "prediction",
        threshold: float | None = None,
        thresholds: ArrayLike = THRESHOLDS,
        level: float = 0.95,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw that of a fitted model.

        Parameters
        ----------
        estimator : BootstrapSVC or TableModel
            Fitted to two classes.
        X, y, sample_weight : array_like
            Rows, those of `fit` in the definition; their classes and weights.
        kind : str, default "prediction"
            See the class.
        threshold, thresholds, level
            As for `BootstrapSVC.stability`.
        ax, kwargs
            As for `from_predictions`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from matplotlib.figure import Figure
        >>> display = StabilityDisplay.from_estimator(model, X, y, ax=Figure().subplots())
        >>> display.found.replicates.shape
        (20, 100)
        """
        svc, rows, positive = rows_of(estimator, X, y)
        if positive is None:
            raise DataError("y is None; give the classes of the rows.")
        found = svc.stability(
            rows,
            np.asarray(svc.classes_)[positive.astype(int)],
            sample_weight,
            threshold=threshold,
            thresholds=thresholds,
            level=level,
        )
        return cls(found, kind).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        replicates: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        kind: Kind = "prediction",
        threshold: float = 0.5,
        thresholds: ArrayLike = THRESHOLDS,
        level: float = 0.95,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw that of probabilities, of any model.

        Parameters
        ----------
        y_true : array_like, shape (n,)
            1 for the positive class, 0 for the other.
        y_prob : array_like, shape (n,)
            By the model.
        replicates : array_like, shape (B, n)
            By the models of the bootstrap samples.
        sample_weight, threshold, thresholds, level
            As for `bootprob.metrics.stability`.
        kind : str, default "prediction"
            See the class.
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            For `Axes.vlines` of predictions, `Axes.plot` of what the others draw of the model.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> p = rng.uniform(size=200)
        >>> y = (rng.uniform(size=200) < p).astype(int)
        >>> replicates = np.clip(p + rng.normal(0, 0.05, size=(20, 200)), 0.01, 0.99)
        >>> from matplotlib.figure import Figure
        >>> ax = Figure().subplots()
        >>> display = StabilityDisplay.from_predictions(y, p, replicates, ax=ax)
        >>> display.found.interval.shape
        (200, 2)
        """
        found = stability(
            positives(y_true),
            y_prob,
            replicates,
            sample_weight,
            threshold=threshold,
            thresholds=thresholds,
            level=level,
        )
        return cls(found, kind).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default a new figure.
        **kwargs
            As for `from_predictions`.

        Raises
        ------
        DataError
            There is no such kind.

        Examples
        --------
        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from bootprob.metrics import stability
        >>> found = stability([0, 1, 0, 1], [0.2, 0.7, 0.4, 0.6], np.full((5, 4), 0.5))
        >>> StabilityDisplay(found, "classification").plot(Figure().subplots()).kind
        'classification'
        """
        if not isinstance(self.kind, str) or self.kind not in _DRAWN:
            raise DataError(f"kind is {self.kind!r}; give {listed(get_args(Kind))}.")
        _DRAWN[self.kind](self._on(ax), self.found, kwargs)
        return self


def _predictions(ax: Axes, found: Stability, kwargs: dict[str, Any]) -> None:
    draw_intervals(ax, found.probability, found.interval, kwargs)


def draw_intervals(
    ax: Axes, probability: Floats, interval: Floats, kwargs: dict[str, Any] | None = None
) -> None:
    """Stability intervals (n, 2) by the probability of each row (n,); options of `Axes.vlines`."""
    ax.plot([0, 1], [0, 1], color=COLORS["faint"], linewidth=1.0, zorder=0)
    style: dict[str, Any] = {"color": COLORS["ink"], "linewidth": 0.9, "alpha": 0.5}
    ax.vlines(probability, *interval.T, **style | (kwargs or {}))
    ax.set(ylim=(-0.03, 1.03), ylabel="probability by replicates")
    ax.yaxis.set_major_formatter(percent_axis(0))
    _by_probability(ax)


def _errors(ax: Axes, found: Stability, kwargs: dict[str, Any]) -> None:
    _points(ax, found, found.absolute_error, kwargs)
    ax.set_ylabel("mean absolute prediction error")


def _classifications(ax: Axes, found: Stability, kwargs: dict[str, Any]) -> None:
    ax.axvline(found.threshold, color=COLORS["ink"], linewidth=0.8, linestyle=(0, (2, 2)))
    _points(ax, found, found.classification_instability, kwargs)
    ax.set_ylabel("replicates that decide otherwise")
    ax.yaxis.set_major_formatter(percent_axis(0))


def _points(ax: Axes, found: Stability, height: Any, kwargs: dict[str, Any]) -> None:
    style: dict[str, Any] = {"color": COLORS["ink"], "marker": "o", "ms": 3, "alpha": 0.5} | kwargs
    ax.plot(found.probability, height, linestyle="none", **style)
    ax.set_ylim(bottom=0)
    _by_probability(ax)


def _calibrations(ax: Axes, found: Stability, kwargs: dict[str, Any]) -> None:
    ax.plot([0, 1], [0, 1], color=COLORS["faint"], linewidth=1.0, zorder=0)
    for curve in found.curves:
        ax.plot(curve.probability, curve.observed, **_REPLICATE)
    ax.plot(found.curve.probability, found.curve.observed, **_MODEL | kwargs)
    ax.set(ylim=(-0.03, 1.03), ylabel="observed frequency")
    ax.yaxis.set_major_formatter(percent_axis(0))
    _by_probability(ax)


def _net_benefits(ax: Axes, found: Stability, kwargs: dict[str, Any]) -> None:
    for each in found.net_benefits:
        ax.plot(found.thresholds, each, **_REPLICATE)
    others: dict[str, Any] = {"color": COLORS["negative"], "linewidth": 1.0}
    ax.plot(found.thresholds, found.net_benefit_of_all, linestyle=(0, (3, 2)), **others)
    ax.axhline(0, **others)
    ax.plot(found.thresholds, found.net_benefit, **_MODEL | kwargs)
    top = max(found.net_benefit.max(), found.net_benefits.max())
    # Treating everyone, or a replicate, falls without end as the threshold nears 1.
    ax.set(ylim=(-0.25 * top, 1.05 * top) if top > 0 else None)
    ax.set(xlabel="threshold", ylabel="net benefit")
    ax.xaxis.set_major_formatter(percent_axis(0))


def _by_probability(ax: Axes) -> None:
    ax.set(xlim=(-0.03, 1.03), xlabel="probability by the model")
    ax.xaxis.set_major_formatter(percent_axis(0))


_REPLICATE: dict[str, Any] = {"color": COLORS["vote"], "linewidth": 0.6, "alpha": 0.3}
_MODEL: dict[str, Any] = {"color": COLORS["ink"], "linewidth": 1.6}
_DRAWN: dict[str, Callable[[Axes, Stability, dict[str, Any]], None]] = {
    "prediction": _predictions,
    "error": _errors,
    "classification": _classifications,
    "calibration": _calibrations,
    "net_benefit": _net_benefits,
}
