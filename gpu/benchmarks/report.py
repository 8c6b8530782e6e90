"""Write docs/benchmarks.md, and its figure, from what was measured; nothing is measured here.

    python -m gpu.benchmarks.report

Reads docs/results/benchmarks.json (of ``make bench``) and the newest file of gpu/results (of
``make gpu-check``), so a new result of either is shown without the other being run again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, ScalarFormatter

from gpu.benchmarks import report_tables
from gpu.benchmarks.common import documents
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.tables import markdown
from gpu.benchmarks.gpu_results import FOLDER, newest
from gpu.benchmarks.growth import slopes

__all__ = ["DOCS", "draw_growth", "main", "render"]

_COLOURS = {"linear": "#1f6feb", "rbf": "#d1495b"}
_LETTERS = {"n": "rows n", "p": "columns p", "B": "bootstrap samples B", "R": "values of C, R"}
_NAMES = {"linear": "linear", "rbf": "RBF"}


def main(docs: Path = DOCS, gpu_folder: Path = FOLDER) -> Path:
    """Render the document and its figure.

    Parameters
    ----------
    docs : Path
        Holds results/benchmarks.json; the document is written there.
    gpu_folder : Path
        Where results measured on GPUs are.

    Returns
    -------
    Path
        The document.
    """
    results = json.loads((docs / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    if results.get("growth"):
        draw_growth(results["growth"], docs / "results" / "growth.svg")
    path = docs / "benchmarks.md"
    path.write_text(render(results, newest(gpu_folder)), encoding="utf-8")
    return path


def render(results: dict[str, Any], gpu: dict[str, Any] | None) -> str:
    """The document.

    Parameters
    ----------
    results : dict
        Of `bench`.
    gpu : dict or None
        Of `gpu_results.newest`.
    """
    return documents.render(
        "gpu/benchmarks/benchmarks.md.jinja",
        results=results,
        peers=_notes(results),
        growth=_growth(results),
        gpu=gpu,
        tables=report_tables,
    )


def draw_growth(growth: dict[str, Any], path: Path) -> None:
    """Seconds against size on logarithmic axes, a panel for each of n, p, B and R; as SVG."""
    settings: dict[Any, Any] = {"svg.hashsalt": "growth", "svg.fonttype": "none", "font.size": 9}
    with mpl.rc_context(settings):
        figure = Figure(figsize=(8.6, 2.5), layout="constrained")
        panels = figure.subplots(1, len(_LETTERS), sharey=True)
        for panel, (letter, name) in zip(panels, _LETTERS.items(), strict=True):
            for kernel, measured in growth.items():
                sizes, seconds = measured[letter]["sizes"], measured[letter]["seconds"]
                style = {"color": _COLOURS[kernel], "label": _NAMES[kernel], "ms": 3, "lw": 1}
                panel.loglog(sizes, seconds, "o-", **style)
            panel.xaxis.set_major_locator(LogLocator(base=4))
            panel.xaxis.set_major_formatter(ScalarFormatter())
            panel.xaxis.minorticks_off()
            panel.set_xlabel(name)
            panel.grid(which="major", lw=0.4, alpha=0.5)
        panels[0].set_ylabel("seconds")
        panels[0].legend(frameon=False)
        figure.savefig(path, metadata={"Date": None})


def _growth(results: dict[str, Any]) -> dict[str, Any] | None:
    """Table of slopes, and the sizes about which each is varied."""
    measured = results.get("growth")
    if not measured:
        return None
    rows, bases = [], []
    for kernel, found in measured.items():
        both = [slopes(**found[letter]) for letter in _LETTERS]
        rows.append([_NAMES[kernel], *(f"{every:.2f} / {last:.2f}" for every, last in both)])
        sizes = ", ".join(f"{letter} = {size}" for letter, size in found["base"].items())
        bases.append(f"{sizes} ({_NAMES[kernel]})")
    return {"slopes": markdown(["", *_LETTERS], rows), "bases": "; ".join(bases)}


def _notes(results: dict[str, Any]) -> dict[str, str]:
    """What each peer that took part does differently, by its name."""
    peers = {key: peer for job in results["jobs"].values() for key, peer in job["peers"].items()}
    return {peers[key]["name"]: peers[key]["note"] for key in sorted(peers)}


if __name__ == "__main__":
    print(f"wrote {main(docs_options(__doc__).parse_args().docs)}")
