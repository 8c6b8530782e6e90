"""A plugin of pytest that writes down each test as it ends: a killed run says how far it got.

One line of JSON a test goes to the file that GPU_CHECK_TEST_LOG names; loaded by ``-p test_log``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

__all__ = ["TestLog", "pytest_configure"]


class TestLog:
    """Writes the outcome of each test.

    Parameters
    ----------
    path : Path
        Lines are appended.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has one line: of its call, or of what kept it from being called."""
        if report.when == "call" or report.outcome != "passed":
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message if crash is not None else str(report.longrepr or "")
            self._write(report.nodeid, report.outcome, message)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be read counts as a test that failed."""
        if report.failed:
            self._write(report.nodeid, "failed", str(report.longrepr)[-1500:])

    def _write(self, test: str, outcome: str, message: str) -> None:
        line: dict[str, Any] = {
            "test": test,
            "back end": _back_end(test),
            "outcome": outcome,
            "message": message[:1500] if outcome == "failed" else "",
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _back_end(test: str) -> str | None:
    """The back end in a test's parameters, as `Backend.__str__` of the tests writes it."""
    parameters = test.partition("[")[2].rstrip("]").split("-")
    devices = [k for k, word in enumerate(parameters) if word.split(":")[0] in ("cpu", "cuda")]
    kernels = [k for k, word in enumerate(parameters) if word in ("linear", "rbf")]
    if not devices or not kernels or devices[0] < kernels[0]:
        return None
    return "-".join(parameters[kernels[0] : devices[0] + 1])


def pytest_configure(config: pytest.Config) -> None:
    """Log in the process that collects the outcomes, not in its pytest-xdist workers."""
    path = os.environ.get("GPU_CHECK_TEST_LOG")
    if path and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(TestLog(Path(path)), "gpu-check-test-log")
