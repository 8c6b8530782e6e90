"""Mean and variances of the replicate scores of rows, without a score for each replicate.

A linear model says ``f_b(x) = v_b · (x, 1)``. Of B replicates in p + 1 numbers no more than
``k = min(B, p + 1)`` directions matter, so that a row costs k (p + 1) products instead of
B (p + 1) for the scores and B² for the infinitesimal jackknife.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from bootprob.ensemble.scoring.rows import NewRows, WeighedScores
from bootprob.exceptions import DataError
from bootprob.intervals import jackknife_variance
from bootprob.runtime.arrays import Floats
from bootprob_gpu import FittedBatch

__all__ = ["PrincipalReplicates", "ScoreMoments", "average_models", "principal_directions"]


@dataclass(frozen=True)
class ScoreMoments:
    """What intervals need to know of the replicate scores of rows.

    Attributes
    ----------
    mean : ndarray, shape (m,)
    spread : ndarray, shape (m,)
        Their variance, with B − 1.
    jackknife : ndarray, shape (m,)
        Variance of the mean by the infinitesimal jackknife.
    """

    mean: Floats
    spread: Floats
    jackknife: Floats

    @classmethod
    def of_means(cls, mean: Floats) -> ScoreMoments:
        """Means alone, for what asks for no more; the variances are not known."""
        unknown = np.full(len(mean), np.nan)
        return cls(mean, unknown, unknown)

    @classmethod
    def of(cls, scores: Floats, gram: Floats) -> ScoreMoments:
        """Take them from the scores themselves.

        Parameters
        ----------
        scores : ndarray, shape (m, B)
        gram : ndarray, shape (B, B)
            From `bootprob.intervals.counts_gram`.

        Raises
        ------
        DataError
            Squares of scores overflow.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            spread, jackknife = scores.var(axis=1, ddof=1), jackknife_variance(scores, gram)
        return cls(scores.mean(axis=1), spread, jackknife).checked()

    def checked(self) -> ScoreMoments:
        """The same, if squares of scores have not overflown."""
        if not (np.isfinite(self.spread).all() and np.isfinite(self.jackknife).all()):
            raise DataError(
                "Rows have scores whose squares are beyond float64; bring the columns to a similar "
                "size."
            )
        return self


class PrincipalReplicates:
    """Linear replicates in the directions in which they differ.

    With D the centred ``v_b / s_b`` of all replicates in its rows, ``D = Q R``, and the
    eigenvectors U of ``Qᵀ G Q`` in its columns, ``z = Uᵀ R (x, 1)`` gives the spread as
    ``|z|² / (B − 1)`` and the infinitesimal jackknife, less its Monte-Carlo bias, as
    ``Σ_k (λ_k − tr G / B) z_k² / B²``.

    Parameters
    ----------
    models : FittedBatch
        Linear, with `coef`.
    weights : ndarray, shape (R,)
        Of the models.
    scale, offset : ndarray, shape (B,)
        Of the replicates: scores are divided by the one, then moved by the other.
    gram : ndarray, shape (B, B)
        From `bootprob.intervals.counts_gram`.
    """

    def __init__(
        self, models: FittedBatch, weights: Floats, scale: Floats, offset: Floats, gram: Floats
    ) -> None:
        assert models.coef is not None
        share = torch.from_numpy(weights).to(models.intercept)
        coef = torch.einsum("r,brp->bp", share, models.coef).cpu().numpy()
        intercept = (models.intercept @ share).cpu().numpy()
        planes = np.column_stack([coef, intercept]) / scale[:, None]
        planes[:, -1] += offset
        self._n_replicates = len(planes)
        directions, self._values = principal_directions(planes, gram)
        planes = np.vstack([planes.mean(axis=0), directions])
        self._scores = WeighedScores(_linear(models, planes), np.ones(1))

    def moments(self, rows: NewRows) -> Iterator[ScoreMoments]:
        """Moments of the scores of rows, some at a time."""
        for scores in self._scores.of(rows):
            with np.errstate(over="ignore", invalid="ignore"):
                squares = np.square(scores[:, 1:])
                found = ScoreMoments(
                    scores[:, 0].copy(),
                    squares.sum(axis=1) / (self._n_replicates - 1),
                    np.maximum(squares @ self._values, 0.0),
                )
            yield found.checked()


def principal_directions(planes: Floats, gram: Floats) -> tuple[Floats, Floats]:
    """The directions z of `PrincipalReplicates`, (k, p + 1), and what each adds to the jackknife.

    Parameters
    ----------
    planes : ndarray, shape (B, p + 1)
        Coefficients and intercept of each replicate, as scores are aligned.
    gram : ndarray, shape (B, B)
        From `bootprob.intervals.counts_gram`.
    """
    q, r = np.linalg.qr(planes - planes.mean(axis=0))
    values, vectors = np.linalg.eigh(q.T @ gram @ q)
    return vectors.T @ r, (values - np.trace(gram) / len(planes)) / len(planes) ** 2


def average_models(models: FittedBatch, scale: Floats) -> FittedBatch | None:
    """One replicate whose scores are the means of all replicates', each divided by its scale.

    Parameters
    ----------
    models : FittedBatch
    scale : ndarray, shape (B,)

    Returns
    -------
    FittedBatch or None
        None where replicates see rows in ways of their own: kernels with own scales.
    """
    if models.coef is None and models.scale.ndim > 1:
        return None
    share = torch.from_numpy(1 / scale / len(scale)).to(models.intercept)

    def mean(values: torch.Tensor | None) -> torch.Tensor | None:
        return None if values is None else torch.tensordot(share, values, dims=1)[None]

    intercept = mean(models.intercept)
    assert intercept is not None
    return replace(
        models,
        intercept=intercept,
        coef=mean(models.coef),
        dual_coef=mean(models.dual_coef),
        scale=torch.ones_like(models.center) if models.scale.ndim > 1 else models.scale,
        certificate=models.certificate.take(slice(0, 0)),
        replicates=slice(0, 1),
    )


def _linear(models: FittedBatch, planes: Floats) -> FittedBatch:
    """Linear models, one a replicate, of coefficients and intercepts in the rows of `planes`."""
    on_device = torch.from_numpy(planes).to(models.intercept)
    return replace(
        models,
        intercept=on_device[:, -1:].contiguous(),
        coef=on_device[:, None, :-1].contiguous(),
        dual_coef=None,
        scale=torch.ones_like(models.center),
        certificate=models.certificate.take(slice(0, 0)),
        replicates=slice(0, len(planes)),
    )
