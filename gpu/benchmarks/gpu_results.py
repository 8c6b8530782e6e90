"""The newest result of ``make gpu-check``, laid out for the document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "newest"]

FOLDER = Path(__file__).parents[1] / "results"

_TIMES = (
    "linear training times",
    "RBF training times",
    "RBF training times without Triton",
    "scoring times",
)
_KERNELS_SHOWN = 4


def newest(folder: Path = FOLDER) -> dict[str, Any] | None:
    """The result that started last and is no rehearsal, or None where there is none.

    Parameters
    ----------
    folder : Path
        Where `gpu/check` writes its JSON files.

    Returns
    -------
    dict or None
        The file's own content, with ``"file"``, ``"promises"``, ``"times"``, ``"ceilings"``,
        ``"shares"`` and ``"incomplete"`` (parts that did not end well) laid out as tables.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if not content["rehearsal"]:
            found.append((content["started"], path.name, content))
    if not found:
        return None
    _, file, content = max(found, key=lambda entry: entry[:2])
    parts = content["parts"]
    return {
        **content,
        "file": file,
        "promises": [
            (name, promise) for name, part in parts.items() for promise in part.get("promises", ())
        ],
        "times": {name: _measured(parts, name) for name in _TIMES},
        "ceilings": _measured(parts, "ceilings"),
        "shares": {
            job: {**shares, "kernels": shares["kernels"][:_KERNELS_SHOWN]}
            for job, shares in _measured(parts, "kernel shares").items()
        },
        "incomplete": {
            name: (part["status"], part.get("why", ""))
            for name, part in parts.items()
            if part["status"] != "passed"
        },
    }


def _measured(parts: dict[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """Results of a part, less those that say in words why there is no number."""
    measured = parts.get(name, {}).get("measured", {})
    return {job: found for job, found in measured.items() if isinstance(found, dict)}
