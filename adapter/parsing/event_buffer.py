"""Collect the events of one turn, and buffer text until the text after it shows how to classify it.

Whitespace is content only if more content follows. Calls without markers are accepted if only calls follow until the
end of the answer, or if they begin the answer and a comment follows.
"""

from __future__ import annotations

from adapter.core.events import (
    ContentReclassified,
    Event,
    MarkupDelta,
    ReasoningDelta,
    ReasoningReclassified,
    RejectedCall,
    TextDelta,
)
from adapter.parsing.markdown_context import MarkdownContext
from adapter.parsing.parse_state import CALL, CONTENT, NOTHING, REASONING, BufferedCalls, ParseState
from adapter.parsing.stream_buffer import SPACE
from adapter.parsing.wrapper_tags import find_tag_names


class EventBuffer:
    """Collects the events of a turn until `drain` returns them, and updates the fields of ``state`` about the text so
    far."""

    __slots__ = ("events", "state")

    def __init__(self, state: ParseState) -> None:
        self.events: list[Event] = []
        self.state = state

    def drain(self) -> list[Event]:
        """Return the collected events and clear them."""
        events, self.events = self.events, []
        return events

    # -------------------------------------------------------- text and markup

    def consume_plain(self, piece: str, kind: type[TextDelta | ReasoningDelta]) -> list[Event]:
        """Return the event for ``piece``, a chunk of content or reasoning without markers. This is a faster `add_text`
        or `add_reasoning`. ``kind`` is the event's class."""
        if not piece:
            return []
        state = self.state
        state.line.add(piece)
        if kind is TextDelta:
            state.track_markup(piece)
        body = piece.rstrip(SPACE) if piece[-1] in SPACE else piece
        if not body:
            state.space.append(piece)
            return []
        text = body
        if state.space:
            text = "".join((*state.space, body))
            state.space.clear()
        if len(body) < len(piece):
            state.space.append(piece[len(body) :])
        return [kind(text, text)]

    def add_text(self, text: str) -> None:
        """Add content. Whitespace at its end is buffered, because it may belong to the chat template."""
        state = self.state
        if not text:
            return
        if state.last is CONTENT and not state.buffered_calls:
            self.events += self.consume_plain(text, TextDelta)
            return
        rest = text.lstrip(SPACE)
        body = rest.rstrip(SPACE)
        state.space.append(text[: len(text) - len(rest)])
        if body and self._precede_comment(body):
            self.accept_buffered()
            state.has_leading_calls = True
        state.line.add(text)
        state.track_markup(text)
        if body:
            self.reject_buffered()
            self.flush_whitespace(as_text=state.last is not REASONING, tags_as_text=True)
            self.events.append(TextDelta(body, body))
            state.last = CONTENT
            state.space.append(rest[len(body) :])

    def add_markup(self, raw: str) -> None:
        self.flush_whitespace(as_text=False)
        self.events.append(MarkupDelta(raw))

    def flush_whitespace(self, *, as_text: bool, tags_as_text: bool = False) -> None:
        """Emit the buffered whitespace, and any wrapper tags after it. ``as_text`` and ``tags_as_text``: whether the
        whitespace and the tags are content rather than markup."""
        space, bracket, tags = "".join(self.state.space).partition("<")
        self.state.space.clear()
        if space:
            self.events.append(TextDelta(space, space) if as_text else MarkupDelta(space))
        if bracket:
            tags = bracket + tags
            self.state.open_tags |= set() if tags_as_text else find_tag_names(tags)
            self.events.append(TextDelta(tags, tags) if tags_as_text else MarkupDelta(tags))

    def close_tag(self, raw: str) -> None:
        """Add ``raw``, the closing tag of a wrapper around calls, as markup. If the calls are still buffered, the tag
        is buffered with them."""
        self.state.open_tags.remove(raw[2:-1].lower())
        if not self.state.buffered_calls:
            self.add_markup(raw)
            return
        buffered = self.state.buffered_calls.pop()
        raw = "".join((*self.state.space, raw))
        self.state.space.clear()
        self.state.buffered_calls.append(
            buffered._replace(events=[*buffered.events, MarkupDelta(raw)], raw=buffered.raw + raw)
        )

    # --------------------------------------------------------------- reasoning

    def add_reasoning(self, text: str) -> None:
        space = self.state.space
        self.state.line.add(text)
        body = text.rstrip(SPACE)
        if body:
            whole = "".join((*space, body))
            self.events.append(ReasoningDelta(whole, whole))
            space.clear()
        space.append(text[len(body) :])

    def end_unclosed_reasoning(self, *, is_assumed: bool) -> None:
        """End reasoning that is still open at the end of the text, including whitespace at its end. ``is_assumed``:
        whether reasoning was assumed without an opening marker in the text."""
        space = "".join(self.state.space)
        if space and self.state.last is not CALL:
            self.state.space.clear()
            self.events.append(ReasoningDelta(space, space))
        if is_assumed and self.state.last is NOTHING:
            self.events.append(ReasoningReclassified())

    def reclassify_reasoning(self, *, has_text: bool) -> None:
        """Treat the reasoning so far as content. ``has_text``: whether there is any reasoning."""
        self.events.append(ReasoningReclassified())
        self.state.has_reasoning = False
        self.state.last = CONTENT if has_text else NOTHING

    def end_section(self, *, as_text: bool = False) -> None:
        """End reasoning or a section. ``as_text``: whether the whitespace before the end is content."""
        self.flush_whitespace(as_text=as_text)
        self.state.leave_reasoning()

    def close_unopened_reasoning(self, marker: str) -> None:
        """Turn the text so far into reasoning: ``marker`` closes it, and the prompt contained the opening marker."""
        state = self.state
        self.reject_buffered()
        self.flush_whitespace(as_text=False)
        is_first = state.last is CONTENT and not (state.has_reasoning or state.has_calls)
        self.events.append(ContentReclassified(marker) if is_first else MarkupDelta(marker))
        state.has_reasoning, state.last, state.line = True, REASONING, MarkdownContext()

    # ------------------------------------------------------------------- calls

    def add_calls(self, events: list[Event], *, keeps_space: bool = True) -> None:
        """Add the events of valid or invalid calls. ``keeps_space``: whether the whitespace between preceding text and
        the calls is content."""
        self.flush_whitespace(as_text=keeps_space and self.state.last is CONTENT)
        self.events += events
        self.state.enter_after_call()

    def add_empty(self, events: list[Event], *, keeps_space: bool) -> None:
        """Add the ``events`` for markup without a call: a pair of markers with nothing between them, or a message
        header. ``keeps_space``: see `add_calls`."""
        self.flush_whitespace(as_text=keeps_space and self.state.last is CONTENT)
        self.events += events
        self.state.line = MarkdownContext()

    def reject(self, reason: str, start: int, end: int) -> None:
        """Record why the text from ``start`` to ``end`` is not a call. ``reason`` is a key of `REJECTION_REASONS`."""
        self.events.append(RejectedCall(start, end, reason))

    def add_buffered_calls(
        self, events: list[Event], raw: str, start: int, *, begins_answer: bool = False, matches_format: bool = False
    ) -> None:
        """Buffer calls that are accepted only if the answer ends, or only calls or a comment follow. For the
        parameters, see `BufferedCalls`."""
        space = "".join(self.state.space)
        self.state.space.clear()
        events = [MarkupDelta(space), *events] if space else events
        self.state.buffered_calls.append(BufferedCalls(events, space, raw, start, begins_answer, matches_format))
        self.state.line = MarkdownContext()

    def _precede_comment(self, following: str) -> bool:
        """Return whether the answer begins with the buffered calls, and continues with ``following``, a comment on
        them.

        Text that continues a sentence is not a comment. Text on the next line is a comment only after calls in the
        expected format.
        """
        buffered, space = self.state.buffered_calls, "".join(self.state.space)
        if not buffered or not all(each.begins_answer for each in buffered):
            return False
        if "\n" in space:
            return not following[0].islower() and all(each.matches_format for each in buffered)
        return following[0].isupper() or (not space and following[0] in "[<(")

    def accept_buffered(self) -> None:
        """Emit the buffered calls, because the text after them shows that they are calls."""
        if self.state.buffered_calls:
            for buffered in self.state.buffered_calls:
                self.events += buffered.events
            self.state.buffered_calls.clear()
            self.state.enter_after_call()

    def reject_buffered(self) -> None:
        """Emit the buffered calls as content, because more content follows them."""
        for buffered in self.state.buffered_calls:
            text = buffered.space + buffered.raw
            self.reject("text-follows", buffered.start, buffered.start + len(buffered.raw))
            self.events.append(TextDelta(text, text))
            self.state.last = CONTENT
        self.state.buffered_calls.clear()
