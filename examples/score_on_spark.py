"""Score batches as Spark's `mapInArrow` hands them to a worker: partitions stream through a model.

Spark calls `score_partition` with an iterator of Arrow batches and takes back another one. Here it
is given batches without Spark; whole programs for Spark, Dask and Ray are in docs/scaling.md.
"""

from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as pa

from bootprob import save
from bootprob.batch_scoring import ScoringOptions, load_once, score_batches
from bootprob.tables import TableModel

OPTIONS = ScoringOptions(keep=("id",), bad_rows="null")


def score_partition(
    batches: Iterator[pa.RecordBatch], path: str, options: ScoringOptions = OPTIONS
) -> Iterator[pa.RecordBatch]:
    """Load the model once in each process of a worker, then score batch after batch."""
    yield from score_batches(load_once(path), batches, options)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(50, 10, 200), "plan": rng.choice(["a", "b"], 200)})
    table["left"] = np.where(
        rng.random(200) < 1 / (1 + np.exp((table["age"] - 50) / 5)), "yes", "no"
    )
    save(TableModel.fit(table, "left", "yes", n_bootstraps=50, random_state=0), "left.model")
    rows = pa.Table.from_pandas(table.assign(id=range(200)), preserve_index=False)
    scored = pa.Table.from_batches(
        score_partition(iter(rows.to_batches(max_chunksize=64)), "left.model")
    )
    print(scored.slice(0, 5).to_pandas().round(3).to_string(index=False))
    Path("left.model").unlink()
    frame = scored.to_pandas()
    figure, ax = plt.subplots(figsize=(6, 3))
    ax.hist(frame["probability"], bins=20)
    ax.set(xlabel="probability of leaving", ylabel="customers")
    figure.savefig("score_on_spark.png")
