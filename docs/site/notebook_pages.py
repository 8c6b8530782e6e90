"""A notebook that was run, as a page of the site."""

from __future__ import annotations

import base64
import re
import textwrap
from dataclasses import dataclass
from typing import Any

__all__ = ["Example", "printed"]

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_WARNING = re.compile(r"^\S+:\d+: (\w+Warning: (?:.*\n)+?)  .*\n?", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """A script of examples that was run.

    Attributes
    ----------
    name : str
        Of the file, without .py.
    notebook : NotebookNode
        With what its cells said.
    """

    name: str
    notebook: Any

    @property
    def title(self) -> str:
        """The first line of its docstring."""
        return self.notebook.cells[0].source.split("\n")[0].removeprefix("# ").rstrip(".")

    @property
    def seconds(self) -> float:
        """How long it ran."""
        return float(self.notebook.metadata["seconds"])

    def page(self) -> tuple[str, dict[str, bytes]]:
        """Markdown of its page, and the pictures on it by name."""
        parts, pictures = [], {}
        for cell in self.notebook.cells:
            if cell.cell_type == "markdown":
                parts.append(cell.source)
                continue
            parts.append(f"```python\n{cell.source}\n```")
            said = [(each.get("data", {}), each.get("text", "")) for each in cell.outputs]
            shown = [data for data, _ in said if "image/png" in data]
            texts = [text or data.get("text/plain", "") for data, text in said if data not in shown]
            if text := printed("".join(texts)):
                parts.append(f"```text\n{text}\n```")
            for data in shown:
                name = f"{self.name}_{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![Figure {len(pictures)}: {self.title}]({name})")
        end = (
            f"[The script](../source/examples/{self.name}.py) · [as a notebook]({self.name}.ipynb)"
        )
        parts.append(f"{end} · it ran for {self.seconds:.0f} s")
        return "\n\n".join(parts) + "\n", pictures


def printed(text: str) -> str:
    """What was printed, without colours; then what was warned of, once, without its place."""
    found = dict.fromkeys(_WARNING.findall(text))
    said = [textwrap.fill(each, 88, subsequent_indent="  ") for each in found]
    return _COLOURS.sub("", "\n".join([_WARNING.sub("", text).rstrip("\n"), *said])).strip("\n")
