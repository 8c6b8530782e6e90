"""Save a fitted model in one file and load it, without pickle.

The file is a safetensors file: the arrays as they lie in memory and, in its header under the name
``bootprob``, everything else as JSON. Loading reads numbers and text and executes nothing, so a
model from a stranger can be opened safely. Protocol 1:

===========  =====================================================================================
entry        what it holds
===========  =====================================================================================
``protocol`` 1
``bootprob`` version of bootprob that wrote the file
``content``  ``kind`` (``"BootstrapSVC"`` or ``"TableModel"``), ``params``, ``values`` (fitted
             attributes that are no arrays, among them the versions used for fitting, and of
             several classes those of each pair under ``pair_ensembles_``),
             ``text_arrays``, ``shapes`` (dtype and shape of every tensor) and ``table``
             (preprocessing and target, or null)
``sha256``   checksum of ``content`` (keys sorted) and of all tensors in the order of their names
===========  =====================================================================================
"""

from __future__ import annotations

import hashlib
import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes
from sklearn.utils.validation import check_is_fitted

from bootprob.estimator import BootstrapSVC
from bootprob.exceptions import ModelFileError
from bootprob.files import replace_when_complete
from bootprob.fitted_state import join_state, split_state
from bootprob.preprocessing import TablePreprocessor
from bootprob.stored_values import decode, encode
from bootprob.tables import TableModel
from bootprob.target import Target
from bootprob_gpu import InputError, resolve_device

__all__ = ["PROTOCOL", "load", "save"]

PROTOCOL = 1
"""Number of the file layout that `save` writes and `load` reads."""

_ENTRY = "bootprob"
_ENTRIES = {"kind", "params", "values", "text_arrays", "shapes", "table"}
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
    TypeError
        The model is of another type or a parameter cannot be stored.
    OSError
        The disk is full or the folder cannot be written.
    """
    if not isinstance(model, (BootstrapSVC, TableModel)):
        raise TypeError(f"A BootstrapSVC or TableModel can be saved, not {type(model).__name__}.")
    svc = model.svc if isinstance(model, TableModel) else model
    table = None
    if isinstance(model, TableModel):
        table = {"preprocessor": model.preprocessor.to_dict(), "target": model.target.to_dict()}
    check_is_fitted(svc)
    params = svc.get_params(deep=False)
    if isinstance(params["random_state"], (np.random.RandomState, np.random.Generator)):
        params["random_state"] = None
    arrays, values = split_state(svc)
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
        "shapes": _shapes(numeric),
        "table": table,
    }
    header = {
        "protocol": PROTOCOL,
        "bootprob": version("bootprob"),
        "content": content,
        "sha256": _checksum(content, numeric),
    }
    data = to_bytes(numeric, metadata={_ENTRY: json.dumps(header, allow_nan=False)})
    with replace_when_complete(path) as file:
        file.write(data)


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
        The file is missing, damaged, no bootprob model or of another protocol.
    """
    content, arrays = _read(path)
    try:
        params = decode(content["params"])
        params["device"] = _device_here(params["device"])
        texts, values = decode(content["text_arrays"]), decode(content["values"])
        svc = join_state(params, arrays | texts, values)
        if content["kind"] == "BootstrapSVC":
            return svc
        table = content["table"]
        preprocessor = TablePreprocessor.from_dict(table["preprocessor"])
        if len(preprocessor.get_feature_names_out()) != svc.n_features_in_:
            raise ValueError("the preprocessing does not fit the ensemble")
        return TableModel(preprocessor, Target.from_dict(table["target"]), svc)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged: {_first_line(error)}.") from error


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read and check everything that can be checked without knowing the model."""
    if not Path(path).exists():
        raise ModelFileError(f"There is no file {path}.")
    if not Path(path).is_file():
        raise ModelFileError(f"{path} is not a file.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if _ENTRY not in metadata:
                raise ModelFileError(f"{path} is no bootprob model.")
            header = json.loads(metadata[_ENTRY])
            _check_protocol(path, header)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        content = header["content"]
        intact = header["sha256"] == _checksum(content, arrays)
    except PermissionError:
        raise ModelFileError(f"{path} cannot be read: permission denied.") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {_first_line(error)}.") from error
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is no bootprob model or is damaged.") from error
    if not intact:
        raise ModelFileError(f"{path} is damaged: its contents do not match its checksum.")
    if not isinstance(content, dict) or content.keys() != _ENTRIES:
        raise ModelFileError(f"{path} is damaged: entries are missing or unknown.")
    for name in ("params", "values", "text_arrays"):
        if not isinstance(content[name], dict):
            raise ModelFileError(f"{path} is damaged: {name} are no entries.")
    if content["kind"] not in _KINDS:
        raise ModelFileError(f"{path} holds a {content['kind']!r}, which is none of {_KINDS}.")
    if content["shapes"] != _shapes(arrays):
        raise ModelFileError(f"{path} is damaged: arrays are missing or have another shape.")
    return content, arrays


def _device_here(device: str) -> str:
    """Return the device a model was fitted for, or "auto" where this machine lacks it."""
    try:
        resolve_device(device)
    except InputError:
        return "auto"
    return device


def _check_protocol(path: str | os.PathLike[str], header: dict[str, Any]) -> None:
    if header["protocol"] != PROTOCOL:
        raise ModelFileError(
            f"{path} was written by bootprob {header['bootprob']} with protocol "
            f"{header['protocol']}; this is {version('bootprob')}, which reads protocol "
            f"{PROTOCOL}. Use that version or fit the model again."
        )


def _shapes(arrays: dict[str, np.ndarray]) -> dict[str, list[Any]]:
    return {name: [array.dtype.name, *array.shape] for name, array in sorted(arrays.items())}


def _checksum(content: Any, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def _first_line(error: Exception) -> str:
    text = f"no entry {error}" if isinstance(error, KeyError) else str(error)
    return (text.strip().splitlines() or [type(error).__name__])[0].rstrip(".")
