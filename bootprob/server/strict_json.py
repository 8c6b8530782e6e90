"""JSON in the strictest sense, parsed in small pieces so that other threads are not kept waiting.

`json` holds the interpreter's lock for as long as a call takes, half a second for some bodies of
4 MiB. A body of more than `PIECE` bytes is therefore cut by NumPy where its brackets and commas
say, and parsed a few kilobytes at a time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.server.errors import RequestError
from bootprob.server.limits import Limits

__all__ = ["MOST_KEYS", "PIECE", "parse_json"]

PIECE = 2**15  # bytes that are always parsed at once; also the longest text or number
MOST_KEYS = 2**16  # of one object; a larger one holds the lock for long when it grows or goes
_AT_ONCE = 2**14  # bytes of values that could be parsed apart: a millisecond at most
_BLOCK = 2**18  # bytes looked through together
_OTHERS = 5e-5  # seconds; a pause of 0 would take the lock back before anyone has woken up
_ESCAPED_QUOTE = rb"\""
_STEP = np.zeros(256, np.int8)
_STEP[list(b"[{")], _STEP[list(b"]}")] = 1, -1
_STRUCTURAL = np.zeros(256, np.bool_)
_STRUCTURAL[list(b"[]{},:")] = True
_OBJECT, _COMMA, _COLON = b"{,:"
_BLANKS = b" \t\n\r"
_CLOSES = {ord("["): ord("]"), ord("{"): ord("}")}


def parse_json(body: bytes, limits: Limits) -> Any:
    """Parse JSON in UTF-8 without NaN, infinities, repeated keys or deep nesting.

    Parameters
    ----------
    body : bytes
    limits : Limits
        `max_depth` and `max_containers` are checked before anything is made of the body.

    Returns
    -------
    object
        Plain values. Numbers may still be infinite (``1e999``).

    Raises
    ------
    RequestError
        400, or 413 for too many arrays and objects, more than `MOST_KEYS` keys in one object, or a
        text or number longer than `PIECE` bytes; the message quotes nothing of the body.
    """
    return _Text(body, limits).parsed()


class _Text:
    """A body, and where it has brackets, commas and colons outside of its texts.

    Attributes
    ----------
    _places : ndarray of int32, shape (s,)
        Positions in the body.
    _depth : ndarray of int32, shape (s,)
        Number of brackets open after each; an opening and a closing bracket of one container
        differ by one.
    """

    def __init__(self, body: bytes, limits: Limits) -> None:
        self._body = body
        self._places, steps = _structure(body, limits)
        self._depth = np.cumsum(steps, dtype=np.int32)
        if self._depth.max(initial=0) > limits.max_depth:
            raise RequestError(400, f"The body is nested more than {limits.max_depth} deep.")

    def parsed(self) -> Any:
        """The value of the whole body."""
        return self._value(0, len(self._body), 0, len(self._places))

    def _value(self, start: int, stop: int, first: int, last: int) -> Any:
        """The value in bytes `start` to `stop`, which hold the places `first` to `last`."""
        start, stop = self._stripped(start, stop)
        if stop - start <= PIECE:
            return self._decoded(start, stop)
        if first == last:
            raise _too_long()
        opened, closed = self._body[start], self._body[stop - 1]
        depth = self._depth[first]
        inner = self._depth[first : last - 1]
        if (
            self._places[first] != start
            or self._places[last - 1] != stop - 1
            or _CLOSES.get(opened) != closed
            or inner.min(initial=depth) < depth
        ):
            raise self._no_json("Brackets do not match", start)
        kinds = np.frombuffer(self._body, np.uint8)[self._places[first : last - 1]]
        commas = np.flatnonzero((kinds == _COMMA) & (inner == depth)).astype(np.int32)
        commas += first
        found: Any = {} if opened == _OBJECT else []
        first += 1
        for begin, end, place in self._groups(start + 1, stop - 1, last - 1, commas):
            self._add(found, begin, end, first, place, is_empty_allowed=len(commas) == 0)
            first = place + 1
            time.sleep(_OTHERS)
        return found

    def _groups(
        self, start: int, stop: int, last: int, commas: NDArray[np.int32]
    ) -> Iterator[tuple[int, int, int]]:
        """Members to be parsed together: where the first begins, the last ends, and which place.

        All are in the bytes `start` to `stop`, before the place `last`, with commas between them.
        """
        ends = self._places[commas]
        done = 0
        while done < len(ends):
            # Of the same type as the ends, which would be converted each time.
            fit = int(ends.searchsorted(np.int32(start + _AT_ONCE), side="right"))
            done = max(fit, done + 1)
            yield start, int(ends[done - 1]), int(commas[done - 1])
            start = int(ends[done - 1]) + 1
        yield start, stop, last

    def _add(
        self, found: Any, start: int, stop: int, first: int, last: int, is_empty_allowed: bool
    ) -> None:
        """Add members to an array or object; more than a piece is a single one."""
        start, stop = self._stripped(start, stop)
        is_list = isinstance(found, list)
        if stop - start <= PIECE:
            more = self._decoded(start, stop, "[]" if is_list else "{}")
            if not more and not is_empty_allowed:
                raise self._no_json("Expecting value", start)
        elif is_list:
            more = [self._value(start, stop, first, last)]
        else:
            more = self._member(start, stop, first, last)
        if is_list:
            found.extend(more)
        else:
            _put(found, more)

    def _member(self, start: int, stop: int, first: int, last: int) -> dict[str, Any]:
        """A member of an object that is larger than a piece."""
        if first == last:
            raise _too_long()
        colon = int(self._places[first])
        if self._body[colon] != _COLON:
            raise self._no_json("Expecting ':' delimiter", start)
        key = self._value(start, colon, first, first)
        if not isinstance(key, str):
            raise self._no_json("Expecting property name enclosed in double quotes", start)
        return {key: self._value(colon + 1, stop, first + 1, last)}

    def _stripped(self, start: int, stop: int) -> tuple[int, int]:
        """Without the blanks at both ends, if there is more than a piece."""
        if stop - start <= PIECE:
            return start, stop
        text = self._body[start:stop]
        left = len(text) - len(text.lstrip(_BLANKS))
        return start + left, start + max(left, len(text.rstrip(_BLANKS)))

    def _decoded(self, start: int, stop: int, brackets: str = "") -> Any:
        """Parse a part at once, with brackets around it where they were cut off."""
        try:
            text = self._body[start:stop].decode("utf-8")
            return _DECODER.decode(f"{brackets[:1]}{text}{brackets[1:]}")
        except UnicodeDecodeError:
            raise RequestError(400, "The body is not UTF-8.") from None
        except json.JSONDecodeError as error:
            before = error.doc[len(brackets) // 2 : error.pos].encode()
            raise self._no_json(error.msg, start + len(before)) from None
        except RecursionError:
            raise RequestError(400, "The body is nested too deep.") from None
        except ValueError:  # from int()
            raise RequestError(400, "The body holds a whole number of too many digits.") from None

    def _no_json(self, what: str, place: int) -> RequestError:
        line = self._body.count(b"\n", 0, place) + 1
        column = place - self._body.rfind(b"\n", 0, place)
        return RequestError(400, f"The body is no JSON: {what} (line {line}, column {column}).")


def _too_long() -> RequestError:
    return RequestError(413, f"A text or number is longer than {PIECE} bytes.")


def _structure(body: bytes, limits: Limits) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """Where brackets, commas and colons are, and 1 for what opens and −1 for what closes."""
    # Pairs of backslashes from the left, as a reader sees them: what is left escapes something.
    plain = body
    if b"\\" in body:
        plain = body.replace(rb"\\", b"  ").replace(_ESCAPED_QUOTE, b"  ")
    places, steps = [np.empty(0, np.int32)], [np.empty(0, np.int8)]
    is_in_text = False
    n_places = n_containers = 0
    for first in range(0, len(body), _BLOCK):
        text = np.frombuffer(plain, np.uint8, min(_BLOCK, len(body) - first), first)
        in_text = np.bitwise_xor.accumulate(text == ord('"')) ^ is_in_text
        is_in_text = bool(in_text[-1])
        found = np.flatnonzero(_STRUCTURAL[text] & ~in_text)
        places.append((found + first).astype(np.int32))
        steps.append(_STEP[text[found]])
        n_places += len(found)
        n_containers += int(np.count_nonzero(steps[-1] == 1))
        if n_containers > limits.max_containers:
            message = f"There are more than {limits.max_containers} arrays and objects."
            raise RequestError(413, message)
    if n_places > len(body) // 2 + 3 * limits.max_containers:
        # Every comma and colon has a value after it: a byte at least, or brackets.
        raise RequestError(400, "The body is no JSON: values are missing between commas.")
    return np.concatenate(places), np.concatenate(steps)


def _put(found: dict[str, Any], more: dict[str, Any]) -> None:
    expected = len(found) + len(more)
    if expected > MOST_KEYS:
        raise RequestError(413, f"An object has more than {MOST_KEYS} keys.")
    found.update(more)
    if len(found) < expected:
        raise _twice()


def _twice() -> RequestError:
    return RequestError(400, "A key occurs twice in an object.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _twice()
    return found


def _constant(_: str) -> Any:
    raise RequestError(400, "NaN and Infinity are no JSON; send null where a value is missing.")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
