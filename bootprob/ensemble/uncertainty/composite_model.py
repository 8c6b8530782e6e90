"""What a composite posterior thinks possible before it sees labels, and columns that say it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import comb

import numpy as np
import torch
from torch import Tensor

from bootprob.ensemble.uncertainty.composite_posterior import Straight
from bootprob.ensemble.uncertainty.curves import OF_ALL_COLUMNS, Curve, Landmarks, Seen
from bootprob.ensemble.uncertainty.labelled_rows import LabelledRows
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu.kernels.views import ColumnViews

__all__ = ["CURVED", "LOGIT", "TAILS", "Columns", "Model", "Setting", "straight_columns"]

_LINEAR = (0.1, 0.2, 0.4, 0.8, 1.6)  # σ₁ and σ₂, in logits a standard deviation of a column
CURVED = tuple(2.0**k for k in np.arange(-1.5, 4))  # σ₃, in logits
_STRAIGHT_SHARE = 2 / 3  # prior probability of no curve
LOGIT = (0.0, 0.0)
_LOGIT_SHARE = 0.75
_ALL_COLUMNS = 2 / 3  # of curves: the rest look at few columns
TAILS = tuple(pair for a in (-2.5, -0.8, -0.3, 0.25, 0.6) for pair in ((a, a), (a, 0.0), (0.0, a)))
_DOUBLING = -0.5  # logarithm of the prior probability of a curve for each doubling of σ₃
_INTERCEPT_PRECISION = 0.01  # of a normal prior with a standard deviation of ten logits
_DIRECTIONS = 256  # of either linear part
_STEPS, _LEAST_OF_COLUMN, _MOST_STEPS = 15, 4, 256  # of a relevant column, and in all
_ROWS_FOR_STEPS = 10_000
_RANK = 1e-6  # relative eigenvalue below which landmarks, or directions, depend on each other
_HELD = 2**25  # numbers of columns that are kept rather than made again, 256 MiB


@dataclass(frozen=True)
class Setting:
    """What is unknown besides the coefficients.

    Attributes
    ----------
    kernel : Curve or None
        Of the curve.
    linear : (float, float)
        σ₁ of the columns and σ₂ of their scores; 0 leaves them out.
    curve : float
        σ₃; 0 without a kernel.
    tails : (float, float)
        Of the link.
    """

    kernel: Curve | None
    linear: tuple[float, float]
    curve: float
    tails: tuple[float, float]

    @property
    def variances(self) -> list[float]:
        """Prior variances of the intercept, both linear parts and the curve."""
        return [1 / _INTERCEPT_PRECISION, *(s**2 for s in (*self.linear, self.curve))]


def straight_columns(rows: Tensor, views: ColumnViews) -> Straight:
    """What the linear parts look at, for rows (n, p)."""
    scored = torch.nonzero((views.knots != views.scores).any(1)).flatten()
    straight = Straight(scored, (None, None), *_steps(rows, views))
    seen: Seen = {"columns": rows, "scores": views.of("scores", rows)}
    columns, others = straight.whole(seen)
    return replace(straight, directions=(_directions(columns), _directions(others)))


def _steps(rows: Tensor, views: ColumnViews) -> tuple[Tensor | None, Tensor | None]:
    """Columns and thresholds of up to 256 steps in relevant columns, of large tables."""
    if views.relevance is None or not bool(views.relevance.any()):
        return None, None
    relevant = views.relevance.argsort(descending=True)[: int((views.relevance > 0).sum())]
    relevant = relevant[: _MOST_STEPS // _LEAST_OF_COLUMN].sort().values
    of_each = min(_STEPS, _MOST_STEPS // len(relevant))
    shares = torch.arange(1, of_each + 1, dtype=torch.float64, device=rows.device) / (of_each + 1)
    seen = rows[:: max(1, len(rows) // _ROWS_FOR_STEPS)]
    stepped, thresholds = [], []
    for column in relevant.tolist():
        values = seen[:, column].unique()
        between = (values[:-1] + values[1:]) / 2  # not on a value, which rounding may move across
        reached = seen[:, column].quantile(shares, interpolation="lower")
        at = torch.searchsorted(values, reached).clamp_max(max(len(between) - 1, 0)).unique()
        own = between[at] if len(between) else between
        stepped += [column] * len(own)
        thresholds.append(own)
    return torch.tensor(stepped, dtype=torch.int64, device=rows.device), torch.cat(thresholds)


def _directions(columns: Tensor) -> Tensor | None:
    """Those of the largest spread about 0, where columns are too many."""
    if columns.shape[1] <= _DIRECTIONS:
        return None
    if len(columns) < columns.shape[1]:
        values, vectors = torch.linalg.eigh(columns @ columns.T)
        kept = (values > _RANK * values[-1]).nonzero().flatten()[-_DIRECTIONS:]
        return columns.T @ (vectors[:, kept] / values[kept].sqrt())
    values, vectors = torch.linalg.eigh(columns.T @ columns)
    return vectors[:, (values > _RANK * values[-1]).nonzero().flatten()[-_DIRECTIONS:]].contiguous()


@dataclass(frozen=True)
class Model:
    """What all stages share."""

    landmarks: Landmarks
    straight: Straight
    curved: list[Curve]

    @property
    def of_columns(self) -> list[Curve]:
        """Curves that may look at few columns."""
        return [each for each in self.curved if each.view in OF_ALL_COLUMNS]

    @property
    def plain(self) -> list[Curve]:
        """Of these one of each family and view, of a γ in the middle."""
        kinds: dict[tuple[str, str], list[Curve]] = {}
        for each in sorted(self.of_columns):
            if each.family != "additive":
                kinds.setdefault((each.family, each.view), []).append(each)
        return [of_kind[len(of_kind) // 2] for of_kind in kinds.values()]

    def linear(self, kernel: Curve | None) -> list[tuple[float, float]]:
        """What is thought possible of both linear parts; a curve does for what one leaves out."""
        if not self.straight.n_others:
            return [(s, 0.0) for s in _LINEAR]
        less = (0.0,) if kernel is None else ()
        every = product((*_LINEAR, *less), repeat=2)
        return [each for each in every if any(each)]

    def log_prior(self, setting: Setting) -> float:
        """Logarithm of the probability of a setting before labels are seen."""
        every = self.linear(setting.kernel)
        alike = len(_LINEAR)  # pairs that are, where there are pairs
        probability = 1.0 / len(every)
        if len(every) > alike:
            first, second = setting.linear
            probability = 0.5 / (alike if first == second else len(every) - alike)
        if setting.tails == LOGIT:
            probability *= _LOGIT_SHARE
        else:
            probability *= (1 - _LOGIT_SHARE) / len(TAILS)
        if not self.curved:
            return float(np.log(probability))
        if setting.kernel is None:
            return float(np.log(probability * _STRAIGHT_SHARE))
        falling = np.exp(_DOUBLING * np.arange(len(CURVED)))
        share = falling[CURVED.index(setting.curve)] / falling.sum()
        share *= self._share_of_columns(setting.kernel) / len(self.curved)
        return float(np.log(probability * (1 - _STRAIGHT_SHARE) * share))

    def _share_of_columns(self, kernel: Curve) -> float:
        """Prior probability of the columns of a curve: all, or one set of so many."""
        p, size = self.landmarks.rows.shape[1], len(kernel.columns)
        if p == 1 or kernel.view not in OF_ALL_COLUMNS:
            return 1.0
        if not size:
            return _ALL_COLUMNS
        return (1 - _ALL_COLUMNS) / (p - 1) / comb(p, size)

    def basis(self, kernel: Curve) -> Tensor:
        """From kernel values (m, l) to columns whose inner products they are, (l, r)."""
        values, vectors = torch.linalg.eigh(self.landmarks.own_values(kernel))
        kept = values > _RANK * values[-1]
        return vectors[:, kept] / values[kept].sqrt()


class Columns:
    """Columns of rows for one kernel: 1, linear parts, curve; kept, or made again when looked at.

    Attributes
    ----------
    basis : Tensor, shape (l, r), or None
        Of the curve.
    widths : list of int
        Columns of each of the four.
    """

    def __init__(self, data: LabelledRows, model: Model, kernel: Curve | None) -> None:
        self._data, self._model, self._kernel = data, model, kernel
        self.basis = None if kernel is None else model.basis(kernel)
        rank = 0 if self.basis is None else self.basis.shape[1]
        linear, _ = model.straight.of(model.landmarks.seen(data.rows[:1]))
        self.widths = [1, *(part.shape[1] for part in linear), rank]
        held = len(data.rows) * sum(self.widths) <= _HELD
        missing, kept = [], []
        for block, columns, unreached in self._made():
            missing.append(unreached)
            if held:
                kept.append((block, columns))
        self._missing = torch.cat(missing)  # (n, 3), of unit variances
        self._held = kept if held else None

    def at(self, data: LabelledRows) -> Columns:
        """The same of other rows."""
        return Columns(data, self._model, self._kernel)

    def of(self, setting: Setting) -> tuple[Tensor, Tensor]:
        """Which columns a setting looks at, and their prior precision."""
        every = torch.tensor(setting.variances, dtype=torch.float64).repeat_interleave(
            torch.tensor(self.widths)
        )
        which = every.nonzero().flatten().to(self._data.rows.device)
        return which, 1 / every.to(which.device)[which]

    def blocks(self, which: Tensor) -> Iterable[tuple[slice, Tensor]]:
        """Slices of rows with some columns."""
        if self._held is None:
            return _Again(self._made, which)
        if len(which) == sum(self.widths):
            return self._held
        return [(block, columns[:, which]) for block, columns in self._held]

    def missing(self, setting: Setting) -> Tensor | None:
        """Prior variance that the columns do not reach, shape (n,); None where they reach all."""
        variances = self._missing.new_tensor(setting.variances[1:])
        return self._missing @ variances if self._missing[:, variances > 0].any() else None

    def _made(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Slices of rows with their columns, and variances (m, 3) that these do not reach."""
        landmarks, kernel = self._model.landmarks, self._kernel
        views = dict.fromkeys(("columns", "scores", "columns" if kernel is None else kernel.view))
        for block in row_blocks(len(self._data.rows), sum(self.widths), 2**22):
            rows = self._data.rows[block]
            seen = landmarks.seen(rows, views)
            linear, missing = self._model.straight.of(seen)
            parts, unreached = [torch.ones_like(rows[:, :1]), *linear], torch.zeros_like(rows[:, 0])
            if kernel is not None and self.basis is not None:
                curve = landmarks.values(kernel, seen) @ self.basis
                parts.append(curve)
                unreached = landmarks.diagonal(kernel, seen) - curve.square().sum(1)
            missing = torch.column_stack([missing, unreached.clamp_min(0)])
            yield block, torch.cat(parts, dim=1), missing


@dataclass(frozen=True)
class _Again:
    """Blocks that are made whenever they are looked at."""

    made: Callable[[], Iterator[tuple[slice, Tensor, Tensor]]]
    which: Tensor

    def __iter__(self) -> Iterator[tuple[slice, Tensor]]:
        return ((block, columns[:, self.which]) for block, columns, _ in self.made())
