"""From a table to what the machines see: standardised, resampled, and mapped where asked for."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bootprob.ensemble.kernels import arrays_of, described
from bootprob.ensemble.specs import PreparationSpec
from bootprob.ensemble.training.checkpoints import Checkpoint
from bootprob.exceptions import DataError
from bootprob.preparation.bootstrap import bootstrap_counts, draw_entropy
from bootprob.preparation.effort import EFFORTS
from bootprob.preparation.feature_map import FeatureMap, check_exact_rows, fit_feature_map
from bootprob.preparation.grids import c_grid, check_rule, gamma_grid
from bootprob.preparation.large_tables import is_large, samples_of
from bootprob.preparation.standardization import (
    bootstrap_scale,
    center_and_scale,
    scale_of_levels,
)
from bootprob.preparation.view_map import ViewMap
from bootprob.preparation.views import view_kernels
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups
from bootprob.runtime.version import __version__
from bootprob_gpu import Problem, resolve_device
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.linear import Linear
from bootprob_gpu.kernels.named import KERNELS, kernel_function
from bootprob_gpu.kernels.views import ViewKernels, ViewSum

__all__ = ["Prepared", "prepare", "versions"]


@dataclass(frozen=True)
class Prepared:
    """A training table as the machines see it, and its bootstrap samples.

    Attributes
    ----------
    rows : ndarray, shape (n, p)
        Standardised; with a feature map (n, D), mapped.
    unmapped : ndarray, shape (n, p)
        Standardised rows as the kernel sees them, but for scales of each bootstrap sample.
    center, scale : ndarray, shape (p,)
        What standardised them.
    replicate_scale : ndarray, shape (B, p) or (p,)
        As `bootstrap_scale_` of `BootstrapSVC`.
    kernel : KernelFunction
        Of the unmapped rows.
    candidates : KernelFunction
        Before a pilot chose among its parts: what intervals of probabilities may say. Of a large
        table what it chose: what is learned from labels looks better than it is to the evidence.
    few_columns : ViewKernels or None
        All parts: what intervals may say of few columns.
    C : ndarray
        Grid of C.
    counts : ndarray of int, shape (B, n)
        The bootstrap samples.
    redrawn : int
    entropy : list of int
        As returned by, and given to, `bootstrap_counts`.
    drawn : int or None
        Rows that each sample draws, where that is not n.
    groups : ndarray of int, shape (n,), or None
        Of rows that are drawn together.
    feature_map : FeatureMap, ViewMap or None
    feature_map_error : dict or None
    device : torch.device
    likely_C : ndarray, shape (G, n_C), or None
        Weights of all values of C, of each of the kernels that a pilot kept.
    """

    rows: Floats
    unmapped: Floats
    center: Floats
    scale: Floats
    replicate_scale: Floats
    kernel: KernelFunction
    candidates: KernelFunction
    few_columns: ViewKernels | None
    C: Floats
    counts: NDArray[np.unsignedinteger[Any]]
    redrawn: int
    entropy: list[int]
    drawn: int | None
    groups: Groups | None
    feature_map: FeatureMap | ViewMap | None
    feature_map_error: dict[str, float] | None
    device: torch.device
    likely_C: Floats | None = None

    def problem(
        self,
        y: NDArray[Any],
        counts: NDArray[np.unsignedinteger[Any]],
        training_weight: Floats,
    ) -> Problem:
        """What to train; counts may be those of several pairs of classes, one after the other."""
        mapped, scale = self.feature_map is not None, self.replicate_scale
        if scale.ndim > 1 and len(scale) < len(counts):
            scale = np.tile(scale, (len(counts) // len(scale), 1))
        return Problem(
            self.rows,
            y,
            counts,
            self.C,
            kernel=Linear() if mapped else self.kernel,
            row_weight=training_weight,
            scale=None if mapped else scale,
        )

    def attributes(self, problem: Problem) -> dict[str, Any]:
        """Attributes of the fit that say how the table was prepared."""
        C = problem.C_per_model
        gamma = None if isinstance(self.kernel, ViewSum) else self.kernel.gamma
        return {
            "center_": self.center,
            "scale_": self.scale,
            "bootstrap_scale_": self.replicate_scale,
            "entropy_": self.entropy,
            "n_drawn_": self.drawn,
            "n_redrawn_": self.redrawn,
            "groups_": self.groups,
            "C_": C,
            "gamma_": None if gamma is None else np.repeat(gamma.numpy(), len(C) // len(gamma)),
            "kernel_": described(self.kernel),
            "views_": arrays_of(self.kernel),
            "feature_map_": None if self.feature_map is None else dict(self.feature_map.arrays),
            "feature_map_error_": self.feature_map_error,
            "device_": str(self.device),
            "versions_": versions(),
        }


def versions() -> dict[str, str]:
    """What `versions_` says."""
    return {
        "python": platform.python_version(),
        "bootprob": __version__,
        **{name: version(name) for name in ("torch", "numpy", "scikit-learn")},
    }


def prepare(
    spec: PreparationSpec,
    X: Floats,
    codes: NDArray[np.intp],
    weight: Floats,
    *,
    groups: Groups | None = None,
    names: Sequence[str] | None = None,
    levels: Sequence[slice] = (),
    checkpoint: Checkpoint | None = None,
) -> Prepared:
    """Standardise a table, draw its bootstrap samples, and map it where that is asked for.

    Parameters
    ----------
    spec : PreparationSpec
    X : ndarray, shape (n, p)
    codes : ndarray of int, shape (n,)
        Classes, numbered from 0.
    weight : ndarray, shape (n,)
        Row weights.
    groups : ndarray of int, shape (n,), optional
        Of rows that are drawn together, numbered from 0.
    names : sequence of str, optional
        Of the columns, for warnings.
    levels : sequence of slice, optional
        Dummies of a column each that are scaled together, in all bootstrap samples alike.
    checkpoint : Checkpoint, optional
        Whose seed is followed by what is drawn without a `random_state`.
    """
    device = resolve_device(spec.device)
    if not KERNELS.get(spec.kernel, ViewKernels).has_features:
        center, scale, rows = np.zeros(X.shape[1]), np.ones(X.shape[1]), X
    else:
        center, scale = center_and_scale(X, weight, names)
        if spec.kernel == "poly" and spec.standardize is None:
            center = np.zeros_like(center)  # which is about the origin; others are about no point
        for place in levels:
            scale[place] = scale_of_levels(center[place])
        rows = (X - center) / scale
    large = spec.kernel == ViewKernels.name and is_large(int(np.count_nonzero(weight)))
    kernel = _kernel(spec, X, rows, scale, codes if large else None, weight, device)
    if checkpoint is None:
        random_state = check_random_state(spec.random_state)
    else:
        random_state = checkpoint.random_state(spec.random_state)
    entropy = draw_entropy(random_state)
    B, drawn = spec.n_bootstraps, None
    of_views = isinstance(kernel, ViewKernels)
    if large and spec.whole_samples:
        drawn = len(weight)
    elif of_views and not spec.whole_samples:
        B, drawn = samples_of(weight, B, EFFORTS[spec.effort].samples)
    counts, redrawn = bootstrap_counts(codes, weight, range(B), entropy, drawn, groups)
    shared = of_views or spec.feature_map is not None
    if spec.standardize == "bootstrap" and kernel.has_features and not shared:
        replicate_scale = bootstrap_scale(rows, counts, weight)
        for place in levels:
            replicate_scale[:, place] = 1.0
    else:  # dividing standardised rows by 1 / scale takes the standardisation back
        replicate_scale = 1 / scale if spec.standardize is None else np.ones_like(scale)
    unmapped = rows if replicate_scale.ndim > 1 else rows / replicate_scale
    feature_map = error = None
    if spec.feature_map is not None:
        assert kernel.gamma is not None
        # scikit-learn's kernels follow joblib's number of jobs, and their last bits with it.
        with parallel_config("sequential"):
            feature_map, error = fit_feature_map(
                spec.feature_map,
                unmapped[weight > 0],
                kernel.gamma.item(),
                spec.n_components,
                random_state,
            )
        rows = feature_map.transform(unmapped)
    return Prepared(
        rows=rows,
        unmapped=unmapped,
        center=center,
        scale=scale,
        replicate_scale=replicate_scale,
        kernel=kernel,
        candidates=kernel,
        few_columns=kernel if isinstance(kernel, ViewKernels) else None,
        C=c_grid(spec.C, coarse=of_views),
        counts=counts,
        redrawn=redrawn,
        entropy=entropy,
        drawn=drawn,
        groups=groups,
        feature_map=feature_map,
        feature_map_error=error,
        device=device,
    )


def _kernel(
    spec: PreparationSpec,
    X: Floats,
    rows: Floats,
    scale: Floats,
    codes: NDArray[np.intp] | None,
    weight: Floats,
    device: torch.device,
) -> KernelFunction:
    """The kernel, whose γ may follow the rows; checks that it can be trained."""
    if spec.feature_map is not None and spec.kernel != "rbf":
        linear = spec.kernel == "linear"
        why = "the linear kernel needs none" if linear else "it approximates RBF kernels"
        raise DataError(
            f"feature_map is {spec.feature_map!r}, but {why}; give kernel='rbf' or leave "
            "feature_map out."
        )
    if spec.kernel == "auto":
        _check_unasked(spec)
        seen = rows * scale if spec.standardize is None else rows
        return view_kernels(seen, weight, codes)
    known = KERNELS[spec.kernel].parameters
    given: dict[str, Any] = {name: getattr(spec, name) for name in known}
    if "gamma" in known:
        check_rule(spec.gamma, spec.kernel)
        seen = X if spec.standardize is None else rows
        given["gamma"] = gamma_grid(spec.gamma, seen[weight > 0], spec.kernel)
    if spec.feature_map is not None:
        _check_one(given["gamma"])
    elif not KERNELS[spec.kernel].is_linear:
        n_gamma = len(given.get("gamma", [1]))
        check_exact_rows(len(X), n_gamma, device, spec.memory_limit, spec.kernel)
    return kernel_function(spec.kernel, **given)


def _check_unasked(spec: PreparationSpec) -> None:
    """Refuse parameters of a kernel where the kernel is to be chosen."""
    if not (isinstance(spec.gamma, str) and spec.gamma == "scale"):
        raise DataError(
            f"gamma is {spec.gamma!r}, but kernel='auto' chooses its own; leave gamma out, or name "
            "the kernel that it is for."
        )


def _check_one(gamma: Floats) -> None:
    """Refuse what no feature map can be made for."""
    if len(gamma) != 1:
        raise DataError(
            f"gamma gives {len(gamma)} values, but a feature map approximates the kernel of "
            "one; give one γ, and compare several by fitting a model for each."
        )
