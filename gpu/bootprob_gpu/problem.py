"""The batch of weighted support vector machines to be trained, checked before any work is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["InputError", "Kernel", "Problem"]

Kernel = Literal["linear", "rbf"]
Floats = NDArray[np.float64]

LARGEST = 1e100  # numbers beyond this overflow when they are squared and summed


class InputError(ValueError):
    """The engine was given something that it cannot train; the message says what and why."""


@dataclass(frozen=True, init=False)
class Problem:
    """B × R weighted support vector machines over the same rows.

    Model (b, r) minimises, in scikit-learn's convention,

    ``½ ‖w‖² + Σ_i u_bri · max(0, 1 − y_i (wᵀ φ(x_i / scale_b) + β))``

    where ``φ`` is the kernel's feature map, the intercept ``β`` is free, and the dual variables
    live in the box ``0 ≤ a_i ≤ u_bri``. The box follows the rule
    ``u_bri = C_r · counts_bi · row_weight_i`` unless `upper` is given.

    Parameters
    ----------
    X : array_like, shape (n, p)
        The rows, finite.
    y : array_like, shape (n,) or (B, n)
        Labels, −1 or +1; of all replicates, or of each its own (kept in 8 bits). So pairs of
        several classes stand in one batch: the rows of other classes have count 0 there, and any
        label.
    counts : array_like of int, shape (B, n)
        How often each row occurs in each replicate; kept in the integer type given, so that a
        narrow one saves memory.
    C : array_like, shape (n_C,)
        The grid of C, positive.
    kernel : {"linear", "rbf"}, default "linear"
        ``x·z`` or ``exp(−γ ‖x − z‖²)``.
    gamma : array_like, shape (n_gamma,), optional
        The grid of γ, positive; required for "rbf", refused for "linear".
    row_weight : array_like, shape (n,), optional
        Class weight × sample weight of each row, ≥ 0; default 1.
    upper : array_like, shape (B, R, n), optional
        Box bounds in place of the rule, ≥ 0. May be a memory map: it is read block by block.
    scale : array_like, shape (p,) or (B, p), optional
        Replicate b sees ``x / scale_b``; default 1. A centre would change nothing: the linear
        kernel has a free intercept and the RBF kernel sees differences only.

    Attributes
    ----------
    C_per_model, gamma_per_model : ndarray of shape (R,)
        The grid laid out model by model: ``r = index_of_gamma · n_C + index_of_C``;
        `gamma_per_model` is None for the linear kernel.

    Raises
    ------
    InputError
        If anything above does not hold.
    """

    X: Floats
    y: NDArray[Any]
    counts: NDArray[np.integer]
    C: Floats
    kernel: Kernel
    gamma: Floats | None
    row_weight: Floats
    upper: NDArray[np.floating] | None
    scale: Floats

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        counts: ArrayLike,
        C: ArrayLike,
        *,
        kernel: Kernel = "linear",
        gamma: ArrayLike | None = None,
        row_weight: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        X = _floats(X, "X", ndim=2)
        n, p = X.shape
        if n == 0 or p == 0:
            raise InputError(f"X has shape {X.shape}; give at least one row and one column.")
        counts = _counts(counts, n)
        y = _labels(y, counts.shape)
        if kernel not in ("linear", "rbf"):
            raise InputError(f"kernel is {kernel!r}; give 'linear' or 'rbf'.")
        C = _grid(C, "C")
        if kernel == "linear" and gamma is not None:
            raise InputError(
                "gamma was given with the linear kernel, which has none; leave it out."
            )
        if kernel == "rbf" and gamma is None:
            raise InputError("The RBF kernel needs gamma: give one positive number or a grid.")
        gammas = None if gamma is None else _grid(gamma, "gamma")
        weight = np.ones(n) if row_weight is None else _floats(row_weight, "row_weight", shape=(n,))
        if (weight < 0).any():
            raise InputError(
                f"row_weight has a negative entry ({weight.min():g}); give weights ≥ 0."
            )
        B, R = len(counts), len(C) * (1 if gammas is None else len(gammas))
        if upper is not None:
            upper = np.asanyarray(upper)
            if upper.shape != (B, R, n):
                raise InputError(
                    f"upper has shape {upper.shape}; it must be (B, R, n) = {B, R, n}."
                )
            if upper.dtype.kind not in "fiu":
                raise InputError(f"upper has dtype {upper.dtype}; give real numbers.")
            for b in range(B):  # replicate by replicate: upper may be larger than memory
                if not ((upper[b] >= 0).all() and (upper[b] <= LARGEST).all()):
                    raise InputError(
                        f"upper[{b}] has a negative, huge or non-finite entry; give bounds ≥ 0."
                    )
        if scale is None:
            scale = np.ones(p)
        scale = _floats(scale, "scale")
        if scale.shape not in ((p,), (B, p)):
            raise InputError(
                f"scale has shape {scale.shape}; give (p,) = {(p,)} or (B, p) = {(B, p)}."
            )
        if not (scale > 0).all():
            raise InputError("scale has an entry that is not positive; use 1 for constant columns.")
        largest = np.maximum(X.max(axis=0), -X.min(axis=0))
        with np.errstate(over="ignore"):
            reach = max(largest.max(), (largest / scale).max())
            bound = C.max() * float(counts.max()) * weight.max() if upper is None else 0.0
        if reach > LARGEST:
            raise InputError(
                f"X or X / scale reaches {reach:.1e}, and its squares would overflow; "
                "standardise the columns."
            )
        if C.min() < 1 / LARGEST:
            raise InputError(f"C is as small as {C.min():.1e}; give larger numbers.")
        if bound > LARGEST:
            raise InputError(f"C · counts · row_weight reaches {bound:.1e}; give smaller numbers.")
        for name, value in (
            ("X", X), ("y", y), ("counts", counts), ("C", C), ("kernel", kernel),
            ("gamma", gammas), ("row_weight", weight), ("upper", upper), ("scale", scale),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def n_replicates(self) -> int:
        """Number of bootstrap replicates, B."""
        return len(self.counts)

    @property
    def n_models(self) -> int:
        """Number of models in each replicate, R = n_gamma · n_C."""
        return len(self.C_per_model)

    @property
    def C_per_model(self) -> Floats:  # noqa: N802
        """C of each of the R models, shape (R,)."""
        return np.tile(self.C, 1 if self.gamma is None else len(self.gamma))

    @property
    def gamma_per_model(self) -> Floats | None:
        """γ of each of the R models, shape (R,), or None for the linear kernel."""
        return None if self.gamma is None else np.repeat(self.gamma, len(self.C))

    @property
    def shares_scale(self) -> bool:
        """Whether all replicates see the same features, so that one Gram matrix serves them."""
        return self.scale.ndim == 1

    def take(self, replicates: slice) -> Problem:
        """Some replicates as a batch of their own; all of them are this very object."""
        if replicates == slice(0, self.n_replicates):
            return self
        return Problem(
            self.X,
            self.y if self.shares_labels else self.y[replicates],
            self.counts[replicates],
            self.C,
            kernel=self.kernel,
            gamma=self.gamma,
            row_weight=self.row_weight,
            upper=None if self.upper is None else self.upper[replicates],
            scale=self.scale if self.shares_scale else self.scale[replicates],
        )

    def scale_of(self, replicates: slice) -> Floats:
        """Scale of some replicates, shape (b, p)."""
        count = len(range(*replicates.indices(self.n_replicates)))
        if self.shares_scale:
            return np.broadcast_to(self.scale, (count, self.X.shape[1]))
        return self.scale[replicates]

    @property
    def shares_labels(self) -> bool:
        """Whether a row has the same label in all replicates."""
        return self.y.ndim == 1

    def y_of(self, replicates: slice) -> Floats:
        """Labels in some replicates, shape (n,), or (b, n) where each has its own."""
        return self.y if self.shares_labels else self.y[replicates].astype(np.float64)

    def upper_of(self, replicates: slice) -> Floats:
        """Box bounds of some replicates, shape (b, R, n); made on demand, never all at once."""
        if self.upper is not None:
            return np.asarray(self.upper[replicates], dtype=np.float64)
        mass = self.counts[replicates] * self.row_weight
        return self.C_per_model[None, :, None] * mass[:, None, :]


def _floats(
    values: ArrayLike, name: str, *, ndim: int | None = None, shape: tuple[int, ...] | None = None
) -> Floats:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"dtype {array.dtype}")
        array = np.ascontiguousarray(array, dtype=np.float64) if array.ndim else array.astype(float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array of real numbers ({error}).") from None
    if ndim is not None and array.ndim != ndim:
        raise InputError(f"{name} has shape {array.shape}; it must have {ndim} dimensions.")
    if shape is not None and array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}; it must be {shape}.")
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()  # needs no array of answers, unlike a look at every number
    if not np.isfinite(total) and not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise InputError(f"{name} has NaN or infinity, first at {where}; impute or drop such rows.")
    return array


def _grid(values: ArrayLike, name: str) -> Floats:
    grid = np.atleast_1d(_floats(values, name))
    if grid.ndim != 1 or grid.size == 0 or not (grid > 0).all():
        raise InputError(f"{name} is {grid!r}; give one or more positive numbers.")
    return grid


def _labels(values: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """−1 or +1, for `shape` = (B, n): float64 (n,), or in 8 bits (B, n)."""
    labels = np.asarray(values)
    if labels.dtype.kind not in "iu":
        labels = _floats(labels, "y")
    if labels.shape not in (shape, shape[1:]):
        raise InputError(
            f"y has shape {labels.shape}; it must be (n,) = {shape[1:]}, or (B, n) = {shape} for "
            "labels of each replicate."
        )
    if not ((labels == 1) | (labels == -1)).all():
        raise InputError(
            f"y holds {np.unique(labels)[:5]}; the engine takes the labels -1 and +1 only."
        )
    return labels.astype(np.float64 if labels.ndim == 1 else np.int8)


def _counts(values: ArrayLike, n: int) -> NDArray[np.integer]:
    """Integers ≥ 0, as they come: nothing of the size of counts is made of them to check them."""
    counts = np.asarray(values)
    if counts.dtype.kind not in "iu":
        counts = _floats(counts, "counts")
    if counts.ndim != 2 or counts.shape[1] != n or len(counts) == 0:
        raise InputError(
            f"counts has shape {counts.shape}; it must be (B, n) with n = {n} and B ≥ 1."
        )
    if counts.min() < 0:
        raise InputError(f"counts has a negative entry ({counts.min()}); counts are ≥ 0.")
    if counts.dtype.kind == "f":
        if counts.max() > 2**31 or any((row % 1 != 0).any() for row in counts):
            raise InputError(
                "counts has fractional or huge entries; give how often each row occurs, and put "
                "weights into row_weight."
            )
        counts = counts.astype(np.uint32)
    return counts
