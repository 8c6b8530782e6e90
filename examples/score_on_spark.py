"""Score a Spark data frame with `mapInArrow`: each partition streams through a model of its own.

Spark calls `score_partition` with an iterator of Arrow batches and takes back another one. Without
Spark the same function scores batches of any origin, as the last lines show.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as pa

from bootprob import load, save
from bootprob.batch_scoring import ScoringOptions, result_schema, score_batches
from bootprob.tables import TableModel

OPTIONS = ScoringOptions(keep=("id",), bad_rows="null")


def score_partition(
    batches: Iterator[pa.RecordBatch], path: str, options: ScoringOptions = OPTIONS
) -> Iterator[pa.RecordBatch]:
    """Load the model once on the worker, then score batch after batch."""
    yield from score_batches(load(path), batches, options)


def score_frame(frame, path: str):
    """Score a pyspark DataFrame; `path` must lead to the model on every worker."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    schema = result_schema(load(path), OPTIONS, to_arrow_schema(frame.schema))
    return frame.mapInArrow(partial(score_partition, path=path), from_arrow_schema(schema))


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
