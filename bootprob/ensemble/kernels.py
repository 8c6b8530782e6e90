"""Kernels as a fitted state holds them: what differs from model to model, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bootprob.preparation.grids import grid_of
from bootprob.runtime.arrays import Floats
from bootprob_gpu.inputs import InputError
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.named import kernel_function, spoken_name
from bootprob_gpu.kernels.views import ColumnViews, ViewKernels, ViewSum

__all__ = [
    "arrays_of",
    "described",
    "kernel_of",
    "kernel_of_posterior",
    "shares_of_kernels",
    "spoken_kernels",
]


def described(kernel: KernelFunction) -> dict[str, Any] | None:
    """What `kernel_` says of a kernel."""
    if kernel.name in ("linear", "rbf"):
        return None
    return {"kernel": kernel.name, **kernel.others}


def arrays_of(kernel: KernelFunction) -> dict[str, NDArray[Any]] | None:
    """What `views_` holds of a kernel; None but for kernels of views."""
    if not isinstance(kernel, ViewKernels):
        return None
    return {name: each.cpu().numpy() for name, each in kernel.of_columns.arrays().items()}


def kernel_of(
    gamma: Floats | None,
    stored: Mapping[str, Any] | None,
    views: Mapping[str, NDArray[Any]] | None,
    feature_map: Mapping[str, NDArray[Any]] | None,
) -> KernelFunction:
    """The kernel that `gamma_`, `kernel_`, `views_` and `feature_map_` of a fitted state are of.

    Raises
    ------
    InputError
        They make no kernel.
    """
    if stored is None:
        grid = None if gamma is None else grid_of(gamma)
        return kernel_function("linear" if grid is None else "rbf", grid)
    if stored.get("kernel") != ViewKernels.name:
        return kernel_function(gamma=None if gamma is None else grid_of(gamma), **stored)
    families, seen = stored.get("families", ()), stored.get("views", ())
    shares = None
    if feature_map:
        if gamma is not None or {"gamma", "shares"} - feature_map.keys():
            raise InputError("feature_map_ is of no sum of kernels")
        gamma, shares = feature_map["gamma"], feature_map["shares"]
    if gamma is None or not views or not families or len(gamma) % len(families):
        raise InputError("gamma_, kernel_ and views_ do not belong together")
    of_each = gamma.reshape(len(families), -1)
    if (of_each != of_each[:, :1]).any():
        raise InputError("gamma_ is not the same for all models of a kernel")
    if any((np.diff(views[name]) < 0).any() for name in ("knots", "thresholds")):
        raise InputError("knots and thresholds of views_ do not ascend")
    kernels = ViewKernels(
        gamma=torch.from_numpy(of_each[:, 0].copy()),
        families=tuple(families),
        views=tuple(seen),
        of_columns=ColumnViews(**{name: torch.from_numpy(each) for name, each in views.items()}),
    )
    return kernels if shares is None else kernels.summed(torch.from_numpy(shares))


def kernel_of_posterior(views: Mapping[str, NDArray[Any]] | None) -> ViewKernels:
    """What the composite posterior needs to know of kernels: the views of the columns.

    Raises
    ------
    InputError
        They make none.
    """
    found = kernel_of(
        np.zeros(1), {"kernel": ViewKernels.name, "families": ["linear"], "views": ["columns"]},
        views, None,
    )  # fmt: skip
    assert isinstance(found, ViewKernels)
    return found


def spoken_kernels(kernel: KernelFunction) -> list[str]:
    """What each kernel of a grid is called, "RBF on normal scores" or "linear"; length G."""
    if not isinstance(kernel, ViewKernels):
        return [spoken_name(kernel.name)] * kernel.n_values
    of_each = zip(kernel.families, kernel.views, strict=True)
    return [f"{spoken_name(family)} on {_spoken_view(view)}" for family, view in of_each]


def _spoken_view(view: str) -> str:
    return view.replace("scores", "normal scores").replace("components", "principal components")


def shares_of_kernels(
    kernel: KernelFunction, weights: Floats, posterior: float
) -> dict[str, float]:
    """Weight of each kind of kernel over its γ and C, and of the posterior.

    Parameters
    ----------
    kernel : KernelFunction
    weights : ndarray, shape (R,)
        Of all models, those of one kernel together.
    posterior : float
        Its share beside all machines; 0 where it has none.
    """
    found = {"posterior": posterior} if posterior else {}
    if isinstance(kernel, ViewSum):
        of_each = kernel.shares.tolist()
    else:
        of_each = weights.reshape(kernel.n_values, -1).sum(axis=1).tolist()
    for name, own in zip(spoken_kernels(kernel), of_each, strict=True):
        found[name] = found.get(name, 0.0) + (1 - posterior) * own
    return found
