"""Write docs/studies.md from what the studies have measured; nothing is measured here.

    python -m docs.studies.thesis.studies_document

Reads table_2_2.json, tables_3_2_and_3_3.json and tables_3_4_to_3_7.json of docs/results, as far as
they exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from docs.studies.thesis.numbers import (
    COLUMNS,
    PRINTED_TOO,
    SQUARED_ERROR,
    TABLE_2_2,
    TARGET,
    TPR_IMPOSED,
)
from docs.studies.thesis.studies_probabilities import (
    DATA_SETS,
    best_C_errors,
    differences,
    errors,
    measured_with,
)
from gpu.benchmarks.common import documents
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import load
from gpu.benchmarks.common.tables import NONE, NOT_MEASURED, figures, markdown

__all__ = ["main", "squared_errors", "table_2_2"]

_METHODS = {
    "svm": "SVM",
    "two costs": "SVM(C₊, C₋)",
    "sliding": "sliding β",
    "constrained": "CSVM",
    "constrained, C / |I|": "CSVM, C₊ = C / \\|I₊\\|",
}
_TABLES = {
    ("positives", "threshold"): "3.4",
    ("positives", "constrained"): "3.5",
    ("negatives", "threshold"): "3.6",
    ("negatives", "constrained"): "3.7",
}
_CONTROLS = {"threshold": "Ctrl1", "constrained": "Ctrl2"}


def main(docs: Path = DOCS) -> Path:
    """Write the document from what is in results/ below the folder `docs`; its path."""
    studies = {
        name: load(docs / "results" / file)
        for name, file in (
            ("chapter2", "table_2_2.json"),
            ("probabilities", "tables_3_2_and_3_3.json"),
            ("chapter3", "tables_3_4_to_3_7.json"),
        )
    }
    return documents.write(
        docs / "studies.md",
        "docs/studies/thesis/studies.md.jinja",
        **studies,
        columns=COLUMNS,
        data_sets={
            "chapter2": TABLE_2_2,
            "probabilities": DATA_SETS,
            "chapter3": SQUARED_ERROR["positives"]["threshold"],
        },
        settings=_settings,
        table_2_2=table_2_2,
        probability_errors=errors,
        best_C_errors=best_C_errors,
        differences=differences,
        measured_with=measured_with,
        exact=_exact,
        squared_errors=squared_errors,
        times=_times,
    )


def table_2_2(name: str, found: dict[str, Any]) -> str:
    """One data set of table 2.2: a row for each method, the thesis's numbers beside these.

    Parameters
    ----------
    name : str
    found : dict
        What `table_2_2.measure` returned.
    """
    lines = [_method(name, method, rows, "", True) for method, rows in found["methods"].items()]
    for target in found.get("targets", {}).values():
        printed = target["TPR"] == TARGET[name] or name not in PRINTED_TOO
        asked = f"{target['TPR']:.3f}"
        lines += [
            _method(name, method, rows, asked, printed)
            for method, rows in target["methods"].items()
        ]
    header = ["", "TPR ≥", "share asked of J", "TPR, thesis", "TPR here", "TNR, thesis", "TNR here"]
    return markdown([*header, "C", "γ", "tuning, s", "training, s"], lines)


def _method(
    name: str, method: str, rows: list[dict[str, Any]], target: str, printed: bool
) -> list[str]:
    thesis = TABLE_2_2[name].get(method) if printed else None
    asked = [row["share asked"] for row in rows]
    C = [f"{np.median([row[key] for row in rows]):g}" for key in ("C_positive", "C_negative")]
    return [
        _METHODS[method],
        target or NONE,
        NONE if asked[0] is None else f"{np.mean(asked):.3f}",
        NONE if thesis is None else f"{thesis[0]:.3f} ({thesis[1]:.3f})",
        _mean([row["tpr"] for row in rows]),
        NONE if thesis is None else f"{thesis[2]:.3f} ({thesis[3]:.3f})",
        _mean([row["tnr"] for row in rows]),
        ", ".join(dict.fromkeys(C)),
        f"{np.median([row['gamma'] for row in rows]):g}",
        figures(sum(row["tuning, s"] for row in rows), 2),
        figures(sum(row["training, s"] for row in rows), 2),
    ]


def _mean(values: list[float]) -> str:
    spread = f" ({np.std(values, ddof=1):.3f})" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


def _exact(found: dict[str, Any]) -> str:
    """Heuristic and exact solutions of the same folds side by side."""
    heuristic = found["targets"]["measured"]["methods"]["constrained"]
    exact = found["exact"]["folds"]
    lines = [
        [
            str(number + 1),
            *(f"{row['objective']:.4f}" for row in both),
            *(f"{100 * row['gap']:.1f} %" for row in both),
            *(f"{row['tpr']:.3f}, {row['tnr']:.3f}" for row in both),
            figures(both[1]["training, s"], 2),
        ]
        for number, both in enumerate(zip(heuristic, exact, strict=False))
    ]
    names = [
        f"{what}, {how}"
        for what in ("objective", "gap", "TPR, TNR")
        for how in ("heuristic", "exact")
    ]
    return markdown(["fold", *names, "exact, s"], lines)


def squared_errors(name: str, found: dict[str, Any]) -> str:
    """One data set of tables 3.4 to 3.7, and the rates reached, for every imposed rate.

    "–" is where nothing is imposed, since the rate without control is no lower; "…" is what has
    not been measured. Rates that are imposed in no line are left out.

    Parameters
    ----------
    name : str
    found : dict
        Its entry in the results.
    """
    cells = found["cells"]
    lines = []
    for (own, control), number in _TABLES.items():
        printed = SQUARED_ERROR[own][control][name]
        thesis = (NONE if value is None else f"{value:.3f}" for value in printed)
        lines.append(
            [f"{own}, {_CONTROLS[control]} ({number})", *_both(thesis, _cells(cells, control, own))]
        )
    for control, short in _CONTROLS.items():
        tpr, tnr = (_cells(cells, control, rate) for rate in ("tpr", "tnr"))
        lines.append([f"TPR / TNR, {short}", *_both(tpr, tnr)])
    header = ["imposed TPR", "none", *(f"{t:g}" for t in TPR_IMPOSED)]
    shown = [k for k in range(len(header)) if any(line[k] != NONE for line in lines)]
    return markdown([header[k] for k in shown], [[line[k] for k in shown] for line in lines])


def _both(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """Two lines in one; "–" where neither has a number."""
    pairs = zip(first, second, strict=True)
    return [NONE if one == other == NONE else f"{one} / {other}" for one, other in pairs]


def _cells(cells: dict[str, Any], control: str, what: str) -> list[str]:
    """A row of numbers: without control, then for every imposed rate."""
    found = [f"{cells['none'][what]:.3f}"]
    for least in TPR_IMPOSED:
        cell = cells.get(f"{control} {least:g}")
        if cells["none"]["tpr"] >= least:
            found.append(NONE)
        else:
            found.append(NOT_MEASURED if cell is None else f"{cell[what]:.3f}")
    return found


def _settings(found: dict[str, Any]) -> str:
    """B, folds, seconds of the cells of each kind of control, in words."""
    parts = []
    for control, name in {"none": "without control", **_CONTROLS}.items():
        cells = [cell for key, cell in found["cells"].items() if key.split()[0] == control]
        for B, folds in dict.fromkeys(
            (cell["settings"]["bootstraps"], cell["settings"]["folds"]) for cell in cells
        ):
            seconds = sum(
                cell["seconds"]
                for cell in cells
                if (cell["settings"]["bootstraps"], cell["settings"]["folds"]) == (B, folds)
            )
            parts.append(f"{name}: B = {B}, {folds} of 10 folds, {figures(seconds, 2)} s")
    return "; ".join(parts)


def _times(found: dict[str, Any]) -> str:
    """Training of constrained ensembles on all rows."""
    lines = [
        [
            f"{name} {row['rows']:,} × {row['columns']}",
            f"{row['imposed TPR']:g}",
            f"{row['machines']:,}",
            f"**{figures(row['seconds'])}**",
            f"{row['largest shortfall, rows']:g}",
            " / ".join(f"{100 * row['gap'][key]:.1f} %" for key in ("median", "mean", "largest")),
            f"{row['out-of-bag TPR']:.3f}",
            f"{row['load']:.1f}",
        ]
        for name, row in found.items()
    ]
    header = ["", "imposed TPR", "machines", "seconds", "largest shortfall, rows"]
    gap = "gap to the plain bound, median / mean / largest"
    return markdown([*header, gap, "TPR out of bag", "load before"], lines)


if __name__ == "__main__":
    print(f"wrote {main(docs_options(__doc__).parse_args().docs)}")
