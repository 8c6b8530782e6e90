"""Save a fitted model in one file and load it, without pickle.

The file is a safetensors file: the arrays as they lie in memory and, in its header under the name
``bootprob``, everything else as JSON. Loading reads numbers and text and executes nothing, so a
model from a stranger can be opened safely; what is promised of that is in docs/model_files.md.
Protocol 2, which differs from 1 in that posteriors may have products of columns:

===========  =====================================================================================
entry        what it holds
===========  =====================================================================================
``protocol`` 2
``bootprob`` version of bootprob that wrote the file
``content``  ``kind`` (``"BootstrapSVC"``, ``"BootstrapClassifier"`` or ``"TableModel"``),
             ``params``, ``values`` (fitted attributes that are no arrays, among them the versions
             used for fitting, and of several classes those of each pair under
             ``pair_ensembles_``),
             ``text_arrays``, ``shapes`` (dtype and shape of every tensor) and ``table``
             (preprocessing and target; of an ensemble fitted on a data frame the preprocessing
             alone, and null of one of a matrix)
``sha256``   checksum of ``content`` (keys sorted) and of all tensors in the order of their names
===========  =====================================================================================

Of a ``BootstrapClassifier`` a tensor ``classifiers`` holds the bytes that ``skops.io.dumps`` wrote
of the classifiers (`bootprob.persistence.classifiers`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bootprob.ensemble.classifier import BootstrapClassifier
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.fitted import without_frame
from bootprob.exceptions import ModelFileError
from bootprob.persistence.classifiers import PARAMETERS, checked_names, classifiers_of, to_bytes
from bootprob.persistence.file import PROTOCOL, describe_error, read_model_file, write_model_file
from bootprob.persistence.state import Ensemble, join_state, plain_parameters, split_state
from bootprob.persistence.tables import model_of, table_to_dict
from bootprob.persistence.values import decode, encode
from bootprob.tables.model import TableModel

__all__ = ["PROTOCOL", "load", "save"]

_ENTRIES = {"kind", "params", "values", "text_arrays", "shapes", "table"}
_ENCODED = ("params", "text_arrays", "values")
_KINDS = ("BootstrapClassifier", "BootstrapSVC", "TableModel")
_CLASSIFIERS = "classifiers"


def save(model: Ensemble | TableModel, path: str | os.PathLike[str]) -> None:
    """Save a fitted model in one file.

    A `random_state` that is a generator object is not stored (None takes its place); the
    entropy drawn from it is, so the bootstrap samples remain reproducible.

    Parameters
    ----------
    model : BootstrapSVC, BootstrapClassifier or TableModel
        Fitted. Classifiers are stored by skops: ``pip install "bootprob[skops]"``.
    path : path-like
        The file; an existing one is replaced, entirely or not at all.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    TypeError, ValueError
        The model is of another type, a parameter cannot be stored, or a fitted attribute is not
        what a fit leaves.
    ModelFileError
        There are more classes or names than a file may have; or skops cannot store the
        classifiers, or is not installed.
    OSError
        The disk is full or the folder cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC, load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X[50:], y[50:])
    >>> with TemporaryDirectory() as folder:
    ...     save(model, Path(folder, "iris.model"))
    ...     same = load(Path(folder, "iris.model"))
    >>> type(same).__name__
    'BootstrapSVC'
    """
    if not isinstance(model, (BootstrapSVC, BootstrapClassifier, TableModel)):
        raise TypeError(
            "A BootstrapSVC, BootstrapClassifier or TableModel can be saved, not "
            f"{type(model).__name__}."
        )
    ensemble = model.svc if isinstance(model, TableModel) else model
    check_is_fitted(ensemble)
    params = plain_parameters(ensemble)
    arrays, values = split_state(without_frame(ensemble))
    if isinstance(ensemble, BootstrapClassifier):
        params = {name: each for name, each in params.items() if name not in PARAMETERS}
        arrays[_CLASSIFIERS] = to_bytes(ensemble)
    # safetensors knows contiguous numbers and booleans only; text goes to the JSON.
    numeric = {
        name: np.asarray(array, order="C")
        for name, array in arrays.items()
        if array.dtype.kind in "biuf"
    }
    content = {
        "kind": type(model).__name__,
        "params": encode(params),
        "values": encode(values),
        "text_arrays": encode(
            {name: arrays[name] for name in sorted(arrays.keys() - numeric.keys())}
        ),
        "table": table_to_dict(model),
    }
    write_model_file(path, content, numeric)


def load(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Ensemble | TableModel:
    """Load a model that `save` wrote; its predictions are the same to the last bit.

    A model that was fitted on a device which this machine lacks gets ``device="auto"``; only
    then the last bits may differ.

    Parameters
    ----------
    path : path-like
        The file.
    trusted : list of str, default ()
        Types that may be made of the file's bytes, beside those that skops trusts: names as
        ``skops.io.get_untrusted_types`` gives them, such as ``"sklearn.tree._tree.Tree"``. The
        error says which a file of a `BootstrapClassifier` needs.

    Returns
    -------
    BootstrapSVC, BootstrapClassifier or TableModel
        Fitted; whichever was saved.

    Raises
    ------
    DataError
        `trusted` is no list of names.
    ModelFileError
        The file is missing, damaged, no bootprob model, of another protocol, or larger than half
        of the memory that is free; or it holds types that are not trusted.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC, load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X[50:], y[50:])
    >>> with TemporaryDirectory() as folder:
    ...     save(model, Path(folder, "iris.model"))
    ...     same = load(Path(folder, "iris.model"))
    >>> bool((same.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    trusted = checked_names(trusted)
    content, arrays = read_model_file(path)
    classifiers = None
    if _CLASSIFIERS in arrays:
        classifiers = classifiers_of(arrays.pop(_CLASSIFIERS), trusted, path)
    try:
        with np.errstate(all="ignore"):  # what overflows is refused, not warned of
            return _model_of(content, arrays, classifiers)
    except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: {describe_error(error)}.") from error


def _model_of(
    content: dict[str, Any],
    arrays: dict[str, np.ndarray],
    classifiers: tuple[dict[str, Any], dict[str, Any]] | None,
) -> Ensemble | TableModel:
    """Make the model of what a file holds; the errors are those of the parts that check it."""
    _check_entries(content, of_classifiers=classifiers is not None)
    decoded = decode({name: content[name] for name in _ENCODED})
    for name, entries in decoded.items():
        if not isinstance(entries, dict):
            raise TypeError(f"{name} are no entries")
    params, texts, values = decoded.values()
    if not all(isinstance(array, np.ndarray) for array in texts.values()):
        raise TypeError("text_arrays are no arrays")
    if names := texts.keys() & arrays.keys():
        raise ValueError(f"{', '.join(sorted(names))} is there twice")
    given, fitted = ({}, None) if classifiers is None else classifiers
    if names := params.keys() & given.keys():
        raise ValueError(f"{', '.join(sorted(names))} is there twice")
    return model_of(content["table"], join_state(params | given, arrays | texts, values, fitted))


def _check_entries(content: dict[str, Any], *, of_classifiers: bool) -> None:
    if content.keys() != _ENTRIES:
        raise ValueError("entries are missing or unknown")
    if content["kind"] not in _KINDS:
        raise ValueError(f"it holds a {content['kind']!r}, which is none of {_KINDS}")
    if content["kind"] != "TableModel" and of_classifiers != (content["kind"] == _KINDS[0]):
        raise ValueError("kind and classifiers do not fit each other")
    table = content["table"]
    has_target = isinstance(table, dict) and table.get("target") is not None
    if (content["kind"] == "TableModel") != has_target:
        raise ValueError("kind and table do not fit each other")
