"""Model files.

`save` writes a model file, `load` reads it and runs nothing that the file says. Layout, limits and
what is promised: docs/model_files.md.
"""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.persistence.save_load import load, save

__all__ = ["load", "save"]

__getattr__ = late_names(
    __name__,
    {
        "load": "save_load",
        "save": "save_load",
    },
)
