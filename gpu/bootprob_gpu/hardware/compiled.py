"""Functions compiled by Numba, and the folder on disk that keeps their machine code.

Numba stamps what it keeps with the source file of the function that Python calls; a change in a
function which that one calls goes unseen. Here the name of the folder has a hash of all sources
that are compiled, and of what else the code hangs on. Every module with compiled functions gets
them from here, which is how those sources are known, and of ours imports such modules only:
constants are compiled too.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import llvmlite  # type: ignore[import-untyped, unused-ignore]
import numba
from filelock import FileLock
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numba.extending import register_jitable
from numba.misc.appdirs import AppDirs

__all__ = ["compiled", "inlined", "inner"]

F = TypeVar("F", bound=Callable[..., Any])

_LOGGER = logging.getLogger("bootprob_gpu")  # shows warnings on standard error by default
_CONFIG: Any = numba.config
_MARK = b"bootprob_gpu.hardware.compiled import"
_SETTINGS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")
_SAID: set[str] = set()  # by this process
_FOLDERS_KEPT = 4  # the last ones used: of several interpreters, or of branches of the sources
_PATIENCE = 300.0  # seconds for another process that compiles the same
_DIGEST_BYTES = 32
_NOT_KEPT = "in every process, as no folder can be written (NUMBA_CACHE_DIR may name one)"


def compiled(
    name: str | None = None, *, seconds: int | None = None, **options: Any
) -> Callable[[F], F]:
    """Compile a function that Python calls when it is first called, and keep its machine code.

    Parameters
    ----------
    name : str, optional
        What is compiled, for the line that is logged where that takes long; without it none is.
        Functions of one purpose share it, and the line.
    seconds : int, optional
        How long that takes on a core of 2020 or later.
    **options
        Of `numba.njit`, but for `cache`.

    Returns
    -------
    callable
        A decorator.
    """

    def decorate(function: F) -> F:
        dispatcher = numba.njit(**options)(function)
        if _CONFIG.DISABLE_JIT:
            return dispatcher
        dispatcher._cache = kept = _Kept(function)
        dispatcher.compile = partial(_compile, dispatcher.compile, dispatcher, kept, name, seconds)
        return dispatcher

    return decorate


def inner(*, error_model: str = "python", **options: Any) -> Callable[[F], F]:
    """Compile a function as a part of the compiled functions that call it, and not by itself.

    Called from Python it is plain Python.

    Parameters
    ----------
    error_model, **options
        Of `numba.njit`.

    Returns
    -------
    callable
        A decorator.
    """
    return register_jitable(error_model=error_model, **options)


def inlined(**options: Any) -> Callable[[F], F]:
    """Put the source of a function where it is called, for long ones that are called in one place.

    Other functions are compiled by themselves, and once more in each that calls them.

    Parameters
    ----------
    **options
        Of `numba.njit`; in effect are those of the function that calls.

    Returns
    -------
    callable
        A decorator.
    """
    return numba.njit(inline="always", **options)


def _compile(
    compile_or_load: Callable[[Any], Any],
    dispatcher: Any,
    kept: _Kept,
    name: str | None,
    seconds: int | None,
    signature: Any,
) -> Any:
    """In place of a dispatcher's `compile`: of several processes one compiles, the others wait."""
    codegen = dispatcher.targetctx.codegen()
    types, _ = normalize_signature(signature)
    with ExitStack() as held:
        # In this order everywhere, or two threads could wait for each other.
        held.enter_context(global_compiler_lock)
        if types in dispatcher.overloads or kept.find(types, codegen) is not None:
            return compile_or_load(types)
        folder = kept.writable_folder()
        if folder is not None:
            # Without a lock, and after a long wait, two processes may compile the same.
            with suppress(OSError, NotImplementedError):
                held.enter_context(_lock(folder).acquire(timeout=_PATIENCE))
        if name is not None and name not in _SAID and kept.find(types, codegen) is None:
            _SAID.add(name)
            how_often = "once an installation" if folder else _NOT_KEPT
            _LOGGER.warning("Compiling %s, %s: about %d s.", name, how_often, seconds)
        return compile_or_load(types)


class _Kept(NullCache):
    """What Numba asks for machine code on disk: a file for each signature and processor.

    Files are written beside and put in place, and begin with a checksum, so that any number of
    processes may read and write them; none holds an index of the others.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._source = Path(function.__code__.co_filename)
        self._name = f"{self._source.stem}.{function.__qualname__}"

    @property
    def cache_path(self) -> str | None:
        """Where files are written."""
        folder = self.writable_folder()
        return None if folder is None else str(folder)

    def find(self, signature: Any, codegen: Any) -> bytes | None:
        """The bytes kept for a signature and this processor, if they are whole."""
        for folder in _folders(self._source):
            with suppress(OSError):
                data = (folder / self._file_name(signature, codegen)).read_bytes()
                if hashlib.sha256(data[_DIGEST_BYTES:]).digest() == data[:_DIGEST_BYTES]:
                    return data[_DIGEST_BYTES:]
        return None

    def writable_folder(self) -> Path | None:
        """The first folder in which files can be made; it is made where it is not there yet."""
        return next((folder for folder in _folders(self._source) if _is_ready(folder)), None)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None."""
        target_context.refresh()
        data = self.find(sig, target_context.codegen())
        return None if data is None else CompileResult._rebuild(target_context, *pickle.loads(data))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, where there is a folder for it."""
        assert not data.library.has_dynamic_globals, "addresses are not those of the next process"
        folder = self.writable_folder()
        if folder is None:
            return
        content = dumps(data._reduce())
        file = folder / self._file_name(sig, data.codegen)
        beside = file.with_name(f"{file.name}.{uuid4().hex}")
        try:
            try:
                beside.write_bytes(hashlib.sha256(content).digest() + content)
                beside.replace(file)
            finally:
                beside.unlink(missing_ok=True)
        except OSError as error:  # the function is there all the same
            _LOGGER.warning("Machine code cannot be kept in %s: %s.", folder, error.strerror)

    def _file_name(self, signature: Any, codegen: Any) -> str:
        key = repr((signature, codegen.magic_tuple())).encode()
        return f"{self._name}-{hashlib.sha256(key).hexdigest()[:32]}.code"


@cache
def _folders(source: Path) -> tuple[Path, ...]:
    """Where machine code of a source file may be, the best place first.

    None where sources cannot be read: then nobody can tell whether what is kept is that of today.
    """
    package = source.parent
    while (package.parent / "__init__.py").exists():
        package = package.parent
    fingerprint = _fingerprint(package)
    if fingerprint is None:
        return ()
    name = f"{package.name}-{fingerprint}"
    if _CONFIG.CACHE_DIR:  # NUMBA_CACHE_DIR
        places = [Path(_CONFIG.CACHE_DIR)]
    else:  # beside the package it may be from whoever installed that, and only be read
        places = [package / "__pycache__"]
        for_user = Path(AppDirs("bootprob", appauthor=False).user_cache_dir)
        if for_user.is_absolute():  # there is a home
            places.append(for_user)
    folders = tuple(place.absolute() / name for place in places)
    for folder in folders:
        with suppress(OSError):
            os.utime(folder)  # the last ones used stay
    return folders


@cache
def _fingerprint(package: Path) -> str | None:
    """A hash of what machine code of a package hangs on, but for the signature and processor."""
    engine = Path(__file__).parents[1]
    sources = list(_compiled_sources(package))
    if not sources:
        return None
    if package != engine:  # whose functions it may call
        sources += _compiled_sources(engine)
    found = hashlib.sha256(Path(__file__).read_bytes())
    settings = [repr(getattr(_CONFIG, setting, None)) for setting in _SETTINGS]
    versions = [sys.implementation.cache_tag, numba.__version__, llvmlite.__version__]
    found.update("\n".join([*versions, *settings]).encode())
    for name, content in sources:
        found.update(f"\n{name} {len(content)}\n".encode() + content)
    return found.hexdigest()[:16]


def _compiled_sources(package: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes()
        if _MARK in content:
            yield path.relative_to(package).as_posix(), content


@cache
def _lock(folder: Path) -> FileLock:
    """The lock of this process: it is held again where a function calls another one of these."""
    return FileLock(folder / "lock", thread_local=False)


@cache
def _is_ready(folder: Path) -> bool:
    """Whether files can be made in a folder; the first time it is made, the oldest ones go."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    # A folder that the user names may hold others' files: only what is named as ours goes.
    like_it = re.compile(re.escape(folder.name.rpartition("-")[0]) + "-[0-9a-f]{16}")
    others = [
        each
        for each in folder.parent.iterdir()
        if each != folder and like_it.fullmatch(each.name) and each.is_dir()
    ]
    with suppress(OSError):  # another process may be faster
        others.sort(key=lambda each: each.stat().st_mtime, reverse=True)
        for each in others[_FOLDERS_KEPT - 1 :]:
            shutil.rmtree(each, ignore_errors=True)
    return True
