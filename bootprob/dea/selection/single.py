"""The outputs, and inputs, under which one unit looks best: OSDEA(k)(p), FSDEA(k), thesis 5.2."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bootprob.dea.panel import Panel
from bootprob.dea.selection.joint import checked_limit, checked_size
from bootprob.dea.selection.objectives import EfficiencyObjective
from bootprob.dea.selection.programs import ROUNDING, check_linear_solver, solve_started
from bootprob.dea.selection.results import UnitSelection, names_of
from bootprob.dea.selection.rules import InfeasibleSelectionError, SelectionRules
from bootprob.dea.selection.search import OutputSearch
from bootprob.dea.selection.subsets import SubsetEfficiencies, load_compiled
from bootprob.dea.selection.unit_program import UnitProgram
from bootprob.exceptions import BootprobError, DataError
from bootprob.optimization.search_result import Found

__all__ = ["select_for_unit"]


def select_for_unit(
    panel: Panel,
    unit: int | str,
    size: int,
    *,
    n_inputs: int | None = None,
    weight_bounds: Mapping[int | str, Any] | None = None,
    costs: Any = None,
    budget: float | None = None,
    clusters: Mapping[str, Iterable[int | str]] | Sequence[Any] | None = None,
    cluster_min: int | Mapping[str, int] | None = None,
    cluster_max: int | Mapping[str, int] | None = None,
    max_correlation: float | None = None,
    method: str = "exact",
    solver: str | None = None,
    time_limit: float | None = 60.0,
) -> UnitSelection:
    """Choose the p outputs, and p̃ inputs, under which one unit is as efficient as it can be.

    OSDEA(k)(p), (5.1) to (5.4), and FSDEA(k), (5.5) to (5.8): input-oriented, constant returns. A
    heuristic solution that is as efficient as all outputs make the unit is optimal; else a
    mixed-integer program proves it, started from there.

    Parameters
    ----------
    panel : Panel
        The units with what they use and make.
    unit : int or str
        Position or name.
    size : int
        p, exactly so many outputs.
    n_inputs : int, optional
        p̃, exactly so many inputs; default all.
    weight_bounds : dict of output to (lower, upper), optional
        L and U of (5.7'): a chosen output's weight β lies between, in the units of the data and
        with ``α x = 1`` for the unit. An output that is not chosen has weight 0, whatever L is.
    costs, budget, clusters, cluster_min, cluster_max, max_correlation
        Rules (5.10) to (5.13), see `SelectionRules.of`.
    method : {"exact", "exchange"}
        "exchange" needs no mixed-integer solver, and may prove nothing.
    solver : {"HIGHS", "SCIP"}, optional
        For "exact". Default HiGHS.
    time_limit : float or None, default 60.0
        Seconds.

    Returns
    -------
    UnitSelection
        Its status is "optimal" where objective and bound agree to 1e-5; `bound` is then the
        objective.

    Raises
    ------
    InfeasibleSelectionError
        No selection keeps the rules, or no weights keep their bounds.
    DataError
        An option cannot be used.

    Notes
    -----
    The big M of (5.2) is ``E({o}) / y_o``, at most the ``1 / y_o`` of the thesis; that of (5.6) is
    ``1 / x_i``, and for an input that the unit does not use, what makes the constraints of all
    units that use it slack.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> from bootprob.dea import select_for_unit
    >>> panel = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> found = select_for_unit(panel, "B", 1)
    >>> found.outputs, found.objective, found.status
    (('output 2',), 1.0, 'optimal')
    """
    rules = SelectionRules.of(
        panel, costs=costs, budget=budget, clusters=clusters, cluster_min=cluster_min,
        cluster_max=cluster_max, max_correlation=max_correlation,
    )  # fmt: skip
    (row,) = panel.positions("units", [unit])
    size = checked_size(size, panel.n_outputs, "outputs")
    n_inputs = panel.n_inputs if n_inputs is None else n_inputs
    n_inputs = checked_size(n_inputs, panel.n_inputs, "inputs")
    limit = checked_limit(time_limit)
    if method not in ("exact", "exchange"):
        raise DataError(f"method is {method!r}; give 'exact' or 'exchange'.")
    if method == "exchange" and solver is not None:
        raise DataError('solver is for method="exact" only.')
    name = check_linear_solver(solver) if method == "exact" else ""
    load_compiled()
    began = time.perf_counter()
    evaluator = SubsetEfficiencies(panel)
    program = UnitProgram(panel, evaluator, row, weight_bounds)
    rules.require(size)

    only = np.zeros(panel.n_units)
    only[row] = 1.0
    goal = EfficiencyObjective("weighted", only)
    search = OutputSearch(evaluator, goal, rules, size, deadline=began + limit, started=began)
    search.offer(search.nested())
    search.exchange()
    chosen, used = search.chosen, program.drop_inputs(search.chosen, n_inputs)
    bound, value = search.bound, program.efficiency(used, chosen)
    path = [] if value is None else [Found(time.perf_counter() - began, value, chosen)]
    infeasible = False
    if method == "exact" and (value is None or bound > value + ROUNDING):
        problem, model = program.mixed_integer(
            size, n_inputs, rules, None if value is None else (used, chosen)
        )
        left = max(began + limit - time.perf_counter(), 0.01)
        least, infeasible = solve_started(problem, model.z, name, left)
        if model.z.value is not None:
            found, found_inputs = model.chosen()
            better = program.efficiency(found_inputs, found) if rules.allows(found) else None
            if better is not None and (value is None or better > value):
                used, chosen, value = found_inputs, found, better
                path.append(Found(time.perf_counter() - began, value, chosen))
        if value is not None and not infeasible:  # if it is, then by rounding
            bound = max(value, min(bound, -least + ROUNDING))
    if value is None:
        raise _nothing_found(panel.units[row], size, n_inputs, infeasible, method, limit)
    proven = bound <= value + 5 * ROUNDING
    unproven = "time limit" if method == "exact" else "heuristic"
    status = "optimal" if proven else unproven
    alpha, beta = program.weights(used, chosen)
    return UnitSelection(
        features=chosen, objective=value, bound=value if proven else bound,
        status=status, seconds=time.perf_counter() - began,
        path=tuple(path), n_evaluated=search.n_evaluated, unit=panel.units[row],
        outputs=names_of(panel, chosen), inputs=tuple(panel.input_names[i] for i in used),
        input_positions=used, output_weights=beta, input_weights=alpha,
    )  # fmt: skip


def _nothing_found(
    unit: str, size: int, n_inputs: int, infeasible: bool, method: str, limit: float
) -> BootprobError:
    if infeasible:
        return InfeasibleSelectionError(
            f"For unit {unit!r} no {size} outputs and {n_inputs} inputs that keep the rules have "
            "weights within their bounds. Widen the bounds or choose another number."
        )
    advice = "raise it" if method == "exact" else 'use method="exact"'
    return BootprobError(
        f"No selection for unit {unit!r} that has weights within their bounds was found by "
        f"method={method!r} in {limit:g} seconds; {advice}."
    )
