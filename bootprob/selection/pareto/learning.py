"""From rows and options to the front of rules, with their accuracies."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold, check_cv

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats
from bootprob.runtime.progress import progress_bar
from bootprob.selection.feature_costs import FeatureCosts
from bootprob.selection.pareto.front import ParetoFront, ParetoPoint, supported
from bootprob.selection.pareto.margin import MarginProblem, Rule, largest_nu, smallest_nu
from bootprob.selection.pareto.monomials import Monomials
from bootprob.selection.pareto.search import ParetoSearch

__all__ = ["by_size", "find_front", "said"]

Codes = NDArray[np.intp]

_BELOW_LARGEST = 0.999  # of the largest ν, in folds where that is smaller
_PARTS = 1000  # of the progress bar


def find_front(
    options: dict[str, Any], X: Floats, codes: Codes, costs: FeatureCosts, solver: str
) -> tuple[ParetoFront, Monomials, float | None]:
    """Search the front, and measure its points.

    Parameters
    ----------
    options : dict
        Parameters of `ParetoSVC`.
    X : ndarray, shape (n, p)
    codes : ndarray of int, shape (n,)

    Returns
    -------
    front : ParetoFront
    monomials : Monomials
    nu : float or None

    Raises
    ------
    DataError
        ν is out of its range, there are too many products, or a hard margin was asked for and the
        classes cannot be separated.
    """
    monomials = Monomials.of_rows(X, options["degree"])
    features = monomials.values(X)
    needs, budget = monomials.needs, options["budget"]
    nu = None
    if options["margin"] == "soft":
        dear = [budget is not None and costs.total([j]) > budget for j in range(X.shape[1])]
        nu = _nu(options["nu"], features[:, ~needs[:, dear].any(axis=1)], codes)
    problem = MarginProblem(features, codes, options["norm"], nu)
    with progress_bar("Pareto front", _PARTS, shown=options["verbose"] > 0) as advance:
        search = ParetoSearch(
            problem,
            needs,
            costs,
            budget=budget,
            solver=solver,
            time_limit=options["time_limit"],
            tell=lambda share: advance(round(_PARTS * share)),
        )
        if search.largest_margin <= 0:
            _say_nothing_separates(options)
        elif options["method"] == "two-phase":
            search.two_phase(supported_only=options["front"] == "supported")
        else:
            search.epsilon_constraint()
    points, unproven = search.points, search.unproven
    if unproven:
        where = " and ".join(f"from {low:.4g} to {high:.4g}" for low, high in unproven)
        warnings.warn(
            f"The time limit of {options['time_limit']:g} s was reached with {len(points)} rules "
            f"found. At costs {where} more may be worth having, and those found may not be the "
            "best at their cost; elsewhere all are found. Raise time_limit, or give a budget.",
            ConvergenceWarning,
            stacklevel=4,
        )
    on_hull = supported(points, search.tolerance)
    points = [replace(point, supported=is_on) for point, is_on in zip(points, on_hull, strict=True)]
    if options["front"] == "supported":
        points = [point for point in points if point.supported]
    folds = _folds(options["cv"], codes)
    measured = tuple(_measured(point, problem, X, options, folds) for point in points)
    front = ParetoFront(
        measured,
        "time limit" if unproven else "optimal",
        search.seconds,
        search.n_programs,
        tuple(search.path),
        unproven,
    )
    return front, monomials, nu


def said(scores: Floats, by_size: Codes) -> Codes:
    """Class of the largest score in each row, the larger class where several have it.

    Scores have the shape (m, K), or (m, 1) for two classes; `by_size` (K,) has the largest
    class first.
    """
    if scores.shape[1] == 1:
        scores = np.hstack([-scores, scores])
    return by_size[scores[:, by_size].argmax(axis=1)]


def by_size(codes: Codes) -> Codes:
    """Classes by their number of rows, the largest first."""
    return np.argsort(-np.bincount(codes), kind="stable")


def _nu(given: float | str, features: Floats, codes: Codes) -> float:
    """ν, checked; "auto" is half way between the ends of its range."""
    least, most = smallest_nu(features, codes), largest_nu(codes)
    if given == "auto":
        return (least + most) / 2 if least < _BELOW_LARGEST * most else _BELOW_LARGEST * most
    if not least < float(given) < most:
        raise DataError(
            f"nu is {given:g}; with these columns and classes it has to be between {least:.4g}, or "
            f"no rule is better than none, and {most:.4g}, or there is no largest margin."
        )
    return float(given)


def _say_nothing_separates(options: dict[str, Any]) -> None:
    what = f"products of columns up to degree {options['degree']}"
    if options["margin"] == "hard":
        raise DataError(
            f"The classes cannot be separated by {what}, which a hard margin needs; take "
            "margin='soft' or a larger degree."
        )
    warnings.warn(
        f"No rule on {what} is better than none; the front has only the one that always says the "
        "largest class. Another degree or other columns may help.",
        UserWarning,
        stacklevel=5,
    )


def _folds(cv: int | BaseCrossValidator | None, codes: Codes) -> list[tuple[Codes, Codes]]:
    if cv is None:
        return []
    if isinstance(cv, int):
        smallest = int(np.bincount(codes).min())
        if min(cv, smallest) < 2:
            return []
        cv = StratifiedKFold(min(cv, smallest))
    rows = np.zeros(len(codes))
    return list(check_cv(cv, codes, classifier=True).split(rows, codes))


def _measured(
    point: ParetoPoint,
    problem: MarginProblem,
    X: Floats,
    options: dict[str, Any],
    folds: list[tuple[Codes, Codes]],
) -> ParetoPoint:
    """A point with its accuracies."""
    codes, order = problem.codes, by_size(problem.codes)
    right = said(point.rule.scores(problem.features), order) == codes
    columns = X[:, list(point.features)]
    correct = 0
    for training, held_out in folds:
        rule, monomials = _trained(columns[training], codes[training], problem, options)
        scores = rule.scores(monomials.values(columns[held_out]))
        correct += int((said(scores, by_size(codes[training])) == codes[held_out]).sum())
    tested = sum(len(held_out) for _, held_out in folds)
    return replace(
        point,
        training_accuracy=float(right.mean()),
        cv_accuracy=correct / tested if tested else np.nan,
    )


def _trained(
    X: Floats, codes: Codes, problem: MarginProblem, options: dict[str, Any]
) -> tuple[Rule, Monomials]:
    """The rule of the largest margin on some columns and rows."""
    monomials = Monomials.of_rows(X, options["degree"])
    nu = problem.nu
    if nu is not None:
        nu = min(nu, _BELOW_LARGEST * largest_nu(codes))
    fold = MarginProblem(monomials.values(X), codes, problem.norm, nu)
    return fold.best_rule(np.ones(len(monomials.terms), dtype=bool)), monomials
