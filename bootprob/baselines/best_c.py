"""The best C alone, which the thesis compares its ensemble over C with."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from bootprob.baselines.inner_cross_validation import cross_validate, inner_folds
from bootprob.baselines.single_machine import SingleMachine, train_machine
from bootprob.calibration.calibrated import both
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.preparation.labels import refuse_single_rows
from bootprob.runtime.arrays import Bools, Floats
from bootprob_gpu import Kernel

__all__ = ["BestCSVC"]


class BestCSVC(SingleMachine, ClassifierMixin, BaseEstimator):
    """Support vector machines with "only the value of C that provides the best accuracy measure".

    The column "Best C" of thesis table 3.3 (table 4 of its paper). The text does not say what is
    the probability there, the numbers do: thirteen of the fifteen are whole numbers of rows of
    one validation sample (german 24/100, housing 6/51, australian 15/69, heart 14/72, SRBCT 1/8),
    as the squared error is where probabilities are 0 and 1. So ``probability="decision"``, the
    default, is the class that the one machine with the best C decides for. ``"votes"`` is
    Algorithm 2 with the best C in place of the set J: the share of the bootstrap samples whose
    machine votes for the class. Two classes.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default "linear"
        Of the machine.
    C : float or array_like, shape (n_C,), optional
        Grid of C, in scikit-learn's convention ``½ ‖w‖² + C Σ ξ``; default
        ``2**-5, 2**-4, ..., 2**5``. `BestCSVC.paper` takes the thesis's grid, half of that.
    gamma : {"scale", "median", "grid"}, float or array_like, shape (n_gamma,), default "scale"
        γ of the RBF kernel on the standardised columns, as for `bootprob.BootstrapSVC`; several
        values are crossed with `C`.
    probability : {"decision", "votes"}, default "decision"
        0 and 1 by the sign of the score, with C from inner cross-validation (3.3.1: ten internal
        folds "in order to obtain the best parameter C"); or vote shares (3.4), with the C of best
        mean out-of-bag accuracy. Values of C that tie there share the weight.
    cv : int, default 10
        Stratified folds for "decision"; fewer where a class has fewer rows.
    n_bootstraps : int, default 500
        Bootstrap samples for "votes".
    device : str, default "auto"
        "cpu", "cuda", ...; "auto" takes CUDA where there is one.
    tol : float, optional
        Relative duality gap of every machine; defaults as for `bootprob.BootstrapSVC`.
    random_state : int, RandomState instance or None, default None
        Draws the folds or the bootstrap samples.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        Class labels; ``classes_[1]`` is the positive class.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    C_ : float
        Best value of C; of equally good ones the smallest.
    gamma_ : float or None
        Best γ of the RBF kernel.
    cv_accuracy_ : ndarray, shape (n_gamma, n_C), or None
        Mean accuracy over the folds, with "decision". C and γ ascend.
    ensemble_ : BootstrapSVC or None
        The bootstrapped machines, with "votes".
    coef_ : ndarray, shape (1, p) or None
        Coefficients of the linear kernel, on ``(X - center_) / scale_``, with "decision".
    dual_coef_ : ndarray, shape (1, n) or None
        Coefficients of the RBF kernel on ``k(x, X_fit_)``, with "decision".
    X_fit_ : ndarray, shape (n, p) or None
        Training rows, ``(X - center_) / scale_``, where `dual_coef_` needs them.
    intercept_ : ndarray, shape (1,), or None
        With "decision".
    center_, scale_ : ndarray, shape (p,)
        Mean and standard deviation of the training columns.

    Notes
    -----
    Probabilities of 0 and 1 have an infinite log-loss; their mean squared error is the share of
    wrong decisions.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob.baselines import BestCSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BestCSVC(C=[0.1, 1.0], random_state=0).fit(X[50:], y[50:])
    >>> model.predict_proba(X[:2])
    array([[1., 0.], [1., 0.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SingleMachine._shared_constraints,
        "probability": [StrOptions({"decision", "votes"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "n_bootstraps": [Interval(Integral, 2, None, closed="left")],
        **SingleMachine._training_constraints,
    }

    def __init__(
        self,
        *,
        kernel: Kernel = "linear",
        C: float | ArrayLike | None = None,
        gamma: str | float | ArrayLike = "scale",
        probability: Literal["decision", "votes"] = "decision",
        cv: int = 10,
        n_bootstraps: int = 500,
        device: str = "auto",
        tol: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.probability = probability
        self.cv = cv
        self.n_bootstraps = n_bootstraps
        self.device = device
        self.tol = tol
        self.random_state = random_state

    def _learn(self, rows: Floats, positive: Bools, table: dict[str, Any]) -> dict[str, Any]:
        random_state = check_random_state(self.random_state)
        C, gamma = self._grids(rows)
        if self.probability == "decision":
            held_out = inner_folds(positive, self.cv, random_state)
            found = cross_validate(
                rows, positive, C, gamma, held_out, device=self.device, tol=self.tol
            )
            machine = train_machine(
                rows, positive, found.C, found.gamma, device=self.device, tol=self.tol
            )
            return machine | {"C_": found.C, "cv_accuracy_": found.accuracy, "ensemble_": None}
        refuse_single_rows(positive.astype(np.intp), np.ones(len(rows)), table["classes_"].tolist())
        ensemble = BootstrapSVC.paper(
            kernel=self.kernel,
            C=C,
            gamma="scale" if gamma is None else gamma,
            accuracy_tolerance=0.0,
            n_bootstraps=self.n_bootstraps,
            device=self.device,
            tol=self.tol,
            random_state=random_state,
        ).fit(rows, positive)
        best = np.argmax(ensemble.weights_ > 0)
        return {
            "C_": float(ensemble.C_[best]),
            "gamma_": None if ensemble.gamma_ is None else float(ensemble.gamma_[best]),
            "cv_accuracy_": None,
            "ensemble_": ensemble,
            **dict.fromkeys(("coef_", "dual_coef_", "X_fit_", "intercept_")),
        }

    def _class_probabilities(self, X: ArrayLike) -> Floats:
        rows = self._standardized(X)
        if self.ensemble_ is not None:
            return self.ensemble_.vote_proba(rows)
        return both((self._score_rows(rows) > 0).astype(np.float64))

    def decision_function(self, X: ArrayLike) -> Floats:
        """Score of the machine, or the vote share of ``classes_[1]`` less one half; shape (m,).

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.baselines import BestCSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BestCSVC(C=[0.1, 1.0], random_state=0).fit(X[50:], y[50:])
        >>> scores = model.decision_function(X[50:])
        >>> bool(((scores > 0) == (model.predict_proba(X[50:])[:, 1] == 1)).all())
        True
        """
        check_is_fitted(self)
        if self.ensemble_ is None:
            return self.machine_score(X)
        return self.predict_proba(X)[:, 1] - 0.5

    def _score_rows(self, rows: Floats) -> Floats:
        if self.ensemble_ is not None:
            return self.ensemble_.decision_function(rows)
        return super()._score_rows(rows)
