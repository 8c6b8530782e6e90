"""Platt's probabilities: one machine with the best C, and a sigmoid on scores it did not fit."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from bootprob.baselines.inner_cross_validation import CrossValidated, cross_validate, inner_folds
from bootprob.baselines.single_machine import SingleMachine, machine_scores, train_machine
from bootprob.calibration.logistic import fit_logistic, platt_targets
from bootprob.exceptions import DataError
from bootprob.preparation.standardization import center_and_scale
from bootprob.runtime.arrays import Bools, Floats
from bootprob_gpu import Kernel

__all__ = ["PlattSVC"]


class PlattSVC(SingleMachine, ClassifierMixin, BaseEstimator):
    """Support vector machine with the best C of a grid and Platt's sigmoid, thesis (3.2).

    ``P(y = +1 | x) = 1 / (1 + exp(−(slope · f(x) + intercept)))``, by maximum likelihood on scores
    of rows that the machine was not trained on, with the targets ``(N₊ + 1)/(N₊ + 2)`` and
    ``1/(N₋ + 2)``: J. Platt, "Probabilistic outputs for support vector machines and comparisons
    to regularized likelihood methods", 1999; the numerics after H.-T. Lin, C.-J. Lin, R. Weng,
    "A note on Platt's probabilistic outputs for support vector machines", Machine Learning 68
    (2007) 267–276. Two classes.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default "linear"
        Of the machine.
    C : float or array_like, shape (n_C,), optional
        Grid of C, in scikit-learn's convention ``½ ‖w‖² + C Σ ξ``; default
        ``2**-5, 2**-4, ..., 2**5``. `PlattSVC.paper` takes the thesis's grid, half of that.
    gamma : {"scale", "median", "grid"}, float or array_like, shape (n_gamma,), default "scale"
        γ of the RBF kernel on the standardised columns, as for `bootprob.BootstrapSVC`; several
        values are crossed with `C`.
    cv : int, default 10
        Stratified folds that choose C (and γ) by accuracy; fewer where a class has fewer rows.
    scores : {"cross-validated", "held-out"}, default "cross-validated"
        What the sigmoid is fitted to: the scores that the rows had while their fold was held out,
        the machine then being trained on all rows; or the scores of rows that are set aside,
        under the machine of the others, which is the one that is kept.
    held_out_share : float, default 0.3
        Share of the rows that ``scores="held-out"`` sets aside, stratified.
    device : str, default "auto"
        "cpu", "cuda", ...; "auto" takes CUDA where there is one.
    tol : float, optional
        Relative duality gap of every machine; defaults as for `bootprob.BootstrapSVC`.
    random_state : int, RandomState instance or None, default None
        Draws the folds, and the rows set aside.

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
    cv_accuracy_ : ndarray, shape (n_gamma, n_C)
        Mean accuracy over the folds; one row for the linear kernel. C and γ ascend.
    sigmoid_ : tuple of float
        Slope and intercept.
    sigmoid_rows_ : ndarray of int, shape (k,)
        Training rows that the sigmoid was fitted to.
    sigmoid_scores_ : ndarray, shape (k,)
        Their scores.
    coef_ : ndarray, shape (1, p) or None
        Coefficients of the linear kernel, on ``(X - center_) / scale_``.
    dual_coef_ : ndarray, shape (1, k) or None
        Coefficients of the RBF kernel on ``k(x, X_fit_)``.
    X_fit_ : ndarray, shape (k, p) or None
        Rows of the machine, ``(X - center_) / scale_``, where `dual_coef_` needs them.
    intercept_ : ndarray, shape (1,)
        b.
    center_, scale_ : ndarray, shape (p,)
        Mean and standard deviation of the training columns.

    Notes
    -----
    C is chosen on the folds whose scores the sigmoid then sees, which costs nothing and flatters
    the scores a little, as it does in scikit-learn's ``CalibratedClassifierCV`` around a machine
    that was tuned before. A slope below 0 becomes 0: scores that point the wrong way say nothing,
    and every row gets the base rate. Platt and Lin et al. keep such a slope.

    `decision_function` is the logit of the probability; `machine_score` is the machine's own.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob.baselines import PlattSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PlattSVC(C=[0.1, 1.0], random_state=0).fit(X[50:], y[50:])
    >>> model.predict_proba(X[:2]).round(1)
    array([[1., 0.],
           [1., 0.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SingleMachine._shared_constraints,
        "cv": [Interval(Integral, 2, None, closed="left")],
        "scores": [StrOptions({"cross-validated", "held-out"})],
        "held_out_share": [Interval(Real, 0, 1, closed="neither")],
        **SingleMachine._training_constraints,
    }

    def __init__(
        self,
        *,
        kernel: Kernel = "linear",
        C: float | ArrayLike | None = None,
        gamma: str | float | ArrayLike = "scale",
        cv: int = 10,
        scores: Literal["cross-validated", "held-out"] = "cross-validated",
        held_out_share: float = 0.3,
        device: str = "auto",
        tol: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.cv = cv
        self.scores = scores
        self.held_out_share = held_out_share
        self.device = device
        self.tol = tol
        self.random_state = random_state

    def _learn(self, rows: Floats, positive: Bools, table: dict[str, Any]) -> dict[str, Any]:
        random_state = check_random_state(self.random_state)
        moved = {}
        if self.scores == "held-out":
            inside, outside = self._set_aside(positive, random_state)
            center, scale = center_and_scale(rows[inside], np.ones(len(inside)))
            moved["center_"] = table["center_"] + table["scale_"] * center
            moved["scale_"] = table["scale_"] * scale
            rows = (rows - center) / scale
        else:
            inside = outside = np.arange(len(rows))
        found = self._chosen(rows[inside], positive[inside], random_state)
        machine = train_machine(
            rows[inside],
            positive[inside],
            found.C,
            found.gamma,
            device=self.device,
            tol=self.tol,
        )
        scores = (
            found.scores
            if self.scores == "cross-validated"
            else machine_scores(machine, rows[outside])
        )
        weight = np.ones(len(outside))
        targets = platt_targets(positive[outside], weight)
        (slope,), intercept = fit_logistic(scores[None], targets, weight, jeffreys=False)
        return {
            **moved,
            **machine,
            "C_": found.C,
            "cv_accuracy_": found.accuracy,
            "sigmoid_": (float(slope), intercept),
            "sigmoid_rows_": outside,
            "sigmoid_scores_": scores,
        }

    def decision_function(self, X: ArrayLike) -> Floats:
        """Logit of the probability of ``classes_[1]``, shape (m,).

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
        >>> p = model.predict_proba(X[50:])[:, 1]
        >>> bool(np.allclose(model.decision_function(X[50:]), np.log(p / (1 - p))))
        True
        """
        score = self.machine_score(X)
        slope, intercept = self.sigmoid_
        return slope * score + intercept

    def _chosen(
        self, rows: Floats, positive: Bools, random_state: np.random.RandomState
    ) -> CrossValidated:
        C, gamma = self._grids(rows)
        held_out = inner_folds(positive, self.cv, random_state)
        return cross_validate(rows, positive, C, gamma, held_out, device=self.device, tol=self.tol)

    def _set_aside(
        self, positive: Bools, random_state: np.random.RandomState
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows of the machine and rows of the sigmoid."""
        n = len(positive)
        least = min(positive.sum(), (~positive).sum())
        aside = round(self.held_out_share * n)
        if round(self.held_out_share * least) < 1 or round((1 - self.held_out_share) * least) < 2:
            raise DataError(
                f"held_out_share={self.held_out_share:g} of {least} rows of a class leaves none to "
                "the sigmoid, or fewer than two to the machine; give more rows, or use "
                "scores='cross-validated'."
            )
        splitter = StratifiedShuffleSplit(1, test_size=max(2, aside), random_state=random_state)
        inside, outside = next(splitter.split(np.zeros((n, 1)), positive))
        return np.sort(inside), np.sort(outside)
