"""A model card in Markdown, by skops, from the same numbers as the report of a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.exceptions import DataError
from bootprob.intervals import OF_VOTES
from bootprob.metrics.rates import RATE_NAMES
from bootprob.report.model.card_sections import (
    NOT_TOLD,
    SIGNATURES,
    history_of,
    stability_of_card,
    subgroups_of_card,
)
from bootprob.report.model.class_card import (
    ABOUT_CLASSES,
    about_sets,
    intervals_of_classes,
    of_classes,
    of_sets,
)
from bootprob.report.model.content import report_content
from bootprob.report.model.markdown import text, with_interval
from bootprob.report.model.members import label_of
from bootprob.report.wording import count, percent
from bootprob.runtime.counted import counted

if TYPE_CHECKING:
    from skops.card import Card

    from bootprob.tables.held_out import HeldOut
    from bootprob.tables.model import TableModel

__all__ = ["card_of", "check_skops", "model_card"]

_N_NAMES = 60  # columns listed, as in the report
_RATES = ("accuracy", "sensitivity", "specificity")


def model_card(
    model: BootstrapSVC | TableModel,
    *,
    title: str | None = None,
    intended_use: str | None = None,
    file: str | os.PathLike[str] | None = None,
    held_out: HeldOut | None = None,
) -> Card:
    """Describe a fitted model in a model card.

    It says nothing that was not computed from the model, but for `intended_use`, which is its
    author's to say.

    Parameters
    ----------
    model : BootstrapSVC or TableModel
        Fitted.
    title : str, optional
        Heading.
    intended_use : str, optional
        What the model is for and what not, in Markdown.
    file : path-like, optional
        The file that the model is saved in, for the lines that load it.
    held_out : HeldOut, optional
        Rows with known labels that took no part in training.

    Returns
    -------
    skops.card.Card
        ``card.save("card.md")`` writes it; ``card.add(**{"A section": "Text"})`` adds to it.

    Raises
    ------
    DataError
        skops is not installed.
    sklearn.exceptions.NotFittedError
        The model is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob import BootstrapSVC
    >>> svc = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
    >>> card = model_card(svc.fit(*load_breast_cancer(return_X_y=True)), title="Tumours")
    >>> "# Tumours" in card.render().splitlines()
    True
    """
    from bootprob.tables.model import TableModel

    table_model = model if isinstance(model, TableModel) else None
    svc = model.svc_with_class_names() if isinstance(model, TableModel) else model
    content = report_content(
        {label_of(svc): svc},
        title=title or _title(model),
        held_out=held_out,
    )
    return card_of(content, svc, table_model=table_model, file=file, intended_use=intended_use)


def _title(model: BootstrapSVC | TableModel) -> str:
    target = getattr(model, "target", None)
    named = "" if target is None else f" of {target.name}"
    svc = getattr(model, "svc", model)
    by = "support vector machines" if isinstance(svc, BootstrapSVC) else "classifiers"
    return f"Prediction{named} by bootstrapped {by}"


def check_skops() -> None:
    """Refuse to make a card without skops, before any work is done.

    Raises
    ------
    DataError
        It is not installed.
    """
    try:
        import skops.card  # noqa: F401
    except ImportError as error:
        raise DataError('A model card needs skops: pip install "bootprob[skops]".') from error


def card_of(
    content: dict[str, Any],
    svc: BootstrapSVC,
    *,
    table_model: TableModel | None = None,
    file: str | os.PathLike[str] | None = None,
    intended_use: str | None = None,
) -> Card:
    """Make the card of the numbers of a report on one model.

    Parameters
    ----------
    content : dict
        What `bootprob.report.model.content.report_content` returned, of one model.
    svc : BootstrapSVC
        The model itself.
    table_model : TableModel, optional
        The model of a table that it belongs to.
    file, intended_use
        As in `model_card`.

    Raises
    ------
    DataError
        There are several models, or skops is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from bootprob.report import card_of, write_report
    >>> with TemporaryDirectory() as folder:  # the card of a report that is written anyway
    ...     numbers = write_report({"linear": model}, Path(folder, "a.html"), title="Two species")
    >>> "# Two species" in card_of(numbers, model).render()
    True
    """
    check_skops()
    from skops.card import Card

    if len(content["models"]) != 1:
        raise DataError(f"A model card is of one model, not of {len(content['models'])}.")
    [entry] = content["models"]
    data = content["data"]
    of_two = len(data["classes"]) == 2
    top = _heading(content["title"])
    card = Card(svc, model_diagram=False, template=None)
    card.add(**{top: _what_it_computes(data, entry)})
    card.add(**{f"{top}/Intended use": intended_use or "Its author has not said."})
    card.add(**{f"{top}/Training data": _training_data(data, table_model)})
    _add_table(card, top, "Metrics", _metrics(entry), _about_metrics(content, entry))
    if entry["later_rows"]:
        later = entry["later_rows"]
        _add_table(card, top, "Later rows", _later(entry), _about_later(later))
    if of_two and entry["control"]:
        about = (
            "A lower bound was wanted of a rate, and decisions were moved so that it holds. A row "
            f"is decided positive where its probability is above {entry['decision_threshold']:.3g}."
        )
        _add_table(card, top, "Rates under control", _rates(entry), about)
    if of_two:
        curve = entry["reliability"]["probability"] or entry["reliability"]["vote"]
        bins = _bins(curve["bins"], content["level"])
        _add_table(card, top, "Calibration", bins, _about_calibration(entry))
    else:
        _add_table(card, top, "Classes", of_classes(data, entry), ABOUT_CLASSES)
    if entry["sets"]:
        _add_table(card, top, "Prediction sets", of_sets(data, entry), about_sets(entry))
    if of_two and entry["stability"]:
        _add_table(card, top, "Stability", *stability_of_card(entry["stability"]))
    if of_two and entry["subgroups"]:
        _add_table(card, top, "Subgroups", *subgroups_of_card(entry["subgroups"]))
    if of_two and entry["history"]:
        _add_table(card, top, "Since the fit", *history_of(entry["history"]))
    card.add(**{f"{top}/Limits": _limits(data, entry)})
    card.add(**{f"{top}/What this card does not tell": "\n".join(f"- {each}" for each in NOT_TOLD)})
    card.add(
        **{
            f"{top}/How to load it": _how_to_load(
                file,
                of_table=table_model is not None,
                of_classifiers=not isinstance(svc, BootstrapSVC),
            )
        }
    )
    card.add_hyperparams(section=f"{top}/Parameters", description="As given to `BootstrapSVC`.")
    made = entry["provenance"]
    versions = {
        "Package": [*made["versions"]],
        "Version": [text(version) for version in made["versions"].values()],
    }
    fitted = f"Fitted on {text(made['device'])} in {made['fit_seconds']:.1f} s."
    _add_table(card, top, "Versions", versions, fitted, folded=True)
    about = "Filled by people; a card without signatures was validated by nobody."
    _add_table(card, top, "Signatures", SIGNATURES, about)
    return card


def _add_table(
    card: Card,
    top: str,
    name: str,
    table: Mapping[str, list[str]],
    description: str,
    *,
    folded: bool = False,
) -> None:
    key = f"{top}/{name}"
    card.add_table(description=description, folded=folded, **{key: dict(table)})
    card.select(key).title = name  # skops would head the section with the whole key


def _heading(title: str) -> str:
    """A heading that skops does not take for a path of sections."""
    return text(title).replace("/", "\\/")


def _what_it_computes(data: dict[str, Any], entry: dict[str, Any]) -> str:
    kind = (
        "a share of votes"
        if entry["calibration"] is None
        else f"calibration {entry['calibration']}"
    )
    whose = (
        f"class **{text(data['positive_class'])}**, as against **{text(data['negative_class'])}**"
        if len(data["classes"]) == 2
        else f"each of {len(data['classes'])} classes"
    )
    what = f"{count(entry['n_models'])} support vector machines ({text(entry['kernel'])} kernel, "
    if entry["kernel"] is None:
        what = f"{count(entry['n_models'])} {entry['members']} ({text(entry['classifier'])}, "
    if entry["is_frozen"]:
        what = f"A classifier that was fitted before ({text(entry['classifier'])}; calibrated on "
    return (
        f"Probability of {whose}, of one row at a time, with an interval. {what}"
        f"{count(entry['n_bootstraps'])} bootstrap samples, "
        f"{counted(entry['n_parameter_values'], 'setting')}; {kind}), by bootprob."
    )


def _training_data(data: dict[str, Any], table_model: TableModel | None) -> str:
    if table_model is None:
        n, kind, names = data["n_features"], "feature", data["feature_names"]
        more = data["n_feature_names_not_listed"]
    else:
        kinds = table_model.preprocessor.kinds_
        n, kind, names = len(kinds), "column", [*kinds][:_N_NAMES]
        more = n - len(names)
    features = counted(n, kind)
    if names:
        features += f": {', '.join(map(text, names))}"
    features += f" and {count(more)} more" if more else ""
    weighted = " Rows had weights." if data["weighted"] else ""
    groups = f" of {count(data['n_groups'])} groups" if data["n_groups"] else ""
    groups += f" in {count(data['n_blocks'])} blocks of time" if data["n_blocks"] else ""
    classes = ", ".join(
        f"{count(each['n_rows'])} ({percent(each['n_rows'] / data['n_rows'])}) of class "
        f"{text(each['name'])}"
        for each in reversed(data["classes"])
    )
    return f"{count(data['n_rows'])} rows{groups}: {classes}; {features}.{weighted}"


def _about_metrics(content: dict[str, Any], entry: dict[str, Any]) -> str:
    of_group, rows = "", "new rows"
    if content["data"]["n_groups"]:
        of_group, rows = ", nor any row of its group", "rows of new groups"
    elif content["data"]["n_blocks"]:
        of_group = ", nor any row of its block of time"
        rows = "new rows of the same stretch of time"
    said = (
        f"Out of bag: each row was judged by {entry['members']} that had not seen it{of_group}. "
        f"With {percent(content['level'], 0)} intervals for what this very model would reach on "
        f"very many {rows} from the same source."
    )
    if entry["held_out"]:
        held = entry["held_out"]
        positive = content["data"].get("positive_class")
        of_it = f", {count(held['n_positive'])} of class {text(positive)}" if positive else ""
        said += f" Beside it {count(held['n_rows'])} held-out rows{of_it}."
    return said


def _metrics(entry: dict[str, Any]) -> dict[str, list[str]]:
    table: dict[str, list[str]] = {"Measure": [], "Out of bag": []}
    columns = {"Out of bag": entry["metrics"]}
    if entry["held_out"]:
        table["Held-out rows"] = []
        columns["Held-out rows"] = entry["held_out"]["metrics"]
    for name, metric in entry["metrics"].items():
        table["Measure"].append(metric["label"])
        for heading, metrics in columns.items():
            table[heading].append(with_interval(metrics[name], as_share=name in _RATES))
    table["What it is"] = [text(metric["description"]) for metric in entry["metrics"].values()]
    return table


def _about_later(later: dict[str, Any]) -> str:
    """What was done to know of later rows, and whether they are worse by more than chance."""
    said = (
        f"A model with the same parameters, trained on the {count(later['n_earlier'])} rows before "
        f"{text(later['since'])}, on the {count(later['n_rows'])} from then on. Of rows still to "
        "come expect what these show. "
    )
    if later["why_not"]:
        return said + f"**Nothing was measured**: {text(later['why_not'])}."
    return said + (
        f"As many rows from anywhere would have so high a log-loss in "
        f"{percent(later['p_value'], 2)} of draws."
    )


def _later(entry: dict[str, Any]) -> dict[str, list[str]]:
    later = entry["later_rows"]
    table = {"Measure": [entry["metrics"][name]["label"] for name in later["metrics"]]}
    for heading, found in (("Later rows", "metrics"), ("Earlier rows, out of bag", "out_of_bag")):
        table[heading] = [
            with_interval(
                dict(zip(("value", "lower", "upper"), limits, strict=True)),
                as_share=name in _RATES,
            )
            for name, limits in later[found].items()
        ]
    return table


def _rates(entry: dict[str, Any]) -> dict[str, list[str]]:
    rates = entry["control"]["rates"]
    table = {
        "Rate": [RATE_NAMES[r["rate"]] for r in rates],
        "Wanted": ["–" if r["wanted"] is None else f"≥ {r['wanted']:g}" for r in rates],
        "Confidence": ["–" if r["confidence"] is None else f"{r['confidence']:g}" for r in rates],
        "Reached out of bag": [_reached(r["out_of_bag"]) for r in rates],
    }
    if entry["held_out"]:
        table["Reached on held-out rows"] = [_reached(r["held_out"]) for r in rates]
    return table


def _reached(rate: dict[str, float] | None) -> str:
    return "–" if rate is None else with_interval(rate, as_share=True)


def _about_calibration(entry: dict[str, Any]) -> str:
    error, chance = entry["metrics"]["calibration_error"], entry["calibration_error_by_chance"]
    within = error["value"] <= chance["upper"]
    return (
        f"On average the probabilities lie {100 * error['value']:.1f} percentage points from the "
        f"observed frequency; perfect ones could, by chance, lie up to "
        f"{100 * chance['upper']:.1f} points away. "
        + (
            "So they agree with what was observed, as far as these rows can show."
            if within
            else "**That is more than chance explains: read them with care.**"
        )
    )


def _bins(bins: dict[str, list[float]], level: float) -> dict[str, list[str]]:
    return {
        "Rows": [count(n) for n in bins["n_rows"]],
        "Probability stated": [percent(p) for p in bins["probability"]],
        f"Observed, with {percent(level, 0)} interval": [
            f"{percent(o)} ({percent(lower)} to {percent(upper)})"
            for o, lower, upper in zip(bins["observed"], bins["lower"], bins["upper"], strict=True)
        ],
    }


def _limits(data: dict[str, Any], entry: dict[str, Any]) -> str:
    """What was found wanting, and what no number here can tell."""
    points = [text(remark) for remark in entry["remarks"]]
    found = entry["lack_of_fit"]
    if found is not None and found["found"]:
        points.append(
            f"**Intervals promise too much**: {text(found['what'])} (test of lack of fit, "
            f"p = {found['p_value']:.4f}). Intervals of single rows cover less often than they say."
        )
    elif found is not None:
        points.append(
            f"Tests of lack of fit found nothing (p = {found['p_value']:.3f}, "
            f"{count(found['n_rows'])} rows); they do not find what is rough, or lies where few "
            "rows are."
        )
    if found is not None and found["few_rows"] and not found["found"]:
        points.append(f"Few rows: {text(found['few_rows'])}.")
    unsolved = entry["convergence"]["n_unsolved"] if entry["convergence"] else 0
    if unsolved:
        points.append(
            f"{count(unsolved)} of {count(entry['convergence']['n_models'])} machines "
            f"{'was' if unsolved == 1 else 'were'} not solved to tolerance."
        )
    if "intervals" in entry:
        points.append(_about_intervals(entry))
    else:
        points.append(intervals_of_classes(entry))
    if len(data["classes"]) > 2 and entry["control"]:
        held = [
            f"{text(each['name'])} ≥ {rate['wanted']:g} (out of bag "
            f"{percent(rate['out_of_bag']['value'])})"
            for each, rate in zip(data["classes"], entry["control"]["rates"], strict=True)
            if rate["wanted"] is not None and rate["out_of_bag"]
        ]
        points.append(
            f"Decisions are moved so that these rates of classes hold: {', '.join(held)}."
        )
    if entry.get("decision_threshold", 0.5) != 0.5:
        positive = text(data["positive_class"])
        points.append(
            "Rates are under control: decisions are made where the probability of class "
            f"{positive} is above {entry['decision_threshold']:.3g}, not above one half."
        )
    rows = "rows of new groups" if data["n_groups"] else "rows"
    independent = "" if data["n_blocks"] else ", independent of each other"
    points.append(
        f"Everything here holds for {rows} from the same source as the training rows{independent}. "
        + ("" if entry.get("subgroups") else "Nothing was computed about parts of them. ")
        + "Nothing was computed about other populations, or about what a decision does."
    )
    return "\n".join(f"- {point}" for point in points)


def _about_intervals(entry: dict[str, Any]) -> str:
    """What those of two classes are for, and how wide they are."""
    intervals, whose = entry["intervals"], "kernel" if entry["kernel"] else "model"
    method, width = intervals["method"], intervals["median_width"]
    said = (
        f"Intervals are “{method}”: they measure the noise of a finite number of bootstrap "
        "samples, not where the true probability lies."
        if method in OF_VOTES
        else f"Intervals are “{method}”: they are for the probability of a row, not for what will "
        f"happen to it, and know nothing of a truth that the {whose} cannot express."
    )
    if width is None:
        return said
    return said + (
        f" Half of {count(len(intervals['rows']))} sampled training rows have one wider than "
        f"{100 * width:.1f} percentage points."
    )


def _how_to_load(
    file: str | os.PathLike[str] | None, *, of_table: bool, of_classifiers: bool
) -> str:
    name = "model.bootprob" if file is None else Path(file).name
    use = (
        "from bootprob.tables.files import read_table\n\n"
        f"model = load({name!r})\n"
        'predicted = model.predict(read_table("new_rows.csv"), level=0.95)\n'
        if of_table
        else f"\nmodel = load({name!r})\n"
        "probability = model.predict_proba(X_new)\n"
        "interval = model.proba_interval(X_new, level=0.95)\n"
    )
    saved = "" if file is not None else " (saved with `bootprob.save`)"
    if of_classifiers:
        use = use.replace(
            f"load({name!r})", f"load({name!r}, trusted=[])  # types that the refusal asks for"
        )
    return (
        f"The model is in a file{saved}; opening it runs no code.\n\n"
        f"```python\nfrom bootprob.persistence.save_load import load\n{use}```"
    )
