"""Write docs/calibration.md from what is in docs/results; nothing is measured here.

What the page sums up goes, table by table, to CSV files in docs/results (`details`).

    python -m docs.studies.calibration.document
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from docs.studies.calibration import (
    classifier_results,
    classifier_tables,
    details,
    tabarena_table,
)
from docs.studies.calibration.classifiers import SCORED, WIDEST
from docs.studies.calibration.losses import Comparison, compare
from docs.studies.calibration.methods import OURS, PEERS
from gpu.benchmarks.common import documents
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.datasets import LOADERS
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import load
from gpu.benchmarks.common.tables import NONE, figures, markdown

__all__ = ["against_peers", "best_peer", "choices", "differences", "main", "pages", "variants"]

KERNELS = {"linear": "linear kernel", "rbf": "RBF kernel"}

_NEVER_CERTAIN = tuple(peer for peer in PEERS if not peer.startswith("isotonic"))

_SIDE = ("sigmoid", "sigmoid-both")
"""Calibrations with which other weights were measured."""

Entry = dict[str, Any]


def main(docs: Path = DOCS) -> Path:
    """Write the document, and tables beside the results; its path.

    Parameters
    ----------
    docs : Path
        A folder with the results in its folder results/.
    """
    page, files = pages(docs)
    details.write(files, docs / "results")
    path = docs / "calibration.md"
    details.write({path.name: page}, docs)
    return path


def pages(docs: Path = DOCS) -> tuple[str, dict[str, str]]:
    """The text of the document, and of the tables by their names in results/."""
    results = load(docs / "results" / "calibration.json")
    found = results.get("data sets", {})
    tables = classifier_results.read(docs / "results" / "classifiers")
    text = documents.render(
        "docs/studies/calibration/document.md.jinja",
        results=results,
        found=found,
        kernels={k: title for k, title in KERNELS.items() if any(_compared(found, k))},
        bootstraps=_bootstraps(found),
        folds=_folds(found),
        differences=differences,
        shown=(OURS[0], "sigmoid-both", "auto"),
        against_peers=against_peers,
        variants=variants,
        choices=choices,
        measured=measured,
        unlike=unlike,
        beside=_classifiers(docs / "results" / "classifiers", tables),
    )
    return text, {**details.of_calibrations(found), **details.of_classifiers(tables)}


def _classifiers(folder: Path, tables: list[classifier_results.Beside]) -> str:
    """The section on classifiers that users would take instead."""
    return documents.render(
        "docs/studies/calibration/classifiers.md.jinja",
        tables=tables,
        incomplete=classifier_results.incomplete(folder, tuple(LOADERS)),
        unmeasured=classifier_results.unmeasured(tables),
        ours=classifier_results.ours_of(tables),
        widest=WIDEST,
        scored=SCORED,
        seed=0,
        worst=classifier_tables.worst,
        ratios=classifier_tables.ratios,
        unfloored=classifier_tables.unfloored,
        beside=classifier_tables.beside,
        costs=classifier_tables.costs,
        out_of_bag=classifier_tables.out_of_bag,
        arena=tabarena_table.measured(folder),
        published=tabarena_table.published(),
    )


def differences(found: dict[str, Entry], kernel: str, methods: tuple[str, ...], loss: str) -> str:
    """Losses of some of ours less those of the best peer, with both intervals."""
    lines = []
    for name, entry, cell in _compared(found, kernel):
        peer = best_peer(cell, loss)
        pairs = (compare(cell, loss, method, peer, entry["rows"]) for method in methods)
        lines.append([name, peer, *(_interval(each) for each in pairs)])
    return markdown(["", "best peer", *(f"`{method}`" for method in methods)], lines)


def against_peers(found: dict[str, Entry], kernel: str, loss: str, other_loss: str) -> str:
    """Wins/ties/losses of each of ours over all data sets by opponent, and mean losses.

    Parameters
    ----------
    found : dict
    kernel, loss : str
    other_loss : str
        Of which the ratio to the best peer is shown, too.
    """
    cells = list(_compared(found, kernel))
    opponents = {"best peer": PEERS, "best but isotonic": _NEVER_CERTAIN}
    opponents |= {peer: (peer,) for peer in PEERS}
    lines = []
    for method in OURS:
        line = [f"`{method}`", f"{_over_tables(cells, loss, (method,)):.4f}"]
        for each in (loss, other_loss):
            least = _over_tables(cells, each, PEERS)
            own = _over_tables(cells, each, (method,))
            line.append(f"{own / least if least > 0 else np.inf:.3f}")
        for of in opponents.values():
            verdicts = Counter(
                compare(cell, loss, method, best_peer(cell, loss, of), entry["rows"]).verdict
                for _, entry, cell in cells
            )
            line.append("/".join(str(verdicts[key]) for key in (1, 0, -1)))
        lines.append(line)
    means = (f"{_over_tables(cells, loss, of):.4f}" for of in opponents.values())
    lines.append([f"mean {loss} of the peer", "", "", "", *means])
    header = ["", f"mean {loss}", "ratio to the best peer", f"ratio, {other_loss}"]
    return markdown([*header, *opponents], lines)


def _over_tables(cells: list[tuple[str, Entry, Entry]], loss: str, of: tuple[str, ...]) -> float:
    """Mean over the data sets of the lowest loss of some methods."""
    return float(np.mean([_mean(cell, loss, best_peer(cell, loss, of)) for *_, cell in cells]))


def variants(found: dict[str, Entry], loss: str) -> str:
    """What other weights than the defaults do to a loss: means, and where they differ."""
    lines = []
    for kernel, title in KERNELS.items():
        cells = [each for each in _cells(found, kernel) if "ours" in each[2]["groups"]]
        groups = dict.fromkeys(group for _, _, cell in cells for group in cell["groups"])
        for group in (name for name in groups if name not in ("ours", "peers")):
            has = [each for each in cells if group in each[2]["groups"]]
            for default in _SIDE:
                method = f"{group}: {default}"
                gaps = {
                    name: compare(cell, loss, method, default, entry["rows"]).verdict
                    for name, entry, cell in has
                }
                means = [np.mean([_mean(c, loss, m) for *_, c in has]) for m in (method, default)]
                unlike = (
                    ", ".join(name for name, verdict in gaps.items() if verdict == wanted) or NONE
                    for wanted in (1, -1)
                )
                label = f"{title.removesuffix(' kernel')}, `{default}`, {group}"
                lines.append([label, str(len(has)), *(f"{m:.4f}" for m in means), *unlike])
    if not lines:
        return "Not measured."
    header = ["", "tables", f"mean {loss}", "of the default", "better on", "worse on"]
    return markdown(header, lines)


def choices(found: dict[str, Entry], kernel: str) -> str:
    """What "auto" took, in how many folds of all data sets."""
    taken = Counter(
        each for *_, cell in _compared(found, kernel) for each in cell["chosen"]["ours"]
    )
    shown = ", ".join(f"{what} {times}" for what, times in taken.most_common())
    return f"{shown} of {taken.total()} folds"


def measured(found: dict[str, Entry]) -> str:
    """Rows and seconds."""
    lines = []
    for name, entry in found.items():
        share = entry["positives"] / entry["rows"]
        line = [name, f"{entry['rows']:,}", f"{entry['columns']:,}", f"{100 * share:.0f} %"]
        for kernel in KERNELS:
            seconds = entry[kernel]["seconds"] if kernel in entry else {}
            line += [figures(seconds.get(group), 2) for group in ("ours", "peers")]
        lines.append(line)
    header = ["", "rows", "columns", "positives"]
    for kernel in KERNELS:
        header += [f"ours, {kernel}, s", "peers, s"]
    return markdown(header, lines)


def unlike(found: dict[str, Entry], kernel: str, loss: str, method: str) -> dict[int, list[str]]:
    """Data sets on which a method is better (1) or worse (−1) than the best peer."""
    by: dict[int, list[str]] = {1: [], -1: []}
    for name, entry, cell in _compared(found, kernel):
        verdict = compare(cell, loss, method, best_peer(cell, loss), entry["rows"]).verdict
        if verdict:
            by[verdict].append(name)
    return by


def best_peer(cell: Entry, loss: str, peers: tuple[str, ...] = PEERS) -> str:
    """The peer with the lowest mean loss on these very rows: nobody could have picked it before."""
    return min(peers, key=lambda peer: _mean(cell, loss, peer))


def _bootstraps(found: dict[str, Entry]) -> str:
    """B of all that was measured."""
    used = {cell["settings"]["bootstraps"] for k in KERNELS for _, _, cell in _cells(found, k)}
    return " or ".join(map(str, sorted(used)))


def _folds(found: dict[str, Entry]) -> str:
    """Outer folds of all that was measured."""
    used = {cell["folds"] for k in KERNELS for _, _, cell in _cells(found, k)}
    return " or ".join(map(str, sorted(used)))


def _cells(found: dict[str, Entry], kernel: str) -> Iterator[tuple[str, Entry, Entry]]:
    for name, entry in found.items():
        if kernel in entry:
            yield name, entry, entry[kernel]


def _compared(found: dict[str, Entry], kernel: str) -> Iterator[tuple[str, Entry, Entry]]:
    """Those with ours and the peers."""
    for name, entry, cell in _cells(found, kernel):
        if {"ours", "peers"} <= set(cell["groups"]):
            yield name, entry, cell


def _mean(cell: Entry, loss: str, method: str) -> float:
    """Mean over all held-out rows."""
    return float(np.average(cell[loss]["means"][method], weights=cell["held out"]))


def _interval(found: Comparison) -> str:
    text = f"{found.difference:+.4f} ± {found.of_rows:.4f} ({found.of_folds:.4f})"
    return f"**{text}**" if found.verdict else text


if __name__ == "__main__":
    print(f"wrote {main(docs_options(__doc__).parse_args().docs)}")
