"""Rates of several classes that must hold, and the offsets of the classes that make them (Ctrl1).

A row is given the class k of the largest ``logit p_k + b_k``. With one class asked for that is a
threshold on the score ``logit p_k − max_{j ≠ k} logit p_j``, an order statistic of out-of-bag
scores as in `bootprob.ensemble.control.thresholds`. With several, each class's offset is raised to
what it needs beside those of the others, in turn, until all hold: what one class gains another
loses, so that offsets only ever rise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from bootprob.ensemble.control.decisions import check_control
from bootprob.ensemble.control.thresholds import LeftOut, highest_threshold
from bootprob.ensemble.specs import ControlSpec
from bootprob.exceptions import DataError, UnattainableRateError
from bootprob.metrics.rates import Rate, RateFloor, rate_floors
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

__all__ = [
    "ClassFloor",
    "class_offsets",
    "class_rates_asked",
    "class_rates_reached",
    "class_shares",
]

_ROUNDS = 200


@dataclass(frozen=True)
class ClassFloor(RateFloor):
    """The least share of a class's rows that must be given it.

    Attributes
    ----------
    position : int
        Of the class among all.
    label : bool, int, float or str
    """

    position: int = 0
    label: Any = None

    @property
    def spoken(self) -> str:
        """What the rate is called in messages."""
        return f"the rate of class {self.label!r}"

    @property
    def whose(self) -> str:
        """What it is a share of."""
        return f"rows of class {self.label!r}"


def class_rates_asked(
    spec: ControlSpec,
    calibration: str | None,
    classes: NDArray[Any],
    called: Sequence[Any] | None = None,
) -> tuple[ClassFloor, ...]:
    """Check which rates of several classes are asked for; none without control.

    Parameters
    ----------
    spec : ControlSpec
    calibration : str or None
        As in `BootstrapSVC`.
    classes : ndarray, shape (K,)
    called : sequence of length K, optional
        What errors call them; by default as they are.

    Raises
    ------
    DataError
        For options that do not go together, classes that there are not, and rates outside (0, 1].
    """
    check_control(spec, calibration, example={classes.tolist()[0]: 0.9})
    if spec.control is None:
        return ()
    if spec.control != "threshold":
        raise DataError(
            f"Only binary classification is supported with control={spec.control!r}. The type of "
            f"the target is multiclass, with {len(classes)} classes; give control='threshold', or "
            "fit one class against the rest."
        )
    assert isinstance(spec.rates, Mapping)
    labels, found = classes.tolist(), []
    for name, least in spec.rates.items():
        if name not in labels and name in get_args(Rate):
            raise DataError(
                f"Only binary classification is supported with the rate {name!r}. The type of the "
                f"target is multiclass, with {len(labels)} classes; ask for rates by class, such "
                f"as rates={{{labels[0]!r}: 0.9}}, or fit one class against the rest."
            )
        if name not in labels:
            shown = ", ".join(map(repr, labels[:15])) + (" and more" if len(labels) > 15 else "")
            raise DataError(
                f"rates has {name!r}, which is no class; of {len(labels)} classes rates are by "
                f"class, such as rates={{{labels[0]!r}: 0.9}}, and these are {shown}."
            )
        [floor] = rate_floors({"tpr": least}, spec.confidence, spec.bound)
        k = labels.index(name)
        label = name if called is None else called[k]
        found.append(ClassFloor(**asdict(floor), position=k, label=label))
    return tuple(sorted(found, key=lambda each: each.position))


def class_shares(
    floors: Sequence[ClassFloor], codes: NDArray[np.integer], weight: Floats, groups: Groups | None
) -> Floats:
    """Share of the rows of each floor's class that has to be given it.

    Raises
    ------
    UnattainableRateError
        There are too few rows for the confidence asked for.
    """
    rows = [LeftOut(codes == floor.position, weight, groups) for floor in floors]
    return np.array(
        [
            floor.required_share(own.effective(own.positive))
            for floor, own in zip(floors, rows, strict=True)
        ]
    )


def class_offsets(
    logits: Floats,
    codes: NDArray[np.integer],
    weight: Floats,
    floors: Sequence[ClassFloor],
    shares: Floats,
) -> Floats:
    """Offsets of the classes with which the rates hold out of bag, shape (K,); as small as found.

    Parameters
    ----------
    logits : ndarray, shape (n, K)
        Of the out-of-bag probabilities.
    codes : ndarray of int, shape (n,)
        True classes.
    weight : ndarray, shape (n,)
        Row weights; 0 for rows that do not count.
    floors : sequence of ClassFloor
    shares : ndarray, shape (len(floors),)
        From `class_shares`.

    Raises
    ------
    UnattainableRateError
        No offsets were found that keep all rates.
    """
    K = logits.shape[1]
    offsets = np.zeros(K)
    farthest = (K + 1) * float(np.ptp(logits[weight > 0])) + 1.0  # beyond it nothing changes
    for _ in range(_ROUNDS):
        before = offsets.copy()
        for floor, share in zip(floors, shares, strict=True):
            k, own = floor.position, (codes == floor.position) & (weight > 0)
            others = np.delete(logits[own] + offsets, k, axis=1).max(axis=1)
            needed = -highest_threshold(logits[own, k] - others, weight[own], float(share))
            offsets[k] = max(offsets[k], needed)
        if (offsets == before).all():
            return offsets - offsets.min() if len(floors) == K else offsets
        if offsets.max() > farthest:
            break
    decided = (logits + before).argmax(axis=1)
    reached = class_rates_reached(floors, decided, codes, weight, shares)
    short = [entry["out_of_bag"] - share for entry, share in zip(reached, shares, strict=True)]
    worst, floor = reached[int(np.argmin(short))], floors[int(np.argmin(short))]
    sure = "" if floor.confidence is None else f" with confidence {floor.confidence:g}"
    raise UnattainableRateError(
        f"No decision was found that keeps the rates of {len(floors)} classes{sure}: the more "
        "rows are given one, the fewer are left for the others. "
        f"Of class {floor.label!r} a share of {worst['out_of_bag']:.3f} was right out of bag when "
        f"the others had what they need, and {worst['required_share']:.3f} is needed. Lower one of "
        "the rates, ask for one class only, or give the model more to learn from.",
        rate=str(floor.label),
        wanted=floor.at_least,
        attainable=worst["out_of_bag"],
    )


def class_rates_reached(
    floors: Sequence[ClassFloor],
    decided: NDArray[np.integer],
    codes: NDArray[np.integer],
    weight: Floats,
    shares: Floats,
) -> list[dict[str, Any]]:
    """What was asked for and what was reached, as `rates_reached` has it, with the "class".

    That is the position among all classes; "rate" is "tpr", that of the class against the rest.
    """
    found = []
    for floor, share in zip(floors, shares, strict=True):
        own = (codes == floor.position) & (weight > 0)
        right = float(np.average(decided[own] == floor.position, weights=weight[own]))
        asked = {name: getattr(floor, name) for name in ("rate", "at_least", "confidence", "bound")}
        found.append(
            {"class": floor.position}
            | asked
            | {"n_rows": int(own.sum()), "required_share": float(share), "out_of_bag": right}
        )
    return found
