"""Model cards as Markdown, page and numbers: what stands in them, and who can read it."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import jsonschema_rs
import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from bootprob import BootstrapSVC, DataError
from bootprob.cli.__main__ import app
from bootprob.persistence.save_load import save
from bootprob.report import write_card, write_report
from bootprob.tables.held_out import HeldOut
from bootprob.tables.model import TableModel
from linear_models import linear
from mixed_tables import credit_table

SCHEMA = Path(__file__).parents[2] / "docs" / "model_card.schema.json"
# https://huggingface.co/docs/hub/model-cards: what the hub reads of the head of a card.
OF_HUB = {
    "language", "license", "license_name", "license_link", "library_name", "tags", "datasets",
    "base_model", "metrics", "pipeline_tag", "model-index", "thumbnail", "co2_eq_emissions",
}  # fmt: skip


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A model that was watched and recalibrated, its report with subgroups, and the folder."""
    folder = tmp_path_factory.mktemp("cards")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    y = np.where(X[:, 0] + rng.normal(size=160) > 0, "ill <b>", "well")
    model = linear(n_bootstraps=20, random_state=0).fit(X, y)
    later = rng.normal(size=(200, 3))
    seen = model.watched(later, np.where(later[:, 0] > -1.5, "ill <b>", "well"))
    seen = seen.recalibrated(later, np.where(later[:, 0] > -1.5, "ill <b>", "well"))
    content = write_report(
        {"linear": seen}, folder / "page.html", title="Illness | 1/2", training=X,
        by=np.where(X[:, 2] > 0, "old", "young"),
    )  # fmt: skip
    return seen, content, folder


class Read(HTMLParser):
    """Tags and texts of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data.strip())


def test_markdown_has_the_fields_of_the_hub(reported):
    model, content, folder = reported
    write_card(content, model, folder / "card.md")
    text = (folder / "card.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    fields = yaml.safe_load(head)
    assert fields.keys() <= OF_HUB
    assert fields["pipeline_tag"] == "tabular-classification"
    [index] = fields["model-index"]
    [result] = index["results"]
    assert result["task"]["type"] == "tabular-classification"
    assert result["dataset"].keys() >= {"name", "type"}
    metrics = {each["type"]: each["value"] for each in result["metrics"]}
    own = content["models"][0]["metrics"]
    assert metrics["roc_auc"] == own["auc"]["value"]
    assert metrics["accuracy"] == own["accuracy"]["value"]
    for heading in (
        "Stability", "Subgroups", "Since the fit", "What this card does not tell", "Signatures",
    ):  # fmt: skip
        assert f"\n## {heading}\n" in body
    assert re.search(r"old *\| *\d+ \(\d+ positive\)", body)
    assert "alarm: calibration" in body
    assert re.search(r"\| Validator *\|", body)
    assert "ill &lt;b&gt;" in body


def test_the_page_says_the_same_and_nothing_is_markup(reported):
    model, content, folder = reported
    write_card(content, model, folder / "card.html", intended_use="Second *opinions* <script>.")
    page = (folder / "card.html").read_text(encoding="utf-8")
    read = Read(page)
    assert "script" not in read.tags
    assert {"h1", "h2", "table", "ul"} <= set(read.tags)
    assert "Signatures" in read.texts
    assert "Illness | 1/2" in " ".join(read.texts)
    assert "opinions" in read.texts
    assert "default-src 'none'" in page
    assert page.count("<table>") == page.count('class="scroll"')


def test_numbers_are_of_the_published_form(reported):
    model, content, folder = reported
    write_card(content, model, folder / "card.json", intended_use="Second opinions.")
    found = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    check = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text(encoding="utf-8")))
    check.validate(found)
    assert found["intended_use"] == "Second opinions."
    assert found["signatures"] == []
    assert "rows" not in found["model"]["stability"]
    assert found["model"]["metrics"] == content["models"][0]["metrics"]
    signed = {"role": "Validator", "name": "A", "date": "2026-11-25", "decision": "accepted"}
    check.validate(found | {"signatures": [signed]})
    for wrong in (
        found | {"signatures": [{"role": "Validator"}]},
        {name: value for name, value in found.items() if name != "data"},
        found | {"level": 95},
        found | {"format": {"name": "bootprob model card", "version": 2}},
    ):
        assert not check.is_valid(wrong)


def test_several_classes_and_tables_have_cards_too(tmp_path):
    frame = credit_table(90)
    table = TableModel.fit(frame, "risk", "bad", kernel="linear", n_bootstraps=15, random_state=0)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 2))
    several = linear(n_bootstraps=10, random_state=0).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    check = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text(encoding="utf-8")))
    named = table.svc_with_class_names()
    for model, own, held_out in [
        (named, table, HeldOut.of_table(table, credit_table(40, seed=2))),
        (several, None, None),
    ]:
        content = write_report(
            {"m": model}, tmp_path / "page.html", title="A", held_out=held_out, table=own
        )
        for suffix in ("md", "html", "json"):
            write_card(content, model, tmp_path / f"card.{suffix}", table_model=own)
        check.validate(json.loads((tmp_path / "card.json").read_text(encoding="utf-8")))


def test_other_files_are_refused_before_anything_is_done(reported, tmp_path):
    model, content, _ = reported
    with pytest.raises(DataError, match=r"\.md, \.html or \.json"):
        write_card(content, model, tmp_path / "card.txt")
    with pytest.raises(DataError):
        write_card(content, model, tmp_path / "nowhere" / "card.md")
    two = content | {"models": content["models"] * 2}
    with pytest.raises(DataError, match="one model"):
        write_card(two, model, tmp_path / "card.md")
    assert not list(tmp_path.iterdir())


def test_the_command_line_writes_each_kind(tmp_path):
    frame = credit_table(60)
    model = TableModel.fit(frame, "risk", "bad", kernel="linear", n_bootstraps=8, random_state=0)
    save(model, tmp_path / "loans.model")
    for suffix in ("md", "html", "json"):
        card = tmp_path / f"card.{suffix}"
        found = CliRunner().invoke(
            app,
            [
                "report",
                str(tmp_path / "loans.model"),
                "-o",
                str(tmp_path / "r.html"),
                "--card",
                str(card),
            ],
        )
        assert found.exit_code == 0, found.output
        assert card.stat().st_size > 1000
    assert isinstance(model.svc, BootstrapSVC)


@pytest.mark.parametrize(
    ("report", "card", "what"),
    [
        ("r.html", "r.html", "the report"),
        ("r.html", "other/../r.html", "the report"),
        ("r.html", "r.json", "its numbers"),
        ("r.htm", "r.json", "its numbers"),
    ],
)
def test_the_card_takes_the_place_of_no_report(report, card, what, tmp_path):
    (tmp_path / "other").mkdir()
    model = tmp_path / "never_read.model"  # refused before
    given = ["report", model, "-o", tmp_path / report, "--card", tmp_path / card]
    found = CliRunner().invoke(app, list(map(str, given)))
    assert found.exit_code == 1
    assert f"is where {what} would go" in " ".join(found.output.split())
    assert [each.name for each in tmp_path.iterdir()] == ["other"]
