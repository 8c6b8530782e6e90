"""A classifier of each bootstrap sample, for every parameter of a grid, and what it left out."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import Parallel, delayed  # which take along sklearn's configuration
from sklearn.utils.validation import has_fit_parameter

from bootprob.ensemble.bases.class_scores import class_scores, least_probability
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats
from bootprob.runtime.workers import end_with_parent, outcomes_of

__all__ = ["Replicate", "Task", "unfitted"]


@dataclass(frozen=True)
class Replicate:
    """What one bootstrap sample has taught.

    Attributes
    ----------
    classifiers : list of classifier, length R
        Fitted.
    left_out : ndarray of int, shape (k,)
        Rows that it did not see.
    scores : ndarray, shape (k, R, 1) or (k, R, K)
        What the classifiers say of these, as `class_scores` has it.
    """

    classifiers: list[Any]
    left_out: NDArray[np.intp]
    scores: Floats


@dataclass(frozen=True)
class Task:
    """What to train on bootstrap samples.

    Attributes
    ----------
    candidates : sequence of classifier of scikit-learn's kind, length R
        Unfitted.
    X : array-like or data frame, shape (n, ...)
    y : ndarray, shape (n,)
        Labels.
    classes : ndarray, shape (K,)
    weight : ndarray, shape (n,)
        Row weights.
    entropy : sequence of int
        Seed of what is random in the classifiers.
    """

    candidates: Sequence[Any]
    X: Any
    y: NDArray[Any]
    classes: NDArray[Any]
    weight: Floats
    entropy: Sequence[int]

    def __post_init__(self) -> None:
        used = self.weight[self.weight > 0]
        fitted = [each for each in self.candidates if not isinstance(each, FrozenEstimator)]
        without = [each for each in fitted if not _takes_weight(each)]
        if without and (used != used[0]).any():
            raise DataError(
                f"fit of {type(without[0]).__name__} takes no sample_weight, and rows have "
                "different weights; leave sample_weight out, or give a classifier that takes it."
            )

    @property
    def least(self) -> float:
        """Probability of a class below which classifiers are not believed."""
        return least_probability(self.weight)

    def check_classes(self, classifier: Any) -> None:
        """Refuse a fitted classifier that calls the classes otherwise."""
        known = getattr(classifier, "classes_", self.classes)
        if not np.array_equal(known, self.classes):
            raise DataError(
                f"{type(classifier).__name__} was fitted to the classes {self.classes.tolist()} "
                f"and has classes_ {np.asarray(known).tolist()}; a classifier has to keep the "
                "labels."
            )

    def train(
        self,
        counts: NDArray[np.unsignedinteger[Any]],
        numbers: Sequence[int],
        n_jobs: int | None,
    ) -> Generator[Replicate, None, None]:
        """Train one replicate after the other, several at a time through joblib.

        Parameters
        ----------
        counts : ndarray of int, shape (B, n)
            How often each of all replicates sees each row.
        numbers : sequence of int
            The replicates to train.
        n_jobs : int or None
            As of `BootstrapClassifier`.
        """
        calls = (delayed(_train)(self, number, counts[number]) for number in numbers)
        with outcomes_of(Parallel(n_jobs=n_jobs, return_as="generator"), calls) as outcomes:
            yield from outcomes

    def fitted_to_all(self, n_jobs: int | None) -> Any:
        """The first candidate, fitted to all rows of weight once."""
        forest = unfitted(self.candidates[0])
        _seed(forest, np.random.default_rng(np.random.SeedSequence([*self.entropy])))
        if n_jobs is not None:
            forest.set_params(n_jobs=n_jobs)
        return forest.fit(self.X, self.y, sample_weight=self.weight)


def _train(task: Task, number: int, count: NDArray[np.unsignedinteger[Any]]) -> Replicate:
    end_with_parent()
    inside, left_out = np.flatnonzero((count > 0) & (task.weight > 0)), np.flatnonzero(count == 0)
    weight, others = count[inside] * task.weight[inside], _safe_indexing(task.X, left_out)
    random = np.random.default_rng(np.random.SeedSequence([*task.entropy, number]))
    classifiers, scores = [], np.empty((len(left_out), len(task.candidates), _width(task)))
    for r, candidate in enumerate(task.candidates):
        classifier, rows, options = unfitted(candidate), inside, {"sample_weight": weight}
        if not _takes_weight(candidate):
            rows, options = np.repeat(inside, count[inside]), {}
        _seed(classifier, random)
        classifier.fit(_safe_indexing(task.X, rows), task.y[rows], **options)
        task.check_classes(classifier)
        if len(left_out):
            scores[:, r] = class_scores(classifier, others, len(task.classes), task.least)
        classifiers.append(classifier)
    return Replicate(classifiers, left_out, scores)


def unfitted(classifier: Any) -> Any:
    """A copy that is not fitted.

    Of those whose parameters scikit-learn's `clone` finds changed, such as CatBoost's
    ``cat_features``, a deep copy: they come unfitted.
    """
    try:
        return clone(classifier)
    except RuntimeError:
        return deepcopy(classifier)


def _takes_weight(classifier: Any) -> bool:
    """Whether rows may count several times, or have to be given several times."""
    if has_fit_parameter(classifier, "sample_weight"):
        return True
    if not get_config()["enable_metadata_routing"]:
        return False
    routing = get_routing_for_object(classifier)  # of a Pipeline: where its steps ask for it
    return "sample_weight" in routing.consumes("fit", ["sample_weight"])


def _width(task: Task) -> int:
    return 1 if len(task.classes) == 2 else len(task.classes)


def _seed(classifier: Any, random: np.random.Generator) -> None:
    """Give everything random in a classifier a seed of its own, as scikit-learn's ensembles do."""
    names = sorted(
        name
        for name in classifier.get_params()
        if name == "random_state" or name.endswith("__random_state")
    )
    seeds = random.integers(np.iinfo(np.int32).max, size=len(names)).tolist()
    classifier.set_params(**dict(zip(names, seeds, strict=True)))
