"""The server under load, every reply checked row by row, beside one predict for each request.

    python -m gpu.benchmarks.server_load [one] [workers] [--seconds 10] [--rows 1 64]

On loopback, in two parts, each of which may be measured by itself. One process: how much each of
both servers answers when clients ask as fast as they can, then ours at 80 % and at 200 % of that,
with arrivals that do not wait for replies. Two workers: in peace, and while the model file is
replaced. Clients and server share the machine. With a linear kernel HTTP is what takes the time,
with an RBF kernel it is the engine, so that its queue fills. Writes docs/results/server.json and
docs/server_load.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from gpu.benchmarks.checked_replies import Tally, version_of
from gpu.benchmarks.common import documents, environment
from gpu.benchmarks.common.command_line import docs_options

__all__ = ["main"]

_CLIENTS = 32
_WORKERS = 2
_PATIENT = 60  # seconds
_TIMES = 6  # that the model is replaced
_BETWEEN = 1.0  # seconds from one to the next, beside those of its load
_TOKEN = secrets.token_urlsafe()
_MOST_IN_FLIGHT = 900
_QUEUE_ROWS = 4096  # the least that `serve` takes with its default of rows a request


async def closed(
    address: str, tally: Tally, rows: int, meanwhile: Coroutine[Any, Any, dict[str, Any]]
) -> dict[str, Any]:
    """Clients that each send the next request when the last was answered, until all is done."""
    rng = np.random.default_rng()
    async with _client(address, _CLIENTS) as client:
        await _ask(tally, client, rng.integers(len(tally.X), size=rows), time.perf_counter())
        tally = Tally(tally.X, tally.offline)
        other, started = asyncio.create_task(meanwhile), time.perf_counter()

        async def one() -> None:
            while not other.done():
                drawn = rng.integers(len(tally.X), size=rows)
                await _ask(tally, client, drawn, time.perf_counter())

        await asyncio.gather(*(one() for _ in range(_CLIENTS)))
        return tally.summary(time.perf_counter() - started, rows) | await other


async def arrivals(
    address: str, tally: Tally, rows: int, seconds: float, rate: float
) -> dict[str, Any]:
    """Requests that arrive at random, `rate` a second, whether or not others were answered."""
    rng = np.random.default_rng()
    times = np.cumsum(rng.exponential(1 / rate, size=max(1, round(rate * seconds))))
    async with _client(address, _MOST_IN_FLIGHT) as client:
        started = time.perf_counter()

        async def one(at: float) -> None:
            await asyncio.sleep(max(0.0, started + at - time.perf_counter()))
            await _ask(tally, client, rng.integers(len(tally.X), size=rows), started + at)

        await asyncio.gather(*(one(at) for at in times))
        found = tally.summary(time.perf_counter() - started, rows)
    return found | {"requests per second asked": rate}


async def replacing(address: str, path: Path, others: list[Path]) -> dict[str, Any]:
    """Put others in the place of a file in turn, and have one worker told to load each at once."""
    loads = Counter[str]()
    async with _client(address, 1) as client:
        for k in range(_TIMES):
            await asyncio.sleep(_BETWEEN)
            fresh = path.with_suffix(".new")
            shutil.copy(others[k % len(others)], fresh)
            fresh.replace(path)
            async with client.post(f"/v2/repository/models/{path.stem}/load") as reply:
                loads[str(reply.status)] += 1
        await asyncio.sleep(_BETWEEN)
    return {"replaced": _TIMES, "loads by status": dict(loads)}


async def _ask(tally: Tally, client: aiohttp.ClientSession, rows: np.ndarray, since: float) -> None:
    """Send a request and check its reply; latency counts from `since`."""
    tally.sent += 1
    try:
        async with client.post("/predict", json=tally.body(rows)) as reply:
            content = await reply.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        tally.replies[type(error).__name__] += 1
        return
    latency = time.perf_counter() - since
    if tally.take(rows, reply.status, reply.headers, content):
        tally.latencies.append(latency)


def _client(address: str, connections: int) -> aiohttp.ClientSession:
    """Its parser is compiled; one in Python would be slower than the server."""
    return aiohttp.ClientSession(
        address,
        connector=aiohttp.TCPConnector(limit=connections),
        headers={"Authorization": f"Bearer {_TOKEN}"},
        timeout=aiohttp.ClientTimeout(total=60),
    )


@contextmanager
def running(command: Callable[[int], list[str]], workers: int = 1) -> Iterator[tuple[str, Path]]:
    """Run a server on a free port; once all workers are ready, its address and its log."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        given = {"OMP_NUM_THREADS": "1", "BOOTPROB_TOKEN": _TOKEN}  # the clients need a core too
        with log.open("wb") as file:
            process = subprocess.Popen(
                command(port), stdout=file, stderr=file, env=os.environ | given
            )
        try:
            while log.read_text().count("startup complete") < workers:
                if process.poll() is not None:
                    raise RuntimeError(f"The server ended: {log.read_text()}")
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}", log
        finally:
            process.terminate()
            process.wait(30)


def measure(part: str, seconds: float, sizes: list[int], n_bootstraps: int) -> dict[str, Any]:
    """Fit models, serve and load them: a part of `_PARTS`."""
    from sklearn.datasets import load_breast_cancer

    from bootprob import BootstrapSVC
    from bootprob.persistence.save_load import save

    described = environment.describe(["bootprob", "torch", "fastapi", "uvicorn", "aiohttp"])
    X, y = load_breast_cancer(return_X_y=True)
    new = X + np.random.default_rng().normal(scale=0.1, size=X.shape) * X.std(axis=0)
    model = {"rows": len(X), "columns": X.shape[1], "B": n_bootstraps}
    found: dict[str, Any] = {"environment": described, "model": model}
    for kernel in ("linear", "rbf"):
        with tempfile.TemporaryDirectory() as folder:
            files, offline = [Path(folder) / f"{seed}.bootprob" for seed in range(2)], {}
            for seed, file in enumerate(files):
                each = BootstrapSVC(kernel=kernel, n_bootstraps=n_bootstraps, random_state=seed)
                save(each.fit(X, y), file)
                offline[version_of(file)] = each.summarize(new, score_interval=False)
            tally = partial(Tally, new, offline)
            for what, phase in _PARTS[part](files, tally, sizes, seconds):
                found.setdefault(what, []).append({"kernel": kernel} | phase)
                print(json.dumps(found[what][-1], indent=1), flush=True)
    return found


_Phases = Iterator[tuple[str, dict[str, Any]]]


def _one_process(
    files: list[Path], tally: Callable[[], Tally], sizes: list[int], seconds: float
) -> _Phases:
    def theirs(port: int) -> list[str]:
        return [sys.executable, "-m", "gpu.benchmarks.naive_server", str(files[0]), str(port)]

    with running(theirs) as (address, _):
        for rows in sizes:
            part = asyncio.run(closed(address, tally(), rows, asyncio.sleep(seconds, {})))
            yield "as fast as they can", {"server": "one predict a request"} | part
    with running(partial(_ours, files[0])) as (address, _):
        for rows in sizes:
            part = asyncio.run(closed(address, tally(), rows, asyncio.sleep(seconds, {})))
            yield "as fast as they can", {"server": "bootprob serve"} | part
            for share in (0.8, 2.0):
                rate = share * part["requests per second"]
                loaded = asyncio.run(arrivals(address, tally(), rows, seconds, rate))
                yield "arrivals", {"share of capacity": share} | loaded


def _workers(
    files: list[Path], tally: Callable[[], Tally], sizes: list[int], seconds: float
) -> _Phases:
    path = shutil.copy(files[0], files[0].with_stem("served"))
    options = ("--workers", str(_WORKERS), "--deadline", str(_PATIENT))
    for rows, replaced in product(sizes, (False, True)):
        with running(partial(_ours, path, options=options), _WORKERS) as (address, log):
            other = (
                replacing(address, path, files[::-1]) if replaced else asyncio.sleep(seconds, {})
            )
            part = {"replaced": 0} | asyncio.run(closed(address, tally(), rows, other))
            said = log.read_text()
        for what, line in (("replies", "POST /predict 200"), ("loads", "served is of version")):
            by_worker = Counter(re.findall(rf"(\d+) INFO {line}", said))
            part[f"{what} by worker"] = sorted(by_worker.values())
        yield "phases", part


def _ours(path: Path, port: int, options: Sequence[str] = ()) -> list[str]:
    main_ = "from bootprob.cli.__main__ import main; main()"
    given = ("--port", str(port), "--queue-rows", str(_QUEUE_ROWS), *options)
    return [sys.executable, "-c", main_, "serve", str(path), *given]


_PARTS = {"one": _one_process, "workers": _workers}


def main() -> None:
    """Measure and write."""
    parser = docs_options(__doc__, _PARTS, "PART")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--bootstraps", type=int, default=500)
    given = parser.parse_args()
    path = given.docs / "results" / "server.json"
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for part in given.names:
        result[part] = measure(part, given.seconds, given.rows, given.bootstraps)
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    page = documents.write(
        given.docs / "server_load.md",
        "gpu/benchmarks/server_load.md.jinja",
        result=result,
        clients=_CLIENTS,
        deadline=_PATIENT,
        queue_rows=_QUEUE_ROWS,
    )
    print(f"wrote {path} and {page}")


if __name__ == "__main__":
    main()
