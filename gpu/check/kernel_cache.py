"""Kernels that Triton compiled ahead of time, from one machine to another.

Triton finds a kernel by a hash of its source and options, in a folder of its cache; the list of its
files there has absolute paths, which are those of the machine that compiled it. So folders cannot
just be copied: they are packed without that list, and it is written anew where they are unpacked.
"""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

__all__ = ["pack_kernels", "unpack_kernels"]

_NEEDED = (".cubin", ".json")  # to launch a kernel; not the code that it was made from
_GROUP = "__grp__"


def pack_kernels(cache: Path, archive: Path, arch: int) -> int:
    """Write the kernels for one architecture to an archive.

    Parameters
    ----------
    cache : Path
        A ``TRITON_CACHE_DIR``.
    archive : Path
        Of the ending ``.tar.xz``; it appears when it is complete, and not if there are none.
    arch : int
        Compute capability, such as 90.

    Returns
    -------
    int
        How many kernels there are in it.
    """
    packed, count = archive.with_name(f"{archive.name}.part"), 0
    with tarfile.open(packed, "w:xz", preset=9) as out:
        for group in sorted(cache.glob(f"*/{_GROUP}*.json")):
            metadata = group.with_name(group.name.removeprefix(_GROUP))
            if json.loads(metadata.read_text(encoding="utf-8"))["target"]["arch"] != arch:
                continue
            count += 1
            for path in sorted(group.parent.glob(f"{metadata.stem}.*")):
                if path.suffix in _NEEDED:
                    out.add(path, f"{path.parent.name}/{path.name}")
            # To mark which of the files lists the others.
            out.addfile(tarfile.TarInfo(f"{group.parent.name}/{group.name}"), io.BytesIO())
    if count:
        packed.replace(archive)
    else:
        packed.unlink()
    return count


def unpack_kernels(archive: Path, cache: Path) -> int:
    """Put the kernels of an archive into a cache, but for those that it has.

    Parameters
    ----------
    archive : Path
    cache : Path
        The ``TRITON_CACHE_DIR`` of this machine; it is made where it is not there.

    Returns
    -------
    int
        How many were put there.
    """
    cache.mkdir(parents=True, exist_ok=True)
    before = {path.name for path in cache.iterdir()}
    with tarfile.open(archive) as file:
        new = [each for each in file if each.name.split("/")[0] not in before]
        file.extractall(cache, new, filter="data")
    groups = [cache / each.name for each in new if Path(each.name).name.startswith(_GROUP)]
    for group in groups:
        stem = group.stem.removeprefix(_GROUP)
        children = {path.name: str(path.absolute()) for path in group.parent.glob(f"{stem}.*")}
        group.write_text(json.dumps({"child_paths": children}), encoding="utf-8")
    return len(groups)
