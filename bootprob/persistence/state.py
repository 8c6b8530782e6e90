"""The fitted attributes of a `BootstrapSVC` apart and together again, with every shape checked.

Of several classes, each pair's ensemble is taken apart alike, under a name such as
``pair_ensembles_.0.intercept_``; what it shares with the whole model is there once.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from bootprob.calibration import CALIBRATORS
from bootprob.calibration.coupling import class_pairs
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.pairs import shared_draws
from bootprob.ensemble.state import SEVERAL_CLASSES, TWO_CLASSES, Layout, names_in
from bootprob.persistence.checks import (
    check_classes,
    check_parameters,
    check_settings,
    check_two_classes,
)

__all__ = ["join_state", "split_state"]

_PAIRS = "pair_ensembles_"
# Attributes whose name in files is older: the machines', before the mean score's took it.
_STORED = {f"bootstrap_{name}": name for name in ("coef_", "dual_coef_", "intercept_")}
_ATTRIBUTES = {stored: attribute for attribute, stored in _STORED.items()}
_OF_ROWS = ("X_fit_", "y_", "sample_weight_")  # of a pair: some rows of the whole table's
_OF_PAIRS = ("classes_", *_OF_ROWS, "feature_names_in_")  # arrays that are not the whole model's


def split_state(svc: BootstrapSVC) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Take the fitted attributes apart.

    Parameters
    ----------
    svc : BootstrapSVC
        Fitted.

    Returns
    -------
    arrays : dict of str to ndarray
        Under the attributes' names, but ``bootstrap_coef_`` as ``coef_``, and
        ``bootstrap_dual_coef_`` and ``bootstrap_intercept_`` alike; those of `certificates_` as
        ``certificates_.gap`` and so on, and those of `feature_map_` alike.
    values : dict
        All other fitted attributes; `pair_ensembles_` only of several classes, and as a list of
        such dicts.

    Raises
    ------
    TypeError
        An attribute is unknown here, so that a loaded model would lack it.
    """
    if not svc.pair_ensembles_:
        return _split(svc, TWO_CLASSES)
    arrays, values = _split(svc, SEVERAL_CLASSES)
    values[_PAIRS] = []
    for number, pair in enumerate(svc.pair_ensembles_):
        of_pair, others = _split(pair, TWO_CLASSES)
        for name in _shared(arrays) | {*_OF_PAIRS}:
            of_pair.pop(name, None)
        for name in names_in("shared_draws_", of_pair):
            del of_pair[f"shared_draws_.{name}"]
        arrays |= {f"{_PAIRS}.{number}.{name}": array for name, array in of_pair.items()}
        shared = _shared_values(values)
        values[_PAIRS].append({name: others[name] for name in sorted(others.keys() - shared)})
    return arrays, values


def join_state(
    params: dict[str, Any], arrays: dict[str, np.ndarray], values: dict[str, Any]
) -> BootstrapSVC:
    """Make a fitted model of its parameters and its state.

    Parameters
    ----------
    params : dict
        What ``get_params`` returned.
    arrays, values : dict
        What `split_state` returned.

    Returns
    -------
    BootstrapSVC
        Fitted.

    Raises
    ------
    TypeError, ValueError
        Something is missing, superfluous or of the wrong type or shape, or a parameter is
        invalid.
    """
    if _PAIRS not in values:
        return _join(params, arrays, values, TWO_CLASSES)
    own = {name: array for name, array in arrays.items() if not name.startswith(f"{_PAIRS}.")}
    svc = _join(params, own, values, SEVERAL_CLASSES)
    codes, stored = svc.y_, list(values[_PAIRS])
    K = len(svc.classes_)
    # Before there are pairs: of very many classes they would not fit into memory.
    if len(stored) != K * (K - 1) // 2 or not all(isinstance(each, dict) for each in stored):
        raise ValueError(f"there are {len(stored)} pairs of {K} classes")
    pairs = class_pairs(K)
    of_pairs: dict[str, dict[str, np.ndarray]] = {str(number): {} for number in range(len(pairs))}
    unknown = []
    for name in arrays.keys() - own.keys():
        place, _, part = name.removeprefix(f"{_PAIRS}.").partition(".")
        if place in of_pairs:
            of_pairs[place][part] = arrays[name]
        else:
            unknown.append(name)
    if unknown:
        raise TypeError(f"arrays are unknown: {', '.join(sorted(unknown))}")
    svc.pair_ensembles_ = []
    for number, (i, j) in enumerate(pairs):
        of_pair = of_pairs[str(number)]
        rows = np.isin(codes, (i, j))
        of_pair |= {name: own[name] for name in _shared(own)}
        of_pair |= {name: own[name][rows] for name in _OF_ROWS if name in own}
        of_pair |= {"classes_": np.array([0, 1]), "y_": (codes[rows] == j).astype(np.int64)}
        others = {name: values[name] for name in _shared_values(values)} | stored[number]
        pair = _join(params | {"verbose": 0}, of_pair, others, TWO_CLASSES)
        pair.shared_draws_ = shared_draws(codes, svc.sample_weight_, rows)
        svc.pair_ensembles_.append(pair)
    if len({pair.n_replicates_ for pair in svc.pair_ensembles_}) > 1:
        raise ValueError("the pairs differ in the number of replicates")
    return svc


def _shared(arrays: dict[str, np.ndarray]) -> set[str]:
    """Arrays of several classes that are those of their pairs as well."""
    known = SEVERAL_CLASSES.flat().keys() & TWO_CLASSES.flat().keys()
    out_of_bag = {name for name in known if name.startswith("oob_")}
    return (known - out_of_bag - {*_OF_PAIRS}) & arrays.keys()


def _shared_values(values: dict[str, Any]) -> set[str]:
    known = SEVERAL_CLASSES.values.keys() & TWO_CLASSES.values.keys()
    return (known | {"feature_map_error_"}) & values.keys()


def _split(svc: BootstrapSVC, layout: Layout) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    fitted = {
        _STORED.get(name, name): value for name, value in vars(svc).items() if name.endswith("_")
    }
    several = bool(fitted.pop(_PAIRS))
    if several:
        del fitted["shared_draws_"]  # it is the table that its pairs share their draws with
    parts = {whole: fitted.pop(whole) or {} for whole in layout.parts}
    arrays = {name: array for name, array in fitted.items() if name in layout.arrays}
    values = {name: value for name, value in fitted.items() if name not in layout.arrays}
    for whole, named in parts.items():
        arrays |= {f"{whole}.{name}": array for name, array in named.items()}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    for name in layout.optional_values:
        if name in values and values[name] is None:
            del values[name]
    _check(arrays, values | ({_PAIRS: []} if several else {}), layout)
    check_parameters(svc, arrays, values)
    return arrays, values


def _join(
    params: dict[str, Any], arrays: dict[str, np.ndarray], values: dict[str, Any], layout: Layout
) -> BootstrapSVC:
    _check(arrays, values, layout)
    svc = BootstrapSVC(**params)
    svc._validate_params()
    check_parameters(svc, arrays, values)
    svc.pair_ensembles_, svc.shared_draws_ = [], None
    for name, array in layout.arrays.items():
        attribute = _ATTRIBUTES.get(name, name)
        if name in arrays:
            setattr(svc, attribute, arrays[name])
        elif array.absent == "None":
            setattr(svc, attribute, None)
    for whole, parts in layout.parts.items():
        found = {name: arrays[f"{whole}.{name}"] for name in parts if f"{whole}.{name}" in arrays}
        empty: Any = None if whole in ("feature_map_", "shared_draws_") else {}
        setattr(svc, whole, found or empty)
    optional = {name: values.get(name) for name in layout.optional_values}
    for name, value in (values | optional).items():
        setattr(svc, name, value)
    return svc


def _check(arrays: dict[str, np.ndarray], values: dict[str, Any], layout: Layout) -> None:
    layout.check(arrays, values)
    check_settings(values)
    check_classes(arrays)
    if layout is SEVERAL_CLASSES:
        return
    kind = values.get("calibration_", "sigmoid")
    stored = names_in("calibrator_", arrays)
    if kind not in CALIBRATORS:
        raise ValueError(f"{kind!r} is no calibration")
    if stored != _fields_of(kind):
        raise TypeError(f"{', '.join(sorted(stored)) or 'nothing'} does not make a {kind}")
    if names_in("shared_draws_", arrays) not in (set(), set(layout.parts["shared_draws_"])):
        raise TypeError("the arrays of shared_draws_ belong together")
    if ("coef_" in arrays) == ("dual_coef_" in arrays):
        raise ValueError("either coef_ or dual_coef_ must be there")
    if ("dual_coef_" in arrays) != ("X_fit_" in arrays):
        raise ValueError("dual_coef_ and X_fit_ belong together")
    mapped = any(name.startswith("feature_map_.") for name in arrays)
    if mapped and "gamma_" not in arrays:
        raise ValueError("a feature map needs gamma_")
    if "gamma_" in arrays and not mapped and "coef_" in arrays:
        raise ValueError("gamma_ belongs to dual_coef_ or a feature map")
    check_two_classes(arrays, values)


def _fields_of(kind: str) -> set[str]:
    """Arrays of `calibrator_`; the sigmoid has attributes of its own."""
    calibrator: Any = CALIBRATORS[kind]
    return set() if kind == "sigmoid" else {field.name for field in fields(calibrator)}
