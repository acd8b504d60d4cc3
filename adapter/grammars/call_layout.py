"""Derive the layout of a format's calls from its encoder's output.

A layout is the text around a call's name and arguments, which are JSON or key-value pairs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from adapter.core.events import Json, JsonObject
from adapter.parsing.formats import get_format

_NAME, _ARGUMENTS = "name_of_tool", {"key": "value"}
_BODIES = (('{"key": "value"}', ": ", ", "), ('{"key":"value"}', ":", ","))


@dataclass(frozen=True, slots=True)
class JsonCallLayout:
    """The text around the parts of a call, ``{head}NAME{middle}ARGUMENTS{tail}``."""

    head: str
    middle: str
    tail: str
    between: str | None
    """The text between two calls; None if the format does not allow several."""
    colon: str = ": "
    """The text between a key and its value in JSON."""
    comma: str = ", "
    """The text between two key-value pairs in JSON."""


@dataclass(frozen=True, slots=True)
class KeyValueCallLayout:
    """The text around the parts of a call with key-value arguments. A call with two arguments is::

        {head}NAME{first}KEY{opening}VALUE{following}KEY{opening}VALUE{last}

    The words in braces are fields of this class; ``opening`` is one of ``openings``.
    """

    head: str
    first: str
    following: str
    last: str
    none: str
    """The text after the name if a call has no arguments."""
    openings: Mapping[str, str]
    """The text between a key and its value, by the value's JSON type. Strings are written verbatim, other values as
    JSON with ``colon`` and ``comma``."""
    markers: tuple[str, ...]
    """Literals that no value may contain; each begins with ``<``."""
    between: str | None
    """The text between two calls; None if the format does not allow several."""
    colon: str
    comma: str

    def can_represent(self, text: str) -> bool:
        """Return whether ``text``, written as a value, is parsed back unchanged."""
        lowered = text.lower()
        return text == text.strip() != "" and not any(marker in lowered for marker in self.markers)


def find_call_prefix(format: str) -> str | None:
    """Return the first line of the text before every call's name, such as ``<tool_call>``. Return None if the format
    has no such text, or also writes it before plain text."""
    if get_format(format).marks_plain_text:
        return None
    layout = _find_json_layout(format) or find_key_value_call_layout(format)
    return (layout.head.partition("\n")[0].rstrip() or None) if layout else None


@lru_cache
def find_json_call_layout(format: str) -> JsonCallLayout:
    """Return the layout of calls in a format that writes the arguments as JSON. For other formats, return the layout of
    Hermes, which the parser always accepts."""
    layout = _find_json_layout(format) or _find_json_layout("hermes")
    assert layout is not None
    return layout


def _find_json_layout(format: str) -> JsonCallLayout | None:
    encode = get_format(format).encode_calls
    one = encode([(_NAME, _ARGUMENTS)])
    for body, colon, comma in _BODIES:
        head, _, rest = one.partition(_NAME)
        middle, found, tail = rest.partition(body)
        if found and _NAME not in middle + tail:
            between = _find_text_between_calls(one, encode([(_NAME, _ARGUMENTS)] * 2))
            return JsonCallLayout(head, middle, tail, between, colon, comma)
    return None


def _find_text_between_calls(one: str, two: str) -> str | None:
    """Return the text between two calls. ``one`` is an encoded call, and ``two`` two equal ones. Return None if ``two``
    does not consist of two copies of ``one`` and a text between them."""
    if two.startswith(one) and two.endswith(one) and len(two) >= 2 * len(one):
        return two[len(one) : len(two) - len(one)]
    return None


_PAIR, _SECOND = ("first_key", "first_value"), ("second_key", "second_value")
_BY_TYPE: Mapping[str, Json] = {
    "integer": 31337, "number": 0.5, "boolean": True, "null": None, "array": [31337, "item"],
    "object": {"inner_key": "inner_value", "other_key": 1},
}  # fmt: skip
_SPECIAL_TEXT = "a \"b\" 'c' \\d & <e> f\n\n{g: [h]}"


@lru_cache
def find_key_value_call_layout(format: str) -> KeyValueCallLayout | None:
    """Return the layout of calls in a format that writes the arguments as pairs of a key and a value, with strings
    unescaped. Return None for other formats."""
    encode = get_format(format).encode_calls

    def encode_arguments(arguments: JsonObject) -> str:
        return encode([(_NAME, arguments)])

    pieces = split_around(encode_arguments(dict([_PAIR, _SECOND])), _NAME, *_PAIR, *_SECOND)
    if pieces is None:
        return None
    head, first, opening, following, second_opening, last = pieces
    before, none = f"{head}{_NAME}{first}{_PAIR[0]}", encode_arguments({}).removeprefix(f"{head}{_NAME}")
    one = encode_arguments(dict([_PAIR]))
    if opening != second_opening or one != f"{before}{opening}{_PAIR[1]}{last}" or none == encode_arguments({}):
        return None
    if encode_arguments({_PAIR[0]: _SPECIAL_TEXT}) != f"{before}{opening}{_SPECIAL_TEXT}{last}":
        return None
    for _, colon, comma in _BODIES:
        openings = _find_openings(encode_arguments, before, last, colon, comma)
        if openings is not None:
            markers = tuple(dict.fromkeys(_MARKER.findall(f"{one} {following} {none}".lower())))
            between = _find_text_between_calls(one, encode([(_NAME, dict([_PAIR]))] * 2))
            all_openings = {"string": opening, **openings}
            return KeyValueCallLayout(head, first, following, last, none, all_openings, markers, between, colon, comma)
    return None


_MARKER = re.compile(r"<[^<>\s=\"']+")


def _find_openings(
    encode_arguments: Callable[[JsonObject], str], before: str, last: str, colon: str, comma: str
) -> dict[str, str] | None:
    found = {}
    for kind, value in _BY_TYPE.items():
        text = encode_arguments({_PAIR[0]: value})
        end = json.dumps(value, separators=(comma, colon)) + last
        if not (text.startswith(before) and text.endswith(end)):
            return None
        found[kind] = text[len(before) : -len(end)]
    return found


def split_around(text: str, *words: str) -> list[str] | None:
    """Split ``text`` at ``words``. Return None unless each word occurs exactly once, in this order."""
    pieces = []
    for word in words:
        piece, found, text = text.partition(word)
        if not found or word in text:
            return None
        pieces.append(piece)
    return [*pieces, text]
