"""Counts for Prometheus, in a registry of their own for each application.

Several processes add up where the environment variable PROMETHEUS_MULTIPROC_DIR names a folder:
each writes its counts to files there, and whichever is asked reads all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from bootprob.encoding.columns import level_text
from bootprob.server.served_model import Scores, ServedModel

__all__ = ["SHARED_FOLDER", "Metrics"]

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of prometheus_client, read when it is imported."""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ROWS = (1, 4, 16, 64, 256, 1024, 4096, 16384)


class Metrics:
    """Latency, batches, queue, and how far probabilities have moved since training."""

    def __init__(self, served: ServedModel, queued_rows: Callable[[], float]) -> None:
        self._folder = os.environ.get(SHARED_FOLDER)
        self._registry = CollectorRegistry()
        self._queued_rows = queued_rows
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
        self._queue = Gauge(
            "bootprob_queue_rows", "Rows that wait to be scored.", multiprocess_mode="livesum",
            **options,
        )  # fmt: skip
        self._rows = Gauge(
            "bootprob_rows_served", "Rows scored.", multiprocess_mode="sum", **options
        )
        self._sums = Gauge(
            "bootprob_probability_sum", "Sum of the probabilities served.", ["class"],
            multiprocess_mode="sum", **options,
        )  # fmt: skip
        self._drift = _Drift(served)
        for name in self._drift.classes:
            self._sums.labels(name).set(0)
        info = Gauge(
            "bootprob_model", "1, of the model.", ["name", "version"], multiprocess_mode="max",
            **options,
        )  # fmt: skip
        info.labels(served.name, served.version).set(1)

    def request(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request; `endpoint` is a route's pattern, never what a client sent."""
        self._requests.labels(endpoint, str(status)).inc()
        self._latency.labels(endpoint).observe(seconds)
        self._queue.set(self._queued_rows())

    def batch(self, scores: Scores, seconds: float) -> None:
        """Count rows scored together."""
        self._batches.observe(len(scores.probability))
        self._scoring.observe(seconds)
        self._rows.inc(len(scores.probability))
        sums = scores.probability.sum(axis=0).tolist()
        for name, added in zip(self._drift.classes, sums, strict=True):
            self._sums.labels(name).inc(added)

    def text(self) -> bytes:
        """All of it, in Prometheus's format."""
        self._queue.set(self._queued_rows())
        counted = self._registry
        if self._folder is not None:
            _forget_the_dead(Path(self._folder))
            counted = CollectorRegistry()
            MultiProcessCollector(counted, self._folder)
        families = list(counted.collect())
        shown = CollectorRegistry()
        shown.register(_Families([*families, *self._drift.families(families)]))
        return generate_latest(shown)


class _Families:
    """Families that are collected already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _forget_the_dead(folder: Path) -> None:
    """Take gauges of processes out that are no more; what they counted stays."""
    for path in folder.glob("gauge_live*_*.db"):
        found = re.fullmatch(r".*_(\d+)", path.stem)
        if found and not psutil.pid_exists(int(found[1])):
            mark_process_dead(int(found[1]), str(folder))


class _Drift:
    """Mean probability of the rows served beside that of the training rows out of bag.

    z is the difference over its standard error if the rows were drawn like the training rows:
    ``(mean − m) / (s √(1 / served + 1 / trained))`` with the training rows' m and s.
    """

    def __init__(self, served: ServedModel) -> None:
        self.classes = [level_text(label) for label in served.classes]
        self._mean, self._deviation = served.training_probability()
        self._trained = int(np.isfinite(served.svc.oob_proba_).all(axis=1).sum())

    def families(self, counted: Iterable[Metric]) -> Iterator[GaugeMetricFamily]:
        """What follows from what was counted, and the training rows' own."""
        samples = [each for family in counted for each in family.samples]
        count = sum(each.value for each in samples if each.name == "bootprob_rows_served")
        of_class = {
            each.labels["class"]: each.value
            for each in samples
            if each.name == "bootprob_probability_sum"
        }
        sums = np.array([of_class.get(name, 0.0) for name in self.classes])
        found: dict[str, tuple[str, np.ndarray]] = {
            "training_probability_mean": ("Mean out-of-bag probability.", self._mean),
            "training_probability_deviation": (
                "Standard deviation of the out-of-bag probability.", self._deviation,
            ),
        }  # fmt: skip
        if count and (self._deviation > 0).all():
            error = self._deviation * np.sqrt(1 / count + 1 / self._trained)
            z = (sums / count - self._mean) / error
            found["probability_drift_z"] = ("Mean served less trained, in errors of it.", z)
        for name, (text, values) in found.items():
            family = GaugeMetricFamily(f"bootprob_{name}", text, labels=["class"])
            for label, value in zip(self.classes, values, strict=True):
                family.add_metric([label], float(value))
            yield family
