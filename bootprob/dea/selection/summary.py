"""The distribution of efficiencies for each number of outputs: table 5.3, and which p to take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    import pandas as pd

    from bootprob.dea.selection.results import SelectionCurve

__all__ = ["EfficiencyDistribution", "SelectionSummary", "suggested_size", "summarise_curve"]


_WHISKER = 1.5  # interquartile ranges beyond the box, as Tukey has it


@dataclass(frozen=True)
class EfficiencyDistribution:
    """Efficiencies of all units under one selection, in numbers: a line of table 5.3.

    Attributes
    ----------
    size : int
        p.
    minimum, maximum, mean, deviation : float
        The standard deviation divides by K - 1; it is zero for one unit.
    q1, q2, q3 : float
        Quartiles, interpolated linearly.
    lower_whisker, upper_whisker : float
        Furthest efficiencies within 1.5 interquartile ranges of the box.
    outlying : tuple of str
        Units beyond the whiskers.
    n_efficient : int
        Units with an efficiency of 1, within 1e-6.
    outputs : tuple of str
        Those chosen.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import selection_curve, summarise_curve
    >>> line = summarise_curve(selection_curve(toy, 2)).lines[1]
    >>> line.size, line.outputs, line.n_efficient
    (2, ('output 1', 'output 3'), 2)
    >>> round(line.q2, 3), round(line.interquartile_range, 3)
    (1.0, 0.017)
    """

    size: int
    minimum: float
    maximum: float
    mean: float
    deviation: float
    q1: float
    q2: float
    q3: float
    lower_whisker: float
    upper_whisker: float
    outlying: tuple[str, ...]
    n_efficient: int
    outputs: tuple[str, ...]

    @property
    def interquartile_range(self) -> float:
        """Third less first quartile."""
        return self.q3 - self.q1

    @classmethod
    def of(
        cls, efficiencies: Floats, units: tuple[str, ...], outputs: tuple[str, ...]
    ) -> EfficiencyDistribution:
        """Summarise the efficiencies of K units.

        Parameters
        ----------
        efficiencies : ndarray (K,)
            Scores from 0 to 1.
        units : tuple of str
            Their names.
        outputs : tuple of str
            Those chosen.

        Returns
        -------
        EfficiencyDistribution

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.dea import EfficiencyDistribution
        >>> scores = np.array([0.2, 0.8, 0.9, 1.0, 1.0])
        >>> line = EfficiencyDistribution.of(scores, ("A", "B", "C", "D", "E"), ("patients",))
        >>> line.q2, line.outlying, line.n_efficient
        (0.9, ('A',), 2)
        """
        e = efficiencies
        q1, q2, q3 = np.quantile(e, (0.25, 0.5, 0.75)).tolist()
        reach = _WHISKER * (q3 - q1)
        beyond = (e < q1 - reach) | (e > q3 + reach)
        return cls(
            size=len(outputs), minimum=float(e.min()), maximum=float(e.max()),
            mean=float(e.mean()), deviation=float(e.std(ddof=1)) if len(e) > 1 else 0.0,
            q1=q1, q2=q2, q3=q3,
            lower_whisker=float(e[~beyond].min()), upper_whisker=float(e[~beyond].max()),
            outlying=tuple(units[k] for k in np.flatnonzero(beyond)),
            n_efficient=int((e >= 1 - 1e-6).sum()), outputs=outputs,
        )  # fmt: skip


@dataclass(frozen=True)
class SelectionSummary:
    """Table 5.3: one distribution for each number of outputs.

    Attributes
    ----------
    lines : tuple of EfficiencyDistribution
        In the order of p.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import selection_curve, summarise_curve
    >>> summary = summarise_curve(selection_curve(toy, 2))
    >>> [round(line.mean, 3) for line in summary.lines]  # with one output, and with two
    [0.667, 0.989]
    """

    lines: tuple[EfficiencyDistribution, ...]

    def to_frame(self) -> pd.DataFrame:
        """The columns of table 5.3, one row for each p.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import selection_curve, summarise_curve
        >>> table = summarise_curve(selection_curve(toy, 2)).to_frame()
        >>> table[["min", "q2", "max", "selected features"]].round(3)
             min   q2  max   selected features
        p
        1  0.200  0.8  1.0            output 1
        2  0.966  1.0  1.0  output 1, output 3
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "min": line.minimum, "max": line.maximum, "mean": line.mean,
                    "st. dev.": line.deviation, "q1": line.q1, "q2": line.q2, "q3": line.q3,
                    "q3-q1": line.interquartile_range,
                    "selected features": ", ".join(line.outputs),
                }
                for line in self.lines
            ],
            index=pd.Index([line.size for line in self.lines], name="p"),
        )  # fmt: skip


def summarise_curve(curve: SelectionCurve) -> SelectionSummary:
    """Summarise the efficiencies under each selection of a curve v(p): table 5.3.

    Parameters
    ----------
    curve : SelectionCurve
        Selections of several sizes.

    Returns
    -------
    SelectionSummary

    Examples
    --------
    >>> from bootprob.dea import Panel, selection_curve
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]])
    >>> summarise_curve(selection_curve(toy, 2)).to_frame()[["min", "mean", "max"]].round(3)
         min  mean  max
    p
    1  0.200  0.667  1.0
    2  0.966  0.989  1.0
    """
    return SelectionSummary(
        tuple(
            EfficiencyDistribution.of(one.efficiencies, one.units, one.outputs)
            for one in curve.selections
        )
    )


def suggested_size(curve: SelectionCurve, least_contribution: float = 0.01) -> int:
    """The smallest p after which no further output contributes as much as a threshold.

    Section 5.3.1 of the thesis stops at the first contribution v(p + 1) - v(p) below a threshold.
    As v need not be concave (counterexample 1), all later ones count here.

    Parameters
    ----------
    curve : SelectionCurve
        Selections of several sizes.
    least_contribution : float, default 0.01
        To the objective, for each output.

    Returns
    -------
    int
        p.

    Raises
    ------
    DataError
        The threshold is no number from zero up.

    Examples
    --------
    >>> from bootprob.dea import Panel, selection_curve
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]])
    >>> suggested_size(selection_curve(toy, 3), 0.05)
    2
    """
    if isinstance(least_contribution, bool) or not 0 <= least_contribution < np.inf:
        raise DataError(
            f"least_contribution is {least_contribution!r}; give a number from zero up."
        )
    sizes = curve.sizes
    contributed = np.abs(curve.marginal[1:]) / np.diff(sizes)
    # One rounding error below the threshold is at it.
    enough = np.flatnonzero(contributed >= least_contribution - 1e-12)
    return sizes[int(enough[-1]) + 1] if len(enough) else sizes[0]
