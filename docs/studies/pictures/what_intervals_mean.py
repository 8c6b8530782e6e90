"""The pictures of docs/what_intervals_mean.md, from models of tables whose truth is known.

python -m docs.studies.pictures.what_intervals_mean
"""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
from scipy.special import expit

from bootprob import BootstrapSVC
from bootprob.displays.style import COLORS, percent_axis
from bootprob.runtime.arrays import Floats
from gpu.benchmarks.common.places import DOCS

__all__ = ["SEED", "TRUTH", "main", "of_many_tables"]

SEED = 3
PICTURES = DOCS / "pictures"
_SLOPES = np.array([1.2, -0.8, 0.5])
PATIENT = np.array([[0.6, -0.4, 0.3]])
TRUTH = float(expit(PATIENT @ _SLOPES - 0.5)[0])


def _fitted(rng: np.random.Generator, rows: int) -> BootstrapSVC:
    X = rng.normal(size=(rows, 3))
    y = (rng.random(rows) < expit(X @ _SLOPES - 0.5)).astype(int)
    return BootstrapSVC(kernel="linear", n_bootstraps=100, random_state=0).fit(X, y)


def _interval(model: BootstrapSVC, X: Floats) -> Floats:
    return np.asarray(model.proba_interval(X))[:, 1]


def _draw(ax: Any, bounds: Floats, truth: Any, centre: Floats) -> None:
    height = np.arange(len(bounds))
    hit = (bounds[:, 0] <= truth) & (truth <= bounds[:, 1])
    for rows, colour in ((hit, COLORS["negative"]), (~hit, COLORS["positive"])):
        ax.hlines(height[rows], *bounds[rows].T, color=colour, linewidth=2)
        ax.plot(centre[rows], height[rows], "o", color=colour, markersize=4)
    ax.set(xlim=(0, 1), yticks=[], xlabel="probability")
    ax.xaxis.set_major_formatter(percent_axis(0))


def _save(figure: Any, name: str) -> None:
    figure.savefig(PICTURES / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})


def of_many_tables(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Intervals (40, 2) and probabilities (40,) of the patient, each of another table."""
    models = [_fitted(rng, 200) for _ in range(40)]
    bounds = np.concatenate([_interval(model, PATIENT) for model in models])
    return bounds, np.array([model.predict_proba(PATIENT)[0, 1] for model in models])


def _many_tables(plt: Any, rng: np.random.Generator) -> None:
    bounds, centre = of_many_tables(rng)
    figure, ax = plt.subplots(figsize=(6, 5))
    _draw(ax, bounds, TRUTH, centre)
    ax.axvline(TRUTH, color=COLORS["ink"], linewidth=1, linestyle="--")
    ax.set(ylabel="40 tables of 200 patients", title=f"one patient; in truth {TRUTH:.0%}")
    _save(figure, "interval_of_many_tables")


def _more_rows(plt: Any, rng: np.random.Generator) -> None:
    figure, ax = plt.subplots(figsize=(6, 2.4))
    models = [_fitted(rng, rows) for rows in (3200, 800, 200)]
    bounds = np.concatenate([_interval(model, PATIENT) for model in models])
    centre = np.array([model.predict_proba(PATIENT)[0, 1] for model in models])
    _draw(ax, bounds, TRUTH, centre)
    ax.axvline(TRUTH, color=COLORS["ink"], linewidth=1, linestyle="--")
    ax.set(yticks=range(3), yticklabels=["3,200 rows", "800 rows", "200 rows"], ylim=(-0.6, 2.6))
    _save(figure, "interval_of_more_rows")


def _two_doubts(plt: Any, rng: np.random.Generator) -> None:
    model = _fitted(rng, 800)
    usual, strange = np.array([[0.4, 0.0, 0.04]]), np.array([[3.2, 3.6, -0.9]])
    X = np.concatenate([strange, usual])
    figure, ax = plt.subplots(figsize=(6, 2))
    _draw(ax, _interval(model, X), expit(X @ _SLOPES - 0.5), model.predict_proba(X)[:, 1])
    ax.axvline(0.5, color=COLORS["faint"], linewidth=1)
    ax.set(yticks=[0, 1], yticklabels=["a patient unlike all", "a usual patient"], ylim=(-0.6, 1.6))
    _save(figure, "interval_two_doubts")


def main() -> None:
    """Draw all of them."""
    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "what intervals mean"
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(SEED)
    for draw in (_many_tables, _more_rows, _two_doubts):
        draw(plt, rng)


if __name__ == "__main__":
    main()
