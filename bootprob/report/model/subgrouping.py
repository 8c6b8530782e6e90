"""What tells subgroups of rows apart: a column of the tables that a report has at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from bootprob.exceptions import DataError

if TYPE_CHECKING:
    from bootprob.tables.held_out import HeldOut

__all__ = ["Subgrouping"]


@dataclass(frozen=True)
class Subgrouping:
    """What tells the subgroups of rows apart.

    Attributes
    ----------
    name : str
        Of the column.
    training, held_out : array_like or None
        Its values in the training rows and in the held-out ones, as far as they are known.
    """

    name: str
    training: ArrayLike | None
    held_out: ArrayLike | None

    @classmethod
    def of(cls, by: str | ArrayLike, training: Any, held_out: HeldOut | None) -> Self:
        """Find a column by its name in the tables at hand; or take values of the training rows.

        Raises
        ------
        DataError
            No table at hand has such a column.
        """
        if not isinstance(by, str):
            return cls(getattr(by, "name", None) or "by", by, None)
        frames = (training, None if held_out is None else held_out.frame)
        found = [_column(frame, by) for frame in frames]
        if all(each is None for each in found):
            has = " and ".join(
                f"the {what} table has none"
                for what, frame in zip(("training", "held-out"), frames, strict=True)
                if hasattr(frame, "columns")
            )
            raise DataError(
                f"No column {by!r} is at hand to tell subgroups apart"
                + (f": {has}." if has else ", as a model does not keep its table.")
                + " Give the training table, or held-out rows, with that column."
            )
        return cls(by, *found)


def _column(frame: Any, name: str) -> Any:
    names = [str(each) for each in getattr(frame, "columns", ())]
    return frame.iloc[:, names.index(name)] if name in names else None
