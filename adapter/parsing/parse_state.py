"""The state of one parse: where the text has come to, and what decides how the rest of it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from adapter.core.events import Event
from adapter.parsing.call_progress import CallProgress
from adapter.parsing.markdown_context import MarkdownContext


class Mode(Enum):
    """What the next piece of text belongs to. The segmenter sets it where it waits for text."""

    UNDECIDED = "at a marker, or before the first word"
    IN_CONTENT = "content, up to the next marker"
    IN_REASONING = "reasoning, up to the next marker"
    IN_CALL = "the body of what may be a call"


UNDECIDED, IN_CONTENT, IN_REASONING, IN_CALL = Mode.UNDECIDED, Mode.IN_CONTENT, Mode.IN_REASONING, Mode.IN_CALL


class Last(Enum):
    """What was read last, markup aside. The event buffer sets it."""

    NOTHING = "nothing"
    CONTENT = "content"
    REASONING = "reasoning, or a section with a header"
    CALL = "a call, or reasoning after one"


NOTHING, CONTENT, REASONING, CALL = Last.NOTHING, Last.CONTENT, Last.REASONING, Last.CALL


class HeldCalls(NamedTuple):
    """Calls as events, and the text they go back to; ``start`` is where ``raw`` begins in the model's text."""

    events: list[Event]
    space: str
    raw: str
    start: int


@dataclass(slots=True)
class ParseState:
    """Shared by the segmenter, which decides what text is, and the event buffer, which writes it down."""

    mode: Mode = UNDECIDED
    last: Last = NOTHING
    line: MarkdownContext = field(default_factory=MarkdownContext)
    """The line that the text has come to."""
    space: list[str] = field(default_factory=list)
    """White space that is content only if more content follows."""
    held: list[HeldCalls] = field(default_factory=list)
    """Calls that count only if nothing but calls follows until the end."""
    has_calls: bool = False
    has_reasoning: bool = False
    answer_close: str = ""
    """The marker that closes the answer tags that are open, in lower case."""
    progress: CallProgress | None = None
    """That of the call whose body is being read."""

    def enter_call(self, progress: CallProgress) -> None:
        self.mode, self.progress = IN_CALL, progress

    def leave_call(self) -> None:
        self.mode, self.progress = UNDECIDED, None

    def enter_reasoning(self) -> None:
        self.has_reasoning, self.line = True, MarkdownContext(has_fences=False)

    def leave_reasoning(self) -> None:
        """After reasoning or a section: a call that came before it is still the last."""
        self.last, self.line = (CALL if self.last is CALL else REASONING), MarkdownContext()

    def after_call(self) -> None:
        self.has_calls, self.last, self.line = True, CALL, MarkdownContext()
