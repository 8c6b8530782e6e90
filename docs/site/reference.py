"""Pages of the reference: one for each package with public names, every name once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import griffe

from docs.site.docstring_text import with_links

__all__ = ["reference_pages"]

_FIRST = ["bootprob", "bootprob.displays", "bootprob.metrics", "bootprob.costs"]


def reference_pages(paths: Sequence[Path]) -> dict[str, str]:
    """Markdown of each page, by its place in the site; the index is the first.

    Parameters
    ----------
    paths : sequence of Path
        Folders in which `bootprob` and `bootprob_gpu` lie. They are read, not imported.
    """
    loader = griffe.GriffeLoader(search_paths=list(paths), allow_inspection=False)
    names = {}
    for root in ("bootprob", "bootprob_gpu"):
        package = loader.load(root)
        folders = [each for each in package.modules.values() if each.is_init_module]
        for module in [package, *sorted(folders, key=lambda each: each.name)]:
            if exported := [str(name) for name in module.exports or []]:
                names[module] = exported
    loader.resolve_aliases(implicit=False, external=False)

    order = sorted(names, key=lambda each: (_rank(each.path), each.path))
    home: dict[str, str] = {}  # where a thing is defined -> the page that describes it
    pages, rows = {}, []
    for module in order:
        place, body, elsewhere = f"api/{module.path}.md", [], []
        for name in sorted(names[module], key=str.lower):
            target = module[name].final_target.path
            if target in home:
                elsewhere.append(f"[`{name}`][{home[target]}.{name}]")
                continue
            home[target] = module.path
            body.append(f"::: {module.path}.{name}\n")
        intro = with_links(module.docstring.value) if module.docstring else ""
        also = f"Here too: {', '.join(elsewhere)}.\n" if elsewhere else ""
        pages[place] = "\n".join([f"# {module.path}\n", intro + "\n", also, *body])
        summary = intro.split("\n\n")[0].replace("\n", " ")
        rows.append(f"| [`{module.path}`]({module.path}.md) | {summary} | {len(names[module])} |")
    table = "| package | what is in it | names |\n| --- | --- | --- |\n" + "\n".join(rows)
    said = "Every public name, from its docstring. What is not here may change without notice."
    index = f"# API reference\n\n{said}\n\n{table}\n"
    return {"api/index.md": index, **pages}


def _rank(package: str) -> int:
    return _FIRST.index(package) if package in _FIRST else len(_FIRST)
