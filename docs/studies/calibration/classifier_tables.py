"""Tables of docs/calibration.md on the classifiers that users would take instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from docs.studies.calibration.classifiers import CLASSIFIERS, OURS
from docs.studies.calibration.losses import LEVEL, LOSSES, Comparison, compare, summarise
from gpu.benchmarks.common.study_results import load
from gpu.benchmarks.common.tables import NOT_MEASURED, figures, markdown

__all__ = [
    "Beside",
    "beside",
    "costs",
    "geometric_mean",
    "incomplete",
    "losses",
    "ours_of",
    "out_of_bag",
    "ratios",
    "read",
    "worst",
]


@dataclass(frozen=True)
class Beside:
    """What was measured on a table.

    Attributes
    ----------
    name : str
    rows, columns : int
    kept : dict
        What `summarise` says of every method.
    errors : dict
        Standard error of the mean log-loss, by method of ours.
    classifiers : dict
        Costs and choices, by classifier.
    """

    name: str
    rows: int
    columns: int
    kept: Mapping[str, Any]
    errors: Mapping[str, float]
    classifiers: Mapping[str, Any]

    @property
    def methods(self) -> list[str]:
        """In the order of `CLASSIFIERS`."""
        return [m for name in CLASSIFIERS if name in self.classifiers for m in _methods(name)]

    @property
    def peers(self) -> list[str]:
        """Methods that are not ours."""
        return [method for method in self.methods if method not in OURS]

    def mean(self, loss: str, method: str) -> float:
        """Over all rows; every row is held out once."""
        return float(np.average(self.kept[loss]["means"][method], weights=self.kept["held out"]))

    def best_peer(self, loss: str) -> str:
        """The one with the lowest loss on these very rows."""
        return min(self.peers, key=lambda peer: self.mean(loss, peer))

    def ratio(self, loss: str, one: str, other: str, floor: bool = True) -> float:
        """Of two mean losses, where a loss below 1 / rows counts as that, unless told otherwise.

        A table of n rows without an error does not say that errors are rarer than 1 in n.
        """
        least = 1 / self.rows if floor else 0.0
        losses = [max(self.mean(loss, method), least) for method in (one, other)]
        return losses[0] / losses[1] if losses[1] > 0 else np.inf

    def compared(self, loss: str, one: str, other: str) -> Comparison:
        """Paired, with the intervals of `losses.compare`."""
        return compare(self.kept, loss, one, other, self.rows)


def read(folder: Path) -> list[Beside]:
    """The tables on which all classifiers but slow ones are measured, from the folder's files."""
    found = []
    for name, entry in load(folder / "tables.json").get("data sets", {}).items():
        if _missing(entry):
            continue
        table = pd.read_csv(folder / f"{name}.csv")
        methods = [
            m for each in CLASSIFIERS if each in entry["classifiers"] for m in _methods(each)
        ]
        folds = [
            ({m: of_fold[m].to_numpy() for m in methods}, np.ones(len(of_fold), dtype=bool))
            for _, of_fold in table.groupby("fold")
        ]
        pairs = [
            (one, other) for one in OURS if one in methods for other in methods if other != one
        ]
        kept = summarise(folds, pairs)
        every = np.ones(len(table), dtype=bool)
        errors = {
            method: float(LOSSES["log-loss"](table[method].to_numpy(), every).std(ddof=1))
            / np.sqrt(len(table))
            for method in methods
            if method in OURS
        }
        found.append(Beside(name, len(table), entry["columns"], kept, errors, entry["classifiers"]))
    return found


def incomplete(folder: Path, names: Sequence[str]) -> list[str]:
    """Tables that `read` leaves out."""
    entries = load(folder / "tables.json").get("data sets", {})
    return [name for name in names if name not in entries or _missing(entries[name])]


def losses(tables: Sequence[Beside], loss: str) -> str:
    """Mean loss of every method on every table; the lowest in bold."""
    least = {each.name: min(f"{each.mean(loss, m):.4f}" for m in each.methods) for each in tables}
    lines = []
    for method in _every_method():
        line = [f"`{method}`" if method in OURS else method]
        for each in tables:
            value = f"{each.mean(loss, method):.4f}" if method in each.methods else NOT_MEASURED
            line.append(f"**{value}**" if value == least[each.name] else value)
        lines.append(line)
    return markdown(["", *(each.name for each in tables)], lines)


def ours_of(tables: Sequence[Beside]) -> list[str]:
    """Those of ours that were asked about a table."""
    return [name for name in OURS if any(name in each.methods for each in tables)]


def ratios(tables: Sequence[Beside], loss: str, ours: str) -> str:
    """The loss of one of ours divided by each peer's, over tables, and by the best peer's."""
    lines = []
    tables = [each for each in tables if ours in each.methods]
    for peer in [None, *(m for m in _every_method() if m not in OURS)]:
        has = [each for each in tables if peer is None or peer in each.methods]
        if not has:
            lines.append([str(peer), "0", *[NOT_MEASURED] * 5])
            continue
        against = [peer or each.best_peer(loss) for each in has]
        pairs = list(zip(has, against, strict=True))
        by = [each.ratio(loss, ours, other) for each, other in pairs]
        bare = [each.ratio(loss, ours, other, floor=False) for each, other in pairs]
        verdicts = Counter(each.compared(loss, ours, other).verdict for each, other in pairs)
        k = int(np.argmax(by))
        center, low, high = geometric_mean(by)
        unfloored = geometric_mean(bare)[0]
        lines.append(
            [
                "**best peer of each table**" if peer is None else peer,
                str(len(has)),
                f"**{center:.3f}** ({low:.2f} – {high:.2f})"
                if len(has) > 2
                else f"**{center:.3f}**",
                f"{unfloored:.3f}" if np.isfinite(unfloored) else "∞",
                f"{by[k]:.2f} ({has[k].name})",
                " / ".join(str(verdicts[key]) for key in (1, 0, -1)),
            ]
        )
    header = ["`" + ours + "` beside", "tables", "geometric mean of the ratio", "without floor"]
    return markdown([*header, "worst ratio (table)", "wins / ties / losses"], lines)


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


def costs(tables: Sequence[Beside], what: str) -> str:
    """Seconds of a core of every method on every table; `what` is "fit" or "predict"."""
    lines = []
    for name in CLASSIFIERS:
        for method in _methods(name):
            line = [f"`{method}`" if method in OURS else method]
            for each in tables:
                measured = each.classifiers.get(name)
                line.append(
                    NOT_MEASURED if measured is None else figures(measured[what][method], 2)
                )
            lines.append(line)
    return markdown(["", *(each.name for each in tables)], lines)


def geometric_mean(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Of ratios, with the 95 % interval of Student's t on their logarithms.

    Parameters
    ----------
    ratios : sequence of float
        One a table; the interval is what other tables would do.

    Returns
    -------
    mean, low, high : float
        The limits are infinitely far for a single ratio.
    """
    logs = np.log(np.asarray(ratios, dtype=np.float64))
    if not np.isfinite(logs).all():
        return float(np.exp(logs.mean())), 0.0, np.inf
    n = len(logs)
    half = t.ppf((1 + LEVEL) / 2, n - 1) * logs.std(ddof=1) / np.sqrt(n) if n > 1 else np.inf
    center = logs.mean()
    return float(np.exp(center)), float(np.exp(center - half)), float(np.exp(center + half))


def _methods(name: str) -> list[str]:
    return CLASSIFIERS[name].methods(name)


def _every_method() -> list[str]:
    return [method for name in CLASSIFIERS for method in _methods(name)]


def _missing(entry: Mapping[str, Any]) -> list[str]:
    """Classifiers without which a table is not shown."""
    asked = (n for n, c in CLASSIFIERS.items() if not c.slow and c.takes(entry["columns"]))
    return [name for name in asked if name not in entry["classifiers"]]
