"""The estimator: calibrated class probabilities with intervals from bootstrapped SVMs."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
)

from bootprob.calibration.coupling import Coupling
from bootprob.calibration.names import CALIBRATIONS, HOMES
from bootprob.encoding.frames import as_frame
from bootprob.ensemble.bootstrap_ensemble import BootstrapEnsemble
from bootprob.ensemble.documentation import attributes, filled, listed
from bootprob.ensemble.fitting import ready
from bootprob.ensemble.kernels import shares_of_kernels
from bootprob.ensemble.later_rows import TimedRows
from bootprob.ensemble.mean_hyperplane import mean_hyperplane
from bootprob.ensemble.scoring.rows import warn_of_unsolved
from bootprob.ensemble.specs import FitSpec
from bootprob.ensemble.state import TwoClassState, state_of
from bootprob.ensemble.training_table import (
    columns_kept,
    refuse_groups_with_time,
    told_of_columns,
    training_table,
)
from bootprob.ensemble.uncertainty.probability_intervals import (
    OF_PROBABILITIES,
)
from bootprob.ensemble.weighting import accuracy_weights
from bootprob.intervals.votes import OF_VOTES
from bootprob.metrics.rates import OF_TWO_CLASSES
from bootprob.preparation.effort import EFFORTS
from bootprob.preparation.feature_map import warn_of_coarse_map
from bootprob.preparation.grids import DEFAULT_C
from bootprob.preparation.labels import usable_weight
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import (
    on_host,
)
from bootprob.runtime.groups import checked_groups
from bootprob.runtime.instants import checked_instants
from bootprob_gpu import Kernel
from bootprob_gpu.kernels.named import KERNELS, spoken_name

if TYPE_CHECKING:
    from bootprob.encoding.preprocessing import TablePreprocessor

__all__ = ["BootstrapSVC"]


class BootstrapSVC(BootstrapEnsemble):
    """Class probabilities with intervals from support vector machines over bootstrap samples.

    Trains a support vector machine for every bootstrap sample and every value of C (and γ), all at
    once; weights the values of C by how well they do out of bag; and calibrates on the
    out-of-bag scores, so that no data are set aside and nothing is trained twice. Thesis
    chapter 3, Algorithm 2, and beyond. Of more than two classes every pair is such an ensemble, on
    the same bootstrap samples, and their probabilities are coupled: docs/several_classes.md.

    Parameters
    ----------
    kernel : {"auto", "linear", "rbf", "laplacian", "poly", "precomputed"}, default "auto"
        Kernel of the support vector machines, as in scikit-learn. "auto" lets the table choose:
        linear, RBF and Laplacian kernels of several γ on the columns, their normal scores and
        their levels are tried on a few bootstrap samples, some are trained on all of them, and
        they are weighted by out-of-bag log-loss (`kernel_weights_`): docs/adaptive.md. Beyond
        3,000 rows machines are linear ones on a feature map of the weighted sum of these kernels
        (`feature_map_`), and fewer samples of up to 10,000 rows are drawn (`n_drawn_`).
        With "precomputed" X is the (n, n) matrix of kernel values of the training rows, and that of
        new rows (m, n) has theirs with the training rows: nothing is standardised, and "corrected"
        intervals need equal numbers on the diagonal.
    effort : {"low", "normal", "high"}, default "normal"
        How much time "auto" may take. Kernels are tried on 10, 20 or 50 bootstrap samples; up to 4,
        8 or 12 of them, "high" with two values of C each, are trained on all. The model of the
        "corrected" interval is the same. Of more than 3,000 rows no more than 20, 50 or 200 samples
        are drawn, of a map of up to 2, 6 or 12 kernels with 4, 5 or 7 values of C, and the
        interval's model looks at the kernels kept. Other kernels take no notice of it.
    C : float or array_like, shape (n_C,), optional
        Grid of C, in scikit-learn's convention ``½ ‖w‖² + C Σ ξ``; default
        ``2**-5, 2**-4, ..., 2**5``, of which "auto" takes every second, and trains on all bootstrap
        samples those that suit each kernel. The thesis minimises ``‖w‖² + C Σ ξ``: its C is twice
        this one (see `paper`).
    gamma : {"scale", "median", "grid"}, float or array_like, shape (n_gamma,), default "scale"
        γ of "rbf", "laplacian" and "poly", on the standardised columns: scikit-learn's rule
        ``1 / (p · variance)`` ("laplacian": mean absolute deviation for variance), a number, or a
        grid that is crossed with `C`. Of "rbf" also the inverse median of squared distances
        ("sigest"), of "laplacian" that of L1 distances, and as "grid" that times
        ``2**-5, ..., 2**5``.
    degree : int, default 3
        Of "poly", ``(γ ⟨x, z⟩ + coef0)^degree``.
    coef0 : float, default 0.0
        Of "poly"; at least 0.
    feature_map : {"nystroem", "random-features"} or None, default None
        None trains RBF models on the kernel itself, which takes matrices of n × n and is refused
        beyond 20,000 rows, unless a `memory_limit` is given that they fit into. A feature map
        approximates the kernel by inner products of `n_components` columns, fitted once on the
        standardised rows, and trains linear models on them: scikit-learn's `Nystroem` (landmarks
        among the rows; the closer one with equally many columns) or `RBFSampler` (random
        frequencies). It takes one γ, and the rows are standardised once ("global"), not inside
        each bootstrap sample. How far the kernel is off is measured: `feature_map_error_`.
    n_components : int, default 500
        Columns of the feature map, D; training takes time in proportion to n · D².
    n_bootstraps : int, default 500
        Number of bootstrap samples, B. Of n > 1,000 rows "auto" takes B · (1,000 / n)², though no
        fewer than `effort` allows beyond 3,000 rows; `n_replicates_` says how many.
    accuracy_tolerance : float, default 0.02
        ε of the set J in thesis (3.3): values of C whose out-of-bag accuracy is within ε of the
        best take part. It acts on ``weighting="accuracy"`` only.
    weighting : {"accuracy", "log_loss"}, default "log_loss"
        Weights of the values of C: squared out-of-bag accuracy within J, thesis (3.3), or
        ``exp(−n (loss − min loss))`` with the out-of-bag log-loss of a sigmoid per C. With
        ``kernel="auto"`` and up to 3,000 rows those with which the models have the least log-loss
        together, kept near equal ones: docs/adaptive.md.
    standardize : {"bootstrap", "global"} or None, default "bootstrap"
        Standardise the columns inside each bootstrap sample (thesis 3.3.1), once over all rows,
        or not at all. Of kernels that "auto" chooses, which all replicates share, "bootstrap" is
        "global". "poly", the only kernel for which it matters, has the mean of all rows as the
        centre in every sample, with None the origin.
    class_weight : {"balanced"}, dict or None, default "balanced"
        "balanced" weighs the classes equally while the machines are trained, which keeps a rare
        class alive in the scores; calibration then puts the base rate back. A dict weighs all
        rows of a class, as `sample_weight` does: the probabilities are those of a population in
        which the classes occur that much more often.
    calibration : str or None, default "sigmoid"
        How `predict_proba` turns out-of-bag scores into probabilities; None reports the vote share,
        (3.4).

        (calibrations)
        - "auto": chosen by out-of-bag log-loss; another than the sigmoid only if it is better by
          more than chance (see `calibration_`).
    interval : str, default "corrected"
        Default method of `proba_interval`, which lists them.
    coupling : {"wu-lin-weng", "hastie-tibshirani"}, default "wu-lin-weng"
        How the probabilities of all pairs of several classes become those of the classes
        (`bootprob.calibration.coupling`).
    control : {"threshold", "constrained"} or None, default None
        Make rates hold (thesis 3.2.2): "threshold" (Ctrl1) moves the scores above which a row
        counts as positive, for the votes of each C and for the mean score, until the rates hold
        on out-of-bag scores; "constrained" (Ctrl2) trains every machine under the constraint
        that they hold in its bootstrap sample, with margin 1, thesis (3.7). `predict` and votes
        follow, calibrated probabilities and their intervals stay: docs/control.md. Of several
        classes "threshold" alone.
    rates : dict, optional
        The least that "tpr" (the true positive rate, of ``classes_[1]``), "tnr", "ppv" (precision:
        of the rows decided so, the share that is ``classes_[1]``) and "npv" may be, such as
        ``{"tpr": 0.95}``; for `control`. With "decided" beside them rows may be left undecided
        (`undecided`), but at least this share is decided. By "constrained" the first two alone. Of
        several classes the
        least share of the rows of a class that `predict` gives it, such as ``{"setosa": 0.9}``, of
        one class or of several.
    confidence : float, optional
        Of each rate, out of sample with ``control="threshold"``: a larger share of the rows at
        hand has to be right. None asks for the share itself.
    bound : {"binomial", "hoeffding"}, default "binomial"
        Where `confidence` gets that share from: exact binomial, or Hoeffding's inequality as in
        thesis (2.4), which asks for more.
    control_method : {"heuristic", "exact"}, default "heuristic"
        For ``control="constrained"``: rounds of the batched engine, for all machines at once; or
        mixed-integer optimisation of each machine from there, through CVXPY (the extra `mip`),
        for a few small machines.
    time_limit : float, default 300.0
        Seconds for each machine that is solved exactly.
    device : str, default "auto"
        "cpu", "cuda", "cuda:1", ...; "auto" takes CUDA where there is one.
    dtype : {"float64", "float32"}, default "float64"
        Precision of RBF Gram matrices and of scoring. Solvers work in float64 either way.
    tol : float, optional
        Relative duality gap of every model; default 1e-7 for the linear kernel, 1e-4 for what
        "auto" chooses and in float32, 1e-6 for others.
    random_state : int, RandomState instance or None, default None
        Seed of the bootstrap samples.
    memory_limit : int, optional
        Bytes that training and scoring may use at a time; default half of what is free.
    n_jobs : int, optional
        Workers that train shards of the replicates at the same time, through joblib: processes of
        this machine, a thread for each of its GPUs, or whatever
        ``joblib.parallel_config(backend=...)`` says, such as a Dask cluster. None takes the number
        from there, and is 1 without; −1 takes all. The model is the same to the last bit. One job
        uses all cores already: docs/scaling.md.
    checkpoint : str, optional
        A folder to keep finished shards in. A fit that was stopped and is started again with the
        same data and parameters trains only what is missing. The folder stays; delete it when the
        model is saved.
    verbose : int, default 0
        1 shows a progress bar on standard error, and one before of the kernels that "auto" tries.

    Attributes
    ----------
    (fitted state)
    coef_ : ndarray, shape (1, p)
        What a unit of each column adds to the mean score, for columns as they are given:
        ``X @ coef_.T + intercept_`` is `decision_function`. Of two classes and linear kernels;
        there is no such attribute otherwise. Columns of different units are compared by
        ``coef_ * scale_``.
    intercept_ : ndarray, shape (1,)
        The mean score of a row of zeros; where there is `coef_`.
    kernel_weights_ : dict of str to float
        Weight of each kind of kernel over all γ and C, the heaviest first.
    in_J_ : ndarray of bool, shape (R,)
        Whether the model belongs to the set J of (3.3).
    decision_threshold_ : float
        Probability of ``classes_[1]`` above which `predict` says it: one half, unless control has
        moved it. Two classes only.

    Notes
    -----
    `predict` follows `predict_proba`, at `decision_threshold_`. With sigmoid calibration
    `decision_function` is moved so that 0 is where it decides, and agrees; the raw scores of
    `bootstrap_scores`, and the votes without control, keep the machines' own 0, which with balanced
    class weights is where both classes cost the same.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = X[:, :3]
    >>> model = BootstrapSVC(n_bootstraps=20, random_state=0).fit(X[-100:], y[-100:])
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    >>> lower, upper = model.proba_interval(X[:1])[0, 1]
    >>> bool(lower < model.predict_proba(X[:1])[0, 1] < upper)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({*KERNELS, "auto"})],
        "effort": [StrOptions(set(EFFORTS))],
        "C": [None, Interval(Real, 0, None, closed="neither"), "array-like"],
        "gamma": [
            StrOptions({"scale", "median", "grid"}),
            Interval(Real, 0, None, closed="neither"),
            "array-like",
        ],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "feature_map": [StrOptions({"nystroem", "random-features"}), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_bootstraps": [Interval(Integral, 2, None, closed="left")],
        "accuracy_tolerance": [Interval(Real, 0, 1, closed="both")],
        "weighting": [StrOptions({"accuracy", "log_loss"})],
        "standardize": [StrOptions({"bootstrap", "global"}), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "calibration": [StrOptions(set(CALIBRATIONS)), None],
        "interval": [StrOptions({*OF_PROBABILITIES, *OF_VOTES})],
        "coupling": [StrOptions(set(get_args(Coupling)))],
        "control": [StrOptions({"threshold", "constrained"}), None],
        "rates": [dict, None],
        "confidence": [None, Interval(Real, 0, 1, closed="neither")],
        "bound": [StrOptions({"binomial", "hoeffding"})],
        "control_method": [StrOptions({"heuristic", "exact"})],
        "time_limit": [Interval(Real, 0, None, closed="neither")],
        "device": [str],
        "dtype": [StrOptions({"float64", "float32"})],
        "tol": [None, Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
        "memory_limit": [None, Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "checkpoint": [str, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        kernel: Kernel | Literal["auto"] = "auto",
        effort: Literal["low", "normal", "high"] = "normal",
        C: float | ArrayLike | None = None,
        gamma: str | float | ArrayLike = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        feature_map: Literal["nystroem", "random-features"] | None = None,
        n_components: int = 500,
        n_bootstraps: int = 500,
        accuracy_tolerance: float = 0.02,
        weighting: str = "log_loss",
        standardize: str | None = "bootstrap",
        class_weight: str | dict[Any, float] | None = "balanced",
        calibration: str | None = "sigmoid",
        interval: str = "corrected",
        coupling: Coupling = "wu-lin-weng",
        control: Literal["threshold", "constrained"] | None = None,
        rates: dict[str, float] | None = None,
        confidence: float | None = None,
        bound: str = "binomial",
        control_method: str = "heuristic",
        time_limit: float = 300.0,
        device: str = "auto",
        dtype: str = "float64",
        tol: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        checkpoint: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.effort = effort
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.feature_map = feature_map
        self.n_components = n_components
        self.n_bootstraps = n_bootstraps
        self.accuracy_tolerance = accuracy_tolerance
        self.weighting = weighting
        self.standardize = standardize
        self.class_weight = class_weight
        self.calibration = calibration
        self.interval = interval
        self.coupling = coupling
        self.control = control
        self.rates = rates
        self.confidence = confidence
        self.bound = bound
        self.control_method = control_method
        self.time_limit = time_limit
        self.device = device
        self.dtype = dtype
        self.tol = tol
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.verbose = verbose

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """Make the thesis's own estimator (chapter 3, Algorithm 2), to the letter.

        B = 500, linear kernels, no class weights, accuracy weights (3.3), no calibration, the Wald
        interval (3.5) and the grid C = 2⁻⁵ … 2⁵ of ``‖w‖² + C Σ ξ``, which is 2⁻⁶ … 2⁴ in the
        convention used here. The thesis does not print its ε; 0.02 is used.

        Parameters
        ----------
        **overrides
            Parameters to set otherwise.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> paper = BootstrapSVC.paper(n_bootstraps=20, random_state=0).fit(X[50:], y[50:])
        >>> paper.predict_proba(X[50:52]).tolist()  # shares of votes
        [[1.0, 0.0], [1.0, 0.0]]
        """
        parameters: dict[str, Any] = {
            "kernel": "linear",
            "C": tuple(C / 2 for C in DEFAULT_C),
            "class_weight": None,
            "weighting": "accuracy",
            "calibration": None,
            "interval": "wald",
        }
        return cls(**{**parameters, **overrides})

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Self:
        """Train the ensemble, weight its models and calibrate it.

        Parameters
        ----------
        X : array_like, sparse matrix or data frame, shape (n, p)
            Training rows. Those of a tensor on a device are copied to the host once: samples are
            drawn and columns standardised there, whatever trains the machines. Sparse matrices
            become dense ones. A data frame (pandas, polars, pyarrow, …) may have categories, text,
            yes/no answers and gaps: `preprocessor_` makes them numbers, as on the command line, and
            later calls take data frames of the same columns.
        y : array_like, shape (n,)
            Labels of two or more classes.
        sample_weight : array_like, shape (n,), optional
            Weights that multiply C row by row, ≥ 0, and 0 where below 1e-100; with
            ``kernel="auto"`` divided by their mean, and none above 0 more than 10¹⁴ times another.
            In accuracies, calibration and intervals they have no unit: rows tell as much as so many
            of equal weight, ``(Σ w)² / Σ w²``.
        groups : array_like, shape (n,), optional
            Which rows belong together, such as those of one patient: numbers or names. Whole groups
            are drawn and left out, and what rows of a group have in common counts once
            (docs/groups.md).
        time : array_like, shape (n,), optional
            When each row is from: numbers, dates or ISO text, in any order of rows. Blocks of
            neighbours in time are then drawn and left out like groups, and a second ensemble with
            the same parameters, trained on the rows before the last tenth, says how such a model
            does on later rows (`later_rows_`, docs/time.md). That takes about as long again. Not
            with `groups`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For data that scikit-learn's checks refuse, a single class, so many classes with so few
            rows that hardly a bootstrap sample holds them all, machines of several classes under
            constraints, unusable weights, more rows than the RBF kernel is trained on without a
            feature map, or a feature map that does not fit the kernel, `gamma` or the rows
            (`DataError`).
            For `groups` or `time` that are missing somewhere, or the same for all rows, for a
            `time` that is none, and for both of them (`DataError`).
            For a `checkpoint` that is of another fit, or no folder to write to (`DataError`).
            For rates that cannot be kept (`UnattainableRateError`): before training where there
            are too few rows for the confidence, after it where rates contradict each other.

        Warns
        -----
        ConvergenceWarning
            If a model was not solved to `tol`; says how many, and how far they got.
        CopiedRowsWarning
            If many rows are equal to others, their class included, and the columns would make few
            equal by chance: such copies break what intervals, rates and out-of-bag numbers promise.
        DoubtfulTableWarning
            If the table has what is often a mistake, such as a column that alone gives the target,
            columns that repeat others, or more columns than rows (`remarks_`).
        LaterRowsWarning
            If the last tenth is worse, by the model of the rows before, than but one in a thousand
            draws of as many earlier rows out of bag.
        GridEdgeWarning
            If more than half of the weight lies at an end of the grid of C or γ.
        ConstantColumnWarning
            If columns differ by so little (1e-100) that they are taken for constant.
        UserWarning
            If "auto" trains linear machines because there are too many rows; if the feature map's
            kernel is off by a tenth or more; if a worker was lost or a file
            of the checkpoint is damaged, and shards are trained again.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> model.classes_, model.n_replicates_
        (array([1, 2]), 20)
        """
        with columns_kept(self):
            return self._fit(X, y, sample_weight, groups, time, None)

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        time: ArrayLike | None,
        preprocessor: TablePreprocessor | None,
        called: Sequence[Any] | None = None,
    ) -> Self:
        """The same, with a preprocessor that is to be fitted even to plain numbers.

        Errors call the classes, sorted, as `called` says.
        """
        started = perf_counter()
        X, y, sample_weight = on_host(X), on_host(y), on_host(sample_weight)
        refuse_groups_with_time(groups, time)
        given = X
        X, y, preprocessor = training_table(self, X, y, preprocessor)
        weight = usable_weight(
            _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        )
        # Nothing is assigned before everything is known: a refit that fails, or is interrupted,
        # leaves the model as it was.
        spec = FitSpec.of(self.get_params(deep=False))
        names, columns, dates = told_of_columns(self, preprocessor)
        rows = checked_groups(groups, len(X))
        instants = None if time is None else checked_instants(on_host(time), len(X))
        ranks = None if instants is None else instants.ranks
        found = ready(spec, X, y, weight, rows, names, columns, ranks, dates, called)
        learnt, of_pairs = found.learn()
        learnt["preprocessor_"], learnt["later_rows_"] = preprocessor, None
        if instants is not None:
            timed = TimedRows(
                X if preprocessor is None else as_frame(given),
                y,
                weight,
                learnt["y_"],
                learnt["sample_weight_"],
                instants,
                learnt["groups_"],
                called,
            )
            self._measure_later(learnt, timed, preprocessor and clone(preprocessor))
        self._take(learnt, of_pairs, perf_counter() - started)
        warn_of_unsolved(self._certificates(), stacklevel=4)
        if self.feature_map is not None:
            warn_of_coarse_map(self.feature_map_error_, self.n_components)
        return self

    @property
    def kernel_weights_(self) -> dict[str, float]:
        """Weight of each kind of kernel over all γ and C, the heaviest first.

        Such as ``{"RBF on normal scores": 0.62, "posterior": 0.3, "linear on columns": 0.08}``
        with ``kernel="auto"``, where the interval's own model has a share, or ``{"RBF": 1.0}``. Of
        several classes the mean over the pairs.
        """
        kernel, pairs = state_of(self).kernel, self.pair_ensembles_ or [self]
        of_pairs = [shares_of_kernels(kernel, p.weights_, p.posterior_share_ or 0.0) for p in pairs]
        names = {name: None for each in of_pairs for name in each}
        mean = {name: float(np.mean([each.get(name, 0.0) for each in of_pairs])) for name in names}
        return dict(sorted(mean.items(), key=lambda each: -each[1]))

    @property
    def coef_(self) -> Floats:
        """What a unit of each column adds to `decision_function`, shape (1, p); linear only.

        ``decision_function(X) = (X @ coef_.T + intercept_)[:, 0]``, for columns as they are given.

        Raises
        ------
        AttributeError
            With another kernel than the linear one, a feature map or several classes.
        """
        return self._hyperplane("coef_")[0][None]

    @property
    def intercept_(self) -> Floats:
        """What `decision_function` is for a row of zeros, shape (1,); errors as for `coef_`."""
        return np.array([self._hyperplane("intercept_")[1]])

    @property
    def in_J_(self) -> NDArray[np.bool_]:  # noqa: N802
        """Which models belong to the set J of thesis (3.3), whatever the weighting; shape (R,)."""
        check_is_fitted(self)
        return accuracy_weights(np.nanmean(self.accuracy_, axis=0), self.accuracy_tolerance) > 0

    def _hyperplane(self, attribute: str) -> tuple[Floats, float]:
        # hasattr is how others tell that there is none; NotFittedError is an AttributeError too.
        state = state_of(self)
        if not isinstance(state, TwoClassState):
            raise AttributeError(
                f"The model has {len(self.classes_)} classes, whose probabilities are coupled, and "
                f"no {attribute}; those of pair_ensembles_ have one each."
            )
        if not state.kernel.is_linear:
            raise AttributeError(
                f"Scores of the {spoken_name(state.kernel.name)} kernel are not linear in the "
                f"columns, so there is no {attribute}; permutation_importance needs none, and "
                "kernel='linear' has it."
            )
        return mean_hyperplane(state)

    def _certificates(self) -> dict[str, NDArray[Any]]:
        """Those of all machines, of several classes one pair's after the other's."""
        if not self.pair_ensembles_:
            return self.certificates_
        of_pairs = [pair.certificates_ for pair in self.pair_ensembles_]
        return {name: np.concatenate([each[name] for each in of_pairs]) for name in of_pairs[0]}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        of_classes = self.control == "threshold" and not {*OF_TWO_CLASSES} & {*(self.rates or ())}
        tags.classifier_tags.multi_class = self.control is None or of_classes
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = True
        return tags


if BootstrapSVC.__doc__ is not None:  # python -OO has none
    BootstrapSVC.__doc__ = filled(BootstrapSVC.__doc__, "(fitted state)", attributes())
    BootstrapSVC.__doc__ = filled(BootstrapSVC.__doc__, "(calibrations)", listed(HOMES))
