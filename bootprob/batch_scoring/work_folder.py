"""The hidden folder that holds finished parts until all are there, and by which a run resumes.

Beside the output ``scored.parquet`` it is called ``.scored.parquet.scoring`` and holds

- ``run.json``: what is being done, by a checksum;
- ``layout-00000.json`` ...: what looking through each CSV file found;
- ``parts/part-00000.parquet`` ...: the results of each fragment;
- ``part-00000.json`` ...: written after the part: which rows it has, its checksum and what was odd
  in the rows. A part without it does not count;
- ``summary.json``: written before a folder of parts is put in its place, for a run that is killed
  then.

Every one of them is complete or absent (`bootprob.runtime.files.replace_when_complete`) and has a
checksum; what is damaged is made again. Nothing unfinished lies beside the output, where no rerun
would look.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from filelock import FileLock, Timeout

from bootprob.batch_scoring.checked_files import (
    checksum_of_file,
    checksum_of_json,
    read_checked,
    warn_damaged,
    write_checked,
)
from bootprob.batch_scoring.fragments import Fragment
from bootprob.batch_scoring.part_files import Write, batch_writer
from bootprob.batch_scoring.tally import BadRowsError, Tally
from bootprob.exceptions import DataError
from bootprob.runtime.files import move_into_place, replace_when_complete
from bootprob.runtime.version import __version__

__all__ = ["WorkFolder", "folder_of", "summary_of"]

_PROTOCOL = 2  # of this folder's contents


class WorkFolder:
    """Parts of one output, made by one process at a time; made by `WorkFolder.locked`."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.path = folder_of(output)
        self._parts = self.path / "parts"
        self._checksum = ""  # of what is being done

    @classmethod
    @contextmanager
    def locked(cls, output: Path) -> Iterator[Self]:
        """Open the folder of an output, and create it if need be.

        It is removed again after an error that leaves nothing worth keeping: rows that are refused,
        or a `DataError` while no part is complete.

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
            if isinstance(error, BadRowsError) or not any(work._parts.glob("part-*")):
                work.remove()
            raise
        finally:
            lock.release()

    def begin(self, run: dict[str, Any]) -> dict[str, Any] | None:
        """Go on with a run that was interrupted, or begin it afresh if it was another one.

        Parameters
        ----------
        run : dict
            Everything that the results depend on, as JSON.

        Returns
        -------
        dict or None
            The summary of this run if it was killed after its folder had been put in its place.

        Raises
        ------
        DataError
            The output is a folder that another run has filled.

        Warns
        -----
        UserWarning
            The folder is damaged and the run begins afresh.
        """
        stated = {"protocol": _PROTOCOL, "bootprob": __version__, **run}
        self._checksum = checksum_of_json(stated)
        published = self._published()
        if published is not None and published["run"] == self._checksum:
            return published["summary"]
        if published is not None:
            self.put_summary(published["summary"])
            raise DataError(
                f"The folder {self.output} holds the results of an earlier run, of other input, "
                "model or options; remove it or give another name."
            )
        self._refuse_filled()
        if read_checked(self.path / "run.json", "The run begins afresh.") == self._checksum:
            for folder in (self.path, self._parts):
                for each in folder.glob(".*.part"):  # what a kill left half written
                    each.unlink()
        else:
            self._clear(but={"lock"})
            write_checked(self.path / "run.json", self._checksum)
        return None

    def layout(self, file: int) -> Any:
        """What `keep_layout` stored of a file; None if nothing, or with a warning if damaged."""
        return read_checked(self._layout(file), "The file is looked through again.")

    def keep_layout(self, file: int, found: Any) -> None:
        """Store what looking through a file found, as JSON."""
        write_checked(self._layout(file), found)

    def finished(self, fragment: Fragment, suffix: str) -> Tally | None:
        """What was odd in a fragment, if its part is complete and as it was written.

        Warns
        -----
        UserWarning
            It is not as it was written.
        """
        part, again = self.part(fragment, suffix), "Its rows are scored again."
        if not part.is_file():
            return None
        note = read_checked(self._note(fragment), again)
        if note is None or note["fragment"] != asdict(fragment):
            return None
        if note["part"] != checksum_of_file(part):
            warn_damaged(part, again)
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
        note = {
            "fragment": asdict(fragment),
            "part": checksum_of_file(self.part(fragment, suffix)),
            "tally": tally.to_dict(),
        }
        write_checked(self._note(fragment), note)

    def publish_folder(
        self, fragments: Sequence[Fragment], suffix: str, summary: dict[str, Any]
    ) -> None:
        """Put the folder of all parts, and of nothing else, in the place of the output.

        Raises
        ------
        DataError
            The output has been filled meanwhile.
        """
        names = [self.part(fragment, suffix).name for fragment in fragments]
        for other in {each.name for each in self._parts.iterdir()}.difference(names):
            (self._parts / other).unlink()
        self._refuse_filled()
        stored = {"run": self._checksum, "parts": names, "summary": summary}
        write_checked(self.path / "summary.json", stored)
        if self.output.exists():
            self.output.rmdir()
        move_into_place(self._parts, self.output)

    def publish_file(self, fragments: Sequence[Fragment], suffix: str, schema: pa.Schema) -> None:
        """Put all parts together in the place of the output."""
        parts = [self.part(fragment, suffix) for fragment in fragments]
        wanted = self.output.suffix.lower()
        if len(parts) == 1 and suffix == wanted:
            move_into_place(parts[0], self.output)
            return
        whole = self.path / f"whole{wanted}"
        with replace_when_complete(whole) as file:
            if wanted == ".csv":  # only the first part has the line of names
                for part in parts:
                    with part.open("rb") as rows:
                        shutil.copyfileobj(rows, file, 2**20)
            else:
                with batch_writer(file, wanted, schema) as write:
                    for part in parts:
                        with pa.OSFile(str(part)) as rows, pa.ipc.open_file(rows) as reader:
                            for at in range(reader.num_record_batches):
                                write(reader.get_batch(at))
        move_into_place(whole, self.output)

    def put_summary(self, summary: dict[str, Any]) -> None:
        """Put the summary beside the output."""
        told = self.path / "told.json"
        with replace_when_complete(told) as file:
            file.write(json.dumps(summary, indent=1).encode())
        move_into_place(told, summary_of(self.output))

    def remove(self) -> None:
        """Remove the folder; a kill meanwhile leaves the summary, by which all is known as done."""
        self._clear(but={"lock", "summary.json"})
        shutil.rmtree(self.path)

    def part(self, fragment: Fragment, suffix: str) -> Path:
        """The file of a fragment's results."""
        return self._parts / f"part-{fragment.number:05d}{suffix}"

    def _note(self, fragment: Fragment) -> Path:
        return self.path / f"part-{fragment.number:05d}.json"

    def _layout(self, file: int) -> Path:
        return self.path / f"layout-{file:05d}.json"

    def _published(self) -> dict[str, Any] | None:
        """What a run stored that was killed after its folder had been put in its place."""
        if self._parts.exists() or not self.output.is_dir():
            return None
        path = self.path / "summary.json"
        stored = read_checked(path, f"Whether {self.output} is complete is not known.")
        names = {each.name for each in self.output.iterdir()}
        return stored if stored is not None and names.issuperset(stored["parts"]) else None

    def _refuse_filled(self) -> None:
        if self.output.is_dir() and any(self.output.iterdir()):
            raise DataError(
                f"The folder {self.output} is not empty; remove it or give another name."
            )

    def _clear(self, but: Collection[str]) -> None:
        for each in self.path.iterdir():
            if each.is_dir():
                shutil.rmtree(each)
            elif each.name not in but:
                each.unlink()


def folder_of(output: Path) -> Path:
    """Where the work on an output lies."""
    return output.with_name(f".{output.name}.scoring")


def summary_of(output: Path) -> Path:
    """Where the summary of an output lies."""
    return output.with_name(f"{output.name}.summary.json")
