"""Tables 2 to 5 as printed: R. Tamura, Y. Takano, R. Miyashiro, 2022.

For each data set and (θ, β): the largest objective that the paper's three formulations found, the
gap of its best one, RMILO-K, in per cent, and that one's seconds; 10,000 where it was stopped.
"""

from __future__ import annotations

__all__ = ["PRINTED", "STOPPED"]

STOPPED = 10_000.0

Cell = tuple[float, float, float]

PRINTED: dict[str, dict[tuple[int, float], Cell]] = {
    "hepatitis": {
        (3, 0.25): (0.236, 0.0, 716.6),
        (3, 1.0): (0.411, 0.0, 2168.6),
        (3, 4.0): (0.489, 0.0, 1872.9),
        (5, 0.25): (0.215, 0.0, 760.5),
        (5, 1.0): (0.392, 0.0, 5135.0),
        (5, 4.0): (0.463, 0.0, 2476.5),
    },
    "zoo": {
        (3, 0.25): (0.303, 0.0, 55.5),
        (3, 1.0): (0.916, 0.0, 81.5),
        (3, 4.0): (1.445, 0.0, 29.7),
        (5, 0.25): (0.278, 0.0, 89.1),
        (5, 1.0): (0.726, 0.0, 291.2),
        (5, 4.0): (1.333, 0.0, 62.1),
    },
    "parkinsons": {
        (3, 0.25): (0.284, 81.2, STOPPED),
        (3, 1.0): (0.316, 206.3, STOPPED),
        (3, 4.0): (0.154, 1000.0, STOPPED),
        (5, 0.25): (0.251, 88.6, STOPPED),
        (5, 1.0): (0.276, 268.9, STOPPED),
        (5, 4.0): (0.158, 1000.0, STOPPED),
    },
    "soybean-small": {
        (3, 0.25): (0.316, 0.0, 346.0),
        (3, 1.0): (0.926, 0.0, 618.2),
        (3, 4.0): (1.451, 0.0, 144.0),
        (5, 0.25): (0.300, 0.0, 2302.6),
        (5, 1.0): (0.870, 0.0, 5054.1),
        (5, 4.0): (1.391, 0.0, 414.7),
    },
}
