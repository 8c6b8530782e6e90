"""A fitted model as the server sees it: columns, classes, and one function that scores rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray

from bootprob.calibration.calibrated import both, both_intervals
from bootprob.costs.decisions import Decisions
from bootprob.costs.matrix import CostMatrix
from bootprob.ensemble.classifier import BootstrapClassifier
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.fitted import doubt_of, ensemble_of
from bootprob.ensemble.scoring.frame_encoder import FrameEncoder, rows_of_matrix
from bootprob.ensemble.scoring.rows import NewRows
from bootprob.ensemble.scoring.table_rows import TableRows
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats
from bootprob.server.columns import Columns
from bootprob.tables.mistake_costs import MistakeCosts
from bootprob.tables.model import TableModel

__all__ = ["Ensemble", "Scores", "ServedModel", "ServedRows"]

Ensemble = BootstrapSVC | BootstrapClassifier
ServedRows = Floats | TableRows
"""Rows as requests are made into: of a matrix, or what classifiers are given beside it."""


@dataclass(frozen=True)
class Scores:
    """What is known of m rows of K classes.

    Attributes
    ----------
    probability : ndarray, shape (m, K)
    interval : ndarray, shape (m, K, 2)
        Lower and upper bound of each class's probability.
    label : ndarray of int, shape (m,)
        Position of the predicted class.
    threshold : ndarray, shape (m,), or None
        Probability of the second class above which it is the label; None for several classes, and
        before anything is decided.
    decisions : Decisions or None
        Where a person can be asked.
    undecided : ndarray of bool, shape (m,), or None
        Rows left undecided so that rates hold of the others; None of a model that leaves none.
    """

    probability: Floats
    interval: Floats
    label: NDArray[np.intp]
    threshold: Floats | None = None
    decisions: Decisions | None = None
    undecided: NDArray[np.bool_] | None = None

    def __getitem__(self, rows: slice) -> Self:
        return type(self)(self.probability[rows], self.interval[rows], self.label[rows])


class ServedModel:
    """A fitted model with a name and a version.

    Parameters
    ----------
    model : BootstrapSVC, BootstrapClassifier or TableModel
        Fitted.
    name, version : str
        What it is called in addresses and replies.
    costs : MistakeCosts, optional
        What mistakes cost: labels are then those of least expected cost.

    Attributes
    ----------
    model : BootstrapSVC, BootstrapClassifier or TableModel
    columns : Columns
        What a request has to give.
    classes : list of bool, int, float or str
        Of two, the second is the positive one.
    threshold : float or None
        Probability above which a row is labelled positive; None for several classes, or where rows
        have costs of their own.
    doubt : LackOfFitWarning, FewRowsWarning or None
        Why intervals may be too narrow.

    Raises
    ------
    TypeError
        For another model.
    DataError
        If its classes cannot be written as JSON, or costs do not fit it.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    """

    def __init__(
        self,
        model: Ensemble | TableModel,
        name: str,
        version: str,
        costs: MistakeCosts | None = None,
    ) -> None:
        if not isinstance(model, (BootstrapSVC, BootstrapClassifier, TableModel)):
            raise TypeError(
                "A BootstrapSVC, BootstrapClassifier or TableModel can be served, not "
                f"{type(model).__name__}."
            )
        if not isinstance(model, TableModel):
            model = TableModel.of(model) or model
        self.name, self.version, self.model = name, version, model
        self.svc = model.svc if isinstance(model, TableModel) else model
        self.columns, self.costs = Columns.of(model), costs
        classes = (
            model.target.labels if isinstance(model, TableModel) else self.svc.classes_.tolist()
        )
        self.classes: list[Any] = list(classes)
        if not all(isinstance(label, (bool, int, float, str)) for label in self.classes):
            raise DataError(
                "The classes must be text, numbers or true and false to be written as JSON, not "
                f"{type(self.classes[0]).__name__}."
            )
        if costs is not None:
            costs.check_model(self.svc)
            self.columns = self.columns.with_costs(costs.columns)
        ensemble = ensemble_of(self.svc)
        self._ensemble, self._method = ensemble, ensemble.checked_method(None)
        table = model.preprocessor if isinstance(model, TableModel) else None
        features = None if table is None else table.get_feature_names_out()
        self.doubt = doubt_of(self.svc, self._method, features)
        self.threshold = ensemble.decision_threshold if isinstance(ensemble, TwoClasses) else None
        if costs is not None:
            self.threshold = costs.threshold
        # In memory as a data frame's columns are, for the bits that `predict_proba` gives of one.
        self._order: Literal["C", "F"] = "F" if hasattr(self.svc, "feature_names_in_") else "C"
        # The first call compiles and fills caches; it also shows that the model can be scored.
        self.score(self._first_row(), 0.95)

    def _first_row(self) -> ServedRows:
        encoder, center = self.columns.encoder, self.svc.center_
        row = np.zeros(self.columns.n_features) if center is None else center
        if not isinstance(encoder, FrameEncoder):
            return row[None]
        numbers = dict(zip(encoder.table.numbers, row.tolist(), strict=False))  # come first
        some = numbers | encoder.fills
        return encoder.encode({name: [some[name]] for name in encoder.kinds}, 1).X

    def is_well(self) -> bool:
        """Whether the row is scored that was when the model came here."""
        try:
            self.score(self._first_row(), 0.95)
        except Exception:  # whatever the code of classifiers raises
            return False
        return True

    def joined(self, parts: Sequence[Any]) -> ServedRows:
        """Rows of several requests, one under the other."""
        encoder = self.columns.encoder
        return encoder.joined(parts) if isinstance(encoder, FrameEncoder) else np.concatenate(parts)

    def check(self, X: ServedRows) -> None:
        """Refuse rows that `score` would refuse, so that they do not spoil a batch.

        Raises
        ------
        DataError
            A number is so far out that scores overflow; names its row and column.
        """
        matrix = X.matrix if isinstance(X, TableRows) else X
        NewRows(matrix, self.svc.center_, self.svc.scale_).as_seen(torch.from_numpy(matrix), 0)

    def score(self, X: ServedRows, level: float) -> Scores:
        """Probabilities, intervals and labels, as `BootstrapSVC.summarize` gives them.

        Parameters
        ----------
        X : ndarray, shape (m, p), or TableRows
            Rows.
        level : float
            Of the intervals.
        """
        rows = X
        if not isinstance(X, TableRows):
            rows = rows_of_matrix(self.svc, np.asarray(X, order=self._order))
        found = self._ensemble.summarize(rows, level, self._method, score_interval=False)
        probability, interval = found["probability"], found["probability_interval"]
        if probability.ndim == 1:
            probability, interval = both(probability), both_intervals(interval)
        return Scores(probability, interval, np.searchsorted(self.svc.classes_, found["label"]))

    def costs_of(self, values: Mapping[str, Sequence[float]]) -> CostMatrix | None:
        """What mistakes cost rows with these columns; None where no costs decide."""
        if self.costs is None:
            return None
        given = {name: np.array(values[name], dtype=np.float64) for name in self.costs.columns}
        return self.costs.matrix(given)

    def decided(self, scores: Scores, costs: CostMatrix | None) -> Scores:
        """Scores with labels by these costs or the model's threshold; of several classes as is."""
        if costs is not None:
            found = costs.decide(scores.probability[:, 1], scores.interval[:, 1])
            label, asked = found.label.astype(np.intp), None if found.ask is None else found
            return replace(scores, label=label, threshold=found.threshold, decisions=asked)
        if self.threshold is None:
            return scores
        thresholds = np.full(len(scores.probability), self.threshold)
        label = (scores.probability[:, 1] > thresholds).astype(np.intp)
        assert isinstance(self._ensemble, TwoClasses)
        undecided = self._ensemble.undecided(scores.probability[:, 1])
        return replace(scores, label=label, threshold=thresholds, undecided=undecided)

    @property
    def leaves_undecided(self) -> bool:
        """Whether rows may be left undecided."""
        return getattr(self.svc, "undecided_between_", None) is not None

    def training_probability(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each class's out-of-bag probability, shapes (K,)."""
        known = np.isfinite(self.svc.oob_proba_).all(axis=1) & (self.svc.sample_weight_ > 0)
        rows, weight = self.svc.oob_proba_[known], self.svc.sample_weight_[known]
        mean = np.average(rows, axis=0, weights=weight)
        return mean, np.sqrt(np.average(np.square(rows - mean), axis=0, weights=weight))
