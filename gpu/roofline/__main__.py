"""What an H100 is predicted to take for the jobs that goals were set for.

    make gpu-roofline                 counts on this machine, some minutes
    python -m gpu.roofline --tiny     a few rows and samples, printed and written nowhere
    python -m gpu.roofline --table    the table alone, of predictions that are there

Iterations are counted by training on a CPU; launches, bytes and operations by the rules of the
engine (`interior_point_counts`, `smo_counts`, `gpu/check/floors.py`); rates are a data sheet's, and
what no data sheet has is assumed (`hardware.py`). Writes gpu/results/predictions.json and the table
of docs/engine.md, where a measurement by `make gpu-check` stands beside them once there is one.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import Any

from gpu.benchmarks.gpu_results import newest
from gpu.check.plan import ROOT
from gpu.roofline.hardware import stated
from gpu.roofline.predicted_jobs import predictions
from gpu.roofline.prediction_table import rendered, with_table

RESULT = ROOT / "gpu" / "results" / "predictions.json"
DOCUMENT = ROOT / "docs" / "engine.md"

say = partial(print, flush=True)


def main() -> None:
    """Count, predict, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="a few rows; nothing is written")
    parser.add_argument("--table", action="store_true", help="the table, beside what was measured")
    options = parser.parse_args()
    if options.table:
        content = json.loads(RESULT.read_text(encoding="utf-8"))
    else:
        content = _predicted(options.tiny)
    table = rendered(content, newest())
    if options.tiny:
        say(table)
        return
    RESULT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    text = with_table(DOCUMENT.read_text(encoding="utf-8"), table)
    DOCUMENT.write_text(text, encoding="utf-8")


def _predicted(tiny: bool) -> dict[str, Any]:
    content: dict[str, Any] = {"format": 1, "prediction": True, **stated(), "jobs": []}
    for job in predictions(tiny):
        content["jobs"].append(job)
        low, high = job["between, s"]
        say(f"{job['job']}: {1e3 * low:.3g} to {1e3 * high:.3g} ms")
    return content


if __name__ == "__main__":
    main()
