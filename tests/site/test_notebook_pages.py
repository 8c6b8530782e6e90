"""Pages of notebooks: text, code, what was printed, and pictures."""

import base64
from types import SimpleNamespace

from docs.site.notebook_pages import Example


def _example(*outputs):
    text = SimpleNamespace(cell_type="markdown", source="# A title\n\nWhy.")
    code = SimpleNamespace(cell_type="code", source="run()", outputs=list(outputs))
    return Example("it", SimpleNamespace(cells=[text, code], metadata={"seconds": 2.2}))


def test_cells_and_what_they_said_are_shown_in_their_order():
    picture = {"data": {"image/png": base64.b64encode(b"png").decode(), "text/plain": "<Figure>"}}
    example = _example({"text": "\x1b[31m1\x1b[0m\n"}, {"data": {"text/plain": "2"}}, picture)
    page, pictures = example.page()
    assert example.title == "A title"
    assert page.startswith("# A title\n\nWhy.\n\n```python\nrun()\n```\n\n```text\n1\n2\n```\n\n")
    assert "![Figure 1: A title](it_1.png)" in page
    assert "<Figure>" not in page
    assert pictures == {"it_1.png": b"png"}
    assert "it ran for 2 s" in page


def test_warnings_are_said_once_and_without_a_place():
    warning = "/home/you/a.py:61: FewRowsWarning: Few rows.\nTake care.\n  found = f(x)\n"
    page, _ = _example(
        {"text": "before\n"}, {"text": warning}, {"text": f"{warning}after\n"}
    ).page()
    assert "```text\nbefore\nafter\nFewRowsWarning: Few rows. Take care.\n```" in page
    assert "/home/you" not in page
