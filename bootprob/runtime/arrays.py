"""Names for arrays of numpy, by what their entries are."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Indices", "Integers"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]
Indices = NDArray[np.intp]
