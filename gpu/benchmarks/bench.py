"""Ours and the peers on the same problems in one run; writes docs/benchmarks.md and its JSON.

    python -m gpu.benchmarks.bench [--quick] [--only JOB ...] [--docs FOLDER]

Ours runs first, each job in a process of its own; then peer after peer through all jobs. `--quick`
shrinks everything, to see that it works; its numbers mean nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Processes of the peers import this file: what is heavy is imported by those who need it.
if TYPE_CHECKING:
    from gpu.benchmarks.workloads import Workload

_MODULES = {"growth": "growth", "scoring": "scoring_jobs"}


def main() -> None:
    from gpu.benchmarks.common.environment import cores, describe
    from gpu.benchmarks.our_timing import compile_seconds
    from gpu.benchmarks.peers import installed
    from gpu.benchmarks.report import DOCS
    from gpu.benchmarks.report import main as write_document
    from gpu.benchmarks.targets import runs_so_far
    from gpu.benchmarks.workloads import WORKLOADS, absent, make

    arguments = _arguments(list(WORKLOADS))
    docs = arguments.docs or DOCS
    started = time.perf_counter()
    peers = dict(installed())
    distributions = [peer.DISTRIBUTION for peer in peers.values() if peer is not None]
    results: dict[str, Any] = {
        "command": "make bench",
        "quick": arguments.quick,
        "environment": describe(["bootprob", "torch", "numpy", "numba", *distributions]),
        "peers not installed": [key for key, peer in peers.items() if peer is None],
        "left out": {},
        "jobs": {},
    }
    workloads: dict[str, Workload] = {}
    duals = {}
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder)
        results["compilation, seconds"] = compile_seconds()
        for name in arguments.only or WORKLOADS:
            why = absent(name)
            if why is not None:
                _say(f"{name}: left out, {why}")
                results["left out"][name] = why
                continue
            results["jobs"][name], duals[name] = _ours(name, into, quick=arguments.quick)
            workloads[name] = make(name, quick=arguments.quick)
        for key in (key for key, peer in peers.items() if peer is not None):
            for name, found in _peer(key, workloads, duals, cores()):
                results["jobs"][name]["peers"][key] = found
        if not arguments.only:
            for part in ("growth", "scoring"):
                results[part] = _part(part, into, quick=arguments.quick)
    results["seconds"] = round(time.perf_counter() - started, 1)
    file = docs / "results" / "benchmarks.json"
    if file.exists():
        results["earlier runs"] = runs_so_far(json.loads(file.read_text(encoding="utf-8")))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    _say(f"{results['seconds']} s; wrote {file} and {write_document(docs)}")


def _arguments(names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", choices=names, metavar="JOB")
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="write there, not to docs/")
    return parser.parse_args()


def _ours(name: str, into: Path, *, quick: bool) -> tuple[dict[str, Any], Any]:
    """Our measurements of a job, and lower bounds of its optima."""
    import numpy as np

    _run("our_timing", name, into=into, quick=quick)
    ours = json.loads((into / f"{name}.json").read_text(encoding="utf-8"))
    _say(f"{ours['title']}: ours {ours['default gap']['seconds']:.2f} s")
    return {"ours": ours, "peers": {}}, np.load(into / f"{name}.npy")


def _peer(
    key: str, workloads: dict[str, Workload], duals: dict[str, Any], on: list[int]
) -> list[tuple[str, dict[str, Any]]]:
    """One peer through all jobs that it can do, with the same processes throughout."""
    from gpu.benchmarks.peer_timing import crews, time_peer
    from gpu.benchmarks.peers import load

    found = []
    with ExitStack() as stack:
        ways = {way: stack.enter_context(crew) for way, crew in crews(key, on).items()}
        for name, workload in workloads.items():
            if load(key).solves(workload.kernel, *workload.X.shape):
                measured = time_peer(key, ways, workload, duals[name])
                bound = "at least " if measured["models stopped or not begun"] else ""
                _say(f"{workload.title}: {measured['name']} {bound}{measured['seconds']:.1f} s")
                found.append((name, measured))
    return found


def _part(name: str, into: Path, *, quick: bool) -> Any:
    """What a module that has no peers writes."""
    _say(name)
    _run(_MODULES[name], into=into, quick=quick)
    return json.loads((into / f"{name}.json").read_text(encoding="utf-8"))


def _run(module: str, *positional: str, into: Path, quick: bool) -> None:
    """Run a module of this folder in a process of its own, with memory and threads of its own."""
    command = [sys.executable, "-m", f"gpu.benchmarks.{module}", *positional, "--into", str(into)]
    subprocess.run([*command, *(["--quick"] if quick else [])], check=True)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
