"""Where an ensemble under control decides, thesis 3.2.2: what is asked for and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from bootprob.ensemble.control.predictive_values import (
    Chosen,
    is_predictive,
    most_needed,
    threshold_of_all,
)
from bootprob.ensemble.control.thresholds import LeftOut, needed_shares, score_threshold
from bootprob.ensemble.control.undecided_rows import thresholds_of_all
from bootprob.ensemble.control.vote_thresholds import oob_votes, vote_thresholds
from bootprob.ensemble.scoring.out_of_bag import OutOfBagScores, WeighedReplicates
from bootprob.ensemble.specs import ControlSpec
from bootprob.exceptions import DataError, UnattainableRateError
from bootprob.metrics.rates import OF_TWO_CLASSES, RateFloor, rate_floors
from bootprob.runtime.arrays import Floats

__all__ = [
    "Control",
    "Controlled",
    "check_control",
    "choose_thresholds",
    "control_ensemble",
    "needed_of_all",
    "rates_asked",
    "rates_reached",
]


@dataclass(frozen=True)
class Control:
    """Rates that must hold.

    Attributes
    ----------
    method : {"threshold", "constrained"} or None
        None where nothing is controlled.
    floors : tuple of RateFloor
        On some of "tpr", "tnr", "ppv", "npv" and "decided".
    shares : dict of str to float
        What `needed_of_all` returned for all rows.
    """

    method: str | None = None
    floors: tuple[RateFloor, ...] = ()
    shares: dict[str, float] = field(default_factory=dict)


def check_control(spec: ControlSpec, calibration: str | None, example: Mapping[Any, float]) -> None:
    """Check that what is asked of control goes together, whatever the rates are called.

    Parameters
    ----------
    spec : ControlSpec
    calibration : str or None
        As in `BootstrapSVC`.
    example : mapping
        Rates that could be asked for, for messages.

    Raises
    ------
    DataError
        For options that do not go together.
    """
    control, rates, confidence = spec.control, spec.rates, spec.confidence
    rate_floors(None, confidence, spec.bound)
    if rates is not None and not isinstance(rates, Mapping):
        raise DataError(f"rates is {rates!r}; give a dict such as {dict(example)!r}.")
    if spec.control_method == "exact" and control != "constrained":
        raise DataError(
            f"control_method is 'exact', but control is {control!r}; only control='constrained' "
            "has anything to solve."
        )
    if control is None:
        if rates or confidence is not None:
            raise DataError(
                f"rates is {rates!r} and confidence is {confidence!r}, but control is None; give "
                "control='threshold' (or 'constrained', of a BootstrapSVC), or leave them out."
            )
        return
    if not rates:
        raise DataError(
            f"control is {control!r}, but rates is {rates!r}; give the rates that must hold, such "
            f"as rates={dict(example)!r}."
        )
    if calibration not in (None, "sigmoid", "auto"):
        raise DataError(
            f"calibration is {calibration!r}, in which several scores can share one probability, "
            "so that no threshold on it need keep a rate; give calibration='sigmoid' ('auto' takes "
            "it too), or None for vote shares."
        )


def rates_asked(spec: ControlSpec, calibration: str | None) -> Control:
    """Check what a `BootstrapSVC` is asked to control.

    Parameters
    ----------
    spec : ControlSpec
    calibration : str or None
        As there.

    Returns
    -------
    Control
        Without shares, which depend on the rows.

    Raises
    ------
    DataError
        For options that do not go together.
    """
    check_control(spec, calibration, example={"tpr": 0.95})
    if isinstance(spec.rates, Mapping) and "accuracy" in spec.rates:
        raise DataError(
            "rates has 'accuracy', which an ensemble does not control; give 'tpr', 'tnr', 'ppv' or "
            "'npv' (ConstrainedSVC takes it)."
        )
    floors = rate_floors(spec.rates, spec.confidence, spec.bound, OF_TWO_CLASSES)
    if spec.control is None:
        return Control()
    if [floor.rate for floor in floors] == ["decided"]:
        raise DataError(
            "rates has 'decided' alone, and every row can be decided; give the rates beside it for "
            "which rows may be left undecided."
        )
    of_decisions = [floor.rate for floor in floors if not _is_of_classes(floor)]
    if of_decisions and (spec.control != "threshold" or calibration is None):
        given = f"control={spec.control!r}" if calibration else "calibration=None"
        raise DataError(
            f"rates has {of_decisions[0]!r}, which is kept by a threshold on the calibrated "
            f"probability, and not with {given}; give control='threshold' and "
            "calibration='sigmoid'."
        )
    return Control(spec.control, floors)


def needed_of_all(floors: Sequence[RateFloor], rows: LeftOut) -> dict[str, float]:
    """Share of the rows that has to be right for each rate, as far as it is known before training.

    Raises
    ------
    UnattainableRateError
        There are too few rows for the confidence asked for.
    """
    shares = needed_shares([floor for floor in floors if not is_predictive(floor)], rows)
    return shares | {f.rate: most_needed(f, rows) for f in floors if is_predictive(f)}


@dataclass(frozen=True)
class Controlled:
    """Where the decisions of an ensemble fall.

    Attributes
    ----------
    scores : OutOfBagScores
        Moved, so that 0 is the decision; the calibrators are of the scores before.
    moved : float
        How far down.
    vote_thresholds : ndarray, shape (R,)
        Scores above which a model votes for ``classes_[1]``.
    votes : ndarray, shape (n,)
        Share of out-of-bag votes for ``classes_[1]``; NaN for a row never out of bag.
    shares : mapping of str to float
        Share of the rows that has to be right, for each rate.
    between : tuple of float, or None
        Scores, before they were moved, of rows that are left undecided: above the first, and not
        above the second. None where every row is decided.
    """

    scores: OutOfBagScores
    moved: float
    vote_thresholds: Floats
    votes: Floats
    shares: Mapping[str, float]
    between: tuple[float, float] | None = None


def _is_of_classes(floor: RateFloor) -> bool:
    """Whether a rate is one that votes keep, too, and no row need be left undecided for it."""
    return floor.rate in ("tpr", "tnr")


def control_ensemble(
    control: Control,
    machines: WeighedReplicates,
    scores: OutOfBagScores,
    votes: Floats,
    rows: LeftOut,
    *,
    calibrated: bool,
) -> Controlled:
    """Move scores and votes so that the rates hold out of bag.

    With "threshold" (Ctrl1) the votes of each C get a threshold of their own, and the
    mean score one. Beside a calibrated probability, which decides, votes stay where they are if no
    thresholds keep the rates. With "constrained" (Ctrl2) the machines have been trained for it, and
    decisions stay where their scores are 0.

    Parameters
    ----------
    control : Control
    machines : WeighedReplicates
    scores : OutOfBagScores
    votes : ndarray, shape (n,)
        Share of out-of-bag votes about 0.
    rows : LeftOut
    calibrated : bool
        Whether probabilities are made from the mean scores, by a sigmoid, or from votes.

    Raises
    ------
    UnattainableRateError
        The rates cannot all be kept.
    DataError
        The scores say nothing out of bag, so that no probability orders the rows.
    """
    thresholds, floors = np.zeros(len(machines.weights)), control.floors
    if control.method is None:
        return Controlled(scores, 0.0, thresholds, votes, control.shares)
    if calibrated and scores.sigmoid.slope == 0:
        raise DataError(
            "Out of bag, the scores say nothing of the classes: all calibrated probabilities are "
            "the same, and no rate can be controlled by them. Give calibration=None to control "
            "votes, or other columns."
        )
    seen = np.isfinite(scores.mean)
    rows = replace(rows, weight=np.where(seen, rows.weight, 0.0))
    if control.method == "constrained":
        moved = float(scores.offset.mean())  # back to where the machines' own zero is
        return Controlled(scores.moved_down(moved), moved, thresholds, votes, control.shares)
    if all(map(_is_of_classes, floors)):  # else votes stay where they are
        try:
            thresholds = vote_thresholds(machines, rows, floors)
            votes = oob_votes(machines, thresholds)
        except UnattainableRateError:
            if not calibrated:  # else they decide nothing, and stay where they are
                raise
    # A row that was never left out promises nothing.
    if calibrated:
        chosen = choose_thresholds(scores.mean, rows, floors)
    else:
        chosen = Chosen(float(thresholds @ machines.weights), needed_shares(floors, rows))
    return Controlled(
        scores.moved_down(chosen.threshold),
        *(chosen.threshold, thresholds, votes, chosen.shares, chosen.between),
    )


def choose_thresholds(scores: Floats, rows: LeftOut, floors: Sequence[RateFloor]) -> Chosen:
    """Where a score decides so that the rates hold, whatever they are.

    Parameters
    ----------
    scores : ndarray, shape (n,)
        Out-of-bag scores; larger for ``classes_[1]``.
    rows : LeftOut
        Those with scores.
    floors : sequence of RateFloor

    Raises
    ------
    UnattainableRateError
        The rates cannot all be kept.
    """
    if any(floor.rate == "decided" for floor in floors):
        return thresholds_of_all(scores, rows, floors)
    if any(map(is_predictive, floors)):
        return threshold_of_all(scores, rows, floors)
    return Chosen(score_threshold(scores, rows, floors), needed_shares(floors, rows))


def rates_reached(
    floors: Sequence[RateFloor],
    probability: Floats,
    between: tuple[float, float],
    rows: LeftOut,
    shares: Mapping[str, float],
) -> list[dict[str, Any]]:
    """What was asked for and what was reached, for each rate.

    Parameters
    ----------
    floors : sequence of RateFloor
    probability : ndarray, shape (n,)
        Out-of-bag probabilities of ``classes_[1]``, or NaN.
    between : (float, float)
        Probability up to which a row is decided negative, and above which positive.
    rows : LeftOut
    shares : mapping
        What the rows had to show for each rate.

    Returns
    -------
    list of dict
        For each floor its "rate", "at_least", "confidence" and "bound", the "n_rows" that it is a
        share of, the "required_share" of these and the share reached "out_of_bag".
    """
    found, positive, weight = [], rows.positive, rows.weight
    lower, upper = between
    for floor in floors:
        # An undecided row is no mistake in its class.
        decided = probability > (lower if floor.rate in ("tpr", "npv") else upper)
        members = floor.members(positive, decided) & (weight > 0) & np.isfinite(probability)
        right = decided == positive
        if floor.rate == "decided":
            right = decided | (probability <= lower)
        found.append(
            asdict(floor)
            | {
                "n_rows": int(members.sum()),
                "required_share": shares[floor.rate],
                "out_of_bag": float(np.average(right[members], weights=weight[members])),
            }
        )
    return found
