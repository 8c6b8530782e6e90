"""Columns of several kinds, as data frames hold them, and the numbers that machines see.

`TablePreprocessor` turns a data frame into numbers: dummies, medians, dates. `BootstrapSVC` and
`TableModel` use it by themselves; alone it goes into a pipeline. Rules: docs/guide.md.
"""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.encoding.preprocessing import TablePreprocessor

__all__ = ["TablePreprocessor"]

__getattr__ = late_names(__name__, {"TablePreprocessor": "preprocessing"})
