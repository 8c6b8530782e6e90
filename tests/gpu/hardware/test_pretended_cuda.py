"""The pretended CUDA device keeps CUDA's rules: what fails on a GPU fails on it."""

import copy
import threading

import numpy as np
import pytest
import torch
from pretended_cuda import CudaTensor, pretended_cuda

CUDA = torch.device("cuda")


@pytest.fixture(autouse=True)
def device(pretended_gpu):
    return pretended_gpu


def on_device(*values):
    return torch.tensor(values, dtype=torch.float64, device="cuda")


def captured(step):
    """A graph of a step, on a stream of its own."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin()
        try:
            step()
        finally:
            graph.capture_end()
    return graph


# --- tensors and their device --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cuda", "cuda:0", CUDA, torch.device("cuda", 0)])
def test_a_tensor_says_where_it_is(name):
    x = torch.zeros(2, 3, device=name)
    for made in (
        x,
        x[0],
        x.T,
        x.new_empty(2),
        torch.ones_like(x),
        x.float().sum(),
        x.new_tensor(1),
    ):
        assert isinstance(made, CudaTensor)
        assert str(made.device) == "cuda:0"
        assert (made.is_cuda, made.is_cpu, made.get_device()) == (True, False, 0)
    host = x.cpu()
    assert type(host) is torch.Tensor
    assert str(host.device) == "cpu"


@pytest.mark.parametrize("send", [lambda x: x.to("cuda"), lambda x: x.cuda(), lambda x: x.to(CUDA)])
def test_numbers_go_there_and_come_back(rng, send):
    x = torch.from_numpy(rng.normal(size=(3, 4)))
    there = send(x)
    assert (there.shape, there.stride(), there.dtype) == (x.shape, x.stride(), x.dtype)
    np.testing.assert_array_equal(there.cpu().numpy(), x.numpy())
    there += 1
    assert not torch.equal(there.cpu(), x)  # a copy, unlike that of a CPU to itself
    assert torch.equal((there @ there.T).cpu(), (x + 1) @ (x + 1).T)
    assert there.to("cuda") is there
    assert x.to(there.float()).dtype == torch.float32


def test_another_device_is_not_there():
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.zeros(1, device="cuda:1")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.zeros(1).to("cuda:1")


@pytest.mark.parametrize(
    "work",
    [
        lambda there, here: there + here,
        lambda there, here: here.mul_(there),
        lambda there, here: torch.cat([there, here]),
        lambda there, here: torch.mm(there, there, out=here),
        lambda there, here: torch.where(there > 0, there, here),
        lambda there, here: here[there.long()],
        lambda there, here: there.index_put_((there[:, 0] > 0,), here[:1, 0].expand(2)),
    ],
)
def test_devices_do_not_mix(work):
    with pytest.raises(RuntimeError, match="on the same device"):
        work(torch.ones(2, 2, device="cuda"), torch.ones(2, 2))


def test_what_may_come_from_the_host_may():
    x = on_device(1, 2, 3)
    assert (x * torch.tensor(2.0)).tolist() == [2, 4, 6]  # a number
    assert x[torch.tensor([2, 0])].tolist() == [3, 1]
    x[1:] = torch.tensor([7.0, 8.0])  # sent
    assert x.tolist() == [1, 7, 8]


def test_the_host_cannot_read_a_tensor_of_the_device():
    for read in (lambda x: x.numpy(), np.asarray, np.exp):
        with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
            read(on_device(1, 2))


def test_whole_numbers_have_no_matrix_products():
    with pytest.raises(RuntimeError, match="not implemented for"):
        torch.ones(2, 2, dtype=torch.int64, device="cuda") @ torch.ones(2, 2, device="cuda").long()


def test_memory_runs_out_and_comes_back(device):
    more_than_half = device.capacity // 2 + 1
    x = torch.zeros(more_than_half, dtype=torch.uint8, device="cuda")
    part = x[5:]
    assert torch.cuda.memory_allocated() == device.allocated == more_than_half
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        x.clone()
    del x
    assert device.allocated == more_than_half  # a part of it is still in use
    del part
    assert device.allocated == 0
    assert torch.cuda.max_memory_allocated() == more_than_half


def test_fresh_memory_is_not_to_be_read():
    assert torch.empty(3, device="cuda").isnan().all()
    assert torch.empty_like(on_device(1, 2)).isnan().all()
    assert (on_device(1).new_empty(2, dtype=torch.int64) != 0).all()


def test_threads_have_the_device_too():
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.ones(2, device="cuda")))
    thread.start()
    thread.join()
    assert found[0].is_cuda


def test_random_numbers_follow_a_seed():
    draws = [torch.Generator("cuda").manual_seed(7) for _ in range(2)]
    one, other = (torch.randn(4, device="cuda", generator=each) for each in draws)
    assert one.is_cuda
    assert torch.equal(one, other)
    assert not torch.equal(one, torch.randn(4, device="cuda", generator=draws[0]))


def test_a_copy_in_depth_has_memory_of_its_own():
    x = on_device(1, 2)
    first, second = copy.deepcopy([x, x])
    assert first is second
    first.zero_()
    assert x.tolist() == [1, 2]


def test_it_goes_as_it_came():
    with pytest.raises(RuntimeError, match="real or pretended"), pretended_cuda():
        pass


# --- waiting for the device ----------------------------------------------------------------------

WAITS = {
    "item": lambda x: x[0].item(),
    "bool": lambda x: bool(x[0] > 0),
    "int": lambda x: int(x[0]),
    "float": lambda x: float(x[0]),
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "to the host": lambda x: torch.zeros(3, dtype=torch.float64).copy_(x),
    "from pageable memory": lambda x: x.copy_(torch.zeros(3), non_blocking=True),
    "new_tensor": lambda x: x.new_tensor([1.0]),
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "indices of the host": lambda x: x[[0, 1]],
    "equal": lambda x: torch.equal(x, x),
    "checked factor": lambda x: torch.linalg.cholesky(torch.diag(x)),
    "stream": lambda x: torch.cuda.current_stream().synchronize(),
    "event": lambda x: torch.cuda.current_stream().record_event().synchronize(),
    "device": lambda x: torch.cuda.synchronize(),
}


@pytest.mark.parametrize("read", WAITS.values(), ids=WAITS)
def test_the_host_waits_but_not_while_a_graph_is_captured(device, read):
    x = on_device(1, 2, 3)
    waited = device.waits.total()
    read(x)
    assert device.waits.total() > waited
    with pytest.raises(RuntimeError, match="captur"):
        captured(lambda: read(x))
    assert torch.cuda.is_current_stream_capturing() is False
    read(x)  # and all goes on


def test_work_of_the_device_alone_waits_for_nothing(device):
    x = on_device(3, 1, 2)
    waited = device.waits.total()
    x[x > 1] = 5.0  # one number: filled
    x.copy_(torch.where(x > 0, x, -x)[x.argsort()])
    x.add_(torch.arange(3, device="cuda"))
    x[0] = 1.0
    assert device.waits.total() == waited


def test_an_error_that_was_caught_breaks_the_capture_all_the_same():
    x = on_device(1, 2)

    def step():
        with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
            x.tolist()

    with pytest.raises(RuntimeError, match="previous error during capture"):
        captured(step)


# --- graphs --------------------------------------------------------------------------------------


def test_a_capture_does_nothing_and_a_replay_does_it(device):
    x, total = on_device(1, 2, 3), on_device(0)

    def step():
        x.mul_(2)
        x[0] = 1.0
        total.add_((x @ x).sqrt())

    graph = captured(step)
    assert x.tolist() == [1, 2, 3]
    assert total.tolist() == [0]
    graph.replay()
    assert x.tolist() == [1, 4, 6]
    graph.replay()
    assert x.tolist() == [1, 8, 12]
    assert total.item() == pytest.approx(53**0.5 + 209**0.5)
    assert device.replays == 2


def test_a_result_is_there_after_a_replay_only():
    x, found = on_device(1, 2), []
    graph = captured(lambda: found.append(x + torch.ones(2, device="cuda")))
    assert found[0].isnan().all()
    graph.replay()
    assert found[0].tolist() == [2, 3]


def test_a_replay_reads_what_was_captured_and_not_what_took_its_place():
    first = on_device(1)
    values = {"x": first}

    def step():
        values["x"] = values["x"] + 1  # not in place: every replay makes the same of the first

    graph = captured(step)
    for _ in range(3):
        graph.replay()
    assert values["x"].item() == 2
    assert first.item() == 1


def test_a_graph_whose_operands_are_gone_is_not_replayed():
    operands, total = [on_device(1, 2)], on_device(0, 0)
    graph = captured(lambda: total.add_(operands[0]))
    graph.replay()
    operands.clear()
    with pytest.raises(AssertionError, match="operands are gone"):
        graph.replay()


def test_numbers_of_the_host_are_those_of_the_capture():
    x, step = on_device(0), {"size": 1.0}
    graph = captured(lambda: x.add_(step["size"]))
    step["size"] = 100.0
    graph.replay()
    assert x.item() == 1


def test_the_default_stream_cannot_be_captured():
    with pytest.raises(RuntimeError, match="non-default stream"):
        torch.cuda.CUDAGraph().capture_begin()
    with pytest.raises(RuntimeError, match="without a preceding"):
        torch.cuda.CUDAGraph().replay()


# --- copies that are under way -------------------------------------------------------------------


def pinned(*values):
    memory = torch.empty(len(values), dtype=torch.float64, pin_memory=True)
    assert memory.is_pinned()
    return memory.copy_(torch.tensor(values))


def test_memory_is_pinned_where_that_is_asked_for():
    assert not torch.empty(3).is_pinned()
    assert torch.empty(3).pin_memory().is_pinned()
    assert pinned(1, 2)[1:].is_pinned()


@pytest.mark.parametrize("wait", ["event", "stream", "device", "number"])
def test_a_result_on_its_way_to_pinned_memory_is_not_there_yet(wait):
    x, host = on_device(1, 2), pinned(0, 0)
    host.copy_(x, non_blocking=True)
    x.zero_()  # later, on the same stream
    assert host.isnan().all()
    if wait == "event":
        torch.cuda.current_stream().record_event().synchronize()
    elif wait == "stream":
        torch.cuda.current_stream().synchronize()
    elif wait == "device":
        torch.cuda.synchronize()
    else:
        x[0].item()
    assert host.tolist() == [1, 2]


def test_an_event_of_another_stream_brings_what_it_waited_for():
    first, second, host = torch.cuda.Stream(), torch.cuda.Stream(), pinned(0)
    with torch.cuda.stream(first):
        host.copy_(on_device(5), non_blocking=True)
    second.synchronize()
    assert host.isnan().all()
    second.wait_stream(first)
    second.record_event().synchronize()
    assert host.tolist() == [5]


def test_pinned_memory_must_stay_until_it_has_been_read():
    target, host = on_device(0, 0), pinned(1, 2)
    target.copy_(host, non_blocking=True)
    torch.cuda.synchronize()
    host.zero_()
    target.copy_(host, non_blocking=True)
    host.fill_(7)
    with pytest.raises(AssertionError, match="changed while a copy"):
        torch.cuda.synchronize()


def test_a_blocking_copy_is_done_when_it_returns():
    host = pinned(0, 0)
    host.copy_(on_device(3, 4))
    assert host.tolist() == [3, 4]


# --- Triton --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def double():
    """A kernel that doubles numbers in place."""
    from doubling_kernel import double

    return double


def test_a_kernel_takes_tensors_of_the_device(device, double):
    x = on_device(*range(10))
    double[(3,)](x, len(x), BLOCK=4)
    assert x.tolist() == [2.0 * k for k in range(10)]
    assert device.launches["triton double"] == 1


def test_a_kernel_takes_no_tensor_of_the_host(double):
    with pytest.raises(ValueError, match="cannot be accessed from Triton"):
        double[(1,)](torch.ones(3), 3, BLOCK=4)


def test_a_kernel_in_a_graph_runs_when_it_is_replayed(double):
    x = on_device(1, 2)
    graph = captured(lambda: double[(1,)](x, 2, BLOCK=2))
    assert x.tolist() == [1, 2]
    graph.replay()
    graph.replay()
    assert x.tolist() == [4, 8]
