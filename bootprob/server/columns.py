"""The columns a request has to give, of a table or of a matrix, and those of costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

from bootprob.encoding.columns import Kind
from bootprob.encoding.encoder import TableEncoder
from bootprob.ensemble.scoring.frame_encoder import FrameEncoder
from bootprob.exceptions import DataError
from bootprob.tables.model import TableModel

if TYPE_CHECKING:
    from bootprob.ensemble.classifier import BootstrapClassifier
    from bootprob.ensemble.estimator import BootstrapSVC

__all__ = ["Columns"]


@dataclass(frozen=True)
class Columns:
    """Columns by name, in the order of the matrix, and those of costs after them.

    Attributes
    ----------
    kinds : dict of str to {"number", "boolean", "text", "date", "cost"}
        Numbers first; "cost" where the model does not know the column.
    encoder : TableEncoder or FrameEncoder
        What makes rows of them.
    n_features : int
        Columns of the matrix.
    is_table : bool
        Whether the model was fitted on a table; else on a matrix.
    costs : tuple of str
        Columns that hold what mistakes cost; the model may know them as numbers.
    """

    kinds: dict[str, Kind | Literal["cost"]]
    encoder: TableEncoder | FrameEncoder
    n_features: int
    is_table: bool
    costs: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: BootstrapSVC | BootstrapClassifier | TableModel) -> Self:
        """Columns of a table model, or of the matrix: `feature_names_in_` or x0, x1, …."""
        if isinstance(model, TableModel):
            encoder = model.encoder
            by_kind = sorted(encoder.kinds.items(), key=lambda item: item[1] != "number")
            return cls(dict(by_kind), encoder, encoder.n_features, True)
        p = model.n_features_in_
        names = getattr(model, "feature_names_in_", [f"x{k}" for k in range(p)])
        kinds: dict[str, Kind] = {str(name): "number" for name in names}
        return cls({**kinds}, TableEncoder(kinds, {}, {}), p, False)

    def fills_gaps_of(self, name: str) -> bool:
        """Whether a value of a column may be missing; nothing is known to fill plain numbers."""
        return name in self.encoder.fills

    def with_costs(self, names: Sequence[str]) -> Self:
        """The same, and columns of costs.

        Raises
        ------
        DataError
            One of them holds categories.
        """
        kinds = dict(self.kinds)
        for name in names:
            if kinds.setdefault(name, "cost") not in ("number", "cost"):
                what = "dates" if kinds[name] == "date" else "categories"
                raise DataError(f"The column {name!r} holds {what} in the model, not costs.")
            if name == "X" and not self.is_table:
                raise DataError("Costs cannot be in 'X', which is the tensor of all columns.")
        return replace(self, kinds=kinds, costs=tuple(names))
