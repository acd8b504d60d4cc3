"""What was told of a text so far, and what is held back of it until more of the text shows what it is.

Held back are white space, which is content only if more content follows, and calls that count only
if nothing but calls follows until the end.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from adapter.reading.line import Line
from adapter.reading.source import SPACE
from adapter.values.events import (
    ContentWasReasoning,
    Event,
    Markup,
    ReasoningDelta,
    ReasoningWasContent,
    RejectedCall,
    TextDelta,
)


class Output:
    """That of one turn. ``line``: the line that the text has come to; ``last``: what was told last, besides markup."""

    __slots__ = ("_held", "events", "has_calls", "has_reasoning", "last", "line", "space")

    def __init__(self) -> None:
        self.events: list[Event] = []  # not taken yet
        self.space: list[str] = []
        self.line = Line()
        self.last: Literal["nothing", "text", "reasoning", "call"] = "nothing"
        self.has_calls = self.has_reasoning = False
        self._held: list[_Held] = []

    def take(self) -> list[Event]:
        """The events that were not taken yet."""
        events, self.events = self.events, []
        return events

    # -------------------------------------------------------- text and markup

    def take_plain(self, piece: str, kind: type[TextDelta | ReasoningDelta]) -> list[Event]:
        """What `add_text` and `add_reasoning` tell of a piece of an answer in which nothing happens, as most are."""
        if not piece:
            return []
        self.line.add(piece)
        body = piece.rstrip(SPACE) if piece[-1] in SPACE else piece
        if not body:
            self.space.append(piece)
            return []
        text = body
        if self.space:
            text = "".join((*self.space, body))
            self.space.clear()
        if len(body) < len(piece):
            self.space.append(piece[len(body) :])
        return [kind(text, text)]

    def add_text(self, text: str) -> None:
        """Hand text on, except for the white space at its end, which may belong to a template."""
        if not text:
            return
        if self.last == "text" and not self._held:
            self.events += self.take_plain(text, TextDelta)
            return
        self.line.add(text)
        rest = text.lstrip(SPACE)
        body = rest.rstrip(SPACE)
        self.space.append(text[: len(text) - len(rest)])
        if body:
            self.give_back_held()
            self.end_space(as_text=self.last != "reasoning")
            self.events.append(TextDelta(body, body))
            self.last = "text"
            self.space.append(rest[len(body) :])

    def add_markup(self, raw: str) -> None:
        self.end_space(as_text=False)
        self.events.append(Markup(raw))

    def end_space(self, *, as_text: bool) -> None:
        if not self.space:
            return
        space = "".join(self.space)
        self.space.clear()
        if space:
            self.events.append(TextDelta(space, space) if as_text else Markup(space))

    # --------------------------------------------------------------- reasoning

    def add_reasoning(self, text: str) -> None:
        self.line.add(text)
        body = text.rstrip(SPACE)
        if body:
            whole = "".join((*self.space, body))
            self.events.append(ReasoningDelta(whole, whole))
            self.space.clear()
        self.space.append(text[len(body) :])

    def cut_reasoning(self, *, is_assumed: bool) -> None:
        """The text ends in reasoning: the white space before its end is the model's, not a template's.

        ``is_assumed``: nothing in the text said that it was reasoning.
        """
        space = "".join(self.space)
        if space and self.last != "call":
            self.space.clear()
            self.events.append(ReasoningDelta(space, space))
        if is_assumed and self.last == "nothing":
            self.events.append(ReasoningWasContent())

    def end_section(self, *, as_text: bool = False) -> None:
        """What is reasoning, or had a header, ends here. ``as_text``: the white space before its end is content."""
        self.end_space(as_text=as_text)
        self.last, self.line = ("call" if self.last == "call" else "reasoning"), Line()

    def close_unopened_reasoning(self, marker: str) -> None:
        """A closing marker without an opening one: the prompt held it, and the text so far was reasoning."""
        self.give_back_held()
        self.end_space(as_text=False)
        is_first = self.last == "text" and not (self.has_reasoning or self.has_calls)
        self.events.append(ContentWasReasoning(marker) if is_first else Markup(marker))
        self.has_reasoning, self.last, self.line = True, "reasoning", Line()

    # ------------------------------------------------------------------- calls

    def add_calls(self, events: list[Event], *, keeps_space: bool = True) -> None:
        """Calls, or why what looks like one is none. ``keeps_space``: white space after text is content, too."""
        self.end_space(as_text=keeps_space and self.last == "text")
        self.events += events
        self._after_call()

    def reject(self, reason: str, start: int, end: int) -> None:
        """Say why what stands at these offsets is no call."""
        self.events.append(RejectedCall(start, end, reason))

    @property
    def is_holding(self) -> bool:
        """Whether there are calls that count only at the end."""
        return bool(self._held)

    def hold(self, events: list[Event], raw: str, start: int) -> None:
        """Calls that count only if nothing but calls follows. ``start``: where ``raw`` begins in the model's text."""
        space = "".join(self.space)
        self.space.clear()
        self._held.append(_Held([Markup(space), *events] if space else events, space, raw, start))
        self.line = Line()

    def accept_held(self) -> None:
        for held in self._held:
            self.events += held.events
        if self._held:
            self._held.clear()
            self._after_call()

    def give_back_held(self) -> None:
        """Content follows: what was held is text."""
        for held in self._held:
            text = held.space + held.raw
            self.reject("text-follows", held.start, held.start + len(held.raw))
            self.events.append(TextDelta(text, text))
            self.last = "text"
        self._held.clear()

    def _after_call(self) -> None:
        self.has_calls, self.last, self.line = True, "call", Line()


class _Held(NamedTuple):
    """Calls as events, and the text they go back to; ``start`` is where ``raw`` begins in the model's text."""

    events: list[Event]
    space: str
    raw: str
    start: int
