"""Evidence, valid at any time, that rows are no longer those that a model was trained on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bootprob.monitoring.bins import CENTERS, bins_of
from bootprob.runtime.arrays import Floats

__all__ = ["DriftEvidence"]

_ALARM = 80.0
_JUMPS = 0.01  # of the capital between the bets, each row
_ROWS_AT_ONCE = 500  # compared with each other
_SEED = 20261125


@dataclass(frozen=True)
class DriftEvidence:
    """A test martingale against rows that come in any order (exchangeable), by their logits.

    Where a row's logit stands among all before it, ties at random, is uniform while nothing
    changes (conformal p-values). Bets that the logits rise, that they fall, and that they go to the
    ends or to the middle make the martingale: the mean of two Simple Jumpers (V. Vovk, I. Petej,
    I. Nouretdinov, E. Ahlberg, L. Carlsson, A. Gammerman, "Retrain or not retrain: conformal test
    martingales for change-point detection", PMLR 152 (2021) 191–210, algorithm 1). While nothing
    has changed it ever reaches 1/α with a chance of at most α.

    Attributes
    ----------
    pool : ndarray, shape (z,)
        How many rows had the logit of each bin: training rows by their out-of-bag probabilities,
        and those seen since.
    capital : ndarray, shape (2, 3)
        Of each bet.
    log_scale : float
        Of the capital: its logarithm is that of what stands here, and this.
    largest : float
        Of the martingale's values so far.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.monitoring import DriftEvidence
    >>> rng = np.random.default_rng(0)
    >>> evidence = DriftEvidence.beside(rng.normal(size=300))
    >>> evidence.after(rng.normal(size=300)).alarm, evidence.after(rng.normal(1, 1, 300)).alarm
    (False, True)
    """

    pool: Floats = field(default_factory=lambda: np.zeros(len(CENTERS)))
    capital: Floats = field(default_factory=lambda: np.full((2, 3), 1 / 3))
    log_scale: float = 0.0
    largest: float = 1.0

    @classmethod
    def beside(cls, logits: Floats) -> Self:
        """Before any row was seen, beside those that a model knows.

        Parameters
        ----------
        logits : ndarray, shape (n,)
            Of the training rows, out of bag.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.monitoring import DriftEvidence
        >>> rng = np.random.default_rng(0)
        >>> evidence = DriftEvidence.beside(rng.normal(size=300))
        >>> int(evidence.pool.sum())
        300
        """
        counts = np.bincount(bins_of(logits), minlength=len(CENTERS))
        return cls(counts.astype(np.float64))

    @property
    def alarm(self) -> bool:
        """Whether the martingale has ever been 80: at most 1.25 % of unchanged tables' has."""
        return self.largest >= _ALARM

    def after(self, logits: Floats) -> Self:
        """The evidence with more rows.

        Parameters
        ----------
        logits : ndarray, shape (k,)
            Of the rows, in their order.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.monitoring import DriftEvidence
        >>> rng = np.random.default_rng(0)
        >>> evidence = DriftEvidence.beside(rng.normal(size=300))
        >>> int(evidence.after(rng.normal(size=100)).pool.sum())
        400
        """
        found, bins = self, bins_of(logits)
        for start in range(0, len(bins), _ROWS_AT_ONCE):
            found = found._with_block(bins[start : start + _ROWS_AT_ONCE])
        return found

    def _with_block(self, bins: NDArray[np.intp]) -> Self:
        places = self._places(bins)
        of_bets = [places, 2 * np.abs(places - 0.5)]
        capital = np.empty((2, 3))
        values = np.zeros(len(bins))
        for k, each in enumerate(of_bets):
            capital[k], path = _jumped(self.capital[k], each)
            values += path / 2
        scale = capital.sum() / 2
        largest = float(np.exp(min(np.log(values.max()) + self.log_scale, 700.0)))
        return replace(
            self,
            pool=self.pool + np.bincount(bins, minlength=len(CENTERS)),
            capital=capital / scale,
            log_scale=self.log_scale + float(np.log(scale)),
            largest=max(self.largest, largest),
        )

    def _places(self, bins: NDArray[np.intp]) -> Floats:
        """Share of the rows so far that lie above each, ties and itself at random, shape (k,)."""
        total = self.pool.sum()
        above = total - np.cumsum(self.pool)
        earlier = np.tri(len(bins), k=-1, dtype=bool)
        higher = above[bins] + (earlier & (bins[None] > bins[:, None])).sum(axis=1)
        same = self.pool[bins] + (earlier & (bins[None] == bins[:, None])).sum(axis=1)
        random = np.random.default_rng([_SEED, int(total)]).random(len(bins))
        return (higher + random * (same + 1)) / (total + np.arange(1, len(bins) + 1))


def _jumped(capital: Floats, places: Floats) -> tuple[Floats, Floats]:
    """Capital of the bets (−1, 0, 1) after numbers that may be uniform, and its sum at each."""
    down, none, up = capital.tolist()
    path = []
    for place in places.tolist():
        share = _JUMPS / 3 * (down + none + up)
        kept = 1 - _JUMPS
        bet = place - 0.5
        down = (kept * down + share) * (1 - bet)
        none = kept * none + share
        up = (kept * up + share) * (1 + bet)
        path.append(down + none + up)
    return np.array([down, none, up]), np.array(path)
