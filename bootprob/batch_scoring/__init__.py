"""Rows by the million: files scored in constant memory, and batches for Spark, Dask and others.

`score_dataset` scores a file or a folder, and goes on where it was stopped; ``bootprob score`` runs
it. `score_batches` scores Arrow batches from anywhere, with the columns that `result_schema` says.
Guides: docs/batch_scoring.md and docs/scaling.md.
"""

from bootprob.batch_scoring.dataset_scoring import ScoringSummary, score_dataset
from bootprob.batch_scoring.options import ScoringOptions
from bootprob.batch_scoring.row_scoring import result_schema, score_batches
from bootprob.batch_scoring.tally import BadRow, BadRowsError, Tally
from bootprob.batch_scoring.worker_models import load_once

__all__ = [
    "BadRow",
    "BadRowsError",
    "ScoringOptions",
    "ScoringSummary",
    "Tally",
    "load_once",
    "result_schema",
    "score_batches",
    "score_dataset",
]
