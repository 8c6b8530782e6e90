"""Feature maps: columns whose inner products come close to an RBF kernel.

Where n × n Gram matrices are too large, linear models on D such columns take the place of RBF
models: time and memory grow with n · D² and n · D instead of n². The price is the difference
between the kernel and the inner products, which `kernel_error` measures.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal, Self

import numpy as np
import torch

from bootprob.exceptions import DataError
from bootprob.preparation.view_map import ViewMap
from bootprob.runtime.arrays import Floats
from bootprob_gpu.hardware.memory import free_bytes

__all__ = [
    "EXACT_ROWS",
    "FeatureMap",
    "check_exact_rows",
    "fit_feature_map",
    "kernel_error",
    "warn_of_coarse_map",
]

Kind = Literal["nystroem", "random-features"]

EXACT_ROWS = 20_000
"""Rows up to which RBF models are trained on the kernel itself without being asked twice."""

_NUMBERS_AT_ONCE = 2**21  # mapped numbers made at a time, 16 MiB
_SAMPLED_ROWS = 300  # rows whose kernel is compared: 45,150 pairs
# Of 96 maps of four tables, all 59 with a relative error above this moved the probabilities by more
# than another seed did, and 18 of the 37 below (tests/promises/test_feature_map_error.py).
_COARSE = 0.1


@dataclass(frozen=True)
class FeatureMap:
    """A fitted map of rows to D columns, with ``map(x) · map(z) ≈ exp(−γ ‖x − z‖²)``.

    Attributes
    ----------
    gamma : float
        γ of the kernel.
    arrays : mapping of str to ndarray
        What the map is made of. Nyström: "landmarks" (D, p), rows of the table, and
        "normalization" (D, D), the inverse square root of their kernel. Random features:
        "frequencies" (p, D) and "phases" (D,).
    """

    gamma: float
    arrays: Mapping[str, Floats]

    @classmethod
    def fit(
        cls,
        kind: Kind,
        rows: Floats,
        gamma: float,
        n_components: int,
        random_state: np.random.RandomState,
    ) -> Self:
        """Fit scikit-learn's `Nystroem` or `RBFSampler`.

        Parameters
        ----------
        kind : {"nystroem", "random-features"}
            Landmarks drawn from the rows (Williams and Seeger 2001), or random Fourier features
            (Rahimi and Recht 2007), which do not look at the rows.
        rows : ndarray, shape (n, p)
            Rows as the kernel sees them.
        gamma : float
            γ of the kernel.
        n_components : int
            Columns of the result, D.
        random_state : RandomState
            Source of the landmarks or frequencies.

        Raises
        ------
        DataError
            If more landmarks are asked for than there are rows.
        """
        from sklearn.kernel_approximation import Nystroem, RBFSampler

        if kind == "nystroem":
            if n_components > len(rows):
                raise DataError(
                    f"n_components is {n_components}, but there are only {len(rows)} rows (of "
                    "positive weight) to draw landmarks from; give fewer, or leave feature_map "
                    "out and train on the kernel itself."
                )
            nystroem = Nystroem(gamma=gamma, n_components=n_components, random_state=random_state)
            nystroem.fit(rows)
            return cls(
                gamma,
                {"landmarks": nystroem.components_, "normalization": nystroem.normalization_},
            )
        sampler = RBFSampler(gamma=gamma, n_components=n_components, random_state=random_state)
        sampler.fit(rows)
        return cls(
            gamma,
            {"frequencies": sampler.random_weights_, "phases": sampler.random_offset_},
        )

    @property
    def n_components(self) -> int:
        """Columns that a row is mapped to, D."""
        return len(self.arrays["landmarks" if "landmarks" in self.arrays else "phases"])

    def kernel(self, rows: Floats, others: Floats) -> Floats:
        """The kernel that it approximates, between rows (m, p) and others (n, p), (m, n)."""
        return _kernel(rows, others, self.gamma)

    def transform(self, rows: Floats) -> Floats:
        """Map rows (m, p), as the kernel sees them, to columns (m, D)."""
        mapped = np.empty((len(rows), self.n_components))
        step = max(1, _NUMBERS_AT_ONCE // self.n_components)
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            mapped[block] = self._transform_block(rows[block])
        return mapped

    def _transform_block(self, rows: Floats) -> Floats:
        if "landmarks" in self.arrays:
            kernel = _kernel(rows, self.arrays["landmarks"], self.gamma)
            return kernel @ self.arrays["normalization"].T
        projected = rows @ self.arrays["frequencies"] + self.arrays["phases"]
        return np.sqrt(2 / self.n_components) * np.cos(projected)


def fit_feature_map(
    kind: Kind,
    rows: Floats,
    gamma: float,
    n_components: int,
    random_state: np.random.RandomState,
) -> tuple[FeatureMap, dict[str, float]]:
    """Fit a feature map and measure it on the same rows; see `FeatureMap.fit`, `kernel_error`."""
    feature_map = FeatureMap.fit(kind, rows, float(gamma), n_components, random_state)
    return feature_map, kernel_error(feature_map, rows, random_state)


def kernel_error(
    feature_map: FeatureMap | ViewMap, rows: Floats, random_state: np.random.RandomState
) -> dict[str, float]:
    """How far the inner products are from the kernel, on a sample of rows.

    Up to 300 rows are drawn, none of them a landmark (whose own error is 0) unless all rows are,
    and the kernel K of every pair, each row with itself included, is compared with that of the
    map, K̃.

    Parameters
    ----------
    feature_map : FeatureMap or ViewMap
        Fitted.
    rows : ndarray, shape (n, p)
        Rows as the kernel sees them.
    random_state : RandomState
        Source of the sample.

    Returns
    -------
    dict of str to float
        "relative": the root mean square of K̃ − K divided by that of K; "root_mean_square" and
        "largest": of ``|K̃ − K|``, where K lies between 0 and 1; "n_rows": rows drawn.
    """
    held = {row.tobytes() for row in feature_map.arrays.get("landmarks", ())}
    order = random_state.permutation(len(rows))
    unseen = (i for i in order if rows[i].tobytes() not in held)
    picked = list(islice(unseen, _SAMPLED_ROWS)) or order[:_SAMPLED_ROWS]
    kernel = feature_map.kernel(rows[picked], rows[picked])
    mapped = feature_map.transform(rows[picked])
    difference = mapped @ mapped.T - kernel
    root_mean_square = np.sqrt(np.square(difference).mean())
    return {
        "relative": float(root_mean_square / np.sqrt(np.square(kernel).mean())),
        "root_mean_square": float(root_mean_square),
        "largest": float(np.abs(difference).max()),
        "n_rows": len(picked),
    }


def _kernel(rows: Floats, others: Floats, gamma: float) -> Floats:
    # This and the maps above load half of scikit-learn: only when there is a map.
    from sklearn.metrics.pairwise import rbf_kernel

    return rbf_kernel(rows, others, gamma=gamma)


def check_exact_rows(
    n: int, n_gamma: int, device: torch.device, memory_limit: int | None, kernel: str = "rbf"
) -> None:
    """Refuse to train models on the kernel itself where its matrices would be too large.

    Up to 20,000 rows nothing is checked. Beyond, a `memory_limit` must have been given that the
    n × n matrices of one bootstrap sample fit into: one of distances and one for each γ.

    Parameters
    ----------
    n : int
        Rows.
    n_gamma : int
        Values of γ.
    device : torch.device
        Where the matrices would lie.
    memory_limit : int or None
        The user's limit in bytes.
    kernel : str, default "rbf"
        Its name.

    Raises
    ------
    DataError
        Names `feature_map`, and the memory needed without it.
    """
    if n <= EXACT_ROWS:
        return
    needed = 8 * n**2 * (1 + n_gamma)
    instead = "feature_map='nystroem'"
    if kernel != "rbf":
        instead = f"kernel='rbf' and {instead}"
    if memory_limit is None:
        raise DataError(
            f"kernel={kernel!r} on {n:,} rows takes at least {needed / 1e9:.0f} GB for the kernel "
            f"matrices of one bootstrap sample; beyond {EXACT_ROWS:,} rows that is not begun "
            f"unasked. Give {instead}, which needs no such matrices; or, to train on "
            f"the kernel itself all the same, a memory_limit of {needed} bytes or more."
        )
    available = free_bytes(device, memory_limit)
    if needed > available:
        raise DataError(
            f"kernel={kernel!r} on {n:,} rows takes at least {needed / 1e9:.0f} GB for the kernel "
            f"matrices of one bootstrap sample, and {available / 1e9:.0f} GB may be used (half of "
            f"what is free on {device}, and no more than memory_limit). Give {instead}, which "
            "needs no such matrices."
        )


def warn_of_coarse_map(error: Mapping[str, float], n_components: int) -> None:
    """Warn of a map whose kernel is off by a tenth or more, and say what to do."""
    if error["relative"] >= _COARSE:
        warnings.warn(
            f"The feature map's kernel is off by {error['relative']:.0%} (root mean square, "
            f"relative to the kernel, on {error['n_rows']} rows), and the probabilities with it. "
            f"Raise n_components (it is {n_components}) or lower gamma.",
            UserWarning,
            stacklevel=5,
        )
