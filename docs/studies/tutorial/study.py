"""Follow the tutorial: run its commands and code, and write their answers and pictures into it.

    python -m docs.studies.tutorial.study

Blocks of docs/tutorial.md are run one after another in a folder with its tables: a line after ``$``
as a shell takes it, with what it says below; Python in one session, with what it prints in the next
block of text. Figures that it saves become docs/pictures. Times are left out, as they differ.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
from typer.testing import CliRunner

from bootprob.cli.__main__ import app
from docs.studies.first_commands.study import tidied
from docs.studies.tutorial.loans import FOLDER
from gpu.benchmarks.common.places import DOCS

__all__ = ["PAGE", "PICTURES", "followed", "main"]

PAGE = DOCS / "tutorial.md"
PICTURES = DOCS / "pictures"
_BLOCK = re.compile(r"```(console|python no-run|text)\n(.*?)```\n", flags=re.DOTALL)


def followed(text: str, folder: Path, more: str = "") -> str:
    """The text with the answers of its blocks, which are run in a folder.

    Parameters
    ----------
    text : str
    folder : Path
        Gets the tables of the tutorial, and what the blocks write.
    more : str, optional
        Put behind each ``bootprob fit``, such as fewer bootstrap samples.

    Raises
    ------
    RuntimeError
        A command ended with another status than 0.
    """
    for table in FOLDER.glob("*.csv"):
        shutil.copy(table, folder)
    names: dict[str, Any] = {}
    printed = ""

    def run(block: re.Match[str]) -> str:
        nonlocal printed
        kind, content = block[1], block[2]
        if kind == "text":
            content, printed = printed, ""
        elif kind == "console":
            line = content.split("\n")[0].removeprefix("$ ")
            said = _said(line + more if line.startswith("bootprob fit") else line)
            content = f"$ {line}\n{said}\n" if said else f"$ {line}\n"
        else:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(content, str(PAGE), "exec"), names)
            printed = out.getvalue()
        return f"```{kind}\n{content}```\n"

    with contextlib.chdir(folder), matplotlib.rc_context():
        matplotlib.use("agg")
        # The same file from the same figure, without the day that it was drawn on.
        matplotlib.rcParams.update({"svg.hashsalt": "tutorial", "figure.figsize": (7, 4)})
        return _BLOCK.sub(run, text)


def _said(line: str) -> str:
    words = shlex.split(line)
    if words[0] != "bootprob":
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.rstrip("\n")
    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    result = runner.invoke(app, words[1:])
    if result.exit_code:
        raise RuntimeError(f"{line}: {result.output}") from result.exception
    return tidied(result.output, str(Path.cwd()))


def _photographed(folder: Path) -> None:
    """The head of the report as a browser shows it, where there is one."""
    if not (browser := shutil.which("chromium")):
        return
    options = "--headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1000,900"
    to, profile = folder / "tutorial_report.png", folder / "profile"
    told = [f"--screenshot={to}", f"--user-data-dir={profile}", f"file://{folder}/report.html"]
    subprocess.run([browser, *options.split(), *told], check=True, capture_output=True)


def main() -> None:
    """Follow the page as it is, and write it anew."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        PAGE.write_text(followed(PAGE.read_text(encoding="utf-8"), folder), encoding="utf-8")
        _photographed(folder)
        for picture in [*folder.glob("*.svg"), *folder.glob("*.png")]:
            shutil.copy(picture, PICTURES)


if __name__ == "__main__":
    main()
