"""A model served as one would without a batcher, to be measured beside ``bootprob serve``.

python -m gpu.benchmarks.naive_server model.bootprob 8000
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from bootprob import BootstrapSVC
from bootprob.persistence.save_load import load
from gpu.benchmarks.checked_replies import version_of

__all__ = ["serve"]


class _Records(BaseModel):
    records: list[dict[str, float]]


def serve(path: str, port: int) -> None:
    """Answer each request by a predict of its own, one after the other.

    In a thread pool the engine's own threads would get into each other's way, and it is slower.
    """
    model = load(path)
    assert isinstance(model, BootstrapSVC)
    version = version_of(Path(path))
    names = [f"x{k}" for k in range(model.n_features_in_)]

    app = FastAPI()

    @app.post("/predict")
    async def predict(body: _Records) -> dict[str, Any]:
        X = np.array([[record[name] for name in names] for record in body.records])
        found = model.summarize(X, score_interval=False)
        columns = (
            found[name].tolist() for name in ("label", "probability", "probability_interval")
        )
        names_ = ("label", "probability", "interval")
        rows = [dict(zip(names_, row, strict=True)) for row in zip(*columns, strict=True)]
        return {"version": version, "predictions": rows}

    uvicorn.run(app, port=port, http="h11", access_log=False)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
