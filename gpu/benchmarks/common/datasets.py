"""The papers' data sets that are at hand, for the benchmarks and studies.

The folder is named by the environment variable BOOTPROB_DATASETS; by default it is
``shared/datasets`` beside the repository. The files are not part of the project. Nothing is
downloaded here; `bootprob.datasets.load` does that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from bootprob import datasets
from bootprob.runtime.arrays import Bools, Floats
from gpu.benchmarks.common.places import ROOT

__all__ = ["FOLDER", "LOADERS", "Data", "at_hand", "dataset", "those_at_hand"]

Data = tuple[Floats, Bools]

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


def those_at_hand(names: Iterable[str]) -> Iterator[str]:
    """Those that can be loaded, one after the other; the others are said to be left out."""
    for name in names:
        if at_hand(name):
            yield name
        else:
            print(f"{name}: left out, not in {FOLDER}", flush=True)


def dataset(name: str) -> datasets.Dataset:
    """A data set that is at hand; without the folder there is scikit-learn's copy of one."""
    return datasets.load(name, FOLDER if FOLDER.is_dir() else None, download=False)


def _rows(name: str) -> Data:
    found = dataset(name)
    return found.X, found.y


LOADERS: dict[str, Callable[[], Data]] = {name: partial(_rows, name) for name in _NAMES}
