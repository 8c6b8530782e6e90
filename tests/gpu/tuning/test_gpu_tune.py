"""`make gpu-tune` rehearsed on the CPU, and what it takes into the table."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bootprob_gpu.hardware import launch_shapes
from bootprob_gpu.hardware.launch_shapes import parsed
from bootprob_gpu.hardware.triton_interpreted import loop_bounds

pytest.importorskip("triton")
from gpu.tuning import __main__ as program
from gpu.tuning import tuner
from gpu.tuning.findings import Finding, findings

ROOT = Path(__file__).parents[3]


REHEARSAL = ("--device", "cpu", "--tiny")


def run(*options: object) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'gpu'}"}
    return subprocess.run(
        [sys.executable, "-m", "gpu.tuning", *(str(each) for each in options)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip


@pytest.fixture
def main(monkeypatch):
    """The program's exit status; in this process, where its kernels are interpreted."""

    def of(*options: object) -> int:
        if os.environ.get("TRITON_INTERPRET") != "1":
            return run(*options).returncode
        monkeypatch.setattr(sys, "argv", ["gpu.tuning", *map(str, options)])
        with loop_bounds():
            return program.main()

    return of


def written(out: Path) -> dict:
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


def test_findings_are_measured_and_written_down(main, tmp_path):
    only = "--only", "votes", "--only", "twin_cells"
    assert main(*REHEARSAL, "--out", tmp_path, *only) == 0
    content = written(tmp_path)
    assert [name.split()[0] for name in content["findings"]] == [*3 * ["votes"], "twin_cells"]
    assert_all_measured(content)


@pytest.mark.endurance
def test_everything_is_measured(tmp_path):
    done = run(*REHEARSAL, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    content = written(tmp_path)
    assert len(content["findings"]) == 16
    assert_all_measured(content)


def test_what_there_is_no_time_for_is_said(main, tmp_path):
    assert main(*REHEARSAL, "--out", tmp_path, "--only", "smo", "--seconds", 0) == 0
    content = written(tmp_path)
    assert not content["complete"]
    assert {part["status"] for part in content["findings"].values()} == {"not run"}
    assert not (tmp_path / "launch_shapes.json").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_nothing_is_written(main, tmp_path):
    assert main("--out", tmp_path) == 2
    assert not list(tmp_path.iterdir())


class Job:
    """Answers with the warps that it is launched with; some are wrong, and 32 too many."""

    wrong = 2

    def __call__(self):
        warps = launch_shapes.tuned_shape({"num_warps": 4}, "factor", "64")["num_warps"]
        if warps == 32:
            raise RuntimeError("out of resources")
        return warps

    def is_right(self, warps):
        return warps != self.wrong


def tuner_of(table: Path) -> tuner.Tuner:
    return tuner.Tuner(torch.device("cpu"), "card", table, seconds=0.0, say=lambda line: None)


def test_only_what_is_right_and_faster_is_taken(tmp_path, monkeypatch):
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"format": 1, "devices": {"other": {"many_rows": 3}}}))
    times = {4: 10.0, 1: 20.0, 2: 1.0, 8: 9.0, 16: 8.9}
    monkeypatch.setattr(
        tuner, "timed", lambda device, job, seconds, most: {"median, ms": times[job()]}
    )

    def tuned(*warps):
        candidates = tuple({"num_warps": each} for each in warps)
        finding = Finding(("factor", "64"), candidates, lambda device: Job())
        found = tuner_of(path).tune(finding)
        return found, json.loads(path.read_text())["devices"]

    found, devices = tuned(2, 32, 1)  # wrong, does not run, slower
    assert found["status"] == "measured"
    assert found["taken"] is None
    assert found["tried"][1] == {"candidate": {"num_warps": 2}, "wrong": True}
    assert found["tried"][2]["why"] == "RuntimeError: out of resources"
    assert devices == {"other": {"many_rows": 3}}
    found, devices = tuned(2, 1, 8, 16)
    assert found["taken"] == {"num_warps": 16}
    assert devices == {"other": {"many_rows": 3}, "card": {"factor": {"64": {"num_warps": 16}}}}
    found, devices = tuned(8)  # from where the last one ended: 16 are as fast, but for noise
    times[8] = 8.8
    found, devices = tuned(8)
    assert found["taken"] is None
    assert devices["card"] == {"factor": {"64": {"num_warps": 16}}}
    monkeypatch.setattr(Job, "wrong", 16)  # what holds so far: nothing is known to be right
    found, devices = tuned(1)
    assert found["status"] == "failed"
    assert found["taken"] is None
    path.write_text("{}")
    with pytest.raises(ValueError):  # noqa: PT011 - whatever is wrong with it
        tuned(1)
    assert path.read_text() == "{}"


def test_every_candidate_is_one_that_the_table_may_hold(tmp_path):
    fresh = tuner_of(tmp_path / "table.json")
    for finding in findings(tiny=False):
        for candidate in finding.candidates:
            parsed(fresh._text(fresh._changed(finding, candidate)))
