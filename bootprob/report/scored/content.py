"""From a scored table to the numbers of its report: plain dictionaries, lists, numbers and text.

As with the report of a model, the page and its figures are drawn from this dictionary alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bootprob.costs.matrix import CostMatrix
from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.report.plain import plain
from bootprob.report.scored.costs import cost_content
from bootprob.report.scored.counts import EDGES, SHOWN_EDGES, ScoredCounts, count_in, quantiles
from bootprob.report.scored.drift import Reference
from bootprob.report.scored.model import ScoredModel, drift_content
from bootprob.report.scored.table import SCORED_COLUMNS, ScoredTable

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["FORMAT_VERSION", "described", "of_training", "scored_content"]

FORMAT_VERSION = 1

_QUANTILES = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
_N_LISTED = 50


def scored_content(
    table: str | os.PathLike[str],
    *,
    model: BootstrapSVC | TableModel | None = None,
    input_table: str | os.PathLike[str] | None = None,
    encoding: str | None = None,
    costs: CostMatrix | None = None,
    level: float = 0.95,
    id_column: str | None = None,
    n_listed: int = _N_LISTED,
    title: str | None = None,
    command: str | None = None,
    progress: Callable[[int], None] = lambda n_rows: None,
) -> dict[str, Any]:
    """Collect everything that the report of a scored table says or draws.

    The table is read once, in batches; memory does not depend on the number of rows.

    Parameters
    ----------
    table : path-like
        What ``bootprob predict`` or ``bootprob score`` wrote: CSV, Parquet or Arrow, or a folder
        of such files. It has the columns ``probability``, ``probability_lower``,
        ``probability_upper`` and ``label``, and ``threshold`` where another one than that of the
        costs decided, and ``ask`` where a person could be asked; rows without a probability are
        counted, and left out.
    model : BootstrapSVC or TableModel, optional
        The model that scored it; needed to say anything of drift.
    input_table : path-like, optional
        The table that was scored, CSV or Parquet, in the same order; for the drift of its columns.
        Needs a `TableModel`. A CSV file is held in memory, a Parquet file is not.
    encoding : str, optional
        Of the letters of the `input_table`, as `bootprob.tables.files.read_table` takes it.
    costs : CostMatrix, optional
        What mistakes cost, and asking a person, the same for all rows. Without them every mistake
        costs 1. They say what decisions cost; what was decided, the table says.
    level : float, default 0.95
        Level that the intervals of the table were made at, which the table does not say; also the
        confidence of everything else.
    id_column : str, optional
        A column of the table that tells rows apart, shown beside the rows that are listed. No
        other column of the table gets into the report.
    n_listed : int, default 50
        Undecided rows to list.
    title, command : str, optional
        Heading, and the command line that made the report.
    progress : callable
        Called with the number of rows just read.

    Returns
    -------
    dict
        JSON-able, without NaN: what does not exist is None.

    Raises
    ------
    DataError
        The table is no scored table, holds what no scored row can, or does not belong to the model
        or to the input; costs are given for each row, or for vote shares.
    """
    level = check_level(level)
    if n_listed < 0:
        raise DataError(f"n_listed is {n_listed}; give 0 or more rows to list.")
    if costs is not None and costs.n_rows is not None:
        raise DataError("Costs of single rows are not for a report; give one matrix for all rows.")
    known = None if model is None else ScoredModel.of(model)
    if input_table is not None and (known is None or known.table is None):
        raise DataError("The drift of columns needs the model of a table that scored them.")
    if costs is not None and known is not None and known.no_frequencies:
        raise DataError(f"No cost follows from these probabilities: {known.no_frequencies}.")
    source = ScoredTable(table, id_column)
    refuse_unscored(source)
    used = CostMatrix(false_positive=1.0, false_negative=1.0) if costs is None else costs
    trained = np.zeros(0) if known is None else known.reference.values
    counts = ScoredCounts(used, n_listed, trained)
    for batch in source.batches():
        counts.add(batch)
        progress(batch.n_rows)
    if counts.n_scored == 0:
        raise DataError(f"{table} has no row with a probability.")
    classes, positive = _classes(source, counts, known)
    content = {
        "format": {"name": "bootprob report of a scored table", "version": FORMAT_VERSION},
        "title": title or f"Scored rows of {source.path.name}",
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "level": level,
        "table": {
            "name": source.path.name,
            "n_rows": counts.n_rows,
            "n_scored": counts.n_scored,
            "n_without_probability": counts.n_without,
        },
        "classes": classes,
        "model": None if known is None else known.content(),
        "labels": _labels(source, counts, positive),
        "probabilities": _probabilities(counts, known),
        "widths": _widths(counts),
        "decisions": _decisions(counts, id_column),
        "cost": cost_content(counts, costs, positive, known),
        "drift": None
        if known is None
        else drift_content(counts, known, source, input_table, encoding, level),
    }
    return plain(content)


def refuse_unscored(source: ScoredTable) -> None:
    """Refuse a table that is no scored one of two classes.

    Raises
    ------
    DataError
        It lacks columns; the message names them.
    """
    if source.of_several_classes:
        raise DataError(
            f"{source.path} was scored by a model of several classes; these numbers are of two. "
            "bootprob.report.write_scored_report takes both."
        )
    if source.missing:
        lacks = ", ".join(map(repr, source.missing))
        raise DataError(
            f"{source.path} is no scored table: of {', '.join(SCORED_COLUMNS)}, which bootprob "
            f"predict writes, it lacks {lacks}."
        )


def _classes(
    source: ScoredTable, counts: ScoredCounts, known: ScoredModel | None
) -> tuple[dict[str, str | None], int | None]:
    """Names of the classes, and the position of the positive one among the labels seen."""
    if known is not None:
        positive = None
        for position, label in enumerate(source.labels):
            role = known.role(label)
            if role is None:
                raise DataError(
                    f"{source.path} has the label {label!r}; the model knows "
                    f"{known.negative!r} and {known.positive!r}. It was scored by another model."
                )
            positive = position if role else positive
        return {"positive": known.positive, "negative": known.negative}, positive
    # Nothing but the probabilities says which of the labels is the positive class.
    share = {k: counts.above[k] / sums.n_rows for k, sums in counts.by_label.items()}
    highest = max(share, key=lambda k: share[k])
    if len(share) == 1:
        name = source.labels[highest]
        is_positive = share[highest] > 0.5
        names = {"positive": name if is_positive else None, "negative": None}
        names["negative"] = None if is_positive else name
        return names, highest if is_positive else None
    lowest = min(share, key=lambda k: share[k])
    if highest == lowest:
        raise DataError(
            f"{source.path}: the labels do not say which class the probabilities are of; give the "
            "model that scored the table."
        )
    return {"positive": source.labels[highest], "negative": source.labels[lowest]}, highest


def _labels(source: ScoredTable, counts: ScoredCounts, positive: int | None) -> dict[str, Any]:
    against = sum(
        sums.n_rows - counts.above[k] if k == positive else counts.above[k]
        for k, sums in counts.by_label.items()
    )
    shares = [
        {
            "label": source.labels[k],
            "positive": k == positive,
            "n_rows": sums.n_rows,
            "share": sums.n_rows / counts.n_scored,
        }
        for k, sums in sorted(counts.by_label.items(), key=lambda item: item[0] != positive)
    ]
    return {"shares": shares, "n_against_threshold": against}


def described(fine: NDArray[Any], mean: float) -> dict[str, Any]:
    """Mean, quantiles and histogram of what was counted in narrow bins."""
    found = quantiles(fine, _QUANTILES).tolist()
    shown = np.add.reduceat(fine, np.searchsorted(EDGES, SHOWN_EDGES[:-1]))
    return {
        "mean": mean,
        "quantiles": [
            {"share": share, "value": value}
            for share, value in zip(_QUANTILES.tolist(), found, strict=True)
        ],
        "histogram": {"edges": SHOWN_EDGES, "share": shown / shown.sum()},
    }


def _probabilities(counts: ScoredCounts, known: ScoredModel | None) -> dict[str, Any]:
    mean = sum(sums.probability for sums in counts.by_decision.values()) / counts.n_scored
    return {
        "scored": described(counts.probabilities, mean),
        "training": None if known is None else of_training(known.reference),
    }


def of_training(reference: Reference) -> dict[str, Any]:
    """The same of the out-of-bag probabilities of the training rows."""
    fine = np.bincount(
        count_in(reference.values), weights=reference.share, minlength=len(EDGES) - 1
    )
    return described(fine, float(reference.values @ reference.share))


def _widths(counts: ScoredCounts) -> dict[str, Any]:
    by_probability = []
    for k, fine in enumerate(counts.widths):
        if fine.sum():
            tenth, median, ninetieth = quantiles(fine, np.array([0.1, 0.5, 0.9])).tolist()
            by_probability.append(
                {
                    "from": SHOWN_EDGES[k],
                    "to": SHOWN_EDGES[k + 1],
                    "n_rows": int(fine.sum()),
                    "tenth": tenth,
                    "median": median,
                    "ninetieth": ninetieth,
                }
            )
    of_all = described(counts.widths.sum(axis=0), counts.width_sum / counts.n_scored)
    return of_all | {"by_probability": by_probability}


def _decisions(counts: ScoredCounts, id_column: str | None) -> dict[str, Any]:
    n_undecided = sum(counts.undecided.values())
    lowest, highest = counts.decided_above
    return {
        "threshold": lowest if lowest == highest else None,
        "lowest_threshold": lowest,
        "highest_threshold": highest,
        "n_positive": counts.by_decision[True].n_rows - counts.undecided[True],
        "n_undecided_positive": counts.undecided[True],
        "n_undecided_negative": counts.undecided[False],
        "n_negative": counts.by_decision[False].n_rows - counts.undecided[False],
        "n_undecided": n_undecided,
        "share_undecided": n_undecided / counts.n_scored,
        "n_asked": None
        if counts.asked is None
        else sum(sums.n_rows for sums in counts.asked.values()),
        "n_left_undecided": counts.left_undecided,
        "id_column": id_column,
        "listed": counts.listed(),
    }
