"""Build the messages that ask a model for a better answer: the error, the nearest valid name and an example.

The messages are short, for small models. Each has several wordings, so that a model never reads the same message
twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.guardrails.copied_text import remove_placeholders
from adapter.core.events import Json, JsonObject
from adapter.prompting.intent.candidate_values import find_candidates
from adapter.prompting.intent.text_values import find_paths
from adapter.prompting.intent.value_kinds import find_value_kinds
from adapter.tools.example_calls import build_example_call
from adapter.tools.signatures import format_parameters
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

Encode: TypeAlias = Callable[[list[tuple[str, JsonObject]]], str]
"""A function that writes calls in the model's format, like `Format.encode_calls`."""

MAX_NAMES = 12
"""Maximum number of tools listed in a message."""

MAX_CHOICES = 3
"""Maximum number of tools that a message proposes."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Encodes example calls in the model's format.

    The values of an example come from the call that the model wrote. A missing value is taken from the user's request
    if only one value there fits the parameter, or if only paths fit. A missing folder is the current folder.
    """

    encode: Encode
    history: CallHistory

    def render(self, tool: Tool, arguments: JsonObject | None = None) -> str:
        """Encode a valid call of ``tool``. Return "" if the values of some arguments are not known.

        ``arguments`` are the arguments that the model wrote.
        """
        request, written = self.history.request, remove_placeholders(tool, arguments or {}, self.history)
        known: dict[str, Json] = {}
        paths: set[Json] = {*find_paths(request)}
        for name in tool.required if request else ():
            if tool.effect in ("read", "execute") and find_value_kinds(name, tool.properties.get(name)) == {"_folder_"}:
                known[name] = "."
                continue
            values = find_candidates(request, tool, name)
            new = [value for value in values if value not in known.values()]
            known |= {name: new[0]} if new and (len(values) == 1 or set(values) <= paths) else {}
        example = build_example_call(tool, {**known, **written})
        return "" if example is None else self.encode([(tool.name, example)]).strip()

    def describe(self, tool: Tool | None, arguments: JsonObject | None = None) -> ExampleCall:
        """Return an example call for a message. It is empty if ``tool`` is None."""
        return ExampleCall(self, tool, arguments)


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """An example call that is inserted in a message: ``{example:LEAD}`` in the message becomes the text ``LEAD`` and
    the call.

    If some values are unknown, only the tool's parameters are shown, because the model would copy invented values.
    """

    examples: Examples
    tool: Tool | None
    arguments: JsonObject | None = None

    def __format__(self, lead: str) -> str:
        if self.tool is None:
            return ""
        if example := self.examples.render(self.tool, self.arguments):
            return f" {lead}:\n{example}"
        return f" Parameters of {self.tool.name}: {format_parameters(self.tool) or 'none'}."


Wordings: TypeAlias = tuple[str, ...]
"""The wordings of a message: the first for the first retry, and so on. There is no retry after the last one."""

MESSAGES: dict[str, Wordings] = {
    "unreadable_call": (
        "Your tool call could not be read: {reason}.{example:Write it like this}",
        "Your tool call could not be read again. Answer with one complete call."
        "{example:It must have exactly this form}",
    ),
    "unknown_tool": (
        "There is no tool {name!r}. {instead}",
        "{name!r} does not exist. Use exactly one of these names: {tools}.",
    ),
    "misnamed_tool": (
        "There is no tool {name!r}. The arguments fit {tool}.{example:Write}",
        "{name!r} does not exist. Call {tool}.{example:Write exactly this}",
    ),
    "wrong_arguments": (
        "Wrong arguments for {tool}: {errors}.{example:Call it like this}",
        "Still wrong: {errors}.{example:Write it like this}",
    ),
    "equal_texts": ("This call of {tool} changes nothing: its new text equals the old one.",),
    "missing_prerequisite": (
        "{tool} cannot be called yet: first call {missing}.{example:Like this}",
        "Do not call {tool} now. Call {first} first, and nothing else.{example:Like this}",
    ),
    "missing_steps": (
        "The task is not done yet: you must first call {missing}. Make the tool call now.{example:Like this}",
        "Do not answer in words. Answer with a call to {first}.{example:Like this}",
        "Your whole answer must be a call of {first}.{example:Like this}",
    ),
    "missing_call": (
        "Make a tool call now: call {which}.{example:Like this}",
        "Your whole answer must be a call of {which}.{example:Like this}",
    ),
    "after_the_end": (
        "Call no tool after {tool}. Summarize in words.",
        "Call no more tools. Write one sentence for the user.",
    ),
    # Only one wording: if there is nothing to change, insisting would make the model change something.
    "unmade_change": ("The change is not made yet. Call {tools}, or explain why there is nothing to change.",),
    "unfinished_change": ("You already made this call of {tool}. Not done yet: {rest}. Now call {tools}.",),
    # Only one wording: an answer that is repeated may be right.
    "unread_file": ("You have not read the file. Call {tool} first.",),
    "invented_text": ("This text is invented. Write the text of this request: {request}",),
    "unasked_action": ("The user did not ask for {tool}. {step} instead.",),
    "kept_file": ("The user wants to keep {kept}. {step} instead.",),
    "placeholder": ("{tool} needs a real {argument}{some}. If you do not know it, first call {lookup}.",),
    "call_as_answer": ("Your answer is a call of an unknown tool. Call {tools}, or answer in words.",),
    "own_words": ("Do not copy instructions. Use your own words.",),
    "empty_answer": (
        "{error}. {step}.",
        "Still no answer. Write at least one sentence in plain words now, or make a tool call.",
        "Your answer is empty again. Answer with one short sentence.",
    ),
    "invented_result": (
        "You invented a tool's result. Only the tool returns results: make the call, and wait for it.",
        "Make the tool call and stop after it. Do not write its result.",
    ),
    "wrong_markup": (
        "Your call was not run: its format is wrong. Write only the call.{example:Like this}",
        "Still the wrong format. Your whole answer must be a call.{example:Like this}",
    ),
    "announced_call": (
        "You announced an action without doing it. Make that tool call now; if nothing is left to do, give the final "
        "answer.",
        "Do not announce actions. Answer with the tool call itself, or with the result.",
        "No more plans. Write only the tool call, or the answer.",
    ),
    "refusal": (
        "You can do this with the tool {tool}.{example:Call it like this}",
        "Call {tool} now.{example:Like this}",
    ),
    "disclaimer": (
        "You can do more: {results}call one of the available tools: {tools}. If none of them helps, name the tool you "
        "would need, or the reason.",
        "Answer from the results, or call an available tool: {tools}. Otherwise give the reason.",
    ),
    # Only one wording: the user may have wanted words.
    "unused_tool": ("No tool was called, so nothing is done yet. Call {tool}, or say why it is not needed.",),
    # Only one wording of both, because the claim is true if there was nothing to do.
    "unfounded_success": (
        "Nothing is done yet: no tool was called. First call the right tool: {tools}. If there was nothing to do, "
        "explain that.",
    ),
    "success_without_results": (
        "Your answer does not contain the requested information. If a step is not done yet, call its tool first; then "
        "answer with the results.",
    ),
    "invented_turn": (
        "You wrote the user's part. Write only your own answer, and stop after it.",
        "Write only your own answer, and nothing after it.",
    ),
}
"""The wordings of all messages, except the messages that functions of this module build."""


def render_message(message: str, **values: object) -> Wordings:
    """Return the wordings of a message in `MESSAGES`, formatted with ``values``."""
    return tuple(wording.format(**values) for wording in MESSAGES[message])


def describe_error(error: str) -> str:
    """Return the first sentence of an error, without a full stop."""
    return shorten_to_line(error).partition(". ")[0].rstrip(".")


def suggest_tools(meant: str, tools: ToolSet, examples: Examples, likely: Sequence[str]) -> str:
    """Return a sentence that suggests tools after a call to an unknown tool.

    ``meant`` is the known tool with a similar name, or "". ``likely`` has the tools that the model may need, if known.
    """
    if meant:
        return f"The nearest is {meant!r}.{examples.describe(tools[meant]):Call it like this}"
    if likely:
        return f"Call {join_with_or(likely)}."
    return f"Available tools: {list_tools(tools)}. Call one of these, or answer without a tool."


def build_repeated_call_message(name: str, times: int, next_tools: Sequence[str] = (), question: str = "") -> Wordings:
    """Build a message that asks the model to answer the user's ``question``, or to call one of ``next_tools``. The
    message does not quote the call's result, because the model would copy the quotation.
    """
    made = "already made this call of" if times == 1 else "called"
    after = f"Now call {join_with_or(next_tools)}" if next_tools else "Answer from its result, or call the next tool"
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
    the request nor in a result, or "". The message suggests ``others`` or, if there are none, ``lookups``: tools that
    change nothing.
    """
    if example:
        instead = f"Call it without {join_with_and(wrong)}:\n{example}"
    elif others:
        instead = f"Call {join_with_or(others)}."
    elif invented:
        instead = f"{shorten_to_line(invented, 60)!r} is neither in the request nor in a result."
    else:
        instead = "Use other arguments, or another tool."
    first = f"This call of {name} has failed. {instead}"
    return (first, f"Do not repeat {name}. Call {join_with_or(lookups)}.") if lookups and not others else (first,)


def list_tools(tools: ToolSet) -> str:
    """Return the names of the tools, separated by commas. Only the first `MAX_NAMES` are listed."""
    names = list(tools)
    return ", ".join(names[:MAX_NAMES]) + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")


def join_with_or(names: Sequence[str]) -> str:
    return " or ".join(names[:MAX_CHOICES])


def join_with_and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def shorten_to_line(text: str, max_chars: int = 160) -> str:
    """Return untrusted text on one line of at most ``max_chars`` characters, without markup characters."""
    line = re.sub(r"[\s<>|{}\[\]]+", " ", text.strip()[: max_chars * 4]).strip()
    return line if len(line) <= max_chars else line[: max_chars - 3] + "..."
