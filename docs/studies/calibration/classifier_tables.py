"""Tables of docs/calibration.md on the classifiers that users would take instead."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from docs.studies.calibration.classifier_results import (
    Beside,
    every_method,
    methods_of,
    ours_of,
    ratio,
)
from docs.studies.calibration.classifiers import CLASSIFIERS, OURS
from docs.studies.calibration.losses import LOSSES
from gpu.benchmarks.common.tables import NOT_MEASURED, figures, markdown

__all__ = ["beside", "costs", "out_of_bag", "ratios", "unfloored", "worst"]

_COSTS = ("fit", "predict")


def ratios(tables: Sequence[Beside], loss: str, ours: str, other_loss: str) -> str:
    """One of ours beside each peer and the best one, by a loss; the ratio of another beside it."""
    lines, most = [], sum(ours in each.methods for each in tables)
    for peer in (None, *(method for method in every_method() if method not in OURS)):
        found, other = (ratio(tables, each, ours, peer) for each in (loss, other_loss))
        if found is None or other is None:
            continue
        center, low, high = found.mean
        name = "**best peer of each table**" if peer is None else peer
        lines.append(
            [
                name if found.tables == most else f"{name} ({found.tables} tables)",
                f"**{center:.3f}** ({low:.2f}–{high:.2f})"
                if found.tables > 2
                else f"**{center:.3f}**",
                f"{other.mean[0]:.3f}",
                f"{found.worst:.2f} ({found.worst_table})",
                "/".join(map(str, found.counts)),
            ]
        )
    header = [f"`{ours}` beside, {most} tables", f"ratio, {loss}", f"ratio, {other_loss}"]
    return markdown([*header, "worst (table)", "wins/ties/losses"], lines)


def unfloored(tables: Sequence[Beside], ours: str) -> str:
    """Ratios of one of ours to the best peers without the floor, by the name of the loss."""
    found = {loss: ratio(tables, loss, ours, None) for loss in LOSSES}
    return ", ".join(f"{each.unfloored:.3f} ({loss})" for loss, each in found.items() if each)


def beside(tables: Sequence[Beside], loss: str) -> str:
    """Ours less the best peer of each table, with both intervals."""
    lines = []
    for each in tables:
        peer = each.best_peer(loss)
        line = [each.name, f"{each.rows:,} × {each.columns:,}", peer]
        for ours in ours_of(tables):
            if ours not in each.methods:
                line.append(NOT_MEASURED)
                continue
            gap = each.compared(loss, ours, peer)
            text = f"{gap.difference:+.4f} ± {gap.of_rows:.4f} ({gap.of_folds:.4f})"
            line.append(f"**{text}**" if gap.verdict else text)
        lines.append(line)
    return markdown(
        ["", "rows × columns", "best peer", *(f"`{name}`" for name in ours_of(tables))], lines
    )


def out_of_bag(tables: Sequence[Beside]) -> str:
    """Log-loss of rows held out less that of training rows left out, with its standard error."""
    names, lines = ours_of(tables), []
    for each in tables:
        line = [each.name]
        for name in names:
            stated = each.classifiers.get(name, {}).get("out of bag")
            if stated is None:
                line.append(NOT_MEASURED)
                continue
            gap, error = each.mean("log-loss", name) - np.mean(stated), each.errors[name]
            text = f"{gap:+.4f} ± {error:.4f}"
            line.append(text if abs(gap) <= error else f"**{text}**")
        lines.append(line)
    return markdown(["", *(f"`{name}`" for name in names)], lines)


def worst(tables: Sequence[Beside], loss: str, ours: str) -> list[str]:
    """Tables on which one of ours loses to the best peer, by the interval of the rows."""
    return [
        each.name
        for each in tables
        if ours in each.methods and each.compared(loss, ours, each.best_peer(loss)).verdict == -1
    ]


def costs(tables: Sequence[Beside]) -> str:
    """Seconds of a core of every method: medians over the tables that have it."""
    lines = []
    for name in CLASSIFIERS:
        has = [each.classifiers[name] for each in tables if name in each.classifiers]
        if not has:
            continue
        for method in methods_of(name):
            label = f"`{method}`" if method in OURS else method
            label += f" ({len(has)} tables)" if len(has) < len(tables) else ""
            seconds = [figures(median(each[what][method] for each in has), 2) for what in _COSTS]
            lines.append([label, *seconds])
    return markdown(["", "fit, s", "predict, s"], lines)
