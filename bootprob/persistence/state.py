"""The fitted attributes of an ensemble apart and together again, with every shape checked.

Of several classes, each pair's ensemble is taken apart alike, under a name such as
``pair_ensembles_.0.intercept_``; what it shares with the whole model is there once. So is each
`BootstrapSVC` beside classifiers, under ``machines_.0.intercept_``. The classifiers themselves
stay whole: `bootprob.persistence.classifiers`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from bootprob.calibration.coupling import class_pairs
from bootprob.ensemble.classifier import BootstrapClassifier
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.fitted import without_frame
from bootprob.ensemble.pairs import shared_draws
from bootprob.ensemble.specs import NO_CONTROL
from bootprob.ensemble.state import State, declared
from bootprob.exceptions import DataError
from bootprob.persistence.checks import check_parameters, check_state
from bootprob.persistence.classifiers import check_classifiers
from bootprob.persistence.layout import Layout, layout_of
from bootprob_gpu import InputError, resolve_device

__all__ = ["Ensemble", "join_state", "plain_parameters", "split_state"]

_PAIRS = "pair_ensembles_"
_MACHINES = "machines_"
_OF_SEVERAL = declared(State, None)

Ensemble = BootstrapSVC | BootstrapClassifier


def plain_parameters(model: Ensemble) -> dict[str, Any]:
    """Parameters without what a file keeps otherwise, or cannot: a generator of numbers."""
    params = model.get_params(deep=False)
    if isinstance(params["random_state"], (np.random.RandomState, np.random.Generator)):
        params["random_state"] = None
    return params


def split_state(model: Ensemble) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Take the fitted attributes apart.

    Parameters
    ----------
    model : BootstrapSVC or BootstrapClassifier
        Fitted.

    Returns
    -------
    arrays : dict of str to ndarray
        Under the attributes' names, but ``bootstrap_coef_`` as ``coef_``, and
        ``bootstrap_dual_coef_`` and ``bootstrap_intercept_`` alike; those of `certificates_` as
        ``certificates_.gap`` and so on, and those of `feature_map_` alike.
    values : dict
        All other fitted attributes, but for classifiers; `pair_ensembles_` only of several classes,
        and as a list of such dicts; `machines_`, if there are any, as a list of "params" and
        "values".

    Raises
    ------
    TypeError
        An attribute is unknown here, so that a loaded model would lack it.
    """
    of: Any = "machines" if isinstance(model, BootstrapSVC) else "classifiers"
    arrays, values = _split(model, layout_of(bool(model.pair_ensembles_), of))
    if model.pair_ensembles_:
        values[_PAIRS] = []
    for number, pair in enumerate(model.pair_ensembles_):
        of_pair, others = _split(without_frame(pair), layout_of(False, of))
        own = {name: array for name, array in of_pair.items() if _of_pair(name) == "own"}
        arrays |= _within(_PAIRS, number, own)
        names = [name for name in sorted(others) if _of_pair(name) == "own"]
        values[_PAIRS].append({name: others[name] for name in names})
    for number, svc in enumerate(getattr(model, _MACHINES, None) or ()):
        of_machine, others = split_state(svc)
        arrays |= _within(_MACHINES, number, of_machine)
        stored = {"params": plain_parameters(svc), "values": others}
        values[_MACHINES] = [*values.get(_MACHINES, ()), stored]
    return arrays, values


def join_state(
    params: dict[str, Any],
    arrays: Mapping[str, np.ndarray],
    values: Mapping[str, Any],
    classifiers: Mapping[str, Any] | None = None,
) -> Ensemble:
    """Make a fitted model of its parameters and its state.

    Parameters
    ----------
    params : dict
        What ``get_params`` returned.
    arrays, values : dict
        What `split_state` returned.
    classifiers : dict, optional
        `estimators_` and `candidates_`; default machines.

    Returns
    -------
    BootstrapSVC or BootstrapClassifier
        Fitted.

    Raises
    ------
    TypeError, ValueError
        Something is missing, superfluous or of the wrong type or shape, or a parameter is
        invalid.
    """
    if classifiers is None:
        return _joined(params, arrays, values, None)
    own, of_machines = _told_apart(_MACHINES, arrays)
    values = dict(values)
    stored = _entries(_MACHINES, values.pop(_MACHINES, []), of_machines)
    machines = []
    for number, each in enumerate(stored):
        if each.keys() != {"params", "values"} or not all(map(_is_dict, each.values())):
            raise TypeError(f"{_MACHINES} are no parameters and values")
        machines.append(_joined(each["params"], of_machines[str(number)], each["values"], None))
    model = _joined(params, own, values, {**classifiers, _MACHINES: machines})
    check_classifiers(model)
    return model


def _joined(
    params: dict[str, Any],
    arrays: Mapping[str, np.ndarray],
    values: Mapping[str, Any],
    apart: Mapping[str, Any] | None,
) -> Ensemble:
    """A whole model; of classifiers with what is `apart`."""
    of: Any = "machines" if apart is None else "classifiers"
    if apart is None:
        params = params | {"device": _device_here(params["device"])}
    if _PAIRS not in values:
        return _drawn(_join(params, arrays, values, layout_of(False, of), apart))
    own, of_pairs = _told_apart(_PAIRS, arrays)
    model = _drawn(_join(params, own, values, layout_of(True, of), apart))
    codes, K = model.y_, len(model.classes_)
    # Before there are pairs: of very many classes they would not fit into memory.
    if len(values[_PAIRS]) != K * (K - 1) // 2:
        raise ValueError(f"there are {len(values[_PAIRS])} pairs of {K} classes")
    stored = _entries(_PAIRS, values[_PAIRS], of_pairs)
    model.pair_ensembles_ = []
    for number, (i, j) in enumerate(class_pairs(K)):
        of_pair = of_pairs[str(number)]
        rows = np.isin(codes, (i, j))
        for name, array in own.items():
            if (kind := _of_pair(name)) in ("same", "rows"):
                of_pair[name] = array if kind == "same" else array[rows]
        of_pair |= {"classes_": np.array([0, 1]), "y_": (codes[rows] == j).astype(np.int64)}
        shared = {name: value for name, value in values.items() if _of_pair(name) == "same"}
        others = shared | stored[number] | {"controlled_rates_": []}
        of_two, pair_params = layout_of(False, of), params | {"verbose": 0} | NO_CONTROL
        pair = _join(pair_params, of_pair, others, of_two, apart)
        pair.shared_draws_ = shared_draws(codes, model.sample_weight_, rows, model.groups_)
        model.pair_ensembles_.append(pair)
    if len({pair.n_replicates_ for pair in model.pair_ensembles_}) > 1:
        raise ValueError("the pairs differ in the number of replicates")
    return model


def _within(whole: str, number: int, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{whole}.{number}.{name}": array for name, array in arrays.items()}


def _told_apart(
    whole: str, arrays: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], defaultdict[str, dict[str, np.ndarray]]]:
    """Arrays of a model itself, and those of models in it by their numbers, in one pass."""
    own: dict[str, np.ndarray] = {}
    within: defaultdict[str, dict[str, np.ndarray]] = defaultdict(dict)
    for name, array in arrays.items():
        if name.startswith(f"{whole}."):
            number, _, part = name.removeprefix(f"{whole}.").partition(".")
            within[number][part] = array
        else:
            own[name] = array
    return own, within


def _entries(
    whole: str, stored: Any, within: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """What JSON says of each model in a model, whose arrays may be of no others."""
    if not isinstance(stored, list) or not all(map(_is_dict, stored)):
        raise TypeError(f"{whole} are no list of entries")
    if unknown := within.keys() - set(map(str, range(len(stored)))):
        names = (f"{whole}.{number}.{part}" for number in unknown for part in within[number])
        raise TypeError(f"arrays are unknown: {', '.join(sorted(names))}")
    return stored


def _device_here(device: Any) -> str:
    """Return the device a model was fitted for, or "auto" where this machine lacks it."""
    if not isinstance(device, str):
        raise TypeError("device is no text")
    try:
        resolve_device(device)
    except InputError:
        return "auto"
    return device


def _is_dict(found: Any) -> bool:
    return isinstance(found, dict)


def _drawn(svc: Ensemble) -> Ensemble:
    """The same, whose samples draw no more rows than there are."""
    shared = svc.shared_draws_
    if (svc.n_drawn_ or 0) > len(svc.y_ if shared is None else shared["classes"]):
        raise ValueError("n_drawn_ is more than there are rows")
    return svc


def _of_pair(name: str) -> str:
    """Whether an array or value of a pair is its own, as `Attribute.of_pair` says."""
    attribute = _OF_SEVERAL.get(name.partition(".")[0])
    return "own" if attribute is None else attribute.of_pair


def _split(model: Ensemble, layout: Layout) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    elsewhere = declared(of=None).keys() - layout.attributes.keys() | {_PAIRS, *layout.apart}
    arrays: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, found in vars(model).items():
        if not name.endswith("_") or name in elsewhere:
            continue
        if name in layout.parts:
            arrays |= {f"{name}.{part}": array for part, array in (found or {}).items()}
        elif found is not None:
            kept = arrays if name in layout.stored else values
            kept[layout.stored.get(name, name)] = found
    check_state(arrays, values | ({_PAIRS: []} if layout.several else {}), layout)
    try:
        check_parameters(model, arrays, values, layout)
    except ValueError as error:
        raise DataError(
            f"A parameter was set after fit, and {error}; set it back, or fit again."
        ) from error
    return arrays, values


def _join(
    params: dict[str, Any],
    arrays: Mapping[str, np.ndarray],
    values: Mapping[str, Any],
    layout: Layout,
    apart: Mapping[str, Any] | None,
) -> Ensemble:
    check_state(arrays, values, layout)
    model = (BootstrapSVC if apart is None else BootstrapClassifier)(**params)
    model._validate_params()
    check_parameters(model, arrays, values, layout)
    model.pair_ensembles_, model.shared_draws_ = [], None
    model.oob_class_scores_ = model.class_offsets_ = None
    for name, attribute in layout.attributes.items():
        found: Any = arrays.get(attribute.stored or name)
        if attribute.parts is not None:
            named = {part: f"{name}.{part}" for part in attribute.parts}
            found = {part: arrays[each] for part, each in named.items() if each in arrays}
            found = found or (None if attribute.absent == "None" else {})
        elif attribute.kind is not None:
            continue
        if found is not None or attribute.absent == "None":
            setattr(model, name, found)
    absent = {name: None for name in layout.values if name not in values}
    for name, found in {**values, **absent, **(apart or {})}.items():
        setattr(model, name, found)
    return model
