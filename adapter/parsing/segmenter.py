"""Cuts a model's text into answer, reasoning and calls: one machine for every format.

The machine is a generator that reads a `StreamBuffer`, keeps a `ParseState` and fills an `EventBuffer`; formats
contribute markers and body readers through their tables. Where a call may be is decided here:

- at a format's marker, unless it is quoted in inline code or a code fence;
- as bare or fenced JSON that begins a line, when nothing but calls follows it
  until the end of the message: until then it is held, and becomes text otherwise;
- never in reasoning, unless reasoning never closes and the call is its end, of a tool that only reads
  (Qwen3.5 forgets ``</think>`` before a call).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from adapter.core.events import Event, MarkupDelta, ReasoningDelta, TextDelta, ToolCall, ToolCallProgress
from adapter.parsing.call_events import CallEventFactory
from adapter.parsing.call_progress import CallProgress, keep_argument_deltas
from adapter.parsing.echoed_header import skip_echoed_header
from adapter.parsing.event_buffer import EventBuffer
from adapter.parsing.fallback_readers import FallbackReaders
from adapter.parsing.format import TEXT, BodyReader, BodyResult, CallOpener, Format, ReadContext
from adapter.parsing.markdown_context import FENCE, FENCE_KIND
from adapter.parsing.marker_set import markers_for
from adapter.parsing.marker_tables import BARE_STARTS, CALL_FENCES, INVENTED_RESULT, build_marker_tables
from adapter.parsing.mention_detection import begins_block, is_mere_mention, is_stray_closer
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
from adapter.parsing.stream_buffer import SPACE, Reader, StreamBuffer, read_until, skip_space, take_marker, take_until
from adapter.tools.call_shapes import Normalise
from adapter.tools.tool import ToolSet

MAX_PIECE = 1 << 17
"""Characters taken at once. Some steps look at all that has come (json's errors count its lines): a longer text
is read in pieces, so that their number does not multiply with its length."""

_closing_fence = markers_for(FENCE)
_BEGINS_STRIPPED = re.compile(r"\s*+(?:[\w.-]*+(?:[:\[{]|\Z)|analysis[^a-z\s]|assistant[cf])")
"""How an answer without its markers begins: with a word and a colon, bracket or brace, with what has come of them, or
with the words of Harmony's headers."""


class Segmenter:
    """Feed it text, take events. Never raises on any text; cost is linear in the text.

    ``normalise`` matches a decoded call to the session's tools, as far as that is
    certain. ``id_seed`` makes the ids of this turn differ from other turns'.
    ``assumes_reasoning``: that the text begins in reasoning is the format's habit, which the prompt did not confirm.
    ``drafts_count``: whether calls that end unclosed reasoning are meant.
    ``stream_arguments``: whether a call's arguments are handed on while they are being written.
    ``others``: those whose calls are read, too, where they have markers of their own.
    """

    def __init__(
        self,
        formats: Sequence[Format],
        tools: ToolSet,
        normalise: Normalise,
        policy: ParsePolicy,
        *,
        id_seed: str,
        in_reasoning: bool,
        assumes_reasoning: bool = False,
        drafts_count: bool = True,
        stream_arguments: bool = False,
        others: FallbackReaders | None = None,
    ) -> None:
        self._policy, self._drafts_count = policy, drafts_count
        self._streams_arguments, self._assumes_reasoning = stream_arguments, assumes_reasoning
        self._again = partial(  # for calls drafted in reasoning
            Segmenter, formats, tools, normalise, policy, id_seed=f"{id_seed}/reasoning", others=others
        )
        self._calls_bare = len(formats) > 1 or formats[0].read_bare is not None
        self._verdicts = CallEventFactory(formats[0], tools, normalise, policy, id_seed=id_seed)
        self._tables = build_marker_tables(tuple(formats), tuple(tools), others)
        self._plain_end = self._tables.text_markers.plain_end
        own_body = formats[0].tool_call_body if len(formats) == 1 else None
        self._context = ReadContext(tools, expected_format=self._tables.told, tool_call_body=own_body)

        self._source = StreamBuffer()
        self._state = ParseState()
        self._output = EventBuffer(self._state)
        self._machine = self._run(in_reasoning)
        next(self._machine)

    def feed(self, piece: str) -> list[Event]:
        source, mode = self._source, self._state.mode
        if (mode is IN_CONTENT or mode is IN_REASONING) and len(piece) <= MAX_PIECE:
            source.feed(piece)
            end = self._plain_end(source.text)
            if end < 0:
                return self._resume(piece)
            source.position = end
            return self._output.take_plain(source.text[:end], TextDelta if mode is IN_CONTENT else ReasoningDelta)
        sink, progress = source.sink, self._state.progress
        if sink is not None and (progress is None or progress.has_begun) and not sink.matters.match(piece):
            sink.take(piece)
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
        return self._events()

    def _resume(self, piece: str) -> list[Event]:
        """Return the events that ``piece``, which was fed, completes."""
        next(self._machine)
        if self._state.progress is not None:
            self._output.events += self._state.progress.report_from(self._source, piece)
        return self._events()

    def _wait(self, mode: Mode) -> Reader[None]:
        """Wait for more text, which belongs to ``mode`` up to the next marker."""
        self._state.mode = mode
        yield
        self._state.mode = UNDECIDED

    def _events(self) -> list[Event]:
        events = self._output.drain()
        return keep_argument_deltas(events) if self._streams_arguments else events

    # -------------------------------------------------------------------- text

    def _run(self, in_reasoning: bool) -> Reader[None]:
        yield
        if in_reasoning:
            yield from self._read_unopened_reasoning()
        yield from self._read_head()
        source, state, output, markers = self._source, self._state, self._output, self._tables.text_markers
        while True:
            plain, marker = source.scan(markers)
            output.add_text(plain)
            if marker:
                yield from self._at_marker(marker)
            elif source.final:
                break
            else:
                yield from self._wait(IN_CONTENT if state.last is CONTENT and not state.held else UNDECIDED)
        output.commit_held()
        output.flush_whitespace(as_text=state.last in (NOTHING, CONTENT))

    def _read_head(self) -> Reader[None]:
        """What can only stand where an answer begins."""
        header = yield from skip_echoed_header(self._source)
        if header:
            self._output.add_markup(header)
        for read in self._tables.heads:
            yield from self._read_call(CallOpener("", read), "")
        yield from self._read_first()

    def _at_marker(self, marker: str) -> Reader[None]:
        kind, state, output, openers = marker.lower(), self._state, self._output, self._tables.openers
        if kind in BARE_STARTS:
            output.add_text("\n")
            self._source.push_back(marker[1])
            if not state.line.quote_reason:
                yield from self._read_bare()
        elif kind == FENCE and state.line.is_blank and not state.line.is_fenced:
            yield from self._read_fence()
        elif reason := self._why_quoted(kind):
            if kind in openers:
                if reason == "inline-code":
                    state.line.advance_past_tick()
                self._reject(reason, len(marker))
            output.add_text(marker)
        elif kind in openers:
            yield from self._read_call(openers[kind], marker)
        else:
            yield from self._at_part(kind, marker)

    def _why_quoted(self, kind: str) -> str:
        """Why a marker means nothing here: a key of `REJECTION_REASONS`, "" when it means what it says."""
        line = self._state.line
        reason = line.quoted_after("\n") if kind[0] == "\n" else line.quote_reason
        return "" if reason == "quotation" and kind not in self._tables.openers else reason

    def _at_part(self, kind: str, marker: str) -> Reader[None]:
        """At a marker that begins or ends reasoning, an answer or a turn, where it stands as one does."""
        state, output, tables = self._state, self._output, self._tables
        if kind in tables.reasoning and (
            state.line.is_blank or state.has_calls or (yield from begins_block(self._source))
        ):
            output.commit_held()
            output.add_markup(marker)
            yield from self._read_reasoning()
            yield from self._read_first()
        elif kind in tables.reasoning.values():
            output.close_unopened_reasoning(marker)
            yield from self._read_first()
        elif (
            kind in tables.ends
            or (kind in tables.strays and (yield from is_stray_closer(self._source, state)))
            or (kind in tables.foreign_strays and state.last is CALL)
        ):
            output.commit_held()
            output.add_markup(marker)
            if state.line.is_blank:
                yield from self._read_stripped()
        elif kind in tables.answers and state.last is REASONING and not state.answer_close:
            output.add_markup(marker)
            state.answer_close = tables.answers[kind]
        elif kind == state.answer_close:
            output.add_markup(marker)
            state.answer_close, state.last = "", REASONING
        elif kind in tables.next_turns or (kind in tables.results and (state.has_calls or state.held)):
            output.commit_held()
            output.add_markup(marker)
            yield from discard_rest(tables.opening_markers, self._source, output)
        elif kind in INVENTED_RESULT and state.line.is_blank:
            output.add_markup(marker)  # an echo of an earlier result: whatever it holds was not written as a call
            yield from read_echoed_result(marker.replace("<", "</"), tables.opening_markers, self._source, output)
        else:
            output.add_text(marker)

    def _reject(self, reason: str, length: int) -> None:
        """Say why the last ``length`` characters taken are no call."""
        end = self._source.offset
        self._output.reject(reason, end - length, end)

    # --------------------------------------------------------------- reasoning

    def _read_unopened_reasoning(self) -> Reader[None]:
        """The text begins in reasoning, or with the marker that opens it."""
        yield from skip_space(self._source, self._state.space)
        repeated = yield from take_marker(self._source, markers_for(*self._tables.reasoning))
        if repeated:
            self._output.add_markup(repeated)
            self._assumes_reasoning = False
        yield from self._read_reasoning()

    def _read_reasoning(self) -> Reader[None]:
        state, output, openers = self._state, self._output, self._tables.openers
        state.enter_reasoning()
        yield from skip_space(self._source, state.space)
        while again := (yield from take_marker(self._source, markers_for(*self._tables.reasoning))):
            output.add_markup(again)  # the opener twice
            yield from skip_space(self._source, state.space)
        output.flush_whitespace(as_text=False)
        while True:
            plain, marker = self._source.scan(self._tables.reasoning_markers)
            output.add_reasoning(plain)
            if marker.lower() in openers and not state.line.quote_reason:
                marker = yield from self._read_draft(marker)
            if marker and marker.lower() not in openers:
                output.add_markup(marker)
                break
            output.add_reasoning(marker)
            if marker:
                self._reject("reasoning", len(marker))
            elif self._source.final:
                output.end_unclosed_reasoning(is_assumed=self._assumes_reasoning and not self._source.was_cut)
                break
            else:
                yield from self._wait(IN_REASONING)
        output.end_section()

    def _read_draft(self, opener: str) -> Reader[str]:
        """A call drafted in reasoning is reasoning; one that ends a text whose reasoning never closes is meant.

        Returns the closing marker, "" at the end.
        """
        held = [opener]
        closing = yield from read_until(self._source, self._tables.reasoning_ends, held)
        text = "".join(held)
        is_draft = closing or self._source.was_cut or not self._drafts_count
        calls = [] if is_draft else self._calls_alone(text)
        if calls:
            self._output.add_calls(calls, keeps_space=False)
        else:
            start = self._source.offset - len(closing) - len(text)
            self._output.reject("reasoning", start, start + len(text.rstrip(SPACE)))
            self._output.add_reasoning(text)
        return closing

    def _calls_alone(self, text: str) -> list[Event]:
        """The events of ``text`` if it is calls of tools that only read, and nothing else; else none."""
        inner = self._again(in_reasoning=False, drafts_count=False)
        events = [*inner.feed(text), *inner.close(None)]
        alone = all(isinstance(event, ToolCall | MarkupDelta | ToolCallProgress) for event in events)
        tools = [self._context.tools.match(event.name) for event in events if isinstance(event, ToolCall)]
        only_reads = all(tool is None or tool.effect == "read" for tool in tools)  # that it was meant is a guess
        return events if alone and tools and only_reads else []

    # ------------------------------------------------------------------- calls

    def _read_call(self, opener: CallOpener, marker: str) -> Reader[None]:
        span = [marker]
        result, progress = yield from self._read_body(opener.read, span, is_marked=True)
        raw = "".join(span)
        is_glued = not any(self._state.space)
        if not self._source.was_cut and is_mere_mention(raw, marker, result, self._context, is_glued=is_glued):
            self._source.push_back(raw[len(marker) :])
            raw, result = marker, TEXT
        if result.not_a_call and raw.lower() in self._tables.strays:
            yield from self._at_part(raw.lower(), raw)
            return
        if result.not_a_call:
            if marker:
                self._reject("no-body", len(raw))
            self._output.add_text(raw)
            return
        self._output.commit_held()
        if result.section is not None:
            self._output.add_markup(raw)
            yield from read_opaque_section(result.section, self._source, self._output)
            if not marker:
                yield from self._read_stripped()
            return
        events = self._verdicts.events_for(result, raw)
        if result.calls or result.error is not None:
            self._output.add_calls(progress.ending(events), keeps_space=opener.keeps_space)
        else:
            self._output.add_empty(events, keeps_space=opener.keeps_space)

    def _read_first(self) -> Reader[None]:
        """Where an answer begins, at the very start or right after reasoning: a call without its opener, or JSON."""
        yield from self._read_stripped()
        space = self._state.space
        char = yield from skip_space(self._source, space)
        self._state.line.add("".join(space))
        if char and char in "{[":
            yield from self._read_bare()

    def _read_stripped(self) -> Reader[None]:
        """What the server left of a call, or of a header, without its markers."""
        if self._tables.stripped and _BEGINS_STRIPPED.match(self._source.text, self._source.position):
            for read in self._tables.stripped:
                yield from self._read_call(CallOpener("", read), "")

    def _read_bare(self) -> Reader[None]:
        """JSON where a line begins: a call if nothing but calls follows."""
        span: list[str] = []
        result, _ = yield from self._read_body(self._tables.bare, span)
        raw = "".join(span)
        if result.error is None:
            self._hold(result, raw, is_marked="no-markers" not in result.fixes)
        else:
            self._output.commit_held()
            self._output.add_calls(self._verdicts.events_for(result, raw))

    def _read_fence(self) -> Reader[None]:
        """A code fence: a call if it holds one and nothing else, and nothing but calls follows; else text."""
        span = [FENCE]
        kind = yield from take_until(self._source, "\n", FENCE_KIND + 1, span)
        is_closed, marker, result = False, "", TEXT
        if kind is not None and kind.strip().lower() in CALL_FENCES:
            marker, read = yield from self._fenced_reader(span)
            if read is not None:
                result, _ = yield from self._read_body(read, span)
                is_closed = yield from self._closes_fence(span)
        raw = "".join(span)
        if is_closed and result.calls:
            self._hold(result.adding("code-fence"), raw, is_marked=False)
            return
        if marker or result.calls:
            self._reject("code-fence", len(raw))
        self._output.add_text(raw)
        if len(span) > 1 and span[-1] == FENCE:
            self._state.line.end_quotation()

    def _fenced_reader(self, span: list[str]) -> Reader[tuple[str, BodyReader | None]]:
        """What reads the call that begins a code fence, if one does, and the marker that opens it."""
        char = yield from skip_space(self._source, span)
        if char and char in "{[":
            return "", self._tables.fenced
        marker = yield from take_marker(self._source, self._tables.opening_markers)
        span.append(marker)
        return marker, self._tables.openers[marker.lower()].read if marker else None

    def _closes_fence(self, span: list[str]) -> Reader[bool]:
        """Whether nothing else stands in the code fence; the text's end closes it, too."""
        yield from skip_space(self._source, span)
        closing = yield from take_marker(self._source, _closing_fence)
        span.append(closing)
        return bool(closing) or (self._source.is_empty and not self._source.was_cut)

    def _read_body(
        self, read: BodyReader, span: list[str], *, is_marked: bool = False
    ) -> Reader[tuple[BodyResult, CallProgress]]:
        context, state = self._context, self._state
        context.begin_body(at_line_start=state.line.is_blank, after_call=state.last is CALL)
        marker, start, is_own = "".join(span), self._source.offset, is_marked or self._calls_bare
        streams = self._streams_arguments and is_marked and not state.held  # what is held comes first
        progress = CallProgress(context, self._verdicts, marker, start, is_own=is_own, streams_arguments=streams)
        state.enter_call(progress)
        result = yield from read(self._source, span, context)
        state.leave_call()
        return result, progress

    def _hold(self, result: BodyResult, raw: str, *, is_marked: bool) -> None:
        """Keep calls that count only if nothing but calls follows; text stays text."""
        is_first = self._state.last is NOTHING
        reason = self._verdicts.rejection_reason(result, is_marked=is_marked, is_first=is_first) if result.calls else ""
        if reason:
            self._reject(reason, len(raw))
        if reason or not result.calls:
            self._output.add_text(raw)
            return
        events = self._verdicts.held_events(result, raw, is_marked=is_marked)
        self._output.hold(events, raw, self._source.offset - len(raw))
        if self._policy.allow_midtext:
            self._output.commit_held()
