"""Promptly's shell tools: every field of an entry works as the document states."""

import json
import re

import pytest

from adapter.core.errors import ToolError, UsageError
from adapter.dialects import get_dialect
from adapter.dialects.promptly import BUILT_IN, DIALECT, load_default_entries, make_dialect
from adapter.dialects.promptly.builtin_tools import RipGrepIncludingHidden
from adapter.dialects.promptly.tools_file_entries import ShellTool, parse_entries, parse_entry
from adapter.parsing.parser import parse
from adapter.prompting.system_prompt import system_prompt
from adapter.tools.operations import PathValue, RunProgram
from adapter.workspace import Workspace
from tests.approvals import record_requests

SHOW_FILE_TREE = {
    "name": "ShowFileTree",
    "description": "Visual directory tree listing",
    "executable": "tree",
    "truncateOutput": True,
    "argumentTemplate": [["{(path)}"]],
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Directory path to list"}},
        "required": ["path"],
        "description": "Parameters for tree command",
    },
}
"""The document's example, verbatim."""


def entry(template=(), properties=(), **fields):
    schema = {"type": "object", "properties": dict(properties), "required": fields.pop("required", [])}
    return parse_entry(
        {"name": "T", "executable": "echo", "argumentTemplate": list(template), "parameters": schema, **fields},
        "tools.json",
    )


ANY: dict[str, dict[str, str]] = {name: {} for name in "abcd"}


def arguments(template, values, **fields):
    """Return the arguments as text, with paths in angle brackets."""
    operation = entry(template, ANY, **fields).validate_call(values).to_operation()
    assert isinstance(operation, RunProgram)
    return [
        "".join(f"<{piece.path}>" if isinstance(piece, PathValue) else piece for piece in word)
        for word in operation.arguments
    ]


# ---------------------------------------------------------------------- templates


@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        ([["-n", "{{a}}"], ["x"]], {"a": "1"}, ["-n", "1", "x"]),  # C135, C136
        ([["-n", "{{a}}", "{{b}}"], ["x"]], {"a": "1"}, ["x"]),  # C138: one missing drops the whole group
        ([["-n", "{{a}}"], ["x"]], {"a": None}, ["x"]),
        ([["-n", "{{a}}"], ["x"]], {"a": []}, ["x"]),
        ([["-n", "{{a}}"]], {"a": ""}, ["-n", ""]),  # empty is not missing
        ([["{(a)}"]], {"a": "src"}, ["<src>"]),  # C137
        ([["--in={(a)}:{{b}}!"]], {"a": "s", "b": "t"}, ["--in=<s>:t!"]),
        ([["{{ a }}", "{( b )}"]], {"a": "1", "b": "2"}, ["1", "<2>"]),
        ([["{{a}}{{a}}"]], {"a": "1"}, ["11"]),
        ([["{{a}}"]], {"a": "{{b}} {(b)}"}, ["{{b}} {(b)}"]),  # a value is no template
        ([["{a}", "{", "$a", "%s"]], {"a": "1"}, ["{a}", "{", "$a", "%s"]),
        ([["{{a}}"]], {"a": 5}, ["5"]),
        ([["{{a}}"]], {"a": 2.5}, ["2.5"]),
        ([["{{a}}"]], {"a": True}, ["true"]),
        ([["{{a}}"]], {"a": {"k": ["é"]}}, ['{"k": ["é"]}']),
        ([["{{a}}", "x"]], {"a": ["1", "2"]}, ["1", "2", "x"]),
        ([["--glob={{a}}"]], {"a": ["1", "2"]}, ["--glob=1", "--glob=2"]),
        ([["{(a)}"]], {"a": ["s", "t"]}, ["<s>", "<t>"]),
        ([], {"a": "1"}, []),
        ([["{{a}}"]], {"a": "a b; $(c)"}, ["a b; $(c)"]),
    ],
)
def test_groups_and_placeholders(template, values, expected):
    """C135 to C138: each token becomes one argument, whatever its value contains."""
    assert arguments(template, values) == expected


def test_a_default_is_a_value():
    """A default in the prompt is the value that the program gets."""
    shell_tool = entry([["-n", "{{n}}"]], {"n": {"type": "integer", "default": 5}})
    for values, expected in [({}, "5"), ({"n": 7}, "7")]:
        operation = shell_tool.validate_call(values).to_operation()
        assert isinstance(operation, RunProgram)
        assert "".join(map(str, operation.arguments[1])) == expected


def test_exclusive_groups_are_alternatives():
    """C142, C144: only the first alternative that can be filled is used."""
    template = [["{{a}}", "{{b}}"], ["{{b}}"], ["all"]]
    for values, expected in [
        ({"a": "1", "b": "2"}, ["1", "2"]),
        ({"b": "2"}, ["2"]),
        ({"a": "1"}, ["all"]),
        ({}, ["all"]),
    ]:
        assert arguments(template, values, exclusiveArgumentTemplate=True) == expected
    assert arguments(template, {"b": "2"}) == ["2", "all"]


def test_program_without_any_alternative_is_not_run():
    """The program is not run without the arguments that every alternative provides."""
    with pytest.raises(ToolError, match=r"T needs more arguments: expected a, b or c\. Nothing was run"):
        arguments([["{{a}}", "{{b}}"], ["{{c}}"]], {"a": "1"}, exclusiveArgumentTemplate=True)


@pytest.mark.parametrize("template", [["{{a}}"], ["-n", "{{a}}"], ["{{b}}{{a}}"], ["x", "--", "y"]])
@pytest.mark.parametrize("value", ["-rf", "--output=/etc/passwd", "-", ["x", "-rf"], -5])
def test_a_value_is_never_an_option(template, value):
    """D11: it is refused before anything runs, also in a list."""
    if "{{a}}" not in str(template):
        template = ["{{a}}", *template]  # a `--` behind it does not help
    with pytest.raises(ToolError, match=r"would treat as an option\. Nothing was run"):
        arguments([template], {"a": value, "b": ""})


@pytest.mark.parametrize("template", [["--", "{{a}}"], ["--regexp={{a}}"], ["-e{{a}}"], ["-{{a}}"], ["x{{a}}"]])
def test_value_with_leading_dash_is_passed_if_unambiguous(template):
    """After `--`, and behind text that belongs to the token."""
    assert arguments([template], {"a": "-rf"})[-1].endswith("-rf")
    assert arguments([["--"], ["{{a}}"]], {"a": "-rf"}) == ["--", "-rf"]


def test_two_lists_in_one_token_are_refused():
    """It would be unclear which values belong together."""
    with pytest.raises(ToolError, match="two lists"):
        arguments([["{{a}}{{b}}"]], {"a": ["1"], "b": ["2"]})


# ----------------------------------------------------------------------- schemas


@pytest.fixture
def workspace(tmp_path):
    """One tool that prints its arguments, with a schema for each kind of mistake."""
    shell_tool = entry(
        [["{{name}}"], ["{{count}}"], ["{{kind}}"], ["{{tags}}"], ["{{options}}"]],
        {
            "name": {"type": "string", "pattern": "^[a-z]+$"},
            "count": {"type": "integer", "minimum": 1},
            "kind": {"enum": ["one", "two"]},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "options": {"$ref": "#/$defs/options"},
        },
        required=["name"],
    )
    with Workspace(tmp_path, make_dialect([shell_tool]), approve="yolo") as workspace:
        yield workspace


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ({"name": "a"}, "a"),
        ({"name": "a", "count": "3"}, "a 3"),
        ({"name": "a", "tags": "x"}, "a x"),
        ({"name": "a", "count": None, "kind": "two"}, "a two"),
        ({"name": "a", "unknown": 1}, "a\n(note: T has no argument 'unknown'; it was ignored)"),
        ({"arguments": {"name": "a"}}, "a"),
    ],
)
def test_arguments_that_fit(workspace, given, printed):
    """C139: types are converted without loss. Optional arguments may be missing or null."""
    result = workspace.run("T", given)
    assert (result.ok, result.content) == (True, printed)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "'name' is missing (string)"),
        ({"name": "a", "count": 0}, "'count': 0 is less than the minimum of 1"),
        ({"name": "a", "count": "many"}, "'count': 'many' is not of type 'integer'"),
        ({"name": "A"}, "'name': 'A' does not match '^[a-z]+$'"),
        ({"name": "a", "kind": "three"}, "'kind': 'three' is not one of ['one', 'two']"),
        ({"name": "a", "tags": ["x", {}]}, "'tags.1': {} is not of type 'string'"),
        ({"name": "a", "tags": ["x", "y", "z"]}, "is too long"),
        ({"name": "A" * 9_999}, "'name': 'AAA"),
    ],
)
def test_arguments_that_do_not_fit_are_named(workspace, given, says):
    """With the tool, the argument and the expected type. Nothing is run, and long values are shortened."""
    result = workspace.run("T", given)
    assert not result.ok
    assert says in result.content
    assert "T: " in result.content
    assert len(result.content) < 1_000


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": None}, "'name': must be a string"),
        ({"name": "a b"}, "'name': must match pattern"),
        ({"executable": ""}, "'executable': must have at least 1 character"),
        ({"executable": ...}, "'executable' is missing"),
        ({"optin": True}, "unknown field 'optin'; did you mean 'optIn'?"),
        ({"zzz": True}, "unknown field 'zzz'; expected one of ['name', 'description', 'executable'"),
        ({"optIn": "yes"}, "'optIn': must be a boolean"),
        ({"argumentTemplate": ["a"]}, "'argumentTemplate[0]': must be a list"),
        ({"argumentTemplate": [["{(pth)}"]]}, "argumentTemplate[0]: the placeholder in '{(pth)}' is not one of its "),
        ({"argumentTemplate": [["{(pth)}"]]}, "(did you mean 'path'?)"),
        ({"parameters": {"type": "array"}}, "'parameters': describes 'array'; expected an object"),
        ({"parameters": {"properties": {"path": {"type": "strin"}}}}, "'parameters': is not a valid JSON Schema: prop"),
        ({"parameters": {"properties": {"path": {"pattern": "("}}}}, "'parameters': is not a valid JSON Schema: prop"),
        (
            {"parameters": {"properties": {"path": {}}, "required": ["pat"]}},
            "requires 'pat', which is not one of its par",
        ),
    ],
)
def test_a_wrong_entry_names_file_tool_and_field(change, says):
    """So that the author of the file can correct it."""
    wrong = {key: value for key, value in (SHOW_FILE_TREE | change).items() if value is not ...}
    with pytest.raises(UsageError) as caught:
        parse_entries(json.dumps({"shellCommands": [SHOW_FILE_TREE | {"name": "Other"}, wrong]}), "my/tools.json")
    message = str(caught.value)
    assert message.startswith("my/tools.json, tool 2")
    assert says in message
    if isinstance(wrong.get("name"), str):
        assert f"({wrong['name']})" in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not valid JSON"),
        ("5", "must contain"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"shellCommands": 5}', "must contain"),
    ],
)
def test_file_without_tools_is_an_error_with_the_expected_form(text, says):
    """Without a traceback."""
    with pytest.raises(UsageError, match=says):
        parse_entries(text, "tools.json")


def test_tool_names_are_unique_in_a_file():
    """C132: it is unique in a file."""
    with pytest.raises(UsageError, match="defines 'ShowFileTree' more than once"):
        parse_entries(json.dumps([SHOW_FILE_TREE, SHOW_FILE_TREE]), "tools.json")


def test_all_forms_of_a_file_are_read():
    """As the program writes it, as a list, and as in the document's example."""
    for content in ({"shellCommands": [SHOW_FILE_TREE]}, [SHOW_FILE_TREE], SHOW_FILE_TREE):
        (tool,) = parse_entries(json.dumps(content), "tools.json")
        assert tool.model_dump(by_alias=True, exclude_defaults=True, mode="json") == SHOW_FILE_TREE


def test_no_reference_of_a_schema_is_fetched():
    """A remote reference accepts anything, as in all schemas."""
    shell_tool = entry([["{{a}}"]], {"a": {"$ref": "http://127.0.0.1:9/schema"}})
    assert shell_tool.validate_call({"a": "x"}).values == {"a": "x"}


# ------------------------------------------------------------------------ choosing


def chosen(entries, *filters):
    return list(make_dialect(entries, *filters).tools)


def test_opt_in_tools_wait_for_a_matching_include():
    """C124, C143, C125: include selects and enables, exclude is applied last. Case matters."""
    entries = [entry(name="ReadOne"), entry(name="ReadTwo", optIn=True), entry(name="Other")]
    built_in = [kind.naming.name for kind in BUILT_IN if kind is not RipGrepIncludingHidden]
    assert chosen(entries) == [*built_in, "ReadOne", "Other"]
    assert chosen(entries, ["Read"]) == ["ReadOne", "ReadTwo"]
    assert chosen(entries, ["Two", "Other"]) == ["ReadTwo", "Other"]
    assert chosen(entries, ["Read"], ["Two"]) == ["ReadOne"]
    assert chosen(entries, [], ["Read", "File", "Make", "Rip", "Line"]) == ["SearchAndReplace", "SearchText", "Other"]
    assert chosen(entries, [], ["read"]) == [*built_in, "ReadOne", "Other"]


def test_filters_that_leave_nothing_are_errors():
    """With the existing names."""
    with pytest.raises(UsageError, match=r"no tool's name contains 'Xy'; available: .*ReadOne"):
        make_dialect([entry(name="ReadOne")], ["Xy"])
    with pytest.raises(UsageError, match="include and exclude leave out every tool"):
        make_dialect([entry(name="ReadOne")], ["ReadOne"], ["Read"])


def test_the_first_of_a_name_counts():
    """Also over a built-in tool."""
    entries = [entry(name="X", description="first"), entry(name="X", description="second"), entry(name="WriteToFile")]
    tools = make_dialect(entries).tools
    assert tools["X"].description == "first"
    assert tools["WriteToFile"].effect == "execute"


def test_a_tool_that_is_not_loaded_cannot_be_called(tmp_path):
    """C120: only loaded tools are permitted."""
    with Workspace(tmp_path, make_dialect([entry(name="A"), entry(name="B")], ["A"]), approve="yolo") as workspace:
        assert workspace.run("A", {}).ok
        refused = workspace.run("B", {})
    assert not refused.ok
    assert "unknown tool 'B'" in refused.content


# ------------------------------------------------------------------------ running


def test_the_example_of_the_document_runs(tmp_path, monkeypatch):
    """C134, C141, C145: the program tree, its argument, its output after log slicing, and its result fields."""
    program = tmp_path / "bin" / "tree"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$# $1"\nseq 1 1000\necho trouble >&2\nexit 3\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    (tmp_path / "ws" / "src").mkdir(parents=True)
    dialect = make_dialect([parse_entry(SHOW_FILE_TREE, "tools.json")])
    with Workspace(tmp_path / "ws", dialect, approve="yolo") as workspace:
        result = workspace.run("ShowFileTree", {"path": f"{tmp_path}/ws/src"})
        assert result.ok
        assert result.content.startswith("Command failed with exit code 3:\n1 ./src\n")
        assert result.data is not None
        assert (result.data["exitCode"], result.data["skippedLines"], result.data["regex"]) == (3, 502, [])
        assert "[... 502 lines left out ...]" in result.data["output"]
        assert result.data["output"].endswith("trouble\n")
        outside = workspace.run("ShowFileTree", {"path": "/etc"})
        assert not outside.ok
        assert "outside the workspace" in outside.content


def test_calls_are_asked_for_with_the_very_arguments(tmp_path):
    """A program may do anything, so its calls need approval like commands."""
    questions, refuse = record_requests(answer=False)
    with Workspace(tmp_path, "promptly", approve=refuse) as workspace:
        assert not workspace.run("TouchFile", {"file": "new"}).ok
    assert [(question.effect, question.summary.rpartition("/touch")[2]) for question in questions] == [
        ("execute", " new")
    ]
    assert list(tmp_path.iterdir()) == []


def test_the_default_tools_work(tmp_path):
    """C146: each shipped tool whose program exists on every system, and the built-in ones."""
    with Workspace(tmp_path, "promptly", approve="yolo") as workspace:

        def run(name, **arguments):
            result = workspace.run(name, arguments)
            assert result.ok, result.content
            return result.content

        run("WriteToFile", file="a/b.txt", content="one\ntwo\n-three\nfour\n")
        assert (tmp_path / "a/b.txt").read_text() == "one\ntwo\n-three\nfour\n"
        run("SearchAndReplace", search="o", replace="0", file="a/b.txt")
        assert (tmp_path / "a/b.txt").read_text() == "0ne\ntw0\n-three\nf0ur\n"
        assert run("ShowFileContents", file="a/b.txt") == "0ne\ntw0\n-three\nf0ur\n"
        assert run("ShowFileContents", file="a/b.txt", startLine=1, lineCount=2) == "tw0\n-three\n"
        assert run("ShowFileContents", file="a/b.txt", startLine=3) == "f0ur\n"
        assert run("ShowFileContents", file="a/b.txt", lineCount=1) == "0ne\n"
        assert run("LineCount", file="a/b.txt") == "4 a/b.txt"
        assert run("SearchText", pattern="-t|f", path=".") == "a/b.txt:3:-three\na/b.txt:4:f0ur"
        run("TouchFile", file="-c")
        run("MakeDirectory", dir="x/y")
        run("MoveFiles", source="-c", destination="x/y/-c")
        run("CopyFiles", source="x", destination="z")
        assert sorted(run("FindFiles", pattern="?c", path=".").split()) == ["x/y/-c", "z/y/-c"]
        run("RemoveFiles", target="x")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "z"]
        assert "b.txt" in run("ListFiles", path="a")
        assert " z/" in run("ListFiles")
        assert (tmp_path / "z/y/-c").exists()


def test_reading_and_searching_need_no_program_and_cannot_be_flooded(tmp_path):
    """awk used the processor until its timeout, and rg gigabytes of memory."""
    with (tmp_path / "holes").open("wb") as file:
        file.write(b"first\nsecond\n")
        file.truncate(20 * 1024**3)
    (tmp_path / "line").write_bytes(b"needle " * 5_000_000)
    with Workspace(tmp_path, "promptly") as workspace:  # without approval
        shown = workspace.run("ShowFileContents", {"file": "holes", "startLine": 1, "lineCount": 1})
        assert (shown.ok, shown.content) == (
            False,
            "tool_error: holes is large (21474836480 bytes) and is not UTF-8 text; use a command instead",
        )
        shown = workspace.run("ShowFileContents", {"file": "line"})
        assert shown.ok
        assert shown.content.startswith(
            "Showing lines 1-1 of a large file (for more: startLine=1).\n---\nneedle needle"
        )
        assert len(shown.content) <= 51_200
        for tool, more in [("RipGrep", {}), ("RipGrepWithGlob", {"glob": ["l*", "!*.c"]}), ("SearchText", {})]:
            found = workspace.run(tool, {"pattern": "needle", "path": ".", **more})
            assert "line was not searched: 35000000 bytes, more than 4194304" in found.content
        assert workspace.run("LineCount", {"file": "line"}).content == "0 line"


def test_page_of_a_file_names_the_next_page(tmp_path):
    """In the tool's own terms: startLine is the number of lines to skip."""
    (tmp_path / "f").write_text("".join(f"{number}\n" for number in range(1, 2_501)))
    with Workspace(tmp_path, "promptly") as workspace:

        def run(**arguments):
            return workspace.run("ShowFileContents", {"file": "f", **arguments})

        assert run().content.startswith("Showing lines 1-2000 of 2500 (for more: startLine=2000).\n---\n1\n2\n")
        assert run(startLine=2_000).content == "".join(f"{number}\n" for number in range(2_001, 2_501))
        assert run(startLine=2, lineCount=2).content == "3\n4\n"
        assert run(startLine=2_499, lineCount=9).content == "2500\n"
        assert "line 2501 is beyond the end: f has 2500 lines" in run(startLine=2_500).content
        assert not run(startLine=-1).ok
        assert not run(lineCount=0).ok


def test_one_name_is_one_line(tmp_path):
    """A line break in a name creates no second entry, and a name cannot contain terminal escapes."""
    (tmp_path / "a\nb \x1b[2J").write_text("needle\n")
    (tmp_path / "d").mkdir()
    with Workspace(tmp_path, "promptly") as workspace:
        head, name, folder = workspace.run("ListFiles", {}).content.split("\n")
        assert head == "./"
        assert re.fullmatch(r" +7 \d{4}-\d\d-\d\d \d\d:\d\d a\\x0ab \\x1b\[2J", name)
        assert re.fullmatch(r" +- \d{4}-\d\d-\d\d \d\d:\d\d d/", folder)
        assert workspace.run("FindFiles", {"pattern": "*", "path": "."}).content == "a\\x0ab \\x1b[2J\nd"
        assert workspace.run("RipGrep", {"pattern": "n", "path": "."}).content == "a\\x0ab \\x1b[2J:1:needle"


def test_searches_skip_ignored_and_excluded_files(tmp_path):
    """Ignored files, and files that match a glob with a leading exclamation mark."""
    for name in ("a.c", "a_test.c", "build/o.c", "lib/b.c", ".git/x.c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    (tmp_path / ".gitignore").write_text("lib/\n")
    with Workspace(tmp_path, make_dialect([], ["Rip"])) as workspace:

        def found(tool, **more):
            return workspace.run(tool, {"pattern": "x", "path": ".", **more}).content.split("\n")

        assert found("RipGrep") == ["a.c:1:x", "a_test.c:1:x"]
        assert found("RipGrepWithGlob", glob=["*.c", "!*_test.c"]) == ["a.c:1:x"]
        assert found("RipGrepWithGlob", glob=["!*_test.c"]) == ["a.c:1:x"]
        everywhere = ["a.c:1:x", "a_test.c:1:x", "build/o.c:1:x", "lib/b.c:1:x"]
        assert found("RipGrepIncludingHidden") == everywhere


def test_the_shipped_entries_are_right():
    """They are parsed like other files, and no value is in a place where an option would be accepted."""
    names = [shell_tool.name for shell_tool in load_default_entries()]
    assert "ShowFileTree" in names
    assert "RipGrepIncludingHidden" not in DIALECT.tools
    assert "RipGrepIncludingHidden" in make_dialect(load_default_entries(), ["RipGrep"]).tools


def test_the_dialect_is_there_by_name_and_described():
    """In the registry, in prompts and in the parser."""
    dialect = get_dialect("promptly")
    assert dialect is DIALECT
    assert dialect.list_tool_names() == list(dialect.tools)
    prompt = system_prompt(make_dialect([entry([["{{a}}"]], {"a": {"type": "integer"}}, name="Mine")], ["Mine"]))
    assert "Mine(a?: integer)" in prompt
    (call,) = parse('<tool_call>{"name": "line_count", "arguments": {"path": "x"}}</tool_call>', dialect.tools).calls
    assert (call.name, call.arguments) == ("LineCount", {"file": "x"})


def test_an_entry_is_a_plain_definition():
    """C132, C133, C139: a model sees the entry's own name, description and parameters."""
    tool = ShellTool.model_validate(SHOW_FILE_TREE).build_tool()
    assert (tool.name, tool.description) == ("ShowFileTree", "Visual directory tree listing")
    assert tool.parameters == SHOW_FILE_TREE["parameters"]
