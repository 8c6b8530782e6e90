"""All of a benchmarking study in one call: efficiencies, weights of others, selection, game."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from bootprob.dea.efficiencies.cross import CrossEfficiency, Goal, cross_efficiency
from bootprob.dea.efficiencies.intervals import (
    EfficiencyInterval,
    checked_bootstrap,
    efficiency_interval,
)
from bootprob.dea.efficiencies.program import Orientation, Returns
from bootprob.dea.efficiencies.result import EfficiencyResult
from bootprob.dea.efficiencies.scores import as_panel, efficiency
from bootprob.dea.panel import Panel
from bootprob.dea.selection.game import SelectionGame, play_selection_game
from bootprob.dea.selection.joint import checked_limit, checked_size, selection_curve
from bootprob.dea.selection.results import SelectionCurve
from bootprob.dea.selection.summary import suggested_size
from bootprob.exceptions import DataError

if TYPE_CHECKING:
    from bootprob.dea.panel_tables import Table

__all__ = ["BenchmarkStudy", "benchmark_study"]

_LEAST_SECONDS = 0.05  # for the selection of one unit


@dataclass(frozen=True, eq=False)
class BenchmarkStudy:
    """What `benchmark_study` found, as `bootprob.report.write_dea_report` takes it.

    Attributes
    ----------
    result : EfficiencyResult
        Under all inputs and outputs.
    interval : EfficiencyInterval or None
        Intervals of the scores.
    no_interval : str or None
        Why there are none; None also where they were not asked for.
    crossed : CrossEfficiency or None
        Every unit at the weights of every other.
    no_cross : str or None
        Why there are none.
    curve : SelectionCurve or None
        None where there is nothing to select: with one output.
    size : int or None
        p of the selection that is looked at more closely.
    games : dict of int to SelectionGame
        By p, ascending; those for which the time sufficed.
    time_limit : float
        Seconds that the curve, and again the games, could take.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import benchmark_study
    >>> study = benchmark_study(toy, n_replicates=0)
    >>> study.size, study.curve.selections[study.size - 1].outputs
    (3, ('output 1', 'output 2', 'output 3'))
    >>> study.interval is None, sorted(study.games)
    (True, [1, 2, 3])
    """

    result: EfficiencyResult
    interval: EfficiencyInterval | None
    no_interval: str | None
    crossed: CrossEfficiency | None
    no_cross: str | None
    curve: SelectionCurve | None
    size: int | None
    games: dict[int, SelectionGame]
    time_limit: float


def benchmark_study(
    inputs: Panel | Table,
    outputs: Table | None = None,
    *,
    returns: Returns = "constant",
    orientation: Orientation = "input",
    level: float = 0.95,
    n_replicates: int = 2000,
    seed: int = 0,
    goal: Goal | None = "benevolent",
    most_outputs: int = 10,
    size: int | None = None,
    time_limit: float = 60.0,
    progress: Callable[[str], None] = lambda step: None,
) -> BenchmarkStudy:
    """Benchmark units, select outputs and see who would object.

    The selection and the game are of efficiencies in input orientation under constant returns, as
    in chapter 5 of the thesis, whatever returns and orientation are. Unlike there, the games are
    with own selections found by exchanges: few of those can be improved, and proofs for all units
    take long.

    Parameters
    ----------
    inputs, outputs, returns, orientation
        As for `bootprob.dea.efficiency`.
    level, n_replicates, seed
        Of `bootprob.dea.efficiency_interval`; with ``n_replicates=0`` there are no intervals.
    goal
        Of `bootprob.dea.cross_efficiency`.
    most_outputs : int, default 10
        The curve v(p) is for 1 to so many outputs, or all that there are.
    size : int, optional
        p to look at more closely; default `bootprob.dea.suggested_size`.
    time_limit : float, default 60.0
        Seconds for the curve, and again for the games: that with `size` outputs comes first, then
        those with 1, 2, …
    progress : callable
        Called with what begins.

    Returns
    -------
    BenchmarkStudy

    Raises
    ------
    PanelError
        As for `bootprob.dea.efficiency`.
    DataError
        An option cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.dea import Panel, benchmark_study
    >>> rng = np.random.default_rng(0)
    >>> panel = Panel.of(rng.uniform(1, 2, 10), rng.uniform(1, 2, (10, 3)))
    >>> study = benchmark_study(panel, n_replicates=100)
    >>> study.interval.lower.shape, study.curve.sizes, sorted(study.games)
    ((10,), (1, 2, 3), [1, 2, 3])
    """
    panel = as_panel(inputs, outputs)
    limit = checked_limit(time_limit)
    if isinstance(most_outputs, bool) or not isinstance(most_outputs, int) or most_outputs < 1:
        raise DataError(f"most_outputs is {most_outputs!r}; give a whole number from 1 up.")
    most = min(most_outputs, panel.n_outputs)
    if size is not None:
        size = checked_size(size, most, "outputs")
    if n_replicates != 0:
        checked_bootstrap(level, n_replicates, seed=seed)
    if goal is not None and goal not in get_args(Goal):
        raise DataError(f"goal is {goal!r}; give 'benevolent', 'aggressive' or None.")
    progress("Efficiencies")
    result = efficiency(panel, returns=returns, orientation=orientation)
    interval, no_interval = None, None
    if n_replicates:
        progress("Intervals")
        no_interval = _obstacle(result)
        if no_interval is None:
            interval = efficiency_interval(
                panel, returns=returns, orientation=orientation, level=level,
                n_replicates=n_replicates, seed=seed,
            )  # fmt: skip
    progress("Cross-efficiencies")
    crossed, no_cross = None, None
    try:
        crossed = cross_efficiency(panel, goal=goal)
    except DataError as error:  # units that use nothing of some inputs: told, not fatal
        no_cross = str(error).rstrip(".")
    curve = None
    games: dict[int, SelectionGame] = {}
    if panel.n_outputs > 1:
        progress("Selections of outputs")
        curve = selection_curve(panel, most, time_limit=limit)
        size = suggested_size(curve) if size is None else size
        games = _games(panel, curve, size, limit, progress)
    return BenchmarkStudy(
        result, interval, no_interval, crossed, no_cross, curve, size if curve else None, games,
        limit,
    )  # fmt: skip


def _obstacle(result: EfficiencyResult) -> str | None:
    """What leaves the bootstrap nothing to draw from."""
    if set(result.status) != {"optimal"}:
        return "some scores are not certain"
    if not result.scores.all():
        return "some units have a score of 0"
    if result.efficient.all():
        return "all units are efficient, so how far from the frontier units are cannot be estimated"
    return None


def _games(
    panel: Panel, curve: SelectionCurve, size: int, limit: float, progress: Callable[[str], None]
) -> dict[int, SelectionGame]:
    """As many as the time suffices for, that with `size` outputs in any case."""
    end, seconds = time.perf_counter() + limit, 0.0
    found: dict[int, SelectionGame] = {}
    chosen = dict(zip(curve.sizes, curve.selections, strict=True))
    for p in (size, *(other for other in curve.sizes if other != size)):
        began = time.perf_counter()
        # A larger p takes longer than the one before, and one that is cut short says little.
        if found and end - began < (seconds if p > size else 0.0):
            break
        progress(f"Own selections of {p}")
        found[p] = play_selection_game(
            panel, p, joint=chosen[p], method="exchange",
            time_limit=max((end - began) / panel.n_units, _LEAST_SECONDS),
        )  # fmt: skip
        seconds = time.perf_counter() - began
    return dict(sorted(found.items()))
