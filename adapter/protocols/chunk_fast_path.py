"""Decode only the text of a stream event if the rest of the event equals the previous one, which is much faster."""

from __future__ import annotations

import re
from dataclasses import dataclass

from adapter.core.events import Json
from adapter.core.json.load import load_json
from adapter.protocols.sse import encode_event

_CONTENT = b'"content":'
_LITERAL = re.compile(rb'\s*("(?:[^"\\]|\\.)*")')
MARK = "\0"
"""Placeholder for the text when a chunk is encoded as a template for later chunks."""
_MARKED = b'"\\u0000"'


@dataclass(frozen=True, slots=True)
class ChunkTemplate:
    """The constant bytes ``before`` and ``after`` the text in the server's chunks for the choice ``index``."""

    before: bytes
    after: bytes
    index: int

    def find_text(self, event: bytes) -> str | None:
        """Return the text of an event that differs from the template only in its text, or None for other events."""
        if not (event.startswith(self.before) and event.endswith(self.after)):
            return None
        try:
            # The bytes in between are one complete literal; otherwise the event would end inside a literal.
            text = load_json(event[len(self.before) : len(event) - len(self.after)])
        except ValueError:
            return None
        return text if isinstance(text, str) else None


def build_chunk_template(event: bytes, chunk: Json) -> ChunkTemplate | None:
    """Build a template from a chunk and ``event``, its bytes as the server sent them. Return None if the chunk contains
    anything but text of a single choice.
    """
    match chunk:
        case {"choices": [{"delta": {"content": str(text)} as delta} as choice]} if text:
            pass
        case _:
            return None
    index = choice.get("index")
    is_plain = delta.keys() <= {"role", "content"} and choice.get("finish_reason") is None
    if not is_plain or not isinstance(index, int) or chunk.get("usage") or chunk.get("error") or choice.get("logprobs"):
        return None
    literal = _LITERAL.match(event, event.find(_CONTENT) + len(_CONTENT)) if event.count(_CONTENT) == 1 else None
    if literal is None or load_json(literal[1]) != text:
        return None
    return ChunkTemplate(event[: literal.start(1)], event[literal.end(1) :], index)


def split_at_text(chunk: Json) -> tuple[bytes, bytes]:
    """Encode a chunk whose text is the placeholder `MARK`, and return the bytes before and after the placeholder."""
    opening, _, closing = encode_event(chunk).rpartition(_MARKED)
    return opening, closing
