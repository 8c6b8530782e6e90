"""Whatever is asked of an estimator that was not fitted, it says so, by the error for that."""

import importlib
import inspect
import pkgutil
from types import GeneratorType

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import bootprob
from bootprob.encoding.preprocessing import TablePreprocessor
from bootprob.ensemble.sensitivity import probability_sensitivity
from bootprob.selection import CostSensitiveSelector

X, Y = np.arange(12.0).reshape(6, 2), np.array([0, 1] * 3)
NEEDS_NO_FIT = {"fit", "fit_transform", "layer", "paper", "from_dict", "of_numbers"} | set(
    dir(BaseEstimator)
)


def _estimators():
    for module in pkgutil.walk_packages(bootprob.__path__, "bootprob."):
        for name, each in vars(importlib.import_module(module.name)).items():
            here = inspect.isclass(each) and each.__module__ == module.name
            if not here or inspect.isabstract(each):
                continue
            if issubclass(each, BaseEstimator) and name[0] != "_":
                yield each


def _asked():
    for estimator in _estimators():
        for name in dir(estimator):
            if name[0] == "_" or name in NEEDS_NO_FIT or name.startswith("set_"):
                continue
            member = inspect.getattr_static(estimator, name)
            if isinstance(member, property) or callable(getattr(estimator, name)):
                yield pytest.param(estimator, name, id=f"{estimator.__name__}.{name}")


def _unfitted(estimator):
    given = {
        "BootstrapClassifier": {"estimator": LogisticRegression()},
        "CostSensitiveClassifier": {"estimator": LogisticRegression()},
        "CostSensitiveSelector": {"rates": {"tpr": 0.5, "tnr": 0.5}},
    }
    return estimator(**given.get(estimator.__name__, {}))


def _ask(unfitted, name):
    """Get a property, or call a method with what it needs; of a generator the first value."""
    rows = pd.DataFrame(X, columns=["a", "b"]) if isinstance(unfitted, TablePreprocessor) else X
    said = getattr(unfitted, name)
    needed = [
        {"X": rows, "y": Y, "by": Y, "costs": [[0, 1], [2, 0]]}[argument]
        for argument, parameter in inspect.signature(said).parameters.items()
        if parameter.default is parameter.empty
    ]
    said = said(*needed)
    if isinstance(said, GeneratorType):
        next(said)


@pytest.mark.parametrize(("estimator", "name"), [*_asked()])
def test_every_method_says_so(estimator, name):
    with pytest.raises(NotFittedError):
        _ask(_unfitted(estimator), name)


def test_there_are_methods_to_ask():
    asked = {parameter.id for parameter in _asked()}
    assert {"BootstrapSVC.predict", "ConvexConstrainedSVC.predict", "ParetoSVC.coef_"} <= asked
    assert len({name.split(".")[0] for name in asked}) >= 13
    assert CostSensitiveSelector in set(_estimators())


def test_functions_of_estimators_say_so():
    with pytest.raises(NotFittedError):
        probability_sensitivity(bootprob.BootstrapSVC(kernel="linear"), X)
