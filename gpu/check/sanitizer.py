"""NVIDIA's compute-sanitizer over every kernel: memory, races in shared memory, barriers."""

from __future__ import annotations

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from gpu.check.plan import own_paths, shown_path
from gpu.check.record import PartIncompleteError, PartSkippedError, Record
from gpu.check.tools import find_tool, kernel_functions, run_tool

__all__ = ["Report", "parse", "run"]

_TOOLS = ("memcheck", "racecheck", "synccheck")
_SHOWN = 10  # errors
_PORT = 49152  # of the first tool; each talks to its own target
_MARK = re.compile(r"^=========( ?)(.*)$")
_SUMMARY = re.compile(
    r"^(?:ERROR SUMMARY: (?P<errors>\d+) errors?"
    r"|RACECHECK SUMMARY: (?P<hazards>\d+) hazards? displayed \((?P<severe>\d+) errors?, "
    r"(?P<warnings>\d+) warnings?\))"
)
_WHERE = re.compile(r"\bat (?:0x[0-9a-f]+ in )?(?P<kernel>[A-Za-z_]\w*)")
# What the tool says of itself and not of the kernels.
_BROKEN = (
    "Target application terminated before first instrumented API call",
    "couldn't find exit code",
    "process didn't terminate successfully",
    "Unable to",
    "Failed to initialize",
    "Device not supported",
    "Internal Sanitizer Error",
)


@dataclass
class Report:
    """What a run of the tool says.

    Attributes
    ----------
    errors : int or None
        Of its summary; None where it wrote none, so did not end.
    warnings : int
        Of racecheck.
    findings : list of str
        First lines of what it found, with the kernel.
    kernels : dict
        Findings by kernel; None for those of the host.
    broken : list of str
        Why the tool could not do its work.
    """

    errors: int | None = None
    warnings: int = 0
    findings: list[str] = field(default_factory=list)
    kernels: dict[str | None, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)


def run(record: Record) -> None:
    """All three tools at once, each with a process of its own that launches every kernel."""
    tool = find_tool("compute-sanitizer")
    if tool is None:
        raise PartSkippedError("compute-sanitizer not found")
    seconds = record.seconds_left() - 2

    def sanitize(number: int) -> tuple[str, str, int | None]:
        name = _TOOLS[number]
        command = [
            *(tool, "--tool", name, "--port", str(_PORT + 100 * number)),
            # Libraries' kernels are theirs to check, and torch's failing calls part of its work.
            *("--kernel-name", f"regex={'|'.join(sorted(kernel_functions()))}"),
            *(("--report-api-errors", "no") if name == "memcheck" else ()),
            *("--check-exit-code", "no", "--show-backtrace", "no", "--print-limit", "100"),
            *(sys.executable, "-m", "gpu.check.each_kernel", str(record.device)),
        ]
        # Overruns within a large block of torch's cache would not be seen.
        variables = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
        return name, *run_tool(command, seconds, variables)

    unknown = []
    with ThreadPoolExecutor(len(_TOOLS)) as pool:
        for done in as_completed(pool.submit(sanitize, k) for k in range(len(_TOOLS))):
            name, said, status = done.result()
            report = parse(said)
            found: dict[str, Any] = {
                "tool": shown_path(tool),
                "exit status": status,
                "errors": report.errors,
                "warnings": report.warnings,
                "findings": report.findings[:_SHOWN],
                "findings by kernel": {str(key): count for key, count in report.kernels.items()},
            }
            why = _why_unknown(report, status, seconds)
            if why is not None:
                found |= {
                    "could not be done": why,
                    "last lines": own_paths(said).splitlines()[-12:],
                }
                unknown.append(f"{name}: {why}")
            record.measured(name, found)
            if report.errors is not None and (report.errors or not report.broken):
                found_any = report.errors + report.warnings
                record.promise(f"{name} finds nothing", found_any == 0, found=found_any)
    if unknown:
        raise PartIncompleteError("; ".join(unknown))


def _why_unknown(report: Report, status: int | None, seconds: float) -> str | None:
    if status is None:
        return f"not done after {seconds:.0f} s"
    if report.broken:
        return report.broken[0]
    if report.errors is None:
        return "it wrote no summary"
    if status != 0 and not report.findings:
        return f"the program that it watched ended with exit status {status}"
    return None


def parse(said: str) -> Report:
    """Read what compute-sanitizer prints.

    Every line of its own begins with nine equals signs; those of the program that it watches may
    come between. A finding begins with a line that is not indented, and says in one of the next
    lines, or in its own, in which kernel it was.

    Parameters
    ----------
    said : str
        Its output.
    """
    report = Report()
    lines = [match for line in said.splitlines() if (match := _MARK.match(line.rstrip()))]
    texts = [match[2] for match in lines]
    for number, text in enumerate(texts):
        if not text or text == "COMPUTE-SANITIZER" or text.startswith(" "):
            continue
        summary = _SUMMARY.match(text)
        if summary:
            report.errors = (report.errors or 0) + int(summary["errors"] or summary["severe"] or 0)
            report.warnings += int(summary["warnings"] or 0)
        elif any(reason in text for reason in _BROKEN):
            report.broken.append(text.removeprefix("Error: ").rstrip("."))
        elif not text.startswith(("and ", "Saved host backtrace")):
            where = _WHERE.search(text)
            for detail in texts[number + 1 :]:
                if where or not detail.startswith((" ", "and ")):
                    break
                where = _WHERE.search(detail)
            kernel = where["kernel"] if where else None
            report.kernels[kernel] = report.kernels.get(kernel, 0) + 1
            at = f" [{where[0]}]" if where and where[0] not in text else ""
            report.findings.append(text[:200] + at)
    return report
