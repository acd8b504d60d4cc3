"""What is asked again of a model within one exchange, so that the client sees only the better answer. No I/O.

Each request with tools has one `ResponseGuard`: it keeps what the guardrails have to know, and the bounds of asking again.
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
"""The field of a request that is meant for us: ``{"adapter": {"steps": {...}}}``."""


ASKED_AGAIN = "x-adapter-asked-again"
"""The header of a whole answer that names the guardrails for which the model was asked again."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How answers are watched. ``retries``: answers of one request that are asked again, in ``seconds`` from its
    beginning by ``clock``, and as long as those that were of no use have at most ``tokens``."""

    on: frozenset[str] = DEFAULT
    retries: int = RETRIES
    tokens: int = 4_096
    seconds: float = 120.0
    clock: Callable[[], float] = float
    """Seconds; by default time stands still."""

    def watch(
        self, body: JsonObject, tools: ToolSet, described: ToolSet, encode: Encode, *, is_held: bool, may_hold: bool,
        must_mend: bool,
    ) -> ResponseGuard | None:  # fmt: skip
        """For a client's request; None where nothing is watched. ``is_held``: the answer is held to calls already.
        ``may_hold``: the next one may be. ``must_mend``: broken calls count, whatever is on.

        Raises RequestError for steps that are none.
        """
        steps = parse_request_steps(body, described)
        on = self.on & BY_STEPS if is_held else self.on | BROKEN_CALLS if must_mend else self.on
        if not tools or not on or not self.retries or body.get("n") not in (None, 1):
            return None
        guardrails = Guardrails(tools, on=on, steps=steps, retries=self.retries, encode=encode)
        return ResponseGuard(
            guardrails, body.get("messages"), self.tokens, self.clock() + self.seconds, self.clock, may_hold
        )


@dataclass(slots=True)
class ResponseGuard:
    """See the module. ``may_hold``: the server can be told to hold an answer to a call."""

    _guardrails: Guardrails
    _messages: Json
    _tokens_left: int
    _until: float
    _clock: Callable[[], float]
    may_hold: bool
    _past: CallHistory | None = None
    asked_again: list[str] = field(default_factory=list)
    """The guardrails for which was asked again, in order."""

    @property
    def holds_text(self) -> bool:
        """Whether an answer in words may be taken back: no text of it is to go out before a call comes."""
        steps = self._guardrails.steps
        return "missing_steps" in self._guardrails.on and bool(steps.tools) and bool(steps.left(self.past))

    def holds_call(self, name: str) -> bool:
        """Whether a call of ``name`` may be taken back: nothing of it is to go out before it is whole."""
        return name not in self._guardrails.tools or bool(self._guardrails.steps.tools)

    def is_over(self, content: str) -> bool:
        """Whether a call after ``content`` is none of this answer."""
        return self._guardrails.answer_has_ended(self.past, content)

    @property
    def past(self) -> CallHistory:
        if self._past is None:
            self._past = call_history_of(self._messages)
        return self._past

    def judge(self, said: CandidateAnswer, finish_reason: str | None, wrote: Callable[[], str]) -> Retry | None:
        """What to ask again; None where the answer counts as it is. ``wrote``: all of it."""
        verdict = self._guardrails.check_response(self.past, said, finish_reason)
        if not isinstance(verdict, Retry) or self._clock() > self._until:
            return None
        self._tokens_left -= estimate_tokens(wrote())
        if self._tokens_left < 0:
            return None
        self.asked_again.append(verdict.guardrail)
        return verdict


def parse_request_steps(body: JsonObject, described: Collection[str]) -> Steps:
    """The steps that a request brings. Raises RequestError."""
    extension = body.get(EXTENSION)
    if not isinstance(extension, dict) or extension.get("steps") is None:
        return Steps()
    try:
        return validate_steps(parse_steps(extension["steps"]), described)
    except UsageError as error:
        raise RequestError(str(error), f"{EXTENSION}.steps") from error


def asked_again_header(completion: JsonObject) -> dict[str, str]:
    """None where nothing was asked again."""
    told = completion.get(EXTENSION)
    return {ASKED_AGAIN: ",".join(told["asked_again"])} if isinstance(told, dict) and "asked_again" in told else {}


def with_retry_message(messages: Sequence[Json], wrote: str, message: str) -> list[Json]:
    """The conversation with an answer that was of no use, and what is said about it."""
    said = [*messages, {"role": "assistant", "content": wrote}] if wrote.strip() else list(messages)
    last = said[-1] if said else None
    if isinstance(last, dict) and last.get("role") == "user" and isinstance(last.get("content"), str | list):
        return [*said[:-1], {**last, "content": concat_content(last["content"], message, "\n\n")}]
    return [*said, {"role": "user", "content": message}]
