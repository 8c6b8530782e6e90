"""What the pages of all reports have to keep."""

import html.parser


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
