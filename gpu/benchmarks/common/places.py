"""Where things are in the working tree; needs no package."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DOCS", "ROOT"]

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
