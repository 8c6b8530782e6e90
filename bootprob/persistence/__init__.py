"""Model files."""

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
