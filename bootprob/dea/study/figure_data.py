"""What figures 5.1 to 5.5 of the thesis show, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bootprob.dea.panel import require_panel
from bootprob.dea.selection.rules import correlation
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

    from bootprob.dea.panel import Panel
    from bootprob.dea.selection.game import SelectionGame
    from bootprob.dea.selection.results import SelectionCurve

__all__ = [
    "ContributionCurve",
    "Histograms",
    "OutputCorrelations",
    "contribution_curve",
    "efficiency_histograms",
    "output_correlations",
    "support_histograms",
]


@dataclass(frozen=True)
class OutputCorrelations:
    """Figures 5.1 and 5.4: correlations of the outputs over the units.

    Attributes
    ----------
    names : tuple of str
        Of the outputs.
    matrix : ndarray (M, M)
        Zero with and within a constant output.
    chosen : tuple of int
        Positions of the selected outputs, ascending.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import output_correlations
    >>> found = output_correlations(toy, chosen=["output 1", "output 3"])
    >>> found.names, found.chosen
    (('output 1', 'output 2', 'output 3'), (0, 2))
    >>> found.of_chosen.matrix.shape
    (2, 2)
    """

    names: tuple[str, ...]
    matrix: Floats
    chosen: tuple[int, ...]

    @property
    def of_chosen(self) -> OutputCorrelations:
        """Figure 5.4: of the selected outputs only."""
        inside = np.ix_(self.chosen, self.chosen)
        names = tuple(self.names[o] for o in self.chosen)
        return OutputCorrelations(names, self.matrix[inside], tuple(range(len(names))))

    def to_frame(self) -> pd.DataFrame:
        """The matrix, outputs in rows and columns.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import output_correlations
        >>> output_correlations(toy).to_frame().round(2)
                  output 1  output 2  output 3
        output
        output 1      1.00      0.58     -1.00
        output 2      0.58      1.00     -0.62
        output 3     -1.00     -0.62      1.00
        """
        import pandas as pd

        return pd.DataFrame(self.matrix, pd.Index(self.names, name="output"), list(self.names))


@dataclass(frozen=True)
class Histograms:
    """Figures 5.3 and 5.5: for each number of outputs how many fall into each interval.

    Attributes
    ----------
    sizes : tuple of int
        p.
    edges : ndarray (L + 1,)
        Intervals are closed on the left, the last one on both sides.
    counts : ndarray (P, L) of int
        How many fall into each interval.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import efficiency_histograms, selection_curve
    >>> found = efficiency_histograms(selection_curve(toy, 2), width=0.5)
    >>> found.sizes, found.edges.tolist(), found.counts.tolist()
    ((1, 2), [0.0, 0.5, 1.0], [[1, 2], [0, 3]])
    """

    sizes: tuple[int, ...]
    edges: Floats
    counts: NDArray[np.int64]

    def to_frame(self) -> pd.DataFrame:
        """One row for each interval, one column for each p.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import efficiency_histograms, selection_curve
        >>> efficiency_histograms(selection_curve(toy, 2), width=0.5).to_frame()
        p           1  2
        interval
        [0.0, 0.5)  1  0
        [0.5, 1.0)  2  3
        """
        import pandas as pd

        index = pd.IntervalIndex.from_breaks(self.edges, closed="left", name="interval")
        return pd.DataFrame(self.counts.T, index, pd.Index(self.sizes, name="p"))


@dataclass(frozen=True)
class ContributionCurve:
    """v(p), its bound, and what each output contributes.

    Attributes
    ----------
    sizes : tuple of int
        p.
    values, bounds, gaps : ndarray (P,)
        Objective, bound, and their relative distance.
    contributions : ndarray (P,)
        v(p) less v of the size before; NaN for the first.
    nested : ndarray (P,)
        Of the nested selection of Pastor et al.
    statuses : tuple of str
        "optimal", "time limit" or "heuristic", for each p.
    objective_name : str
        As `select_outputs` takes it.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import contribution_curve, selection_curve
    >>> found = contribution_curve(selection_curve(toy, 3))
    >>> found.contributions.round(3).tolist(), found.statuses
    ([nan, 0.322, 0.011], ('optimal', 'optimal', 'optimal'))
    """

    sizes: tuple[int, ...]
    values: Floats
    bounds: Floats
    gaps: Floats
    contributions: Floats
    nested: Floats
    statuses: tuple[str, ...]
    objective_name: str

    def to_frame(self) -> pd.DataFrame:
        """One row for each p.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import contribution_curve, selection_curve
        >>> found = contribution_curve(selection_curve(toy, 2)).to_frame()
        >>> found[["objective", "contribution", "status"]].round(3)
           objective  contribution   status
        p
        1      0.667           NaN  optimal
        2      0.989         0.322  optimal
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "objective": self.values, "bound": self.bounds, "gap": self.gaps,
                "contribution": self.contributions, "nested": self.nested,
                "status": self.statuses,
            },
            index=pd.Index(self.sizes, name="p"),
        )  # fmt: skip


def output_correlations(panel: Panel, chosen: Iterable[int | str] = ()) -> OutputCorrelations:
    """Correlations of the outputs over the units: figure 5.1, and 5.4 by its `of_chosen`.

    Parameters
    ----------
    panel : Panel
        The units with what they use and make.
    chosen : iterable of int or str, optional
        Selected outputs.

    Returns
    -------
    OutputCorrelations

    Raises
    ------
    PanelError
        One is not there.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[1, 2, 3], [2, 4, 1], [3, 6, 2]])
    >>> output_correlations(toy, ["output 1", "output 3"]).of_chosen.matrix.round(2).tolist()
    [[1.0, -0.5], [-0.5, 1.0]]
    """
    require_panel(panel)
    positions = tuple(sorted(set(panel.positions("outputs", chosen))))
    return OutputCorrelations(panel.output_names, correlation(panel.outputs), positions)


def efficiency_histograms(curve: SelectionCurve, width: float = 0.05) -> Histograms:
    """Figure 5.3: histograms of the efficiencies, for each p.

    Parameters
    ----------
    curve : SelectionCurve
        Selections of several sizes.
    width : float, default 0.05
        Of the intervals of [0, 1].

    Returns
    -------
    Histograms
        A line of counts for each p.

    Raises
    ------
    DataError
        The width is not above 0 and at most 1.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import efficiency_histograms, selection_curve
    >>> curve = selection_curve(toy, 2)  # with one output, and with two
    >>> efficiency_histograms(curve, width=0.5).counts.tolist()
    [[1, 2], [0, 3]]
    """
    if isinstance(width, bool) or not 0 < width <= 1:
        raise DataError(f"width is {width!r}; give a number above 0, at most 1.")
    edges = np.append(np.arange(0, 1 - 1e-9, width), 1.0)
    # Up to rounding, an efficiency of 0.3 lies in the interval that begins there.
    counts = [
        np.histogram(np.minimum(one.efficiencies + 1e-9, 1.0), edges)[0] for one in curve.selections
    ]
    return Histograms(curve.sizes, edges, np.array(counts, dtype=np.int64))


def support_histograms(
    games: Sequence[SelectionGame] | Mapping[int, SelectionGame], width: float = 5.0
) -> Histograms:
    """Figure 5.5: by how many units individual selections are preferred to the joint one.

    Parameters
    ----------
    games : sequence or dict of p to SelectionGame
        One for each p.
    width : float, default 5.0
        Of the intervals, in per cent.

    Returns
    -------
    Histograms
        A line of counts for each p.

    Raises
    ------
    DataError
        There is no game, or the width is not above 0 and at most 100.

    Examples
    --------
    >>> from bootprob.dea import Panel, play_selection_game
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> game = play_selection_game(toy, 1)
    >>> from bootprob.dea import support_histograms
    >>> support_histograms([game], width=50).counts.tolist()  # below 50 %, and above
    [[2, 1]]
    """
    played = list(games.values() if hasattr(games, "values") else games)
    if not played:
        raise DataError("games is empty; give at least one.")
    played.sort(key=lambda game: len(game.joint))
    edges = played[0].histogram(width)[1]
    counts = np.array([game.histogram(width)[0] for game in played], dtype=np.int64)
    return Histograms(tuple(len(game.joint) for game in played), edges, counts)


def contribution_curve(curve: SelectionCurve) -> ContributionCurve:
    """v(p) with bounds and marginal contributions, section 5.3.1.

    Parameters
    ----------
    curve : SelectionCurve
        Selections of several sizes.

    Returns
    -------
    ContributionCurve

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import contribution_curve, selection_curve
    >>> contribution_curve(selection_curve(toy, 3)).values.round(3)
    array([0.667, 0.989, 1.   ])
    """
    chosen = curve.selections
    return ContributionCurve(
        sizes=curve.sizes, values=curve.values,
        bounds=np.array([one.bound for one in chosen]),
        gaps=np.array([one.gap for one in chosen]),
        contributions=curve.marginal, nested=np.array(curve.nested),
        statuses=tuple(one.status for one in chosen),
        objective_name=chosen[0].objective_name,
    )  # fmt: skip
