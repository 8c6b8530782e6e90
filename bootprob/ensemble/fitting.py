"""From a table and the parameters of a `BootstrapSVC` to its fitted attributes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.ensemble.control.class_rates import ClassFloor, class_rates_asked, class_shares
from bootprob.ensemble.control.decisions import Control, needed_of_all, rates_asked
from bootprob.ensemble.control.thresholds import LeftOut
from bootprob.ensemble.noticed import (
    called_columns,
    remarks_before,
    remarks_of_clusters,
    remarks_of_edges,
)
from bootprob.ensemble.out_of_bag_learning import learn_out_of_bag
from bootprob.ensemble.pairs import labels_of_pairs, learn_pairs
from bootprob.ensemble.specs import FitSpec
from bootprob.ensemble.training.checkpoints import Checkpoint, checksum
from bootprob.ensemble.training.pilot import choose_kernels
from bootprob.ensemble.training.preparation import Prepared, prepare
from bootprob.ensemble.training.schedule import train_ensembles
from bootprob.ensemble.training.shards import Draws, Recipe, Work
from bootprob.preparation.effort import EFFORTS
from bootprob.preparation.labels import encode_classes, weigh_classes
from bootprob.preparation.standardization import MANY_LEVELS
from bootprob.preparation.time_blocks import block_length, time_blocks
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, checked_groups
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["learn"]

_TOL_OF_MIXTURES = 1e-4  # moves no probability by more than that


def learn(
    spec: FitSpec,
    X: Floats,
    y: NDArray[Any],
    weight: Floats,
    groups: Groups | None = None,
    names: Sequence[str] | None = None,
    columns: Mapping[str, slice] | None = None,
    ranks: NDArray[np.int64] | None = None,
    dates: Collection[str] = (),
    called: Sequence[Any] | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train the ensemble, weight its models and calibrate it; of several classes, every pair's.

    Parameters
    ----------
    spec : FitSpec
    X : ndarray, shape (n, p)
        Training rows.
    y : ndarray, shape (n,)
        Labels.
    weight : ndarray, shape (n,)
        Row weights.
    groups : ndarray of int, shape (n,), optional
        Of rows that belong together, numbered from 0.
    names : sequence of str, optional
        Of the columns, for warnings.
    columns : mapping of str to slice, optional
        Columns of the table that the rows were made of, each with its columns of X; by default
        those of X.
    ranks : ndarray of int, shape (n,), optional
        Which instant each row is from: blocks of neighbours in time are then the groups.
    dates : collection of str, optional
        Columns of the table that hold days.
    called : sequence, optional
        What errors call the classes, sorted; by default as they are in `y`.

    Returns
    -------
    learnt : dict
        All attributes of the fit but the time it took and the estimators of pairs.
    pairs : list of dict
        The same of each pair of several classes.

    Raises
    ------
    ValueError
        As `BootstrapSVC.fit` says.
    """
    classes, codes = encode_classes(y, weight, called)
    asked = Control()
    floors: tuple[ClassFloor, ...] = ()
    if len(classes) > 2:
        floors = class_rates_asked(spec.control, spec.calibration.calibration, classes, called)
    else:
        asked = rates_asked(spec.control, spec.calibration.calibration)
    if ranks is not None:
        groups = checked_groups(time_blocks(ranks, block_length(ranks, codes)), len(X))
    told_as = called_columns(X.shape[1], names, columns)
    kernel = spec.preparation.kernel
    remarks = remarks_before(
        kernel, X, codes, weight, groups, told_as, ranks, set(map(repr, dates))
    )
    weight, training_weight = weigh_classes(spec.class_weight, classes, y, weight)
    levels = [each for each in (columns or {}).values() if each.stop - each.start > MANY_LEVELS]
    if spec.calibration.calibration is None:  # the papers scale every dummy
        levels = []
    checkpoint, prepared, effort = None, spec.preparation, EFFORTS[spec.preparation.effort]
    if spec.schedule.checkpoint is not None:
        preparation = f"{prepared.standardize} {prepared.feature_map} {prepared.n_components}"
        if prepared.kernel == ViewKernels.name:
            preparation += f" {prepared.effort}"
        if levels:
            preparation += f" {levels}"
        known = {"rows": checksum(X), "preparation": preparation}
        checkpoint = Checkpoint(spec.schedule.checkpoint, known)
    if len(classes) > 2:
        class_shares(floors, codes, weight, groups)  # before anything is trained
        table = prepare(
            prepared, X, codes, weight,
            groups=groups, names=names, levels=levels, checkpoint=checkpoint,
        )  # fmt: skip
        spec, grid = _with_tol(spec, table), table.C
        labels, inside = labels_of_pairs(codes)
        table = choose_kernels(
            table, effort, spec.schedule, labels, inside, weight, training_weight
        )
        found, pairs = learn_pairs(spec, table, codes, weight, training_weight, checkpoint, floors)
        mean = np.mean([pair["weights_"] for pair in pairs], axis=0)
        remarks += [*remarks_of_clusters(found), *remarks_of_edges(found, mean, grid)]
        return {"classes_": classes, "remarks_": remarks, **found}, pairs
    positive = codes == 1
    shares = needed_of_all(asked.floors, LeftOut(positive, weight, groups))
    control = Control(asked.method, asked.floors, shares)
    exact = spec.control.control_method == "exact"
    if exact:
        from bootprob.ensemble.training.proven import choose_solver  # needs the extra "mip"

        choose_solver()
    table = prepare(
        prepared, X, codes, weight, groups=groups, names=names, levels=levels, checkpoint=checkpoint
    )
    spec, grid = _with_tol(spec, table), table.C
    labels, every = np.where(positive, 1, -1), np.ones((1, len(X)), dtype=bool)
    table = choose_kernels(
        table, effort, spec.schedule, labels[None], every, weight, training_weight
    )
    problem = table.problem(labels, table.counts, training_weight)
    recipe = Recipe(
        spec.schedule.tol,
        spec.schedule.dtype,
        spec.schedule.memory_limit,
        control.floors if control.method == "constrained" else (),
        control.shares,
        exact,
        spec.control.time_limit,
    )
    draws = Draws(codes, weight, table.entropy, table.drawn, groups)
    work = Work(problem, table.counts, weight[None], recipe, draws)
    description = f"{prepared.kernel} SVMs"
    [ensemble] = train_ensembles(work, table.device, spec.schedule, checkpoint, description)
    found = learn_out_of_bag(spec.calibration, table, ensemble, positive, weight, control)
    attributes = table.attributes(problem)
    remarks += [*remarks_of_clusters(found), *remarks_of_edges(attributes, found["weights_"], grid)]
    return {
        "classes_": classes,
        "remarks_": remarks,
        **attributes,
        **found,
        "control_gap_": ensemble.control_gap,
        "shared_draws_": None,
        "oob_class_scores_": None,
        "class_offsets_": None,
    }, []


def _with_tol(spec: FitSpec, table: Prepared) -> FitSpec:
    """The same, with the precision that machines of a mixture of kernels need."""
    if spec.schedule.tol is not None or not isinstance(table.kernel, ViewKernels):
        return spec
    return replace(spec, schedule=replace(spec.schedule, tol=_TOL_OF_MIXTURES))
