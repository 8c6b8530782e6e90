"""Whether the state of a fitted ensemble makes sense, so that predictions cannot fail.

`bootprob.ensemble.state` declares types, shapes and ranges of single arrays; here is what belongs
together. A model from a file that passes both gives finite numbers for all rows within a million
standard deviations of its training rows, whoever wrote the file; but for what classifiers of others
say, which is theirs.

Checks say what numbers must be, and refuse what is not so: every comparison with NaN is false.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bootprob.calibration import CALIBRATORS
from bootprob.calibration.logistic import STEEPEST
from bootprob.ensemble.kernels import kernel_of, kernel_of_posterior
from bootprob.ensemble.state import FEATURE_MAPS, VIEWS
from bootprob.ensemble.uncertainty.composite_posterior import CompositePosterior
from bootprob.ensemble.uncertainty.curves import FAMILIES, N_COLUMNS
from bootprob.ensemble.uncertainty.curves import VIEWS as SEEN
from bootprob.ensemble.uncertainty.kernel_posterior import KernelPosterior
from bootprob.ensemble.uncertainty.steepness import RATES, THRESHOLDS
from bootprob.metrics.lack_of_fit import COLUMNS, SHARES
from bootprob.metrics.metrics import METRICS
from bootprob.persistence.layout import Layout
from bootprob.persistence.update_checks import check_updates
from bootprob.runtime.array_forms import LARGEST
from bootprob_gpu import Status
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.named import KERNELS
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["check_parameters", "check_state"]

Arrays = Mapping[str, NDArray[Any]]

_FARTHEST = 1e6  # standard deviations that new rows may be off
_LARGEST_GRAM = 1e15
_LARGEST_FLOAT32 = 1e25  # of coefficients that are brought to float32
_LEAST_RELIABLE = 0.1
_LARGEST_OFFSET = 1e6  # logits are within 35
_ROUNDING = 1e-9

_RATE: dict[str, type | tuple[type, ...]] = {
    "rate": str,
    "at_least": float,
    "confidence": (float, type(None)),
    "bound": str,
    "n_rows": int,
    "required_share": float,
    "out_of_bag": float,
}
_LATER: dict[str, type] = {
    "since": str,
    "until": str,
    "n_rows": int,
    "n_earlier": int,
    "metrics": dict,
    "out_of_bag": dict,
}
_OF_SEVERAL = {"accuracy", "log_loss", "brier_score"}
_LACK_OF_FIT = ("p_value", "statistic", "n_rows")
_PARAMETERS = {name: set(each.parameters) - {"gamma"} for name, each in KERNELS.items()}
_PARAMETERS[ViewKernels.name] = {"families", "views"}
_MAP_ERROR = ("relative", "root_mean_square", "largest", "n_rows")


def check_state(arrays: Arrays, values: Mapping[str, Any], layout: Layout) -> None:
    """Check a state, of two or of several classes.

    Raises
    ------
    TypeError, ValueError
        Says what is not as the layout has it, or does not make sense.
    """
    parts = layout.check(arrays, values)
    _check_settings(values)
    _check_columns(values.get("lack_of_fit_"), len(arrays["center_"]))
    _check_classes(arrays)
    names = _OF_SEVERAL if layout.several else METRICS.keys() - {"calibration_error"}
    _check_later(values.get("later_rows_"), names)
    _check_controlled_classes(values["controlled_rates_"], arrays)
    if layout.several:
        _check_groups(arrays)
        return
    kind = values.get("calibration_", "sigmoid")
    stored = parts["calibrator_"]
    if kind not in CALIBRATORS:
        raise ValueError(f"{kind!r} is no calibration")
    if stored != CALIBRATORS[kind].stored.keys():
        raise TypeError(f"{', '.join(sorted(stored)) or 'nothing'} does not make a {kind}")
    drawn = set(layout.parts["shared_draws_"])
    if parts["shared_draws_"] not in (set(), drawn, drawn - {"groups"}):
        raise TypeError("the arrays of shared_draws_ belong together")
    _check_groups(arrays)
    _check_two_classes(arrays, values)
    check_updates(arrays, values, parts)
    if layout.of == "machines":
        _check_machines(arrays, values, parts["feature_map_"])
    _check_kernel_posterior(arrays, values, parts["kernel_posterior_"])


def _check_machines(arrays: Arrays, values: Mapping[str, Any], mapped: set[str]) -> None:
    """Check support vector machines, and that their scores are of a size to reckon with."""
    if ("coef_" in arrays) == ("dual_coef_" in arrays):
        raise ValueError("either coef_ or dual_coef_ must be there")
    if ("dual_coef_" in arrays) != ("X_fit_" in arrays):
        raise ValueError("dual_coef_ and X_fit_ belong together")
    if mapped and "gamma_" not in arrays and "shares" not in mapped:
        raise ValueError("a feature map needs gamma_")
    if "gamma_" in arrays and not mapped and "coef_" in arrays:
        raise ValueError("gamma_ belongs to dual_coef_ or a feature map")
    _check_below("certificates_.status", arrays, len(Status))
    # Scores are divided by the one scale, rows by the other; products of rows by its square.
    least, scale = (min(arrays[name].min(), 1.0) for name in ("score_scale_", "bootstrap_scale_"))
    for name in ("coef_", "dual_coef_", "intercept_"):
        if name not in arrays:
            continue
        largest = np.abs(arrays[name]).max()
        if name == "coef_":
            largest /= scale
        elif name == "dual_coef_":
            kernel, row = _kernel(arrays, values), max(np.abs(arrays["X_fit_"]).max(), 1.0)
            if kernel.is_linear:
                largest *= row / scale**2
            elif kernel.has_features and not kernel.has_unit_diagonal:
                largest *= kernel.largest((row / arrays["bootstrap_scale_"].min()) ** 2)
        if not largest <= LARGEST * least:
            raise ValueError(f"{name} is too large for score_scale_ and bootstrap_scale_")


def _check_classes(arrays: Arrays) -> None:
    """Check labels, row weights and names of columns."""
    labels = arrays["classes_"].tolist()
    if not all(isinstance(label, bool | int | float | str) for label in labels):
        raise TypeError("classes_ are no plain values")
    if len(set(labels)) < len(labels) or any(label != label for label in labels):
        raise ValueError("classes_ are not distinct")
    weighed = arrays["y_"][arrays["sample_weight_"] > 0]
    if not np.array_equal(np.unique(arrays["y_"]), np.arange(len(labels))):
        raise ValueError("y_ does not number the classes")
    if len(np.unique(weighed)) < len(labels):
        raise ValueError("a class has no weight")
    names = arrays.get("feature_names_in_")
    if names is not None and not all(isinstance(name, str) for name in names):
        raise TypeError("feature_names_in_ are no texts")


def _check_controlled_classes(rates: list[dict[str, Any]], arrays: Arrays) -> None:
    """Check that rates of several classes name some, and come with what decides for them."""
    K, controlled = len(arrays["classes_"]), "class_offsets_" in arrays
    if controlled and not np.abs(arrays["class_offsets_"]).max() <= _LARGEST_OFFSET:
        raise ValueError("class_offsets_ are beyond all logits")
    for rate in rates:
        k = rate.get("class", 0 if K == 2 else None)
        if type(k) is not int or not 0 <= k < K or ("class" in rate) != controlled:
            raise ValueError("the class of controlled_rates_ is none")
    if controlled and not rates:
        raise ValueError("class_offsets_ and controlled_rates_ belong together")


def _check_groups(arrays: Arrays) -> None:
    """Check numbers of groups, of which there are no more than rows of the whole table."""
    whole = arrays.get("shared_draws_.groups")
    if whole is None:
        whole = arrays.get("groups_")
    elif "groups_" not in arrays:
        raise TypeError("groups_ and shared_draws_.groups belong together")
    if whole is None:
        return
    if whole.max() >= len(whole):
        raise ValueError("groups_ does not number groups of rows")
    if "shared_draws_.groups" in arrays:
        rows = arrays["shared_draws_.rows"]
        if rows.max() >= len(whole) or not np.array_equal(whole[rows], arrays["groups_"]):
            raise ValueError("groups_ are not those of shared_draws_")


def _check_later(later: dict[str, Any] | None, names: set[str]) -> None:
    """Check what is said of later rows: metrics with their limits, or why there are none."""
    if later is None:
        return
    if {name: type(each) for name, each in later.items() if name in _LATER} != _LATER:
        raise TypeError("later_rows_ lacks what is known of them, or has it of another type")
    if not later.keys() == {*_LATER, "n_blocks", "p_value", "why_not"}:
        raise TypeError("later_rows_ has other entries than are known")
    for name in ("metrics", "out_of_bag"):
        measured = later[name]
        limits = [number for each in measured.values() for number in _three(each)]
        if measured.keys() != (names if later["why_not"] is None else set()) or not all(
            isinstance(each, float) and abs(each) <= LARGEST for each in limits
        ):
            raise TypeError(f"{name} of later_rows_ are no metrics with their limits")
    blocks, p_value, reason = (later[name] for name in ("n_blocks", "p_value", "why_not"))
    told = isinstance(reason, str) and p_value is None
    if reason is None:
        told = isinstance(p_value, float) and 0 <= p_value <= 1
    if not (
        told
        and (blocks is None or (type(blocks) is int and blocks > 0))
        and later["n_rows"] >= 0
        and later["n_earlier"] >= 0
    ):
        raise ValueError("later_rows_ has numbers that are out of range")


def _three(each: Any) -> list[Any]:
    """A value and its limits; nothing that is a number for what is no list of three."""
    return each if isinstance(each, list) and len(each) == 3 else [None]


def _check_settings(values: Mapping[str, Any]) -> None:
    """Check attributes that are no arrays."""
    _check_numbers(
        "lack_of_fit_",
        values.get("lack_of_fit_"),
        _LACK_OF_FIT,
        ("informative_rows", *SHARES, *COLUMNS),
    )
    _check_numbers("feature_map_error_", values.get("feature_map_error_"), _MAP_ERROR)
    entropy, seconds, versions = values["entropy_"], values["fit_seconds_"], values["versions_"]
    if values.get("n_drawn_") is not None and not values["n_drawn_"] > 0:
        raise ValueError("n_drawn_ is no number of rows")
    if not 0 < len(entropy) <= 16 or not all(type(e) is int and 0 <= e < 2**64 for e in entropy):
        raise ValueError("entropy_ is no seed")
    if type(values["n_redrawn_"]) is not int or values["n_redrawn_"] < 0:
        raise ValueError("n_redrawn_ is no number of samples")
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError("fit_seconds_ is no time")
    if not all(isinstance(text, str) for pair in versions.items() for text in pair):
        raise TypeError("versions_ are no texts")
    if not all(isinstance(text, str) for text in values.get("remarks_") or ()):
        raise TypeError("remarks_ are no texts")
    for rate in values["controlled_rates_"]:
        if not isinstance(rate, dict) or rate.keys() - {"class"} != _RATE.keys():
            raise TypeError("controlled_rates_ are no rates")
        for name, kind in _RATE.items():
            number = rate[name]
            share = not isinstance(number, float) or -_ROUNDING <= number <= 1 + _ROUNDING
            if not (isinstance(number, kind) and share):
                raise TypeError(f"{name} of controlled_rates_ is {str(number)[:40]!r}")
        if rate["rate"] not in ("tpr", "tnr", "ppv", "npv", "decided"):
            raise ValueError(f"{rate['rate'][:40]!r} is no rate")


def _check_two_classes(arrays: Arrays, values: Mapping[str, Any]) -> None:
    """Check weights and calibration of two classes."""
    replicates, n = len(arrays["score_scale_"]), len(arrays["y_"])
    if not abs(arrays["weights_"].sum() - 1) <= 1e-6:
        raise ValueError("weights_ do not sum to 1")
    _check_below("oob_counts_", arrays, replicates + 1)
    _check_below("sampled_rows_", arrays, n)
    between, rates = arrays.get("undecided_between_"), values["controlled_rates_"]
    if (between is not None) != any(rate["rate"] == "decided" for rate in rates):
        raise ValueError("undecided_between_ and the rate decided belong together")
    if between is not None and between[0] > between[1]:
        raise ValueError("undecided_between_ is in falling order")
    if not np.abs(arrays["counts_gram_"]).max() <= _LARGEST_GRAM:
        raise ValueError("counts_gram_ is no matrix of products of counts")
    if not np.isnan(arrays["oob_decision_function_"][arrays["oob_counts_"] == 0]).all():
        raise ValueError("rows that were never out of bag have an oob_decision_function_")
    _check_draws(arrays, n)
    _check_scores(arrays, values)
    calibration = values.get("calibration_")
    if calibration is None and values.get("lack_of_fit_") is not None:
        raise ValueError("there is a test of lack of fit without a calibration")
    if calibration is not None:
        if values.get("lack_of_fit_") is None:
            raise ValueError("lack_of_fit_ is missing")
        _check_calibrator(calibration, arrays)
        chosen: Any = CALIBRATORS[calibration]
        if chosen.needs_votes and not arrays["oob_counts_"].any():
            raise ValueError("there are no out-of-bag votes")


def check_parameters(model: Any, arrays: Arrays, values: Mapping[str, Any], layout: Layout) -> None:
    """Check the parameters of an estimator beside its state; errors as for `check_state`."""
    kernel, are_machines = _kernel(arrays, values), layout.of == "machines"
    if are_machines and kernel.name not in (
        model.kernel,
        "linear" if model.kernel == "auto" else None,
    ):
        raise ValueError("the kernel does not fit gamma_ and kernel_")
    if model.calibration is not None and values.get("lack_of_fit_") is None:
        raise ValueError("the calibration does not fit lack_of_fit_")
    calibrated = not kernel.is_linear and values.get("calibration_") is not None
    may_lack = not kernel.has_features  # whose diagonal may vary
    lacks = calibrated != ("oob_kernel_logits_" in arrays) and not (calibrated and may_lack)
    if lacks and not layout.several:
        raise ValueError("the kernel does not fit kernel_posterior_")
    gamma = arrays.get("kernel_posterior_.gamma")
    if gamma is not None:
        landmarks = arrays.get("kernel_posterior_.landmarks")
        composite = "kernel_posterior_.family" in arrays
        other = not composite and ((gamma == 0) != (kernel.gamma is None)).any()
        if (
            other
            or composite != isinstance(kernel, ViewKernels)
            or kernel.has_features == (landmarks is None)
        ):
            raise ValueError("the kernel does not fit kernel_posterior_")
        if "kernel_posterior_.unit" in arrays and landmarks is not None:
            farthest = min(_FARTHEST, LARGEST ** (0.5 / kernel.power))
            of_landmarks = np.abs(landmarks).max()
            scale = arrays["bootstrap_scale_"].min() if are_machines else 1.0
            product = farthest / scale * of_landmarks
            largest = kernel.with_gamma(torch.from_numpy(gamma)).largest(product)
            if not largest <= LARGEST * arrays["kernel_posterior_.unit"].min():
                raise ValueError("kernel_posterior_ has a kernel whose values overflow")
    if are_machines and model.dtype == "float32" and not layout.several:
        largest = _LARGEST_FLOAT32 * min(arrays["score_scale_"].min(), 1.0)
        limits = dict.fromkeys(("coef_", "dual_coef_", "intercept_"), largest)
        limits["score_offset_"] = _LARGEST_FLOAT32  # is added to scores that are scaled already
        for name, limit in limits.items():
            if name in arrays and not np.abs(arrays[name]).max() <= limit:
                raise ValueError(f"{name} has numbers that are too large for float32")


def _kernel(arrays: Arrays, values: Mapping[str, Any]) -> KernelFunction:
    """The kernel that a state is of; of classifiers that of the posterior."""
    stored = values.get("kernel_")
    if stored is not None:
        name = stored.get("kernel")
        if name in ("linear", "rbf") or name not in _PARAMETERS:
            raise ValueError("kernel_ is of no kernel that has parameters")
        if stored.keys() - {"kernel"} != _PARAMETERS[name]:
            raise TypeError("kernel_ lacks parameters, or has unknown ones")
    views = {part: arrays[f"views_.{part}"] for part in VIEWS if f"views_.{part}" in arrays}
    if views and "bootstrap_scale_" not in arrays:
        return kernel_of_posterior(views)
    # Its own errors say of numbers what is wrong with them.
    names = {part: f"feature_map_.{part}" for part in FEATURE_MAPS["views"]}
    feature_map = {part: arrays[name] for part, name in names.items() if name in arrays}
    return kernel_of(arrays.get("gamma_"), stored, views, feature_map)


def _check_scores(arrays: Arrays, values: Mapping[str, Any]) -> None:
    """Check all that stands between aligned scores and the logits of intervals."""
    sigmoid, threshold = values["sigmoid_"], values["score_threshold_"]
    if len(sigmoid) != 2 or not all(isinstance(number, float) for number in sigmoid):
        raise TypeError("sigmoid_ is no slope and intercept")
    slope, intercept = sigmoid
    if not (0 <= slope <= STEEPEST and abs(intercept) <= STEEPEST):
        raise ValueError("sigmoid_ has numbers that are none of a sigmoid")
    added, share = values.get("posterior_slope_"), values.get("posterior_share_")
    if (added is None) != (share is None):
        raise TypeError("posterior_slope_ and posterior_share_ belong together")
    if added is not None and share is not None:
        composite = "kernel_posterior_.family" in arrays
        if not (0 < added <= STEEPEST and 0 < share < 1 and composite):
            raise ValueError("posterior_slope_ and posterior_share_ are none of a posterior's")
    if not abs(threshold) <= STEEPEST:
        raise ValueError("score_threshold_ is too large")
    if not np.abs(arrays["sigmoid_replicates_"]).max() <= STEEPEST:
        raise ValueError("sigmoid_replicates_ has numbers that are none of sigmoids")
    _check_information(arrays["sigmoid_information_"])
    reliability, spread, _, degrees_of_freedom = arrays["true_logit_"]
    if not (_LEAST_RELIABLE <= reliability <= 1 and spread >= 0 and degrees_of_freedom >= 1):
        raise ValueError("true_logit_ has numbers that are out of range")
    if not np.abs(arrays["true_logit_"]).max() <= STEEPEST:
        raise ValueError("true_logit_ has numbers that are too large")


def _check_information(information: NDArray[np.float64]) -> None:
    """Check the variance of the sigmoid's parameters, as `Sigmoid.logit_variance` takes it."""
    inverse = np.linalg.pinv(information)  # of denormal numbers it overflows
    least, most = np.linalg.eigvalsh(inverse)
    if not (
        np.allclose(information, information.T)
        and -_ROUNDING * most <= least <= most <= STEEPEST**2
        and np.isfinite(inverse).all()
    ):
        raise ValueError("sigmoid_information_ is no information on a sigmoid")


def _check_kernel_posterior(arrays: Arrays, values: Mapping[str, Any], parts: set[str]) -> None:
    """Check what intervals of curved kernels are made of, if it is there."""
    if not parts and "oob_kernel_logits_" not in arrays:
        return
    made: Any = CompositePosterior if "family" in parts else KernelPosterior
    known = {each.name: each.default is MISSING for each in fields(made)}
    if not (
        {name for name, needed in known.items() if needed} <= parts <= known.keys()
        and ("landmarks" in parts) != ("support" in parts)
        and "oob_kernel_logits_" in arrays
    ):
        raise TypeError("kernel_posterior_ and oob_kernel_logits_ are not complete")
    of = {part: arrays[f"kernel_posterior_.{part}"] for part in parts}
    if of["gamma"].ndim != (2 if made is CompositePosterior else 1):
        raise ValueError("kernel_posterior_.gamma has another shape than its kernels")
    if made is CompositePosterior:
        _check_composite(of, _kernel(arrays, values))
    elif of["coefficients"].shape[1] != 1 + len(of.get("landmarks", of.get("support", ()))):
        raise ValueError("kernel_posterior_.coefficients has another length than its landmarks")
    if "support" in of and not of["support"].max() < len(arrays["y_"]):
        raise ValueError("kernel_posterior_.support has rows that are none of the training rows")
    if not abs(of["weight"].sum() - 1) <= 1e-6:
        raise ValueError("kernel_posterior_.weight does not sum to 1")
    if not (arrays["oob_kernel_logits_"][..., 1] > 0).all():
        raise ValueError("oob_kernel_logits_ has standard deviations that are not positive")


def _check_composite(of: Arrays, kernel: KernelFunction) -> None:
    """Check what a composite posterior has besides, and that it says something of a row."""
    if not isinstance(kernel, ViewKernels):
        raise ValueError("kernel_posterior_ is of views, and the kernel has none")
    for name, names in (("family", FAMILIES), ("view", SEEN)):
        if not of[name].max() < len(names):
            raise ValueError(f"kernel_posterior_.{name} has numbers that name nothing")
    if not {SEEN[view] for view in of["view"].flat} <= set(kernel.of_columns.known):
        raise ValueError("kernel_posterior_.view has views that there are not")
    of_curves = of["deviation"][:, 2:]
    there = of["family"] > 0
    holes = (np.diff(there.astype(int), axis=1) > 0).any()
    if of_curves.shape != there.shape or (there != (of_curves > 0)).any() or holes:
        raise ValueError("kernel_posterior_ has curves without a kernel, or kernels without one")
    looked_at = of["columns_of_curve"]
    if not (looked_at.max() <= 1 and (looked_at.any(axis=2) | (of["family"] == 0)).all()):
        raise ValueError("kernel_posterior_.columns_of_curve does not say which columns those are")
    for name, (least, most) in N_COLUMNS.items():
        sizes = looked_at.sum(axis=2)[of["family"] == FAMILIES.index(name)]
        if not ((sizes >= least) & (sizes <= most)).all():
            raise ValueError(f"kernel_posterior_ has curves ({name}) of too few or many columns")
    for name in ("scored", "stepped", "steep"):
        if len(of.get(name, ())) and not of[name].max() < of["landmarks"].shape[1]:
            raise ValueError(f"kernel_posterior_.{name} has numbers that are of no columns")
    if "levels" in of and not (of["levels"].sum(axis=1) < 1).all():
        raise ValueError("kernel_posterior_.levels leaves no probabilities between them")
    if ("stepped" in of) != ("thresholds" in of):
        raise ValueError("kernel_posterior_.stepped and thresholds belong together")
    if len(of.keys() & {"steep", "rates", "shapes"}) not in (0, 3):
        raise ValueError("kernel_posterior_.steep, rates and shapes belong together")
    if "rates" in of and not (
        np.abs(of["rates"]).max() <= max(RATES) and of["shapes"].max() <= len(THRESHOLDS)
    ):
        raise ValueError("kernel_posterior_.rates and shapes are not what logits grow with")
    try:
        posterior = CompositePosterior(**of)
        found = posterior.moments(of["landmarks"][:1], kernel, torch.device("cpu"))
    except (RuntimeError, IndexError) as error:
        raise ValueError("kernel_posterior_ has arrays that do not fit together") from error
    if not np.isfinite(found).all():
        raise ValueError("kernel_posterior_ gives logits that are no numbers")


def _check_draws(arrays: Arrays, n: int) -> None:
    """Check what a pair of classes shares its draws with."""
    if "shared_draws_.rows" not in arrays:
        return
    classes, rows = arrays["shared_draws_.classes"], arrays["shared_draws_.rows"]
    if not classes.max() < len(classes):
        raise ValueError("shared_draws_.classes are no classes")
    if not (rows.max() < len(classes) and len(np.unique(rows)) == n):
        raise ValueError("shared_draws_.rows are no rows")
    if not arrays["shared_draws_.weight"].any():
        raise ValueError("shared_draws_.weight is 0")


def _check_calibrator(kind: str, arrays: Arrays) -> None:
    """Check the fields of a calibrator, which are there (`bootprob.persistence.state`)."""
    calibrator: Any = CALIBRATORS[kind]
    if calibrator.stored:
        try:
            calibrator(
                **{name: arrays[f"calibrator_.{name}"] for name in calibrator.stored}
            ).check()
        except ValueError as error:
            raise ValueError(f"calibrator_.{error}") from error


def _check_below(name: str, arrays: Arrays, limit: int) -> None:
    if arrays[name].size and not arrays[name].max() < limit:
        raise ValueError(f"{name} has {arrays[name].max()}, and there are {limit}")


def _check_numbers(
    name: str, found: Any, wanted: tuple[str, ...], allowed: tuple[str, ...] = ()
) -> None:
    if found is None:
        return
    if not set(wanted) <= found.keys() <= {*wanted, *allowed}:
        raise TypeError(f"{name} has other entries than {', '.join(wanted)}")
    if not all(type(each) in (int, float) and abs(each) <= LARGEST for each in found.values()):
        raise TypeError(f"{name} has entries that are no numbers")


def _check_columns(lack_of_fit: Mapping[str, float] | None, n_columns: int) -> None:
    """Check the columns in which the logit bends: two, three or none."""
    found = [lack_of_fit[name] for name in COLUMNS if lack_of_fit and name in lack_of_fit]
    if len(found) == 1 or not all(each in range(n_columns) for each in found):
        raise ValueError("lack_of_fit_ has columns that are not there")
