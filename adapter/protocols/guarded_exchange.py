"""Retry unusable answers within an exchange, so that the client sees only the better one. No I/O.

Each request with tools has one `ResponseGuard`, which holds the guardrails' state and the limits of retries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from adapter.conversation.guardrails.call_history import CallHistory, call_history_of
from adapter.conversation.guardrails.engine import RETRIES, Guardrails, Retry
from adapter.conversation.guardrails.registry import BROKEN_CALLS, BY_STEPS, DEFAULT
from adapter.conversation.guardrails.required_steps import Steps, parse_steps, validate_steps
from adapter.conversation.guardrails.response_checks import CandidateAnswer
from adapter.conversation.guardrails.retry_messages import Encode
from adapter.conversation.message_content import concat_content
from adapter.conversation.token_estimate import estimate_tokens
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.protocols.openai_errors import RequestError
from adapter.tools.tool import ToolSet

EXTENSION = "adapter"
"""The request field for this server: ``{"adapter": {"steps": {...}}}``."""
ASKED_AGAIN = "x-adapter-asked-again"
"""Response header of a buffered answer with the guardrails that caused retries."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When answers are retried.

    ``retries``: maximum number of retries per request, within ``seconds`` of its start by ``clock``, and until the
    discarded answers have ``tokens`` tokens.
    """

    on: frozenset[str] = DEFAULT
    retries: int = RETRIES
    tokens: int = 4_096
    seconds: float = 120.0
    clock: Callable[[], float] = float
    """In seconds; the default never advances."""

    def make_guard(
        self, body: JsonObject, tools: ToolSet, described: ToolSet, encode: Encode, *, is_enforced: bool = False,
        may_enforce: bool = False, requires_valid_calls: bool = False,
    ) -> ResponseGuard | None:  # fmt: skip
        """Return the guard of a client's request, or None if there is nothing to guard.

        ``is_enforced``: the answer is constrained to calls. ``may_enforce``: the next one may be.
        ``requires_valid_calls``: check for broken calls even if that guardrail is off. Raises RequestError for invalid
        steps.
        """
        steps = parse_request_steps(body, described)
        on = self.on & BY_STEPS if is_enforced else self.on | BROKEN_CALLS if requires_valid_calls else self.on
        if not tools or not on or not self.retries or body.get("n") not in (None, 1):
            return None
        guardrails = Guardrails(tools, on=on, steps=steps, retries=self.retries, encode=encode)
        return ResponseGuard(
            guardrails, body.get("messages"), self.tokens, self.clock() + self.seconds, self.clock, may_enforce
        )


@dataclass(slots=True)
class ResponseGuard:
    """Decides whether an answer is retried. ``may_enforce``: the server can constrain an answer to a call."""

    _guardrails: Guardrails
    _messages: Json
    _tokens_left: int
    _until: float
    _clock: Callable[[], float]
    may_enforce: bool
    _past: CallHistory | None = None
    asked_again: list[str] = field(default_factory=list)
    """The guardrails that caused retries, in order."""

    @property
    def holds_text(self) -> bool:
        """True if an answer in words may be retried, so that no text may be sent before a call."""
        steps = self._guardrails.steps
        return "missing_steps" in self._guardrails.on and bool(steps.tools) and bool(steps.left(self.past))

    def holds_call(self, name: str) -> bool:
        """Return whether a call of ``name`` may be retried, so that none of it may be sent before it is complete."""
        return name not in self._guardrails.tools or bool(self._guardrails.steps.tools)

    def has_ended(self, content: str) -> bool:
        """Return whether the answer ended before a call that follows ``content``."""
        return self._guardrails.answer_has_ended(self.past, content)

    @property
    def past(self) -> CallHistory:
        if self._past is None:
            self._past = call_history_of(self._messages)
        return self._past

    def judge(
        self, answer: CandidateAnswer, finish_reason: str | None, written_text: Callable[[], str]
    ) -> Retry | None:
        """Return the retry of an answer, or None to accept it. ``written_text``: its whole text."""
        verdict = self._guardrails.check_response(self.past, answer, finish_reason)
        if not isinstance(verdict, Retry) or self._clock() > self._until:
            return None
        self._tokens_left -= estimate_tokens(written_text())
        if self._tokens_left < 0:
            return None
        self.asked_again.append(verdict.guardrail)
        return verdict


def parse_request_steps(body: JsonObject, described: Collection[str]) -> Steps:
    """Return the steps in a request. Raises RequestError."""
    extension = body.get(EXTENSION)
    if not isinstance(extension, dict) or extension.get("steps") is None:
        return Steps()
    try:
        return validate_steps(parse_steps(extension["steps"]), described)
    except UsageError as error:
        raise RequestError(str(error), f"{EXTENSION}.steps") from error


def asked_again_header(completion: JsonObject) -> dict[str, str]:
    """Return the header of a completion with retries, otherwise no header."""
    extension = completion.get(EXTENSION)
    guardrails = extension.get("asked_again") if isinstance(extension, dict) else None
    return {ASKED_AGAIN: ",".join(guardrails)} if guardrails else {}


def with_retry_message(messages: Sequence[Json], written_text: str, message: str) -> list[Json]:
    """Add an unusable answer and the message about it to the conversation."""
    conversation = list(messages)
    if written_text.strip():
        conversation.append({"role": "assistant", "content": written_text})
    last = conversation[-1] if conversation else None
    if isinstance(last, dict) and last.get("role") == "user" and isinstance(last.get("content"), str | list):
        return [*conversation[:-1], {**last, "content": concat_content(last["content"], message, "\n\n")}]
    return [*conversation, {"role": "user", "content": message}]
