"""Which block sizes, warps and limits are the fastest on this GPU? Measured, and written down.

    make gpu-tune                              with the project's environment
    make gpu-tune PYTHON_GPU=python3           with an interpreter that has torch and the rest
    python -m gpu.tuning --device cpu --tiny   a rehearsal without a GPU, kernels interpreted

What is faster than what holds so far, and as right as plain torch, goes at once into
gpu/bootprob_gpu/hardware/launch_shapes.json, which the engine reads; everything tried goes into
gpu/results/tuning/<device>-<date>-<commit>.json. A rehearsal writes both to build/gpu-tune. The
exit status is 0 if all was measured or the time was over, 1 if something was wrong or did not run,
2 without such a device.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

if "cpu" in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"  # before anything imports Triton

import torch

from bootprob_gpu.hardware.launch_shapes import TABLE
from bootprob_gpu.hardware.triton_interpreted import loop_bounds
from gpu.check.machine import facts
from gpu.check.plan import ROOT
from gpu.check.result_file import ResultFile, now, source
from gpu.tuning.findings import findings
from gpu.tuning.tuner import Tuner

BUDGET = 400.0
"""Seconds after which no finding is begun."""

say = partial(print, flush=True)


def main() -> int:
    """Tune; the exit status."""
    began = time.monotonic()
    options = _options()
    rehearsal = options.tiny or not options.device.startswith("cuda")
    known = facts(options.device)
    if not known.pop("usable"):
        say(f"There is no device {options.device!r} here; rehearse with --device cpu --tiny.")
        return 2
    folder = options.out or (
        ROOT / "build/gpu-tune" if rehearsal else ROOT / "gpu" / "results" / "tuning"
    )
    parts: dict[str, Any] = {}
    content = {
        "format": 1,
        "rehearsal": rehearsal,
        "complete": False,
        "started": now(),
        "source": source(options.commit),
        **known,
        "findings": parts,
    }
    name = known["device"]["name"]
    result = ResultFile(folder, name, content)
    table = folder / TABLE.name if rehearsal or options.out else TABLE
    tuner = Tuner(
        torch.device(options.device), name, table, seconds=0.0 if options.tiny else 2.0, say=say
    )
    complete = True
    for finding in findings(tiny=options.tiny):
        key = f"{finding.name} {len(parts) + 1}"
        if options.only and not any(finding.name.startswith(each) for each in options.only):
            continue
        if time.monotonic() - began > options.seconds:
            parts[key], complete = {"status": "not run"}, False
        else:
            parts[key] = tuner.tune(finding)
        result.write()
    content["complete"], content["finished"] = complete, now()
    result.write()
    wrong = [key for key, part in parts.items() if _is_wrong(part)]
    taken = sum(part.get("taken") is not None for part in parts.values())
    say(f"{result.path}: {len(parts)} findings, {taken} taken into {table}")
    if not complete:
        say("The time was over before the end.")
    if wrong:
        say(f"WRONG: {', '.join(wrong)}")
    return 1 if wrong else 0


def _is_wrong(part: dict[str, Any]) -> bool:
    return part["status"] == "failed" or any("wrong" in each for each in part.get("tried", ()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m gpu.tuning", description=(__doc__ or "").split("\n\n")[0]
    )
    add = parser.add_argument
    add("--device", default="cuda", help="cuda, cuda:1, ... or cpu for a rehearsal")
    add("--tiny", action="store_true", help="tiny jobs: a rehearsal of the program")
    add("--out", type=Path, metavar="FOLDER", help="where the result and the table go")
    add("--seconds", type=float, default=BUDGET, help=f"time in all (default {BUDGET:.0f})")
    add("--commit", help="commit of a copy that has no history (or variable BOOTPROB_COMMIT)")
    add("--only", action="append", metavar="NAME", help="findings whose names begin so")
    return parser.parse_args()


if __name__ == "__main__":
    with loop_bounds() if os.environ.get("TRITON_INTERPRET") == "1" else nullcontext():
        sys.exit(main())
