"""What was promised, and whether the numbers measured keep it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["TARGETS", "Measured", "Target", "reached_its_tolerance", "runs_so_far"]

Results = dict[str, Any]

_DEFAULT = "default gap"
_KKT = "KKT tolerance 1e-3"


@dataclass(frozen=True)
class Measured:
    """A ratio, beside whom or what, and whether it is a lower bound only."""

    ratio: float
    beside: str
    at_least: bool = False


@dataclass(frozen=True)
class Target:
    """A promise, ``measure(results) ≥ required``; None stands for what was not measured."""

    promise: str
    required: float
    measure: Callable[[Results], Measured | None]

    def verdict(self, measured: Measured | None) -> str:
        """Met or not; a lower bound under the target leaves it open."""
        if measured is None:
            return "not measured"
        if measured.ratio >= self.required:
            return "met"
        return "open" if measured.at_least else "**not met**"


def reached_its_tolerance(peer: dict[str, Any]) -> bool:
    """Whether a peer solved what it was given: no model ran out of iterations."""
    return peer["models unconverged"] == 0


def runs_so_far(results: Results) -> list[dict[str, Any]]:
    """Where, when and what ratios were measured by a run and those before it, for the next one.

    A ratio of two programs is another on another processor, and in another hour.
    """
    if results["quick"]:
        return list(results.get("earlier runs", []))
    found = {target.promise: target.measure(results) for target in TARGETS}
    known = ("processor", "date", "commit", "load before")
    own = {key: results["environment"][key] for key in known}
    ratios = {name: round(each.ratio, 2) for name, each in found.items() if each is not None}
    return [*results.get("earlier runs", []), own | {"ratios": ratios}]


def _speed(job: str, setting: str, *keys: str) -> Callable[[Results], Measured | None]:
    """Seconds of the fastest of some peers / ours; without names, of all on the same problem."""

    def measure(results: Results) -> Measured | None:
        found = results["jobs"].get(job)
        if found is None or setting not in found["ours"] or not set(keys) <= set(found["peers"]):
            return None
        peers = [
            peer
            for key, peer in found["peers"].items()
            if (key in keys if keys else peer["same problem"]) and reached_its_tolerance(peer)
        ]
        if not peers:
            return None
        fastest = min(peers, key=lambda peer: peer["seconds"])
        return Measured(
            fastest["seconds"] / found["ours"][setting]["seconds"],
            fastest["name"],
            fastest["models stopped or not begun"] > 0,
        )

    return measure


def _scoring(dtype: str) -> Callable[[Results], Measured | None]:
    """Rows per second of votes / of the bare matrix product, for the most rows measured."""

    def measure(results: Results) -> Measured | None:
        found = [job for job in results.get("scoring", ()) if job["dtype"] == dtype]
        if not found:
            return None
        most = max(found, key=lambda job: job["rows"])
        return Measured(most["votes / bare product"], most["fastest product"])

    return measure


TARGETS = (
    Target(
        "Wisconsin, linear, against the fastest of three",
        3,
        _speed("wisconsin-linear", _DEFAULT, "svc", "svc_precomputed", "intelex"),
    ),
    Target("German credit, linear, against SVC", 100, _speed("german-linear", _DEFAULT, "svc")),
    Target(
        "German credit, linear, against rehline (an easier problem)",
        20,
        _speed("german-linear", _DEFAULT, "rehline"),
    ),
    Target(
        "Wisconsin, RBF, KKT tolerance 1e-3, against SVC on a precomputed Gram",
        4,
        _speed("wisconsin-rbf", _KKT, "svc_precomputed"),
    ),
    Target(
        "German credit, RBF, KKT tolerance 1e-3, against SVC on a precomputed Gram",
        4,
        _speed("german-rbf", _KKT, "svc_precomputed"),
    ),
    Target(
        "Wisconsin, RBF, one matrix for all samples, KKT tolerance 1e-3, against the same",
        8,
        _speed("wisconsin-shared", _KKT, "svc_precomputed"),
    ),
    Target(
        "German credit, RBF, one matrix for all samples, KKT tolerance 1e-3, against the same",
        8,
        _speed("german-shared", _KKT, "svc_precomputed"),
    ),
    Target(
        "Wisconsin, RBF, default gap, against the same",
        2,
        _speed("wisconsin-rbf", _DEFAULT, "svc_precomputed"),
    ),
    Target(
        "German credit, RBF, default gap, against the same",
        2,
        _speed("german-rbf", _DEFAULT, "svc_precomputed"),
    ),
    Target(
        "Gene-like, linear, one scale for all samples, against SVC",
        100,
        _speed("gene-global", _DEFAULT, "svc"),
    ),
    Target(
        "Gene-like, linear, standardised inside each sample, against SVC",
        100,
        _speed("gene-linear", _DEFAULT, "svc"),
    ),
    Target(
        "Adult-like, linear, against the best peer on the same problem",
        20,
        _speed("adult-linear", _DEFAULT),
    ),
    Target(
        "Adult-like, linear, against rehline (an easier problem)",
        20,
        _speed("adult-linear", _DEFAULT, "rehline"),
    ),
    Target("Scoring, float32, against the bare matrix product", 0.7, _scoring("float32")),
    Target("Scoring, float64, against the bare matrix product", 0.7, _scoring("float64")),
)
