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
class KnownRows:
    """Training rows that the kernels of one kind are evaluated with.

    Attributes
    ----------
    models : FittedBatch
    kernel : KernelFunction
        Of that kind, of any γ.
    support : Tensor of int, shape (k,)
        Which they are.
    """

    models: FittedBatch
    kernel: KernelFunction
    support: Tensor

    def met(self, rows: Tensor, seen: Any) -> Any:
        """What `values` are made of, of centred rows (m, p), or of features as they are `seen`."""
        if self.kernel.has_features:
            return self.kernel.met(seen, self._ready)
        models = self.models
        return self.kernel.with_known(rows, None, self.support, models.scale, models.dtype)[0]

    def values(self, kernel: KernelFunction, met: Any) -> Tensor:
        """Kernel of one γ of the kind, shape (m, k)."""
        found: Tensor = kernel.of_met(met)[0] if kernel.has_features else met
        return found

    @cached_property
    def _ready(self) -> Any:
        models = self.models
        assert models.X is not None
        known = models.X[self.support] - models.center
        return self.kernel.ready(self.kernel.seen(known, models.scale, models.dtype))


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
    known : KnownRows or None
        Training rows that the kernel is evaluated with; None for linear models.
    """

    models: FittedBatch
    used: Tensor
    kernel: KernelFunction
    n_columns: int
    known: KnownRows | None = None

    def linear(self, replicates: slice) -> tuple[Tensor, Tensor]:
        """Coefficients (b, r, k) and intercepts (b, r) on the columns, float64."""
        models, known = self.models, self.known
        intercept = models.intercept[replicates][:, self.used]
        if models.coef is not None:
            coef = models.coef[replicates][:, self.used]
        else:
            assert models.dual_coef is not None
            coef = models.dual_coef[replicates][:, self.used]
            if known is not None:
                return coef[..., known.support], intercept
            coef = models.primal_coef(coef, replicates)
        return coef, intercept + coef @ models.center


def columns_of(parts: Iterable[SharedColumns], rows: Tensor) -> Iterator[Tensor]:
    """What models see of centred rows (m, p), part by part, (m, k), in the precision of scores.

    What several kernels see is made once, and what those of one kind are made of.
    """
    seen: dict[tuple[str, ...], Any] = {}
    known, met = None, None
    for part in parts:
        kernel, models = part.kernel, part.models
        if part.known is None:
            yield rows.to(models.dtype)
            continue
        if part.known is not known:
            looks_at = kernel.looks_at
            if looks_at not in seen and kernel.has_features:
                seen[looks_at] = kernel.seen(rows, models.scale, models.dtype)
            known, met = part.known, None  # the one before is not held beside the next
            met = known.met(rows, seen.get(looks_at))
        yield known.values(kernel, met)


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
    groups: dict[Any, list[tuple[int, Tensor]]] = {}
    for g, some in _by_gamma(models, used).items():
        groups.setdefault(models.kernel.kinds[g], []).append((g, some))
    parts = []
    for group in groups.values():
        kernels = [models.kernel.take(slice(g, g + 1)) for g, _ in group]
        support = needed[torch.cat([some for _, some in group])].any(0).nonzero().squeeze(1)
        known = KnownRows(models, kernels[0], support)
        for kernel, (_, some) in zip(kernels, group, strict=True):
            parts.append(SharedColumns(models, some, kernel, len(support), known))
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
