"""The server under load, every reply checked row by row, beside one predict for each request.

    python -m gpu.benchmarks.server_load [--seconds 10] [--rows 1 64]

On loopback, in one run: how much each of both servers answers when clients ask as fast as they
can, then ours at 80 % and at 200 % of that, with arrivals that do not wait for replies. Clients
and server share the machine. With a linear kernel HTTP is what takes the time, with an RBF kernel
it is the engine, so that its queue fills. Writes docs/results/server.json and docs/server_load.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from gpu.benchmarks.common import documents, environment
from gpu.benchmarks.common.command_line import docs_options

__all__ = ["Tally", "main"]

TOLERANCE = 1e-12
_CLIENTS = 32
_MOST_IN_FLIGHT = 900
_QUEUE_ROWS = 4096  # the least that `serve` takes with its default of rows a request


class Tally:
    """Replies, counted and compared with what the model says offline.

    Parameters
    ----------
    X : ndarray, shape (n, p)
        Rows that requests are drawn from.
    offline : dict of str to ndarray
        From `BootstrapSVC.summarize` of all of them.
    """

    def __init__(self, X: np.ndarray, offline: dict[str, np.ndarray]) -> None:
        self.X, self.offline = X, offline
        self.sent = 0
        self.replies: Counter[str] = Counter()
        self.latencies: list[float] = []
        self.wrong_rows = 0
        self.largest_difference = 0.0

    def body(self, rows: np.ndarray) -> dict[str, Any]:
        """What a client sends."""
        return {"records": [{f"x{k}": v for k, v in enumerate(self.X[row])} for row in rows]}

    def check(self, rows: np.ndarray, predictions: list[dict[str, Any]]) -> None:
        """Compare a reply's rows, one by one."""
        if len(predictions) != len(rows):
            self.wrong_rows += max(len(rows), len(predictions))
            return
        found = np.array([[each["probability"], *each["interval"]] for each in predictions])
        wanted = np.column_stack(
            [self.offline["probability"][rows], self.offline["probability_interval"][rows]]
        )
        difference = np.abs(found - wanted).max(axis=1)
        labels = np.array([each["label"] for each in predictions])
        right = (difference <= TOLERANCE) & (labels == self.offline["label"][rows])
        self.wrong_rows += int((~right).sum())
        self.largest_difference = max(self.largest_difference, float(difference.max()))

    async def ask(self, client: aiohttp.ClientSession, rows: np.ndarray, since: float) -> None:
        """Send a request and check its reply; latency counts from `since`."""
        self.sent += 1
        try:
            async with client.post("/predict", json=self.body(rows)) as reply:
                content = await reply.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            self.replies[type(error).__name__] += 1
            return
        self.replies[str(reply.status)] += 1
        if reply.status == 200:
            self.latencies.append(time.perf_counter() - since)
            self.check(rows, json.loads(content)["predictions"])
        elif reply.status in (429, 503) and "Retry-After" not in reply.headers:
            self.replies["refused without Retry-After"] += 1

    def summary(self, seconds: float, rows: int) -> dict[str, Any]:
        """Numbers of one phase."""
        answered = len(self.latencies)
        percentiles = [math.nan] * 2
        if answered:
            percentiles = np.percentile(self.latencies, [50, 99]).tolist()
        return {
            "rows per request": rows,
            "seconds": seconds,
            "requests sent": self.sent,
            "replies": dict(sorted(self.replies.items())),
            "requests without any reply": self.sent - sum(
                count for name, count in self.replies.items() if name.isdecimal()
            ),
            "requests per second": answered / seconds,
            "rows per second": answered * rows / seconds,
            "p50, ms": 1e3 * percentiles[0],
            "p99, ms": 1e3 * percentiles[1],
            "rows compared": answered * rows,
            "rows that differ": self.wrong_rows,
            "largest difference": self.largest_difference,
        }  # fmt: skip


async def closed(address: str, tally: Tally, rows: int, seconds: float) -> dict[str, Any]:
    """Clients that each send the next request when the last was answered."""
    rng = np.random.default_rng()
    async with _client(address, _CLIENTS) as client:
        await tally.ask(client, rng.integers(len(tally.X), size=rows), time.perf_counter())
        tally = Tally(tally.X, tally.offline)
        started = time.perf_counter()

        async def one() -> None:
            while time.perf_counter() - started < seconds:
                drawn = rng.integers(len(tally.X), size=rows)
                await tally.ask(client, drawn, time.perf_counter())

        await asyncio.gather(*(one() for _ in range(_CLIENTS)))
        return tally.summary(time.perf_counter() - started, rows)


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
            await tally.ask(client, rng.integers(len(tally.X), size=rows), started + at)

        await asyncio.gather(*(one(at) for at in times))
        found = tally.summary(time.perf_counter() - started, rows)
    return found | {"requests per second asked": rate}


def _client(address: str, connections: int) -> aiohttp.ClientSession:
    """Its parser is compiled; one in Python would be slower than the server."""
    return aiohttp.ClientSession(
        address,
        connector=aiohttp.TCPConnector(limit=connections),
        timeout=aiohttp.ClientTimeout(total=60),
    )


def naive(path: str, port: int) -> None:
    """Serve as one would without a batcher: a predict for each request, one after the other.

    In a thread pool the engine's own threads would get into each other's way, and it is slower.
    """
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    from bootprob import BootstrapSVC
    from bootprob.persistence.save_load import load

    model = load(path)
    assert isinstance(model, BootstrapSVC)
    names = [f"x{k}" for k in range(model.n_features_in_)]

    class Records(BaseModel):
        records: list[dict[str, float]]

    app = FastAPI()

    async def predict(body: Records) -> dict[str, Any]:
        X = np.array([[record[name] for name in names] for record in body.records])
        found = model.summarize(X, score_interval=False)
        columns = (
            found[name].tolist() for name in ("label", "probability", "probability_interval")
        )
        names_ = ("label", "probability", "interval")
        return {
            "predictions": [
                dict(zip(names_, row, strict=True)) for row in zip(*columns, strict=True)
            ]
        }

    predict.__annotations__["body"] = Records  # local, so not to be found by its name
    app.post("/predict")(predict)
    app.get("/v2/health/ready")(lambda: {"ready": True})
    uvicorn.run(app, port=port, http="h11", log_level="warning", access_log=False)


@contextmanager
def running(command: Callable[[int], list[str]]) -> Iterator[str]:
    """Run a server on a free port until it is ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as log:
        threads = {"OMP_NUM_THREADS": "1"}  # the clients need a core too
        process = subprocess.Popen(command(port), stdout=log, stderr=log, env=os.environ | threads)
        try:
            while True:
                if process.poll() is not None:
                    log.seek(0)
                    raise RuntimeError(f"The server ended: {log.read().decode()}")
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
            yield address
        finally:
            process.terminate()
            process.wait(30)


def measure(seconds: float, sizes: list[int], n_bootstraps: int) -> dict[str, Any]:
    """Fit models, serve them both ways, and load both."""
    from sklearn.datasets import load_breast_cancer

    from bootprob import BootstrapSVC
    from bootprob.persistence.save_load import save

    X, y = load_breast_cancer(return_X_y=True)
    new = X + np.random.default_rng().normal(scale=0.1, size=X.shape) * X.std(axis=0)
    model = {"rows": len(X), "columns": X.shape[1], "B": n_bootstraps}
    found: dict[str, Any] = {"model": model, "as fast as they can": [], "arrivals": []}
    for kernel in ("linear", "rbf"):
        fitted = BootstrapSVC(kernel=kernel, n_bootstraps=n_bootstraps, random_state=0).fit(X, y)
        offline = fitted.summarize(new, score_interval=False)
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model.bootprob")
            save(fitted, path)
            tally = partial(Tally, new, offline)
            for what, part in _phases(path, tally, sizes, seconds):
                found[what].append({"kernel": kernel} | part)
                print(json.dumps(found[what][-1], indent=1), flush=True)
    return found


def _phases(
    path: str, tally: Callable[[], Tally], sizes: list[int], seconds: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    def theirs(port: int) -> list[str]:
        return [
            sys.executable,
            "-m",
            "gpu.benchmarks.server_load",
            "--naive",
            path,
            "--port",
            str(port),
        ]

    def ours(port: int) -> list[str]:
        main_ = "from bootprob.cli.__main__ import main; main()"
        queue = ["--queue-rows", str(_QUEUE_ROWS)]
        return [sys.executable, "-c", main_, "serve", path, "--port", str(port), *queue]

    with running(theirs) as address:
        for rows in sizes:
            part = asyncio.run(closed(address, tally(), rows, seconds))
            yield "as fast as they can", {"server": "one predict a request"} | part
    with running(ours) as address:
        for rows in sizes:
            part = asyncio.run(closed(address, tally(), rows, seconds))
            yield "as fast as they can", {"server": "bootprob serve"} | part
            for share in (0.8, 2.0):
                rate = share * part["requests per second"]
                loaded = asyncio.run(arrivals(address, tally(), rows, seconds, rate))
                yield "arrivals", {"share of capacity": share} | loaded


def main() -> None:
    """Measure, or serve naively for a measurement."""
    parser = docs_options(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--bootstraps", type=int, default=500)
    parser.add_argument("--naive", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.naive is not None:
        naive(given.naive, given.port)
        return
    described = environment.describe(["bootprob", "torch", "fastapi", "uvicorn", "aiohttp"])
    result = {"environment": described} | measure(given.seconds, given.rows, given.bootstraps)
    path = given.docs / "results" / "server.json"
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    page = documents.write(
        given.docs / "server_load.md",
        "gpu/benchmarks/server_load.md.jinja",
        result=result,
        clients=_CLIENTS,
        queue_rows=_QUEUE_ROWS,
    )
    print(f"wrote {path} and {page}")


if __name__ == "__main__":
    main()
