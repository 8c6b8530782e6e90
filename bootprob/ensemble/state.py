"""What the state of a fitted `BootstrapSVC` is made of: names, types, shapes and ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bootprob.preparation.standardization import LARGEST

__all__ = ["ARRAYS", "SEVERAL_CLASSES", "TWO_CLASSES", "Layout", "names_in"]

_DTYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64)}
_MAY_BE_EMPTY = "km"
_RANGES = {
    "finite": (-LARGEST, LARGEST),
    "positive": (1 / LARGEST, LARGEST),
    "not negative": (0.0, LARGEST),
    "a share": (-1e-9, 1 + 1e-9),  # sums of weights round
}


@dataclass(frozen=True)
class Array:
    """What an array must look like.

    `shapes` are words, a letter for each axis: n rows, p columns, D columns that the models know
    (those of a feature map, else p), B replicates, R models, k rows kept for pictures, m or q
    steps of a calibrator, g values of γ and l landmarks of the kernel's posterior, L the landmarks
    and 1, K classes, N rows of a table that a pair of classes
    shares its draws with; a digit is a length. A letter stands for the same number in all arrays,
    which only for k and m may be 0.
    """

    kinds: str
    shapes: tuple[str, ...]
    numbers: str = "finite"  # or another of the ranges above; "or NaN", "or 0" after it; "any"
    absent: str = ""  # "None" or "missing": what the attribute is where a model has no such array


ARRAYS = {
    "classes_": Array("biufUO", ("2",)),
    "feature_names_in_": Array("O", ("p",), absent="missing"),
    "C_": Array("f", ("R",), "positive"),
    "gamma_": Array("f", ("R",), "not negative", absent="None"),
    "accuracy_": Array("f", ("BR",), "a share or NaN"),
    "weights_": Array("f", ("R",), "a share"),
    "vote_thresholds_": Array("f", ("R",)),
    "control_gap_": Array("f", ("BR",), "any", absent="None"),
    "intercept_": Array("f", ("BR",)),
    "coef_": Array("f", ("BRD",), absent="None"),
    "dual_coef_": Array("f", ("BRn",), absent="None"),
    "X_fit_": Array("f", ("nD",), absent="None"),
    "center_": Array("f", ("p",)),
    "scale_": Array("f", ("p",), "positive"),
    "bootstrap_scale_": Array("f", ("Bp", "p"), "positive"),
    "score_scale_": Array("f", ("B",), "positive"),
    "score_offset_": Array("f", ("B",)),
    "oob_decision_function_": Array("f", ("n",), "finite or NaN"),
    "oob_score_variance_": Array("f", ("n",), "not negative or NaN"),
    "oob_model_scores_": Array("f", ("nR",)),
    "oob_vote_proba_": Array("f", ("n2",), "a share or NaN"),
    "oob_proba_": Array("f", ("n2",), "a share or NaN"),
    "oob_counts_": Array("i", ("n",), "not negative"),
    "sigmoid_information_": Array("f", ("22",)),
    "sigmoid_replicates_": Array("f", ("B2",)),
    "oob_jackknife_variance_": Array("f", ("n",), "not negative or NaN"),
    "oob_kernel_logits_": Array("f", ("ng2",), absent="None"),
    "counts_gram_": Array("f", ("BB",)),
    "sampled_rows_": Array("i", ("k",), "not negative"),
    "sampled_scores_": Array("f", ("kB",), "finite or NaN"),
    "y_": Array("i", ("n",), "not negative"),
    "sample_weight_": Array("f", ("n",), "positive or 0"),
    "true_logit_": Array("f", ("4",)),
}
# In the order in which the engine's Certificate takes them.
_CERTIFICATES = {
    "primal": Array("f", ("BR",), "any"),
    "dual": Array("f", ("BR",), "any"),
    "gap": Array("f", ("BR",), "any"),
    "n_iter": Array("i", ("BR",), "not negative"),
    "status": Array("i", ("BR",), "not negative"),
}
FEATURE_MAPS = {
    "nystroem": {
        "landmarks": Array("f", ("Dp",), absent="missing"),
        "normalization": Array("f", ("DD",), absent="missing"),
    },
    "random-features": {
        "frequencies": Array("f", ("pD",), absent="missing"),
        "phases": Array("f", ("D",), absent="missing"),
    },
}
_KERNEL_POSTERIOR = {
    "landmarks": Array("f", ("lp",), absent="missing"),
    "gamma": Array("f", ("g",), "not negative", absent="missing"),
    "prior_variance": Array("f", ("g",), "not negative", absent="missing"),
    "weight": Array("f", ("g",), "a share", absent="missing"),
    "coefficients": Array("f", ("gL",), absent="missing"),
    "quadratic": Array("f", ("gLL",), absent="missing"),
}
_CALIBRATOR_ARRAYS = {
    "coefficients": Array("f", ("3",), absent="missing"),
    "sigmoid": Array("f", ("2",), absent="missing"),
    "scores": Array("f", ("m",), absent="missing"),
    "probabilities": Array("f", ("m",), "a share", absent="missing"),
    "lower": Array("f", ("q",), "a share", absent="missing"),
    "upper": Array("f", ("q",), "a share", absent="missing"),
}
_SHARED_DRAWS = {
    "classes": Array("i", ("N",), "not negative", absent="missing"),
    "weight": Array("f", ("N",), "positive or 0", absent="missing"),
    "rows": Array("i", ("n",), "not negative", absent="missing"),
}
PARTS = {
    "certificates_": _CERTIFICATES,
    "kernel_posterior_": _KERNEL_POSTERIOR,
    "calibrator_": _CALIBRATOR_ARRAYS,
    "feature_map_": FEATURE_MAPS["nystroem"] | FEATURE_MAPS["random-features"],
    "shared_draws_": _SHARED_DRAWS,
}
VALUES: dict[str, type] = {
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
OPTIONAL_VALUES: dict[str, type] = {
    "feature_map_error_": dict,
    "calibration_": str,
    "lack_of_fit_": dict,
}


# What the model of several classes has itself; most of it is its pairs' too.
_PREPARED = ("C_", "gamma_", "center_", "scale_", "bootstrap_scale_")
OF_SEVERAL = {
    "classes_": Array("biufUO", ("K",)),
    "oob_proba_": Array("f", ("nK",), "a share or NaN"),
    "oob_vote_proba_": Array("f", ("nK",), "a share or NaN"),
    "oob_decision_function_": Array("f", ("nK",), "finite or NaN"),
} | {
    name: ARRAYS[name]
    for name in (
        *_PREPARED,
        "feature_names_in_",
        "X_fit_",
        "oob_counts_",
        "y_",
        "sample_weight_",
    )
}
VALUES_OF_SEVERAL: dict[str, type] = {
    "n_features_in_": int,
    "controlled_rates_": list,
    "n_redrawn_": int,
    "entropy_": list,
    "device_": str,
    "versions_": dict,
    "fit_seconds_": float,
    "pair_ensembles_": list,
}


@dataclass(frozen=True)
class Layout:
    """What the state of a fitted model is made of.

    Attributes
    ----------
    arrays : dict of str to Array
        Attributes that are arrays.
    parts : dict of str to dict
        Attributes that are dicts of arrays.
    values, optional_values : dict of str to type
        All others; those that are None are left out.
    """

    arrays: dict[str, Array]
    parts: dict[str, dict[str, Array]]
    values: dict[str, type]
    optional_values: dict[str, type]

    def flat(self) -> dict[str, Array]:
        """All arrays, those in dicts under names such as ``certificates_.gap``."""
        return self.arrays | {
            f"{whole}.{name}": array
            for whole, parts in self.parts.items()
            for name, array in parts.items()
        }

    def check(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        """Compare a state with it; a TypeError or ValueError says what is wrong."""
        layout = self.flat()
        required = {name for name, array in layout.items() if not array.absent}
        if different := (required - arrays.keys()) | (arrays.keys() - layout.keys()):
            raise TypeError(f"arrays are missing or unknown: {', '.join(sorted(different))}")
        if different := (values.keys() - self.optional_values.keys()) ^ self.values.keys():
            raise TypeError(f"attributes are missing or unknown: {', '.join(sorted(different))}")
        for name, kind in (self.values | self.optional_values).items():
            if name in values and not isinstance(values[name], kind):
                raise TypeError(f"{name} is no {kind.__name__}")
        mapped = names_in("feature_map_", arrays)
        if mapped and mapped not in [set(parts) for parts in FEATURE_MAPS.values()]:
            raise TypeError(f"{', '.join(sorted(mapped))} do not make a feature map")
        if bool(mapped) != ("feature_map_error_" in values):
            raise TypeError("feature_map_ and feature_map_error_ belong together")
        lengths = {"p": values["n_features_in_"]}
        if type(lengths["p"]) is not int or lengths["p"] < 1:
            raise TypeError("n_features_in_ is no number of columns")
        if not mapped:
            lengths["D"] = lengths["p"]
        for name in sorted(arrays):
            _check_array(name, arrays[name], layout[name], lengths)


TWO_CLASSES = Layout(ARRAYS, PARTS, VALUES, OPTIONAL_VALUES)
SEVERAL_CLASSES = Layout(
    OF_SEVERAL,
    {"feature_map_": PARTS["feature_map_"]},
    VALUES_OF_SEVERAL,
    {"feature_map_error_": dict, "lack_of_fit_": dict},
)


def names_in(whole: str, arrays: Mapping[str, np.ndarray]) -> set[str]:
    """Names of the arrays of an attribute that is a dict of them."""
    return {name.partition(".")[2] for name in arrays if name.startswith(f"{whole}.")}


def _check_array(name: str, array: np.ndarray, wanted: Array, lengths: dict[str, int]) -> None:
    """Compare with the layout; letters seen for the first time enter `lengths`."""
    dtype = _DTYPES.get(wanted.kinds)
    if array.dtype.kind not in wanted.kinds or (dtype and array.dtype != dtype):
        raise TypeError(f"{name} has the dtype {array.dtype}")
    for shape in wanted.shapes:
        if len(shape) == array.ndim:
            for axis, length in zip(shape, array.shape, strict=True):
                expected = int(axis) if axis.isdigit() else lengths.setdefault(axis, length)
                if length != expected:
                    raise ValueError(f"{name} has the shape {array.shape}; {axis} is {expected}")
                if length == 0 and axis not in _MAY_BE_EMPTY:
                    raise ValueError(f"{name} is empty")
            break
    else:
        raise ValueError(f"{name} has {array.ndim} axes")
    if wanted.kinds in _DTYPES and wanted.numbers != "any":
        _check_numbers(name, array, wanted.numbers)


def _check_numbers(name: str, array: np.ndarray, wanted: str) -> None:
    kind, _, otherwise = wanted.partition(" or ")
    lowest, highest = _RANGES[kind]
    if otherwise:
        array = array[~np.isnan(array) if otherwise == "NaN" else array != 0]
    # NaN passes through min and max, and then no comparison holds.
    if array.size and not (lowest <= np.min(array) and np.max(array) <= highest):
        raise ValueError(f"{name} has numbers that are not {wanted}")
