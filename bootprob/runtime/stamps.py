"""Whether a file is still the one that was read."""

from __future__ import annotations

from pathlib import Path

__all__ = ["Stamp", "stamp_of"]

Stamp = tuple[int, int, int] | None


def stamp_of(path: Path) -> Stamp:
    """What changes when another file takes the place; None without one."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
