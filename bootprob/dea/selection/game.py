"""Who would object to a joint selection: the game of section 5.4 of the thesis, and beyond."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bootprob.dea.panel import Panel, require_panel
from bootprob.dea.panel_tables import by_name
from bootprob.dea.selection.joint import checked_limit, checked_size, select_outputs
from bootprob.dea.selection.results import JointSelection, names_of
from bootprob.dea.selection.single import select_for_unit
from bootprob.dea.selection.subsets import SubsetEfficiencies
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SelectionGame", "SupportedSelection", "play_selection_game", "supported_selection"]


_SAME = 1e-7  # efficiencies that differ less are equal
_ENUMERATED = 200_000  # selections at most


@dataclass(frozen=True)
class SelectionGame:
    """What each unit's own selection would do to all units, against a joint selection.

    Attributes
    ----------
    joint : tuple of int
        Outputs of the status quo, z(p).
    strategies : tuple of tuple of int
        Outputs of each unit's own selection, z of (OSDEA(k')(p)); of a unit that gains nothing by
        one, those of the joint selection, which solve it too.
    proven : tuple of bool
        Whether those are proven optimal.
    efficiencies : ndarray, shape (K,)
        Under the joint selection.
    cross : ndarray, shape (K, K)
        Cross-efficiencies: of unit k, in rows, under the selection of unit k', in columns.
    units : tuple of str
        Names, in the order of all of these.

    Examples
    --------
    >>> from bootprob.dea import Panel, play_selection_game
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> game = play_selection_game(toy, 1)
    >>> game.joint, game.strategies  # of all, and of each unit
    ((0,), ((0,), (1,), (2,)))
    >>> game.gains.round(2).tolist()  # rows: who gains by the selection of the unit in the column
    [[0.0, -0.5, -0.83], [0.0, 0.2, -0.47], [0.0, 0.05, 0.8]]
    """

    joint: tuple[int, ...]
    strategies: tuple[tuple[int, ...], ...]
    proven: tuple[bool, ...]
    efficiencies: Floats
    cross: Floats
    units: tuple[str, ...]

    @property
    def gains(self) -> Floats:
        """Δ: cross-efficiency minus efficiency under the joint selection, shape (K, K)."""
        return self.cross - self.efficiencies[:, None]

    @property
    def support(self) -> Floats:
        """Π(k'): percentage of units that gain by the selection of unit k', shape (K,)."""
        return 100 * (self.gains > _SAME).mean(axis=0)

    def histogram(self, width: float = 5.0) -> tuple[NDArray[np.int64], Floats]:
        """Figure 5.5: how many own selections have a support in each interval.

        Parameters
        ----------
        width : float, default 5.0
            Of the intervals, closed on the left, in per cent; 100 is in the last.

        Returns
        -------
        counts : ndarray of int, shape (L,)
        edges : ndarray, shape (L + 1,)

        Examples
        --------
        >>> from bootprob.dea import Panel, play_selection_game
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> game = play_selection_game(toy, 1)
        >>> counts, edges = game.histogram(width=50)
        >>> counts.tolist(), edges.tolist()
        ([2, 1], [0.0, 50.0, 100.0])
        """
        if not isinstance(width, Real) or isinstance(width, bool) or not 0 < width <= 100:
            raise DataError(f"width is {width!r}; give a number above 0, at most 100.")
        edges = np.append(np.arange(0, 100 - 1e-9, width), 100.0)
        return np.histogram(self.support, edges)[0], edges

    def coalitions(self, groups: Sequence[Any] | Mapping[str, Any]) -> pd.DataFrame:
        """What each group of units thinks of each unit's selection.

        Parameters
        ----------
        groups : sequence of K labels, or dict or named Series of unit to label
            Which group each unit is in.

        Returns
        -------
        DataFrame
            A row for each group: members, the selection that most of them prefer to the joint one
            (that of which unit), the share of them that do, their mean gain by it, and its support
            among all units.

        Raises
        ------
        DataError
            A unit has no label.

        Examples
        --------
        >>> from bootprob.dea import Panel, play_selection_game
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> game = play_selection_game(toy, 1)
        >>> game.coalitions({"A": "north", "B": "north", "C": "south"}).round(2)
               members prefers  share  mean gain  support
        group
        north        2       B   50.0      -0.15    66.67
        south        1       C  100.0       0.80    33.33
        """
        import pandas as pd

        labels = _labels(groups, self.units)
        rows = {}
        for label in dict.fromkeys(labels):
            members = np.array([one == label for one in labels])
            share = (self.gains[members] > _SAME).mean(axis=0)
            mean = self.gains[members].mean(axis=0)
            best = int(np.lexsort((-mean, -share))[0])
            rows[label] = {
                "members": int(members.sum()), "prefers": self.units[best],
                "share": 100 * share[best], "mean gain": mean[best],
                "support": self.support[best],
            }  # fmt: skip
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("group")

    def to_frame(self) -> pd.DataFrame:
        """A row for each unit: its efficiencies, its selection and who supports that.

        Examples
        --------
        >>> from bootprob.dea import Panel, play_selection_game
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> game = play_selection_game(toy, 1)
        >>> game.to_frame()["support"].round(1)  # per cent of the units that gain
        unit
        A     0.0
        B    66.7
        C    33.3
        Name: support, dtype: float64
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "joint": self.efficiencies, "own": np.diag(self.cross),
                "support": self.support, "proven": self.proven,
            },
            index=pd.Index(self.units, name="unit"),
        )  # fmt: skip


@dataclass(frozen=True)
class SupportedSelection:
    """The best selection that enough units support.

    Attributes
    ----------
    features : tuple of int
        Positions of the outputs chosen, ascending.
    outputs : tuple of str
        Their names.
    objective : float
        Mean efficiency.
    support : float
        Least percentage of units that are at least as efficient as under any of the rivals.
    enough : bool
        Whether that is what was asked for. If not, it is the largest support found.
    status : {"optimal", "heuristic"}
        "optimal": all selections were evaluated.
    efficiencies : ndarray, shape (K,)
        Under them.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import supported_selection
    >>> found = supported_selection(toy, 2, rivals=[["output 1"], ["output 3"]])
    >>> found.outputs, round(found.objective, 3), found.status
    (('output 1', 'output 3'), 0.989, 'optimal')
    """

    features: tuple[int, ...]
    outputs: tuple[str, ...]
    objective: float
    support: float
    enough: bool
    status: str
    efficiencies: Floats


def play_selection_game(
    panel: Panel,
    size: int,
    *,
    joint: JointSelection | Iterable[int | str] | None = None,
    method: str = "exact",
    time_limit: float | None = 10.0,
    progress: Callable[[int], None] = lambda n_units: None,
) -> SelectionGame:
    """Each unit's own selection of p outputs against the joint one.

    Parameters
    ----------
    panel : Panel
        The units with what they use and make.
    size : int
        p.
    joint : JointSelection or iterable of int or str, optional
        Default that with the best mean efficiency.
    method : {"exact", "exchange"}
        Of `select_for_unit`.
    time_limit : float or None, default 10.0
        Seconds for each unit, and for the joint selection.
    progress : callable
        Called with the number of units whose selection was just found.

    Returns
    -------
    SelectionGame

    Raises
    ------
    DataError
        An option cannot be used, or `joint` does not hold p outputs.

    Examples
    --------
    >>> from bootprob.dea import Panel, play_selection_game
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> game = play_selection_game(toy, 1)
    >>> game.to_frame().round(3)
          joint  own  support  proven
    unit
    A       1.0  1.0    0.000    True
    B       0.8  1.0   66.667    True
    C       0.2  1.0   33.333    True
    """
    require_panel(panel)
    size = checked_size(size, panel.n_outputs, "outputs")
    checked_limit(time_limit)
    if joint is None:
        chosen = select_outputs(panel, size, time_limit=time_limit).features
    else:
        named = joint.outputs if isinstance(joint, JointSelection) else joint
        chosen = tuple(sorted(set(panel.positions("outputs", named))))
    if len(chosen) != size:
        raise DataError(f"joint holds {len(chosen)} different outputs; the game is with {size}.")
    evaluator = SubsetEfficiencies(panel)
    efficiencies = evaluator.of(chosen)
    strategies, proven = [], []
    for row in range(panel.n_units):
        own = select_for_unit(panel, row, size, method=method, time_limit=time_limit)
        # No unit gives up what the joint selection already gives it.
        better = own.objective > efficiencies[row] + _SAME
        strategies.append(own.features if better else chosen)
        proven.append(own.status == "optimal")
        progress(1)
    known = {strategy: evaluator.of(strategy) for strategy in set(strategies)}
    return SelectionGame(
        joint=chosen, strategies=tuple(strategies), proven=tuple(proven),
        efficiencies=efficiencies, cross=np.stack([known[one] for one in strategies], axis=1),
        units=panel.units,
    )  # fmt: skip


def supported_selection(
    panel: Panel,
    size: int,
    rivals: Iterable[Iterable[int | str]],
    *,
    share: float = 50.0,
) -> SupportedSelection:
    """The selection of the best mean efficiency among those that a stated majority supports.

    A unit supports a selection against a rival under which it is not more efficient. All
    selections are evaluated where there are at most 200,000 of them; else exchanges of one output
    for another raise the support until it is enough, then the mean efficiency.

    Parameters
    ----------
    panel : Panel
        The units with what they use and make.
    size : int
        p.
    rivals : iterable of selections
        Such as the strategies of a `SelectionGame`, or a status quo alone; of any size.
    share : float, default 50.0
        Per cent of the units that are to support the selection against each rival, in (0, 100].

    Returns
    -------
    SupportedSelection

    Raises
    ------
    DataError
        An option cannot be used, or there is no rival.

    Examples
    --------
    >>> from bootprob.dea import Panel, play_selection_game
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> game = play_selection_game(toy, 1)
    >>> from bootprob.dea import supported_selection
    >>> found = supported_selection(toy, 2, game.strategies, share=100)
    >>> found.outputs, round(found.support, 1), found.enough
    (('output 1', 'output 3'), 66.7, False)
    """
    require_panel(panel)
    size = checked_size(size, panel.n_outputs, "outputs")
    if not isinstance(share, Real) or isinstance(share, bool) or not 0 < share <= 100:
        raise DataError(f"share is {share!r}; give per cent, above 0 and at most 100.")
    against = {tuple(sorted(set(panel.positions("outputs", rival)))) for rival in rivals}
    if not against:
        raise DataError("rivals is empty; give at least one selection of outputs.")
    if () in against:
        raise DataError("One of the rivals holds no output; give each at least one.")
    evaluator = SubsetEfficiencies(panel)
    floors = np.array([evaluator.of(rival) for rival in sorted(against)])

    def judged(chosen: tuple[int, ...]) -> tuple[float, float, float]:
        scores = evaluator.quick(chosen)
        support = 100 * float((scores >= floors - _SAME).mean(axis=1).min())
        return min(support, share), float(scores.mean()), support

    everything = range(panel.n_outputs)
    complete = math.comb(panel.n_outputs, size) <= _ENUMERATED
    if complete:
        best = max(itertools.combinations(everything, size), key=judged)
    else:
        starts = [one for one in against if len(one) == size]
        starts.append(select_outputs(panel, size, method="exchange", time_limit=None).features)
        best = max(starts, key=judged)
        while True:
            neighbours = (
                tuple(sorted({*best, new} - {old}))
                for old in best for new in everything if new not in best
            )  # fmt: skip
            better = max(neighbours, key=judged)
            if judged(better) <= judged(best):
                break
            best = better
    _, objective, support = judged(best)
    return SupportedSelection(
        features=best, outputs=names_of(panel, best), objective=objective, support=support,
        enough=support >= share - 1e-9, status="optimal" if complete else "heuristic",
        efficiencies=evaluator.of(best),
    )  # fmt: skip


def _labels(groups: Any, units: tuple[str, ...]) -> list[str]:
    groups = by_name(groups, "groups")
    if isinstance(groups, Mapping):
        labels = [groups.get(unit) for unit in units]
    elif isinstance(groups, (str, bytes)) or not hasattr(groups, "__iter__"):
        raise DataError(f"groups is {groups!r}; give a label for each of {len(units)} units.")
    else:
        labels = list(groups)
    if len(labels) != len(units):
        raise DataError(
            f"groups has {len(labels)} labels; give one for each of {len(units)} units."
        )
    for unit, label in zip(units, labels, strict=True):
        if label is None or label != label:  # NaN
            raise DataError(f"Unit {unit!r} is in no group; give every unit a label.")
    return [str(label) for label in labels]
