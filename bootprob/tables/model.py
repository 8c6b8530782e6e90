"""A model of a table: preprocessing, the classes and a fitted `BootstrapSVC`, kept together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import pandas as pd
from sklearn.base import clone

from bootprob.costs.matrix import CostMatrix
from bootprob.encoding.columns import as_numbers, level_text, name_rows
from bootprob.encoding.frames import as_frame
from bootprob.encoding.preprocessing import TablePreprocessor
from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.runtime.progress import progress_bar
from bootprob.tables.mistake_costs import ASKING_COLUMNS, MistakeCosts, asking_columns
from bootprob.tables.plain_numbers import names_of_numbers
from bootprob.tables.roles import ColumnRoles
from bootprob.tables.target import Label, Target

if TYPE_CHECKING:
    from bootprob.encoding.encoder import TableEncoder
    from bootprob.ensemble.classifier import BootstrapClassifier
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.ensemble.scoring.frame_encoder import FrameEncoder

__all__ = ["TableModel"]

_ROWS_AT_ONCE = 10_000  # rows predicted between two steps of the progress bar


@final
@dataclass(frozen=True)
class TableModel:
    """A fitted classifier that takes tables as they come from a file.

    Made by `TableModel.fit`; `bootprob.persistence.save_load` saves and loads it.

    Attributes
    ----------
    preprocessor : TablePreprocessor
        Fitted; turns a table into a matrix.
    target : Target
        The column predicted and the names of its classes.
    svc : BootstrapSVC or BootstrapClassifier
        Fitted on 0 for the negative and 1 for the positive class, or on the positions of several.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> table = load_iris(as_frame=True).frame
    >>> model = TableModel.fit(table, "target", kernel="linear", n_bootstraps=20, random_state=0)
    >>> print(model.target)
    target: positive = not 0 (100 rows), negative = 0 (50 rows)
    >>> model.predict(table.iloc[[0, 60]])["label"].tolist()
    ['0', 'not 0']
    """

    preprocessor: TablePreprocessor
    target: Target
    svc: Any

    @classmethod
    def fit(
        cls,
        frame: pd.DataFrame,
        target: str,
        positive: Label | None = None,
        *,
        all_classes: bool = False,
        roles: ColumnRoles | None = None,
        estimator: BootstrapSVC | None = None,
        **svc_params: Any,
    ) -> Self:
        """Fit the preprocessing and the ensemble on a table.

        Parameters
        ----------
        frame : DataFrame (n, columns)
            The features and the target; of pandas, or what offers Arrow's stream.
        target : str
            The column to predict.
        positive : bool, int, float or str, optional
            The value of the positive class; see `bootprob.tables.target.Target.from_table`.
        all_classes : bool, default False
            Whether a target of more than two values has as many classes; otherwise there are two.
        roles : ColumnRoles, optional
            Columns that are no features (groups, time, weights, what is to be left out), or dates.
        estimator : BootstrapSVC, optional
            A configured ensemble to fit a clone of; by default ``BootstrapSVC()``.
        **svc_params
            Parameters of `BootstrapSVC` that differ from `estimator`'s.

        Returns
        -------
        TableModel

        Raises
        ------
        DataError
            The table cannot be used; the message says why.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.tables import TableModel
        >>> table = load_iris(as_frame=True).frame[50:]
        >>> model = TableModel.fit(table, "target", kernel="linear", n_bootstraps=20)
        >>> model.target.labels
        (1, 2)
        """
        from bootprob.ensemble.estimator import BootstrapSVC
        from bootprob.ensemble.fitted import of_matrix

        known = as_frame(frame)
        if known is None:
            raise DataError(f"The table is of the type {type(frame).__name__}; give a data frame.")
        frame = known
        classes, y = Target.from_table(frame, target, positive, all_classes=all_classes)
        roles = roles or ColumnRoles()
        features, of_rows = roles.features(frame, classes.name), roles.of_rows(frame)
        svc = BootstrapSVC() if estimator is None else clone(estimator)
        preprocessor = TablePreprocessor(dates=roles.dates)
        given = (of_rows.get(name) for name in ("sample_weight", "groups", "time"))
        svc.set_params(**svc_params)
        if len(classes.labels) > 2 and isinstance(svc.rates, Mapping):
            svc.set_params(rates=classes.by_position(svc.rates))
        svc._fit(features, y, *given, preprocessor, classes.labels)
        preprocessor.dropped_ |= roles.reasons  # for reports: the preprocessor never saw them
        return cls(preprocessor, classes, of_matrix(svc))

    @classmethod
    def of(
        cls,
        svc: BootstrapSVC | BootstrapClassifier,
        columns: Sequence[str] | None = None,
        target: str = "class",
    ) -> Self | None:
        """The same of an ensemble that was fitted in Python.

        Parameters
        ----------
        svc : BootstrapSVC or BootstrapClassifier
            Fitted; it shares its arrays with the model.
        columns : sequence of str, optional
            Of the table that one of plain numbers is to be asked about, in their order
            (`bootprob.tables.plain_numbers.names_of_numbers` says which they become). Such a model
            cannot be saved: save the ensemble.
        target : str, default "class"
            What the column of the classes is called.

        Returns
        -------
        TableModel or None
            None of an ensemble of plain numbers where no `columns` are given.

        Raises
        ------
        DataError
            Classes are no text, numbers or true and false; classifiers were given columns that
            files cannot have; or `columns` are not those of plain numbers.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> from bootprob.tables import TableModel
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> sizes = X.assign(long=X["sepal length (cm)"].gt(6).map({True: "yes", False: "no"}))
        >>> svc = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
        >>> TableModel.of(svc.fit(sizes[50:], y[50:])).target.labels  # takes files now
        (1, 2)
        """
        from bootprob.ensemble.fitted import of_matrix

        preprocessor = svc.preprocessor_
        if preprocessor is None:
            if columns is None:
                return None
            names = names_of_numbers(svc, [name for name in columns if name != target])
            preprocessor = TablePreprocessor.of_numbers(names)
        labels, counts = svc.classes_.tolist(), np.bincount(svc.y_).tolist()
        if not all(isinstance(label, Label) for label in labels):
            raise DataError(
                "Classes of a model of a table are text, numbers or true and false, not "
                f"{type(labels[0]).__name__}."
            )
        numbered = copy(of_matrix(svc))
        numbered.classes_ = np.arange(len(labels))
        if svc.preprocessor_ is None:
            vars(numbered).pop("feature_names_in_", None)  # it is given rows without names
        model = cls(preprocessor, Target(target, tuple(labels), tuple(counts)), numbered)
        model.encoder  # noqa: B018 - its error, before there are rows
        return model

    @cached_property
    def encoder(self) -> TableEncoder | FrameEncoder:
        """What makes rows of the columns of a file or a request, for machines or classifiers."""
        from bootprob.ensemble.scoring.frame_encoder import encoder_of

        of_machines = getattr(self.svc, "estimators_", None) is None
        learnt = self.preprocessor.encoder_
        encoder = learnt if of_machines else encoder_of(self.svc, self.preprocessor)
        return encoder.standardizing(self.svc.center_, self.svc.scale_)

    @property
    def text_columns(self) -> list[str]:
        """Columns to be read from files as text: 01 and 1 are two levels."""
        return [name for name, kind in self.encoder.kinds.items() if kind in ("text", "date")]

    def predict(
        self,
        frame: pd.DataFrame,
        level: float = 0.95,
        *,
        sets: float | None = None,
        costs: MistakeCosts | None = None,
        unknown: dict[str, dict[str, int]] | None = None,
        progress: bool = False,
    ) -> pd.DataFrame:
        """Probabilities of every row, with intervals.

        Parameters
        ----------
        frame : DataFrame (m, columns)
            The columns fitted on, in any order; others, the target included, are ignored.
        level : float
            Nominal level of the intervals, between 0 and 1.
        sets : float, optional
            Nominal confidence of sets of classes that cannot be excluded, between 0 and 1; see
            `BootstrapSVC.prediction_sets`.
        costs : MistakeCosts, optional
            Of two classes: what mistakes cost, for decisions of least expected cost. Columns of
            costs are found in `frame`.
        unknown : dict, optional
            Is told what `TablePreprocessor.unknown_levels` tells.
        progress : bool
            Show a progress bar.

        Returns
        -------
        DataFrame (m, 8)
            ``probability``, ``probability_lower``, ``probability_upper``, ``label``,
            ``threshold``, ``score``, ``score_lower`` and ``score_upper``, with the index of
            `frame`, of the positive class, which is the label where the probability is above the
            threshold; positive scores speak for it. Of several classes ``p_X``, ``low_X`` and
            ``high_X`` for each class X, and ``label``.

            Where `costs` say what asking a person costs also ``ask``, whether to do so; ``cost``,
            what that decision is expected to cost, with ``cost_lower`` and ``cost_upper``; and
            ``stable``, whether the whole interval leads to it (`bootprob.costs.Decisions`).

            Of a model that leaves rows undecided for its rates also ``undecided``.

            With `sets` also ``set``: the classes of the set, joined by `` | ``, and empty where the
            row is like those of no class.

        Raises
        ------
        DataError
            Columns are missing or hold values that cannot be used, a level is no level, or costs
            do not fit the model.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.tables import TableModel
        >>> table = load_iris(as_frame=True).frame[50:]
        >>> model = TableModel.fit(table, "target", kernel="linear", n_bootstraps=20)
        >>> model.predict(table[:2]).columns.tolist()[:4]
        ['probability', 'probability_lower', 'probability_upper', 'label']
        """
        from bootprob.ensemble.fitted import ensemble_of, warn_of_doubts
        from bootprob.ensemble.two_classes import TwoClasses

        level = check_level(level)
        if costs is not None:
            if not isinstance(costs, MistakeCosts):
                raise DataError(f"costs is {costs!r}; give MistakeCosts, or None.")
            costs.check_model(self.svc)
        if sets is not None:
            sets = check_level(sets)
        encoded = self.preprocessor.encode(frame, self.encoder)
        X = encoded.X
        if unknown is not None:
            unknown |= encoded.unknown
        of_rows = None if costs is None else _costs_of_rows(costs, frame)
        ensemble = ensemble_of(self.svc)
        method = ensemble.checked_method(None)
        warn_of_doubts(self.svc, method, self.preprocessor.get_feature_names_out())
        parts = []
        with progress_bar("Predicting rows", len(X), shown=progress) as advance:
            for start in range(0, len(X), _ROWS_AT_ONCE):
                rows = slice(start, start + _ROWS_AT_ONCE)
                found = ensemble.summarize(X[rows], level, method, score_interval=True)
                if of_rows is not None:
                    both = found["probability"], found["probability_interval"]
                    decided = of_rows.take(rows).decide(*both)
                    found["threshold"] = decided.threshold
                    found |= {} if decided.ask is None else asking_columns(decided)
                elif isinstance(ensemble, TwoClasses):
                    found["threshold"] = np.full(len(X[rows]), ensemble.decision_threshold)
                if sets is not None:
                    found["set"] = self.svc.prediction_sets(X[rows], sets)
                parts.append(self._as_frame(found))
                advance(len(parts[-1]))
        return pd.concat(parts, ignore_index=True).set_axis(frame.index, axis=0)

    def svc_with_class_names(self) -> BootstrapSVC:
        """A shallow copy of the ensemble that calls its classes by the target's names.

        The ensemble itself knows 0 and 1, because scikit-learn sorts classes and the positive
        one need not come last.

        Returns
        -------
        BootstrapSVC
            For people to read, in reports; it shares its arrays with `svc`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob.tables import TableModel
        >>> table = load_iris(as_frame=True).frame[50:]
        >>> model = TableModel.fit(table[::2], "target", kernel="linear", n_bootstraps=20)
        >>> model.svc_with_class_names().classes_
        array([1, 2])
        """
        from bootprob.ensemble.fitted import with_column_names

        named = with_column_names(self.svc, self.preprocessor.get_feature_names_out())
        named.classes_ = np.array(self.target.labels)
        return named

    def _as_frame(self, found: dict[str, np.ndarray]) -> pd.DataFrame:
        """What `BootstrapSVC.summarize` found, and sets and thresholds, under names."""
        names = np.array(self.target.labels)
        texts = [level_text(name) for name in self.target.labels]
        columns: dict[str, Any]
        if len(names) > 2:
            columns = {}
            for k, text in enumerate(texts):
                columns[f"p_{text}"] = found["probability"][:, k]
                columns[f"low_{text}"] = found["probability_interval"][:, k, 0]
                columns[f"high_{text}"] = found["probability_interval"][:, k, 1]
            columns["label"] = names[found["label"]]
        else:
            columns = {
                "probability": found["probability"],
                "probability_lower": found["probability_interval"][:, 0],
                "probability_upper": found["probability_interval"][:, 1],
                "label": names[(found["probability"] > found["threshold"]).astype(int)],
                "threshold": found["threshold"],
                "score": found["score"],
                "score_lower": found["score_interval"][:, 0],
                "score_upper": found["score_interval"][:, 1],
            }
            also = ("undecided", *ASKING_COLUMNS)
            columns |= {name: found[name] for name in also if name in found}
        if "set" in found:
            columns["set"] = [
                " | ".join(text for text, is_in in zip(texts, row, strict=True) if is_in)
                for row in found["set"]
            ]
        return pd.DataFrame(columns)


def _costs_of_rows(costs: MistakeCosts, frame: pd.DataFrame) -> CostMatrix:
    """Costs as numbers, from columns of the table where these hold them."""
    names = [str(name) for name in frame.columns]
    values = {}
    for name in costs.columns:
        if names.count(name) != 1:
            has = "no column" if name not in names else "several columns"
            raise DataError(f"The table has {has} {name!r}, which is to hold the costs of rows.")
        what = "is given as a cost, which takes a number or a column of numbers"
        values[name] = as_numbers(frame.iloc[:, names.index(name)], name, what)
        unusable = costs.unusable(values[name])
        if unusable.any():
            raise DataError(
                f"Column {name!r} holds no cost in {name_rows(unusable)}; give numbers above 0."
            )
    return costs.matrix(values)
