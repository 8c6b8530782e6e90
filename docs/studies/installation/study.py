"""Sizes of what is installed, time to import it, and who uses torch; writes docs/installation.md.

    python -m docs.studies.installation.study

Times are of the processor, in processes of their own, so that other work matters less.
"""

from __future__ import annotations

import re
import resource
import statistics
import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import distribution, requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from sklearn.datasets import load_breast_cancer

from bootprob import BootstrapSVC, save
from docs.studies.structure.way import followed
from gpu.benchmarks.common.documents import write
from gpu.benchmarks.common.environment import describe
from gpu.benchmarks.common.places import ROOT
from gpu.benchmarks.common.tables import figures, markdown

__all__ = ["closure", "of_torch", "seconds", "size"]

_TIMES = 5
_SHOWN = 12
_TORCH = re.compile(r"^\s*(?:import|from) torch\b", re.MULTILINE)


def closure(*names: str) -> set[str]:
    """Distributions and all that they need here, without extras."""
    found: set[str] = set()
    waiting = [canonicalize_name(name) for name in names]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += _asked_for(name)
    return found


def _asked_for(name: str) -> list[str]:
    found = map(Requirement, requires(name) or [])
    here = [each for each in found if each.marker is None or each.marker.evaluate({"extra": ""})]
    return [canonicalize_name(each.name) for each in here]


def size(name: str) -> int:
    """Bytes of the files that a distribution has installed."""
    files = (Path(str(file.locate())) for file in distribution(name).files or [])
    return sum(path.stat().st_size for path in files if path.is_file())


def seconds(*command: str) -> float:
    """Of the processor, the median of some runs after one that is not counted."""
    found = []
    for _ in range(1 + _TIMES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(found[1:])


def of_torch(files: set[str]) -> list[str]:
    """Those of the two packages that import it."""
    return [file for file in sorted(files) if _TORCH.search(_source(file))]


def _source(file: str) -> str:
    root = ROOT / "gpu" if file.startswith("bootprob_gpu") else ROOT
    return (root / file).read_text(encoding="utf-8")


def _sizes() -> dict[str, Any]:
    sizes = {name: size(name) for name in closure("bootprob") - {"bootprob"}}
    largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[:_SHOWN]
    rows = [[name, f"{sizes[name] / 1e6:,.0f}"] for name in largest]
    rest = sum(sizes.values()) - sum(sizes[name] for name in largest)
    rows.append([f"{len(sizes) - _SHOWN} others", f"{rest / 1e6:,.0f}"])
    ours = sum(path.stat().st_size for path in _ours())
    rows.append(["bootprob", f"{ours / 1e6:,.0f}"])
    pictures = set(sizes) - closure(*(set(_asked_for("bootprob")) - {"matplotlib"}))
    light = closure("onnxruntime")
    return {
        "sizes": markdown(["package", "MB"], rows),
        "all_mb": f"{(sum(sizes.values()) + ours) / 1e6:,.0f}",
        "pictures_mb": f"{sum(sizes[name] for name in pictures) / 1e6:,.0f}",
        "onnxruntime_mb": f"{sum(size(name) for name in light) / 1e6:,.0f}",
    }


def _ours() -> list[Path]:
    folders = (ROOT / "bootprob", ROOT / "gpu" / "bootprob_gpu")
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def _starts(folder: Path) -> str:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    table, model = folder / "rows.csv", folder / "a.model"
    X.assign(y=y).to_csv(table, index=False)
    few = ("--target", "y", "--kernel", "linear", "--n-bootstraps", "20", "-o", str(model))
    command = ("-W", "ignore", "-m", "bootprob.cli")
    subprocess.run(
        [sys.executable, *command, "fit", str(table), *few], check=True, capture_output=True
    )
    works = {
        "`import bootprob`": ("-c", "import bootprob"),
        "`bootprob --help`": (*command, "--help"),
        "`import sklearn.base`": ("-c", "import sklearn.base"),
        "`import torch`": ("-c", "import torch"),
        "`from bootprob import BootstrapSVC`": ("-c", "from bootprob import BootstrapSVC"),
        "`bootprob predict` of 569 rows": (
            *(*command, "predict", str(model), str(table), "-o", str(folder / "p.csv")),
        ),
    }
    rows = [[name, figures(seconds(*work), 2)] for name, work in works.items()]
    return markdown(["", "s"], rows)


def _needed(folder: Path) -> dict[str, Any]:
    X, y = (part[::4] for part in load_breast_cancer(return_X_y=True))
    settings: dict[str, Any] = {"n_bootstraps": 20, "random_state": 0, "n_jobs": 1}
    rows = []
    for name, kernel in (("linear", {"kernel": "linear"}), ("the default", {})):
        fitted = BootstrapSVC(**settings, **kernel).fit(X, y)  # compiled, imported
        save(fitted, folder / "again.model")
        with followed() as fitting:
            fitted.fit(X, y)
        with followed() as asking:
            fitted.summarize(X[:3])
        for what, way in (("fit", fitting), ("probability and interval", asking)):
            rows.append([f"{what}, {name}", str(len(way.files)), str(len(of_torch(way.files)))])
    everything = {
        str(path.relative_to(ROOT / "gpu" if "bootprob_gpu" in path.parts else ROOT))
        for path in _ours()
        if path.suffix == ".py"
    }
    rows.append(["there are", str(len(everything)), str(len(of_torch(everything)))])
    return {"needed": markdown(["", "files entered", "of which import torch"], rows)}


def main() -> None:
    """Measure, and write the page."""
    warnings.simplefilter("ignore")
    packages = ("torch", "scikit-learn", "scipy", "pandas", "numpy", "numba", "matplotlib")
    made_on = describe(packages)
    with tempfile.TemporaryDirectory() as folder:
        found = {"starts": _starts(Path(folder)), **_needed(Path(folder)), **_sizes()}
    write(
        ROOT / "docs" / "installation.md",
        "docs/studies/installation/page.md.jinja",
        made_on=made_on,
        times=_TIMES,
        **found,
    )


if __name__ == "__main__":
    main()
