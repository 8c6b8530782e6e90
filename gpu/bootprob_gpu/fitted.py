"""A trained batch: coefficients, certificates, and scores of new rows in memory-sized chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bootprob_gpu.certificate import Certificate
from bootprob_gpu.kernels import cross_gram
from bootprob_gpu.memory import chunked, free_bytes
from bootprob_gpu.problem import InputError

__all__ = ["FittedBatch"]

_CPU_BLOCK_BYTES = 2**25  # blocks that stay in a CPU's caches are faster than large ones


@dataclass
class FittedBatch:
    """B × R trained support vector machines that share their training rows.

    Attributes
    ----------
    intercept : Tensor of float64, shape (B, R)
        Intercepts, in the coordinates of the rows given.
    coef : Tensor of float64, shape (B, R, p) or None
        Coefficients of linear models in the coordinates of the rows given:
        ``score = x · coef + intercept``.
    dual_coef : Tensor of float64, shape (B, R, n) or None
        ``y_i a_i`` of kernel models, and of linear models trained through the Gram matrix:
        ``score = Σ_i dual_coef_i k(x_i / scale_b, x / scale_b) + intercept``.
    X : Tensor, shape (n, p) or None
        Training rows, kept for `dual_coef`.
    center : Tensor of float64, shape (p,)
        Point near the rows; scores are taken about it, so that a lower precision loses nothing
        to a large offset.
    scale : Tensor, shape (p,) or (B, p)
        Scale that each replicate divides the features by.
    gamma : Tensor, shape (G,) or None
        Grid of γ; the models are laid out as ``r = index_of_gamma · n_C + index_of_C``.
    certificate : Certificate
        Objectives, gap, iterations and status of each model.
    train_scores : Tensor of float64, shape (B, R, n) or None
        Scores of all training rows; only on the blocks that `iter_fit` yields.
    replicates : slice
        Which replicates of the problem these are.
    dtype : torch.dtype
        Precision of the scores.
    memory_limit : int or None
        Bytes that scoring may use.
    """

    intercept: Tensor
    coef: Tensor | None
    dual_coef: Tensor | None
    X: Tensor | None
    center: Tensor
    scale: Tensor
    gamma: Tensor | None
    certificate: Certificate
    replicates: slice
    train_scores: Tensor | None = None
    dtype: torch.dtype = torch.float64
    memory_limit: int | None = None

    @property
    def primal(self) -> Tensor:
        """Primal objectives, shape (B, R)."""
        return self.certificate.primal

    @property
    def dual(self) -> Tensor:
        """Dual objectives, shape (B, R)."""
        return self.certificate.dual

    @property
    def gap(self) -> Tensor:
        """Relative duality gaps, shape (B, R)."""
        return self.certificate.gap

    @property
    def n_iter(self) -> Tensor:
        """Iterations, shape (B, R)."""
        return self.certificate.n_iter

    @property
    def status(self) -> Tensor:
        """Values of `Status`, shape (B, R)."""
        return self.certificate.status

    @classmethod
    def concatenate(cls, blocks: list[FittedBatch]) -> FittedBatch:
        """Join the blocks of consecutive replicates; their training scores are left behind."""
        first = blocks[0]

        def joined(name: str) -> Tensor | None:
            parts = [getattr(block, name) for block in blocks]
            return None if parts[0] is None else torch.cat(parts)

        return cls(
            intercept=torch.cat([block.intercept for block in blocks]),
            coef=joined("coef"),
            dual_coef=joined("dual_coef"),
            X=first.X,
            center=first.center,
            scale=first.scale
            if first.scale.ndim == 1
            else torch.cat([block.scale for block in blocks]),
            gamma=first.gamma,
            certificate=Certificate.concatenate([block.certificate for block in blocks]),
            replicates=slice(first.replicates.start, blocks[-1].replicates.stop),
            dtype=first.dtype,
            memory_limit=first.memory_limit,
        )

    def scores(self, X: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Scores of rows under all models, some replicates at a time.

        Parameters
        ----------
        X : Tensor, shape (m, p)
            Rows to score.

        Yields
        ------
        replicates : slice
        scores : Tensor, shape (b, R, m)
        """
        yield from self._blocks(X, self.coef, self.dual_coef, self.intercept)

    def votes(self, X: Tensor) -> Tensor:
        """How many replicates score each row above 0, shape (m, R), int64."""
        counts = torch.zeros(
            len(X), self.intercept.shape[1], dtype=torch.int64, device=self.intercept.device
        )
        for _, scores in self.scores(X):
            counts += (scores > 0).sum(0).T
        return counts

    def replicate_scores(self, X: Tensor, weights: Tensor) -> Tensor:
        """Weighted sum of the scores over the models of each replicate, shape (m, B).

        The models are summed before the rows are scored, so this costs R times less than all
        scores do.

        Parameters
        ----------
        X : Tensor, shape (m, p)
            Rows to score.
        weights : Tensor, shape (R,)
            Weight of each model.
        """
        weights = weights.to(self.intercept)[:, None]
        grid = 1 if self.gamma is None else len(self.gamma)  # models of one γ share their kernel

        def collapsed(values: Tensor | None) -> Tensor | None:
            return None if values is None else (values * weights).unflatten(1, (grid, -1)).sum(2)

        intercept = collapsed(self.intercept.unsqueeze(-1))
        assert intercept is not None
        blocks = self._blocks(
            X, collapsed(self.coef), collapsed(self.dual_coef), intercept.squeeze(-1)
        )
        # Room for all at once: small results kept among large kernels would riddle the heap.
        totals = torch.empty(len(intercept), len(X), dtype=self.dtype, device=self.intercept.device)
        for items, scores in blocks:
            torch.sum(scores, 1, out=totals[items])
        return totals.T

    def _blocks(
        self, X: Tensor, coef: Tensor | None, dual_coef: Tensor | None, intercept: Tensor
    ) -> Iterator[tuple[slice, Tensor]]:
        """Scores by blocks of replicates, for coefficients with any number of models."""
        rows = self._centered(X)
        B, models = intercept.shape
        bytes_per_replicate = 2.0 * models * sum(rows.shape) * self.dtype.itemsize
        score: Callable[[slice], Tensor]
        if coef is not None or self.gamma is None:
            narrow = rows.to(self.dtype)

            def score(items: slice) -> Tensor:
                w = coef[items] if coef is not None else self._primal_coef(dual_coef, items)
                at_center = (intercept[items] + w @ self.center).to(self.dtype)
                scores = (w.to(self.dtype).flatten(0, 1) @ narrow.T).unflatten(0, w.shape[:2])
                return scores.add_(at_center.unsqueeze(-1))
        else:
            assert self.X is not None
            assert dual_coef is not None
            grid, (n, p), m = len(self.gamma), self.X.shape, len(rows)
            shared = self._gram(rows, slice(0, 1))[0] if self.scale.ndim == 1 else None
            if shared is None:
                bytes_per_replicate += (1 + grid) * m * n * self.dtype.itemsize
                bytes_per_replicate += (m + n) * p * (8 + self.dtype.itemsize)  # float64 first

            def score(items: slice) -> Tensor:
                s = dual_coef[items].to(self.dtype).unflatten(1, (grid, -1))
                if shared is None:
                    scores = s @ self._gram(rows, items).mT
                else:  # one matrix product for the replicates of each γ
                    scores = (s.permute(1, 0, 2, 3).flatten(1, 2) @ shared.mT).unflatten(
                        1, (len(s), -1)
                    )
                    scores = scores.transpose(0, 1)
                return scores.flatten(1, 2) + intercept[items].to(self.dtype).unsqueeze(-1)

        available = free_bytes(rows.device, self.memory_limit)
        if rows.device.type == "cpu":
            available = min(available, _CPU_BLOCK_BYTES)
        yield from chunked(B, score, bytes_per_item=bytes_per_replicate, available=available)

    def _centered(self, X: Tensor) -> Tensor:
        X = torch.as_tensor(X)
        if X.ndim != 2 or X.shape[1] != len(self.center):
            raise InputError(
                f"Rows to score have shape {tuple(X.shape)}; the models know {len(self.center)} "
                "columns."
            )
        return X.to(self.center) - self.center

    def _primal_coef(self, dual_coef: Tensor | None, items: slice) -> Tensor:
        """Coefficients of linear models from their dual ones, shape (b, R, p)."""
        assert self.X is not None
        assert dual_coef is not None
        # Dual coefficients sum to 0, so centring changes nothing but the rounding.
        scale = self.scale if self.scale.ndim == 1 else self.scale[items, None]
        return dual_coef[items] @ (self.X - self.center) / scale**2

    def _gram(self, rows: Tensor, items: slice) -> Tensor:
        """RBF kernel between new, centred rows and training rows, shape (b or 1, G, m, n)."""
        assert self.X is not None
        assert self.gamma is not None
        scale = (self.scale[None] if self.scale.ndim == 1 else self.scale[items]).unsqueeze(1)
        others = ((self.X - self.center) / scale).to(self.dtype)
        return cross_gram((rows / scale).to(self.dtype), others, self.gamma)
