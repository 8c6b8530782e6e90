"""Classifiers of bootstrap samples: fitted to them, the trees of a forest, or one fitted before."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from bootprob.ensemble.bases.class_scores import class_scores
from bootprob.ensemble.bases.forests import counts_of_trees, is_forest, scores_of_trees
from bootprob.ensemble.bases.kept_replicates import KeptReplicates
from bootprob.ensemble.bases.monte_carlo import monte_carlo_error
from bootprob.ensemble.bases.replicates import Replicate, Task, unfitted
from bootprob.ensemble.specs import CalibrationSpec, ControlSpec
from bootprob.ensemble.training.checkpoints import Checkpoint
from bootprob.ensemble.training.preparation import Prepared
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats
from bootprob.runtime.progress import progress_bar

__all__ = ["ClassifierSpec", "Trained", "train"]

_Source = Callable[[Sequence[int], int | None], Generator[Replicate, None, None]]
_FIRST = 50  # replicates before it is asked whether they are enough
_FEW = 20  # replicates below which a budget has cost too much


@dataclass(frozen=True)
class ClassifierSpec:
    """All that the fit of a `BootstrapClassifier` is told beside the data."""

    estimator: Any
    param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
    n_bootstraps: int
    tolerance: float
    time_budget: float | None
    control: ControlSpec
    calibration: CalibrationSpec
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    verbose: int
    checkpoint: str | None

    def __post_init__(self) -> None:
        """Raise a DataError for what gives no classifiers to fit."""
        several = isinstance(self.estimator, list)
        if several and (not self.estimator or self.param_grid is not None):
            what = "an empty list" if not self.estimator else "a list, and param_grid is given"
            raise DataError(
                f"estimator is {what}; give one classifier with a param_grid, or a list of "
                "classifiers that have their parameters."
            )
        for each in self.estimator if several else [self.estimator]:
            if isinstance(each, type) or not hasattr(each, "get_params"):
                what = f"has {each!r} among its classifiers" if several else f"is {each!r}"
                raise DataError(
                    f"estimator {what}; give each of them, not its class, as scikit-learn has it, "
                    "with fit and get_params."
                )
        if self.param_grid is not None and self.is_frozen:
            raise DataError(
                "estimator is fitted already (FrozenEstimator), and param_grid is given, whose "
                "settings would have to be fitted; leave one of them out."
            )
        if self.param_grid is not None and not len(ParameterGrid(self.param_grid)):
            raise DataError("param_grid has no settings; leave it out, or give some.")

    @property
    def candidates(self) -> list[Any]:
        """Unfitted classifiers, R."""
        if isinstance(self.estimator, list):
            return [unfitted(each) for each in self.estimator]
        if self.param_grid is None:
            return [unfitted(self.estimator)]
        grid = ParameterGrid(self.param_grid)
        return [unfitted(self.estimator).set_params(**settings) for settings in grid]

    @property
    def name(self) -> str:
        """What is trained."""
        return " and ".join(dict.fromkeys(type(each).__name__ for each in self.candidates))

    @property
    def is_frozen(self) -> bool:
        """Whether the classifier is fitted already."""
        return isinstance(self.estimator, FrozenEstimator)


@dataclass(frozen=True)
class Trained:
    """Classifiers of bootstrap samples.

    Attributes
    ----------
    classifiers : list of list
        Fitted, B lists of R; of a fitted one, itself.
    scores : ndarray, shape (n, R, B, 1) or (n, R, B, K)
        What they say of the rows that they have not seen, as `class_scores` has it; else 0.
    counts : ndarray of int, shape (B, n)
        The bootstrap samples.
    are_trees : bool
        Whether they are the trees of a forest.
    """

    classifiers: list[list[Any]]
    scores: Floats
    counts: NDArray[np.unsignedinteger[Any]]
    are_trees: bool = False


def train(
    spec: ClassifierSpec,
    task: Task,
    table: Prepared,
    codes: NDArray[np.intp],
    checkpoint: Checkpoint | None,
    started: float,
    more: float = 0.0,
) -> Trained:
    """Fit the candidates of a task to bootstrap samples, or take what is of such already.

    A checkpoint keeps replicates; what is fitted once is not kept. The budget of time began when
    `perf_counter` was at `started`, and for each sample `more` seconds are to be left.
    """
    if spec.is_frozen:
        return _frozen(spec, task, table.counts)
    if table.groups is None and len(spec.candidates) == 1 and is_forest(task.candidates[0]):
        return _forest(spec, task)
    source: _Source = partial(task.train, table.counts)
    if checkpoint is not None:
        source = KeptReplicates(checkpoint, task, codes, table.counts).train
    return _resampled(spec, task, source, table.counts, codes, started, more)


def _resampled(
    spec: ClassifierSpec,
    task: Task,
    source: _Source,
    counts: NDArray[np.unsignedinteger[Any]],
    codes: NDArray[np.intp],
    started: float,
    more: float,
) -> Trained:
    """Classifiers of the first bootstrap samples, as many as are needed."""
    K, begun = len(task.classes), perf_counter()
    most, classifiers = len(counts), list[list[Any]]()
    # Of samples that are not needed no memory is touched.
    held = np.zeros((most, len(task.candidates), counts.shape[1], 1 if K == 2 else K))
    scores = held.transpose(2, 1, 0, 3)
    spent, enough = False, min(_FIRST, most)
    with progress_bar(spec.name, most, shown=spec.verbose > 0) as advance:
        while len(classifiers) < enough and not spent:
            wanted = range(len(classifiers), enough)
            with closing(source(wanted, spec.n_jobs)) as trained:
                for replicate in trained:
                    scores[replicate.left_out, :, len(classifiers)] = replicate.scores
                    classifiers.append(replicate.classifiers)
                    advance(1)
                    now = perf_counter()
                    seconds = now - started + more * len(classifiers)
                    spent = spec.time_budget is not None and seconds > spec.time_budget
                    if spent and len(classifiers) > 1:
                        break
            done = len(classifiers)
            error = monte_carlo_error(scores[:, :, :done], counts[:done], codes, task.weight)
            if error > spec.tolerance:
                needed = done * (error / spec.tolerance) ** 2 if spec.tolerance else np.inf
                enough = int(min(most, max(np.ceil(needed), done + 1)))
    if spent and done < min(_FEW, most):
        whole = seconds + (most - done) * ((now - begun) / done + more)
        warnings.warn(
            f"{done} bootstrap samples of {spec.name} took {seconds:.3g} s, and time_budget is "
            f"{spec.time_budget:.3g}: so few say little of what is not known. Some {most} would "
            f"take {whole:.3g} s.",
            stacklevel=7,
        )
    return Trained(classifiers, scores[:, :, :done], counts[:done])


def _forest(spec: ClassifierSpec, task: Task) -> Trained:
    """The trees of a forest, and what each says of the rows that it has not seen."""
    if (n_trees := task.candidates[0].n_estimators) < 2:
        raise DataError(
            f"{spec.name} has n_estimators={n_trees}, and its trees are the bootstrap samples; "
            "give two at least, or a DecisionTreeClassifier."
        )
    forest = task.fitted_to_all(spec.n_jobs)
    counts = counts_of_trees(forest, len(task.y))
    scores = scores_of_trees(forest.estimators_, task.X)
    scores[(counts > 0).T] = 0.0
    return Trained([[tree] for tree in forest.estimators_], scores[:, None], counts, are_trees=True)


def _frozen(spec: ClassifierSpec, task: Task, counts: NDArray[np.unsignedinteger[Any]]) -> Trained:
    """A classifier that has seen none of the rows, and what it says of all in every replicate."""
    check_is_fitted(spec.estimator)
    task.check_classes(spec.estimator)
    scores = class_scores(spec.estimator, task.X, len(task.classes), task.least)
    shape = (counts.shape[1], 1, len(counts), scores.shape[1])
    return Trained([[spec.estimator]], np.broadcast_to(scores[:, None, None], shape), counts)
