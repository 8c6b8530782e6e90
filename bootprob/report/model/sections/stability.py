"""Would other training rows have given other probabilities? Replicates beside the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bootprob.displays.stability import draw_intervals
from bootprob.ensemble.replicate_stability import stability_of
from bootprob.ensemble.scoring.rows import Rows, checked_rows
from bootprob.ensemble.scoring.table_rows import some_rows
from bootprob.ensemble.state import TwoClassState, state_of
from bootprob.explanation.answers import Explained
from bootprob.metrics.prediction_stability import Stability
from bootprob.report.figure_table import Column, FigureTable
from bootprob.report.model.sections.section import Drawn, Measured, Section
from bootprob.report.svg import Picture, draw_picture
from bootprob.report.wording import count, percent, short
from bootprob.runtime.arrays import Floats, Integers
from bootprob.tables.model import TableModel

__all__ = ["SECTION", "AskedRows", "asked_rows"]

_MOST_ROWS, _LEAST_OF_CLASS = 500, 25
_TENTHS = np.arange(11) / 10
_FEW = 0.05  # share of the rows whose probability is least stable


def _content(of: Measured) -> dict[str, Any]:
    if of.model.calibration is None:
        return {"stability": None}
    asked = asked_rows(of)
    if asked is None:
        return {"stability": None}
    labels = of.model.classes_[asked.codes]
    found = stability_of(of.model, asked.rows, labels, asked.weights, level=of.level)
    errors, sizes = found.absolute_error, found.effective_sample_size
    return {
        "stability": {
            "held_out": asked.held_out,
            "n_rows": len(asked.codes),
            "n_rows_in_all": asked.n_rows_in_all,
            "n_replicates": len(found.replicates),
            "level": found.level,
            "threshold": found.threshold,
            "mean_absolute_error": found.mean_absolute_error,
            "few": _FEW,
            "absolute_error_of_few": np.quantile(errors, 1 - _FEW),
            "mean_classification_instability": found.mean_classification_instability,
            "median_effective_sample_size": np.median(sizes),
            "effective_sample_size_of_few": np.quantile(sizes, _FEW, method="lower"),
            "slope": [found.slope, *found.slope_interval],
            "in_the_large": [found.in_the_large, *found.in_the_large_interval],
            "rows": {
                "probability": found.probability,
                "interval": found.interval,
                "absolute_error": errors,
                "classification_instability": found.classification_instability,
                "effective_sample_size": sizes,
            },
            "tenths": _tenths(found),
            "net_benefit": {
                "threshold": found.thresholds,
                "of_model": found.net_benefit,
                "band": found.net_benefit_band,
                "of_all": found.net_benefit_of_all,
            },
        }
    }


@dataclass(frozen=True)
class AskedRows:
    """Rows that replicates are asked about.

    Attributes
    ----------
    rows : Rows
        Checked.
    codes, weights : ndarray, shape (m,)
        Their classes, and weights that make up for those not drawn.
    n_rows_in_all : int
        Of which they were drawn.
    held_out : bool
        Whether they took no part in training.
    """

    rows: Rows
    codes: Integers
    weights: Floats
    n_rows_in_all: int
    held_out: bool


def asked_rows(of: Measured) -> AskedRows | None:
    """Some rows of `fit`, given or kept by the model, else held-out ones; None without any.

    Of several classes the model is not asked for those that it keeps.
    """
    model, state, held_out = of.model, state_of(of.model), False
    codes, weights, given = state.y_, state.sample_weight_, of.training
    as_rows: Callable[[Any], Rows] = partial(checked_rows, model)
    if given is not None and isinstance(of.explained, TableModel):
        given = of.explained.preprocessor.encode(given, of.explained.encoder).X
    of_machines = isinstance(state, TwoClassState) and state.estimators_ is None
    if given is None and of_machines and state.kernel.has_features:
        found = Explained.of(of.explained)
        given, as_rows = found.kept_rows(), found.taken
    if given is None and of.held_out is not None:
        given, as_rows, held_out = of.held_out.X, partial(checked_rows, model), True
        codes = of.held_out.codes(model)
        weights = np.ones(len(codes))
    if given is None:
        return None
    kept, drawn = _drawn(codes, weights)
    rows = as_rows(some_rows(given, kept))
    return AskedRows(rows, codes[kept], drawn[kept], len(codes), held_out)


def _drawn(codes: Integers, weights: Floats) -> tuple[Integers, Floats]:
    """Some of very many rows, of each class enough, with weights that make up for it."""
    generator, kept, weights = np.random.default_rng(0), [], weights.copy()
    used = weights > 0
    for k in range(int(codes.max()) + 1):
        own = np.flatnonzero(used & (codes == k))
        due = max(_LEAST_OF_CLASS, round(_MOST_ROWS * len(own) / np.count_nonzero(used)))
        if due < len(own):
            weights[own] *= len(own) / due
            own = generator.choice(own, due, replace=False)
        kept.append(own)
    return np.sort(np.concatenate(kept)), weights


def _tenths(found: Stability) -> list[dict[str, Any]]:
    """Of the rows of each tenth of the probability that has any."""
    index = np.minimum((10 * found.probability).astype(int), 9)
    return [
        {
            "from": _TENTHS[k],
            "to": _TENTHS[k + 1],
            "n_rows": np.count_nonzero(own),
            "absolute_error": found.absolute_error[own].mean(),
            "classification_instability": found.classification_instability[own].mean(),
            "effective_sample_size": np.median(found.effective_sample_size[own]),
        }
        for k in range(10)
        if (own := index == k).any()
    ]


def _pictures(of: Drawn) -> dict[str, Picture | None]:
    found = of.model["stability"]
    return {} if found is None else {"stability": _picture(found, of.name("b"), of.classes[1])}


def _picture(found: dict[str, Any], name: str, positive: str) -> Picture:
    """The instability plot: what most replicates say of each row."""
    rows, tenths = found["rows"], found["tenths"]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        draw_intervals(ax, np.asarray(rows["probability"]), np.asarray(rows["interval"]))
        ax.set_xlabel(f"probability of {short(positive)} by the model")

    table = FigureTable(
        "Stability by probability",
        (
            Column("Probability", [_range(each) for each in tenths]),
            Column.of("Rows", [each["n_rows"] for each in tenths], count),
            Column.of("Moved by", [each["absolute_error"] for each in tenths], percent),
            Column.of(
                "Decided otherwise",
                [each["classification_instability"] for each in tenths],
                percent,
            ),
            Column.of("Worth rows", [each["effective_sample_size"] for each in tenths], count),
        ),
    )
    alt = (
        f"Instability plot: {percent(found['level'], 0)} of the replicates by the probability of "
        f"{count(found['n_rows'])} rows. They move a probability by "
        f"{percent(found['mean_absolute_error'])} on average."
    )
    return draw_picture(draw, 3.6, name, alt, (table,))


def _range(tenth: dict[str, Any]) -> str:
    return f"{percent(tenth['from'], 0)} to {percent(tenth['to'], 0)}"


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["stability"] for model in content["models"])


SECTION = Section("stability", "Other training rows", _content, _pictures, _is_shown)
