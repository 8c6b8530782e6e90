"""Clients of gRPC that mean ill: each gets the status that it deserves, and others are answered."""

import asyncio
import contextlib
import socket
import threading
import time
from functools import partial

import httpx2
import numpy as np
import psutil
import pytest
from http2_frames import attacks, begun, call
from http2_frames import message as message_of
from server_clients import running

from bootprob.persistence.save_load import save
from bootprob.server import create_app

grpc = pytest.importorskip("grpc")
from bootprob.server.grpc_messages import SERVICE, message  # noqa: E402
from bootprob.server.grpc_service import grpc_serving  # noqa: E402
from bootprob.server.tokens import Tokens  # noqa: E402

TOKEN = "a-token-that-is-long-enough"
LET_IN = (("authorization", f"Bearer {TOKEN}"),)
INFER = f"/{SERVICE}/ModelInfer"
ROW = np.array([[0.5, -1.0, 0.0]])
RECORDS = {"records": [dict(zip(("x0", "x1", "x2"), ROW[0].tolist(), strict=True))]}
RIGHT = message("ModelInferRequest")(
    model_name="m", inputs=[{"name": "X", "datatype": "FP64", "shape": [1, 3]}],
    raw_input_contents=[ROW.tobytes()],
).SerializeToString()  # fmt: skip


@pytest.fixture(scope="module")
def served(array_model, tmp_path_factory):
    path = tmp_path_factory.mktemp("grpc") / "m.bootprob"
    save(array_model, path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--grpc-port", str(port), "--deadline", "2")
    with running(path, *options, BOOTPROB_TOKEN=TOKEN) as server:
        server.grpc_port = port
        yield server


def channel_to(port):
    """One with a connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    return grpc.insecure_channel(f"127.0.0.1:{port}", options)


def check_well(server, model):
    """It lives, answers over gRPC and HTTP, and has met nothing that it did not foresee."""
    expected = model.predict_proba(ROW)
    with channel_to(server.grpc_port) as channel:
        sent = channel.unary_unary(INFER)(RIGHT, metadata=LET_IN, timeout=30)
    raw = message("ModelInferResponse").FromString(sent).raw_output_contents[0]
    np.testing.assert_allclose(np.frombuffer(raw).reshape(1, 2), expected, rtol=0, atol=1e-12)
    reply = httpx2.post(
        f"{server.address}/predict", json=RECORDS, headers={"Authorization": f"Bearer {TOKEN}"},
        timeout=30,
    )  # fmt: skip
    assert reply.json()["predictions"][0]["probability"] == pytest.approx(expected[0, 1], abs=1e-12)
    assert server.process.poll() is None
    assert "ERROR" not in server.said()
    assert "Traceback" not in server.said()
    assert "s3cret" not in server.said()


def test_frames_of_strangers(served, array_model):
    sent = attacks(INFER, RIGHT)
    assert len(sent) > 25
    with contextlib.ExitStack() as open_:
        for name, given in sent.items():
            at = ("127.0.0.1", served.grpc_port)
            stranger = open_.enter_context(socket.create_connection(at, timeout=0.05))
            with contextlib.suppress(OSError):  # the server may close before all is sent
                stranger.sendall(given)
                while stranger.recv(2**16):
                    pass
            assert served.process.poll() is None, name
        check_well(served, array_model)  # while they are connected
    check_well(served, array_model)


def test_these_frames_make_a_call(served):
    """Else those above would be wrong in more than what they mean to be wrong in."""
    line = "POST /v2/models/{name}/infer 200"
    before = served.said().count(line)
    with socket.create_connection(("127.0.0.1", served.grpc_port), timeout=20) as client:
        client.sendall(
            begun(call(1, INFER, authorization=LET_IN[0][1].encode()), message_of(1, RIGHT))
        )
        until = time.monotonic() + 20
        while served.said().count(line) == before and time.monotonic() < until:
            client.recv(2**16)
    assert served.said().count(line) == before + 1


def test_calls_whose_message_never_comes(served, array_model):
    """Each is ended when the deadline is over, and holds no place any more."""
    with channel_to(served.grpc_port) as channel:
        go_on = threading.Event()

        def nothing():
            go_on.wait(60)
            yield from ()

        waiting = [
            channel.stream_unary(INFER).future(nothing(), metadata=LET_IN) for _ in range(30)
        ]
        check_well(served, array_model)
        codes = {each.exception(30).code() for each in waiting}
        assert codes == {grpc.StatusCode.DEADLINE_EXCEEDED}
        go_on.set()
        with pytest.raises(grpc.RpcError) as refused:
            channel.stream_unary(INFER)(iter(()), metadata=LET_IN, timeout=30)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.value.details() == "The call has no message."
    check_well(served, array_model)


def test_without_the_token_no_message_is_waited_for(array_model, caplog):
    """Of strangers nothing is held, however long they take to send it."""
    app = create_app(array_model, name="m", token=TOKEN)
    limits = {"max_body": 2**22, "max_calls": 4, "max_held": 2**25, "deadline": 600}

    async def talk():
        async with (
            grpc_serving(app, "127.0.0.1:0", tokens=Tokens(TOKEN), **limits) as port,
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
        ):
            asked = [(), (("authorization", "Bearer of-something-else"),)]
            found = []
            for method in ("ModelInfer", "ModelMetadata", "ServerMetadata"):
                for metadata in asked:
                    waiting = channel.stream_unary(f"/{SERVICE}/{method}")(metadata=metadata)
                    found.append((await waiting.code(), await waiting.details()))
            live = channel.stream_unary(f"/{SERVICE}/ServerLive")()  # of everyone
            return found, message("ServerLiveResponse").FromString(await live).live

    with caplog.at_level("INFO", "bootprob.server"):
        found, live = asyncio.run(asyncio.wait_for(talk(), 60))
    logged = [each.getMessage() for each in caplog.records]
    assert [each.startswith("GET /v2 401 ") for each in logged] == [True] * 6 + [False]
    [(code, told)] = set(found)
    assert code is grpc.StatusCode.UNAUTHENTICATED
    assert "token" in told
    assert live


def test_calls_that_are_cancelled(served, array_model):
    rng = np.random.default_rng(0)
    with channel_to(served.grpc_port) as channel:
        ask = channel.unary_unary(INFER)
        for _ in range(10):
            calls = [ask.future(RIGHT, metadata=LET_IN) for _ in range(40)]
            time.sleep(rng.uniform(0, 0.02))
            for each in calls:
                each.cancel()
    check_well(served, array_model)
    assert 'bootprob_queue_rows{model="m"} 0.0' in metrics(served)


def metrics(server):
    let_in = {"Authorization": f"Bearer {TOKEN}"}
    return httpx2.get(f"{server.address}/metrics", headers=let_in, timeout=30).text


def test_a_message_that_grows_when_it_is_read(served, array_model):
    """100 MiB in 100 kB: no more of it is unpacked than a message may have."""
    process = psutil.Process(served.process.pid)
    before = process.memory_info().rss
    unbounded = [("grpc.max_send_message_length", -1)]
    with (
        grpc.insecure_channel(f"127.0.0.1:{served.grpc_port}", unbounded) as channel,
        pytest.raises(grpc.RpcError) as refused,
    ):
        channel.unary_unary(INFER)(
            bytes(100 * 2**20), metadata=LET_IN, compression=grpc.Compression.Gzip, timeout=60
        )
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert process.memory_info().rss < before + 50 * 2**20
    check_well(served, array_model)


@pytest.mark.parametrize("name", ["m/ready", "m/infer", "m/versions/7", "/m", "m/", "m/../m"])
def test_names_that_are_paths(served, name):
    with channel_to(served.grpc_port) as channel:
        for method in ("ModelInfer", "ModelMetadata", "ModelReady"):
            field = "model_name" if method == "ModelInfer" else "name"
            sent = message(f"{method}Request")(**{field: name}).SerializeToString()
            with pytest.raises(grpc.RpcError) as refused:
                channel.unary_unary(f"/{SERVICE}/{method}")(sent, metadata=LET_IN, timeout=30)
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND, (method, name)


@pytest.mark.parametrize("path", ["/", "", "//", f"/{SERVICE}/", f"/{SERVICE}/Delete", "/a/b" * 99])
def test_methods_that_are_none(served, path):
    with channel_to(served.grpc_port) as channel, pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary(path)(RIGHT, metadata=LET_IN, timeout=30)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_calls_beyond_the_bound(array_model):
    """Of six at once that wait for their messages four are let in; HTTP is asked meanwhile.

    Those beyond are told when to come back, as over HTTP.
    """
    app = create_app(array_model, name="m", token=TOKEN)
    limits = {"max_body": 2**22, "max_calls": 4, "max_held": 2**25, "deadline": 60}

    async def asked(channel):
        return await channel.unary_unary(INFER)(RIGHT, metadata=LET_IN, timeout=30)

    async def talk():
        async with (
            grpc_serving(app, "127.0.0.1:0", **limits) as port,
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
            httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app), base_url="http://x",
                headers={"Authorization": f"Bearer {TOKEN}"},
            ) as client,
        ):  # fmt: skip
            waiting = [channel.stream_unary(INFER)(metadata=LET_IN) for _ in range(6)]
            over = [asyncio.ensure_future(each.code()) for each in waiting]
            codes = []
            while len(codes) < 2:
                await asyncio.wait(over, timeout=30, return_when=asyncio.FIRST_COMPLETED)
                codes += [over.pop(over.index(each)).result() for each in over[:] if each.done()]
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await asked(channel)
            codes.append(refused.value.code())
            waits = [dict(refused.value.trailing_metadata()).get("retry-after")]
            waits += [
                dict(await each.trailing_metadata()).get("retry-after")
                for each in waiting
                if each.done()
            ]
            statuses = [(await client.post("/predict", json=RECORDS)).status_code]
            for each in waiting:
                each.cancel()
            return codes, waits, statuses, await eventually(partial(asked, channel))

    codes, waits, statuses, found = asyncio.run(talk())
    assert set(codes) == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert waits == ["1"] * 3
    assert statuses == [200]
    assert message("ModelInferResponse").FromString(found).model_name == "m"


async def eventually(ask):
    """What a call gives once there is a place for it."""
    until = time.monotonic() + 20
    while True:
        try:
            return await ask()
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED or time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)
