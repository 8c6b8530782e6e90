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
from bootprob.ensemble.uncertainty.link_tails import Tails, bent_moments
from bootprob.ensemble.uncertainty.straight import Straight
from bootprob.runtime.arrays import Floats, Integers
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu.hardware.threads import in_threads
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["LEAST_VARIANCE", "CompositePosterior", "Moments", "stored_curves"]

_NUMBERS_AT_ONCE = {"cpu": 2**19, "cuda": 2**24}
LEAST_VARIANCE = 1e-12  # where rounding leaves none


@dataclass(frozen=True)
class CompositePosterior:
    """Logits that are linear in the columns and their scores, and curved, given the labels.

    ``logit P(y = 1 | x) = h(b + ⟨u, x⟩ + ⟨v, s(x)⟩ + f(x))`` with the standardised columns x, their
    normal scores s(x), ``b ~ N(0, 10²)``, independent normal coefficients u and v of standard
    deviations σ₁ and σ₂ (or of few that count, `spike_and_slab`), and f a sum of Gaussian processes
    of kernels ``σ_j² k_j``, those of `bootprob.ensemble.uncertainty.curves`. Where a truth is
    linear the linear parts alone explain it, and the interval is nearly as narrow as that of
    logistic regression; where it is not, f takes what they leave (the decomposition of G. Wahba,
    "Spline Models for Observational Data", 1990, chapter 1). h is the identity, or a link with
    other tails. σ, kernel and h are unknown: the posterior is a mixture over those that the labels
    leave possible. Its quantiles are not those of its moments.

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
        σ₁, σ₂ and those of the curves, in logits, the root of their mean squares where a part
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

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that there are, by name."""
        return {name: array for name, array in vars(self).items() if array is not None}

    @property
    def links(self) -> list[Tails]:
        """Those of the parts."""
        levels = np.zeros_like(self.tails) if self.levels is None else self.levels
        every = np.column_stack([self.tails, levels]).tolist()
        return [(above, below, short, over) for above, below, short, over in every]

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
        self._variances = arrays["deviation"].square()
        self._tails = posterior.links
        self._links = {
            tails: [part for part, each in enumerate(self._tails) if each == tails]
            for tails in self._tails
        }
        self._curves = [posterior.curves(part) for part in range(len(posterior.weight))]
        curves = [each for kernel in self._curves for each in kernel]
        self._views = dict.fromkeys(("columns", "scores", *(each.view for each in curves)))
        self._numbers = posterior.coefficients.shape[1] * (2 + len(set(self._curves)))
        widths = [
            1,
            len(posterior.landmarks.T)
            if posterior.column_directions is None
            else posterior.column_directions.shape[1],
            self._straight.n_others
            if posterior.score_directions is None
            else posterior.score_directions.shape[1],
            0,
        ]
        widths[3] = posterior.coefficients.shape[1] - sum(widths)
        ends = np.cumsum([0, *widths])
        every = [torch.arange(a, b, device=device) for a, b in pairwise(ends)]
        self._used: list[tuple[int, ...]] = []
        self._mean, self._form = [], []
        for part, deviations in enumerate(posterior.deviation):
            curved = bool(self._curves[part])
            used = (0, *(k for k in (1, 2) if deviations[k - 1] > 0), *((3,) if curved else ()))
            at = torch.cat([every[block] for block in used])
            self._used.append(used)
            self._mean.append(arrays["coefficients"][part, at])
            self._form.append(arrays["quadratic"][part][at[:, None], at])

    def __call__(self, rows: Floats | Tensor) -> Floats:
        """Mean and standard deviation of each part, (m, g, 2), of rows (m, p)."""
        if not len(rows):
            return np.zeros((0, len(self._used), 2))
        on_cpu = self._device.type == "cpu"
        at_once = _NUMBERS_AT_ONCE["cpu" if on_cpu else "cuda"]
        blocks = list(row_blocks(len(rows), self._numbers, at_once))

        def some(which: slice) -> list[Tensor]:
            each = (torch.as_tensor(rows[block], device=self._device) for block in blocks[which])
            return list(map(self._of, each))

        found = in_threads(some, len(blocks)) if on_cpu else [some(slice(None))]
        every = torch.cat(list(chain.from_iterable(found)))
        return np.ascontiguousarray(every.cpu().numpy())

    def combined(self, rows: Floats | Tensor, mixing: Floats) -> Floats:
        """Moments of linear combinations of the logits of rows, which vary together.

        A link that bends is straight between the ends of each logit's 95 % interval.

        Parameters
        ----------
        rows : ndarray or Tensor of float64, shape (m, p)
            Standardised; a matrix (m, m) is held.
        mixing : ndarray, shape (q, m)
            What each combination takes of each logit.

        Returns
        -------
        ndarray, shape (q, g, 2)
            Mean and standard deviation under each part.
        """
        seen = self._landmarks.seen(torch.as_tensor(rows, device=self._device), self._views)
        wanted = torch.from_numpy(mixing).to(self._device)
        whole, between = self._straight.whole(seen), dict[Curve, Tensor]()
        found = []
        for part, columns, mean, deviation in self._parts(seen):
            moments = bent_moments(mean, deviation, self._tails[part])
            mixed = wanted * (moments[:, 1] / deviation)
            of_columns, size = mixed @ columns, columns.shape[1]
            form = self._form[part][:size, :size]
            variance = ((of_columns @ form) * of_columns).sum(1)
            variances = self._variances[part]
            for block, directions, of_block in zip(
                whole, self._straight.directions, variances[:2], strict=True
            ):
                if directions is not None:
                    taken = mixed @ block
                    kept = (taken @ directions).square().sum(1)
                    variance += of_block * (taken.square().sum(1) - kept).clamp_min(0)
            for curve, of_curve in zip(self._curves[part], variances[2:], strict=False):
                if curve not in between:
                    between[curve] = self._landmarks.between(curve, seen)
                variance += of_curve * ((mixed @ between[curve]) * mixed).sum(1)
            spread = variance.clamp_min(LEAST_VARIANCE).sqrt()
            found.append(torch.stack([wanted @ moments[:, 0], spread], dim=1))
        return torch.stack(found, dim=1).cpu().numpy()

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
        found = np.empty((*every.shape[:2], len(self._used), 3))
        at_once = _NUMBERS_AT_ONCE["cpu" if self._device.type == "cpu" else "cuda"]
        for block in row_blocks(every.shape[1], self._numbers * len(every), at_once):
            found[:, block] = self._beside(every[:, block]).cpu().numpy()
        return found

    def _beside(self, every: Tensor) -> Tensor:
        k, m = every.shape[:2]
        seen = self._landmarks.seen(every.flatten(0, 1), self._views)
        first = {view: columns[:m].repeat(k, 1) for view, columns in seen.items()}
        whole, whole_first = self._straight.whole(seen), self._straight.whole(first)
        prior, found = dict[Curve, Tensor](), []
        for part, columns, mean, deviation in self._parts(seen):
            size = columns.shape[1]
            carried = (columns @ self._form[part][:size, :size]).unflatten(0, (k, m))
            together = (carried * columns[:m]).sum(2).flatten()
            variances = self._variances[part]
            for block, of_first, directions, of_block in zip(
                whole, whole_first, self._straight.directions, variances[:2], strict=True
            ):
                if directions is not None:
                    kept = ((block @ directions) * (of_first @ directions)).sum(1)
                    together += of_block * ((block * of_first).sum(1) - kept)
            for curve, of_curve in zip(self._curves[part], variances[2:], strict=False):
                if curve not in prior:
                    prior[curve] = self._landmarks.beside(curve, first, seen)
                together += of_curve * prior[curve]
            moments = bent_moments(mean, deviation, self._tails[part])
            slope = (moments[:, 1] / deviation).unflatten(0, (k, m))
            together = together.unflatten(0, (k, m)) * slope * slope[0]
            found.append(torch.cat([moments.unflatten(0, (k, m)), together.unsqueeze(2)], dim=2))
        return torch.stack(found, dim=2)

    def _of(self, rows: Tensor) -> Tensor:
        parts = self._parts(self._landmarks.seen(rows, self._views))
        means, deviations = zip(*((mean, spread) for _, _, mean, spread in parts), strict=True)
        mean, deviation = torch.stack(means, dim=1), torch.stack(deviations, dim=1)
        found = torch.empty(*mean.shape, 2, dtype=mean.dtype, device=mean.device)
        for tails, which in self._links.items():  # few: a row's parts cost less together
            found[:, which] = bent_moments(mean[:, which], deviation[:, which], tails)
        return found

    def _parts(self, seen: Seen) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
        """Of each part its number, the columns of rows, and moments of their logits unbent."""
        linear, missing = self._straight.of(seen)
        first = [torch.ones_like(missing[:, :1]), *linear]
        values: dict[Curve, Tensor] = {}
        made: dict[tuple[tuple[int, ...], tuple[Curve, ...]], Tensor] = {}
        for part, key in enumerate(zip(self._used, self._curves, strict=True)):
            used, curves = key
            for curve in curves:
                if curve not in values:
                    values[curve] = self._landmarks.values(curve, seen)
            if key not in made:
                linear_used = [first[block] for block in used if block < 3]
                made[key] = torch.cat([*linear_used, *(values[curve] for curve in curves)], dim=1)
            columns, variances = made[key], self._variances[part]
            form, mean = self._form[part], self._mean[part]
            size = columns.shape[1]
            variance = ((columns @ form[:size, :size]) * columns).sum(1)
            variance += missing @ variances[:2]
            for curve, of_curve in zip(curves, variances[2:], strict=False):
                variance += of_curve * self._landmarks.diagonal(curve, seen)
            deviation = variance.clamp_min(LEAST_VARIANCE).sqrt()
            yield part, columns, columns @ mean[:size], deviation


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
