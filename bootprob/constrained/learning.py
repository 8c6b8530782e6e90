"""From a table and the parameters of a `ConstrainedSVC` to its fitted attributes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from bootprob.constrained.condensation import Rows, fewer_rows
from bootprob.constrained.exact import solve_exact
from bootprob.constrained.heuristic import solve_heuristic
from bootprob.constrained.kernel_factor import KernelFactor
from bootprob.constrained.optional_solvers import choose_solver
from bootprob.constrained.problem import ConstrainedProblem, Requirement, Solution
from bootprob.constrained.row_sets import split_rows
from bootprob.constrained.sliding import solve_plain, solve_sliding
from bootprob.exceptions import BootprobError, DataError, UnattainableRateError
from bootprob.grids import gamma_grid
from bootprob.labels import encode_labels
from bootprob.rates import RateFloor, effective_rows, rate_floors
from bootprob.row_blocks import row_blocks
from bootprob.standardization import center_and_scale

if TYPE_CHECKING:
    from bootprob.constrained.estimator import ConstrainedSVC

__all__ = ["learn", "scores"]

Floats = NDArray[np.float64]

_ROUNDING = 1e-6  # of a margin, between a factor's coordinates and the scores that users see


def learn(svc: ConstrainedSVC, X: Floats, y: NDArray[Any], weight: Floats) -> dict[str, Any]:
    """Train the machine and check it.

    Parameters
    ----------
    svc : ConstrainedSVC
        Its parameters are read; nothing of it is changed.
    X : ndarray, shape (n, p)
    y : ndarray, shape (n,)
    weight : ndarray, shape (n,)
        Row weights, ≥ 0.

    Returns
    -------
    dict
        All attributes of the fit but the time it took.

    Raises
    ------
    ValueError
        As `ConstrainedSVC.fit` says.
    """
    floors = rate_floors(svc.rates, svc.confidence, svc.bound)
    if floors and svc.method == "exact":
        choose_solver(svc.solver)
    classes, positive = encode_labels(y, weight)
    random_state = check_random_state(svc.random_state)
    used = weight > 0
    everything, nothing = np.flatnonzero(used), np.zeros(0, dtype=np.intp)
    if floors:
        training, anchors = split_rows(
            svc.anchors, positive, used, shuffle=svc.shuffle, random_state=random_state
        )
        shares = [_needed_share(floor, positive[anchors], weight[anchors]) for floor in floors]
        if svc.method == "slide":
            training = everything
    else:
        training, anchors, shares = everything, nothing, []
    center, scale = center_and_scale(X, weight)
    if not svc.standardize:
        scale = np.ones_like(scale)
    rows = (X - center) / scale
    gamma = None
    if svc.kernel == "rbf":
        gamma = float(gamma_grid(svc.gamma, rows[used])[0])
    train, held, group = fewer_rows(
        svc.max_rows, rows, positive, weight, training, anchors, random_state
    )
    problem, factor = _problem(svc, floors, shares, train, held, gamma)
    result = _solve(svc, problem)
    if group is not None:
        result = replace(result, kept=result.kept[group])
    fitted: dict[str, Any] = {
        "classes_": classes,
        "center_": center,
        "scale_": scale,
        "gamma_": gamma,
        "coef_": None,
        "dual_coef_": None,
        "X_fit_": factor.rows,
        "intercept_": np.array([result.intercept]),
        "result_": result,
        "training_rows_": training,
        "anchors_": anchors,
    }
    fitted["coef_" if gamma is None else "dual_coef_"] = factor.pull_back(result.coef)[None]
    _check_again(svc, fitted, problem, held[0])
    right = np.where(positive, 1.0, -1.0)[anchors] * scores(fitted, rows[anchors])
    fitted |= _reached(svc, floors, shares, positive[anchors], weight[anchors], right, anchors)
    return fitted


def scores(fitted: Mapping[str, Any], rows: Floats) -> Floats:
    """Scores of standardised rows (m, p), shape (m,).

    Parameters
    ----------
    fitted : mapping
        "coef_", "dual_coef_", "intercept_", "gamma_" and "X_fit_" of a `ConstrainedSVC`.
    rows : ndarray, shape (m, p)
    """
    if fitted["coef_"] is not None:
        return rows @ fitted["coef_"][0] + fitted["intercept_"][0]
    found = np.empty(len(rows))
    for block in row_blocks(len(rows), len(fitted["X_fit_"])):
        distances = cdist(rows[block], fitted["X_fit_"], "sqeuclidean")
        kernel = np.exp(-fitted["gamma_"] * distances)
        found[block] = kernel @ fitted["dual_coef_"][0] + fitted["intercept_"][0]
    return found


def _needed_share(floor: RateFloor, positive: NDArray[np.bool_], weight: Floats) -> float:
    members = floor.members(positive)
    if not members.any():
        raise DataError(
            f"rates asks for {floor.rate} ≥ {floor.at_least:g}, but the anchors have no row that "
            "it is a share of; give other `anchors`, or leave the rate out."
        )
    return floor.required_share(effective_rows(weight[members]))


def _problem(
    svc: ConstrainedSVC,
    floors: tuple[RateFloor, ...],
    shares: list[float],
    train: Rows,
    held: Rows,
    gamma: float | None,
) -> tuple[ConstrainedProblem, KernelFactor]:
    """Problem (CSVM0) in coordinates in which the kernel is linear."""
    members = [floor.members(held[1]) for floor in floors]
    constrained = np.any(members, axis=0) if members else np.zeros(len(held[1]), dtype=bool)
    span = train[0]
    if held is not train:  # where anchors may be training rows once more
        span = np.unique(np.concatenate([train[0], held[0][constrained]]), axis=0)
    factor = KernelFactor.linear(span) if gamma is None else KernelFactor.rbf(span, gamma)
    columns = factor.transform(train[0])
    C_positive, C_negative = (
        svc.C if own is None else own for own in (svc.C_positive, svc.C_negative)
    )
    if svc.normalize_C:
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


def _solve(svc: ConstrainedSVC, problem: ConstrainedProblem) -> Solution:
    if not problem.requirements:
        return solve_plain(problem)
    try:
        if svc.method == "slide":
            return solve_sliding(problem)
        found = solve_heuristic(problem, time_limit=svc.time_limit, verbose=bool(svc.verbose))
    except UnattainableRateError as error:
        if svc.confidence is None:
            raise
        raise UnattainableRateError(
            f"{error} These are the shares of the anchors that confidence {svc.confidence:g} asks "
            "for; a lower confidence asks for less.",
            rate=error.rate,
            wanted=error.wanted,
            attainable=error.attainable,
        ) from error
    if svc.method == "heuristic" or (found.status == "optimal" and svc.big_m is None):
        return found
    return solve_exact(
        problem,
        found,
        solver=svc.solver,
        big_m=svc.big_m,
        time_limit=svc.time_limit,
        gap=svc.gap,
        verbose=bool(svc.verbose),
    )


def _check_again(
    svc: ConstrainedSVC, fitted: dict[str, Any], problem: ConstrainedProblem, rows: Floats
) -> None:
    """See that the scores that users get meet the requirements."""
    if not problem.requirements:
        return
    margins = problem.anchor_y * scores(fitted, rows)
    enough = 0.0 if svc.method == "slide" else 1 - _ROUNDING
    lacking = problem.shortfall(margins > enough)
    for requirement, lack in zip(problem.requirements, lacking, strict=True):
        if lack > 0:
            raise BootprobError(
                f"The solution of method={svc.method!r} does not keep {requirement.name} when its "
                f"scores are computed again: {lack:g} of {requirement.required:g} are missing. "
                "Standardise the columns, lower C, or use another method or solver."
            )


def _reached(
    svc: ConstrainedSVC,
    floors: tuple[RateFloor, ...],
    shares: list[float],
    positive: NDArray[np.bool_],
    weight: Floats,
    margins: Floats,
    anchors: NDArray[np.intp],
) -> dict[str, Any]:
    """Rates over the anchors themselves, and the anchors given up; warns of rates not reached."""
    rates = {}
    for name in ("tpr", "tnr", "accuracy"):
        members = RateFloor(name, 1.0).members(positive)
        if members.any():
            rates[name] = float(np.average(margins[members] > 0, weights=weight[members]))
    short = [
        f"{floor.rate} {rates[floor.rate]:.4g} instead of {share:.4g}"
        for floor, share in zip(floors, shares, strict=True)
        if rates[floor.rate] < share - _ROUNDING
    ]
    if short:
        warnings.warn(
            f"The rates hold over the {svc.max_rows} centres that stand for the rows, but not over "
            f"the anchors themselves: {', '.join(short)}. Raise max_rows, or ask for more.",
            UserWarning,
            stacklevel=4,
        )
    constrained = np.zeros(len(anchors), dtype=bool)
    for floor in floors:
        constrained |= floor.members(positive)
    wrong = margins <= 0 if svc.method == "slide" else margins < 1 - _ROUNDING
    return {"rates_": rates, "given_up_": anchors[constrained & wrong]}
