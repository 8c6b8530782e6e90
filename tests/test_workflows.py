"""Workflow and pre-commit files say what Makefile and constraints.txt say; versions agree."""

import os
import re
from pathlib import Path

import yaml
from packaging.version import Version

from bootprob import __version__

ROOT = Path(__file__).parents[1]
JOB = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
JOB = JOB["jobs"]["test"]


def recipe(target: str) -> list[str]:
    """Commands of a target, as they are called in an environment that is active."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in ("LOCKED", "TREE"):
        (value,) = re.findall(rf"^{name} := (.*)$", text, flags=re.MULTILINE)
        text = text.replace(f"$({name})", value)
    (lines,) = re.findall(rf"^{re.escape(target)}:.*\n((?:\t.*\n)+)", text, flags=re.MULTILINE)
    return [
        re.sub(r"\$\(BIN\)/|OMP_NUM_THREADS=1 ", "", line.strip()) for line in lines.splitlines()
    ]


def test_without_make_the_commands_are_those_of_make():
    make, without = (step["run"] for step in JOB["steps"] if "run" in step)
    assert make == ".ci/run"
    assert "make test\n" in (ROOT / make).read_text(encoding="utf-8")
    assert os.access(ROOT / make, os.X_OK)
    locked, tree, touch = recipe("$(TESTABLE)")
    assert touch == "touch $@"
    # That of Windows comes without CUDA; of what the extra is beyond it test.txt has all.
    torch = locked.replace("test.txt", "torch.txt")
    assert without.splitlines() == [torch, locked, tree, *recipe("lint"), *recipe("test")]
    assert JOB["env"]["OMP_NUM_THREADS"] == "1"


def test_every_system_and_python():
    matrix = JOB["strategy"]["matrix"]
    assert [name.split("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    least = re.search(
        r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text("utf-8")
    )
    assert matrix["python"][0] == least[1]


def test_hooks_have_the_version_of_the_constraints():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    (ruff,) = (each for each in hooks if each["repo"].endswith("ruff-pre-commit"))
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert f"ruff=={ruff['rev'].removeprefix('v')}" in constraints


def test_what_is_not_released_has_another_version_than_what_is():
    """Model files name it: by a protocol that a release of the same name cannot read."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, *older = re.findall(r"^## (\S+)", changes, flags=re.MULTILINE)
    version = Version(__version__)
    assert version.is_devrelease == (newest == "Unreleased")
    released = older[0] if version.is_devrelease else newest
    assert (version > Version(released)) == version.is_devrelease
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(cited["version"]) == released
