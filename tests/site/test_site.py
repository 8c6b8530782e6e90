"""The site without MkDocs: links from file to page, and what is refused of built pages."""

import pytest
import yaml

from docs.site.check import problems
from docs.site.links import PAGES, ROOT, in_site, linked, rewritten


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("docs/guide.md", "intervals.md", ("intervals.md", None)),
        ("docs/guide.md", "../README.md", ("index.md", None)),
        ("README.md", "docs/guide.md", ("guide.md", None)),
        ("README.md", "docs/results", ("source/docs/results/index.md", "docs/results")),
        ("README.md", "examples", ("examples/index.md", None)),
        ("docs/guide.md", "../examples/more_rows.py", ("examples/more_rows.md", None)),
        ("docs/guide.md", "../LICENSE", ("source/LICENSE", "LICENSE")),
        ("gpu/results/README.md", "../../docs/gpu.md", ("gpu.md", None)),
        ("docs/guide.md", "https://scikit-learn.org", ("https://scikit-learn.org", None)),
    ],
)
def test_links_lead_to_pages_or_bring_what_they_need(source, target, expected):
    assert in_site(source, target) == expected


def test_text_is_rewritten_and_anchors_stay():
    text = "[a](../README.md#more) and\n```python no-run\nf[0](1)\n```\n"
    assert "[a](index.md#more)" in rewritten("docs/guide.md", text)
    titled = rewritten("docs/guide.md", "see [costs.md](costs.md) and [x.md](costs.md)")
    assert titled == "see [Costs instead of rates](costs.md) and [x.md](costs.md)"
    assert "```python\n" in rewritten("docs/guide.md", text)
    assert linked("docs/guide.md", "[a](../LICENSE) [b](costs.md)") == {"LICENSE"}


def test_every_page_is_in_the_navigation_once():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]

    def places(entry):
        if isinstance(entry, str):
            return [entry]
        inner = entry.values() if isinstance(entry, dict) else entry
        return [place for each in inner for place in places(each)]

    listed = places(yaml.safe_load(nav))
    pages = [path.name for path in (ROOT / "docs").glob("*.md")]
    assert sorted(listed) == sorted([*pages, *PAGES.values()])


def test_whole_pages_are_passed(tmp_path):
    (tmp_path / "a.html").write_text('<h1 id="top"><a href="b.html#x">b</a><img src="p.png">')
    (tmp_path / "b.html").write_text('<p id="x"><a href="https://example.org">elsewhere</a>')
    (tmp_path / "p.png").write_bytes(b"")
    assert problems(tmp_path) == []


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ('<a href="gone.html">', "gone.html, which is not there"),
        ('<a href="#gone">', "#gone, which has no such anchor"),
        ('<img src="gone.png">', "gone.png, which is not there"),
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js"),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "loads //cdn.example/x.css"),
    ],
)
def test_what_is_not_whole_is_said(tmp_path, html, said):
    (tmp_path / "a.html").write_text(html)
    [found] = problems(tmp_path)
    assert found.startswith("a.html ")
    assert said in found


def test_style_sheets_load_nothing_from_elsewhere(tmp_path):
    (tmp_path / "a.css").write_text("@font-face { src: url('https://fonts.example/a.woff2') }")
    assert problems(tmp_path) == ["a.css loads url('https://fonts.example/a.woff2'"]
