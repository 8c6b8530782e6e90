"""The batch of weighted support vector machines to be trained, checked before any work is done."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob_gpu.inputs import LARGEST, InputError, finite_floats, positive_grid
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.named import Kernel, kernel_function

__all__ = ["Problem"]

Floats = NDArray[np.float64]


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
    C : array_like, shape (n_C,) or (n_gamma, n_C)
        The grid of C, positive; for all γ, or for each its own.
    kernel : str or KernelFunction, default "linear"
        "linear", "rbf", "laplacian", "poly" or "precomputed":
        ``x·z``, ``exp(−γ ‖x − z‖²)``, ``exp(−γ ‖x − z‖₁)``, ``(γ x·z + coef0)^degree``,
        or values that are made already: then X is their (n, n) matrix for the training rows,
        symmetric and positive semidefinite, and rows to score are their values with the training
        rows, (m, n).
    gamma : array_like, shape (n_gamma,), optional
        The grid of γ, positive; required for "rbf", "laplacian" and "poly", refused for the others.
    degree : int, optional
        Of "poly"; default 3.
    coef0 : float, optional
        Of "poly", ≥ 0; default 0.
    row_weight : array_like, shape (n,), optional
        Class weight × sample weight of each row, ≥ 0; default 1.
    upper : array_like, shape (B, R, n), optional
        Box bounds in place of the rule, ≥ 0. May be a memory map: it is read block by block.
    scale : array_like, shape (p,) or (B, p), optional
        Replicate b sees ``x / scale_b``; default 1, and nothing else with "precomputed". A centre
        would change nothing for the linear kernel, which has a free intercept, and for RBF, which
        sees differences only; the rows of "poly" should come centred.

    Attributes
    ----------
    kernel_function : KernelFunction
        The kernel with its parameters; `kernel` is its name, and `gamma` its grid, or None.
    C_per_model, gamma_per_model : ndarray of shape (R,)
        The grid laid out model by model: ``r = index_of_gamma · n_C + index_of_C``;
        `gamma_per_model` is None for a kernel without γ.

    Raises
    ------
    InputError
        If anything above does not hold.

    Examples
    --------
    >>> from bootprob_gpu import Problem
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
    >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
    >>> problem = Problem(X, y, counts, C=[0.1, 1.0])
    >>> problem.n_replicates, problem.n_models, problem.C_per_model
    (2, 2, array([0.1, 1. ]))
    """

    X: Floats
    y: NDArray[Any]
    counts: NDArray[np.integer]
    C: Floats
    kernel_function: KernelFunction
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
        kernel: Kernel | KernelFunction = "linear",
        gamma: ArrayLike | None = None,
        degree: int | None = None,
        coef0: float | None = None,
        row_weight: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        X = finite_floats(X, "X", ndim=2)
        n, p = X.shape
        if n == 0 or p == 0:
            raise InputError(f"X has shape {X.shape}; give at least one row and one column.")
        counts = _counts(counts, n)
        y = _labels(y, counts.shape)
        function = kernel_function(kernel, gamma, degree=degree, coef0=coef0)
        C = _grid_of(C, function.n_values)
        weight = (
            np.ones(n)
            if row_weight is None
            else finite_floats(row_weight, "row_weight", shape=(n,))
        )
        if (weight < 0).any():
            raise InputError(
                f"row_weight has a negative entry ({weight.min():g}); give weights ≥ 0."
            )
        B, R = len(counts), C.shape[-1] * function.n_values
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
        scale = np.ones(p) if scale is None else finite_floats(scale, "scale")
        if not function.has_features and (scale.ndim > 1 or (scale != 1).any()):
            raise InputError(
                f"scale was given with the {function.name} kernel, whose columns are no features; "
                "leave it out."
            )
        if scale.shape not in ((p,), (B, p)):
            raise InputError(
                f"scale has shape {scale.shape}; give (p,) = {(p,)} or (B, p) = {(B, p)}."
            )
        if not (scale > 0).all():
            raise InputError("scale has an entry that is not positive; use 1 for constant columns.")
        if scale.max() > LARGEST:
            raise InputError(f"scale reaches {scale.max():.1e}, whose square would overflow.")
        largest = np.maximum(X.max(axis=0), -X.min(axis=0))
        with np.errstate(over="ignore"):
            reach = max(largest.max(), (largest / scale).max())
            bound = C.max() * float(counts.max()) * weight.max() if upper is None else 0.0
        if reach > LARGEST:
            raise InputError(
                f"X or X / scale reaches {reach:.1e}, and its squares would overflow; "
                "standardise the columns."
            )
        if bound > LARGEST:
            raise InputError(f"C · counts · row_weight reaches {bound:.1e}; give smaller numbers.")
        X = function.checked(X, scale)
        self._set(
            X=X, y=y, counts=counts, C=C, kernel_function=function, row_weight=weight, upper=upper,
            scale=scale,
        )  # fmt: skip

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def kernel(self) -> str:
        """Name of the kernel."""
        return self.kernel_function.name

    @property
    def gamma(self) -> Floats | None:
        """Grid of γ, shape (n_gamma,), or None for a kernel without γ."""
        gamma = self.kernel_function.gamma
        return None if gamma is None else gamma.numpy()

    @property
    def n_replicates(self) -> int:
        """Number of bootstrap replicates, B."""
        return len(self.counts)

    @cached_property
    def n_models(self) -> int:
        """Number of models in each replicate, R = n_gamma · n_C."""
        return len(self.C_per_model)

    @cached_property
    def C_per_model(self) -> Floats:  # noqa: N802
        """C of each of the R models, shape (R,)."""
        return np.broadcast_to(self.C, (self.kernel_function.n_values, self.C.shape[-1])).flatten()

    @property
    def gamma_per_model(self) -> Floats | None:
        """γ of each of the R models, shape (R,), or None for a kernel without γ."""
        return None if self.gamma is None else np.repeat(self.gamma, self.C.shape[-1])

    @cached_property
    def shares_scale(self) -> bool:
        """Whether all replicates see the same features, so that one Gram matrix serves them."""
        return self.scale.ndim == 1

    def take(self, replicates: slice) -> Problem:
        """Some replicates as a batch of their own; all of them are this very object.

        Parameters
        ----------
        replicates : slice
            Which of them, counted from the first.

        Examples
        --------
        >>> from bootprob_gpu import Problem
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
        >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
        >>> problem = Problem(X, y, counts, C=[0.1, 1.0])
        >>> problem.take(slice(1, 2)).counts.tolist()
        [[2, 0, 1, 1]]
        """
        if replicates == slice(0, self.n_replicates):
            return self
        taken = object.__new__(Problem)  # what is checked is not checked again
        taken._set(
            **{field.name: getattr(self, field.name) for field in fields(self)}
            | {
                "y": self.y if self.shares_labels else self.y[replicates],
                "counts": self.counts[replicates],
                "upper": None if self.upper is None else self.upper[replicates],
                "scale": self.scale if self.shares_scale else self.scale[replicates],
            }
        )
        return taken

    def scale_of(self, replicates: slice) -> Floats:
        """Scale of some replicates, shape (b, p).

        Parameters
        ----------
        replicates : slice
            Which of them, counted from the first.

        Examples
        --------
        >>> from bootprob_gpu import Problem
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
        >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
        >>> problem = Problem(X, y, counts, C=[0.1, 1.0])
        >>> problem.scale_of(slice(0, 2)).tolist()
        [[1.0], [1.0]]
        """
        count = len(range(*replicates.indices(self.n_replicates)))
        if self.shares_scale:
            return np.broadcast_to(self.scale, (count, self.X.shape[1]))
        return self.scale[replicates]

    @cached_property
    def shares_labels(self) -> bool:
        """Whether a row has the same label in all replicates."""
        return self.y.ndim == 1

    def y_of(self, replicates: slice) -> Floats:
        """Labels in some replicates, shape (n,), or (b, n) where each has its own.

        Parameters
        ----------
        replicates : slice
            Which of them, counted from the first.

        Examples
        --------
        >>> from bootprob_gpu import Problem
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
        >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
        >>> problem = Problem(X, y, counts, C=[0.1, 1.0])
        >>> problem.y_of(slice(0, 1))  # all replicates share their labels
        array([-1., -1.,  1.,  1.])
        """
        return self.y if self.shares_labels else self.y[replicates].astype(np.float64)

    def upper_of(self, replicates: slice) -> Floats:
        """Box bounds of some replicates, shape (b, R, n); made on demand, never all at once.

        Parameters
        ----------
        replicates : slice
            Which of them, counted from the first.

        Examples
        --------
        >>> from bootprob_gpu import Problem
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
        >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
        >>> problem = Problem(X, y, counts, C=[0.1, 1.0])
        >>> problem.upper_of(slice(0, 1)).shape  # 0 ≤ a ≤ C · counts, of one replicate
        (1, 2, 4)
        """
        if self.upper is not None:
            return np.ascontiguousarray(self.upper[replicates], dtype=np.float64)
        mass = self.counts[replicates] * self.row_weight
        return self.C_per_model[None, :, None] * mass[:, None, :]


def _grid_of(values: ArrayLike, n_values: int) -> Floats:
    """C of all values of a kernel's grid, (n_C,), or of each, (n_values, n_C)."""
    if np.ndim(values) < 2:
        return positive_grid(values, "C")
    grid = finite_floats(values, "C", ndim=2)
    if len(grid) != n_values:
        raise InputError(
            f"C has shape {grid.shape}; give (n_C,), or a row for each of the kernel's {n_values}."
        )
    positive_grid(grid.ravel(), "C")
    return grid


def _labels(values: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """−1 or +1, for `shape` = (B, n): float64 (n,), or in 8 bits (B, n)."""
    labels = np.asarray(values)
    if labels.dtype.kind not in "iu":
        labels = finite_floats(labels, "y")
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
        counts = finite_floats(counts, "counts")
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
