"""Kill runs of `score_dataset` and see what a rerun makes of them.

    python tests/batch_scoring/killed_runs.py MODEL INPUT OUT (any | each-file-operation) SEED

Run by tests/batch_scoring/test_batch_scoring_interrupted.py, in a process of its own as it forks.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from batch_runs import alone, cut_small, read

from bootprob.batch_scoring import score_dataset
from bootprob.exceptions import DataError

_OPERATIONS = ("open", "os.chmod", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate")
_AT_RANDOM = 40  # runs that are killed at any moment


def _child(arguments: list[Path], operation: int | None, seconds: float | None) -> int:
    """Score in a child that is killed before a file operation, or after some time.

    Returns
    -------
    int
        Its exit code: 0, 3 if the output was there already, −9 if it was killed.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if operation is not None:
                _kill_at(operation, arguments[-1])
            score_dataset(*arguments)
            code = 0
        except DataError as error:
            code = 3 if "is not empty" in str(error) else 1
            print(error, file=sys.stderr)
        finally:
            os._exit(code)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _kill_at(operation: int, output: Path) -> None:
    """Die before the operation of this number on a file of the output's folder."""
    seen = 0

    def hook(event: str, given: tuple[object, ...]) -> None:
        nonlocal seen
        if event in _OPERATIONS and str(output.parent) in str(given[0]):
            seen += 1
            if seen > operation:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def main(model: str, source: str, output: str, moment: str, seed: str) -> None:
    """Kill, run again and compare, many times; prints how often what happened, as JSON."""
    cut_small(pytest.MonkeyPatch())
    draw = random.Random(int(seed))
    place = Path(output).parent
    place.mkdir()
    arguments = [Path(model), Path(source), Path(output)]
    assert _child(arguments, None, None) == 0
    _empty(place)
    begin = time.perf_counter()  # of the second run, as the first may have had to compile
    assert _child(arguments, None, None) == 0
    lasts = time.perf_counter() - begin
    expected = read(Path(output))
    counts = {"runs": 0, "killed": 0, "files left by kills": 0}
    while counts["runs"] < _AT_RANDOM or moment != "any":
        _empty(place)
        if moment == "any":
            # Up to three kills, one after the other.
            codes = [_child(arguments, None, draw.uniform(0, 1.1 * lasts)) for _ in range(3)]
        else:
            codes = [_child(arguments, counts["runs"], None)]
        counts["runs"] += 1
        counts["killed"] += codes.count(-signal.SIGKILL)
        counts["files left by kills"] += len(list(place.rglob(".*.part")))
        assert set(codes) <= {0, 3, -signal.SIGKILL}, codes
        if codes == [0] and moment != "any":
            break  # there are no more operations
        assert _child(arguments, None, None) in (0, 3)
        pd.testing.assert_frame_equal(read(Path(output)), expected, rtol=1e-12, atol=1e-15)
        alone(Path(output))
        assert len(list(place.iterdir())) == 2
        if not arguments[-1].suffix:
            assert all(each.name.startswith("part-") for each in arguments[-1].iterdir())
    print(json.dumps(counts))


def _empty(folder: Path) -> None:
    for each in sorted(folder.rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() else each.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
