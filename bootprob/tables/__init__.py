"""Data frames and files of people, and the matrices and classes they become."""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.tables.held_out import HeldOut
    from bootprob.tables.model import TableModel

__all__ = ["HeldOut", "TableModel"]

__getattr__ = late_names(
    __name__,
    {
        "HeldOut": "held_out",
        "TableModel": "model",
    },
)
