"""The hidden folder that holds finished parts until all are there, and by which a run resumes.

Beside the output ``scored.parquet`` it is called ``.scored.parquet.scoring`` and holds

- ``run.json``: what is being done, by a checksum, and what looking through CSV files found;
- ``parts/part-00000.parquet`` ...: the results of each fragment;
- ``part-00000.json`` ...: written after the part, its rows and what was odd in them. A part without
  it does not count.

Every one of them is complete or absent (`bootprob.files.replace_when_complete`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from filelock import FileLock, Timeout

from bootprob.batch_scoring.fragments import Fragment
from bootprob.batch_scoring.part_files import Write, batch_writer
from bootprob.batch_scoring.tally import BadRowsError, Tally
from bootprob.exceptions import DataError
from bootprob.files import replace_when_complete

__all__ = ["WorkFolder", "folder_of"]

_PROTOCOL = 1  # of this folder's contents


class WorkFolder:
    """Parts of one output, made by one process at a time; made by `WorkFolder.locked`."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.path = folder_of(output)
        self._parts = self.path / "parts"
        self._run: dict[str, Any] = {}

    @classmethod
    @contextmanager
    def locked(cls, output: Path) -> Iterator[Self]:
        """Open the folder of an output, and create it if need be.

        It is removed again after an error that leaves nothing worth keeping: rows that are refused,
        or a `DataError` before the first part is complete.

        Raises
        ------
        DataError
            Another process is at work on this output.
        """
        work = cls(output)
        work.path.mkdir(exist_ok=True)
        lock = FileLock(work.path / "lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise DataError(f"Another process is writing {output}; wait for it.") from None
        try:
            yield work
        except DataError as error:
            if isinstance(error, BadRowsError) or not any(work.path.glob("part-*.json")):
                work.remove()
            raise
        finally:
            lock.release()

    def begin(self, run: dict[str, Any]) -> None:
        """Go on with a run that was interrupted, or begin it afresh if it was another one.

        Parameters
        ----------
        run : dict
            Everything that the results depend on, as JSON.
        """
        stated = json.dumps({"protocol": _PROTOCOL, **run}, sort_keys=True)
        checksum = hashlib.sha256(stated.encode()).hexdigest()
        self._run = _read_json(self.path / "run.json") or {}
        if self._run.get("checksum") != checksum:
            for each in self.path.iterdir():
                if each.is_dir():
                    shutil.rmtree(each)
                elif each.name != "lock":
                    each.unlink()
            self._run = {"checksum": checksum, "remembered": {}}
            _write_json(self.path / "run.json", self._run)

    @property
    def remembered(self) -> dict[str, Any]:
        """What need not be found again; empty in a new run."""
        return self._run["remembered"]

    def remember(self, name: str, found: Any) -> None:
        """Store what need not be found again, as JSON."""
        self._run["remembered"][name] = found
        _write_json(self.path / "run.json", self._run)

    def finished(self, fragment: Fragment, suffix: str) -> Tally | None:
        """What was odd in a fragment, if its part is complete."""
        note = _read_json(self._note(fragment))
        part = self.part(fragment, suffix)
        if note is None or not part.is_file() or part.stat().st_size != note["bytes"]:
            return None
        return Tally.from_dict(note["tally"])

    @contextmanager
    def new_part(self, fragment: Fragment, suffix: str, schema: pa.Schema) -> Iterator[Write]:
        """Write the part of a fragment; it is there once the block is left without an error."""
        self._parts.mkdir(exist_ok=True)
        with (
            replace_when_complete(self.part(fragment, suffix)) as file,
            batch_writer(file, suffix, schema, header=fragment.number == 0) as write,
        ):
            yield write

    def finish(self, fragment: Fragment, suffix: str, tally: Tally) -> None:
        """Let a part count from now on."""
        size = self.part(fragment, suffix).stat().st_size
        _write_json(self._note(fragment), {"bytes": size, "tally": tally.to_dict()})

    def publish_folder(self, summary: dict[str, Any]) -> None:
        """Put the folder of all parts in the place of the output.

        The summary is stored before, for a run that is killed between the two: `published`.
        """
        _write_json(self.path / "summary.json", summary)
        if self.output.exists():
            self.output.rmdir()  # empty, or else it would have been refused
        self._parts.rename(self.output)
        _flush(self.output.parent)

    def published(self) -> dict[str, Any] | None:
        """The summary of a run that was killed after its folder had been put in its place."""
        if self._parts.exists() or not self.output.is_dir():
            return None
        return _read_json(self.path / "summary.json")

    def publish_file(self, fragments: Sequence[Fragment], suffix: str, schema: pa.Schema) -> None:
        """Put all parts together in the place of the output.

        Parameters
        ----------
        fragments : sequence of Fragment
            All of them.
        suffix : str
            Of the parts.
        schema : pyarrow.Schema
        """
        parts = [self.part(fragment, suffix) for fragment in fragments]
        wanted = self.output.suffix.lower()
        if len(parts) == 1 and suffix == wanted:
            if self.output.exists():
                shutil.copymode(self.output, parts[0])
            parts[0].replace(self.output)
            _flush(self.output.parent)
            return
        with replace_when_complete(self.output) as file:
            if wanted == ".csv":  # only the first part has the line of names
                for part in parts:
                    with part.open("rb") as rows:
                        shutil.copyfileobj(rows, file, 2**20)
                return
            with batch_writer(file, wanted, schema) as write:
                for part in parts:
                    with pa.OSFile(str(part)) as rows, pa.ipc.open_file(rows) as reader:
                        for at in range(reader.num_record_batches):
                            write(reader.get_batch(at))

    def remove(self) -> None:
        """Remove the folder; all is done."""
        shutil.rmtree(self.path)

    def part(self, fragment: Fragment, suffix: str) -> Path:
        """The file of a fragment's results."""
        return self._parts / f"part-{fragment.number:05d}{suffix}"

    def _note(self, fragment: Fragment) -> Path:
        return self.path / f"part-{fragment.number:05d}.json"


def folder_of(output: Path) -> Path:
    """Where the work on an output lies."""
    return output.with_name(f".{output.name}.scoring")


def _read_json(path: Path) -> Any:
    """What a file of ours holds; None if there is none, or a person has changed it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _write_json(path: Path, value: Any) -> None:
    with replace_when_complete(path) as file:
        file.write(json.dumps(value).encode())


def _flush(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
