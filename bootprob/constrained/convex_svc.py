"""A linear support vector machine under convex constraints of the user's own, written in CVXPY."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from bootprob.exceptions import BootprobError, DataError
from bootprob.preparation.labels import encode_labels, weigh_classes
from bootprob.runtime.arrays import Floats

__all__ = [
    "ConvexConstrainedSVC",
    "InfeasibleConstraintsError",
    "LinearMachine",
    "UnsolvedError",
]


_MANY_ROWS = 1000


class InfeasibleConstraintsError(DataError):
    """No machine keeps all of the constraints given."""


class UnsolvedError(BootprobError, RuntimeError):
    """The solver stopped without a solution; the message says how and what to try."""


@dataclass(frozen=True)
class LinearMachine:
    """What a constraint may speak of: the unknown machine ``f(x) = w·x + b`` and its rows.

    Attributes
    ----------
    coef : cvxpy.Variable, shape (p,)
        w.
    intercept : cvxpy.Variable, shape ()
        b.
    X : ndarray, shape (n, p)
        Training rows, as given to `fit`.
    positive : ndarray of bool, shape (n,)
        Which of them belong to ``classes_[1]``.
    """

    coef: Any
    intercept: Any
    X: Floats
    positive: NDArray[np.bool_]

    def scores(self, rows: ArrayLike | None = None) -> Any:
        """Scores of rows (m, p), by default of the training rows: a cvxpy expression (m,)."""
        seen = self.X if rows is None else np.asarray(rows, dtype=np.float64)
        return seen @ self.coef + self.intercept


class ConvexConstrainedSVC(ClassifierMixin, BaseEstimator):
    """Linear support vector machine under any convex constraints on its coefficients and scores.

    Minimises ``½ ‖w‖² + Σ_i cost_i max(0, 1 − y_i (w·x_i + b))`` subject to the constraints that a
    function of the user returns: groups whose mean scores may differ by ε at most, signs of
    coefficients, a budget on ``‖w‖₁``, and whatever else CVXPY takes for convex. For floors on
    rates, which are not convex, there is `ConstrainedSVC`. Two classes; meant for up to about
    1,000 rows.

    Parameters
    ----------
    constraints : callable or None, default None
        Takes a `LinearMachine` and returns a list of CVXPY constraints (or one). It may add
        variables of its own. None trains the plain machine.
    C : float, default 1.0
        Cost of slack, in scikit-learn's convention.
    class_weight : {"balanced"}, dict or None, default None
        Multiplies C class by class.
    solver : str, default "CLARABEL"
        Any convex solver that CVXPY has.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        Class labels; ``classes_[1]`` is the positive class.
    n_features_in_ : int
        Columns seen by `fit`.
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Column names, where they are all strings.
    coef_ : ndarray, shape (1, p)
        On the columns as given: standardise them before, and write the constraints accordingly.
    intercept_ : ndarray, shape (1,)
        b.
    cost_ : ndarray, shape (n,)
        C times class weight times sample weight.
    objective_ : float
        Recomputed from `coef_` and `intercept_`.
    constraint_duals_ : list of ndarray
        Dual variables of the constraints, in their order: by how much the objective would fall
        if a bound were loosened by one unit, to first order.
    constraint_violation_ : float
        Largest violation of a constraint by the solution, as CVXPY measures it.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob import ConvexConstrainedSVC
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> model = ConvexConstrainedSVC(lambda machine: [machine.coef[1] >= 0])
    >>> bool(model.fit(X, [0, 0, 1, 1]).coef_[0, 1] > -1e-6)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "constraints": [callable, None],
        "C": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "solver": [str],
    }

    def __init__(
        self,
        constraints: Callable[[LinearMachine], Any] | None = None,
        *,
        C: float = 1.0,
        class_weight: str | dict[Any, float] | None = None,
        solver: str = "CLARABEL",
    ) -> None:
        self.constraints = constraints
        self.C = C
        self.class_weight = class_weight
        self.solver = solver

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the machine.

        Parameters
        ----------
        X : array_like, shape (n, p)
            Training rows.
        y : array_like, shape (n,)
            Labels of two classes.
        sample_weight : array_like, shape (n,), optional
            Weights that multiply C row by row.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleConstraintsError
            If no machine keeps the constraints.
        DataError
            If a constraint is not one, not convex or not continuous, or the data cannot be used.
        UnsolvedError
            If the solver fails.
        ImportError
            Without CVXPY: install the extra ``layers``.

        Warns
        -----
        UserWarning
            Beyond 1,000 rows, which take long.
        ConvergenceWarning
            If the solver reached a reduced accuracy only.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob import ConvexConstrainedSVC
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
        >>> model = ConvexConstrainedSVC(lambda machine: [machine.coef[0] <= 0.5])
        >>> model = model.fit(X, [0, 0, 1, 1])
        >>> model.coef_.round(3), model.constraint_violation_ < 1e-6
        (array([[0.5, 0. ]]), True)
        >>> float(model.constraint_duals_[0]) > 0  # a larger bound would lower the objective
        True
        """
        cp = _optional("cvxpy")
        rows, classes, positive, cost = self._checked(X, y, sample_weight)
        model = _Model.build(cp, rows, positive, self.constraints)
        model.cost.value = cost
        if self.solver not in cp.installed_solvers():
            raise DataError(
                f"solver is {self.solver!r}; installed are {', '.join(cp.installed_solvers())}."
            )
        with warnings.catch_warnings():  # said in our own words below
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            try:
                model.problem.solve(solver=self.solver)
            except cp.SolverError as error:
                raise UnsolvedError(
                    f"{self.solver} failed ({error}); standardise the columns, or try another "
                    "solver."
                ) from error
        status = model.problem.status
        if status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
            raise InfeasibleConstraintsError(
                f"No machine keeps the {len(model.constraints)} constraints given; loosen or drop "
                "some of them."
            )
        if status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or model.machine.coef.value is None:
            raise UnsolvedError(
                f"{self.solver} ended with status {status!r}; standardise the columns, or try "
                "another solver."
            )
        if status == cp.OPTIMAL_INACCURATE:
            warnings.warn(
                f"{self.solver} reached a reduced accuracy only; standardise the columns, or try "
                "another solver.",
                ConvergenceWarning,
                stacklevel=2,
            )
        coef, intercept = model.machine.coef.value, float(model.machine.intercept.value)
        slack = np.maximum(0.0, 1 - np.where(positive, 1.0, -1.0) * (rows @ coef + intercept))
        self.classes_, self.cost_ = classes, cost
        self.coef_, self.intercept_ = coef[None], np.array([intercept])
        self.objective_ = float(0.5 * coef @ coef + cost @ slack)
        self.constraint_duals_ = [np.asarray(each.dual_value) for each in model.constraints]
        self.constraint_violation_ = max(
            (float(np.max(each.violation())) for each in model.constraints), default=0.0
        )
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Scores ``w·x + b``, shape (m,); larger means more likely ``classes_[1]``.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob import ConvexConstrainedSVC
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
        >>> model = ConvexConstrainedSVC(lambda machine: [machine.coef[1] == 0])
        >>> scores = model.fit(X, [0, 0, 1, 1]).decision_function([[1.5, 0.0], [1.5, 9.0]])
        >>> bool(abs(scores[0] - scores[1]) < 1e-5)  # the second column is not used
        True
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(rows @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Classes by the sign of the score, shape (m,); 0 goes to ``classes_[0]``.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob import ConvexConstrainedSVC
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
        >>> model = ConvexConstrainedSVC().fit(X, ["no", "no", "yes", "yes"])
        >>> model.predict([[0.5, 0.5], [2.5, 0.5]]).tolist()
        ['no', 'yes']
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def layer(self, X: ArrayLike, y: ArrayLike) -> Any:
        """The machine as a differentiable function of the cost of each row, by cvxpylayers.

        Parameters
        ----------
        X : array_like, shape (n, p)
            Training rows.
        y : array_like, shape (n,)
            Labels of two classes.

        Returns
        -------
        cvxpylayers.torch.CvxpyLayer
            Takes a tensor of costs, shape (n,) or (batch, n), float64, and returns the tensors
            ``w`` (p,) and ``b`` (), or a batch of them, with gradients. `C` and `class_weight` take
            no part: they are what the costs are made of. Give
            ``solver_args={"eps": 1e-10, "max_iters": 100_000}``: with the default tolerances of
            its solver, gradients were seen to be off by 5 %. (cvxpylayers 1.2 makes numpy 2 emit a
            DeprecationWarning, which means nothing here.)

        Raises
        ------
        DataError
            As for `fit`.
        ImportError
            Without cvxpylayers: install the extra ``layers``.

        Examples
        --------
        >>> import warnings
        >>> import numpy as np
        >>> import torch
        >>> from bootprob import ConvexConstrainedSVC
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
        >>> cost = torch.full((4,), 0.1, dtype=torch.float64, requires_grad=True)
        >>> with warnings.catch_warnings(action="ignore"):  # of numpy 2, about cvxpylayers 1.2
        ...     layer = ConvexConstrainedSVC().layer(X, [0, 0, 1, 1])
        ...     w, b = layer(cost, solver_args={"eps": 1e-10, "max_iters": 100_000})
        ...     w.sum().backward()
        >>> bool((cost.grad != 0).any())  # how w would move with the cost of each row
        True
        """
        cp, layers = _optional("cvxpy"), _optional("cvxpylayers.torch")
        self._validate_params()
        rows, _, positive, _ = self._checked(X, y, None)
        model = _Model.build(cp, rows, positive, self.constraints)
        return layers.CvxpyLayer(
            model.problem,
            parameters=[model.cost],
            variables=[model.machine.coef, model.machine.intercept],
        )

    def _checked(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Floats, NDArray[Any], NDArray[np.bool_], Floats]:
        """Rows, classes, which rows are positive, and their costs."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        rows, labels = np.asarray(X), np.asarray(y)
        weight = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        classes, positive = encode_labels(labels, weight)
        _, weight = weigh_classes(self.class_weight, classes, labels, weight)
        if len(rows) > _MANY_ROWS:
            warnings.warn(
                f"There are {len(rows)} rows; beyond about {_MANY_ROWS} a general solver takes "
                "minutes. Take a sample, or k-means centres of each class with sample_weight.",
                UserWarning,
                stacklevel=3,
            )
        return rows, classes, positive, self.C * weight


@dataclass(frozen=True)
class _Model:
    """The CVXPY problem, its parameter (the costs) and what the user may speak of."""

    problem: Any
    machine: LinearMachine
    cost: Any
    constraints: list[Any]

    @classmethod
    def build(
        cls,
        cp: Any,
        rows: Floats,
        positive: NDArray[np.bool_],
        given: Callable[[LinearMachine], Any] | None,
    ) -> _Model:
        n, p = rows.shape
        machine = LinearMachine(cp.Variable(p), cp.Variable(), rows, positive)
        slack, cost = cp.Variable(n, nonneg=True), cp.Parameter(n, nonneg=True)
        constraints = [] if given is None else _as_list(cp, given(machine))
        y = np.where(positive, 1.0, -1.0)
        margins = cp.multiply(y, machine.scores()) >= 1 - slack
        objective = cp.Minimize(0.5 * cp.sum_squares(machine.coef) + cost @ slack)
        problem = cp.Problem(objective, [margins, *constraints])
        unset = [each for each in problem.parameters() if each is not cost]
        if unset:
            raise DataError(
                f"The constraints hold {len(unset)} cvxpy.Parameter; put numbers in their place."
            )
        if problem.is_mixed_integer():
            raise DataError(
                "The constraints hold integer or boolean variables, which are not convex; for "
                "floors on rates use ConstrainedSVC."
            )
        return cls(problem, machine, cost, constraints)


def _as_list(cp: Any, given: Any) -> list[Any]:
    constraints = list(given) if isinstance(given, list | tuple) else [given]
    for number, each in enumerate(constraints):
        if not isinstance(each, cp.constraints.constraint.Constraint):
            raise DataError(
                f"Constraint {number} (counted from 0) is {each!r}, not a constraint of CVXPY; "
                "return expressions such as machine.coef >= 0."
            )
        if not each.is_dcp():
            raise DataError(
                f"Constraint {number} (counted from 0) is not convex by CVXPY's rules: {each}. "
                "A convex function may be bounded from above, a concave one from below, and an "
                "affine one by equality (cvxpy.org, disciplined convex programming)."
            )
    return constraints


def _optional(name: str) -> Any:
    """Import a package of the extra ``layers``."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{name.partition('.')[0]} is needed for this and is not to be had ({error}); install "
            'it with pip install "bootprob[layers]".'
        ) from error
