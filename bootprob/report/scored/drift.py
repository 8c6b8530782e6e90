"""Are the rows scored like those trained on? Distances between distributions, beside chance.

With enough rows every difference is more than chance, and with few rows none is: so each distance
stands beside the one that as many rows show where nothing has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC

__all__ = ["Distance", "Reference", "kolmogorov_smirnov", "population_stability"]


_N_BINS = 10


@dataclass(frozen=True)
class Distance:
    """A distance between two samples, and what chance alone would make of it.

    Attributes
    ----------
    value : float
    by_chance : float
        Mean of the distance if both samples came from one distribution.
    by_chance_upper : float
        What it would stay below with the stated confidence.
    p_value : float
        How often it would be at least `value`.
    """

    value: float
    by_chance: float
    by_chance_upper: float
    p_value: float


@dataclass(frozen=True)
class Reference:
    """Out-of-bag probabilities of the rows trained on, to compare others with.

    Attributes
    ----------
    values : ndarray, shape (k,)
        The different probabilities, in rising order.
    share : ndarray, shape (k,)
        Share of the weight that each has; adds up to 1.
    n_effective : float
        Number of rows; with unequal weights Kish's effective number, ``(Σw)² / Σw²``.
    """

    values: Floats
    share: Floats
    n_effective: float

    @classmethod
    def of_model(cls, model: BootstrapSVC, k: int = 1) -> Self:
        """Take the out-of-bag probabilities that the model's own calibrator gives.

        They are calibrated as new rows are; those of metrics, calibrated without each row's label,
        are a little more spread.

        Parameters
        ----------
        model : BootstrapSVC
            Fitted.
        k : int, default 1
            Position of the class whose probabilities they are.

        Raises
        ------
        DataError
            No row was ever out of bag.
        """
        p, weight = model.oob_proba_[:, k], model.sample_weight_
        known = ~np.isnan(p) & (weight > 0)
        if not known.any():
            raise DataError(
                "No training row was ever out of bag, so there are no probabilities to compare "
                "with; fit with more bootstrap samples, or leave the model out."
            )
        values, position = np.unique(p[known], return_inverse=True)
        mass = np.bincount(position, weights=weight[known])
        effective = weight[known].sum() ** 2 / np.square(weight[known]).sum()
        return cls(values, mass / mass.sum(), float(effective))

    def deciles(self) -> NDArray[np.intp]:
        """Index of the last value of each bin, of which none holds much more than a tenth.

        There are fewer than ten bins where many values are equal.
        """
        reached = np.cumsum(self.share)
        due = np.arange(1, _N_BINS) / _N_BINS
        last = np.searchsorted(reached, due - 1e-9)
        return np.unique(np.append(last, len(self.values) - 1))


def kolmogorov_smirnov(cells: NDArray[np.int64], reference: Reference, level: float) -> Distance:
    """Largest vertical distance between two distribution functions, exact with ties.

    Between two values of the reference only one of the functions rises, so that the largest
    distance is at one of the values or just below it: counts between them are all that is needed.
    The distribution by chance is the limiting one that `scipy.stats.ks_2samp` calls "asymp".

    Parameters
    ----------
    cells : ndarray of int, shape (2 k + 1,)
        New rows below the first value of the reference, at it, between it and the next, and so on.
    reference : Reference
    level : float
        Confidence of `Distance.by_chance_upper`.

    Returns
    -------
    Distance
    """
    n = int(cells.sum())
    new = np.cumsum(cells) / n
    known = np.cumsum(reference.share)
    at, below = new[1::2], new[:-1:2]
    value = float(max(np.abs(at - known).max(), np.abs(below - (known - reference.share)).max()))
    rows = max(1, round(n * reference.n_effective / (n + reference.n_effective)))
    by_chance = stats.kstwo(rows)
    return Distance(
        value, float(by_chance.mean()), float(by_chance.ppf(level)), float(by_chance.sf(value))
    )


def population_stability(
    new: Floats, known: Floats, n_new: float, n_known: float, level: float
) -> Distance | None:
    """Population stability index of two distributions over bins, ``Σ (p − q) ln(p / q)``.

    Without drift it is close to ``(1 / n_new + 1 / n_known) χ²`` with one degree of freedom less
    than there are bins, to second order in p − q: B. Yurdakul, J. Naranjo, "Statistical properties
    of the population stability index", Journal of Risk Model Validation 14 (2020). Half a row is
    added to every bin, so that an empty one does not make the index infinite.

    Parameters
    ----------
    new, known : ndarray, shape (k,)
        Share of either sample in each bin.
    n_new, n_known : float
        Numbers of rows.
    level : float
        Confidence of `Distance.by_chance_upper`.

    Returns
    -------
    Distance or None
        None for fewer than two bins, which nothing can move between.
    """
    k = len(new)
    if k < 2:
        return None
    p = (new * n_new + 0.5) / (n_new + 0.5 * k)
    q = (known * n_known + 0.5) / (n_known + 0.5 * k)
    value = float(((p - q) * np.log(p / q)).sum())
    scale, chi2 = 1 / n_new + 1 / n_known, stats.chi2(k - 1)
    return Distance(
        value, scale * (k - 1), scale * float(chi2.ppf(level)), float(chi2.sf(value / scale))
    )
