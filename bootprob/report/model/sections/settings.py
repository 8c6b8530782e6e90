"""Which settings carry the answer? Accuracy and weight of each value of the grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bootprob.displays.style import COLORS, percent_axis
from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.ensemble.kernels import spoken_kernels
from bootprob.ensemble.state import state_of
from bootprob.report.figure_table import Column, FigureTable
from bootprob.report.model.members import candidate_names
from bootprob.report.model.sections.section import Drawn, Measured, Section
from bootprob.report.svg import Picture, draw_picture
from bootprob.report.wording import number, percent, short

__all__ = ["SECTION"]

NEGATIVE, POSITIVE, INK, QUIET, VOTE, FAINT = COLORS.values()
_NEGLIGIBLE = 0.0005  # a weight that would be shown as 0.0 %


def _content(of: Measured) -> dict[str, Any]:
    """Out-of-bag accuracy over the bootstrap samples and ensemble weight, per model column."""
    model = of.model
    are_machines = isinstance(model, BootstrapSVC)
    if not are_machines and len(model.weights_) == 1:
        return {"grid": None}
    lower, upper = np.nanquantile(model.accuracy_, [0.1, 0.9], axis=0)
    grid = {
        "C": model.C_ if are_machines else None,
        "gamma": model.gamma_ if are_machines else None,
        "kernel": _kernels(model) if are_machines else None,
        "candidate": None if are_machines else candidate_names(model),
        "accuracy": np.nanmean(model.accuracy_, axis=0),
        "accuracy_tenth": lower,
        "accuracy_ninetieth": upper,
        "weight": model.weights_,
        "weighting": model.weighting if are_machines else "log_loss",
    }
    return {"grid": grid}


def _kernels(model: BootstrapSVC) -> list[str] | None:
    """The kernel of each model where there are several, told apart by γ where it must be."""
    kernel = state_of(model).kernel
    names = spoken_kernels(kernel)
    if len(set(names)) == 1 or kernel.n_values == 1:  # a sum is one kernel
        return None
    assert kernel.gamma is not None
    gammas = number(kernel.gamma.tolist())
    told = [
        name if name.startswith("linear") else f"{name}, γ = {gamma}"
        for name, gamma in zip(names, gammas, strict=True)
    ]
    each = len(model.C_) // len(told)
    return [name for name in told for _ in range(each)]


def _pictures(of: Drawn) -> dict[str, Picture | None]:
    with_grid = [model for model in of.models if model["grid"]]
    return {"grid": _picture(of.model, of.name("g"), with_grid)} if of.model["grid"] else {}


def _picture(model: dict[str, Any], name: str, models: list[dict[str, Any]]) -> Picture:
    """Out-of-bag accuracy and ensemble weight per C; as two maps where γ has a grid too.

    The figures of all models of a page share the scales of accuracy and weight.
    """
    values = model["grid"]
    lowest = min(min(other["grid"]["accuracy_tenth"]) for other in models)
    highest = max(max(other["grid"]["accuracy_ninetieth"]) for other in models)
    heaviest = max(max(other["grid"]["weight"]) for other in models)
    margin = 0.06 * max(highest - lowest, 0.01)
    if values["candidate"] is not None:
        return _of_candidates(values, name, (lowest - margin, highest + margin), heaviest)
    if values["kernel"] is not None:
        return _grid_maps(values, values["kernel"], list(dict.fromkeys(values["kernel"])), name)
    gammas = sorted(set(values["gamma"] or []))
    if len(gammas) > 1:
        return _grid_maps(values, number(values["gamma"]), number(gammas), name)
    labels = number(values["C"])
    x = np.arange(len(labels))
    accuracy, weight = np.asarray(values["accuracy"]), np.asarray(values["weight"])
    lower, upper = np.asarray(values["accuracy_tenth"]), np.asarray(values["accuracy_ninetieth"])

    def draw(figure: Figure) -> None:
        top, bottom = figure.subplots(
            2, 1, sharex=True, gridspec_kw={"height_ratios": [1.4, 1], "hspace": 0.16}
        )
        top.vlines(x, lower, upper, color=FAINT, linewidth=4.0)
        top.plot(x, accuracy, color=INK, marker="o", markersize=4.5, linewidth=0.9)
        top.set(ylabel="accuracy", ylim=(lowest - margin, highest + margin))
        top.yaxis.set_major_formatter(percent_axis())
        top.tick_params(axis="x", bottom=False)
        bottom.bar(x, weight, width=0.7, color=NEGATIVE)
        bottom.plot(
            x[weight < _NEGLIGIBLE],
            np.zeros((weight < _NEGLIGIBLE).sum()),
            linestyle="none",
            marker="x",
            color=VOTE,
            markersize=4.0,
            clip_on=False,
        )
        bottom.set(ylabel="weight", xlabel="C", ylim=(0, 1.06 * heaviest))
        bottom.yaxis.set_major_formatter(percent_axis(0))
        step = 1 + max(map(len, labels)) * len(labels) // 45  # what fits without touching
        bottom.set_xticks(x[::step], labels[::step])

    listed = "; ".join(
        f"C = {c}: accuracy {a:.1%}, weight {w:.1%}"
        for c, a, w in zip(labels, accuracy, weight, strict=True)
    )
    alt = f"Out-of-bag accuracy and weight for each C. {listed}."
    return draw_picture(draw, 3.3, name, alt, (_table(values),))


def _of_candidates(
    values: dict[str, Any], name: str, limits: tuple[float, float], heaviest: float
) -> Picture:
    """Accuracy and weight of each of some classifiers, or of the parameters of one."""
    labels = values["candidate"]
    y = np.arange(len(labels))

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [1.3, 1]})
        left.hlines(
            y, values["accuracy_tenth"], values["accuracy_ninetieth"], color=FAINT, linewidth=4.0
        )
        left.plot(values["accuracy"], y, color=INK, marker="o", markersize=4.5, linestyle="none")
        left.set(xlabel="accuracy", xlim=limits, ylim=(len(labels) - 0.5, -0.7), yticks=[])
        for at, each in zip(y, labels, strict=True):
            place = left.get_yaxis_transform()
            said = left.text(0, at - 0.2, short(each, 40), transform=place, va="bottom")
            said.set_in_layout(False)  # it may reach over to the weights, whose bars are below
        left.xaxis.set_major_formatter(percent_axis())
        left.locator_params(axis="x", nbins=3)
        right.barh(y, values["weight"], height=0.36, color=NEGATIVE)
        weight = np.asarray(values["weight"])
        none = y[weight < _NEGLIGIBLE]
        right.plot(np.zeros(len(none)), none, "x", color=VOTE, markersize=4.0, clip_on=False)
        right.set(xlabel="weight", xlim=(0, 1.06 * heaviest))
        right.xaxis.set_major_formatter(percent_axis(0))
        right.locator_params(axis="x", nbins=3)

    listed = "; ".join(
        f"{each}: accuracy {a:.1%}, weight {w:.1%}"
        for each, a, w in zip(labels, values["accuracy"], values["weight"], strict=True)
    )
    alt = f"Out-of-bag accuracy and weight of each setting. {listed}."
    return draw_picture(draw, 0.8 + 0.42 * len(labels), name, alt, (_table(values),))


def _grid_maps(values: dict[str, Any], row_of: list[str], rows: list[str], name: str) -> Picture:
    """Two maps, γ or kernels down and C across, every cell with its number."""
    costs = sorted(set(values["C"]))
    shape = len(rows), len(costs)
    row = [rows.index(each) for each in row_of]
    of_gamma = values["kernel"] is None
    column = np.searchsorted(costs, values["C"])
    accuracy, weight = np.full(shape, np.nan), np.full(shape, np.nan)
    accuracy[row, column], weight[row, column] = values["accuracy"], values["weight"]
    labels = number(costs)
    room = 45 - max(map(len, rows)) // 2
    step = 1 + max(map(len, labels)) * len(labels) // room  # what fits without touching

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 1, sharex=True, gridspec_kw={"hspace": 0.48 / len(rows)})
        titles = ("accuracy out of bag, %", "weight, %")
        for ax, cells, title in zip(axes, (accuracy, weight), titles, strict=True):
            shade = ax.pcolormesh(
                np.arange(len(costs) + 1) - 0.5,
                np.arange(len(rows) + 1) - 0.5,
                cells,
                cmap="Blues",
                edgecolors="white",
                linewidth=1.0,
            )
            shade.set_clim(np.nanmin(cells), np.nanmax(cells) + 1e-9)
            middle = (np.nanmin(cells) + np.nanmax(cells)) / 2
            for (i, j), cell in np.ndenumerate(cells):
                colour = "white" if cell > middle else INK
                if np.isnan(cell):  # of this kernel that value was not trained
                    continue
                text = f"{100 * cell:.0f}" if cell >= _NEGLIGIBLE else "·"
                ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=7.5)
            ax.set_title(title, loc="left")
            ax.set_yticks(range(len(rows)), rows)
            ax.set_ylabel("γ" if of_gamma else "")
            ax.spines[:].set_visible(False)
            ax.tick_params(length=0)
        axes[-1].set_xticks(range(0, len(costs), step), labels[::step])
        axes[-1].set_xlabel("C")

    listed = "; ".join(
        f"C = {c}, {'γ = ' if of_gamma else ''}{g}: accuracy {a:.1%}, weight {w:.1%}"
        for c, g, a, w in zip(
            number(values["C"]),
            row_of,
            values["accuracy"],
            values["weight"],
            strict=True,
        )
    )
    alt = (
        f"Out-of-bag accuracy and weight for each C and {'γ' if of_gamma else 'kernel'}. {listed}."
    )
    return draw_picture(draw, 1.6 + 0.42 * len(rows), name, alt, (_table(values),))


def _table(grid: dict[str, Any]) -> FigureTable:
    """Accuracy and weight of each C, or each pair of C and γ; of each classifier."""
    settings = []
    if grid["candidate"] is not None:
        settings.append(Column("Setting", grid["candidate"]))
    if grid["C"] is not None:
        settings.append(Column.of("C", grid["C"], number))
    if grid["kernel"] is not None:
        settings.append(Column("Kernel", grid["kernel"]))
    if grid["gamma"] is not None:
        settings.append(Column.of("γ", grid["gamma"], number))
    shares = {
        "accuracy": "Accuracy",
        "accuracy_tenth": "A tenth of the samples below",
        "accuracy_ninetieth": "A tenth above",
        "weight": "Weight",
    }
    found = (Column.of(heading, grid[name], percent) for name, heading in shares.items())
    return FigureTable("Accuracy and weight", (*settings, *found))


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["grid"] for model in content["models"])


SECTION = Section("settings", "Settings", _content, _pictures, _is_shown)
