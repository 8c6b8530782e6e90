"""What a model of a table stores beside its ensemble: preprocessing and target, checked."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd

from bootprob.encoding.columns import Kind, as_levels, level_text
from bootprob.encoding.dates import DateParts
from bootprob.encoding.preprocessing import TablePreprocessor
from bootprob.ensemble.fitted import as_whole
from bootprob.persistence.state import Ensemble
from bootprob.tables.model import TableModel
from bootprob.tables.target import Target

__all__ = ["model_of", "table_to_dict"]


def table_to_dict(model: Ensemble | TableModel) -> dict[str, Any] | None:
    """Preprocessing and target of a model, as values that JSON can hold; None of one of a matrix.

    An ensemble has no target. Of one of classifiers that was fitted on a matrix with gaps, columns
    are not "named".
    """
    if isinstance(model, TableModel):
        target, ensemble = model.target.to_dict(), model.svc
        found = {"preprocessor": model.preprocessor.to_dict(), "target": target}
    elif model.preprocessor_ is None:
        return None
    else:
        found, ensemble = {"preprocessor": model.preprocessor_.to_dict(), "target": None}, model
    named = ensemble.preprocessor_ is None or hasattr(ensemble, "feature_names_in_")
    return found if named else found | {"named": False}


def model_of(stored: Any, svc: Ensemble) -> Ensemble | TableModel:
    """Make a model of what `table_to_dict` returned and its ensemble, which knows the matrix.

    Raises
    ------
    KeyError, TypeError, ValueError
        `stored` is something else or does not fit the ensemble.
    """
    if stored is None:
        return svc
    if not isinstance(stored, dict) or stored.keys() - {"named"} != {"preprocessor", "target"}:
        raise TypeError("the table has other entries than preprocessor and target")
    _check_columns(stored["preprocessor"], svc.n_features_in_)
    preprocessor = TablePreprocessor.from_dict(stored["preprocessor"])
    of_classifiers = getattr(svc, "estimators_", None) is not None
    if stored["target"] is None or of_classifiers:
        svc.preprocessor_ = preprocessor
        svc.n_features_in_ = preprocessor.n_features_in_
        if stored.get("named") is not False:
            svc.feature_names_in_ = preprocessor.feature_names_in_
        for pair in svc.pair_ensembles_ if of_classifiers else ():
            as_whole(pair, svc)
        _check_given(svc)
    if stored["target"] is None:
        return svc
    target = Target.from_dict(stored["target"])
    texts = {level_text(label) for label in target.labels}
    if len(texts) < len(target.labels) or any(label != label for label in target.labels):
        raise ValueError("the labels of the target are not distinct")
    numbers = svc.classes_.dtype.kind == "i"  # they become positions
    if not numbers or not np.array_equal(svc.classes_, np.arange(len(target.labels))):
        raise ValueError("the target does not fit the ensemble")
    return TableModel(preprocessor, target, svc)


def _check_given(svc: Ensemble) -> None:
    """Check what classifiers were given beside what became of it."""
    columns = getattr(svc, "frame_columns_", None)
    if columns is None:
        return
    names = list(map(str, svc.preprocessor_.feature_names_in_))
    if [str(each["name"]) for each in columns] != names:
        raise ValueError("frame_columns_ are not those of the preprocessing")


def _check_columns(stored: Any, n_features: int) -> None:
    """Check the columns, before scikit-learn is given them: it would be slow to find out."""
    if not isinstance(stored, dict) or not isinstance(stored.get("columns"), list):
        raise TypeError("the stored preprocessing is damaged")
    names, n_found = [], 0
    texts: defaultdict[Kind, list[str]] = defaultdict(list)
    for column in stored["columns"]:
        if not isinstance(column, dict) or not isinstance(column.get("name"), str):
            raise TypeError("a column of the stored preprocessing is damaged")
        names.append(column["name"])
        if column.get("kind") == "number":
            n_found += 1
            continue
        if column.get("kind") == "date":
            n_found += len(DateParts.from_dict(column).names)
            continue
        levels = column.get("levels")
        if not isinstance(levels, list) or not all(isinstance(level, str) for level in levels):
            raise TypeError("a column of the stored preprocessing has no levels")
        n_found += len(levels)
        if len(set(levels)) < len(levels) or not all(levels):
            raise ValueError("levels of the stored preprocessing are not distinct")
        if column.get("kind") not in ("boolean", "text"):
            raise ValueError("a column of the stored preprocessing is of no kind")
        texts[column["kind"]] += levels
    for kind, levels in texts.items():  # of all columns at once, which takes as long as of one
        if as_levels(pd.Series(levels, dtype=object), kind).tolist() != levels:
            raise ValueError("levels of the stored preprocessing are no levels of a column")
    if n_found != n_features or not names:
        raise ValueError("the preprocessing does not fit the ensemble")
    if len(set(names)) < len(names):
        raise ValueError("columns of the stored preprocessing have the same name")
    before = stored.get("feature_names_in")
    if not isinstance(before, list) or not all(isinstance(name, str) for name in before):
        raise TypeError("the names of the stored preprocessing are no texts")
    if not set(names) <= set(before):
        raise ValueError("the columns of the stored preprocessing are not among its names")
    notes, dropped = stored.get("notes"), stored.get("dropped")
    if not isinstance(notes, list) or not isinstance(dropped, dict):
        raise TypeError("the notes of the stored preprocessing are damaged")
    if not all(isinstance(text, str) for text in (*notes, *dropped.values())):
        raise TypeError("the notes of the stored preprocessing are no texts")
