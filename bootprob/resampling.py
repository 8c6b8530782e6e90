"""Bootstrap samples as multiplicities of the rows, reproducible replicate by replicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import DataError

__all__ = ["bootstrap_counts", "draw_entropy"]

_LEAST_COMPLETE = 0.01  # share of samples in which every class occurs


def draw_entropy(random_state: np.random.RandomState) -> list[int]:
    """Draw 128 bits of seed, as four integers, from a scikit-learn random state."""
    return [int(word) for word in random_state.randint(0, 2**32, size=4, dtype=np.uint64)]


def bootstrap_counts(
    labels: NDArray[np.bool_] | NDArray[np.integer[Any]],
    weight: NDArray[np.float64],
    replicates: range,
    entropy: Sequence[int],
) -> tuple[NDArray[np.unsignedinteger[Any]], int]:
    """Draw bootstrap samples of n out of n rows with replacement.

    Replicate b has a random stream of its own, so any shard of replicates can be drawn alone
    and the result does not depend on how the work was split. A sample in which a class has no
    weight is drawn again from the same stream.

    Parameters
    ----------
    labels : ndarray of bool or of int from 0 on, shape (n,)
        The class of each row: whether it is the positive one, or its number.
    weight : ndarray, shape (n,)
        Row weights, ≥ 0; each class has some weight.
    replicates : range
        Numbers of the replicates to draw.
    entropy : sequence of int
        Seed of the whole set of replicates.

    Returns
    -------
    counts : ndarray of uint8, shape (len(replicates), n)
        How often each row was drawn; of a wider type only where a row was drawn more than 255
        times.
    redrawn : int
        How many samples were thrown away for want of a class.

    Raises
    ------
    DataError
        If so many classes have so few rows that hardly a sample holds them all.
    """
    n = len(labels)
    usable, codes = weight > 0, labels.astype(np.intp)
    sizes = np.bincount(codes[usable])
    present = sizes > 0
    _check_chances(sizes[present], n)
    counts: NDArray[np.unsignedinteger[Any]] = np.empty((len(replicates), n), dtype=np.uint8)
    redrawn = 0
    for row, b in enumerate(replicates):
        generator = np.random.default_rng(np.random.SeedSequence(list(entropy), spawn_key=(b,)))
        while True:
            drawn = np.bincount(generator.integers(0, n, n), minlength=n)
            inside = (drawn > 0) & usable
            if np.bincount(codes[inside], minlength=len(present))[present].all():
                break
            redrawn += 1
        # The draws of n rows hardly ever repeat one as much as 255 times; were they to, it would
        # not be lost.
        enough = np.promote_types(counts.dtype, np.min_scalar_type(drawn.max()))
        counts = counts.astype(enough, copy=False)
        counts[row] = drawn
    return counts, redrawn


def _check_chances(sizes: NDArray[np.intp], n: int) -> None:
    """Refuse classes that would have samples drawn again for ever."""
    complete = float(np.prod(1 - (1 - sizes / n) ** n))
    if complete < _LEAST_COMPLETE:
        raise DataError(
            f"{len(sizes)} classes, of which the smallest has {sizes.min()} of {n} rows, occur "
            f"together in one of {1 / complete:.3g} bootstrap samples; put rare classes together "
            "or leave them out."
        )
