"""What a model card says of several classes, and of the sets of any number of them."""

from __future__ import annotations

from typing import Any

from bootprob.report.model.markdown import text, with_interval
from bootprob.report.wording import count, percent

__all__ = ["ABOUT_CLASSES", "about_sets", "intervals_of_classes", "of_classes", "of_sets"]

ABOUT_CLASSES = (
    "Each class against the rest, out of bag: the share of its rows that are given it, and how far "
    "its probabilities lie from the observed frequency, on average; perfect ones could, by chance, "
    "lie up to the last number away."
)


def of_classes(data: dict[str, Any], entry: dict[str, Any]) -> dict[str, list[str]]:
    """Recognised rows and calibration of each class that could be judged."""
    judged = [
        (text(each["name"]), found)
        for each, found in zip(data["classes"], entry["classes"], strict=True)
        if found is not None
    ]
    metrics = [found["metrics"] for _, found in judged]
    chance = [found["calibration_error_by_chance"]["upper"] for _, found in judged]
    return {
        "Class": [name for name, _ in judged],
        "Rows": [count(found["n_rows"]) for _, found in judged],
        "Recognised": [with_interval(m["sensitivity"], as_share=True) for m in metrics],
        "Calibration error": [f"{m['calibration_error']['value']:.4f}" for m in metrics],
        "By chance up to": [f"{upper:.4f}" for upper in chance],
    }


def of_sets(data: dict[str, Any], entry: dict[str, Any]) -> dict[str, list[str]]:
    """How large the prediction sets are, and how often they hold the true class."""
    columns = {"": entry["sets"]["out_of_bag"]}
    if entry["sets"]["held_out"]:
        columns = {" out of bag": columns[""], " on held-out rows": entry["sets"]["held_out"]}
    table = {"Rows": ["All", *(text(each["name"]) for each in data["classes"])]}
    for where, told in columns.items():
        table[f"One class{where}"] = [percent(s.get("one")) for s in told]
        table[f"True class in the set{where}"] = [
            with_interval(s["covered"], as_share=True) if s["n_rows"] else "–" for s in told
        ]
    return table


def about_sets(entry: dict[str, Any]) -> str:
    """What these sets are."""
    level = percent(entry["sets"]["level"], 0)
    return (
        f"Sets of the classes that cannot be excluded at {level} (`prediction_sets`). Their "
        "promise is over all rows together; out of bag it holds of these by construction, and what "
        "counts is the share of rows with one class, and how coverage falls to the classes."
    )


def intervals_of_classes(entry: dict[str, Any]) -> str:
    """What the intervals of the classes are for, and how wide they are where that is known."""
    said = (
        "Intervals are of each class's probability by itself, from those of the pairs; they are "
        "not for what will happen to a row, and know nothing of a truth that the "
        f"{'kernel' if entry['kernel'] else 'model'} cannot express."
    )
    if entry["widths"]:
        medians = [each["all"]["median"] for each in entry["widths"]["classes"]]
        said += (
            f" Half of {count(entry['widths']['n_rows'])} held-out rows have one wider than "
            f"{100 * min(medians):.1f} to {100 * max(medians):.1f} percentage points, by class."
        )
    return said
