"""Apply guardrails to one exchange: decide which answers are retried and which calls are dropped. No I/O.

Each request with tools has its own `ExchangeGuardrails`, with the state of the guardrails and the retry limits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from adapter.conversation.guardrails.call_history import CallHistory, PastCall, read_call_history
from adapter.conversation.guardrails.candidate_answer import CandidateAnswer
from adapter.conversation.guardrails.guardrails import MAX_CALLS, RETRIES, Guardrails
from adapter.conversation.guardrails.registry import (
    BROKEN_CALLS,
    BY_STEPS,
    COPIES,
    DEFAULT,
    REQUIRED_CALLS,
    WITHIN_ANSWER,
)
from adapter.conversation.guardrails.required_steps import Steps, parse_steps, validate_steps
from adapter.conversation.guardrails.retry_messages import Encode
from adapter.conversation.guardrails.verdicts import DroppedCall, Retry
from adapter.conversation.message_content import concat_content
from adapter.conversation.token_estimate import estimate_tokens
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject, ToolCall
from adapter.protocols.conversation_cache import Call
from adapter.protocols.recorded_exchange import RecordedDrop
from adapter.protocols.request_errors import RequestError
from adapter.protocols.usage import get_object
from adapter.tools.tool_set import ToolSet

EXTENSION = "adapter"
"""Request field for this server's extensions: ``{"adapter": {"steps": {...}}}``."""
ASKED_AGAIN = "x-adapter-asked-again"
"""Response header that lists the guardrails that caused retries. Only buffered answers have it."""
DROPPED = "x-adapter-dropped"
"""Response header that lists the dropped calls as ``tool:guardrail``. Only buffered answers have it."""
_NOT_IN_HEADER = re.compile(r"[^\w.-]", re.ASCII)
MAX_LISTED = 16
"""Maximum number of different dropped calls in the header."""
CUT_CALL = "x-adapter-cut-call"
"""Response header with the tool of a call that was cut off. Only buffered answers have it."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The active guardrails, and limits on retries and calls."""

    on: frozenset[str] = DEFAULT
    """Names of the active guardrails."""
    retries: int = RETRIES
    """Maximum number of retries per request."""
    tokens: int = 4_096
    """Maximum total length of the discarded answers, in tokens."""
    seconds: float = 120.0
    """Time after the start of a request within which a retry can begin, measured by ``clock``."""
    clock: Callable[[], float] = float
    """Returns the time in seconds. The default always returns 0."""
    max_calls: int = MAX_CALLS
    """Maximum number of calls sent to the client in one answer."""

    def start_exchange(
        self, body: JsonObject, tools: ToolSet, described: ToolSet, encode: Encode, *, is_enforced: bool = False,
        may_enforce: bool = False, requires_valid_calls: bool = False, must_call: bool = False,
        history: CallHistory | None = None,
    ) -> ExchangeGuardrails | None:  # fmt: skip
        """Return the guardrails for a client's request, or None if no guardrail applies.

        Raises RequestError for invalid steps. If ``is_enforced`` is True, this answer is constrained to calls. If
        ``may_enforce`` is True, the answer to a retry may be constrained to calls. If ``requires_valid_calls`` is True,
        invalid calls are retried even if the guardrails for them are off. If ``must_call`` is True, the answer must
        contain a call.
        """
        steps = parse_request_steps(body, described)
        on = self.on | BROKEN_CALLS if requires_valid_calls else self.on
        if asks_for_json(body):
            on -= {"call_as_answer"}
        if is_enforced:
            on = self.on & (BY_STEPS | WITHIN_ANSWER | COPIES | REQUIRED_CALLS)
        if not tools or not on:
            return None
        retries = self.retries if body.get("n") in (None, 1) else 0  # there is no way to tell which of ``n`` is better
        guardrails = Guardrails(
            tools, on=on, steps=steps, retries=retries, encode=encode, max_calls=self.max_calls, must_call=must_call
        )  # fmt: skip
        return ExchangeGuardrails(
            guardrails, body.get("messages"), self.tokens, self.clock() + self.seconds, self.clock, may_enforce,
            may_continue=retries > 0, _history=history,
        )  # fmt: skip


@dataclass(slots=True)
class ExchangeGuardrails:
    """Decides which answers to one request are retried, and which of their calls are dropped.

    ``may_enforce`` is True if the answer to a retry may be constrained to calls.
    """

    _guardrails: Guardrails
    _messages: Json
    _tokens_left: int
    _until: float
    _clock: Callable[[], float]
    may_enforce: bool
    may_continue: bool = False
    """True if the model may continue a call that was cut off, which is allowed once, and not after a limit of the
    client."""
    _history: CallHistory | None = None
    asked_again: list[str] = field(default_factory=list)
    """The guardrails that caused retries, in order."""

    @property
    def holds_text(self) -> bool:
        """True if an answer without calls may be retried. Its text must then be held back until a call follows."""
        steps = self._guardrails.steps
        if self._guardrails.must_call and "missing_call" in self._guardrails.on:
            return True
        return "missing_steps" in self._guardrails.on and bool(steps.tools) and bool(steps.find_missing(self.history))

    def holds_call(self, name: str) -> bool:
        """Return whether a call to the tool ``name`` may lead to a retry. Such a call is sent only when it is
        complete."""
        return name not in self._guardrails.tools or bool(self._guardrails.steps.tools)

    def remove_forbidden(self, call: ToolCall, *, is_final: bool = False) -> ToolCall:
        """Return the call without forbidden arguments, as `Guardrails.remove_forbidden` does."""
        return self._guardrails.remove_forbidden(call, is_final=is_final)

    def find_drop_reason(self, call: ToolCall, sent: Sequence[Call]) -> str:
        """Return the name of the guardrail that drops a call, or "" if the call is sent to the client. ``sent`` has the
        calls of this answer that the client already has."""
        earlier = [PastCall(name, arguments) for _, name, arguments in sent]
        return self._guardrails.find_drop_reason(self.history, call, earlier)

    def drops_answer(self, answer: CandidateAnswer) -> bool:
        """Return whether to drop the text of an answer instead of sending it to the client."""
        return self._guardrails.drops_answer(self.history, answer)

    @property
    def last_result(self) -> str:
        """The last tool result since the user's message, which replaces the answer if the model gives none."""
        return self.history.last_result

    def has_ended(self, content: str) -> bool:
        """Return whether ``content`` ends the answer, because the model began to write the user's next message."""
        return self._guardrails.answer_has_ended(self.history, content)

    @property
    def history(self) -> CallHistory:
        if self._history is None:
            self._history = read_call_history(self._messages, self._guardrails.tools)
        return self._history

    def judge(
        self, answer: CandidateAnswer, finish_reason: str | None, written_text: Callable[[], str]
    ) -> Retry | None:
        """Return a retry if the answer is unusable and the limits allow one, otherwise None. ``written_text`` returns
        the answer as text. Its tokens count towards the limit."""
        verdict = self._guardrails.check_response(self.history, answer, finish_reason)
        if not isinstance(verdict, Retry) or self._clock() > self._until:
            return None
        self._tokens_left -= estimate_tokens(written_text())
        if self._tokens_left < 0:
            return None
        self.asked_again.append(verdict.guardrail)
        return verdict


def asks_for_json(body: JsonObject) -> bool:
    """Return whether the client constrains the answer to its own JSON schema or grammar. Such an answer may look like a
    call."""
    format = get_object(body.get("response_format"))
    return format.get("type", "text") != "text" or any(body.get(name) for name in ("grammar", "json_schema"))


def parse_request_steps(body: JsonObject, described: Collection[str]) -> Steps:
    """Parse the required steps in a request. Raises RequestError if they are invalid."""
    extension = body.get(EXTENSION)
    if not isinstance(extension, dict) or extension.get("steps") is None:
        return Steps()
    try:
        return validate_steps(parse_steps(extension["steps"]), described)
    except UsageError as error:
        raise RequestError(str(error), f"{EXTENSION}.steps") from error


def build_report(guardrails: ExchangeGuardrails | None, dropped: Sequence[DroppedCall | RecordedDrop]) -> JsonObject:
    """Return the field ``asked_again``, the guardrails that caused retries, and the field ``dropped``, the calls
    withheld from the client. Empty fields are left out."""
    counts = Counter((each.name, each.guardrail) for each in dropped)
    calls = [{"name": name, "guardrail": why, "count": count} for (name, why), count in counts.items()]
    fields = {"asked_again": list(guardrails.asked_again) if guardrails else [], "dropped": calls}
    return {key: value for key, value in fields.items() if value}


def build_guard_headers(completion: JsonObject) -> dict[str, str]:
    """Return the response headers about retries, dropped calls and calls that were cut off, if there were any."""
    extension = completion.get(EXTENSION)
    about: JsonObject = extension if isinstance(extension, dict) else {}
    headers = {ASKED_AGAIN: ",".join(about.get("asked_again") or ())}
    headers[CUT_CALL] = _NOT_IN_HEADER.sub("?", about.get("cut_call") or "")
    dropped = about.get("dropped") or []
    headers[DROPPED] = ",".join(
        f"{_NOT_IN_HEADER.sub('?', each['name'])}:{each['guardrail']}" for each in dropped[:MAX_LISTED]
    )
    return {name: value for name, value in headers.items() if value}


def with_retry_message(messages: Sequence[Json], written_text: str, message: str) -> list[Json]:
    """Return the conversation, followed by the unusable answer and the message that asks for a better one."""
    conversation = list(messages)
    if written_text.strip():
        conversation.append({"role": "assistant", "content": written_text})
    last = conversation[-1] if conversation else None
    if isinstance(last, dict) and last.get("role") == "user" and isinstance(last.get("content"), str | list):
        return [*conversation[:-1], {**last, "content": concat_content(last["content"], message, "\n\n")}]
    return [*conversation, {"role": "user", "content": message}]
