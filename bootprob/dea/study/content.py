"""Results as nested dictionaries, for JSON and for the report.

Values are numpy and Python numbers and text; `bootprob.report.plain.plain` makes JSON of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bootprob.dea.efficiencies.cross import CrossEfficiency
from bootprob.dea.efficiencies.intervals import EfficiencyInterval
from bootprob.dea.efficiencies.result import EfficiencyResult
from bootprob.dea.panel import Panel
from bootprob.dea.selection.game import SelectionGame, SupportedSelection
from bootprob.dea.selection.results import JointSelection, SelectionCurve, UnitSelection
from bootprob.dea.selection.summary import summarise_curve

__all__ = [
    "cross_content",
    "curve_content",
    "efficiency_content",
    "game_content",
    "panel_content",
    "selection_content",
    "supported_content",
    "unit_selection_content",
]


def panel_content(panel: Panel) -> dict[str, Any]:
    """Names and sizes of a panel, without its amounts."""
    return {
        "n_units": panel.n_units, "inputs": list(panel.input_names),
        "outputs": list(panel.output_names),
    }  # fmt: skip


def efficiency_content(
    result: EfficiencyResult, interval: EfficiencyInterval | None = None
) -> dict[str, Any]:
    """Efficiencies, with everything that supports them, and their interval if there is one."""
    panel, certificate = result.panel, result.certificate
    peers, efficient, fully = result.peers, result.efficient, result.fully_efficient
    worth_it = None if interval is None else interval.correction_pays
    sides = (
        ("inputs", panel.input_names, panel.inputs, result.input_slacks, result.input_targets,
         result.input_weights),
        ("outputs", panel.output_names, panel.outputs, result.output_slacks,
         result.output_targets, result.output_weights),
    )  # fmt: skip
    units = []
    for k, unit in enumerate(panel.units):
        entry: dict[str, Any] = {
            "unit": unit, "score": result.scores[k], "status": result.status[k],
            "efficient": efficient[k], "fully_efficient": fully[k], "interval": None,
            "peers": [{"unit": peer, "lambda": part} for peer, part in peers[unit].items()],
        }  # fmt: skip
        if interval is not None and worth_it is not None:
            entry["interval"] = {
                "lower": interval.lower[k], "upper": interval.upper[k],
                "corrected": interval.corrected[k], "bias": interval.bias[k],
                "standard_error": interval.standard_error[k], "correction_pays": worth_it[k],
            }  # fmt: skip
        for side, names, amounts, slacks, targets, weights in sides:
            entry[side] = [
                {
                    "name": name, "amount": amounts[k, c], "target": targets[k, c],
                    "slack": slacks[k, c], "weight": weights[k, c],
                    "virtual": weights[k, c] * amounts[k, c],
                }
                for c, name in enumerate(names)
            ]  # fmt: skip
        entry |= {
            "intercept": result.intercepts[k], "gap": certificate.gap[k],
            "primal_residual": certificate.primal_residual[k],
            "dual_residual": certificate.dual_residual[k],
        }  # fmt: skip
        units.append(entry)
    counted = {unit: sum(unit in found for found in peers.values()) for unit in panel.units}
    solved = result.scores[np.isfinite(result.scores)]
    return {
        "returns": result.returns, "orientation": result.orientation,
        "super_efficiency": result.super_efficiency,
        "n_efficient": efficient.sum(), "n_fully_efficient": fully.sum(),
        "mean": solved.mean() if len(solved) else None,
        "least": solved.min() if len(solved) else None,
        "largest": solved.max() if len(solved) else None,
        "intervals": None
        if interval is None
        else {
            "level": interval.level, "n_replicates": len(interval.replicates),
            "bandwidth": interval.bandwidth,
        },
        "units": units,
        "n_peer_of": [
            {"unit": unit, "count": count}
            for unit, count in sorted(counted.items(), key=lambda item: -item[1])
            if count
        ],
        "shares": {
            side: _shares(names, weights * amounts)
            for side, names, amounts, _, _, weights in sides
        },
    }  # fmt: skip


def _shares(names: tuple[str, ...], virtual: np.ndarray) -> list[dict[str, Any]]:
    """Mean share of each column in the weighted sum, and the part of the units without it.

    Units without a weighted sum, or without a score, are left out.
    """
    total = virtual.sum(axis=1)
    usable = np.isfinite(total) & (total > 0)
    shares = virtual[usable] / total[usable, None]
    if not len(shares):
        return [{"name": name, "share": None, "without": None} for name in names]
    return [
        {"name": name, "share": share, "without": without}
        for name, share, without in zip(
            names, shares.mean(axis=0), (shares <= 1e-9).mean(axis=0), strict=True
        )
    ]


def cross_content(crossed: CrossEfficiency) -> dict[str, Any]:
    """Cross-efficiencies, with the whole matrix."""
    own = np.diag(crossed.matrix)
    order = np.argsort(-crossed.scores, kind="stable")
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(1, len(order) + 1)
    return {
        "goal": crossed.goal,
        "units": [
            {"unit": unit, "own": own[k], "cross": crossed.scores[k],
             "maverick": crossed.maverick[k], "rank": rank[k]}
            for k, unit in enumerate(crossed.panel.units)
        ],
        "matrix": crossed.matrix,
    }  # fmt: skip


def selection_content(selection: JointSelection) -> dict[str, Any]:
    """A selection for all units."""
    return {
        "size": len(selection.features), "outputs": list(selection.outputs),
        "inputs": list(selection.inputs),
        "objective_name": selection.objective_name, "objective": selection.objective,
        "bound": selection.bound, "gap": selection.gap, "status": selection.status,
        "seconds": selection.seconds, "n_evaluated": selection.n_evaluated,
        "efficiencies": [
            {"unit": unit, "efficiency": value}
            for unit, value in zip(selection.units, selection.efficiencies, strict=True)
        ],
    }  # fmt: skip


def curve_content(curve: SelectionCurve) -> list[dict[str, Any]]:
    """For each p the selection, what it contributes, and the line of table 5.3."""
    lines = summarise_curve(curve).lines
    found = []
    for one, line, marginal, nested in zip(
        curve.selections, lines, curve.marginal, curve.nested, strict=True
    ):
        summary = {
            "min": line.minimum, "max": line.maximum, "mean": line.mean,
            "deviation": line.deviation, "q1": line.q1, "q2": line.q2, "q3": line.q3,
            "interquartile_range": line.interquartile_range,
            "lower_whisker": line.lower_whisker, "upper_whisker": line.upper_whisker,
            "outlying": list(line.outlying), "n_efficient": line.n_efficient,
        }  # fmt: skip
        found.append(
            selection_content(one)
            | {"contribution": marginal, "nested": nested, "distribution": summary}
        )
    return found


def unit_selection_content(selection: UnitSelection) -> dict[str, Any]:
    """A selection for one unit."""
    return {
        "unit": selection.unit, "efficiency": selection.objective, "bound": selection.bound,
        "gap": selection.gap, "status": selection.status, "seconds": selection.seconds,
        "outputs": [
            {"name": name, "weight": weight}
            for name, weight in zip(selection.outputs, selection.output_weights, strict=True)
        ],
        "inputs": [
            {"name": name, "weight": weight}
            for name, weight in zip(selection.inputs, selection.input_weights, strict=True)
        ],
    }  # fmt: skip


def game_content(game: SelectionGame, panel: Panel, *, with_gains: bool = True) -> dict[str, Any]:
    """Who would object to a joint selection: Π(k'), the strategies and, `with_gains`, Δ (K, K).

    `panel` is the game's.
    """
    counts, edges = game.histogram()
    gains, support = game.gains, game.support
    own = np.diag(game.cross)
    return {
        "size": len(game.joint), "joint": [panel.output_names[o] for o in game.joint],
        "n_proven": sum(game.proven), "most_support": support.max(),
        "n_majorities": (support > 50).sum(), "n_content": (np.diag(gains) <= 1e-7).sum(),
        "histogram": {"edges": edges, "counts": counts},
        "units": [
            {
                "unit": unit, "joint": game.efficiencies[k], "own": own[k],
                "gain": own[k] - game.efficiencies[k], "support": support[k],
                "proven": game.proven[k],
                "strategy": [panel.output_names[o] for o in game.strategies[k]],
            }
            for k, unit in enumerate(game.units)
        ],
        "gains": gains if with_gains else None,
    }  # fmt: skip


def supported_content(supported: SupportedSelection, share: float) -> dict[str, Any]:
    """A selection that a majority supports, of which `share` per cent was asked for."""
    return {
        "share": share, "outputs": list(supported.outputs), "objective": supported.objective,
        "support": supported.support, "enough": supported.enough, "status": supported.status,
    }  # fmt: skip
