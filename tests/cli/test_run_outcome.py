"""The exit code and the last line of a run state the outcome."""

import pytest

from adapter.cli.call_tally import CallTally
from adapter.cli.change_flaws import parse_diff
from adapter.cli.run_outcome import NO_CALL_HINT, describe_run_outcome
from adapter.cli.run_task import _read_file
from adapter.conversation.session_steps import Finished
from adapter.core.events import InvalidToolCall, ToolCall, ToolResult
from adapter.dialects import get_dialect
from adapter.editing.syntax_check import NO_LONGER_PARSES

OK, FAILED = {"ok": True}, {"ok": False}
REFUSED = {"ok": False, "denied": True}
APPLIED = {"ok": False, "error": "a.md: already applied: new_text is already present at line 1"}
EQUAL = {"ok": False, "error": "a.md: no change: old_text and new_text are the same"}


def told(*results, reason="answered"):
    """Return the last line of a run with these results: (tool, outcome)."""
    tally = CallTally(get_dialect("blade").tools)
    for name, became in results:
        tally(InvalidToolCall("", "") if name is None else ToolResult(name, content="", **became))
    return describe_run_outcome(Finished(reason, ""), tally)


@pytest.mark.parametrize(
    ("results", "code", "line"),
    [
        ([], 0, f"the model answered without calling a tool: {NO_CALL_HINT}"),
        ([("read_file", OK)], 0, "the model is done: 1 call"),
        ([("read_file", FAILED)], 0, "the model is done: the call failed"),
        ([("read_file", OK), ("write_file", OK), ("apply_edit", FAILED)], 0, "the model is done: 3 calls, 1 failed"),
        ([("write_file", REFUSED), ("write_file", OK)], 0, "the model is done: 2 calls, 1 refused"),
        ([("write_file", REFUSED)], 1, "nothing was done: the call was refused"),
        ([("run_command", REFUSED), ("write_file", REFUSED)], 1, "nothing was done: all 2 calls were refused"),
        ([("read_file", OK), ("write_file", REFUSED)], 1, "nothing was done: 2 calls, 1 refused"),
        ([("read_file", REFUSED)], 1, "nothing was done: the call was refused"),
        ([("read_file", OK), ("read_file", REFUSED)], 0, "the model is done: 2 calls, 1 refused"),
        ([("apply_edit", FAILED), ("read_file", OK), ("apply_edit", FAILED)], 1, "nothing was done: 3 calls, 2 failed"),
        ([("delete_file", FAILED), ("write_file", REFUSED)], 1, "nothing was done: 2 calls, 1 refused, 1 failed"),
    ],
)
def test_run_without_a_successful_change_fails(results, code, line):
    """A failed read is acceptable; a refused change is not."""
    assert told(*results) == (code, line)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("I have created notes.md.", 1),
        ("The file was successfully updated.", 1),
        ("It was created in 2020.", 0),
        ("The title is fixed.", 0),
    ],
)
def test_claimed_change_without_a_change_fails(answer, code):
    """After calls that only read. Without any call, the answer may be about something else."""
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolResult("read_file", content="", ok=True))
    found, line = describe_run_outcome(Finished("answered", answer), tally)
    assert found == code
    assert line.startswith("nothing was changed" if code else "the model is done")


@pytest.mark.parametrize(
    ("task", "tool", "code"),
    [
        ("In config.json set port to 8080.", "read_file", 1),
        ("Add banana to the list in shop.yaml", "list_directory", 1),
        ("In config.json set port to 8080.", "apply_edit", 0),
        ("Show what was added to a.py", "read_file", 0),
        ("Which setting should I change?", "read_file", 0),
        ("", "read_file", 0),
    ],
)
def test_single_reading_call_fails_for_a_requested_change(task, tool, code):
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolResult(tool, content="", ok=True))
    found, line = describe_run_outcome(Finished("finished", ""), tally, task)
    assert (found, line.startswith("nothing was changed")) == (code, bool(code))


def test_run_with_only_invalid_calls_fails():
    code, line = told((None, None))
    assert code == 1
    assert line.startswith("nothing was done: the model's call could not be parsed: try")


@pytest.mark.parametrize(
    ("reason", "results", "code", "line"),
    [
        ("exited", [("write_file", OK)], 0, "the model ended the run, after 1 call"),
        ("finished", [("write_file", OK)], 0, "the call was made; this model is limited to one call per request"),
        (
            "unsuccessful",
            [("read_file", FAILED)],
            1,
            "the call failed; this model is limited to one call per request: name",
        ),
        ("unsuccessful", [("write_file", REFUSED)], 1, "nothing was done: the call was refused"),
        ("repetition", [("read_file", OK), ("apply_edit", OK)], 0, "the change was made: 2 calls"),
        ("stuck", [("write_file", OK)], 0, "the change was made: 1 call"),
        ("repetition", [("run_command", OK)], 0, "the command was run: 1 call"),
        ("repetition", [("write_file", OK), ("apply_edit", FAILED)], 1, "the model kept repeating the same call"),
        ("repetition", [("write_file", OK), ("apply_edit", EQUAL)], 0, "the change was made: 2 calls, 1 failed"),
        ("repetition", [("apply_edit", OK), ("apply_edit", APPLIED)], 0, "the change was made: 2 calls, 1 failed"),
        ("repetition", [("apply_edit", EQUAL)], 1, "the model kept repeating the same call, after the call failed"),
        ("repetition", [("read_file", OK)], 1, "the model kept repeating the same call, after 1 call"),
        ("turns", [("write_file", OK)], 1, "the limit of turns was reached, after 1 call: raise --max-turns"),
        ("interrupted", [], 130, "stopped by the user"),
        ("interrupted", [("write_file", OK)], 130, "stopped by the user, after 1 call"),
    ],
)
def test_ending_reports_reason_and_counts(reason, results, code, line):
    found, output = told(*results, reason=reason)
    assert found == code
    assert output.startswith(line)


@pytest.mark.parametrize(
    ("task", "left"),
    [
        ("Rename the function greet to hello in a.py and in b.py", "b.py"),
        ('Replace "greet" with "hello" in a.py, and {{year}} with 2026', "{{year}}"),
        ("Rename the function greet to hello in a.py, at line 3", ""),
        ('Replace "greet" with "hello" in a.py, as in version 3', ""),
        ("In a.py, set greet to 5", "5"),
        ("Rename the function greet to hello", ""),
    ],
)
def test_run_that_makes_a_part_of_the_change_fails(task, left):
    """A small model repeated its first edit."""
    tally = CallTally(get_dialect("blade").tools)
    edit = {"path": "a.py", "old_text": "greet", "new_text": "hello"}
    tally(ToolCall("c1", "apply_edit", edit, ""))
    tally(ToolResult("apply_edit", content="", ok=True, call_id="c1"))
    code, line = describe_run_outcome(Finished("repetition", ""), tally, task)
    assert (code, line) == (
        (1, f"the change is incomplete; left to change: {left} (1 call)")
        if left
        else (0, "the change was made: 1 call")
    )


@pytest.mark.parametrize(
    ("task", "code"),
    [
        ("Add banana to the list in shop.yaml", 1),
        ("Fix the typo in a.md, please.", 1),
        ("Write a summary of a.md", 0),
        ("Which typo is in a.md?", 0),
        ("Change my mind", 0),
    ],
)
def test_answer_without_the_requested_change_fails(task, code):
    """`Qwen2.5-Coder-0.5B` read the file and showed it."""
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolResult("read_file", content="", ok=True))
    found, line = describe_run_outcome(Finished("answered", "- apple"), tally, task)
    assert (found, line.startswith("nothing was changed: 1 call: ")) == (code, bool(code))


@pytest.mark.parametrize(
    ("calls", "task", "code"), [(0, "Turn debug off in a.json.", 1), (0, "Turn it off.", 0), (1, "Show a.json.", 0)]
)
def test_answer_without_a_call_fails_if_the_task_names_a_file(calls, task, code):
    """`Qwen2.5-Coder-0.5B` wrote the new text of the file as its answer."""
    tally = CallTally(get_dialect("blade").tools)
    for _ in range(calls):
        tally(ToolResult("read_file", content="", ok=True))
    found, line = describe_run_outcome(
        Finished("answered", "{}"), tally, task, lambda path: "{}" if path == "a.json" else ""
    )
    assert (found, line.startswith("nothing was done")) == (code, bool(code))


EDIT = {"path": "a.py", "old_text": "def greet():", "new_text": "def hello():"}


@pytest.mark.parametrize(
    ("task", "edit", "text", "left"),
    [
        ("Rename the function greet to hello in a.py", EDIT, "def hello(): ...\ngreet()", "greet in a.py"),
        ("Rename the function greet to hello in a.py", EDIT, "def hello(): ...\nhello()", ""),
        ("Rename the function greet to hello in a.py", EDIT, "def hello(): ...\ngreet_all()", ""),
        ("In a.py, replace {{one}} with 1", {**EDIT, "new_text": "1"}, "{{one}}", "{{one}} in a.py"),
        ("Add {{one}} to a.py", {**EDIT, "new_text": "def greet(): {{one}}"}, "{{one}}", ""),
        ("In a.py, change greet to hello in line 1", EDIT, "def hello(): ...\ngreet()", ""),
        ("Fix a.py: greet fails", {**EDIT, "new_text": "def greet(): ..."}, "greet", ""),
    ],
)
def test_old_name_that_still_stands_is_left(task, edit, text, left):
    """A small model renamed a function, but not its use."""
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolCall("c1", "apply_edit", edit, ""))
    tally(ToolResult("apply_edit", content="", ok=True, call_id="c1"))
    code, line = describe_run_outcome(Finished("answered", "Done."), tally, task, lambda _: text)
    assert (code, line) == (
        (1, f"the change is incomplete; left to change: {left} (1 call)") if left else (0, "the model is done: 1 call")
    )


@pytest.mark.parametrize(
    ("task", "left"),
    [
        ("fn greet is a dumb name, make it say_hello in a.py", "say_hello"),
        ("make greet start_up in a.py", ""),
        ("use snake_case in a.py", ""),
        ("the test in test_a.py fails, fix greet in a.py", ""),
        ("fix greet, see the note about read_only in a.py", ""),
        ("In a.py, add staging to the environments list", "staging"),
        ("Add Start to the list of names in a.py", ""),
        ("Add it to the list in a.py", ""),
        ("Add a test to the list in a.py", ""),
    ],
)
def test_name_of_code_that_no_change_has_is_left(task, left):
    """`Qwen2.5-Coder-0.5B` changed a number in place of a name."""
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolCall("c1", "apply_edit", EDIT, ""))
    tally(ToolResult("apply_edit", content="", ok=True, call_id="c1"))
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-1.19\n+start_up(1.20)\n"
    text = "start_up(1.20)  # read_only"
    code, line = describe_run_outcome(Finished("answered", "Done."), tally, task, lambda _: text, diff)
    assert (code, line) == (
        (1, f"the change is incomplete; left to change: {left} (1 call)") if left else (0, "the model is done: 1 call")
    )


@pytest.mark.parametrize(
    ("task", "left"),
    [
        ("dans a.json mets le volume à 35", "35"),
        ('Set "retries" to 5 in a.json.', '"retries"'),
        ('Füge "banana" zu a.json hinzu', '"banana"'),
        (".env: PORT should be 5050", "5050"),
        ("In a.json, set the volume to 30", ""),
        ("Indent a.json with 4 spaces", ""),
        ("In a.json, increase the volume by 20", ""),
        ("Change line 7 of a.json", ""),
        ('Fix the "odd text" in a.json', ""),
        ("Make the program in a.py wait until 35", ""),
    ],
)
def test_value_that_a_file_of_settings_does_not_have_is_left(task, left):
    """A small model changed another key. Other files need not contain the values of the task."""
    tally = CallTally(get_dialect("blade").tools)
    edit = {"path": "a.json", "old_text": '"loud": false', "new_text": '"loud": true'}
    tally(ToolCall("c1", "apply_edit", edit, ""))
    tally(ToolResult("apply_edit", content="", ok=True, call_id="c1"))
    diff = '--- a/a.json\n+++ b/a.json\n@@ -1 +1 @@\n-"loud": false\n+"loud": true\n'
    done = describe_run_outcome(
        Finished("answered", "Done."), tally, task, lambda _: '"loud": true\n"volume": 30', diff
    )
    assert done[0] == bool(left)
    assert left.strip('"') in done[1]


@pytest.mark.parametrize(
    ("task", "left"),
    [
        ("a.conf: da steht litsen, muss listen heißen", "litsen in a.conf"),
        ("in a.conf ist ein tippfehler, litsen statt listen", "litsen in a.conf"),
        ("a.conf: PORT should be 5050", "5050"),
        ("Run b.py and save what it prints in b.txt", "b.txt"),
        ("Die Ausgabe von b.py bitte in b.txt speichern", "b.txt"),
        ("Weißt du, ob a.conf litsen oder listen hat?", ""),
        ("Show me the PORT of a.conf, which may be 5050", ""),
        ("zeig mir a.conf", ""),
        ("fasse a.conf in 20 Worten zusammen", ""),
        ("a.conf: the litsen line", ""),
        ("Explain the litsens of a.conf", ""),
        ("Explain Node.js", ""),
    ],
)
@pytest.mark.parametrize("is_changed", [False, True])
def test_task_that_was_not_done_fails_in_any_language(task, left, is_changed):
    """A small model only read a file, or changed another one."""
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolResult("read_file", content="litsen 80", ok=True))
    if is_changed:
        tally(ToolCall("c1", "edit_file", {"path": "c.md", "old_content": "one", "new_content": "two"}, ""))
        tally(ToolResult("edit_file", content="", ok=True, call_id="c1"))
    files = {"a.conf": "litsen 80", "b.py": "print(1)"}
    diff = "--- a/c.md\n+++ b/c.md\n@@ -1 +1 @@\n-one\n+two\n" if is_changed else ""
    done = Finished("answered", "It is done.")
    code, line = describe_run_outcome(done, tally, task, lambda path: files.get(path, ""), diff)
    assert code == bool(left)
    assert left in line


@pytest.mark.parametrize(("new", "code"), [("- one", 1), ("- log in", 0), ("* Log in.", 0)])
def test_list_item_of_the_task_is_added(new, code):
    """A small model repeated the items of the list."""
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolCall("c1", "edit_file", {"path": "a.md", "old_content": "- one", "new_content": "- one"}, ""))
    tally(ToolResult("edit_file", content="", ok=True, call_id="c1"))
    diff = f"--- a/a.md\n+++ b/a.md\n@@ -1 +1,2 @@\n - one\n+{new}\n"
    task = "Could you append this to the list in a.md? It is: - log in"
    done = Finished("answered", "Done.")
    assert describe_run_outcome(done, tally, task, lambda _: f"- one\n{new}", diff)[0] == code


@pytest.mark.parametrize(("new", "left"), [("June", "4"), ("June 4", "")])
def test_number_to_fill_in_is_left(new, left):
    """A small model wrote only a part of the value."""
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolCall("c1", "edit_file", {"path": "a.txt", "old_content": "on DATE", "new_content": f"on {new}"}, ""))
    tally(ToolResult("edit_file", content="", ok=True, call_id="c1"))
    diff = f"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-on DATE\n+on {new}\n"
    done, task = Finished("repetition", ""), "Fill in a.txt: DATE is June 4."
    assert describe_run_outcome(done, tally, task, lambda _: f"on {new}", diff)[0] == bool(left)


@pytest.mark.parametrize(
    ("task", "text", "left"),
    [
        ("Das Fest ist am 21. Juni statt am 14. Juni. Ändere a.txt und b.txt.", "am 14. Juli", "14 in b.txt"),
        ("Das Fest ist am 21. Juni statt am 14. Juni. Ändere a.txt und b.txt.", "am 21. Juli", ""),
        ("Change 14 to 21 in a.txt. Also see b.txt.", "on 14", "14 in b.txt"),
        ("Change 14 to 21 in a.txt", "on 14", ""),
    ],
)
def test_number_that_was_replaced_in_another_file_is_left(task, text, left):
    """Also if this file was changed in another way."""
    tally = CallTally(get_dialect("blade").tools)
    diffs = []
    for path, old, new in (("a.txt", "am 14. Juni", "am 21. Juni"), ("b.txt", "old title", "new title")):
        tally(ToolCall(path, "edit_file", {"path": path, "old_content": old, "new_content": new}, ""))
        tally(ToolResult("edit_file", content="", ok=True, call_id=path))
        diffs.append(f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n")
    texts = {"a.txt": "am 21. Juni", "b.txt": text}
    done = Finished("answered", "Done.")
    code, line = describe_run_outcome(done, tally, task, lambda path: texts.get(path, ""), "".join(diffs))
    assert (code, left in line) == (int(left != ""), True), line


LOST = "a.txt lost a line that the task does not mention (build/)"


@pytest.mark.parametrize(
    ("task", "new", "reason", "line"),
    [
        ("Add *.pyc to a.txt", "", "stuck", "nothing was added (1 call)"),
        ("Add *.pyc to a.txt", "", "answered", "nothing was added (1 call)"),
        ("Füge eine Zeile zu a.txt hinzu", "", "answered", "nothing was added (1 call)"),
        ("Add *.pyc to a.txt", "\n+*.log", "stuck", "no change has a word of the task (1 call)"),
        ("Add *.pyc to a.txt", "\n+list/", "answered", f"{LOST} (1 call)"),
        ("Add retries to a.txt", "\n+build/a", "answered", "the model is done: 1 call"),
        ("Add a retry to a.txt", "\n+for _ in range(3):\n+    go()", "answered", "the model is done: 1 call"),
        ("Add *.pyc to a.txt", "\n+build/\n+*.pyc", "stuck", "the change was made: 1 call"),
        ("Fix the typo in a.txt", "\n+built", "stuck", "no change has a word of the task (1 call)"),
        ("Fix the typo in a.txt", "\n+built", "answered", "the model is done: 1 call"),
        ("Remove the build folder from a.txt", "", "stuck", "the change was made: 1 call"),
    ],
)
def test_addition_adds_text_of_the_task(task, new, reason, line):
    """`Qwen2.5-Coder-0.5B` removed a line from a file to which it was to add one, and then wrote only null."""
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolCall("c1", "edit_file", {"path": "a.txt", "old_content": "build/", "new_content": ""}, ""))
    tally(ToolResult("edit_file", content="", ok=True, call_id="c1"))
    diff = f"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-build/{new}\n"
    assert describe_run_outcome(Finished(reason, ""), tally, task, lambda _: "", diff)[1] == line


def test_file_that_is_left_is_named_once():
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolCall("c1", "apply_edit", EDIT, ""))
    tally(ToolResult("apply_edit", content="", ok=True, call_id="c1"))
    task = "Rename the function greet to hello in a.py and in b.py"
    _, line = describe_run_outcome(Finished("repetition", ""), tally, task, lambda _: "greet()")
    assert line == "the change is incomplete; left to change: greet in a.py, greet in b.py (1 call)"


def test_file_that_no_longer_parses_fails():
    """Until a later change repairs it. One that leaves it as it is has no note."""
    tally = CallTally(get_dialect("blade").tools)
    texts = ["Applied. (note: line 2 no longer parses: x)", "Applied 1 patch.", "Applied 1 patch."]
    for number, (content, text) in enumerate(zip(texts, ["Box A:", "Box B:", "class B: ..."], strict=True), start=1):
        tally(ToolCall(str(number), "apply_edit", EDIT, ""))
        tally(ToolResult("apply_edit", content=content, ok=True, call_id=str(number)))
        done = Finished("answered", "Done.")
        code, line = describe_run_outcome(done, tally, "Edit a.py", {"a.py": text}.__getitem__)
        assert (code, "no longer parses" in line) == (int(number < 3), number < 3)


@pytest.mark.parametrize(("diff", "code"), [("", 1), ("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n", 0), (None, 0)])
def test_changes_that_undo_each_other_are_no_change(diff, code):
    """A small model added an item in place of another one, and put that back."""
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolCall("c1", "apply_edit", EDIT, ""))
    tally(ToolResult("apply_edit", content="", ok=True, call_id="c1"))
    assert describe_run_outcome(Finished("stuck", ""), tally, "Edit a.py: y", diff=diff)[0] == code


PORT, DEBUG = '  "port": 8080,', '  "debug": true,'


@pytest.mark.parametrize(
    ("task", "removed", "added", "flaw"),
    [
        # the new text is invented
        ("Write the word copper into a new file a.txt", [], ["This is a test file."], "no word of the task"),
        ("Write the word copper into a new file a.txt", [], ["copper"], ""),
        ("Create a.txt with the text: read me", [], ["read me"], ""),
        ("Erstelle a.txt mit dem Text: Milch kaufen", [], ["Dieses Dokument ist leer."], "no word of the task"),
        ("Create a.txt, a program that greets the world", [], ['print("Hello, world")'], ""),
        ("Summarize the notes in a.txt", [], ["word " * 60], ""),
        ("Create an empty a.txt", [], [], ""),
        ("Create a.txt with a haiku about spring", [], ["Cherry blossoms fall"], ""),
        ("Copy the version into a.txt", [], ["v7 osprey"], ""),
        # lines are lost
        ("Set the port to 9090 in a.txt", [PORT, DEBUG], ['  "port": 9090,'], 'not mention ("debug": true,)'),
        ("Set the port to 9090 in a.txt", [PORT], ['  "port": 9090,'], ""),
        ("Turn debug off in a.txt", [DEBUG], ['  "debug": false,'], ""),
        ("Put linux on the list in a.txt", ["  - macos"], ["  - linux"], "lost a line"),
        ("Add linux to the list in a.txt, after windows", ["  - windows"], ["  - linux"], "lost a line"),
        ("Add linux to the list in a.txt", ["os: [macos]"], ["os: [macos, linux]"], ""),
        ("Replace all of a.txt with: hello", ["one", "two"], ["hello"], ""),
        ("Use pathlib in a.txt", ["import os"], ["from pathlib import Path", "Path().glob()"], ""),
        # another number
        ("Mets le volume à 35 dans a.txt", ["volume: 80"], ["volume: 53"], "got 53, which is not in the task"),
        ("Mets le volume à 35 dans a.txt", ["volume: 80"], ["volume: 35"], ""),
        ("Add 2 tests to a.txt", ["..."], ["assert double(3) == 6", "assert double(4) == 8"], ""),
        ("Increase the version in a.txt", ["version: 7"], ["version: 8"], ""),
    ],
)  # fmt: skip
def test_change_that_the_task_does_not_explain_fails(task, removed, added, flaw):
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolResult("read_file", content="version: v7-osprey", ok=True))
    tally(ToolCall("c1", "write_file", {"path": "a.txt"}, ""))
    tally(ToolResult("write_file", content="", ok=True, call_id="c1"))
    lines = [*(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    diff = "\n".join(["--- a/a.txt", "+++ b/a.txt", "@@ -0,0 +1 @@" if not removed else "@@ -1 +1 @@", *lines, ""])
    code, line = describe_run_outcome(Finished("answered", "Done."), tally, task, diff=diff)
    assert (code, flaw in line) == (int(flaw != ""), True), line


CHANGED = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-cnt: NAME [DAY]\n+{new}\n"


@pytest.mark.parametrize(
    ("task", "new", "texts", "left"),
    [
        ("cnt in a.txt and b.txt should be counter", "counter: NAME [DAY]", {"b.txt": "use cnt"}, "cnt in b.txt"),
        ("cnt in a.txt and b.txt should be counter", "counter: NAME [DAY]", {"b.txt": "use counter"}, ""),
        ("Remove cnt from a.txt, b.txt defines it", "NAME [DAY]", {"b.txt": "cnt = 1"}, ""),
        ("a.txt: NAME is Ole, [DAY] is Monday", "cnt: Ole [DAY]", {"a.txt": "cnt: Ole [DAY]"}, "[DAY] in a.txt"),
        ("a.txt: [DAY] es lunes, NAME es Ole", "cnt: NAME, algo", {"a.txt": "cnt: NAME, algo"}, "NAME in a.txt"),
        ("a.txt: NAME is Ole, [DAY] is Monday", "cnt: Ole Monday", {"a.txt": "cnt: Ole Monday"}, ""),
        ("Explain NAME in a.txt, see [DAY]", "cnt: who works [DAY]", {"a.txt": "cnt: who works [DAY]"}, ""),
        ("In a.txt, NAME is replaced by OTHER", "cnt: OTHER", {"a.txt": "cnt: OTHER"}, ""),
        ("Fill in a.txt: NAME is Ole", "NAME is Ole", {"a.txt": "NAME is Ole"}, "NAME in a.txt"),
        ("Fill in a.txt: NAME is Ole", "cnt: Ole [DAY]", {"a.txt": "cnt: Ole [DAY]"}, ""),
        ("Fill in a.txt: NAME is Ole, like the TODO says", "cnt: Ole [DAY]", {"a.txt": "cnt: Ole TODO"}, ""),
        ("In a.txt, rename cnt; keep NAME and [DAY]", "count: NAME [DAY]", {"a.txt": "count: NAME [DAY]"}, ""),
    ],
)
def test_one_of_two_changes_fails(task, new, texts, left):
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolCall("c1", "write_file", {"path": "a.txt"}, ""))
    tally(ToolResult("write_file", content="", ok=True, call_id="c1"))
    done, diff = Finished("answered", "Done."), CHANGED.replace("{new}", new)
    code, line = describe_run_outcome(done, tally, task, lambda path: texts.get(path, ""), diff)
    expected = f"the change is incomplete; left to change: {left} (1 call)" if left else "the model is done: 1 call"
    assert (code, line) == (int(left != ""), expected)


@pytest.mark.parametrize(
    ("task", "new", "code"),
    [
        ("guests.yml: we forgot oma, put her at the end", "", 1),
        ("lea left, take her out of guests.yml", "", 1),
        ("Delete the first line of guests.yml", "", 1),
        ("Get rid of guests.yml", "", 0),
        ("The list is in guests.yml. Delete guests.yml.", "", 0),
        ("guests.yml: get rid of it", "", 0),
        ("Move guests.yml to b.yml", "--- /dev/null\n+++ b/b.yml\n@@ -0,0 +1 @@\n+- lea\n", 0),
    ],
)
def test_deletion_that_the_task_does_not_ask_for_fails(task, new, code):
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolCall("1", "delete_file", {"path": "guests.yml"}, ""))
    tally(ToolResult("delete_file", content="", ok=True, call_id="1"))
    diff = f"--- a/guests.yml\n+++ /dev/null\n@@ -1 +0,0 @@\n-- lea\n{new}"
    assert describe_run_outcome(Finished("answered", ""), tally, task, diff=diff)[0] == code


@pytest.mark.parametrize(
    ("task", "code"),
    [
        ("We no longer need a.tmp. Remove it.", 1),
        ("Delete a.tmp", 1),
        ("Delete b.tmp", 0),
        ("Delete everything except a.tmp", 0),
        ("Remove the first line of a.tmp", 0),
        ("Put a.tmp into old/", 1),
        ("Verschieb die Dateien (b.tmp, a.tmp) nach old/", 1),
        ("borra b.tmp y a.tmp", 1),
        ("Delete b.tmp, which is in a.tmp", 0),
        ("Rename b.tmp to a.tmp", 0),
        ("Lösche alles außer a.tmp", 0),
        ("Rename a.tmp to b.tmp", 1),
        ("Rename the section a to b in a.tmp", 0),
    ],
)
def test_file_that_was_to_be_deleted_or_moved_is_gone(task, code):
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolResult("copy_file", content="", ok=True))
    texts = {"a.tmp": "0\n"}
    assert describe_run_outcome(Finished("answered", ""), tally, task, lambda path: texts.get(path, ""))[0] == code


def test_change_that_breaks_a_file_fails_whatever_the_parameter_is_called():
    """The tools of some dialects take a ``file_path``."""
    tally = CallTally(get_dialect("proxyai").tools)
    tally(ToolCall("c1", "Edit", {"file_path": "a.py", "old_string": "one", "new_string": "(two"}, ""))
    tally(ToolResult("Edit", content=f"a.py: line 1 {NO_LONGER_PARSES}", ok=True, call_id="c1"))
    outcome = describe_run_outcome(Finished("answered", "Done."), tally, "Fix it", lambda _: "(two\n")
    assert outcome == (1, "a.py no longer parses (1 call)")


def test_changed_lines_that_look_like_the_header_of_a_diff_are_lines():
    diff = "--- a/a.sql\n+++ b/a.sql\n@@ -1,2 +1,2 @@\n one\x0c\n--- old\n+++ new\x0cer\r\n"
    (change,) = parse_diff(diff)
    assert (change.path, change.removed, change.added) == ("a.sql", ("-- old",), ("++ new\x0cer",))


@pytest.mark.parametrize("path", ["a" * 300 + ".py", "loop", "a\0.py", "../a.py", ".", "missing"])
def test_path_in_the_task_that_cannot_be_read_counts_as_empty(tmp_path, path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert _read_file(tmp_path, path) == ""
