"""`make gpu-tune` rehearsed on the CPU, and what it takes into the table."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bootprob_gpu.hardware.launch_shapes import parsed

pytest.importorskip("triton")

ROOT = Path(__file__).parents[3]


def run(*command: object) -> subprocess.CompletedProcess:
    path = (ROOT, ROOT / "gpu")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(each) for each in path), "OMP_NUM_THREADS": "1"
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, *(str(each) for each in command)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip


def rehearsed(out: Path, *options: object) -> dict:
    done = run("-m", "gpu.tuning", "--device", "cpu", "--tiny", "--out", out, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = (path for path in out.glob("*.json") if path.name != "launch_shapes.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    if (out / "launch_shapes.json").exists():  # if anything was faster
        assert parsed((out / "launch_shapes.json").read_text(encoding="utf-8"))
    return content


def assert_all_measured(content: dict) -> None:
    assert content["rehearsal"]
    assert content["complete"]
    for name, part in content["findings"].items():
        assert part["status"] == "measured", name
        assert part["tried"][0]["candidate"] is None
        assert len(part["tried"]) > 1
        for each in part["tried"]:
            assert each["median, ms"] > 0, (name, each)


def test_findings_are_measured_and_written_down(tmp_path):
    content = rehearsed(tmp_path, "--only", "votes", "--only", "twin_cells")
    assert [name.split()[0] for name in content["findings"]] == [*3 * ["votes"], "twin_cells"]
    assert_all_measured(content)


@pytest.mark.endurance
def test_everything_is_measured(tmp_path):
    content = rehearsed(tmp_path)
    assert len(content["findings"]) == 16
    assert_all_measured(content)


def test_what_there_is_no_time_for_is_said(tmp_path):
    content = rehearsed(tmp_path, "--only", "smo", "--seconds", 0)
    assert not content["complete"]
    assert {part["status"] for part in content["findings"].values()} == {"not run"}
    assert not (tmp_path / "launch_shapes.json").exists()


def test_without_a_gpu_nothing_is_written(tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    done = run("-m", "gpu.tuning", "--out", tmp_path)
    assert done.returncode == 2, done.stderr
    assert not list(tmp_path.iterdir())


TAKES = """
import json, sys
from pathlib import Path
import torch
from gpu.tuning import tuner
from gpu.tuning.findings import Finding
from bootprob_gpu.hardware import launch_shapes

path = Path(sys.argv[1])
path.write_text(json.dumps({"format": 1, "devices": {"other": {"many_rows": 3}}}))

class Job:
    \"\"\"Answers with the warps that it is launched with; 2 are wrong, and 32 too many.\"\"\"
    def __call__(self):
        warps = launch_shapes.tuned_shape({"num_warps": 4}, "factor", "64")["num_warps"]
        if warps == 32:
            raise RuntimeError("out of resources")
        return warps

    def is_right(self, warps):
        return warps != wrong

times = {4: 10.0, 1: 20.0, 2: 1.0, 8: 9.0, 16: 8.9}
tuner.timed = lambda device, job, seconds, most: {"median, ms": times[job()]}

def tuned(*warps):
    one = tuner.Tuner(torch.device("cpu"), "card", path, seconds=0.0, say=lambda line: None)
    candidates = tuple({"num_warps": each} for each in warps)
    found = one.tune(Finding(("factor", "64"), candidates, lambda device: Job()))
    return found, json.loads(path.read_text())["devices"]

wrong = 2
found, devices = tuned(2, 32, 1)  # wrong, does not run, slower
assert found["status"] == "measured" and found["taken"] is None, found
assert found["tried"][1] == {"candidate": {"num_warps": 2}, "wrong": True}
assert found["tried"][2]["why"] == "RuntimeError: out of resources"
assert devices == {"other": {"many_rows": 3}}
found, devices = tuned(2, 1, 8, 16)
assert found["taken"] == {"num_warps": 16}, found
assert devices == {"other": {"many_rows": 3}, "card": {"factor": {"64": {"num_warps": 16}}}}
found, devices = tuned(8)  # from where the last one ended: 16 are as fast, but for noise
times[8] = 8.8
found, devices = tuned(8)
assert found["taken"] is None and devices["card"] == {"factor": {"64": {"num_warps": 16}}}
wrong = 16  # what holds so far is wrong: nothing is known to be right
found, devices = tuned(1)
assert found["status"] == "failed" and found["taken"] is None, found
path.write_text("{}")
try:
    tuned(1)
except ValueError:
    assert path.read_text() == "{}"
else:
    raise AssertionError
"""


def test_only_what_is_right_and_faster_is_taken(tmp_path):
    done = run("-c", TAKES, tmp_path / "table.json")
    assert done.returncode == 0, done.stderr


def test_every_candidate_is_one_that_the_table_may_hold(tmp_path):
    done = run("-c", """
import sys
from pathlib import Path
import torch
from gpu.tuning.findings import findings
from gpu.tuning.tuner import Tuner
from bootprob_gpu.hardware.launch_shapes import parsed

tuner = Tuner(torch.device("cpu"), "card", Path(sys.argv[1]), seconds=0.0, say=print)
for finding in findings(tiny=False):
    for candidate in finding.candidates:
        parsed(tuner._text(tuner._changed(finding, candidate)))
""", tmp_path / "table.json")  # fmt: skip
    assert done.returncode == 0, done.stderr
