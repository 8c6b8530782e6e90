"""Compile every Triton kernel ahead of time, without a GPU, and count what it uses.

    make gpu-compile                        all that is not known yet; writes the table
    python -m gpu.compilation --check 20    is the table true? compiles for 20 s what is not known

Kernels are reached through the project's own launchers, at the shapes of the benchmark's jobs and
of the edges, for compute capabilities 8.0, 9.0 and 10.0. The table is
gpu/results/compiled/kernels.json, shown in docs/gpu.md. Results of this machine are kept in
build/gpu-compile, by a hash of everything that the machine code depends on. Exit status 1:
something does not compile, spills or does not fit, or the table is not what the compiler says.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from functools import partial
from pathlib import Path

os.environ.pop("TRITON_INTERPRET", None)  # before anything imports Triton

from gpu.compilation.compiler import Results
from gpu.compilation.document import PAGE, with_table
from gpu.compilation.launches import Variant
from gpu.compilation.table import ROOT, TABLE, all_variants, faults, grown, read, row, title, write

_SAMPLE = 2  # variants that a check compiles though they are known

say = partial(print, flush=True)


def main() -> int:
    """Compile or check; the exit status."""
    options = _options()
    results = Results(options.cache)
    variants = all_variants()
    if options.check is None:
        problems = _make(variants, results, options.processes)
    else:
        until = time.monotonic() + options.check
        problems = _check(variants, results, options.processes, until, options.seed)
    for problem in problems:
        say(f"BAD {problem}")
    return 1 if problems else 0


def _make(
    variants: dict[str, tuple[Variant, list[str]]], results: Results, processes: int
) -> list[str]:
    """Write the table."""
    unknown = [variant for variant, _ in variants.values() if variant not in results]
    say(f"{len(variants)} variants, {len(unknown)} to compile")
    problems = []
    for k, (variant, found) in enumerate(results.add(unknown, processes=processes), 1):
        if "error" in found:
            problems += faults(title(variant.described), found)
        if k % 20 == 0:
            say(f"{k} compiled")
    if problems:
        return problems  # and the table stays as it is
    old = read(TABLE)["rows"]
    rows = [row(variant, labels, results[variant]) for variant, labels in variants.values()]
    for line in grown(old, rows):
        say(f"GROWN {line}")
    write(TABLE, rows)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), read(TABLE)), encoding="utf-8")
    say(f"{TABLE.relative_to(ROOT)}: {len(rows)} rows")
    return [problem for each in rows for problem in faults(title(each), each)]


def _check(
    variants: dict[str, tuple[Variant, list[str]]],
    results: Results,
    processes: int,
    until: float,
    seed: int,
) -> list[str]:
    """What is wrong with the table, as far as the time allows to find out."""
    import triton

    table = read(TABLE)
    rows = {each["key"]: each for each in table["rows"]}
    same_compiler = table["triton"] == triton.__version__
    problems = [problem for each in rows.values() for problem in faults(title(each), each)]
    if same_compiler:
        stale = [variant for key, (variant, _) in variants.items() if key not in rows]
        gone = rows.keys() - variants.keys()
        if stale or gone:
            names = sorted({variant.kernel.__name__ for variant in stale})
            names += sorted({f"{rows[key]['kernel']} (no longer launched so)" for key in gone})
            problems.append(
                f"{TABLE.relative_to(ROOT)} is not about these kernels: {', '.join(names)}. "
                "Run make gpu-compile and commit what it writes."
            )
    shuffled = [variant for variant, _ in variants.values()]
    random.Random(seed).shuffle(shuffled)
    known = [variant for variant in shuffled if variant in results]
    unknown = [variant for variant in shuffled if variant not in results]
    found = {variant.key: results[variant] for variant in known}
    anew = 0
    for variant, measured in results.add(
        known[:_SAMPLE] + unknown, processes=processes, until=until
    ):
        found[variant.key] = measured
        anew += 1
    for key, measured in found.items():
        name = title(variants[key][0].described)
        problems += faults(name, measured)
        if same_compiler and key in rows and "error" not in measured:
            wrong = [which for which in measured if measured[which] != rows[key][which]]
            problems += [
                f"{name}: {which} is {measured[which]}, and {rows[key][which]} in the table."
                for which in wrong
            ]
    say(
        f"{len(variants)} variants of {len({v.kernel for v, _ in variants.values()})} kernels, "
        f"{anew} compiled now, {len(found)} known here in all, {len(problems)} problems"
    )
    return problems


def _options() -> argparse.Namespace:
    about = (__doc__ or "").split("\n\n")[0]
    parser = argparse.ArgumentParser(prog="python -m gpu.compilation", description=about)
    add = parser.add_argument
    add("--check", type=float, metavar="SECONDS", help="check the table, compiling for so long")
    add("--seed", type=int, default=0, help="of the order in which a check compiles")
    add("--processes", type=int, default=os.cpu_count() or 1, help="that compile at a time")
    add("--cache", type=Path, default=ROOT / "build/gpu-compile", metavar="FOLDER")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
