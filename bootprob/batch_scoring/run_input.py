"""What a run is given: where it may write, the model, and the files opened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bootprob.batch_scoring.checked_files import checksum_of_file
from bootprob.batch_scoring.csv_source import CsvSource
from bootprob.batch_scoring.sources import (
    ArrowSource,
    InputFile,
    ParquetSource,
    PartitionedSource,
    Source,
)
from bootprob.batch_scoring.work_folder import WorkFolder, folder_of, summary_of
from bootprob.exceptions import DataError
from bootprob.runtime.files import check_output
from bootprob.runtime.progress import progress_bar
from bootprob.tables.csv_files import separator_and_names
from bootprob.tables.csv_pieces import CsvLayout
from bootprob.tables.files import readable
from bootprob.tables.magic import check_content
from bootprob.tables.suffixes import SCORED_SUFFIXES

if TYPE_CHECKING:
    from bootprob.ensemble.bootstrap_ensemble import BootstrapEnsemble
    from bootprob.tables.model import TableModel

__all__ = [
    "checked_output",
    "checksum_of_model",
    "column_names",
    "load_model",
    "open_sources",
]


def checked_output(
    output: Path, source: Path, files: Sequence[InputFile], model: str | os.PathLike[str] | None
) -> Path:
    """Refuse an output that cannot be written, and follow links."""
    paths = tuple(each.path for each in files)
    if model is not None:
        paths += (Path(model),)
    target = output.resolve()
    if not target.name:
        raise DataError(f"{output} is no name for an output; give one within it.")
    if source.is_dir() and target.is_relative_to(source.resolve()):
        raise DataError(f"{output} lies in the folder that is read; write it elsewhere.")
    check_output(summary_of(target), inputs=paths)
    if output.suffix.lower() in SCORED_SUFFIXES:
        return check_output(output, inputs=paths)
    if target.is_dir():
        # An interrupted run may have filled it; `WorkFolder.begin` knows.
        if any(target.iterdir()) and not folder_of(target).exists():
            raise DataError(f"The folder {output} is not empty; remove it or give another name.")
    elif target.exists():
        raise DataError(f"{output} is a file; a folder is to be written there.")
    elif output.suffix:
        raise DataError(
            f"{output}: an output is a file whose name ends in {', '.join(SCORED_SUFFIXES)}, or a "
            "folder whose name has no ending."
        )
    return target


def column_names(file: InputFile) -> list[str]:
    """Names of the columns of a file, without the blanks around them."""
    suffix = file.path.suffix.lower()
    if suffix == ".csv":
        with readable(file.path):
            check_content(file.path)
            return [name.strip() for name in separator_and_names(file.path)[1]]
    return (ParquetSource if suffix == ".parquet" else ArrowSource)(file.path, 1).schema.names


def load_model(
    model: TableModel | BootstrapEnsemble | str | os.PathLike[str],
    trusted: Sequence[str],
    file: InputFile,
) -> TableModel:
    """The model that is given, or that is in the file given; for the columns of an input file."""
    from bootprob.ensemble.bootstrap_ensemble import BootstrapEnsemble
    from bootprob.persistence.save_load import load
    from bootprob.tables.model import TableModel

    if isinstance(model, (str, os.PathLike)):
        loaded = load(model, trusted)
    elif not isinstance(model, (TableModel, BootstrapEnsemble)):
        raise DataError(f"model is {model!r}; give a fitted model, or the file of one.")
    elif trusted:
        raise DataError("trusted is of a model's file, and a fitted model is given.")
    else:
        loaded = model
    if isinstance(loaded, TableModel):
        return loaded
    table = TableModel.of(loaded, column_names(file))  # which one of a data frame does not need
    assert table is not None
    return table


def checksum_of_model(model: TableModel | BootstrapEnsemble, work: WorkFolder) -> str:
    """Of what would be its file."""
    from bootprob.persistence.save_load import save

    path = work.path / "model"
    save(model, path)
    return checksum_of_file(path)


def open_sources(
    model: TableModel,
    files: Sequence[InputFile],
    rows: int,
    work: WorkFolder,
    progress: bool,
    costs: Sequence[str] = (),
) -> list[Source]:
    """Open all files; CSV files are looked through if no run has done it before."""
    kinds, texts = model.encoder.kinds, model.text_columns
    interpreted = [name for name in kinds if name not in texts]
    interpreted += [name for name in costs if name not in kinds]
    found: list[Source] = []
    for at, each in enumerate(files):
        suffix = each.path.suffix.lower()
        source: Source
        if suffix == ".parquet":
            source = ParquetSource(each.path, rows)
        elif suffix != ".csv":
            source = ArrowSource(each.path, rows)
        else:
            stored = work.layout(at)
            if stored is None:
                n_bytes = each.path.stat().st_size
                with progress_bar(
                    f"Reading {each.name} (bytes)", n_bytes, shown=progress
                ) as advance:
                    layout = CsvLayout.find(each.path, texts, advance)
                stored = layout.to_dict()
                work.keep_layout(at, stored)
            source = CsvSource(each.path, CsvLayout(**stored), interpreted)
        found.append(PartitionedSource(source, each.partition) if each.partition else source)
    return found
