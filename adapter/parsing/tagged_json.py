"""Parse calls written as JSON between markers.

The parser tracks quotes to find the end of the JSON, so a stray quote can hide all later markers. In that case, the
call ends at the first marker where the text before the marker can be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from adapter.core.errors import FormatError
from adapter.core.events import Json
from adapter.core.json.decode import decode_values
from adapter.core.json.strict import DecodedJson as Value
from adapter.core.json.strict import UnterminatedError, decode_strict
from adapter.parsing.format import CUT, TEXT, BodyReader, BodyResult, BodySource
from adapter.parsing.json_calls import (
    BRACKETS,
    MAX_ATTEMPTS,
    MAY_BE_MEMBER,
    MEMBER,
    MISPAIRED,
    QUOTES,
    build_call_from_arguments,
    build_calls_from_json,
    check_hidden_calls,
    find_break,
    salvage_calls,
    scan_json_value,
    skip_string,
)
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.tools.decoded_json_calls import DecodedCall
from adapter.tools.tool_set import ToolSet

RUBBISH_LIMIT = 40
"""Maximum number of characters between the JSON and the closing marker, on one line. Anything longer is prose."""

_SPACE = re.compile(r"\s*")
_TRAILING = ",;}]`"  # characters that models write after a value, inside the tag
_CUT_TAG = re.compile(r"(?:[<\[][^<>\[\]\n]{0,40})?")
_MISSPELT_CLOSE = re.compile(r"<[/|\\]{0,2}[a-z_ |]*(?:tool|call)[a-z_ |]*>", re.IGNORECASE | re.ASCII)


@lru_cache(maxsize=256)
def _compile_next_call(opening: str, closing: str) -> re.Pattern[str]:
    """Return a pattern for the end of a call and the start of the next one."""
    opener = re.escape(opening)
    return re.compile(rf"(?:{re.escape(closing)}|\n)\s*{opener}|{opener}\s*+[{{\[]", re.IGNORECASE)


@lru_cache(maxsize=256)
def _compile_rubbish(closing: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return two patterns: one for a few meaningless characters on a line and the marker ``closing`` after them, and
    one for any start of such text."""
    rubbish = rf"[^\n{{\[{re.escape(closing[0])}]{{1,{RUBBISH_LIMIT}}}+"
    begun = "".join(f"(?:{re.escape(char)}" for char in closing[:-1]) + ")?" * (len(closing) - 1)
    return re.compile(rubbish + re.escape(closing), re.IGNORECASE), re.compile(rubbish + begun, re.IGNORECASE)


class TaggedJson:
    """Parses ``JSON<closing>`` after its opening marker. An instance is a `BodyReader`.

    Args:
        arguments_key: The format's key for the arguments.
        name: The tool, if the marker names it. The JSON then holds only the arguments.
        may_list: Whether the format allows several calls between one pair of markers.
        reshape: Function that converts a value from the format's structure to ``{"name": …, "arguments": …}``.
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
        self._ends = get_marker_set(opening, closing)
        self._opens = get_marker_set(opening)
        self._next_call = _compile_next_call(opening, closing)
        self._tokens = get_marker_set(opening, closing, *QUOTES, *BRACKETS)
        self._rubbish, self._may_be_rubbish = _compile_rubbish(closing)

    def __call__(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        complete_result = self._read_complete(source, consumed)
        if complete_result is not None:
            return complete_result
        if self._reshape is None:
            source.begin_json(source.offset, self.name, self.arguments_key)
        start = len(consumed)
        result = yield from self._read_in_pieces(source, consumed)
        if self.name is not None or source.was_cut:
            return result
        body = "".join(consumed[start:]).strip().removesuffix(self.closing)
        if result.error is None:
            return check_hidden_calls(result, body, self.arguments_key, source.tools, self._reshape)
        return salvage_calls(body, result.error, self.arguments_key, source.tools, self._reshape)

    def _read_complete(self, source: BodySource, consumed: list[str]) -> BodyResult | None:
        """Parse a valid call and its closing marker, the most frequent case. If they have not fully arrived or are
        invalid, consume nothing and return None."""
        value = decode_strict(source.text, source.position, before=self.closing)
        if value is None:
            return None
        end = _SPACE.match(source.text, value.end).end()  # type: ignore[union-attr]
        if not source.text.startswith(self.closing, end):
            return None
        result = self._build_result([value], source.tools)
        if result.error is not None:
            return None
        consumed.append(source.text[source.position : end + len(self.closing)])
        source.position = end + len(self.closing)
        return result

    def _read_in_pieces(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        start = len(consumed)
        if not source.close_at_first_marker:
            complete, marker = yield from self._consume_values(source, consumed)
            if complete or marker:
                values = consumed if marker else [*consumed[:start], self._remove_cut_marker("".join(consumed[start:]))]
                result = self._decode(values, start, complete or self._is_close(marker), source.tools)
                if self._swallows_a_call(consumed, start, result):
                    source.push_back(marker)
                    return self._fall_back(source, consumed, start)
                if complete or not result.unfinished or not self._is_close(marker):
                    return self._close_result(marker, result, source, consumed)
                consumed.append(marker)
        for _ in range(MAX_ATTEMPTS):
            marker = yield from source.read_until(self._ends, consumed)
            if not marker:
                break
            result = self._decode(consumed, start, self._is_close(marker), source.tools)
            if self._swallows_a_call(consumed, start, result):
                source.push_back(marker)
                break
            if result.error is None:
                return self._close_result(marker, result, source, consumed)
            is_end = self._is_close(marker) and not result.unfinished
            if is_end and find_break("".join(consumed[start:]), self._ends) is None:
                return self._close_result(marker, result, source, consumed)
            consumed.append(marker)
            if is_end:
                break
        return self._fall_back(source, consumed, start)

    def _consume_values(self, source: StreamBuffer, consumed: list[str]) -> Reader[tuple[bool, str]]:
        """Consume JSON values while tracking quotes. Return whether they are complete and valid, and the marker after
        them. Return (False, "") if the text ended, or if stray quotes or brackets hid the end."""
        while True:
            start = len(consumed)
            if self.name is not None and (yield from source.skip_space(consumed)) == '"':
                consumed.append('"')  # double-encoded arguments
                source.position += 1
                yield from skip_string(source, consumed, '"')
            elif (marker := (yield from scan_json_value(source, consumed, self._tokens))) not in BRACKETS:
                return False, marker
            if decode_strict("".join(consumed[start:])) is None:
                return False, ""
            after = yield from self._consume_end(source, consumed)
            if consumed[start] == '"' and not after and not source.is_empty:
                return False, ""  # a key of an object that lacks its opening bracket
            if after is not None:
                return True, after

    def _consume_end(self, source: StreamBuffer, consumed: list[str]) -> Reader[str | None]:
        """Consume and return the marker after a valid JSON value. Return "" if the call ends without a marker, and None
        if another value follows."""
        while True:
            end = len(consumed)
            char = yield from source.skip_space(consumed)
            if char == self.closing[0]:
                marker = yield from source.consume_marker(self._ends)
                source.consume_cut_marker(self.closing, consumed)
                if marker or source.is_empty:
                    return marker
            if char and char in "{[":
                return None
            if char == '"' and (yield from source.peek_match(MEMBER, NAME_LIMIT, MAY_BE_MEMBER.fullmatch)):
                return None
            if not char or char not in _TRAILING:
                break
            consumed.append(char)
            source.position += 1
        if char != self.closing[0]:
            marker = yield from source.consume_marker(self._ends)
            return marker if marker or "\n" in "".join(consumed[end:]) else (yield from self._consume_rubbish(source))
        misspelt: list[str] = []
        yield from source.consume_until(self.closing[-1], 24, misspelt)
        if misspelt and _MISSPELT_CLOSE.fullmatch(misspelt[0]):
            return misspelt[0]
        source.push_back("".join(misspelt))
        return ""

    def _consume_rubbish(self, source: StreamBuffer) -> Reader[str]:
        """Consume and return a few meaningless characters and the closing marker after them, or return ""."""
        limit = RUBBISH_LIMIT + len(self.closing)
        match = yield from source.peek_match(self._rubbish, limit, self._may_be_rubbish.fullmatch)
        source.position += len(match.group()) if match else 0
        return match.group() if match else ""

    def _swallows_a_call(self, consumed: Sequence[str], start: int, result: BodyResult) -> bool:
        """Return whether the text consumed from the index ``start`` on contains the end of this call and the start of
        the next, because a stray quote made them part of a string."""
        if not result.calls or MISPAIRED.isdisjoint(result.fixes):
            return False
        text = "".join(consumed[start:])
        return self._opens.search(text, 0) is not None and self._next_call.search(text) is not None

    def _remove_cut_marker(self, text: str) -> str:
        """Remove an incomplete closing marker from the end of ``text``."""
        sizes = range(len(self.closing) - 1, 0, -1)
        cut = next((self.closing[:size] for size in sizes if text.endswith(self.closing[:size])), "")
        return text.removesuffix(cut)

    def _is_close(self, marker: str) -> bool:
        return marker.lower() == self.closing.lower()

    def _close_result(self, marker: str, result: BodyResult, source: StreamBuffer, consumed: list[str]) -> BodyResult:
        """Return ``result``, with a repair if the closing marker is misspelt or missing."""
        if self._is_close(marker):
            consumed.append(marker)
            return result
        if marker and not self._ends.match(marker, 0):
            consumed.append(marker)
            has_rubbish = marker.lower().endswith(self.closing.lower())
            return result.with_repairs("text-in-tag" if has_rubbish else "misspelt-close-tag")
        if marker:
            source.push_back(marker)
        elif source.was_cut and _CUT_TAG.fullmatch(source.text, source.position):
            consumed.append(source.consume_rest())
            return CUT
        return result.with_repairs("missing-close-tag")

    def _fall_back(self, source: BodySource, consumed: list[str], start: int) -> BodyResult:
        """End the call at the first marker where the text before the marker can be parsed, because tracking quotes did
        not find the end."""
        body = "".join(consumed[start:])
        end = 0
        for _ in range(MAX_ATTEMPTS):
            marker = self._ends.search(body, end)
            if marker is None:
                break
            begin, end = marker
            result = self._decode([body[:begin]], 0, False, source.tools)  # without adding brackets
            if "unescaped-quote" in result.fixes and source.was_cut:
                break  # the string may have continued
            if self._swallows_a_call([body[:begin]], 0, result):
                break
            if self._is_close(body[begin:end]) and result.error is None:
                return self._end_at(end, result, source, consumed, start)
        return self._end_at_break(source, consumed, start)

    def _end_at_break(self, source: BodySource, consumed: list[str], start: int) -> BodyResult:
        """End a call that cannot be parsed where it probably ends. The text after it is then parsed as usual."""
        body = "".join(consumed[start:])
        marker = None if source.was_cut else find_break(body, self._ends)
        if marker is None:
            return CUT if source.final and source.is_empty else self._decode(consumed, start, True, source.tools)
        begin, end = marker
        result = self._decode([body[:begin]], 0, False, source.tools)
        error = result.error or self._explain(FormatError("its quotes are not balanced"))
        is_close = self._is_close(body[begin:end])
        return self._end_at(end if is_close else begin, BodyResult(error=error), source, consumed, start)

    def _end_at(self, end: int, result: BodyResult, source: BodySource, consumed: list[str], start: int) -> BodyResult:
        """Put back the text after ``end``, an offset in the text consumed from the index ``start`` on, and return
        ``result``."""
        source.close_at_first_marker = True
        body = "".join(consumed[start:])
        consumed[start:] = [body[:end]]
        source.push_back(body[end:])
        return result

    def _decode(self, consumed: list[str], start: int, closed: bool, tools: ToolSet) -> BodyResult:
        text = "".join(consumed[start:])
        string_value = self._decode_string(text)
        if string_value is not None:
            return self._build_result([string_value], tools, sum(map(len, consumed[:start])))
        if self.name is not None and closed and not text.strip():
            tool = tools.match(self.name)
            if tool is not None and not tool.required:
                return BodyResult((DecodedCall(self.name, {}),), ("no-arguments",))
        try:
            values, fixes = decode_values(text, closed=closed)
        except FormatError as error:
            return BodyResult(error=self._explain(error), unfinished=isinstance(error, UnterminatedError))
        return self._build_result(values, tools, sum(map(len, consumed[:start]))).with_repairs(*fixes)

    def _decode_string(self, text: str) -> Value | None:
        """If the text between the markers is only the arguments, and ``text`` is one JSON string, return the string.
        Otherwise, return None."""
        start = len(text) - len(text.lstrip())
        if self.name is None or not text.startswith('"', start):
            return None
        value = decode_strict(text, start)
        return value if value is not None and not text[value.end :].strip() else None

    def _build_result(self, values: Sequence[Value], tools: ToolSet, offset: int = 0) -> BodyResult:
        try:
            if self.name is not None:
                return build_call_from_arguments(self.name, values, offset)
            if self._reshape is not None:
                values = [value._replace(value=self._reshape(value.value)) for value in values]
            result = build_calls_from_json(values, self.arguments_key, tools, offset)
        except FormatError as error:
            return BodyResult(error=self._explain(error))
        return result.with_repairs("several-in-one-tag") if len(result.calls) > 1 and not self.may_list else result

    def _explain(self, error: FormatError) -> str:
        shape = f'{{"name": "TOOL", "{self.arguments_key}": {{...}}}}' if self.name is None else '{"ARGUMENT": ...}'
        return f"the text in {self.opening} is not a call: {error}. Write exactly one JSON object there: {shape}"


def expand_named_object(value: Json) -> Json:
    """Convert ``{"NAME": {...}}``, or a list of such objects, to ``{"name": …, "arguments": …}``. Other values are
    unchanged."""
    if isinstance(value, list):
        return [expand_named_object(item) for item in value]
    if isinstance(value, dict) and len(value) == 1:
        (name, arguments), *_ = value.items()
        if isinstance(arguments, dict):
            return {"name": name, "arguments": arguments}
    return value


def require_json(read: BodyReader, closing: str = "") -> BodyReader:
    """Return a parser that calls ``read`` only if JSON follows the opening marker. Otherwise, the marker is a word in
    prose or, if ``closing`` directly follows it, an empty list of calls."""

    def read_json(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        char = yield from source.skip_space(consumed)
        if not char:
            return CUT if source.at_line_start or (closing and source.was_cut) else TEXT
        if char in "{[":
            return (yield from read(source, consumed))
        is_empty = closing and (yield from source.consume_marker(get_marker_set(closing), consumed))
        return BodyResult() if is_empty else TEXT

    return read_json
