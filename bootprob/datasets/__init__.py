"""Data sets of the papers and a few others, by name, prepared as thesis 3.3.1 says."""

from bootprob.datasets.catalog import CATALOG
from bootprob.datasets.finding import FOLDER_VARIABLE
from bootprob.datasets.loading import NAMES, Dataset, at_hand, load
from bootprob.datasets.source import DatasetError, Source

__all__ = [
    "CATALOG",
    "FOLDER_VARIABLE",
    "NAMES",
    "Dataset",
    "DatasetError",
    "Source",
    "at_hand",
    "load",
]
