"""Statistics of one request: calls, repairs, rejected calls, retries and tokens."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from adapter.core.events import JsonObject, ToolCall
from adapter.protocols.openai_errors import get_error_type
from adapter.protocols.usage import Usage

MAX_NAME = 200
"""Maximum length of a model name or an answer id, in characters."""

OTHER_RETRY = "no_guardrail"
"""Name for counting retries without a guardrail: retries after a tool search or a repeated call."""

_COUNTS = re.compile(
    rb'"(prompt_tokens|input_tokens|prompt_eval_count|completion_tokens|output_tokens|eval_count)"\s*:\s*(\d{1,9})\b'
)
_OF_PROMPT = (b"prompt_tokens", b"input_tokens", b"prompt_eval_count")


@dataclass(slots=True)
class RequestStats:
    """Statistics of one request."""

    calls: int = 0
    """Number of calls sent to the client."""
    fixes: Counter[str] = field(default_factory=Counter)
    """Number of calls that needed each repair."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Number of rejected calls by reason."""
    asked_again: Counter[str] = field(default_factory=Counter)
    """Number of retries by guardrail."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Number of calls withheld from the client, by guardrail."""
    finish_reasons: list[str] = field(default_factory=list)
    error: str = ""
    """Type of the error that ended the request, or ""."""
    model: str = ""
    """The model's name as the model server reports it."""
    answer_id: str = ""
    _before: tuple[int, int] = (0, 0)
    _tokens: tuple[int, int] | None = None

    @property
    def tokens(self) -> tuple[int, int] | None:
        """The numbers of prompt and completion tokens of all attempts, or None if the server does not report them."""
        if self._tokens is None:
            return None
        return self._before[0] + self._tokens[0], self._before[1] + self._tokens[1]

    def count_call(self, call: ToolCall) -> None:
        """Count a call sent to the client, and its repairs."""
        self.calls += 1
        self.fixes.update(call.fixes)

    def set_response(self, chunk: JsonObject) -> None:
        """Record the model name and the id of an answer."""
        self.model = str(chunk.get("model") or "")[:MAX_NAME]
        self.answer_id = str(chunk.get("id") or "")[:MAX_NAME]

    def count(self, usage: Usage) -> None:
        """Record the token usage of the current attempt. A later report on the same attempt replaces earlier ones."""
        self._tokens = usage.prompt, usage.written

    def count_from_bytes(self, end: bytes) -> None:
        """Record the token usage found in ``end``, the last bytes of an untranslated answer of any supported API."""
        counts = {name in _OF_PROMPT: int(number) for name, number in _COUNTS.findall(end)}
        if counts:
            self._tokens = counts.get(True, 0), counts.get(False, 0)

    def count_retry(self, guardrail: str) -> None:
        """Count a retry. The tokens of the rejected attempt remain in the total."""
        self.asked_again[guardrail or OTHER_RETRY] += 1
        self.add_attempt()

    def add_attempt(self) -> None:
        """Begin another attempt. The tokens of the current one remain in the total."""
        self._before, self._tokens = self.tokens or self._before, None

    def fail(self, error: JsonObject) -> None:
        """Record the type of an error in OpenAI's format."""
        self.error = get_error_type(error)[:MAX_NAME]


def with_usage(body: JsonObject) -> JsonObject:
    """Return a copy of a streamed chat request that also requests the token usage."""
    options = body.get("stream_options")
    return {**body, "stream_options": {**(options if isinstance(options, dict) else {}), "include_usage": True}}
