"""``bootprob serve``: a model over HTTP."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bootprob.cli.costs import CostOptions
from bootprob.cli.options import Trust, takes_options
from bootprob.exceptions import DataError

__all__ = ["serve"]


class Log(StrEnum):
    """How lines of the log are written."""

    TEXT = "text"
    JSON = "json"


@takes_options
def serve(
    *,
    model: Annotated[
        list[Path], typer.Argument(metavar="MODEL...", help="Files that bootprob fit wrote.")
    ],
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Where to listen; other than loopback with a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, metavar="PORT")] = 8000,
    grpc_port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, metavar="PORT", help="Speak the Open Inference Protocol by gRPC too."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Holds tokens that clients may send as Authorization: Bearer, a line each; it is "
            "read again when it changes. Without it the environment variable BOOTPROB_TOKEN is "
            "taken, if it is set.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Of each model, in addresses. Default: the file's."),
    ] = None,
    max_rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most rows of a request, and scored together.")
    ] = 4096,
    queue_rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most rows that wait; beyond, clients get 429.")
    ] = 16384,
    max_requests: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most requests at once; beyond, 503.")
    ] = 1000,
    max_connections: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Most connections. Default: twice --max-requests."),
    ] = None,
    deadline: Annotated[
        float, typer.Option(metavar="SECONDS", help="Most time a request may take.")
    ] = 10.0,
    header_deadline: Annotated[
        float, typer.Option(metavar="SECONDS", help="Most time a request's headers may take.")
    ] = 10.0,
    drain_delay: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="Asked to stop, say so at /v2/health/ready for so long first."
        ),
    ] = 0.0,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="PEM", help="Chain of certificates: the server speaks TLS."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="PEM", help="Its private key, unless it stands with the chain."),
    ] = None,
    log: Annotated[Log, typer.Option(help="Lines of the log: text, or JSON objects.")] = Log.TEXT,
    rate_limit: Annotated[
        str | None,
        typer.Option(
            metavar="RATE", help="Most of each client, such as 100/second; beyond, it gets 429."
        ),
    ] = None,
    traces: Annotated[
        bool, typer.Option("--traces", help="Send spans by OpenTelemetry; OTEL_... say where.")
    ] = False,
    metrics: Annotated[bool, typer.Option(help="Prometheus's counts at /metrics.")] = True,
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Processes; one that dies is replaced.")
    ] = 1,
    costs: CostOptions,
    trust: Trust = None,
) -> None:
    """Serve models over HTTP.

    POST /predict takes records by column name; /v2 is the Open Inference
    Protocol. /docs shows all of it. With several models it is NAME/predict and
    NAME/docs. A file that is replaced is taken anew, and no request is lost.
    Stop with Ctrl-C or SIGTERM: what was accepted is finished.

    [bold]Examples[/bold]

    bootprob serve loans.model
    bootprob serve loans.model --host 0.0.0.0 --token-file token.txt
    bootprob serve loans.model churn.model
    bootprob serve loans.model --cost-fp 1 --cost-fn 5
    bootprob serve loans.model --certificate chain.pem --key key.pem --workers 2 --log json
    """
    try:
        from bootprob.server.limits import Limits
    except ImportError as error:
        raise DataError(str(error)) from None
    from bootprob.server.running import check_host, run

    limits = Limits(
        max_rows=max_rows, queue_rows=queue_rows, max_requests=max_requests, deadline=deadline
    )
    decided_by = costs.mistakes()
    token = token_file or os.environ.get("BOOTPROB_TOKEN") or None
    check_host(host, token)
    run(
        _named(model, name),
        host=host,
        port=port,
        limits=limits,
        token=token,
        metrics=metrics,
        workers=workers,
        max_connections=max_connections,
        header_deadline=header_deadline,
        drain_delay=drain_delay,
        costs=decided_by,
        trusted=tuple(trust or ()),
        certificate=certificate,
        key=key,
        log=log.value,
        rate_limit=rate_limit,
        traces=traces,
        grpc_port=grpc_port,
    )


def _named(models: list[Path], names: list[str] | None) -> dict[str, Path]:
    given = names or [path.stem for path in models]
    if len(given) != len(models):
        raise typer.BadParameter(
            f"{len(models)} models have {len(given)} names; give --name once for each."
        )
    if len(set(given)) < len(given):
        raise typer.BadParameter(
            f"Models must have names of their own, not {', '.join(given)}; say --name for each."
        )
    if len(given) > 1 and (taken := {"v2", "docs", "metrics"} & set(given)):
        raise typer.BadParameter(f"{taken.pop()!r} is an address of the server; give --name.")
    return dict(zip(given, models, strict=True))
