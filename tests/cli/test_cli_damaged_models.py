"""A damaged model file is one line on the command line, whichever command meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from bootprob.cli.__main__ import app
from bootprob.persistence.save_load import save
from bootprob.tables.files import write_table
from bootprob.tables.model import TableModel
from fuzz_model_files import parts_of, signed
from mixed_tables import credit_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged")
    table = credit_table(60)
    model = TableModel.fit(
        table, "risk", "bad", kernel="linear", n_bootstraps=5, C=1.0, random_state=0
    )
    save(model, folder / "good.model")
    write_table(table, folder / "loans.csv")
    write_table(model.predict(table), folder / "scored.csv")
    return folder


def _signed(change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        content, arrays = parts_of(data)
        change(content, arrays)
        return signed(content, arrays)

    return damage


def _denormal(content: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["sigmoid_information_"][:] = 5e-324


def _no_levels(content: dict[str, Any], arrays: dict[str, Any]) -> None:
    content["table"]["preprocessor"]["columns"][0]["levels"] = [["\x1b[2J\n"]]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[:-9],
    "empty": lambda data: b"",
    "one bit": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "another file": lambda data: b"age,risk\n41,good\n" * 50,
    "long numbers": lambda data: (2**20).to_bytes(8, "little") + b"9" * 2**20,
    "open text": lambda data: (2**20).to_bytes(8, "little") + b'"' + b'\\"' * 2**19,
    "denormal": _signed(_denormal),
    "words for a terminal": _signed(_no_levels),
}


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize(
    "command",
    [
        "predict MODEL loans.csv -o out.csv",
        "score MODEL loans.csv -o out.csv",
        "score MODEL loans.csv -o out",
        "report MODEL -o out.html",
        "report MODEL --held-out loans.csv --card out.md -o out.html",
        "report scored.csv --model MODEL -o out.html",
        "export MODEL -o out.onnx",
        "serve MODEL",
    ],
)
def test_a_damaged_model_is_one_line(
    command: str, damage: Callable[[bytes], bytes], folder: Path, tmp_path: Path
) -> None:
    if command.startswith("export"):
        pytest.importorskip("onnx")
    if command.startswith("serve"):
        pytest.importorskip("uvicorn")
    model = tmp_path / "bad.model"
    model.write_bytes(damage((folder / "good.model").read_bytes()))
    places = {"MODEL": model, **{name: folder / name for name in ("loans.csv", "scored.csv")}}
    result = _run(
        *(places.get(w, tmp_path / w if w.startswith("out") else w) for w in command.split())
    )
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)  # no other exception, so no traceback
    assert result.stdout == ""
    assert result.stderr.startswith(f"Error: {model} is ")
    assert result.stderr.count("\n") == 1
    assert result.stderr[:-1].isprintable()
    assert [path.name for path in tmp_path.iterdir()] == ["bad.model"]


def test_a_machine_that_was_not_solved_does_not_stop_a_report(folder: Path, tmp_path: Path) -> None:
    """Its gap is infinite; the fuzzer's files had such gaps."""
    content, arrays = parts_of((folder / "good.model").read_bytes())
    arrays["certificates_.gap"][0, 0] = np.inf
    (tmp_path / "m.model").write_bytes(signed(content, arrays))
    result = _run("report", tmp_path / "m.model", "-o", tmp_path / "out.html")
    assert result.exit_code == 0, result.output
    numbers = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert numbers["models"][0]["convergence"]["largest_gap"] is None
