"""Where the links of files of the repository lead in the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

__all__ = ["PAGES", "ROOT", "in_site", "linked", "rewritten"]

ROOT = Path(__file__).parents[2]
PAGES = {  # that lie outside docs: where they are in the site
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "gpu/results/README.md": "gpu_results.md",
}
_CODE = ("docs/studies/", "docs/site/")  # not pages, as exclude_docs of mkdocs.yml
_NAMED = re.compile(r"\[([\w./]+\.md)\]\(")  # a link that shows the name of a file
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def in_site(source: str, target: str) -> tuple[str, str | None]:
    """Where a link of a file leads in the site, and what has to be added to the site for it.

    Parameters
    ----------
    source : str
        Path of the file in the repository.
    target : str
        What it links to, without an anchor.

    Returns
    -------
    link : str
        Relative to the page that the file becomes.
    wanted : str or None
        Path in the repository of what is no page of docs.
    """
    if re.match(r"\w+:", target):
        return target, None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    place, wanted = _place(path), None
    if path == "examples":
        place = "examples/index.md"
    elif path.startswith("examples/"):
        place = path.removesuffix(".py") + ".md"
    elif (ROOT / path).is_dir():
        place, wanted = f"source/{path}/index.md", path
    elif path not in PAGES and (not path.startswith("docs/") or path.startswith(_CODE)):
        place, wanted = f"source/{path}", path
    return posixpath.relpath(place, posixpath.dirname(_place(source)) or "."), wanted


def _place(path: str) -> str:
    return PAGES.get(path, path.removeprefix("docs/"))


def linked(source: str, text: str) -> set[str]:
    """Paths in the repository of all that a file links to and that is no page of docs."""
    wanted = (in_site(source, target)[1] for _, target, _ in _LINK.findall(text))
    return {path for path in wanted if path}


def rewritten(source: str, text: str) -> str:
    """The text of a file of the repository, with the links and the code fences of the site.

    A link that shows the name of a page shows its title.
    """
    text = text.replace("```python no-run\n", "```python\n")
    text = _NAMED.sub(lambda m: f"[{_title(source, m[1])}](", text)
    return _LINK.sub(lambda m: m[1] + in_site(source, m[2])[0] + m[3], text)


def _title(source: str, name: str) -> str:
    path = (ROOT / source).parent / name
    if not path.is_file():
        return name
    return path.read_text(encoding="utf-8").split("\n")[0].removeprefix("# ")
