"""What a fitted model says of rows that are looked at together, as log-odds with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bootprob.calibration.logits import logits_of
from bootprob.encoding.frames import as_frame
from bootprob.ensemble.fitted import ensemble_of, of_matrix
from bootprob.ensemble.scoring.frame_encoder import encoder_of, rows_of_matrix
from bootprob.ensemble.scoring.rows import Rows, checked_rows
from bootprob.ensemble.scoring.table_rows import TableRows, new_rows
from bootprob.ensemble.several_classes import SeveralClasses
from bootprob.ensemble.state import State, state_of
from bootprob.exceptions import DataError
from bootprob.explanation.class_log_odds import of_class_posterior, of_class_replicates
from bootprob.explanation.given_values import GivenValues
from bootprob.intervals.mixtures import of_mixture
from bootprob.intervals.replicates import percentile
from bootprob.runtime.arrays import Floats, Indices
from bootprob.runtime.device_rows import on_host
from bootprob.tables.model import TableModel

if TYPE_CHECKING:
    from bootprob.encoding.dates import DateParts
    from bootprob.ensemble.classifier import BootstrapClassifier
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.ensemble.two_classes import TwoClasses

__all__ = ["Explained"]

_LEAST = 10  # rows that a background may be made of without being given


@dataclass(frozen=True)
class Explained:
    """A model, a class of it, and its columns as its user knows them.

    Attributes
    ----------
    svc : BootstrapSVC or BootstrapClassifier
        Takes rows of the matrix, or `TableRows`.
    columns : mapping of str to ndarray of int
        Where in a row each column is: its features, and then the number of its value in `given`.
    preprocessor : TablePreprocessor or None
        What makes features of columns.
    given : GivenValues or None
        What classifiers are given beside the matrix: numbers of its values come after the features.
    table : TableModel or None
        What makes rows of tables for such classifiers.
    number : int, default 1
        Place of the class among ``classes_``.
    """

    svc: Any
    columns: Mapping[str, Indices]
    preprocessor: Any = None
    given: GivenValues | None = None
    table: TableModel | None = None
    number: int = 1

    @classmethod
    def of(cls, model: BootstrapSVC | BootstrapClassifier | TableModel) -> Explained:
        """Look at a model.

        Raises
        ------
        DataError
            It has no calibration, or a kernel without columns.
        """
        svc = model.svc if isinstance(model, TableModel) else model
        known = model.preprocessor if isinstance(model, TableModel) else None
        state = state_of(svc)
        if svc.calibration is None:
            raise DataError(
                "What is explained are calibrated probabilities, and this model has "
                "calibration=None; fit it with calibration='sigmoid'."
            )
        if not state.kernel.has_features:
            raise DataError("A precomputed kernel knows no columns that could be explained.")
        preprocessor = known or svc.preprocessor_
        if preprocessor is None:
            names = getattr(svc, "feature_names_in_", None)
            if names is None:
                names = [f"x{j}" for j in range(svc.n_features_in_)]
            return cls(svc, {str(name): np.array([j]) for j, name in enumerate(names)})
        places = preprocessor.encoder_.places
        columns = {name: np.arange(place.start, place.stop) for name, place in places.items()}
        if state.estimators_ is None:
            return cls(of_matrix(svc), columns, preprocessor)
        table = model if isinstance(model, TableModel) else None
        for at, name in enumerate(preprocessor.feature_names_in_, len(state.center_)):
            columns[name] = np.append(columns.get(name, np.array([], dtype=np.intp)), at)
        return cls(svc, columns, preprocessor, GivenValues(svc.frame_columns_), table)

    @classmethod
    def of_class(
        cls, model: BootstrapSVC | BootstrapClassifier | TableModel, label: Any
    ) -> tuple[Explained, Any]:
        """Look at a class of a model, by default ``classes_[1]`` of two; and its label.

        Raises
        ------
        DataError
            As of `of`; the model has no such class; or it has several, and none is named.
        """
        found = cls.of(model)
        labels = list(model.target.labels if isinstance(model, TableModel) else model.classes_)
        if label is None and len(labels) == 2:
            return found, labels[1]
        is_one = pd.api.types.is_scalar(label) and not pd.isna(label)
        at = [k for k, each in enumerate(labels) if is_one and each == label]
        if not at:
            shown = ", ".join(map(str, labels[:20])) + (" …" if len(labels) > 20 else "")
            what = "no label is given" if label is None else f"label is {label!r}"
            raise DataError(
                f"Explained are the log-odds of a class, and {what}; the model has {shown}."
            )
        return replace(found, number=at[0]), labels[at[0]]

    @property
    def state(self) -> State:
        """What was fitted; of several classes what their pairs share."""
        return state_of(self.svc)

    @property
    def ensemble(self) -> TwoClasses | SeveralClasses[TwoClasses]:
        """What answers."""
        return ensemble_of(self.svc)

    def apart(self) -> Explained:
        """The same, which learns of rows that this one does not keep."""
        return self if self.given is None else replace(self, given=self.given.copy())

    def matrix(self, X: Any) -> Floats:
        """Rows as features, shape (m, p), and numbers of what classifiers are given, (m, q)."""
        if self.given is not None and (self.table is None or isinstance(X, TableRows)):
            return self._numbered(new_rows(self.svc, X))
        if self.preprocessor is None:
            rows = checked_rows(self.svc, on_host(X))
            return np.asarray(rows.matrix if isinstance(rows, TableRows) else rows, np.float64)
        frame = as_frame(X)
        if frame is None:
            raise DataError(f"The model is of tables; give a data frame, not {type(X).__name__}.")
        if self.table is not None:
            return self._numbered(self.preprocessor.encode(frame, self.table.encoder).X)
        encoded: Floats = self.preprocessor.transform(frame)
        return encoded

    def _numbered(self, rows: TableRows) -> Floats:
        assert self.given is not None
        return np.hstack([rows.matrix, self.given.numbered(rows.given)])

    def background(self, X: Any, most: int, seed: int) -> Floats:
        """Rows to compare with: some of those given, or of training rows that the model keeps."""
        if X is not None:
            rows = self.matrix(X)
        else:
            state, whole = self.state, self.kept_rows()
            known = self._landmarks()
            if whole is not None and len(whole) >= _LEAST:
                rows = whole[state.sample_weight_ > 0]
            elif known is not None and len(known) >= _LEAST:
                rows = self._as_given(known * state.scale_ + state.center_)
            else:
                raise DataError(
                    "The model does not keep its training rows, as those of curved kernels do; "
                    "give some as background (--background), which a server does not take."
                )
        if len(rows) <= most:
            return rows
        chosen = np.random.default_rng(seed).choice(len(rows), most, replace=False)
        return rows[np.sort(chosen)]

    def compared_with(self, X: Any, most: int, seed: int) -> Floats:
        """Rows that contributions are beside: those of `background`, or their mean where it does.

        Log-odds that are straight in the columns, as of linear machines with a sigmoid, have the
        same contributions beside the mean of the training rows as beside all of them, exactly.
        """
        ensemble, state = self.ensemble, self.state
        straight = state.kernel.is_linear and state.estimators_ is None
        if isinstance(ensemble, SeveralClasses) or ensemble.state.calibration_ != "sigmoid":
            straight = False
        if X is None and straight:
            return state.center_[None].astype(np.float64)
        return self.background(X, most, seed)

    def kept_rows(self) -> Floats | None:
        """All training rows (n, p), where the model keeps them, as machines of curved kernels do.

        Not on a feature map, whose columns are others.
        """
        state = self.state
        if state.X_fit_ is None or state.feature_map_ is not None:
            return None
        found: Floats = state.X_fit_ * state.scale_ + state.center_
        return found

    def features(self, column: str) -> Indices:
        """Where its features are; of what classifiers alone look at there are none."""
        found = self.columns[column]
        return found if self.given is None else found[:-1]

    def placed(self, column: str, features: Floats, values: NDArray[Any]) -> Floats:
        """What is in a row where a column is, shape (k, ...), of k values and their features."""
        if self.given is None:
            return features
        at = self.columns[column][-1] - len(self.svc.center_)
        return np.column_stack([features, self.given.number_values(int(at), list(values))])

    def levels(self, column: str) -> list[str] | None:
        """Of a column of categories; None for numbers."""
        return None if self.preprocessor is None else self.preprocessor.levels_.get(column)

    def dates(self, column: str) -> DateParts | None:
        """Of a column of dates; None for others."""
        return None if self.preprocessor is None else self.preprocessor.encoder_.dates.get(column)

    def probability(self, rows: Floats) -> Floats:
        """Of the class, as `predict_proba` gives it, shape (m,)."""
        return self.probabilities(rows)[:, self.number]

    def probabilities(self, rows: Floats) -> Floats:
        """Of all classes, shape (m, K)."""
        return self.ensemble.predict_proba(self.taken(rows))

    def decided(self, row: Floats) -> int:
        """Place of the class that a single row is given."""
        [label] = self.ensemble.predict(self.taken(row))
        return int(np.flatnonzero(self.svc.classes_ == label)[0])

    def log_odds(self, rows: Floats) -> Floats:
        """Of the probability, shape (m,)."""
        return logits_of(self.probability(rows))

    def intervals(self, rows: Floats, mixing: Floats, level: float) -> Floats:
        """Intervals (q, 2) of combinations (q, m) of the log-odds of rows.

        Of ``kernel="auto"``, and of classifiers, the posterior's; of others the percentiles of the
        replicates.
        """
        ensemble = self.ensemble
        if isinstance(ensemble, SeveralClasses):
            found = of_class_posterior(ensemble, self.number, self.taken(rows), mixing, level)
            return self.of_replicates(rows, mixing, level) if found is None else found
        moments = ensemble.scores.combined_logits(self.taken(rows), mixing)
        if moments is None:
            return self.of_replicates(rows, mixing, level)
        bounds = of_mixture(moments, ensemble.state.kernel_posterior_["weight"], level)
        if (since := ensemble.recalibration) is not None:
            moved = since.coefficients[0] * mixing.sum(axis=1)
            bounds = since.coefficients[1] * bounds + moved[:, None]
        return bounds if self.number else -bounds[:, ::-1]

    def of_replicates(self, rows: Floats, mixing: Floats, level: float) -> Floats:
        """The same as percentiles of the replicates, whatever the model."""
        ensemble = self.ensemble
        if isinstance(ensemble, SeveralClasses):
            return of_class_replicates(ensemble, self.number, self.taken(rows), mixing, level)
        bounds = percentile(mixing @ ensemble.replicate_logits(self.taken(rows)), level)
        return bounds if self.number else -bounds[:, ::-1]

    def taken(self, rows: Floats) -> Rows:
        """Rows of the matrix as machines, or classifiers, are given them."""
        if self.given is not None:
            p = len(self.svc.center_)
            return TableRows(self.given.rows(rows[:, p:]), rows[:, :p])
        if self.state.estimators_ is not None:
            return rows_of_matrix(self.svc, rows)
        names = getattr(self.svc, "feature_names_in_", None)
        named = rows if names is None else pd.DataFrame(rows, columns=names)
        return checked_rows(self.svc, named)

    def _landmarks(self) -> Floats | None:
        """Training rows that posteriors keep, standardised; of several classes of all pairs."""
        found = self.ensemble
        pairs = found.ensembles if isinstance(found, SeveralClasses) else [found]
        kept = [each.state.kernel_posterior_.get("landmarks") for each in pairs]
        known = [each for each in kept if each is not None]
        return np.unique(np.concatenate(known), axis=0) if len(known) > 1 else kept[0]

    def _as_given(self, matrix: Floats) -> Floats:
        """Training rows that the posterior keeps as numbers, as classifiers are given them.

        Gaps are filled as the posterior sees them. Integers were standardised, and are so again.

        Raises
        ------
        DataError
            Classifiers look at more columns than the posterior.
        """
        described = getattr(self.svc, "frame_columns_", None)
        for at, each in enumerate(described or ()):
            if each["kind"] == "number" and pd.api.types.is_integer_dtype(each["dtype"]):
                name = str(each["name"])
                place = self.features(name) if self.given is not None else np.array([at])
                matrix[:, place] = np.rint(matrix[:, place])
        if self.given is None:
            return matrix
        more = [name for name in self.columns if not len(self.features(name))]
        if more:
            raise DataError(
                f"The classifiers look at {', '.join(map(repr, more[:10]))}, of which the model "
                "keeps nothing; give rows as background (--background), which a server does not "
                "take."
            )
        columns = {}
        for name in self.columns:
            own, levels = matrix[:, self.features(name)], self.levels(name)
            columns[name] = own[:, 0].tolist()
            if levels is not None:
                columns[name] = [levels[k] for k in own.argmax(axis=1)]
        return self._numbered(
            encoder_of(self.svc, self.preprocessor).encode(columns, len(matrix)).X
        )
