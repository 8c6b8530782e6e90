"""Tensors as bytes behind the JSON, in and out."""

import json
import struct

import numpy as np
import pytest

from mixed_tables import credit_table

INFER = "/v2/models/model/infer"
TYPES = {"FP64": "<f8", "FP32": "<f4", "INT64": "<i8", "INT32": "<i4", "BOOL": "?"}


def sent(client, head, *blobs, length=None, kind="application/octet-stream"):
    text = json.dumps(head).encode()
    headers = {
        "Inference-Header-Content-Length": str(len(text) if length is None else length),
        "Content-Type": kind,
    }
    return client.post(INFER, content=b"".join([text, *blobs]), headers=headers)


def told(reply):
    """Outputs of a reply, wherever they stand."""
    assert reply.status_code == 200, reply.text
    length = int(reply.headers.get("inference-header-content-length", len(reply.content)))
    head, rest, found = json.loads(reply.content[:length]), reply.content[length:], {}
    for each in head["outputs"]:
        if "data" in each:
            found[each["name"]] = each["data"]
            continue
        size = each["parameters"]["binary_data_size"]
        part, rest = rest[:size], rest[size:]
        if each["datatype"] == "BYTES":
            found[each["name"]], at = [], 0
            while at < len(part):
                (n,) = struct.unpack_from("<I", part, at)
                found[each["name"]].append(part[at + 4 : at + 4 + n].decode())
                at += 4 + n
        else:
            found[each["name"]] = np.frombuffer(part, TYPES[each["datatype"]]).tolist()
    assert not rest
    return found


def tensor(name, values, datatype):
    if datatype == "BYTES":
        texts = [each.encode() for each in values]
        blob = b"".join(struct.pack("<I", len(each)) + each for each in texts)
    else:
        blob = np.asarray(values).astype(TYPES[datatype]).tobytes()
    shape = list(np.shape(values))
    head = {"name": name, "shape": shape, "datatype": datatype}
    return head | {"parameters": {"binary_data_size": len(blob)}}, blob


@pytest.mark.parametrize("datatype", ["FP64", "FP32", "INT64", "INT32"])
@pytest.mark.parametrize("kind", ["application/octet-stream", "application/json"])
def test_numbers_are_those_of_json(array_client, rng, datatype, kind):
    X = np.round(rng.normal(size=(5, 3)) * 4).astype(TYPES[datatype])
    plain = {"name": "X", "shape": [5, 3], "datatype": datatype, "data": X.ravel().tolist()}
    expected = told(array_client.post(INFER, json={"inputs": [plain], "id": "a"}))
    head, blob = tensor("X", X, datatype)
    for asked in (
        {},
        {"parameters": {"binary_data_output": True}},
        {"outputs": [{"name": each, "parameters": {"binary_data": True}} for each in expected]},
        {
            "parameters": {"binary_data_output": True},
            "outputs": [
                {"name": "label", "parameters": {"binary_data": False}},
                {"name": "threshold"},
            ],
        },
    ):
        reply = sent(array_client, {"inputs": [head], "id": "a"} | asked, blob, kind=kind)
        found = told(reply)
        assert found == {name: expected[name] for name in found}
        assert len(found) == (2 if len(asked) == 2 else 4)
        assert ("inference-header-content-length" in reply.headers) == bool(asked)


def test_a_table_mixes_bytes_and_json(client, table_model):
    rows = credit_table(6, seed=3).drop(columns="risk")
    kinds = {"number": "FP64", "boolean": "BOOL"}
    plain, heads, blobs = [], [], []
    for name, kind in table_model.preprocessor.encoder_.kinds.items():
        datatype = kinds.get(kind, "BYTES")
        column = rows[name]
        values = [None if each is None or each != each else each for each in column.tolist()]
        if datatype == "BYTES":
            values = [None if each is None else str(each) for each in values]
        whole = {"name": name, "shape": [6], "datatype": datatype, "data": values}
        plain.append(whole)
        if None in values and datatype != "FP64":
            heads.append(whole)
            continue
        numbers = [np.nan if each is None else each for each in values]
        head, blob = tensor(name, numbers, datatype)
        heads.append(head)
        blobs.append(blob)
    assert blobs
    expected = told(client.post(INFER, json={"inputs": plain}))
    asked = {"inputs": heads, "parameters": {"binary_data_output": True}}
    assert told(sent(client, asked, *blobs)) == expected


X23 = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("change", "blob", "status"),
    [
        ({}, X23.tobytes()[:-1], 422),
        ({}, X23.tobytes() + b"0", 422),
        ({"parameters": {"binary_data_size": 47}}, X23.tobytes(), 422),
        ({"parameters": {"binary_data_size": -1}}, X23.tobytes(), 422),
        ({"parameters": {"binary_data_size": "48"}}, X23.tobytes(), 422),
        ({"parameters": {"binary_data_size": True}}, X23.tobytes(), 422),
        ({"parameters": {"binary_data_size": 48, "other": 1}}, X23.tobytes(), 422),
        ({"data": [1.0]}, X23.tobytes(), 422),
        ({"datatype": "FP16"}, X23.tobytes(), 422),
        ({"datatype": "BYTES"}, X23.tobytes(), 422),
        ({"datatype": "BOOL"}, b"\x02" * 48, 422),
        ({"datatype": ["FP64"]}, X23.tobytes(), 422),
        ({"shape": [3, 3]}, X23.tobytes(), 422),
        ({}, np.full(6, np.nan).tobytes(), 422),
        ({}, np.full(6, np.inf).tobytes(), 422),
        ({"datatype": "BYTES"}, b"\xff\xff\xff\xff" + b"a" * 44, 422),
        ({"datatype": "BYTES"}, struct.pack("<I", 44) + b"\xff" * 44, 422),
    ],
)
def test_what_does_not_fit_is_refused(array_client, change, blob, status):
    head, _ = tensor("X", X23, "FP64")
    reply = sent(array_client, {"inputs": [head | change]}, blob)
    assert reply.status_code == status, reply.text
    assert reply.json()["error"]


@pytest.mark.parametrize("length", ["-1", "1e9", "999999", "", "²", "9" * 30, "0" * 5000])
def test_lengths_that_are_none(array_client, length):
    head, blob = tensor("X", X23, "FP64")
    headers = {
        "Inference-Header-Content-Length": length.encode(),
        "Content-Type": "application/json",
    }
    reply = array_client.post(
        INFER, content=json.dumps({"inputs": [head]}).encode() + blob, headers=headers
    )
    assert reply.status_code == 400


def test_bytes_without_the_header_are_refused(array_client):
    headers = {"Content-Type": "application/octet-stream"}
    assert array_client.post(INFER, content=b"{}", headers=headers).status_code == 415
    head, _ = tensor("X", X23, "FP64")
    assert array_client.post(INFER, json={"inputs": [head]}).status_code == 422


def test_inputs_that_are_no_objects(array_client):
    for given in ([3], ["X"], [None], [[]]):
        assert sent(array_client, {"inputs": given}).status_code == 422


def test_the_document_knows_both_kinds_of_replies(array_client):
    tensor_ = {"name": "X", "shape": [1, 3], "datatype": "FP64", "data": [0.1, 0.2, 0.3]}
    found = set()
    for binary in (False, True):
        body = {"inputs": [tensor_], "parameters": {"binary_data_output": binary}}
        found.add(array_client.post(INFER, json=body).headers["content-type"])
    paths = array_client.get("/openapi.json").json()["paths"]
    documented = [
        paths[f"/v2/models/{{name}}{version}/infer"]["post"]["responses"]["200"]["content"].keys()
        for version in ("", "/versions/{version}")
    ]
    assert documented == [found, found]
