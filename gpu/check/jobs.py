"""The tables and the batches of models that are trained and scored."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer

from bootprob.preparation.bootstrap import bootstrap_counts
from bootprob.preparation.grids import DEFAULT_C, gamma_grid
from bootprob.preparation.standardization import bootstrap_scale, center_and_scale
from bootprob.runtime.arrays import Bools, Floats
from bootprob_gpu import Kernel, Problem
from gpu.benchmarks.common.datasets import FOLDER, LOADERS
from gpu.benchmarks.synthetic import adult_like

__all__ = ["GERMAN", "Table", "batch", "table"]

GERMAN = "German credit"
# Levels of the 13 categories of the German credit table; with 7 numbers that makes 61 columns.
_GERMAN_LEVELS = (4, 5, 10, 5, 5, 4, 3, 4, 3, 3, 4, 2, 2)


class Table(NamedTuple):
    """Rows as they come, and labels."""

    name: str
    X: Floats
    positive: Bools

    @property
    def title(self) -> str:
        """Name and size."""
        return f"{self.name} {self.X.shape[0]:,} × {self.X.shape[1]}"


def table(name: str, n_rows: int | None = None) -> Table:
    """Load a table or make it.

    Parameters
    ----------
    name : {"Wisconsin", "German credit", "adult-like"}
        The German credit data are not part of the project: where the folder BOOTPROB_DATASETS
        lacks them, or pandas is not there to read them, rows of the same shape are made by
        formula, and their name says so.
    n_rows : int, optional
        Only the first so many rows.
    """
    name, X, positive = _loaded(name)
    return Table(name, X[:n_rows], positive[:n_rows])


@cache
def _loaded(name: str) -> Table:
    if name == "Wisconsin":
        X, target = load_breast_cancer(return_X_y=True)
        positive = target == 0  # malignant
    elif name == GERMAN:
        if (FOLDER / "german/german.data").exists() and find_spec("pandas"):
            X, positive = LOADERS["german"]()
            X, positive = X[:900], positive[:900]
        else:
            name, (X, positive) = "German-like by formula", _german_like()
    else:
        X, positive = adult_like()
    return Table(name, np.asarray(X, dtype=np.float64), np.asarray(positive, dtype=bool))


def batch(
    source: Table,
    kernel: Kernel,
    replicates: int,
    *,
    n_C: int = len(DEFAULT_C),
    n_gamma: int = 11,
) -> Problem:
    """Bootstrap samples × grid of a table, standardised inside each sample.

    Parameters
    ----------
    source : Table
    kernel : {"linear", "rbf"}
    replicates : int
        Bootstrap samples.
    n_C, n_gamma : int
        Values of C and γ, of the default grids; γ for "rbf" only.
    """
    one = np.ones(len(source.X))
    center, scale = center_and_scale(source.X, one)
    rows = (source.X - center) / scale
    counts, _ = bootstrap_counts(source.positive, one, range(replicates), [0])
    return Problem(
        rows,
        np.where(source.positive, 1.0, -1.0),
        counts,
        DEFAULT_C[:n_C],
        kernel=kernel,
        gamma=gamma_grid("grid", rows)[:n_gamma] if kernel == "rbf" else None,
        scale=bootstrap_scale(rows, counts, one),
    )


def _german_like() -> tuple[Floats, Bools]:
    """900 rows of 7 numbers and 54 dummies, 30 % positives; always the same."""
    rng = np.random.default_rng(1994)
    dummies = [np.eye(k)[rng.choice(k, 900, p=rng.dirichlet(np.ones(k)))] for k in _GERMAN_LEVELS]
    X = np.column_stack([np.exp(0.5 * rng.normal(size=(900, 7))), *dummies])
    latent = X @ rng.normal(scale=0.6, size=X.shape[1]) + rng.logistic(size=900)
    return X, latent > np.quantile(latent, 0.7)
