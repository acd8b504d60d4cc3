"""Custom tools from a function, a model or a definition, in any dialect."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

import adapter
from adapter.core.errors import UsageError
from adapter.core.events import ToolResult
from adapter.prompting.system_prompt import system_prompt
from adapter.tools.function_tools import tool
from adapter.tools.tool import Tool
from adapter.workspace import Workspace


@tool(effect="read")
def get_weather(city: str, days: int = 1, unit: Literal["C", "F"] = "C", tags: list[str] | None = None) -> str:
    """Forecast for a city.

    From the met office.

    Args:
        city: Its name, in English.
        days: How many.
    """
    return f"{city} {days} {unit} {tags}"


class Forecast(BaseModel):
    """Forecast for a place."""

    city: str = Field(description="Its name")
    days: int = Field(default=1, ge=1)


class Tree(BaseModel):
    """A tree."""

    name: str
    branches: list[Tree] = []


OPENAI = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Look up.",
        "parameters": {
            "type": "object",
            "properties": {"key": {"type": "string"}, "level": {"enum": [1, 2]}},
            "required": ["key"],
        },
    },
}
MCP = {"name": "lookup", "inputSchema": OPENAI["function"]["parameters"]}  # type: ignore[index]


@pytest.fixture
def call(tmp_path):
    def call(one, name=None, /, approve="yolo", **arguments):
        with Workspace(tmp_path, approve=approve, tools=[one]) as workspace:
            return workspace.run(name or list(workspace.tools)[-1], arguments)

    return call


def test_a_function_is_described_by_its_types_and_docstring():
    """Required parameters, defaults, choices and descriptions, without titles."""
    assert get_weather.name == "get_weather"
    assert get_weather.description == "Forecast for a city.\n\nFrom the met office."
    assert get_weather.required == ("city",)
    assert get_weather.properties == {
        "city": {"description": "Its name, in English.", "type": "string"},
        "days": {"default": 1, "description": "How many.", "type": "integer"},
        "unit": {"default": "C", "enum": ["C", "F"], "type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    }


def test_it_joins_a_dialect_and_its_prompt(tmp_path):
    """After the dialect's own tools, in the set and in the prompt."""
    with Workspace(tmp_path, tools=[get_weather]) as workspace:
        assert workspace.tool_names()[-1] == "get_weather"
        assert "get_weather(city, days = 1" in system_prompt(tools=workspace.tools)


def test_a_call_is_validated_converted_and_run(call):
    """As for every other tool, types are converted and errors explained."""
    assert call(get_weather, city="Bern", days="3").content == "Bern 3 C None"
    assert call(get_weather, "getWeather", city="Bern", unit="F", tags=["a"]).content == "Bern 1 F ['a']"
    assert "'city' is missing (string)" in call(get_weather).content
    assert "'unit' is \"K\"" in call(get_weather, city="Bern", unit="K").content


def test_the_decorated_function_can_still_be_called():
    assert get_weather("Bern") == "Bern 1 C None"
    with pytest.raises(UsageError, match="has no function"):
        Tool("x")()


def test_a_model_and_a_function(call):
    made = tool(Forecast, lambda forecast: {"city": forecast.city, "days": forecast.days})
    assert (made.name, made.description, made.required) == ("Forecast", "Forecast for a place.", ("city",))
    assert call(made, city="Bern").data == {"city": "Bern", "days": 1}
    assert "'days'" in call(made, city="Bern", days=0).content


@pytest.mark.parametrize("definition", [OPENAI, MCP], ids=["openai", "mcp"])
def test_a_definition_and_a_callable(call, definition):
    """The schema's requirements, types and choices are checked before the call."""
    made = tool(definition, lambda **given: given)
    assert call(made, key="a", level=2).data == {"key": "a", "level": 2}
    assert "'key' is missing" in call(made, level=1).content
    assert "expected one of 1, 2, got 3" in call(made, key="a", level=3).content
    assert "expected string" in call(made, key={"a": 1}).content


def test_async_functions_share_a_loop(tmp_path):
    """The next call can use what one call opened, also if the caller runs a loop."""
    loops = []

    @tool
    async def where() -> str:
        """Return the place."""
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        return "here"

    async def main():
        with Workspace(tmp_path, approve="yolo", tools=[where]) as workspace:
            return [workspace.run("where", {}).content for _ in range(2)]

    assert asyncio.run(main()) == ["here", "here"]
    assert loops[0] is loops[1]


@dataclass
class Place:
    name: str


class Text(BaseModel):
    type: str = "text"
    text: str


class Image(BaseModel):
    type: str = "image"


class McpResult(BaseModel):
    content: list[Text | Image]
    structuredContent: dict[str, int] | None = None
    isError: bool = False


@pytest.mark.parametrize(
    ("value", "content", "data"),
    [
        ("text", "text", None),
        (None, "(no result)", None),
        (3, "3", 3),
        ({"ä": [1, None]}, '{"ä": [1, null]}', {"ä": [1, None]}),
        (Forecast(city="Bern"), '{"city": "Bern", "days": 1}', {"city": "Bern", "days": 1}),
        (Place("Bern"), '{"name": "Bern"}', {"name": "Bern"}),
        (ToolResult("x", ok=True, content="done", data=1), "done", 1),
        (McpResult(content=[Text(text="a"), Image()], structuredContent={"n": 1}), "a\n(image content)", {"n": 1}),
        ((number for number in (1, 2)), "[1, 2]", [1, 2]),
        (b"text", '"text"', "text"),
    ],
)
def test_results_become_text_and_json(call, value, content, data):
    """Text is unchanged, other values are JSON, an MCP result is its texts."""
    result = call(tool(lambda_named(value)))
    assert (result.ok, result.content, result.data) == (True, content, data)


def lambda_named(value):
    def give():
        return value

    return give


def assert_never_true():
    raise AssertionError


class NoText(Exception):
    def __str__(self):
        return str(1 / 0)


def raise_error_without_text():
    raise NoText


def raise_cancelled():
    raise asyncio.CancelledError("by the tool")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda: 1 / 0, "give failed: ZeroDivisionError: division by zero"),
        (lambda: McpResult(content=[Text(text="no such key")], isError=True), "no such key"),
        (lambda: ToolResult("x", ok=False, content="tool_error: no", error="no"), "no"),
        (lambda: sys.exit(2), "give failed: SystemExit: 2"),
        (assert_never_true, "give failed: AssertionError"),
        (raise_error_without_text, "give failed: NoText: its text cannot be formatted (ZeroDivisionError)"),
        (raise_cancelled, "give failed: CancelledError: by the tool"),
        (
            lambda: b"\xff",
            "give ran, but its return value (bytes) is neither text nor JSON: 'utf-8' codec can't decode byte 0xff in "
            "position 0: invalid utf-8",
        ),
    ],
)
def test_errors_reach_the_model(call, function, said):
    """An exception, an MCP error and a failed result are error results."""

    def give():
        return function()

    result = call(tool(give))
    assert not result.ok
    assert result.error == said


def test_function_needs_approval_unless_it_only_reads(call, tmp_path):
    """Modes and rules depend on its declared effect, by default a command's."""
    ran = []

    @tool
    def touch(name: str) -> None:
        """Touch."""
        ran.append(name)

    assert "needs the user's approval (call touch(name='a'))" in call(touch, approve="ask", name="a").content
    assert ran == []
    assert call(get_weather, approve="ask", city="Bern").ok


def test_names_must_be_new(tmp_path):
    """A tool of the dialect is not replaced silently."""

    def read_file(path: str) -> str:
        """Mine."""
        return path

    for tools in ([tool(read_file)], [tool(read_file, name="x"), tool(read_file, name="x")]):
        with pytest.raises(UsageError, match="already exists"):
            Workspace(tmp_path, tools=tools)
    with Workspace(tmp_path, tools=[tool(read_file, name="my_read")]) as workspace:
        assert "my_read" in workspace.tools


def test_functions_that_cannot_be_described_are_refused():
    """With the solution."""

    def untyped(a):
        """X."""

    def starred(*names: str):
        """X."""

    def unknown(a: Nowhere):  # type: ignore[name-defined]  # noqa: F821
        """X."""

    def unspoken(a: Callable[[int], int]):
        """X."""

    for function, said in [
        (untyped, "'a' needs a type annotation"),
        (starred, "cannot be passed by name"),
        (unknown, "unknown: cannot read the parameter types: name 'Nowhere' is not defined"),
        (unspoken, "unspoken: its parameters cannot be described as JSON Schema: .*CallableSchema"),
        (int, "cannot read the parameter types"),
        (1, "must be a function, a Pydantic model or a tool definition, got 1"),
    ]:
        with pytest.raises(UsageError, match=said):
            tool(function)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="has no name; pass name="):
        tool(lambda: 1)
    with pytest.raises(UsageError, match="a tool without a function"):
        tool(OPENAI)
    with pytest.raises(UsageError, match="unknown effect 'reed'; expected read, state"):
        tool(get_weather, effect="reed")  # type: ignore[call-overload]


def test_parameters_may_have_any_name(call):
    """Also names that pydantic uses: the function gets the model's values."""

    @tool
    def odd(_from: int, model_config: int, json: int = 3, model_dump_all: int = 4) -> list[int]:
        """Odd."""
        return [_from, model_config, json, model_dump_all]

    assert list(odd.properties) == ["_from", "model_config", "json", "model_dump_all"]
    assert call(odd, _from=1, model_config=2).content == "[1, 2, 3, 4]"
    assert "'_from' is missing (integer)" in call(odd, model_config=2).content


def test_tool_name_argument_names_an_anonymous_function(call):
    """A partial, a callable object, and a lambda without parameters."""

    class Double:
        def __call__(self, number: int) -> int:
            return 2 * number

    def add(first: int, second: int) -> int:
        return first + second

    assert call(tool(partial(add, 40), name="add_40"), second=2).content == "42"
    assert call(tool(Double(), name="double"), number=4).content == "8"
    assert call(tool(lambda: "pong", name="ping-pong")).content == "pong"


def test_a_model_may_hold_itself(call):
    """The inner model is described by its type, and values are parsed at every depth."""

    @tool
    def depth(tree: Tree) -> int:
        """Return the depth."""
        return len(tree.branches) and 1 + len(tree.branches[0].branches)

    inner = {"type": "array", "items": {"type": "object"}, "default": []}
    assert depth.properties["tree"]["properties"]["branches"] == inner
    assert call(depth, tree={"name": "a", "branches": [{"name": "b", "branches": [{"name": "c"}]}]}).content == "2"
    assert "'tree.branches.0.name' is missing" in call(depth, tree={"name": "a", "branches": [{}]}).content


def test_bound_that_json_cannot_represent_is_left_out():
    def wait(most: float = float("inf"), least: Annotated[float, Field(ge=float("-inf"))] = 0) -> None:
        pass

    assert tool(wait).properties == {"most": {"type": "number"}, "least": {"default": 0, "type": "number"}}


def test_items_of_an_async_generator_are_listed(call):
    """As for a generator."""

    @tool
    async def count(to: int) -> AsyncIterator[int]:
        """Count."""
        for number in range(to):
            yield number

    assert call(count, to=3).content == "[0, 1, 2]"


def test_error_for_value_out_of_bounds_names_the_bounds(call):
    """And no example repeats the value."""

    @tool
    def rate(
        share: Annotated[float, Field(gt=0, lt=1)],
        stars: Annotated[int, Field(ge=3, le=5)],
        tags: Annotated[list[str], Field(min_length=2)],
        day: date,
    ) -> str:
        """Rate."""
        return "ok"

    example = {"share": 0.5, "stars": 3, "tags": ["a", "b"], "day": "2026-01-31"}
    assert call(rate, **example).ok
    result = call(rate, **example | {"stars": 9, "tags": ["a"]})
    assert "'stars' is 9: input should be less than or equal to 5" in result.content
    assert "'tags' is [\"a\"]: list should have at least 2 items after validation, not 1" in result.content
    assert result.content.endswith("Its parameters: share: number, stars: integer, tags: [string], day.")
    assert "'stars' is \"x\": expected integer" in call(rate, **example | {"stars": "x"}).content


def test_annotated_fields_describe_parameters():
    @tool
    def f(n: Annotated[int, Field(description="How many", ge=0)]) -> int:
        """F."""
        return n

    assert f.properties["n"] == {"type": "integer", "description": "How many", "minimum": 0}


def test_tool_is_public():
    assert adapter.tool is tool
