"""Tables 3.2 and 3.3 of the thesis, and 3 and 4 of its paper, beside what was found here."""

from __future__ import annotations

from typing import Any

import numpy as np

from bootprob.runtime.arrays import Floats
from docs.studies.thesis.numbers import (
    PAPER_PROBABILITY_ERROR,
    PROBABILITY_ERROR,
    PROBABILITY_METHODS,
)
from gpu.benchmarks.common.tables import NONE, NOT_MEASURED, figures, markdown

__all__ = ["DATA_SETS", "best_C_errors", "differences", "errors", "measured_with"]

DATA_SETS = tuple(dict.fromkeys([*PROBABILITY_ERROR, *PAPER_PROBABILITY_ERROR]))
"""Data sets of one of the tables that are at hand."""

_FOLDS = 10
_TITLES = {
    "bootstrap": "bootstrap, `paper()`",
    "best C": "best C",
    "best C, votes": "best C, votes",
    "default": '`kernel="linear"`',
    "rbf": '`kernel="rbf"`',
}
_PAIRS = (
    ("default", "bootstrap"),
    ("default", "Platt"),
    ("rbf", "default"),
    ("bootstrap", "best C, votes"),
)


def errors(found: dict[str, dict[str, Any]]) -> str:
    """Table 3.2: thesis / paper / here; the lowest error found here is in bold.

    Parameters
    ----------
    found : dict
        "data sets" of the results.
    """
    methods = [method for method in PROBABILITY_METHODS if method != "best C"]
    methods += ["default", "rbf"]
    lines = []
    for name, entry in _rows(found):
        share = entry["positives"] / entry["rows"]
        here = {method: _error(entry, method) for method in methods}
        lowest = min((f"{error:.3f}" for error in here.values() if error is not None), default="")
        cells = [_cell(name, method, here[method], lowest) for method in methods]
        lines.append([name, f"{share * (1 - share):.3f}", *cells])
    return markdown(["", "base rate", *(_TITLES.get(method, method) for method in methods)], lines)


def best_C_errors(found: dict[str, dict[str, Any]]) -> str:  # noqa: N802
    """Table 3.3: thesis / paper / here; all models of the grid weighted beside the best C alone."""
    methods = ("best C", "best C, votes", "bootstrap")
    lines = [
        [name, *(_cell(name, method, _error(entry, method)) for method in methods)]
        for name, entry in _rows(found)
    ]
    return markdown(["", *(_TITLES[method] for method in methods)], lines)


def differences(found: dict[str, dict[str, Any]]) -> str:
    """Paired over the same folds: mean difference of squared errors ± its standard error."""
    lines = []
    for name, entry in _rows(found):
        line = [name]
        for one, other in _PAIRS:
            both = [_folds(entry, method) for method in (one, other)]
            shared = min(map(len, both))
            if shared < 2:
                line.append(NOT_MEASURED)
                continue
            gap = both[0][:shared] - both[1][:shared]
            line.append(f"{gap.mean():+.4f} ± {gap.std(ddof=1) / np.sqrt(shared):.4f}")
        lines.append(line)
    return markdown(["", *(f"{one} − {other}" for one, other in _PAIRS)], lines)


def measured_with(found: dict[str, dict[str, Any]]) -> str:
    """Bootstraps, inner folds, outer folds and seconds of each method, over all data sets."""
    lines = []
    methods = [*PROBABILITY_METHODS, "best C, votes", "default", "rbf"]
    for method in methods:
        cells = [e["cells"][method] for e in found.values() if method in e["cells"]]
        if not cells:
            continue
        settings = dict.fromkeys(
            ", ".join(f"{key} {value}" for key, value in cell["settings"].items()) for cell in cells
        )
        folds = sorted({len(cell["folds"]) for cell in cells})
        seconds = sum(fold["seconds"] for cell in cells for fold in cell["folds"])
        lines.append(
            [
                _TITLES.get(method, method),
                "; ".join(settings),
                " or ".join(map(str, folds)),
                str(len(cells)),
                figures(seconds, 2),
            ]
        )
    return markdown(["", "settings", "outer folds", "data sets", "seconds in all"], lines)


def _rows(found: dict[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, found[name]) for name in DATA_SETS if name in found]


def _folds(entry: dict[str, Any], method: str) -> Floats:
    """Squared errors of the folds measured."""
    cell = entry["cells"].get(method, {"folds": []})
    return np.array([fold["squared error"] for fold in cell["folds"]])


def _error(entry: dict[str, Any], method: str) -> float | None:
    """Mean over all ten folds, or None where they were not all measured."""
    folds = _folds(entry, method)
    return float(folds.mean()) if len(folds) == _FOLDS else None


def _cell(name: str, method: str, here: float | None, lowest: str | None = None) -> str:
    printed = [
        table.get(name, {}).get(method) for table in (PROBABILITY_ERROR, PAPER_PROBABILITY_ERROR)
    ]
    cells = [NONE if value is None else f"{value:.3f}" for value in printed]
    own = NOT_MEASURED if here is None else f"{here:.3f}"
    if own == lowest:
        own = f"**{own}**"
    return own if printed == [None, None] else " / ".join([*cells, own])
