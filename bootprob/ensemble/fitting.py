"""From a table and the parameters of a `BootstrapSVC` to its fitted attributes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
from bootprob.ensemble.pairs import labels_of_pairs, learn_pairs, work_of_pairs
from bootprob.ensemble.specs import FitSpec
from bootprob.ensemble.training.checkpoints import Checkpoint, checksum
from bootprob.ensemble.training.pilot import choose_kernels
from bootprob.ensemble.training.preparation import Prepared, prepare
from bootprob.ensemble.training.schedule import train_ensembles
from bootprob.ensemble.training.shards import Draws, Recipe, Work
from bootprob.preparation.bootstrap import bootstrap_counts
from bootprob.preparation.effort import EFFORTS
from bootprob.preparation.labels import (
    encode_classes,
    of_mean_one,
    refuse_far_weights,
    refuse_single_groups,
    refuse_single_rows,
    weigh_classes,
)
from bootprob.preparation.standardization import MANY_LEVELS
from bootprob.preparation.time_blocks import block_length, time_blocks
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, checked_groups
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["ReadyFit", "ready"]

_TOL_OF_MIXTURES = 1e-4  # moves no probability by more than that


@dataclass(frozen=True)
class ReadyFit:
    """All that is known before the machines are trained: kernels are chosen and samples drawn.

    Attributes
    ----------
    spec : FitSpec
    table : Prepared
    classes : ndarray, shape (K,)
    codes : ndarray of int, shape (n,)
        Classes of the rows, numbered from 0.
    weight, training_weight : ndarray, shape (n,)
        Row weights for calibration, and for training.
    control : Control
        Of two classes.
    floors : tuple of ClassFloor
        Of several.
    grid : ndarray
        Of C, before a pilot chose among it.
    remarks : list of str
        What was noticed so far.
    checkpoint : Checkpoint or None
    """

    spec: FitSpec
    table: Prepared
    classes: NDArray[Any]
    codes: NDArray[np.intp]
    weight: Floats
    training_weight: Floats
    control: Control
    floors: tuple[ClassFloor, ...]
    grid: Floats
    remarks: list[str]
    checkpoint: Checkpoint | None

    def first(self, n_bootstraps: int) -> ReadyFit:
        """The same of the first bootstrap samples alone."""
        table = self.table
        counts, redrawn = bootstrap_counts(
            self.codes, self.weight, range(n_bootstraps), table.entropy, table.drawn, table.groups
        )
        scale = table.replicate_scale
        scale = scale if scale.ndim == 1 else scale[:n_bootstraps]
        return replace(
            self, table=replace(table, counts=counts, redrawn=redrawn, replicate_scale=scale)
        )

    @property
    def work(self) -> Work:
        """All machines; of several classes those of every pair."""
        spec, table, schedule = self.spec, self.table, self.spec.schedule
        draws = Draws(self.codes, self.weight, table.entropy, table.drawn, table.groups)
        recipe = Recipe(schedule.tol, schedule.dtype, schedule.memory_limit)
        if len(self.classes) > 2:
            return work_of_pairs(
                table, self.codes, self.weight, self.training_weight, recipe, draws
            )
        control = self.control
        recipe = replace(
            recipe,
            floors=control.floors if control.method == "constrained" else (),
            shares=control.shares,
            exact=spec.control.control_method == "exact",
            time_limit=spec.control.time_limit,
        )
        labels = np.where(self.codes == 1, 1, -1)
        problem = table.problem(labels, table.counts, self.training_weight)
        return Work(problem, table.counts, self.weight[None], recipe, draws)

    def learn(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Train the machines, weight their models and calibrate them; of several classes each pair.

        Returns
        -------
        learnt : dict
            All attributes of the fit but the time it took and the estimators of pairs.
        pairs : list of dict
            The same of each pair of several classes.
        """
        spec, table, work = self.spec, self.table, self.work
        codes, weight = self.codes, self.weight
        if len(self.classes) > 2:
            found, pairs = learn_pairs(
                spec, table, work, codes, weight, self.checkpoint, self.floors
            )
            mean = np.mean([_of_machines(pair) for pair in pairs], axis=0)
            edges = remarks_of_edges(found, mean, self.grid, table.likely_C)
            noticed = [*remarks_of_clusters(found), *edges]
            return {"classes_": self.classes, "remarks_": self.remarks + noticed, **found}, pairs
        description = f"{spec.preparation.kernel} SVMs"
        [ensemble] = train_ensembles(
            work, table.device, spec.schedule, self.checkpoint, description
        )
        found = learn_out_of_bag(
            spec.calibration, table, ensemble, codes == 1, weight, self.control
        )
        attributes = table.attributes(work.problem)
        noticed = [
            *remarks_of_clusters(found),
            *remarks_of_edges(attributes, _of_machines(found), self.grid, table.likely_C),
        ]
        return {
            "classes_": self.classes,
            "remarks_": self.remarks + noticed,
            **attributes,
            **found,
            "control_gap_": ensemble.control_gap,
            "shared_draws_": None,
            "oob_class_scores_": None,
            "class_offsets_": None,
        }, []


def _of_machines(learnt: Mapping[str, Any]) -> Floats:
    """Their weights beside that of the posterior."""
    return (1 - (learnt["posterior_share_"] or 0.0)) * learnt["weights_"]


def ready(
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
) -> ReadyFit:
    """Prepare the rows, draw the bootstrap samples and choose the kernels.

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
    ReadyFit

    Raises
    ------
    ValueError
        As `BootstrapSVC.fit` says.
    """
    classes, codes = encode_classes(y, weight, called)
    kernel = spec.preparation.kernel
    if kernel == ViewKernels.name:
        refuse_far_weights(weight)
    said = classes.tolist() if called is None else called
    refuse_single_rows(codes, weight, said)
    several = len(classes) > 2
    asked, floors = Control(), tuple[ClassFloor, ...]()
    if several:
        floors = class_rates_asked(spec.control, spec.calibration.calibration, classes, called)
    else:
        asked = rates_asked(spec.control, spec.calibration.calibration)
    if ranks is not None:
        groups = checked_groups(time_blocks(ranks, block_length(ranks, codes)), len(X))
    if groups is not None:
        refuse_single_groups(codes, weight, said, groups, in_time=ranks is not None)
    told_as = called_columns(X.shape[1], names, columns)
    remarks = remarks_before(
        kernel, X, codes, weight, groups, told_as, ranks, set(map(repr, dates))
    )
    weight, training_weight = weigh_classes(spec.class_weight, classes, y, weight)
    if kernel == ViewKernels.name:  # whose values of C suit rows of weight 1
        training_weight = of_mean_one(training_weight)
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
    control = Control()
    if several:
        class_shares(floors, codes, weight, groups)  # before anything is trained
        labels, inside = labels_of_pairs(codes)
    else:
        shares = needed_of_all(asked.floors, LeftOut(codes == 1, weight, groups))
        control = Control(asked.method, asked.floors, shares)
        if spec.control.control_method == "exact":
            from bootprob.ensemble.training.proven import choose_solver  # needs the extra "mip"

            choose_solver()
        labels, inside = np.where(codes == 1, 1, -1)[None], np.ones((1, len(X)), dtype=bool)
    table = prepare(
        prepared, X, codes, weight, groups=groups, names=names, levels=levels, checkpoint=checkpoint
    )
    spec, grid = _with_tol(spec, table), table.C
    table = choose_kernels(table, effort, spec.schedule, labels, inside, weight, training_weight)
    return ReadyFit(
        spec, table, classes, codes, weight, training_weight,
        control, floors, grid, remarks, checkpoint,
    )  # fmt: skip


def _with_tol(spec: FitSpec, table: Prepared) -> FitSpec:
    """The same, with the precision that machines of a mixture of kernels need."""
    if spec.schedule.tol is not None or not isinstance(table.kernel, ViewKernels):
        return spec
    return replace(spec, schedule=replace(spec.schedule, tol=_TOL_OF_MIXTURES))
