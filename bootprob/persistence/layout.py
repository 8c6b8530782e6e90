"""What a model file holds of a fitted state, as `bootprob.ensemble.state` declares it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import numpy as np

from bootprob.calibration import CALIBRATORS
from bootprob.ensemble.declarations import Attribute
from bootprob.ensemble.state import FEATURE_MAPS, State, TwoClassState, declared
from bootprob.runtime.array_forms import ArrayForm, check_arrays

__all__ = ["Layout", "layout_of"]


class Layout:
    """What is stored of models of two or of several classes, of machines or of classifiers.

    Attributes
    ----------
    several : bool
        Whether of several classes.
    of : {"machines", "classifiers"}
    attributes : dict of str to Attribute
    stored : dict of str to str
        Names in files of attributes that are arrays, by those of the attributes.
    arrays : dict of str to ArrayForm
        By the former.
    parts : dict of str to dict
        Attributes that are dicts of arrays.
    flat : dict of str to ArrayForm
        All arrays, those in dicts under names such as ``certificates_.gap``.
    values : dict of str to Attribute
        All other attributes but those apart; those that are None are left out.
    apart : list of str
        Other models.
    """

    def __init__(self, several: bool, of: Literal["machines", "classifiers"]) -> None:
        self.several, self.of = several, of
        other = "two" if several else "several"
        self.attributes: dict[str, Attribute] = {}
        self.stored: dict[str, str] = {}
        self.arrays: dict[str, ArrayForm] = {}
        self.parts: dict[str, dict[str, ArrayForm]] = {}
        self.values: dict[str, Attribute] = {}
        self.apart: list[str] = []
        for name, attribute in declared(State if several else TwoClassState, of).items():
            if attribute.only == other:
                continue
            self.attributes[name] = attribute
            if attribute.apart:
                self.apart.append(name)
            elif attribute.form is not None:
                form = (several and attribute.of_several) or attribute.form
                self.stored[name] = attribute.stored or name
                self.arrays[self.stored[name]] = form
            elif attribute.parts is not None:
                self.parts[name] = attribute.parts
            else:
                self.values[name] = attribute
        self.flat = self.arrays | {
            f"{whole}.{part}": form
            for whole, parts in self.parts.items()
            for part, form in parts.items()
        }

    def check(
        self, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]
    ) -> defaultdict[str, set[str]]:
        """Compare a state with it; a TypeError or ValueError says what is wrong.

        Returns names of the arrays of each attribute that is a dict of them.
        """
        required = {name for name, form in self.flat.items() if not form.optional}
        if different := (required - arrays.keys()) | (arrays.keys() - self.flat.keys()):
            raise TypeError(f"arrays are missing or unknown: {', '.join(sorted(different))}")
        required = {name for name, attribute in self.values.items() if not attribute.absent}
        if different := (required - values.keys()) | (values.keys() - self.values.keys()):
            raise TypeError(f"attributes are missing or unknown: {', '.join(sorted(different))}")
        for name, attribute in self.values.items():
            assert attribute.kind is not None
            if name in values and not isinstance(values[name], attribute.kind):
                raise TypeError(f"{name} is no {attribute.kind.__name__}")
        parts: defaultdict[str, set[str]] = defaultdict(set)
        for whole, _, part in (name.partition(".") for name in arrays if "." in name):
            parts[whole].add(part)
        mapped = parts["feature_map_"]
        if mapped and mapped not in [set(each) for each in FEATURE_MAPS.values()]:
            raise TypeError(f"{', '.join(sorted(mapped))} do not make a feature map")
        if bool(mapped) != ("feature_map_error_" in values):
            raise TypeError("feature_map_ and feature_map_error_ belong together")
        lengths = {"p": values["n_features_in_"]}
        if type(lengths["p"]) is not int or lengths["p"] < 1:
            raise TypeError("n_features_in_ is no number of columns")
        if not mapped:
            lengths["D"] = lengths["p"]
        forms = self.flat
        if (kind := values.get("calibration_")) in CALIBRATORS:  # whose names others have as well
            stored = CALIBRATORS[kind].stored
            forms = forms | {f"calibrator_.{name}": form for name, form in stored.items()}
        check_arrays(forms, arrays, lengths)
        return parts


@cache
def layout_of(several: bool, of: Literal["machines", "classifiers"]) -> Layout:
    """That of a kind of models."""
    return Layout(several, of)
