"""The exit code and the last line of a run state the outcome."""

import os
from functools import partial

import pytest

from adapter.cli.call_tally import CallTally
from adapter.cli.folder_changes import FolderChanges, FolderState, parse_diff
from adapter.cli.run_outcome import NO_CALL_HINT, describe_run_outcome
from adapter.cli.run_task import _read_file
from adapter.conversation.session_steps import Finished
from adapter.core.events import InvalidToolCall, ToolCall, ToolResult
from adapter.dialects import get_dialect
from adapter.editing.syntax_check import NO_LONGER_PARSES
from benchmarks.run_outcomes import judge, list_everyday_changes, list_written_changes

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
        (
            "repetition",
            [("run_command", {**OK, "data": {"exit_code": 2}})],
            1,
            "the model kept repeating the same call",
        ),
        ("answered", [("run_command", {**OK, "data": {"exit_code": 1}})], 0, "the model is done: 1 call"),
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
    tally(ToolResult("read_file", content="- plum\n- pear\n- fig", ok=True))
    found, line = describe_run_outcome(Finished("answered", "- plum"), tally, task)
    assert (found, line.startswith("nothing was changed: 1 call: ")) == (code, bool(code))


@pytest.mark.parametrize(
    ("task", "calls", "code"),
    [
        ("Run the tests.", ["read_file"], 1),
        ("Run `make test`", [], 1),
        ("Run the tests.", ["run_command"], 0),
        ("Run me through a.py", ["read_file"], 0),
        ("How do I run the tests?", ["read_file"], 0),
    ],
)
def test_claim_that_a_command_was_run_fails(task, calls, code):
    tally = CallTally(get_dialect("blade").tools)
    for name in calls:
        tally(ToolResult(name, content="", ok=True))
    found, line = describe_run_outcome(Finished("answered", "All 12 tests have passed."), tally, task)
    assert (found, line.startswith("nothing was run")) == (code, bool(code))


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


@pytest.mark.parametrize(("task", "code"), [("Fix a.txt", 1), ("Rename f to g in a.txt", 0), ("Put a.txt in b/", 0)])
def test_file_is_moved_only_if_the_task_asks_for_it(task, code):
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolCall("1", "move_file", {"source": "a.txt", "destination": "b/a.txt"}, ""))
    tally(ToolResult("move_file", content="", ok=True, call_id="1"))
    found, line = describe_run_outcome(Finished("answered", "Done."), tally, task)
    assert (found, "was moved, which" in line) == (code, bool(code))


@pytest.mark.parametrize(("exit_code", "code"), [(127, 1), (126, 1), (1, 0), (0, 0)])
def test_command_that_does_not_exist_was_not_run(exit_code, code):
    """`Qwen2.5-Coder-0.5B` ran "run sh a.sh". Tests that fail have been run."""
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolResult("run_command", content="", ok=True, data={"exit_code": exit_code}))
    found, line = describe_run_outcome(Finished("answered", "Install it."), tally, "run sh a.sh, what's missing?")
    assert (found, line.startswith("nothing was run")) == (code, bool(code))


INCOMPLETE = "the change is incomplete; left to change: "


@pytest.mark.parametrize(
    ("task", "before", "after", "flaw"),
    [
        # an old name remains, or a value is not there
        ("Rename greet to hello in a.txt and in b.txt", "greet()", "hello()", "greet in b.txt"),
        ("Rename greet to hello in a.txt", "def greet\ngreet()", "def hello\ngreet()", "greet in a.txt"),
        ("Rename greet to hello in a.txt", "def greet\ngreet_all()", "def hello\ngreet_all()", ""),
        ("Rename greet to hello in a.txt", "x = greet()", "def hello():\n    x = hello()", "other lines"),
        ("Rename greet to hello in a.txt and add a log line", "x = greet()", "log(1)\nx = hello()", ""),
        ("In a.txt, change greet to hello in line 1", "greet\ngreet()", "hello\ngreet()", ""),
        ("cnt in a.txt and b.txt should be counter", "cnt: 1", "counter: 1", ""),
        ("greet in a.txt and b.txt should be hello", "greet: 1", "hello: 1", "greet in b.txt"),
        ("Rename greet to hello in a.txt, but not in b.txt", "greet: 1", "hello: 1", ""),
        ("Rename greet to hello in b.txt, but not in a.txt", "greet: 1", "hello: 1", "a.txt was changed, although"),
        ("Delete b.txt, but keep a.txt", "greet: 1", None, "a.txt was deleted, which the task does not ask for"),
        ("greet is a dumb name, make it say_hello in a.txt", "greet\ngreet()", "say_hello\ngreet()", "greet in a.txt"),
        ("Change 14 to 21 in a.txt. Also see b.txt.", "on 14", "on 21", "14 in b.txt"),
        ("Change 14 to 21 in a.txt", "on 14\non 14", "on 21\non 14", ""),
        ('Correct the spelling of "seperate" in a.txt', "seperate it\nstir", "stir\nSeparate it", "the spelling of"),
        ('Correct the spelling of "seperate" in a.txt', "seperate it\nstir", "separate it\nstir", ""),
        ('Fix the "smal" in a.txt, it is "small"', "smal\nold", "smal\nnew", "small"),
        ("In a.txt, replace {{one}} with 1", "{{one}} {{one}}", "1 {{one}}", "{{one}} in a.txt"),
        ("Add {{one}} to a.txt", "two", "two\n{{one}}", ""),
        ("a.txt: NAME is Ole, [DAY] is Monday", "cnt: NAME [DAY]", "cnt: Ole [DAY]", "[DAY] in a.txt"),
        ("a.txt: [DAY] es lunes, NAME es Ole", "cnt: NAME [DAY]", "cnt: NAME, algo", "NAME in a.txt"),
        ("a.txt: NAME is Ole, [DAY] is Monday", "cnt: NAME [DAY]", "cnt: Ole Monday", ""),
        ("In a.txt, NAME is replaced by OTHER", "cnt: NAME [DAY]", "cnt: OTHER [DAY]", ""),
        ("In a.txt, rename cnt; keep NAME and [DAY]", "cnt: NAME [DAY]", "count: NAME [DAY]", ""),
        ("Fill in a.txt: DATE is June 4.", "on DATE", "on June", "4"),
        ("Fill in a.txt: DATE is June 4.", "on DATE", "on June 4", ""),
        # lines are lost
        ("Set the port to 90 in a.txt", '"port": 80,\n"debug": true', '"port": 90,', 'not mention ("debug": true)'),
        ("Set the port to 90 in a.txt", '"port": 80,\n"debug": true', '"port": 90,\n"debug": true', ""),
        ("a.txt: we forgot oma, put her at the end", "party: saturday\n- lea", "- lea\n- oma", "(party: saturday)"),
        ("Remove port 81 from a.txt", "ports:\n  - 80\n  - 81\nimage: web", "ports:\n  - 80", '(image: web)'),
        ("Remove ports from a.txt", "ports:\n  - 80\n  - 81\nimage: web", "image: web", ""),
        ("Turn debug off in a.txt", '"debug": true', '"debug": false', ""),
        ("Put linux on the list in a.txt", "- macos", "- linux", "lost a line"),
        ("Add linux to the list in a.txt, after windows", "- windows", "- linux", "lost a line"),
        ("Add linux to the list in a.txt", "os: [macos]", "os: [macos, linux]", ""),
        ("Add *.pyc to a.txt", "*.log\nbuild/", "*.log", "lost a line"),
        ("Save the port in c.txt", "port: 80", "port = 80", f"{INCOMPLETE}c.txt"),
        ("Füge eine Zeile zu a.txt hinzu", "eins\nzwei", "eins", "lost a line"),
        ("Add a retry to a.txt", "build", "for _ in range(3):\n    go()", ""),
        ("Replace all of a.txt with: hello", "one\ntwo", "hello", ""),
        ("Remove all comments from a.txt", "# one\nmake\n# two", "make", ""),
        ("Fülle a.txt aus: [DAY] ist Montag", "Bis [DAY], Ole", "Montag", "lost a word that the task does not mention"),
        ("Fülle a.txt aus: [DAY] ist Montag", "Bis [DAY], Ole", "Bis Montag, Ole", ""),
        # another number
        ("Mets le volume à 35 dans a.txt", "volume: 80", "volume: 53", "got 53, which is not in the task"),
        ("Mets le volume à 35 dans a.txt", "volume: 80", "volume: 35", ""),
        ("Add 2 tests to a.txt", "...", "assert double(3) == 6\nassert double(4) == 8", ""),
        ("Increase the version in a.txt", "version: 7", "version: 8", ""),
        pytest.param("Set x to 5 in a.txt", "x = 1", "x = " + "9" * 5_000, "", id="many digits"),
        ("In a.txt, increase the volume by 20", "volume: 30", "volume: 50", ""),
        ("In a.txt, wait 2 seconds instead of 500 ms", "wait(500)", "wait(2000)", ""),
        ("Allow 1,000 requests in a.txt", "requests: 500", "requests: 1000", ""),
        # a file is gone
        ("a.txt: we forgot oma, put her at the end", "- lea", None, "was deleted"),
        ("lea left, take her out of a.txt", "- lea", None, "was deleted"),
        ("Delete the first line of a.txt", "- lea", None, "was deleted"),
        ("Get rid of a.txt", "- lea", None, ""),
        ("The list is in a.txt. Delete a.txt.", "- lea", None, ""),
        ("a.txt: get rid of it", "- lea", None, ""),
        ("When does the warranty in a.txt end?", "until 2027", "notice added", "although the task is a question"),
        ("Run b.txt and tell me what the warranty is", "until 2027", "notice added", "although the task is a question"),
        ("When does the warranty in a.txt end? Correct the year.", "until 2027", "until 2028", ""),
        # a new text is invented
        ("Write the word copper into a new file a.txt", None, "This is a test file.", "no word of the task"),
        ("Write the word copper into a new file a.txt", None, "copper", ""),
        ("Create a.txt with the text: read me", None, "read me", ""),
        ("Erstelle a.txt mit dem Text: Milch kaufen", None, "Dieses Dokument ist leer.", "no word of the task"),
        ("Create a.txt, a program that greets the world", None, 'print("Hello, world")', ""),
        ("Summarize the notes in a.txt", None, "word " * 60, ""),
        ("Create an empty a.txt", None, "", ""),
        ("Create a.txt with a haiku about spring", None, "Cherry blossoms fall", ""),
        ("Copy the version into a.txt", None, "v7 osprey", ""),
    ],
)  # fmt: skip
def test_change_that_the_task_does_not_explain_fails(task, before, after, flaw):
    """There is another file b.txt. The error names what small models did."""
    others = {"b.txt": "am 14.: cnt, greet" if "cnt" not in task else "counter", "v.txt": "v7 osprey"}
    old, new = (
        {**others, **({} if text is None else {"a.txt": f"{text}\n" if text else ""})} for text in (before, after)
    )
    code, line = judge(task, old, new)
    assert (code, flaw in line) == (int(flaw != ""), True), line


JOINED = "the lines of a.txt were written as one line"
TODO = "got a comment in place of code"
ALSO = "a.txt was also changed where the task names nothing"


@pytest.mark.parametrize(
    ("task", "before", "after", "flaw"),
    [
        ("Sort the lines of a.txt", {"a.txt": "zoe\nadam\nmia"}, {"a.txt": "adam mia zoe"}, JOINED),
        ("Remove the duplicates from a.txt", {"a.txt": "mia\nmia\nmia"}, {"a.txt": "mia"}, ""),
        ("Minify a.json", {"a.json": '{\n"a": 1,\n"b": 2\n}'}, {"a.json": '{"a": 1, "b": 2}'}, ""),
        ("Change b to c in a.txt", {"a.txt": "s/a/\\n b/"}, {"a.txt": "s/a/\\n c/"}, ""),
        ("Join the lines of a.txt", {"a.txt": "zoe\nadam\nmia"}, {"a.txt": "zoe adam mia"}, ""),
        ("Set port to 90 in a.txt", {"a.txt": "[x]\nport = 80"}, {"a.txt": "[x] port = 90"}, JOINED),
        ("Create a.txt:\none\ntwo\nthree", {}, {"a.txt": "one two three"}, JOINED),
        ("Create a.txt: run and stop", {}, {"a.txt": "run\\nstop"}, JOINED),
        ("Copy b.txt to a.txt", {"b.txt": "eins\nzwei"}, {"b.txt": "eins\nzwei", "a.txt": "eins zwei"}, JOINED),
        ("Set the title in a.txt to Home", {"a.txt": "title: x"}, {"a.txt": "title: a.txt"}, "only the file's name"),
        ("Add the heading 'Home' to a.txt", {"a.txt": "x"}, {"a.txt": "x", "Home.txt": "# Home"}, "a.txt was not"),
        ("Add the heading 'My a' to a.txt", {"a.txt": "x"}, {"a.txt": "x", "My a": "# My a"}, "a.txt was not changed"),
        ("Add tests for a.py", {"a.py": "x = 1"}, {"a.py": "x = 1", "test_a.py": "import a"}, ""),
        ("Create a.txt: Carpe diem", {}, {"a.txt": "Carpe diem\nLife is short."}, "(Life is short.)"),
        ("Save the text 'At 5' in a.txt", {}, {"a.txt": "At 5. Please leave a note."}, "(Please leave a note.)"),
        ("Create a.md with the heading 'At 5' and a joke", {}, {"a.md": "# At 5\nLife is short."}, ""),
        ("Replace Rome by Oslo in a.txt", {"a.txt": "1,Rome\n2,Rome"}, {"a.txt": "1,Oslo\n2,Rome"}, "Rome in a.txt"),
        ("Replace Rome by Oslo in line 1 of a.txt", {"a.txt": "Rome\nRome"}, {"a.txt": "Oslo\nRome"}, ""),
        ("Rename Rome to Oslo", {"a.txt": "Rome\nRome"}, {"a.txt": "Oslo\nRome # new"}, "Rome in a.txt"),
        ("Set port to 6 in a.txt", {"a.txt": "port 3\nretries: 3"}, {"a.txt": "port 6\nretries: 5"}, ALSO),
        ("Set port to 6 in a.txt", {"a.txt": "port 3\nretries: 3"}, {"a.txt": "port 6\nretries: 6"}, ""),
        ("Set port to 6 in a.txt", {"a.txt": "port 3\nx\n  b: 1"}, {"a.txt": "port 6\nx\n b: 1"}, ALSO),
        ("Set port to 6 and log it in a.txt", {"a.txt": "port 3\nx: 3"}, {"a.txt": "port 6\nx: 5"}, ""),
        ("Make port 6 a string in a.txt", {"a.txt": "port = 6"}, {"a.txt": 'port = "6"'}, ""),
        ("Add go to a.py", {"a.py": "x = 1\ny = 2"}, {"a.py": "x = 1\n# ... existing code ...\ngo()"}, "it omits"),
        ("Make a.txt a single line, and add c", {"a.txt": "a\nb"}, {"a.txt": "a b c"}, ""),
        ("Write red and blue to a.txt, one per line", {}, {"a.txt": "red, blue"}, JOINED),
        ("Schreib rot und blau in a.txt, je eins pro Zeile", {}, {"a.txt": "rot, blau"}, JOINED),
        ("Write dark red to a.txt, one colour per line", {}, {"a.txt": "dark red"}, ""),
        ("a.txt: klok pls", {"a.txt": "The clcok is new."}, {"a.txt": "This is a test file."}, "has no word of"),
        ("Create a.txt, sorted: zoe, adam, mia", {}, {"a.txt": "adam\nmia\nzoe"}, ""),
        ("Create a.txt with the text: red", {}, {"a.txt": ""}, "a.txt is empty"),
        ("Create a.json with the port 8080", {}, {"a.json": "{}"}, "a.json is empty"),
        ("Create these empty files: a.txt", {}, {"a.txt": ""}, ""),
        ("Remove 'red' from a.txt", {"a.txt": "red"}, {"a.txt": ""}, ""),
        ("Add go() to a.py", {"a.py": "x = 1"}, {"a.py": "x = 1\ndef go():\n    # your code here\n    pass"}, TODO),
        ("Add go() to a.js", {"a.js": "x()"}, {"a.js": "x()\nfunction go() {\n  // TODO: write it\n}"}, TODO),
        ("Add a stub for go() to a.py", {"a.py": "x = 1"}, {"a.py": "x = 1\ndef go():\n    # TODO\n    pass"}, ""),
        ("Bump db to 16", {"a.yml": "image: db:15\ndb: 15"}, {"a.yml": "image: db:16\ndb: 15"}, ""),
        ("Add go() to a.py", {"a.py": "x = 1"}, {"a.py": "x = 1\ndef go():\n    # TODO: log\n    return 2"}, ""),
        ("Add the line 'b' to a.txt twice", {"a.txt": "a"}, {"a.txt": "a\nb\nb"}, ""),
        ("Replace Rome by Oslo in a.txt", {"a.txt": "1,Rome\n2,Bari"}, {"a.txt": "1,Oslo\n2,Oslo"}, ALSO),
        ("Set the a for tea in a.txt to 4", {"a.txt": "tea,2\nnut,3"}, {"a.txt": "tea,4\nnut,4"}, ALSO),
        ("Add a line to a.txt: Bo,Al,06 12", {"a.txt": "x"}, {"a.txt": "x\nnew one"}, "change: Bo,Al,06 12"),
        ("Could you append this? It's for a.txt: a red car", {"a.txt": "x"}, {"a.txt": "x\nx"}, "change: a red car"),
        ("Write 'on' to a.txt and 'off' to b.txt", {}, {"a.txt": "on", "b.txt": "off"}, ""),
        ("Remove Bob from a.txt", {"a.txt": "- Bob\n- Ann\n- Kim"}, {"a.txt": "- Kim"}, "lost a line that the task"),
        ("Remove Bob from a.txt", {"a.txt": "# Bob\nHe sings.\n# Kim"}, {"a.txt": "# Kim"}, ""),
        ("Remove Bob to Kim from a.txt", {"a.txt": "Bob\nAnn\nKim\nLou"}, {"a.txt": "Lou"}, ""),
        ("Delete a.txt", {"a.txt": "x", "b.txt": "y"}, {}, "b.txt was deleted"),
        ("Delete a.txt and its copies", {"a.txt": "x", "b.txt": "x"}, {}, ""),
    ],
)  # fmt: skip
def test_text_that_the_task_does_not_ask_for_fails(task, before, after, flaw):
    old, new = ({path: text and f"{text}\n" for path, text in files.items()} for files in (before, after))
    code, line = judge(task, old, new)
    assert (code, flaw in line) == (int(flaw != ""), True), line


@pytest.mark.parametrize(
    ("task", "after", "flaw"),
    [
        ("Change the port to 90 in a.txt", {"a.txt": "port 80", "b.txt": "x"}, "nothing was changed"),
        ("Change the port to 90 in a.txt", {"a.txt": "port 90", "b.txt": "x"}, ""),
        ("Change the port to 90 in a.txt", {"a.txt": "port 35", "b.txt": "x"}, "got 35"),
        ("Change the port to 90 in a.txt", {"a.txt": "port 90"}, "b.txt was deleted"),
        ("Delete a.txt", {"b.txt": "x"}, ""),
        ("Delete a.txt", {}, "b.txt was deleted"),
        ("Delete a.txt and all backups", {}, ""),
        ("Remove all the .txt files", {}, ""),
        ("Remove all the .txt files", {"b.txt": "x"}, "b.txt was not deleted"),
        ("Delete *.txt", {"a.txt": "port 80"}, "a.txt was not deleted"),
        ("Delete every txt file", {"a.txt": "port 80"}, "a.txt was not deleted"),
        ("Delete all .txt files except b.txt", {"b.txt": "x"}, ""),
        ("Delete all .log files", {"a.txt": "port 80"}, "b.txt was deleted"),
        ("Delete all .log files, and b.txt", {"a.txt": "port 80"}, ""),
        ("Delete b.txt and list all .txt files", {"a.txt": "port 80"}, ""),
        ("Clean up this folder", {"a.txt": "port 80"}, ""),
        ("Run the tests in a.txt", {"a.txt": "port 80", "b.txt": "x"}, ""),
        ("Add a test for a.txt", {"a.txt": "port 80", "b.txt": "x", "c.txt": "test"}, ""),
        ("Add the rows from a.txt to the database", {"a.txt": "port 80", "b.txt": "x"}, ""),
        ("Add a.txt to git", {"a.txt": "port 80", "b.txt": "x", ".git/index": "y"}, ""),
        ("Set the mode of a.txt to 600", {"a.txt": "port 80", "b.txt": "x"}, ""),
    ],
)
def test_change_by_a_command_is_compared_with_the_task(tmp_path, task, after, flaw):
    before = {"a.txt": "port 80", "b.txt": "x"}
    for path, text in before.items():
        (tmp_path / path).write_text(text)
    read_file = partial(_read_file, tmp_path)
    state = FolderState.read(tmp_path, task, read_file)
    for path in before.keys() - after.keys():
        (tmp_path / path).unlink()
    (tmp_path / "a.txt").chmod(0o600 if "mode" in task else 0o644) if "a.txt" in after else None
    for path, text in after.items() - before.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
        os.utime(tmp_path / path, (1, 1))
    tally = CallTally(get_dialect("blade").tools)
    tally(ToolCall("1", "run_command", {"command": "./change"}, ""))
    tally(ToolResult("run_command", content="", ok=True, call_id="1"))
    changes = state.compare(None, read_file)
    code, line = describe_run_outcome(Finished("answered", "Done."), tally, task, read_file, changes)
    assert (code, flaw in line) == (int(flaw != ""), True), line


def test_deletion_by_a_run_that_got_stuck_has_no_words_of_the_task():
    assert judge("a.txt isn't used, you can get rid of it", {"a.txt": "build\n"}, {}, "stuck")[0] == 0


@pytest.mark.parametrize(
    ("task", "after", "flaw"),
    [
        ("Add *.pyc to a.txt", "*.log", "no change has a word of the task"),
        ("Fix the typo in a.txt", "built", "no change has a word of the task"),
        ("In a.txt, set build to 5", "builder", "no change has a word of the task"),
        ("Replace build with make in a.txt, and see b.txt", "make", f"{INCOMPLETE}b.txt"),
        ("Replace build with make in a.txt, and {{year}} with 2026", "make", f"{INCOMPLETE}{{{{year}}}}"),
        ("Replace build with make in a.txt, as in version 3", "make", ""),
        ("Remove the build folder from a.txt", "", ""),
        ("Add *.pyc to a.txt", "build\n*.pyc", ""),
        ("In a.txt there should be a second server, web2.example.org", "build\nweb2.example.org", ""),
    ],
)
def test_change_of_a_run_that_got_stuck_has_the_values_of_the_task(task, after, flaw):
    code, line = judge(task, {"a.txt": "build\n"}, {"a.txt": f"{after}\n"}, "stuck")
    assert (code, line.startswith(flaw or "the change was made")) == (int(flaw != ""), True), line


@pytest.mark.parametrize(
    "change", [*list_written_changes(), *list_everyday_changes()], ids=lambda change: change[0][:40].replace(" ", "_")
)
def test_right_change_is_no_false_alarm(change):
    assert judge(*change)[0] == 0


@pytest.mark.parametrize(
    ("task", "answer", "code"),
    [
        ("Explain a.txt", "It reports that sales rose.", 0),
        ("Résume a.txt", "Les ventes ont augmenté.", 0),
        ("a.txt の内容を要約して", "5月に売上が伸び、最も好調でした。", 0),
        ("a.txt: what's the port", "8080", 0),
        ("Check a.txt for typos", "Fine.", 0),
        ("Überprüfe a.txt", "Sieht gut aus.", 0),
        ("Compare a.txt and b.txt", "They are identical.", 0),
        ("Rate a.txt from 1 to 10", "7", 0),
        ("Merk dir a.txt", "Verstanden.", 0),
        ("Proofread a.txt", "I found none.", 0),
        ("What does a.txt say?", "Done.", 0),
        ("zeig mir a.txt", "", 0),
        ("When was it made?", "It was created in 2020.", 0),
        ("Make some notes", "I have created notes.md.", 1),
        ("Turn debug off in a.txt", "Done.", 1),
        ("a.txt: da steht rose, muss fell heißen", "", 1),
        ("a.txt: port should be 5050", "The file was successfully updated.", 1),
        ("Run b.py and save what it prints in b.txt", "In May, the port was 8080.", 1),
        ("Die Ausgabe von b.py bitte in b.txt speichern", "In May, the port was 8080.", 1),
        ("Refactor a.txt", "The file was refactored.", 1),
        ("Stell in a.txt den Port auf 90", "Erledigt.", 1),
        ("Bump the port in a.txt", "I have bumped the port.", 1),
        ("Sort a.txt", "a.txt sorted", 1),
        ('a.txt needs a new key "timeout"', 'It has {"host": "mail.local"} now.', 1),
        ("a.txt: load_data should be named read_row", "It reads 1 row of 20.", 1),
        ('Find "timeout" in a.txt', "It has {} and 20 other lines.", 0),
        ("How much is the port in a.txt?", "Here is the code: 1. Open the file.", 0),
        ("How much is the port in a.txt?", "Here is the code: open the file, then read the port.", 1),
        ("How many cats are in a.txt?", "It mentions none.", 0),
        ("How old is a.txt?", "I don't know; it does not say so.", 0),
        ('What if I set "timeout" in a.txt?', "Then it waits for 20 seconds.", 0),
    ],
)
def test_answer_that_says_nothing_about_the_files_that_were_read_fails(task, answer, code):
    """Or that copies them, unless the task only asks for an answer. The verbs of most changes are not known."""
    files = {"a.txt": "Sales rose in May.\nport = 8080\nThe north did best, costs were flat.\n"}
    assert judge(task, files, files, answer=answer or files["a.txt"])[0] == code


@pytest.mark.parametrize(("task", "code"), [("Which port is set in a.txt?", 0), ("Fix a.txt", 1)])
def test_failed_edit_does_not_matter_to_the_answer_of_a_question(task, code):
    tally = CallTally(get_dialect("blade").tools)
    for name, is_ok in (("read_file", True), ("edit_file", False)):
        tally(ToolCall(name, name, {"path": "a.txt"}, ""))
        tally(ToolResult(name, content="port = 8080", ok=is_ok, call_id=name))
    assert describe_run_outcome(Finished("answered", "It is 8080."), tally, task)[0] == code


EDIT = {"path": "a.py", "old_text": "def greet():", "new_text": "def hello():"}


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
    assert describe_run_outcome(Finished("stuck", ""), tally, "Edit a.py: y", changes=FolderChanges(diff))[0] == code


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


def test_text_of_a_renamed_file_is_not_invented():
    assert judge("Rename the file a.txt to b.txt", {"a.txt": "buy milk\n"}, {"b.txt": "buy milk\n"})[0] == 0
