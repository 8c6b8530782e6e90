"""Outputs chosen for all units or for one, with what they attain and what is proven of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bootprob.dea.panel import Panel
from bootprob.optimization.search_result import SelectionResult
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JointSelection", "SelectionCurve", "UnitSelection"]


@dataclass(frozen=True, kw_only=True)
class JointSelection(SelectionResult):
    """Outputs chosen for all units; `features` are their positions.

    Attributes
    ----------
    outputs : tuple of str
        Their names.
    efficiencies : ndarray, shape (K,)
        Under them, computed anew with a certificate.
    units : tuple of str
        Their names, in the order of `efficiencies`.
    inputs : tuple of str
        Names of the inputs, the same for all units: all, or those that were chosen as well.
    input_positions : tuple of int
        Positions of `inputs` in the panel, ascending.
    objective_name : {"mean", "weighted", "quadratic", "minimum", "percentile"}
        "quadratic" is minimised: its bound is from below.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import select_outputs
    >>> found = select_outputs(toy, 2)
    >>> found.features, found.outputs
    ((0, 2), ('output 1', 'output 3'))
    >>> found.efficiencies.round(3).tolist(), found.gap
    ([1.0, 0.966, 1.0], 0.0)
    """

    outputs: tuple[str, ...]
    efficiencies: Floats
    units: tuple[str, ...]
    inputs: tuple[str, ...]
    input_positions: tuple[int, ...]
    objective_name: str

    def to_frame(self) -> pd.DataFrame:
        """Efficiencies, one row for each unit.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import select_outputs
        >>> select_outputs(toy, 2).to_frame().round(3)
              efficiency
        unit
        A          1.000
        B          0.966
        C          1.000
        """
        import pandas as pd

        return pd.DataFrame(
            {"efficiency": self.efficiencies}, index=pd.Index(self.units, name="unit")
        )


@dataclass(frozen=True, kw_only=True)
class UnitSelection(SelectionResult):
    """Outputs, and inputs, chosen for one unit; the objective is its efficiency.

    Attributes
    ----------
    unit : str
        Name of the unit.
    outputs, inputs : tuple of str
        Names of those chosen.
    input_positions : tuple of int
        Positions of `inputs` in the panel, ascending.
    output_weights, input_weights : ndarray, shape (p,) and (N,) or (p̃,)
        β and α in the units of the data, with ``α x = 1``, for `outputs` and `inputs`.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import select_for_unit
    >>> found = select_for_unit(toy, "A", 1)
    >>> found.unit, found.outputs, found.objective
    ('A', ('output 1',), 1.0)
    >>> found.output_weights.round(3).tolist()  # times its output of 5 that is 1
    [0.2]
    """

    unit: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    input_positions: tuple[int, ...]
    output_weights: Floats
    input_weights: Floats


@dataclass(frozen=True)
class SelectionCurve:
    """v(p): the best objective with p outputs, for several p.

    Attributes
    ----------
    selections : tuple of JointSelection
        In the order of p.
    nested : tuple of float
        Objective of the nested selection of Pastor et al. for each p.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import selection_curve
    >>> curve = selection_curve(toy, 3)
    >>> curve.sizes, curve.values.round(3).tolist()
    ((1, 2, 3), [0.667, 0.989, 1.0])
    >>> curve.marginal.round(3).tolist()  # what the second and the third output add
    [nan, 0.322, 0.011]
    """

    selections: tuple[JointSelection, ...]
    nested: tuple[float, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """P."""
        return tuple(len(selection.features) for selection in self.selections)

    @property
    def values(self) -> Floats:
        """v(p), or the best known."""
        return np.array([selection.objective for selection in self.selections])

    @property
    def marginal(self) -> Floats:
        """v(p) − v of the size before; NaN for the first."""
        return np.diff(self.values, prepend=np.nan)

    def to_frame(self) -> pd.DataFrame:
        """One row for each p: objective, bound, gap, status, efficiencies, columns (table 5.3).

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import selection_curve
        >>> selection_curve(toy, 2).to_frame()[["objective", "marginal", "gap", "nested"]].round(3)
           objective  marginal  gap  nested
        p
        1      0.667       NaN  0.0   0.667
        2      0.989     0.322  0.0   0.989
        """
        import pandas as pd

        rows = []
        for selection, marginal, nested in zip(
            self.selections, self.marginal, self.nested, strict=True
        ):
            e = selection.efficiencies
            q1, q2, q3 = np.quantile(e, (0.25, 0.5, 0.75))
            rows.append(
                {
                    "objective": selection.objective, "marginal": marginal,
                    "bound": selection.bound, "gap": selection.gap, "status": selection.status,
                    "nested": nested, "min": e.min(), "max": e.max(), "mean": e.mean(),
                    "st. dev.": e.std(ddof=1) if len(e) > 1 else 0.0,
                    "q1": q1, "q2": q2, "q3": q3, "q3-q1": q3 - q1,
                    "outputs": ", ".join(selection.outputs),
                    "inputs": ", ".join(selection.inputs),
                }
            )  # fmt: skip
        return pd.DataFrame(rows, index=pd.Index(self.sizes, name="p"))


def names_of(panel: Panel, chosen: tuple[int, ...]) -> tuple[str, ...]:
    """Of outputs."""
    return tuple(panel.output_names[j] for j in chosen)
