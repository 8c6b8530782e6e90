"""Compiles Triton kernels for an H200 where there is no GPU, down to machine code.

Run without ``TRITON_INTERPRET``: within `compiled_kernels`, launches on CPU tensors compile their
kernel for the arguments given, as a launch would, and leave out the launch itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel
from triton.runtime.jit import JITFunction

H200 = GPUTarget("cuda", 90, 32)
SHARED_BYTES = 232_448  # that a thread block of compute capability 9.0 may use
_TYPES = {
    torch.float64: "*fp64", torch.float32: "*fp32", torch.int64: "*i64", torch.int32: "*i32",
    torch.int8: "*i8", torch.uint8: "*u8", torch.bool: "*i1",
}  # fmt: skip
_OPTIONS = ("num_warps", "num_stages")


@contextmanager
def compiled_kernels() -> Iterator[list[tuple[str, CompiledKernel]]]:
    """What the launches inside compile, by the names of the kernels."""
    compiled: list[tuple[str, CompiledKernel]] = []

    def run(self: JITFunction, *args: object, grid: object, warmup: bool, **kwargs: object) -> None:
        options = {name: kwargs.pop(name) for name in _OPTIONS if name in kwargs}
        values = dict(zip(self.arg_names, args, strict=False)) | kwargs
        assert values.keys() == set(self.arg_names), "all arguments are given, and no others"
        signature, constants, divisible = {}, {}, {}
        for k, parameter in enumerate(self.params):
            value = values[parameter.name]
            if parameter.is_constexpr or (isinstance(value, int) and value == 1):
                signature[parameter.name], constants[(k,)] = "constexpr", value
                continue
            if isinstance(value, torch.Tensor):
                signature[parameter.name], number = _TYPES[value.dtype], value.data_ptr()
            elif isinstance(value, float):
                signature[parameter.name], number = "fp32", 1
            else:
                signature[parameter.name] = "i32" if abs(value) < 2**31 else "i64"
                number = value
            if number % 16 == 0:
                divisible[(k,)] = [["tt.divisibility", 16]]
        source = ASTSource(fn=self, signature=signature, constexprs=constants, attrs=divisible)
        compiled.append((self.__name__, triton.compile(source, target=H200, options=options)))

    launch, JITFunction.run = JITFunction.run, run
    try:
        yield compiled
    finally:
        JITFunction.run = launch
