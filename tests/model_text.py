"""Models that write scripted answers, and text as models write it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from adapter.backends.chat_client import Chunk


def call(name: str, **arguments: Any) -> str:
    """Return a call in the format hermes."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


class Script:
    """A model that gives these answers in turn, and keeps its requests. Exceptions are raised."""

    def __init__(self, *answers: str | Exception, tokens: int = 0, finish_reason: str = "stop") -> None:
        self.answers: list[Any] = list(answers)
        self.tokens, self.finish_reason = tokens, finish_reason
        self.seen: list[list[dict[str, Any]]] = []

    def stream(self, messages: Any, *, stop: Any = ()) -> Iterator[Chunk]:
        self.seen.append(list(messages))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        usage = {"usage": {"total_tokens": self.tokens}} if self.tokens else None
        yield Chunk(answer, finish_reason=self.finish_reason, raw=usage)
