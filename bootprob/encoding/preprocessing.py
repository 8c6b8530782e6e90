"""From a table with columns of several kinds to the matrix that a support vector machine takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bootprob.encoding.column_notes import oddities, why_unread, why_useless
from bootprob.encoding.columns import Kind, plain_columns
from bootprob.encoding.dates import DateParts, dates_and_bad
from bootprob.encoding.encoder import EncodedRows, TableEncoder
from bootprob.encoding.names import check_columns, check_dates, check_has_columns, with_text_names
from bootprob.encoding.stored_columns import (
    encoder_of,
    refuse_large_fills,
    stored_columns,
    stored_counts,
)
from bootprob.exceptions import DataError

__all__ = ["TablePreprocessor"]


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
        return self._fit_but_for(X, {})

    def _fit_but_for(self, X: pd.DataFrame, unread: Mapping[str, str]) -> Self:
        """The same without columns that are not looked at, each with the reason."""
        frame = _as_frame(X)
        check_dates(self.dates, frame)
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        reasons = {
            name: unread.get(name) or why_unread(frame[name], name) for name in frame.columns
        }
        read = {name: frame[name] for name in reasons if not reasons[name]}
        dates = {
            name: pd.Series(_dates(read.pop(name), name)) for name in self.dates if name in read
        }
        kinds, plain = plain_columns(read)
        kinds |= dict.fromkeys(dates, "date")
        plain |= dates
        reasons |= {name: why_useless(plain[name], kind) for name, kind in kinds.items()}
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
        self.notes_ += oddities({name: plain[name] for name in self._of("text")}, self.missing_)
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
        if self.fills_.keys() != self.kinds_.keys():
            raise DataError("A preprocessor of plain numbers has learnt nothing to be stored.")
        return {
            "columns": stored_columns(self.encoder_),
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
            encoder = encoder_of(stored["columns"])
            preprocessor = cls(dates=tuple(encoder.dates))
            preprocessor.kinds_ = encoder.kinds
            preprocessor.dropped_ = dict(stored["dropped"])
            preprocessor.notes_ = list(stored["notes"])
            preprocessor.missing_ = stored_counts(stored.get("missing"), encoder.kinds)
            preprocessor.feature_names_in_ = np.array(stored["feature_names_in"], dtype=object)
            preprocessor.n_features_in_ = len(preprocessor.feature_names_in_)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"The stored preprocessing is damaged: {error}.") from error
        refuse_large_fills(encoder.fills)
        preprocessor.encoder_ = encoder
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
        check_has_columns(self.kinds_, X)
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
        check_has_columns(encoder.kinds, frame)
        found = encoder.encode({name: frame[name] for name in encoder.kinds}, len(frame))
        unknown = {
            name: dict(sorted(levels.items(), key=lambda each: -each[1]))
            for name, levels in found.unknown.items()
        }
        return replace(found, unknown=unknown)


def _dates(column: pd.Series, name: str) -> NDArray[np.datetime64]:
    """Dates of a column, NaT where they are missing."""
    found, bad = dates_and_bad(column)
    if bad:
        raise bad[0].refusal(name)
    return found


def _as_frame(X: Any) -> pd.DataFrame:
    if not isinstance(X, pd.DataFrame):
        raise DataError(f"A pandas DataFrame is wanted, not {type(X).__name__}.")
    frame = with_text_names(X)
    check_columns(frame)
    if len(frame) == 0:
        raise DataError("The table has no rows.")
    return frame
