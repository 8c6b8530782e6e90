"""What every bootstrap ensemble of classifiers is, whatever its replicates are."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from bootprob.ensemble.answers.decisions import DecisionAnswers
from bootprob.ensemble.answers.intervals import IntervalAnswers
from bootprob.ensemble.answers.out_of_bag import OutOfBagAnswers
from bootprob.ensemble.answers.predictions import PredictionAnswers
from bootprob.ensemble.answers.replicates import ReplicateAnswers
from bootprob.ensemble.answers.updates import UpdateAnswers
from bootprob.ensemble.later_rows import TimedRows, measured_later, remark_of_later
from bootprob.ensemble.specs import NO_CONTROL
from bootprob.exceptions import LaterRowsWarning

__all__ = ["BootstrapEnsemble"]


class BootstrapEnsemble(
    PredictionAnswers,
    DecisionAnswers,
    IntervalAnswers,
    OutOfBagAnswers,
    ReplicateAnswers,
    UpdateAnswers,
    ClassifierMixin,
    BaseEstimator,
    ABC,
):
    """An estimator that becomes what its `fit` learnt, and answers by it."""

    @abstractmethod
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Train the ensemble."""

    if TYPE_CHECKING:
        classes_: NDArray[Any]
        pair_ensembles_: list[Any]

    def _measure_later(self, learnt: dict[str, Any], rows: TimedRows, preprocessor: Any) -> None:
        """Say how a model of the rows before the last tenth does on that, and warn of it."""
        learnt["later_rows_"] = measured_later(self, rows, preprocessor)
        remark = remark_of_later(learnt["later_rows_"])
        if remark is not None:
            learnt["remarks_"].append(remark)
            warnings.warn(remark, LaterRowsWarning, stacklevel=5)

    def _take(
        self, learnt: dict[str, Any], of_pairs: Sequence[dict[str, Any]], seconds: float
    ) -> None:
        """Become what was learnt; nothing of an earlier fit is left."""
        learnt["pair_ensembles_"] = [self._of_pair(each) for each in of_pairs]
        for name in set(vars(self)) - learnt.keys():  # what only another number of classes has
            if name.endswith("_") and name not in ("n_features_in_", "feature_names_in_"):
                delattr(self, name)
        self.__dict__.pop("_column_names", None)  # see `with_column_names`
        for name, value in learnt.items():
            setattr(self, name, value)
        self.fit_seconds_ = seconds
        for pair in self.pair_ensembles_:
            pair.fit_seconds_ = self.fit_seconds_

    def _of_pair(self, learnt: dict[str, Any]) -> Self:
        """The estimator of a pair of classes."""
        pair = type(self)(**self.get_params(deep=False) | {"verbose": 0} | NO_CONTROL)
        for name, value in learnt.items():
            setattr(pair, name, value)
        pair.pair_ensembles_, pair.n_features_in_ = [], len(learnt["center_"])
        pair.preprocessor_ = pair.remarks_ = pair.later_rows_ = None
        return pair

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fit_seconds_")
