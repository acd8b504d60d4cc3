"""From a written call to a valid one: names, arguments, types and messages for the model."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict

from adapter.conversation.guardrails.copied_text import list_strings
from adapter.core.errors import ToolError
from adapter.core.events import JsonObject, ToolCall
from adapter.core.repair_codes import REPAIRS
from adapter.dialects import get_dialect
from adapter.tools.call_normalization import COMMON_ARGUMENT_ALIASES, match_parameter, normalize_call
from adapter.tools.call_validation import is_valid, validate_call
from adapter.tools.operations import Operation, ReadText
from adapter.tools.signatures import describe_type
from adapter.tools.tool import Tool, ValidatedCall
from adapter.tools.tool_set import ToolSet
from tests.effort import examples
from tests.parsing.formats.soup import EVERYTHING, TOOLS, values


class ReadArguments(BaseModel):
    """Arguments with their own validation, as dialects have them."""

    model_config = ConfigDict(extra="forbid")

    path: str
    offset: int = 1
    mode: Literal["text", "bytes"] = "text"
    limit: int | None = None

    def to_operation(self) -> Operation:
        return ReadText(self.path, self.offset)

    def render(self, outcome: Any) -> tuple[str, Any]:
        return str(outcome), None

    def list_notes(self) -> tuple[str, ...]:
        return ()


def validate_read(given_arguments: dict[str, Any]) -> ValidatedCall:
    return ReadArguments.model_validate(given_arguments)


READ = Tool(
    "read_file",
    "Read a file.",
    ReadArguments.model_json_schema(),
    argument_aliases={"path": ("target",), "limit": ("max_lines", "count")},
    example={"path": "src/app.py", "offset": 1},
    validate=validate_read,
)
CLIENT = Tool.from_definition(TOOLS[3])  # search
WRITE = Tool(
    "write_file",
    parameters={"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
    effect="write",
)
SET = ToolSet([READ, CLIENT, Tool("get_time"), Tool("now", parameters={"type": "object"})])


@pytest.mark.parametrize(
    ("arguments", "expected", "fixes"),
    [
        ({"path": "a"}, {"path": "a"}, ()),
        ({"file_path": "a"}, {"path": "a"}, ("argument-alias",)),
        ({"filePath": "a"}, {"path": "a"}, ("argument-alias",)),
        ({"target": "a"}, {"path": "a"}, ("argument-alias",)),
        ({"PATH": "a"}, {"path": "a"}, ("argument-alias",)),
        ({"path": "", "file_path": "a"}, {"path": "a"}, ("argument-alias",)),
        ({"path": None, "file_path": "a"}, {"path": "a"}, ("argument-alias",)),
        ({"path": "a", "file_path": ""}, {"path": "a"}, ("argument-alias",)),
        ({"path": "a", "file_path": "a"}, {"path": "a"}, ("argument-alias",)),
        ({"path": "a", "file_path": "b"}, {"path": "a", "file_path": "b"}, ()),
        ({"path": "a", "offset": "7"}, {"path": "a", "offset": 7}, ("coerced-type",)),
        ({"path": "a", "max_lines": "7"}, {"path": "a", "limit": 7}, ("argument-alias", "coerced-type")),
        ({"path": "a", "colour": "red"}, {"path": "a", "colour": "red"}, ()),
        ({"arguments": {"path": "a"}}, {"path": "a"}, ("arguments-key",)),
        ({"read_file": {"path": "a"}}, {"path": "a"}, ("arguments-key",)),
        ({"path": {"type": "string", "value": "a"}}, {"path": "a"}, ("echoed-schema",)),
        ({"path": "C:\new\test"}, {"path": "C:\\new\\test"}, ("windows-path",)),
        ({"path": "C:\\Users\name"}, {"path": "C:\\Users\\name"}, ("windows-path",)),
        ({"path": "C:\\Users"}, {"path": "C:\\Users"}, ()),
        ({"path": "a\nb"}, {"path": "a\nb"}, ()),
    ],
)
def test_arguments_get_the_tools_names_and_types(arguments, expected, fixes):
    """Certain corrections are made and named; everything else is left to `resolve`."""
    assert normalize_call("read_file", arguments, SET) == ("read_file", expected, fixes)
    assert set(fixes) <= set(REPAIRS)


def test_a_tools_own_parameter_is_never_unwrapped():
    """A tool with a parameter called ``input`` keeps it."""
    tools = ToolSet([Tool("run", parameters={"type": "object", "properties": {"input": {"type": "object"}}})])
    assert normalize_call("run", {"input": {"a": 1}}, tools) == ("run", {"input": {"a": 1}}, ())


def test_empty_text_for_an_optional_number_or_list_is_dropped():
    """It says that there is no value. A string may be empty, and a required argument is left to `resolve`."""
    properties: JsonObject = {name: {"type": name} for name in ("string", "integer", "array", "number")}
    tools = ToolSet([Tool("f", parameters={"type": "object", "properties": properties, "required": ["number"]})])
    assert normalize_call("f", dict.fromkeys(properties, ""), tools) == (
        "f",
        {"string": "", "number": ""},
        ("key-without-value",),
    )


def test_null_for_an_optional_argument_is_dropped():
    """Unless its schema allows null or has no type. A required argument is left to `resolve`."""
    types: dict[str, JsonObject] = {
        "text": {"type": "string"},
        "list": {"type": "array"},
        "maybe": {"type": ["string", "null"]},
        "any": {},
        "needed": {"type": "string"},
    }
    tools = ToolSet([Tool("f", parameters={"type": "object", "properties": types, "required": ["needed"]})])
    assert normalize_call("f", dict.fromkeys(types), tools) == (
        "f",
        {"maybe": None, "any": None, "needed": None},
        ("key-without-value",),
    )


@pytest.mark.parametrize(("word", "kept"), [("null", ()), ("None", ()), ("undefined", ()), ("nothing", ("number",))])
def test_word_for_null_is_dropped_where_text_is_not_allowed(word, kept):
    """Llama 3 writes it for what it does not know."""
    properties: JsonObject = {"text": {"type": "string"}, "number": {"type": "integer"}}
    tools = ToolSet([Tool("f", parameters={"type": "object", "properties": properties})])
    _, arguments, _ = normalize_call("f", {"text": word, "number": word}, tools)
    assert tuple(arguments) == ("text", *kept)


def test_null_for_an_unknown_argument_changes_nothing():
    assert (
        validate_call("write_file", {"path": "a", "content": "b", "append": None}, get_dialect("blade").tools).notes
        == ()
    )
    with pytest.raises(ToolError, match="append"):
        validate_call("write_file", {"path": "a", "content": "b", "append": True}, get_dialect("blade").tools)


def test_an_alias_of_two_parameters_is_neither():
    """It is left unchanged."""
    tool = Tool(
        "f",
        parameters={"type": "object", "properties": {"first": {}, "second": {}}},
        argument_aliases={"first": ("x",), "second": ("x",)},
    )
    assert match_parameter("x", tool) is None
    assert normalize_call("f", {"x": 1}, ToolSet([tool])) == ("f", {"x": 1}, ())


@pytest.mark.parametrize("flag", [True, 5, "path"])
def test_a_flag_in_the_place_of_required_names_means_none(flag):
    """Schemas before draft 4 mark a single property as required."""
    inner = {"type": "object", "required": flag, "properties": {"path": {"type": "string"}}}
    tool = Tool.from_definition(
        {"name": "f", "parameters": {"type": "object", "required": flag, "properties": {"where": inner}}}
    )
    assert tool.required == ()
    assert validate_call("f", {"where": {"path": "a"}}, ToolSet([tool])).arguments == {"where": {"path": "a"}}
    assert describe_type(inner) == "{path?}"


def test_an_alias_is_spelled_with_any_separators():
    """In the tool's definition as in the call."""
    tool = Tool("f", parameters={"type": "object", "properties": {"id": {}}}, argument_aliases={"id": ("library-id",)})
    assert all(match_parameter(name, tool) == "id" for name in ("library-id", "library_id", "libraryId"))


def test_no_common_alias_is_an_alias_of_itself():
    """Such an entry would hide a mistake."""
    assert all(name not in others for name, others in COMMON_ARGUMENT_ALIASES.items())


@examples(120)
@given(
    st.sampled_from(["read_file", "search", "get_time", "do_everything", "unknown", ""]),
    st.dictionaries(st.sampled_from(["path", "query", "text", "file_path", "input", "items", "x", ""]), values),
)
def test_normalizing_never_fails_and_settles(name, arguments):
    """For any name and arguments, and a second pass changes nothing."""
    tools = ToolSet([READ, CLIENT, Tool("get_time"), Tool.from_definition(EVERYTHING)])
    once = normalize_call(name, arguments, tools)
    assert normalize_call(once[0], once[1], tools)[:2] == once[:2]
    with contextlib.suppress(ToolError):
        validate_call(name, arguments, tools)


def test_a_valid_call_becomes_an_invocation():
    """With the tool, the arguments and the validated form."""
    invocation = validate_call("ReadFileTool", {"file_path": "a.py", "offset": "3"}, SET)
    assert (invocation.tool, invocation.arguments) == (READ, {"path": "a.py", "offset": 3})
    assert invocation.validated is not None
    assert invocation.validated.to_operation() == ReadText("a.py", 3)
    assert invocation.notes == ("read as a call to read_file",)


@pytest.mark.parametrize(
    "arguments", ['{"path": "a.py"}', '"{\\"path\\": \\"a.py\\"}"', {"path": "a.py"}, '{"path": "a.py",}']
)
def test_arguments_may_come_as_json(arguments):
    """Servers send arguments as a JSON string, and models encode them again."""
    assert validate_call("read_file", arguments, SET).arguments == {"path": "a.py"}


@pytest.mark.parametrize("arguments", [{}, "", "null", "{}", "[]"])
def test_a_tool_without_parameters_takes_nothing(arguments):
    """Every spelling of nothing means no arguments."""
    assert validate_call("get_time", arguments, SET).arguments == {}


def test_unknown_arguments_are_left_out_with_a_note():
    """X34: the call is accepted, and the model is informed."""
    invocation = validate_call("read_file", {"path": "a.py", "encoding": "utf-8"}, SET)
    assert invocation.arguments == {"path": "a.py"}
    assert invocation.left_out == ("read_file has no argument 'encoding'; it was ignored",)


@pytest.mark.parametrize(
    "extra", [{"append": True}, {"mode": "a"}, {"dry_run": "true"}, {"startLine": 3}, {"end-line": "9"}]
)
def test_resolve_call_rejects_arguments_that_change_the_effect(extra):
    """Text that was to be appended does not overwrite a file."""
    with pytest.raises(ToolError, match=r"write_file has no argument '.*'\. Nothing was done"):
        validate_call("write_file", {"path": "a.py", "content": "x"} | extra, ToolSet([WRITE]))


@pytest.mark.parametrize("extra", [{"append": False}, {"mode": "w"}, {"encoding": "utf-8"}, {"why": "to append"}])
def test_resolve_call_ignores_harmless_unknown_arguments(extra):
    invocation = validate_call("write_file", {"path": "a.py", "content": "x"} | extra, ToolSet([WRITE]))
    assert invocation.arguments == {"path": "a.py", "content": "x"}
    assert len(invocation.left_out) == 1


@pytest.mark.parametrize("value", [None, "null", "None", "", "undefined"])
def test_a_null_for_an_optional_argument_is_absence(value):
    """X33: also a word for null where no text is expected."""
    assert validate_call("search", {"query": "x", "limit": value}, SET).arguments == {"query": "x"}


def test_a_null_stays_where_it_is_a_value():
    """If the schema permits it, or as text where text is expected."""
    assert validate_call("read_file", {"path": "a", "limit": None}, SET).arguments == {"path": "a", "limit": None}
    assert validate_call("read_file", {"path": "null"}, SET).arguments == {"path": "null"}
    assert validate_call("search", {"query": ""}, SET).arguments == {"query": ""}


@pytest.mark.parametrize(
    ("name", "arguments", "pieces"),
    [
        ("read_file", {}, ["read_file", "'path' is missing", "string", "Its parameters: path, "]),
        ("read_file", {"path": "a", "offset": "x"}, ["'offset' is \"x\"", "expected integer", "Example"]),
        ("read_file", {"path": ["a"]}, ["'path' is [\"a\"]", "expected string"]),
        ("read_file", {"path": "a", "mode": "hex"}, ["'mode'", 'one of "text", "bytes"']),
        ("read_file", {"colour": 1}, ["'path' is missing", "It has no argument 'colour'"]),
        ("read_file", {"path": "a", "file_path": "b"}, ["'path' and 'file_path'", '"a" and "b"', "Pass only 'path'"]),
        ("read_file", "not json", ["read_file", "Its parameters: path"]),
        ("read_file", '{"path": "a', ["read_file", "ends inside a string"]),
        ("read_file", "[1, 2]", ["read_file", "must be a JSON object", "[1, 2]"]),
        ("read_file", "7", ["read_file", "must be a JSON object"]),
        ("search", {}, ["search", "'query' is missing (string)", "Its parameters: query, limit"]),
        ("read_files", {"path": "a"}, ["unknown tool 'read_files'", "did you mean 'read_file'?", "Nothing was run"]),
        ("zzz", {}, ["unknown tool 'zzz'", "this session has: read_file, search, get_time, now. Nothing was run."]),
    ],
)
def test_refusal_has_the_next_step(name, arguments, pieces):
    """X34: the message names the tool, the actual and the expected value, and an example."""
    with pytest.raises(ToolError) as caught:
        validate_call(name, arguments, SET)
    for piece in pieces:
        assert piece in str(caught.value)


def test_a_refusal_does_not_repeat_a_file():
    with pytest.raises(ToolError) as caught:
        validate_call("read_file", {"path": ["x" * 10_000]}, SET)
    assert len(str(caught.value)) < 400


def test_a_tool_without_a_schema_takes_anything():
    """A client's tool that declares no parameters accepts any arguments."""
    assert validate_call("now", {"zone": "UTC"}, SET).arguments == {"zone": "UTC"}


def test_session_without_tools_is_reported():
    with pytest.raises(ToolError, match="this session has: none"):
        validate_call("read_file", {}, ToolSet())


@pytest.mark.parametrize("dialect", ["blade", "maki", "promptly", "proto", "proxyai"])
def test_no_error_has_a_value_that_the_model_did_not_write(dialect):
    """Small models copied the values of a tool's own example, and placeholders such as "your path"."""
    for tool in (tools := get_dialect(dialect).tools).values():
        wrong: Sequence[Any] = ("not json", {}, {name: {"x": []} for name in tool.properties})
        for arguments in wrong:
            with contextlib.suppress(ToolError):
                validate_call(tool.name, arguments, tools)
                continue
            error = _find_error(tool.name, arguments, tools)
            examples = {value for value in list_strings(tool.example) if len(value) > 3}
            unknown = {value for value in examples if value not in json.dumps(tool.parameters)}
            assert not [value for value in ("your ", "<", "Example", *unknown) if value in error], error


def _find_error(name: str, arguments: Any, tools: ToolSet) -> str:
    with pytest.raises(ToolError) as caught:
        validate_call(name, arguments, tools)
    return str(caught.value)


def test_messages_are_json_where_they_quote_json():
    """With the valid arguments of the call."""
    error = _find_error("read_file", {"path": "a", "offset": "x"}, SET)
    assert json.loads(error.partition("Example: ")[2]) == {"path": "a"}
    error = _find_error("apply_edit", {"path": "a"}, get_dialect("blade").tools)
    assert "old_text" in error.partition("Its parameters: ")[2]


def test_a_schema_is_checked_once(monkeypatch):
    """Checking it takes a hundred times as long as validating a call."""
    checked: list[Any] = []
    monkeypatch.setattr(Draft202012Validator, "check_schema", checked.append)
    parameters = {"type": "object", "properties": {"once_only": {"type": "integer"}}}
    tools = ToolSet([{"type": "function", "function": {"name": "count", "parameters": parameters}}])
    calls = [ToolCall("", "count", {"once_only": value}, "") for value in (1, "x", 3)]
    assert [is_valid(call, tools) for call in calls] == [True, False, True]
    assert checked == [parameters]
