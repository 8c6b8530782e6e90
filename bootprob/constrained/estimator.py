"""The estimator: a support vector machine that keeps given rates."""

from __future__ import annotations

import time
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from bootprob.constrained.fitted_machine import scores
from bootprob.constrained.learning import Options, learn
from bootprob.runtime.arrays import Floats
from bootprob_gpu.kernels.named import KERNELS, Kernel

__all__ = ["ConstrainedSVC"]


_POSITIVE = Interval(Real, 0, None, closed="neither")


class ConstrainedSVC(ClassifierMixin, BaseEstimator):
    """Support vector machine that finds at least a given share of a class.

    Minimises ``½ ‖w‖² + C₊ Σ₊ ξ + C₋ Σ₋ ξ`` over a training set I, subject to floors on the true
    positive rate, the true negative rate or the accuracy over a set J of anchors: thesis
    chapter 2, (CSVM0), and problem (3.7) where J = I. Two classes.

    Parameters
    ----------
    kernel : {"linear", "rbf", "laplacian", "poly", "precomputed"}, default "linear"
        As in scikit-learn and `BootstrapSVC`. With "precomputed" X is the (n, n) matrix of kernel
        values of all rows, of I and J, and that of new rows (m, n) has theirs with these: nothing
        is standardised.
    gamma : {"scale", "median"} or float, default "scale"
        γ of the RBF, Laplacian and polynomial kernels, on the standardised columns; rules as in
        `BootstrapSVC`, "median" not for polynomials.
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        What the polynomial kernel adds to ``γ ⟨x, z⟩`` before it is raised, at least 0.
    C : float, default 1.0
        Cost of slack, in scikit-learn's convention. The thesis minimises ``‖w‖² + C Σ ξ``: its C
        is twice this one (see `paper`).
    C_positive, C_negative : float, optional
        C₊ and C₋, for rows of ``classes_[1]`` and ``classes_[0]``; default `C`.
    normalize_C : bool, default False
        Divide C₊ and C₋ by the number of training rows (their weight) of the class, as the thesis
        does: ``C₊ = C / |I₊|``, ``C₋ = C / |I₋|``. Both classes then weigh the same.
    rates : dict, optional
        "tpr", "tnr" or "accuracy" to the least that the rate may be, in any combination; "tpr" is
        the share of ``classes_[1]`` that is found. A floor on one class can always be kept;
        several may exclude each other. None trains the plain SVM(C₊, C₋), on all rows.
    confidence : float, optional
        Ask for so many right anchors that a machine whose true rate is below the floor would
        show them with probability ``1 − confidence`` at most, (2.2) to (2.4). That is said of a
        machine that has not seen the anchors; this one was fitted to them (docs/constrained.md).
    bound : {"binomial", "hoeffding"}, default "binomial"
        Exact binomial, or the thesis's (2.4), which asks for more.
    anchors : {"halves", "all"} or array_like, default "halves"
        The set J: half of the rows, the other half being I; all rows, which are then also I,
        problem (3.7); or row numbers or a mask (n,), I being the other rows.
    shuffle : bool, default True
        Draw the halves at random within each class. False takes the first half of the rows as I,
        as the thesis does.
    method : {"heuristic", "exact", "slide"}, default "heuristic"
        "heuristic" needs no solver and gives a lower bound. "exact" goes on from there with a
        mixed-integer solver (extra ``mip``) until the gap or the time limit is reached. "slide" is
        the thesis's comparison, sliding β: the plain machine on I ∪ J whose intercept is moved
        until enough anchors are right. It counts anchors with ``y f(x) > 0``, the others ask for
        ``y f(x) ≥ 1``.
    solver : str, optional
        Mixed-integer solver of "exact", such as "SCIP", "HIGHS" or "GUROBI".
    big_m : float, optional
        M of (2.7) for "exact", for every anchor, whether or not a rate counts it: a machine for
        which ``y f(x) < 1 − M`` at one of them is no solution. The default is derived from the
        data and excludes no solution worth having. The thesis takes 100.
    gap : float, default 1e-4
        Relative gap at which "exact" stops; 1e-5 or more, to which solvers keep constraints.
    time_limit : float, default 300.0
        Seconds for the heuristic, and again for the solver of "exact", and for what remains to be
        done on all rows where they were condensed.
    standardize : bool, default True
        Divide the columns by their standard deviation over I ∪ J, from their mean; False leaves
        them as they are.
    max_rows : int or None, default 1000
        With more distinct rows than this, anchors are chosen on k-means centres of each class,
        weighted by the rows they stand for (2.3.4), in I and in J. The machine is then trained on
        all rows with these anchors; with an RBF or polynomial kernel it stays a sum over the
        centres. A precomputed kernel has them in its feature space. Objective, bound and rates are
        those of all rows, and `n_centres_` and the status say that there were centres. None never
        condenses, and a linear machine, or one of a precomputed kernel, without `rates`, or with
        "slide", is never condensed. Equal rows of a class are one with their weights added, which
        changes nothing but the time.
    random_state : int, RandomState instance or None, default None
        For halves that are drawn: None draws others in each call. With ``anchors="all"``, given
        anchors or ``shuffle=False`` nothing is drawn, and the same table gives the same machine.
    verbose : int, default 0
        1 reports progress on standard error.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        Class labels; ``classes_[1]`` is the positive class.
    n_features_in_ : int
        Columns seen by `fit`.
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Column names, where they are all strings.
    coef_ : ndarray, shape (1, p) or None
        Coefficients of the linear kernel, on ``(X - center_) / scale_``.
    dual_coef_ : ndarray, shape (1, k) or None
        Coefficients of other kernels on ``k(x, X_fit_)``, of a precomputed one on the n columns.
    X_fit_ : ndarray, shape (k, p) or None
        Training rows and anchors that differ, ``(X - center_) / scale_``, or their centres; None
        with a linear or precomputed kernel.
    n_centres_ : int or None
        Centres that stood for the rows of I and J while anchors were chosen; None: none did.
    intercept_ : ndarray, shape (1,)
        b.
    gamma_ : float or None
        γ of the kernel, where it has one.
    kernel_function_ : KernelFunction
        The kernel of ``(X - center_) / scale_``, with its parameters.
    center_, scale_ : ndarray, shape (p,)
        0 and 1 with a precomputed kernel. The centre is 0, too, with "poly" that is not to
        standardise; for other kernels it does not matter.
    result_ : Solution
        Objective, lower bound, gap, status and seconds of the solve, over all rows; `kept` are the
        anchors right by the solver's coordinates, in the order of `anchors_`. Status "optimal" is
        a proof, for the problem stated (with `big_m`, if given); "condensed" says that centres
        stood for the rows (``result_.gap`` is still a bound of what that cost).
    training_rows_, anchors_ : ndarray of int
        Rows of X in I and J; rows of weight 0 are in neither.
    given_up_ : ndarray of int
        Anchors (rows of X) that a rate is asked of and that are not kept: ``y f(x) < 1``; for
        "slide", ``y f(x) ≤ 0``.
    rates_ : dict of str to float
        Rates reached over the anchors, with ``y f(x) > 0``; empty without anchors.
    fit_seconds_ : float
        That `fit` took.

    Notes
    -----
    The floors are checked again on the scores that `decision_function` gives.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob.constrained import ConstrainedSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ConstrainedSVC(rates={"tpr": 0.99}, random_state=0).fit(X, y)
    >>> model.rates_["tpr"] >= 0.99
    True
    >>> model.result_.lower_bound <= model.result_.objective
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(set(KERNELS))],
        "gamma": [StrOptions({"scale", "median"}), _POSITIVE],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "C": [_POSITIVE],
        "C_positive": [None, _POSITIVE],
        "C_negative": [None, _POSITIVE],
        "normalize_C": ["boolean"],
        "rates": [None, dict],
        "confidence": [None, Interval(Real, 0, 1, closed="neither")],
        "bound": [StrOptions({"binomial", "hoeffding"})],
        "anchors": [StrOptions({"halves", "all"}), "array-like"],
        "shuffle": ["boolean"],
        "method": [StrOptions({"heuristic", "exact", "slide"})],
        "solver": [None, str],
        "big_m": [None, _POSITIVE],
        "gap": [Interval(Real, 1e-5, 1, closed="left")],
        "time_limit": [_POSITIVE],
        "standardize": ["boolean"],
        "max_rows": [None, Interval(Integral, 4, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        kernel: Kernel = "linear",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        C: float = 1.0,
        C_positive: float | None = None,
        C_negative: float | None = None,
        normalize_C: bool = False,
        rates: Mapping[str, float] | None = None,
        confidence: float | None = None,
        bound: str = "binomial",
        anchors: str | ArrayLike = "halves",
        shuffle: bool = True,
        method: Literal["heuristic", "exact", "slide"] = "heuristic",
        solver: str | None = None,
        big_m: float | None = None,
        gap: float = 1e-4,
        time_limit: float = 300.0,
        standardize: bool = True,
        max_rows: int | None = 1000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.C_positive = C_positive
        self.C_negative = C_negative
        self.normalize_C = normalize_C
        self.rates = rates
        self.confidence = confidence
        self.bound = bound
        self.anchors = anchors
        self.shuffle = shuffle
        self.method = method
        self.solver = solver
        self.big_m = big_m
        self.gap = gap
        self.time_limit = time_limit
        self.standardize = standardize
        self.max_rows = max_rows
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, C: float = 1.0, **overrides: Any) -> Self:
        """Make the thesis's own estimator (chapter 2), but for what docs/papers.md lists.

        RBF kernel, ``C₊ = C / |I₊|`` and ``C₋ = C / |I₋|`` in ``‖w‖² + Σ C ξ`` (half of that
        here), Hoeffding's bound with confidence .95, first half I and second half J,
        ``M₁ = 100``, solved exactly within 300 s. For the "slide" and plain comparisons override
        `method`, or `rates`.

        Parameters
        ----------
        C : float
            The thesis's C.
        **overrides
            Parameters to set otherwise.

        Returns
        -------
        ConstrainedSVC
            Not fitted yet.

        Examples
        --------
        >>> from bootprob.constrained import ConstrainedSVC
        >>> model = ConstrainedSVC.paper(C=1.0, rates={"tpr": 0.9})
        >>> model.C, model.normalize_C, model.rates
        (0.5, True, {'tpr': 0.9})
        """
        parameters: dict[str, Any] = {
            "kernel": "rbf",
            "C": C / 2,
            "normalize_C": True,
            "confidence": 0.95,
            "bound": "hoeffding",
            "shuffle": False,
            "method": "exact",
            "big_m": 100.0,
        }
        return cls(**{**parameters, **overrides})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the machine.

        Parameters
        ----------
        X : array_like, shape (n, p)
            Rows, of I and J; (n, n) with ``kernel="precomputed"``.
        y : array_like, shape (n,)
            Labels of two classes.
        sample_weight : array_like, shape (n,), optional
            Multiplies C row by row, and counts in the rates.

        Returns
        -------
        self

        Raises
        ------
        UnattainableRateError
            If the floors cannot be kept, or not with that confidence from so few anchors; names
            the best that can be had.
        ValueError
            For data that scikit-learn's checks refuse, a number of classes other than two, rates
            and anchors that do not fit the data (`DataError`), or a precomputed kernel that is no
            Gram matrix.
        BootprobError
            If the solution does not keep the floors when its scores are computed again.

        Warns
        -----
        UserWarning
            If rows were condensed and several floors hold over the centres only.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.constrained import ConstrainedSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:, :2], y[50:]  # two species that overlap
        >>> model = ConstrainedSVC(rates={"tpr": 0.9}, anchors="all").fit(X, y)
        >>> bool((model.predict(X) == y)[y == 2].mean() >= 0.9)
        True
        """
        started = time.perf_counter()
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        # Nothing is assigned before everything is known: a refit that fails leaves the model alone.
        options = Options(**self.get_params(deep=False))
        for name, value in learn(options, X, y, weight).items():
            setattr(self, name, value)
        self.fit_seconds_ = time.perf_counter() - started
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Scores, shape (m,): above 0 means ``classes_[1]``.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows; with a precomputed kernel their values with all rows of `fit`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.constrained import ConstrainedSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:, :2], y[50:]  # two species that overlap
        >>> model = ConstrainedSVC(rates={"tpr": 0.9}, anchors="all").fit(X, y)
        >>> bool(((model.decision_function(X) > 0) == (model.predict(X) == 2)).all())
        True
        """
        check_is_fitted(self)
        X = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        return scores(vars(self), (X - self.center_) / self.scale_)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Classes, shape (m,); a score of exactly 0 is ``classes_[0]``.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows, as for `decision_function`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.constrained import ConstrainedSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:, :2], y[50:]  # two species that overlap
        >>> model = ConstrainedSVC(rates={"tpr": 0.9}, anchors="all").fit(X, y)
        >>> model.predict(X[:3]).shape
        (3,)
        """
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fit_seconds_")
