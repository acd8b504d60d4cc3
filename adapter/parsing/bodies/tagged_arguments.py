"""Collect the arguments of a call that writes each argument in its own tags. A value may be a CDATA section, and an
argument may be repeated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from adapter.core.events import Json, JsonObject
from adapter.core.json.encode import dump_json
from adapter.core.json.strict import add_member
from adapter.parsing.bodies.tagged_value_end import (
    MayBegin,
    RawValue,
    explain_uncertain_end,
    find_joined_close,
    find_named_close,
    find_unpaired_tag,
    remove_repeated_close,
)
from adapter.parsing.format import CUT, CUT_OFF, BodyResult
from adapter.parsing.stream_buffer import Reader, StreamBuffer
from adapter.tools.argument_synonyms import CONTENT
from adapter.tools.coercion import coerce_text, list_types
from adapter.tools.decoded_json_calls import DecodedCall
from adapter.tools.tool import Tool
from adapter.tools.unbracketed_arguments import parse_plain_arguments

ATTRIBUTES = r"(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'))*"
"""Pattern for attributes that may follow a parameter's name in its tag. They are ignored."""

_CDATA = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)

_CDATA_START = re.compile(r"\s*\W{1,6}CDATA\b")
_FILE_TEXT = frozenset(CONTENT) - {"data"}  # `data` may be of any type
_SEPARATORS = frozenset('="')
_ODD_KEY = _SEPARATORS | frozenset("' \t<")
"""Characters that show that a key also contains a value or a tag, unless the tool declares a parameter with them."""


class BodyError(Exception):
    """Raised to stop the parsing of a call that is invalid or, by default, cut off. ``result`` is the result to
    return."""

    def __init__(self, error: str = CUT_OFF, *, result: BodyResult | None = None) -> None:
        super().__init__(error)
        self.result = result or BodyResult(error=error)


def read_value(
    end: RawValue, source: StreamBuffer, consumed: list[str], may_begin: MayBegin
) -> Reader[tuple[str, str]]:
    """Consume an unescaped value and its closing tag, and return both. If another tag ends the value, that tag is not
    consumed, and the closing tag is "". Raises BodyError if the text ends first. For ``may_begin``, see `RawValue`."""
    value: list[str] = []
    closing = yield from end.consume(source, value, may_begin)
    text = "".join(value)
    consumed.append(text)
    if closing is None:
        raise BodyError
    consumed.append(closing)
    return text, closing


@dataclass(slots=True)
class PendingCall:
    """A call whose arguments are still being parsed."""

    name: str
    tool: Tool | None
    arguments: JsonObject = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    """Keys of the arguments so far, including the argument that is being parsed."""
    fixes: dict[str, None] = field(default_factory=dict)
    problem: str | None = None
    """Why the call is invalid, although it can be parsed to its end, or None."""
    loose_text: str = ""
    """Text between the parameters, outside tags."""

    def has_parameter(self, key: str) -> bool:
        """Return whether the tool is known and declares ``key``."""
        return self.tool is not None and key in self.tool.properties

    def expects(self, key: str) -> bool:
        """Return whether ``key`` is a parameter of the tool that has no argument yet."""
        return key not in self.keys and self.has_parameter(key)

    def find_schema(self, key: str) -> JsonObject | None:
        """Return a declared parameter's schema. File content without a declared type is a string."""
        schema = self.tool.properties.get(key) if self.tool else None
        is_text = schema is not None and key in _FILE_TEXT and not list_types(schema)
        return {"type": "string"} if is_text else schema

    def fix(self, *names: str) -> None:
        self.fixes.update(dict.fromkeys(names))

    def add_text(self, key: str, text: str, schema: JsonObject | None = None) -> None:
        """Add an argument written as ``text``. ``schema`` gives the type if the tool does not declare the parameter."""
        self.keys.add(key)
        self.check_cdata(key, text)
        add_text(self.arguments, key, text, self.find_schema(key) or schema, self.fixes)

    def add_value(self, key: str, value: Json) -> None:
        add_value(self.arguments, key, value, self.find_schema(key), self.fixes)

    def check_cdata(self, key: str, text: str) -> None:
        """Reject the call if ``text`` is a CDATA section whose start or end is damaged."""
        if _CDATA_START.match(text) and not _CDATA.fullmatch(text):
            section = f"the CDATA section of {key!r} in the call of {self.name!r}"
            self.problem = f"{section} is damaged: expected <![CDATA[...]]>"

    def check_end(
        self, key: str, text: str, opens: Sequence[str], closes: Sequence[str], calls: Sequence[str] = ()
    ) -> str:
        """Return the value ``text``. If it is not a string, remove a repeated closing tag.

        Reject the call if the end of the value is uncertain: it seems to be opened or closed twice, or to contain
        another argument or call. ``opens`` and ``closes`` are the tags around a value, ``calls`` the opening tags of a
        call.
        """
        if "</" in text:
            types = list_types(self.find_schema(key) or {})
            if types and "string" not in types and (bare := remove_repeated_close(text, key, closes)) != text:
                self.fix("misspelt-inner-tag")
                return bare
        found = find_unpaired_tag(text, opens, closes, calls) or find_named_close(text, key, closes)
        if found := found or find_joined_close(text, closes):
            self.problem = explain_uncertain_end(self.name, key, found)
        return text

    def check_unclosed(self, key: str, text: str, closes: Sequence[str]) -> None:
        """Reject the call if ``text``, a value without its closing tag, contains a tag that may end it."""
        lowered = text.lower()
        if found := next((tag for tag in closes if tag.lower() in lowered), ""):
            self.problem = explain_uncertain_end(self.name, key, found)

    def check_name(self, key: str, expected: str) -> None:
        """Reject the call if ``key`` is not declared and contains characters that separate a name from a value.
        ``expected`` describes a valid name in the error. A tool that allows undeclared arguments accepts any name."""
        is_free = self.has_parameter(key) or (self.tool is not None and self.tool.schema.get("additionalProperties"))
        if not is_free and not (_ODD_KEY if self.tool else _SEPARATORS).isdisjoint(key):
            self.problem = f"a parameter of {self.name!r} has no name but {key!r}: expected {expected}"

    def add_loose_text(self, text: str) -> None:
        self.fix("text-in-tag")
        self.loose_text += text

    def find_loose_parameter(self) -> str:
        """Return the parameter that text outside tags must belong to: the only one that is missing, if it is a string.
        Otherwise, return ""."""
        missing = self._list_missing()
        if self.tool is not None and not self.tool.required and not self.arguments:
            missing = list(self.tool.properties)
        return missing[0] if len(missing) == 1 and "string" in list_types(self.find_schema(missing[0]) or {}) else ""

    def _list_missing(self) -> list[str]:
        return [key for key in self.tool.required if key not in self.arguments] if self.tool else []

    def _place_loose_text(self) -> None:
        text = self.loose_text.strip().removesuffix(f"</{self.name}>").rstrip()
        plain = parse_plain_arguments(text, self.tool) if text and self.tool and not self.arguments else None
        if plain and plain[1] == "plain-arguments":
            self.arguments |= plain[0]
            self.fix(plain[1])
        elif text and (key := self.find_loose_parameter()):
            if re.match(rf"{re.escape(self.name)}\s*\(|{re.escape(key)}\s*[:=]", text, re.IGNORECASE):
                self.problem = f"the text in the call of {self.name!r} is not in tags: {text[:60]!r}"
            self.add_text(key, text)
        elif text and (missing := self._list_missing()):
            names = ", ".join(missing)
            self.problem = (
                f"the call of {self.name!r} has text outside of its parameters, but no {names}: {text[:60]!r}"
            )

    def build_unclosed_result(self, source: StreamBuffer, *, has_begun_to_close: bool = False) -> BodyResult:
        """Return the result for an answer that ends after a parameter, without the call's closing tags.

        It is a call if the server reported a regular end and all parameters have values. If the text ends within a
        closing tag (``has_begun_to_close``), the required parameters suffice.
        """
        is_regular = source.finish_reason is not None and not source.was_cut
        if self.tool is None or not is_regular or self._list_missing():
            return CUT
        has_begun_to_close &= bool(self.arguments)  # without arguments, it may be the first one's tag
        is_whole = has_begun_to_close or self.arguments.keys() >= self.tool.properties.keys()
        return self.build_result("missing-close-tag") if is_whole else CUT

    def build_result(self, *fixes: str) -> BodyResult:
        if self.problem is None:
            self._place_loose_text()
        if self.problem is not None:
            return BodyResult(error=self.problem)
        return BodyResult((DecodedCall(self.name, self.arguments),), (*self.fixes, *fixes))


def unwrap_cdata(text: str, fixes: dict[str, None]) -> str:
    """Return the content of a CDATA section, and add the repair to ``fixes``. Return any other ``text`` unchanged."""
    data = _CDATA.fullmatch(text)
    if data is None:
        return text
    fixes["cdata"] = None
    return data[1]


def add_text(arguments: JsonObject, key: str, text: str, schema: JsonObject | None, fixes: dict[str, None]) -> None:
    """Add the value written as ``text``, converted to the type in ``schema``, to ``arguments``. Repairs are added to
    ``fixes``."""
    add_value(arguments, key, coerce_text(unwrap_cdata(text, fixes), schema, fixes), schema, fixes)


def add_value(arguments: JsonObject, key: str, value: Json, schema: JsonObject | None, fixes: dict[str, None]) -> None:
    """Add ``value`` to ``arguments``. If an argument is repeated, a list gets all values, and any other type becomes
    `RepeatedValues`."""
    if key in arguments and schema and "array" in list_types(schema):
        value = [*_list_items(arguments.pop(key)), *_list_items(value)]
        fixes["repeated-argument"] = None
    if add_member(arguments, key, value):
        fixes["repeated-argument"] = None


def _list_items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


# --------------------------------------------------------------- encoding


def encode_unescaped(value: Json) -> str:
    """Return a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else dump_json(value)


def is_ambiguous_pair(key: str, text: str, tags: Iterable[str], forbidden: str) -> bool:
    """Return whether the pair of ``key`` and the value ``text``, encoded in tags, would be parsed back differently.

    This is the case if ``text`` contains one of ``tags``, begins a CDATA section or ends in ``</KEY>``, or if ``key``
    contains a ``forbidden`` character.
    """
    lowered = text.lower()
    is_plain_key = key != "" and key == key.strip() and not any(char in key for char in forbidden)
    has_tag = any(tag.lower() in lowered for tag in tags) or find_named_close(text, key, ()) != ""
    return not is_plain_key or has_tag or _CDATA_START.match(text) is not None


def reads_as_null(value: Json) -> bool:
    """Return whether ``value`` is a word that is parsed as null if the parameter is nullable."""
    return isinstance(value, str) and value.strip().lower() in ("null", "none")
