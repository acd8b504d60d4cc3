"""The change of a file that a request asks for, and the tools that make it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.conversation.guardrails.requested_file_changes import (
    find_change_tools,
    find_next_tools,
    find_started_action,
    find_tools_for_omitted_change,
    list_known_lines,
    list_result_lines,
    loses_text,
)
from adapter.conversation.guardrails.unused_tool import find_unused_tool
from adapter.dialects import get_dialect


def test_call_of_a_tool_for_the_change_makes_it():
    """Also if the tool does not declare that it changes something."""
    tools, written = get_dialect("blade").tools, PastCall("write_file", {"path": "a.md", "content": "x"}, "written")
    for calls, next_tools in (((written,), ()), ((), ("write_file",))):
        history = CallHistory("Write a file a.md with x. What is its checksum?", calls)
        assert find_tools_for_omitted_change("It is 7.", history, tools) == next_tools


@pytest.mark.parametrize("name", ["blade", "maki", "promptly", "proxyai", "proto"])
def test_each_dialect_has_tools_for_a_change(name):
    """They are recognized by their parameters."""
    tools = get_dialect(name).tools
    assert find_change_tools(CallHistory("Fix the typo in a.md"), tools)
    assert find_change_tools(CallHistory("Create a.md"), tools)


@pytest.mark.parametrize(
    ("line", "text"),
    [("  3: a = 1", "a = 1"), ("src/a.py:12:a = 1", "a = 1"), ("a: 1", "a: 1"), ("http://b.c:80/", "http://b.c:80/")],
)
def test_lines_of_results_are_known_without_their_positions(line, text):
    """A small model was limited to edits of lines as a search shows them."""
    assert list_result_lines(line) == [text]
    assert list_result_lines("File: b.md\nLines 1-3 (of 3):\n1: one\n2: \n3: two") == ["one", "", "two"]


def test_lines_of_a_file_are_known_by_its_path_with_a_dot():
    read = PastCall("read_file", {"path": "./a.md"}, "one\ntwo")
    assert [*list_known_lines("a.md", CallHistory("Fix a.md", (read,)))] == ["one", "two"]


def test_failed_command_makes_no_change():
    tools, text = get_dialect("blade").tools, "Command failed with exit code 1:\ncp: cannot stat 'b/a.md'"
    failed = PastCall("run_command", {"command": "cp b/a.md b/a.md"}, text, changes=True)
    history = CallHistory("Move a.md to b/a.md", (failed,))
    assert find_tools_for_omitted_change("I marked it.", history, tools) == ("move_file",)
    assert not find_tools_for_omitted_change("Moved.", replace(history, calls=(replace(failed, result=""),)), tools)


def test_missing_file_is_created_to_add_something():
    tools, request = get_dialect("blade").tools, "Put the password into wifi.txt: x"
    missing = PastCall("read_file", {"path": "wifi.txt"}, "tool_error: wifi.txt does not exist", ok=False)
    assert find_next_tools(CallHistory(request, (missing,)), tools) == ("write_file",)
    text = replace(missing, result="tool_error: wifi.txt: old_content was not found")
    for other in (replace(missing, result="tool_error: a.txt does not exist"), replace(missing, ok=True), text):
        assert find_next_tools(CallHistory(request, (other,)), tools) == ("edit_file", "apply_edit")


def test_file_that_is_left_is_read_before_it_is_changed():
    """The other file of the request was changed already."""
    tools, request = get_dialect("blade").tools, "Rename f to g in a.py and in b.py"
    edit = PastCall("edit_file", {"path": "a.py", "old_content": "f", "new_content": "g"}, changes=True)
    read = PastCall("read_file", {"path": "b.py"}, "f()")
    assert find_next_tools(CallHistory(request, (edit,)), tools) == ("read_file",)
    assert find_next_tools(CallHistory(request, (edit, read)), tools) == ("edit_file", "apply_edit")


@pytest.mark.parametrize(
    ("path", "tools"),
    [("sign_in_a.txt", ("read_file",)), ("./a.txt", ("edit_file", "apply_edit")), ("a.txt.bak", ("read_file",))],
)
def test_file_is_not_read_by_a_name_that_contains_its_own(path, tools):
    """Qwen2.5-Coder-0.5B made up a file, and had to edit the real one unread."""
    read = PastCall("read_file", {"path": path}, "text", ok=path == "./a.txt")
    assert find_next_tools(CallHistory("Correct the sign in a.txt", (read,)), get_dialect("blade").tools) == tools


@pytest.mark.parametrize(
    ("request_", "arguments", "found"),
    [
        ("menu.txt says spagetti, shoud be spaghetti", {"path": "menu.txt", "old_text": "a", "new_text": "a"}, "edit"),
        ("i menu.txt, sätt porten till 35", {"path": "menu.txt", "old_text": "a", "new_text": "b"}, "edit"),
        ("i menu.txt, sätt porten till 35", {"path": "other.txt", "old_text": "a", "new_text": "b"}, ""),
        ("i menu.txt, sätt porten till 35", {"path": "menu.txt", "content": "b"}, ""),
        ("Flytta menu.txt till alt/", {"path": "alt", "old_text": "menu.txt", "new_text": "b"}, ""),
        ("Run menu.txt", {"path": "menu.txt", "old_text": "a", "new_text": "b"}, ""),
        ("Is the port in menu.txt 35?", {"path": "menu.txt", "old_text": "a", "new_text": "b"}, ""),
        ("Delete menu.txt", {"path": "menu.txt", "old_text": "a", "new_text": "b"}, "delete"),
    ],
)
def test_edit_that_the_model_began_shows_the_action(request_, arguments, found):
    """The request's verb may be at any place and in any language. A failed edit counts."""
    began = PastCall("apply_edit", arguments, "error: x", ok=False, changes=True)
    assert find_started_action(CallHistory(request_, (began,))) == found
    assert find_started_action(CallHistory(request_)) == ("delete" if found == "delete" else "")


@pytest.mark.parametrize(
    ("request_", "is_asked"),
    [
        ("run sh a.sh, what's missing?", True),
        ("Do the tests in a.py pass? Run them and tell me the error.", True),
        ("Please run `make`", True),
        ("Run me through a.sh", False),
    ],
)
def test_command_that_the_user_asks_for_is_run(request_, is_asked):
    """Instructions for the user are no result of a file, however long they are."""
    for content in ("Nothing is missing.", "Open a terminal, because you need one. " * 20):
        tool = find_unused_tool(content, CallHistory(request_), get_dialect("blade").tools)
        is_short = len(content) < 100
        assert (tool is not None and tool.name == "run_command") == (is_asked and (is_short or "a." in request_))


@pytest.mark.parametrize(
    ("classified", "is_lost"), [("", False), ("delete", False), ("rename", True), ("answer", True), ("move", True)]
)
def test_file_is_not_deleted_for_a_request_that_was_classified_otherwise(classified, is_lost):
    """Qwen2.5-Coder-0.5B deleted the second file instead of renaming the class in it."""
    history = CallHistory("The class Cat should be called Feline, in a.py and in b.py", classified=classified)
    for name, arguments in (
        ("delete_file", {"path": "b.py"}),
        ("move_file", {"source": "b.py", "destination": "c.py"}),
    ):
        call, is_allowed = PastCall(name, arguments, changes=True), name == "move_file" and classified == "move"
        assert loses_text(call, history, get_dialect("blade").tools) == (is_lost and not is_allowed)
