"""scikit-learn's checks are asked of every estimator."""

import importlib
import importlib.util
import inspect
import pkgutil
from pathlib import Path

from sklearn.base import BaseEstimator

import bootprob

TESTS = Path(__file__).parent
CHECKED = ("parametrize_with_checks", "parametrize_with_configurations")


def estimators():
    """Public classes of the package that scikit-learn may be given."""
    found = set()
    for module in pkgutil.walk_packages(bootprob.__path__, "bootprob."):
        if module.name.endswith("__main__"):
            continue
        named = vars(importlib.import_module(module.name)).values()
        found |= {each for each in named if inspect.isclass(each)}
    return {
        each
        for each in found
        if issubclass(each, BaseEstimator)
        and each.__module__.startswith("bootprob.")
        and not each.__name__.startswith("_")
    }


def checked(monkeypatch):
    """Classes that tests hand to scikit-learn's checks, and those that they derive from."""
    found = set()
    for path in TESTS.rglob("test_*.py"):
        if path == Path(__file__) or not any(
            f"@{name}" in path.read_text(encoding="utf-8") for name in CHECKED
        ):
            continue
        monkeypatch.syspath_prepend(path.parent)  # as pytest does; they import each other
        spec = importlib.util.spec_from_file_location(f"looked_at_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for test in vars(module).values():
            for mark in getattr(test, "pytestmark", []):
                if mark.name == "parametrize" and mark.args[0] == "estimator, check":
                    for case in mark.args[1]:
                        values = getattr(case, "values", case)
                        found |= set(type(values[0]).__mro__)
    return found


def test_every_estimator_is_checked(monkeypatch):
    every = estimators()
    assert len(every) >= 12
    assert every - checked(monkeypatch) == set()
