"""The Open Inference Protocol over gRPC: what it says is what HTTP and the model say."""

import asyncio
import json
import re
import signal
import socket
import struct
import threading
import time
from functools import partial

import numpy as np
import pytest
from fastapi.testclient import TestClient
from server_clients import records_of, running
from typer.testing import CliRunner

from bootprob.cli.__main__ import app as command
from bootprob.persistence.save_load import save
from bootprob.server import Limits, create_app
from bootprob.server.binary import encoded
from bootprob.server.errors import RequestError
from bootprob.server.running import _make_server
from mixed_tables import credit_table

grpc = pytest.importorskip("grpc")
from bootprob.server import grpc_bodies  # noqa: E402
from bootprob.server.grpc_messages import SERVICE, message  # noqa: E402
from bootprob.server.grpc_service import _ask, grpc_serving  # noqa: E402

TOKEN = "a-token-that-is-long-enough"
LET_IN = (("authorization", f"Bearer {TOKEN}"),)


def ask(channel, name, metadata=LET_IN, /, **fields):
    call = channel.unary_unary(
        f"/{SERVICE}/{name}",
        request_serializer=message(f"{name}Request").SerializeToString,
        response_deserializer=message(f"{name}Response").FromString,
    )
    return call(message(f"{name}Request")(**fields), metadata=metadata, timeout=60)


def answers(model, talk, **options):
    """What `talk` gives, a coroutine that is told of a channel to a server of a model."""
    max_body = options.pop("max_body", 2**22)
    return talked(create_app(model, name="m", version="7", token=TOKEN, **options), talk, max_body)


def talked(app, talk, max_body=2**22):
    async def both():
        limits = {"max_body": max_body, "max_calls": 50, "max_held": 2**25}
        serving = grpc_serving(app, "127.0.0.1:0", deadline=5, **limits)
        async with (
            serving as port,
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
        ):
            return await talk(channel)

    return asyncio.run(both())


def tensor(X, **more):
    return {"name": "X", "datatype": "FP64", "shape": X.shape, **more}


def contents_of(reply):
    """Outputs by name, read as the protocol lays them out."""
    found = {}
    for each, raw in zip(reply.outputs, reply.raw_output_contents, strict=True):
        if each.datatype == "BYTES":
            texts = []
            while raw:
                (size,) = struct.unpack("<I", raw[:4])
                texts.append(raw[4 : 4 + size].decode())
                raw = raw[4 + size :]
            found[each.name] = np.array(texts).reshape(each.shape)
        else:
            kind = {"FP64": "<f8", "INT64": "<i8", "BOOL": "?"}[each.datatype]
            found[each.name] = np.frombuffer(raw, kind).reshape(each.shape)
    return found


def test_numbers_of_fields_are_those_of_the_protocol():
    """Bytes written by hand: key (number × 8 + wire type), length, value."""
    request = message("ModelInferRequest")(
        model_name="a", model_version="b", id="c",
        parameters=[{"key": "d", "value": {"double_param": 1.0}}],
        inputs=[{"name": "e", "datatype": "f", "shape": [2],
                 "contents": {"fp64_contents": [1.0], "bytes_contents": [b"g"]}}],
        outputs=[{"name": "h"}], raw_input_contents=[b"i"],
    )  # fmt: skip
    one = struct.pack("<d", 1.0)
    value = b"\x21" + one
    contents = b"\x3a\x08" + one + b"\x42\x01g"
    given = b"\x0a\x01e\x12\x01f\x1a\x01\x02\x2a" + bytes([len(contents)]) + contents
    entry = b"\x0a\x01d\x12" + bytes([len(value)]) + value
    assert request.SerializeToString() == (
        b"\x0a\x01a\x12\x01b\x1a\x01c\x22" + bytes([len(entry)]) + entry
        + b"\x2a" + bytes([len(given)]) + given + b"\x32\x03\x0a\x01h\x3a\x01i"
    )  # fmt: skip
    reply = message("ModelInferResponse")(
        model_name="a", outputs=[{"name": "e"}], raw_output_contents=[b"i"]
    )
    assert reply.SerializeToString() == b"\x0a\x01a\x2a\x03\x0a\x01e\x32\x01i"


def test_arrays(array_model, rng):
    X = rng.normal(size=(5, 3))
    raw = X.astype("<f8").tobytes()

    async def talk(channel):
        plain = {"model_name": "m", "inputs": [tensor(X, contents={"fp64_contents": X.ravel()})]}
        level = [{"key": "level", "value": {"double_param": 0.8}}]
        return await asyncio.gather(
            ask(channel, "ModelInfer", id="mine", **plain),
            ask(channel, "ModelInfer", model_name="m", model_version="7", inputs=[tensor(X)],
                raw_input_contents=[raw], parameters=level),
            ask(channel, "ModelInfer", outputs=[{"name": "label"}], **plain),
        )  # fmt: skip

    first, second, third = answers(array_model, talk)
    assert (first.model_name, first.model_version, first.id) == ("m", "7", "mine")
    assert second.parameters[0].value.double_param == 0.8
    assert [each.name for each in third.outputs] == ["label"]
    for reply, level in ((first, 0.95), (second, 0.8)):
        said, offline = contents_of(reply), array_model.summarize(X, level=level)
        for name, k in (("probability", np.s_[:, 1]), ("probability_interval", np.s_[:, 1, :])):
            np.testing.assert_allclose(said[name][k], offline[name], rtol=0, atol=1e-12)
        assert said["label"].tolist() == offline["label"].tolist()
        assert set(said["threshold"]) == {0.5}


def test_tables_with_gaps(table_model):
    rows = credit_table(40, seed=3, missing=0.2).drop(columns="risk").dropna(subset=["status"])
    assert rows["months"].isna().any()
    with TestClient(create_app(table_model)) as client:
        described = client.get("/v2/models/model").json()["inputs"]
        records = records_of(rows)
        over_http = client.post("/predict", json={"records": records}).json()["predictions"]
    field = {"FP64": "fp64_contents", "BOOL": "bool_contents", "BYTES": "bytes_contents"}
    inputs = []
    for each in described:
        values = [record[each["name"]] for record in records]
        if each["datatype"] == "FP64":
            values = [np.nan if value is None else value for value in values]
        elif each["datatype"] == "BYTES":
            values = [str(value).encode() for value in values]
        content = {field[each["datatype"]]: values}
        inputs.append(each | {"shape": [len(rows)], "contents": content})

    async def talk(channel):
        return await ask(channel, "ModelInfer", model_name="m", inputs=inputs)

    said = contents_of(answers(table_model, talk))
    expected = [each["probability"] for each in over_http]
    np.testing.assert_allclose(said["probability"][:, 1], expected, rtol=0, atol=1e-12)
    assert said["label"].tolist() == [each["label"] for each in over_http]


def test_health_and_metadata(array_model):
    async def talk(channel):
        model = {"name": "m"}
        return await asyncio.gather(
            ask(channel, "ServerLive", ()), ask(channel, "ServerReady", ()),
            ask(channel, "ModelReady", **model), ask(channel, "ServerMetadata"),
            ask(channel, "ModelMetadata", **model),
        )  # fmt: skip

    live, ready, model_ready, server, model = answers(array_model, talk)
    assert live.live
    assert ready.ready
    assert model_ready.ready
    assert server.name == "bootprob"
    assert "binary_tensor_data" in server.extensions
    assert (model.name, list(model.versions)) == ("m", ["7"])
    assert [(each.name, list(each.shape)) for each in model.inputs] == [("X", [-1, 3])]
    assert len(model.outputs) == 4
    properties = {each.key: json.loads(each.value) for each in model.properties}
    assert properties["classes"] == [2, 7]
    assert properties["default_level"] == 0.95


def test_several_models(array_model, tmp_path):
    paths = {name: tmp_path / f"{name}.model" for name in ("a", "b")}
    for path in paths.values():
        save(array_model, path)
    server = _make_server(paths, workers=1, drain_delay=0.0, token=TOKEN, metrics=False)

    async def talk(channel):
        async with server._served():  # without signals, which only a main thread takes
            told = await ask(channel, "ServerMetadata")
            named = [await ask(channel, "ModelMetadata", name=name) for name in paths]
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await ask(channel, "ServerMetadata", ())
            return told, named, refused.value

    told, named, refused = talked(server, talk)
    assert told.name == "bootprob"
    assert "model_repository" in told.extensions
    assert [each.name for each in named] == ["a", "b"]
    assert refused.code() is grpc.StatusCode.UNAUTHENTICATED


async def refusal(channel, metadata=LET_IN, **fields):
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await ask(channel, "ModelInfer", metadata, **fields)
    error = refused.value
    return error.code().name, error.details(), dict(error.trailing_metadata())


def test_refusals(array_model):
    X = np.zeros((2, 3))
    right = {"model_name": "m", "inputs": [tensor(X)], "raw_input_contents": [X.tobytes()]}
    wrong = "INVALID_ARGUMENT"
    cases = [
        ({"metadata": ()}, "UNAUTHENTICATED", "token"),
        ({"metadata": (("authorization", "Bearer other"),)}, "UNAUTHENTICATED", "token"),
        ({"model_name": "n"}, "NOT_FOUND", "no such model"),
        ({"model_name": ""}, "NOT_FOUND", ""),
        ({"model_version": "8"}, "NOT_FOUND", "no such model"),
        ({"model_name": "m/../../v2/repository/index?"}, "NOT_FOUND", ""),
        ({"raw_input_contents": [X.tobytes()[1:]]}, wrong, "do not fit"),
        ({"raw_input_contents": [X.tobytes()] * 2}, wrong, "all inputs, or none"),
        ({"inputs": [tensor(X, contents={})]}, wrong, "all inputs, or none"),
        ({"raw_input_contents": []}, wrong, "do not have its shape"),
        ({"inputs": []}, wrong, "all inputs, or none"),
        ({"inputs": [], "raw_input_contents": []}, wrong, "inputs"),
        ({"inputs": [tensor(X) | {"datatype": "FP16"}]}, wrong, "none of FP64"),
        (
            {"inputs": [tensor(X) | {"datatype": "FP16"}], "raw_input_contents": []},
            wrong,
            "none of",
        ),
        ({"raw_input_contents": [np.full((2, 3), np.nan).tobytes()]}, wrong, "null"),
        ({"parameters": [{"key": "level", "value": {"double_param": 2.0}}]}, wrong, "level"),
        ({"parameters": [{"key": "level", "value": {"double_param": np.nan}}]}, wrong, ""),
        ({"parameters": [{"key": "level"}]}, wrong, "level"),
        ({"parameters": [{"key": "other", "value": {"bool_param": False}}]}, wrong, ""),
        ({"outputs": [{"name": "other"}]}, wrong, ""),
        ({"raw_input_contents": [bytes(5000)]}, "RESOURCE_EXHAUSTED", "larger"),
        # 1000 bytes of the message, 8000 of the tensor
        (
            {
                "inputs": [
                    tensor(X, contents={"int64_contents": [1] * 1000}) | {"datatype": "INT64"}
                ],
                "raw_input_contents": [],
            },
            "RESOURCE_EXHAUSTED",
            "larger",
        ),
        ({"metadata": (("x-request-id", "seen"),)}, "UNAUTHENTICATED", "token"),
    ]

    async def talk(channel):
        return [await refusal(channel, **right | changed) for changed, _, _ in cases]

    refused = answers(array_model, talk, max_body=4000)
    for (changed, code, words), (found, said, _) in zip(cases, refused, strict=True):
        assert (found, words in said) == (code, True), (changed, found, said)
    assert refused[-1][2] == {"x-request-id": "seen"}


def test_limits_are_those_of_http(array_model, rng):
    X = rng.normal(size=(3, 3))
    given = {"model_name": "m", "inputs": [tensor(X)], "raw_input_contents": [X.tobytes()]}

    async def twice(channel):
        await ask(channel, "ModelInfer", **given)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await ask(channel, "ModelInfer", **given)
        return refused.value

    error = answers(array_model, twice, rate_limit="1/hour")
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert int(dict(error.trailing_metadata())["retry-after"]) > 1
    few = Limits(max_rows=2, queue_rows=2)

    async def once(channel):
        with pytest.raises(grpc.aio.AioRpcError, match="send 1 to 2"):
            await ask(channel, "ModelInfer", **given)

    answers(array_model, once, limits=few)


@pytest.mark.parametrize(
    ("host", "peer"), [("127.0.0.1", "ipv4:127.0.0.1:9"), ("::1", "ipv6:%5B::1%5D:9")]
)
def test_a_client_has_one_rate_in_both(array_model, host, peer):
    app = create_app(array_model, rate_limit="1/hour")
    with TestClient(app, client=(host, 5)) as client:
        assert client.get("/v2").status_code == 200
    for asks, status in ((peer, 429), (peer.replace("1", "2"), 200)):
        assert asyncio.run(_ask(app, "/v2", None, {}, asks))[0] == status


def test_a_body_is_made_after_the_token_and_the_rate(array_model, monkeypatch):
    inputs = [{"name": "", "parameters": [{}] * 20} for _ in range(5000)]
    large = {"model_name": "m", "inputs": inputs}

    async def talk(channel):
        await ask(channel, "ServerMetadata")  # all that the rate allows
        monkeypatch.setattr(grpc_bodies, "_as_body", lambda *_: [].index("made"))
        return [await refusal(channel, metadata, **large) for metadata in ((), LET_IN)]

    stranger, hasty = answers(array_model, talk, rate_limit="1/hour")
    assert stranger[0] == "UNAUTHENTICATED"
    assert hasty[0] == "RESOURCE_EXHAUSTED"
    assert int(hasty[2]["retry-after"]) > 1


@pytest.mark.parametrize("what", ["inputs", "outputs", "parameters", "shape"])
def test_parts_are_bounded(array_model, monkeypatch, what):
    monkeypatch.setattr(grpc_bodies, "_MOST_PARTS", 12)
    entry = {"inputs": {}, "outputs": {"name": "label"}, "parameters": {"key": "a"}, "shape": 1}[
        what
    ]
    X = np.zeros((2, 3))
    right = {"model_name": "m", "inputs": [tensor(X, contents={"fp64_contents": X.ravel()})]}
    inside = right | {"inputs": [right["inputs"][0] | {what: [entry] * 13}]}
    many = inside if what == "shape" else right | {what: [entry] * 13}

    async def talk(channel):
        found = [await refusal(channel, **many)]
        if what == "parameters":
            found.append(await refusal(channel, **inside))
            asked = [{"name": "label", "parameters": [entry] * 13}]
            found.append(await refusal(channel, **right, outputs=asked))
        await ask(channel, "ModelInfer", outputs=[{"name": "label"}] * 9, **right)  # 12
        return found

    for code, said, _ in answers(array_model, talk):
        assert (code, "send 12 inputs" in said) == ("RESOURCE_EXHAUSTED", True)


def test_large_messages_wait_for_each_other(array_model, monkeypatch):
    """Of three that are held two fit: one is made, one waits, one is refused."""
    made, go_on, now, most = grpc_bodies._as_body, threading.Event(), [], []

    def slow(*given):
        now.append(1)
        most.append(len(now))
        assert go_on.wait(30)
        now.pop()
        return made(*given)

    monkeypatch.setattr(grpc_bodies, "_as_body", slow)
    X = np.zeros((3000, 3))
    sent = message("ModelInferRequest")(
        model_name="m", inputs=[tensor(X)], raw_input_contents=[X.tobytes()]
    ).SerializeToString()

    async def talk():
        bodies = grpc_bodies.BodyMaker(2**20, 2 * len(sent))
        waiting = [asyncio.create_task(bodies.made(sent)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(RequestError, match="Too many") as refused:
            await bodies.made(sent)
        go_on.set()
        found = await asyncio.gather(*waiting)
        found.append(await bodies.made(sent))  # there is room again
        bodies.close()
        return refused.value, found

    refused, found = asyncio.run(talk())
    assert (refused.status, refused.retry_after) == (503, 1)
    assert most == [1, 1, 1]
    assert len({head for head, _ in found}) == 1
    assert all(body[head:] == X.tobytes() for head, body in found)


def test_what_nobody_foresaw_is_not_told(array_model, monkeypatch, caplog):
    monkeypatch.setattr(grpc_bodies, "_as_body", lambda *_: [].index("s3cret"))
    code, said, _ = answers(array_model, partial(refusal, model_name="m"))
    assert (code, said) == ("INTERNAL", "The server failed; its log says where.")
    assert "ValueError at" in caplog.text
    assert "s3cret" not in caplog.text


def test_bytes_that_are_no_message(array_model):
    async def talk(channel):
        call = channel.unary_unary(f"/{SERVICE}/ModelInfer")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(b"\xff\xff s3cret", metadata=LET_IN, timeout=60)
        return refused.value

    error = answers(array_model, talk)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert error.details() == "The bytes are no ModelInferRequest."


def test_text_is_laid_out_as_in_the_protocol():
    assert encoded(["a", b"bc"], "BYTES") == b"\x01\x00\x00\x00a\x02\x00\x00\x00bc"


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.endurance)])
def test_every_worker_answers(array_model, tmp_path, rng, port, workers):
    path, X = tmp_path / "m.bootprob", rng.normal(size=(4, 3))
    save(array_model, path)
    options = ("--grpc-port", str(port), "--workers", str(workers))
    with running(path, *options, BOOTPROB_TOKEN=TOKEN) as server:
        until = time.monotonic() + 120
        while server.said().count("startup complete") < workers and time.monotonic() < until:
            time.sleep(0.1)  # it was ready with the first
        found, answered_by, n_calls = set(), set(), 0
        # By a connection of its own each, to whichever worker takes it: of two, one takes 64 in a
        # row with a chance of 2⁻⁶³.
        while n_calls < 10 or (len(answered_by) < workers and n_calls < 64):
            local = (("grpc.use_local_subchannel_pool", 1),)
            with grpc.insecure_channel(f"127.0.0.1:{port}", local) as channel:
                reply = ask(channel, "ModelInfer", model_name="m", inputs=[tensor(X)],
                            raw_input_contents=[X.tobytes()])  # fmt: skip
            n_calls += 1
            found.add(contents_of(reply)["probability"].tobytes())
            lines = re.findall(r"(\d+) INFO POST /v2/models/{name}/infer 200", server.said())
            assert len(lines) == n_calls
            answered_by = set(lines)
        assert len(answered_by) == workers
        [only] = found
        offline = array_model.predict_proba(X)
        np.testing.assert_allclose(np.frombuffer(only).reshape(4, 2), offline, atol=1e-12)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0


def test_a_port_that_is_taken(array_model, tmp_path):
    save(array_model, tmp_path / "m.bootprob")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        at = str(taken.getsockname()[1])
        found = CliRunner().invoke(
            command, ["serve", str(tmp_path / "m.bootprob"), "--grpc-port", at]
        )
    assert found.exit_code == 1
    assert "for gRPC" in found.stderr
