"""Rows of subjects, with the probability that a row of a new subject has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bootprob.runtime.arrays import Floats

__all__ = ["GROUPED", "GroupedTruth"]

_SLOPES = np.array([1.0, -1.0, 0.5, 0.0, 0.0])
_CORRELATION = 0.2  # of the latent logits of a subject's rows, given the columns
_BETWEEN = 0.5  # share of the columns' variance that subjects have in common
_NOISE = 0.5  # standard deviation of a measurement, where the label is the subject's
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(64)


@dataclass(frozen=True)
class GroupedTruth:
    """Subjects with equally many rows.

    Attributes
    ----------
    name : str
    size : int
        Rows of each.
    shared : bool
        Whether all rows of a subject have one label: that of the subject's own columns, which are
        measured anew for each row. Else each subject has an intercept, of intraclass correlation
        .2, and columns that vary within subjects as much as between them.
    """

    name: str
    size: int
    shared: bool

    def draw(
        self, rng: np.random.Generator, n_groups: int
    ) -> tuple[Floats, NDArray[np.bool_], NDArray[Any], Floats]:
        """Rows, labels, subjects and true probabilities."""
        own = rng.normal(size=(n_groups, len(_SLOPES)))
        within = rng.normal(size=(n_groups * self.size, len(_SLOPES)))
        groups = np.repeat(np.arange(n_groups), self.size)
        if self.shared:
            X = own[groups] + _NOISE * within
            y = (rng.random(n_groups) < expit(own @ _SLOPES))[groups]
            known = 1 / (1 + _NOISE**2)  # of a subject's columns, by one row
            return X, y, groups, _mean(X @ _SLOPES * known, _SLOPES @ _SLOPES * (1 - known))
        X = np.sqrt(_BETWEEN) * own[groups] + np.sqrt(1 - _BETWEEN) * within
        variance = _CORRELATION / (1 - _CORRELATION) * np.pi**2 / 3
        intercepts = np.sqrt(variance) * rng.normal(size=n_groups)
        y = rng.random(len(X)) < expit(X @ _SLOPES + intercepts[groups])
        return X, y, groups, _mean(X @ _SLOPES, variance)


def _mean(logits: Floats, variance: float) -> Floats:
    """Mean probability of normal logits."""
    at_nodes: Floats = expit(logits[:, None] + np.sqrt(variance) * _NODES)
    return at_nodes @ _WEIGHTS / _WEIGHTS.sum()


GROUPED = [
    GroupedTruth(f"{what}, {size} rows a subject", size, shared)
    for what, shared in (("an intercept of each subject", False), ("one label a subject", True))
    for size in (5, 10)
]
