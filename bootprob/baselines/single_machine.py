"""One support vector machine: training, scores, and what the estimators of this package share."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from bootprob.baselines.inner_cross_validation import PAPER_C
from bootprob.calibration.calibrated import both
from bootprob.ensemble.scoring.rows import warn_of_unsolved
from bootprob.exceptions import DataError
from bootprob.preparation.grids import c_grid, gamma_grid
from bootprob.preparation.labels import encode_labels
from bootprob.preparation.standardization import center_and_scale
from bootprob.runtime.arrays import Bools, Floats
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import Problem, fit, resolve_device

__all__ = [
    "POSITIVE",
    "SingleMachine",
    "ascending",
    "fitted_machine",
    "kernel_of",
    "machine_scores",
    "train_machine",
]


POSITIVE = Interval(Real, 0, None, closed="neither")


def kernel_of(rows: Floats, others: Floats, gamma: float | None) -> Floats:
    """Kernel between two sets of rows, shape (m, n): ``x·z``, or ``exp(−γ ‖x − z‖²)``."""
    if gamma is None:
        return rows @ others.T
    return np.exp(-gamma * cdist(rows, others, "sqeuclidean"))


def train_machine(
    rows: Floats,
    positive: Bools,
    C: float,
    gamma: float | None,
    *,
    device: str,
    tol: float | None,
) -> dict[str, Any]:
    """Train one machine on standardised rows (n, p); γ is None for the linear kernel.

    Returns "coef_", "dual_coef_", "X_fit_", "intercept_" and "gamma_", as `SingleMachine` has
    them.
    """
    label = np.where(positive, 1.0, -1.0)
    counts = np.ones((1, len(rows)), dtype=np.uint8)
    kernel = "linear" if gamma is None else "rbf"
    problem = Problem(rows, label, counts, [C], kernel=kernel, gamma=gamma)  # type: ignore[arg-type]
    models = fit(problem, tol=tol, device=resolve_device(device))
    warn_of_unsolved({name: getattr(models, name).cpu().numpy() for name in ("status", "gap")})
    intercept = models.intercept[0].cpu().numpy()
    if gamma is None:
        if models.coef is not None:
            coef = models.coef[0].cpu().numpy()
        else:
            assert models.dual_coef is not None
            coef = models.dual_coef[0].cpu().numpy() @ rows
        return fitted_machine(intercept, coef=coef)
    assert models.dual_coef is not None
    return fitted_machine(
        intercept, dual_coef=models.dual_coef[0].cpu().numpy(), rows=rows, gamma=gamma
    )


def fitted_machine(
    intercept: Floats,
    *,
    coef: Floats | None = None,
    dual_coef: Floats | None = None,
    rows: Floats | None = None,
    gamma: float | None = None,
) -> dict[str, Any]:
    """Attributes of a machine under the names that `SingleMachine` knows them by."""
    return {
        "coef_": coef,
        "dual_coef_": dual_coef,
        "X_fit_": rows,
        "intercept_": intercept,
        "gamma_": gamma,
    }


def machine_scores(machine: Mapping[str, Any], rows: Floats) -> Floats:
    """Scores of standardised rows by what `train_machine` returned, shape (m,)."""
    (intercept,) = machine["intercept_"]
    if machine["coef_"] is not None:
        return rows @ machine["coef_"][0] + intercept
    known, [dual_coef] = machine["X_fit_"], machine["dual_coef_"]
    found = np.empty(len(rows))
    for block in row_blocks(len(rows), len(known)):
        found[block] = kernel_of(rows[block], known, machine["gamma_"]) @ dual_coef + intercept
    return found


def ascending(name: str, grid: ArrayLike) -> Floats:
    """Check a grid of positive numbers and sort it, each once; `name` is for the error."""
    values = np.unique(np.asarray(grid, dtype=np.float64))
    if not (len(values) and (values > 0).all() and np.isfinite(values).all()):
        raise DataError(
            f"{name} is {values.tolist()}; give one positive number, or several in one list."
        )
    return values


class SingleMachine:
    """Scores of one machine on standardised columns, and classes from probabilities."""

    C: Any
    center_: Floats
    classes_: NDArray[Any]
    coef_: Floats | None
    dual_coef_: Floats | None
    gamma: Any
    gamma_: float | None
    intercept_: Floats
    kernel: str
    scale_: Floats
    X_fit_: Floats | None

    _paper: ClassVar[dict[str, Any]] = {}
    _shared_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"linear", "rbf"})],
        "C": [None, POSITIVE, "array-like"],
        "gamma": [StrOptions({"scale", "median", "grid"}), POSITIVE, "array-like"],
        "random_state": ["random_state"],
    }
    _training_constraints: ClassVar[dict[str, list[Any]]] = {
        "device": [str],
        "tol": [None, Interval(Real, 0, 1, closed="neither")],
    }

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """Make the estimator with the grid of the thesis.

        The thesis minimises ``‖w‖² + C Σ ξ`` over C = 2⁻⁵ … 2⁵, which is 2⁻⁶ … 2⁴ in the
        convention used here (`PAPER_C`).

        Parameters
        ----------
        **overrides
            Parameters to set otherwise.

        Examples
        --------
        >>> from bootprob.baselines import PlattSVC
        >>> PlattSVC.paper(kernel="linear").C[:3]  # half of the thesis's 2⁻⁵, 2⁻⁴, 2⁻³
        (0.015625, 0.03125, 0.0625)
        """
        return cls(**{"C": PAPER_C, **cls._paper, **overrides})

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose what the parameters leave open, and train.

        Parameters
        ----------
        X : array_like, shape (n, p)
            Training rows.
        y : array_like, shape (n,)
            Labels of two classes.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For data that scikit-learn's checks refuse, a number of classes other than two, a grid
            that is not positive, or too few rows of a class for cross-validation or for the rows
            set aside (`DataError`).

        Warns
        -----
        ConvergenceWarning
            If a machine was not solved to its tolerance.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.baselines import PlattSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> model = PlattSVC().fit(X[50:], y[50:])
        >>> model.classes_
        array([1, 2])
        """
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
        weight = np.ones(len(X))
        classes, positive = encode_labels(y, weight)
        center, scale = center_and_scale(X, weight)
        table = {"classes_": classes, "center_": center, "scale_": scale}
        # Nothing is assigned before everything is known: a refit that fails leaves it alone.
        found = self._learn((X - center) / scale, positive, table)
        for name, value in (table | found).items():
            setattr(self, name, value)
        return self

    def _learn(self, rows: Floats, positive: Bools, table: dict[str, Any]) -> dict[str, Any]:
        """Fitted attributes of standardised rows; `table` has "center_" and "scale_" of theirs."""
        raise NotImplementedError

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Class probabilities, shape (m, 2), in the order of `classes_`.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.baselines import PlattSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> model = PlattSVC().fit(X[50:], y[50:])
        >>> model.predict_proba(X[50:53]).shape
        (3, 2)
        """
        return self._class_probabilities(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Classes of the higher probability, shape (m,); ties go to ``classes_[0]``.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.baselines import PlattSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> model = PlattSVC().fit(X[50:], y[50:])
        >>> model.predict(X[50:53]).shape
        (3,)
        """
        probability = self.predict_proba(X)
        return self.classes_[(probability[:, 1] > 0.5).astype(int)]

    def machine_score(self, X: ArrayLike) -> Floats:
        """Score ``f(x) = w·φ(x) + b`` of the machine itself, shape (m,).

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.baselines import PlattSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> model = PlattSVC(C=1.0, random_state=0).fit(X[50:], y[50:])
        >>> slope, intercept = model.sigmoid_
        >>> logit = slope * model.machine_score(X[50:]) + intercept
        >>> bool(np.allclose(logit, model.decision_function(X[50:])))
        True
        """
        return self._score_rows(self._standardized(X))

    def _class_probabilities(self, X: ArrayLike) -> Floats:
        """What `predict_proba` says; here scores are logits."""
        logit: Floats = self.decision_function(X)  # type: ignore[attr-defined]
        return both(expit(logit))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.classifier_tags.multi_class = False
        return tags

    def _grids(self, rows: Floats) -> tuple[Floats, Floats | None]:
        """Grids of C and γ, ascending; None in place of γ for the linear kernel."""
        C = ascending("C", c_grid(self.C))
        if self.kernel == "linear":
            return C, None
        return C, ascending("gamma", gamma_grid(self.gamma, rows))

    def _standardized(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        X = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        return (X - self.center_) / self.scale_

    def _score_rows(self, rows: Floats) -> Floats:
        """Scores of standardised rows, shape (m,)."""
        return machine_scores(vars(self), rows)
