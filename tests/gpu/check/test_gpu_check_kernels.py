"""The part of `make gpu-check` that launches each kernel beside its twin finds what differs."""

import io
import json
import os

import pytest

pytest.importorskip("triton")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("kernels are not interpreted here", allow_module_level=True)

from gpu.check import each_kernel
from gpu.check.record import Record


def events() -> list[dict]:
    """What a rehearsal reports."""
    channel = io.StringIO()
    each_kernel.run(Record(channel, "cpu", True, 600, {}))
    return [json.loads(line) for line in channel.getvalue().splitlines()]


def broken(found: list[dict]) -> list[dict]:
    return [each for each in found if each["event"] == "promise" and not each["holds"]]


def test_a_kernel_that_is_wrong_breaks_its_promise(monkeypatch):
    """Its twin is another, here, which is the same to the comparison."""
    given, jobs = each_kernel.witnessed, each_kernel._jobs

    def spoilt(witness):
        def of(name, launch, twin, args, kwargs):
            def off(*args, **kwargs):
                return launch(*args, **kwargs) * (1 + 1e-7)

            wrong = name == "Cholesky solve"
            return witness(name, off if wrong else launch, twin, args, kwargs)

        return given(of)

    def linear_only(device, tiny):
        return (each for each in jobs(device, tiny) if not each[0].startswith("RBF"))

    monkeypatch.setattr(each_kernel, "witnessed", spoilt)
    monkeypatch.setattr(each_kernel, "_jobs", linear_only)
    *others, last = broken(events())
    assert [each["promise"].split(";")[0] for each in others] == ["Cholesky solve"]
    assert last["promise"] == "every kernel was launched"
    assert last["not launched"] == ["smo"]


def test_each_kernel_is_as_its_twin():
    found = events()
    assert broken(found) == []
    measured = [each["name"] for each in found if each["event"] == "measured"]
    assert sum("; RBF" in name for name in measured) == 4
