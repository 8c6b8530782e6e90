"""Fixtures of all tests."""

import os

import numpy as np
import pytest

_SEED = int(os.environ.get("BOOTPROB_TEST_SEED", np.random.SeedSequence().entropy % 2**32))


def pytest_report_header() -> str:
    return _said()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """With -q there is no header."""
    terminalreporter.write_line(_said())


def _said() -> str:
    return f"fresh random input: BOOTPROB_TEST_SEED={_SEED}"


@pytest.fixture
def rng() -> np.random.Generator:
    """Fresh random numbers on every run; the header of the run tells the seed."""
    return np.random.default_rng(_SEED)
