"""A tensor that says cuda:0."""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from torch import Tensor

from pretended_cuda.driver import DEVICE, driver

__all__ = ["CudaTensor"]


class CudaTensor(torch.Tensor):
    """A tensor of the pretended device.

    To torch's own C++ it is one of the CPU, because it would ask a CUDA library otherwise; whoever
    asks from Python is told cuda:0. Operators come to `pretended_cuda.operators`.

    Attributes
    ----------
    inner : Tensor
        Where the numbers are.
    allocation : Allocation
        Memory of the device; that of a view is that of its base.
    """

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> CudaTensor:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
        )
        made.inner = inner
        made.allocation = driver().allocation(inner)
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from pretended_cuda.operators import operate

        return operate(func, args, kwargs or {})

    # --- what torch's C++ would answer for a CPU ---------------------------------------------

    device = property(lambda self: DEVICE)
    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)

    def get_device(self) -> int:
        return 0

    def is_pinned(self, device: object = None) -> bool:
        return False

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def record_stream(self, stream: Any) -> None:
        stream.record_event()

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        from pretended_cuda.transfers import moved

        return moved(self, args, kwargs)

    def cpu(self, memory_format: torch.memory_format = torch.preserve_format) -> Tensor:
        return self.to("cpu", memory_format=memory_format)

    def cuda(self, device: object = None, non_blocking: bool = False) -> Tensor:
        return self.to(DEVICE if device is None else device, non_blocking=non_blocking)

    def type_as(self, other: Tensor) -> Tensor:
        return self.to(other)

    def __deepcopy__(self, known: dict[int, Any]) -> CudaTensor:
        known[id(self)] = copied = self.clone()
        return copied

    def new_tensor(self, data: Any, *, device: Any = None, **kwargs: Any) -> Tensor:
        kwargs.setdefault("dtype", self.dtype)
        return torch.tensor(data, device=DEVICE if device is None else device, **kwargs)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, (bool, int, float)):  # on CUDA a number is filled in, not copied
            value = torch.full((), value, dtype=self.dtype, device=DEVICE)
        super().__setitem__(index, value)

    # --- the host reads ----------------------------------------------------------------------

    def tolist(self) -> Any:
        driver().wait("tolist")
        return self.inner.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return self.cpu().numpy()
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
            "to host memory first."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.numpy()

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"CudaTensor({self.inner!r})"
