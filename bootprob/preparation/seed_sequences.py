"""What numpy's seed sequence makes of many spawn keys at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["pcg64_seeds"]

# O'Neill's seed_seq_fe128 with numpy's constants (numpy/random/bit_generator.pyx).
_FIRST_A, _FACTOR_A = 0x43B0D7E5, 0x931E8875
_FIRST_B, _FACTOR_B = 0x8B51F9DD, 0x58F38DED
_LEFT, _RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
_SHIFT = np.uint32(16)
_POOL = 4  # words
_WORD = 2**32


def pcg64_seeds(entropy: Sequence[int], keys: range) -> NDArray[np.uint64]:
    """What a PCG64 generator is seeded with, for each of many spawn keys.

    Parameters
    ----------
    entropy : sequence of int
        As for `numpy.random.SeedSequence`.
    keys : range
        Spawn keys, below 2³².

    Returns
    -------
    ndarray of uint64, shape (len(keys), 4)
        ``SeedSequence(entropy, spawn_key=(key,)).generate_state(4, np.uint64)`` of each key.
    """
    numbers = [int(number) for number in entropy]
    words = max(_POOL, sum(max(1, -(-number.bit_length() // 32)) for number in numbers))
    # A spawn key is mixed in after everything else, and what words are multiplied with does not
    # depend on them: all but the last four steps are the same for every key.
    steps_before = _POOL * words
    factor = _FIRST_A * pow(_FACTOR_A, steps_before, _WORD) % _WORD
    key_words = np.array(keys, dtype=np.uint32)
    pool = []
    for word in np.random.SeedSequence(numbers).pool:
        hashed, factor = _hashed(key_words, factor, _FACTOR_A)
        mixed = _LEFT * np.full_like(key_words, word) - _RIGHT * hashed
        pool.append(mixed ^ (mixed >> _SHIFT))
    seeds = np.empty((len(keys), 2 * _POOL), dtype="<u4")
    factor = _FIRST_B
    for i in range(2 * _POOL):
        seeds[:, i], factor = _hashed(pool[i % _POOL], factor, _FACTOR_B)
    return seeds.view("<u8").astype(np.uint64, copy=False)


def _hashed(
    words: NDArray[np.uint32], factor: int, next_factor: int
) -> tuple[NDArray[np.uint32], int]:
    """Words hashed, and the factor that the next ones begin with."""
    following = factor * next_factor % _WORD
    hashed = (words ^ np.uint32(factor)) * np.uint32(following)
    return hashed ^ (hashed >> _SHIFT), following
