"""The load test notices what it is there to notice."""

import json
from pathlib import Path

import numpy as np
import pytest

from gpu.benchmarks.checked_replies import Tally, version_of
from gpu.benchmarks.common.documents import render

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def tally(rng):
    def answers():
        return {
            "label": rng.integers(2, size=9),
            "probability": rng.random(9),
            "probability_interval": rng.random((9, 2)),
        }

    return Tally(rng.normal(size=(9, 3)), {"old": answers(), "new": answers()})


def reply(tally, rows, version):
    said = tally.offline[version]
    columns = (said[name][rows] for name in ("label", "probability", "probability_interval"))
    names = ("label", "probability", "interval")
    predictions = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return {"version": version, "predictions": predictions}


def test_right_replies_of_both_versions(tally):
    for version in ("old", "new"):
        tally.check(np.array([3, 1]), reply(tally, [3, 1], version))
    assert (tally.wrong_rows, len(tally.versions)) == (0, 2)
    assert tally.largest_difference == 0


@pytest.mark.parametrize(
    ("answered", "told", "wrong"),
    [
        ([1, 3], "new", 2),  # swapped
        ([3], "new", 2),  # lost
        ([3, 4], "new", 1),  # another client's
        ([3, 1], "old", 2),  # of the model before, in the name of the new one
    ],
)
def test_wrong_replies(tally, answered, told, wrong):
    tally.check(np.array([3, 1]), reply(tally, answered, told) | {"version": "new"})
    assert tally.wrong_rows == wrong


def test_versions_are_those_of_the_server(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"abc")
    assert version_of(path) == "ba7816bf8f01"  # FIPS 180-2, example B.1


def test_the_page_says_what_failed_requests_got():
    result = json.loads((DOCS / "results" / "server.json").read_text(encoding="utf-8"))

    def page():
        numbers = {"clients": 32, "deadline": 60, "queue_rows": 4096}
        return render("gpu/benchmarks/server_load.md.jinja", result=result, **numbers)

    assert page() == (DOCS / "server_load.md").read_text(encoding="utf-8")
    assert "rows, of which 0 differ." in page()
    last = result["workers"]["phases"][-1]
    last["rows that differ"] = 3
    last["replies"] = {"200": last["requests sent"] - 79, "429": 2, "503": 77}
    assert "| 79 (429: 2, 503: 77) |" in page().splitlines()[-1]
    assert "rows, of which 3 differ." in page()
