"""From fitted models to the numbers of a report: plain dictionaries, lists, numbers and text.

The dictionary is written as JSON and is also all that the figures and the page are drawn from,
so that nothing is shown that the JSON file does not hold. It holds no feature values of rows.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import log_loss
from sklearn.utils.validation import _num_samples

from bootprob.encoding.frames import as_frame
from bootprob.ensemble.bootstrap_ensemble import BootstrapEnsemble
from bootprob.ensemble.fitted import as_fitted, column_names
from bootprob.ensemble.out_of_bag_proba import cross_fitted_proba
from bootprob.ensemble.state import state_of
from bootprob.exceptions import DataError
from bootprob.metrics.intervals import (
    log_loss_difference,
)
from bootprob.metrics.lack_of_fit_reasons import few_rows, reason_of
from bootprob.report.model.class_sections import SECTIONS_OF_CLASSES
from bootprob.report.model.members import members_of, weights_of
from bootprob.report.model.sections import SECTIONS
from bootprob.report.model.sections.section import Measured, Section
from bootprob.report.model.subgrouping import Subgrouping
from bootprob.report.plain import plain
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.held_out import HeldOut
    from bootprob.tables.model import TableModel

__all__ = ["FORMAT_VERSION", "report_content", "sections_of"]

FORMAT_VERSION = 1
LEVEL = 0.95

_N_NAMES = 60  # feature names listed; a table of genes has thousands


def report_content(
    models: Mapping[str, BootstrapSVC],
    *,
    title: str,
    command: str | None = None,
    held_out: HeldOut | None = None,
    training: Any = None,
    table: TableModel | None = None,
    by: str | ArrayLike | None = None,
) -> dict[str, Any]:
    """Collect everything that a report says or draws; parameters and errors as for `write_report`.

    The result is as JSON holds it, without NaN: what does not exist is None.
    """
    if not isinstance(models, Mapping) or not models:
        raise DataError(
            f"models is {reprlib.repr(models)}; give a dict of at least one fitted model, by what "
            "the report is to call it."
        )
    for label, model in models.items():
        if not isinstance(model, BootstrapEnsemble):
            raise DataError(
                f"{label!r} is of the type {type(model).__name__}; give ensembles, of a TableModel "
                "its svc_with_class_names(), and the TableModel as table."
            )
        state_of(model)
    first = next(iter(models.values()))
    if training is not None and _num_samples(training) != len(first.y_):
        raise DataError(
            f"training has {_num_samples(training)} rows, and fit had {len(first.y_)}; give the "
            "same, in their order."
        )
    for label, model in models.items():
        if not (
            np.array_equal(model.classes_, first.classes_)
            and np.array_equal(model.y_, first.y_)
            and np.array_equal(model.sample_weight_, first.sample_weight_)
            and np.array_equal(model.groups_, first.groups_)
        ):
            raise DataError(
                f"All models of a report must be fitted to the same rows; {label!r} has other "
                "rows, groups or classes than the first one. Write one report for each."
            )
    if table is not None and len(models) > 1:
        raise DataError("table is the one model that is reported; give several without it.")
    subgroups = None if by is None else Subgrouping.of(by, training, held_out)
    if subgroups is not None and len(first.classes_) > 2:
        raise DataError(
            f"Subgroups are told of two classes, and the model has {len(first.classes_)}."
        )
    content = {
        "format": {"name": "bootprob report", "version": FORMAT_VERSION},
        "title": title,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "level": LEVEL,
        "data": _data(first),
        "models": [
            _model(
                label,
                Measured(
                    *(as_fitted(model), LEVEL, held_out, _out_of_bag(model)),
                    as_fitted(model) if table is None else replace(table, svc=as_fitted(table.svc)),
                    training if table is not None else _own_columns(model, training),
                    subgroups,
                    None if as_fitted(model) is model else model,
                ),
            )
            for label, model in models.items()
        ],
        "comparison": _comparison(models) if len(first.classes_) == 2 else None,
    }
    return plain(content)


def _own_columns(model: BootstrapSVC, training: Any) -> Any:
    """Without columns that are for subgroups alone."""
    frame, names = as_frame(training), getattr(model, "feature_names_in_", None)
    if frame is None or names is None or not set(names) <= set(frame.columns):
        return training
    return frame[list(names)]


def _data(model: BootstrapSVC) -> dict[str, Any]:
    counts = np.bincount(model.y_[model.sample_weight_ > 0])
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    labels = [str(label) for label in model.classes_]
    of_two = {
        "n_positive": counts[1],
        "n_negative": counts[0],
        "negative_class": labels[0],
        "positive_class": labels[1],
    }
    return {
        "n_rows": counts.sum(),
        "classes": [{"name": a, "n_rows": n} for a, n in zip(labels, counts, strict=True)],
        **(of_two if len(labels) == 2 else {}),
        "n_groups": None if model.later_rows_ else _number_of_groups(model),
        "n_blocks": _number_of_groups(model) if model.later_rows_ else None,
        "weighted": bool(np.ptp(model.sample_weight_) > 0),
        "n_features": model.n_features_in_,
        "feature_names": names[:_N_NAMES],
        "n_feature_names_not_listed": max(0, len(names) - _N_NAMES),
    }


def _number_of_groups(model: BootstrapSVC) -> int | None:
    """Those, or blocks of time, with rows that count; None where rows are independent."""
    if model.groups_ is None:
        return None
    return len(np.unique(model.groups_[model.sample_weight_ > 0]))


def _out_of_bag(model: BootstrapSVC) -> Floats:
    return model.oob_proba_ if model.pair_ensembles_ else cross_fitted_proba(model)


def _model(label: str, of: Measured) -> dict[str, Any]:
    model = of.model
    found = {
        "label": label,
        **members_of(model),
        "kernel_weights": weights_of(model),
        "feature_map": _feature_map(model),
        "calibration": _calibration(model),
        "lack_of_fit": _lack_of_fit(model),
        "remarks": model.remarks_ or [],
        "n_drawn": model.n_drawn_,
    }
    for section in sections_of(len(model.classes_)):
        found |= section.content(of)
    return found


def sections_of(n_classes: int) -> tuple[Section, ...]:
    """Of the page of a model of so many classes, in their order."""
    return SECTIONS if n_classes == 2 else SECTIONS_OF_CLASSES


def _calibration(model: BootstrapSVC) -> str | None:
    """Of two classes the one in use; of several those of the pairs."""
    if not model.pair_ensembles_:
        return model.calibration_
    found = dict.fromkeys(each.calibration_ for each in model.pair_ensembles_)
    return ", ".join(found) if None not in found else None


def _lack_of_fit(model: BootstrapSVC) -> dict[str, Any] | None:
    """What the tests found, and why; None for votes."""
    if model.lack_of_fit_ is None:
        return None
    reason = reason_of(model.lack_of_fit_, column_names(model))
    said = {} if reason is None else reason._asdict()
    few = few_rows(model.lack_of_fit_)
    return model.lack_of_fit_ | {"found": reason is not None, "few_rows": few, **said}


def _feature_map(model: BootstrapSVC) -> dict[str, Any] | None:
    """What approximates the kernel, and how far it is off."""
    if getattr(model, "feature_map_", None) is None:
        return None
    nystroem = "landmarks" in model.feature_map_
    return {
        "kind": "Nyström" if nystroem else "random features",
        "n_components": len(model.feature_map_["landmarks" if nystroem else "phases"]),
        "error": model.feature_map_error_,
    }


def _comparison(models: Mapping[str, BootstrapSVC]) -> dict[str, Any] | None:
    """Log-loss of the best model against that of the second best, on the same rows."""
    if len(models) < 2:
        return None
    first = next(iter(models.values()))
    p = {label: cross_fitted_proba(model) for label, model in models.items()}
    common = ~np.isnan(list(p.values())).any(axis=0) & (first.sample_weight_ > 0)
    y, weights = first.y_[common], first.sample_weight_[common]
    losses = {
        label: log_loss(y, values[common], sample_weight=weights, labels=[0, 1])
        for label, values in p.items()
    }
    best, second = sorted(losses, key=lambda label: losses[label])[:2]
    groups = None if first.groups_ is None else first.groups_[common]
    difference = log_loss_difference(
        y, p[best][common], p[second][common], weights, LEVEL, groups=groups
    )
    return {"best": best, "second": second, "log_loss_difference": asdict(difference)}
