"""Files of any size scored from end to end, in constant memory, resumed where they were left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bootprob.batch_scoring.ahead import one_ahead
from bootprob.batch_scoring.checked_files import checksum_of_file, unchanged
from bootprob.batch_scoring.fragments import Block, Fragment, blocks_of, cut
from bootprob.batch_scoring.input_identity import InputIdentity
from bootprob.batch_scoring.options import ScoringOptions
from bootprob.batch_scoring.part_files import check_schema, safe_batch, safe_schema
from bootprob.batch_scoring.row_scoring import (
    PreparedRows,
    RowScorer,
    check_columns,
    rows_at_once,
)
from bootprob.batch_scoring.run_input import (
    checked_output,
    checksum_of_model,
    column_names,
    load_model,
    open_sources,
)
from bootprob.batch_scoring.sources import InputFile, Source, find_files
from bootprob.batch_scoring.tally import BadRow, Tally
from bootprob.batch_scoring.work_folder import WorkFolder
from bootprob.exceptions import DataError
from bootprob.runtime.progress import progress_bar
from bootprob.tables.suffixes import SCORED_SUFFIXES

if TYPE_CHECKING:
    from bootprob.ensemble.bootstrap_ensemble import BootstrapEnsemble
    from bootprob.tables.model import TableModel

__all__ = ["ScoringSummary", "score_dataset"]

_BLOCKS_OF_FRAGMENT = 16  # what a kill can cost


@dataclass
class ScoringSummary:
    """What a run did.

    Attributes
    ----------
    output : str
        File or folder that was written.
    n_rows : int
        All rows of the input.
    n_resumed : int
        Those that an interrupted run had scored before.
    n_bad : int
        Rows without results, as they could not be used.
    bad : list of BadRow
        The first thousand of them.
    unknown : dict of str to dict
        By column, ``rows`` with a level that the model does not know, and ``levels``: how many
        rows have which, of the first hundred levels found.
    seconds : float
        From end to end.
    busy : dict of str to float
        Seconds that each stage worked: "reading", "preparing" (from columns to the matrix),
        "scoring" and "writing". They overlap, so their sum may exceed `seconds`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from bootprob.tables import TableModel
    >>> table = load_iris(as_frame=True).frame[50:]  # two species of three
    >>> model = TableModel.fit(table, "target", kernel="linear", n_bootstraps=20, random_state=0)
    >>> from bootprob.batch_scoring import score_dataset
    >>> with TemporaryDirectory() as folder:
    ...     table.to_csv(Path(folder, "iris.csv"), index=False)
    ...     summary = score_dataset(model, Path(folder, "iris.csv"), Path(folder, "scored.csv"))
    >>> summary.n_rows, summary.n_resumed, summary.n_bad
    (100, 0, 0)
    >>> sorted(summary.busy)
    ['preparing', 'reading', 'scoring', 'writing']
    """

    output: str
    n_rows: int
    n_resumed: int
    n_bad: int
    bad: list[BadRow]
    unknown: dict[str, dict[str, Any]]
    seconds: float
    busy: dict[str, float]

    @property
    def rate(self) -> float:
        """Rows scored per second by this run."""
        return (self.n_rows - self.n_resumed) / self.seconds


def score_dataset(
    model: TableModel | BootstrapEnsemble | str | os.PathLike[str],
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    options: ScoringOptions | None = None,
    *,
    trusted: Sequence[str] = (),
    model_file: str | os.PathLike[str] | None = None,
    model_checksum: str | None = None,
    progress: bool = False,
) -> ScoringSummary:
    """Score a file, or a folder of files, of any size.

    The results are those of `TableModel.predict` for each file, in the order of its rows. They
    appear under `output` when all are there. An interrupted run leaves the parts that are complete
    in a hidden folder beside it, and the same call takes only what is missing: the same model and
    options, and input files of the same paths and content.

    Parameters
    ----------
    model : TableModel, BootstrapSVC, BootstrapClassifier or path-like
        Fitted, or the file of one. That of an ensemble of plain numbers without names needs files
        that have its columns alone, in their order, or call them x0, x1, ….
    source : path-like
        A file that ends in ``.csv``, ``.parquet``, ``.arrow`` or ``.feather``, or a folder of
        files of one of these kinds; folders called ``year=2024`` within it make a column.
    output : path-like
        A file that ends in one of these, or a folder to be created, of Parquet files whose names
        are in the order of the rows. What else is to be told lies beside it, in a file whose name
        has ``.summary.json`` at the end.
    options : ScoringOptions, optional
        Default ``ScoringOptions()``.
    trusted : list of str, default ()
        Types that may be made of the model file's bytes, as of `bootprob.load`.
    model_file : path-like, optional
        Where a `TableModel` was loaded from, by which an interrupted run knows it again; by default
        it is written to a file of the run for that.
    model_checksum : str, optional
        SHA-256 of that file when it was loaded; by default as it is now.
    progress : bool, default False
        Show progress bars.

    Returns
    -------
    ScoringSummary

    Raises
    ------
    DataError
        Something given cannot be used; see also `ScoringOptions.bad_rows`. Nothing is left behind.
    ModelFileError
        `model` is no model file.
    OSError
        The disk is full or the folder cannot be written. Finished parts stay for the next run.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from sklearn.datasets import load_iris
    >>> from bootprob.tables import TableModel
    >>> table = load_iris(as_frame=True).frame[50:]  # two species of three
    >>> model = TableModel.fit(table, "target", kernel="linear", n_bootstraps=20, random_state=0)
    >>> from bootprob.batch_scoring import ScoringOptions, score_dataset
    >>> with TemporaryDirectory() as folder:
    ...     table.to_csv(Path(folder, "iris.csv"), index=False)
    ...     options = ScoringOptions(level=0.9, keep=("target",))
    ...     target = Path(folder, "scored.parquet")
    ...     done = score_dataset(model, Path(folder, "iris.csv"), target, options)
    ...     pd.read_parquet(target).columns.tolist()
    ['target', 'probability', 'probability_lower', 'probability_upper', 'label', 'threshold']
    """
    start = time.perf_counter()
    options = ScoringOptions() if options is None else options
    files = find_files(source)
    of_file = model if isinstance(model, (str, os.PathLike)) else model_file
    target = checked_output(Path(output), Path(source), files, of_file)
    if isinstance(model, (str, os.PathLike)):
        with unchanged(Path(model)) as model_checksum:
            fitted = load_model(model, trusted, files[0])
        model = fitted
    else:
        fitted = load_model(model, trusted, files[0])
        if model_checksum is None and model_file is not None:
            model_checksum = checksum_of_file(Path(model_file))
    needed = (*fitted.encoder.kinds, *options.beside)
    for each in files:
        if each.path.suffix.lower() == ".csv":
            check_columns(needed, [*column_names(each), *each.partition], str(each.path))
    try:
        with WorkFolder.locked(target) as work:
            identity = InputIdentity(files, progress)
            summary = work.begin(
                {
                    "model": model_checksum or checksum_of_model(model, work),
                    "device": str(getattr(fitted.svc, "device", None)),
                    "input": identity.stated,
                    "options": asdict(options),
                }
            )
            if summary is None:
                rows = rows_at_once(fitted, options)
                sources = open_sources(
                    fitted, files, rows, work, progress,
                    () if options.costs is None else options.costs.columns,
                )  # fmt: skip
                done = _Run(fitted, options, files, sources, identity, work, rows)
                done.score(progress)
                summary = done.publish(start)
            work.put_summary(summary)
            work.remove()
    except OSError as error:  # the names of hidden files would help nobody
        raise OSError(error.errno, error.strerror or str(error), str(output)) from error
    bad = [BadRow(**row) for row in summary.pop("bad")]
    return ScoringSummary(**summary, bad=bad)


def _with_kinds(given: pa.Schema, names: Sequence[str], sources: Sequence[Source]) -> pa.Schema:
    """The same, with types of later files for columns without a value in the first."""
    for name in names:
        at = given.get_field_index(name)
        if at >= 0 and pa.types.is_null(given.field(at).type):
            fields = [s.schema.field(name) for s in sources if name in s.schema.names]
            typed = (each for each in fields if not pa.types.is_null(each.type))
            given = given.set(at, next(typed, given.field(at)))
    return given


class _Run:
    """Fragments on their way from the files to the parts."""

    def __init__(
        self,
        model: TableModel,
        options: ScoringOptions,
        files: Sequence[InputFile],
        sources: Sequence[Source],
        identity: InputIdentity,
        work: WorkFolder,
        rows: int,
    ) -> None:
        self._options, self._files, self._sources = options, files, sources
        self._identity, self._work, self._rows = identity, work, rows
        self._columns = tuple(dict.fromkeys((*model.encoder.kinds, *options.beside)))
        self._categories = tuple(model.encoder.levels)
        for source, file in zip(sources, files, strict=True):
            check_columns(self._columns, source.schema.names, str(file.path))
        # What a CSV file without rows holds is not known; kept columns are as in those with rows.
        known = next((each for each in sources if sum(each.chunks)), sources[0])
        self._scorer = RowScorer(model, options, _with_kinds(known.schema, options.keep, sources))
        self._schema = self._scorer.schema
        self._fragments = self._cut()
        self._suffix = self._suffix_of_parts()
        self._is_made_safe = options.csv_safe and self._suffix == ".csv"
        if self._is_made_safe:
            self._schema = safe_schema(self._schema)
        check_schema(self._suffix, self._schema)
        self._waiting = [each for each in self._fragments if not work.finished(each, self._suffix)]
        self._n_resumed = _n_rows(self._fragments) - _n_rows(self._waiting)
        self._busy = dict.fromkeys(("reading", "preparing", "scoring", "writing"), 0.0)

    def _cut(self) -> list[Fragment]:
        found: list[Fragment] = []
        for at, source in enumerate(self._sources):
            for start, stop in cut(source.chunks, _BLOCKS_OF_FRAGMENT * self._rows):
                found.append(Fragment(len(found), at, start, stop))
        return found or [Fragment(0, 0, 0, 0)]  # a day without rows still has a table of results

    def _suffix_of_parts(self) -> str:
        """Of several parts of a file, only CSV can be put together as they are."""
        wanted = self._work.output.suffix.lower()
        if wanted not in SCORED_SUFFIXES:
            return ".parquet"
        return wanted if wanted == ".csv" or len(self._fragments) == 1 else ".arrow"

    def score(self, progress: bool) -> None:
        """Score all fragments that are not finished yet."""
        total = _n_rows(self._fragments)
        if total == 0:
            self._write(self._fragments[0], [], lambda n_rows: None)
            return
        with (
            progress_bar("Scoring rows", total, shown=progress) as advance,
            closing(one_ahead(self._prepared())) as prepared,
            closing(one_ahead(self._scored(prepared))) as scored,
        ):
            advance(self._n_resumed)
            for fragment, results in groupby(scored, key=lambda each: each[0]):
                self._write(fragment, results, advance)

    def _write(
        self,
        fragment: Fragment,
        results: Iterable[tuple[Fragment, pa.RecordBatch, Tally]],
        advance: Callable[[int], None],
    ) -> None:
        tally = Tally()
        with self._work.new_part(fragment, self._suffix, self._schema) as write:
            for _, result, found in results:
                begin = time.perf_counter()
                write(safe_batch(result) if self._is_made_safe else result)
                self._busy["writing"] += time.perf_counter() - begin
                tally.add(found)
                advance(result.num_rows)
            begin = time.perf_counter()
        self._identity.refuse_change(fragment.file)
        self._work.finish(fragment, self._suffix, tally)
        self._busy["writing"] += time.perf_counter() - begin

    def _blocks(self) -> Iterator[Block]:
        for at, own in groupby(self._waiting, key=lambda each: each.file):
            yield from blocks_of(
                self._sources[at], list(own), self._columns, self._categories, self._rows
            )

    def _prepared(self) -> Generator[tuple[Block, PreparedRows, Tally]]:
        blocks = self._blocks()
        while True:
            begin = time.perf_counter()
            block = next(blocks, None)
            self._busy["reading"] += time.perf_counter() - begin
            if block is None:
                return
            begin, tally = time.perf_counter(), Tally()
            name = self._files[block.fragment.file].name
            prepared = self._scorer.prepare(block.batch, tally, file=name, first=block.first)
            self._busy["preparing"] += time.perf_counter() - begin
            yield block, prepared, tally

    def _scored(
        self, blocks: Iterator[tuple[Block, PreparedRows, Tally]]
    ) -> Generator[tuple[Fragment, pa.RecordBatch, Tally]]:
        for block, prepared, tally in blocks:
            begin = time.perf_counter()
            result = self._scorer.score(block.batch, prepared)
            self._busy["scoring"] += time.perf_counter() - begin
            yield block.fragment, result, tally

    def publish(self, start: float) -> dict[str, Any]:
        """Put the results in their place and sum up."""
        begin = time.perf_counter()
        work, tally = self._work, Tally()
        for fragment in self._fragments:
            found = work.finished(fragment, self._suffix)
            if found is None:
                raise DataError(f"Files in {work.path} were changed; run the same command again.")
            tally.add(found)
        is_file = work.output.suffix.lower() in SCORED_SUFFIXES
        if is_file:
            work.publish_file(self._fragments, self._suffix, self._schema)
        self._busy["writing"] += time.perf_counter() - begin
        summary = {
            "output": str(work.output),
            "n_rows": tally.n_rows,
            "n_resumed": self._n_resumed,
            "n_bad": tally.n_bad,
            "unknown": {
                name: {"rows": rows, "levels": dict(tally.unknown_levels[name].most_common())}
                for name, rows in tally.unknown_rows.items()
            },
            "seconds": time.perf_counter() - start,
            "busy": self._busy,
            "bad": [asdict(row) for row in tally.bad],
        }
        if not is_file:
            work.publish_folder(self._fragments, self._suffix, summary)
        return summary


def _n_rows(fragments: Sequence[Fragment]) -> int:
    return sum(each.stop - each.start for each in fragments)
