"""The table as docs/gpu.md shows it."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from gpu.benchmarks.common.tables import in_place
from gpu.compilation.table import ROOT

__all__ = ["PAGE", "with_table"]

PAGE = ROOT / "docs" / "gpu.md"
_SIZES = ("BLOCK", "Q", "BLOCK_M", "BLOCK_B", "BLOCK_K")


def with_table(text: str, table: dict[str, Any]) -> str:
    """The text of the page with the table in its place."""
    return in_place(text, "<!-- make gpu-compile -->\n", "<!-- end -->", f"\n{_table(table)}\n\n")


def _table(table: dict[str, Any]) -> str:
    """A line for each kernel and number of warps; the largest numbers of any variant of it."""
    lines: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in table["rows"]:
        lines.setdefault((row["kernel"], _types(row), str(row["warps"])), []).append(row)
    capabilities = sorted({row["capability"] for row in table["rows"]})
    head = ["kernel", "numbers", "warps", "sizes", *(f"sm_{each}" for each in capabilities)]
    shown = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for where, rows in sorted(lines.items(), key=lambda item: _in_order(item[0])):
        of = ([row for row in rows if row["capability"] == each] for each in capabilities)
        cells = [_sizes(rows), *(_cell(each) for each in of)]
        shown.append("| " + " | ".join([f"`{where[0]}`", *where[1:], *cells]) + " |")
    kernels = len({row["kernel"] for row in table["rows"]})
    spills = sum(row["spilled"] > 0 for row in table["rows"])
    count = (
        f"Triton {table['triton']}: {len(table['rows']):,} variants of {kernels} kernels, "
        f"{spills} of which spill."
    )
    return count + "\n\n" + "\n".join(shown)


def _sizes(rows: list[dict[str, Any]]) -> str:
    """Least and largest of the constants that are block sizes; not the switches."""
    values = defaultdict(set)
    for row in rows:
        for name, value in row["constants"].items():
            if name in _SIZES:
                values[name].add(value)
    ends = {name: sorted({min(found), max(found)}) for name, found in values.items()}
    return ", ".join(f"{name} {'–'.join(map(str, both))}" for name, both in ends.items())


def _cell(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    registers = max(row["registers"] for row in rows)
    shared = max(row["shared"] for row in rows) / 1024
    programs = min(row["programs"] for row in rows)
    return f"{registers} / {shared:.3g} / {programs}"


def _types(row: dict[str, Any]) -> str:
    """In which precision: what the matrix of SMO, or the rows that are scored, are kept in."""
    return "fp32" if "fp32" in row["types"] else "fp64"


def _in_order(where: tuple[str, ...]) -> tuple[Any, ...]:
    """Numbers by their size."""
    return tuple(
        tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", each))
        for each in where
    )
