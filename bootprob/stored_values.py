"""Python values as JSON and back, with their types.

JSON has no tuples, no NaN, no arrays and only text as keys. Such values become an object with
one key that starts with ``$``; all others stay as they are. Nothing here imports or calls what a
file names.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["decode", "encode"]


def encode(value: Any) -> Any:
    """Turn a value into one that JSON can hold.

    Parameters
    ----------
    value : None, bool, int, float, str, list, tuple, dict, numpy scalar or numpy array
        Dictionaries may have any of the plain types as keys; arrays hold numbers, booleans or
        text.

    Returns
    -------
    None, bool, int, float, str, list or dict

    Raises
    ------
    TypeError
        The value is of another type.

    Examples
    --------
    >>> encode({"C": (0.5, 1), "gamma": np.array([1.0, 2.0])})
    {'C': {'$tuple': [0.5, 1]}, 'gamma': {'$array': [1.0, 2.0], 'dtype': '<f8', 'shape': [2]}}
    >>> encode({0: 1.0, 1: 5.0})
    {'$dict': [[0, 1.0], [1, 5.0]]}
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biufUO":
            raise TypeError(f"An array of {value.dtype} cannot be stored.")
        cells = encode(value.ravel().tolist())
        return {"$array": cells, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return {"$scalar": encode(value.item()), "dtype": value.dtype.str}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [encode(item) for item in value]}
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: encode(item) for key, item in value.items()}
        return {"$dict": [[encode(key), encode(item)] for key, item in value.items()]}
    raise TypeError(f"A value of type {type(value).__name__} cannot be stored.")


def decode(stored: Any) -> Any:
    """Restore what `encode` was given.

    Parameters
    ----------
    stored : None, bool, int, float, str, list or dict
        From JSON.

    Returns
    -------
    object
        Of the type that was encoded.

    Raises
    ------
    ValueError
        `stored` does not come from `encode`.

    Examples
    --------
    >>> decode(encode({1: (0.5, float("inf"))}))
    {1: (0.5, inf)}
    """
    if isinstance(stored, list):
        return [decode(item) for item in stored]
    if not isinstance(stored, dict):
        return stored
    match stored:
        case {"$tuple": list(items)}:
            return tuple(decode(item) for item in items)
        case {"$float": str(text)}:
            return float(text)
        case {"$dict": list(pairs)}:
            return {decode(key): decode(item) for key, item in pairs}
        case {"$array": list(cells), "dtype": str(dtype), "shape": list(shape)}:
            return np.array(decode(cells), dtype=_plain_dtype(dtype)).reshape(shape)
        case {"$scalar": item, "dtype": str(dtype)}:
            return _plain_dtype(dtype).type(decode(item))
    if any(key.startswith("$") for key in stored):
        raise ValueError(f"{next(iter(stored))!r} is no known mark")
    return {key: decode(item) for key, item in stored.items()}


def _plain_dtype(name: str) -> np.dtype:
    dtype = np.dtype(name)
    if dtype.kind not in "biufUO":
        raise ValueError(f"{name!r} is no plain dtype")
    return dtype
