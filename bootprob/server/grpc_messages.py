"""Messages of the Open Inference Protocol v2 over gRPC, as protobuf classes.

Written here as a table and not compiled: the protocol numbers the fields of each message from 1 on,
in this order. On the wire a map is a list of entries, and names of messages are not sent.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["SERVICE", "message"]

SERVICE = "inference.GRPCInferenceService"

_TENSOR = "string name, string datatype, int64* shape, Entry* parameters, Contents contents"
_FIELDS = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "bool live",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "bool ready",
    "ModelReadyRequest": "string name, string version",
    "ModelReadyResponse": "bool ready",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "string name, string version, string* extensions",
    "ModelMetadataRequest": "string name, string version",
    "ModelMetadataResponse": (
        "string name, string* versions, string platform, Described* inputs, Described* outputs, "
        "Property* properties"
    ),
    "ModelInferRequest": (
        "string model_name, string model_version, string id, Entry* parameters, "
        "Tensor* inputs, Wanted* outputs, bytes* raw_input_contents"
    ),
    "ModelInferAddress": "string model_name, string model_version",  # of a request, all else unread
    "ModelInferResponse": (
        "string model_name, string model_version, string id, Entry* parameters, "
        "Tensor* outputs, bytes* raw_output_contents"
    ),
    "Described": "string name, string datatype, int64* shape",
    "Tensor": _TENSOR,
    "Wanted": "string name, Entry* parameters",
    "Property": "string key, string value",
    "Entry": "string key, Parameter value",
    "Parameter": (
        "bool bool_param, int64 int64_param, string string_param, double double_param, "
        "uint64 uint64_param"
    ),
    "Contents": (
        "bool* bool_contents, int32* int_contents, int64* int64_contents, uint32* uint_contents, "
        "uint64* uint64_contents, float* fp32_contents, double* fp64_contents, "
        "bytes* bytes_contents"
    ),
}


def _pool() -> descriptor_pool.DescriptorPool:
    """A pool of its own, since a client of the protocol in the same process has these names too."""
    form = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="bootprob.proto", package="inference", syntax="proto3"
    )
    for name, fields in _FIELDS.items():
        described = file.message_type.add(name=name)
        if name == "Parameter":
            described.oneof_decl.add(name="parameter_choice")
        for number, field in enumerate(filter(None, fields.split(", ")), 1):
            kind, of_field = field.split()
            single = kind.removesuffix("*")
            added = described.field.add(
                name=of_field,
                number=number,
                label=form.LABEL_OPTIONAL if single == kind else form.LABEL_REPEATED,
            )
            if single in _FIELDS:
                added.type, added.type_name = form.TYPE_MESSAGE, f".inference.{single}"
            else:
                added.type = form.Type.Value(f"TYPE_{single.upper()}")
            if name == "Parameter":
                added.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


_POOL = _pool()


def message(name: str) -> Any:
    """The class of a message, by its name in the table."""
    found = _POOL.FindMessageTypeByName(f"inference.{name}")
    return message_factory.GetMessageClass(found)
