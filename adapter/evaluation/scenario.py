"""Define scenarios: multi-step tasks with working tools, the correct next step, and a check of the result.

A scenario's world executes tool calls. It is any object with one method per tool. A method gets the call's arguments by
name, and returns text or a JSON value, which is converted to text. To refuse a call, a method raises `ToolRefusal` with
a message for the model.

A scenario's oracle is a generator that solves the task: it yields a step's calls, receives their results, and finally
returns the answer. `find_next_step` finds the correct next step in any conversation, even after mistakes, by replaying
the calls made so far with a new oracle::

    def oracle():
        (order,) = yield [ExpectedCall("find_order", {"number": 17})]
        yield [ExpectedCall("refund_order", {"id": json.loads(order)["id"]})]
        return "Order 17 was refunded."
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from jsonschema import Draft202012Validator

from adapter.core.callback_checks import require_result
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject

KINDS = (
    "steps", "tool selection", "argument fidelity", "conditional routing", "error recovery", "missing data",
    "no tool fits", "stateful", "long context", "parallel calls",
)  # fmt: skip


class ToolRefusal(Exception):
    """Raised by a scenario's world to refuse a call. The message is for the model."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A correct call that a scenario's oracle yields."""

    name: str
    arguments: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecutedCall:
    """A call that a model made, and its result. ``ok`` is false if the call was refused."""

    name: str
    arguments: JsonObject
    result: str
    ok: bool = True


Oracle: TypeAlias = Generator[Sequence[ExpectedCall], Sequence[str], str]
"""Solves a scenario: yields each step's calls, is sent their results, and returns the final answer."""
Check: TypeAlias = "Callable[[Json, Sequence[ExecutedCall], str], str]"
"""Checks a run. Takes the world, the calls and the final answer. Returns a description of the fault, or "" if none."""


@dataclass(frozen=True)
class Scenario:
    """A task with its tools, world, oracle and check."""

    name: str
    kind: str
    user: str
    tools: Sequence[JsonObject]
    """Definitions in OpenAI's format."""
    world: Callable[[], object]
    """Creates the object that executes calls."""
    oracle: Callable[[], Oracle]
    check: Check
    system: str = "Work on the task with the tools. When it is done, answer in one sentence with the requested facts."
    easy: bool = False
    """True if the task suits very small models."""
    required: tuple[str, ...] | None = None
    """Tools that every correct solution calls, for harnesses that enforce steps. None means the oracle's tools."""

    @property
    def messages(self) -> list[JsonObject]:
        """The conversation before the first answer."""
        return [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]

    @cached_property
    def solution(self) -> tuple[tuple[ExecutedCall, ...], str]:
        """The oracle's calls with their results in a new world, and the oracle's final answer."""
        world, executed = self.world(), list[ExecutedCall]()
        while not isinstance(step := find_next_step(self, executed), str):
            executed += [perform(self, world, call.name, call.arguments) for call in step.calls]
        return tuple(executed), step

    @cached_property
    def required_tools(self) -> tuple[str, ...]:
        if self.required is not None:
            return self.required
        return tuple(dict.fromkeys(call.name for call in self.solution[0]))


@dataclass(frozen=True, slots=True)
class NextStep:
    """The correct calls in the next step of a conversation. ``number`` is the number of preceding steps."""

    number: int
    calls: tuple[ExpectedCall, ...]


def find_next_step(scenario: Scenario, executed: Sequence[ExecutedCall]) -> NextStep | str:
    """Return the correct next step after the ``executed`` calls, or the final answer if no step is left.

    If only some calls of a step were made, the step is returned with the missing calls.
    """
    remaining = list(executed)
    oracle = scenario.oracle()
    require_result(scenario.oracle, f"the oracle of {scenario.name!r}", oracle, Generator, "a generator of calls")
    number = 0
    try:
        calls = next(oracle)
        while True:
            found = [_take_match(call, remaining) for call in calls]
            missing = tuple(call for call, one in zip(calls, found, strict=True) if one is None)
            if missing:
                return NextStep(number, missing)
            calls = oracle.send([one.result for one in found if one is not None])
            number += 1
    except StopIteration as end:
        answer: str = end.value
        require_result(scenario.oracle, f"the oracle of {scenario.name!r}", answer, str, "a string as its last value")
        return answer
    except (LookupError, TypeError, ValueError):  # a result was modified, for example truncated
        return NextStep(number, tuple(calls))


def _take_match(call: ExpectedCall, remaining: list[ExecutedCall]) -> ExecutedCall | None:
    """Remove the first call in ``remaining`` that equals ``call`` and return it, or return None."""
    for index, executed in enumerate(remaining):
        if executed.name == call.name and executed.arguments == call.arguments:
            return remaining.pop(index)
    return None


def perform(scenario: Scenario, world: object, name: str, arguments: Json) -> ExecutedCall:
    """Execute a model's call, which may be invalid, in a scenario's world.

    ``arguments`` is a JSON value, or a string that should contain JSON. A mistake by the model is reported in the
    result of the call. Raises UsageError if the world raises an exception other than `ToolRefusal`.
    """
    decoded: JsonObject = {}
    try:
        tool = next((tool["function"] for tool in scenario.tools if tool["function"]["name"] == name), None)
        if tool is None:
            names = ", ".join(tool["function"]["name"] for tool in scenario.tools[:20])
            raise ToolRefusal(f"unknown tool {name!r}; the tools are: {names}")
        decoded = _decode(arguments)
        errors = Draft202012Validator(tool["parameters"]).iter_errors(decoded)
        if problems := [f"{'/'.join(map(str, error.path)) or 'arguments'}: {error.message[:200]}" for error in errors]:
            raise ToolRefusal(f"invalid arguments for {name}: {'; '.join(problems[:3])}")
        value = getattr(world, name)(**decoded)
    except ToolRefusal as refused:
        return ExecutedCall(name, decoded, f"error: {refused}", ok=False)
    except Exception as error:  # this is user code
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"the world of {scenario.name!r} failed at {name}({decoded}) with {reason}") from error
    return ExecutedCall(name, decoded, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _decode(arguments: Json) -> JsonObject:
    try:
        value: Json = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except ValueError as error:
        raise ToolRefusal(f"the arguments are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ToolRefusal(f"the arguments must be a JSON object, got {str(value)[:80]!r}")
    return value


def tool(
    name: str, description: str = "", optional: Sequence[str] = (), /, **parameters: str | JsonObject
) -> JsonObject:
    """Return a tool definition in OpenAI's format.

    Each of ``parameters`` is a JSON Schema, or a string with a type and a description, such as ``"integer In euros."``.
    """
    properties = {key: _expand_schema(value) for key, value in parameters.items()}
    schema = {
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key not in optional],
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _expand_schema(short: str | JsonObject) -> JsonObject:
    if not isinstance(short, str):
        return short
    type_, _, description = short.partition(" ")
    return {"type": type_, **({"description": description} if description else {})}


def missing_fact(answer: str, facts: Sequence[str]) -> str:
    """Check that an answer contains all ``facts`` (strings). Return the fault for the first missing one, or "".

    Letter case, and commas in numbers, are ignored. Facts match only whole words and numbers: 12 is not in 120.
    """
    plain = _normalize_text(answer)
    for fact in facts:
        target, start = _normalize_text(fact), 0
        while (start := plain.find(target, start)) >= 0:
            neighbors = plain[start - 1 : start] + plain[start + len(target) : start + len(target) + 1]
            if not any(each.isalnum() for each in neighbors):
                break
            start += 1
        else:
            return f"the answer lacks {fact!r}"
    return ""


def _normalize_text(text: str) -> str:
    squeezed = " ".join(text.casefold().replace("\u202f", " ").replace("\u00a0", " ").split())
    return "".join(
        each
        for index, each in enumerate(squeezed)
        if not (each == "," and squeezed[index - 1 : index].isdigit() and squeezed[index + 1 : index + 4].isdigit())
    )
