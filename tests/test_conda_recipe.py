"""The conda recipe says what pyproject.toml says, and rattler-build can read it."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import bootprob

rattler_build = pytest.importorskip("rattler_build")

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
CALLED = {"torch": "pytorch", "matplotlib": "matplotlib-base"}  # by conda-forge


@pytest.fixture(scope="module")
def recipe():
    (variant,) = rattler_build.Stage0Recipe.from_file(ROOT / "conda/recipe/recipe.yaml").render()
    return variant.recipe.to_dict()


def as_conda_says(lines):
    found = (Requirement(line) for line in lines)
    return {f"{CALLED.get(each.name, each.name)} {each.specifier}" for each in found}


def test_it_is_this_package(recipe):
    assert recipe["package"] == {"name": PROJECT["name"], "version": bootprob.__version__}
    about = recipe["about"]
    assert about["summary"] == PROJECT["description"]
    assert (about["license"], about["license_file"]) == (
        PROJECT["license"], PROJECT["license-files"],
    )  # fmt: skip
    (source,) = recipe["source"]
    assert (ROOT / "conda/recipe" / source["path"]).resolve() == ROOT
    assert recipe["build"]["noarch"] == "python"  # no compiler takes part
    scripts = [f"{name} = {function}" for name, function in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts


def test_it_needs_what_the_project_needs(recipe):
    least = re.fullmatch(r">=([\d.]+)", PROJECT["requires-python"])[1]
    python, *run = recipe["requirements"]["run"]
    assert python == f"python >={least}"
    assert len(run) == len(set(run)) >= 16
    assert set(run) == as_conda_says(PROJECT["dependencies"])
    needed = as_conda_says(PYPROJECT["build-system"]["requires"])
    assert set(recipe["requirements"]["host"]) == {f"python {least}.*", "pip", *needed}


def test_what_it_tries_is_there(recipe):
    python, command = recipe["tests"]
    assert len(python["python"]["imports"]) >= 3
    for name in python["python"]["imports"]:
        importlib.import_module(name)
    assert command["script"].split()[0] in PROJECT["scripts"]
