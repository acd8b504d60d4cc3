"""What a model is told, for small ones: the error first, what was expected, the nearest valid thing, one example.

Each message comes in a few wordings, so that no model reads the same words twice; the later ones are orders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from adapter.core.events import Json, JsonObject
from adapter.tools.example_calls import example_call
from adapter.tools.tool import Tool, ToolSet

Encode: TypeAlias = Callable[[list[tuple[str, JsonObject]]], str]
"""Writes calls in the model's format, as `Format.encode_calls`."""

Wordings: TypeAlias = tuple[str, ...]
"""What is said first, and what the next times."""

MOST_NAMES = 12
"""Tools that a message lists."""


def unreadable_call_message(error: str, example: str) -> Wordings:
    reason = _one_line(error).partition(". ")[0].rstrip(".")
    return (
        f"Your tool call could not be read: {reason}. Write it like this, with your own values:\n{example}",
        f"That is no readable call either. Answer with one call in exactly this form and nothing else:\n{example}",
    )


def unknown_tool(name: str, tools: ToolSet, encode: Encode) -> Wordings:
    near = tools.nearest(name)
    instead = f"The nearest is {near[0]!r}" if near else f"There are: {_listed(tools)}"
    example = render_example_call(tools[near[0]], encode) if near else ""
    shown = f". Call it like this:\n{example}" if example else ". Call one of these, or answer without a tool."
    return (
        f"There is no tool {name!r}. {instead}{shown}",
        f"{name!r} does not exist. Use one of these names, letter by letter: {_listed(tools)}.",
    )


def wrong_arguments(tool: Tool, given: Mapping[str, Json], problems: Iterable[str], encode: Encode) -> Wordings:
    said, example = "; ".join(problems), render_example_call(tool, encode, given)
    return (
        f"Wrong arguments for {tool.name}: {said}. Call it like this:\n{example}",
        f"Still wrong: {said}. Copy this call and put the right values in:\n{example}",
    )


def prerequisite(
    name: str, given: Mapping[str, Json], missing: Sequence[str], tools: ToolSet, encode: Encode
) -> Wordings:
    example = _first_example(missing, tools, encode, given)
    return (
        f"{name} cannot be called yet: first call {_joined(missing)}.{example}",
        f"Do not call {name} now. Your next call is {missing[0]}, nothing else.{example}",
    )


def missing_steps(missing: Sequence[str], is_end: bool, tools: ToolSet, encode: Encode) -> Wordings:
    example = _first_example(missing, tools, encode)
    what = " or ".join(missing) if is_end else _joined(missing)
    return (
        f"The task is not done yet: you must first call {what}. Make the tool call now.{example}",
        f"Do not answer in words. Answer with a tool call of {missing[0]}.{example}",
        f"Your whole answer must be this tool call, with the right values:{example}",
    )


def after_the_end(name: str) -> Wordings:
    return (
        f"The task is already done: {name} was called and succeeded. Say in words what was done, without a tool call.",
        "Call no tool any more. Write one sentence for the user.",
    )


def repeated_call_message(name: str, times: int, result: str) -> Wordings:
    shown = _one_line(result)
    same = f": {shown}" if shown else ""
    return (
        f"This very call of {name} was made {times} times, always with the same result{same}. It was not run again: "
        "use that result, call with other arguments or another tool, or say what you found.",
        f"{name} gives nothing new. Answer the user in words with what you know.",
    )


def duplicate_call_message(name: str, result: str) -> Wordings:
    """Once: a call may be meant to be made twice."""
    shown = _one_line(result)
    return (
        f"You made this very call of {name} already, right before, and its result is there"
        f"{f': {shown}' if shown else ''}. It was not run again: take the next step, or answer the user. Only if it is "
        "to be done a second time, make the call again.",
    )


def cycle(names: Sequence[str]) -> Wordings:
    return (
        f"You go in circles: {' -> '.join(names)} again and again, with the same results. Do something else, or say "
        "what you found.",
        f"Stop calling {_joined(list(dict.fromkeys(names)))}. Answer the user in words with what you know.",
    )


def empty(has_reasoned: bool, has_results: bool) -> Wordings:
    what = "You only thought, and gave no answer" if has_reasoned else "Your answer is empty"
    then = (
        "Tell the user what the tools gave, or make the next tool call."
        if has_results
        else "Answer the user, or make a tool call."
    )
    return (
        f"{what}. {then}",
        "Still no answer. Write it now, in plain words, at least one sentence, or make a tool call.",
        "Nothing came again. Answer with one short sentence.",
    )


def invented_result_message() -> Wordings:
    return (
        "You wrote a tool's result yourself. Only the tool gives results: make the call, and wait for it.",
        "Make the tool call and stop after it. Write no result.",
    )


def wrong_markup(example: str) -> Wordings:
    return (
        f"Your call was not made: it is not written as calls are here. Write nothing but the call:\n{example}",
        f"Still no call. Your whole answer must look like this:\n{example}",
    )


def announced_call_message() -> Wordings:
    return (
        "You said what you would do, and did not do it. Make that tool call now; if nothing is left to do, give the "
        "final answer.",
        "Do not say what you will do. Answer with the tool call itself, or with the result.",
        "No more plans. Write the tool call, or the answer, and nothing else.",
    )


def refusal_message(tool: Tool, encode: Encode) -> Wordings:
    example = render_example_call(tool, encode)
    return (
        f"You can do this: the tool {tool.name} is yours to call. Call it like this, with your own values:\n{example}",
        f"Call {tool.name} now:\n{example}",
    )


def disclaimer_message(tools: ToolSet, has_results: bool) -> Wordings:
    results = "use the results that you have, or " if has_results else ""
    return (
        f"You can do more than you say: {results}call one of the tools that are available: {_listed(tools)}. "
        "If none of them helps, say which one would be needed, or why not.",
        f"Either answer from the results, or call a tool that is available: {_listed(tools)}. Else say why not.",
    )


def unfounded_success_message(tools: ToolSet, has_results: bool) -> Wordings:
    """Once: where nothing was to be done it is true."""
    if has_results:
        return (
            "The user asked to be told something, and your answer does not hold it. If a step is not done yet, call "
            "its tool first; then answer with what the tools gave.",
        )
    return (
        f"Nothing was done yet: no tool was called. First call the tool that does it: {_listed(tools)}. If there was "
        "nothing to do, say so.",
    )


def ignored_result(name: str, result: str) -> Wordings:
    return (
        f"The last call of {name} failed: {_one_line(result)}. Mend it and call again, or say that it failed.",
        f"{name} did not succeed. Say so, or call it with other arguments.",
    )


def other_speaker() -> Wordings:
    return (
        "You wrote the user's words. Write only your own answer, and stop after it.",
        "Only your own answer, nothing after it.",
    )


def render_example_call(tool: Tool, encode: Encode, given: Mapping[str, Json] | None = None) -> str:
    """A right call as the model is to write it."""
    return encode([(tool.name, example_call(tool, given))]).strip()


def _first_example(
    names: Sequence[str], tools: ToolSet, encode: Encode, given: Mapping[str, Json] | None = None
) -> str:
    tool = tools.get(names[0])
    return "" if tool is None else f" Like this:\n{render_example_call(tool, encode, given)}"


def _listed(tools: ToolSet) -> str:
    names = list(tools)
    return ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _one_line(text: str, most: int = 160) -> str:
    """Of a text of somebody else's: no line of its own, and nothing that could be markup to a model."""
    line = re.sub(r"[\s<>|{}\[\]]+", " ", text.strip()[: most * 4]).strip()
    return line if len(line) <= most else line[: most - 3] + "..."
