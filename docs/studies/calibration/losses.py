"""Losses of probabilities, and paired comparisons of methods on the same held-out rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, t

from bootprob.runtime.arrays import Bools, Floats

__all__ = ["LOSSES", "Comparison", "compare", "summarise"]


LEAST = 1e-15  # of a probability in a logarithm

LEVEL = 0.95


def _brier(probability: Floats, positive: Bools) -> Floats:
    return np.square(probability - positive)


def _log_loss(probability: Floats, positive: Bools) -> Floats:
    return -np.log(np.clip(np.where(positive, probability, 1 - probability), LEAST, None))


LOSSES = {"Brier score": _brier, "log-loss": _log_loss}
"""Loss of each row, from the probability of the positive class and whether it is positive."""


@dataclass(frozen=True)
class Comparison:
    """One method's loss less another's.

    Attributes
    ----------
    difference : float
        Mean over all held-out rows.
    of_rows : float
        Half the width of the 95 % interval from the differences of the rows: what other rows
        would do to the difference of the models at hand.
    of_folds : float
        Half the width of the 95 % interval of the corrected resampled t-test from the means of the
        folds (C. Nadeau, Y. Bengio, Machine Learning 52 (2003) 239–281): what other training
        rows would do, too. Infinite for a single fold.
    """

    difference: float
    of_rows: float
    of_folds: float

    @property
    def verdict(self) -> int:
        """1 where the interval of the rows says that the first method is better, −1 worse, or 0."""
        return int(np.sign(-self.difference)) if abs(self.difference) > self.of_rows else 0


def summarise(
    folds: Sequence[tuple[Mapping[str, Floats], Bools]], pairs: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """What is kept of the probabilities of some folds.

    Parameters
    ----------
    folds : sequence of (probabilities, positive)
        Of the rows held out of each fold, probabilities by the name of the method.
    pairs : sequence of (str, str)
        Methods that shall be compared.

    Returns
    -------
    dict
        "held out": rows of each fold; for each of `LOSSES` its "means" by method, a number for
        each fold, and the "squares" of pairs: the sum over all rows of the squared difference.
    """
    kept: dict[str, Any] = {"held out": [len(positive) for _, positive in folds]}
    for name, loss in LOSSES.items():
        rows = [{m: loss(p, positive) for m, p in by.items()} for by, positive in folds]
        kept[name] = {
            "means": {m: [_short(fold[m].mean()) for fold in rows] for m in rows[0]},
            "squares": {
                f"{one} − {other}": _short(
                    sum(np.square(fold[one] - fold[other]).sum() for fold in rows)
                )
                for one, other in pairs
            },
        }
    return kept


def compare(kept: Mapping[str, Any], loss: str, one: str, other: str, rows: int) -> Comparison:
    """Compare two methods on the rows that were held out.

    Parameters
    ----------
    kept : dict
        What `summarise` returned for the pair.
    loss : str
        A key of `LOSSES`.
    one, other : str
        Methods.
    rows : int
        Of the whole table.
    """
    held_out = np.array(kept["held out"], dtype=np.float64)
    means = [np.array(kept[loss]["means"][method]) for method in (one, other)]
    gaps = means[0] - means[1]
    n, k = held_out.sum(), len(gaps)
    difference = float(gaps @ held_out / n)
    square = kept[loss]["squares"][f"{one} − {other}"]
    variance = max(square / n - difference**2, 0.0) * n / max(n - 1, 1)
    of_folds = np.inf
    if k > 1:
        share = held_out.mean() / (rows - held_out.mean())
        of_folds = t.ppf((1 + LEVEL) / 2, k - 1) * gaps.std(ddof=1) * np.sqrt(1 / k + share)
    return Comparison(
        difference, float(norm.ppf((1 + LEVEL) / 2) * np.sqrt(variance / n)), float(of_folds)
    )


def _short(value: float) -> float:
    """Ten significant digits, so that differences of losses keep theirs."""
    return float(f"{value:.10g}")
