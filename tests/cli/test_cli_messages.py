"""What the command line says arrives as it was written, and as soon as it is known."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from rich.markup import render
from typer.testing import CliRunner

from bootprob.cli.__main__ import app
from bootprob.cli.console import file_size
from bootprob.runtime.progress import progress_bar

QUICK = ["--kernel", "linear", "--C", "1", "--n-bootstraps", "5", "--seed", "0"]


def _commands(command, path=()):
    yield " ".join(path), command
    for name, other in getattr(command, "commands", {}).items():
        yield from _commands(other, (*path, name))


@pytest.mark.parametrize(
    "command",
    [pytest.param(each, id=name) for name, each in _commands(typer.main.get_command(app))],
)
def test_no_help_has_words_that_rich_takes_for_markup(command):
    texts = [command.help or "", command.short_help or "", command.epilog or ""]
    for each in command.params:
        texts += [getattr(each, "help", None) or "", each.metavar or ""]
    for text in texts:
        assert {str(span.style) for span in render(text).spans} <= {"bold"}, text


def test_help_asks_for_no_value_where_none_is_taken():
    for arguments in (["--help"], ["fit", "--help"], ["dea", "select", "--help"]):
        said = CliRunner().invoke(app, arguments).output
        assert "--help" in said
        assert "<bool>" not in said


@pytest.mark.parametrize(
    ("size", "said"), [(0, "1 kB"), (52_400, "52 kB"), (999_999, "1000 kB"), (7.26e6, "7.3 MB")]
)
def test_sizes_of_files(tmp_path, size, said):
    with (tmp_path / "f").open("wb") as file:
        file.truncate(int(size))
    assert file_size(tmp_path / "f") == said


def test_the_extra_of_export_is_shown():
    said = CliRunner().invoke(app, ["export", "--help"]).output
    assert 'pip install "bootprob[onnx]"' in " ".join(said.split())


def test_the_default_background_of_explain_is_that_of_the_model():
    """Linear machines of two classes have their mean, those of several classes have none."""
    [background] = [each for each in typer.main.get_command(app).commands["explain"].params
                    if each.name == "background"]  # fmt: skip
    assert "of two classes are linear with a sigmoid" in background.help
    assert "linear machines of several classes have no default" in background.help


def test_a_bar_can_be_called_like_a_file(capsys):
    with progress_bar("Reading a[bold].csv[/nothing]", 1, shown=True) as advance:
        advance(1)
    assert "Reading a[bold].csv[/nothing]" in capsys.readouterr().err


def test_a_wrong_target_is_told_before_anything_heavy_is_loaded(tmp_path):
    """One command after another in one process, whose modules stay loaded."""
    wrong = [
        (["fit", "--target", "rsk"], "no column 'rsk'. Did you mean 'risk'?"),
        (["fit", "--target", "risk", "--positive", "awful"], "no value 'awful'"),
        (["fit", "--target", "risk", "--all-classes"], "occur once"),
        (["report", "--target", "rsk"], "no column 'rsk'"),
        (["report", "--target", "risk", "--positive", "awful"], "no value 'awful'"),
    ]
    table = tmp_path / "loans.csv"
    table.write_text("months,risk\n" + "1,good\n2,bad\n" * 9 + "3,odd\n")
    commands = [
        ["bootprob", name, str(table), *options, "-o", "m.html" if name == "report" else "m.model"]
        for (name, *options), _ in wrong
    ]
    code = (
        "import json, sys\nfrom bootprob.cli.__main__ import main\n"
        "heavy = ('torch', 'numba', 'sklearn', 'scipy', 'matplotlib')\n"
        f"for sys.argv in {commands!r}:\n"
        "    try:\n        main()\n"
        "    except SystemExit as left:\n"
        "        loaded = [each for each in heavy if each in sys.modules]\n"
        "        print(json.dumps([left.code, loaded]))\n"
        "    print('----', file=sys.stderr)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [[1, []]] * len(wrong)
    *each, rest = ended.stderr.split("----\n")
    assert rest == ""
    for (_, said), stderr in zip(wrong, each, strict=True):
        assert said in stderr
    assert list(tmp_path.iterdir()) == [table]


def test_nothing_is_counted_as_1_of_many(tmp_path):
    """One column, feature and value of C, and one row to be asked of."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=30), "y": np.arange(30) < 5})
    table.to_csv(tmp_path / "t.csv", index=False)
    table[:1].to_csv(tmp_path / "one.csv", index=False)
    quick = ["--kernel", "linear", "--C", "1", "--n-bootstraps", "5", "--seed", "0"]
    model, page = tmp_path / "m.model", tmp_path / "r.html"
    said = ""
    for asked in (
        ["fit", tmp_path / "t.csv", "--target", "y", *quick, "-o", model],
        ["predict", model, tmp_path / "one.csv", "-o", tmp_path / "p.csv"],
        ["score", model, tmp_path / "one.csv", "-o", tmp_path / "s.csv"],
        ["report", model, "-o", page, "--card", tmp_path / "card.md"],
    ):
        result = CliRunner().invoke(app, list(map(str, asked)))
        assert result.exit_code == 0, result.output
        said += " ".join(result.output.split()) + "\n"
    assert "Fitted 30 rows, 1 column (1 feature)" in said
    assert said.count("1 row is in") == 2
    said += re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8"))
    said += (tmp_path / "card.md").read_text(encoding="utf-8")
    plural = r"\b(?<![.,:])1 (rows|columns|features|settings|groups|blocks|levels)\b"
    assert [said[m.start() - 40 : m.end() + 20] for m in re.finditer(plural, said)] == []


@pytest.fixture
def folder(tmp_path):
    """With a table of 40 rows, and a model of it."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=40), "k": np.arange(40) // 4, "w": 0})
    table["y"] = np.where(table["x"] + rng.logistic(size=40) > 0, "≥ one", "none")
    table.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", "t.csv", "--target", "y", "--drop", "k", "--drop", "w", *QUICK, "-o", "m.model"]
    assert _asked(tmp_path, *fit).returncode == 0
    return tmp_path


def _asked(folder, *arguments, **options):
    """Run the program; its output goes to a pipe, or where `options` say."""
    code = "from bootprob.cli.__main__ import main; main()"
    given = {"capture_output": True} if not options else {"stderr": subprocess.PIPE}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], check=False, cwd=folder, **given, **options
    )


@pytest.mark.skipif(sys.platform != "linux", reason="has no /dev/full")
@pytest.mark.parametrize(
    ("command", "written"),
    [
        (["fit", "t.csv", "--target", "y", "--drop", "k", "--drop", "w", *QUICK], "new.model"),
        (["update", "m.model", "t.csv"], "new.model"),
        (["explain", "m.model", "t.csv"], "why.csv"),
        (["report", "m.model"], "r.html"),
        (["dea", "efficiency", "t.csv", "--inputs", "k", "--outputs", "k"], "e.csv"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_what_was_worked_out_is_kept_if_nobody_can_be_told(folder, command, written):
    if command[0] == "dea":
        pd.DataFrame({"k": [1, 2, 3], "m": [2, 3, 3]}).to_csv(folder / "t.csv", index=False)
        command = [*command[:-1], "m"]
    with Path("/dev/full").open("wb") as full:
        ended = _asked(folder, *command, "-o", written, stdout=full)
    assert ended.returncode == 1
    assert b"Traceback" not in ended.stderr
    assert (folder / written).stat().st_size > 0


def test_letters_that_a_console_does_not_know_are_spelled_out(folder, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    fit = ["fit", "t.csv", "--target", "y", "--drop", "k", "--drop", "w", *QUICK]
    ended = _asked(folder, *fit, "-o", "new.model")
    assert ended.returncode == 0, ended.stderr
    assert rb"positive = \u2265 one" in ended.stdout


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--seed", str(2**32)], 2, "less than or equal to 4294967295"),
        (["--C", "1e300"], 1, "give numbers from 1e-100 to 1e+100"),
        (["--kernel", "rbf", "--gamma", "1e120"], 1, "give numbers from 1e-100 to 1e+100"),
        (["--kernel", "poly", "--degree", "1000"], 1, "The polynomial kernel reaches"),
        (["--weight", "w"], 1, "holds nothing but 0"),
    ],
)
def test_numbers_that_nothing_can_be_trained_with(folder, options, code, said):
    drop = [] if "--weight" in options else ["--drop", "w"]
    fit = ["fit", str(folder / "t.csv"), "--target", "y", "--drop", "k", *drop, *QUICK, *options]
    ended = CliRunner().invoke(app, [*fit, "-o", str(folder / "new.model")])
    assert ended.exit_code == code, ended.output
    assert said in " ".join(ended.output.replace("│", " ").split())
    assert not (folder / "new.model").exists()


def test_codes_of_groups_stay_apart(folder):
    table = pd.read_csv(folder / "t.csv").drop(columns="w")
    table["k"] = ["0" * (k % 4 // 2) + str(k // 4) for k in range(40)]
    table.to_csv(folder / "t.csv", index=False)
    fit = ["fit", str(folder / "t.csv"), "--target", "y", "--groups", "k", *QUICK]
    ended = CliRunner().invoke(app, [*fit, "-o", str(folder / "new.model")])
    assert "Fitted 40 rows of 20 groups" in ended.output


def test_a_number_too_far_is_told_by_its_column(folder):
    (folder / "far.csv").write_text("x\n1\n1e120\n")
    asked = ["predict", str(folder / "m.model"), str(folder / "far.csv")]
    ended = CliRunner().invoke(app, [*asked, "-o", str(folder / "p.csv")])
    assert ended.exit_code == 1
    assert "Column 'x' holds 1e+120 in row 2, too far from the training rows" in ended.stderr


def test_options_of_intervals_need_them(folder):
    asked = ["dea", "efficiency", str(folder / "t.csv"), "--inputs", "x", "--outputs", "k"]
    ended = CliRunner().invoke(app, [*asked, "--level", "0.9"])
    assert ended.exit_code == 2
    said = " ".join(ended.output.replace("│", " ").split())
    assert "are of --intervals, which is not given" in said


def test_a_model_is_not_written_over_its_checkpoint(tmp_path):
    pd.DataFrame({"a": np.arange(40.0), "y": np.arange(40) % 2}).to_csv(tmp_path / "t.csv")
    both = str(tmp_path / "one.model")
    arguments = ["fit", str(tmp_path / "t.csv"), "--target", "y", "--checkpoint", both, "-o", both]
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 2
    assert "--checkpoint and --output are both" in " ".join(said.output.split())
    assert not Path(both).exists()
