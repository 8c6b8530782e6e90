"""The models of a batch that have weight, and what new rows have to go through to reach them.

That is nothing for linear models, and for others the kernel with those training rows that a model
in use has a dual coefficient for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.models import FittedBatch

__all__ = ["OwnKernels", "SharedColumns", "columns_of", "own_kernels", "shared_columns"]

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
    n_columns : int
        Numbers that the models know of a row, k.
    support : Tensor of int, shape (k,) or None
        Training rows that the kernel is evaluated with; None for linear models.
    """

    models: FittedBatch
    used: Tensor
    kernel: KernelFunction
    n_columns: int
    support: Tensor | None = None

    def columns(self, rows: Tensor, seen: Any) -> Tensor:
        """What the models see of centred rows (m, p), shape (m, k), in the precision of scores.

        Of kernels of features the rows as they are `seen`.
        """
        models = self.models
        if self.support is None:
            return rows.to(models.dtype)
        if not self.kernel.has_features:
            found = self.kernel.with_known(rows, None, self.support, models.scale, models.dtype)
        else:
            found = self.kernel.between(seen, self._known)
        return found[0]

    @cached_property
    def _known(self) -> Any:
        """The training rows of the support, ready for the kernel."""
        models = self.models
        assert models.X is not None
        known = models.X[self.support] - models.center
        return self.kernel.ready(self.kernel.seen(known, models.scale, models.dtype))

    def linear(self, replicates: slice) -> tuple[Tensor, Tensor]:
        """Coefficients (b, r, k) and intercepts (b, r) on the columns, float64."""
        models, support = self.models, self.support
        intercept = models.intercept[replicates][:, self.used]
        if models.coef is not None:
            coef = models.coef[replicates][:, self.used]
        else:
            assert models.dual_coef is not None
            coef = models.dual_coef[replicates][:, self.used]
            if support is not None:
                return coef[..., support], intercept
            coef = models.primal_coef(coef, replicates)
        return coef, intercept + coef @ models.center


def columns_of(parts: Iterable[SharedColumns], rows: Tensor) -> Iterator[Tensor]:
    """What models see of centred rows, part by part; what several kernels see is made once."""
    seen: dict[tuple[str, ...], Any] = {}
    for part in parts:
        kernel, models = part.kernel, part.models
        looks_at = kernel.looks_at
        if looks_at not in seen and part.support is not None and kernel.has_features:
            seen[looks_at] = kernel.seen(rows, models.scale, models.dtype)
        yield part.columns(rows, seen.get(looks_at))


@dataclass(frozen=True)
class OwnKernels:
    """Models of replicates each of which scales the rows in its own way.

    Attributes
    ----------
    models : FittedBatch
        The batch that they belong to.
    used : list of Tensor of int, each of shape (r,)
        Which of the R models of a replicate they are, for each γ in use.
    kernel : KernelFunction
        Of the values of γ in use.
    supports : list of Tensor of int, each of shape (k,)
        Training rows that the kernels of each replicate are evaluated with.
    """

    models: FittedBatch
    used: list[Tensor]
    kernel: KernelFunction
    supports: list[Tensor]

    def weighed(self, weights: Tensor) -> tuple[list[Tensor], Tensor]:
        """Coefficients (γ, k) of each replicate in the precision of scores, intercepts (B,)."""
        models = self.models
        assert models.dual_coef is not None
        of_gamma = weights.new_zeros(len(self.used), len(weights))
        for own, used in zip(of_gamma, self.used, strict=True):
            own[used] = weights[used]
        # A product of all columns costs a device less than to pick each model's.
        coefs = [
            (of_gamma @ coef)[:, support].to(models.dtype)
            for coef, support in zip(models.dual_coef, self.supports, strict=True)
        ]
        return coefs, models.intercept @ of_gamma.sum(0)

    def add(self, rows: Tensor, coefs: list[Tensor], items: slice, out: Tensor) -> None:
        """Add to scores (m, B) of centred rows what some replicates' `coefs` make of them."""
        for b, columns in self._columns(rows, items):
            # Kernels side by side: one product with a vector for all values of γ.
            out[:, b] += (columns @ coefs[b].unsqueeze(2)).sum(0).squeeze(1)

    def votes(self, rows: Tensor, items: slice) -> Tensor:
        """Votes of some replicates for centred rows, int32, shape (R, m)."""
        models = self.models
        shape = models.intercept.shape[1], len(rows)
        counts = models.intercept.new_zeros(shape, dtype=torch.int32)
        for b, columns in self._columns(rows, items):
            for kernel, used in zip(columns, self.used, strict=True):
                intercept = models.intercept[b, used, None].to(models.dtype)
                coef = self._coef(b, used).to(models.dtype)
                counts[used] += (torch.addmm(intercept, coef, kernel.mT) > 0).int()
        return counts

    def scores(self, rows: Tensor, items: slice) -> Tensor:
        """Scores of centred rows under some replicates' models, all in use, shape (b, R, m)."""
        models, found = self.models, []
        every = torch.cat(self.used)
        for b, columns in self._columns(rows, items):
            coef = self._coef(b, every).to(models.dtype).unflatten(0, (len(columns), -1))
            scores = (coef @ columns.mT).flatten(0, 1)
            found.append(scores + models.intercept[b, :, None].to(models.dtype))
        return torch.stack(found)

    def _columns(self, rows: Tensor, items: slice) -> Iterator[tuple[int, Tensor]]:
        """Some replicates, with kernels between centred rows and their support, (γ, m, k)."""
        models = self.models
        assert models.X is not None
        for b in range(len(self.supports))[items]:
            known = (models.X[self.supports[b]] - models.center) / models.scale[b]
            seen, known = (rows / models.scale[b]).to(models.dtype), known.to(models.dtype)
            yield b, self.kernel.gram(seen, known)

    def _coef(self, b: int, used: Tensor) -> Tensor:
        """Coefficients of some models of a replicate on its columns, shape (r, k), float64."""
        assert self.models.dual_coef is not None
        return self.models.dual_coef[b, used][:, self.supports[b]]


def _by_gamma(models: FittedBatch, used: Tensor) -> dict[int, Tensor]:
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
    if models.kernel.is_linear:
        which = used.nonzero().squeeze(1)
        return [SharedColumns(models, which, models.kernel, len(models.center))]
    assert models.dual_coef is not None
    needed = torch.zeros(models.dual_coef.shape[1:], dtype=torch.bool, device=used.device)
    for dual_coef in models.dual_coef:
        needed |= dual_coef != 0
    parts = []
    for g, some in _by_gamma(models, used).items():
        support = needed[some].any(0).nonzero().squeeze(1)
        kernel = models.kernel.take(slice(g, g + 1))
        parts.append(SharedColumns(models, some, kernel, len(support), support))
    return parts


def own_kernels(models: FittedBatch, used: Tensor) -> OwnKernels:
    """The models in use, of which there are some, of kernels with a scale for each replicate."""
    assert models.dual_coef is not None
    groups = _by_gamma(models, used)
    values = torch.tensor(list(groups), dtype=torch.int64, device=used.device)
    which = used.nonzero().squeeze(1)
    # Many replicates at a time: each that reads its own support would wait for the device.
    B, _, n = models.dual_coef.shape
    size = max(1, _COEFFICIENTS_AT_ONCE // max(1, len(which) * n))
    supports: list[Tensor] = []
    for start in range(0, B, size):
        needed = (models.dual_coef[start : start + size, which] != 0).any(1)
        supports.extend(needed.nonzero()[:, 1].split(needed.sum(1).tolist()))
    return OwnKernels(models, list(groups.values()), models.kernel.take(values), supports)
