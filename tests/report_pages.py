"""What the pages of all reports have to keep."""

import html.parser
from collections import Counter
from itertools import pairwise


class _Figures(html.parser.HTMLParser):
    """Pictures of each figure, and the rows of the tables between it and the next figure."""

    def __init__(self, source):
        super().__init__()
        self.found, self._inside = [], False
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        if tag == "figure":
            self.found.append((0, []))
            self._inside = True
        elif tag == "section":
            self.found.append((0, []))  # what follows belongs to no figure
        elif tag == "svg" and self._inside and dict(attrs).get("role") == "img":
            pictures, tables = self.found[-1]
            self.found[-1] = (pictures + 1, tables)
        elif tag == "table":
            self.found[-1][1].append(0)
        elif tag == "tr":
            self.found[-1][1][-1] += 1

    def handle_endtag(self, tag):
        self._inside = self._inside and tag != "figure"


def check_tables_of_figures(source, n_figures):
    """Check that each picture is followed by a table of its own, which is not empty."""
    figures = [(pictures, tables) for pictures, tables in _Figures(source).found if pictures]
    assert len(figures) == n_figures
    for pictures, tables in figures:
        assert len(tables) >= pictures
        assert min(tables) >= 2


class _Landmarks(html.parser.HTMLParser):
    """What a screen reader goes by: headings, names of regions, heads of tables, pictures."""

    def __init__(self, source):
        super().__init__()
        self.headings, self.heads, self.pictures, self.language = [], [], [], None
        self._named, self._ids, self._open = [], {}, None
        self.feed(source)
        self.regions = [name or self._ids[by].strip() for name, by in self._named]

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "html":
            self.language = attrs.get("lang")
        if tag in ("section", "nav") or attrs.get("role") == "region":
            self._named.append((attrs.get("aria-label"), attrs.get("aria-labelledby")))
        if tag == "svg":
            self.pictures.append(attrs.get("aria-hidden") == "true" or attrs.get("aria-label"))
        if tag == "th":
            self.heads.append("")
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append(int(tag[1]))
            self._open = attrs.get("id")
            self._ids[self._open] = ""

    def handle_data(self, data):
        if self._open is not None:
            self._ids[self._open] += data
        if self.heads:
            self.heads[-1] += data  # and what follows the last cell, which is no matter

    def handle_endtag(self, tag):
        if tag == "th" and not self.heads[-1].strip():
            raise AssertionError(f"head {len(self.heads)} of a table says nothing")
        if tag in ("h1", "h2", "h3", "h4"):
            self._open = None


def check_accessible(source):
    """Check what axe-core found wrong once, and what it would find worst; see tests/report."""
    page = _Landmarks(source)
    assert page.language == "en"
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(page.headings))
    assert len(set(page.regions)) == len(page.regions), Counter(page.regions).most_common(3)
    assert all(page.pictures)
