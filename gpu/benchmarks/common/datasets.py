"""The papers' data sets that are at hand, for the benchmarks and studies.

The folder is named by the environment variable BOOTPROB_DATASETS; by default it is
``shared/datasets`` beside the repository. The files are not part of the project. Nothing is
downloaded here; `bootprob.datasets.load` does that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bootprob import datasets
from gpu.benchmarks.common.places import ROOT

__all__ = ["FOLDER", "LOADERS", "Data", "at_hand"]

Data = tuple[NDArray[np.float64], NDArray[np.bool_]]

FOLDER = Path(os.environ.get("BOOTPROB_DATASETS") or ROOT.parent / "shared" / "datasets")

_NAMES = (
    *("wisconsin", "german", "australian", "banknote", "careval", "housing", "heart", "votes"),
    *("divorce", "pima", "bupa", "crx", "nursery", "hepatitis", "zoo", "parkinsons"),
    *("soybean-small", "leukemia"),
)


def at_hand(name: str) -> bool:
    """Whether `LOADERS` can load a data set."""
    if name == "wisconsin":
        return True
    return FOLDER.is_dir() and datasets.at_hand(name, FOLDER)


def _load(name: str) -> Data:
    found = datasets.load(name, FOLDER, download=False)
    return found.X, found.y


LOADERS: dict[str, Callable[[], Data]] = {name: partial(_load, name) for name in _NAMES}
