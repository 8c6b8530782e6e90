"""Logits of rows whose whole groups are left out of a posterior."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from bootprob.ensemble.uncertainty.expectation_propagation import (
    Approximation,
    Blocks,
    factor_of,
)
from bootprob.runtime.groups import Groups

__all__ = ["without_groups"]

_MOST_KNOWN = 1 - 1e-9  # of what a group's rows say of themselves


def without_groups(
    blocks: Blocks, found: Approximation, noise: Tensor | None, groups: Groups
) -> tuple[Tensor, Tensor]:
    """Mean and variance of each row's logit without the factors of its group, shape (n,) each.

    With factors of precision T and shift ν, and logits of the group's rows of mean m and covariance
    ``C`` under the posterior, those without the factors have the covariance ``(I − C T)⁻¹ C`` and
    mean ``(I − C T)⁻¹ (m − C ν)``: what `approximate` does for single rows.

    Parameters
    ----------
    blocks : iterable of (slice, Tensor)
        Columns, as of `approximate`.
    found : Approximation
    noise : Tensor, shape (n,), or None
        As of `approximate`.
    groups : ndarray of int, shape (n,)
    """
    columns = torch.cat([part for _, part in blocks])
    sites = found.sites.without(noise)
    spread = columns @ found.covariance
    logit = columns @ found.mean
    mean, variance = torch.empty_like(logit), torch.empty_like(logit)
    whole = factor_of(found.covariance)
    total = torch.cholesky_solve(found.mean.unsqueeze(1), whole).squeeze(1)  # Σ⁻¹ m
    for rows in _members(groups):
        own = torch.from_numpy(rows).to(logit.device)
        if len(rows) > columns.shape[1]:  # the same in as many dimensions as there are columns
            seen = columns[own] @ whole
            values, vectors = torch.linalg.eigh(
                seen.mT @ (seen * sites.precision[own].unsqueeze(1))
            )
            left = 1 / (1 - values.clamp(max=_MOST_KNOWN))
            reach = seen @ vectors
            others = whole.mT @ (total - columns[own].mT @ sites.shift[own])
            mean[own] = reach @ (left * (vectors.mT @ others))
            variance[own] = reach.square() @ left
            continue
        covariance = spread[own] @ columns[own].mT
        root, shift = sites.precision[own].sqrt(), sites.shift[own]
        values, vectors = torch.linalg.eigh(root[:, None] * covariance * root)
        reach = covariance * root @ vectors  # C T^½ U
        left = 1 / (1 - values.clamp(max=_MOST_KNOWN))
        moved = logit[own] - covariance @ shift
        mean[own] = moved + reach @ (left * (vectors.mT @ (root * moved)))
        variance[own] = covariance.diagonal() + reach.square() @ left
    variance = variance.clamp_min(0)
    return mean, variance if noise is None else variance + noise


def _members(groups: Groups) -> Iterable[np.ndarray]:
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
