"""Ensembles of all pairs of several classes, trained in one batch on shared bootstrap samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from bootprob.calibration.coupling import class_pairs, number_of_classes
from bootprob.calibration.logits import CLOSEST
from bootprob.ensemble.control.class_rates import (
    ClassFloor,
    class_offsets,
    class_rates_reached,
    class_shares,
)
from bootprob.ensemble.out_of_bag_learning import Ensemble, learn_out_of_bag
from bootprob.ensemble.several_classes import couple_known, lack_of_fit_of_pairs
from bootprob.ensemble.specs import CalibrationSpec, FitSpec
from bootprob.ensemble.state import declared
from bootprob.ensemble.training.checkpoints import Checkpoint
from bootprob.ensemble.training.preparation import Prepared
from bootprob.ensemble.training.schedule import train_ensembles
from bootprob.ensemble.training.shards import Draws, Recipe, Work
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

__all__ = [
    "couple_pairs",
    "labels_of_pairs",
    "learn_pairs",
    "least_scores",
    "shared_draws",
    "work_of_pairs",
]


# Attributes of a row each; X_fit_ goes with bootstrap_dual_coef_.
_OF_ROWS = [
    name
    for name, each in declared().items()
    if each.form is not None
    and each.form.shapes[0][0] == "n"
    and each.only != "several"
    and name not in ("X_fit_", "groups_")
]


def learn_pairs(
    spec: FitSpec,
    table: Prepared,
    work: Work,
    codes: NDArray[np.intp],
    weight: Floats,
    checkpoint: Checkpoint | None,
    floors: Sequence[ClassFloor] = (),
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train, calibrate and couple the ensembles of all pairs of classes.

    Parameters
    ----------
    spec : FitSpec
    table : Prepared
        All rows and the bootstrap samples.
    work : Work
        The machines, `work_of_pairs`.
    codes : ndarray of int, shape (n,)
        Classes, numbered from 0.
    weight : ndarray, shape (n,)
        Row weights for calibration.
    checkpoint : Checkpoint or None
        Where finished shards are kept.
    floors : sequence of ClassFloor, optional
        Rates of classes that must hold.

    Returns
    -------
    learnt : dict
        Attributes of the fit of several classes, but for the estimators of pairs.
    pairs : list of dict
        Attributes of each pair, fitted to its rows as the classes 0 and 1, in the order of
        `class_pairs`.
    """
    if floors and spec.calibration.calibration == "auto":  # steps share probabilities
        spec = replace(spec, calibration=replace(spec.calibration, calibration="sigmoid"))
    description = f"{spec.preparation.kernel} SVMs of {len(work.weight)} pairs"
    trained = train_ensembles(work, table.device, spec.schedule, checkpoint, description)
    with closing(trained):
        prepared = table.attributes(work.problem)
        learnt, of_pairs = couple_pairs(
            spec.calibration, table, trained, prepared, codes, weight, floors
        )
    for each in of_pairs:
        each["control_gap_"] = None
    dual = of_pairs[0]["bootstrap_dual_coef_"] is not None
    return learnt | {"X_fit_": table.rows if dual else None}, of_pairs


def work_of_pairs(
    table: Prepared,
    codes: NDArray[np.intp],
    weight: Floats,
    training_weight: Floats,
    recipe: Recipe,
    draws: Draws,
) -> Work:
    """All replicates of all pairs of classes, in one batch of the engine.

    Replicate b of every pair is the same bootstrap sample of the whole table, less the rows of
    other classes; these are scored all the same, so every row has out-of-bag scores by every pair.
    """
    labels, inside = labels_of_pairs(codes)
    counts = np.concatenate([table.counts * rows for rows in inside])
    problem = table.problem(np.repeat(labels, len(table.counts), axis=0), counts, training_weight)
    return Work(problem, table.counts, weight * inside, recipe, draws, inside)


def couple_pairs(
    spec: CalibrationSpec,
    table: Prepared,
    trained: Iterable[Ensemble],
    prepared: Mapping[str, Any],
    codes: NDArray[np.intp],
    weight: Floats,
    floors: Sequence[ClassFloor] = (),
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Calibrate the ensembles of all pairs of classes, and couple them.

    Parameters
    ----------
    spec : CalibrationSpec
    table : Prepared
        All rows and the bootstrap samples.
    trained : iterable of Ensemble
        Of each pair, in the order of `class_pairs`; each is let go before the next is asked for.
    prepared : mapping
        Attributes that all pairs share.
    codes, weight, floors
        As for `learn_pairs`.

    Returns
    -------
    learnt, pairs
        As of `learn_pairs`.
    """
    pairs, (_, inside) = class_pairs(int(codes.max()) + 1), labels_of_pairs(codes)
    learnt: list[dict[str, Any]] = []
    proba, votes, scores = [], [], []
    for (_, j), own, ensemble in zip(pairs, inside, trained, strict=True):
        found = learn_out_of_bag(spec, table, ensemble, codes == j, weight * own, own=own)
        proba.append(found["oob_proba_"][:, 1])
        votes.append(found["oob_vote_proba_"][:, 1])
        scores.append(found["oob_model_scores_"].mean(axis=1))
        learnt.append(
            _of_own_rows(found, own)
            | {
                "classes_": np.array([0, 1]),
                **prepared,
                "oob_class_scores_": None,
                "class_offsets_": None,
                "groups_": None if table.groups is None else table.groups[own],
                "shared_draws_": shared_draws(codes, weight, own, table.groups),
            }
        )
    coupling = spec.coupling
    oob_proba = couple_known(np.stack(proba, axis=1), coupling)
    logits = logit(oob_proba.clip(CLOSEST, 1 - CLOSEST))
    offsets, reached = _control(floors, logits, codes, weight, table.groups)
    return {
        **prepared,
        "shared_draws_": None,
        "y_": codes.astype(np.int64),
        "sample_weight_": weight,
        "oob_counts_": ensemble.n_out_of_bag,
        "oob_proba_": oob_proba,
        "oob_vote_proba_": couple_known(np.stack(votes, axis=1), coupling),
        "oob_decision_function_": logits if offsets is None else logits + offsets,
        "class_offsets_": offsets,
        "oob_class_scores_": least_scores(np.stack(scores, axis=1)),
        "controlled_rates_": reached,
        "lack_of_fit_": lack_of_fit_of_pairs([each["lack_of_fit_"] for each in learnt]),
    }, learnt


def _control(
    floors: Sequence[ClassFloor],
    logits: Floats,
    codes: NDArray[np.intp],
    weight: Floats,
    groups: Groups | None,
) -> tuple[Floats | None, list[dict[str, Any]]]:
    """Offsets of the classes (K,) with which rates hold out of bag, and what they reach."""
    if not floors:
        return None, []
    # A row that was never left out promises nothing.
    weight = np.where(np.isfinite(logits).all(axis=1), weight, 0.0)
    shares = class_shares(floors, codes, weight, groups)
    offsets = class_offsets(logits, codes, weight, floors, shares)
    decided = (logits + offsets).argmax(axis=1)
    return offsets, class_rates_reached(floors, decided, codes, weight, shares)


def labels_of_pairs(codes: NDArray[np.intp]) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """Labels −1 and +1 of all rows for each pair of classes, and its own rows; (P, n) each.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Classes, numbered from 0.
    """
    pairs = class_pairs(int(codes.max()) + 1)
    labels = np.stack([np.where(codes == j, 1, -1).astype(np.int8) for _, j in pairs])
    return labels, np.stack([np.isin(codes, pair) for pair in pairs])


def least_scores(of_pairs: Floats) -> Floats:
    """How well each class fits a row: the least of its scores against each other class, (m, K).

    Parameters
    ----------
    of_pairs : ndarray, shape (m, K (K − 1) / 2)
        For the second class of each pair of `class_pairs`.
    """
    K = number_of_classes(of_pairs.shape[1])
    least = np.full((len(of_pairs), K), np.inf)
    for (first, second), scores in zip(class_pairs(K), of_pairs.T, strict=True):
        least[:, second] = np.minimum(least[:, second], scores)
        least[:, first] = np.minimum(least[:, first], -scores)
    return least


def shared_draws(
    codes: NDArray[np.integer[Any]],
    weight: Floats,
    own: NDArray[np.bool_],
    groups: Groups | None,
) -> dict[str, NDArray[Any]]:
    """What the bootstrap samples of a pair are drawn from: those of the whole table."""
    found = {"classes": codes, "weight": weight, "rows": np.flatnonzero(own)}
    return found if groups is None else found | {"groups": groups}


def _of_own_rows(found: dict[str, Any], own: NDArray[np.bool_]) -> dict[str, Any]:
    """Attributes without the rows of other classes, whose dual coefficients are 0."""
    kept = {**found}
    for name in _OF_ROWS:
        if found[name] is not None:
            kept[name] = found[name][own]
    kept["sampled_rows_"] = np.searchsorted(np.flatnonzero(own), found["sampled_rows_"])
    if (support := found["kernel_posterior_"].get("support")) is not None:
        among_own = np.searchsorted(np.flatnonzero(own), support)
        kept["kernel_posterior_"] = found["kernel_posterior_"] | {"support": among_own}
    if (dual_coef := found.get("bootstrap_dual_coef_")) is not None:
        kept["bootstrap_dual_coef_"] = np.ascontiguousarray(dual_coef[..., own])
        kept["X_fit_"] = found["X_fit_"][own]
    return kept
