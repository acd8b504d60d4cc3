"""One answer of the model to one request, while it comes: what a guardrail must know of it, and text that waits."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.conversation.guardrails.answers import IN_TEXT, Said, opens_result
from adapter.text.pieces import Pieces
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
)


class Attempt:
    """``holds_text``: no text is for the client before it is known that the answer counts."""

    def __init__(self, *, holds_text: bool = False) -> None:
        self.holds_text = holds_text
        self._held: list[str] = []
        self._content, self._reasoning, self._raw = Pieces(), Pieces(), Pieces()
        self._rejected: list[RejectedCall] = []
        self._has_reasoned = self._has_invented = False

    def hear(self, raw: str) -> None:
        """A piece of the model's text, before it is read."""
        self._raw.add(raw)

    def take(self, events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case TextDelta(text=text):
                    self.add_text(text)
                case RejectedCall(reason=reason) if reason in IN_TEXT:
                    self._rejected.append(event)
                case Markup():
                    self._has_invented = self._has_invented or opens_result(event)
                case ContentWasReasoning():
                    self._content = Pieces()
                    self._has_reasoned = True
                case ReasoningDelta(text=text):
                    self._reasoning.add(text)
                    self._has_reasoned = True
                case ReasoningWasContent():
                    self._content, self._reasoning = Pieces(str(self._reasoning), str(self._content)), Pieces()
                case _:
                    pass

    def add_text(self, text: str) -> None:
        """What `take` does with a piece of the answer's text."""
        self._content.add(text)

    def reasoned(self) -> None:
        """The server has taken reasoning out of the text."""
        self._has_reasoned = True

    def hold(self, text: str) -> None:
        self._held.append(text)

    def released(self) -> str:
        """What waited, once it counts, or is known not to."""
        held, self._held = "".join(self._held), []
        self.holds_text = False
        return held

    def said(self, event: ToolCall | InvalidToolCall | None = None, rest: Sequence[Event] = ()) -> Said:
        """The answer so far, of which ``event`` came last. ``rest``: what was taken, and comes after its content."""
        content = str(self._content)
        end = max(0, len(content) - sum(len(each.text) for each in rest if isinstance(each, TextDelta)))
        raw = str(self._raw) if self._rejected else ""
        return Said(
            content[:end],
            (event,) if isinstance(event, ToolCall) else (),
            (event,) if isinstance(event, InvalidToolCall) else (),
            tuple(raw[each.start : each.end] for each in self._rejected),
            self._has_reasoned,
            self._has_invented,
        )

    def wrote(self, event: ToolCall | InvalidToolCall | None = None) -> str:
        """What of it a model may be shown again: text and ``event``, without reasoning and markup."""
        content = str(self._content)
        return f"{content.rstrip()}\n{event.raw}".lstrip() if event is not None else content
