"""The models of a batch that have weight, and what new rows have to go through to reach them.

That is nothing for linear models, and for others the kernel with those training rows that a model
in use has a dual coefficient for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.models import FittedBatch

__all__ = ["OwnKernels", "SharedColumns", "own_kernels", "shared_columns"]

_COEFFICIENTS_AT_ONCE = 2**24  # dual coefficients that are looked at for supports


@dataclass(frozen=True)
class SharedColumns:
    """Models of all replicates that see a row in the same way: as linear functions of k numbers.

    Attributes
    ----------
    models : FittedBatch
        The batch that they belong to.
    used : Tensor of int, shape (r,)
        Which of the R models of a replicate they are.
    kernel : KernelFunction
        Of one γ.
    support : Tensor of int, shape (k,) or None
        Training rows that the kernel is evaluated with; None for linear models.
    """

    models: FittedBatch
    used: Tensor
    kernel: KernelFunction
    support: Tensor | None = None

    @property
    def n_columns(self) -> int:
        """Numbers that the models know of a row, k."""
        return len(self.models.center if self.support is None else self.support)

    def columns(self, rows: Tensor) -> Tensor:
        """What the models see of centred rows (m, p), shape (m, k), in the precision of scores."""
        if self.support is None:
            return rows.to(self.models.dtype)
        return _columns(self.kernel, self.models, rows, self.models.scale, self.support)[0]

    def coef(self, replicates: slice) -> Tensor:
        """Coefficients on the columns, shape (b, r, k), float64."""
        if self.models.coef is not None:
            return self.models.coef[replicates][:, self.used]
        assert self.models.dual_coef is not None
        dual_coef = self.models.dual_coef[replicates][:, self.used]
        if self.support is None:
            return self.models.primal_coef(dual_coef, replicates)
        return dual_coef[..., self.support]

    def intercept(self, replicates: slice, coef: Tensor) -> Tensor:
        """Intercepts that belong to `coef`, on centred rows, shape (b, r), float64."""
        intercept = self.models.intercept[replicates][:, self.used]
        return intercept + coef @ self.models.center if self.support is None else intercept


@dataclass(frozen=True)
class OwnKernels:
    """The models of one replicate, which scales the rows in its own way.

    Attributes
    ----------
    models : FittedBatch
        The batch that they belong to.
    replicate : int
        Which replicate.
    kernel : KernelFunction
        Of the values of γ in use.
    support : Tensor of int, shape (k,)
        Training rows that the kernels are evaluated with.
    """

    models: FittedBatch
    replicate: int
    kernel: KernelFunction
    support: Tensor

    def columns(self, rows: Tensor) -> Tensor:
        """Kernels between centred rows (m, p) and the support, shape (γ, m, k)."""
        scale = self.models.scale[self.replicate]
        return _columns(self.kernel, self.models, rows, scale, self.support)

    def coef(self, used: Tensor) -> Tensor:
        """Coefficients of some of the models on the columns, shape (r, k), float64."""
        assert self.models.dual_coef is not None
        return self.models.dual_coef[self.replicate, used][:, self.support]


def by_gamma(models: FittedBatch, used: Tensor) -> dict[int, Tensor]:
    """Numbers of the models in use, for each γ that has any; without γ they count as one.

    Parameters
    ----------
    models : FittedBatch
    used : Tensor of bool, shape (R,)
        Whether each model of a replicate is in use.
    """
    n_C = len(used) // models.kernel.n_values
    return {
        g: g * n_C + some.nonzero().squeeze(1)
        for g, some in enumerate(used.view(-1, n_C))
        if some.any()
    }


def shared_columns(models: FittedBatch, used: Tensor) -> list[SharedColumns]:
    """The models in use where all replicates see a row in the same way."""
    groups = by_gamma(models, used)
    if models.kernel.is_linear:
        return [SharedColumns(models, some, models.kernel) for some in groups.values()]
    assert models.dual_coef is not None
    needed = torch.zeros(models.dual_coef.shape[1:], dtype=torch.bool, device=used.device)
    for dual_coef in models.dual_coef:
        needed |= dual_coef != 0
    return [
        SharedColumns(
            models,
            some,
            models.kernel.take(slice(g, g + 1)),
            needed[some].any(0).nonzero().squeeze(1),
        )
        for g, some in groups.items()
    ]


def own_kernels(models: FittedBatch, used: Tensor) -> Iterator[OwnKernels]:
    """The models in use of kernels with a scale for each replicate, replicate by replicate."""
    assert models.dual_coef is not None
    numbers = torch.tensor(list(by_gamma(models, used)), dtype=torch.int64, device=used.device)
    kernel = models.kernel.take(numbers)
    which = used.nonzero().squeeze(1)
    # Many replicates at a time: each that reads its own support would wait for the device.
    B, _, n = models.dual_coef.shape
    size = max(1, _COEFFICIENTS_AT_ONCE // max(1, len(which) * n))
    for start in range(0, B, size):
        needed = (models.dual_coef[start : start + size, which] != 0).any(1)
        supports = needed.nonzero()[:, 1].split(needed.sum(1).tolist())
        for b, support in enumerate(supports, start):
            yield OwnKernels(models, b, kernel, support)


def _columns(
    kernel: KernelFunction, models: FittedBatch, rows: Tensor, scale: Tensor, support: Tensor
) -> Tensor:
    """Kernels between centred rows and some training rows, shape (γ, m, k)."""
    known = None if models.X is None else models.X[support] - models.center
    return kernel.with_known(rows, known, support, scale, models.dtype)
