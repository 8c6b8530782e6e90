"""Views of the columns, learned without labels, and the kernels of them that a fit begins with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri

from bootprob.preparation.principal_directions import principal_directions
from bootprob.preparation.relevance import column_relevance
from bootprob.preparation.standardization import LARGEST
from bootprob.runtime.arrays import Floats
from bootprob_gpu.kernels.named import KERNELS
from bootprob_gpu.kernels.views import ColumnViews, View, ViewKernels

__all__ = ["learn_views", "view_kernels"]

_KNOTS = 256
_LEVELS = 8
_ROUNDING = 1e-9  # of a share
# Variance of a component, in that of a column: below one, columns are other ways to say the same,
# and below the other there is nothing but rounding.
_NEARLY_SAID, _SAID = 1 / 30, 1e-6
_ROWS_OF_COMPONENT = 4  # at least
# By family and view, what γ is in units of the inverse median distance: the values that matter on
# tables are within a factor of a few, and a mixture of neighbours does for what is between.
_MULTIPLES: dict[tuple[str, View], tuple[float, ...]] = {
    ("linear", "columns"): (1.0,),
    ("linear", "scores"): (1.0,),
    ("rbf", "columns"): (1 / 8, 1 / 2, 2.0),
    ("rbf", "scores"): (1 / 8, 1 / 2, 2.0),
    ("laplacian", "columns"): (1 / 16, 1 / 4, 1.0, 4.0),
    ("laplacian", "scores"): (1 / 16, 1 / 4, 1.0, 4.0),
    ("laplacian", "levels"): (1 / 16, 1 / 4, 1.0, 4.0),
    ("rbf", "relevant columns"): (1 / 8, 1 / 2, 2.0),
    ("rbf", "relevant scores"): (1 / 8, 1 / 2, 2.0),
    ("laplacian", "relevant levels"): (1 / 4, 1.0),
    ("linear", "components"): (1.0,),
    ("rbf", "components"): (1 / 8, 1 / 2, 2.0),
}


def learn_views(rows: Floats, weight: Floats) -> ColumnViews:
    """Learn what the scores and levels of columns are; labels are not looked at.

    "scores" are normal scores, ``Φ⁻¹`` of the share of rows below (half of those that are equal
    counted), brought to mean 0 and variance 1, in straight lines between up to 256 values of the
    column; a column of two values stays itself. "levels" are the eighths of the rows, or each value
    of a column that has no more than eight: distances between them are what trees see.
    "components" are principal components, each brought to variance 1, where some columns nearly
    follow from others: what they say beside these, which may be what counts, is lost in distances
    between rows, as in the prior of their coefficients.

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        Standardised rows.
    weight : ndarray, shape (n,)
        Row weights; rows of weight 0 are not looked at.
    """
    used = weight > 0
    rows, weight = rows[used], weight[used]
    learnt = [_of_column(column, weight) for column in rows.T]
    n_knots = max(len(knots) for knots, _, _ in learnt)
    n_thresholds = max(1, *(len(thresholds) for _, _, thresholds in learnt))

    def stacked(parts: Iterator[Floats], length: int, beyond: float | None) -> torch.Tensor:
        filled = [
            np.pad(part, (0, length - len(part)), constant_values=part[-1])
            if beyond is None
            else np.pad(part, (0, length - len(part)), constant_values=beyond)
            for part in parts
        ]
        return torch.from_numpy(np.array(filled))

    return ColumnViews(
        stacked((knots for knots, _, _ in learnt), n_knots, None),
        stacked((scores for _, scores, _ in learnt), n_knots, None),
        stacked((thresholds for _, _, thresholds in learnt), n_thresholds, LARGEST),
        components=_components(rows, weight),
    )


def _components(rows: Floats, weight: Floats) -> torch.Tensor | None:
    """From columns to their principal components, the first that rows are enough for, (p, r)."""
    most = len(rows) // _ROWS_OF_COMPONENT
    share = weight / weight.sum()
    centered = (rows - share @ rows) * np.sqrt(share)[:, None]
    variances, directions = principal_directions(torch.from_numpy(centered), _SAID / rows.shape[1])
    kept = (variances > _SAID).nonzero().flatten().flip(0)[:most]  # the largest first
    if not len(kept) or variances[kept[-1]] >= _NEARLY_SAID:
        return None
    return (directions[:, kept] / variances[kept].sqrt()).contiguous()


def _of_column(column: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Knots with their scores, and thresholds, of one column."""
    values, which = np.unique(column, return_inverse=True)
    mass = np.bincount(which, weight) / weight.sum()
    below = np.cumsum(mass)
    between = (values[:-1] + values[1:]) / 2
    if len(values) <= _LEVELS:
        thresholds = between
    else:
        shares = np.arange(1, _LEVELS) / _LEVELS - _ROUNDING
        thresholds = between[np.unique(np.searchsorted(below[:-2], shares))]
    if len(values) <= 2:
        return np.resize(values, 2), np.resize(values, 2), thresholds
    scores = ndtri(below - mass / 2)
    scores -= mass @ scores
    scores /= np.sqrt(mass @ np.square(scores))
    if len(values) > _KNOTS:
        wanted = np.linspace(scores[0], scores[-1], _KNOTS)
        kept = np.unique(np.searchsorted(scores, wanted).clip(0, len(values) - 1))
        values, scores = values[kept], scores[kept]
    return values, scores, thresholds


def view_kernels(
    rows: Floats, weight: Floats, codes: NDArray[np.intp] | None = None
) -> ViewKernels:
    """Kernels of many kinds on the views of the columns, of which labels are to choose.

    Linear, RBF and Laplacian kernels on the standardised columns and their normal scores, and
    Laplacian ones on their levels; linear and RBF ones on principal components, where there are
    such. γ is in multiples of the inverse median distance of each view.

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        Standardised rows.
    weight : ndarray, shape (n,)
        Row weights.
    codes : ndarray of int, shape (n,), optional
        Classes, numbered from 0, of a large table: there are also kernels of those columns alone
        that bear on them (`column_relevance`).
    """
    views = learn_views(rows, weight)
    if codes is not None:
        relevance = column_relevance(rows, codes, weight, views)
        views = replace(views, relevance=torch.from_numpy(relevance))
    known = torch.from_numpy(rows[weight > 0])
    seen: dict[View, NDArray[np.float64]] = {}
    families: list[str] = []
    of: list[View] = []
    gammas: list[float] = []
    of_two = (views.knots[:, -1:] == views.knots[:, 1:]).all(1)  # which are their own scores
    relevant = torch.ones_like(of_two) if views.relevance is None else views.relevance > 0
    same = {"scores": of_two.all(), "relevant scores": of_two[relevant].all()}
    for (family, view), multiples in _MULTIPLES.items():
        if view not in views.known or same.get(view, False):
            continue
        if view not in seen:
            seen[view] = views.of(view, known).numpy()
        unit = _unit(family, seen[view])
        families += [family] * len(multiples)
        of += [view] * len(multiples)
        gammas += [unit * multiple for multiple in multiples]
    return ViewKernels(
        gamma=torch.tensor(gammas, dtype=torch.float64, device="cpu"),
        families=tuple(families),
        views=tuple(of),
        of_columns=views,
    )


def _unit(family: str, rows: Floats) -> float:
    """γ that fits the distances between rows, or of a linear kernel their length."""
    if family == "linear":
        mean = float(np.square(rows).sum(axis=1).mean())
        return 1.0 / mean if mean > 0 else 1.0
    return KERNELS[family].gamma_rules["median"](rows)
