"""What is remarkable of a table or of what it taught, of which a fit warns."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import CopiedRowsWarning, DoubtfulTableWarning, GridEdgeWarning
from bootprob.preparation.copied_rows import remark_of_copies
from bootprob.preparation.remarks import remarks_of_grid, remarks_of_table
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups
from bootprob_gpu.kernels.named import KERNELS
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["called_columns", "remarks_before", "remarks_of_clusters", "remarks_of_edges"]

_CHANCE = 1e-6  # of clusters among independent rows


def remarks_before(
    kernel: str,
    X: Floats,
    codes: NDArray[np.intp],
    weight: Floats,
    groups: Groups | None,
    columns: Mapping[str, slice],
    ranks: NDArray[np.int64] | None,
    dates: Collection[str],
) -> list[str]:
    """What is remarkable of the table, which is warned of before anything is trained."""
    told = X
    if columns and (told_by := np.r_[tuple(columns.values())]).size < X.shape[1]:
        told = X[:, told_by]  # what follows from another column makes no row differ
    copies = remark_of_copies(told, codes, weight, groups)
    if copies is not None:
        warnings.warn(copies, CopiedRowsWarning, stacklevel=6)
    seen = columns if KERNELS.get(kernel, ViewKernels).has_features else {}
    if ranks is None:
        found = remarks_of_table(X, codes, weight > 0, seen, groups, dates=dates)
    else:
        order = np.argsort(ranks, kind="stable")
        blocks = None if groups is None else groups[order]
        found = remarks_of_table(
            X[order], codes[order], weight[order] > 0, seen, blocks=blocks, dates=dates
        )
    if found:
        warnings.warn("\n".join(found), DoubtfulTableWarning, stacklevel=6)
    return [*([] if copies is None else [copies]), *found]


def called_columns(
    p: int, names: Sequence[str] | None, columns: Mapping[str, slice] | None
) -> dict[str, slice]:
    """How messages call columns of the table."""
    if columns is not None:
        return {repr(name): place for name, place in columns.items()}
    said = [f"X[:, {j}]" for j in range(p)] if names is None else list(map(repr, names))
    return {name: slice(j, j + 1) for j, name in enumerate(said)}


def remarks_of_clusters(learnt: Mapping[str, Any]) -> list[str]:
    """Near-duplicates with one label, which the test of lack of fit finds beyond any chance."""
    lack_of_fit = learnt["lack_of_fit_"] or {}
    if lack_of_fit.get("repeated", 1.0) >= _CHANCE:
        return []
    found = (
        "Rows lie in clusters, nearly the same and of one class, as repeated measurements of few "
        "subjects do: what is out of bag is then too good. Give the subject of each row as groups."
    )
    warnings.warn(found, DoubtfulTableWarning, stacklevel=6)
    return [found]


def remarks_of_edges(
    prepared: Mapping[str, Any], weight: Floats, grid: Floats, likely_C: Floats | None = None
) -> list[str]:
    """What is remarkable of the grid, after machines of all its values were weighed.

    Weights are those of the machines beside the posterior, where it has a share.
    Where few values of each kernel were trained on all samples, by what all had in the pilot.
    """
    C, gamma = prepared["C_"], None if prepared["views_"] else prepared["gamma_"]
    if likely_C is not None:
        C = np.tile(grid, len(likely_C))
        of_kernels = weight.reshape(len(likely_C), -1).sum(axis=1)
        weight = (of_kernels[:, None] * likely_C).ravel()
    found = remarks_of_grid(C, gamma, weight, grid)
    if found:
        warnings.warn("\n".join(found), GridEdgeWarning, stacklevel=6)
    return found
