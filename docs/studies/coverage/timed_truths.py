"""Rows in order of time, with their true probabilities, for as long as one likes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import expit

from bootprob.runtime.arrays import Floats

__all__ = ["TIMED", "TimedTruth"]

_P = 10
_SLOPES = np.array([1.0, -1.0, 0.5, *[0.0] * (_P - 3)])
_NOISE = 1.5  # standard deviation of a latent logit that no column tells


@dataclass(frozen=True)
class TimedTruth:
    """Rows one after the other.

    Attributes
    ----------
    name : str
    persistence : float
        Autoregression, from row to row, of each column and of a latent logit; 0 for independent
        rows, which have no latent logit.
    turn : float
        By how much the direction of the slopes turns towards another one over `n` rows, in radians.
    """

    name: str
    persistence: float = 0.0
    turn: float = 0.0

    def draw(
        self, rng: np.random.Generator, n: int, later: int
    ) -> tuple[Floats, NDArray[np.bool_], Floats]:
        """Columns, labels and true probabilities of n rows and as many later ones as asked."""
        innovation = np.sqrt(1 - self.persistence**2)
        series = rng.normal(size=(n + later, _P + 1))
        series[1:] *= innovation
        series = lfilter([1.0], [1.0, -self.persistence], series, axis=0)
        X, latent = series[:, :_P], series[:, _P] * (_NOISE if self.persistence else 0.0)
        angle = self.turn * np.arange(n + later) / n
        slopes = np.cos(angle)[:, None] * _SLOPES + np.sin(angle)[:, None] * np.roll(_SLOPES, 3)
        p: Floats = expit((X * slopes).sum(axis=1) + latent)
        return X, rng.random(n + later) < p, p


TIMED = [
    TimedTruth("independent rows"),
    TimedTruth("columns and a latent logit with an autocorrelation of .9", persistence=0.9),
    TimedTruth("columns and a latent logit with an autocorrelation of .97", persistence=0.97),
    TimedTruth("independent rows, slopes that turn by 90°", turn=np.pi / 2),
]
