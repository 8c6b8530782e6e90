"""The estimator: rules that trade margin for the cost of measuring, of which one is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d, validate_data

from bootprob.exceptions import DataError
from bootprob.preparation.labels import encode_classes
from bootprob.runtime.arrays import Floats
from bootprob.selection.feature_costs import FeatureCosts, affordable
from bootprob.selection.pareto.front import ParetoFront, ParetoPoint
from bootprob.selection.pareto.learning import by_size, find_front, said
from bootprob.selection.pareto.monomials import Monomials
from bootprob.selection.pareto.program import check_solver

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ParetoSVC"]


class ParetoSVC(SelectorMixin, ClassifierMixin, BaseEstimator):
    """All rules worth choosing between a large margin and a low cost of measuring.

    E. Carrizosa, B. Martin-Barragan, D. Romero Morales, "Multi-group support vector machines with
    measurement costs: a biobjective approach", 2005. Every class has a score function, a
    combination of columns and their products; a product is free once its columns are paid. `fit`
    finds the Pareto front with a mixed-integer solver (extra ``mip``), `point` or `select` takes
    one of its rules, and `plot_front` shows what there is to choose from.

    Parameters
    ----------
    degree : int, default 1
        g, the largest degree of products of columns.
    norm : {"l1", "linf"}, default "l1"
        In which the coefficients together have the size 1. "l1" prefers few of them.
    margin : {"soft", "hard"}, default "soft"
        "hard" is the smallest margin of all rows, which the rules have to get right.
    nu : {"auto"} or float, default "auto"
        ν of the soft margin, the mean margin of the worst share ν of the rows. Columns whose least
        mean hinge loss exceeds ν have margin 0. "auto" is half way between the least of all
        columns (that the budget can buy one by one) and the largest ν that there can be.
    costs : array_like of shape (p,), dict of str to float, or None
        Of measuring each column. None: 1 each.
    shared_costs : list of (columns, float), optional
        Paid once for any of the columns, by position or name.
    budget : float, optional
        Rules that cost more are not looked for.
    method : {"epsilon-constraint", "two-phase"}, default "epsilon-constraint"
        How the front is found. Both find the same.
    front : {"all", "supported"}, default "all"
        "supported": only the vertices of its convex hull.
    point : {"max margin", "max accuracy"} or int, default "max margin"
        The rule to use: the last of the front, the cheapest of those with the highest
        `cv_accuracies`, or a number, from 0 for the cheapest, negative ones from the end.
    cv : int, cross-validation splitter or None, default 5
        Folds for `cv_accuracies`; stratified, and no more than the smallest class has rows.
    solver : {"HIGHS", "SCIP"}, default "HIGHS"
        Of the mixed-integer programs.
    time_limit : float or None, default 300.0
        Seconds for the front, after which it holds what was found: rules of all costs, proven at
        the cheap and at the dear end. `front_.unproven` says where they are not.
    verbose : int, default 0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray, shape (K,)
        Class labels, sorted.
    front_ : ParetoFront
        Cost, margin, columns and accuracies of every rule, status, time and path.
    point_ : int
        Number of the rule in use.
    nu_ : float or None
        ν.
    monomials_ : Monomials
        The products and their scale.
    n_features_in_ : int
        Columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Only of tables with names.

    Notes
    -----
    The first rule, unless free columns do better, needs no column and says the largest class; ties
    go to the larger class. To predict, only columns of the rule in use are looked at: the others
    may be NaN.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob.selection import ParetoSVC
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = ParetoSVC(budget=2).fit(X.iloc[:150, :6], y[:150])
    >>> [point.features for point in model.front_.points]
    [(), (2,), (1, 2)]
    >>> model.get_feature_names_out().tolist()
    ['mean texture', 'mean perimeter']
    >>> model.select(1).get_feature_names_out().tolist()
    ['mean perimeter']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, None, closed="left")],
        "norm": [StrOptions({"l1", "linf"})],
        "margin": [StrOptions({"soft", "hard"})],
        "nu": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "costs": ["array-like", dict, None],
        "shared_costs": [list, tuple, None],
        "budget": [Interval(Real, 0, None, closed="left"), None],
        "method": [StrOptions({"epsilon-constraint", "two-phase"})],
        "front": [StrOptions({"all", "supported"})],
        "point": [StrOptions({"max margin", "max accuracy"}), Integral],
        "cv": ["cv_object"],
        "solver": [StrOptions({"HIGHS", "SCIP"})],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "verbose": ["verbose"],
    }

    classes_: NDArray[Any]
    front_: ParetoFront
    point_: int
    nu_: float | None
    monomials_: Monomials

    def __init__(
        self,
        degree: int = 1,
        *,
        norm: Literal["l1", "linf"] = "l1",
        margin: Literal["soft", "hard"] = "soft",
        nu: float | str = "auto",
        costs: ArrayLike | Mapping[str, float] | None = None,
        shared_costs: Iterable[tuple[Sequence[int | str], float]] | None = None,
        budget: float | None = None,
        method: Literal["epsilon-constraint", "two-phase"] = "epsilon-constraint",
        front: Literal["all", "supported"] = "all",
        point: int | str = "max margin",
        cv: int | BaseCrossValidator | None = 5,
        solver: Literal["HIGHS", "SCIP"] = "HIGHS",
        time_limit: float | None = 300.0,
        verbose: int = 0,
    ) -> None:
        self.degree = degree
        self.norm = norm
        self.margin = margin
        self.nu = nu
        self.costs = costs
        self.shared_costs = shared_costs
        self.budget = budget
        self.method = method
        self.front = front
        self.point = point
        self.cv = cv
        self.solver = solver
        self.time_limit = time_limit
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find the front and take a rule from it.

        Parameters
        ----------
        X : array_like, shape (n, p)
            Rows.
        y : array_like, shape (n,)
            Labels of two or more classes.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For data that scikit-learn's checks refuse, or a single class.
        DataError
            Costs that are none, ν out of its range, classes that a hard margin cannot separate, a
            point that the front does not have, or a solver that is not installed.

        Warns
        -----
        ConvergenceWarning
            The time limit was reached; it says at which costs rules may be missing.
        UserWarning
            No rule is better than none.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.selection import ParetoSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = ParetoSVC(budget=2).fit(X[::2], y[::2])
        >>> len(model.front_.points), model.front_.status  # rules of no column, of one and of two
        (3, 'optimal')
        """
        solver = check_solver(self.solver)
        rows, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        classes, codes = encode_classes(labels, np.ones(len(rows)))
        costs = FeatureCosts.stated_by(self)
        options = self.get_params(deep=False)
        front, monomials, nu = find_front(options, rows, codes, costs, solver)
        point = _number(front, self.point, None)
        # Nothing is assigned before everything is known: a refit that fails leaves the model alone.
        self.classes_, self._by_size = classes, by_size(codes)
        self.front_, self.monomials_, self.nu_, self.point_ = front, monomials, nu, point
        return self

    def select(self, point: int | str | None = None, *, budget: float | None = None) -> Self:
        """Use another rule of the front; nothing is trained.

        Parameters
        ----------
        point : {"max margin", "max accuracy"} or int, optional
            As the parameter of the class, which is the default.
        budget : float, optional
            Choose among the rules that cost no more; a number still counts from the cheapest.

        Returns
        -------
        self

        Raises
        ------
        DataError
            There is no such rule.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.selection import ParetoSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = ParetoSVC(budget=2).fit(X[::2], y[::2])
        >>> model.select(budget=1).rule_.cost, model.select("max margin").rule_.cost
        (1.0, 2.0)
        """
        check_is_fitted(self)
        self.point_ = _number(self.front_, self.point if point is None else point, budget)
        return self

    @property
    def rule_(self) -> ParetoPoint:
        """The point of the front in use."""
        check_is_fitted(self)
        return self.front_.points[self.point_]

    @property
    def coef_(self) -> Floats:
        """Coefficients on the standardised products, shape (K, N), or (1, N) for two classes."""
        return self.rule_.rule.coef

    @property
    def intercept_(self) -> Floats:
        """Intercepts, shape (K,), or (1,) for two classes."""
        return self.rule_.rule.intercept

    def decision_function(self, X: ArrayLike) -> Floats:
        """Scores, shape (m, K); for two classes f₁ − f₀, shape (m,).

        Parameters
        ----------
        X : array_like, shape (m, p)
            Columns that the rule in use does not need may hold NaN.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.selection import ParetoSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = ParetoSVC(budget=2).fit(X[::2], y[::2])
        >>> scores = model.decision_function(X)
        >>> scores.shape, bool(((scores > 0) == (model.predict(X) == 2)).all())
        ((100,), True)
        """
        scores = self._scores(self.rule_, X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Classes, shape (m,); of equal scores, the larger class.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Columns that the rule in use does not need may hold NaN.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.selection import ParetoSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = ParetoSVC(budget=2).fit(X[::2], y[::2])
        >>> import numpy as np
        >>> model.select(1).rule_.features
        (3,)
        >>> model.predict([[np.nan, np.nan, np.nan, 2.5]])  # the other columns need not be measured
        array([2])
        """
        codes = said(self._scores(self.rule_, X), self._by_size)
        return self.classes_[codes]

    def accuracies(self, X: ArrayLike, y: ArrayLike) -> Floats:
        """Share of some rows that each rule of the front gets right, shape (points,).

        Parameters
        ----------
        X : array_like, shape (m, p)
            Best rows that `fit` has not seen.
        y : array_like, shape (m,)
            Their classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.selection import ParetoSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = ParetoSVC(budget=2).fit(X[::2], y[::2])
        >>> model.accuracies(X[1::2], y[1::2]) > 0.8  # of rows that `fit` has not seen
        array([False,  True,  True])
        """
        check_is_fitted(self)
        labels = column_or_1d(y, warn=True)
        n = _num_samples(X)
        if len(labels) != n or not np.isin(labels, self.classes_).all():
            known = ", ".join(map(str, self.classes_.tolist()))
            raise DataError(f"y must hold the class of each of the {n} rows; classes are {known}.")
        each = [said(self._scores(point, X), self._by_size) for point in self.front_.points]
        return np.array([np.mean(self.classes_[codes] == labels) for codes in each])

    def plot_front(self, figure: Figure | None = None) -> Figure:
        """Draw margin and accuracy of every rule against its cost, and mark the one in use.

        Parameters
        ----------
        figure : matplotlib Figure, optional
            Where to draw; default a new one.

        Returns
        -------
        Figure

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.selection import ParetoSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = ParetoSVC(budget=2).fit(X[::2], y[::2])
        >>> len(model.plot_front().axes)
        2
        """
        check_is_fitted(self)
        return self.front_.plot(self.point_, figure)

    def _scores(self, point: ParetoPoint, X: ArrayLike) -> Floats:
        rows = np.asarray(
            validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        )
        missing = [j for j in point.features if np.isnan(rows[:, j]).any()]
        if missing:
            names = getattr(self, "feature_names_in_", range(self.n_features_in_))
            raise DataError(
                f"Input contains NaN in columns that the rule needs: "
                f"{', '.join(str(names[j]) for j in missing)}."
            )
        used = np.flatnonzero(np.abs(point.rule.coef).any(axis=0))
        features = self.monomials_.values(rows, used)
        return features @ point.rule.coef[:, used].T + point.rule.intercept

    def _get_support_mask(self) -> NDArray[np.bool_]:
        needed = self.rule_.features
        return np.isin(np.arange(self.n_features_in_), needed)


def _number(front: ParetoFront, point: int | str, budget: float | None) -> int:
    """Place of a rule on the front."""
    within = len(front.points)
    if budget is not None:
        within = sum(affordable(cost, budget) for cost in front.costs.tolist())
        if within == 0:
            raise DataError(
                f"The budget is {budget:g}, and the cheapest rule costs {front.costs[0]:g}."
            )
    if point == "max margin":
        return within - 1
    if point == "max accuracy":
        accuracies = front.cv_accuracies[:within]
        if np.isnan(accuracies).any():
            raise DataError(
                "point='max accuracy' needs folds; give cv, and two rows of each class."
            )
        return int(accuracies.argmax())
    if not isinstance(point, Integral):
        raise DataError(f"point is {point!r}; give 'max margin', 'max accuracy' or a number.")
    if not -within <= int(point) < within:
        raise DataError(f"point is {point}; the front has {within} rules, counted from 0.")
    return int(point) % within
