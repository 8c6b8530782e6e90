"""Selection of outputs on a synthetic panel of the size of the thesis's, section 5.4.

    python -m docs.studies.dea.panel [--total 570] [--seconds S] [--again] [--only PART ...]

182 units, one input and 100 correlated outputs from a seed. Parts: "joint" (p = 1 to 10, mean
efficiency, at most --total seconds, and --seconds for the proof of each p if given), "others" (the
minimum and the 25th percentile, p = 2 and 3, --seconds each, default 60), "game" (p = 2) and
"document". Writes docs/results/dea_panel.json, job after job, and docs/dea_panel.md; what the file
has of the same panel and limits is not measured again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from bootprob.dea import (
    EfficiencyDistribution,
    JointSelection,
    Panel,
    output_correlations,
    play_selection_game,
    select_outputs,
    selection_curve,
)
from bootprob.runtime.arrays import Integers
from bootprob.runtime.files import replace_when_complete
from gpu.benchmarks.common import documents
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.study_results import load, save

__all__ = ["Settings", "correlations", "main", "synthetic_panel"]

FILE = "dea_panel.json"
PARTS = ("joint", "others", "game", "document")
OTHERS: tuple[tuple[str, float | None, int], ...] = (
    ("minimum", None, 2), ("minimum", None, 3), ("percentile", 25, 2), ("percentile", 25, 3)
)  # fmt: skip
PRINTED = (0.5555, 0.6553, 0.7118, 0.7487, 0.7812, 0.8082, 0.8290, 0.8462, 0.8610, 0.8732)
_CLUSTERS = 10
_SAME = 1e-9


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes
    ----------
    units, outputs : int
        K and M.
    most : int
        Largest p.
    seed : int
    total : float
        Seconds for all p together.
    seconds : float or None
        For the proof of one p at most; None for half of what is left.
    others : float
        Seconds for each of the other objectives.
    each_unit : float
        Seconds for the own selection of one unit, in the game.
    """

    units: int = 182
    outputs: int = 100
    most: int = 10
    seed: int = 0
    total: float = 570.0
    seconds: float | None = None
    others: float = 60.0
    each_unit: float = 10.0


def synthetic_panel(units: int, outputs: int, seed: int) -> tuple[Panel, Integers]:
    """Units that differ in size, in six factors and in inefficiency; outputs in ten clusters.

    Outputs are log-normal: the size of a unit (standard deviation 0.9 of the logarithm, the same
    for all outputs), its cluster's mix of the six factors (0.35) and noise of the output's own (0.1
    to 0.6). Three outputs in ten are zero for some units, up to 60 % of them. The input is size,
    times what a unit of average mix needs, times ``exp(|N(0, 0.38)|)``. Each output is divided by
    its range, as in the thesis.

    Parameters
    ----------
    units, outputs : int
        K and M.
    seed : int

    Returns
    -------
    panel : Panel
    clusters : ndarray of int, shape (M,)
        Of each output.
    """
    rng = np.random.default_rng(seed)
    size = rng.normal(0, 0.9, (units, 1))
    factors = rng.normal(size=(units, 6))
    mixes = rng.dirichlet(np.full(6, 0.35), _CLUSTERS)
    kinds = 0.35 * factors @ (mixes / np.linalg.norm(mixes, axis=1, keepdims=True)).T
    clusters = np.arange(outputs) * _CLUSTERS // outputs
    noise = rng.uniform(0.1, 0.6, outputs) * rng.normal(size=(units, outputs))
    Y = np.exp(size + kinds[:, clusters] + noise)
    absent = rng.uniform(0, 0.6, outputs) * (rng.random(outputs) < 0.3)
    Y[rng.random(Y.shape) < absent] = 0
    inefficiency = np.abs(rng.normal(0, 0.38, units))
    cost = np.exp(size[:, 0] + kinds.mean(axis=1) + inefficiency)
    return Panel.of(cost, Y / np.ptp(Y, axis=0)), clusters


def correlations(panel: Panel, clusters: Integers) -> dict[str, Any]:
    """What figure 5.1 would show: of all pairs of outputs, and of those in a cluster."""
    first, second = np.triu_indices(panel.n_outputs, 1)
    pairs = output_correlations(panel).matrix[first, second]
    together = clusters[first] == clusters[second]
    levels = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
    edges = np.linspace(0, 1, 11)
    return {
        "levels": levels,
        "all pairs": np.quantile(pairs, levels).tolist(),
        "pairs of a cluster": np.quantile(pairs[together], levels).tolist(),
        "pairs apart": np.quantile(pairs[~together], levels).tolist(),
        "edges": edges.tolist(),
        "below 0": int((pairs < 0).sum()),
        "counts": np.histogram(pairs, edges)[0].tolist(),
        "counts of a cluster": np.histogram(pairs[together], edges)[0].tolist(),
        "zeros": float((panel.outputs == 0).mean()),
    }


def distribution(selection: JointSelection) -> dict[str, float]:
    """The line of table 5.3."""
    line = EfficiencyDistribution.of(selection.efficiencies, selection.units, selection.outputs)
    return {
        "min": line.minimum, "max": line.maximum, "mean": line.mean, "st. dev.": line.deviation,
        "q1": line.q1, "q2": line.q2, "q3": line.q3, "q3-q1": line.interquartile_range,
        "efficient": line.n_efficient,
    }  # fmt: skip


def described(selection: JointSelection) -> dict[str, Any]:
    """What is kept of a selection."""
    return {
        "objective": selection.objective, "bound": selection.bound, "gap": selection.gap,
        "status": selection.status, "seconds": selection.seconds,
        "evaluated": selection.n_evaluated, "outputs": list(selection.features),
        "efficiencies": distribution(selection),
    }  # fmt: skip


def heuristics(panel: Panel, settings: Settings) -> dict[str, Any]:
    """The nested selections, and what exchanges make of them, for every p in one call."""
    curve = selection_curve(panel, settings.most, method="exchange", time_limit=settings.total)
    return {
        "nested": list(curve.nested),
        "exchange": curve.values.tolist(),
        "outputs": [list(one.features) for one in curve.selections],
        "seconds": curve.selections[-1].seconds,
    }


def proof(panel: Panel, p: int, results: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """Nested, exchanges and branch and bound for one p, and the best bound that is known."""
    begun, done = results["heuristics"], results.get("joint", {})
    left = settings.total - begun["seconds"] - sum(one["seconds"] for one in done.values())
    limit = left if p == settings.most else left / 2
    limit = max(0.1, min(limit, settings.seconds or limit))
    start = begun["outputs"][p - 1]
    selection = select_outputs(panel, p, start=start, time_limit=limit)
    found = described(selection) | {"limit": limit}
    by = [
        name for name in ("nested", "exchange")
        if begun[name][p - 1] >= selection.objective - _SAME
    ]  # fmt: skip
    chosen = output_correlations(panel, selection.features).of_chosen.matrix
    # E is a maximum of additive functions: p outputs attain at most p / q of what q attain.
    bounds = [one["bound"] * p / int(q) for q, one in done.items() if int(q) < p]
    found["bound"] = max(selection.objective, min([selection.bound, *bounds]))
    return found | {
        "own bound": selection.bound,
        "gap": found["bound"] / selection.objective - 1,
        "found by": (by or ["exact"])[0],
        "least correlation": float(chosen.min()),
        "marginal": found["objective"] - done[str(p - 1)]["objective"] if p > 1 else None,
    }


def game(panel: Panel, size: int, joint: list[int], settings: Settings) -> dict[str, Any]:
    """Figure 5.5 for one p: who prefers which own selection to the joint one."""
    began = time.perf_counter()
    played = play_selection_game(panel, size, joint=joint, time_limit=settings.each_unit)
    counts, edges = played.histogram()
    most = int(np.argmax(played.support))
    gains = np.diag(played.gains)
    return {
        "p": size,
        "joint": list(played.joint),
        "proven": sum(played.proven),
        "prefer their own, %": 100 * float((gains > 1e-7).mean()),
        "mean gain of those": float(gains[gains > 1e-7].mean()) if (gains > 1e-7).any() else 0.0,
        "different selections": len(set(played.strategies)),
        "most supported": list(played.strategies[most]),
        "most supported, unit": played.units[most],
        "most support, %": float(played.support[most]),
        "majorities": int((played.support > 50).sum()),
        "median support, %": float(np.median(played.support)),
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "seconds": time.perf_counter() - began,
    }


def render(results: dict[str, Any]) -> str:
    """Text of docs/dea_panel.md."""
    jobs = [results[name] for name in ("compilation", "heuristics", "game") if name in results] + [
        one for part in ("joint", "others") for one in results.get(part, {}).values()
    ]
    loads = [one["load before"] for one in jobs]
    return documents.render(
        "docs/studies/dea/panel.md.jinja",
        results=results,
        loads=loads,
        printed=PRINTED,
        others=OTHERS,
        key=_key,
    )


def _key(objective: str, percentile: float | None, p: int) -> str:
    return f"{objective} {p}" if percentile is None else f"{objective} {percentile:g} {p}"


def main(parts: list[str], settings: Settings, again: bool, docs: Path) -> None:
    """Measure what is not there yet, and write the document."""
    path = docs / "results" / FILE
    results = {} if again else load(path)
    if results.get("settings") != asdict(settings):
        results = {"settings": asdict(settings)}
    panel, clusters = synthetic_panel(settings.units, settings.outputs, settings.seed)
    results["correlations"] = correlations(panel, clusters)

    def measure(part: str, key: str | None, job: Callable[[], dict[str, Any]]) -> None:
        there = results if key is None else results.setdefault(part, {})
        if (key or part) in there:
            return
        busy, cpu = os.getloadavg()[0], time.process_time()
        found = job() | {"load before": round(busy, 2), "cpu seconds": time.process_time() - cpu}
        there[key or part] = found
        save(path, "python -m docs.studies.dea.panel", results)
        print(part, key or "", found, flush=True)

    measure("compilation", None, _compile)
    if "joint" in parts:
        measure("heuristics", None, lambda: heuristics(panel, settings))
        for p in range(1, settings.most + 1):
            measure("joint", str(p), lambda p=p: proof(panel, p, results, settings))
    if "others" in parts:
        for objective, percentile, p in OTHERS:
            measure(
                "others", _key(objective, percentile, p),
                lambda o=objective, q=percentile, p=p: described(
                    select_outputs(panel, p, objective=o, percentile=q, time_limit=settings.others)
                ),
            )  # fmt: skip
    if "game" in parts and "2" in results.get("joint", {}):
        joint = results["joint"]["2"]["outputs"]
        measure("game", None, lambda: game(panel, 2, joint, settings))
    if "document" in parts:
        with replace_when_complete(docs / "dea_panel.md") as file:
            file.write(render(load(path)).encode())


def _compile() -> dict[str, Any]:
    """Compile, or load, what the measurements use, on a small panel."""
    began = time.perf_counter()
    small, _ = synthetic_panel(12, 10, 1)
    for objective, options in (("mean", {}), ("minimum", {}), ("percentile", {"percentile": 25})):
        select_outputs(small, 3, objective=objective, **options)
    play_selection_game(small, 2)
    return {"seconds": time.perf_counter() - began}


if __name__ == "__main__":
    parser = docs_options(__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--total", type=float, default=570.0, help="seconds for p = 1 to 10")
    parser.add_argument("--seconds", type=float, help="for one p, or one other objective")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    given = parser.parse_args()
    main(
        given.only,
        Settings(
            seed=given.seed, total=given.total, seconds=given.seconds, others=given.seconds or 60.0
        ),
        given.again,
        given.docs,
    )  # fmt: skip
