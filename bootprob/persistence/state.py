"""The fitted attributes of a `BootstrapSVC` apart and together again, with every shape checked.

Of several classes, each pair's ensemble is taken apart alike, under a name such as
``pair_ensembles_.0.intercept_``; what it shares with the whole model is there once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bootprob.calibration.coupling import class_pairs
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.pairs import shared_draws
from bootprob.ensemble.specs import NO_CONTROL
from bootprob.ensemble.state import State, declared
from bootprob.persistence.checks import check_parameters, check_state
from bootprob.persistence.layout import SEVERAL_CLASSES, TWO_CLASSES, Layout

__all__ = ["join_state", "split_state"]

_PAIRS = "pair_ensembles_"
_OF_SEVERAL = declared(State)


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
        arrays |= {
            f"{_PAIRS}.{number}.{name}": array
            for name, array in of_pair.items()
            if _of_pair(name) == "own"
        }
        own = [name for name in sorted(others) if _of_pair(name) == "own"]
        values[_PAIRS].append({name: others[name] for name in own})
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
        return _drawn(_join(params, arrays, values, TWO_CLASSES))
    own = {name: array for name, array in arrays.items() if not name.startswith(f"{_PAIRS}.")}
    svc = _drawn(_join(params, own, values, SEVERAL_CLASSES))
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
        for name, array in own.items():
            if (kind := _of_pair(name)) in ("same", "rows"):
                of_pair[name] = array if kind == "same" else array[rows]
        of_pair |= {"classes_": np.array([0, 1]), "y_": (codes[rows] == j).astype(np.int64)}
        shared = {name: value for name, value in values.items() if _of_pair(name) == "same"}
        others = shared | stored[number] | {"controlled_rates_": []}
        pair = _join(params | {"verbose": 0} | NO_CONTROL, of_pair, others, TWO_CLASSES)
        pair.shared_draws_ = shared_draws(codes, svc.sample_weight_, rows, svc.groups_)
        svc.pair_ensembles_.append(pair)
    if len({pair.n_replicates_ for pair in svc.pair_ensembles_}) > 1:
        raise ValueError("the pairs differ in the number of replicates")
    return svc


def _drawn(svc: BootstrapSVC) -> BootstrapSVC:
    """The same, whose samples draw no more rows than there are."""
    shared = svc.shared_draws_
    if (svc.n_drawn_ or 0) > len(svc.y_ if shared is None else shared["classes"]):
        raise ValueError("n_drawn_ is more than there are rows")
    return svc


def _of_pair(name: str) -> str:
    """Whether an array or value of a pair is its own, as `Attribute.of_pair` says."""
    attribute = _OF_SEVERAL.get(name.partition(".")[0])
    return "own" if attribute is None else attribute.of_pair


def _split(svc: BootstrapSVC, layout: Layout) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    elsewhere = declared().keys() - layout.attributes.keys() | {_PAIRS}
    arrays: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, found in vars(svc).items():
        if not name.endswith("_") or name in elsewhere:
            continue
        if name in layout.parts:
            arrays |= {f"{name}.{part}": array for part, array in (found or {}).items()}
        elif found is not None:
            kept = arrays if name in layout.stored else values
            kept[layout.stored.get(name, name)] = found
    check_state(arrays, values | ({_PAIRS: []} if layout is SEVERAL_CLASSES else {}), layout)
    check_parameters(svc, arrays, values)
    return arrays, values


def _join(
    params: dict[str, Any], arrays: dict[str, np.ndarray], values: dict[str, Any], layout: Layout
) -> BootstrapSVC:
    check_state(arrays, values, layout)
    svc = BootstrapSVC(**params)
    svc._validate_params()
    check_parameters(svc, arrays, values)
    svc.pair_ensembles_, svc.shared_draws_ = [], None
    svc.oob_class_scores_ = svc.class_offsets_ = None
    for name, attribute in layout.attributes.items():
        found: Any = arrays.get(attribute.stored or name)
        if attribute.parts is not None:
            named = {part: f"{name}.{part}" for part in attribute.parts}
            found = {part: arrays[each] for part, each in named.items() if each in arrays}
            found = found or (None if attribute.absent == "None" else {})
        elif attribute.kind is not None:
            continue
        if found is not None or attribute.absent == "None":
            setattr(svc, name, found)
    absent = {name: None for name in layout.values if name not in values}
    for name, found in (values | absent).items():
        setattr(svc, name, found)
    return svc
