"""Data frames of several libraries, told apart from matrices; sparse matrices made dense."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import scipy.sparse

from bootprob.encoding.names import check_columns
from bootprob.exceptions import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_frame", "dense", "is_mixed"]


def as_frame(X: Any) -> pd.DataFrame | None:
    """X as a data frame of pandas; None where it is no data frame.

    Parameters
    ----------
    X : Any
        Of pandas, or what offers Arrow's PyCapsule stream, such as the data frames of polars and
        the tables of pyarrow and DuckDB; a single column of them is none.

    Raises
    ------
    DataError
        Columns have the same name.
    """
    if not hasattr(X, "__arrow_c_stream__") or len(getattr(X, "shape", (0, 0))) == 1:
        return None
    import pandas as pd  # which plain matrices do without
    import pyarrow as pa

    frame = X if isinstance(X, pd.DataFrame) else pa.table(X).to_pandas()
    check_columns(frame)
    return frame


def is_mixed(frame: pd.DataFrame) -> bool:
    """Whether a data frame is no plain matrix: other columns than numbers, or missing values."""
    import pandas as pd

    plain = (
        pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype)
        for dtype in frame.dtypes
    )
    return not all(plain) or bool(frame.isna().to_numpy().any())


def dense(X: Any) -> Any:
    """Rows of a sparse matrix as an array; others as they are.

    Raises
    ------
    DataError
        The array would take more than half of the memory that is free.
    """
    is_sparse: bool = scipy.sparse.issparse(X)  # else mypy sees less of X below
    if not is_sparse:
        return X
    import psutil

    needed, free = 8 * math.prod(X.shape), psutil.virtual_memory().available
    if needed > free / 2:
        raise DataError(
            f"The sparse matrix of the shape {X.shape} takes {needed / 2**30:.1f} GiB as an array, "
            f"and {free / 2**30:.1f} GiB are free; reduce its columns first, such as by "
            "TruncatedSVD."
        )
    return X.toarray()
