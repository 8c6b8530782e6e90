"""What the state of a fitted `BootstrapSVC` is made of: names, types and shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["ARRAYS", "SEVERAL_CLASSES", "TWO_CLASSES", "Layout", "names_in"]


@dataclass(frozen=True)
class Array:
    """What an array must look like.

    `shapes` are words, a letter for each axis: n rows, p columns, D columns that the models know
    (those of a feature map, else p), B replicates, R models, k rows kept for pictures, m or q
    steps of a calibrator, a alternatives, K classes, N rows of a table that a pair of classes
    shares its draws with; a digit is a length. A letter stands for the same number in all arrays.
    """

    kinds: str
    shapes: tuple[str, ...]
    absent: str = ""  # "None" or "missing": what the attribute is where a model has no such array


ARRAYS = {
    "classes_": Array("biufUO", ("2",)),
    "feature_names_in_": Array("O", ("p",), absent="missing"),
    "C_": Array("f", ("R",)),
    "gamma_": Array("f", ("R",), absent="None"),
    "accuracy_": Array("f", ("BR",)),
    "weights_": Array("f", ("R",)),
    "vote_thresholds_": Array("f", ("R",)),
    "control_gap_": Array("f", ("BR",), absent="None"),
    "intercept_": Array("f", ("BR",)),
    "coef_": Array("f", ("BRD",), absent="None"),
    "dual_coef_": Array("f", ("BRn",), absent="None"),
    "X_fit_": Array("f", ("nD",), absent="None"),
    "center_": Array("f", ("p",)),
    "scale_": Array("f", ("p",)),
    "bootstrap_scale_": Array("f", ("Bp", "p")),
    "score_scale_": Array("f", ("B",)),
    "score_offset_": Array("f", ("B",)),
    "oob_decision_function_": Array("f", ("n",)),
    "oob_score_variance_": Array("f", ("n",)),
    "oob_model_scores_": Array("f", ("nR",)),
    "oob_vote_proba_": Array("f", ("n2",)),
    "oob_proba_": Array("f", ("n2",)),
    "oob_counts_": Array("iu", ("n",)),
    "sigmoid_information_": Array("f", ("22",)),
    "sigmoid_replicates_": Array("f", ("B2",)),
    "oob_jackknife_variance_": Array("f", ("n",)),
    "oob_model_variance_": Array("f", ("n",)),
    "counts_gram_": Array("f", ("BB",)),
    "sampled_rows_": Array("iu", ("k",)),
    "sampled_scores_": Array("f", ("kB",)),
    "y_": Array("iu", ("n",)),
    "sample_weight_": Array("f", ("n",)),
    "true_logit_": Array("f", ("4",)),
}
# In the order in which the engine's Certificate takes them.
_CERTIFICATES = {
    "primal": Array("f", ("BR",)),
    "dual": Array("f", ("BR",)),
    "gap": Array("f", ("BR",)),
    "n_iter": Array("iu", ("BR",)),
    "status": Array("iu", ("BR",)),
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
_ALTERNATIVES = {
    "models": Array("i", ("a",)),
    "slopes": Array("f", ("a",)),
    "intercepts": Array("f", ("a",)),
}
_CALIBRATOR_ARRAYS = {
    "coefficients": Array("f", ("3",), absent="missing"),
    "sigmoid": Array("f", ("2",), absent="missing"),
    "scores": Array("f", ("m",), absent="missing"),
    "probabilities": Array("f", ("m",), absent="missing"),
    "lower": Array("f", ("q",), absent="missing"),
    "upper": Array("f", ("q",), absent="missing"),
}
_SHARED_DRAWS = {
    "classes": Array("iu", ("N",), absent="missing"),
    "weight": Array("f", ("N",), absent="missing"),
    "rows": Array("iu", ("n",), absent="missing"),
}
PARTS = {
    "certificates_": _CERTIFICATES,
    "alternatives_": _ALTERNATIVES,
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
    "oob_proba_": Array("f", ("nK",)),
    "oob_vote_proba_": Array("f", ("nK",)),
    "oob_decision_function_": Array("f", ("nK",)),
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


def names_in(whole: str, arrays: dict[str, np.ndarray]) -> set[str]:
    """Names of the arrays of an attribute that is a dict of them."""
    return {name.partition(".")[2] for name in arrays if name.startswith(f"{whole}.")}


def _check_array(name: str, array: np.ndarray, wanted: Array, lengths: dict[str, int]) -> None:
    """Compare with the layout; letters seen for the first time enter `lengths`."""
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
