"""Copies between the host and the pretended device."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from pretended_cuda.driver import driver
from pretended_cuda.streams import copied_late, read_late
from pretended_cuda.tensor import CudaTensor

__all__ = ["arrived", "copy", "is_ours", "moved"]


class _Asked(NamedTuple):
    device: torch.device | None
    dtype: torch.dtype | None
    non_blocking: bool
    copy: bool


def is_ours(device: Any) -> bool:
    """Whether the pretended device is meant.

    Raises
    ------
    RuntimeError
        If it is another of its kind, which is not there.
    """
    if isinstance(device, int):
        device = torch.device("cuda", device)
    if device is None or (device := torch.device(device)).type != "cuda":
        return False
    if device.index not in (None, 0):
        raise RuntimeError("CUDA error: invalid device ordinal")
    return True


def moved(tensor: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """``tensor.to(...)`` where the tensor is of this device, or goes to it."""
    asked = _asked(tensor, args, kwargs)
    dtype = asked.dtype or tensor.dtype
    here = isinstance(tensor, CudaTensor)
    if asked.device is None or is_ours(asked.device) == here:
        if dtype == tensor.dtype and not asked.copy:
            return tensor
        return torch.ops.aten._to_copy.default(tensor, dtype=dtype)
    if here:
        target = torch.empty_like(tensor.inner, dtype=dtype)
        if asked.non_blocking:
            driver().pin(target)  # as torch takes it for such a copy
    else:
        target = CudaTensor(torch.empty_like(tensor, dtype=dtype))
    copy(target, tensor, asked.non_blocking)
    return target


def copy(target: Tensor, source: Tensor, non_blocking: bool) -> None:
    """Copy between host and device; the host waits, unless told not to and its memory is pinned."""
    to_device = isinstance(target, CudaTensor)
    host, on_device = (source, target) if to_device else (target, source)
    inner, way = on_device.inner, "to the device" if to_device else "to the host"
    late = non_blocking and driver().is_pinned(host)
    driver().launches[f"copy {way}"] += 1
    if not late:
        driver().wait(f"copy {way}" + ("" if driver().is_pinned(host) else " (pageable memory)"))
    if driver().capture is not None:
        driver().capture.add(
            torch.Tensor.copy_, (inner if to_device else target, source if to_device else inner),
            reads=[on_device], writes=[inner if to_device else target],
        )  # fmt: skip
    elif to_device:
        inner.copy_(source)
        if late:
            read_late(source)
    elif late:
        copied_late(target, inner)
    else:
        target.copy_(inner)


def arrived(made: Tensor) -> CudaTensor:
    """A tensor made of the host's numbers, sent to the device: a copy of pageable memory."""
    target = CudaTensor(torch.empty_like(made))
    copy(target, made, non_blocking=False)
    return target


def _asked(tensor: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Asked:
    """What the arguments of `Tensor.to` mean."""
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    flags = [value for value in args if isinstance(value, bool)]
    for value in args:
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, torch.dtype):
            dtype = value
        elif value is not None and not isinstance(value, bool):
            device = value
    if "other" in kwargs:
        device, dtype = kwargs["other"].device, kwargs["other"].dtype
    named = kwargs.get("non_blocking", False), kwargs.get("copy", False)
    non_blocking, copied = (*flags, *named[len(flags) :])
    if isinstance(device, int):
        device = torch.device("cuda", device)
    device = None if device is None else torch.device(device)
    return _Asked(device, dtype, non_blocking, copied)
