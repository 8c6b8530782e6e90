"""Efficiencies of many units: all in one batch beside one linear program after the other.

    python -m gpu.benchmarks.dea_efficiency [--device cpu] [--units 200 1000 3000 10000]

The peers, in the same run: HiGHS, each unit's program started from the basis of the one before
(highspy), and SciPy's `linprog`, each from nothing, which is what one would write first. Of large
panels they solve some units drawn at random, and the time for all is extrapolated. Slacks are
solved for by ours and HiGHS, the score alone by SciPy. Writes docs/results/dea_efficiency.json and
docs/dea_efficiency.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from bootprob.dea import Panel, efficiency
from bootprob.dea.efficiencies.envelopment import EnvelopmentSide
from bootprob.dea.efficiencies.program import Returns, unit_program
from bootprob.dea.efficiencies.solvers import Linprog
from gpu.benchmarks.common import documents
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import save

__all__ = ["main", "measure", "random_panel"]

FILE = "dea_efficiency.json"
COMMAND = "make dea-efficiency"
SIZES = (200, 1_000, 3_000, 10_000)
COLUMNS = ((2, 2), (4, 4))
RETURNS: tuple[Returns, ...] = ("constant", "variable")
MOST_BY_HIGHS, MOST_BY_SCIPY = 100, 20


def main(sizes: Sequence[int] = SIZES, device: str = "cpu", docs: Path = DOCS) -> None:
    """Measure and write the document.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of units.
    device : str
        Of the batch.
    docs : Path
        Holds results/; the document is written there.
    """
    measure(random_panel(20, 2, 2), "constant", device)  # imports
    cases: list[dict[str, Any]] = []
    for K in sizes:
        for N, M in COLUMNS:
            for returns in RETURNS:
                cases.append(measure(random_panel(K, N, M), returns, device))
                print(cases[-1], flush=True)
                save(docs / "results" / FILE, COMMAND, {"device": device, "cases": cases})
    template = "gpu/benchmarks/dea_efficiency.md.jinja"
    documents.write(docs / "dea_efficiency.md", template, device=device, cases=cases)


def random_panel(K: int, N: int, M: int) -> Panel:
    """Units of log-normal amounts and efficiencies, the same for the same sizes."""
    rng = np.random.default_rng([K, N, M])
    inputs = rng.lognormal(size=(K, N))
    size = inputs.prod(axis=1, keepdims=True) ** (0.9 / N)
    wasted = np.exp(-np.abs(rng.normal(0, 0.4, (K, 1))))
    return Panel.of(inputs, size * wasted * rng.lognormal(0, 0.4, (K, M)))


def measure(panel: Panel, returns: Returns, device: str) -> dict[str, Any]:
    """Seconds of ours and of the peers, and how far their scores are apart."""
    load = round(os.getloadavg()[0], 1)
    started = time.perf_counter()
    ours = efficiency(panel, returns=returns, device=device)
    seconds = time.perf_counter() - started
    K = panel.n_units
    drawn = np.random.default_rng(0).permutation(K)
    units = drawn[:MOST_BY_HIGHS]
    side = EnvelopmentSide(panel, returns, "input", False, True)
    started = time.perf_counter()
    scores = [side.solve(int(unit)).score for unit in units]
    by_highs = (time.perf_counter() - started) * K / len(units)
    few = drawn[:MOST_BY_SCIPY]
    linprog = Linprog()
    started = time.perf_counter()
    for unit in few:
        linprog.solve(
            unit_program(
                panel.inputs, panel.outputs, panel.inputs[unit], panel.outputs[unit],
                returns, "input",
            )
        )  # fmt: skip
    by_scipy = (time.perf_counter() - started) * K / len(few)
    return {
        "units": K,
        "inputs": panel.n_inputs,
        "outputs": panel.n_outputs,
        "returns": returns,
        "load": load,
        "seconds": seconds,
        "HiGHS, seconds": by_highs,
        "HiGHS, units": len(units),
        "SciPy, seconds": by_scipy,
        "SciPy, units": len(few),
        "efficient": int((ours.scores > 1 - 1e-9).sum()),
        "largest difference": float(np.abs(ours.scores[units] - scores).max()),
        "worst certificate": float(ours.certificate.worst.max()),
    }


if __name__ == "__main__":
    parser = docs_options(__doc__)
    parser.add_argument("--units", nargs="+", type=int, default=SIZES, metavar="K")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    main(given.units, given.device, given.docs)
