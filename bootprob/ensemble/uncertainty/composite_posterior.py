"""What straight and curved parts together can say of the true logit of a row, given the labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob.ensemble.uncertainty.curves import FAMILIES, VIEWS, Curve, Landmarks, Seen
from bootprob.ensemble.uncertainty.kernel_posterior import LEAST_VARIANCE
from bootprob.ensemble.uncertainty.link_tails import Links, Tails
from bootprob.ensemble.uncertainty.parts_alike import PartsAlike
from bootprob.ensemble.uncertainty.steepness import Steepness
from bootprob.ensemble.uncertainty.straight import Straight
from bootprob.runtime.arrays import Floats, Integers
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu.hardware.threads import in_threads
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["CompositePosterior", "Moments", "stored_curves"]

_NUMBERS_AT_ONCE = {"cpu": 2**19, "cuda": 2**24}


@dataclass(frozen=True)
class CompositePosterior:
    """Logits that are linear in the columns and their scores, and curved, given the labels.

    ``logit P(y = 1 | x) = h(b + ⟨u, x⟩ + ⟨v, s(x)⟩ + f(x))`` with the standardised columns x, their
    normal scores s(x), ``b ~ N(0, 10²)``, independent normal coefficients u and v of standard
    deviations σ₁ and σ₂ (or of few that count, `spike_and_slab`; of columns that are their own
    scores, of either, or of many of both), and f a sum of Gaussian processes of kernels
    ``σ_j² k_j``, those of `bootprob.ensemble.uncertainty.curves`. Where a truth is linear the
    linear parts alone explain it, and the interval is nearly as narrow as that of logistic
    regression; where it is not, f takes what they leave (the decomposition of G. Wahba, "Spline
    Models for Observational Data", 1990, chapter 1). h is the identity, or a link with other tails.
    σ, kernel and h are unknown: the posterior is a mixture over those that the labels leave
    possible. Its quantiles are not those of its moments. All that h bends may be multiplied by what
    grows with one column (`bootprob.ensemble.uncertainty.steepness`).

    With ``a(x)`` = (1, the columns, the scores, the values of each k with the landmarks), each part
    is normal before h, of mean ``c · a(x)`` and variance ``a(x)ᵀ S a(x) + Σ σ_j² k_j(x, x)``; h
    moves its 95 % interval. Those that differ in σ alone are one part with their moments. Of wide
    tables the linear parts look at some directions only, the first of which are single columns,
    and the prior variance of the others is added.

    Attributes
    ----------
    weight : ndarray, shape (g,)
        Posterior probability of each part.
    family, view : ndarray of int, shape (g, k)
        Of the kernels of up to k curves, in `FAMILIES` and `VIEWS`; family 0 where there is none.
    gamma : ndarray, shape (g, k)
    columns_of_curve : ndarray of int, shape (g, k, p)
        1 where the curve looks at the column, else 0.
    deviation : ndarray, shape (g, 2 + k)
        σ₁, σ₂ and those of the curves, before h, the root of their mean squares where a part
        stands for several; of linear parts of which few columns count those of the others; 0 for
        what it is without.
    tails : ndarray, shape (g, 2)
        Of the link (`bootprob.ensemble.uncertainty.link_tails.bent`), above and below 0; 0 for the
        logit.
    coefficients : ndarray, shape (g, d)
        c.
    quadratic : ndarray, shape (g, d, d)
        S.
    landmarks : ndarray, shape (l, p)
        Standardised rows.
    scored : ndarray of int, shape (q,)
        Columns with scores other than themselves.
    column_directions : ndarray, shape (p, a), or None
    score_directions : ndarray, shape (q, b), or None
        Orthonormal directions that the linear parts look at; None for all.
    stepped : ndarray of int, shape (j,), or None
    thresholds : ndarray, shape (j,), or None
        Columns and where they have a step, of large tables, beside their scores.
    levels : ndarray, shape (g, 2), or None
        How far below 1 and above 0 the links level off; None where none does.
    steep : ndarray of int, shape (g,), or None
    rates : ndarray, shape (g,), or None
    shapes : ndarray of int, shape (g,), or None
        `steepness`, of rate 0 where logits grow with no column; None where none does.
    """

    weight: Floats
    family: Integers
    view: Integers
    gamma: Floats
    columns_of_curve: Integers
    deviation: Floats
    tails: Floats
    coefficients: Floats
    quadratic: Floats
    landmarks: Floats
    scored: Integers
    column_directions: Floats | None = None
    score_directions: Floats | None = None
    stepped: Integers | None = None
    thresholds: Floats | None = None
    levels: Floats | None = None
    steep: Integers | None = None
    rates: Floats | None = None
    shapes: Integers | None = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that there are, by name."""
        return {name: array for name, array in vars(self).items() if array is not None}

    @property
    def links(self) -> list[Tails]:
        """Those of the parts."""
        levels = np.zeros_like(self.tails) if self.levels is None else self.levels
        every = np.column_stack([self.tails, levels]).tolist()
        return [(above, below, short, over) for above, below, short, over in every]

    @property
    def steepness(self) -> dict[int, Steepness]:
        """That of each part whose logits grow with a column."""
        if self.steep is None or self.rates is None or self.shapes is None:
            return {}
        arrays = (self.steep.tolist(), self.rates.tolist(), self.shapes.tolist())
        every = enumerate(map(Steepness, *arrays))
        return {part: steepness for part, steepness in every if steepness.rate}

    @property
    def widths(self) -> list[int]:
        """Coefficients of the constant, of both linear parts and of the curves."""
        stepped = () if self.stepped is None else self.stepped
        whole = (len(self.landmarks.T), len(self.scored) + len(stepped))
        directions = self.column_directions, self.score_directions
        linear = [
            width if kept is None else kept.shape[1]
            for width, kept in zip(whole, directions, strict=True)
        ]
        return [1, *linear, self.coefficients.shape[1] - 1 - sum(linear)]

    def blocks(self, part: int) -> tuple[int, ...]:
        """Of the constant and the linear parts, 0 to 2, those that a part looks at."""
        own = np.split(self.quadratic[part].diagonal(), np.cumsum(self.widths))[1:3]
        return (0, *(k for k, block in enumerate(own, 1) if block.any()))

    def curves(self, part: int) -> tuple[Curve, ...]:
        """Those of a part."""
        found = []
        for family, view, gamma, looked_at in zip(
            self.family[part],
            self.view[part],
            self.gamma[part],
            self.columns_of_curve[part],
            strict=True,
        ):
            columns = () if looked_at.all() else tuple(np.flatnonzero(looked_at).tolist())
            if family:
                found.append(Curve(FAMILIES[family], VIEWS[view], float(gamma), columns))
        return tuple(found)

    def moments(self, rows: Floats | Tensor, kernel: ViewKernels, device: torch.device) -> Floats:
        """Mean and standard deviation of the true logits of rows, under each part.

        Parameters
        ----------
        rows : ndarray or Tensor of float64, shape (m, p)
            Standardised; a tensor on any device.
        kernel : ViewKernels
            Whose views of the columns are those that it was fitted with.
        device : torch.device
            Where to work; in float64.

        Returns
        -------
        ndarray, shape (m, g, 2)
        """
        return self.on(kernel, device)(rows)

    def on(self, kernel: ViewKernels, device: torch.device) -> Moments:
        """The same `moments` for rows to come, made ready once."""
        return Moments(self, kernel, device)


class Moments:
    """Moments of the logits of rows under a posterior, on a device.

    Parameters are those of `CompositePosterior.moments`.
    """

    def __init__(
        self, posterior: CompositePosterior, kernel: ViewKernels, device: torch.device
    ) -> None:
        arrays = {name: torch.from_numpy(a).to(device) for name, a in posterior.arrays().items()}
        self._device = device
        self._straight = Straight(
            arrays["scored"],
            (arrays.get("column_directions"), arrays.get("score_directions")),
            arrays.get("stepped"),
            arrays.get("thresholds"),
        )
        self._landmarks = Landmarks(arrays["landmarks"], kernel.of_columns.to(device))
        self._links = Links(posterior.links, device)
        self._steep = posterior.steepness
        curves = [posterior.curves(part) for part in range(len(posterior.weight))]
        views = (each.view for kernel in curves for each in kernel)
        self._views = dict.fromkeys(("columns", "scores", *views))
        self._numbers = posterior.coefficients.shape[1] * (2 + len(set(curves)))
        ends = np.cumsum([0, *posterior.widths])
        every = [torch.arange(a, b, device=device) for a, b in pairwise(ends)]
        alike: dict[tuple[tuple[int, ...], tuple[Curve, ...]], list[int]] = {}
        for part, own in enumerate(curves):
            alike.setdefault((posterior.blocks(part), own), []).append(part)
        first = self._landmarks.seen(self._landmarks.rows[:1], self._views)
        self._groups = []
        for (used, own), parts in alike.items():
            n_values = sum(self._landmarks.values(curve, first).shape[1] for curve in own)
            at = torch.cat([*(every[block] for block in used), every[3][:n_values]])
            self._groups.append(
                PartsAlike(
                    parts,
                    used,
                    own,
                    arrays["coefficients"][parts][:, at].mT.contiguous(),
                    arrays["quadratic"][parts][:, at[:, None], at],
                    arrays["deviation"][parts, : 2 + len(own)].square(),
                )
            )
        self._at_once = _NUMBERS_AT_ONCE["cpu" if device.type == "cpu" else "cuda"]
        grouped = torch.tensor(list(chain.from_iterable(alike.values())), device=device)
        self._order = grouped.argsort()  # where each part is among those of all groups

    def __call__(self, rows: Floats | Tensor) -> Floats:
        """Mean and standard deviation of each part, (m, g, 2), of rows (m, p)."""
        if not len(rows):
            return np.zeros((0, len(self._order), 2))
        blocks = list(row_blocks(len(rows), self._numbers, self._at_once))

        def some(which: slice) -> list[Tensor]:
            each = (torch.as_tensor(rows[block], device=self._device) for block in blocks[which])
            return list(map(self._of, each))

        found = in_threads(some, len(blocks), self._device)
        return np.ascontiguousarray(torch.cat(list(chain.from_iterable(found))).cpu().numpy())

    def combined(self, rows: Floats | Tensor, mixing: Floats) -> Floats:
        """Moments of linear combinations of the logits of rows, which vary together.

        A link that bends is straight between the ends of each logit's 95 % interval.

        Parameters
        ----------
        rows : ndarray or Tensor of float64, shape (m, p)
            Standardised.
        mixing : ndarray, shape (q, m)
            What each combination takes of each logit.

        Returns
        -------
        ndarray, shape (q, g, 2)
            Mean and standard deviation under each part.
        """
        seen = self._landmarks.seen(torch.as_tensor(rows, device=self._device), self._views)
        wanted = torch.from_numpy(mixing).to(self._device)
        whole, curved = self._straight.whole(seen), dict[Curve, list[tuple[int, Tensor]]]()
        groups, moments, deviation = self._parts(seen)
        slope = moments[..., 1] / deviation
        found = wanted.new_empty(len(wanted), len(self._order), 2)
        for part, at, group, columns in _each(groups):
            mixed = wanted * slope[:, part]
            of_columns, variances = mixed @ columns, group.variances[at]
            variance = ((of_columns @ group.form[at]) * of_columns).sum(1)
            for block, directions, of_block in zip(
                whole, self._straight.directions, variances[:2], strict=True
            ):
                if directions is not None:
                    taken = mixed @ block
                    kept = (taken @ directions).square().sum(1)
                    variance += of_block * (taken.square().sum(1) - kept).clamp_min(0)
            for curve, of_curve in zip(group.curves, variances[2:], strict=True):
                curved.setdefault(curve, []).append((part, of_curve))
            found[:, part, 1] = variance
        for curve, parts in curved.items():
            for some in row_blocks(len(slope), len(slope), self._at_once):
                others = {curve.view: seen[curve.view][some]}
                between = self._landmarks.between(curve, seen, others)
                for part, of_curve in parts:
                    mixed = wanted * slope[:, part]
                    carried = ((mixed @ between) * mixed[:, some]).sum(1)
                    found[:, part, 1] += of_curve * carried
        found[..., 0] = wanted @ moments[..., 0]
        found[..., 1] = found[..., 1].clamp_min(LEAST_VARIANCE).sqrt()
        return found.cpu().numpy()

    def beside(self, rows: Floats | Tensor, others: Floats | Tensor) -> Floats:
        """Moments of the logits of `others`, and their covariances with those of `rows`.

        As `combined` has them of the row and the one in its place, for many pairs.

        Parameters
        ----------
        rows : ndarray or Tensor of float64, shape (m, p)
            Standardised.
        others : ndarray or Tensor of float64, shape (k, m, p)
            Standardised, k for each row.

        Returns
        -------
        ndarray, shape (1 + k, m, g, 3)
            Mean, standard deviation and covariance under each part, of the rows themselves first.
        """
        own, more = (torch.as_tensor(each, device=self._device) for each in (rows, others))
        every = torch.cat([own[None], more])  # (1 + k, m, p)
        found = np.empty((*every.shape[:2], len(self._order), 3))
        blocks = list(row_blocks(every.shape[1], self._numbers * len(every), self._at_once))

        def some(which: slice) -> None:
            for block in blocks[which]:
                found[:, block] = self._beside(every[:, block]).cpu().numpy()

        in_threads(some, len(blocks), self._device)
        return found

    def _beside(self, every: Tensor) -> Tensor:
        k, m = every.shape[:2]
        seen = self._landmarks.seen(every.flatten(0, 1), self._views)
        first = {view: columns[:m].repeat(k, 1) for view, columns in seen.items()}
        whole, whole_first = self._straight.whole(seen), self._straight.whole(first)
        groups, moments, deviation = self._parts(seen)
        slope = (moments[..., 1] / deviation).unflatten(0, (k, m))
        prior, found = dict[Curve, Tensor](), every.new_empty(k, m, len(self._order), 3)
        found[..., :2] = moments.unflatten(0, (k, m))
        for part, at, group, columns in _each(groups):
            carried, variances = columns @ group.form[at], group.variances[at]
            together = (carried.unflatten(0, (k, m)) * columns[:m]).sum(2).flatten()
            for block, of_first, directions, of_block in zip(
                whole, whole_first, self._straight.directions, variances[:2], strict=True
            ):
                if directions is not None:
                    kept = ((block @ directions) * (of_first @ directions)).sum(1)
                    together += of_block * ((block * of_first).sum(1) - kept)
            for curve, of_curve in zip(group.curves, variances[2:], strict=True):
                if curve not in prior:
                    prior[curve] = self._landmarks.beside(curve, first, seen)
                together += of_curve * prior[curve]
            own = slope[..., part]
            found[:, :, part, 2] = together.unflatten(0, (k, m)) * own * own[0]
        return found

    def _of(self, rows: Tensor) -> Tensor:
        return self._parts(self._landmarks.seen(rows, self._views))[1]

    def _parts(self, seen: Seen) -> tuple[list[tuple[PartsAlike, Tensor]], Tensor, Tensor]:
        """Groups of parts with the columns (m, d) they see; moments of logits, shape (m, g, 2).

        And standard deviations before links bend them, (m, g).
        """
        linear, missing = self._straight.of(seen)
        linear = [torch.ones_like(missing[:, :1]), *linear]
        values: dict[Curve, Tensor] = {}
        diagonals: dict[Curve, Tensor] = {}
        groups, means, deviations = [], [], []
        for group in self._groups:
            for curve in group.curves:
                if curve not in values:
                    values[curve] = self._landmarks.values(curve, seen)
                    diagonals[curve] = self._landmarks.diagonal(curve, seen)
            columns = group.columns(linear, values)
            prior = torch.column_stack([missing, *(diagonals[curve] for curve in group.curves)])
            mean, deviation = group.moments(columns, prior, self._at_once)
            groups.append((group, columns))
            means.append(mean)
            deviations.append(deviation)
        mean, deviation = (torch.cat(each, dim=1)[:, self._order] for each in (means, deviations))
        steeper = mean, deviation
        if self._steep:
            factor = torch.ones_like(mean)
            for part, steepness in self._steep.items():
                factor[:, part] = steepness.of(seen["scores"])
            steeper = factor * mean, factor * deviation
        return groups, self._links.moments(*steeper), deviation


def _each(groups: list[tuple[PartsAlike, Tensor]]) -> Iterator[tuple[int, int, PartsAlike, Tensor]]:
    """Parts one by one: number, place in their group, group, and columns they see."""
    for group, columns in groups:
        for at, part in enumerate(group.parts):
            yield part, at, group, columns


def stored_curves(
    kernels: Sequence[tuple[Curve, ...]], p: int, most: int
) -> dict[str, NDArray[Any]]:
    """The arrays that `CompositePosterior.curves` reads, for up to so many curves a part."""
    family, view = np.zeros((2, len(kernels), most), dtype=np.int64)
    gamma = np.zeros((len(kernels), most))
    looked_at = np.zeros((len(kernels), most, p), dtype=np.int64)
    for part, kernel in enumerate(kernels):
        for k, curve in enumerate(kernel):
            family[part, k] = FAMILIES.index(curve.family)
            view[part, k], gamma[part, k] = VIEWS.index(curve.view), curve.gamma
            looked_at[part, k, list(curve.columns) if curve.columns else slice(None)] = 1
    return {"family": family, "view": view, "gamma": gamma, "columns_of_curve": looked_at}
