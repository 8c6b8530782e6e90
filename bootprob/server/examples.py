"""A request of each kind that the model answers, for its documents."""

from __future__ import annotations

from typing import Any

import numpy as np

from bootprob.server.columns import Columns
from bootprob.server.tensors import input_metadata

__all__ = ["infer_example", "predict_example"]


def predict_example(columns: Columns) -> dict[str, Any]:
    """One record: of each column what a missing value becomes, or 0, and of a cost 1."""
    return {"records": [{name: _value(columns, name) for name in columns.kinds}], "level": 0.95}


def infer_example(columns: Columns) -> dict[str, Any]:
    """The same as tensors."""
    values = [[_value(columns, name)] for name in columns.kinds]
    if not columns.is_table:
        row = [value for [value] in values[: columns.n_features]]
        values = [row, *([_value(columns, name)] for name in columns.costs)]
    return {
        "inputs": [
            {
                "name": tensor["name"],
                "shape": [1, *tensor["shape"][1:]],
                "datatype": tensor["datatype"],
                "data": data,
            }
            for tensor, data in zip(input_metadata(columns), values, strict=True)
        ],
        "parameters": {"level": 0.95},
    }


def _value(columns: Columns, name: str) -> float | str | bool:
    if name in columns.costs:
        return 1.0
    if (parts := columns.encoder.dates.get(name)) is not None:
        return str(np.datetime_as_string(parts.fill, unit="m" if parts.hours else "D"))
    fill = columns.encoder.fills.get(name, 0.0)
    return fill == "True" if columns.kinds[name] == "boolean" else fill
