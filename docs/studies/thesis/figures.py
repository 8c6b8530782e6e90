"""Figures 3.1, 3.2, 3.3 and 3.6 of the thesis, drawn from data at hand.

    python -m docs.studies.thesis.figures FOLDER [--format svg|png] [--figures 3.1 ...]
        [--data german] [--bootstraps 500] [--seed 0]

Writes FOLDER/figure_3_1.svg and so on. The thesis draws 3.1 from adult and wisconsin (its paper
adds diabetes), 3.2 and 3.3 from churn, 3.6 from german. adult and churn are not at hand: 3.1 is of
wisconsin, pima and german, the others are of german or whatever `--data` names.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bootprob import BootstrapSVC
from bootprob.preparation.standardization import bootstrap_scale, center_and_scale
from bootprob.runtime.arrays import Bools, Floats
from bootprob_gpu import Problem, iter_fit
from gpu.benchmarks.common.datasets import LOADERS, at_hand

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "main", "scores_of_folds"]

FOLDS = (20, 100, 500)
BINS = 25  # rows of a dot in 3.1, at least
SHOWN = 20  # rows in 3.6


_POSITIVE, _NEGATIVE, _INK, _FAINT = "#c2500c", "#2a6fa8", "#1d2733", "#c9d0d7"


def figure_3_1(given: argparse.Namespace) -> Figure:
    """Platt's sigmoid (3.2) beside the empirical class probabilities of cross-validated scores.

    A dot is the share of the positives among rows with neighbouring scores of a linear SVM that
    did not see them, ten folds, standardised in each; its area is their number. The sigmoid is
    fitted to the same scores by maximum likelihood.
    """
    names = [name for name in ("wisconsin", "pima", "german") if at_hand(name)]
    figure = _figure(3.1 * len(names), 2.9)
    for axes, name in zip(np.atleast_1d(figure.subplots(1, len(names))), names, strict=True):
        X, positive = LOADERS[name]()
        score = cross_val_predict(
            make_pipeline(StandardScaler(), SVC(kernel="linear", C=0.5)),
            X,
            positive,
            cv=StratifiedKFold(10, shuffle=True, random_state=given.seed),
            method="decision_function",
        )
        sigmoid = LogisticRegression(C=1e6).fit(score[:, None], positive)
        line = np.linspace(score.min(), score.max(), 400)
        axes.plot(line, sigmoid.predict_proba(line[:, None])[:, 1], color=_INK, linewidth=1.4)
        for rows in np.array_split(np.argsort(score), max(1, len(score) // BINS)):
            axes.scatter(
                score[rows].mean(),
                positive[rows].mean(),
                s=len(rows) / 2,
                color=_POSITIVE,
                zorder=3,
            )
        title = {"pima": "pima (the paper's diabetes)"}.get(name, name)
        axes.set(title=title, xlabel="score f(x)", ylim=(-0.05, 1.05))
    figure.axes[0].set_ylabel("P(y = +1 | f)")
    return figure


def figure_3_2(given: argparse.Namespace) -> Figure:
    """Scores of one held-out row under the k machines of a k-fold cross-validation."""
    X, positive, row, C = _instance(given)
    scores = {
        k: scores_of_folds(X, positive, row, C, k, given.seed) for k in FOLDS if k <= len(X) - 1
    }
    return _histograms(given, {f"k = {k}": found for k, found in scores.items()})


def figure_3_3(given: argparse.Namespace) -> Figure:
    """Scores of the same row under machines of B bootstrap samples."""
    X, positive, row, C = _instance(given)
    kept = np.arange(len(X)) != row
    model = BootstrapSVC.paper(C=(C,), n_bootstraps=max(FOLDS), random_state=given.seed)
    model.fit(X[kept], positive[kept])
    scores = next(iter(model.bootstrap_scores(X[row : row + 1])))[0, 0]
    return _histograms(given, {f"B = {B}": scores[:B] for B in FOLDS})


def figure_3_6(given: argparse.Namespace) -> Figure:
    """95 % intervals of 20 held-out rows: scores (3.6), P(y = −1 | x) by (3.5), and calibrated.

    The two upper panels are the thesis's; the last is `kernel="linear"` on the same rows.
    """
    X, positive = LOADERS[given.data]()
    splitter = StratifiedKFold(10, shuffle=True, random_state=given.seed)
    training, held_out = next(splitter.split(X, positive))
    rng = np.random.default_rng(given.seed)
    rows = rng.permutation(held_out)[:SHOWN]
    options: dict[str, Any] = {"n_bootstraps": given.bootstraps, "random_state": given.seed}
    paper = BootstrapSVC.paper(**options).fit(X[training], positive[training])
    ours = BootstrapSVC(kernel="linear", **options).fit(X[training], positive[training])
    rows = rows[np.argsort(paper.decision_function(X[rows]))]
    figure = _figure(7.0, 7.4)
    top, middle, bottom = figure.subplots(3, 1, sharex=True)
    score, limits = paper.decision_function(X[rows]), paper.score_interval(X[rows], method="basic")
    largest = 1.1 * np.abs(limits).max()
    _intervals(top, score, limits, np.where(positive[rows], largest, -largest))
    top.axhline(0, color=_FAINT, linewidth=0.8, zorder=0)
    top.set_ylabel("score, basic bootstrap (3.6)")
    panels = ((middle, paper, "P(y = −1 | x), (3.4) and (3.5)"), (bottom, ours, "calibrated"))
    for axes, model, label in panels:
        probability = model.predict_proba(X[rows])[:, 0]
        limits = model.proba_interval(X[rows])[:, 0]
        _intervals(axes, probability, limits, (~positive[rows]).astype(float))
        axes.set(ylabel=label, ylim=(-0.07, 1.07))
    bottom.set(xlabel=f"{SHOWN} held-out rows of {given.data}, by score", xticks=[])
    top.set_title("95 % intervals (dark) and true classes (pale)")
    return figure


FIGURES: dict[str, Callable[[argparse.Namespace], Figure]] = {
    "3.1": figure_3_1,
    "3.2": figure_3_2,
    "3.3": figure_3_3,
    "3.6": figure_3_6,
}


def scores_of_folds(X: Floats, positive: Bools, row: int, C: float, k: int, seed: int) -> Floats:
    """Scores of one row under linear machines that each leave out one of k folds of the others.

    Parameters
    ----------
    X : ndarray, shape (n, p)
    positive : ndarray of bool, shape (n,)
    row : int
        Is in no machine's training rows.
    C : float
        In scikit-learn's convention.
    k : int
        Number of folds, at most n − 1; not stratified, since a class may have fewer rows.
    seed : int

    Returns
    -------
    ndarray, shape (k,)
    """
    others = np.random.default_rng(seed).permutation(np.delete(np.arange(len(X)), row))
    counts = np.ones((k, len(X)), dtype=np.uint8)
    counts[:, row] = 0
    for fold, left_out in enumerate(np.array_split(others, k)):
        counts[fold, left_out] = 0
    one = np.ones(len(X))
    center, scale = center_and_scale(X, one)
    rows = (X - center) / scale
    problem = Problem(
        rows,
        np.where(positive, 1.0, -1.0),
        counts,
        (C,),
        scale=bootstrap_scale(rows, counts, one),
    )
    return np.concatenate([block.train_scores[:, 0, row] for block in iter_fit(problem)])


def _instance(given: argparse.Namespace) -> tuple[Floats, Bools, int, float]:
    """Data, a row chosen at random, and the C with the best out-of-bag accuracy without it."""
    X, positive = LOADERS[given.data]()
    row = int(np.random.default_rng(given.seed).integers(len(X)))
    kept = np.arange(len(X)) != row
    model = BootstrapSVC.paper(n_bootstraps=min(100, given.bootstraps), random_state=given.seed)
    model.fit(X[kept], positive[kept])
    best = int(np.nanmean(model.accuracy_, axis=0).argmax())
    return X, positive, row, float(model.C_[best])


def _histograms(given: argparse.Namespace, scores: dict[str, Floats]) -> Figure:
    """One panel for each; the axis of the scores is the same for all, 0 included."""
    figure = _figure(3.1 * len(scores), 2.6)
    every = np.concatenate([*scores.values(), [0.0]])
    edges = np.linspace(every.min(), every.max(), 41)
    for axes, (title, found) in zip(figure.subplots(1, len(scores)), scores.items(), strict=True):
        axes.hist(found, bins=edges, color=_NEGATIVE)
        axes.axvline(0, color=_POSITIVE, linewidth=1.0)
        share, spread = (found > 0).mean(), found.std(ddof=1)
        axes.set(title=f"{title}: {share:.0%} positive, sd {spread:.3f}", xlabel="score")
    figure.axes[0].set_ylabel(f"machines, one row of {given.data}")
    return figure


def _intervals(axes: Axes, value: Floats, limits: Floats, truth: Floats) -> None:
    at = np.arange(len(value))
    axes.scatter(at, truth, s=26, color=_FAINT, zorder=1)
    axes.vlines(at, *limits.T, color=_NEGATIVE, linewidth=1.6, zorder=2)
    axes.scatter(at, value, s=14, color=_INK, zorder=3)


def _figure(width: float, height: float) -> Figure:
    """An empty figure without pyplot, so that no window system is asked for (Agg)."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def main(
    folder: Path,
    given: argparse.Namespace,
    numbers: list[str],
    kind: str = "svg",
) -> list[Path]:
    """Draw figures and write them; the folder is made where there is none.

    Parameters
    ----------
    folder : Path
    given : Namespace
        "data", "bootstraps" and "seed".
    numbers : list of str
        Keys of `FIGURES`.
    kind : {"svg", "png"}

    Returns
    -------
    list of Path
        The files.
    """
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in numbers:
        path = folder / f"figure_{number.replace('.', '_')}.{kind}"
        with mpl.rc_context({"svg.hashsalt": "bootprob", "font.size": 8, "axes.titlesize": 8}):
            # Without a date the same numbers make the same file.
            metadata = {"Date": None} if kind == "svg" else None
            FIGURES[number](given).savefig(path, dpi=150, metadata=metadata)
        print(f"wrote {path}", flush=True)
        paths.append(path)
    return paths


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--format", choices=["svg", "png"], default="svg")
    parser.add_argument("--figures", nargs="+", choices=FIGURES, default=list(FIGURES))
    parser.add_argument("--data", choices=[n for n in LOADERS if at_hand(n)], default="german")
    parser.add_argument("--bootstraps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    main(arguments.folder, arguments, arguments.figures, arguments.format)
