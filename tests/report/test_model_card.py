"""The model card: the numbers of the report, and no Markdown but its own."""

import json
import re
import sys

import numpy as np
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

from bootprob import BootstrapSVC
from bootprob.cli.__main__ import app
from bootprob.exceptions import DataError
from bootprob.persistence.save_load import load, save
from bootprob.report import card_of, model_card, write_report
from bootprob.tables.held_out import HeldOut
from bootprob.tables.model import TableModel
from linear_models import linear
from mixed_tables import credit_table

pytest.importorskip("skops.card")


@pytest.fixture(scope="module")
def model():
    return TableModel.fit(
        credit_table(120),
        "risk",
        "bad",
        kernel="linear",
        n_bootstraps=20,
        C=[0.1, 1.0],
        random_state=0,
    )


def sections(card):
    """Heading to text."""
    parts = re.split(r"^(#+) (.*)$", card.render(), flags=re.MULTILINE)
    return {parts[k + 1]: parts[k + 2] for k in range(1, len(parts), 3)}


@pytest.mark.usefixtures("undrawn")
def test_the_numbers_of_a_report_make_the_same_card(model, tmp_path):
    svc = model.svc_with_class_names()
    content = write_report({svc.kernel: svc}, tmp_path / "loans.html", title="Loans")
    card = card_of(content, svc, table_model=model)
    assert card.render() == model_card(model, title="Loans").render()


def test_metrics_are_those_of_the_model(model):
    found = sections(model_card(model, title="Loans"))
    for name, metric in model.svc.metric_intervals().items():
        [line] = [row for row in found["Metrics"].splitlines() if f" {metric.label} " in row]
        if name in ("accuracy", "sensitivity", "specificity"):
            values = [f"{100 * v:.1f}" for v in (metric.value, metric.lower, metric.upper)]
        else:
            values = [f"{v:.4f}" for v in (metric.value, metric.lower, metric.upper)]
        assert re.findall(r"\d+\.\d+", line)[:3] == values
    assert list(found) == [
        "Loans",
        "Intended use",
        "Training data",
        "Metrics",
        "Calibration",
        "Prediction sets",
        "Limits",
        "What this card does not tell",
        "How to load it",
        "Parameters",
        "Versions",
        "Signatures",
    ]
    assert "120 rows" in found["Training data"]
    assert "7 columns: status, months" in found["Training data"]
    assert found["Intended use"].strip() == "Its author has not said."
    assert found["Calibration"].count("\n|") == 12


def test_the_lines_that_load_it_run(model, tmp_path, monkeypatch):
    save(model, tmp_path / "it's loans.model")
    credit_table(5).to_csv(tmp_path / "new_rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    text = sections(model_card(model, file=tmp_path / "it's loans.model"))["How to load it"]
    names = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], names)
    assert len(names["predicted"]) == 5
    assert str(tmp_path) not in text


def test_held_out_rows_and_intended_use(model):
    aside = HeldOut.of_table(model, credit_table(90, seed=7))
    found = sections(model_card(model, held_out=aside, intended_use="For *tests* only."))
    assert "90 held-out rows" in found["Metrics"]
    assert "Held-out rows" in found["Metrics"].split("\n|")[1]
    assert "For *tests* only." in found["Intended use"]


@pytest.mark.usefixtures("undrawn")
def test_limits_say_what_was_found(rng):
    X = rng.uniform(-3, 3, size=(300, 1))
    y = (np.abs(X[:, 0]) > 1.5) ^ (rng.random(300) < 0.05)
    options = {"C": [0.1, 1.0], "n_bootstraps": 20, "random_state": 1}
    straight = linear(**options).fit(X, y)
    assert "the logit bends in" in sections(model_card(straight))["Limits"]
    votes = BootstrapSVC.paper(**options).fit(X, y)
    limits = sections(model_card(votes))["Limits"]
    assert "measure the noise of a finite number of bootstrap samples" in limits
    assert "lack of fit" not in limits
    asked = linear(control="threshold", rates={"tpr": 0.9}, **options)
    careful = asked.fit(X, X[:, 0] + rng.normal(size=300) > 1)
    assert careful.decision_threshold_ < 0.5
    found = sections(model_card(careful))
    assert "≥ 0.9" in found["Rates under control"]
    moved = f"above {careful.decision_threshold_:.3g}, not above one half"
    assert moved in " ".join(found["Limits"].split())
    easy = clone(asked).fit(X, X[:, 0] > 1)
    assert easy.decision_threshold_ == 0.5
    assert "not above one half" not in sections(model_card(easy))["Limits"]


def test_hostile_names_stay_text(rng):
    X = rng.normal(size=(60, 2))
    hostile = "<script>alert(1)</script>|`x`*y*\n# z"
    labels = np.array(["a/b", hostile], dtype=object)
    y = labels[(X[:, 0] + rng.normal(size=60) > 0).astype(int)]
    svc = BootstrapSVC(kernel="linear", n_bootstraps=20, C=1.0, random_state=0).fit(X, y)
    card = model_card(svc, title="In/Out " + hostile)
    text = card.render()
    assert "<script" not in text
    assert "\n# z" not in text
    assert text.strip().startswith("# In/Out &lt;script&gt;")
    assert list(sections(card))[1:3] == ["Intended use", "Training data"]


@pytest.mark.usefixtures("undrawn")
def test_the_command_writes_the_numbers_of_the_report(model, tmp_path):
    save(model, tmp_path / "m.model")
    arguments = ["report", tmp_path / "m.model", "-o", tmp_path / "r.html"]
    result = CliRunner().invoke(app, [*map(str, arguments), "--card", str(tmp_path / "c.md")])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "c.md").read_text(encoding="utf-8")
    [entry] = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["models"]
    for metric in entry["metrics"].values():
        assert f"{metric['value']:.4f}" in text or f"{100 * metric['value']:.1f}" in text
    assert "load('m.model')" in text
    assert load(tmp_path / "m.model").target.positive == "bad"


@pytest.mark.parametrize(
    ("card", "message"),
    [("c.txt", "must end in .md"), ("no/c.md", "does not exist"), ("link.md", "that is read")],
)
def test_cards_that_cannot_be_written(model, tmp_path, card, message):
    save(model, tmp_path / "m.model")
    (tmp_path / "link.md").symlink_to(tmp_path / "m.model")
    arguments = ["report", tmp_path / "m.model", "-o", tmp_path / "r.html"]
    result = CliRunner().invoke(app, [*map(str, arguments), "--card", str(tmp_path / card)])
    assert result.exit_code == 1
    assert message in result.stderr
    assert not (tmp_path / "r.html").exists()


def test_without_skops_it_says_what_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.card", None)
    with pytest.raises(DataError, match=r"bootprob\[skops\]"):
        model_card(model)
