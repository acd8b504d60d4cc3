"""What a scenario is: a task over several steps, tools that really answer, and how one knows that it was done.

The world of a scenario answers its calls: any object with one method for each tool, taking the call's arguments by
name and returning text (or a JSON value, which becomes text). It raises `ToolRefusal` for what cannot be done; what it
says goes back to the model.

The oracle of a scenario is a generator that solves it: it yields the calls of a step, is sent their results, and
returns the final answer. Because it is run anew over whatever calls were made (`next_step`), it says what is right
next in any conversation, also one that went astray::

    def oracle():
        (order,) = yield [Call("find_order", {"number": 17})]
        yield [Call("refund_order", {"id": json.loads(order)["id"]})]
        return "Order 17 was refunded."
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from jsonschema import Draft202012Validator

from adapter.core.callbacks import require_answer
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject

KINDS = (
    "steps", "tool selection", "argument fidelity", "conditional routing", "error recovery", "missing data",
    "no tool fits", "stateful", "long context", "parallel calls",
)  # fmt: skip


class ToolRefusal(Exception):
    """What a world does not do, in words for the model."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call that is right."""

    name: str
    arguments: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecutedCall:
    """A call that was made, and what came back. ``ok``: it was carried out."""

    name: str
    arguments: JsonObject
    result: str
    ok: bool = True


Oracle: TypeAlias = Generator[Sequence[ExpectedCall], Sequence[str], str]
Check: TypeAlias = "Callable[[Json, Sequence[ExecutedCall], str], str]"
"""From the world, the calls that were made and the final answer: what is wrong, nothing where all is right."""


@dataclass(frozen=True)
class Scenario:
    """``tools``: OpenAI's definitions. ``world``: makes the object that answers. ``easy``: also for tiny models.
    ``required``: the tools that every right way calls, for harnesses that enforce steps; by the oracle when None."""

    name: str
    kind: str
    user: str
    tools: Sequence[JsonObject]
    world: Callable[[], object]
    oracle: Callable[[], Oracle]
    check: Check
    system: str = "Work on the task with the tools. When it is done, answer in one sentence that holds what was asked."
    easy: bool = False
    required: tuple[str, ...] | None = None

    @property
    def messages(self) -> list[JsonObject]:
        """The conversation before the model's first answer."""
        return [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]

    @cached_property
    def solution(self) -> tuple[tuple[ExecutedCall, ...], str]:
        """The oracle's calls in a new world, with their results, and its answer."""
        world, made = self.world(), list[ExecutedCall]()
        while not isinstance(step := next_step(self, made), str):
            made += [perform(self, world, call.name, call.arguments) for call in step.calls]
        return tuple(made), step

    @cached_property
    def required_tools(self) -> tuple[str, ...]:
        if self.required is not None:
            return self.required
        return tuple(dict.fromkeys(made.name for made in self.solution[0]))


@dataclass(frozen=True, slots=True)
class NextStep:
    """Calls that are right now. ``number``: how many steps came before."""

    number: int
    calls: tuple[ExpectedCall, ...]


def next_step(scenario: Scenario, made: Sequence[ExecutedCall]) -> NextStep | str:
    """What is right after these calls: the missing calls of a step, or the final answer."""
    left = list(made)
    oracle = scenario.oracle()
    require_answer(scenario.oracle, f"the oracle of {scenario.name!r}", oracle, Generator, "a generator of calls")
    number = 0
    try:
        calls = next(oracle)
        while True:
            found = [_taken(call, left) for call in calls]
            missing = tuple(call for call, one in zip(calls, found, strict=True) if one is None)
            if missing:
                return NextStep(number, missing)
            calls = oracle.send([one.result for one in found if one is not None])
            number += 1
    except StopIteration as end:
        answer: str = end.value
        require_answer(scenario.oracle, f"the oracle of {scenario.name!r}", answer, str, "a text as its last value")
        return answer
    except (LookupError, TypeError, ValueError):  # a result that is none any more: it was shortened, say
        return NextStep(number, tuple(calls))


def _taken(call: ExpectedCall, left: list[ExecutedCall]) -> ExecutedCall | None:
    """The first of ``left`` that is this call, which is not there for another."""
    for index, one in enumerate(left):
        if one.name == call.name and one.arguments == call.arguments:
            return left.pop(index)
    return None


def perform(scenario: Scenario, world: object, name: str, arguments: Json) -> ExecutedCall:
    """What the world answers, also to calls that cannot be made. ``arguments``: JSON, or a text that should be.

    Never raises for what a model wrote, and UsageError for a world that fails.
    """
    given: JsonObject = {}
    try:
        tool = next((tool["function"] for tool in scenario.tools if tool["function"]["name"] == name), None)
        if tool is None:
            names = ", ".join(tool["function"]["name"] for tool in scenario.tools[:20])
            raise ToolRefusal(f"there is no tool {name!r}; the tools are: {names}")
        given = _decoded(arguments)
        errors = Draft202012Validator(tool["parameters"]).iter_errors(given)
        if problems := [f"{'/'.join(map(str, error.path)) or 'arguments'}: {error.message[:200]}" for error in errors]:
            raise ToolRefusal(f"wrong arguments for {name}: {'; '.join(problems[:3])}")
        value = getattr(world, name)(**given)
    except ToolRefusal as refused:
        return ExecutedCall(name, given, f"error: {refused}", ok=False)
    except Exception as error:  # a program of the user's
        raise UsageError(f"the world of {scenario.name!r} failed at {name}({given}): {error!r}") from error
    return ExecutedCall(name, given, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _decoded(arguments: Json) -> JsonObject:
    try:
        value: Json = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except ValueError as error:
        raise ToolRefusal(f"the arguments are no JSON: {error}") from error
    if not isinstance(value, dict):
        raise ToolRefusal(f"the arguments have to be a JSON object, got {str(value)[:80]!r}")
    return value


def tool(
    name: str, description: str = "", optional: Sequence[str] = (), /, **parameters: str | JsonObject
) -> JsonObject:
    """A definition in short: each parameter a JSON Schema, or its type and description, ``"integer In euros."``."""
    properties = {key: _schema(value) for key, value in parameters.items()}
    schema = {
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key not in optional],
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _schema(short: str | JsonObject) -> JsonObject:
    if not isinstance(short, str):
        return short
    type_, _, description = short.partition(" ")
    return {"type": type_, **({"description": description} if description else {})}


def missing_fact(answer: str, facts: Sequence[str]) -> str:
    """The first of ``facts`` that the answer lacks, as a fault; case, and commas in numbers, make no difference.

    A fact that ends in a digit or a letter has to end there: 12 is not in 120.
    """
    plain = _plain(answer)
    for fact in facts:
        wanted, start = _plain(fact), 0
        while (start := plain.find(wanted, start)) >= 0:
            around = plain[start - 1 : start] + plain[start + len(wanted) : start + len(wanted) + 1]
            if not any(each.isalnum() for each in around):
                break
            start += 1
        else:
            return f"the answer lacks {fact!r}"
    return ""


def _plain(text: str) -> str:
    squeezed = " ".join(text.casefold().replace("\u202f", " ").replace("\u00a0", " ").split())
    return "".join(
        each
        for index, each in enumerate(squeezed)
        if not (each == "," and squeezed[index - 1 : index].isdigit() and squeezed[index + 1 : index + 4].isdigit())
    )
