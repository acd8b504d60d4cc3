"""How a family writes calls, in words that say it whole: what stands around names, keys and values, as text.

`adapter.prompting.deriving` finds a description by having a chat template filled;
`adapter.parsing.bodies.format_compiler` makes the format of it. In ``head``, ``middle`` and ``tail`` ``{number}`` stands for
the call's number, from 0, and ``{id}`` for an id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from adapter.core.events import Json, JsonObject
from adapter.parsing.bodies import gemma_call, python_encoder

Body: TypeAlias = Literal[
    "json", "named json", "labels", "function", "pairs", "elements", "python", "gemma", "channels"
]
"""Which reader: an object with the name in it; the name and then the arguments, after a marker or after labels;
``<function=NAME>`` with parameters; keys and values between tags; elements with attributes; Python; Gemma's objects;
messages with the recipient in their headers."""

NUMBER, ID = "{number}", "{id}"


@dataclass(frozen=True, slots=True)
class KeyValueLayout:
    """What stands around keys and values: ``first`` key opening value ``following`` key opening value ``last``.

    ``openings``: by the value's JSON type, with "string" at least; others are as for "other". Strings stand as they
    are, all else as JSON. ``none``: what follows the name where there are no arguments. ``in_place``: what stands
    around one JSON object with all arguments, which is read in place of pairs: nothing in a pair can be escaped.
    """

    first: str
    following: str
    last: str
    none: str
    openings: Mapping[str, str]
    in_place: tuple[str, str] | None = None

    def opening(self, kind: str) -> str:
        return self.openings.get(kind, self.openings.get("other", self.openings["string"]))


@dataclass(frozen=True, slots=True)
class FormatSpec:
    """``section`` around all calls, ``between`` two; one call is ``head`` name ``middle`` arguments ``tail``.

    ``arguments_key``: the key in an object with the name in it, "" where the name is the key. ``colon``, ``comma`` and
    ``indent``: of the JSON. ``is_text``: the arguments are JSON in a JSON string. ``pairs``: of the bodies that have
    them, ``head`` then ends where the name begins and ``middle`` and ``tail`` are empty. ``quote``: around Gemma's
    strings. ``keeps_space``: the space before a call is the answer's. ``result``: what a result stands in, ``{}`` for
    it. The rest is as of `Format`.
    """

    name: str
    body: Body
    head: str
    middle: str = ""
    tail: str = ""
    section: tuple[str, str] = ("", "")
    between: str = ""
    arguments_key: str = "arguments"
    colon: str = ": "
    comma: str = ", "
    indent: int | None = None
    is_text: bool = False
    pairs: KeyValueLayout | None = None
    quote: str = ""
    keeps_space: bool = False
    result: str = "{}"
    reasoning: Mapping[str, str] = field(default_factory=dict)
    starts_in_reasoning: bool = False
    ends: tuple[str, ...] = ()
    next_turns: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()

    def encode_calls(self, calls: list[tuple[str, JsonObject]]) -> str:
        each = [self.encode_call(name, arguments, number) for number, (name, arguments) in enumerate(calls)]
        return f"{self.section[0]}{self.between.join(each)}{self.section[1]}"

    def encode_call(self, name: str, arguments: JsonObject, number: int = 0) -> str:
        """One call, without what stands around all of them."""
        if self.body == "gemma":
            return f"{self.head}{gemma_call.encode_call(name, arguments, self.quote)}{self.tail}"
        if self.body == "python":
            return f"{self.head}{python_encoder.encode_call(name, arguments)}{self.tail}"
        if self.pairs is not None:
            return f"{self.head}{name}{self._paired(self.pairs, arguments)}"
        written = json.dumps(arguments, ensure_ascii=False, separators=(self.comma, self.colon), indent=self.indent)
        if self.is_text:
            written = json.dumps(written, ensure_ascii=False)
        head, middle, tail = (_numbered(piece, number) for piece in (self.head, self.middle, self.tail))
        return f"{head}{name}{middle}{written}{tail}"

    def encode_result(self, name: str, content: str, call_id: str) -> str:
        before, _, after = (piece.replace("{name}", name).replace(ID, call_id) for piece in self.result.partition("{}"))
        return f"{before}{content}{after}"

    @property
    def markers(self) -> tuple[str, ...]:
        """In lower case: the words with brackets of what stands around names, keys and values."""
        pairs = (
            (*self.pairs.openings.values(), self.pairs.first, self.pairs.following, self.pairs.last)
            if self.pairs
            else ()
        )
        text = "\n".join((*self.section, self.head, self.middle, self.tail, *pairs)).lower()
        return tuple(dict.fromkeys(word for word in _WORD.findall(text) if _IS_MARKER.search(word)))

    def _paired(self, pairs: KeyValueLayout, arguments: JsonObject) -> str:
        if not arguments:
            return pairs.none
        is_ambiguous = any(self._is_ambiguous(pairs, key, value) for key, value in arguments.items())
        if is_ambiguous and pairs.in_place is not None:
            return json.dumps(arguments, ensure_ascii=False).join(pairs.in_place)
        written = [
            f"{key}{pairs.opening(json_type_of(value))}{value if isinstance(value, str) else self._json(value)}"
            for key, value in arguments.items()
        ]
        return f"{pairs.first}{pairs.following.join(written)}{pairs.last}"

    def _json(self, value: Json) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(self.comma, self.colon))

    def _is_ambiguous(self, pairs: KeyValueLayout, key: str, value: Json) -> bool:
        text = (value if isinstance(value, str) else self._json(value)).lower()
        is_word_for_null = isinstance(value, str) and text.strip() in ("null", "none")
        has_margin = (
            isinstance(value, str) and not pairs.opening("string").endswith("\n") and text != text.strip("\r\n")
        )
        return (
            any(mark in text for mark in self.markers)
            or is_word_for_null
            or has_margin
            or any(char in key for char in "<>\n\"'")
            or key != key.strip()
            or not key
        )


_WORD = re.compile(r"<[^<>\s=\"']+[>=]?|\[+/?[^\[\]\s=\"']+\]*|[^\s<\[\"']{3,}")
_IS_MARKER = re.compile(r"^[^\w\s].*\w", re.DOTALL)


def json_type_of(value: Json) -> str:
    """The JSON type of ``value``."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _numbered(text: str, number: int) -> str:
    return text.replace(NUMBER, str(number)).replace(ID, f"call{number:05}")
