"""The committed table of what every variant uses, and how it differs from another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import triton

from bootprob.runtime.files import replace_when_complete
from gpu.compilation.launches import Variant
from gpu.compilation.occupancy import LIMITS
from gpu.compilation.shapes import all_launches

__all__ = [
    "ROOT", "TABLE", "Row", "all_variants", "faults", "grown", "read", "row", "title", "write",
]  # fmt: skip

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "gpu" / "results" / "compiled" / "kernels.json"
_MEASURED = ("registers", "spilled", "stack", "shared", "warps", "programs")
_NOTABLE = 1.25  # times as many registers

Row = dict[str, Any]


def all_variants() -> dict[str, tuple[Variant, list[str]]]:
    """Variants by their keys, each with what it is for, in the order of first use."""
    found: dict[str, tuple[Variant, list[str]]] = {}
    for label, launch in all_launches():
        for capability in LIMITS:
            variant = launch.variant(capability)
            _, labels = found.setdefault(variant.key, (variant, []))
            if label not in labels:
                labels.append(label)
    return found


def read(path: Path) -> dict[str, Any]:
    """The table: "triton", its version, and "rows"; an empty one where there is no file."""
    if not path.exists():
        return {"triton": None, "rows": []}
    return json.loads(path.read_text(encoding="utf-8"))


def write(path: Path, rows: Iterable[Row]) -> None:
    """Replace the file, a line for each row, in an order that edits of kernels do not change."""
    lines = sorted(json.dumps(row, ensure_ascii=False) for row in rows)
    text = f'{{"triton": "{triton.__version__}", "rows": [\n' + ",\n".join(lines) + "\n]}\n"
    with replace_when_complete(path) as file:
        file.write(text.encode())


def row(variant: Variant, labels: list[str], found: dict[str, Any]) -> Row:
    """A row of the table."""
    return {
        **variant.described,
        **{name: found[name] for name in _MEASURED},
        "for": labels,
        "key": variant.key,
    }


def faults(title: str, found: dict[str, Any]) -> Iterator[str]:
    """What must not be, said in a sentence each."""
    if "error" in found:
        yield f"{title} does not compile: {found['error']}"
        return
    if found["spilled"] or found["stack"]:
        yield (
            f"{title} spills {found['spilled']} bytes of registers and has {found['stack']} bytes "
            "of stack."
        )
    if not found["programs"]:
        yield f"{title} does not fit: {found['shared']} bytes of shared memory."


def title(row: Row) -> str:
    """A row by name."""
    given = ", ".join(
        f"{name}={value}" for name, value in {**row["constants"], **row["options"]}.items()
    )
    return f"{row['kernel']} ({given}; {', '.join(row['types'])}) for {row['capability']}"


def grown(old: Iterable[Row], new: Iterable[Row]) -> Iterator[str]:
    """Rows that now take many more registers, or of which fewer fit onto a multiprocessor."""
    before = {_identity(each): each for each in old}
    for each in new:
        was = before.get(_identity(each))
        if was is None:
            continue
        if each["registers"] > _NOTABLE * was["registers"] or each["programs"] < was["programs"]:
            yield (
                f"{title(each)}: {was['registers']} → {each['registers']} registers, "
                f"{was['programs']} → {each['programs']} programs on a multiprocessor."
            )


def _identity(row: Row) -> str:
    """What a row is about, whatever its kernel's code, warps and rows on their way are."""
    names = ("kernel", "capability", "types", "not known to be multiples of 16")
    sizes = {name: value for name, value in row["constants"].items() if name != "ROWS"}
    return json.dumps([sizes, *(row[name] for name in names)])
