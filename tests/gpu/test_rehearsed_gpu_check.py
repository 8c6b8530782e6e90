"""Every part of gpu/check on the pretended CUDA device, with tables of a few rows."""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from test_gpu_check import CHECK, names_of_parts

from bootprob_gpu.triton_choice import triton_kernels

HERE = Path(__file__).parent
AT_START = os.pathsep.join(map(str, (HERE / "pretended_cuda" / "at_start", HERE)))

# These train as far as a solver goes, again and again, or score many rows, which takes interpreted
# kernels a minute; what they are about does not hang on kernels.
IN_PLAIN_TORCH = ("agreement", "reruns", "out of memory", "kernel shares")


@pytest.fixture
def check(monkeypatch) -> Any:
    """Imports modules of the check, and forgets them: others have names that are used here too."""
    monkeypatch.syspath_prepend(CHECK)
    before = set(sys.modules)

    def module(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield module
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == CHECK:
            del sys.modules[name]


@pytest.fixture
def few_rows(check, monkeypatch) -> None:
    """Kernels are interpreted, program by program: 18 rows, 2 columns, 2 values of C, one of γ."""
    jobs = check("jobs")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(18, 2))
    small = jobs.Table("small", X, X[:, 0] + rng.normal(size=18) > 0)
    monkeypatch.setattr(jobs, "_loaded", lambda name: small._replace(name=f"small {name}"))
    monkeypatch.setattr(jobs, "DEFAULT_C", np.array([0.5, 2.0]))
    monkeypatch.setattr(jobs, "gamma_grid", lambda *given: np.array([0.5]))
    monkeypatch.setattr("bootprob.grids.DEFAULT_C", np.array([0.5, 2.0]))


@pytest.mark.parametrize("name", names_of_parts())
def test_a_part_passes(pretended_gpu, few_rows, check, monkeypatch, name):
    (part,) = (each for each in check("plan").PARTS if each.name == name)
    monkeypatch.setenv("PYTHONPATH", AT_START)  # of the processes that it starts
    channel = io.StringIO()
    module, function = part.code.split(":")
    record = check("record").Record(channel, "cuda:0", True, 10 * part.seconds, {})
    with triton_kernels("never" if name in IN_PLAIN_TORCH else "auto"):
        getattr(check(module), function)(record)
    events = [json.loads(line) for line in channel.getvalue().splitlines()]
    assert [each for each in events if each["event"] == "measured"]
    assert [each for each in events if each["event"] == "promise" and not each["holds"]] == []
    if module != "contract":  # whose tests are in another process
        assert pretended_gpu.launches
