"""What the promise tests measured of the intervals' coverage, as docs/coverage.md with plots.

    python -m docs.studies.coverage.document [--results FOLDER] [--docs FOLDER]

Reads the JSON files that `make promises` leaves in tests/promises/results, and measures nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from docs.studies.coverage.known_truths import COVERED
from gpu.benchmarks.common import documents
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.places import ROOT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["load", "main", "missing", "render"]

LIMIT = "true model's Fisher interval"
DEFAULT = "corrected"
PROMISED = (0.93, 0.97)
SIZES = (200, 500, 2000)  # of tests/promises/test_coverage.py
_INK, _FAINT, _OURS, _OTHER, _LIMIT = "#1d2733", "#c9d0d7", "#2a6fa8", "#c2500c", "#6b7785"

Case = dict[str, Any]


def load(folder: Path) -> list[Case]:
    """Measurements of all cases, in the order of the truths and of n."""
    files = folder.glob("coverage_*_*.json")
    found = [json.loads(path.read_text(encoding="utf-8")) | {"file": path.stem} for path in files]
    cases = [entry["measured"] | {"file": entry["file"]} for entry in found]
    return sorted(cases, key=lambda case: (int(case["file"].split("_")[1]), case["n"]))


def render(cases: list[Case], versions: dict[str, str]) -> str:
    """Text of docs/coverage.md."""
    return documents.render(
        "docs/studies/coverage/document.md.jinja",
        cases=cases,
        missing=missing(cases),
        versions=versions,
        methods=_methods(cases),
        limit=LIMIT,
        default=DEFAULT,
    )


def missing(cases: list[Case]) -> dict[str, list[int]]:
    """Numbers of rows that were not measured yet, for each truth that has any."""
    measured = {(case["truth"], case["n"]) for case in cases}
    found = {each.name: [n for n in SIZES if (each.name, n) not in measured] for each in COVERED}
    return {name: sizes for name, sizes in found.items() if sizes}


def _methods(cases: list[Case]) -> list[str]:
    return [method for method in cases[0]["coverage"] if method not in (LIMIT, DEFAULT)]


def draw_by_case(cases: list[Case]) -> Figure:
    """Coverage at 95 % and width beside the limit, for every truth and number of rows."""
    figure = _figure(8.4, 0.24 * len(cases) + 1.1)
    coverage, width = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    heights = -np.arange(len(cases), dtype=float)
    coverage.axvspan(*PROMISED, color="#e6f0f7", zorder=0)
    coverage.axvline(0.95, color=_FAINT, linewidth=1)
    for method, color, marker in (
        ("normal", _OTHER, "|"), ("jackknife", _OTHER, "x"), (LIMIT, _LIMIT, "o"),
        (DEFAULT, _OURS, "D"),
    ):  # fmt: skip
        known = [(h, case) for h, case in zip(heights, cases, strict=True)
                 if method in case["coverage"]]  # fmt: skip
        values = [case["coverage"][method]["0.95"] for _, case in known]
        errors = [
            1.96 * case["standard error of the coverage"][method]["0.95"] for _, case in known
        ]
        at = np.array([h for h, _ in known])
        if method == DEFAULT:
            coverage.errorbar(values, at, xerr=errors, fmt="none", ecolor=color, linewidth=1)
        coverage.plot(values, at, marker, color=color, markersize=4, label=method, linestyle="")
    coverage.set_xlim(0.75, 1.0)
    coverage.set_xlabel("coverage of nominal 95 %")
    for h, case in zip(heights, cases, strict=True):
        if case["within reach"] is False:
            coverage.annotate(
                f"{case['coverage'][DEFAULT]['0.95']:.2f}, warned", (0.755, h), fontsize=7,
                va="center", color=_INK,
            )  # fmt: skip
    labels = [f"{case['truth']}, n = {case['n']:,}" for case in cases]
    coverage.set_yticks(heights, labels, fontsize=7)
    coverage.legend(fontsize=7, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
    ratios = [
        case["mean width"][DEFAULT]["0.95"] / case["mean width"][LIMIT]["0.95"]
        if LIMIT in case["mean width"] and case["within reach"]
        else np.nan
        for case in cases
    ]
    width.plot(ratios, heights, "D", color=_OURS, markersize=4)
    width.axvline(1, color=_FAINT, linewidth=1)
    width.set_xlabel("width / the limit's")
    return figure


def draw_by_probability(cases: list[Case]) -> Figure:
    """Coverage as a function of the true probability, one panel for each truth, at n = 500."""
    shown = [case for case in cases if case["n"] == 500 and case["within reach"] is not False]
    columns = 3
    rows = -(-len(shown) // columns)
    figure = _figure(8.4, 1.9 * rows)
    panels = np.atleast_1d(figure.subplots(rows, columns, sharey=True)).ravel()
    for axes, case in zip(panels, shown, strict=False):
        _draw_panel(axes, case)
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    panels[0].legend(fontsize=6, frameon=False, loc="lower center", ncols=2)
    return figure


def _draw_panel(axes: Axes, case: Case) -> None:
    p = np.array(case["true probability in the bins"])
    axes.axhspan(*PROMISED, color="#e6f0f7", zorder=0)
    for method, color, marker in ((LIMIT, _LIMIT, "o"), ("normal", _OTHER, "|"),
                                  (DEFAULT, _OURS, "D")):  # fmt: skip
        if method in case["coverage in the bins"]:
            values = case["coverage in the bins"][method]
            axes.plot(p, values, f"{marker}-", color=color, markersize=3, linewidth=0.8,
                      label="true model" if method == LIMIT else method)  # fmt: skip
    if p.min() < 0.02:
        axes.set_xscale("log")
    axes.set_ylim(0.6, 1.0)
    axes.set_title(case["truth"], fontsize=8, color=_INK)
    axes.tick_params(labelsize=7)
    axes.set_xlabel("true probability", fontsize=7)


def _figure(width: float, height: float) -> Figure:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "bootprob"  # the same numbers give the same file
    return Figure(figsize=(width, height), layout="constrained")


def main() -> None:
    """Write the document and its figures."""
    parser = docs_options(__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "tests" / "promises" / "results")
    given = parser.parse_args()
    cases = load(given.results)
    if not cases:
        parser.error(f"{given.results} has no coverage_*_*.json; run make promises first.")
    stored = json.loads((given.results / f"{cases[0]['file']}.json").read_text(encoding="utf-8"))
    text = render(cases, stored["environment"]["versions"])
    (given.docs / "coverage.md").write_text(text, encoding="utf-8")
    for name, draw in (("cases", draw_by_case), ("probability", draw_by_probability)):
        path = given.docs / "results" / f"coverage_by_{name}.svg"
        draw(cases).savefig(path, metadata={"Date": None})
    print(f"wrote {given.docs / 'coverage.md'} and its two figures")


if __name__ == "__main__":
    main()
