"""Rows on their way to a device and results on their way back, also when copies are late."""

from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
import torch

from bootprob_gpu import InputError
from bootprob_gpu.scoring import row_stream
from bootprob_gpu.scoring.row_stream import blocks_on_device, blocks_on_host

CPU = torch.device("cpu")


def slices(n, size):
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def layouts(X, folder):
    """The same rows as they may be given."""
    yield "as they are", X
    yield "column by column", np.asfortranarray(X)
    yield "backwards", X[::-1].copy()[::-1]
    yield "every other one", np.repeat(X, 2, axis=0)[::2]
    protected = X.copy()
    protected.flags.writeable = False
    yield "write-protected", protected
    np.save(folder / "rows.npy", X)
    for mode in ("r", "r+"):
        yield f"memory-mapped {mode}", np.load(folder / "rows.npy", mmap_mode=mode)
    yield "a tensor", torch.from_numpy(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 7, 50, 64])
def test_a_cpu_gets_the_rows_it_is_given(rng, tmp_path, dtype, size):
    X = rng.normal(size=(50, 3)).astype(dtype)
    for layout, given in layouts(X, tmp_path):
        blocks = list(blocks_on_device((given[s] for s in slices(50, size)), CPU))
        assert [len(block) for block in blocks] == [s.stop - s.start for s in slices(50, size)]
        found = torch.cat(blocks)
        assert found.dtype == getattr(torch, np.dtype(dtype).name)
        np.testing.assert_array_equal(found, X, err_msg=layout)


def test_rows_are_not_copied_where_that_is_not_needed(rng):
    X = rng.normal(size=(50, 3))
    (block,) = blocks_on_device([X], CPU)
    assert block.data_ptr() == X.ctypes.data


def test_blocks_are_read_when_their_turn_comes(rng, tmp_path):
    np.save(tmp_path / "rows.npy", rng.normal(size=(50, 3)))
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    read = []

    def blocks():
        for s in slices(50, 20):
            read.append(s.start)
            yield X[s]

    arriving = blocks_on_device(blocks(), CPU)
    assert read == []
    next(arriving)
    assert read == [0]


@pytest.mark.parametrize("dtype", [np.int64, np.float16, np.complex128, ">f8"])
def test_other_types_are_refused(dtype):
    with pytest.raises(InputError, match=r"type .*; give float32 or float64"):
        list(blocks_on_device([np.zeros((2, 2), dtype)], CPU))


def test_results_of_a_cpu_come_as_they_are(rng):
    results = [torch.from_numpy(rng.normal(size=(n, 2))) for n in (3, 0, 4)]
    for found, result in zip(blocks_on_host(iter(results), CPU), results, strict=True):
        np.testing.assert_array_equal(found, result)


# --- a device whose streams do nothing until somebody waits ------------------------------------


class Stream:
    """Work queued, and done in order when an event behind it is waited for."""

    current: "Stream"

    def __init__(self):
        self.queue, self.done = [], 0

    def run_to(self, position):
        while self.done < position:
            work = self.queue[self.done]
            self.done += 1
            work()

    def record_event(self):
        return Event(self, len(self.queue))

    def wait_event(self, event):
        self.queue.append(event.synchronize)


class Event:
    def __init__(self, stream, position):
        self.stream, self.position = stream, position

    def synchronize(self):
        self.stream.run_to(self.position)


class LateDevice:
    """Stands in for torch.cuda, on tensors of the CPU."""

    Event = Event

    def __init__(self):
        self.compute = Stream.current = Stream()
        self.streams = {}

    def side_stream(self, device, use):
        return self.streams.setdefault(use, Stream())

    def current_stream(self, device):
        return self.compute

    @contextmanager
    def stream(self, stream):
        before, Stream.current = Stream.current, stream
        yield
        Stream.current = before


@pytest.fixture
def late(monkeypatch):
    device = LateDevice()
    device.pinned, device.held = [], []

    def pinned(n_bytes):
        device.pinned.append(n_bytes)
        return torch.full((n_bytes,), 255, dtype=torch.uint8)

    def queue_copy(target, source):
        target.fill_(torch.nan)
        Stream.current.queue.append(lambda: target.copy_(source))

    monkeypatch.setattr(row_stream, "cuda", device)
    monkeypatch.setattr(row_stream, "side_stream", device.side_stream)
    monkeypatch.setattr(row_stream, "_pinned", pinned)
    monkeypatch.setattr(row_stream, "_queue_copy", queue_copy)
    monkeypatch.setattr(row_stream, "_hold_for", lambda t, s: device.held.append((t, s)))
    return device


def doubled(device, blocks):
    """Results that are not there yet: twice the rows, once the device gets round to it."""
    for rows in blocks:
        result = torch.full_like(rows, torch.nan)
        device.compute.queue.append(lambda rows=rows, out=result: out.copy_(2 * rows))
        yield result


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 7, 50, 64])
def test_late_copies_are_waited_for(rng, tmp_path, late, dtype, size):
    X = rng.normal(size=(50, 3)).astype(dtype)
    for layout, given in layouts(X, tmp_path):
        sent = row_stream._sent((given[s] for s in slices(50, size)), CPU)
        found = list(row_stream._fetched(doubled(late, sent), CPU))
        assert [len(block) for block in found] == [s.stop - s.start for s in slices(50, size)]
        np.testing.assert_array_equal(np.concatenate(found), 2 * X, err_msg=layout)


def test_blocks_that_grow_and_shrink(rng, late):
    blocks = [rng.normal(size=(n, 2)) for n in (3, 1, 20, 0, 5, 21, 2)]
    found = list(row_stream._fetched(doubled(late, row_stream._sent(iter(blocks), CPU)), CPU))
    for block, result in zip(blocks, found, strict=True):
        np.testing.assert_array_equal(result, 2 * block)


def test_no_blocks(late):
    assert list(row_stream._fetched(row_stream._sent(iter(()), CPU), CPU)) == []


def test_a_block_leaves_while_the_one_before_is_at_work(rng, late):
    X = rng.normal(size=(50, 3))
    read = []

    def blocks():
        for s in slices(50, 10):
            read.append(s.start)
            yield X[s]

    sent = row_stream._sent(blocks(), CPU)
    ahead, unfinished = [], []
    for number, _ in enumerate(sent):
        late.compute.queue.append(lambda: "work")
        ahead.append(len(read) - number - 1)
        waiting = late.compute.queue[late.compute.done :]
        unfinished.append(sum(work.__name__ == "<lambda>" for work in waiting))
    assert ahead == [1, 1, 1, 1, 0]
    # The host does not wait for the block before, but it does for the one before that: or else a
    # fast one would fill the device.
    assert unfinished == [1, 2, 2, 2, 3]


def test_two_pinned_buffers_each_way_are_enough(rng, late):
    X = rng.normal(size=(100, 3))
    sent = row_stream._sent((X[s] for s in slices(100, 10)), CPU)
    assert len(list(row_stream._fetched(doubled(late, sent), CPU))) == 10
    assert sum(n > 1 for n in late.pinned) == 4


def test_memory_is_kept_for_the_stream_that_uses_it(rng, late):
    X = rng.normal(size=(30, 3))
    sent = row_stream._sent((X[s] for s in slices(30, 10)), CPU)
    results = list(sent)
    assert [id(tensor) for tensor, stream in late.held if stream is late.compute] == [
        id(rows) for rows in results
    ]
    list(row_stream._fetched(iter(results), CPU))
    for tensor, stream in late.held[3:]:
        assert stream is not late.compute
        assert any(tensor is rows for rows in results)


def test_results_are_the_callers_to_keep(rng, late):
    blocks = [rng.normal(size=(4, 2)) for _ in range(6)]
    found = list(row_stream._fetched(doubled(late, row_stream._sent(iter(blocks), CPU)), CPU))
    assert not any(np.shares_memory(*pair) for pair in pairwise(found))


def test_rows_and_results_have_a_stream_each(rng, late):
    for _ in range(3):
        sent = row_stream._sent(iter([rng.normal(size=(4, 2))] * 3), CPU)
        list(row_stream._fetched(doubled(late, sent), CPU))
    assert set(late.streams) == {"upload", "download"}
    assert late.streams["upload"].done == 9
    assert late.streams["download"].done == 18  # a wait for the work before each copy


@pytest.mark.parametrize("n_blocks", [1, 2, 5])
def test_pinned_rows_are_the_callers_again_once_the_last_block_was_asked_for(
    rng, late, monkeypatch, n_blocks
):
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: True)
    pinned = torch.from_numpy(rng.normal(size=(10 * n_blocks, 3)))
    expected = pinned.clone()
    arrived = list(row_stream._sent(iter(pinned.split(10)), CPU))
    pinned.zero_()
    assert torch.equal(torch.cat(arrived), expected)
    assert late.pinned == [1, 1]  # nothing was copied within the host


def test_large_blocks_are_copied_by_several_threads(rng, monkeypatch):
    monkeypatch.setattr(row_stream, "_WORTH_A_THREAD", 100)
    monkeypatch.setattr(row_stream, "workers", lambda: 3)
    X = np.asfortranarray(rng.normal(size=(101, 3)))
    target = torch.full((101, 3), torch.nan, dtype=torch.float64)
    row_stream._fill(target, X)
    np.testing.assert_array_equal(target, X)


class AlreadyThere(torch.Tensor):
    """Rows on a GPU, as they say; they can be sent to one and to nowhere else."""

    is_cuda = True

    def to(self, device):
        assert torch.device(device).type == "cuda"
        return self

    def numpy(self):
        raise AssertionError("the host was asked for")


def test_rows_that_are_there_do_not_go_through_the_host(rng):
    given = [torch.from_numpy(rng.normal(size=(n, 2))).as_subclass(AlreadyThere) for n in (3, 4, 1)]
    arrived = list(blocks_on_device(iter(given), torch.device("cuda")))
    assert all(found is block for found, block in zip(arrived, given, strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pinned", [False, True])
def test_there_and_back_on_a_gpu(rng, dtype, pinned):
    device = torch.device("cuda")
    X = rng.normal(size=(300_000, 20)).astype(dtype)
    given = torch.from_numpy(X).pin_memory() if pinned else X
    cuts = np.concatenate([[0], np.sort(rng.integers(0, len(X), 30)), [len(X)]])
    blocks = blocks_on_device((given[a:b] for a, b in pairwise(cuts)), device)
    weight = torch.ones(20, 400, dtype=getattr(torch, np.dtype(dtype).name), device=device)

    def results():
        for rows in blocks:
            rows @ weight  # something to wait for
            yield (3 * rows).T

    found = np.concatenate(list(blocks_on_host(results(), device)), axis=1)
    np.testing.assert_array_equal(found, 3 * X.T)
