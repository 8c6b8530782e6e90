"""What clients of a server are told, every row compared with what the model says offline."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Tally", "version_of"]

_TOLERANCE = 1e-12


def version_of(path: Path) -> str:
    """What `bootprob serve` says to be the version of a model file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


class Tally:
    """Replies, counted and compared with what the model that they name says offline.

    Parameters
    ----------
    X : ndarray, shape (n, p)
        Rows that requests are drawn from.
    offline : dict of str to dict of str to ndarray
        From `BootstrapSVC.summarize` of all of them, by the version of the model.
    """

    def __init__(self, X: np.ndarray, offline: dict[str, dict[str, np.ndarray]]) -> None:
        self.X, self.offline = X, offline
        self.versions: Counter[str] = Counter()
        self.sent = 0
        self.replies: Counter[str] = Counter()
        self.latencies: list[float] = []
        self.wrong_rows = 0
        self.largest_difference = 0.0

    def body(self, rows: np.ndarray) -> dict[str, Any]:
        """What a client sends."""
        return {"records": [{f"x{k}": v for k, v in enumerate(self.X[row])} for row in rows]}

    def check(self, rows: np.ndarray, reply: dict[str, Any]) -> None:
        """Compare a reply's rows, one by one."""
        predictions, offline = reply["predictions"], self.offline[reply["version"]]
        self.versions[reply["version"]] += 1
        if len(predictions) != len(rows):
            self.wrong_rows += max(len(rows), len(predictions))
            return
        found = np.array([[each["probability"], *each["interval"]] for each in predictions])
        wanted = np.column_stack(
            [offline["probability"][rows], offline["probability_interval"][rows]]
        )
        difference = np.abs(found - wanted).max(axis=1)
        labels = np.array([each["label"] for each in predictions])
        right = (difference <= _TOLERANCE) & (labels == offline["label"][rows])
        self.wrong_rows += int((~right).sum())
        self.largest_difference = max(self.largest_difference, float(difference.max()))

    def take(
        self, rows: np.ndarray, status: int, headers: Mapping[str, str], content: bytes
    ) -> bool:
        """Count a reply and check it; whether it answers."""
        self.replies[str(status)] += 1
        if status == 200:
            self.check(rows, json.loads(content))
        elif status in (429, 503) and "Retry-After" not in headers:
            self.replies["refused without Retry-After"] += 1
        return status == 200

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
            "versions": len(self.versions),
            "largest difference": self.largest_difference,
        }  # fmt: skip
