"""How much of a table each machine of an adaptive ensemble sees, and how many there are."""

from __future__ import annotations

import numpy as np

from bootprob.runtime.arrays import Floats

__all__ = ["is_large", "mapped_columns", "samples_of"]

_EXACT_ROWS = 3000
_ALL_SAMPLES = 1000  # up to so many rows
_DRAWN = 10_000
_COLUMNS, _LEAST_COLUMNS = 256, 64
_NUMBERS = 2**27  # of mapped rows, 1 GiB


def is_large(n: int) -> bool:
    """Whether machines on the kernels themselves would take too long: from 3,001 rows on."""
    return n > _EXACT_ROWS


def samples_of(weight: Floats, n_bootstraps: int, most: int) -> tuple[int, int | None]:
    """Bootstrap samples of a table: how many, and how many rows each draws, where not as many.

    Up to 1,000 rows all that are asked for. Up to 3,000, where machines take time in proportion to
    the square of the rows, as many as take the time of 1,000 rows, or `most`.

    Of a large table no more than `most` samples of up to 10,000 rows. Averaging machines of parts
    of a table is as good as one of all rows, as long as the parts are large enough for what they
    are to say (Y. Zhang, J. Duchi, M. Wainwright, J. Machine Learning Research 16 (2015)
    3299–3340), and costs as much for half a million rows as for thirty thousand.

    Parameters
    ----------
    weight : ndarray, shape (n,)
        Row weights. Rows of weight 0 are drawn as others, but 10,000 are others than these.
    n_bootstraps : int
        Samples asked for.
    most : int
        Of a large table.
    """
    n = int(np.count_nonzero(weight))
    if not is_large(n):
        affordable = round(n_bootstraps * min(1.0, _ALL_SAMPLES / n) ** 2)
        return min(n_bootstraps, max(most, affordable)), None
    drawn = np.ceil(_DRAWN * len(weight) / n)
    return min(n_bootstraps, most), min(len(weight), int(drawn))


def mapped_columns(n: int) -> int:
    """Columns D of the map of n rows: 256, or as many as fit into 1 GiB, but no less than 64."""
    return min(_COLUMNS, max(_LEAST_COLUMNS, _NUMBERS // n))
