"""What a fitted model says of rows that are looked at together, as log-odds with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bootprob.calibration.calibrated import logits_of
from bootprob.encoding.frames import as_frame
from bootprob.ensemble.fitted import of_matrix, two_classes_of
from bootprob.ensemble.scoring.frame_encoder import rows_of_matrix
from bootprob.ensemble.scoring.rows import Rows, checked_rows
from bootprob.ensemble.scoring.table_rows import TableRows
from bootprob.exceptions import DataError
from bootprob.intervals.mixtures import of_mixture
from bootprob.intervals.replicates import percentile
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import on_host
from bootprob.tables.model import TableModel

if TYPE_CHECKING:
    from bootprob.encoding.dates import DateParts
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.ensemble.state import TwoClassState
    from bootprob.ensemble.two_classes import TwoClasses

__all__ = ["Explained"]

_LEAST = 10  # rows that a background may be made of without being given


@dataclass(frozen=True)
class Explained:
    """A model of two classes, and its columns as its user knows them.

    Attributes
    ----------
    svc : BootstrapSVC
        Takes rows of the matrix.
    columns : mapping of str to slice
        The features of each column.
    preprocessor : TablePreprocessor or None
        What makes features of columns.
    """

    svc: BootstrapSVC
    columns: Mapping[str, slice]
    preprocessor: Any = None

    @classmethod
    def of(cls, model: BootstrapSVC | TableModel) -> Explained:
        """Look at a model.

        Raises
        ------
        DataError
            It is of several classes, has no calibration, or a kernel without columns; or its
            classifiers were fitted to other than plain numbers, or before.
        """
        svc = model.svc if isinstance(model, TableModel) else model
        known = model.preprocessor if isinstance(model, TableModel) else None
        ensemble = two_classes_of(svc, "explanations")
        if ensemble.spec.calibration is None:
            raise DataError(
                "What is explained are calibrated probabilities, and this model has "
                "calibration=None; fit it with calibration='sigmoid'."
            )
        if not ensemble.state.kernel.has_features:
            raise DataError("A precomputed kernel knows no columns that could be explained.")
        if ensemble.state.estimators_ is not None:
            _check_classifiers(ensemble.state)
        preprocessor = known or svc.preprocessor_
        if preprocessor is not None:
            return cls(of_matrix(svc), preprocessor.encoder_.places, preprocessor)
        names = getattr(svc, "feature_names_in_", None)
        if names is None:
            names = [f"x{j}" for j in range(svc.n_features_in_)]
        return cls(svc, {str(name): slice(j, j + 1) for j, name in enumerate(names)})

    @property
    def ensemble(self) -> TwoClasses:
        """What answers."""
        return two_classes_of(self.svc, "explanations")

    def matrix(self, X: Any) -> Floats:
        """Rows as features, shape (m, p)."""
        if self.preprocessor is None:
            rows = checked_rows(self.svc, on_host(X))
            return np.asarray(rows.matrix if isinstance(rows, TableRows) else rows, np.float64)
        frame = as_frame(X)
        if frame is None:
            raise DataError(f"The model is of tables; give a data frame, not {type(X).__name__}.")
        encoded: Floats = self.preprocessor.transform(frame)
        return encoded

    def background(self, X: Any, most: int, seed: int) -> Floats:
        """Rows to compare with: some of those given, or of training rows that the model keeps."""
        if X is not None:
            rows = self.matrix(X)
        else:
            state, whole = self.ensemble.state, self.kept_rows()
            known = state.kernel_posterior_.get("landmarks")
            if whole is not None and len(whole) >= _LEAST:
                rows = whole[state.sample_weight_ > 0]
            elif known is not None and len(known) >= _LEAST:
                rows = known * state.scale_ + state.center_
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
        state = self.ensemble.state
        if X is None and state.kernel.is_linear and state.calibration_ == "sigmoid":
            return state.center_[None].astype(np.float64)
        return self.background(X, most, seed)

    def kept_rows(self) -> Floats | None:
        """All training rows (n, p), where the model keeps them, as machines of curved kernels do.

        Not on a feature map, whose columns are others.
        """
        state = self.ensemble.state
        if state.X_fit_ is None or state.feature_map_ is not None:
            return None
        found: Floats = state.X_fit_ * state.scale_ + state.center_
        return found

    def levels(self, column: str) -> list[str] | None:
        """Of a column of categories; None for numbers."""
        return None if self.preprocessor is None else self.preprocessor.levels_.get(column)

    def dates(self, column: str) -> DateParts | None:
        """Of a column of dates; None for others."""
        return None if self.preprocessor is None else self.preprocessor.encoder_.dates.get(column)

    def probability(self, rows: Floats) -> Floats:
        """As `predict_proba` gives it, shape (m,)."""
        return self.ensemble.predict_proba(self.taken(rows))[:, 1]

    def log_odds(self, rows: Floats) -> Floats:
        """Of the probability, shape (m,)."""
        return logits_of(self.probability(rows))

    def intervals(self, rows: Floats, mixing: Floats, level: float) -> Floats:
        """Intervals (q, 2) of combinations (q, m) of the log-odds of rows.

        Of ``kernel="auto"``, and of classifiers, the posterior's; of others the percentiles of the
        replicates.
        """
        ensemble, checked = self.ensemble, self.taken(rows)
        moments = ensemble.scores.combined_logits(checked, mixing)
        if moments is not None:
            bounds = of_mixture(moments, ensemble.state.kernel_posterior_["weight"], level)
            if (found := ensemble.recalibration) is None:
                return bounds
            moved = found.coefficients[0] * mixing.sum(axis=1)
            return found.coefficients[1] * bounds + moved[:, None]
        return percentile(mixing @ ensemble.replicate_logits(checked), level)

    def taken(self, rows: Floats) -> Rows:
        """Rows of the matrix as machines, or classifiers, are given them."""
        if self.ensemble.state.estimators_ is not None:
            return rows_of_matrix(self.svc, rows)
        names = getattr(self.svc, "feature_names_in_", None)
        named = rows if names is None else pd.DataFrame(rows, columns=names)
        return checked_rows(self.svc, named)


def _check_classifiers(state: TwoClassState) -> None:
    if state.preprocessor_ is not None:
        raise DataError(
            "Classifiers are explained that were fitted to plain numbers, and these were given a "
            "data frame with categories, or gaps; encode its columns first (TablePreprocessor), "
            "and fit the classifier to the matrix."
        )
    if not state.kernel_posterior_:
        raise DataError(
            "Intervals of explanations are those of the posterior beside the classifiers, which "
            "there is none of around a classifier that was fitted before; fit it here instead."
        )
