"""Streams beside the one that computes are made once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from bootprob_gpu.hardware import cuda as engine_cuda
from bootprob_gpu.hardware.cuda import side_stream


@pytest.fixture
def made(monkeypatch):
    """Numbers of the devices that streams are made on; the stream is a stand-in."""
    numbers = []

    class Stream:
        def __init__(self, number):
            numbers.append(number)

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 2)
    monkeypatch.setattr(engine_cuda._of_thread, "streams", {}, raising=False)
    return numbers


def test_one_stream_of_each_use_for_a_device(made):
    first, second = torch.device("cuda", 0), torch.device("cuda", 1)
    asked = [(first, "upload"), (first, "download"), (second, "upload")]
    streams = [side_stream(*each) for each in asked]
    assert [side_stream(*each) for each in asked] == streams
    assert made == [0, 0, 1]


def test_without_a_number_it_is_the_current_device(made, monkeypatch):
    stream = side_stream(torch.device("cuda"), "upload")
    assert side_stream(torch.device("cuda", 2), "upload") is stream
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    assert side_stream(torch.device("cuda"), "upload") is not stream
    assert made == [2, 3]


def test_threads_do_not_share_streams(made):
    device = torch.device("cuda", 0)
    here = side_stream(device, "capture")
    with ThreadPoolExecutor(1) as pool:
        there, again = (pool.submit(side_stream, device, "capture").result() for _ in range(2))
    assert there is again
    assert there is not here


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_stream_of_a_gpu():
    device = torch.device("cuda")
    stream = side_stream(device, "upload")
    assert stream.device.type == "cuda"
    assert stream != torch.cuda.default_stream(device)
    assert side_stream(device, "upload") == stream
