"""From a table and the parameters of a `ConstrainedSVC` to its fitted attributes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from bootprob.constrained.all_rows import affordable_columns, on_all_rows, plain_bound
from bootprob.constrained.allowed_start import first_start
from bootprob.constrained.condensation import Centres, DistinctRows, Rows, centres_of, distinct
from bootprob.constrained.exact import solve_exact
from bootprob.constrained.fitted_machine import check_again, reached, scores
from bootprob.constrained.heuristic import solve_heuristic
from bootprob.constrained.kernel_factor import KernelFactor
from bootprob.constrained.problem import ConstrainedProblem, Requirement, Solution
from bootprob.constrained.row_sets import split_rows
from bootprob.constrained.sliding import solve_plain, solve_sliding
from bootprob.exceptions import DataError, UnattainableRateError
from bootprob.intervals.shares import effective_rows
from bootprob.metrics.rates import RateFloor, rate_floors
from bootprob.optimization.solvers import choose_solver
from bootprob.preparation.grids import check_rule, gamma_grid
from bootprob.preparation.labels import encode_labels
from bootprob.preparation.standardization import center_and_scale
from bootprob.runtime.arrays import Floats
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.linear import Linear
from bootprob_gpu.kernels.named import KERNELS, Kernel, kernel_function

__all__ = ["Options", "learn"]


@dataclass(frozen=True)
class Options:
    """The parameters of a `ConstrainedSVC`, which documents them."""

    kernel: Kernel
    gamma: str | float
    degree: int
    coef0: float
    C: float
    C_positive: float | None
    C_negative: float | None
    normalize_C: bool
    rates: Mapping[str, float] | None
    confidence: float | None
    bound: str
    anchors: str | ArrayLike
    shuffle: bool
    method: Literal["heuristic", "exact", "slide"]
    solver: str | None
    big_m: float | None
    gap: float
    time_limit: float
    standardize: bool
    max_rows: int | None
    random_state: int | np.random.RandomState | None
    verbose: int


def learn(options: Options, X: Floats, y: NDArray[Any], weight: Floats) -> dict[str, Any]:
    """Train the machine and check it; all attributes of the fit but the time it took.

    Rows are (n, p), weights ≥ 0; raises what `ConstrainedSVC.fit` says.
    """
    floors = rate_floors(options.rates, options.confidence, options.bound)
    if options.confidence is not None and not floors:
        raise DataError(
            f"confidence is {options.confidence:g}, but there are no rates that it could be of; "
            "give rates, or leave confidence out."
        )
    if floors and options.method == "exact":
        choose_solver(options.solver)
    classes, positive = encode_labels(y, weight)
    random_state = check_random_state(options.random_state)
    used = weight > 0
    everything, nothing = np.flatnonzero(used), np.zeros(0, dtype=np.intp)
    if floors:
        training, anchors = split_rows(
            options.anchors, positive, used, shuffle=options.shuffle, random_state=random_state
        )
        shares = [_needed_share(floor, positive[anchors], weight[anchors]) for floor in floors]
        if options.method == "slide":
            training = everything
    else:
        training, anchors, shares = everything, nothing, []
    center, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    seen = X
    if KERNELS[options.kernel].has_features:
        center, deviation = center_and_scale(X, weight)
        if options.standardize:
            scale = deviation
        elif options.kernel == "poly":  # which is about the origin; others are about no point
            center = np.zeros_like(center)
        seen = (X - center) / scale
    kernel = _kernel(options, seen[used])
    seen = rows = kernel.checked(seen, np.ones_like(scale))
    given, inner = None, kernel
    if not kernel.has_features:  # a linear machine on columns that the matrix is made of
        given, inner = KernelFactor.of(kernel, rows[used], everything), Linear()
        rows = given.transform(rows)
    sets, centres = distinct(rows, positive, weight, training, anchors), None
    # A linear machine without anchors to choose is one convex problem, however many rows there are.
    if not inner.is_linear or (floors and options.method != "slide"):
        centres = centres_of(sets, options.max_rows)
    chosen: DistinctRows | Centres = sets if centres is None else centres
    problem, factor = _problem(options, floors, shares, chosen.train, chosen.held, inner)
    if centres is None:
        result = _solve(options, problem)
    else:
        found = solve_plain(problem) if options.method == "slide" else _solve(options, problem)
        problem, factor, result = _settle(options, floors, shares, sets, centres, factor, found)
    coef = factor.pull_back(result.coef)
    if given is not None:
        own, coef = given.pull_back(coef), np.zeros(len(X))
        coef[used] = own
    fitted: dict[str, Any] = {
        "classes_": classes,
        "center_": center,
        "scale_": scale,
        "gamma_": None if kernel.gamma is None else kernel.gamma.item(),
        "kernel_function_": kernel,
        "coef_": None,
        "dual_coef_": None,
        "X_fit_": factor.rows,
        "intercept_": np.array([result.intercept]),
        "result_": replace(result, kept=result.kept[sets.group]),
        "n_centres_": None if centres is None else centres.count,
        "training_rows_": training,
        "anchors_": anchors,
    }
    fitted["coef_" if kernel.is_linear else "dual_coef_"] = coef[None]
    _, first = np.unique(sets.group, return_index=True)
    check_again(options.method, fitted, problem, seen[anchors[first]], result)
    right = np.where(positive, 1.0, -1.0)[anchors] * scores(fitted, seen[anchors])
    fitted |= reached(options.method, floors, positive[anchors], weight[anchors], right, anchors)
    return fitted


def _kernel(options: Options, rows: Floats) -> KernelFunction:
    """The kernel of the rows with positive weight, as it sees them."""
    given: dict[str, Any] = {
        name: getattr(options, name) for name in KERNELS[options.kernel].parameters
    }
    if "gamma" in given:
        check_rule(options.gamma, options.kernel)
        given["gamma"] = gamma_grid(options.gamma, rows, options.kernel)
    return kernel_function(options.kernel, **given)


def _needed_share(floor: RateFloor, positive: NDArray[np.bool_], weight: Floats) -> float:
    members = floor.members(positive)
    if not members.any():
        raise DataError(
            f"rates asks for {floor.rate} ≥ {floor.at_least:g}, but the anchors have no row that "
            "it is a share of; give other `anchors`, or leave the rate out."
        )
    return floor.required_share(effective_rows(weight[members]))


def _problem(
    options: Options,
    floors: tuple[RateFloor, ...],
    shares: list[float],
    train: Rows,
    held: Rows,
    kernel: KernelFunction,
) -> tuple[ConstrainedProblem, KernelFactor]:
    """Problem (CSVM0) in coordinates in which the kernel is linear."""
    members = [floor.members(held[1]) for floor in floors]
    constrained = np.any(members, axis=0) if members else np.zeros(len(held[1]), dtype=bool)
    if options.big_m is not None and options.method == "exact":
        constrained = np.ones(len(held[1]), dtype=bool)  # (2.7) is about all of J
    span = train[0]
    if held is not train:  # where anchors may be training rows once more
        span = np.unique(np.concatenate([train[0], held[0][constrained]]), axis=0)
    factor = KernelFactor.of(kernel, span)
    columns = factor.transform(train[0])
    C_positive, C_negative = (
        options.C if own is None else own for own in (options.C_positive, options.C_negative)
    )
    if options.normalize_C:
        C_positive /= train[2][train[1]].sum()
        C_negative /= train[2][~train[1]].sum()
    y = np.where(train[1], 1.0, -1.0)
    problem = ConstrainedProblem(
        X=columns,
        y=y,
        cost=train[2] * np.where(train[1], C_positive, C_negative),
        anchors=columns if held is train else factor.transform(held[0]),
        anchor_y=y if held is train else np.where(held[1], 1.0, -1.0),
        anchor_weight=held[2],
        requirements=tuple(
            Requirement(floor.rate, inside, share * float(held[2][inside].sum()))
            for floor, share, inside in zip(floors, shares, members, strict=True)
        ),
    )
    return problem, factor


def _solve(options: Options, problem: ConstrainedProblem) -> Solution:
    if not problem.requirements:
        return solve_plain(problem)
    try:
        if options.method == "slide":
            return solve_sliding(problem)
        found = solve_heuristic(
            problem, time_limit=options.time_limit, verbose=bool(options.verbose)
        )
    except UnattainableRateError as error:
        start = None
        if options.method == "exact":
            deadline = time.perf_counter() + options.time_limit
            solver = choose_solver(options.solver)
            start = first_start(problem, options.big_m, solver, deadline)
        if start is not None:
            found = start
        elif options.confidence is None:
            raise
        else:
            raise UnattainableRateError(
                f"{error} These are the shares of the anchors that confidence "
                f"{options.confidence:g} asks for; a lower confidence asks for less.",
                rate=error.rate,
                wanted=error.wanted,
                attainable=error.attainable,
            ) from error
    if options.method == "heuristic" or (found.status == "optimal" and options.big_m is None):
        return found
    return solve_exact(
        problem,
        found,
        solver=options.solver,
        big_m=options.big_m,
        time_limit=options.time_limit,
        gap=options.gap,
        verbose=bool(options.verbose),
    )


def _settle(
    options: Options,
    floors: tuple[RateFloor, ...],
    shares: list[float],
    sets: DistinctRows,
    centres: Centres,
    factor: KernelFactor,
    found: Solution,
) -> tuple[ConstrainedProblem, KernelFactor, Solution]:
    """From the machine of centres to one of all rows; the problem, and the solution's factor."""
    limits: dict[str, Any] = {
        "sliding": bool(floors) and options.method == "slide",
        "gap": options.gap if options.method == "exact" else 1e-6,
        "time_limit": options.time_limit,
        "verbose": bool(options.verbose),
        "floor": 1 - options.big_m if options.big_m and options.method == "exact" else -np.inf,
    }
    problem, whole = _problem(options, floors, shares, sets.train, sets.held, Linear())
    kernel = factor.kernel
    if kernel.is_linear:
        coef = whole.push_forward(factor.pull_back(found.coef))
        result = on_all_rows(problem, coef, found.intercept, bound=None, **limits)
        return problem, whole, replace(result, seconds=found.seconds + result.seconds)
    same = problem.anchors is problem.X
    n = len(problem.y) + (0 if same else len(problem.anchor_y))
    factor, coef = factor.about(found.coef, 0 if limits["sliding"] else affordable_columns(n))
    X = factor.transform(sets.train[0])
    problem = replace(problem, X=X, anchors=X if same else factor.transform(sets.held[0]))
    deadline = time.perf_counter() + options.time_limit
    bound = plain_bound(
        problem, sets.train[0], centres.of_train, centres.train[0], kernel, deadline
    )
    result = on_all_rows(problem, coef, found.intercept, bound=bound, **limits)
    return problem, factor, replace(result, seconds=found.seconds + result.seconds)
