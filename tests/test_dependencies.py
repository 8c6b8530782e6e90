"""Which package may know which, and that importing stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import bootprob_gpu

ENGINE = Path(bootprob_gpu.__file__).parent


def _imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("path", sorted(ENGINE.glob("*.py")), ids=lambda path: path.stem)
def test_the_engine_knows_nothing_of_the_statistics(path):
    assert _imports(path).isdisjoint({"bootprob", "sklearn", "pandas", "scipy", "matplotlib"})


# scikit-learn imports pandas, and pandas pyarrow, wherever they are installed.
@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        (
            "bootprob.estimator",
            ["cvxpy", "matplotlib", "numba", "fastapi", "dask", "rich", "jinja2"],
        ),
        ("bootprob.constrained.exact", ["cvxpy", "pyscipopt", "highspy", "gurobipy"]),
        ("bootprob.constrained", ["cvxpy", "pyscipopt", "highspy", "matplotlib", "numba"]),
        ("bootprob.dea", ["cvxpy", "highspy", "pandas", "matplotlib", "numba", "sklearn"]),
        ("bootprob.dea.study", ["torch", "sklearn", "pandas", "matplotlib", "cvxpy"]),
        ("bootprob.selection", ["cvxpy", "highspy", "pyscipopt", "matplotlib"]),
        ("bootprob.cli", ["torch", "sklearn", "pandas", "matplotlib", "numba", "cvxpy"]),
    ],
)
def test_importing_stays_light(module, heavy):
    code = f"import sys, {module}; print([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
