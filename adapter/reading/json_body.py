"""Reads calls written as JSON, between markers or without any.

While scanning, quotes are followed, so that a closing marker inside a string
does not close (a file that contains ``</tool_call>`` can be written). A stray
quote would then hide every marker: when the text ends that way, the reader
falls back to the first marker at which the body can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from adapter.reading.format import CUT_OFF, TEXT, BodyReader, Context, Reading
from adapter.reading.markers import Markers, markers_for
from adapter.reading.source import Reader, Sink, Source, collect, skip_space, take_cut_marker, take_marker, take_until
from adapter.tools.shapes import (
    ABOUT_KEYS,
    ARGUMENT_KEYS,
    NAME_KEYS,
    NESTING_KEYS,
    Decoded,
    as_object,
    calls_in,
    looks_like_call,
)
from adapter.values.decoding import decode_json, decode_values
from adapter.values.errors import FormatError
from adapter.values.events import Json
from adapter.values.strict_json import Decoded as Value
from adapter.values.strict_json import UnterminatedError, decode_strict

MAX_ATTEMPTS = 8
"""Readings tried on one malformed body: each costs its length, so their number is bounded."""

MAX_OPENING = 3
"""Brackets before the first key of a call; the deepest shape has two."""

_QUOTES = ('"', "'")
_BRACKETS = {"{": 1, "[": 1, "}": -1, "]": -1}
_STRING_END = {quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+", re.DOTALL) for quote in _QUOTES}
_MATTERS = {quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+[{quote}\\]", re.DOTALL) for quote in _QUOTES}
_SPACE = re.compile(r"\s*")
_BESIDE = ",;}]`"  # what models put after a value, still inside the tag
_MISSPELT_CLOSE = re.compile(r"<[/|\\]{0,2}[a-z_ |]*(?:tool|call)[a-z_ |]*>", re.IGNORECASE | re.ASCII)
_KEY_QUOTES = {'"': '"', "'": "'", "“": "”"}
_VALUE_TOKENS = Markers(*_QUOTES, *_BRACKETS)


def skip_string(source: Source, span: list[str], quote: str) -> Reader[None]:
    """Take the rest of a JSON string, with its closing quote, into ``span``; all that is left if it never closes."""
    pattern = _STRING_END[quote]
    sink = Sink(span, _MATTERS[quote])
    while True:
        if sink.matters.match(source.text, source.position) is None and not source.final:
            sink.take(source.rest())
            yield from sink.wait(source)
            continue
        found = pattern.match(source.text, source.position)
        end = found.end() if found is not None else source.position
        closes = source.text.startswith(quote, end)
        span.append(source.text[source.position : end + closes])
        source.position = end + closes  # a backslash at the very end waits for its character
        if closes:
            return
        if source.final:
            span.append(source.rest())
            return
        yield from sink.wait(source)


def _take_at_once(source: Source, span: list[str]) -> Value | None:
    """The usual case: a valid list or object, all of which is there. None, with nothing taken, otherwise."""
    value = decode_strict(source.text, source.position)
    if value is None:
        return None
    start, source.position = source.position, value.end
    span.append(source.text[start : value.end])
    return replace(value, end=value.end - start)


def take_value(source: Source, span: list[str], tokens: Markers) -> Reader[str]:
    """Take text into ``span`` until brackets balance. Returns the bracket that did it.

    Another marker that stands outside strings ends it too: it is returned, taken but not in ``span``. "" at the end.
    """
    depth = 0
    while True:
        marker = yield from collect(source, tokens, span)
        if marker in _QUOTES:
            span.append(marker)
            yield from skip_string(source, span, marker)
            continue
        step = _BRACKETS.get(marker)
        if step is None:
            return marker
        span.append(marker)
        depth = max(0, depth + step)
        if depth == 0 and step < 0:
            return marker


class TaggedJson:
    """Reads ``JSON<close>`` after its opening marker has been taken. An instance is a `BodyReader`.

    ``arguments_key``: where this format puts the arguments. ``name``: what is called, where
    the marker says it; the JSON is then the arguments alone. ``may_list``: the format has
    several calls between one pair of markers. ``reshape``: puts a value in which the format
    has a shape of its own into the common one.
    """

    def __init__(
        self,
        opening: str,
        closing: str,
        arguments_key: str = "arguments",
        name: str | None = None,
        *,
        may_list: bool = False,
        reshape: Callable[[Json], Json] | None = None,
    ) -> None:
        self.opening, self.closing, self.arguments_key, self.name = opening, closing, arguments_key, name
        self.may_list, self._reshape = may_list, reshape
        self._ends = markers_for(opening, closing)
        self._tokens = markers_for(opening, closing, *_QUOTES, *_BRACKETS)

    def __call__(self, source: Source, span: list[str], context: Context) -> Reader[Reading]:
        at_once = self._read_at_once(source, span, context)
        if at_once is not None:
            return at_once
        if self._reshape is None:
            context.begin_json(source.offset, self.name, self.arguments_key)
        return (yield from self._read_in_pieces(source, span, context))

    def _read_at_once(self, source: Source, span: list[str], context: Context) -> Reading | None:
        """The usual case, when all of it is there: one valid value and then the closing marker."""
        value = decode_strict(source.text, source.position, before=self.closing)
        if value is None:
            return None
        end = _SPACE.match(source.text, value.end).end()  # type: ignore[union-attr]
        if not source.text.startswith(self.closing, end):
            return None
        span.append(source.text[source.position : end + len(self.closing)])
        source.position = end + len(self.closing)
        return self._reading([value], context)

    def _read_in_pieces(self, source: Source, span: list[str], context: Context) -> Reader[Reading]:
        start = len(span)
        if not context.plain:
            complete, marker = yield from self._take_values(source, span)
            if complete or marker:
                reading = self._decode(span, start, complete or self._is_close(marker), context)
                if self._swallows_a_call(span, start, reading):
                    source.unread(marker)
                    return self._fall_back(source, span, start, context)
                if complete or not reading.unfinished or not self._is_close(marker):
                    return self._ended_by(marker, reading, source, span)
                span.append(marker)
        for _ in range(MAX_ATTEMPTS):
            marker = yield from collect(source, self._ends, span)
            if not marker:
                break
            reading = self._decode(span, start, self._is_close(marker), context)
            if self._swallows_a_call(span, start, reading):
                source.unread(marker)
                break
            if reading.error is None or (self._is_close(marker) and not reading.unfinished):
                return self._ended_by(marker, reading, source, span)
            span.append(marker)
        return self._fall_back(source, span, start, context)

    def _take_values(self, source: Source, span: list[str]) -> Reader[tuple[bool, str]]:
        """Take values, following quotes: whether they are complete and valid, and the marker that ended them.

        (False, "") means that stray quotes or brackets deceived the count, or that the text ended.
        """
        while True:
            start = len(span)
            marker = yield from take_value(source, span, self._tokens)
            if marker not in _BRACKETS:
                return False, marker
            if decode_strict("".join(span[start:])) is None:
                return False, ""
            after = yield from self._after_value(source, span)
            if after is not None:
                return True, after

    def _after_value(self, source: Source, span: list[str]) -> Reader[str | None]:
        """After a valid value: the marker that ends the call, "" if it ends without, None if a value follows."""
        while True:
            char = yield from skip_space(source, span)
            if char and char in "{[":
                return None
            if char == self.closing[0] and char in _BESIDE:
                marker = yield from take_marker(source, self._ends)
                take_cut_marker(source, self.closing.lower(), span)
                if marker or source.is_empty:
                    return marker
            if not char or char not in _BESIDE:
                break
            span.append(char)
            source.position += 1
        marker = yield from take_marker(source, self._ends)
        if marker or char != self.closing[0]:
            return marker
        take_cut_marker(source, self.closing.lower(), span)
        if source.is_empty:
            return ""
        misspelt: list[str] = []
        yield from take_until(source, self.closing[-1], 24, misspelt)
        if misspelt and _MISSPELT_CLOSE.fullmatch(misspelt[0]):
            return misspelt[0]
        source.unread("".join(misspelt))
        return ""

    def _swallows_a_call(self, span: Sequence[str], start: int, reading: Reading) -> bool:
        """Whether a string that a stray quote left open goes on over this call's end and the beginning of another."""
        if not reading.calls or "unescaped-quote" not in reading.fixes:
            return False
        after_close = "".join(span[start:]).lower().split(self.closing.lower())[1:]
        return any(text.lstrip().startswith(self.opening.lower()) for text in after_close)

    def _is_close(self, marker: str) -> bool:
        return marker.lower() == self.closing.lower()

    def _ended_by(self, marker: str, reading: Reading, source: Source, span: list[str]) -> Reading:
        """``reading`` with what the end of the body says: closed, closed oddly, or not at all."""
        if self._is_close(marker):
            span.append(marker)
            return reading
        if marker and not self._ends.match(marker, 0):
            span.append(marker)
            return reading.adding("misspelt-close-tag")
        if marker:
            source.unread(marker)
        elif source.was_cut and source.is_empty:
            return Reading(error=CUT_OFF)
        return reading.adding("missing-close-tag")

    def _fall_back(self, source: Source, span: list[str], start: int, context: Context) -> Reading:
        """No end was found while following quotes: take the first marker at which the body can be read."""
        body = "".join(span[start:])
        end = 0
        for _ in range(MAX_ATTEMPTS):
            found = self._ends.search(body, end)
            if found is None:
                break
            end = found.end()
            reading = self._decode([body[: found.start()]], 0, False, context)  # no brackets are added on a guess
            if self._is_close(found.group()) and reading.error is None:
                context.plain = True
                span[start:] = [body[:end]]
                source.unread(body[end:])
                return reading
        if source.final and source.is_empty:
            return Reading(error=CUT_OFF)
        return self._decode(span, start, True, context)

    def _decode(self, span: list[str], start: int, closed: bool, context: Context) -> Reading:
        try:
            values, fixes = decode_values("".join(span[start:]), closed=closed)
        except FormatError as error:
            return Reading(error=self._explain(error), unfinished=isinstance(error, UnterminatedError))
        return self._reading(values, context, sum(map(len, span[:start]))).adding(*fixes)

    def _reading(self, values: Sequence[Value], context: Context, offset: int = 0) -> Reading:
        try:
            if self.name is not None:
                return _read_arguments(self.name, values, offset)
            if self._reshape is not None:
                values = [replace(value, value=self._reshape(value.value)) for value in values]
            reading = read_values(values, self.arguments_key, context, offset)
        except FormatError as error:
            return Reading(error=self._explain(error))
        return reading.adding("several-in-one-tag") if len(reading.calls) > 1 and not self.may_list else reading

    def _explain(self, error: FormatError) -> str:
        shape = f'{{"name": "TOOL", "{self.arguments_key}": {{...}}}}' if self.name is None else '{"ARGUMENT": ...}'
        return f"the text in {self.opening} is not a call: {error}. Write exactly one JSON object there: {shape}"


def only_json(read: BodyReader) -> BodyReader:
    """Reads where JSON follows; else the marker before it is a word in prose."""

    def read_json(source: Source, span: list[str], context: Context) -> Reader[Reading]:
        char = yield from skip_space(source, span)
        if not char:
            return Reading(error=CUT_OFF) if context.at_line_start else TEXT
        return (yield from read(source, span, context)) if char in "{[" else TEXT

    return read_json


def _read_arguments(name: str, values: Sequence[Value], offset: int) -> Reading:
    if len(values) != 1:
        raise FormatError(f"expected one JSON object with the arguments, got {len(values)}")
    arguments, fixes = as_object(values[0].value)
    return Reading((Decoded(name, arguments, end=offset + values[0].end),), (*values[0].fixes, *fixes))


class UntaggedJson:
    """Reads JSON calls that nothing closes: they end where their brackets balance.

    ``after_marker``: an opening marker came before, so that what cannot be read is
    an error and not ordinary text. ``name``: what is called, where the text before
    says it; the JSON is then the arguments alone. ``ends``: markers that cannot stand
    in a value outside of strings, so that missing brackets are missing before them.
    """

    def __init__(
        self, arguments_key: str, *, after_marker: bool, name: str | None = None, ends: tuple[str, ...] = ()
    ) -> None:
        self.arguments_key, self.after_marker, self.name = arguments_key, after_marker, name
        self._tokens = markers_for(*_QUOTES, *_BRACKETS, *ends)
        self._ends = markers_for(*ends) if ends else None

    def __call__(self, source: Source, span: list[str], context: Context) -> Reader[Reading]:
        char = yield from skip_space(source, span)
        if char not in ("{", "[") or not (self.after_marker or (yield from self._begins_call(source, context))):
            return TEXT
        if self.after_marker:
            context.begin_json(source.offset, self.name, self.arguments_key)
        offset = sum(map(len, span))
        values, error = yield from self._take_values(source, span)
        if not values and not self.after_marker and source.final and _names_tool("".join(span), context):
            return Reading(error=CUT_OFF)
        if not values or (not self.after_marker and not all(self._is_call(value, context) for value in values)):
            return Reading(error=error or CUT_OFF) if self.after_marker else TEXT
        try:
            if self.name is not None:
                return _read_arguments(self.name, values, offset)
            return read_values(values, self.arguments_key, context, offset)
        except FormatError as fault:
            return Reading(error=f"the call cannot be read: {fault}") if self.after_marker else TEXT

    def _take_values(self, source: Source, span: list[str]) -> Reader[tuple[list[Value], str | None]]:
        """One value, and more after semicolons or commas; those before the first that cannot be read.

        Also why that one cannot, None when it is only cut off.
        """
        values: list[Value] = []
        start = attempts = 0
        piece: list[str] = []
        while attempts < MAX_ATTEMPTS:
            value = None if piece else _take_at_once(source, piece)
            if value is None:
                bracket = yield from take_value(source, piece, self._tokens)
                if bracket not in _BRACKETS:
                    self._unread_end(source, bracket, piece)
                ended = bracket not in _BRACKETS and not source.is_empty
                text = "".join(piece)
                if not bracket and _lacks_only_brackets(text):
                    break  # cut off: no other reading of its quotes is to be tried
                try:
                    value = decode_json(text, closed=ended)
                    if bracket not in _BRACKETS and text[value.end :].strip():
                        break
                except FormatError as error:
                    if ended:
                        span.extend(piece)
                        return values, f"the call cannot be read: {error}"
                    if not bracket:
                        break
                    attempts += 1  # stray quotes: the brackets may balance again further on
                    continue
            values.append(replace(value, end=start + value.end))
            gap: list[str] = []
            char = yield from skip_space(source, gap)
            if char and char in ";," and self.name is None:
                gap.append(char)
                source.position += 1
                char = yield from skip_space(source, gap)
            span.extend(piece)
            if char != "{" or self.name is not None:
                source.unread("".join(gap))
                return values, None
            span.extend(gap)
            start += sum(map(len, (*piece, *gap)))
            piece = []
        span.extend(piece)
        return values, None

    def _unread_end(self, source: Source, marker: str, piece: list[str]) -> None:
        """Give back the marker that ended a value, also one that a stray quote hid from the count of brackets."""
        source.unread(marker)
        text = "".join(piece)
        found = None if marker or self._ends is None else self._ends.search(text, 0)
        if found is None:
            return
        try:
            decode_json(text[: found.start()], closed=False)
        except FormatError:
            return  # it stands in a string that was cut off
        piece[:] = [text[: found.start()]]
        source.unread(text[found.start() :])

    def _begins_call(self, source: Source, context: Context) -> Reader[bool]:
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
        source.unread("".join(ahead))
        return key is not None and (key in CALL_KEYS or key in context.tools)

    def _is_call(self, value: Value, context: Context) -> bool:
        items = value.value if isinstance(value.value, list) else [value.value]
        return bool(items) and all(
            looks_like_call(item) or _is_known_call(item, context) or _is_flat_call(item, context) for item in items
        )


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


def _names_tool(text: str, context: Context) -> bool:
    """Whether ``text``, which ends too early, had begun to call a tool of this session."""
    named = _NAME.match(text)
    return named is not None and context.tools.match(named.group(1)) is not None


CALL_KEYS = frozenset((*NAME_KEYS, *ARGUMENT_KEYS, *NESTING_KEYS, "tool_calls", "type", "id", "thought"))
"""Keys that a call may begin with; xLAM puts a thought before the list."""


def _is_known_call(item: Json, context: Context) -> bool:
    return isinstance(item, dict) and len(item) == 1 and next(iter(item)) in context.tools


def _is_flat_call(item: Json, context: Context) -> bool:
    """Whether ``item`` names a tool of the session and has arguments of it beside the name, all that are required."""
    if not isinstance(item, dict):
        return False
    key = next((key for key in NAME_KEYS if isinstance(item.get(key), str)), None)
    tool = context.tools.get(item[key].strip()) if key else None
    if tool is None or key in tool.properties:
        return False
    arguments = item.keys() - {key, *ABOUT_KEYS}
    return bool(arguments) and arguments <= tool.properties.keys() and arguments >= {*tool.required}


def read_values(values: Sequence[Value], arguments_key: str, context: Context, offset: int) -> Reading:
    """The calls in ``values``; ``offset`` is where the values' text begins in the span. Raises FormatError."""
    calls: list[Decoded] = []
    fixes: list[str] = []
    for value in values:
        found = calls_in(value.value, arguments_key, context.tools)
        if found:
            last = found[-1]
            found[-1] = Decoded(last.name, last.arguments, last.fixes, offset + value.end)
        calls += found
        fixes += value.fixes
    return Reading(calls=tuple(calls), fixes=tuple(fixes))
