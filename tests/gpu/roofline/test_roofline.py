"""Predictions follow from counts by stated arithmetic, and the document shows those of the file."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gpu.benchmarks.gpu_results import newest
from gpu.check.floors import beside_its_floor, linear_training, vote_shares
from gpu.roofline import (
    hardware,
    interior_point_counts,
    linear_prediction,
    path_prediction,
    prediction_table,
    scoring_prediction,
)
from gpu.roofline.interior_point_counts import Executed
from gpu.roofline.predicted_jobs import REPLICATES, predictions

GPU = Path(__file__).parents[3] / "gpu"
DOCUMENT = GPU.parent / "docs" / "engine.md"
CONTENT = json.loads((GPU / "results" / "predictions.json").read_text(encoding="utf-8"))
PATHS = {
    "models": 1210,
    "iterations of a model": 300.0,
    "rows renewed of a model": 50.0,
    "TB of kernel rows": 0.001,
    "paths on a multiprocessor": 2,
    "schedule": {"by number": 90_000, "hardest γ first": 80_000, "no shorter than": 70_000},
}


def executed(rng, **options):
    n_iter = rng.integers(5, 25, (20, 11))
    return interior_point_counts.job(n_iter, 500, **options)


def test_predictions_grow_with_the_work(rng):
    done = executed(rng)
    twice = Executed(*(2 * number for number in vars(done).values()))
    one, two = (linear_prediction.predicted(each, 500, 31)["seconds"] for each in (done, twice))
    assert two == pytest.approx(2 * one)
    fewer, all_rows = (
        path_prediction.predicted(PATHS, rows, 30, path_prediction.BEFORE, 500)["seconds"]
        for rows in (360, 569)
    )
    assert fewer < all_rows


def test_no_prediction_is_below_its_floor(rng):
    rates = hardware.ceilings(hardware.H100)
    n_iter = rng.integers(5, 25, (500, 11))
    done = interior_point_counts.job(n_iter, 569)
    for found, work in (
        (linear_prediction.predicted(done, 569, 31), linear_training(569, 30, 5500, n_iter.sum())),
        *(
            (scoring_prediction.predicted(work), work)
            for work in (vote_shares(1000, 61, 5500, t) for t in (torch.float32, torch.float64))
        ),
    ):
        assert beside_its_floor(work, rates, 1e3 * found["seconds"])["time / floor"] > 1


def test_causes_make_the_sum_and_none_is_negative(rng):
    for found in (
        linear_prediction.predicted(executed(rng), 500, 31),
        linear_prediction.predicted(executed(rng, before=True), 500, 31),
        path_prediction.predicted(PATHS, 569, 30, path_prediction.BEFORE, 500),
    ):
        assert found["seconds"] == pytest.approx(sum(found["causes"].values()))
        assert min(found["causes"].values()) >= 0


def test_memory_is_a_bound_of_its_own():
    starved = {**PATHS, "TB of kernel rows": 1.0}
    plenty, little = (
        path_prediction.predicted(found, 569, 30, path_prediction.BEFORE, 500)
        for found in (PATHS, starved)
    )
    assert plenty["causes"]["rows from memory, beyond that"] == 0
    assert little["seconds"] > 50 / 3.35 > plenty["seconds"]  # 50 TB


def test_launches_count_only_where_they_take_longer(rng):
    done = executed(rng)
    many = replace(done, launches=10**6)
    found = linear_prediction.predicted(many, 500, 31)
    assert found["seconds"] >= 10**6 * hardware.ASSUMED.launch
    assert linear_prediction.predicted(done, 10**7, 31)["causes"]["launches beyond that"] == 0


def test_the_file_follows_from_its_counts():
    """So nobody changes an assumption, or the arithmetic, and leaves the numbers as they were."""
    for name, stated in hardware.stated().items():
        assert CONTENT[name] == stated
    of_linear = [job for job in CONTENT["jobs"] if ", linear," in job["job"]]
    assert len(of_linear) == 3
    for job in of_linear:
        n, p = (int(part.replace(",", "")) for part in _sizes(job["job"]))
        for when in ("before", "after"):
            found = linear_prediction.predicted(Executed(**job["counts"][when]), n, p + 1)
            assert _close(found, job[when])
    of_paths = [job for job in CONTENT["jobs"] if ", rbf," in job["job"]]
    assert len(of_paths) == 2
    for job in of_paths:
        n, p = (int(part.replace(",", "")) for part in _sizes(job["job"]))
        rows = {"before": n, "after": job["counts"]["after"]["largest rows of weight"]}
        how = {"before": path_prediction.BEFORE, "after": path_prediction.AFTER}
        for when in rows:
            found = path_prediction.predicted(
                job["counts"][when], rows[when], p, how[when], REPLICATES
            )
            assert _close(found, job[when])
    for job in CONTENT["jobs"]:
        assert job["floor, s"] < job["after"]["seconds"] <= job["before"]["seconds"]


def test_the_document_shows_the_file():
    text = DOCUMENT.read_text(encoding="utf-8")
    table = prediction_table.rendered(CONTENT, newest())
    assert prediction_table.with_table(text, table) == text
    with pytest.raises(ValueError, match="2 places"):
        prediction_table.with_table(text + text, table)


def test_a_measurement_stands_beside_its_prediction():
    job = CONTENT["jobs"][0]
    measured = {"times": {"linear training times": {job["job"]: {"median, ms": 12.3456}}}}
    first = prediction_table.rendered(CONTENT, measured).splitlines()[2]
    assert first.endswith("| 12 |")


def test_jobs_are_counted_and_named_as_the_check_times_them(tmp_path):
    """Of a few rows; paths as if counted."""
    found = {
        "replicates": 10,
        "before": PATHS,
        "after": {
            **PATHS, "rows of weight": 30.0, "largest rows of weight": 33, "longest path": 4000,
        },
    }  # fmt: skip
    counts = tmp_path / "counts.json"
    counts.write_text(json.dumps([found, found]))
    jobs = list(predictions(tiny=True, rbf_counts=counts))
    assert len(jobs) == len(CONTENT["jobs"])
    assert jobs[0]["job"] == "Wisconsin 80 × 30, linear, float64, Triton where it can"
    assert np.isfinite([job["after"]["seconds"] for job in jobs]).all()
    table = prediction_table.rendered({"jobs": jobs}, None)
    assert len(table.splitlines()) == 2 + len(jobs)


def _sizes(job):
    """Rows and columns, of "Wisconsin 569 × 30, linear, …"."""
    rows, _, columns = job.partition(" × ")
    return rows.rpartition(" ")[2], columns.partition(",")[0]


def _close(found, stored):
    if isinstance(found, dict):
        return found.keys() == stored.keys() and all(_close(found[k], stored[k]) for k in found)
    return found == pytest.approx(stored, rel=1e-9, abs=1e-12)
