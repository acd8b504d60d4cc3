"""What one request came to, for whoever counts: calls, repairs, refusals, what was asked again, tokens."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from adapter.core.events import JsonObject, ToolCall
from adapter.protocols.usage import Usage

MAX_NAME = 200
"""Characters of a model's name, and of an answer's id."""

ELSE = "no_guardrail"
"""Stands for a guardrail's name where an answer was not at fault: it was a search among tools, or a repetition."""

_COUNTS = re.compile(
    rb'"(prompt_tokens|input_tokens|prompt_eval_count|completion_tokens|output_tokens|eval_count)"\s*:\s*(\d{1,9})\b'
)
_OF_PROMPT = (b"prompt_tokens", b"input_tokens", b"prompt_eval_count")


@dataclass(slots=True)
class RequestStats:
    """``calls``: that the client got. ``fixes``: in how many calls each repair was needed. ``refused``: texts that look
    like a call and were none, by the reason. ``asked_again``: by guardrail. ``error``: its type, where it ended so.
    """

    calls: int = 0
    fixes: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    asked_again: Counter[str] = field(default_factory=Counter)
    finish_reasons: list[str] = field(default_factory=list)
    error: str = ""
    model: str = ""
    """As the model server calls it."""
    answer_id: str = ""
    _before: tuple[int, int] = (0, 0)
    _tokens: tuple[int, int] | None = None

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Those read and those written, of all that was asked; None where the server says neither."""
        if self._tokens is None:
            return None
        return self._before[0] + self._tokens[0], self._before[1] + self._tokens[1]

    def called(self, call: ToolCall) -> None:
        self.calls += 1
        self.fixes.update(call.fixes)

    def answered(self, chunk: JsonObject) -> None:
        """``chunk``, or the whole answer, says who answers."""
        self.model = str(chunk.get("model") or "")[:MAX_NAME]
        self.answer_id = str(chunk.get("id") or "")[:MAX_NAME]

    def count(self, usage: Usage) -> None:
        """The last that a chunk or an answer tells counts."""
        self._tokens = usage.prompt, usage.written

    def count_in(self, end: bytes) -> None:
        """The same from the last bytes of an answer that nobody has decoded, of whatever interface."""
        found = {name in _OF_PROMPT: int(number) for name, number in _COUNTS.findall(end)}
        if found:
            self._tokens = found.get(True, 0), found.get(False, 0)

    def ask_again(self, guardrail: str) -> None:
        """The answer so far is of no use; what it took counts all the same."""
        self.asked_again[guardrail or ELSE] += 1
        self._before, self._tokens = self.tokens or self._before, None

    def fail(self, error: JsonObject) -> None:
        """``error``: in OpenAI's shape."""
        said = error.get("error")
        self.error = str((said.get("type") if isinstance(said, dict) else None) or "upstream_error")[:MAX_NAME]


def with_usage(body: JsonObject) -> JsonObject:
    """A streamed chat's request whose answer says at its end how many tokens it took."""
    given = body.get("stream_options")
    return {**body, "stream_options": {**(given if isinstance(given, dict) else {}), "include_usage": True}}
