"""Results of the classifiers that users would take instead, read and compared."""

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

__all__ = [
    "Beside",
    "Ratio",
    "every_method",
    "geometric_mean",
    "incomplete",
    "methods_of",
    "ours_of",
    "ratio",
    "read",
    "unmeasured",
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
        return [m for name in CLASSIFIERS if name in self.classifiers for m in methods_of(name)]

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
            m for each in CLASSIFIERS if each in entry["classifiers"] for m in methods_of(each)
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


def methods_of(name: str) -> list[str]:
    """What is compared of a classifier: as it is, and calibrated."""
    return CLASSIFIERS[name].methods(name)


def every_method() -> list[str]:
    """Names of all that are compared, ours first."""
    return [method for name in CLASSIFIERS for method in methods_of(name)]


def ours_of(tables: Sequence[Beside]) -> list[str]:
    """Those of ours that were asked about a table."""
    return [name for name in OURS if any(name in each.methods for each in tables)]


def unmeasured(tables: Sequence[Beside]) -> list[str]:
    """Peers that no table has."""
    return [m for m in every_method() if not any(m in each.methods for each in tables)]


@dataclass(frozen=True)
class Ratio:
    """The loss of one of ours divided by a peer's, over tables.

    Attributes
    ----------
    tables : int
    mean : (float, float, float)
        What `geometric_mean` says.
    unfloored : float
        The geometric mean where losses below 1 / rows count as they are.
    worst : float
        The largest ratio, with the floor.
    worst_table : str
    counts : (int, int, int)
        Wins, ties and losses by the intervals of the rows.
    """

    tables: int
    mean: tuple[float, float, float]
    unfloored: float
    worst: float
    worst_table: str
    counts: tuple[int, int, int]


def ratio(tables: Sequence[Beside], loss: str, ours: str, peer: str | None) -> Ratio | None:
    """Of one of ours to a peer on the tables that have both; None where none has.

    Parameters
    ----------
    tables : sequence of Beside
    loss, ours : str
    peer : str or None
        None is the best peer of each table.
    """
    has = [t for t in tables if ours in t.methods and (peer is None or peer in t.methods)]
    if not has:
        return None
    pairs = [(each, peer or each.best_peer(loss)) for each in has]
    by = [each.ratio(loss, ours, other) for each, other in pairs]
    bare = [each.ratio(loss, ours, other, floor=False) for each, other in pairs]
    verdicts = Counter(each.compared(loss, ours, other).verdict for each, other in pairs)
    k = int(np.argmax(by))
    return Ratio(
        tables=len(has),
        mean=geometric_mean(by),
        unfloored=geometric_mean(bare)[0],
        worst=by[k],
        worst_table=has[k].name,
        counts=(verdicts[1], verdicts[0], verdicts[-1]),
    )


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


def _missing(entry: Mapping[str, Any]) -> list[str]:
    """Classifiers without which a table is not shown."""
    asked = (n for n, c in CLASSIFIERS.items() if not c.slow and c.takes(entry["columns"]))
    return [name for name in asked if name not in entry["classifiers"]]
