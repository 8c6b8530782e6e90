"""From a table with columns of several kinds to the matrix that a support vector machine takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bootprob.encoding.columns import (
    LARGEST_CELL,
    TOO_LARGE,
    BadCells,
    Kind,
    name_rows,
    plain_columns,
)
from bootprob.encoding.dates import DateParts, are_dates, dates_and_bad
from bootprob.encoding.encoder import EncodedRows, TableEncoder
from bootprob.encoding.names import check_columns
from bootprob.exceptions import DataError
from bootprob.preparation.standardization import LARGEST, MANY_LEVELS
from bootprob.runtime.counted import counted

__all__ = ["TablePreprocessor"]

_NO_VALUES = "it has no values"
_MOSTLY_NUMBERS = 0.5


class TablePreprocessor(TransformerMixin, BaseEstimator):
    """Fill missing values and turn categories into dummies.

    Numbers stay as they are, missing ones become the column's median: `BootstrapSVC`
    standardises inside every bootstrap sample. Yes/no answers and text are categories: missing
    ones become the most frequent level, and each level becomes a column of 0 and 1. A level
    that was not there when fitting is all zeros at prediction time; `unknown_levels` counts
    them. Columns named as dates become days since the first date, with the hour where times
    vary, and dummies of those months and weekdays that there are several of; a missing date
    becomes the median.

    Columns that can teach nothing are dropped and reported: those without any value, text that
    never occurs twice (names, identifiers), and columns without a name (a saved index).

    Parameters
    ----------
    dates : sequence of str, default ()
        Columns of dates or timestamps, or of text of ISO 8601 (2024-12-31, 2024-12-31T18:30);
        times with a zone are taken in UTC. Dates that are not named are refused.

    Attributes
    ----------
    kinds_ : dict of str to {"number", "boolean", "text", "date"}
        The kind of every column in use.
    levels_ : dict of str to list of str
        The levels of every column of categories, sorted.
    fills_ : dict of str to (float or str)
        What a missing value of every column in use becomes; of dates as text of ISO 8601.
    dropped_ : dict of str to str
        The columns left out, each with the reason.
    missing_ : dict of str to int, or None
        How many values of every column in use were missing; None of a model file that does not say.
    notes_ : list of str
        Sentences on what a person should know about the table.
    encoder_ : TableEncoder
        What turns rows into rows of the matrix, for files and requests too.
    feature_names_in_ : ndarray of str
        All columns of the table fitted on.
    n_features_in_ : int
        Their number.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [41, None, 29], "house": ["own", "rent", "rent"]})
    >>> preprocessor = TablePreprocessor().fit(table)
    >>> preprocessor.get_feature_names_out().tolist()
    ['age', 'house=own', 'house=rent']
    >>> preprocessor.transform(table)
    array([[41.,  1.,  0.],
           [35.,  0.,  1.],
           [29.,  0.,  1.]])
    """

    missing_: dict[str, int] | None

    def __init__(self, dates: Sequence[str] = ()) -> None:
        self.dates = dates

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Learn the kinds of the columns, the values that fill gaps and the levels.

        Parameters
        ----------
        X : DataFrame (n, columns)
            The features, without the target.
        y : ignored
            For pipelines.

        Returns
        -------
        self

        Raises
        ------
        DataError
            A column holds dates that are not named, nested values or a number beyond ±1e150; one
            named as dates is missing or holds what is none; or no column is usable.

        Examples
        --------
        >>> import pandas as pd
        >>> from bootprob.encoding import TablePreprocessor
        >>> table = pd.DataFrame({"age": [41, None, 29], "house": ["own", "rent", "rent"]})
        >>> preprocessor = TablePreprocessor().fit(table)
        >>> preprocessor.text_columns_, len(preprocessor.notes_)  # what a person should know
        (['house'], 2)
        """
        frame = _as_frame(X)
        _check_dates(self.dates, frame)
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        reasons = {name: _why_unread(frame[name], name) for name in frame.columns}
        read = {name: frame[name] for name in reasons if not reasons[name]}
        dates = {
            name: pd.Series(_dates(read.pop(name), name)) for name in self.dates if name in read
        }
        kinds, plain = plain_columns(read)
        kinds |= dict.fromkeys(dates, "date")
        plain |= dates
        reasons |= {name: _why_useless(plain[name], kind) for name, kind in kinds.items()}
        self.dropped_ = {name: reason for name, reason in reasons.items() if reason}
        self.notes_ = [
            f"Column {name!r} is left out: {reason}." for name, reason in self.dropped_.items()
        ]
        self.kinds_ = {
            name: kinds[name] for name in frame.columns if name in kinds and not reasons[name]
        }
        if not self.kinds_:
            raise DataError("No usable column is left. " + " ".join(self.notes_))
        fills: dict[str, float | str] = {}
        levels, parts = {}, {}
        for name, kind in self.kinds_.items():
            known = plain[name].dropna()
            if kind == "date":
                parts[name] = DateParts.of(known.to_numpy())
                fills[name] = str(parts[name].fill)
            elif kind == "number":
                fills[name] = float(known.median())
            else:
                fills[name] = str(known.mode().iloc[0])  # of several the first in order
                levels[name] = sorted(known.unique())
        self.encoder_ = TableEncoder(self.kinds_, fills, levels, parts)
        self.missing_ = {name: int(plain[name].isna().sum()) for name in self.kinds_}
        self._note_oddities(plain)
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        """Turn a table into numbers.

        Parameters
        ----------
        X : DataFrame (m, columns)
            At least the columns in use, in any order; others are ignored.

        Returns
        -------
        ndarray (m, features) float64
            Without missing values.

        Raises
        ------
        DataError
            Columns are missing, the table has no rows, a number is beyond ±1e150 or unreadable, or
            a date is none.

        Examples
        --------
        >>> import pandas as pd
        >>> from bootprob.encoding import TablePreprocessor
        >>> table = pd.DataFrame({"age": [41, None, 29], "house": ["own", "rent", "rent"]})
        >>> preprocessor = TablePreprocessor().fit(table)
        >>> preprocessor.transform(table).shape
        (3, 3)
        """
        return self.encode(X).X

    def unknown_levels(self, X: pd.DataFrame) -> dict[str, dict[str, int]]:
        """Count the categories that were not there when fitting.

        Parameters
        ----------
        X : DataFrame (m, columns)
            A table that `transform` accepts.

        Returns
        -------
        dict of str to dict of str to int
            For each column with unknown levels, the levels and their numbers of rows, largest
            first; of dates, months and weekdays.

        Examples
        --------
        >>> import pandas as pd
        >>> from bootprob.encoding import TablePreprocessor
        >>> table = pd.DataFrame({"age": [41, None, 29], "house": ["own", "rent", "rent"]})
        >>> preprocessor = TablePreprocessor().fit(table)
        >>> preprocessor.unknown_levels(pd.DataFrame({"age": [30], "house": ["boat"]}))
        {'house': {'boat': 1}}
        """
        return self.encode(X).unknown

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : ignored
            The names are those of the table fitted on.

        Returns
        -------
        ndarray (features,) of object
            ``age`` for a number, ``house=own`` for a level, ``opened: days``, ``opened: hour``,
            ``opened: month=Jan`` and ``opened: weekday=Mon`` for a date.

        Examples
        --------
        >>> import pandas as pd
        >>> from bootprob.encoding import TablePreprocessor
        >>> table = pd.DataFrame({"age": [41, None, 29], "house": ["own", "rent", "rent"]})
        >>> preprocessor = TablePreprocessor().fit(table)
        >>> preprocessor.get_feature_names_out().tolist()
        ['age', 'house=own', 'house=rent']
        """
        check_is_fitted(self)
        dummies = [f"{name}={level}" for name, levels in self.levels_.items() for level in levels]
        dates = self.encoder_.dates.items()
        parts = [f"{name}: {part}" for name, found in dates for part in found.names]
        return np.array([*self._of("number"), *dummies, *parts], dtype=object)

    @classmethod
    def of_numbers(cls, names: Sequence[str]) -> Self:
        """A fitted one for a matrix without gaps, which leaves numbers as they are.

        Parameters
        ----------
        names : sequence of str, length p
            Of the columns of the matrix, in their order.

        Returns
        -------
        TablePreprocessor
            Fitted. A gap is refused, as nothing is known that could fill it; and so `to_dict` is
            not for it: what it knows are names.

        Raises
        ------
        DataError
            There are no names, or two are the same.

        Examples
        --------
        >>> import pandas as pd
        >>> from bootprob.encoding import TablePreprocessor
        >>> preprocessor = TablePreprocessor.of_numbers(["age", "size"])
        >>> preprocessor.transform(pd.DataFrame({"size": [1.5], "id": ["a"], "age": [41]}))
        array([[41. ,  1.5]])
        """
        made, kinds = cls(), dict[str, Kind](dict.fromkeys(names, "number"))
        if not names or len(kinds) < len(names):
            raise DataError(f"names are {list(names)!r}; give each column of the matrix its own.")
        made.feature_names_in_ = np.array(list(names), dtype=object)
        made.n_features_in_, made.kinds_ = len(names), kinds
        made.dropped_, made.notes_, made.missing_ = {}, [], dict.fromkeys(names, 0)
        made.encoder_ = TableEncoder(kinds, {}, {})
        return made

    @property
    def text_columns_(self) -> list[str]:
        """Columns to be read from files as text: 01 and 1 are two levels, 20241231 is a date."""
        check_is_fitted(self)
        return self._of("text", "date")

    @property
    def levels_(self) -> dict[str, list[str]]:
        """The levels of every column of categories."""
        check_is_fitted(self)
        return self.encoder_.levels

    @property
    def fills_(self) -> dict[str, float | str]:
        """What a missing value of every column becomes."""
        check_is_fitted(self)
        return self.encoder_.fills

    def to_dict(self) -> dict[str, Any]:
        """Everything learnt, as plain values that JSON can hold.

        Returns
        -------
        dict
            For `from_dict`; the same table gives bit-equal results after the round trip.

        Raises
        ------
        DataError
            It is one `of_numbers`.

        Examples
        --------
        >>> import pandas as pd
        >>> from bootprob.encoding import TablePreprocessor
        >>> table = pd.DataFrame({"age": [41, None, 29], "house": ["own", "rent", "rent"]})
        >>> preprocessor = TablePreprocessor().fit(table)
        >>> import json
        >>> isinstance(json.dumps(preprocessor.to_dict()), str)
        True
        """
        check_is_fitted(self)
        fills, levels = self.fills_, self.levels_
        if fills.keys() != self.kinds_.keys():
            raise DataError("A preprocessor of plain numbers has learnt nothing to be stored.")
        columns = []
        for name, kind in self.kinds_.items():
            column: dict[str, Any] = {"name": name, "kind": kind, "fill": fills[name]}
            if kind == "date":
                column |= self.encoder_.dates[name].to_dict()
            elif kind != "number":
                column["levels"] = levels[name]
            columns.append(column)
        return {
            "columns": columns,
            "dropped": dict(self.dropped_),
            "missing": None if self.missing_ is None else dict(self.missing_),
            "notes": list(self.notes_),
            "feature_names_in": self.feature_names_in_.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Rebuild a fitted preprocessor.

        Parameters
        ----------
        stored : dict
            What `to_dict` returned.

        Returns
        -------
        TablePreprocessor
            Fitted.

        Raises
        ------
        DataError
            `stored` is not what `to_dict` returns.

        Examples
        --------
        >>> import pandas as pd
        >>> from bootprob.encoding import TablePreprocessor
        >>> table = pd.DataFrame({"age": [41, None, 29], "house": ["own", "rent", "rent"]})
        >>> preprocessor = TablePreprocessor().fit(table)
        >>> same = TablePreprocessor.from_dict(preprocessor.to_dict())
        >>> bool((same.transform(table) == preprocessor.transform(table)).all())
        True
        """
        try:
            columns = {column["name"]: column for column in stored["columns"]}
            parts = {
                name: DateParts.from_dict(column)
                for name, column in columns.items()
                if column["kind"] == "date"
            }
            preprocessor = cls(dates=tuple(parts))
            if not all(map(_is_stored_column, columns.values())):
                raise TypeError("a column is of an unknown kind")
            preprocessor.kinds_ = {name: column["kind"] for name, column in columns.items()}
            preprocessor.dropped_ = dict(stored["dropped"])
            preprocessor.notes_ = list(stored["notes"])
            preprocessor.missing_ = _stored_counts(stored.get("missing"), columns)
            preprocessor.feature_names_in_ = np.array(stored["feature_names_in"], dtype=object)
            preprocessor.n_features_in_ = len(preprocessor.feature_names_in_)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"The stored preprocessing is damaged: {error}.") from error
        fills = {name: column["fill"] for name, column in columns.items()}
        for name, fill in fills.items():
            if not isinstance(fill, str) and abs(fill) > LARGEST_CELL:
                raise BadCells(TOO_LARGE, np.array([True]), fill).refusal(name)
        levels = {name: column["levels"] for name, column in columns.items() if "levels" in column}
        preprocessor.encoder_ = TableEncoder(preprocessor.kinds_, fills, levels, parts)
        return preprocessor

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # columns are known by their names
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoder_")

    def _of(self, *kinds: Kind) -> list[str]:
        return [name for name, kind in self.kinds_.items() if kind in kinds]

    def plain(self, X: pd.DataFrame) -> pd.DataFrame:
        """The columns in use in canonical form: float64, or text as object, NaN where missing.

        Of dates days since the first. What is wrong with them is refused as by `transform`.

        Parameters
        ----------
        X : DataFrame, shape (m, columns)
            Rows with the columns of `fit`.

        Examples
        --------
        >>> import pandas as pd
        >>> from bootprob.encoding import TablePreprocessor
        >>> table = pd.DataFrame({"age": [41, None, 29], "house": ["own", "rent", "rent"]})
        >>> preprocessor = TablePreprocessor().fit(table)
        >>> preprocessor.plain(table)["age"].tolist()
        [41.0, nan, 29.0]
        """
        check_is_fitted(self)
        _check_has_columns(self.kinds_, X)
        dates = self.encoder_.dates
        others = {name: X[name] for name in self.kinds_ if name not in dates}
        _, plain = plain_columns(others, self.kinds_)
        for name, parts in dates.items():
            found = _dates(X[name], name)
            plain[name] = pd.Series(parts.days(found)).mask(np.isnat(found))
        return pd.DataFrame(plain)

    def encode(self, X: pd.DataFrame, encoder: Any = None) -> EncodedRows:
        """The matrix that `transform` returns, and the counts of `unknown_levels`.

        Or what an encoder makes that takes more columns than `encoder_`.

        Parameters
        ----------
        X : DataFrame, shape (m, columns)
            Rows with the columns of `fit`.
        encoder : TableEncoder or FrameEncoder, optional
            Which takes more columns than `encoder_`; default `encoder_`.

        Examples
        --------
        >>> import pandas as pd
        >>> from bootprob.encoding import TablePreprocessor
        >>> table = pd.DataFrame({"age": [41, None, 29], "house": ["own", "rent", "rent"]})
        >>> preprocessor = TablePreprocessor().fit(table)
        >>> preprocessor.encode(table).X.shape
        (3, 3)
        """
        check_is_fitted(self)
        frame = _as_frame(X)
        encoder = self.encoder_ if encoder is None else encoder
        _check_has_columns(encoder.kinds, frame)
        found = encoder.encode({name: frame[name] for name in encoder.kinds}, len(frame))
        unknown = {
            name: dict(sorted(levels.items(), key=lambda each: -each[1]))
            for name, levels in found.unknown.items()
        }
        return replace(found, unknown=unknown)

    def _note_oddities(self, plain: Mapping[str, pd.Series]) -> None:
        """Note what is legal and yet often a mistake in the table."""
        for name in self._of("text"):
            texts = plain[name]
            levels = texts.dropna().unique()
            parsed = pd.to_numeric(texts, errors="coerce")
            words = (parsed.isna() & texts.notna()).to_numpy()
            if are_dates(levels):
                self.notes_.append(
                    f"Column {name!r} holds dates and is taken as "
                    f"{counted(len(levels), 'category', 'categories')}; name "
                    "it as dates (--dates) to learn from its days, months and weekdays."
                )
            elif 0 < words.sum() < _MOSTLY_NUMBERS * texts.notna().sum():
                self.notes_.append(
                    f"Column {name!r} is taken as categories because of text such as "
                    f"{texts[words].iloc[0]!r} in {name_rows(words)}; if it holds numbers, "
                    "leave such cells empty."
                )
            elif len(levels) > min(MANY_LEVELS, len(texts) / 2):
                weighing = ", which together weigh as one column in calibrated models" * (
                    len(levels) > MANY_LEVELS
                )
                self.notes_.append(
                    f"Column {name!r} has {len(levels)} levels, a dummy for each{weighing}; leave "
                    "it out if it only tells rows apart."
                )
        filled = [f"{name} ({count})" for name, count in (self.missing_ or {}).items() if count]
        if filled:
            cells = ", ".join(filled[:8])
            more = f" and {counted(len(filled) - 8, 'more column')}" if len(filled) > 8 else ""
            self.notes_.append(f"Missing values were filled in: {cells}{more}.")


def _check_has_columns(names: Collection[str], frame: pd.DataFrame) -> None:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        one = len(missing) == 1
        raise DataError(
            f"The table lacks {'the column' if one else f'{len(missing)} columns'} "
            f"{_listed(missing)} that the model was fitted on."
        )


def _why_unread(column: pd.Series, name: str) -> str | None:
    """Why a column teaches nothing, whatever its values are."""
    if re.fullmatch(r"(Unnamed: \d+)?", name):
        return "it has no name (a saved row index?)"
    return _NO_VALUES if column.isna().all() else None


def _why_useless(plain: pd.Series, kind: Kind) -> str | None:
    """Why its values teach nothing."""
    if kind == "number":
        differ = plain.max() - plain.min()  # one value at least, since not all are missing
        if 0 < differ < 1 / LARGEST:
            return f"its numbers differ by {differ:.0e} at most (in another unit?)"
    if kind not in ("text", "date"):
        return None
    known = plain.dropna()
    if known.empty:
        return _NO_VALUES
    if kind == "text" and not known.duplicated().any():
        what = "dates (name them: --dates)" if are_dates(known) else "text"
        return f"it is {what} in which no value occurs twice (an identifier?)"
    return None


def _check_dates(dates: Sequence[str], frame: pd.DataFrame) -> None:
    """Refuse names that are no columns."""
    if isinstance(dates, str):
        raise DataError(f"dates is {dates!r}; give a list of columns, such as [{dates!r}].")
    for name in dates:
        if name not in frame.columns:
            raise DataError(
                f"There is no column {name!r} that could hold dates; the table has "
                f"{_listed(list(frame.columns))}."
            )


def _dates(column: pd.Series, name: str) -> NDArray[np.datetime64]:
    """Dates of a column, NaT where they are missing."""
    found, bad = dates_and_bad(column)
    if bad:
        raise bad[0].refusal(name)
    return found


def _as_frame(X: Any) -> pd.DataFrame:
    if not isinstance(X, pd.DataFrame):
        raise DataError(f"A pandas DataFrame is wanted, not {type(X).__name__}.")
    frame = X.rename(columns=str)
    check_columns(frame)
    if len(frame) == 0:
        raise DataError("The table has no rows.")
    return frame


def _stored_counts(counts: Any, names: Collection[str]) -> dict[str, int] | None:
    if counts is None:  # a file of before they were kept
        return None
    if counts.keys() != set(names) or not all(type(n) is int and n >= 0 for n in counts.values()):
        raise ValueError("its missing values are none")
    return dict(counts)


def _is_stored_column(column: dict[str, Any]) -> bool:
    fill = column["fill"]
    if column["kind"] == "date":
        return "levels" not in column  # the rest is checked by `DateParts.from_dict`
    if column["kind"] == "number":
        return isinstance(fill, float) and np.isfinite(fill)
    levels = column["levels"]
    return (
        column["kind"] in ("boolean", "text")
        and isinstance(levels, list)
        and all(isinstance(level, str) for level in levels)
        and fill in levels
    )


def _listed(names: list[str], at_most: int = 10) -> str:
    shown = ", ".join(repr(name) for name in names[:at_most])
    return shown + (f" and {len(names) - at_most} more" if len(names) > at_most else "")
