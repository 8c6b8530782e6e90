"""Tao et al.'s support vector machine on rows whose label is a probability."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from bootprob.baselines.inner_cross_validation import best_of_grid, inner_folds
from bootprob.baselines.margin_targets import linear_machines, machine_of_kernel
from bootprob.baselines.single_machine import SingleMachine, fitted_machine, kernel_of
from bootprob.baselines.soft_labels import neighbours
from bootprob.calibration.calibrated import both
from bootprob.preparation.standardization import bootstrap_scale
from bootprob.runtime.arrays import Bools, Floats
from bootprob_gpu import Kernel

__all__ = ["PosteriorProbabilitySVC"]


_MOST_COLUMNS = 300  # of the interior point, whose time goes with their square
_KKT = {"choosing": 1e-3, "final": 1e-5}  # of libsvm


class PosteriorProbabilitySVC(SingleMachine, ClassifierMixin, BaseEstimator):
    """Posterior probability support vector machine (PPSVM) for unbalanced data.

    Q. Tao, G.-W. Wu, F.-Y. Wang, J. Wang, "Posterior probability support vector machines for
    unbalanced data", IEEE Transactions on Neural Networks 16 (2005) 1561–1573. Two classes.

    1. The posterior of a training row is the share of positive rows among those within r of it,
       itself included (their empirical method); its label is ``y_i = 2 P(ω₊ | x_i) − 1``.
    2. The machine minimises ``½ ‖w‖² + C Σ ξ_i`` subject to
       ``y_i (w·φ(x_i) + b) ≥ y_i² − ξ_i``, ``ξ_i ≥ 0``: the soft PPSVM with its ρ at 1, as the
       ν-SVM becomes the SVM with C. In other words ``½ ‖w‖² + C Σ |y_i| max(0, |y_i| −
       sign(y_i) f(x_i))``: each row has its own margin and its own cost, and one with y = 0 none.
       It is solved to its optimum.
    3. A new row gets a probability by `probability`.

    Parameters
    ----------
    r : float, default 0.0
        Radius, on the standardised columns; the thesis takes 0, √10, √20 and √30. With 0 only
        equal rows are neighbours, and without any the machine is the plain SVM.
    kernel : {"linear", "rbf"}, default "linear"
        Of the machine.
    C : float or array_like, shape (n_C,), optional
        Grid of C, in scikit-learn's convention ``½ ‖w‖² + C Σ ξ``; default
        ``2**-5, 2**-4, ..., 2**5``. `PosteriorProbabilitySVC.paper` takes the thesis's grid, half
        of that.
    gamma : {"scale", "median", "grid"}, float or array_like, shape (n_gamma,), default "scale"
        γ of the RBF kernel on the standardised columns, as for `bootprob.BootstrapSVC`; several
        values are crossed with `C`.
    probability : {"neighbours", "score"}, default "neighbours"
        "neighbours": the empirical method on the new row, which counts itself with the class that
        the machine decides for: ``(n₊ + [f(x) > 0]) / (n + 1)`` with the n training rows within r,
        n₊ of them positive. "score": ``(1 + f(x)) / 2`` with f(x) clipped to [−1, 1], since f is
        fitted to 2 P − 1. Neither paper says what thesis table 3.2 holds; most of its numbers are
        nearer to "neighbours" (docs/baselines.md).
    cv : int, default 10
        Stratified folds that choose C (and γ) by the accuracy of sign f; fewer where a class has
        fewer rows. Columns are standardised, and posteriors counted, inside each training fold.
    random_state : int, RandomState instance or None, default None
        Draws the folds.

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
    posterior_ : ndarray, shape (n,)
        Share of positive rows near each training row.
    coef_ : ndarray, shape (1, p) or None
        Coefficients of the linear kernel, on ``(X - center_) / scale_``.
    dual_coef_ : ndarray, shape (1, n) or None
        Coefficients of the RBF kernel on ``k(x, X_fit_)``.
    X_fit_ : ndarray, shape (n, p)
        Training rows, ``(X - center_) / scale_``.
    y_ : ndarray of int, shape (n,)
        Training labels as 0 and 1.
    intercept_ : ndarray, shape (1,)
        b.
    center_, scale_ : ndarray, shape (p,)
        Mean and standard deviation of the training columns.

    Notes
    -----
    Where r is so large that the posteriors of all rows fall on one side of ½, w = 0 is a solution
    for every b beyond the largest margin; the smallest such b is taken, and the answer is that
    class for every row.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob.baselines import PosteriorProbabilitySVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PosteriorProbabilitySVC(r=10**0.5, C=0.1).fit(X[50:], y[50:])
    >>> model.predict_proba(X[:2])
    array([[1., 0.], [1., 0.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "r": [Interval(Real, 0, None, closed="left")],
        **SingleMachine._shared_constraints,
        "probability": [StrOptions({"neighbours", "score"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        r: float = 0.0,
        *,
        kernel: Kernel = "linear",
        C: float | ArrayLike | None = None,
        gamma: str | float | ArrayLike = "scale",
        probability: Literal["neighbours", "score"] = "neighbours",
        cv: int = 10,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.r = r
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.probability = probability
        self.cv = cv
        self.random_state = random_state

    def _learn(self, rows: Floats, positive: Bools, table: dict[str, Any]) -> dict[str, Any]:
        C, gamma = self._grids(rows)
        held_out = inner_folds(positive, self.cv, check_random_state(self.random_state))
        # A training fold and, last, all rows: what is held out of each.
        folds = np.vstack([held_out, np.zeros(len(rows), dtype=bool)])
        posterior = np.empty(folds.shape)
        scale = bootstrap_scale(rows, (~folds).astype(np.uint8), np.ones(len(rows)))
        for fold, outside in enumerate(folds):
            seen = rows / scale[fold]
            n_positive, n_all = neighbours(seen, seen[~outside], positive[~outside], self.r)
            posterior[fold] = n_positive / np.maximum(n_all, 1)  # what is held out has no say
        label = 2 * posterior - 1
        if gamma is None and rows.shape[1] <= min(len(rows), _MOST_COLUMNS):
            chosen, accuracy, machine = _linear(rows, positive, C, label, folds, scale)
        else:
            chosen, accuracy, machine = _kernel(rows, positive, C, gamma, label, folds, scale)
        return machine | {
            "C_": float(C[chosen % len(C)]),
            "cv_accuracy_": accuracy.reshape(-1, len(C)),
            "posterior_": posterior[-1],
            "X_fit_": rows,
            "y_": positive.astype(np.int64),
        }

    def _class_probabilities(self, X: ArrayLike) -> Floats:
        return both((1 + np.clip(self.decision_function(X), -1.0, 1.0)) / 2)

    def decision_function(self, X: ArrayLike) -> Floats:
        """``2 P(ω₊ | x) − 1``: f(x) with "score", from the neighbours otherwise; shape (m,).

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.baselines import PosteriorProbabilitySVC
        >>> X, y = load_iris(return_X_y=True)
        >>> model = PosteriorProbabilitySVC(C=1.0).fit(X[50:], y[50:])
        >>> p = model.predict_proba(X[50:])[:, 1]
        >>> bool(np.allclose(model.decision_function(X[50:]), 2 * p - 1))
        True
        """
        rows = self._standardized(X)
        score = self._score_rows(rows)
        if self.probability == "score":
            return score
        assert self.X_fit_ is not None
        n_positive, n_all = neighbours(rows, self.X_fit_, self.y_ == 1, self.r)
        return 2 * (n_positive + (score > 0)) / (n_all + 1) - 1


def _linear(
    rows: Floats, positive: Bools, C: Floats, label: Floats, folds: Bools, scale: Floats
) -> tuple[int, Floats, dict[str, Any]]:
    """Choose C and train, all folds × C at once; the best model, accuracies, the machine."""
    (F, n), R = folds.shape, len(C)
    size = np.abs(label)
    counted = ~folds & (size > 0)
    upper = C[:, None, None] * np.where(counted, size, 0.0)  # (R, F, n)
    coef, intercept = np.zeros((R, F, rows.shape[1])), np.zeros((R, F))
    two_sided = np.array(
        [len(np.unique(np.sign(y[c]))) == 2 for y, c in zip(label, counted, strict=True)]
    )
    if two_sided.any():
        used = np.flatnonzero(two_sided)
        tiled = [np.tile(part[used], (R, 1)) for part in (np.sign(label), size, scale**2)]
        found = linear_machines(rows, tiled[0], tiled[1], upper[:, used].reshape(-1, n), tiled[2])
        coef[:, used] = found[0].reshape(R, len(used), -1)
        intercept[:, used] = found[1].reshape(R, len(used))
    for one_sided in np.flatnonzero(~two_sided):
        intercept[:, one_sided] = _constant(label[one_sided, ~folds[one_sided]])
    scores = np.empty((R, n))
    for fold, outside in enumerate(folds):
        scores[:, outside] = coef[:, fold] @ rows[outside].T + intercept[:, fold, None]
    best, accuracy = best_of_grid(scores, positive, folds[:-1])
    return best, accuracy, fitted_machine(intercept[best, -1:], coef=coef[best, -1:])


def _kernel(
    rows: Floats,
    positive: Bools,
    C: Floats,
    gamma: Floats | None,
    label: Floats,
    folds: Bools,
    scale: Floats,
) -> tuple[int, Floats, dict[str, Any]]:
    """As `_linear`, machine by machine on kernel matrices."""
    gammas = [None] if gamma is None else [float(g) for g in gamma]
    scores = np.empty((len(gammas) * len(C), len(rows)))
    for fold, outside in enumerate(folds[:-1]):
        seen = rows / scale[fold]
        for g, value in enumerate(gammas):
            kernel = kernel_of(seen, seen[~outside], value)
            for c, cost in enumerate(C):
                dual_coef, intercept = _train(
                    kernel[~outside], label[fold, ~outside], cost, _KKT["choosing"]
                )
                scores[g * len(C) + c, outside] = kernel[outside] @ dual_coef + intercept
    best, accuracy = best_of_grid(scores, positive, folds[:-1])
    value = gammas[best // len(C)]
    dual_coef, intercept = _train(
        kernel_of(rows, rows, value), label[-1], C[best % len(C)], _KKT["final"]
    )
    if value is None:
        machine = fitted_machine(np.array([intercept]), coef=(dual_coef @ rows)[None])
    else:
        machine = fitted_machine(
            np.array([intercept]), dual_coef=dual_coef[None], rows=rows, gamma=value
        )
    return best, accuracy, machine


def _train(kernel: Floats, label: Floats, C: float, tol: float) -> tuple[Floats, float]:
    """Train one machine on a kernel matrix; dual coefficients of all rows, and intercept."""
    used = np.flatnonzero(label)
    dual_coef = np.zeros(len(label))
    if len(np.unique(np.sign(label[used]))) < 2:
        return dual_coef, _constant(label)
    size = np.abs(label[used])
    dual_coef[used], intercept = machine_of_kernel(
        kernel[np.ix_(used, used)], np.sign(label[used]), size, C * size, tol=tol
    )
    return dual_coef, intercept


def _constant(label: Floats) -> float:
    """Smallest intercept that gives rows of one side their margins; 0 where no row has a side."""
    return float(label[np.argmax(np.abs(label))])
