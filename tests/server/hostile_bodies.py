"""Bodies made to stop a server: as large as a body may be, and as deep, wide or wrong."""

from __future__ import annotations

import random
from itertools import chain

__all__ = ["COLUMNS", "INFER", "LARGEST", "PREDICT", "ROWS", "attacks", "honest", "row"]

LARGEST = 4 * 2**20  # bytes, `Limits.max_body`
COLUMNS, ROWS = 300, 4096  # of the model, and `Limits.max_rows`
MANY = 65_000  # a little less than `Limits.max_containers`
PREDICT, INFER = "/predict", "/v2/models/rows/infer"
_RECORDS, _INPUTS, _END = '{"records":[', '{"inputs":[', "]}"

Bodies = dict[str, tuple[str, bytes]]


def row(value: str) -> str:
    """A record."""
    return "{" + ",".join(f'"x{k}":{value}' for k in range(COLUMNS)) + "}"


def honest() -> Bodies:
    """The largest requests of clients that mean well; those with tensors are for arrays."""
    numbers = _many("0", COLUMNS)
    return {
        "records": (PREDICT, _full(_RECORDS, row("0.25"), _END)),
        "texts": (PREDICT, _full(_RECORDS, row('"a"'), _END)),
        "a tensor": (INFER, _body(_INPUTS, _tensor(f"[{_many(numbers, ROWS)}]"), _END)),
        "a nested tensor": (
            INFER, _body(_INPUTS, _tensor(f"[{_many(f'[{numbers}]', ROWS)}]"), _END),
        ),
        "rows of nothing": (PREDICT, _body(_RECORDS, _many("{}", ROWS), _END)),
    }  # fmt: skip


def attacks() -> Bodies:
    """All others, by name: address and body."""
    texts = (
        *(sign * LARGEST for sign in ("[", "]", '"', "\\", "9", "\0")),
        *(_escaped(sign) for sign in ('\\"', "\\n")),
        *(f'"{"a" * (LARGEST - 2)}"', f"0.{'1' * (LARGEST - 2)}", f"1e{'9' * (LARGEST - 2)}"),
        *(f"[{',' * (LARGEST - 2)}]", f"{{{':' * (LARGEST - 2)}}}", " " * (LARGEST - 2) + "[]"),
        '{"a":' * (LARGEST // 5),
    )
    units = (
        *("[]", "{}", "[0]", '{"a":0}', "[[[[[[[]]]]]]]", "0", '""', '"ab"', '"\U0001f600"', "NaN"),
        *("null", "9" * 4300, "1.234567890123456789e-300"),
    )
    junk = random.Random(0)
    return dict(
        chain(
            ((f"text {text[:6]!r} …", (PREDICT, _body(text))) for text in texts),
            ((f"list of {unit[:20]}", (PREDICT, _full("[", unit, "]"))) for unit in units),
            ((f"{MANY} of {unit[:20]}", (PREDICT, _body("[", _many(unit, MANY), "]")))
             for unit in ("[]", "{}", '{"a":0}', '["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]')),
            _records().items(),
            _tensors().items(),
            {
                "no UTF-8": (PREDICT, b"\xff" * LARGEST),
                "junk": (PREDICT, _body(*junk.choices('[]{}",:\\01ab', k=LARGEST))),
                "unknown keys": (PREDICT, _body(f"{{{_keys(MANY)}}}")),
                "too many keys": (PREDICT, _body(f"{{{_keys(380_000)}}}")),
                "one key, many times": (PREDICT, _full("{", '"a":0', "}")),
                "lists for the metadata": ("/v2/models/rows", _full("[", "[]", "]")),
                "lists for the health": ("/v2/health/live", _full("[", "[]", "]")),
                "lists for nobody": ("/nowhere", _full("[", "[]", "]")),
            }.items(),
        )
    )  # fmt: skip


def _records() -> Bodies:
    """Wrong records."""
    units = ("{}", "[]", "0", "null", row('""'), row("true"), row("{}"), row("1e999"))
    more = f'{_RECORDS}{row("0")[:-1]},"more":'
    return {
        **{f"records: {unit[:20]}": (PREDICT, _full(_RECORDS, unit, _END)) for unit in units},
        "records: unknown keys": (PREDICT, _body(_RECORDS, f"{{{_keys(MANY)}}}", _END)),
        "records: unknown lists": (PREDICT, _body(_RECORDS, f"{{{_keys(MANY, '[]')}}}", _END)),
        "records: 15 lists in each": (
            PREDICT, _body(_RECORDS, _many(f"{{{_keys(14, '[]')}}}", ROWS), _END),
        ),
        "records: a long list beside": (PREDICT, _full(f"{more}[", '"ab"', "]}]}")),
        "records: a long text beside": (PREDICT, _body(more, f'"{"ab" * 2_000_000}"', "}]}")),
        "records: a long number beside": (PREDICT, _body(more, "9" * 10**6, "}]}")),
    }  # fmt: skip


def _tensors() -> Bodies:
    """Wrong tensors."""
    shape = f"[{ROWS},{COLUMNS}]"
    opened = f"{_INPUTS}{_tensor('')[:-1]}["
    units = ("{}", "0", "[]", _tensor("[0]", "[1,1]"), _tensor("[]", "[0,0]", "Y"))
    of_data = ("[]", "[0]", "0", '""', "null", "9" * 4300, "1.234567890123456789e-300")
    outputs = f'{_INPUTS}{_tensor("[0]", "[1,1]")}],"outputs":['
    parameters = f'{_tensor("[]")[:-1]},"parameters":{{{_keys(MANY)}}}}}'
    wrong = _many('""', ROWS * COLUMNS)
    return {
        **{f"inputs: {unit[:20]}": (INFER, _full(_INPUTS, unit, _END)) for unit in units},
        **{f"inputs: {MANY} of {unit[:20]}": (INFER, _body(_INPUTS, _many(unit, MANY // 3), _END))
           for unit in units},
        **{f"data: {unit[:20]}": (INFER, _full(opened, unit, "]}]}")) for unit in of_data},
        "data: nested, of the wrong shape": (INFER, _body(opened, _many("[0]", MANY), "]}]}")),
        "data: as many as the shape says": (INFER, _body(_INPUTS, _tensor(f"[{wrong}]"), _END)),
        "outputs": (INFER, _full(outputs, "0", _END)),
        "outputs: label": (INFER, _body(outputs, _many('{"name":"label"}', MANY), _END)),
        "shape: ones": (INFER, _full(f'{_INPUTS}{{"name":"X","shape":[', "1", "]}]}")),
        "shape: texts": (INFER, _full(f'{_INPUTS}{{"name":"X","shape":[', '""', "]}]}")),
        "shape: beyond all bounds": (
            INFER, _body(_INPUTS, _tensor("[]", f"[{2**31},{2**31}]"), _END),
        ),
        "shape: a million digits": (INFER, _body(_INPUTS, _tensor("[]", f"[{'9' * 10**6}]"), _END)),
        "name: long": (INFER, _body(_INPUTS, _tensor("[]", shape, "X" * 4_000_000), _END)),
        "keys: of a tensor": (INFER, _body(_INPUTS, f"{{{_keys(MANY)}}}", _END)),
        "keys: of a tensor's parameters": (INFER, _body(_INPUTS, parameters, _END)),
        "keys: of parameters": (INFER, _body(f'{{"parameters":{{{_keys(MANY)}}}}}')),
        "columns: nested": (
            INFER,
            _body(_INPUTS, ",".join(_tensor(f"[{_many('[0]', 200)}]", "[200,1]", f"x{k}")
                                    for k in range(COLUMNS)), _END),
        ),
    }  # fmt: skip


def _many(unit: str, n: int) -> str:
    return ",".join([unit] * n)


def _full(before: str, unit: str, after: str) -> bytes:
    """As many units, with commas between them, as a body may hold."""
    room = LARGEST - len(before.encode()) - len(after.encode())
    return _body(before, _many(unit, (room + 1) // (len(unit.encode()) + 1)), after)


def _body(*parts: str) -> bytes:
    body = "".join(parts).encode()
    assert len(body) <= LARGEST
    return body


def _escaped(unit: str) -> str:
    return f'"{unit * (LARGEST // 2 - 1)}"'


def _keys(n: int, value: str = "0") -> str:
    return ",".join(f'"k{k:x}":{value}' for k in range(n))


def _tensor(data: str, shape: str = f"[{ROWS},{COLUMNS}]", name: str = "X") -> str:
    return f'{{"name":"{name}","shape":{shape},"datatype":"FP64","data":{data}}}'
