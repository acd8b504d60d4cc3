"""Statistics of one request: calls, repairs, rejected calls, retries and tokens."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from adapter.core.events import JsonObject, ToolCall
from adapter.protocols.openai_errors import error_type
from adapter.protocols.usage import Usage

MAX_NAME = 200
"""Maximum length of a model's name or an answer's id, in characters."""

OTHER_RETRY = "no_guardrail"
"""Name of retries without a guardrail: after a tool search or a repeated call."""

_COUNTS = re.compile(
    rb'"(prompt_tokens|input_tokens|prompt_eval_count|completion_tokens|output_tokens|eval_count)"\s*:\s*(\d{1,9})\b'
)
_OF_PROMPT = (b"prompt_tokens", b"input_tokens", b"prompt_eval_count")


@dataclass(slots=True)
class RequestStats:
    """``calls``: sent to the client. ``fixes``: number of calls with each repair. ``rejected``: texts that looked like
    calls, by reason. ``asked_again``: retries by guardrail. ``error``: type of the final error."""

    calls: int = 0
    fixes: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    asked_again: Counter[str] = field(default_factory=Counter)
    finish_reasons: list[str] = field(default_factory=list)
    error: str = ""
    model: str = ""
    """As the model server names it."""
    answer_id: str = ""
    _before: tuple[int, int] = (0, 0)
    _tokens: tuple[int, int] | None = None

    @property
    def tokens(self) -> tuple[int, int] | None:
        """The prompt and completion tokens of all attempts; None if the server reports none."""
        if self._tokens is None:
            return None
        return self._before[0] + self._tokens[0], self._before[1] + self._tokens[1]

    def count_call(self, call: ToolCall) -> None:
        self.calls += 1
        self.fixes.update(call.fixes)

    def set_response(self, chunk: JsonObject) -> None:
        """Record the model and the id of an answer."""
        self.model = str(chunk.get("model") or "")[:MAX_NAME]
        self.answer_id = str(chunk.get("id") or "")[:MAX_NAME]

    def count(self, usage: Usage) -> None:
        """Record the usage of the current attempt; later reports replace earlier ones."""
        self._tokens = usage.prompt, usage.written

    def count_in(self, end: bytes) -> None:
        """Record the usage from the last bytes of an untranslated answer of any API."""
        found = {name in _OF_PROMPT: int(number) for name, number in _COUNTS.findall(end)}
        if found:
            self._tokens = found.get(True, 0), found.get(False, 0)

    def count_retry(self, guardrail: str) -> None:
        """Count a retry; the tokens of the unusable answer stay counted."""
        self.asked_again[guardrail or OTHER_RETRY] += 1
        self._before, self._tokens = self.tokens or self._before, None

    def fail(self, error: JsonObject) -> None:
        """Record an error in OpenAI's shape."""
        self.error = error_type(error)[:MAX_NAME]


def with_usage(body: JsonObject) -> JsonObject:
    """Return a streamed chat request that also asks for the token usage."""
    options = body.get("stream_options")
    return {**body, "stream_options": {**(options if isinstance(options, dict) else {}), "include_usage": True}}
