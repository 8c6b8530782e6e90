"""Figures 5.1 to 5.5 of the thesis as inline SVG, drawn from their numbers."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bootprob.dea.selection.summary import SelectionSummary
from bootprob.dea.study.figure_data import ContributionCurve, Histograms, OutputCorrelations
from bootprob.displays.style import COLORS
from bootprob.report.svg import Picture, draw_picture
from bootprob.report.wording import short

__all__ = [
    "box_plots",
    "contributions",
    "correlation_matrix",
    "histogram_panels",
]

BLUE, ORANGE, INK, QUIET, GREY, FAINT = COLORS.values()

_NAMED = 25  # more rows are numbered only
_DIVERGING = LinearSegmentedColormap.from_list("correlation", [ORANGE, "#ffffff", BLUE])
_DPI = 288  # of what is not drawn with lines


def correlation_matrix(correlations: OutputCorrelations, name: str) -> Picture:
    """Figure 5.1 or 5.4: darker where the correlation is higher; selected outputs marked.

    Parameters
    ----------
    correlations : OutputCorrelations
        Of the outputs.
    name : str
        Prefix of all ids in the SVG; must differ between the figures of a page.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import output_correlations
    >>> from bootprob.report import correlation_matrix
    >>> picture = correlation_matrix(output_correlations(toy), "outputs")
    >>> picture.alt
    'Correlation matrix of 3 outputs.'
    """
    matrix, names, chosen = correlations.matrix, correlations.names, correlations.chosen
    m = len(names)

    def draw(figure: Figure) -> None:
        figure.set_dpi(_DPI)
        ax = figure.subplots()
        image = ax.imshow(matrix, cmap=_DIVERGING, vmin=-1, vmax=1, interpolation="nearest")
        if m <= _NAMED:
            labels = [short(one, 18) for one in names]
            ax.set_yticks(range(m), labels)
            ax.set_xticks(range(m), labels, rotation=90)
            if m <= 10:
                for row, column in np.ndindex(m, m):
                    value = matrix[row, column]
                    ax.text(
                        column, row, f"{value:.2f}".replace("-", "−"), ha="center", va="center",
                        color="white" if abs(value) > 0.7 else INK, fontsize=7.5,
                    )  # fmt: skip
        else:
            ax.set_xlabel("output, by number")
            ax.set_ylabel("output, by number")
            places = list(range(0, m, 10 if m <= 120 else 50))
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_ticks(places, [str(place + 1) for place in places])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        if 0 < len(chosen) < m:
            pairs = np.array([(a, b) for a in chosen for b in chosen])
            ax.plot(
                pairs[:, 0], pairs[:, 1], "s", mfc="none", mec=INK, mew=0.8 if m <= 40 else 0.5,
                markersize=max(2.2, 155 / m),
            )  # fmt: skip
        bar = figure.colorbar(image, ax=ax, shrink=0.6, aspect=22, label="correlation")
        bar.outline.set_visible(False)

    pairs = [
        f"{names[a]} and {names[b]} {matrix[a, b]:.2f}"
        for place, a in enumerate(chosen)
        for b in chosen[place + 1 :]
    ]
    listed = f" Of the selected: {'; '.join(pairs)}." if pairs else ""
    return draw_picture(draw, 3.6, name, f"Correlation matrix of {m} outputs.{listed}")


def box_plots(summary: SelectionSummary, values: ContributionCurve, name: str) -> Picture:
    """Figure 5.2: box-and-whiskers plots of the efficiencies, with their mean.

    Parameters
    ----------
    summary : SelectionSummary
        Distributions of the efficiencies, by p.
    values : ContributionCurve
        Of the same curve; its objective is drawn where it is not the mean.
    name : str
        Prefix of all ids.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from bootprob.dea import contribution_curve, selection_curve, summarise_curve
    >>> from bootprob.report import box_plots
    >>> curve = selection_curve(toy, 2)
    >>> picture = box_plots(summarise_curve(curve), contribution_curve(curve), "boxes")
    >>> picture.alt[:34]
    'Efficiencies by number of outputs.'
    """
    lines = summary.lines
    sizes = [line.size for line in lines]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for line in lines:
            x = line.size
            ax.vlines(x, line.lower_whisker, line.q1, color=QUIET, linewidth=0.9)
            ax.vlines(x, line.q3, line.upper_whisker, color=QUIET, linewidth=0.9)
            ax.bar(
                x, line.q3 - line.q1, bottom=line.q1, width=0.56, color=FAINT, edgecolor=QUIET,
                linewidth=0.8,
            )  # fmt: skip
            ax.hlines(line.q2, x - 0.28, x + 0.28, color=INK, linewidth=1.5)
            if line.minimum < line.lower_whisker:
                ax.plot(x, line.minimum, "o", color=QUIET, markersize=2.6)
            if line.maximum > line.upper_whisker:
                ax.plot(x, line.maximum, "o", color=QUIET, markersize=2.6)
        ax.plot(
            sizes, [line.mean for line in lines], "D-", color=ORANGE, markersize=4,
            linewidth=1.0, label="mean",
        )  # fmt: skip
        if values.objective_name not in ("mean", "quadratic"):
            ax.plot(
                sizes, values.values, "o--", color=BLUE, markersize=3.6, linewidth=1.0,
                label=values.objective_name,
            )  # fmt: skip
        ax.set(ylim=(-0.03, 1.03), xlabel="number of outputs p", ylabel="efficiency")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend(loc="lower right")

    listed = "; ".join(
        f"p = {line.size}: from {line.minimum:.3f}, quartiles {line.q1:.3f}, {line.q2:.3f}, "
        f"{line.q3:.3f}, to {line.maximum:.3f}, mean {line.mean:.3f}"
        for line in lines
    )
    return draw_picture(draw, 3.2, name, f"Efficiencies by number of outputs. {listed}.")


def histogram_panels(
    histograms: Histograms, name: str, *, quantity: str, things: str, color: str = BLUE
) -> Picture:
    """Figure 5.3 or 5.5: a small histogram for each p, all on the same axes.

    Parameters
    ----------
    histograms : Histograms
    name : str
        Prefix of all ids.
    quantity : str
        What is on the horizontal axis.
    things : str
        What is counted.
    color : str, optional
    """
    n_sizes = len(histograms.sizes)
    columns = min(2, n_sizes)
    rows = -(-n_sizes // columns)
    top = int(histograms.counts.max())

    def draw(figure: Figure) -> None:
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for ax, size, counts in zip(axes.flat, histograms.sizes, histograms.counts, strict=False):
            ax.stairs(counts, histograms.edges, fill=True, color=color, alpha=0.8)
            ax.set_title(f"p = {size}", loc="left", pad=2)
            ax.set(xlim=(histograms.edges[0], histograms.edges[-1]), ylim=(0, 1.08 * max(top, 1)))
            ax.xaxis.set_major_locator(MaxNLocator(2))
            ax.xaxis.set_major_formatter("{x:g}")
            ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        for ax in list(axes.flat)[n_sizes:]:
            ax.set_visible(False)
        for ax in list(axes.flat)[max(0, n_sizes - columns) : n_sizes]:
            ax.set_xlabel(quantity)
            ax.tick_params(labelbottom=True)
        for row in axes:
            row[0].set_ylabel(things)

    listed = "; ".join(
        f"p = {size}: "
        + ", ".join(
            f"{count} from {low:.4g} to {high:.4g}"
            for count, low, high in zip(
                counts.tolist(), histograms.edges[:-1], histograms.edges[1:], strict=True
            )
            if count
        )
        for size, counts in zip(histograms.sizes, histograms.counts, strict=True)
    )
    return draw_picture(
        draw, 0.6 + 1.25 * rows, name, f"Histograms of the {quantity}, counting {things}: {listed}."
    )


def contributions(curve: ContributionCurve, name: str) -> Picture:
    """v(p) with its bound and the nested selection; below, what each output contributes."""
    sizes = np.array(curve.sizes)
    proven = np.array([status == "optimal" for status in curve.statuses])

    def draw(figure: Figure) -> None:
        top, bottom = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [2, 1]})
        top.fill_between(sizes, curve.values, curve.bounds, color=FAINT, alpha=0.6, linewidth=0)
        top.plot(sizes, curve.bounds, "--", color=QUIET, linewidth=1.0, label="bound")
        top.plot(sizes, curve.nested, ":", color=ORANGE, linewidth=1.4, label="nested")
        top.plot(sizes, curve.values, "-", color=INK, linewidth=1.2, label="best known")
        top.plot(sizes[proven], curve.values[proven], "o", color=INK, markersize=5)
        top.plot(sizes[~proven], curve.values[~proven], "o", mfc="white", mec=INK, markersize=5)
        top.set(ylabel="objective v(p)")
        top.legend(loc="best")
        bottom.bar(sizes[1:], curve.contributions[1:], width=0.56, color=BLUE, alpha=0.8)
        bottom.axhline(0, color=QUIET, linewidth=0.6)
        bottom.set(ylabel="contribution", xlabel="number of outputs p")
        bottom.set_xlim(sizes[0] - 0.6, sizes[-1] + 0.6)
        bottom.xaxis.set_major_locator(MaxNLocator(integer=True))

    listed = "; ".join(
        f"p = {size}: {value:.4f}, bound {bound:.4f}, {status}"
        for size, value, bound, status in zip(
            curve.sizes, curve.values, curve.bounds, curve.statuses, strict=True
        )
    )
    return draw_picture(draw, 3.9, name, f"Objective by number of outputs. {listed}.")
