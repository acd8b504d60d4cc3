"""Read scenarios from a TOML file, which defines tools, and tasks with a fixed result for each call.

::

    [[tool]]
    name = "find_order"
    description = "Look up an order."
    parameters = { number = "integer The order's number." }   # or JSON Schemas
    optional = []                                              # optional parameters

    [[scenario]]
    name = "late order"
    kind = "steps"
    user = "When does order 17 come?"
    tools = ["find_order", "track_parcel"]
    answer = "It comes on 3 May."                              # the oracle's answer
    holds = ["3 May"]                                          # facts that the answer must contain
    [[scenario.step]]                                          # calls that may be made in parallel
    calls = [{ name = "find_order", arguments = { number = 17 }, result = "parcel PX-81" }]
    [[scenario.step]]
    calls = [{ name = "track_parcel", arguments = { id = "PX-81" }, result = "due 3 May" }]

A call with ``error`` instead of ``result`` is refused with that message. If a call is listed several times, repeated
calls get these results in order. ``other`` lists calls that are answered but not needed. All unlisted calls are refused
with the text ``unknown``.

A run succeeds if the model made every call that has a ``result`` in a step, made no call to a tool in ``never``, and
gave an answer that contains all of ``holds`` and none of ``lacks``. With ``declines``, the answer must state that the
task cannot be done, and no call may be made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapter.core.argument_checks import explain_read_error
from adapter.core.bounded_parsing import parse_toml
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.validation_errors import explain_validation_error
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


def parse_scenarios(text: str, source: str) -> list[Scenario]:
    """Parse scenarios in TOML. Raises UsageError if ``text`` is invalid; the message begins with ``source``."""
    try:
        suite = SuiteData.model_validate(parse_toml(text))
    except ValidationError as error:
        raise UsageError(f"{source}: {explain_validation_error(error)}; see docs/evaluate.md for an example") from error
    except ValueError as error:
        raise UsageError(f"{source} is not valid TOML: {error}") from error
    tools = {each.name: tool(each.name, each.description, each.optional, **each.parameters) for each in suite.tool}
    return [_make_scenario(data, tools, source) for data in suite.scenario]


def read_scenarios(path: Path) -> list[Scenario]:
    """Read the scenarios in a TOML file. Raises UsageError if the file is invalid."""
    try:
        return parse_scenarios(path.read_text(encoding="utf-8-sig"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {explain_read_error(error)}") from error


def _make_scenario(data: ScenarioData, tools: dict[str, JsonObject], source: str) -> Scenario:
    calls = [call for step in data.step for call in step.calls] + data.other
    named = [*data.tools, *(call.name for call in calls), *data.never]
    if missing := [name for name in named if name not in tools]:
        raise UsageError(
            f"{source}: scenario {data.name!r} names the unknown tool {missing[0]!r}; expected {', '.join(tools)}"
        )
    if invalid := [call.name for call in calls if (call.result is None) == (call.error is None)]:
        raise UsageError(f"{source}: scenario {data.name!r}: a call to {invalid[0]} needs either a result or an error")
    optional: dict[str, Any] = {} if data.system is None else {"system": data.system}
    return Scenario(
        data.name, data.kind, data.user, [tools[name] for name in data.tools],
        world=lambda: _ScenarioTable(calls, data.unknown), oracle=_make_oracle(data), check=_make_check(data),
        easy=data.easy, required=None if data.required is None else tuple(data.required), **optional,
    )  # fmt: skip


class _ScenarioTable:
    """A world that returns the result that the TOML file gives for each call."""

    def __init__(self, calls: Sequence[CallData], unknown: str) -> None:
        self._unknown = unknown
        self._answers: dict[str, list[CallData]] = {}
        for call in calls:
            self._answers.setdefault(_build_key(call.name, call.arguments), []).append(call)

    def __getattr__(self, name: str) -> Callable[..., str]:
        return lambda **arguments: self._find_answer(name, arguments)

    def _find_answer(self, name: str, arguments: JsonObject) -> str:
        matches = self._answers.get(_build_key(name, arguments))
        if not matches:
            raise ToolRefusal(self._unknown)
        call = matches.pop(0) if len(matches) > 1 else matches[0]
        if call.result is None:
            raise ToolRefusal(call.error)
        return call.result


def _build_key(name: str, arguments: Json) -> str:
    return json.dumps([name, _normalize(arguments)], sort_keys=True)


def _normalize(value: Json) -> Json:
    """Normalize a JSON value for comparison: 5.0 becomes 5, and whitespace around strings is removed."""
    match value:
        case dict():
            return {key: _normalize(each) for key, each in value.items()}
        case list():
            return [_normalize(each) for each in value]
        case str():
            return value.strip()
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _make_oracle(data: ScenarioData) -> Callable[[], Oracle]:
    def create_oracle() -> Oracle:
        for step in data.step:
            yield [ExpectedCall(call.name, call.arguments) for call in step.calls]
        return data.answer

    return create_oracle


def _make_check(data: ScenarioData) -> Callable[[Json, Sequence[ExecutedCall], str], str]:
    required = [call for step in data.step for call in step.calls if call.result is not None]

    def check(_world: Json, executed: Sequence[ExecutedCall], answer: str) -> str:
        done = {_build_key(each.name, each.arguments) for each in executed if each.ok}
        for call in required:
            if _build_key(call.name, call.arguments) not in done:
                return f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)}) was not called"
        if forbidden := [each.name for each in executed if each.ok and each.name in data.never]:
            return f"{forbidden[0]} was called, but not requested"
        if data.declines and executed:
            return f"{executed[0].name} was called, though no tool fits"
        if data.declines and not _DECLINES.search(answer.casefold().replace("’", "'")):
            return "the answer does not state that the task cannot be done"
        if excluded := [fact for fact in data.lacks if not missing_fact(answer, [fact])]:
            return f"the answer contains {excluded[0]!r}"
        return missing_fact(answer, data.holds)

    return check
