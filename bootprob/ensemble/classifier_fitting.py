"""From a table and the parameters of a `BootstrapClassifier` to its fitted attributes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bootprob.calibration.coupling import class_pairs
from bootprob.encoding.frames import as_frame
from bootprob.ensemble.bases.kept_replicates import checksum_of_rows
from bootprob.ensemble.bases.replicates import Task
from bootprob.ensemble.bases.trained_classifiers import TrainedClassifiers
from bootprob.ensemble.bases.training import ClassifierSpec, train
from bootprob.ensemble.control.class_rates import ClassFloor, class_rates_asked, class_shares
from bootprob.ensemble.control.decisions import Control, needed_of_all, rates_asked
from bootprob.ensemble.control.thresholds import LeftOut
from bootprob.ensemble.kernels import arrays_of
from bootprob.ensemble.machines_beside import ReadyMachines, told_apart, with_machines
from bootprob.ensemble.noticed import called_columns, remarks_before, remarks_of_clusters
from bootprob.ensemble.out_of_bag_learning import learn_out_of_bag
from bootprob.ensemble.pairs import couple_pairs, labels_of_pairs
from bootprob.ensemble.scoring.table_rows import TableRows
from bootprob.ensemble.training.checkpoints import Checkpoint
from bootprob.ensemble.training.preparation import Prepared, versions
from bootprob.preparation.bootstrap import bootstrap_counts, draw_entropy
from bootprob.preparation.labels import encode_classes, refuse_single_groups, refuse_single_rows
from bootprob.preparation.large_tables import is_large
from bootprob.preparation.standardization import MANY_LEVELS, center_and_scale, scale_of_levels
from bootprob.preparation.time_blocks import block_length, time_blocks
from bootprob.preparation.views import view_kernels
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, checked_groups
from bootprob_gpu import resolve_device
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.linear import Linear
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["learn_classifiers"]


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
    called: Sequence[Any] | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train the classifiers, weight the grid and calibrate it; of several classes, every pair.

    Parameters are those of `bootprob.ensemble.fitting.ready`, and the result is that of what it
    returns, `ReadyFit.learn`.
    """
    classes, codes = encode_classes(y, weight, called)
    said = classes.tolist() if called is None else called
    refuse_single_rows(codes, weight, said)
    spoken = spec.calibration.calibration
    asked, floors = Control(), tuple[ClassFloor, ...]()
    if len(classes) > 2:
        floors = class_rates_asked(spec.control, spoken, classes, called)
    else:
        asked = rates_asked(spec.control, spoken)
    if ranks is not None:
        groups = checked_groups(time_blocks(ranks, block_length(ranks, codes)), len(rows))
    if groups is not None and not spec.is_frozen:
        refuse_single_groups(codes, weight, said, groups, in_time=ranks is not None)
    told_as = called_columns(rows.matrix.shape[1], names, columns)
    remarks = remarks_before(
        ViewKernels.name, rows.matrix, codes, weight, groups, told_as, ranks, set(map(repr, dates))
    )
    levels = [each for each in (columns or {}).values() if each.stop - each.start > MANY_LEVELS]
    positive = codes == 1
    if len(classes) > 2:  # before anything is trained
        class_shares(floors, codes, weight, groups)
        control = Control()
    else:
        shares = needed_of_all(asked.floors, LeftOut(positive, weight, groups))
        control = Control(asked.method, asked.floors, shares)
    checkpoint, random_state = None, spec.random_state
    if spec.checkpoint is not None:
        checkpoint = Checkpoint(spec.checkpoint, {"rows": checksum_of_rows(rows.given)})
        random_state = checkpoint.random_state(random_state)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    started = perf_counter()
    table = _prepare(spec, seed, rows.matrix, codes, weight, groups, names, levels)
    budget = spec.time_budget
    others, machines = told_apart(spec.candidates, len(rows), budget)
    task = Task(others, rows.given, y, classes, weight, table.entropy)
    waiting = [
        ReadyMachines.of(each, rows.matrix, y, weight, groups, spec.n_bootstraps, seed)
        for each in machines
    ]
    measured = [] if budget is None else [each.seconds_a_sample(budget) for each in waiting]
    trained = train(spec, task, table, codes, checkpoint, started, more=sum(measured))
    beside = [each.trained(trained.counts) for each in waiting]
    table = replace(table, counts=trained.counts)
    seen = np.zeros_like(table.counts) if spec.is_frozen else table.counts
    prepared = {
        "estimators_": trained.classifiers,
        "machines_": beside,
        "candidates_": [*others, *machines],
        "frame_columns_": _columns_of(rows.given),
        "drawn_counts_": table.counts if trained.are_trees else None,
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
        of_each = (
            TrainedClassifiers.of(
                with_machines(trained, beside, pair, rows.matrix),
                seen,
                codes == pair[1],
                weight * own,
            )
            for pair, own in pairs
        )
        found, of_pairs = couple_pairs(
            spec.calibration, table, of_each, prepared, codes, weight, floors
        )
    else:
        scores = with_machines(trained, beside, (0, 1), rows.matrix)
        ensemble = TrainedClassifiers.of(scores, seen, positive, weight)
        found = prepared | learn_out_of_bag(
            spec.calibration, table, ensemble, positive, weight, control
        )
        found |= {"shared_draws_": None, "oob_class_scores_": None, "class_offsets_": None}
        of_pairs = []
    remarks += remarks_of_clusters(found)
    return {"classes_": classes, "remarks_": remarks, **found}, of_pairs


def _columns_of(given: Any) -> list[dict[str, Any]] | None:
    """What the columns of a data frame are like; None of a matrix."""
    frame = as_frame(given)
    if frame is None:
        return None
    from bootprob.encoding.given_columns import GivenColumns

    return list(map(dict, GivenColumns.of(frame).columns))


def _prepare(
    spec: ClassifierSpec,
    seed: int,
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
    entropy = draw_entropy(np.random.RandomState(seed))
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
        few_columns=None,
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
