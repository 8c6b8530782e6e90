"""Threads that solve side by side take a core each, whatever number of threads torch was given."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread, current_thread

import pytest
import torch

from bootprob_gpu.hardware import threads
from bootprob_gpu.hardware.threads import few_threads, in_threads, one_core_for_each


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    monkeypatch.setattr(threads, "_cores", lambda: 4)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def of_a_new_thread() -> int:
    found = []
    thread = Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


def test_each_takes_one_core_where_the_program_set_a_number():
    torch.set_num_threads(3)
    assert in_threads(lambda items: torch.get_num_threads(), 8) == [1, 1, 1]
    assert (torch.get_num_threads(), of_a_new_thread()) == (3, 3)


def test_a_single_item_is_left_to_the_calling_thread_on_one_core():
    torch.set_num_threads(3)
    found = in_threads(lambda items: (items, torch.get_num_threads(), current_thread()), 1)
    assert found == [(slice(0, 1), 1, current_thread())]
    assert (torch.get_num_threads(), of_a_new_thread()) == (3, 3)


def test_whichever_thread_is_free_takes_the_next_item():
    torch.set_num_threads(3)
    both = Barrier(2)

    def work(item: int) -> tuple[int, int, bool]:
        if item in (0, 5):
            both.wait(timeout=60)  # the first keeps its thread until the last is done
        return item, torch.get_num_threads(), torch.is_inference_mode_enabled()

    for inference in (True, False):
        with torch.inference_mode(inference):
            found = one_core_for_each(work, range(6), 2)
        assert found == [(item, 1, inference) for item in range(6)]
    assert one_core_for_each(lambda item: torch.get_num_threads(), [0], 2) == [3]
    assert one_core_for_each(lambda item: item, [], 2) == []


def test_few_threads_are_the_callers_own():
    torch.set_num_threads(4)
    with few_threads(2) as count:
        assert count == 4
        assert torch.get_num_threads() == 2
        assert of_a_new_thread() == 4
        with few_threads(3):  # no more than there are
            assert torch.get_num_threads() == 2
    assert (torch.get_num_threads(), of_a_new_thread()) == (4, 4)
    torch.set_num_threads(16)
    with few_threads(8):  # no more than cores
        assert torch.get_num_threads() == 4
    assert torch.get_num_threads() == 16


def test_threads_come_back_after_an_error():
    torch.set_num_threads(4)
    with pytest.raises(ValueError, match="wrong"), few_threads(1):
        raise ValueError("wrong")
    assert torch.get_num_threads() == 4


def test_callers_side_by_side_do_not_change_each_other():
    torch.set_num_threads(4)

    def counts(most: int) -> tuple[int, int]:
        with few_threads(most):
            inside = torch.get_num_threads()
        return inside, torch.get_num_threads()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(counts, [1, 2, 3, 4] * 50))
    assert found == [(1, 4), (2, 4), (3, 4), (4, 4)] * 50
    assert (torch.get_num_threads(), of_a_new_thread()) == (4, 4)
