"""A classifier that takes the decision of least expected cost."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import Bunch, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d

from bootprob.costs.decisions import Decisions
from bootprob.costs.given import cost_matrix_of, refuse_uncalibrated
from bootprob.costs.matrix import CostMatrix
from bootprob.costs.rules import RuleCost
from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.preparation.labels import usable_labels
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import on_host

__all__ = ["CostSensitiveClassifier"]


class CostSensitiveClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Decide at least expected cost, on the probabilities of any classifier of two classes.

    The costs are not used in training. They give a threshold on the probability in closed form
    (`CostMatrix.threshold`), for all rows or for each row its own, so that it can be changed after
    `fit` at no price. This takes calibrated probabilities: those of `BootstrapSVC` are; wrap other
    classifiers in scikit-learn's `CalibratedClassifierCV`, or let its `TunedThresholdClassifierCV`
    search the threshold.

    Parameters
    ----------
    estimator : classifier with predict_proba
        Cloned and trained by `fit`. One that is trained already is kept as it is when wrapped in
        scikit-learn's `FrozenEstimator`.
    cost_matrix : CostMatrix, array_like of shape (2, 2) or DataFrame, default ((0, 1), (1, 0))
        ``cost_matrix[i][j]`` is what a row of class i costs that is decided j, in the order of
        `classes_`, that is, sorted. A data frame with the labels as index (true) and as columns
        (decided) may have any order. The default counts errors.

    Attributes
    ----------
    estimator_ : classifier
        Fitted.
    classes_ : ndarray, shape (2,)
        Class labels; ``classes_[1]`` is the positive class.
    cost_matrix_ : CostMatrix
        The costs that decide, checked.
    threshold_ : float
        Probability of ``classes_[1]`` above which it is predicted.
    n_features_in_, feature_names_in_ : int, ndarray
        As of `estimator_`, where it has them.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob import BootstrapSVC
    >>> from bootprob import CostSensitiveClassifier
    >>> X, benign = load_breast_cancer(return_X_y=True)
    >>> svm = BootstrapSVC(kernel="linear", n_bootstraps=50, random_state=0)
    >>> missed_cancers_cost_19 = CostSensitiveClassifier(svm, cost_matrix=[[0, 19], [1, 0]])
    >>> model = missed_cancers_cost_19.fit(X[50:], benign[50:])
    >>> model.threshold_
    0.95
    >>> decisions = model.decide(X[:2])
    >>> decisions.label, decisions.stable
    (array([0, 0]), array([ True,  True]))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "cost_matrix": [CostMatrix, "array-like"],
    }

    def __init__(
        self, estimator: Any, *, cost_matrix: CostMatrix | ArrayLike = ((0, 1), (1, 0))
    ) -> None:
        self.estimator = estimator
        self.cost_matrix = cost_matrix

    @_fit_context(prefer_skip_nested_validation=False)  # the estimator validates itself
    def fit(self, X: ArrayLike, y: ArrayLike, **fit_params: Any) -> Self:
        """Train the estimator and check the costs.

        Parameters
        ----------
        X : array_like, shape (n, p)
            Training rows, as the estimator takes them.
        y : array_like, shape (n,)
            Labels of two classes.
        **fit_params
            For the estimator, such as `sample_weight`; by metadata routing where that is enabled.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a number of classes other than two; for costs that give no threshold, and for
            estimators whose probabilities are known to be none (`DataError`).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC, CostSensitiveClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> svm = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
        >>> model = CostSensitiveClassifier(svm, cost_matrix=[[0, 1], [5, 0]]).fit(X[50:], y[50:])
        >>> round(model.threshold_, 3)
        0.167
        """
        classes = _two_classes(y)
        costs = cost_matrix_of(self.cost_matrix, classes)
        if costs.n_rows is not None:
            raise DataError(
                f"cost_matrix holds the costs of {costs.n_rows} rows. Give those to predict and "
                "decide, with the rows that they belong to."
            )
        refuse_uncalibrated(_parts(self.estimator)[1])
        if sklearn.get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **fit_params)
        else:
            routed = Bunch(estimator=Bunch(fit=fit_params))
        fitted = clone(self.estimator).fit(X, y, **routed.estimator.fit)
        refuse_uncalibrated(_parts(fitted)[1])  # a search may have chosen one
        self.estimator_ = fitted
        self.classes_ = self.estimator_.classes_
        self.cost_matrix_ = costs
        self.threshold_ = costs.threshold
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Class probabilities of the estimator, shape (m, 2).

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Returns
        -------
        ndarray, shape (m, 2)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC, CostSensitiveClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> svm = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
        >>> model = CostSensitiveClassifier(svm, cost_matrix=[[0, 1], [5, 0]]).fit(X[50:], y[50:])
        >>> model.predict_proba(X[50:53]).shape
        (3, 2)
        """
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Natural logarithms of `predict_proba`, shape (m, 2); -inf of a probability of 0.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC, CostSensitiveClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> svm = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
        >>> model = CostSensitiveClassifier(svm, cost_matrix=[[0, 1], [5, 0]]).fit(X[50:], y[50:])
        >>> model.predict_log_proba(X[50:53]).shape
        (3, 2)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(
        self, X: ArrayLike, cost_matrix: CostMatrix | ArrayLike | None = None
    ) -> NDArray[Any]:
        """Decisions of least expected cost, shape (m,); ties go to ``classes_[0]``.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        cost_matrix : CostMatrix or array_like, optional
            Costs to use in place of the parameter: a `CostMatrix`, one matrix (2, 2), or one for
            each row (m, 2, 2).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC, CostSensitiveClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> svm = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
        >>> model = CostSensitiveClassifier(svm, cost_matrix=[[0, 1], [5, 0]]).fit(X[50:], y[50:])
        >>> model.predict(X[[50, 149]])
        array([1, 2])
        """
        check_is_fitted(self)
        return self._decide(on_host(self.predict_proba(X)), None, cost_matrix).label

    def decide(
        self,
        X: ArrayLike,
        level: float = 0.95,
        cost_matrix: CostMatrix | ArrayLike | None = None,
    ) -> Decisions:
        """Decisions of least expected cost with all that led to them.

        Where the estimator has `proba_interval` (in a pipeline or a search: the last step, the
        best estimator), the decisions carry intervals; otherwise those are None.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        level : float, default 0.95
            Nominal confidence level of the intervals, for each row.
        cost_matrix : CostMatrix or array_like, optional
            As for `predict`.

        Returns
        -------
        Decisions

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC, CostSensitiveClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> svm = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
        >>> model = CostSensitiveClassifier(svm, cost_matrix=[[0, 1], [5, 0]]).fit(X[50:], y[50:])
        >>> model.decide(X[[50, 149]]).label
        array([1, 2])
        """
        check_is_fitted(self)
        level = check_level(level)
        before, last = _parts(self.estimator_)
        interval = None
        probability = on_host(self.predict_proba(X))
        if hasattr(last, "proba_interval"):
            rows = X if before is None else before.transform(X)
            interval = on_host(last.proba_interval(rows, level))[:, 1]
        return self._decide(probability, interval, cost_matrix)

    def oob_costs(
        self,
        level: float = 0.95,
        cost_matrix: CostMatrix | ArrayLike | None = None,
        seed: int = 0,
    ) -> dict[str, RuleCost]:
        """Mean cost of this rule and of those that it competes with, from out-of-bag rows.

        As `bootprob.BootstrapSVC.oob_costs`.

        Parameters
        ----------
        level : float, default 0.95
            Nominal coverage of the intervals over rows.
        cost_matrix : CostMatrix or array_like, optional
            As for `predict`, with the training rows.
        seed : int, default 0
            Seed of the resampling.

        Returns
        -------
        dict of str to RuleCost
            As of `cost_of_rules`. Rows that were never out of bag are left out and counted.

        Raises
        ------
        DataError
            If the estimator keeps no out-of-bag probabilities, or costs are of another number of
            rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC, CostSensitiveClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> svm = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
        >>> model = CostSensitiveClassifier(svm, cost_matrix=[[0, 1], [5, 0]]).fit(X[50:], y[50:])
        >>> sorted(model.oob_costs())
        ['all_negative', 'all_positive', 'least_cost', 'one_half']
        """
        check_is_fitted(self)
        last = _parts(self.estimator_)[1]
        if not hasattr(last, "oob_costs"):
            raise DataError(
                f"{type(last).__name__} keeps no out-of-bag probabilities (BootstrapSVC does). Use "
                "cost_of_rules with probabilities of cross_val_predict or of a test set."
            )
        found: dict[str, RuleCost] = last.oob_costs(self._costs(cost_matrix), level, seed=seed)
        return found

    def get_metadata_routing(self) -> MetadataRouter:
        """Say which metadata `fit` hands on, and that `predict` takes costs of rows.

        Examples
        --------
        >>> import sklearn
        >>> from bootprob import BootstrapSVC, CostMatrix, CostSensitiveClassifier
        >>> costs = CostMatrix(false_positive=1, false_negative=5)
        >>> with sklearn.config_context(enable_metadata_routing=True):
        ...     svc = BootstrapSVC().set_fit_request(sample_weight=True)
        ...     router = CostSensitiveClassifier(svc, cost_matrix=costs).get_metadata_routing()
        ...     router.consumes("fit", ["sample_weight", "groups"])
        {'sample_weight'}
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags

    def _costs(self, cost_matrix: CostMatrix | ArrayLike | None) -> CostMatrix:
        return (
            self.cost_matrix_ if cost_matrix is None else cost_matrix_of(cost_matrix, self.classes_)
        )

    def _decide(
        self,
        probability: Floats,
        interval: Floats | None,
        cost_matrix: CostMatrix | ArrayLike | None,
    ) -> Decisions:
        return self._costs(cost_matrix).decide(probability[:, 1], interval, self.classes_)


def _two_classes(y: ArrayLike) -> NDArray[Any]:
    y = usable_labels(y)
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y, input_name='y')}."
        )
    if len(classes) < 2:
        raise ValueError(
            "CostSensitiveClassifier needs two classes in y; the data contain "
            f"{len(classes)} class."
        )
    return classes


def _parts(estimator: Any) -> tuple[Any, Any]:
    """The classifier itself, and what transforms rows before it (or None)."""
    if isinstance(estimator, FrozenEstimator):
        return _parts(estimator.estimator)
    if hasattr(estimator, "best_estimator_"):
        return _parts(estimator.best_estimator_)
    if isinstance(estimator, BaseSearchCV):  # before its fit
        return _parts(estimator.estimator)
    if not isinstance(estimator, Pipeline):
        return None, estimator
    within, last = _parts(estimator[-1])
    before = [each for each in (estimator[:-1] if len(estimator) > 1 else None, within) if each]
    return make_pipeline(*before) if before else None, last
