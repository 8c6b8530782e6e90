"""What the model that scored a table adds to its report: who it is, and drift."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from bootprob.encoding.columns import level_text
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.fitted import column_names
from bootprob.ensemble.state import two_class_state
from bootprob.exceptions import DataError
from bootprob.intervals.shares import effective_rows, wilson_interval
from bootprob.metrics.lack_of_fit_reasons import few_rows, reason_of
from bootprob.report.model.members import label_of, members_of
from bootprob.report.scored.column_drift import column_drift
from bootprob.report.scored.counts import ScoredCounts
from bootprob.report.scored.drift import Reference, kolmogorov_smirnov, population_stability
from bootprob.report.scored.table import ScoredTable, number_text
from bootprob.tables.csv_safety import neutralised
from bootprob.tables.files import read_table, readable
from bootprob.tables.held_out import text_columns
from bootprob.tables.suffixes import table_suffix

if TYPE_CHECKING:
    from bootprob.tables.model import TableModel

__all__ = [
    "ScoredModel",
    "columns_content",
    "drift_content",
    "facts_of_model",
    "share_in_training",
]

_CHECKED_ROWS = 100  # predicted again, to see that table, input, model and level belong together
_SAME = 1e-3


@dataclass(frozen=True)
class ScoredModel:
    """The model that scored a table.

    Attributes
    ----------
    svc : BootstrapSVC
    table : TableModel or None
        None for a model of arrays.
    negative, positive : str
        Names of its classes.
    reference : Reference
        Its out-of-bag probabilities.
    """

    svc: BootstrapSVC
    table: TableModel | None
    negative: str
    positive: str
    reference: Reference

    @classmethod
    def of(cls, model: BootstrapSVC | TableModel) -> Self:
        """Take a model.

        Raises
        ------
        DataError
            It has more than two classes.
        sklearn.exceptions.NotFittedError
            It is not fitted.
        """
        from bootprob.tables.model import TableModel

        two_class_state(model.svc if isinstance(model, TableModel) else model, "reports")
        table = model if isinstance(model, TableModel) else TableModel.of(model)
        svc: Any = model if table is None else table.svc
        labels = svc.classes_.tolist() if table is None else table.target.labels
        negative, positive = map(level_text, labels)
        return cls(svc, table, negative, positive, Reference.of_model(svc))

    @property
    def no_frequencies(self) -> str | None:
        """Why its probabilities are no frequencies, or None where they are."""
        if self.svc.calibration is None:
            return "the model has no calibration, and a share of votes is no frequency"
        return None

    def role(self, label: str) -> bool | None:
        """Whether a label is the positive class; None for one that the model does not know."""
        for text in (label, number_text(label)):
            for name, role in ((self.positive, True), (self.negative, False)):
                if text in (name, neutralised(name)):  # as --csv-safe writes it
                    return role
        return None

    def content(self) -> dict[str, Any]:
        """Plain facts of the model for the page."""
        y = self.svc.y_[self.svc.sample_weight_ > 0]
        return facts_of_model(self.svc, self.table) | {
            "calibration": self.svc.calibration_,
            "no_frequencies": self.no_frequencies,
            "n_positive": int((y == 1).sum()),
        }


def facts_of_model(svc: BootstrapSVC, table: TableModel | None) -> dict[str, Any]:
    """Plain facts of a model of any number of classes, for the page."""
    found = svc.lack_of_fit_
    if found is not None:
        names = column_names(svc)
        if names is None and table is not None:
            names = list(table.preprocessor.get_feature_names_out())
        reason = reason_of(found, names)
        said = {"found": reason is not None, "what": reason and reason.what}
        found = found | said | {"few_rows": few_rows(found)}
    return {
        "members": members_of(svc)["members"],
        "called": f"{label_of(svc)} kernel" if isinstance(svc, BootstrapSVC) else label_of(svc),
        "control": svc.control,
        "lack_of_fit": found,
        "n_rows": int(np.count_nonzero(svc.sample_weight_)),
        "target": None if table is None else table.target.name,
        "versions": dict(sorted(svc.versions_.items())),
    }


def drift_content(
    counts: ScoredCounts,
    known: ScoredModel,
    source: ScoredTable,
    input_table: str | os.PathLike[str] | None,
    encoding: str | None,
    level: float,
) -> dict[str, Any]:
    """Distances between the rows scored and the rows trained on.

    Parameters
    ----------
    counts : ScoredCounts
        With ``cells`` among the values of the model's reference.
    known : ScoredModel
    source : ScoredTable
        Read again, its first rows only, where there is an `input_table`.
    input_table : path-like or None
    encoding : str or None
        Of its letters.
    level : float

    Raises
    ------
    DataError
        The input is not the table that was scored, or was scored otherwise.
    """
    reference, n = known.reference, counts.n_scored
    last = reference.deciles()
    old = np.diff(np.cumsum(reference.share)[last], prepend=0.0)
    reached = np.cumsum(counts.cells)[2 * last + 1]
    reached[-1] = n  # also those above all of the reference
    new = np.diff(reached, prepend=0) / n
    stability = population_stability(new, old, n, reference.n_effective, level)
    upper = reference.values[last]
    columns = None
    if input_table is not None:
        columns = _columns(known, source, input_table, counts.n_rows, level, encoding)
    return {
        "n_training": reference.n_effective,
        "kolmogorov_smirnov": asdict(kolmogorov_smirnov(counts.cells, reference, level)),
        "population_stability": None if stability is None else asdict(stability),
        "bins": [
            {
                "from": None if k == 0 else upper[k - 1],
                "to": None if k == len(last) - 1 else upper[k],
                "training": old[k],
                "scored": new[k],
            }
            for k in range(len(last))
        ],
        "prevalence": _prevalence(counts, known, level),
        "input": columns,
    }


def _prevalence(counts: ScoredCounts, known: ScoredModel, level: float) -> dict[str, Any] | None:
    """Share of the positive class: expected of the rows scored, and observed in training."""
    if known.no_frequencies:
        return None
    groups, n = counts.by_decision.values(), counts.n_scored
    return {
        "expected": sum(sums.probability for sums in groups) / n,
        "expected_lower": sum(sums.lower for sums in groups) / n,
        "expected_upper": sum(sums.upper for sums in groups) / n,
    } | share_in_training(known.svc, 1, level)


def share_in_training(svc: BootstrapSVC, k: int, level: float) -> dict[str, float]:
    """Share of a class among the training rows, with its Wilson interval."""
    weight = svc.sample_weight_
    share = float(np.average(svc.y_ == k, weights=weight))
    effective = np.array([effective_rows(weight)])
    [[lower, upper]] = wilson_interval(np.array([share]), effective, level)
    return {"training": share, "training_lower": lower, "training_upper": upper}


def _columns(
    known: ScoredModel,
    source: ScoredTable,
    path: str | os.PathLike[str],
    n_rows: int,
    level: float,
    encoding: str | None,
) -> dict[str, Any]:
    if known.table is None:
        raise DataError("The drift of columns needs the model of a table.")
    first = next(source.batches(), None)
    given = None
    if first is not None:
        given = pd.DataFrame(
            {
                "probability": first.probability,
                "probability_lower": first.lower,
                "probability_upper": first.upper,
            },
            index=first.row,
        )
    return columns_content(known.table, path, source.path, given, n_rows, level, encoding)


def columns_content(
    model: TableModel,
    path: str | os.PathLike[str],
    scored: Path,
    given: pd.DataFrame | None,
    n_rows: int,
    level: float,
    encoding: str | None,
) -> dict[str, Any]:
    """Drift of the columns of the table that was scored.

    Parameters
    ----------
    model : TableModel
    path : path-like
        The table that was scored.
    scored : Path
        What came of it.
    given : DataFrame or None
        Probabilities and limits of the first rows of this, under the names of
        `TableModel.predict`, by the number of the row, from 1.
    n_rows : int
        That the scored table has.
    level : float
    encoding : str or None
        Of the letters of the table that was scored.

    Raises
    ------
    DataError
        They do not belong together.
    """
    frames = _frames(model, path, encoding)
    first = next(frames)
    _check_scored(model, first, scored, given, path, level)

    def all_frames() -> Iterator[pd.DataFrame]:
        yield first
        yield from frames

    n_given, columns = column_drift(model, all_frames(), level)
    if n_given != n_rows:
        raise DataError(
            f"{path} has {n_given} rows and {scored} has {n_rows}; give the table that was scored."
        )
    return {"n_rows": n_given, "columns": [asdict(column) for column in columns]}


def _frames(
    model: TableModel, path: str | os.PathLike[str], encoding: str | None
) -> Iterator[pd.DataFrame]:
    """The rows of a table; a Parquet file piece by piece."""
    if table_suffix(path) != ".parquet" or encoding is not None:  # which it refuses
        yield read_table(path, text_columns=text_columns(model), encoding=encoding)
        return
    import pyarrow.parquet as pq

    with readable(path, "Parquet"), pq.ParquetFile(path, pre_buffer=False) as file:
        names = [name for name in model.encoder.kinds if name in file.schema_arrow.names]
        if file.metadata.num_rows == 0:
            raise DataError(f"{path} has column names but no rows.")
        for batch in file.iter_batches(batch_size=2**16, columns=names):
            yield batch.to_pandas()


def _check_scored(
    model: TableModel,
    frame: pd.DataFrame,
    scored: Path,
    given: pd.DataFrame | None,
    path: str | os.PathLike[str],
    level: float,
) -> None:
    """Predict the first rows again: a wrong file, model or level shows here and nowhere else."""
    if given is None:
        return
    rows = given.index.to_numpy()[:_CHECKED_ROWS] - 1
    rows = rows[rows < len(frame)]
    if not len(rows):
        return
    found = model.predict(frame.iloc[rows], level)[given.columns].to_numpy().clip(0, 1)
    off_by = np.abs(found - given.to_numpy()[: len(rows)]) > _SAME
    limits = ~given.columns.str.match("probability$|p_")
    for off, what in (
        (off_by[:, ~limits].any(axis=1), "the probability"),
        (off_by[:, limits].any(axis=1), "the interval"),
    ):
        if off.any():
            k = int(np.flatnonzero(off)[0])
            row, same = int(rows[k]) + 1, what == "the interval"
            advice = (
                f"Its intervals were made at another level than {level:g}, or by another method."
                if same
                else "Give the model that scored it, and the table that was scored, in its order."
            )
            raise DataError(
                f"{scored}, row {row}: {what} is not what the model says of row {row} of "
                f"{path}. {advice}"
            )
