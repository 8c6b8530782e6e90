"""Measured launch shapes: read where there are some, never a reason to fail."""

import json
import warnings

import pytest
import torch

from bootprob_gpu.hardware import launch_shapes
from bootprob_gpu.hardware.launch_shapes import (
    TABLE,
    LaunchTableWarning,
    parsed,
    trial,
    tuned_limit,
    tuned_shape,
)
from bootprob_gpu.interior_point.state import TWIN_CELLS

CARD = "NVIDIA H100 80GB HBM3"


def table(entry) -> str:
    return json.dumps({"format": 1, "devices": {CARD: entry}})


@pytest.fixture
def install(monkeypatch, tmp_path):
    """Puts a table where this installation has it, on a machine with that card."""
    path = tmp_path / "launch_shapes.json"
    monkeypatch.setattr(launch_shapes, "TABLE", path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: CARD)

    def install(text: str) -> None:
        path.write_text(text, encoding="utf-8")
        launch_shapes._measured.cache_clear()

    launch_shapes._measured.cache_clear()
    yield install
    launch_shapes._measured.cache_clear()


def test_the_committed_table_is_good_if_there_is_one():
    if TABLE.exists():
        assert parsed(TABLE.read_text(encoding="utf-8"))
    else:
        assert tuned_limit(7, "many_rows") == 7


def test_without_a_table_the_defaults_hold(install):
    assert tuned_limit(7, "many_rows") == 7
    assert tuned_shape({"num_warps": 4}, "factor", "64") == {"num_warps": 4}


def test_what_is_measured_takes_the_place_of_its_default_only(install):
    install(table({"many_rows": 5, "smo": {"1024": {"num_warps": 8}}}))
    default = {"BLOCK": 1024, "ROWS": 6, "num_warps": 4}
    assert tuned_shape(default, "smo", "1024") == {**default, "num_warps": 8}
    assert tuned_shape(default, "smo", "512") == default
    assert tuned_limit(7, "twin_cells") == 7
    for device in (None, torch.device("cuda", 0)):
        assert tuned_limit(7, "many_rows", device) == 5
    assert tuned_limit(7, "many_rows", torch.device("cpu")) == 7


def test_another_card_has_the_defaults(install, monkeypatch):
    install(table({"many_rows": 5}))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "another")
    assert tuned_limit(7, "many_rows") == 7


BAD = {
    "no JSON": "{",
    "no object": "[]",
    "another format": table({}).replace('"format": 1', '"format": 2'),
    "a further key": table({}).replace('"format"', '"more": 0, "format"'),
    "devices no object": '{"format": 1, "devices": []}',
    "device no object": table([]),
    "unknown name": table({"rocks": 1}),
    "unknown size": table({"smo": {"4096": {"num_warps": 8}}}),
    "unknown option": table({"factor": {"64": {"ROWS": 2}}}),
    "kind no object": table({"smo": 1024}),
    "shape no object": table({"smo": {"1024": 8}}),
    "no whole number": table({"many_rows": 2.0}),
    "no number": table({"many_rows": "5"}),
    "a truth": table({"many_rows": True}),
    "negative": table({"replayed_cells": -1}),
    "no power of 2": table({"factor": {"64": {"num_warps": 3}}}),
    "too many warps": table({"factor": {"64": {"num_warps": 64}}}),
    "too small a block": table({"votes": {"float64 ieee": {"BLOCK_K": 8}}}),
    "more rows than there are shapes for": table({"smo_in_registers": 4096}),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_table_is_a_warning_once_and_the_defaults_hold(install, text):
    with pytest.raises(ValueError):  # noqa: PT011
        parsed(text)
    install(text)
    with pytest.warns(LaunchTableWarning, match="their own constants"):
        assert tuned_limit(7, "many_rows") == 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tuned_limit(7, "many_rows") == 7


def test_a_trial_holds_everywhere_while_it_lasts(install):
    install(table({"many_rows": 5}))
    with trial({"twin_cells": 9}):
        assert tuned_limit(7, "many_rows") == 7
        assert tuned_limit(7, "twin_cells", torch.device("cpu")) == 9
    assert tuned_limit(7, "many_rows") == 5


def test_every_launcher_asks(monkeypatch):
    """What is on trial arrives at the launches, noted here by a stand-in for the kernels."""
    pytest.importorskip("triton")
    from bootprob_gpu.interior_point import triton_cholesky
    from bootprob_gpu.interior_point.triton_certificate import row_blocks
    from bootprob_gpu.scoring import triton_votes
    from bootprob_gpu.smo import triton_paths as triton_smo
    from bootprob_gpu.smo import triton_registers as triton_smo_registers
    from bootprob_gpu.smo import triton_tiles as triton_smo_tiles

    noted = []

    class Kernel:
        def __getitem__(self, grid):
            return lambda *args, **options: noted.append(options)

    monkeypatch.setattr(triton_votes, "_votes", Kernel())
    for name in ("_factor", "_factor_damped"):
        monkeypatch.setattr(triton_cholesky, name, Kernel())
    monkeypatch.setattr(triton_smo_registers, "path_in_registers", Kernel())
    monkeypatch.setattr(triton_smo_tiles, "path_in_tiles", Kernel())
    ones = torch.ones(40, 40, dtype=torch.float64)
    entry = {
        "votes": {"float64 ieee": {"BLOCK_M": 32}},
        "smo": {"64": {"ROWS": 3, "num_warps": 2}},
        "factor": {"16": {"num_warps": 2}},
        "rows": {"few": {"BLOCK": 128, "num_warps": 1}, "many": {"BLOCK": 512, "num_warps": 16}},
        "many_rows": 300,
    }
    with trial(parsed(table(entry))[CARD]):
        triton_votes.count_votes(ones[:, :5], ones[:5, :2][None], ones[:1, :2])
        assert noted.pop()["BLOCK_M"] == 32
        triton_cholesky.factored(ones[:2, :10], ones[:2, :4], ones[:2, 0].long(), 1e-12)
        assert [noted.pop()["num_warps"] for _ in range(2)] == [2, 2]
        assert row_blocks(300) == {"BLOCK": 128, "num_warps": 1}
        assert row_blocks(301) == {"BLOCK": 512, "num_warps": 16}
        assert row_blocks(20) == {"BLOCK": 64, "num_warps": 1}
        rounded = {"K": ones[None].float(), "unit_diagonal": True}
        triton_smo.launch(**rounded, y=ones[0], upper=ones[None], tol=1e-3, max_iter=1)
        found = noted.pop()
        assert (found["BLOCK"], found["ROWS"], found["num_warps"]) == (64, 3, 2)
    with trial({"smo_in_registers": 30, "smo_tile": 32}):
        triton_smo.launch(ones[None], ones[0], ones[None], tol=1e-3, max_iter=1)
        assert noted.pop()["BLOCK"] == 32


def test_limits_of_the_interior_point_ask(monkeypatch):
    pytest.importorskip("triton")
    from types import SimpleNamespace

    from bootprob_gpu.interior_point import batched as interior_point
    from bootprob_gpu.interior_point.state import State

    monkeypatch.setattr(interior_point, "use_triton", lambda device: True)
    rows = SimpleNamespace(is_cuda=True, device=torch.device("cuda", 0), shape=(9, 3))
    state = SimpleNamespace(upper=torch.ones(4, 10))
    assert interior_point._is_small(rows, state)
    assert len(list(State.blocks(state))) == 1
    with trial({"replayed_cells": 39, "twin_cells": 20}):
        assert not interior_point._is_small(rows, state)
        assert len(list(State.blocks(state))) == 2
    assert set(TWIN_CELLS) == {"cpu", "cuda"}


def test_the_defaults_of_rows():
    pytest.importorskip("triton")
    from bootprob_gpu.interior_point.triton_certificate import row_blocks

    for n, block, warps in ((1, 64, 1), (64, 64, 1), (65, 128, 2), (129, 256, 4), (4096, 256, 4)):
        assert row_blocks(n) == {"BLOCK": block, "num_warps": warps}
    assert row_blocks(4097) == {"BLOCK": 1024, "num_warps": 8}
