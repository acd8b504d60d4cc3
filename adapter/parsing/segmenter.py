"""Split a model's text into answer, reasoning and calls, with one state machine for every format.

The state machine is a generator that reads a `StreamBuffer`, updates a `ParseState` and fills an `EventBuffer`. Formats
contribute markers and body parsers. The state machine decides where a call may appear:

- at a format's marker, unless inline code or a code fence quotes it;
- as bare or fenced JSON at the start of a line, if only calls follow. The JSON is buffered until the end of the
  message, and becomes text if anything else follows, unless it is bare and begins the answer;
- in reasoning, if no answer follows, the tool only reads, and the call begins a line or ends the reasoning (Qwen3.5
  forgets ``</think>`` before a call).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from adapter.core.events import Event, MarkupDelta, ReasoningDelta, TextDelta, ToolCall, ToolCallProgress
from adapter.parsing.call_events import CallEventFactory
from adapter.parsing.call_progress import CallProgress, add_argument_deltas
from adapter.parsing.echoed_header import skip_echoed_header
from adapter.parsing.event_buffer import EventBuffer
from adapter.parsing.format import TEXT, BodyReader, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.markdown_context import FENCE
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.marker_tables import INVENTED_RESULT, LINE_STARTS, build_marker_tables, is_token
from adapter.parsing.mention_detection import consume_mentioned_closers, is_mere_mention, is_stray_closer
from adapter.parsing.opaque_sections import discard_rest, read_echoed_result, read_opaque_section
from adapter.parsing.parse_policy import ParsePolicy
from adapter.parsing.parse_state import (
    CALL,
    CONTENT,
    IN_CONTENT,
    IN_REASONING,
    NOTHING,
    REASONING,
    UNDECIDED,
    Mode,
    ParseState,
)
from adapter.parsing.stream_buffer import SPACE, Reader
from adapter.parsing.swallowed_calls import give_back_next_call
from adapter.parsing.unmarked_calls import UnmarkedCallReader
from adapter.parsing.wrapper_tag_reader import WrappedCallReader
from adapter.parsing.wrapper_tags import LINE_START, names_tool
from adapter.tools.decoded_json_calls import Normalizer
from adapter.tools.tool_set import ToolSet

MAX_PIECE = 1 << 17
"""Maximum number of characters processed at once. Some steps scan all buffered text (`json` counts the lines before an
error), so longer text is split to keep the total time linear."""

_BEGINS_MARKERLESS = re.compile(
    r"\s*+(?:\Z|[\w.-]*+[:\[=(>\"']|[\w.-]++\s*+(?:[<{]|\Z)|analysis[^a-z\s]|assistant[cf]|\w++ t(?:\Z|o(?:\Z|=)))"
)
"""Matches the start of an answer whose opening markers were stripped: a word before a colon, bracket, equals sign or
tag (or a prefix of this), or the words of Harmony's headers."""


class Segmenter:
    """Converts text to events. No text causes an exception, and the time is linear in the text's length.

    Args:
        normalize: Matches a decoded call to the session's tools.
        id_seed: String that makes the call ids of this turn differ from other turns' ids.
        assumes_reasoning: Whether the text begins in reasoning only by the format's default, not because of the prompt.
        accepts_drafts: Whether to accept calls at the end of unclosed reasoning.
        stream_arguments: Whether to emit a call's arguments while the model writes them.
        fallback: Formats whose calls are also parsed, at their own markers.
    """

    def __init__(
        self,
        formats: Sequence[Format],
        tools: ToolSet,
        normalize: Normalizer,
        policy: ParsePolicy,
        *,
        id_seed: str,
        in_reasoning: bool,
        assumes_reasoning: bool = False,
        accepts_drafts: bool = True,
        stream_arguments: bool = False,
        fallback: tuple[Format, ...] = (),
    ) -> None:
        self._accepts_drafts, self._streams_arguments = accepts_drafts, stream_arguments
        self._assumes_reasoning = assumes_reasoning
        self._is_opened = True  # whether the prompt or the text has opened the current reasoning
        self._new_segmenter = partial(  # for calls drafted in reasoning
            Segmenter, formats, tools, normalize, policy, id_seed=f"{id_seed}/reasoning", fallback=fallback
        )
        self._calls_bare = len(formats) > 1 or formats[0].read_unmarked is not None
        self._call_events = CallEventFactory(formats[0], tools, normalize, policy, id_seed=id_seed)
        self._tables = build_marker_tables(tuple(formats), tuple(tools), fallback)
        self._find_plain_end = self._tables.text_markers.find_plain_end
        expected = formats[0] if len(formats) == 1 else None
        self._source = BodySource(tools, self._tables.opening_markers, expected)
        self._state = ParseState()
        self._output = EventBuffer(self._state)
        source, output, tables = self._source, self._output, self._tables
        self._wrapped = WrappedCallReader(source, output, tables, self._read_call)
        self._unmarked = UnmarkedCallReader(
            source, output, tables, self._call_events, policy, self._read_body, self._wrapped.close_tags
        )
        self._machine = self._run(in_reasoning)
        next(self._machine)

    def feed(self, piece: str) -> list[Event]:
        source, mode = self._source, self._state.mode
        if (mode is IN_CONTENT or mode is IN_REASONING) and len(piece) <= MAX_PIECE:
            source.feed(piece)
            end = self._find_plain_end(source.text)
            if end < 0:
                return self._resume(piece)
            source.position = end
            return self._output.consume_plain(source.text[:end], TextDelta if mode is IN_CONTENT else ReasoningDelta)
        sink, progress = source.sink, self._state.progress
        if sink is not None and (progress is None or progress.has_begun) and not sink.stop_pattern.match(piece):
            sink.consume(piece)
            source.skip(piece)
            return progress.report(piece) if progress else []
        events: list[Event] = []
        for start in range(0, len(piece), MAX_PIECE):
            part = piece[start : start + MAX_PIECE] if len(piece) > MAX_PIECE else piece
            source.feed(part)
            events += self._resume(part)
        return events

    def close(self, finish_reason: str | None) -> list[Event]:
        self._source.final = True
        self._source.finish_reason = finish_reason
        next(self._machine, None)
        return self._drain_events()

    def _resume(self, piece: str) -> list[Event]:
        """Return the events that ``piece``, the text just added to the buffer, completes."""
        next(self._machine)
        if self._state.progress is not None:
            self._output.events += self._state.progress.report_from(piece)
        return self._drain_events()

    def _wait(self, mode: Mode) -> Reader[None]:
        """Wait for more text, which has the kind ``mode`` up to the next marker."""
        self._state.mode = mode
        yield
        self._state.mode = UNDECIDED

    def _drain_events(self) -> list[Event]:
        events = self._output.drain()
        return add_argument_deltas(events) if self._streams_arguments else events

    # -------------------------------------------------------------------- text

    def _run(self, in_reasoning: bool) -> Reader[None]:
        yield
        source, state, output = self._source, self._state, self._output
        if in_reasoning:
            yield from self._read_unopened_reasoning()
        if state.last is not CONTENT:
            yield from self._read_head()
        while True:
            plain, marker = source.scan(self._wrapped.text_markers)
            after_call = state.last is CALL or bool(state.buffered_calls)
            if source.final and not marker and after_call and self._tables.is_cut_closer(plain):
                output.accept_buffered()
                output.add_markup(plain)
            else:
                output.add_text(plain)
            if marker:
                yield from self._handle_marker(marker)
            elif source.final:
                break
            else:
                is_plain = state.last is CONTENT and not (state.buffered_calls or state.open_tags)
                yield from self._wait(IN_CONTENT if is_plain else UNDECIDED)
        output.accept_buffered()
        output.flush_whitespace(as_text=state.last in (NOTHING, CONTENT))

    def _read_head(self) -> Reader[None]:
        """Parse markup that is only valid at the start of an answer."""
        header = yield from skip_echoed_header(self._source)
        if header:
            self._output.add_markup(header)
        for read in self._tables.header_readers:
            yield from self._read_call(CallOpener("", read), "")
        yield from self._read_first()

    def _handle_marker(self, marker: str) -> Reader[None]:
        kind, state, output, openers = marker.lower(), self._state, self._output, self._tables.openers
        if kind in LINE_STARTS:
            output.add_text(LINE_START)
            self._source.push_back(marker[1:])
            if not state.line.quote_reason:
                yield from self._read_unmarked_call()
        elif kind == FENCE and (state.line.is_blank or state.line.ends_sentence) and not state.line.is_fenced:
            yield from self._unmarked.read_fence()
        elif reason := self._find_quote_reason(kind):
            if kind in openers:
                if reason == "inline-code":
                    state.line.advance_past_tick()
                elif reason == "quotation":
                    state.line.advance_past_quotation()
                state.is_quoting = True
                output.reject(reason, *self._source.find_last_span(len(marker)))
            output.add_text(marker)
        elif kind in openers:
            yield from self._read_call(openers[kind], marker)
        else:
            yield from self._handle_part(kind, marker)

    def _find_quote_reason(self, kind: str) -> str:
        """Return why the current marker is only quoted, as a key of `REJECTION_REASONS`, or "" if it is not. ``kind``
        is the marker in lower case."""
        line, is_opener = self._state.line, kind in self._tables.openers
        reason = line.next_line_quote_reason if kind[0] == "\n" else line.quote_reason
        if is_opener and not reason and self._state.is_in_element and names_tool(kind, self._source.tools):
            return "unknown-form"  # data of an unknown tool
        return "" if reason == "quotation" and not is_opener else reason

    def _handle_part(self, kind: str, marker: str) -> Reader[None]:
        """Handle a ``marker`` that does not open a call. It may begin or end reasoning, an answer or a turn, close a
        call, or be content. ``kind`` is the marker in lower case."""
        state, output, tables = self._state, self._output, self._tables
        if kind in tables.reasoning and (
            state.line.is_blank or state.has_calls or (yield from self._source.begins_block())
        ):
            output.accept_buffered()
            output.add_markup(marker)
            yield from self._read_reasoning()
            yield from self._read_first()
        elif kind == state.answer_close:
            output.accept_buffered()
            output.add_markup(marker)
            state.answer_close, state.last = "", REASONING
        elif kind in tables.reasoning.values():
            output.close_unopened_reasoning(marker)
            yield from self._read_first()
        elif (
            kind in tables.end_tokens
            or (
                kind in tables.stray_closers
                and not state.is_quoting
                and (yield from is_stray_closer(kind, self._source, state))
            )
            or (kind in tables.fallback_closers and state.last is CALL)
        ):
            output.accept_buffered()
            output.add_markup(marker)
            if state.line.is_blank:
                yield from self._read_markerless()
        elif kind in tables.answer_tags and self._begins_answer(kind):
            output.accept_buffered()
            output.add_markup(marker)
            state.answer_close = tables.answer_tags[kind]
        elif kind in tables.other_role_markers or (
            kind in tables.result_markers and (state.has_calls or state.buffered_calls)
        ):
            output.accept_buffered()
            output.add_markup(marker)
            yield from discard_rest(tables.opening_markers, self._source, output)
        elif kind in INVENTED_RESULT and state.line.is_blank:
            output.add_markup(marker)  # an echo of an earlier result, whose calls are only text
            yield from read_echoed_result(marker.replace("<", "</"), tables.opening_markers, self._source, output)
        else:
            output.add_text(marker)

    def _begins_answer(self, tag: str) -> bool:
        """Return whether ``tag`` begins the answer: it follows reasoning or, if it is a control token, begins the
        text."""
        state = self._state
        return not state.answer_close and (state.last is REASONING or (state.last is NOTHING and is_token(tag)))

    # --------------------------------------------------------------- reasoning

    def _read_unopened_reasoning(self) -> Reader[None]:
        """Parse text that begins inside reasoning, or with the marker that opens reasoning."""
        yield from self._source.skip_space(self._state.space)
        repeated = yield from self._source.consume_marker(get_marker_set(*self._tables.reasoning))
        if repeated:
            self._output.add_markup(repeated)
            self._assumes_reasoning = False
        self._is_opened = not self._assumes_reasoning
        yield from self._read_reasoning()

    def _read_reasoning(self) -> Reader[None]:
        state, output, openers = self._state, self._output, self._tables.openers
        state.enter_reasoning(has_fences=not self._is_opened)
        yield from self._source.skip_space(state.space)
        while repeated := (yield from self._source.consume_marker(get_marker_set(*self._tables.reasoning))):
            output.add_markup(repeated)  # the opening marker is doubled
            yield from self._source.skip_space(state.space)
        output.flush_whitespace(as_text=False)
        start = self._source.offset
        while True:
            plain, marker = self._source.scan(self._tables.reasoning_markers)
            output.add_reasoning(plain)
            is_word = marker[:1].isalpha() and not state.line.is_blank
            if marker.lower() in openers and not state.line.quote_reason and not is_word:
                has_text = self._source.offset - len(marker) > start
                closing = yield from self._read_draft(marker)
                if closing is None:
                    output.reclassify_reasoning(has_text=has_text)
                    return
                marker = closing
            if marker and marker.lower() not in openers:
                output.add_markup(marker)
                state.answer_close = self._tables.answer_tags.get(marker.lower(), "")
                break
            output.add_reasoning(marker)
            if marker:
                self._output.reject("reasoning", *self._source.find_last_span(len(marker)))
            elif self._source.final:
                output.end_unclosed_reasoning(is_assumed=self._assumes_reasoning and not self._source.was_cut)
                break
            else:
                yield from self._wait(IN_REASONING)
        self._is_opened = True
        output.end_section()

    def _read_draft(self, opener: str) -> Reader[str | None]:
        """Parse a call in reasoning. It is accepted only if no answer follows and the call begins a line or ends the
        reasoning.

        Return the marker that closes the reasoning, or "" at the end of the text. Return None if no marker opened or
        closes the reasoning: then all text is content, and the call remains to be parsed.
        """
        draft = [opener]
        allow_text = self._state.line.is_blank and self._is_opened
        closing = yield from self._source.read_until(self._tables.reasoning_ends, draft)
        text = "".join(draft)
        if not closing and not self._is_opened and self._accepts_drafts and not self._source.was_cut:
            self._source.push_back(text)
            return None
        calls = self._parse_calls(text, allow_text=allow_text and not closing) if self._accepts_drafts else []
        if calls and closing:
            space: list[str] = []
            has_answer = (yield from self._source.skip_space(space)) != ""
            self._source.push_back("".join(space))
            calls = [] if has_answer else calls
        if self._source.was_cut:
            calls = []
        if calls:
            self._output.add_calls(calls, keeps_space=False)
        else:
            start = self._source.offset - len(closing) - len(text)
            self._output.reject("reasoning", start, start + len(text.rstrip(SPACE)))
            self._output.add_reasoning(text)
        return closing

    def _parse_calls(self, text: str, *, allow_text: bool) -> list[Event]:
        """Return the events of ``text``, a part of the reasoning, if it contains only calls to read-only tools and,
        with ``allow_text``, sentences of reasoning. Otherwise, return an empty list."""
        inner = self._new_segmenter(in_reasoning=False, accepts_drafts=False)
        events = [*inner.feed(text), *inner.close(None)]
        content = "".join(event.text for event in events if isinstance(event, TextDelta))
        if allow_text and not isinstance(events[0], TextDelta) and not content.lstrip()[:1].islower():
            events = [ReasoningDelta(each.text, each.raw) if isinstance(each, TextDelta) else each for each in events]
        kinds = ToolCall | MarkupDelta | ToolCallProgress | ReasoningDelta
        tools = [self._source.tools.match(event.name) for event in events if isinstance(event, ToolCall)]
        only_reads = all(tool is None or tool.effect == "read" for tool in tools)  # the call may not be intended
        return events if all(isinstance(event, kinds) for event in events) and tools and only_reads else []

    # ------------------------------------------------------------------- calls

    def _read_call(self, opener: CallOpener, marker: str) -> Reader[None]:
        consumed = [marker]
        result, progress = yield from self._read_body(opener.read, consumed, is_marked=True)
        raw, result = yield from give_back_next_call(self._source, self._tables, marker, "".join(consumed), result)
        reason, tools = "no-body", self._source.tools
        if not self._source.at_line_start and not self._source.was_cut:
            in_sentence, is_glued = not self._state.line.ends_sentence, not any(self._state.space)
            if is_mere_mention(raw, marker, result, tools, is_glued=is_glued):
                self._source.push_back(raw[len(marker) :])
                raw, result = marker, TEXT
            elif (
                rest := (
                    yield from consume_mentioned_closers(
                        self._source, self._tables, result, tools, in_sentence=in_sentence, is_glued=is_glued
                    )
                )
            ) is not None:
                is_known = any(tools.match(call.name) for call in result.calls)
                raw, result, reason = raw + rest, TEXT, "in-text" if is_known else "unknown-tool"
        if result.not_a_call and raw.lower() in self._tables.stray_closers:
            yield from self._handle_part(raw.lower(), raw)
            return
        may_be_doubled = result.not_a_call and raw == marker != "" and self._source.at_line_start
        if may_be_doubled and (yield from self._source.is_next(get_marker_set(marker))):
            self._output.add_markup(raw)
            return
        if result.not_a_call:
            is_known = marker.lower() in self._tables.openers
            if is_known and (yield from self._wrapped.reread(marker, raw)):
                return
            if is_known and (yield from self._unmarked.reread_worded(raw)):
                return
            ends_sentence = is_known and self._state.line.ends_sentence
            if ends_sentence and (yield from self._unmarked.read_announced(opener.read, marker, raw)):
                return
            if is_known:
                self._state.is_quoting |= not self._source.at_line_start
                self._output.reject(reason, *self._source.find_last_span(len(raw)))
            self._output.add_text(raw)
            return
        self._output.accept_buffered()
        if result.section is not None:
            self._output.add_markup(raw)
            yield from read_opaque_section(result.section, self._source, self._output)
            yield from self._read_markerless()
            return
        events = self._call_events.build_events(result, raw)
        if result.calls or result.error is not None:
            self._output.add_calls(progress.finish(events), keeps_space=opener.keeps_space)
            self._wrapped.track_opener(marker, raw)
            if self._state.open_tags:
                yield from self._wrapped.close_tags()
        else:
            self._output.add_empty(events, keeps_space=opener.keeps_space)

    def _read_first(self) -> Reader[None]:
        """Parse a call at the start of an answer or after reasoning, where its opening marker may be missing."""
        yield from self._read_markerless()
        space = self._state.space
        char = yield from self._source.skip_space(space)
        self._state.line.add("".join(space))
        if char and (char in "{[<" or (yield from self._begins_words())):
            yield from self._read_unmarked_call()

    def _begins_words(self) -> Reader[bool]:
        """Return whether the answer may begin with words that announce a call."""
        source, start = self._source, self._tables.text_markers.weak[LINE_START]
        while not start.accepts(source.text, source.position):
            if source.final or not start.may_accept(source.text, source.position):
                return False
            yield
        return True

    def _read_unmarked_call(self) -> Reader[None]:
        """Parse a call without a marker at the start of a line or answer: in JSON, in tags, or announced by words."""
        source = self._source
        yield from source.wait_for_character()
        start, char = source.offset, source.text[source.position : source.position + 1]
        if char and char in "{[":
            yield from self._unmarked.read_unmarked()
        elif char == "<" and (yield from self._wrapped.begins_here()):
            yield from self._wrapped.read_tags()
        if char and source.offset == start:
            yield from self._unmarked.read_worded()

    def _read_markerless(self) -> Reader[None]:
        """Parse a call, or the header of a message, from which the server stripped the markers."""
        source, has_call = self._source, bool(self._tables.markerless_readers)
        while has_call and _BEGINS_MARKERLESS.match(source.text, source.position):
            start = source.offset
            for read in self._tables.markerless_readers:
                yield from self._read_call(CallOpener("", read), "")
            has_call = source.offset > start and self._state.last is CALL

    def _read_body(
        self,
        read: BodyReader,
        consumed: list[str],
        *,
        is_marked: bool = False,
        begins_line: bool = False,
        follows_call: bool = False,
    ) -> Reader[tuple[BodyResult, CallProgress]]:
        source, state = self._source, self._state
        after_call = follows_call or state.last is CALL
        source.begin_body(at_line_start=begins_line or state.line.is_blank, after_call=after_call)
        marker, start, is_certain = "".join(consumed), source.offset, is_marked or self._calls_bare
        streams = self._streams_arguments and is_marked and not state.buffered_calls  # buffered calls come first
        space = "".join(state.space)
        streams = streams and "<" not in space  # and so do wrapper tags
        streams = streams and (
            state.line.is_blank or not space or state.line.ends_sentence
        )  # otherwise, prose may only mention the call
        progress = CallProgress(
            source, self._call_events, marker, start, is_certain=is_certain, streams_arguments=streams
        )
        state.enter_call(progress)
        result = yield from read(source, consumed)
        state.leave_call()
        return result, progress
