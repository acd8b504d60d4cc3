"""`FormatSpec`: a declarative description of how a model family writes calls, by the text around names, keys and
values.

`adapter.prompting.deriving` infers it by rendering a chat template, and `adapter.parsing.bodies.format_compiler`
compiles it to a format. In ``head``, ``middle`` and ``tail``, ``{number}`` is the call's number, starting at 0, and
``{id}`` an id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import ClassVar, Literal, TypeAlias

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.encode import dump_json
from adapter.parsing.bodies import gemma_encoder, python_encoder
from adapter.parsing.bodies.format_file_calls import SplitPairs, build_pairs_splitter, encode_yaml, find_uncertain_text
from adapter.parsing.bodies.tagged_arguments import is_ambiguous_pair, reads_as_null
from adapter.tools.coercion import get_type_name

Body: TypeAlias = Literal[
    "json", "named json", "labels", "function", "pairs", "elements", "python", "gemma", "channels", "yaml", "lines"
]
"""The notation for a call's name and arguments.

- json: an object that contains the name.
- named json, labels: the name and then the arguments, after a marker or after labels.
- function: ``<function=NAME>`` with parameters.
- pairs: keys and values between tags.
- elements: elements with attributes.
- python: Python calls.
- gemma: Gemma's objects.
- channels: messages whose headers name the recipient.
- yaml: the name and then the arguments as YAML.
- lines: keys and values between arbitrary texts, such as one pair per line. In the texts after a value, ``{key}`` is
  its key and ``{name}`` the tool. If the pairs could not be parsed back, the arguments are written as one JSON object.
"""

NUMBER, ID = "{number}", "{id}"


@dataclass(frozen=True, slots=True)
class KeyValueLayout:
    """The texts around the keys and values of a call's arguments. Two arguments are written as::

        {first}KEY{opening}VALUE{following}KEY{opening}VALUE{last}

    The words in braces are fields of this class; ``opening`` is one of ``openings``.
    """

    first: str
    following: str
    last: str
    none: str
    """The text after the name, if a call has no arguments."""
    openings: Mapping[str, str]
    """The text before a value, by its JSON type. "string" is required; "other" is the default for the other types.
    Strings are written unescaped, other values as JSON."""
    in_place: tuple[str, str] | None = None
    """The text before and after a JSON object with all arguments. The object replaces the pairs if a value contains one
    of the tags, because values cannot be escaped. Both notations are parsed."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    @property
    def value_close(self) -> str:
        """The text that closes every value: the longest common prefix of ``following`` and ``last``, in whole tags."""
        tokens = zip(*map(_TOKEN.findall, (self.following, self.last)), strict=False)
        common = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], tokens))
        return common.rstrip() or common

    def insert_name(self, name: str) -> KeyValueLayout:
        """Return the layout with ``name`` in place of each ``{name}``."""
        first, following, last, none = (
            text.replace("{name}", name) for text in (self.first, self.following, self.last, self.none)
        )
        return replace(self, first=first, following=following, last=last, none=none)

    @property
    def closing(self) -> str:
        """The text after the tag that closes the last value: the rest of ``last``."""
        return self.last[len(self.value_close) :]

    @property
    def before_key(self) -> str:
        """The text before every key."""
        return self.following[len(self.value_close) :]

    @property
    def before_json(self) -> str:
        """The text between the tool's name and a JSON object that replaces the pairs, in a format with the body
        ``lines``."""
        return self._before_first if self._before_first.strip() else self.first

    @property
    def _before_first(self) -> str:
        return self.first.removesuffix(self.before_key) if self.before_key.strip() else self.first

    def build_splitter(self) -> SplitPairs:
        """Return a function that splits the text of a call with the body ``lines`` into pairs."""
        none = self.none.strip().removesuffix(self.closing.strip())
        return build_pairs_splitter(
            self._before_first, self.before_key, self.openings["string"], self.value_close, none
        )

    def find_opening(self, kind: str) -> str:
        return self.openings.get(kind, self.openings.get("other", self.openings["string"]))


@dataclass(frozen=True, slots=True)
class FormatSpec:
    """A model family's notation, described by the texts around the parts of a call:
    ``{head}NAME{middle}ARGUMENTS{tail}``.

    ``colon``, ``comma`` and ``indent`` are the layout of JSON. For the other fields without a description, see
    `Format`.
    """

    name: str
    body: Body
    head: str
    middle: str = ""
    tail: str = ""
    section: tuple[str, str] = ("", "")
    """The text before and after all calls."""
    between: str = ""
    """The text between two calls."""
    arguments_key: str = "arguments"
    """The key of the arguments in a JSON object that also contains the name, or "" if the name itself is the key."""
    colon: str = ": "
    comma: str = ", "
    indent: int | None = None
    is_text: bool = False
    """True if the arguments are a JSON string that contains JSON."""
    pairs: KeyValueLayout | None = None
    """The texts around keys and values, if the arguments are written as pairs, or None. With pairs, ``head`` ends
    before the name, and ``middle`` and ``tail`` are empty."""
    quote: str = ""
    """The quote around strings in Gemma's notation."""
    keeps_space: bool = False
    """True if whitespace before a call is part of the answer."""
    result: str = "{}"
    """Template of a tool result, in which ``{}`` is the content."""
    reasoning: Mapping[str, str] = field(default_factory=dict)
    answer_tags: Mapping[str, str] = field(default_factory=dict)
    starts_in_reasoning: bool = False
    ends: tuple[str, ...] = ()
    next_turns: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    """Makes pydantic reject unknown keys in a user's format file."""

    def encode_calls(self, calls: list[tuple[str, JsonObject]]) -> str:
        each = [self.encode_call(name, arguments, number) for number, (name, arguments) in enumerate(calls)]
        return f"{self.section[0]}{self.between.join(each)}{self.section[1]}"

    def encode_call(self, name: str, arguments: JsonObject, number: int = 0) -> str:
        """Encode one call, without the markers that enclose the whole list of calls."""
        if self.body == "gemma":
            return f"{self.head}{gemma_encoder.encode_call(name, arguments, self.quote)}{self.tail}"
        if self.body == "python":
            return f"{self.head}{python_encoder.encode_call(name, arguments)}{self.tail}"
        if self.body == "yaml":
            return f"{self.head}{name}{self.middle}{encode_yaml(arguments, self.indent or 0)}{self.tail}"
        if self.pairs is not None:
            pairs = self.pairs.insert_name(name)
            encode_body = self._encode_lines if self.body == "lines" else self._encode_pairs
            return f"{self.head}{name}{encode_body(pairs, arguments)}"
        encoded = dump_json(arguments, separators=(self.comma, self.colon), indent=self.indent)
        if self.is_text:
            encoded = dump_json(encoded)
        head, middle, tail = (_insert_number(piece, number) for piece in (self.head, self.middle, self.tail))
        return f"{head}{name}{middle}{encoded}{tail}"

    def encode_result(self, name: str, content: str, call_id: str) -> str:
        before, _, after = (piece.replace("{name}", name).replace(ID, call_id) for piece in self.result.partition("{}"))
        return f"{before}{content}{after}"

    @property
    def markers(self) -> tuple[str, ...]:
        """The markers in the text around names, keys and values, in lower case."""
        pairs = (
            (*self.pairs.openings.values(), self.pairs.first, self.pairs.following, self.pairs.last)
            if self.pairs
            else ()
        )
        text = "\n".join((*self.section, self.head, self.middle, self.tail, *pairs)).lower()
        return tuple(dict.fromkeys(word for word in _WORD.findall(text) if _IS_MARKER.search(word)))

    def _encode_pairs(self, pairs: KeyValueLayout, arguments: JsonObject) -> str:
        if not arguments:
            return pairs.none
        is_ambiguous = any(self._is_ambiguous(pairs, key, value) for key, value in arguments.items())
        if is_ambiguous and pairs.in_place is not None:
            return dump_json(arguments).join(pairs.in_place)
        encoded = [
            f"{key}{pairs.find_opening(get_type_name(value))}{self._encode_value(value)}"
            for key, value in arguments.items()
        ]
        return f"{pairs.first}{pairs.following.join(encoded)}{pairs.last}"

    def _encode_lines(self, pairs: KeyValueLayout, arguments: JsonObject) -> str:
        """Encode pairs, or a JSON object if the pairs could not be parsed back."""
        if not arguments:
            return pairs.none
        texts = {key: self._encode_value(value) for key, value in arguments.items()}
        ends = [pairs.following] * (len(texts) - 1) + [pairs.last]
        encoded = pairs.first + "".join(
            f"{key}{pairs.openings['string']}{text}{end.replace('{key}', key)}"
            for (key, text), end in zip(texts.items(), ends, strict=True)
        )
        closing = pairs.closing if pairs.value_close.strip() else pairs.last
        markers = (self.head.strip(), closing.strip())
        if not any(self._is_uncertain(pairs, key, value, markers) for key, value in arguments.items()):
            try:
                if pairs.build_splitter()(encoded.removesuffix(closing.strip())) == [*texts.items()]:
                    return encoded
            except FormatError:
                pass  # for example, because a key is not a word
        written = dump_json(arguments)
        for marker in markers:
            written = re.sub(re.escape(marker), _escape_first_character, written, flags=re.IGNORECASE)
        return f"{pairs.before_json}{written}{closing}"

    def _is_uncertain(self, pairs: KeyValueLayout, key: str, value: Json, markers: tuple[str, str]) -> bool:
        """Return whether the pair of ``key`` and ``value`` could be parsed back differently, in a format with the body
        ``lines``."""
        text, opening = self._encode_value(value), pairs.openings["string"]
        found = find_uncertain_text(text, key, opening, pairs.value_close, *markers)
        return bool(found) or self._is_ambiguous(pairs, key, value, markers)

    def _encode_value(self, value: Json) -> str:
        return value if isinstance(value, str) else self._encode_json(value)

    def _encode_json(self, value: Json) -> str:
        return dump_json(value, separators=(self.comma, self.colon))

    def _is_ambiguous(self, pairs: KeyValueLayout, key: str, value: Json, markers: tuple[str, ...] = ()) -> bool:
        text = self._encode_value(value)
        is_inline = isinstance(value, str) and not pairs.find_opening("string").endswith("\n")
        has_margin = is_inline and text != text.strip("\r\n")
        return reads_as_null(value) or has_margin or is_ambiguous_pair(key, text, (*self.markers, *markers), "<>\n\"'")


_TOKEN = re.compile(r"<[^<>]*>?|\s+|[^<\s]+")
_WORD = re.compile(r"<[^<>\s=\"']+[>=]?|\[+/?[^\[\]\s=\"']+\]*|[^\s<\[\"']{3,}")
_IS_MARKER = re.compile(r"^[^\w\s].*\w", re.DOTALL)


def _escape_first_character(marker: re.Match[str]) -> str:
    """Return a marker for use inside JSON, with its first character escaped."""
    first, rest = marker.group()[0], marker.group()[1:]
    return (f"\\u{ord(first):04x}" if first.isascii() else json.dumps(first)[1:-1]) + rest


def _insert_number(text: str, number: int) -> str:
    return text.replace(NUMBER, str(number)).replace(ID, f"call{number:05}")
