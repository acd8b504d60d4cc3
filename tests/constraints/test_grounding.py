"""What a request leaves open: the values that are offered, and those that never are."""

from __future__ import annotations

import pytest

from adapter.constraints.grounding import Evidence, choices_for, conversational, offered
from adapter.constraints.replies import REPLY
from adapter.tools.definition import Tool, ToolSet


def tool(name, *parameters, effect="read", **schemas) -> Tool:
    properties = {each: {"type": "string"} for each in parameters} | schemas
    return Tool(name, parameters={"type": "object", "properties": properties, "required": [*properties]}, effect=effect)


READ = tool("read_file", "path")
WRITE = tool("write_file", "path", "content", effect="write")
EDIT = tool("apply_edit", "path", "old_text", "new_text", effect="write")
GREP = tool("grep_search", "pattern", "path")
LIST = tool("list_directory", "path")
DELETE = tool("delete_file", "path", effect="delete")
MOVE = tool("move_file", "source", "destination", effect="write")
RUN = tool("run_command", "command", "cwd", effect="execute")
ALL = ToolSet([READ, WRITE, EDIT, GREP, LIST, DELETE, MOVE, RUN])

FILES = ["README.md", "src/app.py", "src/web/app.js", "tests/test_app.py"]
APP = 'NAME = "x"\n\n\ndef main():\n    print("hello")\n    print("hello", NAME)\n'


def choices(request, parameter, tool_name, **evidence):
    return choices_for(ALL, Evidence(request, FILES, **evidence)).get((tool_name, parameter))


@pytest.mark.parametrize(
    ("request_text", "offered_paths"),
    [
        ("read src/app.py", ["src/app.py"]),
        ("compare README.md with app.js", ["README.md", "src/web/app.js"]),
        ("read /etc/motd.txt", ["/etc/motd.txt"]),
        ("read something", FILES),
    ],
)
def test_a_path_to_read_is_mentioned_or_any(request_text, offered_paths):
    assert choices(request_text, "path", "read_file") == offered_paths


def test_a_path_of_an_earlier_result_comes_before_any():
    assert choices("now read it", "path", "read_file", results=["tests/test_app.py:3: assert"]) == ["tests/test_app.py"]


def test_a_new_file_is_the_one_that_is_named_or_free():
    assert choices("create src/new.py", "path", "write_file") == ["src/new.py"]
    assert choices("write a poem", "path", "write_file") is None
    assert choices("write a poem", "content", "write_file") is None


def test_what_replaces_changes_a_file_whatever_it_is_called():
    """SearchAndReplace looks for a text, but it is given no directory."""
    replaces = tool("SearchAndReplace", "search", "replace", "file", effect="write")
    evidence = Evidence("change 'hello' to 'hi'", FILES, contents={"src/app.py": APP})
    assert choices_for(ToolSet([replaces]), evidence)["SearchAndReplace", "file"] == FILES


def test_quoted_content_is_for_files_of_prose():
    assert choices("write 'buy milk' to todo.txt", "content", "write_file") == ["buy milk"]
    assert choices("create hi.py that prints 'hi'", "content", "write_file") is None
    assert choices("write 'notes.txt' full of jokes", "content", "write_file") is None


def test_a_directory_may_be_listed():
    assert choices("list src", "path", "list_directory") == ["src"]


def test_where_nothing_is_named_everywhere_is_meant():
    assert choices("list all", "path", "list_directory") == ["."]
    assert choices("search for TODO", "path", "grep_search") == ["."]


@pytest.mark.parametrize(("name", "parameter"), [("delete_file", "path"), ("move_file", "source")])
def test_what_nobody_mentioned_is_never_deleted_or_moved(name, parameter):
    assert choices("clean up", parameter, name) == []
    assert choices("clean up app.js", parameter, name) == ["src/web/app.js"]
    assert choices("delete it", parameter, name, results=["found: README.md"]) == ["README.md"]


def test_a_client_s_definition_is_known_as_risky_by_its_name():
    remove = Tool.from_definition({"name": "remove_file", "parameters": {"properties": {"path": {"type": "string"}}}})
    assert choices_for(ToolSet([remove]), Evidence("clean up", FILES)) == {("remove_file", "path"): []}


def test_a_command_runs_at_the_root_or_where_it_was_said():
    assert choices("run make", "cwd", "run_command") == ["."]
    assert choices("run make in src", "cwd", "run_command") == [".", "src"]


def test_a_destination_is_spelled_out():
    assert choices("move app.js to lib/app.js", "destination", "move_file") == ["app.js", "lib/app.js"]
    assert choices("move app.js away", "destination", "move_file") == ["app.js"]


def test_a_command_is_what_was_said():
    assert choices("run 'pytest -q' please", "command", "run_command") == ["pytest -q"]
    assert "pytest" in (choices("run pytest", "command", "run_command") or [])


def edit(request, text=APP):
    evidence = Evidence(request, FILES, contents={"src/app.py": text})
    found = choices_for(ALL, evidence)
    return found.get(("apply_edit", "old_text")), found.get(("apply_edit", "new_text"))


def test_old_text_is_a_quoted_piece_of_the_file_and_new_text_the_other():
    assert edit("in src/app.py change 'main()' to 'start()'") == (["main()"], ["start()"])
    assert edit("in src/app.py use 'start()' in place of 'main()'") == (["main()"], ["start()"])


def test_of_a_file_that_nobody_has_read_the_quoted_pieces_are_offered():
    assert choices("in app.py change 'a' to 'b'", "old_text", "apply_edit") == ["a", "b"]
    assert choices("in app.py change 'a' to 'b'", "new_text", "apply_edit") == ["a", "b"]


def test_an_answer_is_free():
    assert choices_for(ToolSet([REPLY]), Evidence("say 'hi'", FILES)) == {}


def test_text_that_stands_there_twice_is_offered_by_whole_lines():
    old, new = edit("in app.py replace 'hello' by 'bye'")
    assert old == ['    print("hello")', '    print("hello", NAME)']
    assert new == ['    print("bye")', '    print("bye", NAME)']


def test_quoted_text_that_is_not_in_the_file_cannot_be_replaced():
    assert edit("in src/app.py change 'absent' to 'present'")[0] == []


def test_without_anything_to_put_there_nothing_is_replaced():
    assert edit("where is 'main' used?") == (["main"], [])


def test_a_file_that_does_not_exist_cannot_be_edited():
    assert choices("in other.py change 'a' to 'b'", "path", "apply_edit") == []


def test_without_quotes_the_words_of_the_request_are_looked_up():
    old, new = edit("rename main to start in src/app.py")
    assert old == ["main"]
    assert "start" in (new or [])
    assert not any("app.py" in each or "main" in each for each in new or [])


def test_without_any_hint_every_line_is_offered():
    old, _ = edit("improve src/app.py a bit")
    assert old == ['NAME = "x"', "def main():", '    print("hello")', '    print("hello", NAME)']


def test_parameters_inside_lists_are_grounded_too():
    patch = {"type": "object", "properties": {"old_text": {"type": "string"}, "new_text": {"type": "string"}}}
    patches = tool("patch_file", "path", effect="write", patches={"type": "array", "items": patch})
    evidence = Evidence("app.py: 'main' -> 'start'", FILES, contents={"src/app.py": APP})
    found = choices_for(ToolSet([patches]), evidence)
    assert found["patch_file", "path"] == ["src/app.py"]
    assert found["patch_file", "old_text"] == ["main"]
    assert found["patch_file", "new_text"] == ["start"]


@pytest.mark.parametrize(
    ("request_text", "names"),
    [
        ("in app.py change 'a' to 'b'", ["apply_edit"]),
        ("search for 'a'", ["write_file", "apply_edit", "grep_search", "run_command"]),
        ("read 'src/app.py'", list(ALL)),
        ("put 'a', 'b' and 'c' in order", ["apply_edit"]),
        ("hello", list(ALL)),
    ],
)
def test_tools_without_room_for_what_is_quoted_are_not_offered(request_text, names):
    assert list(offered(ALL, Evidence(request_text, FILES))) == names


def test_no_tools_are_no_trouble():
    assert list(offered(ToolSet([]), Evidence("'x'"))) == []
    assert choices_for(ToolSet([]), Evidence("'x'")) == {}


def said(text, role="user", **fields):
    return {"role": role, "content": text} | fields


def test_a_conversation_grounds_a_clients_tools():
    """A path is one that the user or a result spells; what nobody speaks of stays free."""
    messages = [said("Which files are there?"), said("src/a.py\nsrc/b.py", "tool"), said("Delete src/a.py")]
    found = conversational(ALL, messages)
    assert found["read_file", "path"] == ["src/a.py"]
    assert found["delete_file", "path"] == ["src/a.py"]
    assert ("read_file", "max_lines") not in found


def test_what_nobody_named_is_not_deleted_whatever_somebody_knows():
    """A hook opens what reads, never what destroys."""

    def ground(tool, argument, messages):
        assert messages[0]["content"] == "Delete the old one"
        return ["a.txt", "b.txt"] if argument == "path" else None

    found = conversational(ALL, [said("Delete the old one")], ground)
    assert found["read_file", "path"] == ["a.txt", "b.txt"]
    assert found["delete_file", "path"] == []
    assert ("write_file", "content") not in found
    assert conversational(ALL, [said("Delete b.txt")], lambda *_: ["a.txt", "b.txt"])["delete_file", "path"] == [
        "b.txt"
    ]


def test_a_hook_knows_arguments_that_we_do_not():
    customers = ToolSet([tool("invoice", "customer", "amount")])
    found = conversational(customers, [said("Bill Ann")], lambda tool, name, _: ["C1"] if name == "customer" else None)
    assert found == {("invoice", "customer"): ["C1"]}
