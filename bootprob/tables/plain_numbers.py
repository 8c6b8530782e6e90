"""Which columns of a table are those of an ensemble that was fitted to plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bootprob.exceptions import DataError, TargetColumnError
from bootprob.runtime.counted import counted

if TYPE_CHECKING:
    from bootprob.ensemble.classifier import BootstrapClassifier
    from bootprob.ensemble.estimator import BootstrapSVC

__all__ = ["knows_names", "names_of_numbers"]


def knows_names(svc: BootstrapSVC | BootstrapClassifier) -> bool:
    """Whether an ensemble knows what its columns are called."""
    return hasattr(svc, "feature_names_in_") or getattr(svc, "frame_columns_", None) is not None


def names_of_numbers(svc: BootstrapSVC | BootstrapClassifier, columns: Sequence[str]) -> list[str]:
    """Names of the columns of a table that an ensemble of plain numbers is to be given.

    Those that it was fitted to; or of an ensemble without names x0, x1, … where the table has them,
    and else all columns of the table, in their order.

    Parameters
    ----------
    svc : BootstrapSVC or BootstrapClassifier
        Fitted, without a `preprocessor_`.
    columns : sequence of str
        Of the table, without that of the classes.

    Raises
    ------
    DataError
        The ensemble has a precomputed kernel; or knows no names, and the table has more or fewer
        columns; of one more the error is a `TargetColumnError`.
    """
    p = svc.n_features_in_
    if getattr(svc, "kernel", None) == "precomputed":
        raise DataError(
            "The model has a precomputed kernel, so that its rows are values of the kernel and no "
            "columns of a table; use it from Python."
        )
    described = getattr(svc, "frame_columns_", None)
    if described is not None:
        return [str(each["name"]) for each in described]
    if hasattr(svc, "feature_names_in_"):
        return list(map(str, svc.feature_names_in_))
    numbered = [f"x{j}" for j in range(p)]
    if set(numbered) <= set(columns):
        return numbered
    if len(columns) == p:
        return list(columns)
    called = f"{numbered[0]} to {numbered[-1]}" if p > 2 else " and ".join(numbered)
    shown = ", ".join(map(repr, columns[:10])) + (" …" if len(columns) > 10 else "")
    said = (
        f"The model was fitted to an array of {counted(p, 'column')} without names, and the table "
        f"has {len(columns):,} ({shown}); give those alone, in their order, or call them {called}. "
        f"A model that is fitted to a data frame knows its columns by their names."
    )
    if len(columns) == p + 1:
        raise TargetColumnError(f"{said} If one of these holds the classes, leave that column out.")
    raise DataError(said)
