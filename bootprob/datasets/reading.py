"""Raw tables: text cells of the features, and the class of each row."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bootprob.datasets.source import DatasetError, Source

__all__ = ["Raw", "check", "from_columns", "read", "read_bundled"]


class Raw(NamedTuple):
    """Features before they are prepared, and classes as text."""

    features: pd.DataFrame
    labels: NDArray[np.str_]


def read(source: Source, paths: tuple[Path, ...]) -> Raw:
    """Read the files of a data set; `DatasetError` for one that cannot be read.

    That is also said of one with another number of columns than it should have.
    """
    try:
        if source.form == "leukemia":
            return _leukemia(*paths)
        tables = [_delimited(source, path) for path in paths]
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, csv.Error, KeyError) as error:
        raise DatasetError(
            f"{source.name}: {', '.join(map(str, paths))} cannot be read as {source.title} "
            f"({type(error).__name__}: {error})."
        ) from error
    except pd.errors.EmptyDataError:
        raise DatasetError(f"{source.name}: a file of {paths[0].parent} is empty.") from None
    return from_columns(source, pd.concat(tables, ignore_index=True))


def _delimited(source: Source, path: Path) -> pd.DataFrame:
    table = pd.read_csv(
        path,
        sep=r"\s+" if source.separator == " " else source.separator,
        header=None,
        dtype=str,
        na_values=["?"],
        keep_default_na=False,
        skipinitialspace=True,
    )
    if table.shape[1] != len(source.columns):
        raise DatasetError(
            f"{source.name}: {path} has {table.shape[1]} columns where {source.title} has "
            f"{len(source.columns)}; it is another file."
        )
    table.columns = pd.Index(source.columns)
    first = table[source.target].iloc[0]
    return table.iloc[1:] if first in source.header else table


def from_columns(source: Source, table: pd.DataFrame) -> Raw:
    """Split a table with all the raw columns into features and classes.

    `DatasetError` if the target should be numbers and is not.
    """
    table = table.drop(columns=list(source.left_out))
    if source.complete_rows:
        table = table.dropna().reset_index(drop=True)
    target = table[source.target]
    if target.isna().any():
        row = int(target.isna().to_numpy().argmax())
        raise DatasetError(
            f"{source.name}: row {row} (counted from 0) has no {source.target}; the file is "
            "damaged, or another version."
        )
    if source.threshold is not None:
        try:
            above = target.astype(float) > source.threshold
        except ValueError as error:
            raise DatasetError(
                f"{source.name}: {source.target} should be numbers: {error}."
            ) from None
        limit = f"{source.threshold:g}"
        labels = np.where(above, f"> {limit}", f"<= {limit}")
    else:
        labels = target.to_numpy(dtype=str)
    return Raw(table.drop(columns=source.target), labels)


def _leukemia(train: Path, independent: Path, actual: Path) -> Raw:
    """Genes stand in rows, and after each patient's column there is one named call."""
    patients = []
    for path in (train, independent):
        table = pd.read_csv(path).set_index("Gene Accession Number")
        patients.append(table[[name for name in table.columns if name.isdigit()]].T)
    genes = pd.concat(patients)
    if genes.shape[1] == 0 or genes.columns.has_duplicates:
        raise DatasetError(f"leukemia: {train} and {independent} do not have the same genes.")
    labels = pd.read_csv(actual, dtype=str).set_index("patient")["cancer"]
    return Raw(genes.reset_index(drop=True), labels.loc[genes.index].to_numpy(dtype=str))


def read_bundled(source: Source) -> Raw:
    """Take a data set from scikit-learn, which has it on disk."""
    from sklearn import datasets

    loaders = {"wisconsin": datasets.load_breast_cancer}
    bunch = loaders.get(source.name) or getattr(datasets, f"load_{source.name}")
    found = bunch(as_frame=True)
    names = np.asarray(found.target_names).astype(str)
    return Raw(found.data, names[found.target.to_numpy()])


def check(source: Source, raw: Raw, place: str) -> None:
    """See that rows, classes and missing cells are as many as they should be.

    If not, `DatasetError`: the file is damaged, or another version.
    """
    classes = dict(sorted(Counter(raw.labels.tolist()).items()))
    missing = int(raw.features.isna().to_numpy().sum())
    found = {"rows": len(raw.labels), "classes": classes, "missing cells": missing}
    expected = {
        "rows": source.rows,
        "classes": dict(sorted(source.classes)),
        "missing cells": source.missing,
    }
    wrong = [
        f"{what} {found[what]}, not {expected[what]}"
        for what in found
        if found[what] != expected[what]
    ]
    if wrong:
        raise DatasetError(
            f"{source.name}: {place} is not {source.title} as it should be: {'; '.join(wrong)}. "
            "Give the original file."
        )
