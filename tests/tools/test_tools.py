"""Tool definitions, and matching of tool names."""

from __future__ import annotations

import pickle

import pytest

from adapter.core.errors import UsageError
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from tests.processor_time import processor_limit

TOOLS = ToolSet([Tool("read_file", aliases=("view", "cat")), Tool("write_file"), Tool("get-by-id"), Tool("tool")])


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("read_file", "read_file"),
        ("READ_FILE", "read_file"),
        ("read-file", "read_file"),
        ("readFile", "read_file"),
        ("read file", "read_file"),
        ("read__file", "read_file"),
        ("ReadFileTool", "read_file"),
        ("read_file_tool", "read_file"),
        ("functions.read_file", "read_file"),
        ("functions.read_file:0", "read_file"),
        ("read_file:", "read_file"),
        ("tool:read_file", "read_file"),
        ("repo_browser/read_file", "read_file"),
        ("mcp.server.read_file", "read_file"),
        ("mcp__server__read_file", "read_file"),
        ("google:tool:read_file:index:0", "read_file"),
        ("read_file()", "read_file"),
        ("`@read_file`", "read_file"),
        (" read_file\n", "read_file"),
        ("read_file<|channel|>commentary", "read_file"),
        ("view", "read_file"),
        ("Cat", "read_file"),
        ("get_by_id", "get-by-id"),
        ("getById", "get-by-id"),
        ("tool", "tool"),
    ],
)
def test_another_spelling_is_the_same_tool(name, tool):
    """Letter case, separators, namespaces, a suffix, joined words and aliases."""
    found = TOOLS.match(name)
    assert found is not None
    assert found.name == tool


@pytest.mark.parametrize("name", ["read_files", "read", "file", "writefiles", "", "  ", "delete_file", "<|x|>", "."])
def test_a_similar_name_is_not_matched(name):
    """However similar it is."""
    assert TOOLS.match(name) is None


def test_a_spelling_of_two_tools_is_neither():
    """An ambiguous spelling is not matched, but the exact name is."""
    tools = ToolSet([Tool("read_file"), Tool("readFile")])
    assert tools.match("READ-FILE") is None
    exact = tools.match("readFile")
    assert exact is not None
    assert exact.name == "readFile"


def test_the_nearest_are_only_suggested():
    """In a message."""
    assert TOOLS.find_nearest("read_files")[0] == "read_file"
    assert TOOLS.find_nearest("zzzz") == []


PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": PARAMETERS}},
        {"type": "function", "name": "f", "description": "d", "parameters": PARAMETERS},
        {"name": "f", "description": "d", "input_schema": PARAMETERS},
        {"name": "f", "description": "d", "inputSchema": PARAMETERS},
        Tool("f", "d", PARAMETERS),
    ],
)
def test_definitions_of_every_api(definition):
    """OpenAI's, Anthropic's and MCP's definitions give the same tool, which can be exported for OpenAI."""
    tool = Tool.from_definition(definition)
    assert (tool.name, tool.description, tool.properties, tool.required) == (
        "f",
        "d",
        PARAMETERS["properties"],
        ("path",),
    )
    assert Tool.from_definition(tool.to_openai()).parameters == PARAMETERS


@pytest.mark.parametrize("definition", [{}, {"function": {}}, {"name": 5}, {"function": "f"}])
def test_a_definition_needs_a_name(definition):
    """The developer has to correct it."""
    with pytest.raises(UsageError, match="needs a name"):
        Tool.from_definition(definition)


@pytest.mark.parametrize(
    ("given", "said"),
    [(print, r"got <built-in function print>; for a function, use adapter\.tool"), ("f", "got 'f';")],
)
def test_from_definition_rejects_invalid_definitions(given, said):
    """A function or a name. The error has the next step."""
    with pytest.raises(UsageError, match=said):
        ToolSet([given])


@pytest.mark.parametrize("parameters", [["path"], "path", 5, True])
def test_parameters_are_a_schema(parameters):
    """The error names the tool."""
    with pytest.raises(UsageError, match=r"the parameters of tool 'f' are .*; expected a JSON Schema of type object"):
        Tool.from_definition({"name": "f", "parameters": parameters})


def test_a_tool_without_parameters_takes_none():
    tool = Tool.from_definition({"name": "f"})
    assert (tool.properties, tool.required) == ({}, ())


def test_a_tool_set_is_a_mapping_in_order():
    """In the order of their definition."""
    assert list(TOOLS) == ["read_file", "write_file", "get-by-id", "tool"]
    assert len(TOOLS) == 4
    assert TOOLS["write_file"].name == "write_file"


@pytest.mark.parametrize("name", ["functions.fs.read_file", "functions.fs.read_file:0", "mcp:functions.fs.read_file"])
def test_name_with_a_namespace_of_its_own_is_matched(name):
    tools = ToolSet([Tool("fs.read_file"), Tool("net.read_file")])
    assert tools.match(name) is tools["fs.read_file"]
    assert tools.match("functions.read_file") is None


@pytest.mark.parametrize("name", ["read_file", "ReadFile", "fs__read_file"])
def test_name_without_the_namespace_of_its_tool_is_matched(name):
    """If only one tool has that name in its namespace, and no tool has it without one."""
    tools = [Tool("mcp__fs__read_file"), Tool("mcp__git__log"), Tool("mcp__web__log")]
    assert ToolSet(tools).match(name) is tools[0]
    assert ToolSet(tools).match("log") is None
    assert ToolSet([*tools, Tool("readFile")]).match("read-file") is not tools[0]


@pytest.mark.parametrize("name", ["", "!", "__", "functions."])
def test_name_without_a_word_matches_no_tool(name):
    assert ToolSet([Tool("fs__"), Tool("->")]).match(name) is None


def test_a_long_name_takes_linear_time_and_is_cut_in_the_error():
    """Damaged output of a model can put a whole file in the place of a name."""
    with processor_limit(10):
        assert TOOLS.match("/a" * 100_000) is None
        assert len(TOOLS.explain_unknown("/a" * 100_000)) < 400


@pytest.mark.parametrize("text", ["", "r", "read_file", "get-"])
def test_a_text_is_the_beginning_of_a_name(text):
    assert TOOLS.has_prefix(text)
    assert not ToolSet().has_prefix(text)


@pytest.mark.parametrize("text", ["read_files", "z", "view", "Read", "a"])
def test_a_text_is_not_the_beginning_of_a_name(text):
    assert not TOOLS.has_prefix(text)


def test_a_pickled_tool_set_is_equal():
    tools = ToolSet([{"name": "f"}])
    restored = pickle.loads(pickle.dumps(tools))
    assert restored == tools
    assert hash(restored) == hash(tools)
