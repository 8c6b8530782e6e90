"""Bootstrap samples as multiplicities of the rows, reproducible replicate by replicate."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import DataError
from bootprob.preparation.seed_sequences import pcg64_seeds
from bootprob.runtime.groups import Groups
from bootprob_gpu.hardware.numba_choice import numba_loads
from bootprob_gpu.hardware.threads import workers

__all__ = ["bootstrap_counts", "draw_entropy"]

_LOGGER = logging.getLogger("bootprob")
_WORTH_COMPILING = 2**17  # draws: numpy needs some 6 ms, and numba takes longer to load
_WORTH_A_THREAD = 2**20  # draws
_HIGHEST = 255  # in a byte
_LEAST_GROUPS = 50  # of a sample that draws fewer rows than there are
_MOST_THROWN_AWAY = 10_000  # samples, one after the other
_LEAST_COMPLETE = 0.01  # share of samples in which every class occurs


def draw_entropy(random_state: np.random.RandomState) -> list[int]:
    """Draw 128 bits of seed, as four integers, from a scikit-learn random state."""
    return [int(word) for word in random_state.randint(0, 2**32, size=4, dtype=np.uint64)]


def bootstrap_counts(
    labels: NDArray[np.bool_] | NDArray[np.integer[Any]],
    weight: NDArray[np.float64],
    replicates: range,
    entropy: Sequence[int],
    size: int | None = None,
    groups: Groups | None = None,
) -> tuple[NDArray[np.unsignedinteger[Any]], int]:
    """Draw bootstrap samples of n, or fewer, out of n rows with replacement.

    Of rows in groups whole groups are drawn, as many as there are (the cluster bootstrap; A.
    Davison, D. Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8, strategy 1).

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
    size : int, optional
        Rows to draw for a sample; by default n. Fewer are the "m out of n" bootstrap (P. Bickel,
        F. Götze, W. van Zwet, Statistica Sinica 7 (1997) 1–31); of groups, a like share of them,
        but 50 where there are as many.
    groups : ndarray of int, shape (n,), optional
        The group of each row, numbered from 0; by default each is one of its own.

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
        If so many classes have so few rows, or groups, that hardly a sample holds them all.
    """
    n = len(labels)
    units = n if groups is None else int(groups.max()) + 1
    if size is None:
        size = units
    elif groups is not None:
        size = min(units, max(_LEAST_GROUPS, -(-size * units // n)))
    usable, codes = weight > 0, labels.astype(np.intp)
    found = codes[usable]
    if groups is not None:  # a class once a group
        found = np.unique(np.stack([found, groups[usable]]), axis=1)[0]
    sizes = np.bincount(found, minlength=codes.max() + 1)
    present = sizes > 0
    _check_chances(sizes[present], units, size, "rows" if groups is None else "groups")
    needed = np.where(usable, np.cumsum(present)[codes] - 1, -1)
    counts: NDArray[np.unsignedinteger[Any]] = np.empty((len(replicates), n), dtype=np.uint8)
    redrawn = np.full(len(replicates), -1)
    whole = groups is None and size == n
    compilable = whole and 2 <= n < 2**32 and replicates.stop <= 2**32
    if counts.size >= _WORTH_COMPILING and compilable and _compiled_is_numpys():
        _draw_compiled(entropy, replicates, needed, counts, redrawn)
    for row in np.flatnonzero(redrawn < 0).tolist():
        drawn, redrawn[row] = _draw(entropy, replicates[row], needed, size, groups)
        # The draws of n rows hardly ever repeat one as much as 255 times; were they to, it would
        # not be lost.
        enough = np.promote_types(counts.dtype, np.min_scalar_type(drawn.max()))
        counts = counts.astype(enough, copy=False)
        counts[row] = drawn
    return counts, int(redrawn.sum())


def _draw(
    entropy: Sequence[int],
    replicate: int,
    needed: NDArray[np.int64],
    size: int,
    groups: Groups | None = None,
) -> tuple[NDArray[np.intp], int]:
    """One sample that holds every class, and how many were thrown away before it.

    Parameters
    ----------
    entropy : sequence of int
    replicate : int
    needed : ndarray of int, shape (n,)
        Classes of the rows, counted from 0; −1 for rows of no weight.
    size : int
        Rows, or groups, to draw.
    groups : ndarray of int, shape (n,), optional
    """
    n_classes = needed.max() + 1
    n = len(needed) if groups is None else int(groups.max()) + 1
    generator = np.random.default_rng(np.random.SeedSequence(list(entropy), spawn_key=(replicate,)))
    thrown_away = 0
    while True:
        drawn = np.bincount(generator.integers(0, n, size), minlength=n)
        drawn = drawn if groups is None else drawn[groups]
        inside = needed[drawn > 0]
        if np.bincount(inside[inside >= 0], minlength=n_classes).all():
            return drawn, thrown_away
        thrown_away += 1
        if thrown_away == _MOST_THROWN_AWAY:
            raise DataError(
                f"None of {thrown_away:,} bootstrap samples holds all {n_classes} classes, because "
                "whole groups are drawn and the classes are in few or in other groups; give more "
                "groups, or leave rare classes out."
            )


def _draw_compiled(
    entropy: Sequence[int],
    replicates: range,
    needed: NDArray[np.int64],
    counts: NDArray[np.unsignedinteger[Any]],
    redrawn: NDArray[np.int64],
) -> None:
    """Fill in what `_draw` gives, bit for bit, for all replicates.

    Parameters
    ----------
    entropy, replicates, needed
        As for `_draw`.
    counts : ndarray of uint8, shape (B, n)
    redrawn : ndarray of int, shape (B,)
        −1 where a row was drawn more often than a byte can say.
    """
    from bootprob.preparation.bootstrap_compiled import draw_counts  # numba loads slowly

    seeds, n_classes = pcg64_seeds(entropy, replicates), int(needed.max()) + 1

    def draw(rows: slice) -> None:
        draw_counts(seeds[rows], needed, n_classes, counts[rows], redrawn[rows], _HIGHEST)

    parts = max(1, min(workers(), counts.size // _WORTH_A_THREAD))
    if parts == 1:
        draw(slice(None))
        return
    bounds = np.linspace(0, len(counts), parts + 1).astype(int).tolist()
    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(draw, map(slice, bounds[:-1], bounds[1:])))


@cache
def _compiled_is_numpys() -> bool:
    """Whether compiled draws are to be had, and are those of the numpy that is installed.

    numpy keeps a generator's stream, but not what its methods make of it (NEP 19).
    """
    if not numba_loads():
        return False
    needed, entropy, replicates = np.array([0, 1, 0, -1, 1]), [20, 26], range(8)
    counts, redrawn = np.empty((8, 5), dtype=np.uint8), np.empty(8, dtype=np.int64)
    _draw_compiled(entropy, replicates, needed, counts, redrawn)
    asked = [_draw(entropy, b, needed, len(needed)) for b in replicates]
    same = all(
        np.array_equal(ours, drawn) and thrown_away == ours_thrown_away
        for ours, ours_thrown_away, (drawn, thrown_away) in zip(counts, redrawn, asked, strict=True)
    )
    if not same:
        _LOGGER.warning(
            "numpy %s draws integers in a way of its own; bootstrap samples follow it, and take "
            "ten times as long.",
            np.__version__,
        )
    return same


def _check_chances(sizes: NDArray[np.intp], n: int, size: int, units: str) -> None:
    """Refuse classes that would have samples drawn again for ever."""
    complete = float(np.prod(1 - (1 - sizes / n) ** size))
    if complete < _LEAST_COMPLETE:
        raise DataError(
            f"{len(sizes)} classes, of which the smallest has {sizes.min()} of {n} {units}, occur "
            f"together in one of {1 / complete:.3g} bootstrap samples; put rare classes together "
            "or leave them out."
        )
