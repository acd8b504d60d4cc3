"""An answer while it comes: what the list shows of it so far, and its last pieces."""

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
from adapter.core.text.redaction import MAX_BLOCK, MAX_HELD, Redactor
from adapter.core.turn import Span, Turn
from adapter.recording.view.answer_rows import exchange_badges, span, title_of_call

MAX_TAIL = 8_000
"""Characters of an answer, from its end, that are shown while it comes."""
MAX_TAIL_EVENTS = 1_000
"""Events of an answer that are kept while it comes, for those."""
MAX_HEAD = 400
"""Characters of an answer, from its beginning, that its title is made of; of a name likewise."""
MAX_CALLED = 200
"""Names of tools that are counted in an answer."""

WRITING = "writing"
"""The kind of a piece, and a mark: more comes."""

_BLOCK_END = re.compile(r"-----END [^-]{0,60}-----")


@dataclass(slots=True)
class LiveAnswer:
    """`take` is on the way of the stream to its client; all else is for who looks. ``size``: characters so far."""

    size: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    tail: deque[Event] = field(default_factory=lambda: deque(maxlen=MAX_TAIL_EVENTS))
    _content: str = ""
    _reasoning: str = ""
    _first_call: ToolCall | None = None
    _written: str = ""
    """The tool that a call is written of."""
    _has_fixes: bool = False
    _has_invalid: bool = False
    _has_rejected: bool = False

    def take(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self.size += len(text)
                if len(self._content) < MAX_HEAD:
                    self._content += text[:MAX_HEAD]
            case ReasoningDelta(text=text):
                self.size += len(text)
                if len(self._reasoning) < MAX_HEAD:
                    self._reasoning += text[:MAX_HEAD]
                event = ReasoningDelta(text, text)  # also where the server had taken it out of the text
            case ToolCallProgress(text=text, name=name):
                self.size += len(text)
                self._written = (name or "")[:MAX_HEAD] or self._written
            case ToolCall(name=name, fixes=fixes):
                self._first_call = self._first_call or event
                if name in self.calls or len(self.calls) < MAX_CALLED:
                    self.calls[name[:MAX_HEAD]] += 1
                self._has_fixes = self._has_fixes or bool(fixes)
            case InvalidToolCall():
                self._has_invalid = True
            case ContentReclassified():
                self._reasoning, self._content = self._reasoning + self._content, ""
            case ReasoningReclassified():
                self._reasoning, self._content = "", self._reasoning + self._content
            case RejectedCall():  # its place is one in the whole text
                self._has_rejected = True
                return
            case ToolCallDelta():
                return
            case _:
                pass
        self.tail.append(event)

    @property
    def marks(self) -> list[str]:
        """Those that it would have if it were over."""
        return exchange_badges(
            calls=self.calls, fixes=self._has_fixes, invalid=self._has_invalid, rejected=self._has_rejected
        )

    @property
    def title(self) -> str:
        """The beginning of what it says, or else asks for first."""
        if self._content.strip():
            return self._content
        if self._first_call is not None:
            return title_of_call(self._first_call)[:MAX_HEAD]
        return f"{self._written} " if self._written else ""

    def close(self) -> None:
        """No more comes, and what came is kept elsewhere."""
        self._content, self._first_call, self._written = self.title, None, ""
        self.tail.clear()


def tail_spans(tail: Sequence[Event], secrets: Redactor) -> list[JsonObject]:
    """What the page shows of an answer that is not over. ``tail``: its last events."""
    written = [each.text for each in takewhile(_is_progress, reversed(tail)) if isinstance(each, ToolCallProgress)]
    pieces: list[tuple[str, str, Span | None]] = [
        (piece.kind, piece.text, piece) for piece in Turn.from_events(tail).explain() if piece.text
    ]
    pieces += [(WRITING, "".join(reversed(written)), None)] if written else []
    last: list[tuple[str, str, Span | None]] = []
    left = MAX_TAIL + MAX_BLOCK  # a credential may begin before what is shown
    while pieces and left > 0:
        kind, text, piece = pieces.pop()
        last.append((kind, text[-left:], piece))
        left -= len(text)
    last.reverse()
    texts = [text for _, text, _ in last]
    texts = secrets.redact_pieces(_cut(texts, len(safe_prefix("".join(texts)))))
    spans: list[JsonObject] = []
    left = MAX_TAIL
    for (kind, _, piece), text in zip(reversed(last), reversed(texts), strict=True):
        if left > 0 and text:
            spans.append(_span(kind, text[-left:], piece, secrets))
            left -= len(text)
    return spans[::-1]


def safe_prefix(text: str) -> str:
    """Without what may yet become a credential: the last word, and a private key that is not closed."""
    text = text[: 1 + max(text.rfind(blank, max(0, len(text) - MAX_HELD)) for blank in " \n\t")]
    begun = text.rfind("-----BEGIN ")
    return text if begun < 0 or _BLOCK_END.search(text, begun) else text[:begun]


def _is_progress(event: Event) -> bool:
    return isinstance(event, ToolCallProgress)


def _cut(texts: Sequence[str], size: int) -> list[str]:
    """Their first ``size`` characters in all."""
    kept: list[str] = []
    for text in texts:
        kept.append(text[:size])
        size -= len(kept[-1])
    return kept


def _span(kind: str, text: str, piece: Span | None, secrets: Redactor) -> JsonObject:
    told = span(kind, text, piece.call if piece else None, piece.error if piece else None)
    return told | {name: secrets.redact(told[name][:MAX_TAIL]) for name in ("call", "error")}
