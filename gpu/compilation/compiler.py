"""Variants compiled to machine code, by several processes, and what the assembler says of them."""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import triton
from triton import knobs

from bootprob.runtime.files import replace_when_complete
from gpu.compilation import occupancy
from gpu.compilation.launches import Variant

__all__ = ["Results", "compiled", "measure"]

_USED = re.compile(r"Used (\d+) registers")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_MESSAGE = 500  # characters of an error that are kept

_work: Sequence[Variant] = ()  # what forked processes are sent numbers of


def compiled(variant: Variant) -> tuple[Any, str]:
    """The kernel as Triton has it (``.asm``, ``.metadata``), and what ptxas said."""
    said = io.StringIO()
    with (
        knobs.compilation.scope(),
        knobs.nvidia.scope(),
        contextlib.redirect_stdout(said),
    ):
        knobs.compilation.always_compile = True
        knobs.nvidia.dump_ptxas_log = True
        kernel = triton.compile(variant.ast_source, target=variant.target, options=variant.options)
    return kernel, said.getvalue()


def measure(variant: Variant) -> dict[str, Any]:
    """Compile, and count.

    Returns
    -------
    dict
        "registers" of a thread, bytes "spilled" (stores and loads), bytes of the "stack" of a
        thread and of "shared" memory of a program, "warps" of a program, "programs" that a
        multiprocessor works on at a time. Or "error" alone.
    """
    try:
        kernel, said = compiled(variant)
    except Exception as error:  # whatever a compiler fails with is the result
        return {"error": f"{type(error).__name__}: {str(error)[:_MESSAGE]}"}
    registers, frames = _USED.findall(said), _FRAME.findall(said)
    if len(registers) != 1 or len(frames) != 1:
        raise RuntimeError(f"The assembler said of {variant.kernel.__name__}: {said[:_MESSAGE]}")
    stack, stored, loaded = (int(number) for number in frames[0])
    use = {
        "registers": int(registers[0]),
        "warps": kernel.metadata.num_warps,
        "shared": kernel.metadata.shared,
    }
    return {
        **use,
        "spilled": stored + loaded,
        "stack": stack,
        "programs": occupancy.programs(variant.target.arch, **use),
    }


class Results:
    """What was measured on this machine, a file for each key.

    Parameters
    ----------
    folder : Path
        Made if need be. Its folder "triton" is Triton's own cache, with the machine code.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "measured"
        self._folder.mkdir(parents=True, exist_ok=True)
        knobs.cache.dir = str(folder / "triton")

    def __getitem__(self, variant: Variant) -> dict[str, Any]:
        return json.loads(self._path(variant).read_text(encoding="utf-8"))

    def __contains__(self, variant: Variant) -> bool:
        return self._path(variant).exists()

    def add(
        self, variants: Sequence[Variant], *, processes: int, until: float = float("inf")
    ) -> Iterator[tuple[Variant, dict[str, Any]]]:
        """Measure variants, whether they are known or not.

        Parameters
        ----------
        processes : int
            That compile at the same time.
        until : float, default infinity
            Of `time.monotonic`: no variant is begun later.
        """
        global _work
        _work = variants
        # Forked processes have the kernels, which cannot be sent to any other.
        pool = multiprocessing.get_context("fork").Pool(processes)
        with pool:
            numbers = (k for k in range(len(variants)) if time.monotonic() < until)
            for k, found in _as_they_come(pool, numbers, processes):
                if "error" not in found:
                    with replace_when_complete(self._path(variants[k])) as file:
                        file.write(json.dumps(found).encode())
                yield variants[k], found

    def _path(self, variant: Variant) -> Path:
        return self._folder / f"{variant.key}.json"


def _as_they_come(pool: Any, numbers: Iterator[int], processes: int) -> Iterator[Any]:
    """Results, with at most one task waiting for each process: a limit of time is kept."""
    under_way: list[Any] = []
    while True:
        while len(under_way) < processes and (k := next(numbers, None)) is not None:
            under_way.append(pool.apply_async(_measured, (k,)))
        if not under_way:
            return
        ended = [each for each in under_way if each.ready()]
        for each in ended:
            under_way.remove(each)
            yield each.get()
        if not ended:
            under_way[0].wait(0.02)


def _measured(k: int) -> tuple[int, dict[str, Any]]:
    return k, measure(_work[k])
