"""The grids of C and γ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats
from bootprob_gpu.inputs import InputError, positive_grid
from bootprob_gpu.kernels.named import KERNELS

__all__ = [
    "DEFAULT_C",
    "GAMMA_MULTIPLES",
    "PAPER_GAMMA",
    "c_grid",
    "check_rule",
    "gamma_grid",
    "grid_of",
]


DEFAULT_C = tuple(2.0**k for k in range(-5, 6))
"""The thesis's eleven values, 2⁻⁵ … 2⁵."""

GAMMA_MULTIPLES = tuple(2.0**k for k in range(-5, 6))
"""What ``gamma="grid"`` multiplies the median rule by, 2⁻⁵ … 2⁵: eleven values of γ."""

PAPER_GAMMA = tuple(2.0**k for k in range(-5, 6))
"""The thesis's γ in chapters 2 (2.3.3) and 4, 2⁻⁵ … 2⁵; its chapter 3 has no RBF kernel.

They are absolute. On p standardised columns squared distances are about 2p, so that with thirty
columns any two rows are strangers to all but the smallest of them; `GAMMA_MULTIPLES` follow the
data instead.
"""


def c_grid(C: float | ArrayLike | None, *, coarse: bool = False) -> Floats:
    """Values of C, shape (n_C,): the default grid for None, one number, or those given.

    Of the default grid every second value is enough, `coarse`, where models are mixed; given ones
    are put in order then.
    """
    by_default = DEFAULT_C[::2] if coarse else DEFAULT_C
    grid = _positive(by_default if C is None else C, "C")
    return np.unique(grid) if coarse else grid


def gamma_grid(gamma: str | float | ArrayLike, rows: Floats, kernel: str = "rbf") -> Floats:
    """Values of γ, shape (n_gamma,): by a rule on the rows as the kernel sees them, or given.

    Parameters
    ----------
    gamma : {"scale", "median", "grid"}, float or array_like, shape (n_gamma,)
        "grid": the median rule times 2⁻⁵ … 2⁵.
    rows : ndarray, shape (n, p)
        What the rules look at.
    kernel : str, default "rbf"
        Whose rules they are.
    """
    if isinstance(gamma, str):
        rules = KERNELS[kernel].gamma_rules
        if gamma == "grid":
            return rules["median"](rows) * np.array(GAMMA_MULTIPLES)
        return np.array([rules[gamma](rows)])
    return _positive(gamma, "gamma")


def _positive(values: float | ArrayLike, name: str) -> Floats:
    """As `positive_grid`, whose error is the engine's."""
    try:
        return positive_grid(values, name)
    except InputError as error:
        raise DataError(str(error)) from None


def check_rule(gamma: Any, kernel: str) -> None:
    """Refuse rules for γ, as `gamma_grid` takes them, that do not suit a kernel."""
    by_distances = isinstance(gamma, str) and gamma != "scale"
    if by_distances and "median" not in KERNELS[kernel].gamma_rules:
        raise DataError(
            f"gamma={gamma!r} goes by the distances that RBF kernels see, and kernel is "
            f"{kernel!r}; give 'scale' or numbers."
        )


def grid_of(per_model: Floats) -> Floats:
    """Recover the grid of γ from the γ of each model, shape (n_gamma,).

    Models of one γ stand together; equal neighbours in the grid come back as one, which changes
    nothing: they share their kernel.
    """
    starts = np.flatnonzero(np.diff(per_model, prepend=np.nan) != 0)
    together = np.gcd.reduce(np.diff(starts, append=len(per_model)))
    return per_model[::together]
