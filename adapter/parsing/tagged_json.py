"""Reads calls written as JSON between markers.

A stray quote would hide every marker from a reader that follows quotes: when the text ends that way,
it falls back to the first marker at which the body can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from adapter.core.errors import FormatError
from adapter.core.events import Json
from adapter.core.json.decode import decode_values
from adapter.core.json.strict import DecodedJson as Value
from adapter.core.json.strict import UnterminatedError, decode_strict
from adapter.parsing.format import CUT_OFF, TEXT, BodyReader, BodyResult, ReadContext
from adapter.parsing.json_scanner import (
    BRACKETS,
    MAX_ATTEMPTS,
    QUOTES,
    call_from_arguments,
    calls_from_json,
    scan_json_value,
    skip_string,
)
from adapter.parsing.marker_set import markers_for
from adapter.parsing.stream_buffer import (
    Reader,
    StreamBuffer,
    read_until,
    skip_space,
    take_cut_marker,
    take_marker,
    take_until,
)

_SPACE = re.compile(r"\s*")
_BESIDE = ",;}]`"  # what models put after a value, still inside the tag
_CUT_TAG = re.compile(r"(?:[<\[][^<>\[\]\n]{0,40})?")
_MISSPELT_CLOSE = re.compile(r"<[/|\\]{0,2}[a-z_ |]*(?:tool|call)[a-z_ |]*>", re.IGNORECASE | re.ASCII)


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
        self._tokens = markers_for(opening, closing, *QUOTES, *BRACKETS)

    def __call__(self, source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        at_once = self._read_at_once(source, span, context)
        if at_once is not None:
            return at_once
        if self._reshape is None:
            context.begin_json(source.offset, self.name, self.arguments_key)
        return (yield from self._read_in_pieces(source, span, context))

    def _read_at_once(self, source: StreamBuffer, span: list[str], context: ReadContext) -> BodyResult | None:
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

    def _read_in_pieces(self, source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        start = len(span)
        if not context.close_at_first_marker:
            complete, marker = yield from self._take_values(source, span)
            if complete or marker:
                reading = self._decode(span, start, complete or self._is_close(marker), context)
                if self._swallows_a_call(span, start, reading):
                    source.push_back(marker)
                    return self._fall_back(source, span, start, context)
                if complete or not reading.unfinished or not self._is_close(marker):
                    return self._ended_by(marker, reading, source, span)
                span.append(marker)
        for _ in range(MAX_ATTEMPTS):
            marker = yield from read_until(source, self._ends, span)
            if not marker:
                break
            reading = self._decode(span, start, self._is_close(marker), context)
            if self._swallows_a_call(span, start, reading):
                source.push_back(marker)
                break
            if reading.error is None or (self._is_close(marker) and not reading.unfinished):
                return self._ended_by(marker, reading, source, span)
            span.append(marker)
        return self._fall_back(source, span, start, context)

    def _take_values(self, source: StreamBuffer, span: list[str]) -> Reader[tuple[bool, str]]:
        """Take values, following quotes: whether they are complete and valid, and the marker that ended them.

        (False, "") means that stray quotes or brackets deceived the count, or that the text ended.
        """
        while True:
            start = len(span)
            if self.name is not None and (yield from skip_space(source, span)) == '"':
                span.append('"')  # arguments that were encoded twice
                source.position += 1
                yield from skip_string(source, span, '"')
            elif (marker := (yield from scan_json_value(source, span, self._tokens))) not in BRACKETS:
                return False, marker
            if decode_strict("".join(span[start:])) is None:
                return False, ""
            after = yield from self._after_value(source, span)
            if after is not None:
                return True, after

    def _after_value(self, source: StreamBuffer, span: list[str]) -> Reader[str | None]:
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
        source.push_back("".join(misspelt))
        return ""

    def _swallows_a_call(self, span: Sequence[str], start: int, reading: BodyResult) -> bool:
        """Whether a string that a stray quote left open goes on over this call's end and the beginning of another."""
        if not reading.calls or "unescaped-quote" not in reading.fixes:
            return False
        after_close = "".join(span[start:]).lower().split(self.closing.lower())[1:]
        return any(text.lstrip().startswith(self.opening.lower()) for text in after_close)

    def _is_close(self, marker: str) -> bool:
        return marker.lower() == self.closing.lower()

    def _ended_by(self, marker: str, reading: BodyResult, source: StreamBuffer, span: list[str]) -> BodyResult:
        """``reading`` with what the end of the body says: closed, closed oddly, or not at all."""
        if self._is_close(marker):
            span.append(marker)
            return reading
        if marker and not self._ends.match(marker, 0):
            span.append(marker)
            return reading.adding("misspelt-close-tag")
        if marker:
            source.push_back(marker)
        elif source.was_cut and _CUT_TAG.fullmatch(source.text, source.position):
            span.append(source.rest())
            return BodyResult(error=CUT_OFF)
        return reading.adding("missing-close-tag")

    def _fall_back(self, source: StreamBuffer, span: list[str], start: int, context: ReadContext) -> BodyResult:
        """No end was found while following quotes: take the first marker at which the body can be read."""
        body = "".join(span[start:])
        end = 0
        for _ in range(MAX_ATTEMPTS):
            found = self._ends.search(body, end)
            if found is None:
                break
            begin, end = found
            reading = self._decode([body[:begin]], 0, False, context)  # no brackets are added on a guess
            if "unescaped-quote" in reading.fixes and source.was_cut:
                break  # the string may have gone on
            if self._is_close(body[begin:end]) and reading.error is None:
                context.close_at_first_marker = True
                span[start:] = [body[:end]]
                source.push_back(body[end:])
                return reading
        if source.final and source.is_empty:
            return BodyResult(error=CUT_OFF)
        return self._decode(span, start, True, context)

    def _decode(self, span: list[str], start: int, closed: bool, context: ReadContext) -> BodyResult:
        text = "".join(span[start:])
        encoded = self._encoded(text)
        if encoded is not None:
            return self._reading([encoded], context, sum(map(len, span[:start])))
        try:
            values, fixes = decode_values(text, closed=closed)
        except FormatError as error:
            return BodyResult(error=self._explain(error), unfinished=isinstance(error, UnterminatedError))
        return self._reading(values, context, sum(map(len, span[:start]))).adding(*fixes)

    def _encoded(self, text: str) -> Value | None:
        """The string that ``text`` is, where it stands in the place of arguments."""
        start = len(text) - len(text.lstrip())
        if self.name is None or not text.startswith('"', start):
            return None
        value = decode_strict(text, start)
        return value if value is not None and not text[value.end :].strip() else None

    def _reading(self, values: Sequence[Value], context: ReadContext, offset: int = 0) -> BodyResult:
        try:
            if self.name is not None:
                return call_from_arguments(self.name, values, offset)
            if self._reshape is not None:
                values = [value._replace(value=self._reshape(value.value)) for value in values]
            reading = calls_from_json(values, self.arguments_key, context, offset)
        except FormatError as error:
            return BodyResult(error=self._explain(error))
        return reading.adding("several-in-one-tag") if len(reading.calls) > 1 and not self.may_list else reading

    def _explain(self, error: FormatError) -> str:
        shape = f'{{"name": "TOOL", "{self.arguments_key}": {{...}}}}' if self.name is None else '{"ARGUMENT": ...}'
        return f"the text in {self.opening} is not a call: {error}. Write exactly one JSON object there: {shape}"


def require_json(read: BodyReader) -> BodyReader:
    """Reads where JSON follows; else the marker before it is a word in prose."""

    def read_json(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        char = yield from skip_space(source, span)
        if not char:
            return BodyResult(error=CUT_OFF) if context.at_line_start else TEXT
        return (yield from read(source, span, context)) if char in "{[" else TEXT

    return read_json
