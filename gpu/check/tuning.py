"""Has gpu/tuning measure block sizes and limits on this device, and keeps what it wrote."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from gpu.check.plan import ROOT
from gpu.check.record import PartIncompleteError, PartSkippedError, Record
from gpu.check.tools import run_tool

__all__ = ["run"]

_BEGUN = 0.75  # share of the time after which it begins nothing more


def run(record: Record) -> None:
    """Run it as ``python -m gpu.tuning --device D --seconds S --out FOLDER [--tiny]``.

    Whatever JSON is in the folder at the end is recorded, under the file's name.
    """
    if not (ROOT / "gpu/tuning/__main__.py").exists():
        raise PartSkippedError("there is no gpu/tuning")
    seconds = record.seconds_left() - 3
    with tempfile.TemporaryDirectory() as folder:
        said, status = run_tool(
            [
                *(sys.executable, "-m", "gpu.tuning", "--device", str(record.device)),
                *("--seconds", f"{_BEGUN * seconds:.0f}", "--out", folder),
                *(("--tiny",) if record.tiny else ()),
            ],
            seconds,
            os.environ,
        )
        for path in sorted(Path(folder).rglob("*.json")):
            record.measured(path.name, json.loads(path.read_text(encoding="utf-8")))
    if status is None:
        raise PartIncompleteError(f"not done after {seconds:.0f} s")
    if status != 0:
        last = " ".join(said.splitlines()[-3:])
        raise RuntimeError(f"gpu/tuning ended with exit status {status}: {last}")
