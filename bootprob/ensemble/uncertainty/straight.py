"""What the linear parts of a composite posterior look at."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bootprob.ensemble.uncertainty.curves import Seen
from bootprob.ensemble.uncertainty.labelled_rows import LabelledRows
from bootprob.preparation.principal_directions import principal_directions
from bootprob_gpu.kernels.views import ColumnViews

__all__ = ["Straight", "straight_columns"]

_DIRECTIONS = 256  # of either part, at most
_ALONE = 64  # of these look at one column each
_RANK = 1e-6  # relative square of a singular value below which directions depend on each other
_STEPS, _LEAST_OF_COLUMN, _MOST_STEPS = 15, 4, 256  # of a relevant column, and in all
_ROWS_FOR_STEPS = 10_000
_LEAST_SPREAD = 1e-12  # of a column that tells something


@dataclass(frozen=True)
class Straight:
    """The columns of the linear parts: standardised columns; their normal scores, and steps.

    Attributes
    ----------
    scored : Tensor of int, shape (q,)
        Columns whose normal scores are others than themselves.
    directions : (Tensor or None, Tensor or None)
        Orthonormal, shapes (p, a) and (q + j, b): what is kept of either; None for all.
    stepped, thresholds : Tensor, shape (j,), or None
        Steps: ½ where this column is above this number, else −½.
    alone : (tuple of int, tuple of int)
        Columns at which the first directions of either look, each at one.
    """

    scored: Tensor
    directions: tuple[Tensor | None, Tensor | None]
    stepped: Tensor | None = None
    thresholds: Tensor | None = None
    alone: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    @property
    def n_others(self) -> int:
        """Scores and steps."""
        return len(self.scored) + (0 if self.stepped is None else len(self.stepped))

    def may_be_scores_alone(self, p: int) -> bool:
        """Whether these leave none of p columns out, which few of very many columns would."""
        return self.directions[0] is None or len(self.scored) == p

    def own_scores(self, p: int) -> list[int]:
        """Columns of p that are their own normal scores, such as those of two values.

        None where directions are looked at, in which no column is by itself.
        """
        if self.directions[0] is not None:
            return []
        return sorted({*range(p)} - {*self.scored.tolist()})

    def columns(self, p: int) -> list[tuple[int, ...]]:
        """At which of p columns each of either looks; steps are columns more."""
        steps = range(p, p + self.n_others - len(self.scored))
        return [tuple(range(p)), (*self.scored.tolist(), *steps)]

    def of_coefficients(self, p: int) -> list[tuple[int, ...]]:
        """Of these those at which the first coefficients of either look, each at one."""
        known = zip(self.columns(p), self.alone, self.directions, strict=True)
        return [whole if directions is None else own for whole, own, directions in known]

    def whole(self, rows: Seen) -> tuple[Tensor, Tensor]:
        """Both parts before directions are kept, of "columns" and "scores"."""
        columns, others = rows["columns"], rows["scores"][:, self.scored]
        if self.stepped is not None and self.thresholds is not None:
            steps = (columns[:, self.stepped] > self.thresholds).to(columns.dtype) - 0.5
            others = torch.cat([others, steps], dim=1)
        return columns, others

    def of(self, rows: Seen) -> tuple[list[Tensor], Tensor]:
        """Columns of either part, and the squares (m, 2) of what was not kept."""
        whole = self.whole(rows)
        parts, missing = [], []
        for part, directions in zip(whole, self.directions, strict=True):
            if directions is None:
                parts.append(part)
                missing.append(part.new_zeros(len(part)))
                continue
            kept = part @ directions
            parts.append(kept)
            missing.append((part.square().sum(1) - kept.square().sum(1)).clamp_min(0))
        return parts, torch.stack(missing, dim=1)


def straight_columns(data: LabelledRows, views: ColumnViews) -> Straight:
    """What the linear parts look at: all, or directions where columns are too many.

    Of these the first are columns themselves, those that tell most of the labels one by one (J.
    Fan, J. Lv, J. R. Stat. Soc. B 70 (2008) 849–911); the others have the largest spread of what is
    left.
    """
    scored = torch.nonzero((views.knots != views.scores).any(1)).flatten()
    p = data.rows.shape[1]
    if p > _DIRECTIONS and len(scored) > p / 2:  # in directions of scores alone are all
        scored = torch.arange(p, device=data.rows.device)
    straight = Straight(scored, (None, None), *_steps(data.rows, views))
    seen: Seen = {"columns": data.rows, "scores": views.of("scores", data.rows)}
    columns, others = straight.whole(seen)
    if max(columns.shape[1], others.shape[1]) <= _DIRECTIONS:
        return straight
    telling = _telling(seen, data)
    with_scores = (scored.unsqueeze(1) == telling).any(1).nonzero().flatten()
    return replace(
        straight,
        directions=(_directions(columns, telling), _directions(others, with_scores)),
        alone=(tuple(telling.tolist()), tuple(scored[with_scores].tolist())),
    )


def _telling(seen: Seen, data: LabelledRows) -> Tensor:
    """The columns that, or whose scores, have the largest score statistics, ascending."""
    total = data.weight.sum()
    residual = data.weight * (data.label - data.weight @ data.label / total)
    found = []
    for values in seen.values():
        centred = values - data.weight @ values / total
        spread = (data.weight @ centred.square()).clamp_min(_LEAST_SPREAD)
        found.append((residual @ centred).square() / spread)
    order = torch.stack(found).amax(0).argsort(descending=True, stable=True)
    return order[:_ALONE].sort().values


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


def _directions(columns: Tensor, alone: Tensor) -> Tensor | None:
    """These columns alone, and of the others the directions of the largest spread about 0."""
    p = columns.shape[1]
    if p <= _DIRECTIONS:
        return None
    others = torch.ones(p, dtype=torch.bool, device=columns.device)
    others[alone] = False
    _, every = principal_directions(columns[:, others], _RANK)
    spread = every[:, -(_DIRECTIONS - len(alone)) :]
    found = columns.new_zeros(p, len(alone) + spread.shape[1])
    found[alone, torch.arange(len(alone), device=columns.device)] = 1
    found[others, len(alone) :] = spread
    return found
