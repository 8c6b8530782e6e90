"""Tables of people and their files: classes, roles of columns, held-out rows.

`TableModel` keeps preprocessing, class names and the ensemble together, as ``bootprob fit`` makes
them. `ColumnRoles` says which columns are no features (groups, weights, times) and which are dates.
`HeldOut` is rows with known labels to measure a model on. How columns are read: docs/guide.md.
"""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.tables.held_out import HeldOut
    from bootprob.tables.model import TableModel
    from bootprob.tables.roles import ColumnRoles

__all__ = ["ColumnRoles", "HeldOut", "TableModel"]

__getattr__ = late_names(
    __name__,
    {
        "ColumnRoles": "roles",
        "HeldOut": "held_out",
        "TableModel": "model",
    },
)
