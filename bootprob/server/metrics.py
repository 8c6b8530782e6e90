"""Counts for Prometheus, in a registry of their own for each application."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily

from bootprob.encoding.columns import level_text
from bootprob.server.served_model import Scores, ServedModel

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ROWS = (1, 4, 16, 64, 256, 1024, 4096, 16384)


class Metrics:
    """Latency, batches, queue, and how far probabilities have moved since training."""

    def __init__(self, served: ServedModel, queued_rows: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        options: dict[str, Any] = {"registry": self._registry}
        self._requests = Counter(
            "bootprob_requests", "Requests answered.", ["endpoint", "status"], **options
        )
        self._latency = Histogram(
            "bootprob_request_seconds", "From first byte to last.", ["endpoint"],
            buckets=_SECONDS, **options,
        )  # fmt: skip
        self._batches = Histogram(
            "bootprob_batch_rows", "Rows scored together.", buckets=_ROWS, **options
        )
        self._scoring = Histogram(
            "bootprob_score_seconds", "Time of one batch.", buckets=_SECONDS, **options
        )
        queue = Gauge("bootprob_queue_rows", "Rows that wait to be scored.", **options)
        queue.set_function(queued_rows)
        self._drift = _Drift(served)
        self._registry.register(self._drift)
        info = Gauge("bootprob_model", "1, of the model.", ["name", "version"], **options)
        info.labels(served.name, served.version).set(1)

    def request(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request; `endpoint` is a route's pattern, never what a client sent."""
        self._requests.labels(endpoint, str(status)).inc()
        self._latency.labels(endpoint).observe(seconds)

    def batch(self, scores: Scores, seconds: float) -> None:
        """Count rows scored together."""
        self._batches.observe(len(scores.probability))
        self._scoring.observe(seconds)
        self._drift.add(scores)

    def text(self) -> bytes:
        """All of it, in Prometheus's format."""
        return generate_latest(self._registry)


class _Drift:
    """Mean probability of the rows served beside that of the training rows out of bag.

    z is the difference over its standard error if the rows were drawn like the training rows:
    ``(mean − m) / (s √(1 / served + 1 / trained))`` with the training rows' m and s.
    """

    def __init__(self, served: ServedModel) -> None:
        self._classes = [level_text(label) for label in served.classes]
        self._mean, self._deviation = served.training_probability()
        self._trained = int(np.isfinite(served.svc.oob_proba_).all(axis=1).sum())
        self._sum, self._count = np.zeros(len(self._classes)), 0

    def add(self, scores: Scores) -> None:
        self._sum += scores.probability.sum(axis=0)
        self._count += len(scores.probability)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Values now, as prometheus_client asks for them."""
        of_class: dict[str, tuple[str, np.ndarray]] = {
            "probability_sum": ("Sum of the probabilities served.", self._sum),
            "training_probability_mean": ("Mean out-of-bag probability.", self._mean),
            "training_probability_deviation": (
                "Standard deviation of the out-of-bag probability.", self._deviation,
            ),
        }  # fmt: skip
        if self._count and (self._deviation > 0).all():
            error = self._deviation * np.sqrt(1 / self._count + 1 / self._trained)
            z = (self._sum / self._count - self._mean) / error
            of_class["probability_drift_z"] = ("Mean served less trained, in errors of it.", z)
        for name, (text, values) in of_class.items():
            family = GaugeMetricFamily(f"bootprob_{name}", text, labels=["class"])
            for label, value in zip(self._classes, values, strict=True):
                family.add_metric([label], float(value))
            yield family
        yield GaugeMetricFamily("bootprob_rows_served", "Rows scored.", value=self._count)
