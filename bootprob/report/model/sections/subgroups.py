"""Is it as good for all subgroups? Calibration, metrics and decisions of each."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from bootprob.displays.style import COLORS
from bootprob.ensemble.conformal import prediction_sets, sets_of
from bootprob.ensemble.out_of_bag_proba import cross_fitted_proba
from bootprob.ensemble.out_of_bag_sets import out_of_bag_p_values
from bootprob.ensemble.subgroups import out_of_bag_subgroups
from bootprob.intervals.shares import effective_rows, exact_interval
from bootprob.metrics.reliability import kept_rows
from bootprob.metrics.subgroup_rows import subgroups_of_rows
from bootprob.metrics.subgroups import Subgroup, Subgroups, subgroup_metrics
from bootprob.report.model.sections.section import Drawn, Measured, Section
from bootprob.report.svg import Picture, draw_picture
from bootprob.report.wording import decimal, short
from bootprob.runtime.groups import Groups

__all__ = ["SECTION"]

_WIDEST = 4.0  # ratio at which the axis of a figure ends


def _content(of: Measured) -> dict[str, Any]:
    model, by = of.model, of.by
    if by is None:
        return {"subgroups": None}
    found: dict[str, Any] = {"by": by.name, "level": of.level, "out_of_bag": None}
    if by.training is not None:
        measured = out_of_bag_subgroups(model, by.training, of.level)
        p_values = out_of_bag_p_values(model)
        assert p_values is not None  # there always are of two classes
        known = np.asarray(np.isfinite(p_values).all(axis=1))
        sets: NDArray[np.bool_] = sets_of(np.where(known[:, None], p_values, 0.0), of.level)
        holds = sets[np.arange(len(sets)), model.y_]
        counted = kept_rows(cross_fitted_proba(model), model.sample_weight_)
        covered = _covered(measured, by.training, counted, holds, known, model.groups_)
        found["out_of_bag"] = _told(measured, covered)
    found["held_out"] = None
    if by.held_out is not None:
        assert of.held_out is not None
        positive = of.held_out.positive_rows(model)
        p = model.predict_proba(of.held_out.X)[:, 1]
        decided = p > model.decision_threshold_
        measured = subgroup_metrics(positive, p, by.held_out, level=of.level, decided=decided)
        sets = prediction_sets(model, of.held_out.X, of.level)
        holds, every = sets[np.arange(len(sets)), positive.astype(int)], np.ones(len(p), dtype=bool)
        covered = _covered(measured, by.held_out, every, holds, every, None)
        found["held_out"] = _told(measured, covered)
    return {"subgroups": found}


def _covered(
    found: Subgroups,
    by: ArrayLike,
    counted: NDArray[np.bool_],
    holds: NDArray[np.bool_],
    known: NDArray[np.bool_],
    groups: Groups | None,
) -> dict[str, dict[str, float]]:
    """Share of the rows of each subgroup whose class is in their set, with its interval.

    Subgroups are told apart by the rows that count, and a set is known of most of these.
    """
    names, of_counted = subgroups_of_rows(by, counted)
    codes = np.full(len(counted), -1)
    codes[counted] = of_counted
    told = {}
    for name, level in [("all", found.level), *((each, found.level_of_each) for each in names)]:
        own = known & (True if name == "all" else codes == names.index(name))
        if own.any():
            value = float(holds[own].mean())
            n = effective_rows(np.ones(int(own.sum())), None if groups is None else groups[own])
            lower, upper = exact_interval(value, n, level)
            told[name] = {"value": value, "lower": lower, "upper": upper}
    return told


def _told(found: Subgroups, covered: dict[str, dict[str, float]]) -> dict[str, Any]:
    return {
        "level_of_each": found.level_of_each,
        "n_left_out": found.n_left_out,
        "subgroups": [
            _of_one(each, covered.get(each.name)) for each in (found.every, *found.subgroups)
        ],
    }


def _of_one(each: Subgroup, covered: dict[str, float] | None) -> dict[str, Any]:
    return {
        "name": each.name,
        "n_rows": each.n_rows,
        "n_positive": each.n_positive,
        "stated": each.stated,
        "numbers": {name: asdict(number) for name, number in each.numbers.items()},
        "in_set": covered,
        "too_small": each.too_small,
        "miscalibrated": each.miscalibrated,
    }


def _pictures(of: Drawn) -> dict[str, Picture | None]:
    found = of.model["subgroups"]
    if found is None:
        return {"subgroups": None}
    told = found["out_of_bag"] or found["held_out"]
    return {"subgroups": _forest(told["subgroups"], of.name("g"))}


def _forest(subgroups: list[dict[str, Any]], name: str) -> Picture:
    """Observed over expected of each subgroup, with its interval."""
    ratios = [each["numbers"]["observed_over_expected"] for each in subgroups]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        heights = np.arange(len(ratios))[::-1]
        ax.axvline(1, color=COLORS["ink"], linewidth=0.8, linestyle=(0, (2, 2)))
        for height, ratio, each in zip(heights, ratios, subgroups, strict=True):
            colour = COLORS["positive" if each["miscalibrated"] else "negative"]
            ax.hlines(height, ratio["lower"], ratio["upper"], color=colour, linewidth=1.4)
            marker = "D" if each["miscalibrated"] else "o"
            ax.plot(ratio["value"], height, marker, color=colour, markersize=4.5)
        widest = max(1.5, *(min(ratio["upper"], _WIDEST) for ratio in ratios))
        ax.set(
            xlim=(-0.03, 1.05 * widest),
            yticks=heights,
            yticklabels=[short(each["name"], 24) for each in subgroups],
            xlabel="observed over expected",
        )
        ax.set_ylim(-0.7, len(ratios) - 0.3)

    said = "; ".join(
        f"{each['name']} {decimal(ratio['value'], 2)} ({decimal(ratio['lower'], 2)} to "
        f"{decimal(ratio['upper'], 2)})"
        for each, ratio in zip(subgroups, ratios, strict=True)
    )
    alt = f"Positive rows over the sum of their probabilities, by subgroup: {said}."
    return draw_picture(draw, 0.9 + 0.24 * len(ratios), name, alt)


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["subgroups"] for model in content["models"])


SECTION = Section("subgroups", "Subgroups", _content, _pictures, _is_shown)
