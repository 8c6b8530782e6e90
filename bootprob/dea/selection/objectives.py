"""What a joint selection of outputs makes of the efficiencies, thesis (5.19) to (5.32)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np

from bootprob.dea.panel_tables import by_name
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

__all__ = ["EfficiencyObjective"]


_OPTIONS = {"weights": "--weight-column", "percentile": "--percentile"}
_NAMES = ("mean", "weighted", "quadratic", "minimum", "percentile")


@dataclass(frozen=True)
class EfficiencyObjective:
    """An objective that never gets worse when an efficiency grows.

    Attributes
    ----------
    name : {"mean", "weighted", "quadratic", "minimum", "percentile"}
    weight : ndarray, shape (K,)
        Of each unit in a sum; it includes 1 / K.
    rank : int
        Of the efficiency that counts, 1 for the least; 1 where sums count.
    """

    name: str
    weight: Floats
    rank: int = 1

    @classmethod
    def of(
        cls,
        name: str,
        units: tuple[str, ...],
        *,
        weights: Any = None,
        percentile: float | None = None,
    ) -> Self:
        """Check what was given.

        Parameters
        ----------
        name : {"mean", "weighted", "quadratic", "minimum", "percentile"}
            (5.19), (5.23), (5.24), (5.25) and (5.26).
        weights : array_like of shape (K,), or dict or named Series of unit to float, optional
            ω of (5.23), for "weighted"; units that a dict lacks have 0.
        percentile : float, optional
            π of (5.26), in (0, 100], for "percentile": the efficiency of rank
            ``max(1, ⌊K π / 100⌋)`` from below.

        Raises
        ------
        DataError
            The name is unknown, or weights or percentile are missing, not needed or unusable.
        """
        if name not in _NAMES:
            raise DataError(f"objective is {name!r}; give one of {', '.join(map(repr, _NAMES))}.")
        for option, value, owner in (
            ("weights", weights, "weighted"), ("percentile", percentile, "percentile")
        ):  # fmt: skip
            if value is None and name == owner:
                raise DataError(f"objective={owner!r} needs {option} ({_OPTIONS[option]}).")
            if value is not None and name != owner:
                raise DataError(
                    f"{option} given with objective={name!r}; only {owner!r} uses that."
                )
        n = len(units)
        weight, rank = np.full(n, 1 / n), 1
        if weights is not None:
            weight = _weights(weights, units) / n
        if percentile is not None:
            if (
                not isinstance(percentile, Real)
                or isinstance(percentile, bool)
                or not 0 < float(percentile) <= 100
            ):
                raise DataError(
                    f"percentile is {percentile!r}; give a number above 0, at most 100."
                )
            rank = max(1, math.floor(n * float(percentile) / 100 + 1e-9))
        return cls(name, weight, rank)

    @property
    def minimised(self) -> bool:
        """Whether less is better: the quadratic distance of (5.24)."""
        return self.name == "quadratic"

    @property
    def code(self) -> int:
        """Of the compiled functions."""
        from bootprob.dea.efficiencies.simplex_compiled import LINEAR, QUADRATIC, RANK

        if self.name in ("mean", "weighted"):
            return LINEAR
        return QUADRATIC if self.minimised else RANK

    def merit(self, efficiencies: Floats) -> float:
        """The objective where more is better: its negative if it is minimised."""
        if self.name in ("mean", "weighted"):
            return float(self.weight @ efficiencies)
        if self.minimised:
            return -float(self.weight @ np.square(1 - efficiencies))
        return float(np.partition(efficiencies, self.rank - 1)[self.rank - 1])

    def value(self, merit: float) -> float:
        """The objective as the thesis has it."""
        return -merit + 0.0 if self.minimised else merit


def _weights(weights: Any, units: tuple[str, ...]) -> Floats:
    weights = by_name(weights, "weights")
    if isinstance(weights, Mapping):
        unknown = [name for name in weights if name not in units]
        if unknown:
            raise DataError(f"weights name {unknown[0]!r}, which is no unit.")
        weights = [weights.get(name, 0.0) for name in units]
    try:
        values = np.array(weights, dtype=float)
    except (TypeError, ValueError):
        raise DataError("weights are no numbers; give one for each unit.") from None
    if values.shape != (len(units),):
        raise DataError(
            f"weights have the shape {values.shape}; give one for each of the {len(units)} units."
        )
    if not np.isfinite(values).all() or (values < 0).any() or not values.any():
        raise DataError("weights must be finite, none negative, and not all zero.")
    return values
