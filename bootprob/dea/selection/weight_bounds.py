"""Bounds on the weights of outputs, (5.9) and (5.7′) of the thesis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bootprob.dea.panel import Panel
from bootprob.dea.panel_tables import by_name
from bootprob.dea.selection.subsets import SubsetEfficiencies
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

__all__ = ["WeightBounds"]


@dataclass(frozen=True)
class WeightBounds:
    """L and U: between them lie the weights β of the outputs that are chosen.

    Attributes
    ----------
    lower, upper : ndarray, shape (K, M)
        Of each unit and output, in the units of the data and with ``α x = 1`` for the unit.
    """

    lower: Floats
    upper: Floats

    @classmethod
    def of(cls, panel: Panel, given: Mapping[int | str, Any] | None) -> Self:
        """Check what was given.

        Parameters
        ----------
        given : dict of output to (lower, upper), or None
            Outputs by position or name. Each end is a number, or has one for each unit: an
            array_like of shape (K,), or a dict or named Series that has every unit.

        Raises
        ------
        DataError
            An output is unknown, or ends are no numbers, negative or the wrong way round.
        """
        lower = np.zeros((panel.n_units, panel.n_outputs))
        upper = np.full((panel.n_units, panel.n_outputs), np.inf)
        if given is not None and not isinstance(given, Mapping):
            raise DataError(
                f"weight_bounds is {given!r}; give a dict of outputs to (lower, upper)."
            )
        for output, ends in (given or {}).items():
            (o,) = panel.positions("outputs", [output])
            try:
                low, high = ends
            except (TypeError, ValueError):
                raise _none(output, ends) from None
            lower[:, o], upper[:, o] = (
                _end(low, output, ends, panel),
                _end(high, output, ends, panel),
            )
            wrong = ~((lower[:, o] >= 0) & (lower[:, o] < np.inf) & (upper[:, o] >= lower[:, o]))
            if wrong.any():
                unit = int(wrong.argmax())
                raise DataError(
                    f"The weight bounds of {output!r} are {lower[unit, o]:g} and "
                    f"{upper[unit, o]:g} (unit {panel.units[unit]!r}); give a finite number from 0 "
                    "up, and one that is not less."
                )
        return cls(lower, upper)

    def scaled(self, evaluator: SubsetEfficiencies) -> tuple[Floats, Floats]:
        """L and U for the scaled data of an evaluator, shape (K, M) each."""
        # β y is the same in either units, so β grows as y is scaled down.
        scale = evaluator.output_scale * evaluator.unit_scale[:, None]
        return self.lower * scale, self.upper * scale

    def reached(self, evaluator: SubsetEfficiencies) -> Floats:
        """What no weight of an optimum need exceed, for the scaled data, shape (K, M).

        U, or what makes a unit as efficient as the output alone does; L where a unit does not
        produce: its weight adds nothing.
        """
        lower, upper = self.scaled(evaluator)
        outputs = evaluator.outputs.T
        alone = np.array([evaluator.quick((o,)) for o in range(len(evaluator.outputs))]).T
        produced = outputs > 0
        most = (alone + 1e-9) / np.where(produced, outputs, 1.0)
        return np.where(produced, np.minimum(upper, most), lower)

    @property
    def bounded(self) -> NDArray[np.bool_]:
        """Which outputs have bounds, for some unit, shape (M,)."""
        return np.asarray((self.lower > 0).any(axis=0) | np.isfinite(self.upper).any(axis=0))


def _end(end: Any, output: int | str, ends: Any, panel: Panel) -> Floats:
    end = by_name(end, "weight_bounds")
    if isinstance(end, Mapping):
        if set(end) != set(panel.units):
            odd = sorted(map(str, set(end) ^ set(panel.units)))[0]
            raise DataError(
                f"The weight bounds of {output!r} have or lack {odd!r}; name every unit once."
            )
        end = [end[unit] for unit in panel.units]
    try:
        values = np.asarray(end, dtype=float)
    except (TypeError, ValueError):
        raise _none(output, ends) from None
    if values.shape not in ((), (panel.n_units,)):
        raise DataError(
            f"The weight bounds of {output!r} have the shape {values.shape}; give a number, or one "
            f"for each of the {panel.n_units} units."
        )
    return np.broadcast_to(values, panel.n_units)


def _none(output: int | str, ends: Any) -> DataError:
    return DataError(
        f"The weight bounds of {output!r} are {ends!r}; give two numbers, such as (0, 2)."
    )
