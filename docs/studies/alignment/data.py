"""Data of the alignment study: tables 2 to 5 prepared as the paper does, and synthetic rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bootprob.datasets.catalog import CATALOG
from bootprob.datasets.finding import present
from bootprob.datasets.reading import read
from bootprob.runtime.arrays import Bools, Floats
from gpu.benchmarks.common.datasets import FOLDER

__all__ = ["POSITIVE", "clusters_on_cubes", "prepared"]


POSITIVE = {
    "hepatitis": ("1",),
    "zoo": ("1", "2"),
    "parkinsons": ("1",),
    "soybean-small": ("D1", "D4"),
}
_MOST_MISSING = 10
_HALF_WIDTHS = (100.0, 300.0, 500.0)  # of the cubes
_SHARES = (1 / 7, 2 / 7, 4 / 7)  # of the rows
_CATEGORICAL = ("soybean-small",)


def prepared(name: str) -> tuple[Floats, Bools]:
    """Rows and positives of section 4.1.

    Columns with more than ten missing cells are left out, then rows with any; of hepatitis that
    leaves 138 × 15. The columns of soybean-small are categories: constant ones are left out, those
    of two levels become one dummy and others one for each level, 45 in all. The legs of zoo stay a
    number.
    """
    source = CATALOG[name]
    paths = present(source, (FOLDER,))
    if paths is None:
        raise FileNotFoundError(f"{name} is not in {FOLDER}")
    raw = read(source, paths)
    table = raw.features.loc[:, raw.features.isna().sum() <= _MOST_MISSING]
    complete = table.notna().all(axis=1).to_numpy()
    table = table.loc[complete]
    if name in _CATEGORICAL:
        table = _dummies(table)
    return table.to_numpy(dtype=np.float64), np.isin(raw.labels[complete], POSITIVE[name])


def _dummies(table: pd.DataFrame) -> pd.DataFrame:
    levels = table.nunique()
    two = pd.get_dummies(table.loc[:, levels == 2], drop_first=True)
    more = pd.get_dummies(table.loc[:, levels > 2])
    return pd.concat([two, more], axis=1)


def clusters_on_cubes(
    rng: np.random.Generator, n: int, relevant: int, columns: int, expansion: float
) -> tuple[Floats, Bools]:
    """Normal clusters at the corners of three cubes around each other, and columns of noise.

    After the description of NDCC in section 4.3, not after its program. A corner belongs to the
    class that its side of a random plane through the origin says, on the innermost cube, which has
    a seventh of the rows, to the other one. The clusters have random covariances of about 100
    times the expansion in each direction.

    Parameters
    ----------
    rng : Generator
    n : int
    relevant : int
        θ*, the number of columns that the class depends on: the first ones.
    columns : int
        p in all; the others are standard normal.
    expansion : float
        "exp": with it the classes overlap.
    """
    signs = np.array(np.meshgrid(*[(-1.0, 1.0)] * relevant)).reshape(relevant, -1).T
    centres = np.concatenate([width * signs for width in _HALF_WIDTHS])
    positive = np.tile(signs @ rng.normal(size=relevant) > 0, len(_HALF_WIDTHS))
    positive[: len(signs)] ^= True
    spread = rng.normal(size=(len(centres), relevant, relevant)) / np.sqrt(relevant)
    cube = rng.choice(len(_SHARES), n, p=_SHARES)
    cluster = cube * len(signs) + rng.integers(0, len(signs), n)
    noise = np.einsum("kij,kj->ki", spread[cluster], rng.normal(size=(n, relevant)))
    X = centres[cluster] + 10 * np.sqrt(expansion) * noise
    return np.hstack([X, rng.normal(size=(n, columns - relevant))]), positive[cluster]
