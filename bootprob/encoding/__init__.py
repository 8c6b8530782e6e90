"""Columns of several kinds, as data frames hold them, and the numbers that machines see."""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.encoding.preprocessing import TablePreprocessor

__all__ = ["TablePreprocessor"]

__getattr__ = late_names(__name__, {"TablePreprocessor": "preprocessing"})
