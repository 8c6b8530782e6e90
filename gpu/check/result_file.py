"""The JSON that a run leaves: named by device, date and commit, complete at every moment."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bootprob.runtime.files import replace_when_complete
from gpu.check.plan import ROOT

__all__ = ["ResultFile", "finite", "source"]

_CODE = ("bootprob", "gpu/bootprob_gpu", "gpu/check")


class ResultFile:
    """What was found so far, written anew and atomically at each change.

    Parameters
    ----------
    folder : Path
        Made if need be.
    device : str
        Name of the device, for the file's name.
    content : dict
        What is known beforehand, with "started" (ISO 8601), "source" and "command".
    """

    def __init__(self, folder: Path, device: str, content: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        device = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
        stem = f"{device}-{content['started'][:10]}-{content['source']['commit'][:7]}"
        if content.get("command") == "second":
            stem += "-second"
        self.path, again = folder / f"{stem}.json", 1
        while self.path.exists():  # an earlier run of the same day stays
            again += 1
            self.path = folder / f"{stem}-{again}.json"
        self.content = content
        self.write()

    def write(self) -> None:
        """Replace the file on the disk."""
        text = json.dumps(self.content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        with replace_when_complete(self.path) as file:
            file.write(text.encode())


def now() -> str:
    """Date and time, ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def source(commit: str | None) -> dict[str, Any]:
    """Which code is checked.

    Parameters
    ----------
    commit : str, optional
        Its commit, for a copy of the code without its history.

    Returns
    -------
    dict
        "commit"; "changed": whether tracked files differ from it, None where unknown; and
        "sha256" over all modules in the order of their paths, which any copy can be compared by.
    """
    head = _git("rev-parse", "HEAD")
    changed = None
    if head is not None:
        status = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!gpu/results")
        changed = None if status is None else bool(status)
    digest = hashlib.sha256()
    for path in sorted(path for folder in _CODE for path in (ROOT / folder).rglob("*.py")):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return {
        "commit": head or commit or os.environ.get("BOOTPROB_COMMIT") or "unknown",
        "changed": changed,
        "sha256": digest.hexdigest(),
    }


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def finite(value: Any) -> Any:
    """The same with NaN and infinities as text, which JSON has no numbers for."""
    if isinstance(value, dict):
        return {str(key): finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
