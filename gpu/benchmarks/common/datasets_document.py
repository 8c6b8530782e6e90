"""Write the table of docs/datasets.md from the catalogue; nothing is loaded.

python -m gpu.benchmarks.common.datasets_document
"""

from __future__ import annotations

from pathlib import Path

from bootprob.datasets import CATALOG, Source
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.tables import in_place, markdown

__all__ = ["BEGIN", "END", "main", "table"]

BEGIN, END = "<!-- table: begin -->\n", "\n<!-- table: end -->"


def main(docs: Path = DOCS) -> Path:
    """Replace what stands between the two marks of the document by the table."""
    path = docs / "datasets.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(in_place(text, BEGIN, END, table()), encoding="utf-8")
    return path


def table() -> str:
    """A line for each data set."""
    header = ["name", "rows × columns", "classes, **positive**", "missing", "origin, licence"]
    return markdown([*header, "cite", "remarks"], [_line(source) for source in CATALOG.values()])


def _line(source: Source) -> list[str]:
    classes = [
        f"**{label}: {count:,}**" if label in source.positives else f"{label}: {count:,}"
        for label, count in source.classes
    ]
    remarks = [source.note] if source.note else []
    if source.left_out:
        remarks.append(f"Left out: {', '.join(source.left_out)}.")
    return [
        f"`{source.name}`",
        f"{source.rows:,} × {source.prepared:,}",
        ", ".join(classes),
        f"{source.missing:,}",
        f"{source.title}; {source.origin}; {source.licence}",
        source.citation,
        " ".join(remarks),
    ]


if __name__ == "__main__":
    print(f"wrote {main(docs_options(__doc__).parse_args().docs)}")
