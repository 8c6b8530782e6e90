"""Fixtures of all tests."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest


def _fresh_seed() -> int:
    """Another for each commit, the same for whoever tests it."""
    tree = subprocess.run(
        ["git", "rev-parse", "HEAD^{tree}"],
        cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if tree.returncode:  # no checkout
        return int(np.random.SeedSequence().entropy) % 2**32
    return int(tree.stdout[:8], 16)


# Workers of pytest-xdist, and processes that tests start, inherit it.
_SEED = int(os.environ.setdefault("BOOTPROB_TEST_SEED", str(_fresh_seed())))


def pytest_report_header() -> str:
    return _said()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """With -q there is no header."""
    terminalreporter.write_line(_said())


def _said() -> str:
    return f"random input: BOOTPROB_TEST_SEED={_SEED}"


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are fresh for each commit; the run tells the seed."""
    return np.random.default_rng(_SEED)
