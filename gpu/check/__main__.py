"""Is the engine right on this GPU, and how fast is it? One JSON answers, whatever happens.

    make gpu-check                       with the project's environment
    make gpu-check PYTHON_GPU=python3    with an interpreter that has torch and the rest
    python gpu/check --device cpu --tiny a rehearsal without a GPU, good for testing this program

The result goes to gpu/results/<device>-<date>-<commit>.json (a rehearsal's to build/gpu-check)
and is written anew after every finding, so a run that is cut short leaves what it found.
The exit status is 0 if nothing failed, 1 if something did or nothing could be checked, 2 without
such a device.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

from plan import BUDGET, PARTS, ROOT
from result_file import ResultFile, now, source
from supervisor import Interrupted, Worker, WorkerLostError, failures, supervise


def main() -> int:
    """Run the check; the exit status."""
    began = time.monotonic()
    options = _options()
    rehearsal = options.tiny or not options.device.startswith("cuda")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    started = now()

    def start() -> Worker:
        return Worker([options.device, *(["tiny"] if options.tiny else [])])

    worker = start()
    try:
        facts = worker.ready()
        if not facts.pop("usable"):
            _say(f"There is no device {options.device!r} here; rehearse with --device cpu --tiny.")
            return 2
        content = {
            "format": 1,
            "rehearsal": rehearsal,
            "complete": False,
            "started": started,
            "source": source(options.commit),
            "budget, seconds": options.seconds,
            **facts,
            "parts": {},
        }
        folder = options.out or ROOT / ("build/gpu-check" if rehearsal else "gpu/results")
        result = ResultFile(folder, facts["device"]["name"], content)
        _say(f"{facts['device']['name']}, writing {result.path}")
        supervise(
            [part for part in PARTS if not options.only or part.name in options.only],
            start=start,
            worker=worker,
            result=result,
            budget=options.seconds,
            began=began,
            say=_say,
        )
    except WorkerLostError as lost:
        _say(f"The check cannot start: {lost}.")
        return 2
    except Interrupted as interruption:
        _say(f"Interrupted ({interruption}).")
        return 128 + interruption.number
    finally:
        worker.kill()
    parts = result.content["parts"]
    failed = failures(parts)
    unknown = [name for name, part in parts.items() if part["status"] in ("not run", "skipped")]
    if failed:
        verdict = f"FAILED: {', '.join(failed)}"
    elif len(unknown) < len(parts):
        verdict = "nothing failed"
    else:
        verdict = "nothing was checked"
    _say(f"{result.path}: {verdict}")
    if unknown:
        _say(f"not run or skipped: {', '.join(unknown)}")
    return 1 if failed or len(unknown) == len(parts) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu/check", description=(__doc__ or "").split("\n\n")[0])
    add = parser.add_argument
    add("--device", default="cuda", help="cuda, cuda:1, ... or cpu for a rehearsal")
    add("--tiny", action="store_true", help="tiny sizes: a rehearsal of the program")
    add("--out", type=Path, metavar="FOLDER", help="where the JSON goes")
    add("--seconds", type=float, default=BUDGET, help=f"time in all (default {BUDGET:.0f})")
    add("--commit", help="commit of a copy that has no history (or variable BOOTPROB_COMMIT)")
    names = [part.name for part in PARTS]
    add("--only", action="append", choices=names, metavar="PART", help=f"of {', '.join(names)}")
    return parser.parse_args()


def _interrupt(number: int, frame: object) -> NoReturn:
    raise Interrupted(number)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
