"""docs/architecture.md says where things are: the order is the contracts', what it names exists."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TEXTS = [
    ROOT / "Makefile",
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("gpu/results/*.md"),
    *(ROOT / "docs" / "studies").rglob("*.*"),
    *(ROOT / "gpu").rglob("*.py"),
]


def contracts() -> list[list[str]]:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contracts = linter["importlinter"]["contracts"]
    return [each["layers"] for each in contracts if each["type"] == "layers"]


def test_the_order_is_that_of_the_contracts():
    (order,) = re.findall(r"<!-- order -->\n(.*?)<!-- end -->", PAGE, flags=re.DOTALL)
    tables = [
        [re.findall(r"`([\w.]+)`", row.split("|")[1]) for row in table.splitlines()[2:]]
        for table in order.strip().split("\n\n")
    ]
    assert tables == [[layer.split(" | ") for layer in layers] for layers in contracts()]


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_files_and_folders_that_are_named_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:[\w.]+/)+[\w.]*)`", text)
    assert len(named) >= 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_modules_that_commands_run_exist():
    commands = {
        name
        for path in TEXTS
        if path.suffix not in (".svg", ".pyc")
        for name in re.findall(
            r"-m ((?:gpu|docs|tests|bootprob)\.[\w.]*\w)", path.read_text("utf-8")
        )
    }
    assert len(commands) > 20
    for name in commands:
        path = ROOT.joinpath(*name.split("."))
        file = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
        assert "__main__" in file.name or runs(file), name


def runs(file: Path) -> bool:
    """Whether a module does something as a program."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return any(isinstance(each, ast.If) and "__main__" in ast.dump(each.test) for each in tree.body)
