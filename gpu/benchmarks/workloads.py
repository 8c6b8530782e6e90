"""The jobs that ours and the peers are given: data, bootstrap samples and grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bootprob.preparation.bootstrap import bootstrap_counts
from bootprob.preparation.grids import DEFAULT_C, GAMMA_MULTIPLES, gamma_grid
from bootprob.preparation.standardization import bootstrap_scale, center_and_scale
from bootprob.runtime.arrays import Bools, Floats
from bootprob_gpu import Problem
from gpu.benchmarks.common.datasets import FOLDER, LOADERS, Data
from gpu.benchmarks.svm import Kernel, Machine
from gpu.benchmarks.synthetic import adult_like, gene_like

__all__ = ["WORKLOADS", "Workload", "absent", "make"]

Standardize = Literal["bootstrap", "global"]

BOOTSTRAPS = 500
QUICK_BOOTSTRAPS = 8


@dataclass(frozen=True)
class Workload:
    """Bootstrap samples × grid of one table.

    Attributes
    ----------
    title : str
        As the document shows it.
    X : ndarray, shape (n, p)
        Rows as the table has them.
    positive : ndarray of bool, shape (n,)
    counts : ndarray of int, shape (B, n)
        The bootstrap samples that are measured.
    kernel : {"linear", "rbf"}
    gamma : str
        What `bootprob.preparation.grids.gamma_grid` makes the grid of γ from; for "rbf".
    chunk : int or None
        Replicates in a call of ours; None trains all in one.
    estimator : bool
        Whether the whole of `BootstrapSVC.fit` is measured as well.
    peer_seconds : float
        Wall time that a peer may take.
    standardize : {"bootstrap", "global"}
        Inside each bootstrap sample as in the thesis, or over all rows only.
    """

    title: str
    X: Floats
    positive: Bools
    counts: NDArray[np.integer]
    kernel: Kernel
    gamma: str
    chunk: int | None
    estimator: bool
    peer_seconds: float
    standardize: Standardize = "bootstrap"

    @cached_property
    def rows(self) -> Floats:
        """The rows, standardised over all of them, as `BootstrapSVC` does."""
        center, scale = center_and_scale(self.X, np.ones(len(self.X)))
        return (self.X - center) / scale

    @cached_property
    def labels(self) -> Floats:
        """−1 or +1, shape (n,)."""
        return np.where(self.positive, 1.0, -1.0)

    @cached_property
    def gammas(self) -> Floats | None:
        """The grid of γ; None for the linear kernel."""
        return gamma_grid(self.gamma, self.rows) if self.kernel == "rbf" else None

    @property
    def C_per_model(self) -> Floats:  # noqa: N802
        """C of each model of a replicate, shape (R,), laid out as in `Problem`."""
        return np.tile(DEFAULT_C, 1 if self.gammas is None else len(self.gammas))

    @property
    def models(self) -> int:
        """Models of the whole job, 500 × R."""
        return BOOTSTRAPS * len(self.C_per_model)

    def problem(self, replicates: slice = slice(None)) -> Problem:
        """Ours: the engine's problem; it is standardised inside each sample through `scale`."""
        counts = self.counts[replicates]
        inside = self.standardize == "bootstrap"
        return Problem(
            self.rows,
            self.labels,
            counts,
            DEFAULT_C,
            kernel=self.kernel,
            gamma=self.gammas,
            scale=bootstrap_scale(self.rows, counts, np.ones(len(self.rows))) if inside else None,
        )

    def machine(self, b: int, r: int) -> Machine:
        """A peer's: model r of replicate b, on distinct rows."""
        counts = self.counts[b]
        drawn = counts > 0
        weight = counts[drawn].astype(float)
        rows = self.rows[drawn]
        if self.standardize == "bootstrap":
            scale = bootstrap_scale(self.rows, counts[None], np.ones(len(self.rows)))[0]
            rows = (rows - np.average(rows, axis=0, weights=weight)) / scale
        return Machine(
            kernel=self.kernel,
            rows=rows,
            labels=self.labels[drawn],
            weight=weight,
            C=float(self.C_per_model[r]),
            gamma=None if self.gammas is None else float(np.repeat(self.gammas, len(DEFAULT_C))[r]),
        )


@dataclass(frozen=True)
class _Recipe:
    title: str  # of the table; its size and the kernel are added
    load: Callable[[], Data]
    kernel: Kernel = "linear"
    standardize: Standardize = "bootstrap"
    gamma: str = "scale"
    bootstraps: int = BOOTSTRAPS
    chunk: int | None = None
    estimator: bool = False
    peer_seconds: float = 3.0
    file: str | None = None


def _german() -> Data:
    X, y = LOADERS["german"]()
    return X[:900], y[:900]


_GERMAN = "german/german.data"
WORKLOADS = {
    "wisconsin-linear": _Recipe("Wisconsin", LOADERS["wisconsin"], estimator=True),
    "wisconsin-rbf": _Recipe("Wisconsin", LOADERS["wisconsin"], "rbf", estimator=True),
    "wisconsin-shared": _Recipe("Wisconsin", LOADERS["wisconsin"], "rbf", standardize="global"),
    "wisconsin-grid": _Recipe(
        "Wisconsin", LOADERS["wisconsin"], "rbf", gamma="grid", bootstraps=20, chunk=10
    ),
    "german-linear": _Recipe(
        "German credit", _german, estimator=True, peer_seconds=6, file=_GERMAN
    ),
    "german-rbf": _Recipe("German credit", _german, "rbf", estimator=True, file=_GERMAN),
    "german-shared": _Recipe("German credit", _german, "rbf", standardize="global", file=_GERMAN),
    "gene-linear": _Recipe("Gene-like (synthetic)", gene_like),
    "gene-global": _Recipe("Gene-like (synthetic)", gene_like, standardize="global"),
    "leukemia-linear": _Recipe(
        "Leukemia", LOADERS["leukemia"], peer_seconds=2, file="leukemia/actual.csv"
    ),
    "adult-linear": _Recipe(
        "Adult-like (synthetic)", adult_like, bootstraps=12, chunk=4, peer_seconds=20
    ),
}


def absent(name: str) -> str | None:
    """Why a job cannot be run here, or None."""
    file = WORKLOADS[name].file
    if file is None or (FOLDER / file).exists():
        return None
    return f"{file} is not at hand; set BOOTPROB_DATASETS"


def make(name: str, *, quick: bool = False) -> Workload:
    """Load the data of a job and draw its bootstrap samples.

    Parameters
    ----------
    name : str
        A key of `WORKLOADS`.
    quick : bool, default False
        A few bootstrap samples, a fraction of the peers' time, and fewer rows of adult-like: to
        see that all works, not to be published.
    """
    recipe = WORKLOADS[name]
    X, positive = recipe.load()
    if quick and len(X) > 2_000:
        X, positive = X[:2_000], positive[:2_000]
    bootstraps = min(recipe.bootstraps, QUICK_BOOTSTRAPS) if quick else recipe.bootstraps
    kernel = "RBF" if recipe.kernel == "rbf" else recipe.kernel
    title = f"{recipe.title} {len(X):,} × {X.shape[1]:,}, {kernel}"
    if recipe.standardize == "global":
        title += ", one scale for all samples"
    if recipe.gamma == "grid":
        title += f", {len(DEFAULT_C)} C × {len(GAMMA_MULTIPLES)} γ"
    counts, _ = bootstrap_counts(positive, np.ones(len(X)), range(bootstraps), [0])
    return Workload(
        title=title,
        X=np.asarray(X, dtype=np.float64),
        positive=positive,
        counts=counts,
        kernel=recipe.kernel,
        standardize=recipe.standardize,
        gamma=recipe.gamma,
        chunk=recipe.chunk,
        estimator=recipe.estimator,
        peer_seconds=0.5 if quick else recipe.peer_seconds,
    )
