"""Data sets of the papers and a few others, by name, prepared as thesis 3.3.1 says.

`load` gives a `Dataset`; `NAMES` lists the names, `CATALOG` what is known of each, and `at_hand`
says whether it can be had without a network. The tables: docs/datasets.md.
"""

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
