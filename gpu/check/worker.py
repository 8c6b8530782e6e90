"""Does the parts that it is told to on standard input, and reports on standard output.

    python -m gpu.check.worker DEVICE [tiny]

A line of JSON is a command or an event; `supervisor` writes the one and reads the other.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import signal
import sys
import traceback
import warnings
from importlib import import_module
from queue import SimpleQueue
from threading import Thread
from typing import Any

import torch

from gpu.check.machine import facts
from gpu.check.plan import shown_path
from gpu.check.record import PartIncompleteError, PartSkippedError, Record

_FRAMES = 8  # of a traceback that are kept


def main(device: str, tiny: bool) -> None:
    """Do what the lines of standard input say, until they end."""
    # Whatever a package prints must not come between the events.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()
    commands: SimpleQueue[str] = SimpleQueue()
    Thread(target=_listen, args=(commands,), daemon=True).start()
    if not torch.cuda.is_available():  # before Triton is loaded: its kernels run interpreted
        os.environ.setdefault("TRITON_INTERPRET", "1")
    Record(channel, device, tiny, 0, {}).send("ready", facts=facts(device))
    fallbacks: set[str] = set()
    while True:
        command = json.loads(commands.get())
        record = Record(
            channel, device, tiny, command["seconds"], command["ceilings"], command["shares"]
        )
        end = _do(command["code"], record, fallbacks)
        # The next part, or the tests in a process of their own, may need the memory.
        gc.collect()
        torch.cuda.empty_cache()
        record.send("end", **end)


def _listen(commands: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        commands.put(line)
    # The supervisor is gone, however it went: nothing of this may outlive it.
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _do(code: str, record: Record, fallbacks: set[str]) -> dict[str, Any]:
    """Run a part; how it ended. Warnings that Triton could not be used go into `fallbacks`."""
    module, function = code.split(":")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            getattr(import_module(f"gpu.check.{module}"), function)(record)
            end: dict[str, Any] = {"status": "passed" if record.kept else "failed"}
        except PartSkippedError as reason:
            end = {"status": "skipped", "why": str(reason)}
        except PartIncompleteError as reason:
            end = {"status": "incomplete", "why": str(reason)}
        except ModuleNotFoundError as error:
            if _is_ours(error.name):
                end = _failure(error)
            else:
                end = {"status": "skipped", "why": f"the package {error.name} is not installed"}
        except Exception as error:
            end = _failure(error)
    if end["status"] in ("skipped", "incomplete") and not record.kept:
        end["status"] = "failed"
    said = sorted({f"{each.category.__name__}: {each.message}" for each in caught})
    if said:
        end["warnings"] = said
    # Such a warning comes once in a process, but its kernel is slow in all the parts that follow.
    fallbacks.update(each for each in said if each.startswith("KernelFallbackWarning"))
    if fallbacks:
        end["Triton fell back"] = sorted(fallbacks)
        if end["status"] == "passed":
            end.update(status="failed", why="a Triton kernel could not be used")
    return end


def _is_ours(module: str | None) -> bool:
    return (module or "").split(".")[0] in ("", "bootprob", "bootprob_gpu", "gpu")


def _failure(error: Exception) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return {
        "status": "error",
        "why": f"{type(error).__name__}: {str(error)[:2000]}",
        "traceback": [
            f"{shown_path(frame.filename)}:{frame.lineno} in {frame.name}: {frame.line}"
            for frame in frames
        ],
    }


if __name__ == "__main__":
    main(sys.argv[1], "tiny" in sys.argv[2:])
