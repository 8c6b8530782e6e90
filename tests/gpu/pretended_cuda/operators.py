"""The rules of CUDA for torch's operators, and the work itself on the host's memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

from pretended_cuda.driver import driver, poison
from pretended_cuda.tensor import CudaTensor
from pretended_cuda.transfers import copy

__all__ = ["operate"]

# Their results have shapes, or are numbers, that the host must read.
_READ_BY_THE_HOST = {
    "_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim",
    "unique_consecutive", "equal", "is_nonzero", "bincount", "_linalg_check_errors",
    "_linalg_eigh", "linalg_eig",
}  # fmt: skip
_INDEXING = ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index")
_FRESH = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided")
_PRODUCTS = ("mm", "bmm", "addmm", "addmm_", "baddbmm", "mv", "addmv", "addmv_", "dot", "vdot")
_WITH_RULES = {*_READ_BY_THE_HOST, *_INDEXING, *_PRODUCTS, "repeat_interleave"}
_MASKS = (torch.bool, torch.uint8)


def operate(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do an operator with at least one tensor of the device among its operands."""
    name, view, special = _about(func)
    if name == "copy_" and isinstance(args[0], CudaTensor) != isinstance(args[1], CudaTensor):
        non_blocking = args[2] if len(args) > 2 else kwargs.get("non_blocking", False)
        if args[0].shape != args[1].shape:
            args = args[0], args[1].expand(args[0].shape)
        copy(args[0], args[1], non_blocking)
        return args[0]
    operands: list[CudaTensor] = []
    others: list[Tensor] = []  # of the host
    inner_args = _inner(args, operands, others)
    inner_kwargs = {key: _inner(value, operands, others) for key, value in kwargs.items()}
    if others or special:
        _check(name, args, operands, others)
    to_host = name != "_to_copy" and kwargs.get("device") is not None
    capture = driver().capture
    if not view:
        driver().launches[name] += 1
    if name in _FRESH:
        out = poison(func(*inner_args, **inner_kwargs))
        if capture is not None:
            capture.takes(out)
    elif capture is None or view:
        out = func(*inner_args, **inner_kwargs)
    else:
        out = capture.add(
            func, inner_args, inner_kwargs,
            reads=operands, writes=_written(func, inner_args, inner_kwargs),
        )  # fmt: skip
    return out if to_host else _on_device(out, operands)


@cache
def _about(func: Any) -> tuple[str, bool, bool]:
    """Name of an operator, whether its result is a view, and whether CUDA has rules for it.

    A view is memory of an operand that is not written to.
    """
    aliases = [each.alias_info for each in func._schema.returns]
    view = any(alias is not None and not alias.is_write for alias in aliases)
    name = func._schema.name.removeprefix("aten::")
    return name, view, name in _WITH_RULES


def _inner(value: Any, ours: list[CudaTensor], others: list[Tensor]) -> Any:
    """An argument with the memory of tensors in their place; they are noted."""
    if isinstance(value, CudaTensor):
        ours.append(value)
        return value.inner
    if isinstance(value, Tensor):
        others.append(value)
    elif isinstance(value, (tuple, list)):
        return type(value)([_inner(each, ours, others) for each in value])
    return value


def _on_device(value: Any, operands: list[CudaTensor]) -> Any:
    """A result with tensors of the device; an operand that was changed is itself."""
    if isinstance(value, Tensor):
        for each in reversed(operands):
            if each.inner is value:
                return each
        return CudaTensor(value)
    if isinstance(value, (tuple, list)):
        return type(value)([_on_device(each, operands) for each in value])
    return value


def _check(name: str, args: tuple[Any, ...], ours: list[CudaTensor], others: list[Tensor]) -> None:
    """Refuse what CUDA refuses, and wait where it waits."""
    # Numbers of the host may stand beside tensors of the device.
    others = [each for each in others if each.ndim]
    if name in _INDEXING and isinstance(args[0], CudaTensor):
        indices = [index for index in args[1] if index is not None]
        theirs = [index for index in indices if any(index is other for other in others)]
        others = [each for each in others if not any(each is index for index in theirs)]
        if theirs:
            driver().wait("indices from the host")
        # With one number for all, a mask is filled, and nothing is counted.
        filled = name.startswith("index_put") and args[2].numel() == 1 and len(indices) == 1
        if any(index.dtype in _MASKS for index in indices) and not filled:
            driver().wait("mask for an index")
    if others and ours:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
            f"and cpu! ({name})"
        )
    if name in _READ_BY_THE_HOST or (name == "repeat_interleave" and len(ours) > 0):
        driver().wait(name)
    if name in _PRODUCTS and not args[-1].is_floating_point():
        raise RuntimeError(f'"addmm_cuda" not implemented for {args[-1].dtype} ({name})')


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """Operands that are changed in place."""
    found = []
    for number, argument in enumerate(func._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = args[number] if number < len(args) else kwargs.get(argument.name)
        found += [each for each in tree_flatten(value)[0] if isinstance(each, Tensor)]
    return found
