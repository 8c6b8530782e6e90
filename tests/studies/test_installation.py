"""What is counted of an installation."""

from pathlib import Path

import packaging
import pytest

from docs.studies.installation.study import closure, of_torch, seconds, size


def test_all_that_is_needed_and_no_extras():
    found = closure("bootprob")
    # What torch and pandas need is there; what the extras and the tests need is not.
    assert {"torch", "sympy", "mpmath", "pandas", "python-dateutil", "llvmlite"} <= found
    assert not {"fastapi", "onnx", "pytest", "cvxpy"} & found
    assert closure("mpmath") == {"mpmath"}


def test_sizes_are_those_of_the_files():
    folder = Path(packaging.__file__).parent
    info = next(folder.parent.glob("packaging-*.dist-info"))
    there = [path for each in (folder, info) for path in each.rglob("*") if path.is_file()]
    assert size("packaging") == pytest.approx(sum(p.stat().st_size for p in there), rel=0.2)


def test_time_is_that_of_the_processor(monkeypatch):
    monkeypatch.setattr("docs.studies.installation.study._TIMES", 1)
    busy = "import time; end = time.process_time() + 0.4\nwhile time.process_time() < end: pass"
    assert seconds("-c", busy) > 0.4
    assert seconds("-c", "import time; time.sleep(0.6)") < 0.4


def test_files_that_import_torch():
    files = {"bootprob_gpu/models.py", "bootprob/exceptions.py", "bootprob/ensemble/scores.py"}
    assert of_torch(files) == ["bootprob/ensemble/scores.py", "bootprob_gpu/models.py"]
