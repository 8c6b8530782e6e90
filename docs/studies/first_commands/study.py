"""Type what a newcomer types, and write down what is answered: docs/first_commands.md.

    python -m docs.studies.first_commands.study

Times, rates, progress bars and what is said once an installation are left out of the page.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from docs.studies.first_commands.commands import COMMANDS, Command
from docs.studies.first_commands.tables import write_tables
from gpu.benchmarks.common.documents import write
from gpu.benchmarks.common.places import ROOT

__all__ = ["PAGE", "Answer", "answers", "tidied"]

PAGE = ROOT / "docs" / "first_commands.md"
_TEMPLATE = "docs/studies/first_commands/page.md.jinja"
_PROGRAM = [
    sys.executable,
    "-c",
    "import sys; from bootprob.cli.__main__ import main; sys.argv[0] = 'bootprob'; main()",
]
_WIDTH = 100
_PORT = "8000"


@dataclass(frozen=True)
class Answer:
    """What a command said, on both streams, and its exit status."""

    command: Command
    said: str
    status: int


def answers(commands: Iterable[Command] = COMMANDS) -> list[Answer]:
    """Type the commands, one after another, in a folder of their own."""
    root = os.pathsep.join([str(ROOT), str(ROOT / "gpu"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {
        "COLUMNS": str(_WIDTH),
        "TERMINAL_WIDTH": str(_WIDTH),
        "PYTHONPATH": root,
        "PYTHONIOENCODING": "utf-8",
    }
    port, found, serving = _free_port(), [], None
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder))
        for command in commands:
            line = shlex.split(command.line.replace(f"localhost:{_PORT}", f"localhost:{port}"))
            if line[0] == "bootprob":
                line = [*_PROGRAM, *line[1:]]
            if command.how == "serve":
                line += ["--port", str(port)]
            process = subprocess.Popen(
                line,
                cwd=folder,
                env=environment | ({"FORCE_COLOR": "1"} if command.how == "interrupt" else {}),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                # Whoever runs this in the background may have its children ignore Ctrl-C.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )
            if command.how == "serve":
                serving = command, process, len(found)
                _wait_until_it_listens(port)
                continue
            if command.how == "interrupt":
                _wait_until_it_trains(process)
                process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=300)[0].decode()
            found.append(Answer(command, tidied(said, folder), process.returncode))
        if serving is not None:
            command, process, place = serving
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[0].decode().replace(f":{port}", f":{_PORT}")
            found.insert(place, Answer(command, tidied(said, folder), process.returncode))
    return found


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_until_it_listens(port: int) -> None:
    for _ in range(600):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("The server did not come up within a minute.")


def _wait_until_it_trains(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    said = b""
    while b"SVMs" not in said and process.poll() is None:
        said += process.stdout.read1()  # type: ignore[attr-defined]


def tidied(said: str, folder: str = "") -> str:
    """What was said, without what differs from one day, folder or machine to the next."""
    said = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said).replace("\r", "\n")
    lines = [
        line.rstrip()
        for line in said.splitlines()
        if not re.search(r"\d:\d\d:\d\d (left|/)|left -:--:--|^Compiling |━ *\d+/\d+", line)
    ]
    said = "\n".join(lines).strip("\n")
    if folder:
        said = re.sub(rf"(/private)?{re.escape(folder)}", "/home/you", said)
    said = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ \d+ INFO", "INFO", said)
    said = re.sub(r"process \[\d+\]", "process […]", said)
    said = re.sub(r"\b[\d.,]+ (s|ms)\b", r"… \1", said)
    said = re.sub(r"[\d.,]+ rows a second", "… rows a second", said)
    return re.sub(r'("version":)"\w+"', r'\1"…"', said)


def main() -> None:
    """Type all of them, and write the page."""
    found = answers()
    print(write(PAGE, _TEMPLATE, answers=found))


if __name__ == "__main__":
    main()
