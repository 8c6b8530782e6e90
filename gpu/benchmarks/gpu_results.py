"""The newest results of ``make gpu-check``, laid out for the document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpu.benchmarks.common.places import ROOT

__all__ = ["FOLDER", "newest"]

FOLDER = ROOT / "gpu" / "results"

_TIMES = (
    "linear training times",
    "RBF training times",
    "RBF training times without Triton",  # of format 1
    "scoring times",
    "times without Triton",
)
_KERNELS_SHOWN = 4
_NAME_SHOWN = 40
_COUNTERS = {
    "gpu__time_duration.sum": "time",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "SM throughput",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "memory throughput",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps active",
    "launch__registers_per_thread": "registers",
}


def newest(folder: Path = FOLDER) -> dict[str, Any] | None:
    """The results that started last and are no rehearsals, or None where there is none.

    Other files of the same code and device join in: those of the two commands, and runs of single
    parts (``--only``). Of a part that ran more than once, the last run counts.

    Parameters
    ----------
    folder : Path
        Where `gpu/check` writes its JSON files; those of other programs are left alone.

    Returns
    -------
    dict or None
        The content of the newest file with the parts of all, and ``"verdicts"`` (of each file, by
        its name), ``"promises"``, ``"kept"`` (those that hold, by part), ``"times"``,
        ``"predicted"`` (seconds of jobs, low and high), ``"estimator"``, ``"ceilings"``,
        ``"shares"``, ``"counters"`` and ``"incomplete"`` (parts that did not end well) laid out as
        tables.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.get("rehearsal", True) is False:
            found.append((content["started"], path.name, content))
    if not found:
        return None
    found.sort(key=lambda entry: entry[:2])
    content = found[-1][2]
    files = {name: each for _, name, each in found if _origin(each) == _origin(content)}
    parts = {name: part for each in files.values() for name, part in each["parts"].items()}
    return {
        **content,
        "verdicts": {name: each.get("verdict", "") for name, each in files.items()},
        "promises": [
            (name, promise) for name, part in parts.items() for promise in part.get("promises", ())
        ],
        "kept": {name: kept for name, part in parts.items() if (kept := _kept(part))},
        "times": {name: _measured(parts, name) for name in _TIMES},
        "predicted": _predicted(folder / "predictions.json"),
        "estimator": _measured(parts, "estimator times"),
        "ceilings": _measured(parts, "ceilings"),
        "shares": {
            job: {
                **shares,
                "kernels": [_shown(each) for each in shares["kernels"][:_KERNELS_SHOWN]],
            }
            for job, shares in _measured(parts, "kernel shares").items()
        },
        "counters": {
            kernel: {title: _median(found["metrics"].get(key)) for key, title in _COUNTERS.items()}
            for kernel, found in _measured(parts, "Nsight Compute").items()
        },
        "incomplete": {
            name: (part["status"], part.get("why", ""))
            for name, part in parts.items()
            if part["status"] != "passed"
        },
    }


def _predicted(path: Path) -> dict[str, tuple[float, float]]:
    if not path.exists():
        return {}
    jobs = json.loads(path.read_text(encoding="utf-8"))["jobs"]
    return {each["job"]: tuple(each["between, s"]) for each in jobs}


def _shown(kernel: dict[str, Any]) -> dict[str, Any]:
    """With a name that is short: libraries' have all parameters of their templates."""
    name = kernel["name"].partition("<")[0].removeprefix("void ")
    return {**kernel, "name": name if len(name) <= _NAME_SHOWN else name[:_NAME_SHOWN] + "…"}


def _kept(part: dict[str, Any]) -> list[str]:
    return [each["promise"] for each in part.get("promises", ()) if each["holds"]]


def _origin(content: dict[str, Any]) -> tuple[str, str]:
    return content["source"]["sha256"], content["device"]["name"]


def _measured(parts: dict[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """Results of a part, less those that say in words why there is no number."""
    measured = parts.get(name, {}).get("measured", {})
    return {job: found for job, found in measured.items() if isinstance(found, dict)}


def _median(metric: dict[str, Any] | None) -> str:
    """A counter's middle value with its unit, or a dash."""
    numbers = sorted(v for v in (metric or {}).get("values", ()) if isinstance(v, (int, float)))
    if metric is None or not numbers:
        return "–"
    return f"{numbers[len(numbers) // 2]:,.4g} {metric['unit']}".rstrip()
