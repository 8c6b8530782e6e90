"""The examples, run as notebooks: a page, a picture and a notebook of each.

Jupytext makes a notebook of a script (its docstring is the first text, ``# %%`` begins a cell) and
nbclient runs it. A notebook that is made is kept in build/gallery until its script, or a source of
bootprob, changes. (mkdocs-gallery would run scripts its own way, and write its pages into docs.)
"""

from __future__ import annotations

import ast
import hashlib
import html
import tempfile
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

from docs.site.links import ROOT
from docs.site.notebook_pages import Example, printed
from docs.site.sections import SECTIONS

__all__ = ["examples", "gallery_files"]

KEPT = ROOT / "build" / "gallery"
_SECONDS = 600  # for a cell of an example, on slow and busy cores


def examples() -> Iterator[Example]:
    """Every example of `SECTIONS`, run now or before.

    Raises
    ------
    CellExecutionError
        One failed.
    """
    sources = [*ROOT.glob("bootprob/**/*.py"), *ROOT.glob("gpu/bootprob_gpu/**/*.py")]
    of_all = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources)))
    for names in SECTIONS.values():
        for name in names:
            script = ROOT / "examples" / f"{name}.py"
            state = of_all.copy()
            state.update(script.read_bytes())
            yield Example(name, _run(script, state.hexdigest()))


def _run(script: Path, state: str) -> Any:
    kept = KEPT / f"{script.stem}.ipynb"
    if kept.exists():
        notebook = nbformat.read(kept, as_version=4)
        if notebook.metadata.get("state") == state:
            return notebook
    notebook = _notebook(script.read_text(encoding="utf-8"))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=_SECONDS,
            resources={"metadata": {"path": folder}},
            extra_arguments=["--IPKernelApp.log_level=40"],
        )
        client.execute()
    notebook.metadata["seconds"] = time.perf_counter() - began
    notebook.metadata["state"] = state
    KEPT.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, kept)
    return notebook


def _notebook(script: str) -> Any:
    docstring = ast.parse(script).body[0]
    rest = "\n".join(script.splitlines()[docstring.end_lineno :]).strip("\n")
    notebook = jupytext.reads(rest, fmt="py:percent")
    title, _, text = (ast.get_docstring(ast.parse(script)) or "").partition("\n")
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell(f"# {title.rstrip('.')}\n{text}"))
    return notebook


def _without_places(notebook: Any) -> Any:
    """A copy that does not say where files lie on the machine that ran it."""
    copy = deepcopy(notebook)
    for said in (each for cell in copy.cells for each in cell.get("outputs", [])):
        if said.get("name") == "stderr":
            said["text"] = printed(said["text"]) + "\n"
    return copy


def gallery_files() -> dict[str, str | bytes]:
    """Pages, pictures and notebooks by their place in the site, the index first."""
    files: dict[str, str | bytes] = {"examples/index.md": ""}
    tiles: dict[str, str] = {}
    seconds = 0.0
    for example in examples():
        text, pictures = example.page()
        files[f"examples/{example.name}.md"] = text
        files |= {f"examples/{name}": content for name, content in pictures.items()}
        files[f"examples/{example.name}.ipynb"] = nbformat.writes(_without_places(example.notebook))
        seconds += example.seconds
        title = html.escape(example.title)
        tiles[example.name] = (
            f'<a href="{example.name}.html"><img src="{example.name}_1.png" alt="" loading="lazy">'
            f"<span>{title}</span></a>"
        )
    said = f"{len(tiles)} examples, run when this site was built; {seconds:.0f} s in all."
    parts = [f"# Examples\n\n{said} Each is a script, and a notebook."]
    for section, names in SECTIONS.items():
        shown = "\n".join(tiles[name] for name in names)
        parts.append(f'## {section}\n\n<div class="gallery">\n{shown}\n</div>')
    files["examples/index.md"] = "\n\n".join(parts) + "\n"
    return files
