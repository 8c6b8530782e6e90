"""Fixtures of all tests."""

import gc
import os

import numpy as np
import pytest

# Always the same, but for `make test-fresh`. Workers of pytest-xdist, and processes that tests
# start, inherit it.
_SEED = int(os.environ.setdefault("BOOTPROB_TEST_SEED", "918854976"))


def pytest_report_header() -> str:
    return _said()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """With -q there is no header."""
    terminalreporter.write_line(_said())


def pytest_collection_finish() -> None:
    """What is there now stays to the end: the collector need not walk through it in every test."""
    gc.collect()
    gc.freeze()


def _said() -> str:
    return f"random input: BOOTPROB_TEST_SEED={_SEED}"


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of reports are made and not rendered, which is most of what a report takes."""
    from bootprob.report import svg

    class Undrawn(svg.Figure):
        def savefig(self, file, **options) -> None:
            file.write('<svg viewBox="0 0 1 1"></svg>')

    monkeypatch.setattr(svg, "Figure", Undrawn)


@pytest.fixture
def one_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Composite posteriors try one link besides the logit, no likelier for that."""
    from bootprob.ensemble.uncertainty import composite_model

    share = 0.3 / (0.3 + 0.7 / len(composite_model.TAILS))
    monkeypatch.setattr(composite_model, "TAILS", ((-0.3, -0.3, 0.0, 0.0),))
    monkeypatch.setattr(composite_model, "_LOGIT_SHARE", share)


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers; the run tells their seed."""
    return np.random.default_rng(_SEED)
