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
from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from adapter.conversation.guardrails import wording
from adapter.conversation.guardrails.announcing import announces
from adapter.conversation.guardrails.answers import (
    Said,
    claims_success,
    disclaims,
    end_of_answer,
    ignores_result,
    is_in_wrong_markup,
    refused_tool,
    refuses_all,
    speaks_for_others,
)
from adapter.conversation.guardrails.catalogue import DEFAULT, GUARDRAILS, checked, checked_retries
from adapter.conversation.guardrails.past import Made, Past, past_of
from adapter.conversation.guardrails.repetition import REPETITIONS, cycle_before, is_made_already, times_made
from adapter.conversation.guardrails.steps import Given, Steps, steps_of
from adapter.conversation.guardrails.wording import Encode, Wordings
from adapter.formats.hermes import encode_calls
from adapter.tools.definition import Tool, ToolDefinitions, ToolSet
from adapter.tools.problems import problems
from adapter.values.events import ContentWasReasoning, Event, InvalidToolCall, Json, TextDelta, ToolCall
from adapter.values.fields import frozen
from adapter.values.turn import Turn

BEGINNING = 400
"""Characters of a broken call in which its tool is named."""

NO_STEPS = Steps()

RETRIES = 2
"""Answers that are asked again in a row, whatever the faults."""


@frozen
class Accept:
    """Verdict of `Guardrails`: use the answer."""


@frozen
class AskAgain:
    """Verdict of `Guardrails`: retry with a message to the model. ``held_to``: the tools to constrain the retry to,
    where the server can; empty for no constraint."""

    guardrail: str
    message: str
    held_to: tuple[str, ...] = ()


@frozen
class Stop:
    """Verdict of `Guardrails`: stop the agent, because it makes no progress. ``reason`` is a sentence for the user."""

    guardrail: str
    reason: str


Verdict: TypeAlias = Accept | AskAgain | Stop
ACCEPT = Accept()


@frozen
class Fault:
    """What a guardrail found. ``held_to``: as of `AskAgain`, the second time where ``is_free_first``."""

    guardrail: str
    wordings: Wordings
    held_to: tuple[str, ...] = ()
    is_free_first: bool = False


class Guardrails:
    """Check each answer of a model, and decide to accept, retry or stop. ``on``: names of `GUARDRAILS`. ``encode``: how
    examples of calls are written. One for each loop.

    ``retries``: answers in a row that are asked again. Raises UsageError for an unknown
    guardrail, for no steps, and for retries below 0.
    """

    def __init__(
        self,
        tools: ToolDefinitions,
        *,
        on: Collection[str] = DEFAULT,
        steps: Given = NO_STEPS,
        retries: int = RETRIES,
        encode: Encode = encode_calls,
    ) -> None:
        self.tools = tools if isinstance(tools, ToolSet) else ToolSet(tools)
        self.on, self.steps = checked(on), steps_of(steps)
        self.retries, self.encode = checked_retries(retries), encode
        self._tries: Counter[str] = Counter()

    @property
    def asked_again(self) -> tuple[str, ...]:
        """The guardrails for which was asked again since the last answer that was accepted, in order."""
        return tuple(self._tries.elements())

    def check(self, messages: Json, turn: Turn, finish_reason: str | None = "stop") -> Verdict:
        """``messages``: the conversation that was answered, as OpenAI's interface has them. ``turn``: the answer.

        ``finish_reason``: what was cut off (``length``) is not asked again.
        """
        verdict = self.judge(past_of(messages), Said.of(turn), finish_reason)
        if isinstance(verdict, Accept):
            self.begin()
        return verdict

    def begin(self) -> None:
        """Count anew: an answer was accepted."""
        self._tries.clear()

    def judge(self, past: Past, said: Said, finish_reason: str | None = "stop") -> Verdict:
        """`check`, for what was read of the conversation before."""
        if finish_reason == "length":
            return ACCEPT
        fault = next(self.faults(past, said), None)
        if fault is None:
            return ACCEPT
        return self.verdict(fault)

    def verdict(self, fault: Fault) -> Verdict:
        tries = self._tries[fault.guardrail]
        if self._tries.total() >= self.retries or tries >= len(fault.wordings):
            guardrail = GUARDRAILS[fault.guardrail]
            return Stop(guardrail.name, f"the model's answer was {guardrail.recognises}") if guardrail.stops else ACCEPT
        self._tries[fault.guardrail] += 1
        held_to = () if fault.is_free_first and tries == 0 else fault.held_to
        return AskAgain(fault.guardrail, fault.wordings[tries], held_to)

    def is_over(self, past: Past, content: str) -> bool:
        """Whether a call after ``content`` is none of this answer: the model has gone on with words of the user. What
        was before them may be a good answer, so that nothing has to be asked again."""
        return "invented_turn" in self.on and end_of_answer(content, past.request) < len(content)

    def own(self, past: Past, turn: Turn) -> Turn:
        """``turn`` without calls that are none of this answer, see `is_over`, and what follows them."""
        if not turn.calls or not self.is_over(past, turn.content):
            return turn
        end, length, kept = end_of_answer(turn.content, past.request), 0, list[Event]()
        for event in turn.events:
            match event:
                case TextDelta(text=text):
                    length += len(text)
                case ContentWasReasoning():
                    length = 0
                case ToolCall() | InvalidToolCall() if length > end:
                    break
                case _:
                    pass
            kept.append(event)
        return Turn.from_events(kept)

    def faults(self, past: Past, said: Said) -> Iterator[Fault]:
        """What the guardrails that are on find, the gravest first."""
        found = self._of_calls(past, said) if said.calls else self._of_answer(past, said)
        return (fault for fault in found if fault.guardrail in self.on)

    def _of_calls(self, past: Past, said: Said) -> Iterator[Fault]:
        if self.is_over(past, said.content):
            yield Fault("invented_turn", wording.other_speaker())
        earlier: list[Made] = []
        for call in said.calls:
            yield from self._of_spelling(call)
            yield from self.of_call(past, call, earlier)
            earlier.append(Made(call.name, call.arguments))

    def _of_spelling(self, call: ToolCall) -> Iterator[Fault]:
        tool = self.tools.match(call.name)
        if tool is None:
            near = tuple(self.tools.nearest(call.name)) or tuple(self.tools)
            yield Fault("unknown_tool", wording.unknown_tool(call.name, self.tools, self.encode), near)
        elif "wrong_arguments" in self.on and (wrong := problems(tool, call.arguments)):
            words = wording.wrong_arguments(tool, call.arguments, wrong, self.encode)
            yield Fault("wrong_arguments", words, (tool.name,))

    def of_call(
        self, past: Past, call: ToolCall, earlier: Sequence[Made], repetitions: int = REPETITIONS
    ) -> Iterator[Fault]:
        """Why a call that can be made should not be made now. ``earlier``: others of the same answer."""
        steps, made = self.steps, Made(call.name, call.arguments)
        if steps.has_ended(past):
            yield Fault("after_the_end", wording.after_the_end(" or ".join(steps.ends_with)))
        if missing := steps.missing_before(past, made, earlier):
            words = wording.prerequisite(call.name, call.arguments, missing, self.tools, self.encode)
            yield Fault("missing_prerequisite", words, missing)
        if call.name in steps.ends_with and (pending := steps.pending(past, earlier)):
            words = wording.missing_steps(pending, False, self.tools, self.encode)
            yield Fault("missing_steps", words, pending)
        times = times_made(past, made, earlier, self.tools)
        if times == 1 and is_made_already(past, made, earlier):
            yield Fault("made_already", wording.made_already(call.name, past.recent[-1].result))
        if times > repetitions:
            result = next((each.result for each in reversed(past.recent) if each.key == made.key), "")
            yield Fault("repeated_call", wording.repeated(call.name, times, result))
        elif block := cycle_before(past, made.key, self.tools):
            yield Fault("cycle", wording.cycle([each.name for each in block]))

    def _of_answer(self, past: Past, said: Said) -> Iterator[Fault]:
        tools, steps = self.tools, self.steps
        content = said.content[: end_of_answer(said.content, past.request)]
        if said.invalid:
            yield self._unreadable(said)
        if not content.strip() and not said.has_invented and not said.invalid:
            yield Fault("empty_answer", wording.empty(said.has_reasoned, bool(past.recent)))
        if said.has_invented and not past.recent:  # else it may be a copy
            yield Fault("invented_result", wording.invented(), tuple(tools), is_free_first=True)
        if "wrong_markup" in self.on and is_in_wrong_markup(said, past.request, tools):
            yield Fault("wrong_markup", wording.wrong_markup(self._example()), tuple(tools), is_free_first=True)
        if left := tuple(name for name in steps.left(past) if name in tools):
            is_end = not steps.pending(past)
            yield Fault("missing_steps", wording.missing_steps(left, is_end, tools, self.encode), left)
        if "announced_call" in self.on and announces(content, past.request, tools):
            yield Fault("announced_call", wording.announced())
        if "refusal" in self.on and (tool := refused_tool(content, past, tools)):
            yield Fault("refusal", wording.refused(tool, self.encode))
        elif disclaims(content) or refuses_all(content, past):
            yield Fault("refusal", wording.disclaimed(tools, bool(past.recent)))
        if claims_success(content, past):
            yield Fault("unfounded_success", wording.unfounded(tools, bool(past.recent)))
        if ignores_result(content, past):
            last = past.recent[-1]
            yield Fault("ignored_result", wording.ignored_result(last.name, last.result))
        if speaks_for_others(said.content):
            yield Fault("other_speaker", wording.other_speaker())

    def _unreadable(self, said: Said) -> Fault:
        wrong = said.invalid[0]
        tool = self.tools.match(wrong.name) if wrong.name else self._named_in(wrong.raw)
        if wrong.name and tool is None:
            return Fault("unknown_tool", wording.unknown_tool(wrong.name, self.tools, self.encode), tuple(self.tools))
        example = wording.example_of(tool, self.encode) if tool else self._example()
        held_to = (tool.name,) if tool else tuple(self.tools)
        return Fault("unreadable_call", wording.unreadable(wrong.error, example), held_to)

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
        return wording.example_of(first, self.encode) if first else ""
