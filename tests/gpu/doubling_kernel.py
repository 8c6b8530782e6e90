"""A kernel for the tests of the pretended device: Triton reads its source from a file."""

import triton
import triton.language as tl


@triton.jit
def double(numbers, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(numbers + at, 2 * tl.load(numbers + at, mask=at < n), mask=at < n)
