"""Classifiers of others as bytes, by skops, which makes no object of a type that is not trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from bootprob.encoding.given_columns import GivenColumns
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.exceptions import DataError, ModelFileError
from bootprob.persistence.values import decode, encode
from bootprob.runtime.skops_io import as_bytes, skops_io

if TYPE_CHECKING:
    from bootprob.ensemble.classifier import BootstrapClassifier

__all__ = ["PARAMETERS", "check_classifiers", "checked_names", "classifiers_of", "to_bytes"]

PARAMETERS = ("estimator", "param_grid")
"""Parameters that are classifiers, or may hold some."""

_FITTED = ("candidates_", "estimators_")
_MACHINES = "BootstrapSVC"
_SHOWN = 50  # types in a message
_LONGEST = 200  # characters of one


def to_bytes(model: BootstrapClassifier) -> NDArray[np.uint8]:
    """What a model has of classifiers: of its parameters, and fitted.

    Raises
    ------
    ModelFileError
        skops is not installed, or cannot store one of them.
    """
    found = {name: getattr(model, name) for name in (*PARAMETERS, *_FITTED)}
    for name in ("estimator", "candidates_"):
        if isinstance(found[name], list):
            found[name] = [_stored(each) for each in found[name]]
    return np.frombuffer(as_bytes(found), dtype=np.uint8)


def checked_names(trusted: Sequence[str]) -> tuple[str, ...]:
    """The types that a caller trusts; a DataError if it is no list of names."""
    if isinstance(trusted, (str, bool)) or not all(isinstance(name, str) for name in trusted):
        raise DataError(
            f"trusted is {trusted!r}; give a list of names, such as ['sklearn.tree._tree.Tree']."
        )
    return tuple(trusted)


def classifiers_of(
    data: NDArray[np.uint8], trusted: Sequence[str], path: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters, and what was fitted, of what `to_bytes` made.

    Parameters
    ----------
    data : ndarray of uint8
    trusted : sequence of str
        Types that may be made, beside those that skops trusts.
    path : path-like
        For messages.

    Raises
    ------
    ModelFileError
        Types are not trusted; or the bytes are damaged, or skops or a package is missing.
    """
    io, content = skops_io(), data.tobytes()
    try:
        wanted = [name for name in io.get_untrusted_types(data=content) if name not in trusted]
        if not wanted:
            found = io.loads(content, trusted=list(trusted))
            if found.keys() != {*PARAMETERS, *_FITTED}:
                raise ValueError("entries are missing or unknown")
            for name in ("estimator", "candidates_"):
                if isinstance(found[name], list):
                    found[name] = [_restored(each) for each in found[name]]
    except ImportError as error:
        raise ModelFileError(
            f"The classifiers in {path} need a package that is not there: {_shown(error)}."
        ) from error
    except Exception as error:  # whatever bytes of a stranger lead to
        what = _shown(error) or type(error).__name__
        raise ModelFileError(f"The classifiers in {path} are damaged: {what}.") from error
    if wanted:
        raise ModelFileError(_refusal(wanted, path))
    return {name: found[name] for name in PARAMETERS}, {name: found[name] for name in _FITTED}


def check_classifiers(model: BootstrapClassifier) -> None:
    """Check that classifiers, and machines beside them, are as many as the state is of, and alike.

    What they say of rows is theirs, and looked at when they say it.

    Raises
    ------
    TypeError, ValueError
        They are not.
    """
    two = model.pair_ensembles_[0] if model.pair_ensembles_ else model
    (B, R), machines, shared = two.accuracy_.shape, model.machines_, model.shared_draws_
    codes = model.y_ if shared is None else shared["classes"]
    if not isinstance(model.candidates_, list) or len(model.candidates_) != R:
        raise ValueError(f"candidates_ are not {R}")
    known = model.estimators_
    if not isinstance(known, list) or len(known) not in {B, 1}:
        raise ValueError(f"estimators_ are not of {B} bootstrap samples")
    if not all(isinstance(each, list) and len(each) == R - len(machines) > 0 for each in known):
        raise ValueError(f"estimators_ are not {R - len(machines)} of each bootstrap sample")
    every = [each for replicate in known for each in replicate]
    K = int(codes.max()) + 1
    for each in every:
        if not any(hasattr(each, name) for name in ("predict_proba", "decision_function")):
            raise TypeError(f"estimators_ have a {type(each).__name__}")
        if len(getattr(each, "classes_", range(K))) != K:
            raise ValueError(f"estimators_ are not of {K} classes")
    if model.drawn_counts_ is not None:
        if model.drawn_counts_.shape[1] != len(codes):
            raise ValueError("drawn_counts_ are not of the training rows")
        trees = all(isinstance(each, DecisionTreeClassifier) for each in every)
        if not trees or len(every) != B or R != 1:
            raise TypeError("drawn_counts_ are of trees, and estimators_ are none")
    if model.frame_columns_ is not None:
        GivenColumns.checked(model.frame_columns_)
    for svc in machines:
        of_pair = svc.pair_ensembles_[0] if svc.pair_ensembles_ else svc
        same = len(of_pair.score_scale_) == B and len(svc.center_) == len(model.center_)
        alike = shared is not None or np.array_equal(svc.classes_, model.classes_)
        if not same or not alike or len(svc.classes_) != K:
            raise ValueError("machines_ are of other bootstrap samples, columns or classes")


def _stored(classifier: Any) -> Any:
    """A `BootstrapSVC` as its parameters, which are checked when it is made again."""
    if not isinstance(classifier, BootstrapSVC):
        return classifier
    params = classifier.get_params(deep=False)
    if isinstance(params["random_state"], (np.random.RandomState, np.random.Generator)):
        params["random_state"] = None
    return {_MACHINES: encode(params)}


def _restored(stored: Any) -> Any:
    if not isinstance(stored, Mapping):
        return stored
    if stored.keys() != {_MACHINES}:
        raise ValueError("a classifier is none")
    svc = clone(BootstrapSVC(**decode(stored[_MACHINES])))
    svc._validate_params()
    return svc


def _refusal(wanted: Sequence[str], path: Any) -> str:
    names = [_printable(name) for name in wanted[:_SHOWN]]
    more = f" and {len(wanted) - _SHOWN} more" if len(wanted) > _SHOWN else ""
    options = " ".join(f"--trust {name}" for name in names)
    return (
        f"{path} holds classifiers of types that skops does not trust by itself: "
        f"{', '.join(names)}{more}. A file of a stranger may do harm through them; if you know "
        f"where it is from, load(path, trusted={names}), or on the command line {options}."
    )


def _shown(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return _printable(lines[0]).rstrip(".") if lines else ""


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "�" for each in text[:_LONGEST])
