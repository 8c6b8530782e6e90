"""Rows of a table as they were given, for classifiers, and as numbers, for the posterior."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array, validate_data

from bootprob.encoding.frames import as_frame, dense, is_mixed
from bootprob.encoding.names import with_text_names
from bootprob.exceptions import DataError
from bootprob.preparation.labels import usable_labels
from bootprob.runtime.arrays import Floats, Indices
from bootprob.runtime.device_rows import DeviceRows
from bootprob.runtime.finite_rows import refuse_gaps, text_refused

if TYPE_CHECKING:
    import pandas as pd

    from bootprob.encoding.preprocessing import TablePreprocessor

_FOR_CLASSIFIERS = "it holds no number, text or yes/no"

__all__ = ["TableRows", "new_rows", "some_rows", "training_rows"]


@dataclass(frozen=True)
class TableRows:
    """Some rows, twice; they keep what classifiers said of them while they are asked about.

    Attributes
    ----------
    given : array-like, sparse matrix or data frame, shape (m, ...)
        What classifiers are given.
    matrix : ndarray, shape (m, p)
        What the posterior is given.
    known : dict
        Scores of the rows, by what made them.
    """

    given: Any
    matrix: Floats
    known: dict[int, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.matrix)

    def __getitem__(self, rows: slice | Indices) -> TableRows:
        given = _safe_indexing(self.given, np.arange(len(self))[rows])
        known = {key: scores[rows] for key, scores in self.known.items()}
        return TableRows(given, self.matrix[rows], known)


def some_rows(X: Any, rows: Indices) -> Any:
    """Some rows of what a model is given, of whatever type that is."""
    return X[rows] if isinstance(X, TableRows) else _safe_indexing(X, rows)


def training_rows(
    model: Any, X: Any, y: ArrayLike
) -> tuple[TableRows, NDArray[Any], TablePreprocessor | None]:
    """Rows to train on, their labels, and what made numbers of a table with gaps or categories.

    Parameters
    ----------
    model : BootstrapClassifier
        Is told the number and the names of the columns.
    X : array-like, sparse matrix or data frame, shape (n, p)
    y : array-like, shape (n,)

    Raises
    ------
    ValueError
        Of scikit-learn, for what is no table, or for labels that do not go with it.
    DataError
        A data frame cannot be encoded, a sparse matrix is too large, or labels are missing.
    """
    y = usable_labels(y)
    frame = as_frame(X)
    plain = frame is None or not is_mixed(frame)
    advice = "give a data frame, whose columns are known by name and kind"
    with text_refused("X is an array with text", advice):
        X, y = validate_data(
            model,
            X if frame is None else frame,
            y,
            skip_check_array=not plain,
            dtype="numeric",
            ensure_all_finite="allow-nan",
            ensure_min_samples=2,
            accept_sparse="csr",
        )
    if plain:
        numbers = np.asarray(dense(X), dtype=np.float64)
        if np.isfinite(numbers).all():
            return TableRows(X if frame is None else frame, numbers), np.asarray(y), None
    from bootprob.encoding.preprocessing import TablePreprocessor

    preprocessor = TablePreprocessor()
    named = _named(X, range(X.shape[1])) if frame is None else with_text_names(frame)
    columns = ((name, named.iloc[:, at]) for at, name in enumerate(named.columns))
    alone = {name: _FOR_CLASSIFIERS for name, column in columns if not _is_read(column, name)}
    encoded = preprocessor._fit_but_for(named, alone).transform(named)
    matrix = check_array(encoded, dtype=np.float64)
    return TableRows(X if frame is None else frame, matrix), np.asarray(y), preprocessor


def new_rows(model: Any, X: Any) -> TableRows:
    """Rows for a fitted `BootstrapClassifier`; errors of scikit-learn."""
    if isinstance(X, TableRows):
        return X
    if isinstance(X, DeviceRows):  # classifiers of others take arrays
        X = X.tensor.cpu().numpy()
    frame, preprocessor = as_frame(X), model.preprocessor_
    mixed = frame is not None and preprocessor is not None
    if frame is None and preprocessor is not None and hasattr(model, "feature_names_in_"):
        raise DataError(
            "The model was fitted on a data frame with columns of several kinds, or gaps, and is "
            f"given {type(X).__name__}; give a data frame with the same columns."
        )
    with text_refused("X has text", "the model knows columns of numbers"):
        X = validate_data(
            model,
            X if frame is None else frame,
            reset=False,
            skip_check_array=mixed,
            dtype="numeric",
            ensure_all_finite="allow-nan",
            accept_sparse="csr",
        )
    if preprocessor is None:
        matrix = np.asarray(dense(X), dtype=np.float64)
        refuse_gaps(matrix, getattr(model, "feature_names_in_", None))
    else:
        named = _named(X, preprocessor.feature_names_in_) if frame is None else frame
        matrix = preprocessor.transform(with_text_names(named))
    return TableRows(X if frame is None else frame, matrix)


def _is_read(column: pd.Series, name: str) -> bool:
    """Whether numbers can be made of a column: of dates and nested values there are none."""
    from bootprob.encoding.columns import column_kind  # needs pandas, which arrays do without

    try:
        column_kind(column, name)
    except DataError:
        return False
    return True


def _named(X: Any, names: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(dense(X), columns=list(map(str, names)))
