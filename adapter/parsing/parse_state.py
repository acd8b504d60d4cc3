"""`ParseState`: everything about the text so far that determines how the rest is parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from adapter.core.events import Event
from adapter.parsing.call_progress import CallProgress
from adapter.parsing.markdown_context import MarkdownContext
from adapter.parsing.wrapper_tags import announces_calls


class Mode(Enum):
    """The kind of text that the segmenter expects next, while it waits for more."""

    UNDECIDED = "at a marker, or before the first word"
    IN_CONTENT = "content, up to the next marker"
    IN_REASONING = "reasoning, up to the next marker"
    IN_CALL = "the body of a possible call"


UNDECIDED, IN_CONTENT, IN_REASONING, IN_CALL = Mode.UNDECIDED, Mode.IN_CONTENT, Mode.IN_REASONING, Mode.IN_CALL


class LastKind(Enum):
    """The kind of the last text that is not markup. `EventBuffer` sets it."""

    NOTHING = "nothing"
    CONTENT = "content"
    REASONING = "reasoning, or a section with a header"
    CALL = "a call, or reasoning after one"


NOTHING, CONTENT, REASONING, CALL = LastKind.NOTHING, LastKind.CONTENT, LastKind.REASONING, LastKind.CALL


class BufferedCalls(NamedTuple):
    """Calls that are buffered until the text after them shows whether they are accepted."""

    events: list[Event]
    """The events to emit if the calls are accepted."""
    space: str
    """The whitespace before the calls."""
    raw: str
    """The text of the calls. If they are rejected, ``space + raw`` is content."""
    start: int
    """The offset of ``raw`` in the model's text."""
    begins_answer: bool
    """True if the calls begin the answer. They are then accepted even if a comment follows on the same line."""
    matches_format: bool
    """True if the calls are in the expected format. A comment may then also follow on the next line."""


MARKUP_LIMIT = 2000
"""Number of characters before a closing tag that are searched for its opening tag."""

_OPEN_ELEMENT = re.compile(r"^<(?P<name>[\w.:-]+)>\s*(?:<(?P<child>[\w.:-]+)>[^<]*</(?P=child)>\s*)*\Z", re.MULTILINE)


@dataclass(slots=True)
class ParseState:
    """The state of parsing, which `Segmenter` and `EventBuffer` share."""

    mode: Mode = UNDECIDED
    last: LastKind = NOTHING
    line: MarkdownContext = field(default_factory=MarkdownContext)
    space: list[str] = field(default_factory=list)
    """Buffered whitespace, and wrapper tags after it. The whitespace is content only if content follows, and the tags
    are content only if no call follows."""
    open_tags: set[str] = field(default_factory=set)
    """Names of the open wrapper tags around calls, in lower case."""
    is_quoting: bool = False
    """True if the text after the last call quotes an opening marker. Its closing marker is then also content."""
    recent_markup: list[str] = field(default_factory=list)
    """The chunks of content since the last call, from the first chunk with a ``<`` on."""
    buffered_calls: list[BufferedCalls] = field(default_factory=list)
    """Calls that are accepted if only calls follow, or if they begin the answer."""
    has_leading_calls: bool = False
    """True if the answer began with calls without markers, and text followed them."""
    has_calls: bool = False
    has_reasoning: bool = False
    answer_close: str = ""
    """The closing marker of the open answer tag, in lower case."""
    progress: CallProgress | None = None
    """The progress of the call whose body is being parsed, or None."""

    def enter_call(self, progress: CallProgress) -> None:
        self.mode, self.progress = IN_CALL, progress

    def leave_call(self) -> None:
        self.mode, self.progress = UNDECIDED, None

    def enter_reasoning(self, *, has_fences: bool = False) -> None:
        self.has_reasoning, self.line = True, MarkdownContext(has_fences=has_fences)

    def leave_reasoning(self) -> None:
        """Leave reasoning or an `OpaqueSection`. After a call, ``last`` remains `CALL`."""
        self.last, self.line = (CALL if self.last is CALL else REASONING), MarkdownContext()

    def enter_after_call(self) -> None:
        self.has_calls, self.last, self.line = True, CALL, MarkdownContext(begins_line=False)
        self.is_quoting = False
        self.recent_markup.clear()

    def track_markup(self, content: str) -> None:
        pieces = self.recent_markup
        if pieces or "<" in content:
            pieces.append(content[-MARKUP_LIMIT:])
            if len(pieces) > MARKUP_LIMIT:
                pieces[:] = ["".join(pieces)[-MARKUP_LIMIT:]]

    @property
    def is_in_element(self) -> bool:
        """True directly after the opening tag of an element that does not wrap calls, or after its children."""
        opened = _OPEN_ELEMENT.search("".join(self.recent_markup)[-MARKUP_LIMIT:])
        return opened is not None and (opened["child"] is not None or not announces_calls(opened["name"]))

    def has_opened(self, closing_tag: str) -> bool:
        """Return whether the content since the last call has an opening tag for ``closing_tag``, which must be in lower
        case."""
        return f"<{closing_tag[2:-1]}" in "".join(self.recent_markup)[-MARKUP_LIMIT:].lower()
