"""R's random numbers by default: Mersenne Twister, normal by inversion, samples by rejection.

With these the tables that R packages simulate in their documentation are made without R.
"""

import numpy as np
from scipy.special import ndtri


class RRandom:
    """What R draws after ``set.seed(seed)``."""

    def __init__(self, seed):
        words = []
        for _ in range(50 + 625):
            seed = (69069 * seed + 1) % 2**32
            words.append(seed)
        self._bits = np.random.MT19937()
        key = np.array(words[51:], dtype=np.uint32)
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 624}}

    def runif(self, n):
        return self._bits.random_raw(n) * 2.3283064365386963e-10

    def rnorm(self, n):
        u = self.runif(2 * n)
        return ndtri((np.floor(2**27 * u[::2]) + u[1::2]) / 2**27)

    def rbinom(self, p):
        """One trial for each probability."""
        u = self.runif(len(p))
        return np.where(p > 0.5, u < p, u >= 1 - p).astype(int)

    def sample(self, n):
        """n of n < 65,536 with replacement, counted from 0."""
        bits, found = int(n - 1).bit_length(), []
        while len(found) < n:
            k = int(65536 * self.runif(1)[0]) % 2**bits
            found += [k] if k < n else []
        return np.array(found)
