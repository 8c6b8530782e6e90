"""The table of docs/calibration.md on TabArena's protocol, with numbers that TabArena published."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from docs.studies.calibration.classifiers import CLASSIFIERS, OURS
from gpu.benchmarks.common.study_results import load
from gpu.benchmarks.common.tables import NOT_MEASURED, markdown

__all__ = ["FILE", "PUBLISHED", "TABLES", "measured", "published"]

FILE = "tabarena.json"

TABLES = {"german": "credit-g", "pima": "diabetes"}
"""Names here and there."""

PUBLISHED = {
    "LightGBM, default": (0.2302991452991452, 0.18259705488621147),
    "LightGBM, tuned": (0.2222222222222222, 0.16465863453815266),
    "CatBoost, default": (0.20726495726495708, 0.1664658634538152),
    "CatBoost, tuned": (0.21619658119658125, 0.1623828647925033),
    "random forest, default": (0.22166666666666646, 0.1744645247657296),
    "explainable boosting, default": (0.2087179487179487, 0.15742971887550206),
    "linear model, default": (0.2336324786324786, 0.17771084337349397),
    "RealMLP, default": (0.2103846153846154, 0.14993306559571629),
    "TabPFN v2, default": (0.22782051282051285, 0.1514056224899598),
}
"""1 − AUC on credit-g and diabetes, on the first split of 30: github.com/autogluon/tabarena at
commit 29bdbf9c16e8, packages/tabflow_slurm/experiments/eval_output/example_tabarena_v0pt1_local/
subsets/lite/results_per_split.csv, column metric_error, fold 0."""


def measured(folder: Path) -> str:
    """Mean area over 30 splits and the standard deviation of the splits; "" if there is none."""
    found = load(folder / FILE).get("tables", {})
    lines = []
    for method in (m for name, each in CLASSIFIERS.items() for m in each.methods(name)):
        if any(method in areas for areas in found.values()):
            line = [f"`{method}`" if method in OURS else method]
            for name in TABLES:
                areas = found.get(name, {}).get(method)
                line.append(
                    NOT_MEASURED
                    if areas is None
                    else f"{np.mean(areas):.4f} ({np.std(areas, ddof=1):.3f})"
                )
            lines.append(line)
    return markdown(["", *TABLES.values()], lines) if lines else ""


def published() -> str:
    """What TabArena published of the first of its splits."""
    lines = ([name, *(f"{1 - error:.4f}" for error in both)] for name, both in PUBLISHED.items())
    return markdown(["", *TABLES.values()], lines)
