"""Load a probe's tasks from tasks.toml: short requests for fixed tool sets, with their correct calls.

The tasks are general, and not from any benchmark. They cover requests with and without a call, numbers, enums, nested
values, lists, edits, parallel calls, and continuing after a result or an error. Most tasks have the same tools, so that
a server can cache this part of the prompt. Some have the tools of a shop or a smart home, because a setup that suits
one tool set may make needless calls with another. Consecutive tasks differ in kind, because weak setups get only the
first few tasks.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from jsonschema import Draft202012Validator

from adapter.core.events import Json, JsonObject

TaskKind: TypeAlias = Literal["one call", "nested values", "several calls", "after a result", "no call"]


@dataclass(frozen=True, slots=True)
class ProbeCall:
    """A call that a model made, or a call that a task expects.

    ``arguments`` of an expected call are the arguments that a correct call must contain.
    """

    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ProbeTask:
    """A task of a probe: a conversation to continue, the tools, and the correct calls.

    The model can make the ``expected`` calls in any order. They are empty if the task needs no call.
    """

    name: str
    messages: tuple[JsonObject, ...]
    expected: tuple[ProbeCall, ...]
    tools: Sequence[JsonObject]

    @property
    def kind(self) -> TaskKind:
        """The kind of task, for scores by kind."""
        if not self.expected:
            return "no call"
        if len(self.messages) > 1:
            return "after a result"
        if len(self.expected) > 1:
            return "several calls"
        has_nested_value = any(
            isinstance(value, list) or (isinstance(value, dict) and "one_of" not in value)
            for value in self.expected[0].arguments.values()
        )
        return "nested values" if has_nested_value else "one call"

    def is_right(self, calls: Sequence[ProbeCall], content: str) -> bool:
        """Return whether the answer has exactly the expected calls or, if none are expected, text and no calls."""
        if not self.expected:
            return not calls and bool(content.strip())
        remaining = list(calls)
        for expected in self.expected:
            found = next((call for call in remaining if _matches(call, expected)), None)
            if found is None:
                return False
            remaining.remove(found)
        return not remaining

    def calls_expected_tools(self, calls: Sequence[ProbeCall]) -> bool:
        """Return whether the expected tools were called, with any arguments."""
        return sorted(call.name for call in calls) == sorted(call.name for call in self.expected)


def is_valid(call: ProbeCall, tools: Sequence[JsonObject]) -> bool:
    """Return whether the called tool exists and accepts the arguments."""
    schema = next((each["function"]["parameters"] for each in tools if each["function"]["name"] == call.name), None)
    return schema is not None and Draft202012Validator(schema).is_valid(call.arguments)


def _matches(call: ProbeCall, expected: ProbeCall) -> bool:
    return call.name == expected.name and _are_equal(call.arguments, expected.arguments)


def _are_equal(value: Json, expected: Json) -> bool:
    """Return whether a JSON value equals the expected one.

    In strings, letter case, outer whitespace and a final period are ignored. Objects in ``value`` may have additional
    keys. An expected ``{"one_of": [...]}`` matches any of its values.
    """
    if isinstance(expected, dict) and "one_of" in expected:
        return any(_are_equal(value, each) for each in expected["one_of"])
    if isinstance(expected, dict):
        return isinstance(value, dict) and all(
            key in value and _are_equal(value[key], expected[key]) for key in expected
        )
    if isinstance(expected, list):
        if not isinstance(value, list) or len(value) != len(expected):
            return False
        return all(_are_equal(one, other) for one, other in zip(value, expected, strict=True))
    if isinstance(expected, str):
        return isinstance(value, str) and value.strip(" \n.").casefold() == expected.casefold()
    return type(value) is type(expected) and bool(value == expected)


def _build_tool(name: str, description: str, required: Sequence[str], properties: JsonObject) -> JsonObject:
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _build_earlier_call(name: str, arguments: JsonObject, result: str) -> tuple[JsonObject, JsonObject]:
    """Return the two messages of an earlier call and its result."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return (
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": result},
    )


def _build_task(table: JsonObject) -> ProbeTask:
    earlier = _build_earlier_call(**table["earlier"]) if "earlier" in table else ()
    calls = tuple(ProbeCall(**call) for call in table.get("calls", ()))
    messages = ({"role": "user", "content": table["user"]}, *earlier)
    return ProbeTask(table["name"], messages, calls, _TOOLS[table.get("tools", "general")])


_DATA = tomllib.loads(Path(__file__).with_name("tasks.toml").read_text(encoding="utf-8"))
_TOOLS = {name: [_build_tool(**tool) for tool in tools] for name, tools in _DATA["tools"].items()}
TOOLS, *_ = TOOL_SETS = tuple(_TOOLS.values())
TASKS = tuple(map(_build_task, _DATA["tasks"]))
