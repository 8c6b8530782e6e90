"""The cheapest columns with which a hyperplane keeps given rates in both classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import ClassifierTags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from bootprob.exceptions import DataError
from bootprob.metrics.rates import rate_floors
from bootprob.optimization.search_result import SelectionResult
from bootprob.preparation.labels import encode_labels
from bootprob.preparation.standardization import center_and_scale
from bootprob.runtime.arrays import Floats
from bootprob.selection.cost_sensitive.classifier import train_on_kept
from bootprob.selection.cost_sensitive.problem import RateProblem
from bootprob.selection.cost_sensitive.selection import select_by_rates
from bootprob.selection.feature_costs import FeatureCosts

__all__ = ["CostSensitiveSelector"]


_POSITIVE = Interval(Real, 0, None, closed="neither")


class CostSensitiveSelector(SelectorMixin, BaseEstimator):
    """Columns of least cost with which a hyperplane keeps the rates asked for.

    Problem (P1) of thesis chapter 4 (S. Benítez-Peña, R. Blanquero, E. Carrizosa, P.
    Ramírez-Cobo, "Cost-sensitive feature selection for support vector machines", 2019), then the
    machine of largest margin on these columns, (P2) or (P3). Two classes.

    Parameters
    ----------
    rates : dict
        "tpr" and "tnr" to the least share of ``classes_[1]``, and of ``classes_[0]``, that has
        to be on its side: (4.3).
    confidence : float, optional
        Ask for so many right rows that a machine whose true rate is no higher than the floor
        would show them with probability ``1 − confidence`` at most. That is said of a machine
        that has not seen the rows; this one is fitted to them.
    bound : {"binomial", "hoeffding"}, default "binomial"
        With a confidence: exact binomial, or (4.4), which asks for more.
    costs : array_like of shape (p,), dict of str to float, or None
        Of measuring each column. None: 1 each, so that the fewest columns are sought.
    shared_costs : list of (columns, float), optional
        Paid once for any of the columns, by position or name.
    classifier : {"linear", "rbf"} or None, default "linear"
        Kernel of the machine that is trained on the columns chosen: (P2) or (P3). None trains
        none.
    C : float, default 1.0
        Cost of its slack, in scikit-learn's convention; the thesis's C is twice this one.
    gamma : {"scale", "median"} or float, default "scale"
        Of its RBF kernel.
    big_m : float, optional
        M₂, 2 or more: rows that are given up may be wrong by ``1 − y f(x) ≤ M₂`` only. The thesis
        takes 100. It changes the answer; None excludes nothing.
    max_coefficient : float, optional
        M₃: ``|w_k| ≤ M₃`` on standardised columns, where right rows have ``y f(x) ≥ 1``. The
        thesis takes 100. With it, one column has to hold the classes ``2 / M₃`` standard
        deviations apart. It changes the answer; None excludes nothing.
    method : {"heuristic", "exact"}, default "heuristic"
        "exact" goes on from what the scans and the search have found with a mixed-integer solver
        (extra ``mip``). Its bound counts where M₂ and M₃ are given: the program needs both.
    solver : {"SCIP", "HIGHS"}, optional
        Of "exact"; by default SCIP where it is installed.
    time_limit : float, default 300.0
        Seconds for scans and search, and again for the solver. The best found then counts, with
        a bound on what could still be cheaper.
    verbose : int, default 0
        1 shows progress.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        ``classes_[1]`` is the positive class.
    support_ : ndarray of bool, shape (p,)
        Columns chosen.
    cost_ : float
        Of the columns chosen.
    result_ : SelectionResult
        Objective (the cost), bound, gap, status, time and the path of what was found. Status
        "optimal" only where no cheaper columns can keep the rates; "heuristic" where the search
        came to its end above the bound; "time limit".
    center_, scale_ : ndarray, shape (p,)
        Mean and standard deviation of the columns.
    coef_ : ndarray, shape (p,)
        w of the separating hyperplane of (P1), on ``(X - center_) / scale_``; 0 for columns not
        chosen.
    intercept_ : float
        β of it.
    kept_ : ndarray of bool, shape (n,)
        Rows with ``z_i = 1``: ``y f(x) ≥ 1``.
    rates_ : dict of str to float
        "tpr" and "tnr" of the rows kept.
    classifier_ : Pipeline or None
        The machine of largest margin that keeps the rows of `kept_`, for the columns chosen:
        ``selector.classifier_.predict(selector.transform(X))``.
    n_features_in_ : int
        Columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Only of tables with names.

    Notes
    -----
    What is proven, and how: docs/feature_selection.md. Constant columns are never chosen; of
    equal columns the cheaper one is. Columns that cost nothing are tried first, and left out
    again where the rates are kept without them.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob.selection import CostSensitiveSelector
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> selector = CostSensitiveSelector({"tpr": 0.9, "tnr": 0.9}).fit(X, y)
    >>> selector.result_.status
    'optimal'
    >>> selector.get_feature_names_out().tolist()
    ['mean concave points']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rates": [dict],
        "confidence": [None, Interval(Real, 0, 1, closed="neither")],
        "bound": [StrOptions({"binomial", "hoeffding"})],
        "costs": ["array-like", dict, None],
        "shared_costs": [list, tuple, None],
        "classifier": [StrOptions({"linear", "rbf"}), None],
        "C": [_POSITIVE],
        "gamma": [StrOptions({"scale", "median"}), _POSITIVE],
        "big_m": [None, Interval(Real, 2, None, closed="left")],
        "max_coefficient": [None, _POSITIVE],
        "method": [StrOptions({"heuristic", "exact"})],
        "solver": [None, str],
        "time_limit": [_POSITIVE],
        "verbose": ["verbose"],
    }

    classes_: NDArray[Any]
    support_: NDArray[np.bool_]
    cost_: float
    result_: SelectionResult
    center_: Floats
    scale_: Floats
    coef_: Floats
    intercept_: float
    kept_: NDArray[np.bool_]
    rates_: dict[str, float]
    classifier_: Pipeline | None

    def __init__(
        self,
        rates: Mapping[str, float],
        *,
        confidence: float | None = None,
        bound: str = "binomial",
        costs: ArrayLike | Mapping[str, float] | None = None,
        shared_costs: Iterable[tuple[Sequence[int | str], float]] | None = None,
        classifier: str | None = "linear",
        C: float = 1.0,
        gamma: str | float = "scale",
        big_m: float | None = None,
        max_coefficient: float | None = None,
        method: str = "heuristic",
        solver: str | None = None,
        time_limit: float = 300.0,
        verbose: int = 0,
    ) -> None:
        self.rates = rates
        self.confidence = confidence
        self.bound = bound
        self.costs = costs
        self.shared_costs = shared_costs
        self.classifier = classifier
        self.C = C
        self.gamma = gamma
        self.big_m = big_m
        self.max_coefficient = max_coefficient
        self.method = method
        self.solver = solver
        self.time_limit = time_limit
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find the columns, and train the machine on them.

        Parameters
        ----------
        X : array_like, shape (n, p)
            Rows.
        y : array_like, shape (n,)
            Labels of two classes.

        Returns
        -------
        self

        Raises
        ------
        UnattainableRateError
            No hyperplane on all columns was found that keeps the rates, or not with that
            confidence from so few rows.
        ValueError
            For data that scikit-learn's checks refuse, a number of classes other than two, rates
            that are not one for each class, or costs that are none (`DataError`).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.selection import CostSensitiveSelector
        >>> X, y = load_iris(return_X_y=True)
        >>> selector = CostSensitiveSelector({"tpr": 0.9, "tnr": 0.9}, costs=[1, 1, 2, 2])
        >>> selector = selector.fit(X[50:], y[50:])
        >>> selector.get_support().tolist(), selector.cost_, selector.result_.status
        ([False, False, False, True], 2.0, 'optimal')
        """
        rows, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        costs = FeatureCosts.stated_by(self)
        classes, positive = encode_labels(labels, np.ones(len(rows)))
        needed = self._needed(positive)
        center, scale = center_and_scale(rows, np.ones(len(rows)))
        problem = RateProblem(
            X=(rows - center) / scale,
            positive=positive,
            needed_positive=needed["tpr"],
            needed_negative=needed["tnr"],
            big_m=np.inf if self.big_m is None else float(self.big_m),
            max_coefficient=(
                np.inf if self.max_coefficient is None else float(self.max_coefficient)
            ),
        )
        hyperplane, result = select_by_rates(
            problem,
            costs,
            exact=self.method == "exact",
            solver=self.solver,
            time_limit=self.time_limit,
            verbose=self.verbose > 0,
        )
        support = np.isin(np.arange(rows.shape[1]), hyperplane.features)
        machine = None
        if self.classifier is not None:
            options: dict[str, Any] = {"kernel": self.classifier, "C": self.C, "gamma": self.gamma}
            machine = train_on_kept(rows[:, support], labels, hyperplane.kept, **options)
        # Nothing is assigned before everything is known: a refit that fails leaves all as it was.
        self.classes_, self.support_, self.result_ = classes, support, result
        self.cost_ = costs.total(hyperplane.features)
        self.center_, self.scale_ = center, scale
        self.coef_ = np.zeros(rows.shape[1])
        self.coef_[list(hyperplane.features)] = hyperplane.coef
        self.intercept_, self.kept_ = hyperplane.intercept, hyperplane.kept
        self.rates_ = {
            "tpr": float(self.kept_[positive].mean()),
            "tnr": float(self.kept_[~positive].mean()),
        }
        self.classifier_ = machine
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "support_")

    def _needed(self, positive: NDArray[np.bool_]) -> dict[str, int]:
        """Rows of each class that have to be right."""
        if set(self.rates) != {"tpr", "tnr"}:
            raise DataError(
                f"rates has {sorted(self.rates)}; give a floor on 'tpr' and one on 'tnr'. With one "
                "of them only, a constant classifier keeps it, and no column is needed."
            )
        needed = {}
        for floor in rate_floors(self.rates, self.confidence, self.bound):
            n = int(floor.members(positive).sum())
            needed[str(floor.rate)] = floor.required_rows(n)
        return needed

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_
