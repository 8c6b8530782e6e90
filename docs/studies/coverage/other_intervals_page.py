"""docs/other_intervals.md: our intervals beside those of other packages."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from scipy.stats import gmean, t

from bootprob.runtime.files import replace_when_complete
from docs.studies.coverage.interval_methods import LIMIT, METHODS, OURS
from docs.studies.coverage.known_truths import BANK
from gpu.benchmarks.common import documents
from gpu.benchmarks.common.study_results import load
from gpu.benchmarks.common.tables import NONE, NOT_MEASURED, markdown

__all__ = [
    "FILE",
    "TABLE",
    "WANTED",
    "Case",
    "by_truth",
    "every",
    "overview",
    "read",
    "verdict",
    "warned",
    "write",
]

FILE = "other_intervals.json"
TABLE = "other_intervals.csv"
WANTED = 0.93
"""Coverage of nominal 95 % from which an interval counts as one that covers."""

_WARNING = "LackOfFitWarning"
_COLUMNS = ("sets", "failed", "seconds")
_MEANS = ("coverage", "error of coverage", "width", "error of width")


@dataclass(frozen=True)
class Case:
    """What was measured on a truth.

    Attributes
    ----------
    truth : str
    n : int
        Rows of a training set.
    methods : dict
        What `other_intervals.summary` says of each.
    """

    truth: str
    n: int
    methods: dict[str, Any]

    def covers(self, name: str) -> bool:
        """Whether a method reaches `WANTED` here without a failure."""
        entry = self.methods[name]
        return entry["failed"] == 0 and entry["coverage"][0] >= WANTED

    def misses(self, name: str) -> bool:
        """Whether its coverage is below `WANTED` by more than the luck of the sets, or it failed.

        That is, the upper end of the 95 % interval of Student's t over sets.
        """
        entry = self.methods[name]
        if entry["failed"]:
            return True
        coverage, error = entry["coverage"]
        return error is not None and coverage + t.ppf(0.975, entry["sets"] - 1) * error < WANTED

    def narrowest(self) -> str | None:
        """The method with the least width of those that cover; the limit is none."""
        found = [name for name in self.methods if name != LIMIT and self.covers(name)]
        return min(found, key=lambda name: self.methods[name]["width"][0], default=None)


def read(results: dict[str, Any], rows: str) -> list[Case]:
    """Truths that were measured with so many rows, in the order of the bank."""
    found = results["rows"][rows]
    names = [truth.name for truth in BANK if truth.name in found]
    return [Case(name, found[name]["n"], found[name]["methods"]) for name in names]


def overview(cases: Sequence[Case]) -> str:
    """One line a method, over the truths on which it was measured."""
    header = ["", "truths × sets", "≥ 93 %", "narrowest", "clearly below", "least", "mean"]
    header += ["lowest tenth", "highest tenth", "width / limit's", "seconds", "failed"]
    return markdown(header, (_line(name, cases) for name in (LIMIT, *METHODS)))


def _line(name: str, cases: Sequence[Case]) -> list[str]:
    label = f"`{name}`" if name in OURS else name
    having = [case for case in cases if name in case.methods]
    if not having:
        return [label, *[NOT_MEASURED] * 11]
    entries = [case.methods[name] for case in having]
    sets = sorted({entry["sets"] for entry in entries})
    whole = [case for case in having if "coverage" in case.methods[name]]
    least = min(whole, key=lambda case: case.methods[name]["coverage"][0])
    errors = [case.methods[name]["coverage"][1] for case in whole]
    known = NONE if None in errors else _percent(mean(errors))
    tenths = [_percent(mean(case.methods[name][f"{which} tenth"] for case in whole))
              for which in ("lowest", "highest")]  # fmt: skip
    return [
        label,
        f"{len(having)} × {' to '.join(str(each) for each in dict.fromkeys((sets[0], sets[-1])))}",
        str(sum(case.covers(name) for case in having)),
        NONE if name == LIMIT else str(sum(case.narrowest() == name for case in having)),
        str(sum(case.misses(name) for case in having)),
        f"{_percent(least.methods[name]['coverage'][0])} ({least.truth})",
        f"{_percent(mean(case.methods[name]['coverage'][0] for case in whole))} ± {known}",
        *tenths,
        f"{ratio(name, cases):.2f}",
        f"{median(entry['seconds'] for entry in entries):.2f}",
        str(sum(entry["failed"] for entry in entries)),
    ]


def ratio(name: str, cases: Sequence[Case]) -> float:
    """Geometric mean, over truths, of a method's mean width divided by the limit's."""
    widths = [
        [case.methods[each]["width"][0] for each in (name, LIMIT)]
        for case in cases
        if name in case.methods and "width" in case.methods[name]
    ]
    of_method, of_limit = np.transpose(widths)
    return float(gmean(of_method / of_limit))


def by_truth(cases: Sequence[Case]) -> str:
    """Coverage with its error, and mean width: of the limit, the default, the narrowest."""
    names = [LIMIT, next(iter(OURS))]
    lines = []
    for case in cases:
        narrowest = case.narrowest()
        best = NONE if narrowest is None else f"{narrowest}: {_cell(case.methods[narrowest])}"
        if narrowest == names[1]:
            best = "the same"
        n = f" ({case.n:,} rows)" if case.n != cases[0].n else ""
        lines.append([f"{case.truth}{n}", *(_cell(case.methods.get(name)) for name in names), best])
    return markdown(["truth", names[0], f"`{names[1]}`", "narrowest of all that reach 93 %"], lines)


def every(cases: Sequence[Case]) -> str:
    """CSV of all methods on all truths."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["truth", "n", "method", *_COLUMNS, *_MEANS])
    for case in cases:
        for name, entry in case.methods.items():
            numbers = (*entry.get("coverage", ["", ""]), *entry.get("width", ["", ""]))
            stated = ("" if number is None else number for number in numbers)
            writer.writerow([case.truth, case.n, name, *(entry[c] for c in _COLUMNS), *stated])
    return file.getvalue()


def _cell(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return NOT_MEASURED
    if "coverage" not in entry:
        return "failed"
    coverage, error = entry["coverage"]
    spread = NONE if error is None else _percent(error)
    return f"{_percent(coverage)} ± {spread} / {entry['width'][0]:.3f}"


def verdict(cases: Sequence[Case]) -> str:
    """Who covers everywhere, and how wide, of the methods that were measured on every truth."""
    names = [name for name in METHODS if all(name in case.methods for case in cases)]
    on = {name: sum(case.covers(name) for case in cases) for name in (LIMIT, *names)}
    everywhere = [name for name in names if on[name] == len(cases)]
    widths = (f"{n} ({ratio(n, cases):.2f} × the limit's width)" for n in everywhere)
    often = sorted(names, key=lambda name: -on[name])[:3]
    return (
        f"At least 93 % on each of the {len(cases)} truths: {', '.join(widths) or 'none'}. "
        f"Most often at least 93 %: {', '.join(f'{name} on {on[name]}' for name in often)}; the "
        f"limit itself, by the luck of so few sets, on {on[LIMIT]}."
    )


def warned(cases: Sequence[Case]) -> str:
    """In how many sets ours warned, where they cover and where they do not."""
    lines = []
    for name in OURS:
        having = [case for case in cases if name in case.methods]
        below, above = (
            [case.methods[name] for case in having if case.covers(name) == covers]
            for covers in (False, True)
        )
        if having:
            lines.append(
                f"`{name}` warned of lack of fit in {_share_of_sets(below)} on truths where it "
                f"covers less than 93 %, and in {_share_of_sets(above)} on the others."
            )
    return "\n".join(lines)


def _share_of_sets(entries: Sequence[dict[str, Any]]) -> str:
    count = sum(entry["warnings"].get(_WARNING, 0) for entry in entries)
    return f"{count} of {sum(entry['sets'] for entry in entries)} sets"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def write(docs: Path) -> Path:
    """Write the document, and a table of all methods, from the results beside it; its path."""
    results = load(docs / "results" / FILE)
    sizes = {int(rows): read(results, rows) for rows in sorted(results["rows"], key=int)}
    with replace_when_complete(docs / "results" / TABLE) as file:
        file.write(every([case for cases in sizes.values() for case in cases]).encode())
    return documents.write(
        docs / "other_intervals.md",
        "docs/studies/coverage/other_intervals.md.jinja",
        sizes=sizes,
        environment=results["environment"],
        versions=results["versions"],
        limit=LIMIT,
        methods=METHODS,
        ours=OURS,
        overview=overview,
        by_truth=by_truth,
        verdict=verdict,
        warned=warned,
    )
