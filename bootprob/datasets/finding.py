"""Where the files of a data set are: in a local folder, in the cache, or on the network."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from bootprob.datasets.source import DatasetError, Source

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FOLDER_VARIABLE",
    "cache_folder",
    "fetch_files",
    "fetch_from_openml",
    "places",
    "present",
]

FOLDER_VARIABLE = "BOOTPROB_DATASETS"
"""Environment variable that names a local folder of data sets."""

_SECONDS = 30.0  # without an answer, after which a server counts as not there


def cache_folder() -> Path:
    """Where downloads are kept: ``bootprob`` in scikit-learn's data folder (SCIKIT_LEARN_DATA).

    `sklearn.datasets.get_data_home` would make the folder, which is too early here.
    """
    home = os.environ.get("SCIKIT_LEARN_DATA") or "~/scikit_learn_data"
    return Path(home).expanduser() / "bootprob"


def places(folder: str | os.PathLike[str] | None) -> tuple[Path, ...]:
    """Folders to look into, the first first; `DatasetError` if one is given and not there.

    It may be given here or by the environment variable.
    """
    given = os.environ.get(FOLDER_VARIABLE) if folder is None else folder
    if not given:
        return (cache_folder(),)
    if not isinstance(given, str | os.PathLike):
        raise DatasetError(f"folder is {given!r}; give the path of one.")
    if not Path(given).is_dir():
        what = "which is given as `folder`"
        if folder is None:
            what = f"which the environment variable {FOLDER_VARIABLE} names"
        raise DatasetError(f"There is no folder {os.fspath(given)}, {what}.")
    return (Path(given), cache_folder())


def present(source: Source, where: tuple[Path, ...]) -> tuple[Path, ...] | None:
    """Paths of all files of a data set in the first folder that has them all, or None.

    A file in the cache counts only with its checksum; files in a folder of the user's own may
    differ in their line ends or headers, and are judged by what is read from them.
    """
    for place in where:
        paths = tuple(place / source.folder / file.name for file in source.files)
        if all(path.is_file() for path in paths) and (
            place != cache_folder()
            or all(
                sha256(path.read_bytes()).hexdigest() == file.sha256
                for path, file in zip(paths, source.files, strict=True)
            )
        ):
            return paths
    return None


def fetch_files(source: Source) -> tuple[Path, ...]:
    """Download the files of a data set into the cache; each must have its checksum.

    `DatasetError` if no address of a file gives it; it says what each said.
    """
    from sklearn.datasets import fetch_file

    folder = cache_folder() / source.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatasetError(f"The cache {folder} cannot be written ({error})") from error
    paths = []
    for file in source.files:
        failures = []
        for url in (url.replace(" ", "%20") for url in file.urls):
            try:
                with _impatient(), warnings.catch_warnings():
                    # Said where a file in the cache has another checksum and is replaced.
                    warnings.filterwarnings("ignore", message="SHA256 checksum")
                    path = fetch_file(
                        url,
                        folder=folder,
                        local_filename=file.name,
                        sha256=file.sha256,
                        n_retries=0,
                    )
            except (OSError, HTTPException) as error:  # URLError is an OSError
                failures.append(f"{url}: {error}")
                continue
            paths.append(Path(path))
            break
        else:
            raise DatasetError(f"{file.name} cannot be downloaded ({'; '.join(failures)})")
    return tuple(paths)


def fetch_from_openml(source: Source) -> pd.DataFrame:
    """Fetch a data set from OpenML, with the columns and classes of the original file.

    `DatasetError` if OpenML does not give it, or gives other columns.
    """
    import pandas as pd
    from sklearn.datasets import fetch_openml

    assert source.openml is not None
    number = source.openml.data_id
    try:
        with _impatient():
            found = fetch_openml(
                data_id=number,
                as_frame=True,
                parser="liac-arff",
                n_retries=0,
                data_home=cache_folder(),
            )
    except (OSError, ValueError, HTTPException) as error:  # OpenMLError is a ValueError
        raise DatasetError(f"OpenML data set {number} cannot be fetched ({error})") from error
    frame = found.frame
    if frame.columns.tolist() != list(source.columns):
        raise DatasetError(
            f"OpenML data set {number} has the columns {', '.join(map(str, frame.columns))} and "
            f"not those of {source.title}"
        )
    classes = dict(source.openml.labels)
    table = {
        name: frame[name].astype(str).replace(classes if name == source.target else {})
        for name in source.columns
    }
    return pd.DataFrame(table)


@contextmanager
def _impatient() -> Iterator[None]:
    """Give up on a server that says nothing; scikit-learn would wait for ever.

    The default is the process's: connections that other threads open meanwhile have it too.
    """
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
