"""How a format puts a call, with its arguments as JSON or in pairs; found by looking at what its own encoder writes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from adapter.core.events import Json, JsonObject
from adapter.core.text.delimiters import split_around
from adapter.parsing.formats import get_format

_NAME, _ARGUMENTS = "name_of_tool", {"key": "value"}
_BODIES = (('{"key": "value"}', ": ", ", "), ('{"key":"value"}', ":", ","))


@dataclass(frozen=True, slots=True)
class JsonCallLayout:
    """``head`` name ``middle`` arguments ``tail``, and ``between`` two calls: None where they cannot just follow.

    ``colon`` and ``comma`` are those of the JSON.
    """

    head: str
    middle: str
    tail: str
    between: str | None
    colon: str = ": "
    comma: str = ", "


@dataclass(frozen=True, slots=True)
class KeyValueCallLayout:
    """``head`` name, then for each argument ``first`` or ``following`` key opening value, and ``last`` after these all.

    ``openings``: what stands between key and value, by the value's JSON type. Strings are written as they are, all
    else as JSON with ``colon`` and ``comma``. ``none``: what follows the name where there are no arguments.
    ``markers``: what no value may hold; each begins with ``<``. ``between``: as of `JsonCallLayout`.
    """

    head: str
    first: str
    following: str
    last: str
    none: str
    openings: Mapping[str, str]
    markers: tuple[str, ...]
    between: str | None
    colon: str
    comma: str

    def holds(self, text: str) -> bool:
        """Whether a value of this text is read back as it is."""
        lowered = text.lower()
        return text == text.strip() != "" and not any(marker in lowered for marker in self.markers)


def call_prefix(format: str) -> str | None:
    """The text by which a model that writes this format begins a call of its frame, and nothing else."""
    frame = None if get_format(format).marks_plain_text else (_frame(format) or key_value_call_layout(format))
    return (frame.head.partition("\n")[0].rstrip() or None) if frame else None


@lru_cache
def json_call_layout(format: str) -> JsonCallLayout:
    """The frame of a format; Hermes' for one whose arguments are no JSON. Our parser reads all from any model."""
    frame = _frame(format)
    if frame is None:
        frame = _frame("hermes")
        assert frame is not None
    return frame


def _frame(format: str) -> JsonCallLayout | None:
    encode = get_format(format).encode_calls
    one = encode([(_NAME, _ARGUMENTS)])
    for body, colon, comma in _BODIES:
        head, _, rest = one.partition(_NAME)
        middle, found, tail = rest.partition(body)
        if found and _NAME not in middle + tail:
            return JsonCallLayout(head, middle, tail, _between(one, encode([(_NAME, _ARGUMENTS)] * 2)), colon, comma)
    return None


def _between(one: str, two: str) -> str | None:
    """What stands between two calls that are written one after the other."""
    if two.startswith(one) and two.endswith(one) and len(two) >= 2 * len(one):
        return two[len(one) : len(two) - len(one)]
    return None


_PAIR, _SECOND = ("first_key", "first_value"), ("second_key", "second_value")
_BY_TYPE: Mapping[str, Json] = {
    "integer": 31337,
    "number": 0.5,
    "boolean": True,
    "null": None,
    "array": [31337, "item"],
    "object": {"inner_key": "inner_value", "other_key": 1},
}
_AS_IT_IS = "a \"b\" 'c' \\d & <e> f\n\n{g: [h]}"


@lru_cache
def key_value_call_layout(format: str) -> KeyValueCallLayout | None:
    """How a format writes arguments in pairs; None for one that does not, or that writes strings another way."""
    encode = get_format(format).encode_calls

    def written(arguments: JsonObject) -> str:
        return encode([(_NAME, arguments)])

    pieces = split_around(written(dict([_PAIR, _SECOND])), _NAME, *_PAIR, *_SECOND)
    if pieces is None:
        return None
    head, first, opening, following, second_opening, last = pieces
    before, none = f"{head}{_NAME}{first}{_PAIR[0]}", written({}).removeprefix(f"{head}{_NAME}")
    one = written(dict([_PAIR]))
    if opening != second_opening or one != f"{before}{opening}{_PAIR[1]}{last}" or none == written({}):
        return None
    if written({_PAIR[0]: _AS_IT_IS}) != f"{before}{opening}{_AS_IT_IS}{last}":
        return None
    for _, colon, comma in _BODIES:
        openings = _openings(written, before, last, colon, comma)
        if openings is not None:
            markers = tuple(dict.fromkeys(_MARKER.findall(f"{one} {following} {none}".lower())))
            between = _between(one, encode([(_NAME, dict([_PAIR]))] * 2))
            all_openings = {"string": opening, **openings}
            return KeyValueCallLayout(head, first, following, last, none, all_openings, markers, between, colon, comma)
    return None


_MARKER = re.compile(r"<[^<>\s=\"']+")


def _openings(
    written: Callable[[JsonObject], str], before: str, last: str, colon: str, comma: str
) -> dict[str, str] | None:
    found = {}
    for kind, value in _BY_TYPE.items():
        text = written({_PAIR[0]: value})
        end = json.dumps(value, separators=(comma, colon)) + last
        if not (text.startswith(before) and text.endswith(end)):
            return None
        found[kind] = text[len(before) : -len(end)]
    return found
