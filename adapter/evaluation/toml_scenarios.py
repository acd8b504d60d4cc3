"""Scenarios that are data: a TOML file with tools, and tasks in whose world every call has its result.

::

    [[tool]]
    name = "find_order"
    description = "Look up an order."
    parameters = { number = "integer The order's number." }   # or JSON Schemas
    optional = []                                              # of the parameters

    [[scenario]]
    name = "late order"
    kind = "steps"
    user = "When does order 17 come?"
    tools = ["find_order", "track_parcel"]
    answer = "It comes on 3 May."                              # what the oracle says
    holds = ["3 May"]                                          # what the answer has to hold
    [[scenario.step]]                                          # calls that may be made at once
    calls = [{ name = "find_order", arguments = { number = 17 }, result = "parcel PX-81" }]
    [[scenario.step]]
    calls = [{ name = "track_parcel", arguments = { id = "PX-81" }, result = "due 3 May" }]

A call with ``error`` in place of ``result`` is refused with these words; a call that stands there twice gets the one
and then the other. ``other``: more calls that are answered, and are not needed. Every other call is refused with
``unknown``. It is done when all calls with a ``result`` were made, none of the tools in ``never``, and the answer holds
the facts and none of ``lacks``; with ``declines`` it has to say that this cannot be done, without any call.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapter.core.arguments import reason
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.validation import explain
from adapter.evaluation.scenario import ExecutedCall, ExpectedCall, Oracle, Scenario, ToolRefusal, missing_fact, tool

_DECLINES = re.compile(
    r"\b(can(no|')?t|cannot|can not|unable|not able|no tool|none of (the|my) tools|don't have|do not have|not possible"
    r"|isn't possible|not available|no way to|lack)\b"
)


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolData(_Data):
    name: str
    description: str = ""
    parameters: dict[str, str | JsonObject] = Field(default_factory=dict)
    optional: list[str] = Field(default_factory=list)


class CallData(_Data):
    name: str
    arguments: JsonObject = Field(default_factory=dict)
    result: str | None = None
    error: str | None = None


class StepData(_Data):
    calls: list[CallData] = Field(min_length=1)


class ScenarioData(_Data):
    name: str
    kind: str
    user: str
    tools: list[str] = Field(min_length=1)
    answer: str
    system: str | None = None
    easy: bool = False
    holds: list[str] = Field(default_factory=list)
    lacks: list[str] = Field(default_factory=list)
    step: list[StepData] = Field(default_factory=list)
    other: list[CallData] = Field(default_factory=list)
    never: list[str] = Field(default_factory=list)
    declines: bool = False
    required: list[str] | None = None
    unknown: str = "nothing was found for this"


class SuiteData(_Data):
    tool: list[ToolData]
    scenario: list[ScenarioData] = Field(min_length=1)


def scenarios_of(text: str, source: str) -> list[Scenario]:
    """The scenarios of a TOML text. Raises UsageError that names ``source`` and the place."""
    try:
        suite = SuiteData.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} is no TOML: {error}") from error
    except ValidationError as error:
        raise UsageError(f"{source}: {explain(error)}; docs/evaluate.md shows such a file") from error
    tools = {each.name: tool(each.name, each.description, each.optional, **each.parameters) for each in suite.tool}
    return [_scenario(data, tools, source) for data in suite.scenario]


def read_scenarios(path: Path) -> list[Scenario]:
    """The scenarios of a TOML file. Raises UsageError."""
    try:
        return scenarios_of(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {reason(error)}") from error


def _scenario(data: ScenarioData, tools: dict[str, JsonObject], source: str) -> Scenario:
    calls = [call for step in data.step for call in step.calls] + data.other
    named = [*data.tools, *(call.name for call in calls), *data.never]
    if missing := [name for name in named if name not in tools]:
        raise UsageError(
            f"{source}: scenario {data.name!r} names the tool {missing[0]!r}; there are: {', '.join(tools)}"
        )
    if odd := [call.name for call in calls if (call.result is None) == (call.error is None)]:
        raise UsageError(f"{source}: scenario {data.name!r}: a call of {odd[0]} needs either a result or an error")
    further: dict[str, Any] = {} if data.system is None else {"system": data.system}
    return Scenario(
        data.name, data.kind, data.user, [tools[name] for name in data.tools],
        world=lambda: _ScenarioTable(calls, data.unknown), oracle=_oracle_of(data), check=_check_of(data),
        easy=data.easy, required=None if data.required is None else tuple(data.required), **further,
    )  # fmt: skip


class _ScenarioTable:
    """A world of calls and their results."""

    def __init__(self, calls: Sequence[CallData], unknown: str) -> None:
        self._unknown = unknown
        self._answers: dict[str, list[CallData]] = {}
        for call in calls:
            self._answers.setdefault(_key(call.name, call.arguments), []).append(call)

    def __getattr__(self, name: str) -> Callable[..., str]:
        return lambda **arguments: self._answer(name, arguments)

    def _answer(self, name: str, arguments: JsonObject) -> str:
        there = self._answers.get(_key(name, arguments))
        if not there:
            raise ToolRefusal(self._unknown)
        call = there.pop(0) if len(there) > 1 else there[0]
        if call.result is None:
            raise ToolRefusal(call.error)
        return call.result


def _key(name: str, arguments: Json) -> str:
    return json.dumps([name, _plain(arguments)], sort_keys=True)


def _plain(value: Json) -> Json:
    """5 and 5.0 are one number, and texts do not differ by white space around them."""
    match value:
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case str():
            return value.strip()
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _oracle_of(data: ScenarioData) -> Callable[[], Oracle]:
    def oracle() -> Oracle:
        for step in data.step:
            yield [ExpectedCall(call.name, call.arguments) for call in step.calls]
        return data.answer

    return oracle


def _check_of(data: ScenarioData) -> Callable[[Json, Sequence[ExecutedCall], str], str]:
    wanted = [call for step in data.step for call in step.calls if call.result is not None]

    def check(_world: Json, made: Sequence[ExecutedCall], answer: str) -> str:
        done = {_key(one.name, one.arguments) for one in made if one.ok}
        for call in wanted:
            if _key(call.name, call.arguments) not in done:
                return f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)}) was not called"
        if forbidden := [one.name for one in made if one.ok and one.name in data.never]:
            return f"{forbidden[0]} was called, which nobody asked for"
        if data.declines and made:
            return f"{made[0].name} was called, though no tool fits"
        if data.declines and not _DECLINES.search(answer.casefold().replace("’", "'")):
            return "the answer does not say that this cannot be done"
        if told := [fact for fact in data.lacks if not missing_fact(answer, [fact])]:
            return f"the answer holds {told[0]!r}"
        return missing_fact(answer, data.holds)

    return check
