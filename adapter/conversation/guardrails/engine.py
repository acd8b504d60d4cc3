"""The machine that judges an answer before anybody acts on it: accept, ask again, or stop. No I/O, no clock.

::

    guardrails = Guardrails(tools, steps={"required": ["search"]})
    match guardrails.check(messages, turn):
        case Accept():                  # run the calls, or show the answer
        case AskAgain(message=message): # ask the model again, with its answer and ``message`` of the user after it
        case Stop(reason=reason):       # it is of no use to ask again

The answer that is asked again, and the message, belong into the next request alone: once a better one has come they
teach the model nothing but its own fault.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adapter.conversation.guardrails import retry_messages
from adapter.conversation.guardrails.announced_action import announces_action
from adapter.conversation.guardrails.call_history import CallHistory, PastCall, call_history_of
from adapter.conversation.guardrails.loop_detection import REPETITIONS, find_cycle, is_immediate_repeat, repeat_count
from adapter.conversation.guardrails.registry import DEFAULT, GUARDRAILS, validate_guardrails, validate_retries
from adapter.conversation.guardrails.required_steps import Steps, StepsInput, parse_steps
from adapter.conversation.guardrails.response_checks import (
    CandidateAnswer,
    claims_unbacked_success,
    disclaims_ability,
    find_answer_end,
    has_unparsed_call,
    ignores_failed_result,
    is_blanket_refusal,
    writes_other_roles,
    wrongly_refused_tool,
)
from adapter.conversation.guardrails.retry_messages import Encode, Wordings
from adapter.core.arguments import check_types
from adapter.core.callbacks import text_function
from adapter.core.events import ContentReclassified, Event, InvalidToolCall, Json, TextDelta, ToolCall
from adapter.core.turn import Turn
from adapter.parsing.formats.hermes import encode_calls
from adapter.tools.schema_errors import schema_errors
from adapter.tools.tool import Tool, ToolDefinitions, ToolSet

BEGINNING = 400
"""Characters of a broken call in which its tool is named."""

NO_STEPS = Steps()

RETRIES = 2
"""Answers that are asked again in a row, whatever the faults."""


@dataclass(frozen=True, slots=True)
class Accept:
    """Verdict of `Guardrails`: use the answer."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Verdict of `Guardrails`: retry with a message to the model. ``held_to``: the tools to constrain the retry to,
    where the server can; empty for no constraint."""

    guardrail: str
    message: str
    held_to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """Verdict of `Guardrails`: stop the agent, because it makes no progress. ``reason`` is a sentence for the user."""

    guardrail: str
    reason: str


Verdict: TypeAlias = Accept | Retry | Stop
ACCEPT = Accept()


@dataclass(frozen=True, slots=True)
class Violation:
    """What a guardrail found. ``held_to``: as of `Retry`, the second time where ``is_free_first``."""

    guardrail: str
    wordings: Wordings
    held_to: tuple[str, ...] = ()
    is_free_first: bool = False


class Guardrails:
    """Check each answer of a model, and decide to accept, retry or stop. ``on``: names of `GUARDRAILS`. ``encode``: how
    examples of calls are written. One for each loop.

    ``retries``: answers in a row that are asked again. Raises UsageError for an unknown
    guardrail, for no steps, for retries below 0, and for an ``encode`` that is async, or returns no text.
    """

    def __init__(
        self,
        tools: ToolDefinitions,
        *,
        on: Collection[str] = DEFAULT,
        steps: StepsInput = NO_STEPS,
        retries: int = RETRIES,
        encode: Encode = encode_calls,
    ) -> None:
        check_types("Guardrails", encode=(encode, Callable))
        self.tools = tools if isinstance(tools, ToolSet) else ToolSet(tools)
        self.on, self.steps = validate_guardrails(on), parse_steps(steps)
        self.retries = validate_retries(retries)
        self.encode = text_function(encode, "encode")
        self._tries: Counter[str] = Counter()

    @property
    def asked_again(self) -> tuple[str, ...]:
        """The guardrails for which was asked again since the last answer that was accepted, in order."""
        return tuple(self._tries.elements())

    def check(self, messages: Json, turn: Turn, finish_reason: str | None = "stop") -> Verdict:
        """``messages``: the conversation that was answered, as OpenAI's interface has them. ``turn``: the answer.

        ``finish_reason``: what was cut off (``length``) is not asked again.
        """
        check_types("Guardrails.check", turn=(turn, Turn))
        verdict = self.check_response(call_history_of(messages), CandidateAnswer.of(turn), finish_reason)
        if isinstance(verdict, Accept):
            self.begin()
        return verdict

    def begin(self) -> None:
        """Count anew: an answer was accepted."""
        self._tries.clear()

    def check_response(self, past: CallHistory, said: CandidateAnswer, finish_reason: str | None = "stop") -> Verdict:
        """`check`, for what was read of the conversation before."""
        if finish_reason == "length":
            return ACCEPT
        fault = next(self.faults(past, said), None)
        if fault is None:
            return ACCEPT
        return self.verdict(fault)

    def verdict(self, fault: Violation) -> Verdict:
        tries = self._tries[fault.guardrail]
        if self._tries.total() >= self.retries or tries >= len(fault.wordings):
            guardrail = GUARDRAILS[fault.guardrail]
            return Stop(guardrail.name, f"the model's answer was {guardrail.recognises}") if guardrail.stops else ACCEPT
        self._tries[fault.guardrail] += 1
        held_to = () if fault.is_free_first and tries == 0 else fault.held_to
        return Retry(fault.guardrail, fault.wordings[tries], held_to)

    def answer_has_ended(self, past: CallHistory, content: str) -> bool:
        """Whether a call after ``content`` is none of this answer: the model has gone on with words of the user. What
        was before them may be a good answer, so that nothing has to be asked again."""
        return "invented_turn" in self.on and find_answer_end(content, past.request) < len(content)

    def enabled_faults(self, past: CallHistory, turn: Turn) -> Turn:
        """``turn`` without calls that are none of this answer, see `is_over`, and what follows them."""
        if not turn.calls or not self.answer_has_ended(past, turn.content):
            return turn
        end, length, kept = find_answer_end(turn.content, past.request), 0, list[Event]()
        for event in turn.events:
            match event:
                case TextDelta(text=text):
                    length += len(text)
                case ContentReclassified():
                    length = 0
                case ToolCall() | InvalidToolCall() if length > end:
                    break
                case _:
                    pass
            kept.append(event)
        return Turn.from_events(kept)

    def faults(self, past: CallHistory, said: CandidateAnswer) -> Iterator[Violation]:
        """What the guardrails that are on find, the gravest first."""
        found = self._of_calls(past, said) if said.calls else self._of_answer(past, said)
        return (fault for fault in found if fault.guardrail in self.on)

    def _of_calls(self, past: CallHistory, said: CandidateAnswer) -> Iterator[Violation]:
        if self.answer_has_ended(past, said.content):
            yield Violation("invented_turn", retry_messages.other_speaker())
        earlier: list[PastCall] = []
        for call in said.calls:
            yield from self._of_spelling(call)
            yield from self.of_call(past, call, earlier)
            earlier.append(PastCall(call.name, call.arguments))

    def _of_spelling(self, call: ToolCall) -> Iterator[Violation]:
        tool = self.tools.match(call.name)
        if tool is None:
            near = tuple(self.tools.nearest(call.name)) or tuple(self.tools)
            yield Violation("unknown_tool", retry_messages.unknown_tool(call.name, self.tools, self.encode), near)
        elif "wrong_arguments" in self.on and (wrong := schema_errors(tool, call.arguments)):
            words = retry_messages.wrong_arguments(tool, call.arguments, wrong, self.encode)
            yield Violation("wrong_arguments", words, (tool.name,))

    def of_call(
        self, past: CallHistory, call: ToolCall, earlier: Sequence[PastCall], repetitions: int = REPETITIONS
    ) -> Iterator[Violation]:
        """Why a call that can be made should not be made now. ``earlier``: others of the same answer."""
        steps, made = self.steps, PastCall(call.name, call.arguments)
        if steps.has_ended(past):
            yield Violation("after_the_end", retry_messages.after_the_end(" or ".join(steps.ends_with)))
        if missing := steps.missing_before(past, made, earlier):
            words = retry_messages.prerequisite(call.name, call.arguments, missing, self.tools, self.encode)
            yield Violation("missing_prerequisite", words, missing)
        if call.name in steps.ends_with and (pending := steps.pending(past, earlier)):
            words = retry_messages.missing_steps(pending, False, self.tools, self.encode)
            yield Violation("missing_steps", words, pending)
        times = repeat_count(past, made, earlier, self.tools)
        if times == 1 and is_immediate_repeat(past, made, earlier):
            yield Violation("made_already", retry_messages.duplicate_call_message(call.name, past.recent[-1].result))
        if times > repetitions:
            result = next((each.result for each in reversed(past.recent) if each.key == made.key), "")
            yield Violation("repeated_call", retry_messages.repeated_call_message(call.name, times, result))
        elif block := find_cycle(past, made.key, self.tools):
            yield Violation("cycle", retry_messages.cycle([each.name for each in block]))

    def _of_answer(self, past: CallHistory, said: CandidateAnswer) -> Iterator[Violation]:
        tools, steps = self.tools, self.steps
        content = said.content[: find_answer_end(said.content, past.request)]
        if said.invalid:
            yield self._unreadable(said)
        if not content.strip() and not said.has_invented and not said.invalid:
            yield Violation("empty_answer", retry_messages.empty(said.has_reasoned, bool(past.recent)))
        if said.has_invented and not past.recent:  # else it may be a copy
            yield Violation(
                "invented_result", retry_messages.invented_result_message(), tuple(tools), is_free_first=True
            )
        if "wrong_markup" in self.on and has_unparsed_call(said, past.request, tools):
            yield Violation(
                "wrong_markup", retry_messages.wrong_markup(self._example()), tuple(tools), is_free_first=True
            )
        if left := tuple(name for name in steps.left(past) if name in tools):
            is_end = not steps.pending(past)
            yield Violation("missing_steps", retry_messages.missing_steps(left, is_end, tools, self.encode), left)
        if "announced_call" in self.on and announces_action(content, past.request, tools):
            yield Violation("announced_call", retry_messages.announced_call_message())
        if "refusal" in self.on and (tool := wrongly_refused_tool(content, past, tools)):
            yield Violation("refusal", retry_messages.refusal_message(tool, self.encode))
        elif disclaims_ability(content) or is_blanket_refusal(content, past):
            yield Violation("refusal", retry_messages.disclaimer_message(tools, bool(past.recent)))
        if claims_unbacked_success(content, past):
            yield Violation("unfounded_success", retry_messages.unfounded_success_message(tools, bool(past.recent)))
        if ignores_failed_result(content, past):
            last = past.recent[-1]
            yield Violation("ignored_result", retry_messages.ignored_result(last.name, last.result))
        if writes_other_roles(said.content):
            yield Violation("other_speaker", retry_messages.other_speaker())

    def _unreadable(self, said: CandidateAnswer) -> Violation:
        wrong = said.invalid[0]
        tool = self.tools.match(wrong.name) if wrong.name else self._named_in(wrong.raw)
        if wrong.name and tool is None:
            return Violation(
                "unknown_tool", retry_messages.unknown_tool(wrong.name, self.tools, self.encode), tuple(self.tools)
            )
        example = retry_messages.render_example_call(tool, self.encode) if tool else self._example()
        held_to = (tool.name,) if tool else tuple(self.tools)
        return Violation("unreadable_call", retry_messages.unreadable_call_message(wrong.error, example), held_to)

    def _named_in(self, raw: str) -> Tool | None:
        """The tool that a call without an end names first."""
        beginning = raw[:BEGINNING]
        found = [
            (place.start(), -len(name), name)
            for name in self.tools
            if (place := re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", beginning))
        ]
        return self.tools[min(found)[2]] if found else None

    def _example(self) -> str:
        first = next(iter(self.tools.values()), None)
        return retry_messages.render_example_call(first, self.encode) if first else ""
