"""The cross-efficiency matrix: every unit valued by the weights of every other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from bootprob.dea.efficiencies.scores import as_panel, efficiency
from bootprob.dea.panel import Panel
from bootprob.exceptions import DataError

if TYPE_CHECKING:
    import pandas as pd

    from bootprob.dea.panel_tables import Table

__all__ = ["CrossEfficiency", "Goal", "cross_efficiency"]

Goal = Literal["benevolent", "aggressive"]

_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class CrossEfficiency:
    """Ratios β'y / α'x of all units at the weights of all units.

    Attributes
    ----------
    panel : Panel
        The units with what they use and make.
    goal : {"benevolent", "aggressive"} or None
        By which weights were picked that are not unique.
    matrix : ndarray (K, K)
        Row: the unit whose weights are used; column: the unit that is valued. The diagonal holds
        the units' own efficiencies; no entry is above 1.
    input_weights, output_weights : ndarray (K, N) and (K, M)
        α and β of each unit.

    Examples
    --------
    >>> from bootprob.dea import cross_efficiency
    >>> found = cross_efficiency([1, 1, 1], [[2, 1], [1, 2], [1, 1]], goal="aggressive")
    >>> found.scores.round(3).tolist()  # the mean of each column
    [0.833, 0.833, 0.556]
    >>> found.maverick.round(3).tolist()  # its own weights show each a third better
    [0.333, 0.333, 0.333]
    """

    panel: Panel
    goal: Goal | None
    matrix: np.ndarray
    input_weights: np.ndarray
    output_weights: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """Mean value of each unit at the weights of all, its own among them; (K,)."""
        return self.matrix.mean(axis=0)

    @property
    def maverick(self) -> np.ndarray:
        """Excess of a unit's own efficiency over its mean value at the others' weights; (K,).

        Relative to the latter (Doyle and Green 1994); zero for a single unit.
        """
        own = np.diag(self.matrix)
        others = (self.matrix.sum(axis=0) - own) / max(len(own) - 1, 1)
        if len(own) == 1:
            return np.zeros(1)
        return np.divide(own - others, others, out=np.full(len(own), np.inf), where=others > 0)

    def to_frame(self) -> pd.DataFrame:
        """The matrix: units whose weights are used in rows, units that are valued in columns.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import cross_efficiency
        >>> cross_efficiency(toy, goal="aggressive").to_frame().round(2)
        unit           A     B     C
        weights of
        A           1.00  0.80  0.20
        B           0.50  1.00  0.25
        C           0.17  0.33  1.00
        """
        import pandas as pd

        units = list(self.panel.units)
        return pd.DataFrame(
            self.matrix,
            index=pd.Index(units, name="weights of"),
            columns=pd.Index(units, name="unit"),
        )


def cross_efficiency(
    inputs: Panel | Table, outputs: Table | None = None, *, goal: Goal | None = "benevolent"
) -> CrossEfficiency:
    """Value every unit at the weights that are best for each unit; constant returns, inputs.

    The best weights are often not unique, and the matrix depends on which are taken. The secondary
    goal of Doyle and Green (1994) settles it: of the weights that keep a unit's own efficiency θ,
    those with the largest ("benevolent") or least ("aggressive") sum of weighted outputs of the
    other units, where α'(sum of the other units' inputs) = 1.

    Parameters
    ----------
    inputs, outputs
        As for `efficiency`.
    goal : {"benevolent", "aggressive"} or None, default "benevolent"
        None takes the weights of `efficiency`.

    Returns
    -------
    CrossEfficiency

    Raises
    ------
    PanelError
        As for `efficiency`.
    DataError
        The goal is unknown, or a program is not solved.

    Examples
    --------
    >>> found = cross_efficiency([1, 1, 1], [[2, 1], [1, 2], [1, 1]], goal="aggressive")
    >>> found.matrix.round(3).tolist()
    [[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [1.0, 1.0, 0.667]]
    """
    if goal is not None and goal not in get_args(Goal):
        raise DataError(f"goal is {goal!r}; give 'benevolent', 'aggressive' or None.")
    panel = as_panel(inputs, outputs)
    result = efficiency(panel, slacks=False)
    if set(result.status) != {"optimal"}:
        raise DataError("Some efficiencies are not solved to 1e-6; their weights mean nothing.")
    alpha, beta = result.input_weights.copy(), result.output_weights.copy()
    if goal is not None and panel.n_units > 1:
        for unit in range(panel.n_units):
            alpha[unit], beta[unit] = _by_goal(panel, unit, float(result.scores[unit]), goal)
    used = alpha @ panel.inputs.T
    if (used <= 0).any():
        user, valued = np.argwhere(used <= 0)[0].tolist()
        raise DataError(
            f"At the weights of unit {panel.units[user]!r} unit {panel.units[valued]!r} uses "
            "nothing, so it has no value there; inputs must be above zero for that."
        )
    return CrossEfficiency(panel, goal, (beta @ panel.outputs.T) / used, alpha, beta)


def _by_goal(panel: Panel, unit: int, score: float, goal: Goal) -> tuple[np.ndarray, np.ndarray]:
    """Weights of a unit by the secondary goal, brought to α'x = 1 of the unit itself."""
    from scipy import optimize

    linprog: Any = optimize.linprog  # its stubs know no such call
    X, Y = panel.inputs, panel.outputs
    N = panel.n_inputs
    unit_x, unit_y = (
        np.where(row > 0, row, np.where(top > 0, top, 1.0))
        for row, top in ((X[unit], X.max(axis=0)), (Y[unit], Y.max(axis=0)))
    )
    rows = np.hstack((-X / unit_x, Y / unit_y))
    rows /= np.abs(rows).max(axis=1, keepdims=True)
    others = np.arange(panel.n_units) != unit
    total_x, total_y = (X[others] / unit_x).sum(axis=0), (Y[others] / unit_y).sum(axis=0)
    size = total_x.max()
    sign = -1.0 if goal == "benevolent" else 1.0
    own = np.concatenate((-score * X[unit] / unit_x, Y[unit] / unit_y))
    common = {
        "c": np.concatenate((np.zeros(N), sign * total_y / size)),
        "A_eq": np.concatenate((total_x / size, np.zeros(len(unit_y))))[None],
        "b_eq": np.ones(1),
        "method": "highs-ds",
    }
    for room in (0.0, _TOLERANCE, 10 * _TOLERANCE):  # the score leaves none for rounding
        kept = own.copy()
        kept[:N] *= 1.0 - room
        found = linprog(A_ub=np.vstack((rows, -kept)), b_ub=np.zeros(len(rows) + 1), **common)
        if found.status == 0:
            weights = np.maximum(found.x, 0.0)
            alpha, beta = weights[:N] / unit_x, weights[N:] / unit_y
            used = alpha @ X[unit]
            if used > 0:
                return alpha / used, beta / used
            raise DataError(
                f"At goal={goal!r} the weights of unit {panel.units[unit]!r} are only on inputs "
                "that it does not use, and nothing can be told from them; use goal=None."
            )
    raise DataError(
        f"The secondary goal of unit {panel.units[unit]!r} is not solved; use goal=None."
    )
