"""Reads calls written as JSON that nothing closes: they end where their brackets balance."""

from __future__ import annotations

import re

from adapter.core.errors import FormatError
from adapter.core.events import Json
from adapter.core.json.decode import decode_json
from adapter.core.json.strict import DecodedJson as Value
from adapter.core.json.strict import decode_strict
from adapter.parsing.fallback_readers import MAX_GIVEN_BACK
from adapter.parsing.format import CUT_OFF, TEXT, BodyResult, ReadContext
from adapter.parsing.json_scanner import (
    BRACKETS,
    MAX_ATTEMPTS,
    QUOTES,
    call_from_arguments,
    calls_from_json,
    scan_json_value,
)
from adapter.parsing.marker_set import markers_for
from adapter.parsing.stream_buffer import SPACE, Reader, StreamBuffer, skip_space, take_until
from adapter.tools.call_shapes import ABOUT_KEYS, ARGUMENT_KEYS, NAME_KEYS, NESTING_KEYS, looks_like_call

MAX_OPENING = 3
"""Brackets before the first key of a call; the deepest shape has two."""

CALL_KEYS = frozenset(
    (*NAME_KEYS, *ARGUMENT_KEYS, *NESTING_KEYS, "tool_calls", "type", "id", "thought", "content", "role")
)
"""Keys that a call may begin with; xLAM puts a thought before the list, OpenAI's messages have their text."""

_KEY_QUOTES = {'"': '"', "'": "'", "“": "”"}


class UntaggedJson:
    """Reads JSON calls where they begin. An instance is a `BodyReader`.

    ``after_marker``: an opening marker came before, so that what cannot be read is
    an error and not ordinary text. ``name``: what is called, where the text before
    says it; the JSON is then the arguments alone. ``ends``: markers that cannot stand
    in a value outside of strings, so that missing brackets are missing before them.
    """

    def __init__(
        self, arguments_key: str, *, after_marker: bool, name: str | None = None, ends: tuple[str, ...] = ()
    ) -> None:
        self.arguments_key, self.after_marker, self.name = arguments_key, after_marker, name
        self._tokens = markers_for(*QUOTES, *BRACKETS, *ends)
        self._ends = markers_for(*ends) if ends else None

    def __call__(self, source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        char = yield from skip_space(source, span)
        if char not in ("{", "[") or not (self.after_marker or (yield from self._begins_call(source, context))):
            return TEXT
        if self.after_marker:
            context.begin_json(source.offset, self.name, self.arguments_key)
        offset = sum(map(len, span))
        values, error = yield from self._take_values(source, span, context)
        if not values and not self.after_marker and source.final and _names_tool("".join(span), context):
            return BodyResult(error=CUT_OFF)
        if not values or (not self.after_marker and not all(self._is_call(value, context) for value in values)):
            return BodyResult(error=error or CUT_OFF) if self.after_marker else TEXT
        try:
            if self.name is not None:
                return call_from_arguments(self.name, values, offset)
            return calls_from_json(values, self.arguments_key, context, offset)
        except FormatError as fault:
            return BodyResult(error=f"the call cannot be read: {fault}") if self.after_marker else TEXT

    def _take_values(
        self, source: StreamBuffer, span: list[str], context: ReadContext
    ) -> Reader[tuple[list[Value], str | None]]:
        """One value, and more after semicolons or commas; those before the first that cannot be read.

        Also why that one cannot, None when it is only cut off.
        """
        values: list[Value] = []
        start = attempts = 0
        piece: list[str] = []
        while attempts < MAX_ATTEMPTS:
            value = None if piece else _take_at_once(source, piece)
            if value is None:
                bracket = yield from scan_json_value(source, piece, self._tokens)
                if bracket not in BRACKETS:
                    self._unread_end(source, bracket, piece)
                ended = bracket not in BRACKETS and not source.is_empty
                text = "".join(piece)
                if not bracket and (source.was_cut or _lacks_only_brackets(text)):
                    break  # cut off: no other reading of its quotes is to be tried
                try:
                    value = decode_json(text, closed=ended)
                    if bracket not in BRACKETS and text[value.end :].strip():
                        break
                except FormatError as error:
                    if ended:
                        span.extend(piece)
                        return values, f"the call cannot be read: {error}"
                    if not bracket:
                        break
                    attempts += 1  # stray quotes: the brackets may balance again further on
                    continue
                if bracket in BRACKETS and context.reread_characters <= MAX_GIVEN_BACK:
                    context.reread_characters += _give_back_next(source, piece, value.end)
            values.append(Value(value.value, start + value.end, value.fixes))
            gap: list[str] = []
            char = yield from skip_space(source, gap)
            if char and char in ";," and self.name is None:
                gap.append(char)
                source.position += 1
                char = yield from skip_space(source, gap)
            span.extend(piece)
            if char != "{" or self.name is not None:
                source.push_back("".join(gap))
                return values, None
            span.extend(gap)
            start += sum(map(len, (*piece, *gap)))
            piece = []
        span.extend(piece)
        return values, None

    def _unread_end(self, source: StreamBuffer, marker: str, piece: list[str]) -> None:
        """Give back the marker that ended a value, also one that a stray quote hid from the count of brackets."""
        source.push_back(marker)
        text = "".join(piece)
        found = None if marker or self._ends is None else self._ends.search(text, 0)
        if found is None:
            return
        try:
            decode_json(text[: found[0]], closed=False)
        except FormatError:
            return  # it stands in a string that was cut off
        piece[:] = [text[: found[0]]]
        source.push_back(text[found[0] :])

    def _begins_call(self, source: StreamBuffer, context: ReadContext) -> Reader[bool]:
        """Whether the first key is one that a call may begin with: else it is an answer, and may be shown at once."""
        ahead: list[str] = []
        brackets = 0
        while (char := (yield from skip_space(source, ahead))) and char in "{[" and brackets < MAX_OPENING:
            brackets += 1
            ahead.append(char)
            source.position += 1
        key = None
        if char in _KEY_QUOTES:
            ahead.append(char)
            source.position += 1
            key = yield from take_until(source, _KEY_QUOTES[char], 64, ahead)
        source.push_back("".join(ahead))
        return key is not None and (key in CALL_KEYS or key in context.tools)

    def _is_call(self, value: Value, context: ReadContext) -> bool:
        items = value.value if isinstance(value.value, list) else [value.value]
        return bool(items) and all(
            looks_like_call(item) or _is_known_call(item, context) or _is_flat_call(item, context) for item in items
        )


def _take_at_once(source: StreamBuffer, span: list[str]) -> Value | None:
    """The usual case: a valid list or object, all of which is there. None, with nothing taken, otherwise."""
    value = decode_strict(source.text, source.position)
    if value is None:
        return None
    start, source.position = source.position, value.end
    span.append(source.text[start : value.end])
    return Value(value.value, value.end - start, value.fixes)


def _give_back_next(source: StreamBuffer, piece: list[str], end: int) -> int:
    """Give back what a stray quote had taken behind the value, which ends at ``end``, and its brackets: how much."""
    text = "".join(piece)
    rest = text[end:].lstrip(_AFTER_VALUE)
    if rest:
        piece[:] = [text[: len(text) - len(rest)]]
        source.push_back(rest)
    return len(rest)


_AFTER_VALUE = f"}}]{SPACE}"
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}"]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


def _lacks_only_brackets(text: str) -> bool:
    """Whether ``text`` is valid JSON but for closing brackets at its end."""
    missing: list[str] = []
    for token in _STRING_OR_BRACKET.findall(text):
        if token in _CLOSING:
            missing.append(_CLOSING[token])
        elif token == '"' or (token in _CLOSING.values() and (not missing or missing.pop() != token)):
            return False
    return bool(missing) and decode_strict(text + "".join(reversed(missing))) is not None


_NAME = re.compile(r'[\[\s]*\{\s*"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]{1,200})"\s*,')


def _names_tool(text: str, context: ReadContext) -> bool:
    """Whether ``text``, which ends too early, had begun to call a tool of this session."""
    named = _NAME.match(text)
    return named is not None and context.tools.match(named.group(1)) is not None


def _is_known_call(item: Json, context: ReadContext) -> bool:
    return isinstance(item, dict) and len(item) == 1 and next(iter(item)) in context.tools


def _is_flat_call(item: Json, context: ReadContext) -> bool:
    """Whether ``item`` names a tool of the session and has arguments of it beside the name, all that are required."""
    if not isinstance(item, dict):
        return False
    key = next((key for key in NAME_KEYS if isinstance(item.get(key), str)), None)
    tool = context.tools.get(item[key].strip()) if key else None
    if tool is None or key in tool.properties:
        return False
    arguments = item.keys() - {key, *ABOUT_KEYS}
    return bool(arguments) and arguments <= tool.properties.keys() and arguments >= {*tool.required}
