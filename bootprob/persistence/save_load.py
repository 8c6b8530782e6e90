"""Save a fitted model in one file and load it, without pickle.

The file is a safetensors file: the arrays as they lie in memory and, in its header under the name
``bootprob``, everything else as JSON. Loading reads numbers and text and executes nothing, so a
model from a stranger can be opened safely; what is promised of that is in docs/model_files.md.
Protocol 1:

===========  =====================================================================================
entry        what it holds
===========  =====================================================================================
``protocol`` 1
``bootprob`` version of bootprob that wrote the file
``content``  ``kind`` (``"BootstrapSVC"`` or ``"TableModel"``), ``params``, ``values`` (fitted
             attributes that are no arrays, among them the versions used for fitting, and of
             several classes those of each pair under ``pair_ensembles_``),
             ``text_arrays``, ``shapes`` (dtype and shape of every tensor) and ``table``
             (preprocessing and target; of a ``BootstrapSVC`` fitted on a data frame the
             preprocessing alone, and null of one of a matrix)
``sha256``   checksum of ``content`` (keys sorted) and of all tensors in the order of their names
===========  =====================================================================================
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.fitted import of_matrix
from bootprob.exceptions import ModelFileError
from bootprob.persistence.file import PROTOCOL, describe_error, read_model_file, write_model_file
from bootprob.persistence.state import join_state, split_state
from bootprob.persistence.tables import model_of, table_to_dict
from bootprob.persistence.values import decode, encode
from bootprob.tables.model import TableModel
from bootprob_gpu import InputError, resolve_device

__all__ = ["PROTOCOL", "load", "save"]

_ENTRIES = {"kind", "params", "values", "text_arrays", "shapes", "table"}
_ENCODED = ("params", "text_arrays", "values")
_KINDS = ("BootstrapSVC", "TableModel")


def save(model: BootstrapSVC | TableModel, path: str | os.PathLike[str]) -> None:
    """Save a fitted model in one file.

    A `random_state` that is a generator object is not stored (None takes its place); the
    entropy drawn from it is, so the bootstrap samples remain reproducible.

    Parameters
    ----------
    model : BootstrapSVC or TableModel
        Fitted.
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
        There are more classes or names than a file may have.
    OSError
        The disk is full or the folder cannot be written.
    """
    if not isinstance(model, (BootstrapSVC, TableModel)):
        raise TypeError(f"A BootstrapSVC or TableModel can be saved, not {type(model).__name__}.")
    svc = model.svc if isinstance(model, TableModel) else model
    check_is_fitted(svc)
    params = svc.get_params(deep=False)
    if isinstance(params["random_state"], (np.random.RandomState, np.random.Generator)):
        params["random_state"] = None
    arrays, values = split_state(of_matrix(svc))
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


def load(path: str | os.PathLike[str]) -> BootstrapSVC | TableModel:
    """Load a model that `save` wrote; its predictions are the same to the last bit.

    A model that was fitted on a device which this machine lacks gets ``device="auto"``; only
    then the last bits may differ.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    BootstrapSVC or TableModel
        Fitted; whichever was saved.

    Raises
    ------
    ModelFileError
        The file is missing, damaged, no bootprob model, of another protocol, or larger than half
        of the memory that is free.
    """
    content, arrays = read_model_file(path)
    try:
        with np.errstate(all="ignore"):  # what overflows is refused, not warned of
            return _model_of(content, arrays)
    except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: {describe_error(error)}.") from error


def _model_of(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> BootstrapSVC | TableModel:
    """Make the model of what a file holds; the errors are those of the parts that check it."""
    _check_entries(content)
    decoded = decode({name: content[name] for name in _ENCODED})
    for name, entries in decoded.items():
        if not isinstance(entries, dict):
            raise TypeError(f"{name} are no entries")
    params, texts, values = decoded.values()
    params["device"] = _device_here(params["device"])
    if not all(isinstance(array, np.ndarray) for array in texts.values()):
        raise TypeError("text_arrays are no arrays")
    if names := texts.keys() & arrays.keys():
        raise ValueError(f"{', '.join(sorted(names))} is there twice")
    svc = join_state(params, arrays | texts, values)
    return model_of(content["table"], svc)


def _check_entries(content: dict[str, Any]) -> None:
    if content.keys() != _ENTRIES:
        raise ValueError("entries are missing or unknown")
    if content["kind"] not in _KINDS:
        raise ValueError(f"it holds a {content['kind']!r}, which is none of {_KINDS}")
    table = content["table"]
    has_target = isinstance(table, dict) and table.get("target") is not None
    if (content["kind"] == "TableModel") != has_target:
        raise ValueError("kind and table do not fit each other")


def _device_here(device: Any) -> str:
    """Return the device a model was fitted for, or "auto" where this machine lacks it."""
    if not isinstance(device, str):
        raise TypeError("device is no text")
    try:
        resolve_device(device)
    except InputError:
        return "auto"
    return device
