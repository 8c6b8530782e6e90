"""Bootstrap samples counted as they are drawn, from the very streams that numpy draws from."""

from __future__ import annotations

from typing import Any

import numpy as np

from bootprob_gpu.hardware.compiled import compiled, inner
from bootprob_gpu.hardware.compiled_arithmetic import high_product

__all__ = ["draw_counts"]

# Of PCG XSL RR 128/64 (O'Neill 2014), in two halves.
_FACTOR_HIGH, _FACTOR_LOW = np.uint64(2549297995355413924), np.uint64(4865540595714422341)
_ZERO, _ONE, _HALF_WORD = np.uint64(0), np.uint64(1), np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_ROTATION, _ROTATIONS = np.uint64(58), np.uint64(63)

_OPTIONS: dict[str, Any] = {"error_model": "numpy"}
_inner = inner(**_OPTIONS)


@compiled(nogil=True, **_OPTIONS)
def draw_counts(seeds, codes, n_classes, counts, redrawn, highest):  # type: ignore[no-untyped-def]
    """Draw n out of n rows for some replicates, as ``Generator(PCG64).integers(0, n, n)`` does.

    Parameters
    ----------
    seeds : array of uint64, shape (b, 4)
        What the generator of each replicate is seeded with.
    codes : array of int64, shape (n,)
        The class of each row; −1 for rows of no weight. 2 ≤ n < 2³².
    n_classes : int
        Classes that a sample has to hold; one that lacks any is drawn again.
    counts : array of uint8, shape (b, n)
        Filled in: how often each row was drawn.
    redrawn : array of int64, shape (b,)
        Filled in: how many samples were thrown away; −1 where a row was drawn more often than
        can be counted here.
    highest : int
        How often that is, 255 at most.
    """
    n = codes.shape[0]
    bound = np.uint64(n)
    rejected_below = ((_ONE << _HALF_WORD) - bound) % bound
    seen = np.empty(n_classes, np.bool_)
    for b in range(seeds.shape[0]):
        high, low, more_high, more_low = _seeded(seeds[b])
        spare, has_spare = _ZERO, False
        redrawn[b] = -1
        complete = False
        while not complete:
            redrawn[b] += 1
            counts[b] = 0
            for _ in range(n):
                # Lemire (2019): the upper half of a 32-bit number times n, without its bias.
                while True:
                    if has_spare:
                        word = spare
                    else:
                        high, low = _step(high, low, more_high, more_low)
                        drawn = _output(high, low)
                        word, spare = drawn & _LOW_HALF, drawn >> _HALF_WORD
                    has_spare = not has_spare
                    product = word * bound
                    if (product & _LOW_HALF) >= rejected_below:
                        break
                row = product >> _HALF_WORD
                if counts[b, row] == highest:
                    redrawn[b] = -1
                    break
                counts[b, row] += np.uint8(1)
            complete = redrawn[b] < 0 or _holds_all(counts[b], codes, seen)


@_inner
def _holds_all(counts, codes, seen):  # type: ignore[no-untyped-def]
    """Whether a sample has a row of every class."""
    missing = seen.shape[0]
    seen[:] = False
    for i in range(codes.shape[0]):
        if counts[i] > 0 and codes[i] >= 0 and not seen[codes[i]]:
            seen[codes[i]] = True
            missing -= 1
            if missing == 0:
                return True
    return missing == 0


@_inner
def _seeded(seed):  # type: ignore[no-untyped-def]
    """State and increment of a generator, 128 bits each, high half first."""
    more_high = (seed[2] << _ONE) | (seed[3] >> _ROTATIONS)
    more_low = (seed[3] << _ONE) | _ONE
    high, low = _step(_ZERO, _ZERO, more_high, more_low)
    high, low = _sum(high, low, seed[0], seed[1])
    high, low = _step(high, low, more_high, more_low)
    return high, low, more_high, more_low


@_inner
def _step(high, low, more_high, more_low):  # type: ignore[no-untyped-def]
    """State times the factor plus the increment."""
    carried: Any = high_product(low, _FACTOR_LOW)  # type: ignore[call-arg, unused-ignore]
    upper = carried + high * _FACTOR_LOW + low * _FACTOR_HIGH
    return _sum(upper, low * _FACTOR_LOW, more_high, more_low)


@_inner
def _sum(high, low, other_high, other_low):  # type: ignore[no-untyped-def]
    below = low + other_low
    carry = _ONE if below < low else _ZERO
    return high + other_high + carry, below


@_inner
def _output(high, low):  # type: ignore[no-untyped-def]
    mixed, turn = high ^ low, high >> _ROTATION
    return (mixed >> turn) | (mixed << ((_ZERO - turn) & _ROTATIONS))
