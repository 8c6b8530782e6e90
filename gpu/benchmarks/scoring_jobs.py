"""The scoring that the document shows: many rows and more, in both precisions.

    python -m gpu.benchmarks.scoring_jobs --into FOLDER [--quick]

Writes FOLDER/scoring.json, a list of what `scoring_speed.measure` returns. Two numbers of rows in
the same precision show whether memory grows with them: each job has a process of its own.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from gpu.benchmarks.scoring_speed import measure

JOBS = ((100_000, torch.float32), (1_000_000, torch.float32), (100_000, torch.float64))
COLUMNS = 61
_QUICK = 50  # times fewer rows

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    less = _QUICK if arguments.quick else 1
    rows, dtypes = zip(*((n_rows // less, dtype) for n_rows, dtype in JOBS), strict=True)
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        found = list(pool.map(measure, rows, [COLUMNS] * len(JOBS), dtypes))
    (arguments.into / "scoring.json").write_text(json.dumps(found), encoding="utf-8")
