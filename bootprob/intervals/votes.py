"""Intervals of vote shares, the papers' own: they measure the noise of B draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import DataError
from bootprob.intervals.levels import listed, normal_quantile
from bootprob.runtime.arrays import Floats

__all__ = ["OF_VOTES", "VOTE_INTERVALS", "of_votes", "wald", "wilson"]

Votes = NDArray[np.floating] | NDArray[np.integer] | int


def of_votes(
    vote: Floats, n_votes: Votes, level: float, method: str, *, clip: bool = False
) -> Floats:
    """Interval of a vote share by one of `VOTE_INTERVALS`, shape (n, 2).

    Parameters
    ----------
    vote : ndarray, shape (n,)
        Vote shares.
    n_votes : int or ndarray, shape (n,)
        B, the number of replicates that voted.
    level : float
        Confidence level.
    method : str
        One of `OF_VOTES`.
    clip : bool, default False
        Cut the bounds at 0 and 1.

    Raises
    ------
    DataError
        There is no such method, or the level does not lie between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import of_votes
    >>> of_votes(np.array([0.9]), 100, 0.95, "wilson").round(3)
    array([[0.826, 0.945]])
    """
    if method not in VOTE_INTERVALS:
        raise DataError(f"method is {method!r}; give {listed(OF_VOTES)}.")
    return VOTE_INTERVALS[method].bounds(vote, n_votes, level, clip=clip)


def wald(vote: Floats, n_votes: Votes, level: float, *, clip: bool = False) -> Floats:
    """Interval of a vote share by the largest binomial variance, thesis (3.5).

    ``p̂ ± z √(¼ / B)``. Its width does not depend on ``p̂``: a row with all votes on one side
    gets the same width as any other, and the bounds pass 0 or 1.

    Parameters
    ----------
    vote : ndarray, shape (n,)
        Vote shares.
    n_votes : int or ndarray, shape (n,)
        B, the number of replicates that voted.
    level : float
        Confidence level.
    clip : bool, default False
        Cut the bounds at 0 and 1.

    Returns
    -------
    ndarray, shape (n, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import wald
    >>> wald(np.array([0.5, 1.0]), 100, 0.95).round(3)
    array([[0.402, 0.598],
           [0.902, 1.098]])
    """
    half = normal_quantile(level) * np.sqrt(0.25 / n_votes)
    bounds = np.stack([vote - half, vote + half], axis=-1)
    return np.clip(bounds, 0.0, 1.0) if clip else bounds


def wilson(vote: Floats, n_votes: Votes, level: float, *, clip: bool = False) -> Floats:
    """Wilson's score interval of a vote share, shape (n, 2); parameters as for `wald`.

    There is nothing to clip.

    E. B. Wilson, J. American Statistical Association 22 (1927) 209–212.

    Parameters
    ----------
    vote : ndarray, shape (n,)
        Vote shares.
    n_votes : int or ndarray, shape (n,)
        B, the number of replicates that voted.
    level : float
        Confidence level.
    clip : bool, default False
        Without effect: the bounds never pass 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import wilson
    >>> wilson(np.array([0.5, 1.0]), 100, 0.95).round(3)
    array([[0.404, 0.596],
           [0.963, 1.   ]])
    """
    z2, n_votes = normal_quantile(level) ** 2, np.asarray(n_votes, dtype=np.float64)
    center = (vote + z2 / (2 * n_votes)) / (1 + z2 / n_votes)
    spread = np.sqrt(vote * (1 - vote) / n_votes + z2 / (4 * np.square(n_votes)))
    half = np.sqrt(z2) * spread / (1 + z2 / n_votes)
    return np.clip(np.stack([center - half, center + half], axis=-1), 0.0, 1.0)  # but for rounding


@dataclass(frozen=True)
class VoteInterval:
    """A formula, and what the documentation of `BootstrapSVC` says of it."""

    bounds: Callable[..., Floats]
    doc: str


VOTE_INTERVALS = {
    "wald": VoteInterval(
        wald,
        """thesis (3.5) around `vote_proba`. It measures the Monte-Carlo noise of B draws and
        nothing else. Its width is the same for every row, also where all votes fall on one side
        (it uses the largest variance, ¼), and its bounds pass 0 and 1.""",
    ),
    "wilson": VoteInterval(
        wilson, "Wilson's interval around `vote_proba`; measures the same noise."
    ),
}
OF_VOTES = tuple(VOTE_INTERVALS)
