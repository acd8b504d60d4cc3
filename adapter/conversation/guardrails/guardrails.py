"""Check each answer and decide: accept, retry or stop. No I/O, no clock.

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

from adapter.conversation.guardrails.announced_action import announces_action
from adapter.conversation.guardrails.call_history import CallHistory, PastCall, read_call_history
from adapter.conversation.guardrails.candidate_answer import CandidateAnswer
from adapter.conversation.guardrails.copied_text import (
    SentMessages,
    copies_error,
    find_placeholder,
    list_known_values,
)
from adapter.conversation.guardrails.invented_file_text import invents_text
from adapter.conversation.guardrails.invented_turns import cut_turn, find_answer_end
from adapter.conversation.guardrails.loop_detection import REPETITIONS
from adapter.conversation.guardrails.needless_later_calls import (
    changes_unread_target,
    is_expected,
    is_unasked_action,
    repeats_in_answer,
    undoes_call,
)
from adapter.conversation.guardrails.refusals_and_claims import (
    claims_unbacked_success,
    find_refused_tool,
    is_blanket_refusal,
    is_empty_answer,
)
from adapter.conversation.guardrails.registry import (
    DEFAULT,
    GUARDRAILS,
    LOOPS,
    validate_guardrails,
    validate_max_calls,
    validate_retries,
)
from adapter.conversation.guardrails.repetition_messages import describe_repetition
from adapter.conversation.guardrails.requested_file_changes import (
    changes_nothing,
    find_next_tools,
    find_readers,
    find_readers_for_invented_content,
    find_tools_for_omitted_change,
    find_unread_paths,
    loses_text,
)
from adapter.conversation.guardrails.required_steps import Steps, StepsInput, parse_steps
from adapter.conversation.guardrails.retry_messages import (
    MAX_CHOICES,
    Encode,
    Examples,
    describe_error,
    join_with_and,
    join_with_or,
    list_tools,
    render_message,
    shorten_to_line,
    suggest_tools,
)
from adapter.conversation.guardrails.unparsed_calls import (
    begins_hopeless_call,
    find_arguments,
    find_named_tool,
    has_unparsed_call,
    is_about_calls,
    is_call_shaped,
    read_leading_call,
)
from adapter.conversation.guardrails.unused_tool import find_unused_tool
from adapter.conversation.guardrails.verdicts import ACCEPT, Accept, DroppedCall, Retry, Stop, Verdict, Violation
from adapter.core.argument_checks import check_types
from adapter.core.callback_checks import wrap_text_function
from adapter.core.events import InvalidToolCall, Json, JsonObject, ToolCall
from adapter.core.turn import Turn
from adapter.parsing.formats.hermes import encode_calls
from adapter.prompting.intent.bm25 import ToolRanking
from adapter.tools.call_normalization import find_tool_with_arguments
from adapter.tools.call_validation import is_valid
from adapter.tools.schema_violation_messages import find_missing_arguments, find_schema_errors, select_allowed_arguments
from adapter.tools.tool import ToolDefinitions, ToolSet

NO_STEPS = Steps()

RETRIES = 2
"""Maximum number of consecutive retries, for any reason."""

MAX_CALLS = 8
"""Maximum number of calls of one answer that are used."""

MAX_DROPPED = 3
"""Maximum number of dropped calls of an answer. A model that writes more lists all tools one after another."""


class Guardrails:
    """Check each answer of a model, and decide whether to accept it, retry or stop. Each agent loop needs its own
    instance.

    Args:
        on: Names of `GUARDRAILS`.
        encode: Encodes the example calls in messages to the model.
        retries: Maximum number of consecutive retries.
        max_calls: Maximum number of calls of one answer that are used.
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
        self.tools = tools if isinstance(tools, ToolSet) else ToolSet(tools)
        self.on, self.steps = validate_guardrails(on), parse_steps(steps)
        self.retries = validate_retries(retries)
        self.encode = wrap_text_function(encode, "encode")
        self.max_calls = validate_max_calls(max_calls)
        self.must_call = must_call
        self._tries: Counter[str] = Counter()
        self._sent = SentMessages()

    @property
    def asked_again(self) -> tuple[str, ...]:
        """Names of the guardrails that triggered a retry since the last accepted answer, in order."""
        return tuple(self._tries.elements())

    def check(self, messages: Json, turn: Turn, finish_reason: str | None = "stop") -> Verdict:
        """Check an answer.

        Args:
            messages: The conversation before it, in OpenAI's format.
            turn: The answer.
            finish_reason: The server's finish reason; an answer that was truncated by ``length`` is accepted.
        """
        check_types("Guardrails.check", turn=(turn, Turn))
        verdict = self.check_response(
            read_call_history(messages, self.tools), CandidateAnswer.from_turn(turn), finish_reason
        )
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
        fault = None if is_cut else next(self.find_faults(history, answer), None)
        verdict = ACCEPT if fault is None else self.verdict(fault)
        if isinstance(verdict, Retry):
            self.remember_message(verdict.message, history, answer)
        return verdict

    def _is_call_shaped(self, history: CallHistory, content: str) -> bool:
        return is_call_shaped(content, history.request) or self.is_hopeless(history, content)

    def is_hopeless(self, history: CallHistory, content: str) -> bool:
        """Return whether an answer begins like a call of an unknown tool, so that the rest need not be received."""
        return "call_as_answer" in self.on and begins_hopeless_call(content, history.request, self.tools)

    def _names_tool(self, content: str) -> bool:
        """Return whether ``content`` begins with a JSON call of a known tool."""
        return self.tools.match(str(read_leading_call(content).get("name"))) is not None

    def remember_message(self, message: str, history: CallHistory, answer: CandidateAnswer) -> None:
        """Remember a message sent after ``answer``, so that a copy of it is recognized (`own_words`)."""
        if "own_words" in self.on:
            self._sent.add(message, history, answer.text, self.tools)

    def remove_forbidden(self, call: ToolCall, *, is_final: bool = False) -> ToolCall:
        """Return the call without arguments that its schema forbids.

        ``is_final``: True if no retry is possible. If one is possible, a call that the model should correct is returned
        unchanged.
        """
        tool = self.tools.match(call.name) if "wrong_arguments" in self.on else None
        allowed = tool and select_allowed_arguments(tool, call.arguments)
        if not allowed or not allowed.forbidden or not (allowed.is_safe or is_final):
            return call
        return replace(call, arguments=allowed.arguments)

    without_forbidden = remove_forbidden
    """Former name of `remove_forbidden`."""

    def screen(self, messages: Json, turn: Turn) -> tuple[list[ToolCall], list[DroppedCall]]:
        """Return the calls of an accepted answer that should be run, and the dropped calls. Arguments as in `check`.

        The first call is never dropped, because `check` has accepted it. If more than `MAX_DROPPED` calls are dropped,
        the model is listing calls without end, so all calls after the first dropped one are dropped as well.
        """
        return self.screen_calls(read_call_history(messages, self.tools), turn.calls)

    def screen_calls(self, history: CallHistory, calls: Sequence[ToolCall]) -> tuple[list[ToolCall], list[DroppedCall]]:
        """Screen calls like `screen`, but with a conversation that is already parsed."""
        kept: list[ToolCall] = []
        dropped: dict[int, DroppedCall] = {}
        for index, call in enumerate(calls):
            earlier = [PastCall(each.name, each.arguments) for each in kept]
            if kept and (reason := self.find_drop_reason(history, call, earlier)):
                dropped[index] = DroppedCall(call.name, reason)
            else:
                kept.append(call)
            if len(dropped) > MAX_DROPPED:
                first = min(dropped)
                rest = enumerate(calls[first:], first)
                return [*calls[:first]], [dropped.get(at) or DroppedCall(each.name, reason) for at, each in rest]
        return kept, [*dropped.values()]

    def find_drop_reason(self, history: CallHistory, call: ToolCall, earlier: Sequence[PastCall]) -> str:
        """Return the guardrail that drops a call of the current answer, or "" if the call is used.

        ``earlier``: the used calls of the same answer.
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
        yield from (fault.guardrail for fault in self._check_copies(history, call))
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
        return any(fault.guardrail == guardrail for fault in self.check_call(history, call, ()))

    def drops_answer(self, history: CallHistory, answer: CandidateAnswer) -> bool:
        """Return whether to drop the text of an answer, because it is a call or a copy of a guardrail's message."""
        is_call = "call_as_answer" in self.on and self._is_call_shaped(history, answer.content)
        return is_call or self._sent.is_mostly_copied(answer.content)

    def verdict(self, fault: Violation) -> Verdict:
        tries = self._tries[fault.guardrail]
        if self._tries.total() >= self.retries or tries >= len(fault.wordings):
            guardrail = GUARDRAILS[fault.guardrail]
            reason = f"the model's answer was {guardrail.recognizes}"
            return Stop(guardrail.name, reason) if guardrail.stops else ACCEPT
        self._tries[fault.guardrail] += 1
        held_to = () if fault.is_free_first and tries == 0 else fault.held_to
        return Retry(fault.guardrail, fault.wordings[tries], held_to)

    def answer_has_ended(self, history: CallHistory, content: str) -> bool:
        """Return whether the model continued after the end of its answer, with a user message that it invented.

        Calls after the end are ignored. The answer before the end may be good, so that no retry is needed.
        """
        return "invented_turn" in self.on and find_answer_end(content, history.request) < len(content)

    def drop_calls_after_end(self, history: CallHistory, turn: Turn) -> Turn:
        """Return ``turn`` without the calls after the answer's end (see `answer_has_ended`)."""
        if not turn.calls or not self.answer_has_ended(history, turn.content):
            return turn
        return cut_turn(turn, find_answer_end(turn.content, history.request))

    def find_faults(self, history: CallHistory, answer: CandidateAnswer) -> Iterator[Violation]:
        """Yield the violations of the active guardrails, most severe first."""
        found = self._check_calls(history, answer) if answer.calls else self._check_content(history, answer)
        return (fault for fault in found if fault.guardrail in self.on)

    faults = find_faults
    """Former name of `find_faults`."""

    def _check_calls(self, history: CallHistory, answer: CandidateAnswer) -> Iterator[Violation]:
        if self.answer_has_ended(history, answer.content):
            yield _build_violation("invented_turn")
        earlier: list[PastCall] = []
        for call in answer.calls:
            yield from self._check_schema(history, call)
            yield from self.check_call(history, call, earlier)
            earlier.append(PastCall(call.name, call.arguments))

    def _check_schema(self, history: CallHistory, call: ToolCall) -> Iterator[Violation]:
        tool, examples = self.tools.match(call.name), Examples(self.encode, history)
        if tool is None:
            yield self._build_unknown_tool(history, call.name, call.arguments, examples)
        elif "wrong_arguments" in self.on and (wrong := find_schema_errors(tool, call.arguments)):
            example = examples.describe(tool, call.arguments)
            yield _build_violation("wrong_arguments", tool.name, errors="; ".join(wrong), example=example)

    def check_call(
        self, history: CallHistory, call: ToolCall, earlier: Sequence[PastCall], repetitions: int = REPETITIONS
    ) -> Iterator[Violation]:
        """Yield the reasons not to run a valid call now. ``earlier``: preceding calls in the same answer."""
        steps, current = self.steps, PastCall(call.name, call.arguments)
        if steps.has_ended(history):
            yield Violation("after_the_end", render_message("after_the_end", tool=" or ".join(steps.ends_with)))
        if missing := steps.missing_before(history, current, earlier):
            example = Examples(self.encode, history).describe(self.tools.get(missing[0]), call.arguments)
            values = {"tool": call.name, "first": missing[0], "example": example}
            words = render_message("missing_prerequisite", missing=join_with_and(missing), **values)
            yield Violation("missing_prerequisite", words, missing)
        if call.name in steps.ends_with and (pending := steps.pending(history, earlier)):
            yield self._build_missing_steps(history, pending, join_with_and(pending))
        yield from self._check_copies(history, call)
        if loses_text(current, history, self.tools):
            next_tools = find_next_tools(history, self.tools)
            step = f"Call {join_with_or(next_tools)}" if next_tools else "Answer"
            yield Violation("unasked_action", render_message("unasked_action", tool=call.name, step=step), next_tools)
        if invents_text(current, history, self.tools):
            yield _build_violation("invented_text", call.name, request=shorten_to_line(history.request))
        if found := describe_repetition(history, current, earlier, self.tools, self.encode, repetitions):
            yield found
        tool = self.tools.match(call.name)
        if tool and tool.validate is None and changes_nothing(tool, call.arguments):
            yield Violation("wrong_arguments", render_message("equal_texts", tool=call.name), (call.name,))

    def _build_missing_steps(self, history: CallHistory, missing: tuple[str, ...], names: str) -> Violation:
        example = Examples(self.encode, history).describe(self.tools.get(missing[0]))
        words = render_message("missing_steps", missing=names, first=missing[0], example=example)
        return Violation("missing_steps", words, missing)

    def _check_copies(self, history: CallHistory, call: ToolCall) -> Iterator[Violation]:
        tool = self.tools.match(call.name)
        if "placeholder" in self.on and tool and (name := find_placeholder(tool, call.arguments, history)):
            known = list_known_values(name, history)
            some = f", such as {', '.join(known)}" if known else ""
            yield _build_violation("placeholder", call.name, argument=name, some=some)
        is_error = copies_error(PastCall(call.name, call.arguments), history)
        if is_error or self._sent.find_in_arguments(call.arguments):
            yield _build_violation("own_words")

    def _check_content(self, history: CallHistory, answer: CandidateAnswer) -> Iterator[Violation]:
        tools, steps, examples = self.tools, self.steps, Examples(self.encode, history)
        content = answer.content[: find_answer_end(answer.content, history.request)]
        if self._sent.is_mostly_copied(answer.content):
            yield _build_violation("own_words")
        if answer.invalid:
            if not self._is_example(history, answer.invalid[0]):
                yield self._describe_invalid(history, answer.invalid[0], examples)
        elif self.must_call:
            likely = self._find_likely_tools(history)
            which = join_with_or(likely) if 0 < len(likely) <= MAX_CHOICES else "one of the tools"
            example = examples.describe(tools[likely[0]] if len(likely) == 1 else None)
            yield Violation("missing_call", render_message("missing_call", which=which, example=example), tuple(tools))
        elif is_empty_answer(content, history) and not answer.has_invented:
            error = "Your answer has only reasoning" if answer.has_reasoned else "Your answer is empty"
            step = "Report the tool results, or make the next tool call" if history.recent else _FIRST_STEP
            yield _build_violation("empty_answer", error=error, step=step)
        if answer.has_invented and not history.recent:  # after a call, it may be a copy of a real result
            yield Violation("invented_result", render_message("invented_result"), tuple(tools), is_free_first=True)
        if "wrong_markup" in self.on and has_unparsed_call(answer, history.request, tools):
            words = render_message("wrong_markup", example=examples.describe(find_named_tool(answer.text, tools)))
            yield Violation("wrong_markup", words, tuple(tools), is_free_first=True)
        elif self._is_call_shaped(history, content):
            likely = find_next_tools(history, tools)
            names = join_with_or(likely or self._find_likely_tools(history)) or list_tools(tools)
            yield Violation("call_as_answer", render_message("call_as_answer", tools=names), likely)
        if named := tools.get(content.strip("`*.() \n")):
            yield _build_violation("announced_call", named.name)
        if missing := tuple(name for name in steps.find_missing(history) if name in tools):
            yield self._build_missing_steps(
                history, missing, join_with_and(missing) if steps.pending(history) else " or ".join(missing)
            )
        if next_tools := find_tools_for_omitted_change(content, history, tools):
            words = render_message("unmade_change", tools=join_with_or(next_tools))
            yield Violation("unmade_change", words, next_tools)
        if readers := find_readers_for_invented_content(content, history, tools):
            yield _build_violation("unread_file", readers[0])
        if "announced_call" in self.on and announces_action(content, history.request, tools):
            yield _build_violation("announced_call")
        if "refusal" in self.on and (tool := find_refused_tool(content, history, tools)):
            yield Violation("refusal", render_message("refusal", tool=tool.name, example=examples.describe(tool)))
        elif is_blanket_refusal(content, history):
            results = "use the results you have, or " if history.recent else ""
            yield Violation("refusal", render_message("disclaimer", results=results, tools=list_tools(tools)))
        if "unused_tool" in self.on and (tool := find_unused_tool(content, history, tools)):
            words = render_message("unused_tool", tool=tool.name)
            yield Violation("unused_tool", words, (tool.name,), is_free_first=True)
        if claims_unbacked_success(content, history):
            message = "success_without_results" if history.recent else "unfounded_success"
            yield Violation("unfounded_success", render_message(message, tools=list_tools(tools)))

    def _build_unknown_tool(
        self, history: CallHistory, name: str, arguments: JsonObject, examples: Examples
    ) -> Violation:
        fitting = find_tool_with_arguments(arguments, self.tools)
        if fitting and is_valid(ToolCall("", fitting.name, arguments, ""), self.tools):
            values = {"name": name, "tool": fitting.name, "example": examples.describe(fitting, arguments)}
            return Violation("unknown_tool", render_message("misnamed_tool", **values), (fitting.name,))
        likely = tuple(self.tools.find_nearest(name)[:1]) or find_next_tools(history, self.tools)
        likely = likely or (find_readers(self.tools) if find_unread_paths(history) else ())
        instead = suggest_tools(name, self.tools, examples, likely or self._find_likely_tools(history))
        words = render_message("unknown_tool", name=name, instead=instead, tools=list_tools(self.tools))
        return Violation("unknown_tool", words, likely or tuple(self.tools))

    def _find_likely_tools(self, history: CallHistory) -> tuple[str, ...]:
        """Return a few tools that match the request. With a longer list, small models call one tool after another."""
        if len(self.tools) <= MAX_CHOICES:
            return tuple(self.tools)
        scores = ToolRanking(self.tools).score_tools(history.request)
        return tuple(name for name in [*scores][:MAX_CHOICES] if scores[name] > 0)

    def _is_example(self, history: CallHistory, invalid: InvalidToolCall) -> bool:
        """Return whether a call of an unknown tool is an example, because the request is about JSON or calls."""
        return invalid.name is not None and self.tools.match(invalid.name) is None and is_about_calls(history.request)

    def _describe_invalid(self, history: CallHistory, invalid: InvalidToolCall, examples: Examples) -> Violation:
        tool = self.tools.match(invalid.name) if invalid.name else find_named_tool(invalid.raw, self.tools)
        if invalid.name and tool is None:
            return self._build_unknown_tool(history, invalid.name, find_arguments(invalid.raw), examples)
        held_to = (tool.name,) if tool else tuple(self.tools)
        example = examples.describe(tool, find_arguments(invalid.raw))
        words = render_message("unreadable_call", reason=describe_error(invalid.error), example=example)
        return Violation("unreadable_call", words, held_to)


_FIRST_STEP = "Answer the user, or call a tool"


def _build_violation(guardrail: str, tool: str = "", **values: object) -> Violation:
    """Build the violation of a guardrail whose message has its name. ``tool``: the tool that a retry is held to."""
    return Violation(guardrail, render_message(guardrail, tool=tool, **values), (tool,) if tool else ())
