"""The page of first commands says what the commands say."""

import re
import shlex
import shutil
import sys

import pytest
from typer.testing import CliRunner

from bootprob.cli.__main__ import app
from docs.studies.first_commands.commands import COMMANDS, Command
from docs.studies.first_commands.study import PAGE, answers, tidied
from docs.studies.first_commands.tables import write_tables

LIGHT = [each for each in COMMANDS if not each.trained]


def _block(command, said, status):
    ended = [f"[exit status {status}]"] if status else []
    shown = [command.shown(said)] if said else []
    return "\n".join(["```console", f"$ {command.line}", *shown, *ended, "```"])


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


def test_what_trains_nothing_is_answered_as_on_the_page(page, tmp_path, monkeypatch):
    write_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    before = sorted(tmp_path.iterdir())
    assert len(LIGHT) > 20
    for command in LIGHT:
        result = runner.invoke(app, shlex.split(command.line)[1:])
        said = tidied(result.output, str(tmp_path))
        assert _block(command, said, result.exit_code) in page, (command.line, said)
    assert sorted(tmp_path.iterdir()) == before


def test_every_command_is_on_the_page(page):
    assert re.findall(r"^\$ (.*)$", page, re.MULTILINE) == [each.line for each in COMMANDS]
    assert "Traceback" not in page


def test_of_a_long_answer_the_first_lines_are_shown():
    command = Command("Why?", "bootprob fit", most=2)
    assert command.shown("a\nb\nc\nd") == "a\nb\n…"
    assert command.shown("a\nb") == "a\nb"
    assert Command("Why?", "bootprob fit").shown("a\nb\nc") == "a\nb\nc"


def test_what_differs_from_one_run_to_the_next_is_left_out():
    said = (
        "Compiling the solver, once an installation: about 5 s.\n"
        "linear SVMs ━━━━━ 10/10 0:00:14 left 0:00:00\n\x1b[33mNote: \x1b[0mFitted in 14.8 s.\n"
        "6 rows are in /tmp/a/b: 0.1 s, 1,106 rows a second.   \n"
        "2026-11-24 14:48:24,809 9530 INFO POST /predict 200 38.6 ms\n"
    )
    assert tidied(said, "/tmp/a") == (
        "Note: Fitted in … s.\n6 rows are in /home/you/b: … s, … rows a second.\n"
        "INFO POST /predict 200 … ms"
    )


@pytest.mark.endurance
@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("curl"), reason="wants a shell")
def test_the_page_is_what_all_commands_say(page):
    def without_digits(text):  # of numbers, the last of which are another processor's
        return re.sub(r"-?\d+\.\d+", "#", text)

    for found in answers():
        block = _block(found.command, found.said, found.status)
        assert without_digits(block) in without_digits(page)
