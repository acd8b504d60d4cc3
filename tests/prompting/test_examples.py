"""Which examples a small model is shown."""

from __future__ import annotations

import pytest

from adapter.dialects import get_dialect
from adapter.dialects.promptly import make_dialect
from adapter.dialects.promptly.entries import read_entry
from adapter.prompting.examples import EXAMPLES, Example, nearest, skeleton
from adapter.upstream.guidance import examples_for

NAMES = {example.tool for example in EXAMPLES}


def test_values_are_masked_before_comparing():
    assert skeleton("Change 'a b' to \"c\" in src/x.py!") == ["change", "_text_", "to", "_text_", "in", "_path_"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.request)
def test_an_example_is_nearest_to_itself(example):
    assert nearest(example.request, NAMES)[-1] == example


@pytest.mark.parametrize(
    ("request_text", "name"),
    [
        ("in lib.rs change 'let x = 5;' to 'let x = 10;'", "apply_edit"),
        ("show me src/lib.rs", "read_file"),
        ("search for FIXME in src", "grep_search"),
        ("list the files in src", "list_directory"),
        ("create a.txt with the text 'x'", "write_file"),
    ],
)
def test_the_nearest_example_comes_last(request_text, name):
    assert nearest(request_text, NAMES)[-1].tool == name


def test_only_offered_tools_are_shown_once_each():
    shown = nearest("anything", {"read_file", "write_file"})
    assert sorted(example.tool for example in shown) == ["read_file", "write_file"]


def test_no_value_stands_in_two_examples():
    """What is shown twice is copied."""
    values = [str(value) for example in EXAMPLES for value in example.arguments.values() if value != "."]
    assert len(values) == len(set(values))


def test_no_examples_are_no_trouble():
    assert nearest("x", NAMES, examples=()) == []
    assert nearest("", NAMES, examples=[Example("", "read_file", {})])[-1].tool == "read_file"


@pytest.mark.parametrize(
    ("dialect", "names"),
    [
        ("maki", {"read", "write", "edit", "grep", "bash"}),
        ("proxyai", {"Read", "Write", "Edit", "Bash"}),
        ("proto", {"read_file", "write_file", "edit", "grep_search", "list_directory"}),
    ],
)
def test_examples_speak_the_words_of_the_dialect(dialect, names):
    """Tool and argument names are its own, nothing required is missing, nothing is lost."""
    tools = get_dialect(dialect).tools
    examples = examples_for(tools)
    assert {example.tool for example in examples} == names
    edit = next(example for example in examples if example.tool.lower() == "edit")
    path = "path" if dialect == "maki" else "file_path"
    assert edit.arguments == {path: "setup.cfg", "old_string": "debug = 1", "new_string": "debug = 0"}
    for example in examples:
        tool = tools[example.tool]
        assert tool.validate is not None
        tool.validate(example.arguments)
    assert examples_for(get_dialect("blade").tools) == list(EXAMPLES)


def test_programs_and_an_edit_of_every_place_have_examples_too():
    """Promptly's only edit replaces wherever the text occurs; its programs read, search and list."""
    tools = get_dialect("promptly").tools
    examples = examples_for(tools)
    assert {example.tool for example in examples} == {
        "ShowFileContents", "WriteToFile", "SearchAndReplace", "SearchText", "ListFiles",
    }  # fmt: skip
    edit = next(example for example in examples if example.tool == "SearchAndReplace")
    assert edit.arguments == {"file": "setup.cfg", "search": "debug = 1", "replace": "debug = 0"}
    for example in examples:
        validate = tools[example.tool].validate
        assert validate is not None
        validate(example.arguments).operation()


def test_a_program_of_the_users_own_gets_no_foreign_arguments():
    """One called ShowFileContents that takes something else is not shown with a file."""
    entry = {"name": "ShowFileContents", "executable": "cat", "parameters": {"properties": {"what": {}}}}
    tools = make_dialect([read_entry(entry, "tools.json")]).tools
    assert "ShowFileContents" not in {example.tool for example in examples_for(tools)}
