"""One way to say that a file of rows cannot be read."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
import pyarrow as pa

from bootprob.exceptions import DataError

__all__ = ["readable"]


@contextmanager
def readable(path: str | os.PathLike[str], kind: str = "") -> Iterator[None]:
    """Turn what a damaged or foreign file raises into a `DataError` that names it.

    Parameters
    ----------
    path : path-like
    kind : str
        What the file cannot be read as.
    """
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.") from None
    except PermissionError:
        raise DataError(f"{path} cannot be read: permission denied.") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text; save it as CSV (UTF-8).") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{path} is empty.") from None
    except (pa.ArrowException, ValueError, NotImplementedError, OSError, csv.Error) as error:
        # pandas' ParserError is a ValueError.
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        reason = (reason.splitlines() or [type(error).__name__])[0].rstrip(".")
        as_kind = f" as {kind}" if kind else ""
        raise DataError(f"{path} cannot be read{as_kind}: {reason}.") from error
