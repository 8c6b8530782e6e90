"""A plugin of pytest that writes down each test as it ends: a killed run says how far it got.

One line of JSON a test goes to the file that GPU_CHECK_TEST_LOG names; loaded by
``-p gpu.check.test_log``. A test that fails for want of a package is no failure of the engine: it
is skipped, and its line says which package.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

__all__ = ["TestLog", "pytest_configure", "pytest_runtest_makereport"]

_LACKS = "lacks"
_OURS = ("bootprob", "bootprob_gpu", "gpu")


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
            lacks = dict(report.user_properties).get(_LACKS)
            self._write(report.nodeid, report.outcome, message, lacks)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be read counts as a test that failed."""
        if report.failed:
            self._write(report.nodeid, "failed", str(report.longrepr)[-1500:], None)

    def _write(self, test: str, outcome: str, message: str, lacks: object) -> None:
        line: dict[str, Any] = {
            "test": test,
            "back end": _back_end(test),
            "outcome": outcome,
            _LACKS: lacks,
            "message": message[:1500] if outcome == "failed" else "",
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where a test, or what prepares it, imports a package that is not there, it is skipped."""
    report = yield
    lacks = _missing(call.excinfo.value) if call.excinfo is not None else None
    if report.failed and lacks is not None:
        path, line, _ = item.location
        report.outcome = "skipped"
        report.longrepr = (path, line or 0, f"Skipped: the package {lacks} is not installed")
        report.user_properties.append((_LACKS, lacks))
    return report


def _missing(error: BaseException | None) -> str | None:
    """The package that an error, or one that it comes from, says is not there."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name is not None:
            package = error.name.split(".")[0]
            if package not in _OURS and find_spec(package) is None:
                return package
        error = error.__cause__ or error.__context__
    return None


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
