"""Names and numbers in the Markdown of a model card."""

from __future__ import annotations

import html
import re
from typing import Any

from bootprob.report.wording import percent

__all__ = ["text", "with_interval"]


def text(value: Any) -> str:
    """A name from somewhere as Markdown that shows just that name, on one line."""
    escaped = html.escape(" ".join(str(value).split()), quote=False)
    return re.sub(r"([\\`*_\[\]#|~$])", r"\\\1", escaped)


def with_interval(metric: dict[str, float], *, as_share: bool) -> str:
    """A number of a report and its interval."""
    value, lower, upper = (
        percent(metric[key]) if as_share else f"{metric[key]:.4f}"
        for key in ("value", "lower", "upper")
    )
    return f"{value} ({lower} to {upper})"
