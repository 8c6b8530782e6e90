"""Models of a worker process, which is given batch after batch and job after job."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from bootprob.persistence.classifiers import checked_names
from bootprob.persistence.save_load import load
from bootprob.runtime.stamps import Stamp, stamp_of

if TYPE_CHECKING:
    from bootprob.persistence.state import Ensemble
    from bootprob.tables.model import TableModel

__all__ = ["load_once"]

_MOST = 4  # models that are kept, those used last
_LOADED: OrderedDict[tuple[Path, tuple[str, ...]], tuple[Stamp, Ensemble | TableModel]] = (
    OrderedDict()
)
_LOCK = Lock()


def load_once(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Ensemble | TableModel:
    """Load a model as `bootprob.load` does, but once in each process.

    For functions that Spark, Dask and their like send to workers. A file that was replaced is
    loaded anew; of several threads one loads, and the others wait. The four models that were used
    last are kept.

    Parameters
    ----------
    path : path-like
        The file.
    trusted : list of str, default ()
        As of `bootprob.load`. What one call trusts, another does not.

    Returns
    -------
    BootstrapSVC, BootstrapClassifier or TableModel
        Fitted, and the same object each time while it is kept: it must not be changed.

    Raises
    ------
    DataError, ModelFileError
        As of `bootprob.load`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC, save
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X[50:], y[50:])
    >>> with TemporaryDirectory() as folder:
    ...     save(model, Path(folder, "iris.model"))
    ...     load_once(Path(folder, "iris.model")) is load_once(Path(folder, "iris.model"))
    True
    """
    file = Path(path).absolute()
    with _LOCK:
        key = file, checked_names(trusted)
        stamp = stamp_of(file)
        if key not in _LOADED or _LOADED[key][0] != stamp:
            _LOADED[key] = stamp, load(path, key[1])
        _LOADED.move_to_end(key)
        while len(_LOADED) > _MOST:
            _LOADED.popitem(last=False)
        return _LOADED[key][1]
