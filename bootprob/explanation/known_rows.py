"""Rows of known class that columns are permuted of: those of `fit`, or held-out ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bootprob.encoding.frames import as_frame
from bootprob.ensemble.left_out_classes import LeftOutClasses, usable_rows
from bootprob.ensemble.left_out_rows import LeftOutRows
from bootprob.ensemble.several_classes import SeveralClasses
from bootprob.exceptions import DataError
from bootprob.explanation.answers import Explained
from bootprob.explanation.permuted_rows import HeldOutRows, Permuted, permutations
from bootprob.runtime.arrays import Bools, Floats, Indices
from bootprob.runtime.counted import counted
from bootprob.runtime.groups import Groups, checked_groups
from bootprob.tables.held_out import known_codes
from bootprob.tables.model import TableModel

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC

__all__ = ["LEAST_ROWS", "held_out_rows", "training_rows"]

LEAST_ROWS = 10
_SAME = 1e-3  # scores of training rows and those of the fit; float32 makes some 1e-5 of them


def training_rows(
    model: BootstrapSVC | TableModel,
    explained: Explained,
    X: Any,
    y: ArrayLike | None,
    max_rows: int | None,
    n_repeats: int,
    generator: np.random.Generator,
) -> Permuted:
    """The rows of `fit`, out of bag; parameters as of `permutation_importance`.

    Raises
    ------
    DataError
        There are none, or others are given: what the replicates say of them shows it.
    """
    ensemble, state = explained.ensemble, explained.state
    rows = explained.kept_rows() if X is None else explained.matrix(X)
    if rows is None:
        raise DataError(
            "The model does not keep its training rows; give those of fit, in their order "
            "(--importance training: the table fitted on), or held-out rows (held_out=True, or "
            "--importance held-out)."
        )
    if len(rows) != len(state.y_):
        raise DataError(
            f"{counted(len(rows), 'row is', 'rows are')} given, and the model was fitted to "
            f"{len(state.y_):,}; give these, in their order, or say that the rows took no part in "
            "training (held_out=True, or --importance held-out)."
        )
    if y is not None and not np.array_equal(_codes(model, y), state.y_):
        raise DataError("y holds other classes than fit was given; leave it out.")
    asked: LeftOutRows | LeftOutClasses
    if isinstance(ensemble, SeveralClasses):
        usable = usable_rows(ensemble, state)
        which = _drawn(explained, usable, state.y_, max_rows, generator)
        asked = LeftOutClasses(ensemble, state, which, rows[which], explained.taken)
    else:
        usable, logits = ensemble.state.calibration_rows()[0], ensemble.state.oob_kernel_logits_
        if logits is not None:
            usable = usable & np.isfinite(logits).all(axis=(1, 2))
        which = _drawn(explained, usable, state.y_, max_rows, generator)
        asked = LeftOutRows(ensemble, which, rows[which], explained.taken)
    if any((np.abs(x - y) > _SAME * (1 + np.abs(x))).any() for x, y in asked.compared()):
        raise DataError(
            "These are not the rows of fit, or in another order: the replicates that left each "
            "out say otherwise. Give these, or say that the rows took no part in training "
            "(held_out=True, or --importance held-out)."
        )
    weight, groups = state.sample_weight_[which], state.groups_
    of_rows = None if groups is None else groups[which]
    positive = _judged_as(explained, state.y_[which])
    return _permuted(asked, rows[which], positive, weight, of_rows, n_repeats, generator)


def held_out_rows(
    model: BootstrapSVC | TableModel,
    explained: Explained,
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
    max_rows: int | None,
    n_repeats: int,
    generator: np.random.Generator,
) -> Permuted:
    """Rows that took no part in training; parameters as of `permutation_importance`.

    Raises
    ------
    DataError
        Rows, classes, weights or groups are missing, or of another number.
    """
    if X is None:
        raise DataError("held_out=True is of rows that are given; give X.")
    rows = explained.matrix(X)
    if y is not None:
        labels = _codes(model, y)
    elif isinstance(model, TableModel):
        frame = as_frame(X)
        assert frame is not None
        labels = known_codes(model.target, frame)
    else:
        raise DataError("The classes of held-out rows are not known; give y.")
    weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, float)
    if labels.shape != (len(rows),) or weight.shape != (len(rows),):
        raise DataError(
            f"X has {counted(len(rows), 'row')}, y the shape {labels.shape} and sample_weight "
            f"{weight.shape}; give one class and one weight a row."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise DataError("sample_weight must hold finite numbers, 0 or more.")
    numbers = checked_groups(groups, len(rows))
    which = _drawn(explained, weight > 0, labels, max_rows, generator)
    several = isinstance(explained.ensemble, SeveralClasses)
    asked = HeldOutRows(explained, rows[which], labels[which] if several else None)
    of_rows = None if numbers is None else numbers[which]
    positive = _judged_as(explained, labels[which])
    return _permuted(asked, rows[which], positive, weight[which], of_rows, n_repeats, generator)


def _codes(model: BootstrapSVC | TableModel, y: ArrayLike) -> Indices:
    """Place of each row's class among the model's, of classes as they were given to `fit`."""
    if isinstance(model, TableModel):
        name = model.target.name
        return known_codes(model.target, pd.DataFrame({name: np.asarray(y)}))
    labels = np.asarray(y)
    known = labels[..., None] == model.classes_
    if labels.ndim == 0 or not known.any(axis=-1).all():
        more = " …" if len(model.classes_) > 15 else ""
        shown = ", ".join(map(str, model.classes_[:15])) + more
        raise DataError(f"y holds other classes than those of the model, {shown}.")
    return known.argmax(axis=-1)


def _judged_as(explained: Explained, codes: Indices) -> Bools:
    """Whether rows are positive; of several classes all are, as their own class is looked at."""
    several = isinstance(explained.ensemble, SeveralClasses)
    return np.ones(len(codes), dtype=bool) if several else codes == 1


def _drawn(
    explained: Explained,
    is_usable: Bools,
    codes: Indices,
    max_rows: int | None,
    generator: np.random.Generator,
) -> Indices:
    """Those of the usable rows that are looked at."""
    usable = np.flatnonzero(is_usable)
    if max_rows is not None and len(usable) > max_rows:
        usable = np.sort(generator.choice(usable, max_rows, replace=False))
    sizes = np.bincount(codes[usable], minlength=len(explained.svc.classes_))
    if len(usable) < LEAST_ROWS or np.count_nonzero(sizes) < 2:
        shown, wanted = f"{sizes[1]} of them positive", "of both classes"
        if len(sizes) > 2:
            shown, wanted = f"of each class {sizes.tolist()}", "of two classes or more"
        raise DataError(
            f"{counted(len(usable), 'row')} can be asked, {shown}; {LEAST_ROWS} rows {wanted} are "
            "needed."
        )
    return usable


def _permuted(
    asked: LeftOutRows | LeftOutClasses | HeldOutRows,
    rows: Floats,
    positive: Bools,
    weight: Floats,
    groups: Groups | None,
    n_repeats: int,
    generator: np.random.Generator,
) -> Permuted:
    if groups is not None:
        groups = np.unique(groups, return_inverse=True)[1]
        if groups.max() == 0:
            raise DataError("All rows that can be asked are of one group; give rows of several.")
    donors = permutations(len(rows), n_repeats, generator)
    return Permuted(asked, rows, positive, weight / weight.mean(), groups, donors)
