"""The fitted attributes of a `BootstrapSVC` apart and together again, with every shape checked."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from bootprob.calibration import CALIBRATORS
from bootprob.estimator import BootstrapSVC

__all__ = ["join_state", "split_state"]


@dataclass(frozen=True)
class _Array:
    """What an array must look like.

    `shapes` are words, a letter for each axis: n rows, p columns, D columns that the models know
    (those of a feature map, else p), B replicates, R models, k rows kept for pictures, m or q
    steps of a calibrator, a alternatives; a digit is a length. A letter stands for the same
    number in all arrays.
    """

    kinds: str
    shapes: tuple[str, ...]
    absent: str = ""  # "None" or "missing": what the attribute is where a model has no such array


_ARRAYS = {
    "classes_": _Array("biufUO", ("2",)),
    "feature_names_in_": _Array("O", ("p",), absent="missing"),
    "C_": _Array("f", ("R",)),
    "gamma_": _Array("f", ("R",), absent="None"),
    "accuracy_": _Array("f", ("BR",)),
    "weights_": _Array("f", ("R",)),
    "vote_thresholds_": _Array("f", ("R",)),
    "control_gap_": _Array("f", ("BR",), absent="None"),
    "intercept_": _Array("f", ("BR",)),
    "coef_": _Array("f", ("BRD",), absent="None"),
    "dual_coef_": _Array("f", ("BRn",), absent="None"),
    "X_fit_": _Array("f", ("nD",), absent="None"),
    "center_": _Array("f", ("p",)),
    "scale_": _Array("f", ("p",)),
    "bootstrap_scale_": _Array("f", ("Bp", "p")),
    "score_scale_": _Array("f", ("B",)),
    "score_offset_": _Array("f", ("B",)),
    "oob_decision_function_": _Array("f", ("n",)),
    "oob_score_variance_": _Array("f", ("n",)),
    "oob_model_scores_": _Array("f", ("nR",)),
    "oob_vote_proba_": _Array("f", ("n2",)),
    "oob_proba_": _Array("f", ("n2",)),
    "oob_counts_": _Array("iu", ("n",)),
    "sigmoid_information_": _Array("f", ("22",)),
    "sigmoid_replicates_": _Array("f", ("B2",)),
    "oob_jackknife_variance_": _Array("f", ("n",)),
    "oob_model_variance_": _Array("f", ("n",)),
    "counts_gram_": _Array("f", ("BB",)),
    "sampled_rows_": _Array("iu", ("k",)),
    "sampled_scores_": _Array("f", ("kB",)),
    "y_": _Array("iu", ("n",)),
    "sample_weight_": _Array("f", ("n",)),
}
# In the order in which the engine's Certificate takes them.
_CERTIFICATES = {
    "primal": _Array("f", ("BR",)),
    "dual": _Array("f", ("BR",)),
    "gap": _Array("f", ("BR",)),
    "n_iter": _Array("iu", ("BR",)),
    "status": _Array("iu", ("BR",)),
}
_FEATURE_MAPS = {
    "nystroem": {
        "landmarks": _Array("f", ("Dp",), absent="missing"),
        "normalization": _Array("f", ("DD",), absent="missing"),
    },
    "random-features": {
        "frequencies": _Array("f", ("pD",), absent="missing"),
        "phases": _Array("f", ("D",), absent="missing"),
    },
}
_TRUE_LOGIT = {"values": _Array("f", ("6",)), "information": _Array("f", ("22",))}
_ALTERNATIVES = {
    "models": _Array("i", ("a",)),
    "slopes": _Array("f", ("a",)),
    "intercepts": _Array("f", ("a",)),
}
_CALIBRATOR_ARRAYS = {
    "coefficients": _Array("f", ("3",), absent="missing"),
    "sigmoid": _Array("f", ("2",), absent="missing"),
    "scores": _Array("f", ("m",), absent="missing"),
    "probabilities": _Array("f", ("m",), absent="missing"),
    "lower": _Array("f", ("q",), absent="missing"),
    "upper": _Array("f", ("q",), absent="missing"),
}
_PARTS = {
    "certificates_": _CERTIFICATES,
    "true_logit_": _TRUE_LOGIT,
    "alternatives_": _ALTERNATIVES,
    "calibrator_": _CALIBRATOR_ARRAYS,
    "feature_map_": _FEATURE_MAPS["nystroem"] | _FEATURE_MAPS["random-features"],
}
_LAYOUT = _ARRAYS | {
    f"{whole}.{name}": array for whole, parts in _PARTS.items() for name, array in parts.items()
}
_VALUES: dict[str, type] = {
    "n_features_in_": int,
    "sigmoid_": tuple,
    "score_threshold_": float,
    "controlled_rates_": list,
    "n_redrawn_": int,
    "entropy_": list,
    "device_": str,
    "versions_": dict,
    "fit_seconds_": float,
}
# None where they are missing.
_OPTIONAL_VALUES: dict[str, type] = {
    "feature_map_error_": dict,
    "calibration_": str,
    "lack_of_fit_": dict,
}


def split_state(svc: BootstrapSVC) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Take the fitted attributes apart.

    Parameters
    ----------
    svc : BootstrapSVC
        Fitted.

    Returns
    -------
    arrays : dict of str to ndarray
        Under the attributes' names; those of `certificates_` as ``certificates_.gap`` and so on,
        and those of `feature_map_` alike.
    values : dict
        All other fitted attributes.

    Raises
    ------
    TypeError
        An attribute is unknown here, so that a loaded model would lack it.
    """
    fitted = {name: value for name, value in vars(svc).items() if name.endswith("_")}
    parts = {whole: fitted.pop(whole) or {} for whole in _PARTS}
    arrays = {name: array for name, array in fitted.items() if name in _ARRAYS}
    values = {name: value for name, value in fitted.items() if name not in _ARRAYS}
    for whole, named in parts.items():
        arrays |= {f"{whole}.{name}": array for name, array in named.items()}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    for name in _OPTIONAL_VALUES:
        if name in values and values[name] is None:
            del values[name]
    _check(arrays, values)
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
    _check(arrays, values)
    svc = BootstrapSVC(**params)
    svc._validate_params()
    if (svc.kernel == "rbf") != ("gamma_" in arrays):
        raise ValueError("the kernel does not fit gamma_")
    for name, array in _ARRAYS.items():
        if name in arrays:
            setattr(svc, name, arrays[name])
        elif array.absent == "None":
            setattr(svc, name, None)
    for whole, parts in _PARTS.items():
        found = {name: arrays[f"{whole}.{name}"] for name in parts if f"{whole}.{name}" in arrays}
        setattr(svc, whole, found or (None if whole == "feature_map_" else {}))
    for name, value in (values | {name: values.get(name) for name in _OPTIONAL_VALUES}).items():
        setattr(svc, name, value)
    return svc


def _check(arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
    required = {name for name, array in _LAYOUT.items() if not array.absent}
    if different := (required - arrays.keys()) | (arrays.keys() - _LAYOUT.keys()):
        raise TypeError(f"arrays are missing or unknown: {', '.join(sorted(different))}")
    if different := (values.keys() - _OPTIONAL_VALUES.keys()) ^ _VALUES.keys():
        raise TypeError(f"attributes are missing or unknown: {', '.join(sorted(different))}")
    for name, kind in (_VALUES | _OPTIONAL_VALUES).items():
        if name in values and not isinstance(values[name], kind):
            raise TypeError(f"{name} is no {kind.__name__}")
    mapped = {name.partition(".")[2] for name in arrays if name.startswith("feature_map_.")}
    if mapped and mapped not in [set(parts) for parts in _FEATURE_MAPS.values()]:
        raise TypeError(f"{', '.join(sorted(mapped))} do not make a feature map")
    kind = values.get("calibration_", "sigmoid")
    stored = {name.partition(".")[2] for name in arrays if name.startswith("calibrator_.")}
    if kind not in CALIBRATORS:
        raise ValueError(f"{kind!r} is no calibration")
    if stored != _fields_of(kind):
        raise TypeError(f"{', '.join(sorted(stored)) or 'nothing'} does not make a {kind}")
    if bool(mapped) != ("feature_map_error_" in values):
        raise TypeError("feature_map_ and feature_map_error_ belong together")
    lengths = {"p": values["n_features_in_"]}
    if not mapped:
        lengths["D"] = lengths["p"]
    for name in sorted(arrays):
        _check_array(name, arrays[name], lengths)
    if ("coef_" in arrays) == ("dual_coef_" in arrays):
        raise ValueError("either coef_ or dual_coef_ must be there")
    if ("dual_coef_" in arrays) != ("X_fit_" in arrays):
        raise ValueError("dual_coef_ and X_fit_ belong together")


def _fields_of(kind: str) -> set[str]:
    """Arrays of `calibrator_`; the sigmoid has attributes of its own."""
    calibrator: Any = CALIBRATORS[kind]
    return set() if kind == "sigmoid" else {field.name for field in fields(calibrator)}


def _check_array(name: str, array: np.ndarray, lengths: dict[str, int]) -> None:
    """Compare with the layout; letters seen for the first time enter `lengths`."""
    wanted = _LAYOUT[name]
    if array.dtype.kind not in wanted.kinds:
        raise TypeError(f"{name} has the dtype {array.dtype}")
    for shape in wanted.shapes:
        if len(shape) == array.ndim:
            for axis, length in zip(shape, array.shape, strict=True):
                expected = int(axis) if axis.isdigit() else lengths.setdefault(axis, length)
                if length != expected:
                    raise ValueError(f"{name} has the shape {array.shape}; {axis} is {expected}")
            return
    raise ValueError(f"{name} has {array.ndim} axes")
