"""The part of `make gpu-check` that launches each kernel beside its twin finds what differs."""

import json

import pytest
from gpu_check import CHECK, inside, only, run, written

pytest.importorskip("triton")


def test_a_kernel_that_is_wrong_breaks_its_promise(tmp_path):
    """Its twin is another, here, which is the same to the comparison."""
    done = inside("""
import json, os, sys
os.environ["TRITON_INTERPRET"] = "1"
import torch
from gpu.check import each_kernel
from bootprob_gpu.interior_point import batched as interior_point
from gpu.check.record import Record

class Channel:
    def write(self, line): sys.stdout.write(line)
    def flush(self): pass

given = each_kernel.witnessed
def spoilt(witness):
    def of(name, launch, twin, args, kwargs):
        if name == "Cholesky solve":
            return witness(name, lambda *a, **k: launch(*a, **k) * (1 + 1e-7), twin, args, kwargs)
        return witness(name, launch, twin, args, kwargs)
    return given(of)

def linear_only(device, tiny):
    for title, work in jobs(device, tiny):
        if not title.startswith("RBF"):
            yield title, work

jobs, each_kernel._jobs = each_kernel._jobs, linear_only
each_kernel.witnessed = spoilt
record = Record(Channel(), "cpu", True, 600, {})
each_kernel.run(record)
""")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    broken = [
        each["promise"] for each in events if each["event"] == "promise" and not each["holds"]
    ]
    assert [each.split(";")[0] for each in broken] == [
        "Cholesky solve",
        "every kernel was launched",
    ]
    (last,) = [each for each in events if each.get("promise") == "every kernel was launched"]
    assert last["not launched"] == ["smo"]


def test_each_kernel_is_as_its_twin(tmp_path):
    done = run(CHECK, tmp_path, *only("each kernel against its twin"))
    assert done.returncode == 0, done.stdout + done.stderr
    part = written(tmp_path)["parts"]["each kernel against its twin"]
    assert part["status"] == "passed"
    assert sum("; RBF" in name for name in part["measured"]) == 4
