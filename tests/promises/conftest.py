"""Promise tests write what they measured beside them, so that the docs can show it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu.benchmarks.common.study_results import save

_RESULTS = Path(__file__).parent / "results"


@pytest.fixture
def record() -> Callable[[str, Any], None]:
    """Write measurements to ``results/NAME.json``, with date and commit, and show them."""

    def write(name: str, measured: Any) -> None:
        save(_RESULTS / f"{name}.json", "make promises", {"measured": measured})
        print(f"\n{name}: {json.dumps(measured, indent=1)}")

    return write
