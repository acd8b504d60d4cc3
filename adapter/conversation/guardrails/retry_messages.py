"""Messages that ask a model for a better answer. Each contains the error, the expected form, the nearest valid name and
an example.

The messages are short, for small models. Each has several wordings, so that a model never reads the same message
twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.guardrails.copied_text import remove_placeholders
from adapter.core.events import Json, JsonObject
from adapter.prompting.intent.candidate_values import find_candidates
from adapter.prompting.intent.text_values import find_paths
from adapter.tools.example_calls import build_example_call
from adapter.tools.signatures import format_parameters
from adapter.tools.tool import Tool, ToolSet

Encode: TypeAlias = Callable[[list[tuple[str, JsonObject]]], str]
"""A function that writes calls in the model's format, like `Format.encode_calls`."""

MAX_NAMES = 12
"""Maximum number of tools listed in a message."""

MAX_CHOICES = 3
"""Maximum number of tools that a message proposes."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Encode example calls in the model's format.

    The values come from the model's call. A missing value comes from the user's request, if only one value there, or
    only paths, fit the parameter.
    """

    encode: Encode
    past: CallHistory

    def render(self, tool: Tool, arguments: JsonObject | None = None) -> str:
        """Encode a valid call of ``tool``. Return "" if the values of some arguments are not known.

        ``arguments``: the arguments that the model wrote.
        """
        request, written = self.past.request, remove_placeholders(tool, arguments or {}, self.past)
        known: dict[str, Json] = {}
        paths: set[Json] = {*find_paths(request)}
        for name in tool.required if request else ():
            values = find_candidates(request, tool, name)
            new = [value for value in values if value not in known.values()]
            known |= {name: new[0]} if new and (len(values) == 1 or set(values) <= paths) else {}
        example = build_example_call(tool, {**known, **written})
        return "" if example is None else self.encode([(tool.name, example)]).strip()

    def show(self, lead: str, tool: Tool | None, arguments: JsonObject | None = None) -> str:
        """Return ``lead`` and a valid call. If its values are not known, return only the tool's parameters, because the
        model would copy invented values."""
        if tool is None:
            return ""
        if example := self.render(tool, arguments):
            return f" {lead}:\n{example}"
        return f" Parameters of {tool.name}: {format_parameters(tool) or 'none'}."


Wordings: TypeAlias = tuple[str, ...]
"""The wordings of a message: for the first retry, and for later ones."""


def build_unreadable_call_message(error: str, tool: Tool | None, arguments: JsonObject, examples: Examples) -> Wordings:
    """Build the message for a call that cannot be parsed. ``arguments``: the arguments that could be read."""
    reason = _shorten_to_line(error).partition(". ")[0].rstrip(".")
    return (
        f"Your tool call could not be read: {reason}.{examples.show('Write it like this', tool, arguments)}",
        "Your tool call could not be read again. Answer with one complete call."
        + examples.show("It must have exactly this form", tool, arguments),
    )


def build_unknown_tool_message(name: str, tools: ToolSet, examples: Examples, likely: Sequence[str]) -> Wordings:
    """Build the message for a call of an unknown tool. ``likely``: the tools that the model may mean; empty if
    unknown.
    """
    if likely and tools.find_nearest(name)[:1] == [*likely]:
        nearest = tools[likely[0]]
        instead = f"The nearest is {nearest.name!r}.{examples.show('Call it like this', nearest)}"
    elif likely:
        instead = f"Call {_join_with_or(likely)}."
    else:
        instead = f"Available tools: {_list(tools)}. Call one of these, or answer without a tool."
    return (
        f"There is no tool {name!r}. {instead}",
        f"{name!r} does not exist. Use exactly one of these names: {_list(tools)}.",
    )


def build_misnamed_tool_message(name: str, tool: Tool, arguments: JsonObject, examples: Examples) -> Wordings:
    """Build the message for a call with the unknown tool ``name``, whose arguments only ``tool`` accepts."""
    return (
        f"There is no tool {name!r}. The arguments fit {tool.name}.{examples.show('Write', tool, arguments)}",
        f"{name!r} does not exist. Call {tool.name}.{examples.show('Write exactly this', tool, arguments)}",
    )


def build_wrong_arguments_message(
    tool: Tool, arguments: JsonObject, problems: Iterable[str], examples: Examples
) -> Wordings:
    errors = "; ".join(problems)
    return (
        f"Wrong arguments for {tool.name}: {errors}.{examples.show('Call it like this', tool, arguments)}",
        f"Still wrong: {errors}.{examples.show('Write it like this', tool, arguments)}",
    )


def build_equal_texts_message(name: str) -> Wordings:
    return (f"This call of {name} changes nothing: its new text equals the old one.",)


def build_prerequisite_message(
    name: str, arguments: JsonObject, missing: Sequence[str], tools: ToolSet, examples: Examples
) -> Wordings:
    example = examples.show("Like this", tools.get(missing[0]), arguments)
    return (
        f"{name} cannot be called yet: first call {_join(missing)}.{example}",
        f"Do not call {name} now. Call {missing[0]} first, and nothing else.{example}",
    )


def build_missing_steps_message(missing: Sequence[str], is_end: bool, tools: ToolSet, examples: Examples) -> Wordings:
    example = examples.show("Like this", tools.get(missing[0]))
    names = " or ".join(missing) if is_end else _join(missing)
    return (
        f"The task is not done yet: you must first call {names}. Make the tool call now.{example}",
        f"Do not answer in words. Answer with a call to {missing[0]}.{example}",
        f"Your whole answer must be a call of {missing[0]}.{example}",
    )


def build_missing_call_message(tools: ToolSet, likely: Sequence[str], examples: Examples) -> Wordings:
    """Build the message for an answer without the call that is required. ``likely``: tools that match the request."""
    which = _join_with_or(likely) if 0 < len(likely) <= MAX_CHOICES else "one of the tools"
    example = examples.show("Like this", tools[likely[0]]) if len(likely) == 1 else ""
    return (
        f"Make a tool call now: call {which}.{example}",
        f"Your whole answer must be a call of {which}.{example}",
    )


def build_after_the_end_message(name: str) -> Wordings:
    return (
        f"Call no tool after {name}. Summarize in words.",
        "Call no more tools. Write one sentence for the user.",
    )


def build_repeated_call_message(name: str, times: int, next_tools: Sequence[str] = (), question: str = "") -> Wordings:
    """Build a message that requests the answer to the user's ``question``, or the change that one of ``next_tools``
    still has to make. It does not quote the result of the call, because the model would copy the quotation.
    """
    made = "already made this call of" if times == 1 else "called"
    after = f"Now call {_join_with_or(next_tools)}" if next_tools else "Answer from its result, or call the next tool"
    after = f"Answer from its result: {question}" if question and not next_tools else f"{after}."
    return (
        f"You {made} {name}{f' {times} times' if times > 1 else ''}. {after}",
        f"Stop repeating {name}. {after if next_tools else 'Answer in words now.'}",
    )


def build_failed_call_message(
    name: str, wrong: Sequence[str], example: str, others: Sequence[str], invented: str, lookups: Sequence[str]
) -> Wordings:
    """Build the message for a repeated call that failed.

    ``example`` is the call without the ``wrong`` arguments, or "". ``invented`` is an argument that occurs neither in
    the request nor in a result, or "". The model should call one of ``others`` or, if there are none, one of
    ``lookups``, which change nothing.
    """
    if example:
        instead = f"Call it without {_join(wrong)}:\n{example}"
    elif others:
        instead = f"Call {_join_with_or(others)}."
    elif invented:
        instead = f"{_shorten_to_line(invented, 60)!r} is neither in the request nor in a result."
    else:
        instead = "Use other arguments, or another tool."
    first = f"This call of {name} has failed. {instead}"
    return (first, f"Do not repeat {name}. Call {_join_with_or(lookups)}.") if lookups and not others else (first,)


def build_unfinished_change_message(name: str, unused: Sequence[str], next_tools: Sequence[str]) -> Wordings:
    """Build the message for a change that is only partly made. ``unused``: the requested values that are not in the
    files yet.
    """
    rest = ", ".join(unused[:MAX_NAMES])
    return (f"You already made this call of {name}. Not done yet: {rest}. Now call {_join_with_or(next_tools)}.",)


def build_unmade_change_message(next_tools: Sequence[str]) -> Wordings:
    """Build the message for an answer that does not make the requested change. There is only one wording: if there is
    nothing to change, insisting would make the model change something."""
    return (
        f"The change is not made yet. Call {_join_with_or(next_tools)}, or explain why there is nothing to change.",
    )


def build_unread_file_message(reader: str) -> Wordings:
    """Build the message for an answer about a file that was not read. There is only one wording, because an answer that
    is repeated may be right."""
    return (f"You have not read the file. Call {reader} first.",)


def build_invented_text_message(request: str) -> Wordings:
    return (f"This text is invented. Write the text of this request: {_shorten_to_line(request)}",)


def build_unasked_removal_message(name: str, next_tools: Sequence[str] = ()) -> Wordings:
    return (
        f"The user did not ask for {name}. {f'Call {_join_with_or(next_tools)}' if next_tools else 'Answer'} instead.",
    )


def build_placeholder_message(name: str, argument: str, known: Sequence[str]) -> Wordings:
    some = f", such as {', '.join(known)}" if known else ""
    return (f"{name} needs a real {argument}{some}. If you do not know it, first call the tool that returns it.",)


def build_call_as_answer_message(tools: ToolSet, likely: Sequence[str]) -> Wordings:
    names = _join_with_or(likely) or _list(tools)
    return (f"Your answer is a call of an unknown tool. Call {names}, or answer in words.",)


def build_copied_text_message() -> Wordings:
    return ("Do not copy instructions. Use your own words.",)


def build_empty_message(has_reasoned: bool, has_results: bool) -> Wordings:
    error = "Your answer has only reasoning" if has_reasoned else "Your answer is empty"
    step = "Report the tool results, or make the next tool call" if has_results else "Answer the user, or call a tool"
    return (
        f"{error}. {step}.",
        "Still no answer. Write at least one sentence in plain words now, or make a tool call.",
        "Your answer is empty again. Answer with one short sentence.",
    )


def build_invented_result_message() -> Wordings:
    return (
        "You invented a tool's result. Only the tool returns results: make the call, and wait for it.",
        "Make the tool call and stop after it. Do not write its result.",
    )


def build_wrong_markup_message(tool: Tool | None, examples: Examples) -> Wordings:
    return (
        f"Your call was not run: its format is wrong. Write only the call.{examples.show('Like this', tool)}",
        f"Still the wrong format. Your whole answer must be a call.{examples.show('Like this', tool)}",
    )


def build_announced_call_message() -> Wordings:
    return (
        "You announced an action without doing it. Make that tool call now; if nothing is left to do, give the final "
        "answer.",
        "Do not announce actions. Answer with the tool call itself, or with the result.",
        "No more plans. Write only the tool call, or the answer.",
    )


def build_refusal_message(tool: Tool, examples: Examples) -> Wordings:
    return (
        f"You can do this with the tool {tool.name}.{examples.show('Call it like this', tool)}",
        f"Call {tool.name} now.{examples.show('Like this', tool)}",
    )


def build_disclaimer_message(tools: ToolSet, has_results: bool) -> Wordings:
    results = "use the results you have, or " if has_results else ""
    return (
        f"You can do more: {results}call one of the available tools: {_list(tools)}. If none of them helps, name the "
        "tool you would need, or the reason.",
        f"Answer from the results, or call an available tool: {_list(tools)}. Otherwise give the reason.",
    )


def build_unused_tool_message(tool: Tool) -> Wordings:
    """Build the message for an answer in words to a request for ``tool``. There is only one wording, because the user
    may have wanted words."""
    return (f"No tool was called, so nothing is done yet. Call {tool.name}, or say why it is not needed.",)


def build_unfounded_success_message(tools: ToolSet, has_results: bool) -> Wordings:
    """Build the message for a claim of success without a successful call. There is only one wording, because the claim
    is true if there was nothing to do."""
    if has_results:
        return (
            "Your answer does not contain the requested information. If a step is not done yet, call its tool first; "
            "then answer with the results.",
        )
    return (
        f"Nothing is done yet: no tool was called. First call the right tool: {_list(tools)}. If there was nothing to "
        "do, explain that.",
    )


def build_other_speaker_message() -> Wordings:
    return (
        "You wrote the user's part. Write only your own answer, and stop after it.",
        "Write only your own answer, and nothing after it.",
    )


def _list(tools: ToolSet) -> str:
    names = list(tools)
    return ", ".join(names[:MAX_NAMES]) + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")


def _join_with_or(names: Sequence[str]) -> str:
    return " or ".join(names[:MAX_CHOICES])


def _join(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _shorten_to_line(text: str, max_chars: int = 160) -> str:
    """Shorten untrusted text to one line without markup characters."""
    line = re.sub(r"[\s<>|{}\[\]]+", " ", text.strip()[: max_chars * 4]).strip()
    return line if len(line) <= max_chars else line[: max_chars - 3] + "..."
