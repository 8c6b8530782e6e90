"""What docs/calibration.md sums up, table by table: CSV files beside the results."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bootprob.runtime.files import replace_when_complete
from docs.studies.calibration.classifier_results import Beside, every_method, ours_of, ratio
from docs.studies.calibration.classifiers import OURS
from docs.studies.calibration.losses import LOSSES, Comparison, compare

__all__ = ["of_calibrations", "of_classifiers", "write"]

_GAP = ("difference", "± rows", "± folds", "verdict")
_VERDICTS = {1: "win", 0: "tie", -1: "loss"}
_DIGITS = 5

Line = Sequence[object]


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write texts by the name of the file; each is there as a whole or as it was."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_when_complete(path) as file:
            file.write(text.encode())


def of_calibrations(found: Mapping[str, Any]) -> dict[str, str]:
    """Losses of every calibration and peer, and all paired differences.

    Parameters
    ----------
    found : dict
        "data sets" of results/calibration.json.

    Returns
    -------
    dict of str
        CSV by the name of the file in results; none without a data set.
    """
    cells = [
        (kernel, name, entry["rows"], entry[kernel])
        for kernel in ("linear", "rbf")
        for name, entry in found.items()
        if kernel in entry
    ]
    if not cells:
        return {}
    return {
        "calibration/losses.csv": _csv(
            ("kernel", "table", "method", *LOSSES),
            (
                (kernel, name, method, *(_mean(cell, loss, method) for loss in LOSSES))
                for kernel, name, _, cell in cells
                for method in cell["log-loss"]["means"]
            ),
        ),
        "calibration/differences.csv": _csv(
            ("kernel", "table", "loss", "one", "other", *_GAP),
            (
                (kernel, name, loss, one, other, *_gap(compare(cell, loss, one, other, rows)))
                for kernel, name, rows, cell in cells
                for loss in LOSSES
                for one, other in (pair.split(" − ") for pair in cell[loss]["squares"])
            ),
        ),
    }


def of_classifiers(tables: Sequence[Beside]) -> dict[str, str]:
    """Losses and costs of every classifier, ratios and differences of ours.

    Parameters
    ----------
    tables : sequence of Beside

    Returns
    -------
    dict of str
        CSV by the name of the file in results; none without a table.
    """
    if not tables:
        return {}
    return {
        "classifiers/losses.csv": _csv(
            ("table", "method", *LOSSES),
            (
                (each.name, method, *(each.mean(loss, method) for loss in LOSSES))
                for each in tables
                for method in each.methods
            ),
        ),
        "classifiers/costs.csv": _csv(
            ("table", "method", "seconds to fit", "seconds to predict"),
            (
                (each.name, method, costs["fit"][method], costs["predict"][method])
                for each in tables
                for costs in each.classifiers.values()
                for method in costs["fit"]
            ),
        ),
        "classifiers/ratios.csv": _csv(
            (
                *("ours", "peer", "loss", "tables", "geometric mean", "from", "to"),
                *("without floor", "worst ratio", "worst table", "wins", "ties", "losses"),
            ),
            _ratios(tables),
        ),
        "classifiers/differences.csv": _csv(
            ("table", "loss", "ours", "best peer", *_GAP),
            _beside(tables),
        ),
    }


def _ratios(tables: Sequence[Beside]) -> Iterator[Line]:
    for ours in ours_of(tables):
        for peer in (None, *(method for method in every_method() if method not in OURS)):
            for loss in LOSSES:
                found = ratio(tables, loss, ours, peer)
                if found is not None:
                    yield (
                        *(ours, peer or "best peer of each table", loss, found.tables),
                        *(*found.mean, found.unfloored, found.worst, found.worst_table),
                        *found.counts,
                    )


def _beside(tables: Sequence[Beside]) -> Iterator[Line]:
    for each in tables:
        for loss in LOSSES:
            peer = each.best_peer(loss)
            for ours in (name for name in OURS if name in each.methods):
                yield (each.name, loss, ours, peer, *_gap(each.compared(loss, ours, peer)))


def _gap(found: Comparison) -> Line:
    return found.difference, found.of_rows, found.of_folds, _VERDICTS[found.verdict]


def _mean(cell: Mapping[str, Any], loss: str, method: str) -> float:
    """Mean over all held-out rows."""
    return float(np.average(cell[loss]["means"][method], weights=cell["held out"]))


def _csv(header: Line, lines: Iterable[Line]) -> str:
    """Text of a table, numbers to five significant digits."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    for line in lines:
        writer.writerow(
            [f"{x:.{_DIGITS}g}" if isinstance(x, float) else str(x) for x in line],
        )
    return file.getvalue()
