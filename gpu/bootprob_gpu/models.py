"""A trained batch: coefficients, certificates, and what they belong to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bootprob_gpu.certificate import Certificate
from bootprob_gpu.inputs import InputError
from bootprob_gpu.kernels.function import KernelFunction

__all__ = ["FittedBatch"]


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
    kernel : KernelFunction
        With its grid of γ; the models are laid out as ``r = index_of_gamma · n_C + index_of_C``.
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

    Examples
    --------
    >>> import torch
    >>> from bootprob_gpu import Problem, fit
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
    >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
    >>> models = fit(Problem(X, y, counts, C=[0.1, 1.0]))
    >>> rows = torch.tensor([[0.0], [3.0]], dtype=torch.float64)
    >>> scores = rows @ models.coef[0, 0] + models.intercept[0, 0]
    >>> (scores > 0).tolist(), models.status.tolist()
    ([False, True], [[0, 0], [0, 0]])
    """

    intercept: Tensor
    coef: Tensor | None
    dual_coef: Tensor | None
    X: Tensor | None
    center: Tensor
    scale: Tensor
    kernel: KernelFunction
    certificate: Certificate
    replicates: slice
    train_scores: Tensor | None = None
    dtype: torch.dtype = torch.float64
    memory_limit: int | None = None

    @property
    def gamma(self) -> Tensor | None:
        """Grid of γ, shape (G,), or None for a kernel without γ."""
        return self.kernel.gamma

    @property
    def shares_columns(self) -> bool:
        """Whether all replicates see a row in the same way: as linear models, or in one scale."""
        return self.kernel.is_linear or self.scale.ndim == 1

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
        """Join the blocks of consecutive replicates; their training scores are left behind.

        Parameters
        ----------
        blocks : list of FittedBatch
            In the order of the replicates.

        Examples
        --------
        >>> import torch
        >>> from bootprob_gpu import Problem, fit
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
        >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
        >>> models = fit(Problem(X, y, counts, C=[0.1, 1.0]))
        >>> from bootprob_gpu import FittedBatch
        >>> first, second = models.take(slice(0, 1)), models.take(slice(1, 2))
        >>> bool((FittedBatch.concatenate([first, second]).coef == models.coef).all())
        True
        """
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
            kernel=first.kernel,
            certificate=Certificate.concatenate([block.certificate for block in blocks]),
            replicates=slice(first.replicates.start, blocks[-1].replicates.stop),
            dtype=first.dtype,
            memory_limit=first.memory_limit,
        )

    def take(self, replicates: slice) -> FittedBatch:
        """Some of the replicates, counted from the first of the batch; shares their memory.

        Parameters
        ----------
        replicates : slice
            Which of them, counted from the first.

        Examples
        --------
        >>> import torch
        >>> from bootprob_gpu import Problem, fit
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
        >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
        >>> models = fit(Problem(X, y, counts, C=[0.1, 1.0]))
        >>> models.take(slice(1, 2)).replicates
        slice(1, 2, None)
        """

        def taken(values: Tensor | None) -> Tensor | None:
            return None if values is None else values[replicates]

        first, last, _ = replicates.indices(len(self.intercept))
        return replace(
            self,
            intercept=self.intercept[replicates],
            coef=taken(self.coef),
            dual_coef=taken(self.dual_coef),
            scale=self.scale if self.scale.ndim == 1 else self.scale[replicates],
            certificate=self.certificate.take(replicates),
            train_scores=taken(self.train_scores),
            replicates=slice(self.replicates.start + first, self.replicates.start + last),
        )

    def check_columns(self, X: Tensor) -> None:
        """Refuse rows with other columns than the models know.

        Parameters
        ----------
        X : Tensor, shape (m, p)
            Rows.

        Examples
        --------
        >>> import torch
        >>> from bootprob_gpu import Problem, fit
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
        >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
        >>> models = fit(Problem(X, y, counts, C=[0.1, 1.0]))
        >>> models.check_columns(torch.zeros(5, 2))
        Traceback (most recent call last):
            ...
        bootprob_gpu.inputs.InputError: Rows to score have shape (5, 2); the models know 1 columns.
        """
        if X.ndim != 2 or X.shape[1] != len(self.center):
            raise InputError(
                f"Rows to score have shape {tuple(X.shape)}; the models know {len(self.center)} "
                "columns."
            )

    def primal_coef(self, dual_coef: Tensor, items: slice) -> Tensor:
        """Coefficients of linear models of some replicates from dual ones, shape (b, r, p).

        Parameters
        ----------
        dual_coef : Tensor, shape (b, r, n)
            Of b replicates and r models.
        items : slice
            Which replicates these are.

        Examples
        --------
        >>> import numpy as np
        >>> import torch
        >>> from bootprob_gpu import Problem, fit
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
        >>> models = fit(Problem(X, y, np.ones((1, 4), dtype=int), C=[1.0]), solver="smo-batched")
        >>> coef = models.primal_coef(models.dual_coef, slice(0, 1))
        >>> coef.shape, round(float(coef), 2)
        (torch.Size([1, 1, 1]), 1.0)
        """
        assert self.X is not None
        # Dual coefficients sum to 0, so centring changes nothing but the rounding.
        scale = self.scale if self.scale.ndim == 1 else self.scale[items, None]
        return dual_coef @ (self.X - self.center) / scale**2
