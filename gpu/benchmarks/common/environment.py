"""What a measurement was made on: machine, versions, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from gpu.benchmarks.common.places import ROOT

__all__ = ["cores", "describe"]

_WRITTEN = (  # measured
    "docs/studies.md",
    "docs/batch_scoring_rates.md",
    "docs/server_load.md",
    "docs/pareto.md",
    "docs/alignment_study.md",
    "docs/feature_selection_tables.md",
    "docs/dea_panel.md",
    "docs/benchmarks.md",
    "docs/calibration.md",
    "docs/coverage.md",
    "docs/other_intervals.md",
    "docs/installation.md",
    "docs/results",
    "gpu/results",
    "tests/promises/results",
)


def cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def describe(distributions: Iterable[str]) -> dict[str, Any]:
    """Date, commit, machine and versions, for the JSON.

    Parameters
    ----------
    distributions : iterable of str
        Whose versions to give; None stands for one that is not installed.
    """
    written = [f":!{path}" for path in _WRITTEN]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *written)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "uncommitted changes": None if changed is None else bool(changed),
        "processor": _processor(),
        "cores": len(cores()),
        "memory, GiB": round(psutil.virtual_memory().total / 2**30),
        "load before": round(os.getloadavg()[0], 2),
        "system": platform.system(),
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in dict.fromkeys(distributions)},
        },
    }


def _git(*arguments: str) -> str | None:
    """What git says, or None outside a repository or without git."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    if described.exists():
        for line in described.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
