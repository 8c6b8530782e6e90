"""Write docs/calibration.md from what is in docs/results; nothing is measured here.

python -m docs.studies.calibration.document
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from docs.studies.calibration import classifier_tables, tabarena_table
from docs.studies.calibration.classifiers import SCORED, WIDEST
from docs.studies.calibration.losses import LOSSES, Comparison, compare
from docs.studies.calibration.methods import OURS, PEERS
from gpu.benchmarks.common import documents
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.datasets import LOADERS
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import load
from gpu.benchmarks.common.tables import NOT_MEASURED, figures, markdown

__all__ = ["against_peers", "best_peer", "choices", "differences", "losses", "main", "variants"]

KERNELS = {"linear": "linear kernel", "rbf": "RBF kernel"}

_NEVER_CERTAIN = tuple(peer for peer in PEERS if not peer.startswith("isotonic"))

Entry = dict[str, Any]


def main(docs: Path = DOCS) -> Path:
    """Write the document from what is in results/ below the folder `docs`; its path."""
    results = load(docs / "results" / "calibration.json")
    found = results.get("data sets", {})
    return documents.write(
        docs / "calibration.md",
        "docs/studies/calibration/document.md.jinja",
        results=results,
        found=found,
        kernels={k: title for k, title in KERNELS.items() if any(_compared(found, k))},
        all_losses=tuple(LOSSES),
        bootstraps=_bootstraps(found),
        default=OURS[0],
        side=("sigmoid", "sigmoid-both"),
        side_loss="log-loss",
        losses=losses,
        differences=differences,
        shown=(OURS[0], "sigmoid-both", "auto"),
        against_peers=against_peers,
        variants=variants,
        choices=choices,
        measured=measured,
        unlike=unlike,
        beside=_classifiers(docs / "results" / "classifiers"),
    )


def _classifiers(folder: Path) -> str:
    """The section on classifiers that users would take instead."""
    tables = classifier_tables.read(folder)
    return documents.render(
        "docs/studies/calibration/classifiers.md.jinja",
        tables=tables,
        incomplete=classifier_tables.incomplete(folder, tuple(LOADERS)),
        ours=classifier_tables.ours_of(tables),
        widest=WIDEST,
        scored=SCORED,
        seed=0,
        all_losses=tuple(LOSSES),
        worst=classifier_tables.worst,
        ratios=classifier_tables.ratios,
        beside=classifier_tables.beside,
        losses=classifier_tables.losses,
        costs=classifier_tables.costs,
        out_of_bag=classifier_tables.out_of_bag,
        arena=tabarena_table.measured(folder),
        published=tabarena_table.published(),
    )


def losses(found: dict[str, Entry], kernel: str, loss: str) -> str:
    """Mean loss of every method on every data set; the lowest of ours and of the peers in bold."""
    lines = []
    for name, _, cell in _compared(found, kernel):
        line = [name]
        for methods in (OURS, PEERS):
            means = {method: _mean(cell, loss, method) for method in methods}
            least = min(f"{value:.4f}" for value in means.values())
            shown = (f"{value:.4f}" for value in means.values())
            line += [f"**{value}**" if value == least else value for value in shown]
        lines.append(line)
    return markdown(["", *(f"`{m}`" for m in OURS), *PEERS], lines)


def differences(found: dict[str, Entry], kernel: str, methods: tuple[str, ...]) -> str:
    """Losses of some of ours less those of the best peer, with both intervals."""
    lines = []
    for name, entry, cell in _compared(found, kernel):
        for loss in LOSSES:
            peer = best_peer(cell, loss)
            pairs = (compare(cell, loss, method, peer, entry["rows"]) for method in methods)
            lines.append([name, loss, peer, *(_interval(each) for each in pairs)])
    return markdown(["", "", "best peer", *(f"`{method}`" for method in methods)], lines)


def against_peers(found: dict[str, Entry], kernel: str, loss: str) -> str:
    """Wins / ties / losses of each of ours over all data sets by opponent, and mean losses."""
    cells = list(_compared(found, kernel))
    opponents = {"best peer": PEERS, "best but isotonic": _NEVER_CERTAIN}
    opponents |= {peer: (peer,) for peer in PEERS}
    means = {
        name: float(np.mean([_mean(cell, loss, best_peer(cell, loss, of)) for *_, cell in cells]))
        for name, of in opponents.items()
    }
    lines = []
    for method in OURS:
        own = float(np.mean([_mean(cell, loss, method) for *_, cell in cells]))
        ratio = own / means["best peer"] if means["best peer"] > 0 else np.inf
        line = [f"`{method}`", f"{own:.4f}", f"{ratio:.3f}"]
        for of in opponents.values():
            verdicts = Counter(
                compare(cell, loss, method, best_peer(cell, loss, of), entry["rows"]).verdict
                for _, entry, cell in cells
            )
            line.append(" / ".join(str(verdicts[key]) for key in (1, 0, -1)))
        lines.append(line)
    lines.append(["mean loss of the peer", "", "", *(f"{mean:.4f}" for mean in means.values())])
    return markdown(["", "mean loss", "ratio to the best peer", *opponents], lines)


def variants(found: dict[str, Entry], kernel: str, loss: str, calibration: str) -> str:
    """Loss of the default and what other weights do to it, where they were measured."""
    names = list(
        dict.fromkeys(
            group
            for _, _, cell in _cells(found, kernel)
            for group in cell["groups"]
            if group not in ("ours", "peers")
        )
    )
    if not names:
        return "Not measured."
    lines = []
    means: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for name, entry, cell in _cells(found, kernel):
        measured = [group for group in names if group in cell["groups"]]
        if "ours" not in cell["groups"] or not measured:
            continue
        default = _mean(cell, loss, calibration)
        line = [name, f"{default:.4f}"]
        for group in names:
            if group not in measured:
                line.append("–")
                continue
            method = f"{group}: {calibration}"
            mean = _mean(cell, loss, method)
            means[group].append((default, mean))
            gap = compare(cell, loss, method, calibration, entry["rows"])
            line.append(f"{mean:.4f} ({_interval(gap)})")
        lines.append(line)
    line = ["**mean**", ""]
    for of_group in means.values():
        default, mean = np.mean(of_group, axis=0)
        line.append(f"**{mean:.4f}**, default {default:.4f}")
    lines.append(line)
    return markdown(["", "default", *names], lines)


def choices(found: dict[str, Entry], kernel: str) -> str:
    """What "auto" took, in how many folds, and C of the peers' SVC."""
    lines = []
    for name, _, cell in _compared(found, kernel):
        taken = Counter(cell["chosen"]["ours"]).most_common()
        tuned = sorted(Counter(cell["chosen"]["peers"]).items())
        lines.append(
            [
                name,
                ", ".join(f"{what} {times}" for what, times in taken),
                ", ".join(f"{C:g} ({times})" for C, times in tuned),
            ]
        )
    return markdown(["", '`"auto"`', "C of the peers' SVC (folds)"], lines)


def measured(found: dict[str, Entry]) -> str:
    """Rows, folds and seconds."""
    lines = []
    for name, entry in found.items():
        share = entry["positives"] / entry["rows"]
        line = [name, f"{entry['rows']:,}", f"{entry['columns']:,}", f"{100 * share:.0f} %"]
        for kernel in KERNELS:
            cell = entry.get(kernel)
            line.append(NOT_MEASURED if cell is None else str(cell["folds"]))
            seconds = {} if cell is None else cell["seconds"]
            line += [figures(seconds.get(group), 2) for group in ("ours", "peers")]
        lines.append(line)
    header = ["", "rows", "columns", "positives"]
    for kernel in KERNELS:
        header += [f"folds, {kernel}", "ours, s", "peers, s"]
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
