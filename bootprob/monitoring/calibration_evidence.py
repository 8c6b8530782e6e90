"""Evidence, valid at any time, that probabilities are no longer calibrated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import chi2

from bootprob.calibration.logistic_posterior import logistic_posterior
from bootprob.exceptions import DataError
from bootprob.monitoring.bins import CENTERS, bins_of
from bootprob.runtime.arrays import Floats

__all__ = ["CalibrationEvidence"]

_REGION = 0.025  # chance that what training left open does not hold the truth
_ALARM = 80.0  # a chance of 1/80 on top of it; as much is left for drift
_FIRST, _GROWTH = 20, 0.05  # rows, and share of those before, after which the alternative learns
_ALTERNATIVES = np.square([[2.0, 1e-6], [1.0, 0.5]])  # base rate alone; with the slope
_FLAT = 1e6  # prior variance that is none
_DESIGN = np.stack([np.ones_like(CENTERS), CENTERS], axis=1)


@dataclass(frozen=True)
class CalibrationEvidence:
    """An e-process against ``logit P(y = 1) = a + b · logit p`` with (a, b) near (0, 1).

    What is near is an ellipse that holds all that the calibration of the training rows left open:
    a larger table would else be an alarm by itself, as no finite one calibrates exactly. The value
    is the likelihood of the labels under what the rows before each of them taught, the mean over
    two such alternatives, by the largest likelihood that any (a, b) of the ellipse gives them
    (universal inference; L. Wasserman, A. Ramdas, S. Balakrishnan, PNAS 117 (2020) 16880–16890,
    section 8). While nothing has changed, it ever reaches 1/α with a chance of at most α, however
    often it is looked at (Ville's inequality).

    Attributes
    ----------
    rows, positives : ndarray, shape (z,)
        How many labelled rows had the logit of each bin, and how many were positive.
    numerators : ndarray, shape (2,)
        Log-likelihoods of the alternatives.
    largest : float
        Of the e-values so far.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.monitoring import CalibrationEvidence
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=400)
    >>> labels = rng.uniform(size=400) < 1 / (1 + np.exp(-logits - 1.5))  # more than is said
    >>> found = CalibrationEvidence().after(logits, labels, 0.01 * np.eye(2))
    >>> found.alarm
    True
    """

    rows: Floats = field(default_factory=lambda: np.zeros(len(CENTERS)))
    positives: Floats = field(default_factory=lambda: np.zeros(len(CENTERS)))
    numerators: Floats = field(default_factory=lambda: np.zeros(2))
    largest: float = 1.0

    @property
    def alarm(self) -> bool:
        """Whether the e-value has ever been 80: at most 3.75 % of unchanged tables' has.

        1.25 %, and 2.5 % that the ellipse does not hold the truth.
        """
        return self.largest >= _ALARM

    def after(self, logits: Floats, positive: NDArray[np.bool_], covariance: Floats) -> Self:
        """The evidence with more rows, in their order.

        Parameters
        ----------
        logits : ndarray, shape (k,)
            Of the probabilities that were said of them.
        positive : ndarray of bool, shape (k,)
            Which rows are of the positive class.
        covariance : ndarray, shape (2, 2)
            Of (a, b), as training left it.

        Raises
        ------
        DataError
            Rows and labels are not as many, labels are other than these, logits are NaN, or
            `covariance` is none.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.monitoring import CalibrationEvidence
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(size=400)
        >>> labels = rng.uniform(size=400) < 1 / (1 + np.exp(-logits - 1.5))  # more than is said
        >>> found = CalibrationEvidence().after(logits, labels, 0.01 * np.eye(2))
        >>> int(found.rows.sum())
        400
        """
        given, logits = np.asarray(positive), np.asarray(logits, dtype=np.float64)
        if given.shape != logits.shape or given.ndim != 1 or not np.isin(given, (0, 1)).all():
            raise DataError(
                f"positive must hold whether each of {len(logits)} rows is of the positive class, "
                f"as booleans or 1 and 0; it has the shape {given.shape}."
            )
        if not _is_covariance(covariance):
            raise DataError(
                "covariance must be symmetric, (2, 2), with positive variances; got "
                f"{np.asarray(covariance).tolist()}."
            )
        positive = given.astype(bool)  # 0 and 1 would be taken for places
        found, done = self, 0
        while done < len(logits):
            size = max(_FIRST, int(_GROWTH * found.rows.sum()))
            batch = slice(done, done + size)
            found = found._with_batch(bins_of(logits[batch]), positive[batch], covariance)
            done += size
        return found

    def _with_batch(
        self, bins: NDArray[np.intp], positive: NDArray[np.bool_], covariance: Floats
    ) -> Self:
        size = len(CENTERS)
        rows = np.bincount(bins, minlength=size).astype(np.float64)
        positives = np.bincount(bins[positive], minlength=size).astype(np.float64)
        numerators = self.numerators + [
            _log_likelihood(self._learnt(np.diag(each) + covariance), rows, positives)
            for each in _ALTERNATIVES
        ]
        all_rows, all_positives = self.rows + rows, self.positives + positives
        null = _log_likelihood(
            _nearest(all_rows, all_positives, covariance), all_rows, all_positives
        )
        value = float(np.exp(min(logsumexp(numerators) - np.log(2) - null, 700.0)))
        return replace(
            self,
            rows=all_rows,
            positives=all_positives,
            numerators=numerators,
            largest=max(self.largest, value),
        )

    def _learnt(self, prior: Floats) -> Floats:
        """Intercept and slope by the rows so far."""
        return _mode(self.rows, self.positives, prior)


def _is_covariance(given: Floats) -> bool:
    found = np.asarray(given, dtype=np.float64)
    return (
        found.shape == (2, 2)
        and bool(np.isfinite(found).all())
        and np.allclose(found, found.T)
        and bool((np.linalg.eigvalsh(found) > 0).all())
    )


def _nearest(rows: Floats, positives: Floats, covariance: Floats) -> Floats:
    """The likeliest intercept and slope within the ellipse."""
    radius, start = chi2.isf(_REGION, 2), np.array([0.0, 1.0])
    precision = np.linalg.inv(covariance)

    def beyond(log_scale: float) -> float:
        away = _mode(rows, positives, covariance * np.exp(log_scale)) - start
        return float(away @ precision @ away - radius)

    widest = np.log(_FLAT)
    if beyond(widest) <= 0:
        return _mode(rows, positives, covariance * _FLAT)
    tightest = -np.log(_FLAT) - np.log(rows.sum() + 1)
    return _mode(rows, positives, covariance * np.exp(brentq(beyond, tightest, widest, xtol=1e-6)))


def _mode(rows: Floats, positives: Floats, prior: Floats) -> Floats:
    seen = rows > 0
    share = positives[seen] / rows[seen]
    return logistic_posterior(_DESIGN[seen], share, rows[seen], np.array([0.0, 1.0]), prior)[0]


def _log_likelihood(theta: Floats, rows: Floats, positives: Floats) -> float:
    eta = _DESIGN @ theta
    return float(positives @ eta - rows @ np.logaddexp(0.0, eta))
