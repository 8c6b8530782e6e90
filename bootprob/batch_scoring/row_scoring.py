"""Batches of rows scored, one after the other: what the command, Spark and Dask share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from bootprob.batch_scoring.options import ScoringOptions
from bootprob.batch_scoring.tally import MOST_BAD_ROWS, BadRow, BadRowsError, Tally
from bootprob.costs.matrix import CostMatrix
from bootprob.encoding.columns import level_text, numbers_and_bad
from bootprob.encoding.encoder import EncodedRows
from bootprob.encoding.names import similar_names
from bootprob.ensemble.fitted import ensemble_of, warn_of_doubts
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Bools
from bootprob.tables.mistake_costs import ASKING_COLUMNS, asking_columns

if TYPE_CHECKING:
    from bootprob.tables.model import TableModel

__all__ = [
    "PreparedRows",
    "RowScorer",
    "check_columns",
    "result_schema",
    "rows_at_once",
    "score_batches",
]

_NO_COST = "no cost, which is a number above 0"
_LINEAR_AT_ONCE, _OTHER_AT_ONCE = 2**16, 2**12  # rows; a block should not take more than seconds


def score_batches(
    model: TableModel,
    batches: Iterable[pa.RecordBatch],
    options: ScoringOptions | None = None,
    tally: Tally | None = None,
) -> Iterator[pa.RecordBatch]:
    """Score batches of rows.

    Nothing is kept between batches, so they may be as many as there are; batches of 50,000 rows
    are scored about one and a half times as fast as batches of 10,000.

    Parameters
    ----------
    model : TableModel
        Fitted, of any number of classes.
    batches : iterable of pyarrow.RecordBatch
        Rows with the columns that the model was fitted on, found by name; others are ignored.
    options : ScoringOptions, optional
        Default ``ScoringOptions()``.
    tally : Tally, optional
        Is told the rows that cannot be used and the levels that the model does not know.

    Yields
    ------
    pyarrow.RecordBatch
        For each batch one with as many rows, in their order, of the schema that `result_schema`
        gives.

    Raises
    ------
    DataError
        A column is missing or cannot be used; a `BadRowsError` if a row cannot and
        `options.bad_rows` is "refuse".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob.tables import TableModel
    >>> table = load_iris(as_frame=True).frame
    >>> model = TableModel.fit(table, "target", kernel="linear", n_bootstraps=20, random_state=0)
    >>> rows = pa.RecordBatch.from_pandas(table.iloc[[0, 60]])
    >>> [scored] = score_batches(model, [rows])
    >>> scored["label"].to_pylist()
    ['0', 'not 0']
    """
    options = ScoringOptions() if options is None else options
    tally = Tally() if tally is None else tally
    scorer: RowScorer | None = None
    for batch in batches:
        if scorer is None:
            scorer = RowScorer(model, options, batch.schema)
        prepared = scorer.prepare(batch, tally, file=None, first=tally.n_rows)
        yield scorer.score(batch, prepared)


def result_schema(
    model: TableModel, options: ScoringOptions | None = None, given: pa.Schema | None = None
) -> pa.Schema:
    """Columns that `score_batches` yields, and their types.

    Parameters
    ----------
    model : TableModel
        Fitted.
    options : ScoringOptions, optional
        What to write of each row; default ``ScoringOptions()``.
    given : pyarrow.Schema, optional
        Of the batches; needed for the types of columns that are kept.

    Raises
    ------
    DataError
        A column to be kept is missing or is called like a result.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob.tables import TableModel
    >>> table = load_iris(as_frame=True).frame[50:]  # two species of three
    >>> model = TableModel.fit(table, "target", kernel="linear", n_bootstraps=20, random_state=0)
    >>> from bootprob.batch_scoring import result_schema
    >>> result_schema(model).names
    ['probability', 'probability_lower', 'probability_upper', 'label', 'threshold']
    """
    options = ScoringOptions() if options is None else options
    return pa.schema([*_kept_fields(model, options, given), *_result_fields(model, options)])


@dataclass(frozen=True, eq=False)
class PreparedRows(EncodedRows):
    """Rows as the machines take them, those that cannot be used, and what decides each.

    Attributes
    ----------
    costs : CostMatrix or None
        What decides each, where mistakes have costs.
    """

    costs: CostMatrix | None = None

    @property
    def bad_rows(self) -> Bools | None:
        """Rows with a bad cell, shape (m,); None if there are none."""
        masks = [mask for reasons in self.bad.values() for mask in reasons.values()]
        return np.logical_or.reduce(masks) if masks else None

    def what_is_bad(self, row: int) -> dict[str, str]:
        """By column, what is wrong with a row."""
        return {
            name: reason
            for name, reasons in self.bad.items()
            for reason, mask in reasons.items()
            if mask[row]
        }


class RowScorer:
    """A model made ready for batches of one schema.

    Parameters
    ----------
    model : TableModel
    options : ScoringOptions
    given : pyarrow.Schema
        Of the batches.

    Raises
    ------
    DataError
        Columns are missing, scores of several classes are wanted, or costs do not fit the model.
    """

    def __init__(self, model: TableModel, options: ScoringOptions, given: pa.Schema) -> None:
        self._svc, self._options = model.svc, options
        if options.costs is not None:
            options.costs.check_model(model.svc)
        self._names = np.array(model.target.labels)
        self._features = model.preprocessor.get_feature_names_out()
        self._encoder = model.encoder
        self._ensemble = ensemble_of(model.svc)
        self._method = self._ensemble.checked_method(None)
        self._has_warned = False
        needed = tuple(dict.fromkeys((*model.encoder.kinds, *options.beside)))
        check_columns(needed, given.names, "The table")
        self.schema = result_schema(model, options, given)

    def prepare(
        self, batch: pa.RecordBatch, tally: Tally, *, file: str | None, first: int
    ) -> PreparedRows:
        """Turn a batch into a matrix; `first` rows of its file came before."""
        kinds = self._encoder.kinds
        columns = {name: _as_series(batch[name], kind != "number") for name, kind in kinds.items()}
        encoded = self._encoder.encode(columns, batch.num_rows, mark_bad=True)
        prepared = self._with_costs(encoded, batch)
        tally.n_rows += batch.num_rows
        tally.add_unknown(encoded.unknown)
        mask = prepared.bad_rows
        if mask is not None:
            rows = [
                BadRow(file, first + int(at) + 1, prepared.what_is_bad(at))
                for at in np.flatnonzero(mask)[:MOST_BAD_ROWS]
            ]
            if self._options.bad_rows == "refuse":
                raise BadRowsError(int(mask.sum()), rows)
            tally.add_bad(int(mask.sum()), rows)
        return prepared

    def score(self, batch: pa.RecordBatch, prepared: PreparedRows) -> pa.RecordBatch:
        """Score what `prepare` made of a batch."""
        kept = [_kept(batch[name], self.schema.field(name)) for name in self._options.keep]
        fields = [self.schema.field(at) for at in range(len(kept), len(self.schema))]
        if batch.num_rows == 0:
            results = [pa.array([], each.type) for each in fields]
        else:
            bad = prepared.bad_rows
            results = [
                pa.array(column, each.type, mask=bad)
                for column, each in zip(self._columns(prepared), fields, strict=True)
            ]
        return pa.RecordBatch.from_arrays([*kept, *results], schema=self.schema)

    def _with_costs(self, encoded: EncodedRows, batch: pa.RecordBatch) -> PreparedRows:
        """Add what costs say; a row whose cost is none is a bad one."""
        prepared = PreparedRows(**vars(encoded))
        costs, m = self._options.costs, batch.num_rows
        if costs is None:
            return prepared
        values, bad = {}, dict(prepared.bad)
        for name in costs.columns:
            numbers, cells = numbers_and_bad(batch[name].to_pandas(), name)
            unusable = costs.unusable(numbers)
            known = np.logical_or.reduce([*(each.rows for each in cells), np.zeros(m, dtype=bool)])
            masks = {each.reason: each.rows for each in cells}
            if (unusable & ~known).any():
                masks[_NO_COST] = unusable & ~known
            if masks:
                bad[name] = bad.get(name, {}) | masks
            values[name] = np.where(unusable, 1.0, numbers)
        return replace(prepared, bad=bad, costs=costs.matrix(values))

    def _columns(self, prepared: PreparedRows) -> Iterator[Any]:
        """Results in the order of `_result_fields`."""
        options = self._options
        if not self._has_warned:  # once, and not of each batch
            self._has_warned = True
            warn_of_doubts(self._svc, self._method, self._features)
        found = self._ensemble.summarize(
            prepared.X, options.level, self._method, score_interval=options.scores
        )
        probability, interval = found["probability"], found["probability_interval"]
        if len(self._names) > 2:
            for k in range(len(self._names)):
                yield from (probability[:, k], interval[:, k, 0], interval[:, k, 1])
            yield self._names[found["label"]]
        else:
            assert isinstance(self._ensemble, TwoClasses)
            yield from (probability, interval[:, 0], interval[:, 1])
            threshold, asking = np.full(len(probability), self._ensemble.decision_threshold), {}
            if prepared.costs is not None:
                decided = prepared.costs.decide(probability, interval)
                threshold = decided.threshold
                asking = {} if decided.ask is None else asking_columns(decided)
            yield self._names[(probability > threshold).astype(int)]
            yield threshold
            if "undecided" in found:
                yield found["undecided"]
            yield from asking.values()
        if options.scores:
            yield from (found["score"], *found["score_interval"].T)


def rows_at_once(model: TableModel, options: ScoringOptions) -> int:
    """Rows that are scored in one call."""
    coef = getattr(model.svc, "bootstrap_coef_", None)
    linear = not model.svc.pair_ensembles_ and coef is not None
    return _LINEAR_AT_ONCE if linear and not options.scores else _OTHER_AT_ONCE


def check_columns(wanted: Sequence[str], given: Sequence[str], what: str) -> None:
    """Refuse a table that lacks columns or has one of them twice."""
    missing = [name for name in wanted if name not in given]
    if missing:
        shown = ", ".join(map(repr, missing[:10]))
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        hint = similar_names(missing, [name for name in given if name not in wanted])
        raise DataError(
            f"{what} lacks {shown}{more}, needed by the model, for costs, or to be kept.{hint}"
        )
    twice = [repr(name) for name in wanted if list(given).count(name) > 1]
    if twice:
        raise DataError(f"{what} has several columns named {', '.join(twice)}; rename them.")


def _as_series(column: pa.Array, is_category: bool) -> pd.Series:
    """A column as the encoder takes it, with text as codes: levels are looked up once each."""
    kind = column.type
    if is_category and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        column = column.dictionary_encode()
    elif is_category and pa.types.is_dictionary(kind) and column.dictionary.null_count:
        column = column.dictionary_decode().dictionary_encode()
    return column.to_pandas(date_as_object=False)


def _kept_fields(
    model: TableModel, options: ScoringOptions, given: pa.Schema | None
) -> list[pa.Field]:
    if not options.keep:
        return []
    if given is None:
        raise DataError("The schema of the batches is needed for the columns that are kept.")
    check_columns(options.keep, given.names, "The table")
    clash = {each.name for each in _result_fields(model, options)} & set(options.keep)
    if clash:
        shown = ", ".join(map(repr, sorted(clash)))
        raise DataError(f"Kept columns would be called like results: {shown}; rename them first.")
    kinds = [given.field(name).type for name in options.keep]
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    return [pa.field(name, kind) for name, kind in zip(options.keep, kinds, strict=True)]


def _result_fields(model: TableModel, options: ScoringOptions) -> list[pa.Field]:
    """As `TableModel.predict` calls them."""
    labels = model.target.labels
    names = ["probability", "probability_lower", "probability_upper"]
    if len(labels) > 2:
        texts = map(level_text, labels)
        names = [f"{what}_{text}" for text in texts for what in ("p", "low", "high")]
        if options.scores:
            raise DataError(f"The model has {len(labels)} classes, and scores are of two.")
    fields = [pa.field(name, pa.float64()) for name in names]
    fields.append(pa.field("label", pa.array(np.array(labels)).type))
    if len(labels) == 2:
        fields.append(pa.field("threshold", pa.float64()))
    if getattr(model.svc, "undecided_between_", None) is not None:
        fields.append(pa.field("undecided", pa.bool_()))
    if options.costs is not None and options.costs.ask is not None:
        boolean, number = pa.bool_(), pa.float64()
        kinds = {"ask": boolean, "stable": boolean}
        fields += [pa.field(name, kinds.get(name, number)) for name in ASKING_COLUMNS]
    if options.scores:
        names = ["score", "score_lower", "score_upper"]
        fields += [pa.field(name, pa.float64()) for name in names]
    return fields


def _are_of_a_kind(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type stay what they are as another: 007 is not 7, and yes is not 1."""
    kinds = (
        lambda each: pa.types.is_integer(each) or pa.types.is_floating(each),
        lambda each: pa.types.is_string(each) or pa.types.is_large_string(each),
        pa.types.is_temporal,
        pa.types.is_decimal,
    )
    alike = any(kind(given) and kind(wanted) for kind in kinds)
    return alike or given == wanted or pa.types.is_null(given)


def _kept(column: pa.Array, field: pa.Field) -> pa.Array:
    """A column as it was given, of the type that it has in the first batch or file."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        if not _are_of_a_kind(column.type, field.type):
            raise pa.ArrowInvalid("as such its values would not be what they are")
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise DataError(
            f"The column {field.name!r}, which is to be kept, holds {field.type} at first and then "
            f"{column.type}: {error}."
        ) from None
