"""What a study has measured so far, kept in a JSON file so that it can be interrupted.

The `main` of a study takes names of data sets; what they are measured with, the settings; the
folder `docs`, which holds results/ and gets the document; `seconds`, after which nothing more is
begun; and `again`, to measure what the file has with the same settings, too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from bootprob.runtime.arrays import Bools, Floats
from bootprob.runtime.files import replace_when_complete
from gpu.benchmarks.common.environment import describe

__all__ = ["load", "rates", "save", "standardised"]

_DISTRIBUTIONS = ("bootprob", "torch", "numpy", "numba", "scikit-learn")


def load(path: Path) -> dict[str, Any]:
    """What the file has; empty where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def save(path: Path, command: str, results: dict[str, Any]) -> None:
    """Write the file, whole or not at all, with what it was measured on; the last run counts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {"command": command, "environment": describe(_DISTRIBUTIONS)} | {
        key: value for key, value in results.items() if key not in ("command", "environment")
    }
    with replace_when_complete(path) as file:
        file.write((json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode())


def standardised(X: Floats) -> Floats:
    """Columns with mean 0 and variance 1; constant ones 0."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def rates(predicted: Bools, positive: Bools) -> dict[str, float]:
    """True positive and true negative rate of some rows."""
    return {
        "tpr": float(predicted[positive].mean()),
        "tnr": float((~predicted[~positive]).mean()),
    }
