"""What a test of lack of fit found, in words, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bootprob.metrics.lack_of_fit import COLUMNS, ENOUGH, SHARES, SIGNIFICANT

__all__ = ["Reason", "few_rows", "reason_of"]


class Reason(NamedTuple):
    """Why intervals cover less often than they say.

    Attributes
    ----------
    test : str
        The one that found it, a key of `bootprob.metrics.lack_of_fit.SHARES`.
    what : str
        A clause, without its full stop.
    advice : str
        A sentence.
    """

    test: str
    what: str
    advice: str


_WHAT = {
    "repeated": "rows look like repeated measurements of few subjects: the label of the nearest "
    "row is nearly always the same, that of rows a little further away is not",
    "unreliable": "the scores are mostly noise: so few rows, or bootstrap samples, cannot tell so "
    "many columns apart",
    "link": "probabilities do not follow the logistic link: they level off before 0 or 1, as where "
    "labels are wrong, or rise too steeply",
    "trees": "a forest of trees knows more of rows out of bag than the interval's model: the truth "
    "has jumps, or interactions of several columns, that its curves do not follow",
    "neighbours": "out of bag, the probabilities are wrong in the same way over whole regions: the "
    "truth is out of the kernel's reach",
}
_BEND = (
    "columns that bend (squares, products, splines). If several rows are of one subject, give "
    "fit the subjects as groups instead: a kernel that bends makes that worse."
)
_ADVICE = {
    "repeated": "Give fit the subject of each row as groups; a kernel that bends makes it worse.",
    "unreliable": "Fewer columns, chosen without these labels, more rows, or more than 100 "
    "bootstrap samples help.",
    "bends": "Give kernel='auto', or " + _BEND,
    "link": "Look for wrong labels; kernel='auto' can follow other links.",
    "trees": "BootstrapClassifier around a forest or boosted trees has better probabilities, and "
    "no better intervals. Prediction sets and intervals of metrics hold as they are.",
    "neighbours": "Give kernel='auto', or where that was chosen already " + _BEND,
}


def reason_of(found: Mapping[str, float], names: Sequence[object] | None = None) -> Reason | None:
    """What was found, or None if intervals need not be doubted.

    Parameters
    ----------
    found : dict
        Of `bootprob.metrics.lack_of_fit.lack_of_fit`, or of an older version, which had but one
        test.
    names : sequence of str, optional
        Of the columns; by default their numbers.
    """
    if not found["p_value"] < SIGNIFICANT:
        return None
    fired = (test for test in SHARES if found.get(test, 1.0) / SHARES[test] < SIGNIFICANT)
    test = next(fired, "neighbours")
    what = _bend(found, names) if test == "bends" else _WHAT[test]
    return Reason(test, what, _ADVICE[test])


def few_rows(found: Mapping[str, float]) -> str | None:
    """What intervals take for granted because rows are few; None where they are enough.

    Models of older versions do not know how many rows count.
    """
    rows = found.get("informative_rows", ENOUGH)
    if not rows < ENOUGH:
        return None
    return (
        f"these labels say as much as {rows:.0f} rows of two equally frequent classes, and fewer "
        f"than {ENOUGH} seldom show whether the log-odds bend or columns interact. Where they do, "
        "intervals can cover far less often than they say"
    )


def _bend(found: Mapping[str, float], names: Sequence[object] | None) -> str:
    if "column" not in found:
        where = "the logit bends, in no column alone"
    else:
        columns = dict.fromkeys(int(found[key]) for key in COLUMNS if key in found)
        *others, last = (f"X[:, {j}]" if names is None else f"{str(names[j])!r}" for j in columns)
        where = (
            f"{', '.join(others)} and {last} interact" if others else f"the logit bends in {last}"
        )
    return f"{where}: the truth is out of the kernel's reach"
