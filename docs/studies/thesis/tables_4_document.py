"""Write docs/feature_selection_tables.md from docs/results/tables_4.json; nothing is measured here.

python -m docs.studies.thesis.tables_4_document
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from docs.studies.thesis.numbers_4 import SVM, TABLE_4_2, TABLE_4_4, TABLE_4_9, TABLE_4_10, TABLES
from gpu.benchmarks.common import documents
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import load
from gpu.benchmarks.common.tables import NONE, figures, markdown

__all__ = ["main"]

_MACHINES = {
    "linear": "linear, rates kept",
    "rbf": "RBF, rates kept",
    "compared": "cardinality bound",
}
_NUMBERS = {
    ("linear", "4.3"): "4.2",
    ("linear", "4.4"): "4.3",
    ("rbf", "4.3"): "4.5",
    ("rbf", "4.4"): "4.6",
    ("compared", "4.3"): "4.7",
    ("compared", "4.4"): "4.8",
}


def main(docs: Path = DOCS) -> Path:
    """Write the document from what is in results/ below the folder `docs`; its path."""
    results = load(docs / "results" / "tables_4.json")
    return documents.write(
        docs / "feature_selection_tables.md",
        "docs/studies/thesis/tables_4.md.jinja",
        study=results,
        missing=[name for name in TABLE_4_2 if name not in results.get("data sets", {})],
        rates=rates,
        selections=selections,
        all_rows=_all_rows,
        contingency=_contingency,
        table_4_9=table_4_9,
        table_4_10=table_4_10,
    )


def rates(name: str, found: dict[str, Any]) -> str:
    """Tables 4.2, 4.3 and 4.5 to 4.8 of one data set, the thesis's numbers beside these."""
    lines = []
    if "svm" in found:
        columns = str(found["columns"])
        lines.append(["SVM", NONE, NONE, columns, *_beside(SVM[name], found["svm"]["value"])])
    for (machine, thresholds), number in _NUMBERS.items():
        part = "compared with" if machine == "compared" else f"{machine} on"
        measured = found.get(f"{part} {thresholds}")
        if measured is None:
            continue
        printed = TABLES[machine, thresholds].get(name)
        used = [
            len(row["features"])
            for row in found[f"selected by {thresholds}"]["value"]
            if row["features"]
        ]
        if machine == "compared":
            used = [row["columns"] for row in measured["value"] if row is not None]
        lines.append(
            [
                f"{_MACHINES[machine]}, ({thresholds})",
                number if printed else NONE,
                NONE if not printed or printed[0] is None else f"{printed[0]:g}",
                f"{np.mean(used):.3g}" if used else NONE,
                *_beside(printed[1] if printed else None, measured["value"]),
            ]
        )
    header = ["", "table", "columns, thesis", "columns here"]
    for rate in ("accuracy", "TPR", "TNR"):
        header += [f"{rate}, thesis", f"{rate} here"]
    return markdown(header, lines)


def selections(found: dict[str, Any]) -> str:
    """What (P1) was asked for in the folds, and how it ended."""
    lines = []
    for thresholds in ("4.3", "4.4"):
        if f"selected by {thresholds}" not in found:
            continue
        rows = found[f"selected by {thresholds}"]["value"]
        solved = [row for row in rows if row["features"]]
        shares = [
            f"{np.mean([row['shares'][rate] for row in rows]):.3f}" for rate in ("tpr", "tnr")
        ]
        sizes = Counter(len(row["features"]) for row in solved)
        bounds = Counter(round(row["bound"]) for row in solved)
        status = Counter(row["status"] for row in rows)
        lines.append(
            [
                f"({thresholds})",
                *shares,
                _counts(sizes),
                _counts(bounds),
                _counts(status),
                figures(float(np.median([row["seconds"] for row in solved])), 2)
                if solved
                else NONE,
            ]
        )
    header = ["", "TPR asked", "TNR asked", "columns: folds", "bound: folds", "status: folds"]
    return markdown([*header, "median seconds"], lines)


def table_4_9(found: dict[str, Any]) -> str:
    """The cardinality bound at every number of columns, and the thesis's numbers."""
    lines = []
    for most in range(1, found["columns"] + 1):
        if f"4.9: {most}" in found:
            measured = found[f"4.9: {most}"]["value"]
            lines.append([str(most), *_beside(TABLE_4_9.get(most), measured)])
    header = ["columns at most"]
    for rate in ("accuracy", "TPR", "TNR"):
        header += [f"{rate}, thesis", f"{rate} here"]
    return markdown(header, lines)


def table_4_10(found: dict[str, Any]) -> str:
    """Other rates for australian."""
    lines = []
    for (tpr, tnr), (columns, printed) in TABLE_4_10.items():
        key = f"4.10: {tpr:g}, {tnr:g}"
        if key not in found:
            continue
        rows = found[f"{key} selected"]["value"]
        used = np.mean([len(row["features"]) for row in rows])
        asked = [f"{tpr:g}", f"{tnr:g}", f"{columns:g}", f"{used:.3g}"]
        lines.append([*asked, *_beside(printed, found[key]["value"])])
    header = ["TPR asked", "TNR asked", "columns, thesis", "columns here"]
    for rate in ("accuracy", "TPR", "TNR"):
        header += [f"{rate}, thesis", f"{rate} here"]
    return markdown(header, lines)


def _all_rows(found: dict[str, Any]) -> str:
    row = found["all rows"]["value"]
    if not row["features"]:
        return "nothing was found"
    return (
        f"{len(row['features'])} columns ({', '.join(map(str, row['features']))}), bound "
        f"{row['bound']:g}, {row['status']}, {row['seconds']:g} s"
    )


def _contingency(found: dict[str, Any]) -> str:
    """Table 4.4."""
    measured = found["all rows"]["value"]["contingency"]
    lines = [
        [sign, *map(str, printed), *map(str, here)]
        for sign, printed, here in zip(("+", "−"), TABLE_4_4, measured, strict=True)
    ]
    return markdown(["class", "X = 0, thesis", "X = 1, thesis", "low here", "high here"], lines)


def _beside(printed: tuple[float, ...] | None, rows: list[Any]) -> list[str]:
    """Printed and measured means, the latter with their standard deviation over folds."""
    cells = []
    for place, rate in enumerate(("acc", "tpr", "tnr")):
        values = [row[rate] for row in rows if row is not None and row[rate] is not None]
        cells.append(NONE if printed is None else f"{printed[place]:.3f}")
        cells.append(f"{np.mean(values):.3f} ({np.std(values):.3f})" if values else NONE)
    return cells


def _counts(counted: Counter[Any]) -> str:
    return ", ".join(f"{value}: {count}" for value, count in sorted(counted.items())) or NONE


if __name__ == "__main__":
    print(f"wrote {main(docs_options(__doc__).parse_args().docs)}")
