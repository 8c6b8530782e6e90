"""What MkDocs asks: pages from outside docs, the reference, and a check of what was built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from docs.site.check import problems
from docs.site.gallery import gallery_files
from docs.site.links import PAGES, ROOT, linked, rewritten
from docs.site.reference import reference_pages

_DOCS = ROOT / "docs"


def on_config(config: Any) -> Any:
    """Give the navigation the pages of the reference and of the examples, which are run here."""
    made = {"API reference": reference_pages([ROOT, ROOT / "gpu"]), "Examples": gallery_files()}
    for section in config.nav:
        for name in made.keys() & section.keys():
            section[name] = [place for place in made[name] if place.endswith(".md")]
    config["made"] = {place: content for pages in made.values() for place, content in pages.items()}
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add pages of the root and those that were made, what pages link to, and style."""
    added = {}

    def add(place: str, **given: Any) -> None:
        added[place] = File.generated(config, place, **given)

    for source, place in PAGES.items():
        add(place, content=rewritten(source, (ROOT / source).read_text(encoding="utf-8")))
    for place, content in config["made"].items():
        add(place, content=content)
    wanted = {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py")}
    for source in [*PAGES, *(f"docs/{path.name}" for path in _DOCS.glob("*.md"))]:
        wanted |= linked(source, (ROOT / source).read_text(encoding="utf-8"))
    for path in sorted(wanted):
        if (ROOT / path).is_file():
            add(f"source/{path}", abs_src_path=str(ROOT / path))
            continue
        inside = sorted(each.name for each in (ROOT / path).iterdir() if each.is_file())
        listing = "".join(f"- [{name}]({name})\n" for name in inside)
        add(f"source/{path}/index.md", content=f"# {path}\n\n{listing}")
        for name in inside:
            add(f"source/{path}/{name}", abs_src_path=str(ROOT / path / name))
    for asset in (_DOCS / "site" / "assets").iterdir():
        add(f"assets/{asset.name}", abs_src_path=str(asset))
    for file in added.values():
        files.append(file)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links that leave docs lead to what was added for them."""
    path = page.file.abs_src_path
    if path and Path(path).parent == _DOCS:
        return rewritten(f"docs/{page.file.src_uri}", markdown)
    return markdown


def on_post_build(config: Any) -> None:
    """Refuse pages with a dead link, or that load anything from elsewhere."""
    if found := problems(Path(config.site_dir)):
        raise PluginError("The built site is not whole:\n" + "\n".join(found))
