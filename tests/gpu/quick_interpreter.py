"""Triton's interpreter without what it works out again at every operation, and with the same bits.

Most of its time goes into the shapes and types of what is mostly a number or a row: a few of each,
and every operation makes them anew. `as_it_comes` is the interpreter without this, for comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any

from triton import language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter

__all__ = ["as_it_comes", "make_quick"]

_replaced: list[tuple[object, str, Any, Any]] = []


def make_quick() -> None:
    """Make it quick in this process; it must not be running."""
    if not hasattr(interpreter, "_LangPatchScope"):
        return  # older ones
    if not _replaced:
        _replace(interpreter, "_get_np_dtype", _remembered_dtypes(interpreter._get_np_dtype))
        _replace(interpreter.GridExecutor, "__call__", _prepared_once)
        _replace(interpreter, "_patch_builtin", _patch_builtin)
        _replace(tl.block_type, "__init__", _remembered_shapes(tl.block_type.__init__))
        _replace(tl.tensor, "__init__", _tensor)
        _replace(tl.dtype, "__eq__", _identical_or(tl.dtype.__eq__))
        for name, quick in (
            ("binary_op_type_checking_impl", _same_type_or),
            ("broadcast_impl_value", _same_shape_or),
        ):
            _replace(TritonSemantic, name, quick(getattr(TritonSemantic, name)))
        # Whether integers overflow is always computed, and looked at in debug mode only.
        options = replace(interpreter.interpreter_builder.options, sanitize_overflow=False)
        _replace(interpreter.interpreter_builder, "options", options)
    for owner, name, _, quick in _replaced:
        setattr(owner, name, quick)


@contextmanager
def as_it_comes() -> Iterator[None]:
    """Within, the interpreter is as slow as it is."""
    for owner, name, slow, _ in _replaced:
        setattr(owner, name, slow)
    try:
        yield
    finally:
        make_quick()


def _replace(owner: object, name: str, value: Any) -> None:
    _replaced.append((owner, name, getattr(owner, name), value))


def _remembered_dtypes(look_up: Callable) -> Callable:
    """A table of all dtypes is built whenever one is looked up."""
    known: dict[str, Any] = {}

    def of(dtype: Any) -> Any:
        name = dtype.scalar.name
        if name not in known:
            known[name] = look_up(dtype.scalar)
        return known[name]

    return of


_launch, _prepare = interpreter.GridExecutor.__call__, interpreter._patch_lang


def _prepared_once(self: Any, *args: Any, **kwargs: Any) -> None:
    """Triton's language is made ready for a module at every call inside a kernel."""
    ready: set[str] = set()

    def prepare(fn: Any) -> Any:
        if fn.__module__ in ready:
            return interpreter._LangPatchScope()
        ready.add(fn.__module__)
        return _prepare(fn)

    interpreter._patch_lang = prepare
    try:
        _launch(self, *args, **kwargs)
    finally:
        interpreter._patch_lang = _prepare


_builtins: dict[object, list[str]] = {}


def _patch_builtin(package: Any, builder: Any, scope: Any) -> None:
    """What of a package is to be patched is looked for among all that it has, at every launch."""
    if package not in _builtins:
        _builtins[package] = [
            name for name in dir(package) if tl.core.is_builtin(getattr(package, name, None))
        ]
    semantic = TritonSemantic(builder)
    for name in _builtins[package]:
        member = getattr(package, name)
        if tl.core.is_builtin(member):  # not patched yet
            scope.set_attr(package, name, _with(semantic, member))


_IN_KERNELS_ONLY = tl.core.builtin(lambda: None).__code__  # asks whether there is a semantic


def _with(semantic: Any, member: Callable) -> Callable:
    if getattr(member, "__code__", None) is _IN_KERNELS_ONLY:
        member = member.__wrapped__

    def quick(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = semantic
        return member(*args, **kwargs)

    return quick


def _remembered_shapes(make: Callable) -> Callable:
    known: dict[tuple, tuple[tl.tuple, int]] = {}
    names: dict[tuple, str] = {}

    def init(self: Any, element_ty: Any, shape: Any) -> None:
        key = tuple([each.value if isinstance(each, tl.constexpr) else each for each in shape])
        if key not in known:
            make(self, element_ty, shape)
            known[key] = self.shape, self.numel
        self.element_ty = element_ty
        self.shape, self.numel = known[key]
        named = key, element_ty.name
        if named not in names:
            names[named] = f"<{self.shape}, {element_ty}>"
        self.name = names[named]

    return init


_shapes: dict[tuple, tuple[tl.tuple, tl.constexpr]] = {}


def _tensor(self: Any, handle: Any, type: Any) -> None:
    self.handle, self.type, self.dtype = handle, type, type.scalar
    key = tuple(type.shape.values) if type.is_block() else ()
    if key not in _shapes:
        _shapes[key] = tl.tuple([tl.constexpr(each) for each in key]), tl.constexpr(prod(key))
    self.shape, self.numel = _shapes[key]


def _identical_or(equal: Callable) -> Callable:
    return lambda self, other: self is other or equal(self, other)


_PLAIN = {tl.float64, tl.float32, tl.int1, tl.int32, tl.int64}
"""Types that two operands have in common are the type of the result, whatever the operation."""


def _same_type_or(checked: Callable) -> Callable:
    def quick(self: Any, lhs: Any, rhs: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if type(lhs) is type(rhs) is tl.tensor and lhs.dtype is rhs.dtype and lhs.dtype in _PLAIN:
            return self.broadcast_impl_value(lhs, rhs)
        return checked(self, lhs, rhs, *args, **kwargs)

    return quick


def _same_shape_or(broadcast: Callable) -> Callable:
    def quick(self: Any, lhs: Any, rhs: Any) -> tuple[Any, Any]:
        return (lhs, rhs) if lhs.shape is rhs.shape else broadcast(self, lhs, rhs)

    return quick
