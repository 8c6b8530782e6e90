"""Counts for Prometheus, in a registry of their own for each server.

Several processes add up where the environment variable PROMETHEUS_MULTIPROC_DIR names a folder:
each writes its counts to files there, and whichever is asked reads all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.samples import Sample

from bootprob.encoding.columns import level_text
from bootprob.runtime.arrays import Floats
from bootprob.server.served_model import Scores, ServedModel

__all__ = ["SHARED_FOLDER", "Counts", "Metrics"]

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of prometheus_client, read when it is imported."""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ROWS = (1, 4, 16, 64, 256, 1024, 4096, 16384)
_OF_VERSIONS = "bootprob_queue_rows", "bootprob_rows_served", "bootprob_probability_sum"
_OF_CLASSES = {
    "training_probability_mean": "Mean out-of-bag probability.",
    "training_probability_deviation": "Standard deviation of the out-of-bag probability.",
    "probability_drift_z": "Mean served less trained, in errors of it.",
}


class Counts:
    """What is counted of all models of a server, each by its name."""

    def __init__(self) -> None:
        self._folder = os.environ.get(SHARED_FOLDER)
        self._registry = CollectorRegistry()
        self.models: dict[str, Metrics] = {}

        def named(kind: Any, name: str, text: str, *labels: str, **more: Any) -> Any:
            labelled = ["model", *labels]
            return kind(f"bootprob_{name}", text, labelled, registry=self._registry, **more)

        self.requests = named(Counter, "requests", "Requests answered.", "endpoint", "status")
        self.latency = named(
            Histogram, "request_seconds", "From first byte to last.", "endpoint", buckets=_SECONDS
        )
        self.batches = named(Histogram, "batch_rows", "Rows scored together.", buckets=_ROWS)
        self.scoring = named(Histogram, "score_seconds", "Time of one batch.", buckets=_SECONDS)
        self.queue = named(
            Gauge, "queue_rows", "Rows that wait to be scored.", multiprocess_mode="livesum"
        )
        self.rows = named(
            Gauge, "rows_served", "Rows scored by this version.", multiprocess_mode="livesum"
        )
        self.sums = named(
            Gauge, "probability_sum", "Sum of the probabilities served by this version.", "class",
            multiprocess_mode="livesum",
        )  # fmt: skip

    def text(self) -> bytes:
        """All of it, in Prometheus's format."""
        for each in self.models.values():
            each.note_queue()
        counted = self._registry
        if self._folder is not None:
            _forget_the_dead(Path(self._folder))
            counted = CollectorRegistry()
            MultiProcessCollector(counted, self._folder)
        families = list(counted.collect())
        values = {
            (each.name, each.labels["model"], each.labels.get("class", "")): each.value
            for family in families
            for each in family.samples
            if each.name in ("bootprob_rows_served", "bootprob_probability_sum")
        }
        for family in families:
            family.samples = [each for each in family.samples if self._is_served(each)]
        shown = CollectorRegistry()
        shown.register(_Families([*families, *self._of_models(values)]))
        return generate_latest(shown)

    def _is_served(self, sample: Sample) -> bool:
        """Not a gauge of a model that was unloaded, or of classes that it no longer has."""
        if sample.name not in _OF_VERSIONS:
            return True
        known = self.models.get(sample.labels["model"])
        return known is not None and sample.labels.get("class", known.classes[0]) in known.classes

    def _of_models(
        self, values: Mapping[tuple[str, str, str], float]
    ) -> Iterator[GaugeMetricFamily]:
        """What is known of each model, and follows from what was counted."""
        info = GaugeMetricFamily("bootprob_model", "1, of the model.", labels=["model", "version"])
        families = {
            name: GaugeMetricFamily(f"bootprob_{name}", text, labels=["model", "class"])
            for name, text in _OF_CLASSES.items()
        }
        for name, each in self.models.items():
            info.add_metric([name, each.version], 1)
            sums = [values.get(("bootprob_probability_sum", name, k), 0.0) for k in each.classes]
            found = each.drift(values.get(("bootprob_rows_served", name, ""), 0.0), np.array(sums))
            for what, of_classes in found.items():
                for label, value in zip(each.classes, of_classes.tolist(), strict=True):
                    families[what].add_metric([name, label], value)
        yield info
        yield from families.values()


class Metrics:
    """Latency, batches, queue of a model, and how far probabilities have moved since training."""

    def __init__(
        self, counts: Counts, served: ServedModel, queued_rows: Callable[[], float]
    ) -> None:
        self._counts, self._name, self.version = counts, served.name, served.version
        self._queued_rows = queued_rows
        self.classes = [level_text(label) for label in served.classes]
        self._mean, self._deviation = served.training_probability()
        self._trained = int(np.isfinite(served.svc.oob_proba_).all(axis=1).sum())
        self._is_of_fit = getattr(served.svc, "recalibration_", None) is None
        counts.models[served.name] = self
        self._batches = counts.batches.labels(served.name)
        self._scoring = counts.scoring.labels(served.name)
        self._queue = counts.queue.labels(served.name)
        self._rows = counts.rows.labels(served.name)
        self._sums = [counts.sums.labels(served.name, each) for each in self.classes]
        for each in (self._rows, *self._sums):
            each.set(0)

    def request(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request; `endpoint` is a route's pattern, never what a client sent."""
        self._counts.requests.labels(self._name, endpoint, str(status)).inc()
        self._counts.latency.labels(self._name, endpoint).observe(seconds)
        self.note_queue()

    def batch(self, scores: Scores, seconds: float) -> None:
        """Count rows scored together."""
        self._batches.observe(len(scores.probability))
        self._scoring.observe(seconds)
        self._rows.inc(len(scores.probability))
        for each, added in zip(self._sums, scores.probability.sum(axis=0).tolist(), strict=True):
            each.inc(added)

    def note_queue(self) -> None:
        """Count the rows that wait now."""
        self._queue.set(self._queued_rows())

    def drift(self, count: float, sums: Floats) -> dict[str, Floats]:
        """Mean probability of the rows served beside that of the training rows out of bag.

        z is the difference over its standard error if the rows were drawn like the training rows:
        ``(mean − m) / (s √(1 / served + 1 / trained))`` with the training rows' m and s.
        """
        found = {
            "training_probability_mean": self._mean,
            "training_probability_deviation": self._deviation,
        }
        # Probabilities of a recalibrated model are not those of the training rows.
        if count and self._is_of_fit and (self._deviation > 0).all():
            error = self._deviation * np.sqrt(1 / count + 1 / self._trained)
            found["probability_drift_z"] = (sums / count - self._mean) / error
        return found


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
