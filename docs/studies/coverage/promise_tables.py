"""Tables of what the promise tests measured, written into the documents of their subjects.

    python -m docs.studies.coverage.promise_tables [--results FOLDER] [--docs FOLDER]

A document holds a table between ``<!-- make promises -->`` and ``<!-- end -->``; the text around it
is written by hand. Reads the JSON files of tests/promises/results, and measures nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.places import ROOT
from gpu.benchmarks.common.tables import in_place, markdown

__all__ = ["TABLES", "main", "with_table"]

_METRICS = {
    "brier_score": "Brier score",
    "log_loss": "log-loss",
    "calibration_error": "calibration error",
    "auc": "AUC",
}

Case = dict[str, Any]


def with_table(name: str, text: str, results: Path) -> str:
    """The text of a document with its table.

    Parameters
    ----------
    name : str
        Of the document, a key of `TABLES`.
    text : str
    results : Path
        Folder of the JSON files.

    Raises
    ------
    ValueError
        The document has no place for one table.
    """
    table = f"\n{TABLES[name](results)}\n\n"
    return in_place(text, "<!-- make promises -->\n", "<!-- end -->", table)


def _prediction_sets(results: Path) -> str:
    found = list(_cases(results, "prediction_sets_?"))
    found += _cases(results, "prediction_sets_three_classes")
    found.sort(key=lambda case: case.get("kernel", "linear") != "linear")
    rows = []
    for case in [*found, *_cases(results, "prediction_sets_auto_*")]:
        first = _title(case)
        if case.get("kernel") == "rbf":
            first += ", RBF kernel"
        if case.get("kernel") == "auto":
            first += f", default kernel, level {_share(case['level'], 1)}"
        for kind, measured in case["sets"].items():
            *how, condition = kind.split(", ")
            shown = f"{how[0] if how else 'equal'}, class-conditional"
            if condition == "marginal":
                shown = how[0] if how else "equal"
            elif shown.startswith("ensemble"):
                continue
            of_classes = [key for key in measured if key.startswith("coverage of class")]
            smallest = case["smallest mean size of sets that know the truth"][condition]
            rows.append(
                [
                    first,
                    shown,
                    _share(measured["coverage"][0]),
                    " / ".join(_share(measured[key][0]) for key in of_classes),
                    _share(measured["mean size"][0]),
                    _share(smallest),
                ]
            )
            first = ""
    return markdown(["truth", "sets", "coverage", "of each class", "mean size", "smallest"], rows)


def _costs(results: Path) -> str:
    rows = []
    for case in _cases(results, "cost_interval_?"):
        mean, saving, row, ratio = (
            list(case[key].values())
            for key in (
                "coverage of the mean cost",
                "coverage of the saving against one half",
                "coverage of the expected cost of a row",
                "mean of out-of-bag cost over true cost",
            )
        )
        rows.append(
            [
                _title(case),
                " / ".join(_share(each, 2) for each in mean),
                " / ".join(_share(each, 2) for each in saving),
                _share(row[0]),
                " / ".join(_share(each) for each in ratio),
            ]
        )
    header = ["mean cost covered", "saving against ½ covered", "cost of a row covered"]
    return markdown(["truth", *header, "out-of-bag over true cost"], rows)


def _control(results: Path) -> str:
    rows = []
    for number in range(len(list(results.glob("controlled_rates_*_votes.json")))):
        for how in ("sigmoid", "votes"):
            case = next(_cases(results, f"controlled_rates_{number}_{how}"))
            rows.append(
                [
                    _title(case) if how == "sigmoid" else "",
                    "probability" if how == "sigmoid" else "votes",
                    f"{100 * case['kept on new rows, share of training sets']:.1f} %",
                    _share(case["mean excess of the true rate"]),
                    _share(case["mean excess that the binomial bound asks for"]),
                ]
            )
    header = ["decided by", "kept on new rows", "mean excess", "needed for the confidence"]
    return f"{markdown(['truth', *header], rows)}\n\n{_predictive_values(results)}"


def _predictive_values(results: Path) -> str:
    """A truth a line: the share of its training sets with a promise, and with wrong ones."""
    truths = [
        list(_cases(results, f"predictive_values_{number}_*"))
        for number in range(len(list(results.glob("predictive_values_*_npv.json"))))
    ]
    for kinds in truths:  # by the number of rates
        kinds.sort(key=lambda case: (len(case["wanted"]), list(case["wanted"]) != ["ppv"]))
    heads = []
    for cases in zip(*truths, strict=True):
        wanted = [case["wanted"] for case in cases]
        shared = {name: f" ≥ {least:g}" for name, least in wanted[0].items()}
        shared |= {name: "" for each in wanted for name in each if each[name] != wanted[0][name]}
        heads.append(", ".join(f"{name}{least}" for name, least in shared.items()))
    rows = []
    for kinds in truths:
        cells = []
        for case in kinds:
            made = case["promises made, share of training sets"]
            kept = case["kept on new rows, share of promises"].values()
            wrong = ", ".join(f"{100 * made * (1 - share):.0f}" for share in kept)
            wanted = list(case["wanted"].values())
            least = f"≥ {wanted[0]:g}: " if len(wanted) == 1 else ""
            cells.append(f"{least}{100 * made:.0f} / {wrong} %")
        rows.append([_title(kinds[0]), *cells])
    return markdown(["truth", *heads], rows)


def _metric_intervals(results: Path) -> str:
    cases = list(_cases(results, "metric_intervals_?"))
    rows = []
    for where, metrics in cases[0]["coverage / mean width"].items():
        rows.append([f"**{where}**", *[""] * len(cases)])
        for metric in metrics:
            cells = []
            for case in cases:
                found = case["coverage / mean width"][where][metric]
                (covered, width), (by_percentiles, _) = found["auto"], found["percentile"]
                cells.append(f"{_share(covered)} / {_share(width)} ({_share(by_percentiles)})")
            rows.append([_METRICS.get(metric, metric), *cells])
    of_rows = markdown(["", *(_title(case) for case in cases)], rows)
    (few,) = _cases(results, "metric_intervals_of_few_groups")
    of_groups = [
        [name, *(_share(covered) for covered in coverage.values())]
        for name, coverage in few["coverage"].items()
    ]
    metrics = next(iter(few["coverage"].values()))
    heads = [f"of {few['rows of each group']} rows", *(_METRICS.get(m, m) for m in metrics)]
    return f"{of_rows}\n\n{markdown(heads, of_groups)}"


def _dea(results: Path) -> str:
    rows = [
        [
            f"{case['inputs']}, {case['outputs']}",
            str(case["units"]),
            str(case["samples"]),
            f"{100 * case['coverage']:.1f} % ± {100 * case['standard error of the coverage']:.1f}",
            f"{case['bias of the score']:.4f}",
            f"{case['bias of the corrected score']:.4f}".replace("-", "−"),
        ]
        for case in sorted(
            _cases(results, "efficiency_intervals_*"),
            key=lambda case: (case["inputs"], case["units"]),
        )
    ]
    header = ["units", "samples", "coverage", "bias of the score", "of `corrected`"]
    return markdown(["inputs, outputs", *header], rows)


def _other_kernels(results: Path) -> str:
    rows = []
    for case in sorted(_cases(results, "other_kernels_*"), key=lambda case: case["n"]):
        shares = (
            f"{100 * case['coverage'][level]:.1f} % ± {100 * case['standard error'][level]:.1f}"
            for level in ("0.9", "0.95")
        )
        rows.append([case["truth and kernel"], str(case["n"]), *shares])
    return markdown(["true logit, kernel", "rows", "of 90 %", "of 95 %"], rows)


def _lack_of_fit(results: Path) -> str:
    sizes = (200, 500, 2000)
    measured = {
        size: next(_cases(results, f"lack_of_fit_{size}"))["cases"] for size in sizes
    }  # fmt: skip
    truths = {(case["family"], case["truth"]) for cases in measured.values() for case in cases}
    rows, before = [], ""
    for family, truth in sorted(truths):
        cells, reasons = [], Counter[str]()
        for size, cases in measured.items():
            shown = []
            for case in (case for case in cases if case["truth"] == truth):
                other = f"n = {case['n']}: " if case["n"] != size else ""
                covered = _share(case["coverage"], 2)
                shown.append(f"{other}{covered} / {100 * case['warned']:.0f} %")
                reasons.update(case["reasons"])
            cells.append("; ".join(shown) or "–")
        said = ", ".join(f"{test} {n}" for test, n in reasons.most_common())
        rows.append([family if family != before else "", truth, *cells, said])
        before = family
    header = ["family", "truth", *(f"n = {size:,}" for size in sizes)]
    return markdown([*header, "sets warned of, by test"], rows)


def _adaptive(results: Path) -> str:
    rows = [
        [
            case["truth"],
            f"{case['n']:,}",
            f"{_share(case['coverage'])} ± {_share(case['standard error of the coverage'])}",
            _share(
                min(k for k in case["coverage in tenths of the true probability"] if k is not None),
                2,
            ),
            _share(case["mean width"], 2),
            _share(case["width over the limit's"], 2),
            f"{100 * case['share of training sets that warned']:.0f} %",
            case["date"],
        ]
        for case in sorted(
            _cases(results, "adaptive_coverage_*"),
            key=lambda case: (case["n"], -case["linear"], -case["smooth"], case["family"]),
        )
    ]
    header = ["rows", "coverage", "least tenth", "mean width", "by the limit's", "warned", "on"]
    return markdown(["truth", *header], rows)


def _groups(results: Path) -> str:
    rows = []
    for covered, rates in zip(
        _cases(results, "group_coverage_?"), _cases(results, "group_rates_?"), strict=True
    ):
        kept = rates["kept on new subjects, share of training sets"]
        rows.append(
            [
                covered["truth"],
                f"{_share(covered['coverage'])} ± "
                f"{_share(covered['standard error of the coverage'])}",
                _share(covered["mean width"], 2),
                f"{covered['mean of out-of-bag less true log-loss']:+.3f}".replace("-", "−"),
                f"{100 * kept['with groups']:.1f} %",
                f"{100 * kept['without']:.1f} %",
            ]
        )
    header = ["coverage", "mean width", "out-of-bag less true log-loss", "rate kept"]
    return markdown(["truth", *header, "rate kept without `groups`"], rows)


def _time(results: Path) -> str:
    rows = []
    for case in _cases(results, "time_?"):
        apart = case["mean less that still to come, and its standard error"]
        cells = []
        for name, (difference, error) in apart.items():
            shown = f"{difference:+.3f} ± {_share(error)}".replace("-", "−")
            cells.append(f"{_share(case['mean log-loss'][name])} ({shown})")
        to_come = _share(case["mean log-loss"]["still to come"])
        warned = f"{100 * case['warned']:.0f} %"
        rows.append([case["truth"], f"{case['blocks']:.0f}", *cells, to_come, warned])
    header = ["blocks", "out of bag without `time`", "with `time`", "last tenth"]
    return markdown(["truth", *header, "rows still to come", "warned"], rows)


def _explanations(results: Path) -> str:
    rows = [
        [
            case["truth"],
            f"{_share(case['coverage'])} ± {_share(case['standard error of the coverage'])}",
            f"{case['mean width']:.2f}",
            f"{case['mean size of the true contribution']:.2f}",
        ]
        for case in _cases(results, "contributions_?")
    ]
    of_contributions = markdown(
        ["truth", "coverage", "mean width", "mean size of what is true"], rows
    )
    return f"{of_contributions}\n\n{_column_importance(results)}"


def _column_importance(results: Path) -> str:
    rows = [
        [
            case["kernel"],
            f"{_share(case['coverage'])} ± {_share(case['standard error of the coverage'])}",
            f"{_share(case['of columns without effect'])} ± "
            f"{_share(case['standard error of these'])}",
            *(f"{case[name]:.3f}" for name in ("mean width", "mean importance", "on new rows")),
        ]
        for case in _cases(results, "column_importance_*")
    ]
    header = ["kernel", "coverage", "coverage of 0, columns without effect"]
    return markdown([*header, "mean width", "mean importance", "on new rows"], rows)


def _any_classifier(results: Path) -> str:
    methods, lines = ("corrected", "percentile", "jackknife"), []
    for case in sorted(_cases(results, "any_classifier_*"), key=lambda each: each["base"]):
        losses = case["mean excess of the log-loss"]
        of_methods = [case["intervals"][method] for method in methods]
        lines.append(
            [
                case["base"],
                case["truth"],
                *(f"{_share(m['coverage'])} / {_share(m['mean width'], 2)}" for m in of_methods),
                _share(of_methods[0]["width over the limit's"], 2),
                _share(case["mean share of the posterior"], 2),
                *(_share(losses[each]) for each in losses),
            ]
        )
    heads = ["coverage / width by `corrected`", "`percentile`", "`jackknife`", "width / limit's"]
    losses_of = ["log-loss above the truth's", "alone", "CalibratedClassifierCV"]
    return markdown(["around", "truth", *heads, "posterior's share", *losses_of], lines)


def _updates(results: Path) -> str:
    lines = []
    for case in _cases(results, "updates_prior_shift_*"):
        until = case["rows until an alarm, median"]
        for what, found in case["of"].items():
            lines.append(
                [
                    f"{case['truth']}, {case['logit moved by']:+g}" if what == "as it was" else "",
                    what,
                    _share(found["log-loss"]),
                    _share(found["over a new fit's"]),
                    _share(found["coverage"]),
                    _share(found["mean width"], 2),
                    f"{until:,.0f}" if what == "as it was" else "",
                ]
            )
    heads = ["truth, logit moved by", "model", "log-loss", "by a new fit's", "coverage", "width"]
    shift = markdown([*heads, "rows until an alarm (median)"], lines)
    lines = [
        [
            case["truth"],
            case["kernel"],
            f"{case['models']:,}",
            f"{case['rows shown']:,}",
            *(_share(each) for each in case["share with an alarm"].values()),
        ]
        for case in _cases(results, "updates_false_alarms_*")
    ]
    heads = ["truth", "kernel", "models", "rows shown to each"]
    alarms = markdown([*heads, "false alarms: calibration", "drift", "either"], lines)
    return f"{shift}\n\nNo change, many rows:\n\n{alarms}"


_CURVES = ("calibrated", "too_extreme", "too_timid", "too_low", "a_step", "a_stretch_too_high")


def _calibration_band(results: Path) -> str:
    rows = []
    for name in _CURVES:
        case = next(_cases(results, f"calibration_band_{name}"))
        first = case["truth"]
        for n in dict.fromkeys(each["n"] for each in case["cases"]):
            designs = [each for each in case["cases"] if each["n"] == n]
            rejected = (
                " / ".join(_share(each["rejected"][test], 2) for each in designs)
                for test in designs[0]["rejected"]
            )
            widths = " / ".join(_share(each["mean width"], 2) for each in designs)
            least = _share(min(each["coverage"] for each in designs))
            rows.append([first, f"{n:,}", least, widths, *rejected])
            first = ""
    tests = ["band", "Spiegelhalter", "Kolmogorov–Smirnov", "Kuiper"]
    found = markdown(["truth", "rows", "curve held, least", "mean width", *tests], rows)
    out_of_bag = next(_cases(results, "calibration_band_out_of_bag"))
    rows = [
        [_title(case), f"{out_of_bag['training sets']}", _share(case["coverage"], 2)]
        for case in out_of_bag["cases"]
    ]
    return f"{found}\n\n{markdown(['out of bag', 'training sets', 'curve held'], rows)}"


def _stability(results: Path) -> str:
    rows = []
    for case in _cases(results, "stability_?"):
        errors, decided, sizes = (
            list(case[key].values())
            for key in ("mean absolute error", "decided otherwise", "median effective sample size")
        )
        rows.append(
            [
                f"{_title(case)}, {case['kernel']}",
                *(_share(each) for each in (*errors, *decided)),
                *(f"{each:.0f}" for each in sizes),
            ]
        )
    pairs = ["mean absolute error", "two tables", "decided otherwise", "two tables"]
    return markdown(["truth", *pairs, "effective sample size", "many tables"], rows)


def _subgroup_rates(results: Path) -> str:
    lines = []
    for case in _cases(results, "subgroup_rates_?"):
        made = case["promises made, share of training sets"]
        kept = case["kept on new rows, share of promises in a subgroup"]
        lines.append(
            [
                _title(case),
                *(
                    "none" if kept[rate] is None else f"{100 * each:.0f} %"
                    for rate in case["wanted"]
                    for each in (made[rate], kept[rate] or 0)
                ),
            ]
        )
    heads = [
        each
        for rate, name in (("tpr", "true positive rate"), ("tnr", "true negative rate"))
        for each in (f"{name} ≥ .8 promised in", f"{rate} kept in a subgroup")
    ]
    return markdown(["truth", *heads], lines)


TABLES: dict[str, Callable[[Path], str]] = {
    "prediction_sets.md": _prediction_sets,
    "costs.md": _costs,
    "control.md": _control,
    "metric_intervals.md": _metric_intervals,
    "dea.md": _dea,
    "guide.md": _other_kernels,
    "intervals.md": _lack_of_fit,
    "adaptive.md": _adaptive,
    "groups.md": _groups,
    "time.md": _time,
    "explanations.md": _explanations,
    "any_classifier.md": _any_classifier,
    "updating.md": _updates,
    "subgroups.md": _subgroup_rates,
    "calibration_band.md": _calibration_band,
    "stability.md": _stability,
}
"""File name of the document to what makes its table from the results."""


def _cases(results: Path, names: str) -> Iterator[Case]:
    for path in sorted(results.glob(f"{names}.json")):
        stored = json.loads(path.read_text(encoding="utf-8"))
        yield stored["measured"] | {"date": stored["environment"]["date"]}


def _title(case: Case) -> str:
    return f"{case['truth']}, n = {case['n']:,}"


def _share(value: float, digits: int = 3) -> str:
    """A number around one, as .95 or 1.003."""
    return f"{value:.{digits}f}".removeprefix("0")


def main() -> None:
    """Write the tables."""
    parser = docs_options(__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "tests" / "promises" / "results")
    given = parser.parse_args()
    for name in TABLES:
        path = given.docs / name
        text = with_table(name, path.read_text(encoding="utf-8"), given.results)
        path.write_text(text, encoding="utf-8")
    print(f"wrote the tables of {', '.join(TABLES)} in {given.docs}")


if __name__ == "__main__":
    main()
