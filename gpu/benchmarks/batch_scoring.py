"""Files scored from end to end, beside the engine on the same rows in memory.

    python -m gpu.benchmarks.batch_scoring [--rows 10000000] [--folder FOLDER]

Makes a Parquet folder of 20 numeric and 2 categorical columns, fits the default model (linear,
B = 500) to 1,000 more such rows, and scores the folder to a folder of Parquet files: probability,
interval, label. The engine's own rate is that of `BootstrapSVC.summarize` on the matrices of the
first million rows, in blocks of the same size. Both are measured twice, in turn, as other work on
the machine can only slow a run down, and the better time of each counts. Writes
docs/results/batch_scoring.json and docs/batch_scoring_rates.md.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from bootprob.batch_scoring import ScoringOptions, ScoringSummary, score_dataset
from bootprob.batch_scoring.row_scoring import rows_at_once
from bootprob.cli.console import peak_memory
from bootprob.tables.model import TableModel
from gpu.benchmarks.common.documents import write as write_page
from gpu.benchmarks.common.environment import describe
from gpu.benchmarks.common.places import DOCS

RESULT = DOCS / "results" / "batch_scoring.json"
DOCUMENT = DOCS / "batch_scoring_rates.md"
ROWS_OF_FILE = 1_000_000
REPEATS = 2
_AT_ONCE = 100_000


def rows(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Rows of standard normal numbers and two columns of text."""
    table = pd.DataFrame(
        rng.standard_normal((n, 20)), columns=[f"x{column}" for column in range(20)]
    )
    table["region"] = rng.choice(["north", "east", "south", "west", "centre"], n)
    table["plan"] = rng.choice(["basic", "plus", "pro"], n, p=[0.6, 0.3, 0.1])
    return table


def fit(rng: np.random.Generator) -> TableModel:
    """The default model of 1,000 rows whose logits are linear."""
    table = rows(rng, 1000)
    logit = table["x0"] - 0.5 * table["x1"] + (table["plan"] == "pro")
    table["y"] = np.where(rng.random(len(table)) < 1 / (1 + np.exp(-logit)), "yes", "no")
    return TableModel.fit(table, "y", "yes", random_state=0)


def write(rng: np.random.Generator, folder: Path, n: int) -> int:
    """Write n rows as Parquet files of a million; returns their bytes."""
    folder.mkdir()
    for number, first in enumerate(range(0, n, ROWS_OF_FILE)):
        left = min(ROWS_OF_FILE, n - first)
        schema = pa.Schema.from_pandas(rows(rng, 1), preserve_index=False)
        with pq.ParquetWriter(folder / f"{number:03d}.parquet", schema) as writer:
            # A row group may hold several times as many rows as are made at once.
            parts = [min(_AT_ONCE, left - start) for start in range(0, left, _AT_ONCE)]
            tables = [pa.Table.from_pandas(rows(rng, size), schema) for size in parts]
            writer.write_table(pa.concat_tables(tables), row_group_size=2**18)
    return sum(each.stat().st_size for each in folder.iterdir())


def engine_rate(model: TableModel, folder: Path) -> float:
    """Rows per second of the engine on matrices in memory."""
    X = model.preprocessor.transform(pd.read_parquet(min(folder.iterdir())))
    size = rows_at_once(model, ScoringOptions())
    begin = time.perf_counter()
    for start in range(0, len(X), size):
        model.svc.summarize(X[start : start + size], score_interval=False)
    return len(X) / (time.perf_counter() - begin)


def measure(n: int, within: Path | None) -> dict[str, Any]:
    """Time everything."""
    rng = np.random.default_rng(0)
    environment = describe(["torch", "numpy", "pyarrow", "pandas", "scikit-learn"])
    with tempfile.TemporaryDirectory(dir=within) as name:
        folder = Path(name)
        model = fit(rng)
        n_bytes = write(rng, folder / "input", n)
        runs: list[ScoringSummary] = []
        engine, loads = [], []
        for repeat in range(REPEATS):
            loads.append(round(os.getloadavg()[0], 2))
            engine.append(engine_rate(model, folder / "input"))
            run = score_dataset(model, folder / "input", folder / f"output-{repeat}")
            print(f"{run.rate:,.0f} rows/s, engine {engine[-1]:,.0f} rows/s, busy {run.busy}")
            runs.append(run)
        best = max(runs, key=lambda run: run.rate)
        written = sum(each.stat().st_size for each in (folder / "output-0").iterdir())
    busy = {stage: round(seconds, 2) for stage, seconds in best.busy.items()}
    return {
        "environment": environment,
        "rows": n,
        "columns": {"numeric": 20, "categorical": 2, "features": model.svc.n_features_in_},
        "replicates": model.svc.n_replicates_,
        "models": model.svc.n_replicates_ * len(model.svc.C_),
        "threads": torch.get_num_threads(),
        "input, MB": round(n_bytes / 1e6),
        "output, MB": round(written / 1e6),
        "end to end, rows per second": [round(run.rate) for run in runs],
        "engine alone, rows per second": [round(rate) for rate in engine],
        "load before each": loads,
        "end to end / engine": best.rate / max(engine),
        "share of time beyond the engine": 1 - best.rate / max(engine),
        "busy seconds": busy,
        "share of reading and writing": (busy["reading"] + busy["writing"]) / sum(busy.values()),
        "seconds": round(best.seconds, 2),
        "peak memory, MB": round(peak_memory() / 1e6),
    }


def main(n: int, within: Path | None) -> None:
    """Measure and write both documents."""
    found = measure(n, within)
    RESULT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write_page(DOCUMENT, "gpu/benchmarks/batch_scoring.md.jinja", found=found)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where the files lie; default: temporary")
    arguments = parser.parse_args()
    main(arguments.rows, arguments.folder)
