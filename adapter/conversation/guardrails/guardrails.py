"""Decide what to do with each answer: accept, retry or stop, and which calls to drop. No I/O, no clock.

::

    guardrails = Guardrails(tools, steps={"required": ["search"]})
    match guardrails.check(messages, turn):
        case Accept():                  # run the calls, or show the answer
        case Retry(message=message):    # send the answer and ``message``, as the user's, and query the model again
        case Stop(reason=reason):       # a retry would not help

Remove the rejected answer and the message from later requests: they would only teach the model its own mistake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from adapter.conversation.guardrails.call_history import CallHistory, PastCall, read_call_history
from adapter.conversation.guardrails.candidate_answer import CandidateAnswer
from adapter.conversation.guardrails.invented_turns import cut_turn, find_answer_end
from adapter.conversation.guardrails.needless_later_calls import (
    changes_unread_target,
    is_expected,
    is_unasked_action,
    repeats_in_answer,
    undoes_call,
)
from adapter.conversation.guardrails.refusals_and_claims import is_empty_answer
from adapter.conversation.guardrails.registry import (
    DEFAULT,
    GUARDRAILS,
    LOOPS,
    validate_guardrails,
    validate_max_calls,
    validate_retries,
)
from adapter.conversation.guardrails.required_steps import Steps, StepsInput, parse_steps
from adapter.conversation.guardrails.retry_messages import (
    Encode,
)
from adapter.conversation.guardrails.unparsed_calls import (
    read_leading_call,
)
from adapter.conversation.guardrails.verdicts import ACCEPT, Accept, DroppedCall, Retry, Stop, Verdict, Violation
from adapter.conversation.guardrails.violation_finder import ViolationFinder
from adapter.core.argument_checks import check_types
from adapter.core.callback_checks import wrap_text_function
from adapter.core.events import Json, ToolCall
from adapter.core.turn import Turn
from adapter.parsing.formats.hermes import encode_calls
from adapter.prompting.intent.verbs import sounds_like
from adapter.tools.schema_violation_messages import find_missing_arguments, select_allowed_arguments
from adapter.tools.tool_set import ToolDefinitions, ToolSet

NO_STEPS = Steps()

RETRIES = 2
"""Maximum number of consecutive retries, for any reason."""

MAX_CALLS = 8
"""Maximum number of calls in one answer that are used."""

MAX_DROPPED = 3
"""Maximum number of dropped calls in an answer. If there are more, the model is listing all tools."""


class Guardrails(ViolationFinder):
    """Checks each answer of a model, and decides whether to accept it, retry or stop. Each agent loop needs its own
    instance.

    Args:
        tools: The tools that the model may call.
        on: Names of the active guardrails, from `GUARDRAILS`.
        steps: Tools that must be called, and their order (see `Steps`).
        encode: Encodes the example calls in messages to the model.
        retries: Maximum number of consecutive retries.
        max_calls: Maximum number of calls in one answer that are used.
        must_call: Whether each answer must contain a call.

    Raises UsageError for an unknown guardrail, invalid steps, negative limits, and an ``encode`` that is async or does
    not return a string.
    """

    def __init__(
        self,
        tools: ToolDefinitions,
        *,
        on: Collection[str] = DEFAULT,
        steps: StepsInput = NO_STEPS,
        retries: int = RETRIES,
        encode: Encode = encode_calls,
        max_calls: int = MAX_CALLS,
        must_call: bool = False,
    ) -> None:
        check_types("Guardrails", encode=(encode, Callable))
        tools = tools if isinstance(tools, ToolSet) else ToolSet(tools)
        encode = wrap_text_function(encode, "encode")
        super().__init__(tools, validate_guardrails(on), parse_steps(steps), encode, must_call=must_call)
        self.retries, self.max_calls = validate_retries(retries), validate_max_calls(max_calls)
        self._tries: Counter[str] = Counter()

    @property
    def asked_again(self) -> tuple[str, ...]:
        """Names of the guardrails that triggered a retry since the last accepted answer, in order."""
        return tuple(self._tries.elements())

    def check(self, messages: Json, turn: Turn, finish_reason: str | None = "stop") -> Verdict:
        """Check an answer without the calls that `screen` drops.

        Args:
            messages: The conversation before it, in OpenAI's format.
            turn: The answer.
            finish_reason: The server's finish reason. A truncated answer (``length``) is accepted.
        """
        check_types("Guardrails.check", turn=(turn, Turn))
        history = read_call_history(messages, self.tools)
        used = replace(CandidateAnswer.from_turn(turn), calls=tuple(self.screen_calls(history, turn.calls)[0]))
        verdict = self.check_response(history, used, finish_reason)
        if isinstance(verdict, Accept):
            self.begin()
        return verdict

    def begin(self) -> None:
        """Reset the count of retries after an accepted answer."""
        self._tries.clear()

    def check_response(
        self, history: CallHistory, answer: CandidateAnswer, finish_reason: str | None = "stop"
    ) -> Verdict:
        """Check an answer like `check`, but with a conversation that is already parsed."""
        is_unusable = self._is_call_shaped(history, answer.content) and not self._names_tool(answer.content)
        is_cut = finish_reason == "length" and not is_unusable and not answer.calls
        violation = None if is_cut else next(self.find_violations(history, answer), None)
        verdict = ACCEPT if violation is None else self.verdict(violation)
        if isinstance(verdict, Retry):
            self.remember_message(verdict.message, history, answer)
        return verdict

    def _names_tool(self, content: str) -> bool:
        """Return whether ``content`` begins with a JSON call to a known tool."""
        return self.tools.match(str(read_leading_call(content).get("name"))) is not None

    def verdict(self, violation: Violation) -> Verdict:
        """Return the verdict on an answer with a violation: a retry or, if no retry is left, stop or accept."""
        tries = self._tries[violation.guardrail]
        if self._tries.total() >= self.retries or tries >= len(violation.wordings):
            guardrail = GUARDRAILS[violation.guardrail]
            reason = f"the model's answer was {guardrail.recognizes}"
            return Stop(guardrail.name, reason) if guardrail.stops else ACCEPT
        self._tries[violation.guardrail] += 1
        held_to = () if violation.is_free_first and tries == 0 else violation.held_to
        return Retry(violation.guardrail, violation.wordings[tries], held_to)

    def drops_answer(self, history: CallHistory, answer: CandidateAnswer) -> bool:
        """Return whether to drop an answer's text, because it is a call, "null" or a copy of a guardrail message."""
        is_call = "call_as_answer" in self.on and self._is_call_shaped(history, answer.content)
        is_null = "empty_answer" in self.on and is_empty_answer(answer.content, history)
        return is_call or (is_null and answer.content != "") or self._sent.is_mostly_copied(answer.content)

    def drop_calls_after_end(self, history: CallHistory, turn: Turn) -> Turn:
        """Return ``turn`` without the calls after the answer's end (see `answer_has_ended`)."""
        if not turn.calls or not self.answer_has_ended(history, turn.content):
            return turn
        return cut_turn(turn, find_answer_end(turn.content, history.request))

    def remove_forbidden(self, call: ToolCall, *, is_final: bool = False) -> ToolCall:
        """Return the call without arguments that its schema forbids.

        A call that the model should correct in a retry stays unchanged, unless ``is_final`` is True.
        """
        tool = self.tools.match(call.name) if "wrong_arguments" in self.on else None
        allowed = tool and select_allowed_arguments(tool, call.arguments)
        if not allowed or not allowed.forbidden or not (allowed.is_safe or is_final):
            return call
        return replace(call, arguments=allowed.arguments)

    without_forbidden = remove_forbidden
    """Former name of `remove_forbidden`."""

    def screen(self, messages: Json, turn: Turn) -> tuple[list[ToolCall], list[DroppedCall]]:
        """Return the calls of an accepted answer that should be run, and its dropped calls. For the arguments, see
        `check`.

        The first call is never dropped, because `check` has accepted it. If more than `MAX_DROPPED` calls are dropped,
        the model is listing calls without end, so all calls after the first dropped one are dropped as well.
        """
        return self.screen_calls(read_call_history(messages, self.tools), turn.calls)

    def screen_calls(self, history: CallHistory, calls: Sequence[ToolCall]) -> tuple[list[ToolCall], list[DroppedCall]]:
        """Return the ``calls`` of an accepted answer that should be run, and its dropped calls.

        `screen` does the same for a conversation that is not yet parsed.
        """
        kept: list[ToolCall] = []
        dropped: dict[int, DroppedCall] = {}
        for index, call in enumerate(calls):
            earlier = [PastCall(each.name, each.arguments) for each in kept]
            reason = self.find_drop_reason(history, call, earlier) if kept else ""
            is_guess = any(each.guardrail == "guessed_result" for each in dropped.values())
            if not reason and is_guess and sounds_like(call.name, "run", "publish"):
                reason = "guessed_result"  # it may need the dropped change
            if reason:
                dropped[index] = DroppedCall(call.name, reason)
            else:
                kept.append(call)
            if len(dropped) > MAX_DROPPED:
                first = min(dropped)
                rest = enumerate(calls[first:], first)
                return [*calls[:first]], [dropped.get(at) or DroppedCall(each.name, reason) for at, each in rest]
        return kept, [*dropped.values()]

    def find_drop_reason(self, history: CallHistory, call: ToolCall, earlier: Sequence[PastCall]) -> str:
        """Return the name of the guardrail that drops a call of the current answer, or "" if the call is used.

        ``earlier`` has the preceding calls of the same answer that are used.
        """
        return next((name for name in self._find_drop_reasons(history, call, earlier) if name in self.on), "")

    drop_reason = find_drop_reason
    """Former name of `find_drop_reason`."""

    def _find_drop_reasons(self, history: CallHistory, call: ToolCall, earlier: Sequence[PastCall]) -> Iterator[str]:
        tools, current = self.tools, PastCall(call.name, call.arguments)
        if len(earlier) >= self.max_calls and not is_expected(current, earlier, history):
            yield "too_many_calls"
        tool = tools.match(call.name)
        if tool and (
            find_missing_arguments(tool, call.arguments)
            or select_allowed_arguments(tool, call.arguments).changes_meaning
        ):
            yield "wrong_arguments"
        yield from (violation.guardrail for violation in self._check_copies(history, call))
        if not earlier:
            yield from (name for name in LOOPS if self._tries[name] and self._finds(name, history, call))
            return
        if repeats_in_answer(current, earlier, history, tools):
            yield "repeated_in_answer"
        if changes_unread_target(current, earlier, history, tools):
            yield "guessed_result"
        if undoes_call(current, earlier, tools):
            yield "undone_in_answer"
        if is_unasked_action(current, earlier, history, tools):
            yield "unasked_action"

    def _finds(self, guardrail: str, history: CallHistory, call: ToolCall) -> bool:
        return any(violation.guardrail == guardrail for violation in self.check_call(history, call, ()))
