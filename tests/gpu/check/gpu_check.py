"""Running gpu/check, or a copy of it whose parts are replaced, and reading what it wrote."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CHECK = ROOT / "gpu" / "check"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
# A part that reports something and then does not end.
ENDLESS = """
import time
def run(record):
    record.measured("something", 1.0)
    time.sleep(600)
"""


def command(out: Path, *options: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "gpu.check",
        "--device",
        "cpu",
        "--tiny",
        "--out",
        str(out),
        *options,
    ]


def run(check: Path, out: Path, *options: str, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(out, *options),
        cwd=check.parents[1],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, **variables},
        timeout=500,
        check=False,
    )


def only(*parts: str) -> list[str]:
    return [word for part in parts for word in ("--only", part)]


def parts() -> list[dict]:
    """The plan, from its source: imported, its modules would be in the way of others."""
    tree = ast.parse((CHECK / "plan.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        {
            **dict(zip(("name", "code", "seconds", "least"), map(_value, call.args), strict=True)),
            "second": any(_value(keyword.value) for keyword in call.keywords),
        }
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "Part"
    ]


def _value(node: ast.expr) -> object:
    return ast.literal_eval(node)


def names(second: bool) -> list[str]:
    return [part["name"] for part in parts() if part["second"] == second]


def written(out: Path) -> dict:
    (path,) = out.glob("*.json")
    return json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)


def copied(folder: Path) -> Path:
    """A copy of the check whose parts can be replaced; it has no git history."""
    for name in ("check", "benchmarks"):
        shutil.copytree(
            ROOT / "gpu" / name,
            folder / "gpu" / name,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    return folder / "gpu" / "check"


def inside(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
    """Run a script that imports the check's modules."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "gpu")])
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "PYTHONPATH": path, **variables},
        cwd=ROOT,
        timeout=300,
        check=False,
    )
