"""What the tests of the server send, and how they start one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pandas as pd
from fastapi.testclient import TestClient


def records_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as a client would send them, null for what is missing."""
    return json.loads(table.to_json(orient="records", double_precision=15))


def post(client: TestClient, body: str | bytes, address: str = "/predict", **headers: str) -> Any:
    """Send a body as it is; headers are named with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(address, content=body, headers={"content-type": "application/json"} | named)


@dataclass
class Server:
    """A server in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    scheme: str = "http"

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text(encoding="utf-8")


@contextmanager
def running(
    model: Path, *options: str, most_files: int | None = None, **environment: str
) -> Iterator[Server]:
    """Run ``bootprob serve`` until it is ready, and kill what is left of it at the end.

    Parameters
    ----------
    model : Path
    *options : str
    most_files : int, optional
        As by ``ulimit -n``.
    **environment : str
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = model.with_suffix(f".{port}.log")
    program = "from bootprob.cli.__main__ import main; main()"
    command = [sys.executable, "-c", program, "serve", str(model), "--port", str(port), *options]
    if most_files is not None:
        command = ["sh", "-c", f'ulimit -n {most_files}; exec "$0" "$@"', *command]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env=os.environ | environment
        )
    server = Server(process, port, log, "https" if "--certificate" in options else "http")
    try:
        _wait_until_ready(server)
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)


def _wait_until_ready(server: Server) -> None:
    until = time.monotonic() + 120
    with httpx2.Client(base_url=server.address, verify=False, timeout=10) as client:
        while server.process.poll() is None and time.monotonic() < until:
            try:
                if client.get("/v2/health/ready").status_code == 200:
                    return
            except httpx2.TransportError:
                time.sleep(0.05)
    raise AssertionError(f"The server did not start: {server.said()}")
