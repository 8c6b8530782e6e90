"""What a run says in one line, and the exit status of the command."""

from __future__ import annotations

from typing import Any

__all__ = ["BAD", "MISSING", "UNFINISHED", "is_complete", "verdict"]

BAD = ("failed", "error", "stopped", "crashed", "interrupted")
"""What a part's status must not be."""
MISSING = ("skipped", "incomplete", "not run", "running")
"""Where nothing failed, and not everything was looked at."""
UNFINISHED = "incomplete: the run has not ended"


def is_complete(parts: dict[str, Any]) -> bool:
    """Whether every part was done to its end, with whatever outcome."""
    return all(part["status"] in ("passed", "failed") for part in parts.values())


def verdict(parts: dict[str, Any]) -> tuple[str, int]:
    """The line, and the exit status.

    Parameters
    ----------
    parts : dict
        Of the result, by name.

    Returns
    -------
    str
        "nothing failed" only where every part was done to its end.
    int
        0 if every part passed, 1 if one failed, 3 if none did but some were not done, or not all
        of them.
    """
    failed = [name for name, part in parts.items() if part["status"] in BAD]
    missing = [
        f"{name} ({part['status']}: {part.get('why', 'no reason known')})"
        for name, part in parts.items()
        if part["status"] in MISSING
    ]
    said = []
    if failed:
        said.append(f"FAILED: {', '.join(failed)}")
    if missing:
        nothing = " nothing was checked:" if len(missing) == len(parts) else ""
        said.append(f"incomplete:{nothing} {', '.join(missing)}")
    if said:
        return "; ".join(said), 1 if failed else 3
    return "nothing failed", 0
