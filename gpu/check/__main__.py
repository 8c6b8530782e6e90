"""Is the engine right on this GPU, and how fast is it? One JSON a command answers, in any case.

    make gpu-check                          first command, with the project's environment
    make gpu-check GPU_CHECK=--second       second command: tuning, counters, contract suite, memory
    make gpu-check PYTHON_GPU=python3       with an interpreter that has torch and the rest
    python -m gpu.check --device cpu --tiny a rehearsal without a GPU, which tests this

The result goes to gpu/results/<device>-<date>-<commit>.json (a rehearsal's to build/gpu-check)
and is written anew after every finding, so a run that is cut short leaves what it found.
The exit status is 0 if every part was done and passed, 1 if something failed, 2 without such a
device, 3 if nothing failed but something was not done: its verdict begins with "incomplete".
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from gpu.check.plan import BUDGET, PARTS, ROOT, Part
from gpu.check.result_file import ResultFile, now, source
from gpu.check.supervisor import Interrupted, Worker, WorkerLostError, supervise
from gpu.check.surroundings import environment
from gpu.check.verdict import UNFINISHED, verdict

_PATIENCE = 5.0  # times as long may a rehearsal take: a CPU interprets the kernels

say = partial(print, flush=True)


def main() -> int:
    """Run the check; the exit status."""
    began = time.monotonic()
    options = _options()
    rehearsal = options.tiny or not options.device.startswith("cuda")
    slack = _PATIENCE if rehearsal else 1.0
    budget = slack * BUDGET if options.seconds is None else options.seconds
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    started = now()
    worker: Worker | None = None
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as unpacked:
        variables, carried = environment(Path(unpacked))

        def start() -> Worker:
            return Worker([options.device, *(["tiny"] if options.tiny else [])], variables)

        try:
            worker = start()
            facts = worker.ready()
            if not facts.pop("usable"):
                say(f"There is no device {options.device!r} here; rehearse: --device cpu --tiny.")
                return 2
            content = {
                "format": 2,
                "command": _name(options),
                "rehearsal": rehearsal,
                "verdict": UNFINISHED,
                "complete": False,
                "started": started,
                "source": source(options.commit),
                "budget, seconds": budget,
                "carried packages": carried,
                **facts,
                "parts": {},
            }
            folder = options.out or ROOT / ("build/gpu-check" if rehearsal else "gpu/results")
            result = ResultFile(folder, facts["device"]["name"], content)
            say(f"{facts['device']['name']}, writing {result.path}")
            supervise(
                [replace(part, seconds=slack * part.seconds) for part in _parts(options)],
                start=start,
                worker=worker,
                result=result,
                budget=budget,
                began=began,
                say=say,
            )
        except WorkerLostError as lost:
            say(f"The check cannot start: {lost}.")
            return 2
        except Interrupted as interruption:
            say(f"Interrupted ({interruption}).")
            return 128 + interruption.number
        finally:
            if worker is not None:
                worker.kill()
    said, status = verdict(result.content["parts"])
    say(f"{result.path}: {said}")
    return status


def _parts(options: argparse.Namespace) -> list[Part]:
    if options.only:
        return [part for part in PARTS if part.name in options.only]
    return [part for part in PARTS if part.second == options.second]


def _name(options: argparse.Namespace) -> str:
    if options.only:
        return "only " + ", ".join(part.name for part in _parts(options))
    return "second" if options.second else "first"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m gpu.check", description=(__doc__ or "").split("\n\n")[0]
    )
    add = parser.add_argument
    add("--device", default="cuda", help="cuda, cuda:1, ... or cpu for a rehearsal")
    add("--second", action="store_true", help="the second command's parts")
    add("--tiny", action="store_true", help="tiny sizes: a rehearsal of the program")
    add("--out", type=Path, metavar="FOLDER", help="where the JSON goes")
    add("--seconds", type=float, help=f"time in all (default {BUDGET:.0f})")
    add("--commit", help="commit of a copy that has no history (or variable BOOTPROB_COMMIT)")
    names = [part.name for part in PARTS]
    add("--only", action="append", choices=names, metavar="PART", help=f"of {', '.join(names)}")
    return parser.parse_args()


def _interrupt(number: int, frame: object) -> NoReturn:
    raise Interrupted(number)


if __name__ == "__main__":
    sys.exit(main())
