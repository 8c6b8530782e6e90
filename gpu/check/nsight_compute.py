"""Hardware counters of the five heaviest kernels, by NVIDIA's Nsight Compute (``ncu``).

python -m gpu.check.nsight_compute DEVICE [tiny]     launches alone, for that program to watch
"""

from __future__ import annotations

import csv
import os
import re
import sys
from collections import defaultdict
from typing import Any

import torch

from gpu.check.kernel_shares import jobs
from gpu.check.record import PartIncompleteError, PartSkippedError, Record
from gpu.check.tools import find_tool, kernel_functions, run_tool

__all__ = ["heaviest", "parse", "run"]

_KERNELS = 5
_LAUNCHES = "1|2|22"  # of each kernel: some are launched once, others at every iteration
_METRICS = (
    "gpu__time_duration.sum",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__bytes.sum",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "lts__t_bytes.sum",
    "l1tex__data_bank_conflicts_pipe_lsu.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "launch__registers_per_thread",
    "launch__waves_per_multiprocessor",
)
_ERROR = re.compile(r"^==ERROR== (.*)$", re.MULTILINE)


def run(record: Record) -> None:
    """Profile a few launches of each; kernels by the part "kernel shares", or all of ours."""
    tool = find_tool("ncu")
    if tool is None:
        raise PartSkippedError("ncu not found")
    ours = kernel_functions()
    kernels = heaviest(record.shares, ours) or sorted(ours)
    command = [
        *(tool, "--csv", "--print-units", "base", "--metrics", ",".join(_METRICS)),
        # Any context and stream, these functions, these of their launches.
        *("--kernel-id", f"::regex:^({'|'.join(kernels)})$:{_LAUNCHES}"),
        *(sys.executable, "-m", "gpu.check.nsight_compute", str(record.device)),
        *(("tiny",) if record.tiny else ()),
    ]
    said, status = run_tool(command, record.seconds_left() - 2, os.environ)
    counters = parse(said)
    for kernel, found in counters.items():
        record.measured(kernel, found)
    errors = _ERROR.findall(said)
    missing = [kernel for kernel in kernels if kernel not in counters]
    if status is None:
        raise PartIncompleteError("ncu was not done in time")
    if errors:
        raise PartIncompleteError(f"ncu: {errors[0]}")
    if not counters:
        raise PartIncompleteError(f"ncu measured nothing; {' '.join(said.splitlines()[-3:])[:300]}")
    if record.shares and missing:
        raise PartIncompleteError(f"ncu did not see {', '.join(missing)}")


def heaviest(shares: dict[str, Any], ours: set[str]) -> list[str]:
    """The five kernels of ours with the most time in the jobs of the part "kernel shares".

    Parameters
    ----------
    shares : dict
        What that part measured.
    ours : set of str
        Names of kernels.
    """
    seconds: dict[str, float] = defaultdict(float)
    for job in shares.values():
        for kernel in job["kernels"]:
            if kernel["name"] in ours:
                seconds[kernel["name"]] += kernel["share"] * job["device busy, seconds"]
    return sorted(seconds, key=lambda name: -seconds[name])[:_KERNELS]


def parse(said: str) -> dict[str, dict[str, Any]]:
    """Read the table that ``ncu --csv`` prints: a line for each launch and metric.

    Parameters
    ----------
    said : str
        Its output; lines of the program that it watched, and its own ``==PROF==``, are left out.

    Returns
    -------
    dict
        By kernel: the launches seen, their grid and block, and by metric the values in the order
        of the launches, with their unit.
    """
    table = [line for line in said.splitlines() if line.startswith('"')]
    found: dict[str, dict[str, Any]] = {}
    launches: dict[str, list[str]] = defaultdict(list)
    for row in csv.DictReader(table):
        name, metric = row.get("Kernel Name"), row.get("Metric Name")
        if not name or not metric:
            continue
        name = name.split("(")[0]
        if row["ID"] not in launches[name]:
            launches[name].append(row["ID"])
        kernel = found.setdefault(
            name, {"grid": row.get("Grid Size"), "block": row.get("Block Size"), "metrics": {}}
        )
        kernel["launches"] = len(launches[name])
        values = kernel["metrics"].setdefault(metric, {"unit": row["Metric Unit"], "values": []})
        values["values"].append(_number(row["Metric Value"]))
    return found


def _number(text: str) -> float | str:
    """A number, which has commas between its thousands; else the text, such as "n/a"."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return text


def main(device: str, tiny: bool) -> None:
    """Do the jobs of the part "kernel shares" once, with nobody watching the compilers."""
    for _, work in jobs(torch.device(device), tiny):
        work()


if __name__ == "__main__":
    main(sys.argv[1], "tiny" in sys.argv[2:])
