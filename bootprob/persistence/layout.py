"""What a model file holds of a fitted state, as `bootprob.ensemble.state` declares it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from bootprob.calibration import CALIBRATORS
from bootprob.ensemble.state import FEATURE_MAPS, Attribute, State, TwoClassState, declared
from bootprob.runtime.array_forms import ArrayForm

__all__ = ["SEVERAL_CLASSES", "TWO_CLASSES", "Layout", "names_in"]


class Layout:
    """What is stored of models of two or of several classes.

    Parameters
    ----------
    state : type of State
    """

    def __init__(self, state: type[State]) -> None:
        other = "two" if state is State else "several"
        self.attributes = {
            name: attribute
            for name, attribute in declared(state).items()
            if attribute.only != other
        }
        self._several = state is State

    @cached_property
    def arrays(self) -> dict[str, ArrayForm]:
        """Attributes that are arrays, by their names in files."""
        return {
            attribute.stored or name: (self._several and attribute.of_several) or attribute.form
            for name, attribute in self.attributes.items()
            if attribute.form is not None
        }

    @cached_property
    def parts(self) -> dict[str, dict[str, ArrayForm]]:
        """Attributes that are dicts of arrays."""
        return {
            name: attribute.parts
            for name, attribute in self.attributes.items()
            if attribute.parts is not None
        }

    @cached_property
    def flat(self) -> dict[str, ArrayForm]:
        """All arrays, those in dicts under names such as ``certificates_.gap``."""
        return self.arrays | {
            f"{whole}.{name}": form
            for whole, parts in self.parts.items()
            for name, form in parts.items()
        }

    @cached_property
    def values(self) -> dict[str, Attribute]:
        """All other attributes; those that are None are left out."""
        return {
            name: attribute
            for name, attribute in self.attributes.items()
            if attribute.kind is not None
        }

    def stored(self, name: str) -> str | None:
        """Name in files of an attribute that is an array; None for others."""
        attribute = self.attributes.get(name)
        if attribute is None or attribute.form is None:
            return None
        return attribute.stored or name

    def check(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        """Compare a state with it; a TypeError or ValueError says what is wrong."""
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
        forms = self.flat
        if (kind := values.get("calibration_")) in CALIBRATORS:  # whose names others have as well
            stored = CALIBRATORS[kind].stored
            forms = forms | {f"calibrator_.{name}": form for name, form in stored.items()}
        for name in sorted(arrays):
            forms[name].check(name, arrays[name], lengths)


TWO_CLASSES = Layout(TwoClassState)
SEVERAL_CLASSES = Layout(State)


def names_in(whole: str, arrays: Mapping[str, np.ndarray]) -> set[str]:
    """Names of the arrays of an attribute that is a dict of them."""
    return {name.partition(".")[2] for name in arrays if name.startswith(f"{whole}.")}
