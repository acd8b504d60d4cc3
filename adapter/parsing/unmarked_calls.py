"""Parse calls without markers: JSON at the start of a line, calls in code fences, and calls after a sentence.

Such calls are buffered until the end of the message, and accepted if only calls follow. Because models comment on bare
calls, undamaged JSON at the start of an answer is also accepted if a comment follows. A damaged call among several
calls is an error, and does not affect the other calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from adapter.core.events import Event, InvalidToolCall
from adapter.parsing.bodies.call_announcing_tags import build_announced_reader
from adapter.parsing.bodies.worded_call import announces_call, has_label, quotes_calls, read_worded_call
from adapter.parsing.call_events import CallEventFactory
from adapter.parsing.call_progress import CallProgress
from adapter.parsing.event_buffer import EventBuffer
from adapter.parsing.fallback_readers import MAX_GIVEN_BACK
from adapter.parsing.format import NOT_CLOSED, TEXT, BodyReader, BodyResult, BodySource
from adapter.parsing.markdown_context import FENCE, FENCE_KIND
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.marker_tables import CALL_FENCES, PYTHON_FENCES, MarkerTables
from adapter.parsing.parse_policy import ParsePolicy
from adapter.parsing.parse_state import CONTENT, NOTHING
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader
from adapter.parsing.wrapper_tags import announces_calls
from adapter.tools.decoded_json_calls import is_named_call

_OUTSIDE_BRACKETS = "\"';,"
"""Possible first characters of a damaged call that lacks its first bracket."""

_separators = get_marker_set("; ", ", ")
_call_starts = get_marker_set("\n{", "\n[", "\n\n", "; {", ", {", FENCE)
_WORD = re.compile(r"[\w.-]+")
_NAMED_ARGUMENTS = re.compile(r"(?:@[\w.-]+(?:\([\w-]+\))?:|[\w.-]+) ?\{|[\w.-]+\(\s*(?:\w+\s*=|\{)")
"""Matches the start of a call that names its arguments: ``NAME {...``, ``NAME(KEY=...`` or ``@NAME(ID): {...``."""
_closing_fence = get_marker_set(FENCE)
_FIRST_FENCED = re.compile(rf"([\w+#.:-]{{0,{FENCE_KIND}}})[ \t]{{0,9}}(?:\r?\n|(?=[{{\[]))")
"""Matches a code fence's language before its first line, or before JSON on the same line."""
_MAY_BE_FIRST_FENCED = re.compile(rf"[\w+#.:-]{{0,{FENCE_KIND}}}[ \t]{{0,9}}\r?")
_closing_brackets = get_marker_set("}", "]")


class ReadBody(Protocol):
    """A function that parses a call with the parser ``read`` and reports its progress."""

    def __call__(
        self, read: BodyReader, consumed: list[str], *, begins_line: bool = ..., follows_call: bool = ...
    ) -> Reader[tuple[BodyResult, CallProgress]]: ...


class UnmarkedCallReader:
    """Parses calls without markers.

    ``read_body`` parses a call with a given parser and reports its progress. ``close_tags`` consumes the closing tags
    of wrappers around calls.
    """

    def __init__(
        self,
        source: BodySource,
        output: EventBuffer,
        tables: MarkerTables,
        call_events: CallEventFactory,
        policy: ParsePolicy,
        read_body: ReadBody,
        close_tags: Callable[[], Reader[bool]],
    ) -> None:
        self._source, self._output, self._state, self._tables = source, output, output.state, tables
        self._call_events, self._policy = call_events, policy
        self._read_body, self._close_tags = read_body, close_tags

    def read_unmarked(self) -> Reader[None]:
        """Parse calls in JSON at the start of a line, and further calls on the line. They are accepted if only calls
        follow."""
        while (yield from self._read_value()) and (
            yield from self._source.consume_marker(_separators, self._state.space)
        ):
            pass

    def _read_value(self) -> Reader[bool]:
        """Parse one JSON value with calls, or a damaged call. Return whether a further call may follow it."""
        consumed: list[str] = []
        is_first = self._state.last is NOTHING
        result, _ = yield from self._read_body(self._tables.unmarked, consumed)
        if is_first:  # after text, a bracket may close one in that text
            result = yield from self._consume_stray_brackets(result, consumed)
        raw = "".join(consumed)
        if not raw and (yield from self.read_worded()):
            return False
        if not result.calls and (self._state.buffered_calls or result.error is not None):
            self._source.push_back(raw)
            if (yield from self._add_buffered_error("{[", result.error or NOT_CLOSED)):
                return True
            self._source.consume_again([], [raw])
        if result.error is None or result.calls:
            self._add_buffered_calls(result, raw, is_marked="no-markers" not in result.fixes)
            if self._state.buffered_calls and (yield from self._add_buffered_error(_OUTSIDE_BRACKETS, NOT_CLOSED)):
                return True
        else:
            self._output.accept_buffered()
            self._output.add_calls(self._call_events.build_events(result, raw))
        if self._state.buffered_calls and self._state.open_tags:
            yield from self._close_tags()
        return bool(result.calls and (self._state.buffered_calls or result.error is not None))

    def read_worded(self) -> Reader[bool]:
        """Parse a call in words, which no format defines, at the start of a line. It is accepted if only calls follow.
        Return whether there may be a call. If not, or if a marker begins here, nothing is consumed."""
        return not (yield from self._source.is_next(self._tables.text_markers)) and (yield from self._read_words())

    def _read_words(self) -> Reader[bool]:
        state = self._state
        if not (self._source.tools and self._policy.allow_other_formats) or quotes_calls(state.line.line_above):
            return False
        consumed: list[str] = []
        result, _ = yield from self._read_body(read_worded_call, consumed, begins_line=True)
        raw = "".join(consumed)
        is_announced = announces_call(raw)
        if not is_announced and state.last is CONTENT and not self._is_plain_call(result, raw):
            self._source.push_back(raw)
            return False
        if result.calls:
            self._add_buffered_calls(result, raw, is_marked=is_announced and has_label(raw))
        elif result.error is not None:
            self._output.add_buffered_calls(
                self._call_events.build_events(result, raw), raw, self._source.offset - len(raw)
            )
        return bool(raw)

    def _is_plain_call(self, result: BodyResult, raw: str) -> bool:
        """Return whether ``raw`` is a tool's name with named arguments that the tool accepts."""
        is_whole = _NAMED_ARGUMENTS.match(raw) is not None and not any(call.fixes for call in result.calls)
        return is_whole and all(is_named_call({call.name: call.arguments}, self._source.tools) for call in result.calls)

    def reread_worded(self, raw: str) -> Reader[bool]:
        """Parse ``raw`` as a call in words, like `read_worded`. It begins with a marker, but the marker's own parser
        has found no call in it."""
        if not self._state.line.is_blank or self._source.reread_characters > MAX_GIVEN_BACK:
            return False
        self._source.reread_characters += len(raw)
        self._source.push_back(raw)
        if (yield from self._read_words()):
            return True
        self._source.position += len(raw)
        return False

    def _add_buffered_error(self, starts: str, error: str) -> Reader[bool]:
        """Buffer a damaged call and its ``error``. Return whether there is a damaged call. A damaged call begins with a
        character of ``starts``, names a tool, and extends to the start of the next call."""
        ahead: list[str] = []
        char = yield from self._source.skip_space(ahead)
        text = ""
        if char and char in starts:
            damaged: list[str] = []
            yield from self._source.skip_to(_call_starts, damaged)
            text = "".join(damaged)
        self._source.push_back("".join((*ahead, text)))
        words = {*_WORD.findall(text[:NAME_LIMIT])}
        name = next((name for name in self._source.tools if name in words), "")
        if not name or self._source.was_cut:
            return False
        self._state.space += ahead
        self._source.consume_again([], [*ahead, text])
        events: list[Event] = [InvalidToolCall(text, error, name)]
        self._output.add_buffered_calls(events, text, self._source.offset - len(text))
        return True

    def read_fence(self) -> Reader[None]:
        """Parse a code fence. Its calls are accepted if it contains nothing else and only calls follow."""
        consumed = [FENCE]
        first = yield from self._source.peek_match(_FIRST_FENCED, FENCE_KIND + 11, _MAY_BE_FIRST_FENCED.fullmatch)
        is_closed, marker, result = False, "", TEXT
        if first is not None:
            self._source.consume_match(first, consumed)
            marker, read = yield from self._find_fenced_reader(first[1], consumed)
            if read is not None:
                result, _ = yield from self._read_body(read, consumed)
                result = yield from self._consume_stray_brackets(result, consumed)
                result = yield from self._consume_further_calls(result, consumed)
                is_closed = yield from self._closes_fence(consumed)
        raw = "".join(consumed)
        if is_closed and result.calls:
            self._add_buffered_calls(result.with_repairs("code-fence"), raw, is_marked=False)
            return
        if marker or result.calls:
            self._output.reject("code-fence", *self._source.find_last_span(len(raw)))
        self._output.add_text(raw)

    def read_announced(self, read: BodyReader, marker: str, taken: str) -> Reader[bool]:
        """Parse a call after a sentence on the same line, although its ``marker`` usually begins a line.

        The sentence may quote a page, so the call is accepted only if its tool is read-only and only calls follow.
        Return whether there may be a call; if not, nothing more is consumed. ``taken`` is the text consumed so far,
        which includes at least part of the marker.
        """
        self._skip_marker(marker, taken)
        consumed = [marker]
        result, _ = yield from self._read_body(read, consumed, begins_line=True)
        raw = "".join(consumed)
        is_whole = result.calls and "missing-close-tag" not in result.fixes
        if not is_whole or self._call_events.find_rejection(result, is_marked=False, is_first=False):
            self._skip_marker(marker, raw)
            if len(taken) < len(marker):
                self._source.push_back(marker[len(taken) :])
            self._source.consume_again([], [taken[len(marker) :]])
            return False
        self._add_buffered_calls(result, raw, is_marked=False)
        return True

    def _skip_marker(self, marker: str, taken: str) -> None:
        """Move to the end of ``marker``. ``taken`` is the text consumed so far, which begins with at least part of the
        marker."""
        self._source.push_back(taken[len(marker) :])
        self._source.consume_again([], [marker[len(taken) :]])

    def _consume_stray_brackets(self, result: BodyResult, consumed: list[str]) -> Reader[BodyResult]:
        """Consume unpaired closing brackets directly after a call in JSON."""
        is_stray = False
        while result.calls and (yield from self._source.consume_marker(_closing_brackets, consumed)):
            is_stray = True
        return result.with_repairs("extra-bracket") if is_stray else result

    def _consume_further_calls(self, result: BodyResult, consumed: list[str]) -> Reader[BodyResult]:
        """Consume the closing markers and the calls after the first call in a code fence."""
        while result.calls and not consumed[-1].endswith(FENCE):
            yield from self._source.skip_space(consumed)
            if (yield from self._source.consume_marker(self._tables.all_closers, consumed)):
                continue
            start, offset = len(consumed), sum(map(len, consumed))
            _, read = yield from self._find_fenced_reader("", consumed)
            more = (yield from self._read_body(read, consumed, follows_call=True))[0] if read else TEXT
            if not more.calls:
                self._source.give_back(consumed, start)
                break
            first = (*result.calls[:-1], result.calls[-1]._replace(end=offset))
            rest = [call if call.end is None else call._replace(end=offset + call.end) for call in more.calls]
            result = more._replace(calls=(*first, *rest), fixes=tuple(dict.fromkeys(result.fixes + more.fixes)))
        return result

    def _find_fenced_reader(self, kind: str, consumed: list[str]) -> Reader[tuple[str, BodyReader | None]]:
        """Return the opening marker at the start of a code fence, and the parser for the call after it. ``kind`` is the
        fence's language. The marker is "" before JSON, and if the language announces calls. The parser is None if no
        call begins here."""
        char = yield from self._source.skip_space(consumed)
        is_usual = kind.lower() in CALL_FENCES or announces_calls(kind)
        if char == "{" or (char == "[" and is_usual):
            return "", self._tables.fenced
        if kind.lower() in PYTHON_FENCES and self._state.last is not CONTENT:  # after a sentence, it is an example
            return "", build_announced_reader(FENCE + kind, FENCE)
        if not is_usual:
            return "", None
        marker = yield from self._source.consume_marker(self._tables.opening_markers, consumed)
        if marker:
            return marker, self._tables.openers[marker.lower()].read
        return "", build_announced_reader(FENCE + kind, FENCE) if announces_calls(kind) else None

    def _closes_fence(self, consumed: list[str]) -> Reader[bool]:
        """Return whether the code fence is closed here, or by the end of the text."""
        if consumed[-1].endswith(FENCE):
            return True
        yield from self._source.skip_space(consumed)
        closing = yield from self._source.consume_marker(_closing_fence, consumed)
        return bool(closing) or (self._source.is_empty and not self._source.was_cut)

    def _add_buffered_calls(self, result: BodyResult, raw: str, *, is_marked: bool) -> None:
        """Buffer the calls in ``result``, which are accepted if only calls follow, or if they begin the answer. If the
        policy rejects them, add ``raw`` as text instead."""
        is_first = self._state.last is NOTHING
        reason = (
            self._call_events.find_rejection(result, is_marked=is_marked, is_first=is_first) if result.calls else ""
        )
        if reason:
            self._output.reject(reason, *self._source.find_last_span(len(raw)))
        if reason or not result.calls:
            self._output.add_text(raw)
            return
        follows_text = self._state.last is CONTENT
        events = self._call_events.build_buffered_events(result, raw, is_marked=is_marked, follows_text=follows_text)
        is_leading = raw[0] in "{[" and (self._state.last is not CONTENT or self._state.has_leading_calls)
        begins_answer = is_leading and self._call_events.are_undamaged(result)
        self._output.add_buffered_calls(
            events, raw, self._source.offset - len(raw), begins_answer=begins_answer, matches_format=is_marked
        )
        if self._policy.allow_midtext:
            self._output.accept_buffered()
