"""Matplotlib figures as inline SVG: the same numbers give the same bytes.

Text stays text: small files, sharp on paper, and the page's own font. Everything is drawn with
matplotlib's object-oriented interface; its settings are changed only while a figure is written.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from bootprob.displays.style import COLORS
from bootprob.report.figure_table import FigureTable

__all__ = ["Picture", "draw_picture"]

WIDTH = 4.4  # inches: two figures fit beside each other on a desktop, one on a phone

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "bootprob",
    "text.parse_math": False,  # a class may be called "$x$"
    "font.size": 9.0,
    "axes.edgecolor": COLORS["quiet"],
    "axes.labelcolor": COLORS["ink"],
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": COLORS["quiet"],
    "ytick.color": COLORS["quiet"],
    "xtick.labelcolor": COLORS["ink"],
    "ytick.labelcolor": COLORS["ink"],
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.titlesize": 9.0,
    "axes.titlecolor": COLORS["ink"],
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "legend.labelcolor": COLORS["ink"],
    "lines.linewidth": 1.2,
}


@dataclass(frozen=True)
class Picture:
    """A figure for the page.

    Attributes
    ----------
    svg : str
        The content of an ``<svg>`` element, without the element itself.
    view_box : str
        Its ``viewBox``.
    alt : str
        What the figure shows, in words, for those who cannot see it.
    tables : tuple of FigureTable
        Its numbers, where the page's template has no table of its own for them.
    """

    svg: str
    view_box: str
    alt: str
    tables: tuple[FigureTable, ...] = ()


def draw_picture(
    draw: Callable[[Figure], None],
    height: float,
    name: str,
    alt: str,
    tables: tuple[FigureTable, ...] = (),
) -> Picture:
    """Run `draw` on an empty figure and take the result apart for the page.

    Parameters
    ----------
    draw : callable
        Draws on the figure it is given.
    height : float
        Height of the figure in inches.
    name : str
        Prefix of all ids, which must differ between the figures of a page.
    alt : str
        Text alternative.
    tables : tuple of FigureTable, optional
        The numbers of the figure.
    """
    with mpl.rc_context():
        mpl.rcdefaults()  # whatever style the caller has set: the same numbers, the same file
        mpl.rcParams.update(_STYLE)
        layout = ConstrainedLayoutEngine(w_pad=0.01, h_pad=0.02, hspace=0.06)
        figure = Figure(figsize=(WIDTH, height), layout=layout)
        draw(figure)
        buffer = io.StringIO()
        absent = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        with warnings.catch_warnings():
            # A class name in another script: the browser has the letters that are missing here.
            warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from", UserWarning)
            figure.savefig(buffer, format="svg", metadata=absent, transparent=True)
    return replace(_inline(buffer.getvalue(), name, alt), tables=tables)


def _inline(svg: str, name: str, alt: str) -> Picture:
    """Strip what only a file of its own needs; make ids unique on a page of several figures."""
    head = re.search(r'<svg[^>]*viewBox="([^"]+)"[^>]*>', svg)
    if head is None:
        raise RuntimeError("matplotlib wrote an SVG file without a viewBox")
    body = svg[head.end() : svg.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'\b(?:xlink:)?href="#', f'href="#{name}-', body)
    body = body.replace("url(#", f"url(#{name}-")
    return Picture(svg=body.strip(), view_box=head[1], alt=alt)
