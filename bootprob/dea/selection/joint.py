"""The same p outputs for all units: OSDEA(p), thesis (5.14) to (5.32)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from bootprob.dea.panel import Panel
from bootprob.dea.selection.joint_search import JointSearch, input_choices
from bootprob.dea.selection.objectives import EfficiencyObjective
from bootprob.dea.selection.results import JointSelection, SelectionCurve, names_of
from bootprob.dea.selection.rules import SelectionRules
from bootprob.dea.selection.search import nested_selections
from bootprob.dea.selection.subsets import load_compiled
from bootprob.dea.selection.weight_bounds import WeightBounds
from bootprob.exceptions import DataError

__all__ = ["select_outputs", "selection_curve"]

_METHODS = ("exact", "exchange", "nested", "program")
_SOLVED = 1e-9  # objective and bound that differ less are the same


def select_outputs(
    panel: Panel,
    size: int,
    *,
    objective: str = "mean",
    weights: Any = None,
    percentile: float | None = None,
    method: str = "exact",
    costs: Any = None,
    budget: float | None = None,
    clusters: Mapping[str, Iterable[int | str]] | Sequence[Any] | None = None,
    cluster_min: int | Mapping[str, int] | None = None,
    cluster_max: int | Mapping[str, int] | None = None,
    max_correlation: float | None = None,
    n_inputs: int | None = None,
    weight_bounds: Mapping[int | str, Any] | None = None,
    start: Iterable[int | str] | None = None,
    solver: str | None = None,
    time_limit: float | None = 60.0,
) -> JointSelection:
    """Choose the p outputs under which all units together look best, OSDEA(p).

    Efficiencies are input-oriented, with constant returns to scale.

    Parameters
    ----------
    panel : Panel
        The units with what they use and make.
    size : int
        p, exactly so many outputs.
    objective : {"mean", "weighted", "quadratic", "minimum", "percentile"}
        (5.19), (5.23), (5.24), (5.25), (5.26). "quadratic" is minimised, the others maximised.
    weights : array_like of shape (K,), or dict or named Series of unit to float, optional
        ω of (5.23), for "weighted"; the sum is divided by K, as there.
    percentile : float, optional
        π of (5.26), in (0, 100], for "percentile": the efficiency of rank ``⌊K π / 100⌋`` from
        below, at least 1.
    method : {"exact", "exchange", "nested", "program"}
        "nested" is the procedure of Pastor et al.; "exchange" improves it by exchanging one output
        for another; "exact" goes on by branch and bound, and "program" by the mixed-integer
        program, through CVXPY and started from there.
    costs, budget, clusters, cluster_min, cluster_max, max_correlation
        Rules (5.10) to (5.13), see `SelectionRules.of`.
    n_inputs : int, optional
        p̃, exactly so many inputs, the same for all units and chosen as well, (5.6) to (5.8);
        default all. For given ones take ``panel.take(inputs=...)``.
    weight_bounds : dict of output to (lower, upper), optional
        L and U of (5.7'): where an output is chosen, its weight β lies between for every unit, in
        the units of the data and with ``α x = 1`` for the unit. An end is a number or has one for
        each unit, see `WeightBounds.of`. An output that is not chosen has weight 0, whatever L is.
    start : iterable of int or str, optional
        A selection to start from as well.
    solver : {"HIGHS", "SCIP"}, optional
        For "program". Default SCIP for "quadratic", else HiGHS.
    time_limit : float or None, default 60.0
        Seconds; one evaluation, or one pass of compiled loops, may exceed it.

    Returns
    -------
    JointSelection
        Its status is "optimal" if objective and bound agree to 1e-9, or to 1e-6 with "program".

    Raises
    ------
    InfeasibleSelectionError
        No p outputs keep the rules, or none has weights within their bounds for every unit.
    DataError
        An option cannot be used.
    BootprobError
        Nothing with weights within their bounds was found, and nothing is proven.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import select_outputs
    >>> found = select_outputs(toy, 2)  # under which two outputs do all look best?
    >>> found.outputs, round(found.objective, 3), found.status
    (('output 1', 'output 3'), 0.989, 'optimal')
    >>> select_outputs(toy, 2, costs=[3, 1, 1], budget=3).outputs  # the first costs all
    ('output 2', 'output 3')
    """
    rules = SelectionRules.of(
        panel, costs=costs, budget=budget, clusters=clusters, cluster_min=cluster_min,
        cluster_max=cluster_max, max_correlation=max_correlation,
    )  # fmt: skip
    goal = EfficiencyObjective.of(objective, panel.units, weights=weights, percentile=percentile)
    size = checked_size(size, panel.n_outputs, "outputs")
    if method not in _METHODS:
        raise DataError(f"method is {method!r}; give one of {', '.join(map(repr, _METHODS))}.")
    if solver is not None and method != "program":
        raise DataError('solver is for method="program" only.')
    limit = checked_limit(time_limit)
    known = None if start is None else _start(panel, start, size, rules)
    if method == "program":
        from bootprob.dea.selection.programs import check_joint_solver, improve_by_program

        name = check_joint_solver(goal, solver)
    load_compiled()
    began = time.perf_counter()
    rules.require(size)
    bounds = WeightBounds.of(panel, weight_bounds)
    choices = input_choices(panel, _input_count(panel, n_inputs), bounds)
    search = JointSearch(choices, goal, rules, size, deadline=began + limit, started=began)
    search.offer_nested()
    if known is not None:
        search.offer(known)
    proven = False
    if method != "nested":
        in_time = search.exchange()
        if method == "exact":
            proven = search.exhaust()
        elif method == "program":
            proven = improve_by_program(search, panel, bounds, name, began + limit)
    else:
        in_time = time.perf_counter() < began + limit
    heuristic = method in ("nested", "exchange") and in_time
    return search.result(panel, proven, heuristic=heuristic, tolerance=_SOLVED)


def selection_curve(
    panel: Panel,
    sizes: int | Iterable[int],
    *,
    objective: str = "mean",
    weights: Any = None,
    percentile: float | None = None,
    method: str = "exact",
    costs: Any = None,
    budget: float | None = None,
    clusters: Mapping[str, Iterable[int | str]] | Sequence[Any] | None = None,
    cluster_min: int | Mapping[str, int] | None = None,
    cluster_max: int | Mapping[str, int] | None = None,
    max_correlation: float | None = None,
    n_inputs: int | None = None,
    weight_bounds: Mapping[int | str, Any] | None = None,
    time_limit: float | None = 600.0,
) -> SelectionCurve:
    """v(p) for several p, from which to choose p: what does one more output contribute.

    First every p is searched by exchanges, starting from the nested selection and from the best of
    the size before. Then the bounds: each p may take half of the time that is left. A bound for q
    outputs gives ``p / q`` of it for p > q where the objective is a sum of efficiencies.

    Parameters
    ----------
    panel : Panel
        The units with what they use and make.
    sizes : int or iterable of int
        The p; a number stands for 1 to it.
    objective, weights, percentile
        As in `select_outputs`.
    method : {"exact", "exchange"}
        "exact" proves what the time allows; "exchange" searches only.
    costs, budget, clusters, cluster_min, cluster_max, max_correlation, n_inputs, weight_bounds
        As in `select_outputs`.
    time_limit : float or None, default 600.0
        Seconds for all of it.

    Returns
    -------
    SelectionCurve

    Raises
    ------
    InfeasibleSelectionError
        For one of the sizes, no outputs keep the rules, or the bounds on weights.
    DataError
        An option cannot be used.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import selection_curve
    >>> selection_curve(toy, 3).to_frame()[["objective", "status", "outputs"]].round(3)
       objective   status                       outputs
    p
    1      0.667  optimal                      output 1
    2      0.989  optimal            output 1, output 3
    3      1.000  optimal  output 1, output 2, output 3
    """
    rules = SelectionRules.of(
        panel, costs=costs, budget=budget, clusters=clusters, cluster_min=cluster_min,
        cluster_max=cluster_max, max_correlation=max_correlation,
    )  # fmt: skip
    goal = EfficiencyObjective.of(objective, panel.units, weights=weights, percentile=percentile)
    if method not in ("exact", "exchange"):
        raise DataError(f"method is {method!r}; give 'exact' or 'exchange'.")
    if isinstance(sizes, Integral):
        sizes = range(1, checked_size(sizes, panel.n_outputs, "outputs") + 1)
    elif isinstance(sizes, (str, bytes)) or not isinstance(sizes, Iterable):
        raise DataError(f"sizes is {sizes!r}; give a number or several.")
    wanted = sorted({checked_size(size, panel.n_outputs, "outputs") for size in sizes})
    if not wanted:
        raise DataError("sizes is empty; give at least one number of outputs.")
    limit = checked_limit(time_limit)
    for size in wanted:
        rules.require(size)
    load_compiled()
    began = time.perf_counter()
    end = began + limit
    bounds = WeightBounds.of(panel, weight_bounds)
    choices = input_choices(panel, _input_count(panel, n_inputs), bounds)
    searches, nested, before = [], [], None
    orders = [
        nested_selections(choice.evaluator, goal, rules, wanted[-1], deadline=end)
        for choice in choices
    ]
    for size in wanted:
        search = JointSearch(choices, goal, rules, size, deadline=end, started=began)
        known = rules.trivial or size == wanted[-1]
        search.offer_nested([order[:size] for order in orders] if known else None)
        nested.append(goal.value(search.merit) if search.feasible else math.nan)
        search.exchange()
        if before is not None and len(before) + 1 == size:
            search.extend(before)
        before = search.chosen
        searches.append(search)
    proven = [False] * len(searches)
    if method == "exact":
        for index, search in enumerate(searches):
            now = time.perf_counter()
            last = index == len(searches) - 1
            proven[index] = search.exhaust(
                end if last or math.isinf(end) else now + max(0.0, end - now) / 2
            )
    results: list[JointSelection] = []
    for search, done in zip(searches, proven, strict=True):
        for smaller in results:
            if objective in ("mean", "weighted") and rules.hereditary:
                search.bounded_by(smaller.bound * search.size / len(smaller.features))
        heuristic = method == "exchange"
        results.append(search.result(panel, done, heuristic=heuristic, tolerance=_SOLVED))
    return SelectionCurve(tuple(results), tuple(nested))


def checked_size(size: Any, most: int, what: str) -> int:
    """A number of inputs or outputs to choose; `DataError` if there are not so many."""
    whole = isinstance(size, Integral) and not isinstance(size, bool)
    if not whole or not 1 <= int(size) <= most:
        raise DataError(f"The number of {what} to choose is {size!r}; give one from 1 to {most}.")
    return int(size)


def _input_count(panel: Panel, n_inputs: int | None) -> int:
    return checked_size(panel.n_inputs if n_inputs is None else n_inputs, panel.n_inputs, "inputs")


def checked_limit(time_limit: Any) -> float:
    """Seconds, infinite for None; `DataError` for what is not positive."""
    if time_limit is None:
        return math.inf
    real = isinstance(time_limit, Real) and not isinstance(time_limit, bool)
    if not real or not float(time_limit) > 0:
        raise DataError(f"time_limit is {time_limit!r}; give a positive number or None.")
    return float(time_limit)


def _start(
    panel: Panel, start: Iterable[int | str], size: int, rules: SelectionRules
) -> tuple[int, ...]:
    chosen = tuple(sorted(set(panel.positions("outputs", start))))
    if len(chosen) != size or not rules.allows(chosen):
        raise DataError(
            f"start chooses {', '.join(names_of(panel, chosen))}; give {size} different outputs "
            "that keep the rules."
        )
    return chosen
