"""Python values as JSON and back, with their types.

JSON has no tuples, no NaN, no arrays and only text as keys. Such values become an object with
one key that starts with ``$``; all others stay as they are. Nothing here imports or calls what a
file names, and nothing takes more memory than a file's length and the limits here allow.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

__all__ = ["ARRAY_BYTES", "decode", "encode"]

ARRAY_BYTES = 2**26
"""Bytes of all arrays in JSON together: names and classes, as numbers are stored elsewhere."""

_DTYPE = re.compile(r"[<|>]([biuf][0-9]{1,2}|U[0-9]{1,8}|O)")
_NOT_FINITE = ("nan", "inf", "-inf")


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
    TypeError, ValueError, OverflowError
        `stored` does not come from `encode`, or its arrays take more than `ARRAY_BYTES`.

    Examples
    --------
    >>> decode(encode({1: (0.5, float("inf"))}))
    {1: (0.5, inf)}
    """
    return _decode(stored, [ARRAY_BYTES])


def _decode(stored: Any, left: list[int]) -> Any:
    """`decode`, with the bytes that arrays may still take as the one entry of `left`."""
    if isinstance(stored, list):
        return [_decode(item, left) for item in stored]
    if not isinstance(stored, dict):
        return stored
    match stored:
        case {"$tuple": list(items), **others} if not others:
            return tuple(_decode(item, left) for item in items)
        case {"$float": str(text), **others} if not others and text in _NOT_FINITE:
            return float(text)
        case {"$dict": list(pairs), **others} if not others:
            return {_decode(key, left): _decode(item, left) for key, item in pairs}
        case {"$array": list(cells), "dtype": str(name), "shape": list(shape)} if len(stored) == 3:
            return _array(_decode(cells, left), _plain_dtype(name), shape, left)
        case {"$scalar": item, "dtype": str(name)} if len(stored) == 2:
            return _scalar(_decode(item, left), _plain_dtype(name))
    if mark := next((key for key in stored if key.startswith("$")), None):
        raise ValueError(f"{mark!r} is no known mark")
    return {key: _decode(item, left) for key, item in stored.items()}


def _array(cells: list[Any], dtype: np.dtype, shape: list[Any], left: list[int]) -> np.ndarray:
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError("a shape is no list of lengths")
    if len(cells) != math.prod(shape):
        raise ValueError(f"{len(cells)} cells do not fill the shape {shape}")
    if not all(cell is None or isinstance(cell, bool | int | float | str) for cell in cells):
        raise TypeError("the cells of an array are no plain values")
    if dtype.kind == "U" and not all(isinstance(cell, str) for cell in cells):
        raise TypeError("the cells of an array of text are no text")
    left[0] -= dtype.itemsize * len(cells)
    if left[0] < 0:
        raise ValueError(f"arrays take more than {ARRAY_BYTES} bytes")
    return np.array(cells, dtype=dtype).reshape(shape)


def _scalar(item: Any, dtype: np.dtype) -> Any:
    if not isinstance(item, bool | int | float | str):
        raise TypeError("a number is no plain value")
    return dtype.type(item)


def _plain_dtype(name: str) -> np.dtype:
    if not _DTYPE.fullmatch(name) or np.dtype(name).str != name:
        raise ValueError(f"{name[:20]!r} is no plain dtype")
    return np.dtype(name)
