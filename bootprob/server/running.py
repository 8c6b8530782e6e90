"""Run the application with uvicorn: in this process, or in several that it supervises."""

from __future__ import annotations

import gc
import hashlib
import ipaddress
import logging
import math
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from bootprob.exceptions import DataError
from bootprob.persistence.save_load import load
from bootprob.runtime.workers import after_parent
from bootprob.server.app import create_app
from bootprob.server.certificates import check_certificate
from bootprob.server.connections import BoundedProtocol, Connections
from bootprob.server.descriptors import room_for
from bootprob.server.draining import Stopping, draining
from bootprob.server.limits import Limits
from bootprob.server.logs import LogFormat, log_config
from bootprob.server.metrics import SHARED_FOLDER, Counts
from bootprob.server.rates import ClientRate
from bootprob.server.repository import Repository
from bootprob.server.tokens import Tokens
from bootprob.server.traces import send_traces
from bootprob.tables.mistake_costs import MistakeCosts

__all__ = ["check_host", "run"]

_KEEP_ALIVE = 75  # seconds
_LONGEST_START = 120  # seconds until a worker is taken for dead; it imports and loads first


def run(
    paths: Mapping[str, Path],
    *,
    host: str,
    port: int,
    limits: Limits,
    token: str | Path | None,
    metrics: bool,
    workers: int,
    max_connections: int | None = None,
    header_deadline: float = 10.0,
    drain_delay: float = 0.0,
    costs: MistakeCosts | None = None,
    trusted: Sequence[str] = (),
    certificate: Path | None = None,
    key: Path | None = None,
    log: LogFormat = "text",
    rate_limit: str | None = None,
    traces: bool = False,
    grpc_port: int | None = None,
) -> None:
    """Serve model files until SIGTERM or Ctrl-C, each anew when it changes.

    After either and the delay, no connection is accepted any more, and requests that were accepted
    have the deadline to finish.

    Parameters
    ----------
    paths : mapping of str to Path
        What `bootprob.save` wrote, by the names that models have in addresses.
    host, port : str, int
        Where to listen.
    limits : Limits
        Of each model.
    token : str, Path or None
        Or a file of them, as of `bootprob.server.tokens.Tokens`.
    metrics : bool
        Those of several processes add up.
    workers : int
        Processes. One that dies is replaced.
    max_connections : int, optional
        Connections to each process, more than ``limits.max_requests``; by default twice as many.
        If the system allows fewer open files, both are lowered.
    header_deadline : float, default 10.0
        Seconds that the headers of a request may take; beyond, the connection is closed.
    drain_delay : float, default 0.0
        Seconds between a signal and the end of listening, in which the server says that it is not
        ready and asks clients to connect anew.
    costs : MistakeCosts, optional
        As in `create_app`.
    trusted : sequence of str, optional
        Types of the file, as of `bootprob.load`.
    certificate, key : Path, optional
        PEM files of the chain and its private key: the server speaks TLS then, 1.2 or later. The
        key may stand in the file of the chain.
    log : {"text", "json"}, default "text"
        How lines of the log are written.
    rate_limit : str, optional
        Of each client, as in `create_app`; of all models together, in each process.
    traces : bool, default False
        Whether spans of requests are sent by OpenTelemetry.
    grpc_port : int, optional
        Where the Open Inference Protocol is spoken over gRPC as well.

    Raises
    ------
    DataError
        Options that contradict each other, another host than loopback without a token, or a port
        that cannot be listened on; or grpcio is missing.
    ModelFileError
        The file cannot be loaded.
    """
    check_host(host, token)
    logging_as = log_config(log)
    check_certificate(certificate, key)
    if grpc_port == port != 0:  # 0: the system chooses another for each
        raise DataError(
            f"Port {port} cannot be listened on for HTTP and for gRPC; choose another for one of "
            "them."
        )
    if not (math.isfinite(header_deadline) and header_deadline > 0):
        raise DataError(f"header_deadline is {header_deadline!r}; give seconds above 0.")
    if not (math.isfinite(drain_delay) and drain_delay >= 0):
        raise DataError(f"drain_delay is {drain_delay!r}; give seconds, 0 or more.")
    if max_connections is None:
        max_connections = 2 * limits.max_requests
    if max_connections <= limits.max_requests:
        raise DataError(
            f"max_connections is {max_connections} and max_requests {limits.max_requests}: some "
            "must be left for health; raise max_connections or lower max_requests."
        )
    room = room_for(max_connections, limits.max_requests)
    limits = replace(limits, max_requests=room.requests)
    make = partial(
        _make_server,
        paths,
        workers=workers,
        drain_delay=drain_delay,
        limits=limits,
        token=token,
        metrics=metrics,
        costs=costs,
        trusted=trusted,
        rate_limit=rate_limit,
        traces=traces,
        grpc=None
        if grpc_port is None
        else {
            "address": f"[{host}]:{grpc_port}" if ":" in host else f"{host}:{grpc_port}",
            "max_body": limits.max_body,
            "max_calls": room.connections,
            "max_held": limits.max_held,
            "deadline": limits.deadline,
            "shared": workers > 1,
            "certificate": certificate,
            "key": key,
        },
    )
    if grpc_port is not None:
        _check_grpc(host, grpc_port)
    app = make()  # here, so that an unusable model is told before anything starts
    config = uvicorn.Config(
        app if workers == 1 else make,
        factory=workers > 1,
        host=host,
        port=port,
        workers=workers,
        http=cast(Any, partial(BoundedProtocol, Connections(room.connections, header_deadline))),
        backlog=room.backlog,
        ws="none",
        access_log=False,  # it would write query strings; the application has its own
        log_config=logging_as,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(limits.deadline) + 1,
        timeout_worker_healthcheck=_LONGEST_START,
        # Longer than clients keep theirs: else a busy one writes to a connection that is closing.
        timeout_keep_alive=_KEEP_ALIVE,
    )
    try:
        listening = config.bind_socket()
    except SystemExit:  # it has logged why
        raise DataError(f"{host} port {port} cannot be listened on; choose another.") from None
    page = "/docs" if len(paths) == 1 else "/MODEL/docs"
    logging.getLogger("uvicorn.error").info(
        f"Its page {page} shows what can be asked, with examples to try."
    )
    # Asked to stop, uvicorn raises the signal once more when all is done; that is no failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    if workers == 1:
        uvicorn.Server(config).run([listening])
        if app.stopping.interrupted:  # uvicorn raises it again, but once in a while too late
            raise KeyboardInterrupt
        return
    del app
    with tempfile.TemporaryDirectory(prefix="bootprob-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder  # of the workers, which begin anew
        supervisor = _Supervisor(config, [listening])
        try:
            supervisor.run()
        finally:
            del os.environ[SHARED_FOLDER]
    if supervisor.interrupted:
        raise KeyboardInterrupt


class _Supervisor(Multiprocess):
    """uvicorn's, and whether Ctrl-C ended it."""

    interrupted = False

    def handle_int(self) -> None:
        self.interrupted = True
        super().handle_int()


def _check_grpc(host: str, port: int) -> None:
    try:
        import bootprob.server.grpc_service  # noqa: F401
    except ImportError:
        raise DataError('gRPC needs grpcio: pip install "bootprob[grpc]".') from None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family):
            pass
    except OSError as error:
        raise DataError(
            f"{host} port {port} cannot be listened on for gRPC ({error.strerror}); choose another."
        ) from None


def check_host(host: str, token: str | Path | None) -> None:
    """Refuse to listen to other machines without a token."""
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback and token is None:
        raise DataError(
            f"{host} can be reached from other machines, and there is no token; give --token-file "
            "or set BOOTPROB_TOKEN, or leave --host at 127.0.0.1."
        )


def _make_server(
    paths: Mapping[str, Path],
    *,
    workers: int,
    drain_delay: float,
    token: str | Path | None,
    metrics: bool,
    trusted: Sequence[str] = (),
    rate_limit: str | None = None,
    traces: bool = False,
    grpc: Mapping[str, Any] | None = None,
    **application: Any,
) -> Repository:
    """What a process serves; `grpc` is for `grpc_serving`, `application` for `create_app`."""
    if workers > 1:
        import torch

        after_parent(lambda: os.kill(os.getpid(), signal.SIGTERM))  # none is left to end it
        torch.set_num_threads(max(1, torch.get_num_threads() // workers))
    tokens, stopping = None if token is None else Tokens(token), Stopping()
    counts = Counts() if metrics else None
    rate = None if rate_limit is None else ClientRate(rate_limit, by_token=tokens is not None)
    if traces:
        send_traces()

    def make(name: str, path: Path) -> FastAPI:
        with path.open("rb") as file:
            version = hashlib.file_digest(file, "sha256").hexdigest()[:12]
        return create_app(
            load(path, trusted), name=name, version=version, token=tokens,
            metrics=counts or False, stopping=stopping, rate_limit=rate,
            **application,
        )  # fmt: skip

    server = Repository(paths, make, tokens, stopping, counts)
    lifespan = server.lifespan

    @asynccontextmanager
    async def drained() -> AsyncIterator[Any]:
        with draining(stopping, drain_delay):
            async with lifespan(), AsyncExitStack() as open_:
                if grpc is not None:
                    from bootprob.server.grpc_service import grpc_serving

                    await open_.enter_async_context(grpc_serving(server, tokens=tokens, **grpc))
                yield

    server.lifespan = drained
    # For others while a large body is read: threads take turns sooner than every 5 ms, and what is
    # there now stays; going through half a million objects for garbage takes 0.1 s each time.
    sys.setswitchinterval(1e-3)
    gc.collect()
    gc.freeze()
    return server
