"""Chunks that differ from the one before in their text alone, which nearly all of a stream do: only that is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from adapter.core.events import Json
from adapter.protocols.sse import encode_event, read_json

_CONTENT = b'"content":'
_LITERAL = re.compile(rb'\s*("(?:[^"\\]|\\.)*")')
MARK = "\0"
"""Stands for the text."""
_MARKED = b'"\\u0000"'


@dataclass(frozen=True, slots=True)
class ChunkTemplate:
    """``before`` and ``after`` the text of a server's event, which is about the choice ``index``."""

    before: bytes
    after: bytes
    index: int

    def text_of(self, event: bytes) -> str | None:
        """The text of an event that is like the others; None for any other."""
        if not (event.startswith(self.before) and event.endswith(self.after)):
            return None
        try:
            # A whole literal, or the event would end in the middle of one.
            text = read_json(event[len(self.before) : len(event) - len(self.after)])
        except ValueError:
            return None
        return text if isinstance(text, str) else None


def chunk_template(event: bytes, chunk: Json) -> ChunkTemplate | None:
    """How events look that are like ``event``, which holds ``chunk``; None unless that is text of one choice alone."""
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
    if literal is None or read_json(literal[1]) != text:
        return None
    return ChunkTemplate(event[: literal.start(1)], event[literal.end(1) :], index)


def split_at_text(chunk: Json) -> tuple[bytes, bytes]:
    """What stands before and after the text in an event of ours, given one whose text is `MARK`."""
    opening, _, closing = encode_event(chunk).rpartition(_MARKED)
    return opening, closing
