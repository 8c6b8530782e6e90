"""From a table scored by a model of several classes to the numbers of its report."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from bootprob.encoding.columns import level_text
from bootprob.ensemble.state import state_of
from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.report.plain import plain
from bootprob.report.scored.class_table import ClassCounts, ClassTable
from bootprob.report.scored.content import described, of_training
from bootprob.report.scored.counts import quantiles
from bootprob.report.scored.drift import Reference, kolmogorov_smirnov
from bootprob.report.scored.model import columns_content, facts_of_model, share_in_training
from bootprob.report.scored.table import ScoredTable

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["FORMAT_VERSION", "class_content"]

FORMAT_VERSION = 1


def class_content(
    source: ScoredTable,
    *,
    model: BootstrapSVC | TableModel | None = None,
    input_table: str | os.PathLike[str] | None = None,
    encoding: str | None = None,
    level: float = 0.95,
    title: str | None = None,
    command: str | None = None,
    progress: Callable[[int], None] = lambda n_rows: None,
) -> dict[str, Any]:
    """Collect everything that the report of such a table says or draws; it is read once.

    Parameters
    ----------
    source : ScoredTable
        `of_several_classes`: it has the columns ``p_X``, ``low_X`` and ``high_X`` of each class X,
        and ``label``; rows without probabilities are counted, and left out.
    model, input_table, encoding, level, title, command, progress
        As in `bootprob.report.scored.content.scored_content`.

    Returns
    -------
    dict
        JSON-able, without NaN: what does not exist is None.

    Raises
    ------
    DataError
        The table holds what no scored row can, or does not belong to the model or to the input.
    """
    level = check_level(level)
    table = ClassTable(source)
    known = None if model is None else _ClassModel.of(model, table)
    if input_table is not None and (known is None or known.table is None):
        raise DataError("The drift of columns needs the model of a table that scored them.")
    counts = ClassCounts(len(table.classes), () if known is None else known.references)
    for batch in table.batches():
        counts.add(batch)
        progress(batch.n_rows)
    if counts.n_scored == 0:
        raise DataError(f"{source.path} has no row with probabilities.")
    columns = None
    if input_table is not None and known is not None and known.table is not None:
        columns = columns_content(
            known.table,
            input_table,
            source.path,
            _first_rows(table),
            counts.n_rows,
            level,
            encoding,
        )
    content = {
        "format": {
            "name": "bootprob report of a scored table of several classes",
            "version": FORMAT_VERSION,
        },
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
        "classes": [
            _class_content(name, k, counts, known, level) for k, name in enumerate(table.classes)
        ],
        "decisions": {
            "n_undecided": counts.n_undecided,
            "share_undecided": counts.n_undecided / counts.n_scored,
            "n_otherwise": counts.n_otherwise,
        },
        "model": None if known is None else facts_of_model(known.svc, known.table),
        "drift": None if known is None else {"input": columns},
    }
    return plain(content)


@dataclass(frozen=True)
class _ClassModel:
    """The model that scored a table, and its out-of-bag probabilities by class."""

    svc: BootstrapSVC
    table: TableModel | None
    references: list[Reference]

    @classmethod
    def of(cls, model: BootstrapSVC | TableModel, scored: ClassTable) -> Self:
        """Take a model; a DataError if its classes are not those of the table."""
        from bootprob.tables.model import TableModel

        state_of(model.svc if isinstance(model, TableModel) else model)
        table = model if isinstance(model, TableModel) else TableModel.of(model)
        svc: Any = model if table is None else table.svc
        labels = svc.classes_.tolist() if table is None else table.target.labels
        names = list(map(level_text, labels))
        if names != scored.classes:
            raise DataError(
                f"{scored.source.path} has probabilities of {_listed(scored.classes)}; the model "
                f"knows {_listed(names)}. It was scored by another model."
            )
        return cls(svc, table, [Reference.of_model(svc, k) for k in range(len(names))])


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:10])) + (", …" if len(names) > 10 else "")


def _class_content(
    name: str, k: int, counts: ClassCounts, known: _ClassModel | None, level: float
) -> dict[str, Any]:
    n, K = counts.n_scored, len(counts.by_label)
    expected, lower, upper = counts.sums[:, k] / n
    share, training, moved, distance = None, None, None, None
    if known is not None:
        share = share_in_training(known.svc, k, level)
        training = of_training(known.references[k])
        # So that with this confidence none has moved by chance (Bonferroni).
        found = kolmogorov_smirnov(counts.cells[k], known.references[k], 1 - (1 - level) / K)
        distance, moved = asdict(found), found.value > found.by_chance_upper
    return {
        "name": name,
        "n_given": int(counts.by_label[k]),
        "share_given": counts.by_label[k] / n,
        "expected": expected,
        "expected_lower": lower,
        "expected_upper": upper,
        "in_training": share,
        "probabilities": {
            "scored": described(counts.probabilities[k], expected),
            "training": training,
        },
        "widths": {
            "mean": counts.width_sums[k] / n,
            "all": _widths(counts.widths[k]),
            "own": _widths(counts.own_widths[k]),
        },
        "kolmogorov_smirnov": distance,
        "moved": moved,
    }


def _widths(fine: Any) -> dict[str, float] | None:
    if not fine.any():
        return None
    median, ninetieth = quantiles(fine, np.array([0.5, 0.9])).tolist()
    return {"median": median, "ninetieth": ninetieth}


def _first_rows(table: ClassTable) -> pd.DataFrame | None:
    """What the first rows say, under the names of `TableModel.predict`."""
    first = next(table.batches(), None)
    if first is None:
        return None
    parts = {"p": first.probability, "low": first.lower, "high": first.upper}
    return pd.DataFrame(
        {f"{what}_{name}": values[:, k] for what, values in parts.items()
         for k, name in enumerate(table.classes)},
        index=first.row,
    )  # fmt: skip
