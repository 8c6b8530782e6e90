"""The papers' data sets, read from a local folder as numbers and labels.

The folder is named by the environment variable BOOTPROB_DATASETS; by default it is
``shared/datasets`` beside the repository. The files are not part of the project.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

Data = tuple[NDArray[np.float64], NDArray[np.bool_]]

FOLDER = Path(
    os.environ.get("BOOTPROB_DATASETS", Path(__file__).parents[2].parent / "shared" / "datasets")
)


def wisconsin() -> Data:
    X, y = load_breast_cancer(return_X_y=True)
    return X, y == 0


def _table(file: str, **options: object) -> pd.DataFrame:
    options = {"header": None, "na_values": "?", "skipinitialspace": True, **options}
    return pd.read_csv(FOLDER / file, **options)  # type: ignore[call-overload]


def _numbers(features: pd.DataFrame, categorical: list[int] | str = "text") -> NDArray[np.float64]:
    """Dummies for categories (all levels), medians and modes for what is missing."""
    if categorical == "text":
        chosen = [c for c in features if not pd.api.types.is_numeric_dtype(features[c])]
    else:
        chosen = (
            list(features) if categorical == "all" else [features.columns[k] for k in categorical]
        )
    parts = []
    for name in features:
        column = features[name]
        if name in chosen:
            parts.append(pd.get_dummies(column.fillna(column.mode()[0]).astype(str), dtype=float))
        else:
            parts.append(column.fillna(column.median()).astype(float).to_frame())
    return pd.concat(parts, axis=1).to_numpy()


def _last(file: str, positive: Callable[[pd.Series], pd.Series], **options: object) -> Data:
    categorical = options.pop("categorical", "text")
    table = _table(file, **options)
    return _numbers(table.iloc[:, :-1], categorical), positive(table.iloc[:, -1]).to_numpy()  # type: ignore[arg-type]


def _heart() -> Data:
    names = ("cleveland", "hungarian", "switzerland")
    table = pd.concat([_table(f"heart/processed.{name}.data") for name in names])
    table = table.reset_index(drop=True)
    return _numbers(table.iloc[:, :-1], [2, 6, 10, 12]), (table.iloc[:, -1] > 0).to_numpy()


def _leukemia() -> Data:
    parts = [
        _table(f"leukemia/data_set_ALL_AML_{n}.csv", header=0) for n in ("train", "independent")
    ]
    genes = pd.concat([part[[c for c in part if c.isdigit()]] for part in parts], axis=1).T
    labels = _table("leukemia/actual.csv", header=0).set_index("patient")["cancer"]
    return genes.to_numpy(float), (labels.loc[genes.index.astype(int)] == "AML").to_numpy()


def _first(file: str, positive: object, categorical: list[int] | str) -> Data:
    table = _table(file)
    return _numbers(table.iloc[:, 1:], categorical), (table.iloc[:, 0] == positive).to_numpy()


def _named_rows(
    file: str, target: str | int, positive: int, drop: str | int, **options: object
) -> Data:
    table = _table(file, **options)
    y = (table[target] == positive).to_numpy()
    return _numbers(table.drop(columns=[target, drop])), y


LOADERS: dict[str, Callable[[], Data]] = {
    "wisconsin": wisconsin,
    "german": lambda: _last("german/german.data", lambda y: y == 2, sep=" "),
    "australian": lambda: _last(
        "australian/australian.dat",
        lambda y: y == 1,
        sep=" ",
        categorical=[0, 3, 4, 5, 7, 8, 10, 11],
    ),
    "banknote": lambda: _last("banknote/data_banknote_authentication.txt", lambda y: y == 1),
    "careval": lambda: _last("careval/car.data", lambda y: y != "unacc", categorical="all"),
    "housing": lambda: _last("housing/housing.data", lambda y: y <= 21.2, sep=r"\s+"),
    "heart": _heart,
    "votes": lambda: _first("votes/house-votes-84.data", "republican", "all"),
    "divorce": lambda: _last("divorce/divorce.csv", lambda y: y == 1, sep=";", header=0),
    "pima": lambda: _last("pima/pima-indians-diabetes.data", lambda y: y == 1),
    "bupa": lambda: _last("bupa/bupa.data", lambda y: y == 1),
    "crx": lambda: _last("crx/crx.data", lambda y: y == "+"),
    "nursery": lambda: _last("nursery/nursery.data", lambda y: y == "not_recom"),
    "hepatitis": lambda: _first("hepatitis/hepatitis.data", 1, []),
    "zoo": lambda: _named_rows("zoo/zoo.data", 17, 1, 0),
    "parkinsons": lambda: _named_rows("parkinsons/parkinsons.data", "status", 1, "name", header=0),
    "soybean-small": lambda: _last(
        "soybean-small/soybean-small.data", lambda y: y == "D4", header=0
    ),
    "leukemia": _leukemia,
}
