"""What a fitted model answers with: of two classes its machines, of several all its pairs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any
from weakref import WeakKeyDictionary

from bootprob.ensemble.several_classes import SeveralClasses
from bootprob.ensemble.specs import NO_CONTROL, PredictionSpec
from bootprob.ensemble.state import TwoClassState, state_of, two_class_state
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.ensemble.uncertainty.probability_intervals import METHODS
from bootprob.exceptions import FewRowsWarning, LackOfFitWarning
from bootprob.metrics.lack_of_fit_reasons import few_rows, reason_of

__all__ = [
    "as_fitted",
    "as_whole",
    "column_names",
    "doubt_of",
    "ensemble_of",
    "of_matrix",
    "two_classes_of",
    "warn_of_doubts",
    "with_column_names",
    "without_frame",
]

_KEPT: WeakKeyDictionary[Any, TwoClasses] = WeakKeyDictionary()


def ensemble_of(model: Any) -> TwoClasses | SeveralClasses:
    """What answers for a `BootstrapSVC`, by its state and its parameters as they are now.

    Pairs of several classes follow the parameters of the whole model.
    """
    if known := _kept(model):
        return known
    state = state_of(model)
    if isinstance(state, TwoClassState):
        return _keep(model, state)
    # Control is of the classes, and none of a pair's.
    parameters = model.get_params(deep=False) | {"verbose": 0} | NO_CONTROL
    pairs = [pair.set_params(**parameters) for pair in state.pair_ensembles_]
    of_pairs = [two_classes_of(pair, "pairs") for pair in pairs]
    return SeveralClasses(state.classes_, of_pairs, model.coupling, state.class_offsets_)


def two_classes_of(model: Any, what: str) -> TwoClasses:
    """The same of what is of two classes alone; a DataError says so of several.

    Parameters
    ----------
    model : BootstrapSVC
    what : str
        What is asked for, in the plural.
    """
    return _kept(model) or _keep(model, two_class_state(model, what))


def _kept(model: Any) -> TwoClasses | None:
    """The same object for a model as long as nothing in it is replaced: averages are made once.

    Numbers that are written into a fitted array are not seen; whoever edits a model replaces it.
    """
    known = _KEPT.get(model) if hasattr(model, "pair_ensembles_") else None
    if known is None or not known.state.is_of(vars(model)):
        return None
    return known if known.spec == PredictionSpec.of(vars(model)) else None


def _keep(model: Any, state: TwoClassState) -> TwoClasses:
    found = _KEPT[model] = TwoClasses(state, PredictionSpec.of(vars(model)))
    return found


def column_names(model: Any) -> Sequence[str] | None:
    """What the columns that machines see are called; None where they have no names."""
    if model.preprocessor_ is not None:
        return list(model.preprocessor_.get_feature_names_out())
    return getattr(model, "feature_names_in_", getattr(model, "_column_names", None))


def with_column_names(model: Any, names: Iterable[str]) -> Any:
    """A shallow copy, of a model that is given rows without names, for messages that name columns.

    Neither files nor another fit know of them.

    Parameters
    ----------
    model : BootstrapSVC or BootstrapClassifier
    names : iterable of str
        Of the columns of the matrix, as `TablePreprocessor.get_feature_names_out` says.
    """
    told = copy(model)
    # Of feature_names_in_ scikit-learn would warn: rows have no names.
    told._column_names = list(names)
    return told


def of_matrix(model: Any) -> Any:
    """A shallow copy that is given rows of the matrix where the model is given data frames.

    Classifiers of others have seen the data frame, and are given nothing else: they stay.
    """
    return model if getattr(model, "estimators_", None) is not None else without_frame(model)


def as_fitted(model: Any) -> Any:
    """A model as it was before it was recalibrated, as its out-of-bag numbers are of; a copy."""
    if getattr(model, "recalibration_", None) is None:
        return model
    before = copy(model)
    before.recalibration_ = None
    return before


def without_frame(model: Any) -> Any:
    """A shallow copy that knows the matrix alone."""
    if model.preprocessor_ is None:
        return model
    bare = copy(model)
    bare.preprocessor_, bare.n_features_in_ = None, len(model.center_)
    vars(bare).pop("feature_names_in_", None)  # those of the data frame
    return bare


def as_whole(pair: Any, model: Any) -> None:
    """Let a pair of classes be given what the whole model is given."""
    pair.preprocessor_, pair.n_features_in_ = model.preprocessor_, model.n_features_in_
    if hasattr(model, "feature_names_in_"):
        pair.feature_names_in_ = model.feature_names_in_


def warn_of_doubts(model: Any, method: str, names: Iterable[str] | None = None) -> None:
    """Warn if a method's intervals are to be doubted; parameters as of `doubt_of`."""
    if doubt := doubt_of(model, method, names):
        warnings.warn(doubt, stacklevel=3)


def doubt_of(
    model: Any, method: str, names: Iterable[str] | None = None
) -> LackOfFitWarning | FewRowsWarning | None:
    """Why a method's intervals may be too narrow, by what a `BootstrapSVC` found out of bag.

    `names` are of the columns of the matrix, of a model that does not know them itself.
    """
    if method not in METHODS or not METHODS[method].of_confidence:
        return None
    found = model.lack_of_fit_
    if reason := reason_of(found, column_names(model) if names is None else list(names)):
        return LackOfFitWarning(
            "Intervals cover the truth less often than they say (lack of fit, "
            f"p = {found['p_value']:.4f}): {reason.what}. {reason.advice}"
        )
    few = few_rows(found)
    return FewRowsWarning(f"Few rows: {few}.") if few else None
