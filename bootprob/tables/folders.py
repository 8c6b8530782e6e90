"""Which files of a folder are the rows of a table; imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

from bootprob.exceptions import DataError
from bootprob.tables.suffixes import SCORED_SUFFIXES, is_table_name

__all__ = ["files_within"]


def files_within(folder: Path) -> list[Path]:
    """Tables in a folder and the folders within it, all of one kind, sorted by name.

    Names that begin with a dot or an underscore are passed over, and files that are no tables.

    Raises
    ------
    DataError
        There is none, or one that cannot be read beside the others: rows would be left out.
    """
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if is_table_name(path)
        and not path.is_dir()
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    kinds = {path.suffix.lower(): path.name for path in found}
    usual = " or ".join((", ".join(SCORED_SUFFIXES[:-1]), SCORED_SUFFIXES[-1]))
    if not kinds:
        raise DataError(f"The folder {folder} has no tables; give one with files in {usual}.")
    if len(kinds) > 1 or not set(kinds) <= set(SCORED_SUFFIXES):
        raise DataError(
            f"The folder {folder} has {' and '.join(map(kinds.__getitem__, sorted(kinds)))}; all "
            f"of its tables must end in {usual}, and in one of these. Names that begin with _ are "
            "passed over."
        )
    lost = [path for path in found if not path.is_file()]
    if lost:
        raise DataError(f"{lost[0]} is a link that leads nowhere, or no ordinary file.")
    return found
