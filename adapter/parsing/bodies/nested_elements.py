"""Parse calls whose arguments are nested elements named after the parameters. A token precedes each tag.

::

    T<invoke name="NAME">
    T<KEY>valueT</KEY>                                      T is ``]<]minimax[>[``
    T<KEY>T<item>1T</item>T<item>2T</item>T</KEY>           a list
    T<KEY>T<INNER>valueT</INNER>T</KEY>                     an object
    T</invoke>

A tag counts only after the token, so values need no escaping. The tool's definition declares a value's type. Without a
definition, a number, true, false or null is converted. One JSON object may replace the elements.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from adapter.core.events import Json, JsonObject
from adapter.core.json.encode import dump_json
from adapter.core.json.strict import MAX_DEPTH, decode_strict
from adapter.parsing.bodies.tagged_arguments import ATTRIBUTES, add_value, encode_unescaped
from adapter.parsing.bodies.tagged_value_end import explain_uncertain_end, find_named_close
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.coercion import coerce_text, find_member_schema, list_types, select_branch
from adapter.tools.decoded_json_calls import DecodedCall
from adapter.tools.schema_refs import expand_schema

TAG_LIMIT = 300
"""Maximum length of a tag, in characters. A token without such a tag after it is part of the text."""

VALUE_LIMIT = 2_000
"""Number of characters after a call's closing tag that are searched to decide whether the tag is part of a value."""

ITEM = "item"

_TAG = re.compile(r"\s*<(/?)([^<>\s\"'/=]+)(?:\s+name\s*=\s*[\"']?([^\"'<>]+)[\"']?)?" + ATTRIBUTES + r"\s*")
_KEY = re.compile(r"[^\W\d][\w.-]*")
_RESERVED = ("invoke", "tool_call", "parameter")


@dataclass(slots=True)
class _Element:
    """An element that is still being parsed: its text or child elements so far."""

    key: str
    schema: Mapping[str, Json]
    text: list[str] = field(default_factory=list)
    has_text: bool = False
    """True if ``text`` is more than whitespace."""
    children: list[tuple[str, Json]] = field(default_factory=list)
    fixes: dict[str, None] = field(default_factory=dict)
    """The repairs of the call. Only the outermost element, which is the call, has them."""
    problem: str | None = None
    """Why the call is invalid, or None. Only the outermost element has this."""

    def add_text(self, *pieces: str) -> None:
        self.text += pieces
        self.has_text = self.has_text or any(map(str.strip, pieces))

    def open_child(self, key: str) -> _Element:
        """Return a new child element for the opening tag ``key``, with its part of the schema."""
        inner = select_branch(self.schema, "array").get("items") if key == ITEM and self.may_be_list else None
        inner = inner or find_member_schema(select_branch(self.schema, "object"), key)
        inner = expand_schema(inner)
        return _Element(key, inner if isinstance(inner, dict) else {})

    @property
    def may_hold_elements(self) -> bool:
        types = list_types(self.schema)
        return bool(types & {"array", "object"}) if types else not self.has_text

    @property
    def may_be_list(self) -> bool:
        types = list_types(self.schema)
        return "array" in types or not types

    def drop_stray_close(self) -> None:
        """If the text ends with this element's closing tag without the token, remove the closing tag."""
        text = "".join(self.text)
        bare = text.rstrip().removesuffix(f"</{self.key}>")
        self.text = [bare if bare != text.rstrip() else text]

    def build_value(self, fixes: dict[str, None]) -> Json:
        if self.children:
            if self.may_be_list and all(key == ITEM for key, _ in self.children):
                return [value for _, value in self.children]
            return self.list_members(fixes)
        text = "".join(self.text)
        types = list_types(self.schema)
        if not text.strip() and "string" not in types and types & {"array", "object"}:
            return [] if "array" in types else {}
        return coerce_text(text, self.schema, fixes) if types else _guess_value(text)

    def list_members(self, fixes: dict[str, None]) -> JsonObject:
        """Return the child elements by name. Repeated elements become a list if their type allows one."""
        members: JsonObject = {}
        for key, value in self.children:
            schema = self.open_child(key).schema
            add_value(members, key, value, dict(schema) if list_types(schema) else {"type": "array"}, fixes)
        return members


class NestedElements:
    """Parses a call after ``<invoke``. ``token`` precedes every tag. An instance is a `BodyReader`."""

    def __init__(self, token: str) -> None:
        self.token = token
        self._token = MarkerSet(token)
        self._empty_element = re.compile(rf"{re.escape(token)}\s*<[\w.-]+\s*/>")
        self._next_tag = re.compile(
            rf"(?:(?!{re.escape(token)}).){{0,{VALUE_LIMIT}}}{re.escape(token)}\s*<(/?[\w.-]+)\s*>",
            re.DOTALL | re.IGNORECASE,
        )

    def __call__(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        opening = consumed[-1]
        head: list[str] = []
        attributes = yield from source.consume_until(">", TAG_LIMIT, head)
        match = _TAG.fullmatch(f"<invoke{attributes}") if attributes is not None else None
        if match is None or not match[3]:
            source.push_back("".join(head))
            return self._cut(source, consumed) if attributes is None else TEXT
        consumed.extend(head)
        name = match[3].strip()
        if (yield from source.skip_space(consumed)) == "{":
            read_json = TaggedJson(opening, f"{self.token}</invoke>", name=name)
            return (yield from read_json(source, consumed))
        tool = source.tools.match(name)
        root = _Element(name, tool.schema if tool else {"type": "object"})
        return (yield from self._read_elements(source, consumed, root))

    def _read_elements(self, source: StreamBuffer, consumed: list[str], root: _Element) -> Reader[BodyResult]:
        nested, fixes, inner_calls, begun_calls = [root], root.fixes, 0, 0
        while True:
            text: list[str] = []
            token = yield from source.read_until(self._token, text)
            consumed.extend(text)
            nested[-1].add_text(*text)
            if not token:
                return CUT
            taken: list[str] = []
            tag = yield from source.consume_until(">", TAG_LIMIT, taken)
            match = _TAG.fullmatch(tag) if tag is not None else None
            if match is None:
                source.push_back("".join(taken))
                consumed.append(token)
                if tag is None and (cut := self._cut(source, consumed)).error:
                    return cut
                nested[-1].add_text(token)  # a stray token
                continue
            closes, word, key = match[1], match[2], (match[3] or match[2]).strip()
            ends_call = word in ("invoke", "tool_call")
            if closes and not ends_call:
                begun_calls = 0  # no parameter follows: the call is only mentioned
            open_calls = inner_calls + begun_calls
            is_in_text = (ends_call or open_calls > 0) and len(nested) > 1 and not nested[-1].may_hold_elements
            is_data = is_in_text and (open_calls > 0 or not closes)
            if is_in_text and ends_call and not closes:
                begun_calls += 1
            elif is_in_text:
                inner_calls, begun_calls = max(0, open_calls - ends_call), 0
            if is_data or (
                ends_call and len(nested) > 1 and (yield from self._continues(source, nested[-1].key, word))
            ):
                consumed.extend([token, *taken])
                nested[-1].add_text(token, *taken)  # the value continues, so this tag is data
                continue
            if ends_call:
                if closes and word == "invoke":
                    consumed.extend([token, *taken])
                else:
                    source.push_back(token + "".join(taken))
                    fixes["missing-close-tag"] = None
                while len(nested) > 1:
                    fixes["missing-inner-tag"] = None
                    if self.token in "".join(nested[-1].text):
                        root.problem = explain_uncertain_end(root.key, nested[-1].key, f"{self.token}</{word}>")
                    nested[-1].drop_stray_close()
                    _close(nested)
                if "<" in (loose := self._empty_element.sub("", "".join(root.text))):
                    root.problem = f"the call of {root.key!r} has a damaged tag: {loose.strip()[:60]!r}"
                if root.problem is not None:
                    return BodyResult(error=root.problem)
                return BodyResult((DecodedCall(root.key, root.list_members(fixes)),), tuple(fixes))
            consumed.extend([token, *taken])
            if not closes and len(nested) > MAX_DEPTH:
                return BodyResult(error=f"the arguments of {root.key!r} are nested more than {MAX_DEPTH} levels deep")
            if not closes:
                if len(nested) > 1 and not nested[-1].may_hold_elements:
                    fixes["missing-inner-tag"] = None
                    _close(nested)
                nested.append(nested[-1].open_child(key))
            elif word == "parameter" and len(nested) > 1:
                _close(nested)
            elif word in [element.key for element in nested[1:]]:
                while _close(nested) != word:
                    fixes["missing-inner-tag"] = None
            else:
                fixes["text-in-tag"] = None
                if nested[-1].has_text:
                    root.problem = f"{key!r} of {root.key!r} is closed but not opened"

    def _continues(self, source: StreamBuffer, key: str, word: str) -> Reader[bool]:
        """Return whether the closing tag ``word`` that was just consumed is part of a value. If so, the element ``key``
        or the call is closed again after it. Nothing is consumed."""
        match = yield from source.peek_match(self._next_tag, VALUE_LIMIT + TAG_LIMIT + 1, lambda _: True)
        if match is not None and match[1] == "/tool_call" and word == "invoke":
            source.position += match.end()
            continues = yield from self._continues(source, key, match[1])
            source.push_back(match.group())
            return continues
        return match is not None and match[1] in (f"/{key}", "/invoke", "/tool_call")

    def _cut(self, source: StreamBuffer, consumed: list[str]) -> BodyResult:
        """If the text ends within a tag, consume the rest and return an error. Otherwise, return `TEXT`, because no tag
        follows the token."""
        rest = source.text[source.position :]
        if not source.final or len(rest) >= TAG_LIMIT or "\n" in rest or ">" in rest:
            return TEXT
        consumed.append(source.consume_rest())
        return CUT


def _close(nested: list[_Element]) -> str:
    element = nested.pop()
    if not element.children and (close := find_named_close("".join(element.text), element.key, ())):
        nested[0].problem = explain_uncertain_end(nested[0].key, element.key, close)
    nested[-1].children.append((element.key, element.build_value(nested[0].fixes)))
    return element.key


def _guess_value(text: str) -> Json:
    """Convert text without a declared type: a number, true, false or null becomes that value."""
    bare = text.strip()
    decoded = decode_strict(bare) if bare[:1] not in ("", '"', "{", "[") else None
    return decoded.value if decoded is not None and decoded.end == len(bare) else text


def encode_call(token: str, name: str, arguments: JsonObject) -> str:
    """Encode a call as elements, or with one JSON object in ``<invoke>`` if the elements would be parsed back
    differently."""
    try:
        body = "".join(_encode(token, key, value, at_top=True) for key, value in arguments.items())
    except ValueError:
        body = dump_json(arguments)
    return f'{token}<invoke name="{name}">{body}{token}</invoke>'


def _encode(token: str, key: str, value: Json, *, at_top: bool = False) -> str:
    """Encode one element. Raises ValueError if it would be parsed back differently."""
    if not _KEY.fullmatch(key) or key in _RESERVED or len(f"</{key}>") > TAG_LIMIT:
        raise ValueError(f"the key {key!r} cannot be the name of a tag")
    if isinstance(value, dict | list):
        is_list_like = isinstance(value, dict) and value and all(inner == ITEM for inner in value)
        if is_list_like or (not value and not at_top):
            raise ValueError("an object cannot be distinguished from a list without the schema")
        members = value.items() if isinstance(value, dict) else ((ITEM, item) for item in value)
        body = "".join(_encode(token, inner, item) for inner, item in members)
    else:
        body = encode_unescaped(value)
        is_word_for_null = isinstance(value, str) and body.strip() in ("null", "None")
        if token.lower() in body.lower() or is_word_for_null or find_named_close(body, key, ()):
            raise ValueError("the text would be parsed as another value")
        if not at_top and json.dumps(_guess_value(body)) != json.dumps(value):
            raise ValueError("the type of the value cannot be recovered without the schema")
    return f"{token}<{key}>{body}{token}</{key}>"
