"""Calls of torch that name the device: they make its tensors, or send the host's there."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten

from pretended_cuda.driver import DEVICE, driver, poison
from pretended_cuda.tensor import CudaTensor
from pretended_cuda.transfers import arrived, is_ours, moved

__all__ = ["Calls", "Generator"]

_OF_NUMBERS = ("tensor", "as_tensor", "asarray")
_FRESH = ("empty", "empty_strided")


_OfCpu = torch.Generator


class Generator:
    """Stands in for `torch.Generator`: those of a CPU serve the device as well."""

    def __new__(cls, device: Any = "cpu") -> torch.Generator:
        return _OfCpu("cpu" if is_ours(device) else device)


class Calls(TorchFunctionMode):
    """Active in every thread while CUDA is pretended."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in _OF_HOST and args and _is_of_host(args[0]):
            return _OF_HOST[name](func, *args, **kwargs)
        if not kwargs:
            return func(*args)
        if name in ("as_tensor", "asarray") and isinstance(args[0], CudaTensor):
            return args[0].to(**kwargs)
        if is_ours(kwargs.get("device")):
            return _made(func, name, args, kwargs)
        if kwargs.get("pin_memory"):
            return driver().pin(func(*args, **kwargs | {"pin_memory": False}))
        return func(*args, **kwargs)


def _made(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """A new tensor of the device."""
    operands = [each for each in tree_flatten(args)[0] if isinstance(each, Tensor)]
    if any(isinstance(each, CudaTensor) for each in operands):
        del kwargs["device"]  # that of its operand
        return func(*args, **kwargs)
    kwargs["device"] = "cpu"
    if name in _OF_NUMBERS:
        return arrived(func(*args, **kwargs))
    driver().launches[name] += 1
    capture = driver().capture
    if name in _FRESH:
        made = poison(func(*args, **kwargs))
        return CudaTensor(made if capture is None else capture.takes(made))
    if capture is None:
        return CudaTensor(func(*args, **kwargs))
    return CudaTensor(capture.add(func, args, kwargs, reads=(), writes=()))


def _to(func: Any, tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    wanted = [kwargs.get("device"), *args]
    if any(_names_us(each) for each in wanted) or isinstance(kwargs.get("other"), CudaTensor):
        return moved(tensor, args, kwargs)
    return func(tensor, *args, **kwargs)


def _is_of_host(value: Any) -> bool:
    return isinstance(value, Tensor) and not isinstance(value, CudaTensor)


def _names_us(value: Any) -> bool:
    if isinstance(value, CudaTensor):
        return True
    return isinstance(value, (str, torch.device)) and is_ours(value)


def _cuda(func: Any, tensor: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    return moved(tensor, (DEVICE if device is None else device,), {"non_blocking": non_blocking})


def _is_pinned(func: Any, tensor: Tensor, device: Any = None) -> bool:
    return driver().is_pinned(tensor)


def _pin_memory(func: Any, tensor: Tensor, device: Any = None) -> Tensor:
    return tensor if driver().is_pinned(tensor) else driver().pin(tensor.clone())


_OF_HOST = {"to": _to, "cuda": _cuda, "is_pinned": _is_pinned, "pin_memory": _pin_memory}
