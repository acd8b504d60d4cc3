"""The values that the conversation leaves for the arguments of a client's tools."""

from __future__ import annotations

import pytest

from adapter.protocols.grounding_constraint import ground_conversation
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet


def tool(name, *parameters, effect="read", **schemas) -> Tool:
    properties = {each: {"type": "string"} for each in parameters} | schemas
    return Tool(name, parameters={"type": "object", "properties": properties, "required": [*properties]}, effect=effect)


READ = tool("read_file", "path")
WRITE = tool("write_file", "path", "content", effect="write")
EDIT = tool("apply_edit", "path", "old_text", "new_text", effect="write")
DELETE = tool("delete_file", "path", effect="delete")
MOVE = tool("move_file", "source", "destination", effect="write")
RUN = tool("run_command", "command", effect="execute")
ALL = ToolSet([READ, WRITE, EDIT, DELETE, MOVE, RUN])


def said(text, role="user", **fields):
    return {"role": role, "content": text} | fields


def test_a_conversation_grounds_a_clients_tools():
    """A path must occur in a user message or a result. If none occurs, any value is allowed."""
    messages = [said("Which files are there?"), said("src/a.py\nsrc/b.py", "tool"), said("Delete src/a.py")]
    found = ground_conversation(ALL, messages)
    assert found["read_file", "path"] == ["src/a.py"]
    assert found["delete_file", "path"] == ["src/a.py"]
    assert ground_conversation(ALL, [*messages[:2], said("Show it")])["read_file", "path"] == ["src/a.py", "src/b.py"]
    assert ("read_file", "path") not in ground_conversation(ALL, [said("Show something")])
    assert ("write_file", "content") not in found


@pytest.mark.parametrize(("name", "parameter"), [("delete_file", "path"), ("move_file", "source")])
def test_unmentioned_paths_are_never_deleted_or_moved(name, parameter):
    assert ground_conversation(ALL, [said("clean up")])[name, parameter] == []
    assert ground_conversation(ALL, [said("clean up a.js")])[name, parameter] == ["a.js"]


def test_a_clients_definition_is_known_as_risky_by_its_name():
    remove = Tool.from_definition({"name": "remove_file", "parameters": {"properties": {"path": {"type": "string"}}}})
    assert ground_conversation(ToolSet([remove]), [said("clean up")]) == {("remove_file", "path"): []}


def test_texts_and_commands_are_quoted_or_words_of_the_request():
    found = ground_conversation(ALL, [said("in app.py change 'a' to 'b'")])
    assert found["apply_edit", "old_text"] == found["apply_edit", "new_text"] == ["a", "b"]
    assert ground_conversation(ALL, [said("run 'pytest -q' please")])["run_command", "command"] == ["pytest -q"]
    assert "pytest" in ground_conversation(ALL, [said("run pytest")])["run_command", "command"]


def test_parameters_inside_lists_are_grounded_too():
    patch = {"type": "object", "properties": {"old_text": {"type": "string"}, "new_text": {"type": "string"}}}
    patches = tool("patch_file", "path", effect="write", patches={"type": "array", "items": patch})
    found = ground_conversation(ToolSet([patches]), [said("app.py: 'main' -> 'start'")])
    assert found["patch_file", "path"] == ["app.py"]
    assert found["patch_file", "old_text"] == ["main", "start"]


def test_hook_cannot_permit_deleting_unmentioned_paths():
    """A hook permits values for tools that read, not for tools that delete."""

    def ground(tool, argument, messages):
        assert messages[0]["content"] == "Delete the old one"
        return ["a.txt", "b.txt"] if argument == "path" else None

    found = ground_conversation(ALL, [said("Delete the old one")], ground)
    assert found["read_file", "path"] == ["a.txt", "b.txt"]
    assert found["delete_file", "path"] == []
    assert ("write_file", "content") not in found
    named = ground_conversation(ALL, [said("Delete b.txt")], lambda *_: ["a.txt", "b.txt"])
    assert named["delete_file", "path"] == ["b.txt"]


def test_a_hook_knows_arguments_that_we_do_not():
    customers = ToolSet([tool("invoice", "customer", "amount")])
    found = ground_conversation(
        customers, [said("Bill Ann")], lambda tool, name, _: ["C1"] if name == "customer" else None
    )
    assert found == {("invoice", "customer"): ["C1"]}
