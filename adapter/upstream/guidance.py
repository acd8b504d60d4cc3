"""Help for models too small to write calls by themselves.

A 135M model writes no valid call of its own. It chooses well when the grammar
admits only calls, their values are what was mentioned, and the worked examples
before the request are those most like it (benchmarks/small_models.py has the
figures). It cannot judge whether a task is done, and what it says about a
result is nonsense: it gets one call per request, and the result is the answer
(`adapter.conversation.session.Limits.call_turns`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from pydantic import ValidationError

from adapter.constraints.grounding import Evidence, choices_for, offered
from adapter.conversation.shown import Message
from adapter.dialects.foreign import understood
from adapter.formats.hermes import encode_call
from adapter.prompting.examples import AS_WELL, EXAMPLES, PROGRAMS, Example, nearest
from adapter.tools.calls import normalise
from adapter.tools.definition import Tool, ToolSet
from adapter.upstream.transport import ChatClient, Chunk, constraint_fields
from adapter.values.events import JsonObject

MAX_STRING = 400
"""Characters of a string in a call: longer ones are runaways with such models."""

MAX_CALL_TOKENS = 900
"""Enough for a string of `MAX_STRING` in which every character is an escape of two tokens; such a model's talk has
no end of its own."""


def tools_for_small(tools: ToolSet, evidence: Evidence) -> ToolSet:
    """The tools worth offering for this request, with the parameters that worked examples use.

    Every further parameter is one more that such a model fills at random.
    """
    examples = examples_for(tools)
    shown = [
        _as_in_examples(tool, used)
        for tool in tools.values()
        if (used := [example.arguments.keys() for example in examples if example.tool == tool.name])
    ]
    return offered(ToolSet(shown), evidence)


def examples_for(tools: ToolSet) -> list[Example]:
    """The worked examples in the words of these tools; those left out that none of them takes whole."""
    found = []
    for example in EXAMPLES:
        for name, arguments in _in_words_of(tools, example):
            tool = tools.get(name)
            if tool is not None and set(arguments) <= set(tool.properties) and _is_valid(tool, arguments):
                found.append(replace(example, tool=name, arguments=arguments))
                break
    return found


def _in_words_of(tools: ToolSet, example: Example) -> Iterator[tuple[str, JsonObject]]:
    """Calls that may answer the example's request, the most literal first."""
    name, arguments, _ = normalise(example.tool, example.arguments, tools)
    yield name, arguments
    for besides in ({}, AS_WELL.get(example.tool)):
        if besides is not None:
            meant = understood(example.tool, example.arguments | besides, tools)
            if meant is not None:
                yield meant.tool.name, meant.arguments
    program, parameters = PROGRAMS.get(example.tool, ("", {}))
    yield program, {parameters.get(key, key): value for key, value in example.arguments.items()}


def _is_valid(tool: Tool, arguments: JsonObject) -> bool:
    """Whether the call could be made; an argument that is documented as required may be one that is not missed."""
    if tool.validate is None:
        return set(tool.required) <= set(arguments)
    try:
        tool.validate(arguments)
    except ValidationError:
        return False
    return True


def _as_in_examples(tool: Tool, used: Sequence[Collection[str]]) -> Tool:
    ever, always = set().union(*used), set(used[0]).intersection(*used)
    parameters = {
        **tool.parameters,
        "properties": {name: schema for name, schema in tool.properties.items() if name in ever},
        "required": [name for name in tool.properties if name in always],
    }
    return replace(tool, parameters=parameters)


class GuidedChat:
    """A chat whose answer is one valid call."""

    def __init__(self, chat: ChatClient, tools: ToolSet, evidence: Evidence) -> None:
        self._chat = chat
        self._tools = tools
        self._constraint = constraint_fields(
            chat.endpoint.kind, tools, choices_for(tools, evidence), max_string=MAX_STRING, max_text=MAX_STRING
        )

    def control_tokens(self) -> tuple[str, ...]:
        return self._chat.control_tokens()

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:
        return self._chat.stream(
            self._with_examples(messages),
            stop=stop,
            max_tokens=MAX_CALL_TOKENS,
            temperature=0,
            seed=1,
            extra=self._constraint,
        )

    def _with_examples(self, messages: Sequence[Message]) -> list[Message]:
        system, request = messages[:2]
        shown: list[Message] = []
        for example in nearest(str(request["content"]), self._tools, examples_for(self._tools)):
            shown.append({"role": "user", "content": example.request})
            shown.append({"role": "assistant", "content": encode_call(example.tool, example.arguments)})
        return [system, *shown, request]
