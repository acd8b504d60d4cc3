"""Find the violations of guardrails in an answer. `Guardrails` then decides how to react."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adapter.conversation.guardrails.announced_action import announces_action
from adapter.conversation.guardrails.call_history import CallHistory, PastCall, may_change
from adapter.conversation.guardrails.candidate_answer import CandidateAnswer
from adapter.conversation.guardrails.copied_text import (
    SentMessages,
    copies_error,
    find_placeholder,
    list_known_values,
)
from adapter.conversation.guardrails.invented_file_text import invents_text
from adapter.conversation.guardrails.invented_turns import find_answer_end
from adapter.conversation.guardrails.loop_detection import REPETITIONS, select_known_arguments
from adapter.conversation.guardrails.refusals_and_claims import (
    claims_change_without_call,
    claims_unbacked_success,
    find_refused_tool,
    is_blanket_refusal,
    is_empty_answer,
)
from adapter.conversation.guardrails.repetition_messages import describe_repetition
from adapter.conversation.guardrails.requested_file_changes import (
    changes_nothing,
    find_next_tools,
    find_readers,
    find_readers_for_invented_content,
    find_tools_for_omitted_change,
    find_unread_paths,
    find_unused_values,
    loses_text,
)
from adapter.conversation.guardrails.requested_files import find_kept_values, list_target_paths
from adapter.conversation.guardrails.required_steps import Steps
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
)
from adapter.conversation.guardrails.unused_tool import find_unused_tool
from adapter.conversation.guardrails.verdicts import Violation
from adapter.core.events import InvalidToolCall, JsonObject, ToolCall
from adapter.core.text.word_stems import stem_words
from adapter.prompting.intent.tool_ranking import ToolRanking
from adapter.prompting.intent.verbs import act_alike, sounds_destructive, sounds_like
from adapter.tools.call_normalization import find_tool_with_arguments
from adapter.tools.call_validation import is_valid
from adapter.tools.schema_violation_messages import find_schema_errors
from adapter.tools.tool_set import ToolSet

_FIRST_STEP = "Answer the user, or call a tool"


class ViolationFinder:
    """Finds violations in the answers of one agent loop, and remembers the messages sent about them.

    ``on`` has the names of the active guardrails. The other arguments are as in `Guardrails`.
    """

    def __init__(self, tools: ToolSet, on: frozenset[str], steps: Steps, encode: Encode, *, must_call: bool) -> None:
        self.tools, self.on, self.steps, self.encode, self.must_call = tools, on, steps, encode, must_call
        self._sent = SentMessages()

    def find_violations(self, history: CallHistory, answer: CandidateAnswer) -> Iterator[Violation]:
        """Yield the violations of the active guardrails, most severe first."""
        found = self._check_calls(history, answer) if answer.calls else self._check_content(history, answer)
        return (each for each in found if each.guardrail in self.on)

    find_faults = faults = find_violations
    """Former names of `find_violations`."""

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
        """Yield the reasons why a valid call must not be run now. ``earlier`` has the preceding calls in the same
        answer; ``repetitions`` is the number of repetitions allowed."""
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
            words = render_message("unasked_action", tool=call.name, step=step)
            if kept := find_kept_values(history.request, call.arguments):
                targets = list_target_paths(history.request)
                left = [path for path in targets if path in find_unused_values(history)]
                others = join_with_and(left) or "the others"
                step = f"Call {call.name} for {others}" if left or not targets else "Answer"
                words = render_message("kept_file", kept=join_with_and(kept), step=step)
            is_unread = not {*find_unread_paths(history)}.isdisjoint(map(str, call.arguments.values()))
            if is_unread and (readers := find_readers(self.tools)) and not sounds_like(call.name, "delete"):
                next_tools, words = readers, render_message("unread_file", tool=readers[0])
            yield Violation("unasked_action", words, next_tools)
        if invents_text(current, history, self.tools):
            words = render_message("invented_text", request=shorten_to_line(history.request))
            yield Violation("invented_text", words, find_next_tools(history, self.tools) or (call.name,))
        if found := describe_repetition(history, current, earlier, self.tools, self.encode, repetitions):
            yield found
        tool = self.tools.match(call.name)
        if tool and tool.validate is None and changes_nothing(tool, call.arguments):
            yield Violation("wrong_arguments", render_message("equal_texts", tool=call.name), (call.name,))

    def _check_copies(self, history: CallHistory, call: ToolCall) -> Iterator[Violation]:
        tool = self.tools.match(call.name)
        if "placeholder" in self.on and tool and (name := find_placeholder(tool, call.arguments, history)):
            deletes = sounds_like(tool.name, "delete")  # which the user may not have asked for
            known = () if deletes else list_known_values(name, history)
            some = f", such as {', '.join(known)}" if known else ""
            next_tools = find_next_tools(history, self.tools)
            lookup = "" if call.name in next_tools else join_with_or(next_tools)
            values = {"argument": name, "some": some, "lookup": lookup or "the tool that returns it"}
            words = render_message("placeholder", tool=call.name, **values)
            yield Violation("placeholder", words, () if deletes else next_tools if lookup else (call.name,))
        used = PastCall(call.name, select_known_arguments(PastCall(call.name, call.arguments), self.tools))
        if copies_error(used, history) or self._sent.find_in_arguments(used.arguments):
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
        if "wrong_markup" in self.on and has_unparsed_call(answer, history, tools):
            words = render_message("wrong_markup", example=examples.describe(find_named_tool(answer.text, tools)))
            yield Violation("wrong_markup", words, tuple(tools), is_free_first=True)
        elif self._is_call_shaped(history, content):
            likely = find_next_tools(history, tools) or self._find_fitting_tools(find_arguments(content))
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
            yield Violation("unused_tool", words, (tool.name,), is_free_first=tool.effect != "execute")
        if claims_unbacked_success(content, history) or claims_change_without_call(content, history, tools):
            message = "success_without_results" if history.recent else "unfounded_success"
            yield Violation("unfounded_success", render_message(message, tools=list_tools(tools)))

    def _is_call_shaped(self, history: CallHistory, content: str) -> bool:
        return is_call_shaped(content, history.request) or self.is_hopeless(history, content)

    def is_hopeless(self, history: CallHistory, content: str) -> bool:
        """Return whether an unfinished answer begins like a call to an unknown tool. The caller can then stop the
        answer."""
        return "call_as_answer" in self.on and begins_hopeless_call(content, history.request, self.tools)

    def answer_has_ended(self, history: CallHistory, content: str) -> bool:
        """Return whether the model continued after the end of its answer with an invented user message.

        Calls after the end are ignored. The text before the end may be a good answer, which needs no retry.
        """
        return "invented_turn" in self.on and find_answer_end(content, history.request) < len(content)

    def remember_message(self, message: str, history: CallHistory, answer: CandidateAnswer) -> None:
        """Remember a message sent after ``answer``, to recognize copies of it (guardrail ``own_words``)."""
        if "own_words" in self.on:
            self._sent.add(message, history, answer.text, self.tools)

    def _build_missing_steps(self, history: CallHistory, missing: tuple[str, ...], names: str) -> Violation:
        example = Examples(self.encode, history).describe(self.tools.get(missing[0]))
        words = render_message("missing_steps", missing=names, first=missing[0], example=example)
        return Violation("missing_steps", words, missing)

    def _build_unknown_tool(
        self, history: CallHistory, name: str, arguments: JsonObject, examples: Examples
    ) -> Violation:
        fitting = find_tool_with_arguments(arguments, self.tools)
        if fitting and is_valid(ToolCall("", fitting.name, arguments, ""), self.tools):
            values = {"name": name, "tool": fitting.name, "example": examples.describe(fitting, arguments)}
            return Violation("unknown_tool", render_message("misnamed_tool", **values), (fitting.name,))
        meant, next_tools = self._find_meant_tool(name), find_next_tools(history, self.tools)
        if next_tools and meant not in next_tools and may_change(meant, self.tools):
            meant = ""  # a change that the user did not ask for
        likely = (meant,) if meant else next_tools or self._find_runners(name)
        likely = likely or (find_readers(self.tools) if find_unread_paths(history) else ())
        instead = suggest_tools(meant, self.tools, examples, likely or self._find_likely_tools(history))
        words = render_message("unknown_tool", name=name, instead=instead, tools=list_tools(self.tools))
        return Violation("unknown_tool", words, likely or tuple(self.tools))

    def _find_meant_tool(self, name: str) -> str:
        """Return the tool that resembles ``name`` in spelling and action, or "" if there is none. A destructive tool
        must have exactly the same words, so that a model that wants to delete a line does not delete the file."""
        alike = (each for each in self.tools.find_nearest(name, len(self.tools)) if act_alike(name, each))
        near = (each for each in alike if not sounds_destructive(each) or stem_words(each) == stem_words(name))
        return next(near, "")

    def _find_runners(self, name: str) -> tuple[str, ...]:
        """Return the only tool that runs commands, if ``name`` is about running something (``run_report``), or ()."""
        runners = tuple(each for each in self.tools if sounds_like(each, "run"))
        return runners if len(runners) == 1 and sounds_like(name, "run") else ()

    def _find_fitting_tools(self, arguments: JsonObject) -> tuple[str, ...]:
        """Return the name that `find_tool_with_arguments` finds, in a tuple, or ()."""
        tool = find_tool_with_arguments(arguments, self.tools)
        return () if tool is None else (tool.name,)

    def _find_likely_tools(self, history: CallHistory) -> tuple[str, ...]:
        """Return at most `MAX_CHOICES` tools that match the request. A small model would call the tools of a longer
        list one after another."""
        if len(self.tools) <= MAX_CHOICES:
            return tuple(self.tools)
        scores = ToolRanking(self.tools).score_tools(history.request)
        return tuple(name for name in [*scores][:MAX_CHOICES] if scores[name] > 0)

    def _is_example(self, history: CallHistory, invalid: InvalidToolCall) -> bool:
        """Return whether a call to an unknown tool is an example, because the request is about JSON or calls."""
        return invalid.name is not None and self.tools.match(invalid.name) is None and is_about_calls(history.request)

    def _describe_invalid(self, history: CallHistory, invalid: InvalidToolCall, examples: Examples) -> Violation:
        tool = self.tools.match(invalid.name) if invalid.name else find_named_tool(invalid.raw, self.tools)
        if invalid.name and tool is None:
            return self._build_unknown_tool(history, invalid.name, find_arguments(invalid.raw), examples)
        held_to = (tool.name,) if tool else tuple(self.tools)
        if tool and history.is_question and may_change(tool.name, self.tools):
            held_to = ()  # a forced change of what the user only asks about
        example = examples.describe(tool, find_arguments(invalid.raw))
        words = render_message("unreadable_call", reason=describe_error(invalid.error), example=example)
        return Violation("unreadable_call", words, held_to)


def _build_violation(guardrail: str, tool: str = "", **values: object) -> Violation:
    """Build the violation of a guardrail whose only message has its name. A retry is constrained to ``tool``."""
    return Violation(guardrail, render_message(guardrail, tool=tool, **values), (tool,) if tool else ())
