"""The code in README and docs runs as it stands there; tables are what was measured."""

import json
import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from sklearn.datasets import load_breast_cancer

from docs.site.sections import SECTIONS
from docs.studies.coverage import document as coverage_document
from docs.studies.coverage.promise_tables import TABLES, with_table

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_CODE = [path for path in DOCUMENTS if "```python" in path.read_text(encoding="utf-8")]


def test_there_is_code_to_run():
    assert ROOT / "README.md" in WITH_CODE


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.name)
def test_code_blocks_run(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :4]
    names = {"X": X[:100], "y": y[:100], "X_new": X[150:160]}
    text = path.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    exec(compile(code, str(path), "exec"), names)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_extras_are_quoted_as_every_shell_understands():
    """Single quotes are part of the name for cmd.exe of Windows."""
    texts = [*DOCUMENTS, ROOT / "CHANGELOG.md", *(ROOT / "bootprob").rglob("*.py")]
    quoted = re.compile(r"""(["'])(?:bootprob|\.)\\?\[[a-z,]+\]\1""")
    marks = {path: quoted.findall(path.read_text(encoding="utf-8")) for path in texts}
    assert sum(map(len, marks.values())) > 20
    assert [path for path, found in marks.items() if "'" in found] == []


# `make docs` runs all of them.
QUICK = [
    *("benchmark_units", "constrained_rates", "decide_by_cost", "score_on_spark"),
    *("several_classes", "thesis_and_beyond", "tune_by_gradient", "undecided_rows"),
]
EXAMPLES = [
    pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else [pytest.mark.endurance])
    for path in sorted((ROOT / "examples").glob("*.py"))
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_examples_run(path, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__"})
    plt.close("all")
    assert capsys.readouterr().out
    assert (tmp_path / f"{path.stem}.png").stat().st_size > 5000


def test_every_example_is_in_the_gallery():
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_those_of_the_results(name):
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert with_table(name, text, ROOT / "tests" / "promises" / "results") == text
    with pytest.raises(ValueError, match="2 places"):
        with_table(name, text + text, ROOT / "tests" / "promises" / "results")


def test_the_page_on_coverage_is_what_its_template_makes_of_the_results():
    text = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    named = re.findall(r"(python|bootprob|torch|scikit-learn) ([\w.+]*\w)", text.split("##")[0])
    cases = coverage_document.load(ROOT / "tests" / "promises" / "results")
    assert coverage_document.render(cases, dict(named)) == text


@pytest.mark.parametrize("name", ["README.md", "docs/intervals.md", "docs/coverage.md"])
def test_what_intervals_do_not_do_is_said_where_they_are_praised(name):
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    sizes = (ROOT / "tests" / "promises" / "results").glob("lack_of_fit_*00.json")
    measured = [json.loads(each.read_text(encoding="utf-8"))["measured"] for each in sizes]
    worst = min(case["coverage"] for each in measured for case in each["cases"])
    assert f"a linear kernel may cover as little as {100 * worst:.0f} %" in text
    assert "silence proves nothing" in text
    assert "(repeated measurements)" in text
    assert "break every guarantee" in text.replace("**", "")
