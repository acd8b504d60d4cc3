"""Decode standard JSON, with limits on depth and number length, in time linear in the input's length."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.text.display_escaping import replace_lone_surrogates

MAX_DEPTH = 64
"""Maximum nesting depth, because the repairer recurses once per level. Real arguments have fewer than ten levels."""

MAX_DIGITS = 400
"""Maximum number of digits in an integer, because CPython's conversion takes quadratic time."""

LONG = 4096
"""Length of text, in characters, above which importing a faster decoder pays off."""


class VerbatimInt(int):
    """An integer that remembers how the model wrote it."""

    spelling = ""


class VerbatimFloat(float):
    """A float that remembers how the model wrote it (``1e3``, ``1.50``)."""

    spelling = ""


class RepeatedValues(list[Json]):
    """The different values of a key that the model wrote several times."""


class UnterminatedError(FormatError):
    """Raised for JSON that ends inside a value."""


class DecodedJson(NamedTuple):
    """A decoded value, the offset at which it ends, and the names of its repairs."""

    value: Json
    end: int
    fixes: tuple[str, ...] = ()


def decode_strict(text: str, start: int = 0, before: str = "") -> DecodedJson | None:
    """Decode the JSON value at ``start``. Return None if it is invalid, repeats a key or has an ambiguous escape
    (`LITERAL_ESCAPE`). ``before`` is a hint that speeds up long values: the text that usually follows the value."""
    start = _SPACE.match(text, start).end()  # type: ignore[union-attr]
    decoded = _decode_whole_value(text, start, text.find(before, start)) if before else None
    try:
        value, end = decoded or _STRICT.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    # Without a limit, the result would depend on the caller's stack depth.
    if text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH and not is_shallow([value], MAX_DEPTH + 1):
        return None
    has_escape = text.find("\\b", start, end) >= 0 or text.find("\\f", start, end) >= 0
    if has_escape and _HOLDS_LITERAL.search(text, start, end):
        return None
    if text.find("\\u", start, end) >= 0 and not is_encodable(json.dumps(value, ensure_ascii=False)):
        return DecodedJson(replace_surrogates(value), end, ("lone-surrogate",))
    return DecodedJson(value, end)


def _decode_whole_value(text: str, start: int, end: int) -> tuple[Json, int] | None:
    """Decode ``text[start:end]`` with jiter, a dependency of pydantic that is three times as fast as `json` for long
    strings. Return None if `json` might decode the text differently."""
    if end - start < LONG:
        return None
    from pydantic_core import from_json

    try:
        value = from_json(text[start:end], allow_inf_nan=False)
    except (ValueError, TypeError):
        return None
    return (value, end) if _has_usual_numbers(value) and not _repeats_key(value, text, start, end) else None


def _repeats_key(value: Json, text: str, start: int, end: int) -> bool:
    """Return whether an object in ``text[start:end]``, the JSON text of ``value``, repeats a key: the text then has
    more keys than ``value``. The longest string, perhaps a file's text, is not searched."""
    members, longest = _measure(value)
    skipped = text.find(json.dumps(longest[:40], ensure_ascii=False)[:-1], start, end) if len(longest) > LONG else -1
    parts = [(start, end)] if skipped < 0 else [(start, skipped), (skipped + len(longest), end)]
    return members < sum(text.count('":', *part) - text.count('\\":', *part) for part in parts)


def _measure(value: Json) -> tuple[int, str]:
    """Return the total number of keys in ``value``, and its longest string."""
    match value:
        case dict() | list():
            inner = [_measure(item) for item in (value.values() if isinstance(value, dict) else value)]
            members = len(value) if isinstance(value, dict) else 0
            return members + sum(count for count, _ in inner), max((text for _, text in inner), key=len, default="")
        case str():
            return 0, value
        case _:
            return 0, ""


def _has_usual_numbers(value: Json) -> bool:
    """Return whether all numbers in ``value`` are integers of at most 64 bits. For other numbers, jiter does not keep
    the text that the model wrote."""
    match value:
        case dict():
            return all(map(_has_usual_numbers, value.values()))
        case list():
            return all(map(_has_usual_numbers, value))
        case float():
            return False
        case int():
            return value.bit_length() <= 64
        case _:
            return True


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not valid JSON")


def _build_object(members: list[tuple[str, Json]]) -> JsonObject:
    """Build an object. Raises ValueError if a key is repeated."""
    value = dict(members)
    if len(value) < len(members):
        raise ValueError("a key is repeated")
    return value


def _parse_bounded_int(digits: str) -> int | float:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"an integer has {len(digits)} digits; the maximum is {MAX_DIGITS}")
    return keep_number_text(0, digits) if digits == "-0" else int(digits)


def parse_finite_float(spelling: str) -> int | float:
    """Parse a float. Raises ValueError if it overflows to infinity."""
    value = float(spelling)
    if value in (float("inf"), float("-inf")):
        raise ValueError("too large")
    return keep_number_text(value, spelling)


def keep_number_text(value: int | float, spelling: str) -> int | float:
    """Return ``value`` as a `VerbatimInt` or `VerbatimFloat` with ``spelling``, the text that the model wrote. If JSON
    would write the same text, return ``value`` itself. The text matters if a string parameter, such as a version, was
    written as the number 3.10."""
    if repr(value) == spelling:
        return value
    spelt: VerbatimInt | VerbatimFloat = VerbatimInt(value) if isinstance(value, int) else VerbatimFloat(value)
    spelt.spelling = spelling
    return spelt


def encode_as_written(value: Json) -> str:
    """Return ``value`` as JSON on one line, with each number as the model wrote it."""
    match value:
        case VerbatimInt() | VerbatimFloat():
            return value.spelling
        case list():
            return f"[{', '.join(map(encode_as_written, value))}]"
        case dict():
            members = (f"{encode_as_written(key)}: {encode_as_written(item)}" for key, item in value.items())
            return f"{{{', '.join(members)}}}"
        case _:
            return json.dumps(value, ensure_ascii=False)


def find_leading_zeros(value: Json) -> str:
    """Return the text of the first number in ``value`` that the model wrote with leading zeros, or "" if there is none.
    Such a number may be octal."""
    match value:
        case VerbatimInt():
            return value.spelling if _LEADING_ZEROS.match(value.spelling) else ""
        case list() | dict():
            items = value.values() if isinstance(value, dict) else value
            return next(filter(None, map(find_leading_zeros, items)), "")
        case _:
            return ""


def to_plain_numbers(value: Json) -> Json:
    """Return ``value`` with ordinary numbers, which do not keep the model's spelling."""
    match value:
        case VerbatimInt():
            return int(value)
        case VerbatimFloat():
            return float(value)
        case list():
            return [to_plain_numbers(item) for item in value]
        case dict():
            return {key: to_plain_numbers(item) for key, item in value.items()}
        case _:
            return value


def decode_shallow(decode: Callable[[Any], Any], text: str | bytes, max_depth: int) -> Any:
    """Return ``decode(text)``. Raises ValueError if the value is nested more than ``max_depth`` levels deep."""
    with suppress(RecursionError):
        if is_shallow([value := decode(text)], max_depth):
            return value
    raise ValueError(f"the value is nested more than {max_depth} levels deep")


def is_shallow(values: list[Json], max_depth: int) -> bool:
    """Return whether no value is nested more than ``max_depth`` levels deep."""
    level: list[Json] = [values]
    for _ in range(max_depth + 1):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
        if not level:
            return True
    return False


_STRICT = json.JSONDecoder(
    object_pairs_hook=_build_object,
    parse_constant=_refuse_constant,
    parse_int=_parse_bounded_int,
    parse_float=parse_finite_float,
)


def add_member(members: JsonObject, key: str, value: Json) -> bool:
    """Add ``key`` to ``members``, and return whether it was there already. Different values become `RepeatedValues`; an
    empty string and null give way to another value."""
    is_repeated, old = key in members, members.get(key)
    if not is_repeated or old in (None, ""):
        members[key] = value
    elif value not in (None, "") and json.dumps(value) != json.dumps(old):
        members[key] = RepeatedValues([*old, value] if isinstance(old, RepeatedValues) else [old, value])
    return is_repeated


def find_repeated_values(value: Json, key: str = "") -> tuple[str, RepeatedValues] | None:
    """Return the first key with `RepeatedValues` in ``value``, the value of ``key``, or None."""
    if isinstance(value, RepeatedValues):
        return key, value
    items = value if isinstance(value, list) else ()
    members = value.items() if isinstance(value, dict) else ((key, item) for item in items)
    return next(filter(None, (find_repeated_values(item, name) for name, item in members)), None)


LATEX_COMMANDS = (
    "theta", "times", "tilde", "tfrac", "tbinom", "therefore", "tanh", "triangle", "triangleq", "text{", "textbf{",
    "textit{", "textrm{", "texttt{", "title{", "tag{", "nabla", "notin", "newcommand", "newline", "newpage", "noindent",
    "nonumber", "nolimits", "natural", "nearrow", "rho", "rangle", "right", "rightarrow", "rceil", "rfloor",
    "renewcommand", "ref{",
)  # fmt: skip
"""LaTeX commands that begin with an escape, such as ``\\t``. Without that letter, none is a word that begins a line or
follows a tab."""
SHORT_LATEX_COMMANDS = ("tau", "to", "tan", "top", "neq", "neg")
"""The same, but they are certain only after a space or bracket, or next to another command."""
_LATEX = "|".join(map(re.escape, (*LATEX_COMMANDS, *SHORT_LATEX_COMMANDS)))
LITERAL_ESCAPE = re.compile(r"\\(?:b(?=[\w(\[])|(?<=[^\\][\w)\]*+?}]\\)b|f(?=[a-z]))")
r"""Matches ``\b`` or ``\f`` next to a word, as in ``\bword\b`` or ``\frac``, where models mean a backslash."""
LAYOUT_ESCAPE = re.compile(
    rf"(?<!\\)(?:\\\\)*(?:\\[nrt](?![a-z])|(?<=[\w;:,.)}}\]>\"'])\\(?!(?:{_LATEX})(?:(?<=\{{)|(?![A-Za-z])))[nrt])"
)
"""Matches an escape for a line break or tab, unless it begins a word such as ``\\nabla``."""
PUNCTUATION_ESCAPE = re.compile(r"\\([\"'`/\\])")
ITEM_BOUNDARY = re.compile(r"[\"'][ \t]*,|,[ \t]*[\"']")
"""Matches a quote next to a comma, which in a string with unescaped quotes may be the end of one item or member."""
_HOLDS_LITERAL = re.compile(rf"(?<!\\)(?:\\\\)*+{LITERAL_ESCAPE.pattern}")
_LEADING_ZEROS = re.compile(r"[+-]?0\d")
_SPACE = re.compile(r"[ \t\r\n\ufeff\u200b\u2060]*")


def quote_excerpt(text: str, position: int) -> str:
    """Quote up to 30 characters of ``text`` from ``position`` for an error message."""
    if position >= len(text):
        return "the end of the text"
    piece = text[position : position + 30]
    return f"{piece!r} at character {position + 1}"


def is_encodable(text: str) -> bool:
    """Return whether ``text`` can be encoded as UTF-8, which lone surrogates prevent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace_surrogates(value: Json) -> Json:
    """Join surrogate pairs in ``value`` and replace lone surrogates, so that the value can be encoded as UTF-8."""
    match value:
        case str():
            return replace_lone_surrogates(value)
        case list():
            return [replace_surrogates(item) for item in value]
        case tuple():
            return tuple(map(replace_surrogates, value))
        case dict():
            return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
        case _:
            return value
