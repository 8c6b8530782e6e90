"""Bootstrap intervals for efficiencies: the smoothed bootstrap of Simar and Wilson (1998)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bootprob.dea.efficiencies.program import Orientation, Returns
from bootprob.dea.efficiencies.replicates import ReferenceScores
from bootprob.dea.efficiencies.result import EfficiencyResult
from bootprob.dea.efficiencies.scores import efficiency
from bootprob.dea.panel import Panel
from bootprob.exceptions import DataError

if TYPE_CHECKING:
    import pandas as pd

    from bootprob.dea.panel_tables import Table

__all__ = [
    "EfficiencyInterval",
    "checked_bootstrap",
    "efficiency_interval",
    "reflected_bandwidth",
    "smoothed_draw",
]

_ONE = 1e-6
_FEWEST = 100


@dataclass(frozen=True, eq=False)
class EfficiencyInterval:
    """Intervals for the efficiencies of K units.

    Scores are θ in input orientation and φ in output orientation, as in `EfficiencyResult`. All
    is computed for the distance δ = 1/θ or φ, which is at least 1, and turned back.

    Attributes
    ----------
    result : EfficiencyResult
        Of the panel itself.
    level : float
        Nominal coverage.
    lower, upper : ndarray (K,)
        Basic bootstrap interval, Simar and Wilson (2000): from 2δ - q(1 - (1 - level)/2) to
        2δ - q((1 - level)/2) with the quantiles q of the replicates δ*.
    corrected : ndarray (K,)
        Score corrected for bias: of δ - bias.
    bias, standard_error : ndarray (K,)
        Of δ: mean of δ* less δ, and standard deviation of δ*.
    bandwidth : float
        Of the smoothing of δ.
    replicates : ndarray (B, K)
        Scores of the units against the pseudo-samples.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.dea import efficiency_interval
    >>> rng = np.random.default_rng(0)
    >>> inputs = rng.uniform(1, 2, 20)
    >>> outputs = inputs * rng.uniform(0.5, 1, 20)
    >>> found = efficiency_interval(inputs, outputs, n_replicates=100)
    >>> bool((found.lower < found.result.scores).all())  # scores are too good
    True
    >>> bool((found.corrected < found.result.scores).all())
    True
    """

    result: EfficiencyResult
    level: float
    lower: np.ndarray
    upper: np.ndarray
    corrected: np.ndarray
    bias: np.ndarray
    standard_error: np.ndarray
    bandwidth: float
    replicates: np.ndarray

    @property
    def correction_pays(self) -> np.ndarray:
        """Whether the correction removes more than it adds in noise; (K,) bool.

        Simar and Wilson's rule: 3 standard_error² < bias².
        """
        return 3 * self.standard_error**2 < self.bias**2

    def to_frame(self) -> pd.DataFrame:
        """One row for each unit: score, corrected, lower, upper, bias, standard error.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.dea import efficiency_interval
        >>> rng = np.random.default_rng(0)
        >>> inputs = rng.uniform(1, 2, 20)
        >>> found = efficiency_interval(inputs, inputs * rng.uniform(0.5, 1, 20), n_replicates=100)
        >>> found.to_frame().columns.tolist()
        ['score', 'corrected', 'lower', 'upper', 'bias', 'standard error']
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "score": self.result.scores,
                "corrected": self.corrected,
                "lower": self.lower,
                "upper": self.upper,
                "bias": self.bias,
                "standard error": self.standard_error,
            },
            index=pd.Index(self.result.panel.units, name="unit"),
        )


def efficiency_interval(
    inputs: Panel | Table,
    outputs: Table | None = None,
    *,
    returns: Returns = "constant",
    orientation: Orientation = "input",
    level: float = 0.95,
    n_replicates: int = 2000,
    bandwidth: float | None = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda n_replicates: None,
) -> EfficiencyInterval:
    """Intervals for the efficiency of each unit against the true, unseen frontier.

    The frontier of the data lies inside the true one, so scores are too good. Each replicate
    draws distances δ from a kernel estimate of theirs that is reflected at 1, moves every unit
    along its ray to the distance drawn, and scores the units themselves against these
    pseudo-units: Simar and Wilson, Management Science 44 (1998) 49-61; intervals as in Journal of
    Applied Statistics 27 (2000) 779-802. It takes efficiency to be spread alike over all units
    (homogeneous), and all distance from the frontier to be inefficiency, none of it noise.

    Parameters
    ----------
    inputs, outputs, returns, orientation
        As for `efficiency`.
    level : float, default 0.95
        Nominal coverage of the intervals.
    n_replicates : int, default 2000
        B, at least 100; each solves K linear programs.
    bandwidth : float, optional
        Standard deviation of the smoothing; default `reflected_bandwidth`.
    seed : int, default 0
        The same seed gives the same replicates.
    progress : callable
        Called with the number of replicates just made.

    Returns
    -------
    EfficiencyInterval

    Raises
    ------
    PanelError
        As for `efficiency`.
    DataError
        An option is out of range; all units have a score of 1, or one has a score of 0, which
        leaves nothing to draw from; or a score cannot be computed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(1, 2, 30)
    >>> y = x * np.exp(-np.abs(rng.normal(0, 0.3, 30)))
    >>> found = efficiency_interval(x, y, n_replicates=200)
    >>> bool((found.upper < found.result.scores + 1e-9).all())
    True
    """
    level = checked_bootstrap(level, n_replicates, bandwidth, seed)
    result = efficiency(inputs, outputs, returns=returns, orientation=orientation, slacks=False)
    panel, scores = result.panel, result.scores
    if set(result.status) != {"optimal"} or not scores.all():
        raise DataError("A unit has no score above zero; leave it out.")
    distances = np.maximum(1 / scores if orientation == "input" else scores, 1.0)
    if (distances <= 1 + _ONE).all():
        raise DataError(
            f"All {panel.n_units} units have a score of 1, so how far from the frontier units are "
            "cannot be estimated; give more units or fewer inputs and outputs."
        )
    if bandwidth is None:
        bandwidth = reflected_bandwidth(distances)
    reference = ReferenceScores(panel, returns, orientation, scores)
    replicates = np.empty((n_replicates, panel.n_units))
    for number, child in enumerate(np.random.SeedSequence(int(seed)).spawn(n_replicates)):
        drawn = smoothed_draw(distances, bandwidth, np.random.default_rng(child))
        X, Y = panel.inputs, panel.outputs
        if orientation == "input":
            X = X * (drawn / distances)[:, None]
        else:
            Y = Y * (distances / drawn)[:, None]
        replicates[number] = reference.against(X, Y)
        progress(1)
    if np.isnan(replicates).any():
        raise DataError(
            "Some scores against the pseudo-samples cannot be computed; amounts of more similar "
            "size may help."
        )
    return _interval(result, level, float(bandwidth), replicates, distances)


def checked_bootstrap(
    level: float, n_replicates: int, bandwidth: float | None = None, seed: int = 0
) -> float:
    """Check the options of the bootstrap; return the level, or raise a `DataError`."""
    from bootprob.intervals.levels import check_level

    level = check_level(level)
    if isinstance(n_replicates, bool) or not isinstance(n_replicates, (int, np.integer)):
        raise DataError(f"n_replicates is {n_replicates!r}; give a whole number.")
    if n_replicates < _FEWEST:
        raise DataError(f"n_replicates is {n_replicates}; give at least {_FEWEST}.")
    if bandwidth is not None and not (np.isfinite(bandwidth) and bandwidth > 0):
        raise DataError(f"bandwidth is {bandwidth!r}; give a number above zero.")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise DataError(f"seed is {seed!r}; give a whole number from zero up.")
    return level


def _interval(
    result: EfficiencyResult,
    level: float,
    bandwidth: float,
    replicates: np.ndarray,
    distances: np.ndarray,
) -> EfficiencyInterval:
    inward = result.orientation == "input"
    drawn = 1 / replicates if inward else replicates
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    near, far = 2 * distances - high, 2 * distances - low
    bias = drawn.mean(axis=0) - distances
    corrected = distances - bias
    if inward:
        near, far, corrected = 1 / far, 1 / near, 1 / corrected
    return EfficiencyInterval(
        result, level, near, far, corrected, bias, drawn.std(axis=0, ddof=1), bandwidth, replicates
    )


def reflected_bandwidth(distances: np.ndarray) -> float:
    """Bandwidth by the normal reference rule for distances from 1 up, reflected at 1.

    The rule 0.9 min(s, range of the quartiles / 1.34) (2m)^(-1/5) for the m distances above 1 and
    their reflections, as those at 1 are the estimate's own doing; then brought to the number and
    the spread of all, as in Simar and Wilson (2008, The Measurement of Productive Efficiency,
    chapter 4), with reflections on both sides of the comparison.

    Parameters
    ----------
    distances : ndarray (K,)
        At least one above 1.
    """
    above = distances[distances > 1 + _ONE]
    reflected = np.concatenate((above, 2 - above))
    spread = reflected.std(ddof=1)
    quartiles = np.subtract(*np.quantile(reflected, [0.75, 0.25])) / 1.34
    rule = 0.9 * min(spread, quartiles) * len(reflected) ** -0.2
    all_reflected = np.concatenate((distances, 2 - distances))
    adapted = (len(above) / len(distances)) ** 0.2 * all_reflected.std(ddof=1) / spread
    return float(rule * adapted)


def smoothed_draw(distances: np.ndarray, bandwidth: float, rng: np.random.Generator) -> np.ndarray:
    """Draw as many distances from their kernel estimate, of the variance that they have.

    They and their reflections at 1 are smoothed, shrunk towards 1, which is their common mean, so
    that the variance around it stays theirs, and folded back: Daraio and Simar (2007, Advanced
    Robust and Nonparametric Methods in Efficiency Analysis, p. 62), but for their shrinking
    towards the mean of the draw, whose expectation is 1. Simar and Wilson (1998) fold first and
    shrink towards the mean of what is folded, which leaves no draw near 1 and so overstates how
    far the frontier of the data is off.

    Parameters
    ----------
    distances : ndarray (K,)
        From 1 up, at least one above.

    Returns
    -------
    ndarray (K,)
        From 1 up.
    """
    excess = distances - 1.0
    moved = rng.choice(excess, len(excess)) + bandwidth * rng.standard_normal(len(excess))
    return 1.0 + np.abs(moved) / np.sqrt(1.0 + bandwidth**2 / np.mean(excess**2))
