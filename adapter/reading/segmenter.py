"""Cuts a model's text into answer, reasoning and calls: one machine for every format.

The machine is a generator that reads a `Source`; formats contribute markers and
body readers through their tables. Where a call may stand is decided here:

- at a format's marker, unless it is quoted in inline code or a code fence;
- as bare or fenced JSON that begins a line, when nothing but calls follows it
  until the end of the message: until then it is held, and given back as text;
- never in reasoning, unless reasoning never closes and the call is its end, of a tool that only reads
  (Qwen3.5 forgets ``</think>`` before a call).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from adapter.reading.argument_stream import ArgumentStream
from adapter.reading.format import TEXT, BodyReader, Context, Format, Opener, Reading, Section
from adapter.reading.line import FENCE, FENCE_KIND, Line
from adapter.reading.markers import Either, markers_for
from adapter.reading.mention import is_mention
from adapter.reading.own_header import read_own_header
from adapter.reading.policy import Policy
from adapter.reading.progress import Progress
from adapter.reading.source import SPACE, Reader, Source, collect, skip_space, take_marker, take_until
from adapter.reading.tables import BARE_STARTS, CALL_FENCES, INVENTED_RESULT, tables_for
from adapter.reading.verdicts import Verdicts
from adapter.tools.definition import ToolSet
from adapter.tools.shapes import Normalise
from adapter.values.events import (
    ContentWasReasoning,
    Event,
    InvalidToolCall,
    Markup,
    ReasoningDelta,
    ReasoningWasContent,
    RejectedCall,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallProgress,
)

MAX_PIECE = 1 << 17
"""Characters taken at once. Some steps look at all that has come (json's errors count its lines): a longer text
is read in pieces, so that their number does not multiply with its length."""

_closing_fence = markers_for(FENCE)


class Segmenter:
    """Feed it text, take events. Never raises on any text; cost is linear in the text.

    ``normalise`` matches a decoded call to the session's tools, as far as that is
    certain. ``id_seed`` makes the ids of this turn differ from other turns'.
    ``assumes_reasoning``: that the text begins in reasoning is the format's habit, which the prompt did not confirm.
    ``drafts_count``: whether calls that end unclosed reasoning are meant.
    ``stream_arguments``: whether a call's arguments are handed on while they are being written.
    ``others``: formats whose calls are read, too, where they have markers of their own.
    """

    def __init__(
        self,
        formats: Sequence[Format],
        tools: ToolSet,
        normalise: Normalise,
        policy: Policy,
        *,
        id_seed: str,
        in_reasoning: bool,
        assumes_reasoning: bool = False,
        drafts_count: bool = True,
        stream_arguments: bool = False,
        others: Sequence[Format] = (),
    ) -> None:
        self._formats, self._others = tuple(formats), tuple(others)
        self._normalise, self._policy, self._id_seed, self._drafts_count = normalise, policy, id_seed, drafts_count
        self._streams_arguments, self._assumes_reasoning = stream_arguments, assumes_reasoning
        self._verdicts = Verdicts(self._formats[0], tools, normalise, policy, id_seed=id_seed)
        self._tables = tables_for(self._formats, tuple(tools), self._others)
        self._context = Context(tools, told=self._tables.told)

        self._source = Source()
        self._calls_bare = len(formats) > 1 or formats[0].bare is not None
        self._events: list[Event] = []
        self._space: list[str] = []  # white space that is content only if more text follows
        self._held: list[_Held] = []  # calls that count only at the end
        self._line = Line()
        self._last: Literal["nothing", "text", "reasoning", "call"] = "nothing"
        self._has_calls = self._has_reasoning = False
        self._body_start: int | None = None  # where the body of the call being read begins, None between calls
        self._body_head = ""  # what stands before that body, as its marker
        self._is_marked = False  # the call stands in its format's markers
        self._progress: Progress | None = None  # of that call, once a piece of it has come
        self._answer_end = ""  # what closes the answer that is open, in lower case
        self._plain: type[TextDelta | ReasoningDelta] | None = None  # what comes next if nothing else begins in it
        self._machine = self._run(in_reasoning)
        next(self._machine)

    def feed(self, piece: str) -> list[Event]:
        sink, is_call = self._source.sink, self._body_start is not None
        progress = self._progress if is_call else None
        if sink is not None and (progress or not is_call) and not sink.matters.match(piece):
            sink.take(piece)
            self._source.skip(piece)
            return progress.report(piece, self._verdicts) if progress else []
        if self._plain is not None and not self._held and self._tables.is_plain(piece):
            return self._plain_piece(piece, self._plain)
        for start in range(0, len(piece), MAX_PIECE):
            part = piece[start : start + MAX_PIECE] if len(piece) > MAX_PIECE else piece
            self._source.feed(part)
            next(self._machine)
            if self._body_start is not None:
                self._report_progress(part, self._body_start)
        return self._drain()

    def _plain_piece(self, piece: str, kind: type[TextDelta | ReasoningDelta]) -> list[Event]:
        """What `_add_text` and `_add_reasoning` do, for the many pieces of an answer in which nothing happens."""
        self._source.skip(piece)
        self._line.add(piece)
        if not self._space and piece[-1:] not in SPACE:
            return [kind(piece, piece)]
        whole = "".join((*self._space, piece)) if self._space else piece
        text = whole.rstrip(SPACE)
        self._space = [whole[len(text) :]] if len(text) < len(whole) else []
        return [kind(text, text)] if text else []

    def close(self, finish_reason: str | None) -> list[Event]:
        self._source.final = True
        self._source.finish_reason = finish_reason
        next(self._machine, None)
        return self._drain()

    def _drain(self) -> list[Event]:
        events, self._events = self._events, []
        return _with_arguments(events) if self._streams_arguments else events

    def _report_progress(self, piece: str, start: int) -> None:
        """``piece`` came, and a call whose body begins at ``start`` is not closed."""
        if self._progress is None:
            if self._context.may_be_text or (not self._is_marked and not self._calls_bare):
                return  # another family's way to call, which may still turn out to be text
            streams = self._streams_arguments and self._is_marked and not self._held  # those come first
            head = self._body_head
            stream = ArgumentStream(self._context, self._normalise, start - len(head)) if streams else None
            self._progress = Progress(tuple(self._context.tools), stream)
            piece = head + self._source.since(start)  # a piece before this one may have been held back
        self._events += self._progress.report(piece, self._verdicts)

    # -------------------------------------------------------------------- text

    def _run(self, in_reasoning: bool) -> Reader[None]:
        yield
        if in_reasoning:
            yield from skip_space(self._source, self._space)
            repeated = yield from take_marker(self._source, markers_for(*self._tables.reasoning))
            if repeated:
                self._add_markup(repeated)
                self._assumes_reasoning = False
            yield from self._read_reasoning()
        header = yield from read_own_header(self._source)
        if header:
            self._add_markup(header)
        for read_head in self._tables.heads:
            yield from self._read_call(Opener("", read_head), "")
        yield from self._read_first_bare()
        while True:
            plain, marker = self._source.scan(self._tables.text_markers)
            self._add_text(plain)
            if marker:
                yield from self._at_marker(marker)
            elif self._source.final:
                break
            else:
                self._plain = TextDelta if self._source.is_empty and self._last == "text" else None
                yield
                self._plain = None
        self._accept_held()
        self._end_space(as_text=self._last in ("nothing", "text"))

    def _at_marker(self, marker: str) -> Reader[None]:
        kind, tables = marker.lower(), self._tables
        if kind in BARE_STARTS:
            self._add_text("\n")
            self._source.unread(marker[1])
            if not self._line.is_quoting:
                yield from self._read_bare()
        elif self._line.is_fenced:
            self._add_quoted(marker, "code-fence")
        elif kind == FENCE and self._line.is_blank:
            yield from self._read_fence()
        elif kind == FENCE:
            self._add_text(marker)
        elif self._line.is_in_code:
            if kind in tables.openers:
                self._line.go_on()
            self._add_quoted(marker, "inline-code")
        elif kind in tables.openers and self._line.is_quote:
            self._add_quoted(marker, "quotation")
        elif kind in tables.openers:
            yield from self._read_call(tables.openers[kind], marker)
        elif kind in tables.reasoning and (self._line.is_blank or self._has_calls or (yield from self._begins_block())):
            self._accept_held()
            self._add_markup(marker)
            yield from self._read_reasoning()
            yield from self._read_first_bare()
        elif kind in tables.reasoning.values():
            self._close_unopened_reasoning(marker)
            yield from self._read_first_bare()
        elif kind in tables.ends or (kind in tables.strays and (yield from self._is_stray())):
            self._accept_held()
            self._add_markup(marker)
        elif kind in tables.answers and self._last == "reasoning" and not self._answer_end:
            self._add_markup(marker)
            self._answer_end = tables.answers[kind]
        elif kind == self._answer_end:
            self._add_markup(marker)
            self._answer_end, self._last = "", "reasoning"
        elif kind in tables.next_turns or (kind in tables.results and (self._has_calls or self._held)):
            yield from self._drop_rest(marker)
        elif kind in INVENTED_RESULT and self._line.is_blank:
            self._add_markup(marker)  # an echo of an earlier result: whatever it holds was not written as a call
            yield from self._copy_until(marker.replace("<", "</"), "echoed-result")
        else:
            self._add_text(marker)

    def _add_quoted(self, marker: str, reason: str) -> None:
        self._reject(reason, len(marker), marker)
        self._add_text(marker)

    def _reject(self, reason: str, length: int, marker: str | None = None) -> None:
        """Say why the last ``length`` characters taken are no call, unless ``marker`` opens none anyway."""
        if marker is None or marker.lower() in self._tables.openers:
            end = self._source.offset
            self._events.append(RejectedCall(end - length, end, reason))

    def _is_stray(self) -> Reader[bool]:
        """Whether a closing marker, just taken, begins a line, or is glued to the last word of the text."""
        if self._line.is_blank or self._line.is_quote or any(self._space):
            return self._line.is_blank
        ahead: list[str] = []
        following = yield from skip_space(self._source, ahead)
        self._source.unread("".join(ahead))
        return not following

    def _begins_block(self) -> Reader[bool]:
        """Whether a marker, just taken, begins something and is not a word in a sentence."""
        while self._source.is_empty and not self._source.final:
            yield
        return not self._source.is_empty and self._source.text[self._source.position] in "\r\n<"

    def _add_text(self, text: str) -> None:
        """Hand text on, except for the white space at its end, which may belong to a template."""
        if not text:
            return
        self._line.add(text)
        rest = text.lstrip(SPACE)
        body = rest.rstrip(SPACE)
        self._space.append(text[: len(text) - len(rest)])
        if body:
            self._give_back_held()
            self._end_space(as_text=self._last != "reasoning")
            self._events.append(TextDelta(body, body))
            self._last = "text"
            self._space.append(rest[len(body) :])

    def _add_markup(self, raw: str) -> None:
        self._end_space(as_text=False)
        self._events.append(Markup(raw))

    def _end_space(self, *, as_text: bool) -> None:
        space = "".join(self._space)
        self._space.clear()
        if space:
            self._events.append(TextDelta(space, space) if as_text else Markup(space))

    def _drop_rest(self, marker: str) -> Reader[None]:
        """The model goes on as somebody else: what it invents is nobody's turn."""
        self._accept_held()
        self._add_markup(marker)
        while True:
            plain, marker = self._source.scan(self._tables.opening_markers)
            if plain or marker:
                self._events.append(Markup(plain + marker))
            if marker:
                self._reject("later-turn", len(marker))
            elif self._source.final:
                return
            else:
                yield

    # --------------------------------------------------------------- reasoning

    def _read_reasoning(self) -> Reader[None]:
        self._has_reasoning, self._line = True, Line(has_fences=False)
        yield from skip_space(self._source, self._space)
        while again := (yield from take_marker(self._source, markers_for(*self._tables.reasoning))):
            self._add_markup(again)  # the opener twice
            yield from skip_space(self._source, self._space)
        self._end_space(as_text=False)
        while True:
            plain, marker = self._source.scan(self._tables.reasoning_markers)
            self._add_reasoning(plain)
            if marker.lower() in self._tables.openers and not self._line.is_quoting:
                marker = yield from self._read_call_in_reasoning(marker)
            if marker and marker.lower() not in self._tables.openers:
                self._add_markup(marker)
                break
            self._add_reasoning(marker)
            if marker:
                self._reject("reasoning", len(marker))
            else:
                if self._source.final:
                    self._end_cut_reasoning()
                    break
                self._plain = ReasoningDelta if self._source.is_empty else None
                yield
                self._plain = None
        self._end_space(as_text=False)
        self._last, self._line = ("call" if self._last == "call" else "reasoning"), Line()

    def _read_call_in_reasoning(self, opener: str) -> Reader[str]:
        """A call drafted in reasoning is reasoning; one that ends a text whose reasoning never closes is meant.

        Returns the closing marker, "" at the end.
        """
        held = [opener]
        closing = yield from collect(self._source, self._tables.reasoning_ends, held)
        text = "".join(held)
        is_draft = closing or self._source.was_cut or not self._drafts_count
        calls = [] if is_draft else self._calls_alone(text)
        if calls:
            self._end_space(as_text=False)
            self._events += calls
            self._after_call()
        else:
            start = self._source.offset - len(closing) - len(text)
            self._events.append(RejectedCall(start, start + len(text.rstrip(SPACE)), "reasoning"))
            self._add_reasoning(text)
        return closing

    def _calls_alone(self, text: str) -> list[Event]:
        """The events of ``text`` if it is calls and nothing else, else none."""
        seed = f"{self._id_seed}/reasoning"
        inner = Segmenter(
            self._formats,
            self._context.tools,
            self._normalise,
            self._policy,
            id_seed=seed,
            in_reasoning=False,
            drafts_count=False,
            others=self._others,
        )
        events = [*inner.feed(text), *inner.close(None)]
        alone = all(isinstance(event, ToolCall | Markup | ToolCallProgress) for event in events)
        calls = [event for event in events if isinstance(event, ToolCall)]
        return events if alone and calls and all(map(self._only_reads, calls)) else []

    def _only_reads(self, call: ToolCall) -> bool:
        """Whether what is called changes nothing, as far as its tool is known: that it was meant is a guess."""
        tool = self._context.tools.match(call.name)
        return tool is None or tool.effect == "read"

    def _add_reasoning(self, text: str) -> None:
        self._line.add(text)
        body = text.rstrip(SPACE)
        if body:
            whole = "".join((*self._space, body))
            self._events.append(ReasoningDelta(whole, whole))
            self._space.clear()
        self._space.append(text[len(body) :])

    def _end_cut_reasoning(self) -> None:
        """Reasoning that the text's end cuts off: the white space before it is the model's, not a template's."""
        space = "".join(self._space)
        if space and self._last != "call":
            self._space.clear()
            self._events.append(ReasoningDelta(space, space))
        if self._assumes_reasoning and not self._source.was_cut and self._last == "nothing":
            self._events.append(ReasoningWasContent())

    def _close_unopened_reasoning(self, marker: str) -> None:
        """A closing marker without an opening one: the prompt held it, and the text so far was reasoning."""
        self._give_back_held()
        self._end_space(as_text=False)
        if self._last == "text" and not (self._has_reasoning or self._has_calls):
            self._events.append(ContentWasReasoning(marker))
        else:
            self._events.append(Markup(marker))
        self._has_reasoning, self._last, self._line = True, "reasoning", Line()

    # ---------------------------------------------------------------- sections

    def _read_section(self, section: Section) -> Reader[None]:
        """Take text as what its header says it is, up to the section's end."""
        markers = markers_for(*section.ends, *section.starts, *section.glued_starts)
        add = self._add_reasoning if section.is_reasoning else self._add_text
        if section.is_reasoning:
            yield from skip_space(self._source, self._space)
            self._end_space(as_text=False)
            self._has_reasoning = True
        else:
            self._last = "text"
        while True:
            plain, marker = self._source.scan(markers)
            add(plain)
            if not marker:
                if self._source.final:
                    break
                yield
            elif marker.lower() in section.starts or (marker.lower() in section.glued_starts and not any(self._space)):
                self._source.unread(marker)
                break
            elif marker.lower() not in section.glued_starts and (yield from self._ends_section(section)):
                self._end_space(as_text=not section.is_reasoning)
                self._events.append(Markup(marker))
                break
            else:
                add(marker)
        self._end_space(as_text=not section.is_reasoning)
        self._last, self._line = ("call" if self._last == "call" else "reasoning"), Line()

    def _ends_section(self, section: Section) -> Reader[bool]:
        """Whether nothing stands here but what may follow the section's end. Takes nothing."""
        ahead: list[str] = []
        char = yield from skip_space(self._source, ahead)
        following = yield from take_marker(self._source, markers_for(*section.ends, *section.before))
        self._source.unread("".join(ahead) + following)
        return bool(following) or not char

    # ------------------------------------------------------------------- calls

    def _read_call(self, opener: Opener, marker: str) -> Reader[None]:
        span = [marker]
        reading = yield from self._read_body(opener.read, span, is_marked=True)
        raw = "".join(span)
        if not self._context.at_line_start and not self._source.was_cut:
            body = raw[len(marker) :]
            is_glued = not any(self._space)
            if is_mention(marker, body, reading, self._context.tools) and (body.strip() or not is_glued):
                self._source.unread(body)
                raw, reading = marker, TEXT
        if reading.is_text:
            self._reject("no-body", len(raw), marker)
            self._add_text(raw)
            return
        self._accept_held()
        if reading.section is not None:
            self._add_markup(raw)
            yield from self._read_section(reading.section)
            return
        self._end_space(as_text=opener.keeps_space and self._last == "text")
        self._events += self._ending_stream(self._verdicts.events_of(reading, raw))
        if reading.calls or reading.error is not None:
            self._after_call()
        else:
            self._line = Line()  # a header of no consequence, or a pair of markers with nothing in it

    def _read_first_bare(self) -> Reader[None]:
        """JSON where an answer begins: at the very start, or right after reasoning."""
        char = yield from skip_space(self._source, self._space)
        self._line.add("".join(self._space))
        if char and char in "{[":
            yield from self._read_bare()

    def _ending_stream(self, events: list[Event]) -> list[Event]:
        """``events``, the first call among them with the id and the rest of the arguments that were handed on of it."""
        first = events[0]
        if self._progress is None or not self._progress.id or not isinstance(first, ToolCall):
            return events
        rest = self._progress.rest(first)
        if rest is None:
            error = (
                "its arguments had to be mended after the first of them were handed on. Write it again, in valid JSON."
            )
            return [InvalidToolCall(first.raw, f"the call cannot be taken: {error}", first.name), *events[1:]]
        return [rest, replace(first, id=rest.id), *events[1:]]

    def _read_bare(self) -> Reader[None]:
        """JSON where a line begins: a call if nothing but calls follows."""
        span: list[str] = []
        reading = yield from self._read_body(self._tables.bare, span)
        if reading.error is None:
            self._hold(reading, "".join(span), is_marked="no-markers" not in reading.fixes)
        else:
            self._accept_held()
            self._end_space(as_text=self._last == "text")
            self._events += self._verdicts.events_of(reading, "".join(span))
            self._after_call()

    def _read_fence(self) -> Reader[None]:
        """A code fence: a call if it holds one and nothing else, and nothing but calls follows; else text."""
        span = [FENCE]
        kind = yield from take_until(self._source, "\n", FENCE_KIND + 1, span)
        closed, marker, reading = False, "", TEXT
        if kind is not None and kind.strip().lower() in CALL_FENCES:
            char = yield from skip_space(self._source, span)
            read = None
            if char and char in "{[":
                read = self._tables.fenced
            else:
                marker = yield from take_marker(self._source, self._tables.opening_markers)
                span.append(marker)
                read = self._tables.openers[marker.lower()].read if marker else None
            if read is not None:
                reading = yield from self._read_body(read, span)
                yield from skip_space(self._source, span)
                closing = yield from take_marker(self._source, _closing_fence)
                span.append(closing)
                closed = bool(closing) or (self._source.is_empty and not self._source.was_cut)
        raw = "".join(span)
        if closed and reading.calls:
            self._hold(reading.adding("code-fence"), raw, is_marked=False)
            return
        if marker or reading.calls:
            self._reject("code-fence", len(raw))
        self._add_text(raw)
        if len(span) > 1 and span[-1] == FENCE:
            self._line.end_quotation()

    def _copy_until(self, closing: str, reason: str) -> Reader[None]:
        """The rest of a quotation is text, whatever it holds: up to ``closing`` at the beginning of a line."""
        markers = Either(markers_for(closing), self._tables.opening_markers, first_wins=True)
        while True:
            plain, marker = self._source.scan(markers)
            self._add_text(plain)
            if marker:
                closes = marker.lower() == closing.lower() and self._line.is_blank
                self._reject(reason, len(marker), marker)
                if closes and reason == "echoed-result":
                    self._add_markup(marker)
                else:
                    self._add_text(marker)
                if closes:
                    self._line.end_quotation()
                    return
            elif self._source.final:
                return
            else:
                yield

    def _read_body(self, read: BodyReader, span: list[str], *, is_marked: bool = False) -> Reader[Reading]:
        self._body_start, self._body_head = self._source.offset, "".join(span)
        self._is_marked, self._progress = is_marked, None
        self._context.at_line_start = self._line.is_blank
        self._context.after_call = self._last == "call"
        self._context.json_call, self._context.may_be_text = None, False
        reading = yield from read(self._source, span, self._context)
        self._body_start = None
        return reading

    def _hold(self, reading: Reading, raw: str, *, is_marked: bool) -> None:
        """Keep calls that count only if nothing but calls follows; text stays text."""
        if not reading.calls:
            self._add_text(raw)
            return
        reason = self._verdicts.why_text(reading, is_marked=is_marked, is_first=self._last == "nothing")
        if reason:
            self._reject(reason, len(raw))
            self._add_text(raw)
            return
        events = self._verdicts.held_events(reading, raw, is_marked=is_marked)
        space = "".join(self._space)
        self._space.clear()
        start = self._source.offset - len(raw)
        self._held.append(_Held([Markup(space), *events] if space else events, space, raw, start))
        self._line = Line()
        if self._policy.midway:
            self._accept_held()

    def _accept_held(self) -> None:
        for held in self._held:
            self._events += held.events
        if self._held:
            self._held.clear()
            self._after_call()

    def _give_back_held(self) -> None:
        for held in self._held:
            text = held.space + held.raw
            self._events.append(RejectedCall(held.start, held.start + len(held.raw), "text-follows"))
            self._events.append(TextDelta(text, text))
            self._last = "text"
        self._held.clear()

    def _after_call(self) -> None:
        self._has_calls, self._last, self._line = True, "call", Line()


@dataclass(frozen=True, slots=True)
class _Held:
    """Calls as events, and the text they go back to; ``start`` is where ``raw`` begins in the model's text."""

    events: list[Event]
    space: str
    raw: str
    start: int


def _with_arguments(events: list[Event]) -> list[Event]:
    """``events`` with the arguments of each call, as one piece, before those whose arguments were not handed on."""
    result: list[Event] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, ToolCall) and not (isinstance(last, ToolCallDelta) and last.id == event.id):
            result.append(ToolCallDelta(event.id, event.name, json.dumps(event.arguments, ensure_ascii=False)))
        result.append(event)
    return result
