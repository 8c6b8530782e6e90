"""What a person should know of a table's columns: which teach nothing, and likely mistakes."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pandas as pd

from bootprob.encoding.columns import Kind, name_rows
from bootprob.encoding.dates import are_dates
from bootprob.preparation.standardization import LARGEST, MANY_LEVELS
from bootprob.runtime.counted import counted

__all__ = ["oddities", "why_unread", "why_useless"]

_NO_VALUES = "it has no values"
_MOSTLY_NUMBERS = 0.5
_MOST_SIZES = 10  # levels that may be categories, such as 500 g and 1 kg
_MARKED = re.compile(r"[€$£¥]?\s*[-+]?\d+(?:[.,'\s]\d+)*(?:\s*[%‰€$£¥]|\s+[^\W\d]{1,4})?")
"""A number with separators within it, or with a unit."""


def why_unread(column: pd.Series, name: str) -> str | None:
    """Why a column teaches nothing, whatever its values are."""
    if re.fullmatch(r"(Unnamed: \d+)?", name):
        return "it has no name (a saved row index?)"
    return _NO_VALUES if column.isna().all() else None


def why_useless(plain: pd.Series, kind: Kind) -> str | None:
    """Why its values teach nothing."""
    if kind == "number":
        differ = plain.max() - plain.min()  # one value at least, since not all are missing
        if 0 < differ < 1 / LARGEST:
            return f"its numbers differ by {differ:.0e} at most (in another unit?)"
    if kind not in ("text", "date"):
        return None
    known = plain.dropna()
    if known.empty:
        return _NO_VALUES
    if kind == "text" and not known.duplicated().any():
        if _are_marked_numbers(known):
            return f"its numbers have marks, as in {known.iloc[0]!r}; write them as 1234.5"
        what = "dates (name them: --dates)" if are_dates(known) else "text"
        return f"it is {what} in which no value occurs twice (an identifier?)"
    return None


def _are_marked_numbers(texts: pd.Series) -> bool:
    """Whether all are numbers, of which some have separators or a unit."""
    is_plain = pd.to_numeric(texts, errors="coerce").notna()
    return not is_plain.all() and bool(texts[~is_plain].map(str).str.fullmatch(_MARKED).all())


def oddities(texts_of: Mapping[str, pd.Series], missing: Mapping[str, int]) -> list[str]:
    """Sentences on what is legal and yet often a mistake in a table.

    Parameters
    ----------
    texts_of : mapping of str to Series
        The columns of text in use, NaN where a value is missing.
    missing : mapping of str to int
        How many values of every column in use were missing.
    """
    notes = []
    for name, texts in texts_of.items():
        known = texts.dropna()
        levels = known.unique()
        parsed = pd.to_numeric(texts, errors="coerce")
        words = (parsed.isna() & texts.notna()).to_numpy()
        if are_dates(levels):
            notes.append(
                f"Column {name!r} holds dates and is taken as "
                f"{counted(len(levels), 'category', 'categories')}; name "
                "it as dates (--dates) to learn from its days, months and weekdays."
            )
        elif len(levels) > _MOST_SIZES and _are_marked_numbers(known):
            notes.append(
                f"Column {name!r} is taken as categories because its numbers have marks, as in "
                f"{texts[words].iloc[0]!r} in {name_rows(words)}; write them as 1234.5."
            )
        elif 0 < words.sum() < _MOSTLY_NUMBERS * texts.notna().sum():
            notes.append(
                f"Column {name!r} is taken as categories because of text such as "
                f"{texts[words].iloc[0]!r} in {name_rows(words)}; if it holds numbers, "
                "leave such cells empty."
            )
        elif len(levels) > min(MANY_LEVELS, len(texts) / 2):
            weighing = ", which together weigh as one column in calibrated models" * (
                len(levels) > MANY_LEVELS
            )
            notes.append(
                f"Column {name!r} has {len(levels)} levels, a dummy for each{weighing}; leave "
                "it out if it only tells rows apart."
            )
    filled = [f"{name} ({count})" for name, count in missing.items() if count]
    if filled:
        cells = ", ".join(filled[:8])
        more = f" and {counted(len(filled) - 8, 'more column')}" if len(filled) > 8 else ""
        notes.append(f"Missing values were filled in: {cells}{more}.")
    return notes
