"""JSON in the strictest sense, parsed in small pieces so that other threads are not kept waiting.

`json` holds the interpreter's lock for as long as a call takes, half a second for some bodies of
4 MiB. A body is therefore cut where its brackets and commas say, by NumPy, and parsed `PIECE` bytes
at a time.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.server.errors import RequestError
from bootprob.server.limits import Limits

__all__ = ["PIECE", "parse_json"]

PIECE = 2**15  # bytes: a millisecond or two; also the longest text or number
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
        400, or 413 for too many arrays and objects or a text or number longer than `PIECE` bytes;
        the message quotes nothing of the body.
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
        plain = body
        if b"\\" in body:
            # Pairs from the left, as a reader sees them: what is left escapes something.
            plain = body.replace(rb"\\", b"  ").replace(_ESCAPED_QUOTE, b"  ")
        text = np.frombuffer(plain, np.uint8)
        in_text = np.bitwise_xor.accumulate(text == ord('"'))
        outside = _STRUCTURAL[text] & ~in_text
        steps = _STEP[text] * outside
        if np.count_nonzero(steps == 1) > limits.max_containers:
            message = f"There are more than {limits.max_containers} arrays and objects."
            raise RequestError(413, message)
        if np.count_nonzero(outside) > len(body) // 2 + 3 * limits.max_containers:
            # Every comma and colon has a value after it: a byte at least, or brackets.
            raise RequestError(400, "The body is no JSON: values are missing between commas.")
        self._places = np.flatnonzero(outside).astype(np.int32)
        self._depth = np.cumsum(steps[outside], dtype=np.int32)
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
        places = self._places[first : last - 1]
        is_comma = (np.frombuffer(self._body, np.uint8)[places] == _COMMA) & (inner == depth)
        commas = np.flatnonzero(is_comma).astype(np.int32) + np.int32(first)
        ends = np.append(self._places[commas], np.int32(stop - 1))
        return self._members(start + 1, first + 1, ends, np.append(commas, np.int32(last - 1)))

    def _members(
        self, start: int, first: int, ends: NDArray[np.int32], places: NDArray[np.int32]
    ) -> Any:
        """The values between a container's brackets.

        Parameters
        ----------
        start, first : int
            Of its first member: where it begins, and which place comes next.
        ends, places : ndarray of int, shape (m,)
            Where each member ends, and the number of that place.
        """
        found: Any = {} if self._body[start - 1] == _OBJECT else []
        k = 0
        while k < len(ends):
            # As many members as fit into a piece; one at least.
            after = max(int(np.searchsorted(ends, start + PIECE, side="right")), k + 1)
            stop, last = int(ends[after - 1]), int(places[after - 1])
            begin, end = self._stripped(start, stop)
            if end - begin <= PIECE:
                piece = self._decoded(begin, end, "[]" if isinstance(found, list) else "{}")
                if not piece and len(ends) > 1:
                    raise self._no_json("Expecting value", begin)
            elif isinstance(found, list):
                piece = [self._value(begin, end, first, last)]
            else:
                piece = self._member(begin, end, first, last)
            if isinstance(found, list):
                found.extend(piece)
            else:
                _put(found, piece)
            start, first, k = stop + 1, last + 1, after
            time.sleep(0)  # lets others have the lock
        return found

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


def _put(found: dict[str, Any], more: dict[str, Any]) -> None:
    expected = len(found) + len(more)
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
