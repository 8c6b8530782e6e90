"""Promise tests write what they measured beside them, so that the docs can show it."""

import json
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

_RESULTS = Path(__file__).parent / "results"


@pytest.fixture
def record() -> Callable[[str, Any], None]:
    """Write measurements to ``results/NAME.json`` and show them."""

    def write(name: str, measured: Any) -> None:
        _RESULTS.mkdir(exist_ok=True)
        versions = {n: version(n) for n in ("bootprob", "torch", "scikit-learn", "numpy")}
        versions["python"] = platform.python_version()
        text = json.dumps(
            {"command": "make promises", "versions": versions, "measured": measured}, indent=1
        )
        (_RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(f"\n{name}: {json.dumps(measured, indent=1)}")

    return write
