"""Track an answer that is still being streamed, for its row in the list and to show its last spans."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from adapter.core.events import (
    ContentReclassified,
    Event,
    InvalidToolCall,
    JsonObject,
    ReasoningDelta,
    ReasoningReclassified,
    RejectedCall,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallProgress,
)
from adapter.core.text.redaction import MAX_BLOCK, MAX_BUFFERED, Redactor
from adapter.core.turn import Span, Turn
from adapter.recording.view.exchange_page_data import build_call_title, build_span_row, list_exchange_badges

MAX_TAIL = 8_000
"""Maximum number of characters, from the end of an answer, that are shown during the stream."""
MAX_TAIL_EVENTS = 1_000
"""Maximum number of events that are kept to show the end of an answer."""
MAX_HEAD = 400
"""Maximum number of characters of an answer kept for its title. Tool names have the same limit."""
MAX_TOOL_NAMES = 200
"""Maximum number of tools whose calls are counted in an answer."""

WRITING = "writing"
"""The kind of a span that is still being written, and the badge of such an answer."""

_BLOCK_END = re.compile(r"-----END [^-]{0,60}-----")


@dataclass(slots=True)
class LiveAnswer:
    """The state of one answer during its stream. ``size`` is the number of characters received so far.

    `receive` must be fast, because it delays the stream to the client. All other methods are called only for viewers.
    """

    size: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    tail: deque[Event] = field(default_factory=lambda: deque(maxlen=MAX_TAIL_EVENTS))
    _content: str = ""
    _reasoning: str = ""
    _first_call: ToolCall | None = None
    _tool_name: str = ""
    """Name of the tool whose call is being written."""
    _has_fixes: bool = False
    _has_invalid: bool = False
    _has_rejected: bool = False

    def receive(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self.size += len(text)
                if len(self._content) < MAX_HEAD and not self._first_call:
                    self._content += text[:MAX_HEAD]
            case ReasoningDelta(text=text):
                self.size += len(text)
                if len(self._reasoning) < MAX_HEAD:
                    self._reasoning += text[:MAX_HEAD]
                event = ReasoningDelta(text, text)  # shown even if the server separated it from the text
            case ToolCallProgress(text=text, name=name):
                self.size += len(text)
                self._tool_name = (name or "")[:MAX_HEAD] or self._tool_name
            case ToolCall(name=name, fixes=fixes):
                self._first_call = self._first_call or event
                if name in self.calls or len(self.calls) < MAX_TOOL_NAMES:
                    self.calls[name[:MAX_HEAD]] += 1
                self._has_fixes = self._has_fixes or bool(fixes)
            case InvalidToolCall():
                self._has_invalid = True
            case ContentReclassified():
                self._reasoning, self._content = self._reasoning + self._content, ""
            case ReasoningReclassified():
                self._reasoning, self._content = "", self._reasoning + self._content
            case RejectedCall():  # its position refers to the whole text
                self._has_rejected = True
                return
            case ToolCallDelta():
                return
        self.tail.append(event)

    @property
    def marks(self) -> list[str]:
        """The badges that the answer would have if it ended now."""
        return list_exchange_badges(
            calls=self.calls, fixes=self._has_fixes, invalid=self._has_invalid, rejected=self._has_rejected
        )

    @property
    def title(self) -> str:
        """The start of the content before the first call, or that call if there is no content before it."""
        if self._content.strip():
            return self._content
        if self._first_call is not None:
            return build_call_title(self._first_call)[:MAX_HEAD]
        return f"{self._tool_name} " if self._tool_name else ""

    def close(self) -> None:
        """Release the events of a finished answer. The exchange is stored elsewhere."""
        self._content, self._first_call, self._tool_name = self.title, None, ""
        self.tail.clear()


def build_tail_spans(tail: Sequence[Event], secrets: Redactor) -> list[JsonObject]:
    """Return the rows of the last spans of an answer that is being streamed. ``tail`` has its last events."""
    progress = [each.text for each in takewhile(_is_progress, reversed(tail)) if isinstance(each, ToolCallProgress)]
    pieces: list[tuple[str, str, Span | None]] = [
        (piece.kind, piece.text, piece) for piece in Turn.from_events(tail).explain() if piece.text
    ]
    pieces += [(WRITING, "".join(reversed(progress)), None)] if progress else []
    last: list[tuple[str, str, Span | None]] = []
    remaining = MAX_TAIL + MAX_BLOCK  # a credential may begin before the shown part
    while pieces and remaining > 0:
        kind, text, piece = pieces.pop()
        last.append((kind, text[-remaining:], piece))
        remaining -= len(text)
    last.reverse()
    texts = [text for _, text, _ in last]
    texts = secrets.redact_pieces(_truncate_all(texts, len(clip_safe_prefix("".join(texts)))))
    spans: list[JsonObject] = []
    remaining = MAX_TAIL
    for (kind, _, piece), text in zip(reversed(last), reversed(texts), strict=True):
        if remaining > 0 and text:
            spans.append(_build_span(kind, text[-remaining:], piece, secrets))
            remaining -= len(text)
    return spans[::-1]


def clip_safe_prefix(text: str) -> str:
    """Remove the end of ``text`` that may be the start of a credential: the last word, or an incomplete private key."""
    text = text[: 1 + max(text.rfind(blank, max(0, len(text) - MAX_BUFFERED)) for blank in " \n\t")]
    start = text.rfind("-----BEGIN ")
    return text if start < 0 or _BLOCK_END.search(text, start) else text[:start]


def _is_progress(event: Event) -> bool:
    return isinstance(event, ToolCallProgress)


def _truncate_all(texts: Sequence[str], size: int) -> list[str]:
    """Truncate the strings, so that their total length is at most ``size`` characters."""
    prefixes: list[str] = []
    for text in texts:
        prefixes.append(text[:size])
        size -= len(prefixes[-1])
    return prefixes


def _build_span(kind: str, text: str, piece: Span | None, secrets: Redactor) -> JsonObject:
    row = build_span_row(kind, text, piece.call if piece else None, piece.error if piece else None)
    return row | {name: secrets.redact(row[name][:MAX_TAIL]) for name in ("call", "error")}
