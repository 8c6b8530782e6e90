"""Launches of Triton kernels, noted instead of made, and what Triton would compile for them.

Needs no GPU and no driver. To be imported where ``TRITON_INTERPRET`` is not set.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.jit import JITFunction, create_function_from_signature

__all__ = ["Launch", "Variant", "noted_launches", "source_of"]


@dataclass(frozen=True)
class Launch:
    """A kernel and the arguments that it was to be launched with."""

    kernel: JITFunction
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def variant(self, capability: int) -> Variant:
        """What Triton would compile for a compute capability, such as 90 for 9.0."""
        target, backend, bind = _binding(self.kernel, capability)
        options, signature, constants, attributes = self.kernel._pack_args(
            backend, self.kwargs, *bind(*self.args, **self.kwargs)
        )
        names = options.__dict__
        return Variant(
            kernel=self.kernel,
            target=target,
            signature=signature,
            constants=constants,
            attributes=attributes,
            options={name: value for name, value in self.kwargs.items() if name in names},
        )


@cache
def _binding(kernel: JITFunction, capability: int) -> tuple[GPUTarget, Any, Callable[..., Any]]:
    """Triton's own way from arguments to types, constants and what is known to be divisible."""
    target = GPUTarget("cuda", capability, 32)
    backend = make_backend(target)
    return target, backend, create_function_from_signature(kernel.signature, kernel.params, backend)


@dataclass(frozen=True)
class Variant:
    """A kernel as it is compiled for some arguments and one compute capability."""

    kernel: JITFunction
    target: GPUTarget
    signature: dict[str, str]
    constants: dict[tuple[int, ...], Any]
    attributes: dict[tuple[int, ...], Any]
    options: dict[str, int]

    @property
    def ast_source(self) -> ASTSource:
        """For `triton.compile`."""
        return ASTSource(
            fn=self.kernel,
            signature=self.signature,
            constexprs=self.constants,
            attrs=self.attributes,
        )

    @cached_property
    def described(self) -> dict[str, Any]:
        """Name, compute capability, and what tells this variant from others of its kernel."""
        names = self.kernel.arg_names
        types = [kind for kind in self.signature.values() if kind.startswith("*")]
        undivided = [
            name
            for k, (name, kind) in enumerate(self.signature.items())
            if kind != "constexpr" and not self.attributes.get((k,))
        ]
        return {
            "kernel": self.kernel.__name__,
            "capability": self.target.arch,
            "constants": {names[k]: value for (k,), value in self.constants.items()},
            "types": sorted({kind[1:] for kind in types}),
            "not known to be multiples of 16": undivided,
            "options": self.options,
        }

    @cached_property
    def key(self) -> str:
        """Hash of everything that the machine code depends on."""
        parts = [
            triton.__version__,
            self.target.arch,
            source_of(self.kernel),
            list(self.signature.items()),
            sorted((repr(path), repr(value)) for path, value in self.constants.items()),
            sorted((repr(path), repr(value)) for path, value in self.attributes.items()),
            sorted(self.options.items()),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


@contextmanager
def noted_launches() -> Iterator[list[Launch]]:
    """Within, kernels are not launched; the launches are in the list."""
    noted: list[Launch] = []

    def run(self: JITFunction, *args: Any, grid: object, warmup: bool, **kwargs: Any) -> None:
        noted.append(Launch(self, args, kwargs))

    launch, JITFunction.run = JITFunction.run, run
    try:
        yield noted
    finally:
        JITFunction.run = launch


@cache
def source_of(kernel: JITFunction) -> list[str]:
    """Code of a kernel, of all functions that it calls, and values of constants in them.

    Without comments, docstrings and line numbers, which the machine code does not depend on.

    Raises
    ------
    TypeError
        A name is looked up in a module in which it could be anything.
    """
    waiting, seen, found = [kernel], {kernel._fn_name}, []
    while waiting:
        function = waiting.pop()
        tree = ast.parse(function.src)
        _forget_docstring(tree)
        found.append(ast.unparse(tree))
        scope = function.get_capture_scope()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                _require_known(scope.get(node.value.id), node, function)
            if not isinstance(node, ast.Name):
                continue
            value = scope.get(node.id)
            if isinstance(value, JITFunction):
                if value._fn_name not in seen and not value.__module__.startswith("triton."):
                    seen.add(value._fn_name)
                    waiting.append(value)
            elif value is not None and not callable(value) and not isinstance(value, ModuleType):
                found.append(f"{node.id} = {value!r}")
    return sorted(set(found))


def _forget_docstring(tree: ast.Module) -> None:
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        function.body[0] = ast.copy_location(ast.Pass(), first)


def _require_known(value: object, node: ast.Attribute, function: JITFunction) -> None:
    """Let only Triton's own modules be looked into: its version is in the key."""
    if isinstance(value, ModuleType) and not value.__name__.startswith("triton"):
        raise TypeError(
            f"{function.__name__} looks up {node.attr!r} in {value.__name__}, which a key of "
            "compiled kernels cannot see; import the name itself."
        )
