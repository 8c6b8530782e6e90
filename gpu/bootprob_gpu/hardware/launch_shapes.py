"""Launch shapes and limits that were measured on a device, in place of the kernels' own.

``make gpu-tune`` measures and writes them into launch_shapes.json beside this file. Where there is
no such file, or it does not know the device, the kernels' own constants hold.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import torch

__all__ = [
    "FORMAT", "TABLE", "LaunchTableWarning", "parsed", "trial", "tuned_limit", "tuned_shape",
]  # fmt: skip

TABLE = Path(__file__).with_name("launch_shapes.json")
FORMAT = 1
Entry = Mapping[str, Any]

# Kinds of shapes: what they are for, and what of them may be measured.
_SHAPES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "votes": (
        ("float32 ieee", "float32 tf32x3", "float64 ieee"),
        ("BLOCK_M", "BLOCK_B", "BLOCK_K", "num_warps", "num_stages"),
    ),
    # Rows of a path, and columns of a matrix, rounded up to a power of 2.
    "smo": (tuple(str(2**k) for k in range(4, 12)), ("ROWS", "num_warps", "maxnreg")),
    "factor": (("16", "32", "64", "128"), ("num_warps",)),
    "rows": (("few", "many"), ("BLOCK", "num_warps")),
}
_RANGES = {
    "BLOCK": (16, 4096), "num_warps": (1, 32), "num_stages": (1, 8), "ROWS": (1, 16),
    "maxnreg": (32, 255), "smo_tile": (16, 4096), "smo_in_registers": (0, 2048),
    "many_rows": (0, 2**31), "replayed_cells": (0, 2**40), "twin_cells": (1, 2**40),
}  # fmt: skip
_LIMITS = ("smo_in_registers", "smo_tile", "many_rows", "replayed_cells", "twin_cells")
_POWERS_OF_2 = ("BLOCK", "num_warps", "smo_tile")
_on_trial: ContextVar[Entry | None] = ContextVar("launch_shapes", default=None)


class LaunchTableWarning(RuntimeWarning):
    """The table of measured launch shapes cannot be used; the kernels' own constants hold."""


def tuned_shape(default: Mapping[str, int], kind: str, size: str) -> dict[str, int]:
    """What a kernel is launched with on the current CUDA device.

    Parameters
    ----------
    default : mapping of str to int
        Blocks, warps, ...: what holds unless something else was measured.
    kind, size : str
        Which kernel, and what it is launched for.
    """
    return {**default, **_entry(None).get(kind, {}).get(size, {})}


def tuned_limit(default: int, name: str, device: torch.device | None = None) -> int:
    """A limit on a device, or on the current CUDA device where that is None."""
    return _entry(device).get(name, default)


@contextmanager
def trial(entry: Entry) -> Iterator[None]:
    """Within, this is what was measured, on any device."""
    token = _on_trial.set(entry)
    try:
        yield
    finally:
        _on_trial.reset(token)


def parsed(text: str) -> dict[str, Entry]:
    """Entries by the names of devices, from the JSON of a table.

    Raises
    ------
    ValueError
        It is no such table, a name is unknown, or a number is out of its range.
    """
    content = _object(json.loads(text), "it")
    if content.keys() != {"format", "devices"} or content["format"] != FORMAT:
        raise ValueError(f'it is not {{"format": {FORMAT}, "devices": …}}')
    devices = _object(content["devices"], "devices")
    for device, entry in devices.items():
        _check(_object(entry, device), device)
    return devices


def _check(entry: dict[str, Any], device: str) -> None:
    for name, value in entry.items():
        where = f"{name} of {device}"
        if name in _LIMITS:
            _check_number(name, value, where)
        elif name in _SHAPES:
            sizes, options = _SHAPES[name]
            for size, shape in _object(value, where).items():
                if size not in sizes:
                    raise ValueError(f"{where} is for an unknown {size!r}")
                for option, number in _object(shape, where).items():
                    if option not in options:
                        raise ValueError(f"{where} has an unknown {option!r}")
                    _check_number(option, number, f"{option} of {where}")
        else:
            raise ValueError(f"{name!r} of {device} is unknown")


def _check_number(name: str, value: Any, where: str) -> None:
    kind = "BLOCK" if name.startswith("BLOCK") else name
    low, high = _RANGES[kind]
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{where} is {value!r}, no whole number from {low} to {high}")
    if kind in _POWERS_OF_2 and value.bit_count() != 1:
        raise ValueError(f"{where} is {value}, no power of 2")


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is no object")
    return value


def _entry(device: torch.device | None) -> Entry:
    """What was measured on a device; nothing on others than CUDA's."""
    tried = _on_trial.get()
    if tried is not None:
        return tried
    measured = _measured()
    if not measured or (device is not None and device.type != "cuda"):
        return {}
    if not torch.cuda.is_available():
        return {}
    return measured.get(torch.cuda.get_device_name(device), {})


@cache
def _measured() -> dict[str, Entry]:
    """The table of this installation; empty where there is none, or none that can be used."""
    if not TABLE.exists():
        return {}
    try:
        return parsed(TABLE.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        warnings.warn(
            f"{TABLE.name} cannot be used ({error}); kernels are launched by their own constants.",
            LaunchTableWarning,
            stacklevel=4,
        )
        return {}
