"""The table of predictions, beside what was measured, for docs/engine.md."""

from __future__ import annotations

from typing import Any

from gpu.benchmarks.common.tables import in_place

__all__ = ["END", "START", "rendered", "with_table"]

START = "<!-- written by make gpu-roofline -->"
END = "<!-- end of what make gpu-roofline wrote -->"


def rendered(content: dict[str, Any], measured: dict[str, Any] | None) -> str:
    """The table in Markdown.

    Parameters
    ----------
    content : dict
        Of predictions.json.
    measured : dict or None
        What `gpu_results.newest` found.
    """
    times = {
        name: found for part in (measured or {}).get("times", {}).values()
        for name, found in part.items()
    }  # fmt: skip
    lines = [
        "| job | iterations, counted | floor, ms | predicted, ms | goal, ms "
        "| most of it | measured, ms |",
        "| --- | --- | ---: | ---: | ---: | --- | ---: |",
    ]
    for job in content["jobs"]:
        low, high = job["between, s"]
        goal = job["goal, s"]
        found = times.get(job["job"])
        lines.append(
            f"| {job['job'].rpartition(', Triton')[0]} | {_iterations(job['counts'])} "
            f"| {_ms(job['floor, s'])} | {_ms(low)}–{_ms(high)} "
            f"| {'–' if goal is None else _ms(goal)} "
            f"| {job['limited by']} | {'–' if found is None else _ms(1e-3 * found['median, ms'])} |"
        )
    return "\n".join(lines)


def with_table(text: str, table: str) -> str:
    """A document with the table in its place."""
    return in_place(text, f"{START}\n", f"\n{END}", table)


def _ms(seconds: float) -> str:
    """Milliseconds to two digits."""
    milliseconds = 1e3 * seconds
    return f"{milliseconds:.1f}" if milliseconds < 10 else f"{float(f'{milliseconds:.2g}'):,.0f}"


def _iterations(counts: dict[str, Any]) -> str:
    after = counts.get("after", {})
    if "mean iterations" in counts:
        return (
            f"mean {counts['mean iterations']:.1f}, most {counts['most iterations']}; "
            f"in kernels {after['kernels']:,}"
        )
    if after:
        return (
            f"mean {after['iterations of a model']:.0f}, longest path {after['longest path']:,}; "
            f"kernel rows {after['TB of kernel rows']:.2g} TB of {counts['replicates']} samples"
        )
    return "–"
