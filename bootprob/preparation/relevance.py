"""Which columns of a large table bear on its labels, alone or in pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import chi2
from torch import Tensor

from bootprob.preparation.labels import spaced_over_classes
from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu.kernels.views import ColumnViews

__all__ = ["column_relevance"]

_ROWS = 100_000  # looked at
_LEVEL = 0.01  # of all tests of a kind together
_MOST = 300  # columns that are looked at in pairs
_CROSSED = 100  # columns whose levels are crossed
_NUMBERS_AT_ONCE = 2**23
_RIDGE = 1e-6  # relative, where terms depend on each other


def column_relevance(
    rows: Floats, codes: NDArray[np.intp], weight: Floats, views: ColumnViews
) -> Floats:
    """How far apart rows are to be in each column, 0 where it bears on no label; shape (p,).

    The fourth root of the share of the variance of the labels (of each class against the rest,
    where there are several the largest) that terms with the column explain: its levels; and of
    what is left by sums of functions of one column, products of normal scores and crossed levels of
    two columns (the screening of Y. Lou, R. Caruana, J. Gehrke, G. Hooker, "Accurate intelligible
    models with pairwise interactions", KDD 2013). Terms count that a chi-squared test, at 1 % for
    all of a kind together, finds. What only three columns together tell is not found.

    Labels are looked at, those of all rows: of thousands of rows that is little for a number a
    column. Of small tables it would be too much.

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        Standardised rows.
    codes : ndarray of int, shape (n,)
        Classes, numbered from 0.
    weight : ndarray, shape (n,)
        Row weights; rows of weight 0 are not looked at.
    views : ColumnViews
    """
    used = np.flatnonzero(weight > 0)
    classes = np.arange(1, codes.max() + 1) if codes.max() == 1 else np.unique(codes[used])
    labels = np.where(codes[used] == classes[:, None], 1, -1)
    taken = used[spaced_over_classes(labels, _ROWS)]
    known, mass = torch.from_numpy(rows[taken]), torch.from_numpy(weight[taken])
    of_classes = [torch.from_numpy((codes[taken] == k) * 1.0) for k in classes]
    kept = _promising(known, mass, of_classes, views)
    terms = _Terms(known[:, kept], mass, views.among(kept))
    explained = torch.stack([terms.explained(label) for label in of_classes]).amax(0)
    found = torch.zeros(rows.shape[1], dtype=torch.float64, device="cpu")
    found[kept] = explained.pow(0.25)
    return found.numpy()


def _promising(
    rows: Tensor, weight: Tensor, labels: Sequence[Tensor], views: ColumnViews
) -> Tensor:
    """Of many columns, those whose levels say most of the labels alone."""
    p = rows.shape[1]
    if p <= _MOST:
        return torch.arange(p, device="cpu")
    found = torch.zeros(p, dtype=torch.float64, device="cpu")
    for column in range(p):
        only = torch.tensor([column], device="cpu")
        levels = views.among(only).of("levels", rows[:, only])[:, 0].long()
        counts = torch.bincount(levels, weight).clamp_min(1)
        for label in labels:
            mean = weight @ label / weight.sum()
            sums = torch.bincount(levels, weight * (label - mean))
            own = (sums.square() / counts).sum() / (mean * (1 - mean))
            found[column] = max(found[column], own)
    return found.argsort(descending=True)[:_MOST].sort().values


class _Terms:
    """Normal scores and levels of rows, and their products with each other."""

    def __init__(self, rows: Tensor, weight: Tensor, views: ColumnViews) -> None:
        self._rows, self._views = rows, views
        self._weight = weight / weight.mean()
        self._p, self._steps = rows.shape[1], views.thresholds.shape[1] + 1
        size = self._p * (1 + self._steps)
        self._gram = torch.zeros(size, size, dtype=torch.float64, device="cpu")
        for block, scores, levels in self._blocks():
            terms = torch.cat([scores, levels], dim=1)
            self._gram += terms.T @ (terms * self._weight[block, None])

    def _blocks(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Scores (m, p) of rows and which level each column is at (m, p · k)."""
        for block in row_blocks(len(self._rows), self._p * (1 + self._steps), _NUMBERS_AT_ONCE):
            part = self._rows[block]
            levels = self._views.of("levels", part).long()
            shown = torch.zeros(len(part), self._p, self._steps, dtype=torch.float64, device="cpu")
            shown.scatter_(2, levels.unsqueeze(2), 1.0)
            yield block, self._views.of("scores", part), shown.flatten(1)

    def explained(self, label: Tensor) -> Tensor:
        """Share of a label's variance that terms with each column explain, shape (p,)."""
        p, weight = self._p, self._weight
        label = label - weight @ label / weight.sum()
        variance = float(weight @ label.square() / weight.sum())
        vector = torch.zeros(len(self._gram), dtype=torch.float64, device="cpu")
        spread = torch.zeros_like(vector[p:])
        for block, scores, levels in self._blocks():
            mass = weight[block] * label[block]
            vector += torch.cat([scores, levels], dim=1).T @ mass
            spread += levels.T @ mass.square()
        spread = torch.maximum(variance * self._gram.diagonal()[p:], spread)
        tables = vector[p:].reshape(p, -1), spread.reshape(p, -1)
        alone = variance * _beyond_chance(*tables)
        ridge = _RIDGE * self._gram.diagonal().mean()
        additive = torch.linalg.solve(
            self._gram + ridge * torch.eye(len(vector), device="cpu").double(), vector
        )
        return (alone + self._in_pairs(label, additive, alone)) / (len(label) * variance)

    def _in_pairs(self, label: Tensor, additive: Tensor, alone: Tensor) -> Tensor:
        """Sums of squares that terms in two columns explain of what `additive` leaves, (p,)."""
        p, k = self._p, self._steps
        products = torch.zeros(p, p, dtype=torch.float64, device="cpu")
        spread, left = products.clone(), torch.zeros_like(label)
        for block, scores, levels in self._blocks():
            weight = self._weight[block]
            left[block] = label[block] - torch.cat([scores, levels], dim=1) @ additive
            mass = weight * left[block]
            products += scores.T @ (scores * mass[:, None])
            squares = scores.square()
            spread += squares.T @ (squares * mass.square()[:, None])
        variance = float(self._weight @ left.square() / self._weight.sum())
        statistic = products.square() / spread.clamp_min(torch.finfo(torch.float64).tiny)
        own = alone + torch.where(statistic > 0, statistic, 0.0).fill_diagonal_(0).amax(1)
        crossed = own.argsort(descending=True)[:_CROSSED].sort().values
        at = (crossed[:, None] * k + torch.arange(k, device="cpu")).flatten()
        sums = torch.zeros(len(at), len(at), dtype=torch.float64, device="cpu")
        variances = sums.clone()
        for block, _, levels in self._blocks():
            part, mass = levels[:, at], (self._weight[block] * left[block])[:, None]
            sums += part.T @ (part * mass)
            variances += part.T @ (part * mass.square())
        pairs = max(1, p * (p - 1) // 2)
        least = float(chi2.isf(_LEVEL / pairs, 1))
        found = torch.where(statistic > least, (statistic - 1) * variance, 0.0)
        # Of a cell without a rare label what is left is too even; it is no less sure than others.
        counts = self._gram[p:, p:][at[:, None], at]
        variances = torch.maximum(variances, counts * variance)
        q = len(crossed)

        def of_pairs(each: Tensor) -> Tensor:
            return each.reshape(q, k, q, k).transpose(1, 2).reshape(q * q, k * k)

        cells = _beyond_chance(of_pairs(sums), of_pairs(variances), pairs)
        cells = variance * cells.reshape(q, q)
        both = found[crossed[:, None], crossed]
        found[crossed[:, None], crossed] = torch.maximum(both, cells)
        return found.fill_diagonal_(0).sum(1)


def _beyond_chance(sums: Tensor, variances: Tensor, tests: int = 0) -> Tensor:
    """Chi-squared statistics less what chance has of tables of cells (t, c); 0 if it may be chance.

    Of `tests` in all, by default t.
    """
    cells = variances > 0
    freedom = (cells.sum(1) - 1).clamp_min(1)
    total = torch.where(cells, sums.square() / variances, 0.0).sum(1)
    least = torch.from_numpy(np.asarray(chi2.isf(_LEVEL / (tests or len(sums)), freedom.numpy())))
    return torch.where(total > least, total - freedom, 0.0)
