"""From a table and the parameters of a `BootstrapClassifier` to its fitted attributes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bootprob.calibration.coupling import class_pairs
from bootprob.ensemble.bases.class_scores import class_scores
from bootprob.ensemble.bases.forests import counts_of_trees, is_forest, scores_of_trees
from bootprob.ensemble.bases.monte_carlo import monte_carlo_error
from bootprob.ensemble.bases.replicates import Task, unfitted
from bootprob.ensemble.bases.trained_classifiers import TrainedClassifiers
from bootprob.ensemble.control.class_rates import ClassFloor, class_rates_asked, class_shares
from bootprob.ensemble.control.decisions import Control, rates_asked
from bootprob.ensemble.control.thresholds import LeftOut, needed_shares
from bootprob.ensemble.kernels import arrays_of
from bootprob.ensemble.noticed import called_columns, remarks_before, remarks_of_clusters
from bootprob.ensemble.out_of_bag_learning import learn_out_of_bag
from bootprob.ensemble.pairs import couple_pairs, labels_of_pairs
from bootprob.ensemble.scoring.table_rows import TableRows
from bootprob.ensemble.specs import CalibrationSpec, ControlSpec
from bootprob.ensemble.training.preparation import Prepared, versions
from bootprob.exceptions import DataError
from bootprob.preparation.bootstrap import bootstrap_counts, draw_entropy
from bootprob.preparation.labels import encode_classes
from bootprob.preparation.large_tables import is_large
from bootprob.preparation.standardization import MANY_LEVELS, center_and_scale, scale_of_levels
from bootprob.preparation.time_blocks import block_length, time_blocks
from bootprob.preparation.views import view_kernels
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, checked_groups
from bootprob.runtime.progress import progress_bar
from bootprob_gpu import resolve_device
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.linear import Linear
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["ClassifierSpec", "learn_classifiers"]

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

    @property
    def candidates(self) -> list[Any]:
        """Unfitted classifiers, R.

        Raises
        ------
        DataError
            There are none, or a grid of parameters for several classifiers.
        """
        if not isinstance(self.estimator, list):
            grid = [{}] if self.param_grid is None else list(ParameterGrid(self.param_grid))
            return [unfitted(self.estimator).set_params(**each) for each in grid]
        if not self.estimator or self.param_grid is not None:
            what = "an empty list" if not self.estimator else "a list, and param_grid is given"
            raise DataError(
                f"estimator is {what}; give one classifier with a param_grid, or a list of "
                "classifiers that have their parameters."
            )
        return [unfitted(each) for each in self.estimator]

    @property
    def name(self) -> str:
        """What is trained."""
        return " and ".join(dict.fromkeys(type(each).__name__ for each in self.candidates))

    @property
    def is_frozen(self) -> bool:
        """Whether the classifier is fitted already."""
        return isinstance(self.estimator, FrozenEstimator)


def learn_classifiers(
    spec: ClassifierSpec,
    rows: TableRows,
    y: NDArray[Any],
    weight: Floats,
    groups: Groups | None = None,
    names: Sequence[str] | None = None,
    columns: Mapping[str, slice] | None = None,
    ranks: NDArray[np.int64] | None = None,
    dates: Collection[str] = (),
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train the classifiers, weight the grid and calibrate it; of several classes, every pair.

    Parameters and result are those of `bootprob.ensemble.fitting.learn`.
    """
    classes, codes = encode_classes(y, weight)
    spoken = spec.calibration.calibration
    asked, floors = Control(), tuple[ClassFloor, ...]()
    if len(classes) > 2:
        floors = class_rates_asked(spec.control, spoken, classes)
    else:
        asked = rates_asked(spec.control, spoken)
    if ranks is not None:
        groups = checked_groups(time_blocks(ranks, block_length(ranks, codes)), len(rows))
    called = called_columns(rows.matrix.shape[1], names, columns)
    remarks = remarks_before(
        ViewKernels.name, rows.matrix, codes, weight, groups, called, ranks, set(map(repr, dates))
    )
    levels = [each for each in (columns or {}).values() if each.stop - each.start > MANY_LEVELS]
    positive = codes == 1
    if len(classes) > 2:  # before anything is trained
        class_shares(floors, codes, weight, groups)
        control = Control()
    else:
        shares = needed_shares(asked.floors, LeftOut(positive, weight, groups))
        control = Control(asked.method, asked.floors, shares)
    table = _prepare(spec, rows.matrix, codes, weight, groups, names, levels)
    task = Task(spec.candidates, rows.given, y, classes, weight, table.entropy)
    of_trees = groups is None and len(task.candidates) == 1 and is_forest(task.candidates[0])
    if spec.is_frozen:
        classifiers, scores, seen = *_frozen(spec, task, table.counts), np.zeros_like(table.counts)
    else:
        if of_trees:
            classifiers, scores, counts = _forest(spec, task)
        else:
            classifiers, scores = _train(spec, task, table.counts, codes)
            counts = table.counts[: len(classifiers)]
        table = replace(table, counts=counts)
        seen = counts
    prepared = {
        "estimators_": classifiers,
        "candidates_": task.candidates,
        "drawn_counts_": table.counts if of_trees else None,
        "center_": table.center,
        "scale_": table.scale,
        "views_": arrays_of(table.kernel),
        "entropy_": table.entropy,
        "n_drawn_": None,
        "n_redrawn_": table.redrawn,
        "groups_": groups,
        "device_": str(table.device),
        "versions_": versions(),
    }
    if len(classes) > 2:
        _, inside = labels_of_pairs(codes)
        pairs = zip(class_pairs(len(classes)), inside, strict=True)
        trained = (
            TrainedClassifiers.of(scores, seen, codes == pair[1], weight * own, pair)
            for pair, own in pairs
        )
        found, of_pairs = couple_pairs(
            spec.calibration, table, trained, prepared, codes, weight, floors
        )
    else:
        ensemble = TrainedClassifiers.of(scores, seen, positive, weight, (0, 1))
        found = prepared | learn_out_of_bag(
            spec.calibration, table, ensemble, positive, weight, control
        )
        found |= {"shared_draws_": None, "oob_class_scores_": None, "class_offsets_": None}
        of_pairs = []
    remarks += remarks_of_clusters(found)
    return {"classes_": classes, "remarks_": remarks, **found}, of_pairs


def _prepare(
    spec: ClassifierSpec,
    X: Floats,
    codes: NDArray[np.intp],
    weight: Floats,
    groups: Groups | None,
    names: Sequence[str] | None,
    levels: Sequence[slice],
) -> Prepared:
    """The table as the posterior sees it, and the bootstrap samples."""
    center, scale = center_and_scale(X, weight, names)
    for place in levels:
        scale[place] = scale_of_levels(center[place])
    rows = (X - center) / scale
    kernel: KernelFunction = Linear()
    if not spec.is_frozen:
        large = is_large(int(np.count_nonzero(weight)))
        kernel = view_kernels(rows, weight, codes if large else None)
    entropy = draw_entropy(check_random_state(spec.random_state))
    replicates = range(spec.n_bootstraps)
    counts, redrawn = bootstrap_counts(codes, weight, replicates, entropy, None, groups)
    return Prepared(
        rows=rows,
        unmapped=rows,
        center=center,
        scale=scale,
        replicate_scale=np.ones_like(scale),
        kernel=kernel,
        candidates=kernel,
        C=np.ones(1),
        counts=counts,
        redrawn=redrawn,
        entropy=entropy,
        drawn=None,
        groups=groups,
        feature_map=None,
        feature_map_error=None,
        device=resolve_device("auto"),
    )


def _train(
    spec: ClassifierSpec,
    task: Task,
    counts: NDArray[np.unsignedinteger[Any]],
    codes: NDArray[np.intp],
) -> tuple[list[list[Any]], Floats]:
    """Classifiers of the first replicates, as many as are needed, and their out-of-bag scores.

    Scores are 0 in bag, shape (n, R, B, 1) or (n, R, B, K).
    """
    K, started = len(task.classes), perf_counter()
    most, classifiers = len(counts), list[list[Any]]()
    scores = np.zeros((counts.shape[1], len(task.candidates), most, 1 if K == 2 else K))
    spent, enough = False, min(_FIRST, most)
    with progress_bar(spec.name, most, shown=spec.verbose > 0) as advance:
        while len(classifiers) < enough and not spent:
            first = len(classifiers)
            with closing(task.train(counts[first:enough], first, spec.n_jobs)) as trained:
                for replicate in trained:
                    scores[replicate.left_out, :, len(classifiers)] = replicate.scores
                    classifiers.append(replicate.classifiers)
                    advance(1)
                    elapsed = perf_counter() - started
                    spent = spec.time_budget is not None and elapsed > spec.time_budget
                    if spent and len(classifiers) > 1:
                        break
            done = len(classifiers)
            error = monte_carlo_error(scores[:, :, :done], counts[:done], codes, task.weight)
            if error > spec.tolerance:
                needed = done * (error / spec.tolerance) ** 2 if spec.tolerance else np.inf
                enough = int(min(most, max(np.ceil(needed), done + 1)))
    if spent and done < min(_FEW, most):
        warnings.warn(
            f"{done} bootstrap samples of {spec.name} took {elapsed:.3g} s, and time_budget is "
            f"{spec.time_budget:.3g}: so few say little of what is not known. Some {most} would "
            f"take {elapsed / done * most:.3g} s.",
            stacklevel=6,
        )
    return classifiers, scores[:, :, :done]


def _forest(
    spec: ClassifierSpec, task: Task
) -> tuple[list[list[Any]], Floats, NDArray[np.unsignedinteger[Any]]]:
    """The trees of a forest, and what each says of the rows that it has not seen."""
    forest = task.fitted_to_all(spec.n_jobs)
    counts = counts_of_trees(forest, len(task.y))
    scores = scores_of_trees(forest.estimators_, task.X)
    scores[(counts > 0).T] = 0.0
    return [[tree] for tree in forest.estimators_], scores[:, None], counts


def _frozen(
    spec: ClassifierSpec, task: Task, counts: NDArray[np.unsignedinteger[Any]]
) -> tuple[list[list[Any]], Floats]:
    """A classifier that has seen none of the rows, and what it says of all in every replicate."""
    check_is_fitted(spec.estimator)
    task.check_classes(spec.estimator)
    scores = class_scores(spec.estimator, task.X, len(task.classes), task.least)
    shape = (counts.shape[1], 1, len(counts), scores.shape[1])
    return [[spec.estimator]], np.broadcast_to(scores[:, None, None], shape)
