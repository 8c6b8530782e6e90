"""Tables of docs/benchmarks.md."""

from __future__ import annotations

from typing import Any

from gpu.benchmarks.common.tables import NONE, figures, markdown
from gpu.benchmarks.targets import TARGETS, reached_its_tolerance

__all__ = ["gpu_times", "memory", "scoring", "targets", "training"]

_DEFAULT = "default gap"
_KKT = "KKT tolerance 1e-3"


def targets(results: dict[str, Any]) -> str:
    """What was promised beside what was measured."""
    rows = []
    for target in TARGETS:
        found = target.measure(results)
        ratio = NONE if found is None else _at_least(found.at_least) + figures(found.ratio)
        before = [
            run["ratios"][target.promise]
            for run in results.get("earlier runs", [])
            if target.promise in run["ratios"]
        ]
        rows.append(
            [
                target.promise,
                figures(target.required, 2),
                ratio,
                NONE if found is None else found.beside,
                _spread(before),
                target.verdict(found),
            ]
        )
    return markdown(["target", "required", "measured", "beside", "earlier runs", ""], rows)


def _spread(ratios: list[float]) -> str:
    if not ratios:
        return NONE
    ends = dict.fromkeys(figures(each) for each in (min(ratios), max(ratios)))
    return f"{' – '.join(ends)} ({len(ratios)})"


def training(job: dict[str, Any]) -> str:
    """Ours and the peers on one job, those on the same problem first, the fastest first."""
    ours, models = job["ours"], job["ours"]["models"]
    settings = [setting for setting in (_DEFAULT, _KKT) if setting in ours]
    short = {_DEFAULT: "ratio", _KKT: "ratio, KKT 1e-3"}

    def row(name: str, found: dict[str, Any], gap: str, solved: str, bound: str = "") -> list[str]:
        error = found["standard error"]
        return [
            name,
            bound
            + figures(found["seconds"])
            + ("" if error is None else f" ± {figures(error, 1)}"),
            *(bound + figures(found["seconds"] / ours[each]["seconds"]) for each in settings),
            gap,
            solved,
        ]

    rows = []
    for setting in settings:
        found = ours[setting]
        solved = f"{found['models measured']:,}"
        if found["models unconverged"]:
            solved += f", **{found['models unconverged']} not to tolerance**"
        rows.append(row(f"**ours**, {setting}", found, _small(found["largest gap"]), solved))
    for peer in sorted(job["peers"].values(), key=lambda p: (not p["same problem"], p["seconds"])):
        gap, missing = peer["suboptimality"], peer["models stopped or not begun"]
        solved = f"{peer['models solved']:,}"
        if missing:
            solved += f" of {peer['models solved'] + missing:,}"
        if not reached_its_tolerance(peer):
            solved += f", {peer['models unconverged']} unsolved"
        rows.append(
            row(
                peer["name"] + _remark(peer),
                peer,
                NONE if gap is None else f"{_small(gap['median'])} / {_small(gap['largest'])}",
                solved,
                _at_least(missing > 0),
            )
        )
    header = ["", f"{models:,} models, s", *(short[each] for each in settings)]
    return markdown([*header, "gap", "models solved"], rows)


def memory(jobs: dict[str, dict[str, Any]]) -> str:
    """Peak memory of training alone; seconds and peak memory of the whole estimator."""
    peak = "peak memory, MiB"
    rows = []
    for job in jobs.values():
        alone, whole = job["ours"][_DEFAULT], job["ours"].get("BootstrapSVC.fit", {})
        numbers = (alone.get(peak), whole.get("seconds"), whole.get(peak))
        rows.append([job["ours"]["title"], *(figures(number) for number in numbers)])
    return markdown(["", "training, memory", "`BootstrapSVC.fit`, s", "memory"], rows)


def scoring(jobs: list[dict[str, Any]]) -> str:
    """Rows per second of votes and of the bare matrix product, and the memory that votes take."""
    rows = [
        [
            f"{job['rows']:,} × {job['columns']}, {job['models']:,} models, {job['dtype']}",
            figures(job["votes, rows per second"]),
            figures(job["bare product, rows per second"]),
            figures(job["votes / bare product"]),
            figures(job["weighted scores, rows per second"]),
            figures(job["peak memory beyond the rows, MiB"]),
        ]
        for job in jobs
    ]
    header = ["votes", "bare product", "votes / product", "weighted scores", "memory, MiB"]
    return markdown(["rows a second", *header], rows)


def gpu_times(
    part: str, jobs: dict[str, dict[str, Any]], predicted: dict[str, tuple[float, float]]
) -> str:
    """Milliseconds of each job of a part of ``make gpu-check``, beside floor and prediction."""
    rows = []
    for name, found in jobs.items():
        share = f" ({found['replicates']} replicates)" if "replicates" in found else ""
        peak = found.get("peak memory, bytes")
        rows.append(
            [
                name + share,
                f"{found['models']:,}" if "models" in found else NONE,
                figures(found["median, ms"]),
                figures(found.get("floor, ms")),
                figures(found.get("time / floor")),
                _between(predicted.get(name)),
                NONE if peak is None else figures(peak / 2**20),
            ]
        )
    header = ["models", "median, ms", "floor, ms", "time / floor", "predicted, ms"]
    return markdown([part, *header, "peak memory, MiB"], rows)


def _between(seconds: tuple[float, float] | None) -> str:
    return NONE if seconds is None else " to ".join(figures(1e3 * each) for each in seconds)


def _small(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-").replace("e+00", "")


def _remark(peer: dict[str, Any]) -> str:
    remarks = [] if peer["same problem"] else ["easier problem"]
    if peer["seconds a model, tried"]:
        remarks.append(peer["run as"])
    return f" ({', '.join(remarks)})" if remarks else ""


def _at_least(bound: bool) -> str:
    return "≥ " if bound else ""
