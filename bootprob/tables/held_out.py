"""Rows with known labels that took no part in training, to measure a fitted model on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bootprob.encoding.columns import column_kind, level_text, name_rows
from bootprob.exceptions import DataError, TargetColumnError
from bootprob.tables.target import Target

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["HeldOut", "known_codes", "text_columns"]


@dataclass(frozen=True)
class HeldOut:
    """Rows set aside, as a model takes them.

    Attributes
    ----------
    X : array_like, shape (m, p)
        Features.
    y : array_like, shape (m,)
        Labels, of the model's classes; of two classes rows of both.
    frame : DataFrame or None
        The table that they are of, with its labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> from bootprob.tables import HeldOut
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
    >>> model = model.fit(X[50::2], y[50::2])
    >>> held_out = HeldOut(X[51::2], y[51::2])  # for `write_report(..., held_out=held_out)`
    >>> int(held_out.positive_rows(model).sum())
    25
    """

    X: Any
    y: Any
    frame: pd.DataFrame | None = None

    @classmethod
    def of_table(cls, model: TableModel, frame: pd.DataFrame) -> HeldOut:
        """Take a table apart for `TableModel.svc_with_class_names`.

        Parameters
        ----------
        model : TableModel
            Fitted.
        frame : DataFrame (m, columns)
            The columns fitted on and the target.

        Raises
        ------
        DataError
            A column is missing, or holds what the model does not know.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.tables import HeldOut, TableModel
        >>> table = load_iris(as_frame=True).frame[50:]
        >>> model = TableModel.fit(table[::2], "target", kernel="linear", n_bootstraps=20)
        >>> len(HeldOut.of_table(model, table[1::2]).y)
        50
        """
        codes = known_codes(model.target, frame)
        X = model.preprocessor.encode(frame, model.encoder).X
        return cls(X, np.array(model.target.labels)[codes], frame)

    def codes(self, model: BootstrapSVC) -> NDArray[np.intp]:
        """Position of each row's class among ``classes_``, shape (m,).

        Parameters
        ----------
        model : BootstrapSVC
            Fitted.

        Raises
        ------
        DataError
            There are labels that the model does not know.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from bootprob.tables import HeldOut
        >>> HeldOut(X[[0, 99]], y[[0, 99]]).codes(model)  # classes 1 and 2, at places 0 and 1
        array([0, 1])
        """
        labels = np.asarray(self.y)
        equal = labels[:, None] == model.classes_ if labels.ndim == 1 else np.zeros((1, 1), bool)
        if not equal.any(axis=1).all():
            shown = ", ".join(_shown(label) for label in model.classes_[:15])
            raise DataError(
                f"The held-out labels must be a vector of {shown}, the classes that the model was "
                "fitted on."
            )
        return equal.argmax(axis=1)

    def positive_rows(self, model: BootstrapSVC) -> NDArray[np.bool_]:
        """Which rows are of the class ``classes_[1]``, shape (m,).

        Parameters
        ----------
        model : BootstrapSVC
            Fitted.

        Raises
        ------
        DataError
            There are labels that the model does not know, or a class has no row.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from bootprob.tables import HeldOut
        >>> HeldOut(X[[0, 99]], y[[0, 99]]).positive_rows(model)
        array([False,  True])
        """
        labels = np.asarray(self.y)
        positive = labels == model.classes_[1]
        unknown = ~positive & (labels != model.classes_[0])
        if labels.ndim != 1 or unknown.any():
            raise DataError(
                f"The held-out labels must be a vector of {_shown(model.classes_[0])} and "
                f"{_shown(model.classes_[1])}, the classes that the model was fitted on."
            )
        for name, rows in zip(model.classes_, (~positive, positive), strict=True):
            if not rows.any():
                raise DataError(
                    f"The held-out rows have none of class {_shown(name)}; both classes are "
                    "needed to measure the model on them."
                )
        return positive


def text_columns(model: TableModel) -> list[str]:
    """Columns to read as text from a CSV file, so that the codes 01 and 1 stay apart."""
    names = model.text_columns
    of_text = all(isinstance(label, str) for label in model.target.labels)
    return [*names, model.target.name] if of_text else names


def known_codes(target: Target, frame: pd.DataFrame) -> NDArray[np.intp]:
    """Which of the target's labels each row of a table has, by those known since the fit.

    Raises
    ------
    DataError
        The table has no such column (a `TargetColumnError` where it is called "class"), labels are
        missing, or a label is new where the model was fitted on two.
    """
    names = [str(name) for name in frame.columns]
    if target.name not in names:
        # "class" is what `TableModel.of` calls the column where nobody has said it.
        raise (TargetColumnError if target.name == "class" else DataError)(
            f"The held-out table has no column {target.name!r}, which the model predicts; its "
            "labels are needed to measure the model on them."
        )
    column = frame.iloc[:, names.index(target.name)]
    missing = np.asarray(pd.isna(column))
    if missing.any():
        raise DataError(
            f"The table lacks the label {target.name!r} in {name_rows(missing)}; "
            "complete or remove such rows."
        )
    numeric = column_kind(column, target.name) != "text"
    texts = np.array([_canonical(value, numeric) for value in column], dtype=object)
    labels = [_canonical(label, not isinstance(label, str)) for label in target.labels]
    # Of more than two values, one was set against the rest, which is called "not" this one.
    if len(labels) == 2 and labels[0] == f"not {labels[1]}":
        return (texts == labels[1]).astype(np.intp)
    if len(labels) == 2 and labels[1] == f"not {labels[0]}":
        return (texts != labels[0]).astype(np.intp)
    equal = texts[:, None] == np.array(labels, dtype=object)
    unknown = ~equal.any(axis=1)
    if unknown.any():
        known = [_shown(label) for label in target.labels]
        raise DataError(
            f"The table has the label {level_text(column[unknown].iloc[0])!r} in "
            f"{name_rows(unknown)}; the model knows {', '.join(known[:-1])} and {known[-1]}."
        )
    return equal.argmax(axis=1)


def _canonical(label: Any, numeric: bool) -> str:
    """Text of a label; yes/no answers are 1 and 0, as a table of numbers may spell them."""
    text = level_text(label)
    spelled = {"true": "1", "false": "0"} if numeric else {}
    return spelled.get(text.casefold(), text)


def _shown(label: Any) -> str:
    return repr(level_text(label))
