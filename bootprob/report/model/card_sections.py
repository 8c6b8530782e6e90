"""What a validator asks of a card beyond its metrics: stability, subgroups, history, signatures."""

from __future__ import annotations

from typing import Any

from bootprob.report.model.markdown import text
from bootprob.report.wording import count, decimal, percent

__all__ = ["NOT_TOLD", "SIGNATURES", "history_of", "stability_of_card", "subgroups_of_card"]

NOT_TOLD = (
    "Whether labels are what they are taken for, and whether rows were lost on the way here.",
    "Whether the columns will be known, and mean the same, when the model is used.",
    "What decisions by it do: to those concerned, to later labels, to who comes next.",
    "Whether it is fair: equal numbers in subgroups may be asked for, and they may contradict each "
    "other.",
    "Other populations, other times, and rows unlike all of those it was fitted to.",
)
"""What no number of a card tells."""

SIGNATURES = {
    "Role": ["Developer", "Validator", "Owner"],
    "Name": ["", "", ""],
    "Date": ["", "", ""],
    "Decision and conditions": ["", "", ""],
    "Signature": ["", "", ""],
}
"""A table to be filled by people."""

_ENTRIES = 30


def stability_of_card(found: dict[str, Any]) -> tuple[dict[str, list[str]], str]:
    """A table of how far other training rows would move the model, and what it is of."""
    rows = {
        "A probability moves by, on average": percent(found["mean_absolute_error"]),
        f"… of the least stable {percent(found['few'], 0)} of rows, at least": percent(
            found["absolute_error_of_few"]
        ),
        "Rows decided otherwise by a replicate": percent(found["mean_classification_instability"]),
        "Rows that a probability is worth (median)": count(found["median_effective_sample_size"]),
        f"Slope of the calibration, {percent(found['level'], 0)} of replicates": _span(
            found["slope"]
        ),
    }
    which = "held-out" if found["held_out"] else "training"
    about = (
        f"By {count(found['n_replicates'])} bootstrap replicates, of {count(found['n_rows'])} "
        f"{which} rows, after Riley and Collins (Biometrical Journal, 2023)."
    )
    return {"Measure": [*rows], "Found": [*rows.values()]}, about


def subgroups_of_card(found: dict[str, Any]) -> tuple[dict[str, list[str]], str]:
    """A table of the subgroups of a report, out of bag where that was measured."""
    told = found["out_of_bag"] or found["held_out"]
    whose = "out of bag" if found["out_of_bag"] else "on held-out rows"
    table: dict[str, list[str]] = {
        "Subgroup": [], "Rows": [], "Observed over expected": [], "AUC": [], "Brier score": [],
        "In their prediction set": [], "": [],
    }  # fmt: skip
    for each in told["subgroups"]:
        numbers = each["numbers"]
        table["Subgroup"].append(text(each["name"]))
        table["Rows"].append(f"{count(each['n_rows'])} ({count(each['n_positive'])} positive)")
        for heading, name in (
            ("Observed over expected", "observed_over_expected"),
            ("AUC", "auc"),
            ("Brier score", "brier_score"),
        ):
            table[heading].append(_number(numbers.get(name)))
        table["In their prediction set"].append(_number(each["in_set"], as_share=True))
        said = "**not calibrated**" if each["miscalibrated"] else ""
        table[""].append("too small to say" if each["too_small"] else said)
    about = (
        f"By {text(found['by'])}, {whose}. Intervals of all subgroups hold together with "
        f"{percent(found['level'], 0)} confidence: each has {percent(told['level_of_each'], 2)}."
    )
    return table, about


def history_of(history: list[dict[str, Any]]) -> tuple[dict[str, list[str]], str]:
    """A table of what was seen and learnt since the fit."""
    table: dict[str, list[str]] = {"When": [], "What": [], "Rows": [], "Found": []}
    for entry in history[-_ENTRIES:]:
        table["When"].append(text(entry["at"]))
        table["What"].append(text(entry["what"]))
        table["Rows"].append(f"{count(entry['n_rows'])}, {count(entry['n_labels'])} with labels")
        found = []
        if entry["e_values"]:
            found += [f"{name} e-value {value:.3g}" for name, value in entry["e_values"].items()]
        found += [f"**alarm: {name}**" for name in entry["alarms"]]
        if entry["slope"]:
            found.append(
                f"logit {decimal(entry['intercept'][0], 2)} + {decimal(entry['slope'][0], 2)} × "
                "that of the fit"
            )
        if entry["refit"]:
            found.append(f"**fit again**: {text(entry['refit'])}")
        table["Found"].append("; ".join(found))
    moved = any(entry["slope"] for entry in history)
    about = (
        "Probabilities are those of the last recalibration; every other number here is of the fit."
        if moved
        else "Rows that came later were looked at; probabilities are those of the fit."
    )
    return table, about


def _span(found: list[float]) -> str:
    value, lower, upper = (decimal(each, 2) for each in found)
    return f"{value} ({lower} to {upper})"


def _number(found: dict[str, Any] | None, *, as_share: bool = False) -> str:
    if found is None or found["value"] is None:
        return "–"
    shown = [
        "–" if found[name] is None else percent(found[name]) if as_share else f"{found[name]:.3f}"
        for name in ("value", "lower", "upper")
    ]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"
