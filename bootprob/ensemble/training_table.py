"""What `fit` is given, as the matrix and the labels that an ensemble learns from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_X_y, validate_data

from bootprob.encoding.frames import as_frame, dense, is_mixed
from bootprob.encoding.names import with_text_names
from bootprob.exceptions import DataError
from bootprob.preparation.labels import usable_labels
from bootprob.runtime.arrays import Floats
from bootprob.runtime.finite_rows import refuse_gaps, refuse_other_numbers, text_refused

if TYPE_CHECKING:
    from bootprob.encoding.preprocessing import TablePreprocessor

__all__ = ["columns_kept", "refuse_groups_with_time", "told_of_columns", "training_table"]

_OF_COLUMNS = "n_features_in_", "feature_names_in_"


@contextmanager
def columns_kept(model: Any) -> Iterator[None]:
    """Within, a fit that fails, or is interrupted, leaves the model the columns that it had.

    scikit-learn notes those of a fit before anything else of it is known.
    """
    before = {name: vars(model)[name] for name in _OF_COLUMNS if name in vars(model)}
    try:
        yield
    except BaseException:
        for name in _OF_COLUMNS:
            vars(model).pop(name, None)
        vars(model).update(before)
        raise


def training_table(
    model: Any, X: Any, y: ArrayLike, preprocessor: TablePreprocessor | None
) -> tuple[Floats, NDArray[Any], TablePreprocessor | None]:
    """Rows as numbers, their labels, and what made numbers of a data frame.

    Parameters
    ----------
    model : BootstrapSVC
        Is told the number and the names of the columns.
    X : array-like, sparse matrix or data frame, shape (n, p)
    y : array-like, shape (n,)
    preprocessor : TablePreprocessor or None
        Is fitted, whatever the columns; None leaves those that are all of numbers as they are.

    Raises
    ------
    ValueError
        Of scikit-learn, for what is no table of numbers, or for labels that do not go with it.
    DataError
        A data frame cannot be encoded, a sparse matrix is too large, or labels are missing.
    """
    y = usable_labels(y)
    frame = as_frame(X)
    if frame is not None and is_mixed(frame) and model.kernel != "precomputed":
        from bootprob.encoding.preprocessing import TablePreprocessor

        preprocessor = preprocessor or TablePreprocessor()
    if frame is None or preprocessor is None:
        X = X if frame is None else frame
        refuse_other_numbers(X)
        options = {"ensure_min_samples": 2, "accept_sparse": "csr", "ensure_all_finite": False}
        advice = "give a data frame, whose columns of text are encoded"
        with text_refused("X is an array with text", advice):
            X, y = validate_data(model, X, y, dtype=np.float64, **options)
        rows = np.asarray(dense(X), dtype=np.float64)
        names = getattr(model, "feature_names_in_", None)
        refuse_gaps(rows, names, frames_filled=True)
        return rows, np.asarray(y), None
    frame = with_text_names(frame)
    X, y = check_X_y(preprocessor.fit_transform(frame), y, dtype=np.float64, ensure_min_samples=2)
    validate_data(model, frame, skip_check_array=True)  # number and names of the columns
    return X, np.asarray(y), preprocessor


def refuse_groups_with_time(groups: Any, time: Any) -> None:
    """Raise a DataError where both are given: one of them says what is drawn together."""
    if groups is not None and time is not None:
        raise DataError(
            "groups and time are both given, and only one of the two can say which rows are "
            "drawn and left out together; give groups, and keep later rows back to measure the "
            "model on (held out), or give time, with rows of each group averaged to one."
        )


def told_of_columns(
    model: Any, preprocessor: TablePreprocessor | None
) -> tuple[Any, Mapping[str, slice] | None, Collection[str]]:
    """Names of the matrix's columns, the table's columns with their place in it, those of days."""
    if preprocessor is None:
        return getattr(model, "feature_names_in_", None), None, ()
    encoder = preprocessor.encoder_
    return preprocessor.get_feature_names_out(), encoder.told, encoder.dates
