"""The declaration of the fitted state: models have what it says, and so does the documentation."""

import copy
import pickle
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from bootprob import BootstrapSVC, DataError
from bootprob.calibration.names import CALIBRATIONS
from bootprob.ensemble.documentation import filled
from bootprob.ensemble.state import (
    State,
    TwoClassState,
    declared,
    state_of,
    two_class_state,
)
from bootprob.ensemble.uncertainty.probability_intervals import OF_PROBABILITIES
from bootprob.intervals import OF_VOTES
from linear_models import linear

QUICK = {"n_bootstraps": 8, "C": [0.1, 1.0], "random_state": 0}
KINDS = {
    "linear": {},
    "rbf": {"kernel": "rbf", "gamma": 0.2},
    "feature map": {"kernel": "rbf", "feature_map": "nystroem", "n_components": 30},
    "isotonic": {"calibration": "isotonic"},
    "votes": {"calibration": None, "interval": "wald"},
    "control": {"control": "threshold", "rates": {"tpr": 0.7}},
}


def of(rng, kind, n_classes):
    X = rng.normal(size=(90, 3))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=90), [0.0, 0.8][: n_classes - 1])
    params = KINDS[kind]
    if kind == "control" and n_classes == 3:
        params = params | {"rates": {1: 0.5}}
    return linear(**QUICK | params).fit(X, y)


def section(name):
    """Entries of a section of the documentation: names, and what is said of them."""
    _, text = re.split(rf"\n    {name}\n    -+\n", BootstrapSVC.__doc__)
    entries = re.split(r"\n    (?=\S)", "\n" + re.split(r"\n\n    \w+\n    ---", text)[0])[1:]
    return {entry.split(" : ")[0]: entry.split(" : ", 1)[1] for entry in entries}


def fitted(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@pytest.mark.filterwarnings("ignore:The feature map's kernel is off")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_models_have_what_is_declared(rng, kind, n_classes):
    model = of(rng, kind, n_classes)
    for each in [model, *model.pair_ensembles_]:
        known = declared(State if each.pair_ensembles_ else TwoClassState)
        missing = {name for name, attribute in known.items() if attribute.absent == "missing"}
        assert fitted(each).keys() | missing == known.keys()
        for name, value in fitted(each).items():
            attribute = known[name]
            if value is None or (attribute.absent == "empty" and value == {}):
                assert attribute.absent, name
            elif attribute.kind is not None:
                assert isinstance(value, attribute.kind), name
            elif attribute.parts is not None:
                assert value.keys() <= attribute.parts.keys(), name
            else:
                assert isinstance(value, np.ndarray), name


def test_attributes_are_documented_as_they_are_declared():
    attributes = section("Attributes")
    derived = {
        name
        for name in dir(BootstrapSVC)
        if name.endswith("_")
        and name[0] != "_"
        and isinstance(getattr(BootstrapSVC, name), property)
    }
    assert attributes.keys() - derived == declared().keys()
    assert {"coef_", "intercept_", "in_J_", "decision_threshold_"} <= attributes.keys()
    for name, attribute in declared().items():
        assert " ".join(attributes[name].split()).endswith(attribute.doc), name
    assert attributes["accuracy_"].startswith("ndarray, shape (B, R)\n        Out-of-bag accuracy")
    assert attributes["X_fit_"].startswith("ndarray, shape (n, D) or None\n")
    assert attributes["bootstrap_scale_"].startswith("ndarray, shape (B, p) or (p,)\n")
    assert attributes["oob_proba_"].startswith(
        "ndarray, shape (n, 2), or (n, K) of several classes"
    )
    assert attributes["oob_counts_"].startswith("ndarray of int, shape (n,)\n")


def test_parameters_are_all_documented():
    documented_ones = {each for names in section("Parameters") for each in names.split(", ")}
    assert documented_ones == BootstrapSVC(kernel="linear").get_params().keys()


def test_documentation_is_as_wide_as_code():
    assert max(map(len, BootstrapSVC.__doc__.splitlines())) <= 100
    assert (
        filled("x\n  (here)\ny", "(here)", ["a : int\nOf ``b c``."])
        == "x\n  a : int\n      Of ``b c``.\ny"
    )


def test_calibrations_and_intervals_are_listed():
    parameters = section("Parameters")
    for name in CALIBRATIONS:
        assert f'\n        - "{name}": ' in parameters["calibration"]
    for name in OF_PROBABILITIES + OF_VOTES:
        assert f'\n            - "{name}": ' in BootstrapSVC.proba_interval.__doc__


@pytest.mark.parametrize("n_classes", [2, 3])
def test_states_are_read_of_models(rng, n_classes):
    model = of(rng, "linear", n_classes)
    state = state_of(model)
    np.testing.assert_array_equal(state.bootstrap_counts(), model.bootstrap_counts())
    assert state.n_features_in_ == 3
    assert state.feature_names_in_ is None
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert vars(state_of(again)).keys() == vars(state).keys()
        assert not hasattr(again, "feature_names_in_")
    with pytest.raises(NotFittedError, match="BootstrapSVC"):
        state_of(BootstrapSVC(kernel="linear"))
    if n_classes == 2:
        assert two_class_state(model, "hats").accuracy_ is model.accuracy_
    else:
        with pytest.raises(DataError, match="has 3 classes, and hats are of two; ask one of pair"):
            two_class_state(model, "hats")
