"""Links and assets of built pages: each has to be there, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["problems"]

_LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}

_REMOTE = re.compile(r"url\(\s*['\"]?(?:https?:)?//[^)]*")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, bool]] = []  # and whether a browser loads it with the page
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {name for key in ("id", "name") if (name := given.get(key))}
        if tag == "a" and (target := given.get("href")):
            self.links.append((target, False))
        elif (target := given.get(_LOADED.get(tag, ""))) and given.get("rel") != "canonical":
            self.links.append((target, True))


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def problems(site: Path) -> list[str]:
    """What is wrong with the pages of a folder, a line each; nothing if they are whole.

    Parameters
    ----------
    site : Path
        Folder of HTML pages and style sheets.
    """
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        for link, loaded in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if loaded and parts.scheme != "data":
                    found.append(f"{where} loads {link}")
                continue
            if path.name == "404.html":  # is shown at any depth, with links from the root
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{where} links to {link}, which is not there")
            elif parts.fragment and target in pages:
                anchor = unquote(parts.fragment)
                if anchor not in pages[target].anchors and not anchor.startswith("__"):
                    found.append(f"{where} links to {link}, which has no such anchor")
    for path in sorted(site.rglob("*.css")):
        where, text = path.relative_to(site), path.read_text(encoding="utf-8")
        found += [f"{where} loads {link}" for link in _REMOTE.findall(text)]
    return found
