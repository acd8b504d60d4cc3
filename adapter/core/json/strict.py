"""JSON as the standard has it, and what no value may have: the first reading of every text.

Cost is linear in the text for any input.
"""

from __future__ import annotations

import json
import math
import re
from typing import NamedTuple

from adapter.core.errors import FormatError
from adapter.core.events import Json

MAX_DEPTH = 64
"""Levels of nesting; real arguments use under ten, and the reader recurses."""

MAX_DIGITS = 400
"""Digits of an integer; converting more costs quadratic time in CPython."""


LONG = 4096
"""Characters from which on a faster decoder is worth its import."""


class UnterminatedError(FormatError):
    """The text ends inside a value."""


class DecodedJson(NamedTuple):
    """A value, the offset just after it, and the fixes that reading it took."""

    value: Json
    end: int
    fixes: tuple[str, ...] = ()


def decode_strict(text: str, start: int = 0, before: str = "") -> DecodedJson | None:
    """The JSON value at ``start`` exactly as the standard reads it, or None when it is not valid JSON.

    ``before``: what usually stands after the value, a hint that makes reading a long one faster.
    """
    start = _SPACE.match(text, start).end()  # type: ignore[union-attr]
    found = _whole_value(text, start, text.find(before, start)) if before else None
    try:
        value, end = found or _STRICT.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if not _is_shallow(value, text.count("[", start, end) + text.count("{", start, end)):
        return None
    if text.find("\\u", start, end) >= 0 and not is_encodable(json.dumps(value, ensure_ascii=False)):
        return DecodedJson(replace_surrogates(value), end, ("lone-surrogate",))
    return DecodedJson(value, end)


def _whole_value(text: str, start: int, end: int) -> tuple[Json, int] | None:
    """The value that fills ``text[start:end]``; None when it is short, or when that is not certain.

    jiter, which pydantic brings, reads a long string three times as fast as `json` and reads nothing differently
    that it does not refuse.
    """
    if end - start < LONG:
        return None
    from pydantic_core import from_json

    try:
        value = from_json(text[start:end], allow_inf_nan=False)
    except (ValueError, TypeError):
        return None
    return (value, end) if _has_usual_numbers(value) else None


def _has_usual_numbers(value: Json) -> bool:
    """Whether no number in ``value`` is one that the strict reading might refuse for its size."""
    match value:
        case dict():
            return all(map(_has_usual_numbers, value.values()))
        case list():
            return all(map(_has_usual_numbers, value))
        case float():
            return math.isfinite(value)
        case int():
            return value.bit_length() <= 64
        case _:
            return True


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _bounded_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def parse_finite_float(spelling: str) -> float:
    """The number. Raises ValueError for one that only infinity is near to."""
    value = float(spelling)
    if value in (float("inf"), float("-inf")):
        raise ValueError("too large")
    return value


def _is_shallow(value: Json, brackets: int) -> bool:
    """Whether ``value``, written with so many opening brackets, is nested at most MAX_DEPTH levels deep.

    Without this bound it would depend on the caller's stack whether a text can be read.
    """
    if brackets <= MAX_DEPTH:
        return True
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
        if not level:
            return True
    return False


_STRICT = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_bounded_int, parse_float=parse_finite_float)
_SPACE = re.compile(r"[ \t\r\n\ufeff\u200b\u2060]*")


def excerpt(text: str, position: int) -> str:
    """What stands at ``position``, for a message."""
    if position >= len(text):
        return "the end of the text"
    piece = text[position : position + 30]
    return f"{piece!r} at character {position + 1}"


def is_encodable(text: str) -> bool:
    """Whether ``text`` can be written as UTF-8: a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace_surrogates(value: Json) -> Json:
    """``value`` with surrogate pairs joined and lone surrogates replaced, so that it can be written."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [replace_surrogates(item) for item in value]
        case dict():
            return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
        case _:
            return value
