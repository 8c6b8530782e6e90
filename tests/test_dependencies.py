"""That importing stays light, and that what is named can be reached.

Which folder may import which is checked by import-linter, in `make lint`.
"""

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import bootprob
import bootprob_gpu

ROOT = Path(__file__).parents[1]


# What each must not have loaded; in one process those stand that forbid what the others need.
# scikit-learn imports pandas, and pandas pyarrow, wherever they are installed.
LIGHT = {
    "without PyTorch": {
        "bootprob": ["numpy", "scipy", "torch", "sklearn", "pandas", "matplotlib", "fastapi"],
        "bootprob.cli.__main__": ["torch", "sklearn", "pandas", "matplotlib", "numba", "cvxpy"],
        "bootprob.dea": ["cvxpy", "highspy", "pandas", "matplotlib", "numba", "sklearn"],
        "bootprob.dea.study.study": ["torch", "sklearn", "pandas", "matplotlib", "cvxpy"],
    },
    "with PyTorch": {
        "bootprob.ensemble.estimator": [
            "cvxpy", "matplotlib", "numba", "fastapi", "dask", "rich", "jinja2", "scipy.signal",
        ],
        # What `bootprob predict` takes.
        "bootprob.persistence.save_load": ["cvxpy", "matplotlib", "numba", "fastapi", "jinja2"],
        "bootprob.tables.model": ["cvxpy", "matplotlib", "numba", "fastapi", "jinja2"],
        "bootprob.tables.files": ["cvxpy", "matplotlib", "numba", "fastapi", "jinja2"],
        "bootprob.constrained": ["cvxpy", "pyscipopt", "highspy", "matplotlib", "numba"],
        "bootprob.constrained.exact": ["cvxpy", "pyscipopt", "highspy", "gurobipy"],
        "bootprob.selection": ["cvxpy", "highspy", "pyscipopt", "matplotlib"],
    },
}  # fmt: skip


@pytest.mark.parametrize("modules", LIGHT.values(), ids=LIGHT)
def test_importing_stays_light(modules):
    code = (
        "import importlib, sys\n"
        f"for module, heavy in {modules!r}.items():\n"
        "    importlib.import_module(module)\n"
        "    print(module, [each for each in heavy if each in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == [f"{module} []" for module in modules]


@pytest.mark.parametrize("package", [bootprob, bootprob_gpu], ids=lambda each: each.__name__)
def test_nothing_hides_a_module_of_its_name(package):
    """Or what the module holds besides could not be reached under its own name."""
    names = [each.name for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    modules = {name: importlib.import_module(name) for name in names}
    for name in names:
        parent, _, last = name.rpartition(".")
        assert isinstance(getattr(modules.get(parent, package), last), ModuleType), name


def _named():
    texts = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("bootprob/**/*.py")]
    for path in [*texts, *ROOT.glob("gpu/**/*.py")]:
        text = path.read_text(encoding="utf-8")
        yield from re.findall(r"`(bootprob(?:_gpu)?(?:\.\w+)+)", text)


def test_what_is_named_can_be_reached():
    named = set(_named())
    assert len(named) > 50
    for name in named:
        found, path = importlib.import_module(name.split(".")[0]), name.split(".")[0]
        for part in name.split(".")[1:]:
            path = f"{path}.{part}"
            if isinstance(found, ModuleType) and not hasattr(found, part):
                importlib.import_module(path)
            found = getattr(found, part)
