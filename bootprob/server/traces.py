"""Spans of requests for OpenTelemetry, where it is set up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.types import Scope

from bootprob.exceptions import DataError
from bootprob.runtime.version import __version__

__all__ = ["RequestSpan", "request_span", "send_traces"]


@dataclass
class RequestSpan:
    """What a request's span is told at its end; nothing without OpenTelemetry."""

    span: Any = None

    def end(self, method: str, route: str, status: int, name: str, model: str | None) -> None:
        """Say how it ended, by the route's pattern and never what a client sent."""
        if self.span is None or not self.span.is_recording():
            return
        from opentelemetry.trace import Status, StatusCode

        self.span.update_name(f"{method} {route}")
        self.span.set_attributes(
            {
                "http.request.method": method,
                "http.route": route,
                "http.response.status_code": status,
                "bootprob.request_id": name,
            }
        )
        if model is not None:
            self.span.set_attribute("bootprob.model", model)
        if status >= 500:
            self.span.set_status(Status(StatusCode.ERROR))


@contextmanager
def request_span(scope: Scope) -> Iterator[RequestSpan]:
    """A span around a request, below that of the client whose ``traceparent`` it has."""
    try:
        from opentelemetry import propagate, trace
    except ImportError:
        yield RequestSpan()
        return
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    tracer = trace.get_tracer("bootprob.server", __version__)
    with tracer.start_as_current_span(
        str(scope["method"]), propagate.extract(headers), kind=trace.SpanKind.SERVER,
        record_exception=False,  # its message may quote data
    ) as span:  # fmt: skip
        yield RequestSpan(span)


def send_traces() -> None:
    """Send the spans of this process by OTLP over HTTP, as the variables OTEL_… say where.

    Raises
    ------
    DataError
        The packages are not installed.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise DataError('Traces need OpenTelemetry: pip install "bootprob[tracing]".') from None
    resource = Resource.create({"service.name": "bootprob", "service.version": __version__})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
