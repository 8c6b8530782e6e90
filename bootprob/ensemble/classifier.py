"""The estimator around any classifier: calibrated class probabilities with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from time import perf_counter
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

from bootprob.calibration.coupling import Coupling
from bootprob.calibration.names import CALIBRATIONS, HOMES
from bootprob.ensemble.bases.training import ClassifierSpec
from bootprob.ensemble.bootstrap_ensemble import BootstrapEnsemble
from bootprob.ensemble.classifier_fitting import learn_classifiers
from bootprob.ensemble.documentation import attributes, filled, listed
from bootprob.ensemble.fitted import as_whole
from bootprob.ensemble.later_rows import TimedRows
from bootprob.ensemble.scoring.table_rows import training_rows
from bootprob.ensemble.specs import CalibrationSpec, ControlSpec
from bootprob.ensemble.training_table import (
    columns_kept,
    refuse_groups_with_time,
    told_of_columns,
)
from bootprob.ensemble.uncertainty.probability_intervals import OF_PROBABILITIES
from bootprob.intervals.votes import OF_VOTES
from bootprob.metrics.rates import OF_TWO_CLASSES
from bootprob.preparation.labels import usable_weight
from bootprob.runtime.device_rows import on_host
from bootprob.runtime.groups import checked_groups
from bootprob.runtime.instants import checked_instants

__all__ = ["BootstrapClassifier"]


class BootstrapClassifier(BootstrapEnsemble):
    """Calibrated class probabilities with intervals around any classifier of scikit-learn's kind.

    Fits the classifier to bootstrap samples; weights a grid of its parameters by out-of-bag
    log-loss; and calibrates on the out-of-bag scores, so that no data are set aside. Beside it
    stands the model of the interval that `BootstrapSVC` has (docs/adaptive.md), a posterior over
    straight and curved logits of the columns: it has a share in the probability, as large as its
    out-of-bag log-loss earns, and says what is not known, because resampling does not show a
    classifier's bias. Measured: docs/any_classifier.md. All methods are those of `BootstrapSVC`.

    Parameters
    ----------
    estimator : classifier or list of classifier
        With `fit` and `predict_proba` or `decision_function`: of scikit-learn, LightGBM, CatBoost,
        XGBoost, a Pipeline, … It is given X and y as they are given to `fit`. Several are fitted to
        the same bootstrap samples, brought to one scale by a sigmoid each, and weighted like a
        grid; a `BootstrapSVC` among them trains its machines on these samples too. Of a random
        forest of scikit-learn, without a grid or groups, the trees are the replicates, as they are
        of bootstrap samples: it is fitted once, and has as many as it says. One that is fitted
        already comes as ``sklearn.frozen.FrozenEstimator(fitted)``: `fit` is then given rows that
        it has not seen, calibrates it on them, and intervals tell what is not known of its
        calibration, and no more: of the probability among rows with the same score.
    param_grid : dict, list of dict or None, default None
        Parameters of the estimator to try, as of scikit-learn's `ParameterGrid`: each is fitted to
        every bootstrap sample, and they are weighted by ``exp(−n (loss − min loss) / 4)`` with the
        out-of-bag log-loss of a sigmoid for each.
    n_bootstraps : int, default 500
        Bootstrap samples, at most.
    tolerance : float, default 0.01
        No more samples are drawn once probabilities would hardly move with more: their Monte Carlo
        standard error (root mean square over the rows out of bag) is below this. It is looked at
        from 50 samples on. 0 draws `n_bootstraps`.
    time_budget : float or None, default None
        Seconds after which no further sample is begun; at least two are drawn. Of a `BootstrapSVC`
        among others counts how long its kernels took to choose, and what its machines will take
        of these samples, as measured on up to ten; calibration and the interval's model come after.
        What is fitted once, such as a forest, is fitted whatever it takes.
    calibration : str or None, default "sigmoid"
        How `predict_proba` turns out-of-bag scores into probabilities; None reports the vote share.

        (calibrations)
        - "auto": chosen by out-of-bag log-loss; another than the sigmoid only if it is better by
          more than chance (see `calibration_`).
    interval : str, default "corrected"
        Default method of `proba_interval`, which lists them.
    coupling : {"wu-lin-weng", "hastie-tibshirani"}, default "wu-lin-weng"
        How the probabilities of all pairs of several classes become those of the classes. A
        classifier is fitted to all classes at once; a pair's score is the difference of two
        classes' scores.
    control : {"threshold"} or None, default None
        Make rates hold out of bag: docs/control.md.
    rates : dict, optional
        The least that "tpr", "tnr", "ppv" and "npv" may be, and beside them "decided", the share of
        rows that are not left undecided; of several classes of the classes' own.
    confidence : float, optional
        Of each rate, out of sample.
    bound : {"binomial", "hoeffding"}, default "binomial"
        Where `confidence` gets the needed share of rows from.
    random_state : int, RandomState instance or None, default None
        Seed of the bootstrap samples, and of every `random_state` of the estimator.
    n_jobs : int, optional
        Samples that are fitted at the same time, through joblib.
    verbose : int, default 0
        1 shows a progress bar on standard error, with the time that is left.
    checkpoint : str, optional
        A folder in which fitted classifiers are kept, by skops and without pickle: the same `fit`
        goes on from them after it was stopped, or with a larger `time_budget`, to the same model
        (docs/scaling.md). What is fitted once, such as a forest, is not kept.

    Attributes
    ----------
    (fitted state)

    Notes
    -----
    Where `fit` of the estimator takes `sample_weight`, a row that was drawn twice weighs twice;
    else it is given twice. Rows that were not drawn are not given.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from bootprob import BootstrapClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> logistic = make_pipeline(StandardScaler(), LogisticRegression())
    >>> model = BootstrapClassifier(logistic, random_state=0).fit(X[-200:, :5], y[-200:])
    >>> lower, upper = model.proba_interval(X[:1, :5])[0, 1]
    >>> bool(lower < model.predict_proba(X[:1, :5])[0, 1] < upper)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "get_params"]), list],
        "param_grid": [dict, list, None],
        "n_bootstraps": [Interval(Integral, 2, None, closed="left")],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "time_budget": [None, Interval(Real, 0, None, closed="neither")],
        "calibration": [StrOptions(set(CALIBRATIONS)), None],
        "interval": [StrOptions({*OF_PROBABILITIES, *OF_VOTES})],
        "coupling": [StrOptions(set(get_args(Coupling)))],
        "control": [StrOptions({"threshold"}), None],
        "rates": [dict, None],
        "confidence": [None, Interval(Real, 0, 1, closed="neither")],
        "bound": [StrOptions({"binomial", "hoeffding"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "checkpoint": [str, None],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        *,
        n_bootstraps: int = 500,
        tolerance: float = 0.01,
        time_budget: float | None = None,
        calibration: str | None = "sigmoid",
        interval: str = "corrected",
        coupling: Coupling = "wu-lin-weng",
        control: Literal["threshold"] | None = None,
        rates: dict[str, float] | None = None,
        confidence: float | None = None,
        bound: str = "binomial",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        checkpoint: str | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.n_bootstraps = n_bootstraps
        self.tolerance = tolerance
        self.time_budget = time_budget
        self.calibration = calibration
        self.interval = interval
        self.coupling = coupling
        self.control = control
        self.rates = rates
        self.confidence = confidence
        self.bound = bound
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Self:
        """Fit the classifier to bootstrap samples, weight the grid and calibrate.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n, p)
            Training rows, given to the estimator as they are. The model of the interval sees
            categories as dummies and gaps filled (`preprocessor_`).
        y : array_like, shape (n,)
            Labels of two or more classes.
        sample_weight : array_like, shape (n,), optional
            Weights of the rows, if `fit` of the estimator takes them; ≥ 0.
        groups, time : array_like, shape (n,), optional
            Which rows belong together, or when each is from: as of `BootstrapSVC.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For data that scikit-learn's checks refuse, a single class, unusable weights, groups or
            times, or an estimator that has no scores or changes labels (`DataError`); for rates
            that cannot be kept (`UnattainableRateError`). What the estimator raises comes through.
            For a `checkpoint` that is of another fit, or no folder to write to (`DataError`), or
            classifiers that skops cannot store in it (`ModelFileError`).

        Warns
        -----
        UserWarning
            If `time_budget` was up after fewer than 20 samples; if a file of the checkpoint is
            damaged, and its replicate is trained again.
        CopiedRowsWarning, DoubtfulTableWarning, LaterRowsWarning
            As by `BootstrapSVC.fit`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from bootprob import BootstrapClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BootstrapClassifier(GaussianNB(), n_bootstraps=20, tolerance=0, random_state=0)
        >>> model.fit(X[50:], y[50:]).predict_proba(X[50:53]).shape
        (3, 2)
        """
        with columns_kept(self):
            return self._fit(X, y, sample_weight, groups, time)

    @_fit_context(prefer_skip_nested_validation=False)  # of the classifiers, which are users'
    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        time: ArrayLike | None,
        preprocessor: None = None,  # made anew, as gaps may come and go
        called: Sequence[Any] | None = None,
    ) -> Self:
        started = perf_counter()
        refuse_groups_with_time(groups, time)
        parameters = self.get_params(deep=False)
        spec = ClassifierSpec(
            self.estimator,
            self.param_grid,
            self.n_bootstraps,
            self.tolerance,
            self.time_budget,
            ControlSpec.of(parameters | {"control_method": "heuristic", "time_limit": 1.0}),
            CalibrationSpec.of(parameters | {"weighting": "log_loss", "accuracy_tolerance": 0.0}),
            self.random_state,
            self.n_jobs,
            self.verbose,
            self.checkpoint,
        )
        X, y, sample_weight = on_host(X), on_host(y), on_host(sample_weight)
        rows, labels, encoding = training_rows(self, X, y)
        weight = usable_weight(
            _check_sample_weight(
                sample_weight, rows.matrix, dtype=np.float64, ensure_non_negative=True
            )
        )
        names, columns, dates = told_of_columns(self, encoding)
        together = checked_groups(groups, len(rows))
        instants = None if time is None else checked_instants(on_host(time), len(rows))
        ranks = None if instants is None else instants.ranks
        learnt, of_pairs = learn_classifiers(
            spec, rows, labels, weight, together, names, columns, ranks, dates, called
        )
        learnt["preprocessor_"], learnt["later_rows_"] = encoding, None
        if instants is not None:
            timed = TimedRows(
                rows.given,
                labels,
                weight,
                learnt["y_"],
                learnt["sample_weight_"],
                instants,
                learnt["groups_"],
                called,
            )
            self._measure_later(learnt, timed, None)
        self._take(learnt, of_pairs, perf_counter() - started)
        for pair in self.pair_ensembles_:
            as_whole(pair, self)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        of_classes = self.control is None or not {*OF_TWO_CLASSES} & {*(self.rates or ())}
        tags.classifier_tags.multi_class = of_classes
        every = self.estimator if isinstance(self.estimator, list) else [self.estimator]
        of_each = [get_tags(each).input_tags for each in every if not isinstance(each, type)]
        tags.input_tags.sparse = all(each.sparse for each in of_each)
        tags.input_tags.allow_nan = all(each.allow_nan for each in of_each)
        return tags


if BootstrapClassifier.__doc__ is not None:  # python -OO has none
    _attributes = attributes("classifiers")
    BootstrapClassifier.__doc__ = filled(BootstrapClassifier.__doc__, "(fitted state)", _attributes)
    BootstrapClassifier.__doc__ = filled(
        BootstrapClassifier.__doc__, "(calibrations)", listed(HOMES)
    )
