"""Well-formed calls that are not used, text that is not an answer, and acceptable lookalikes of both."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from adapter.conversation.guardrails.call_history import CallHistory, PastCall, read_call_history
from adapter.conversation.guardrails.candidate_answer import CandidateAnswer
from adapter.conversation.guardrails.copied_text import copies_error, find_placeholder
from adapter.conversation.guardrails.guardrails import Guardrails
from adapter.conversation.guardrails.loop_detection import is_recent_repeat
from adapter.conversation.guardrails.registry import parse_guardrails
from adapter.conversation.guardrails.retry_messages import Examples
from adapter.conversation.guardrails.verdicts import Accept, Retry
from adapter.core.events import InvalidToolCall, JsonObject, ToolCall
from adapter.core.turn import Turn
from adapter.dialects import get_dialect
from adapter.parsing.parser import parse
from adapter.tools.call_normalization import normalize_call
from adapter.tools.schema_violation_messages import select_allowed_arguments
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet


def definition(name: str, *parameters: str, required: int | None = None, **more: Any) -> dict[str, Any]:
    properties = {each: {"type": "string"} for each in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters[:required])}
    return {"name": name, "description": more.pop("description", ""), "parameters": schema | more}


TOOLS = ToolSet(
    [
        definition("read_file", "path"),
        definition("write_file", "path", "content"),
        definition("edit_file", "path", "old", "new"),
        definition("delete_file", "path"),
        definition("append", "path", "line"),
        definition("move_file", "source", "destination"),
        definition("run_tests"),
        definition("set_light", "entity_id", "state"),
        definition("press_key", "key"),
        definition("job_status", "job"),
        definition("find_user", "name"),
        definition("create_event", "event_id", "title"),
        definition("send_message", "user_id", "text"),
        definition("git_tag", "commit", "name"),
        definition("git_push", "remote", required=0, description="Push commits to the remote."),
        definition("list_orders"),
        definition("get_order", "order_id"),
    ]
)

Written = tuple[str, dict[str, Any]]


def read(path: str) -> Written:
    return "read_file", {"path": path}


def light(state: str, where: str = "kitchen") -> Written:
    return "set_light", {"entity_id": f"light.{where}", "state": state}


def turn(*calls: Written) -> Turn:
    text = "".join(
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': given})}\n</tool_call>" for name, given in calls
    )
    return parse(text, TOOLS, finish_reason="stop")


EDIT = ("edit_file", {"path": "a.py", "old": "x", "new": "y"})
OTHER_EDIT = ("edit_file", {"path": "b.py", "old": "x", "new": "y"})
MILK = ("write_file", {"path": "n.txt", "content": "buy milk"})
BREAD = ("edit_file", {"path": "n.txt", "old": "buy milk", "new": "buy bread"})
DELETE = ("delete_file", {"path": "n.txt"})
RUIN = ("write_file", {"path": "a.py", "content": "This is a test file."})
GREET = ("edit_file", {"path": "a.py", "old": "greet", "new": "hello"})
TAG = ("git_tag", {"commit": "9fe21c0", "name": "v3.0.1"})
TESTS: Written = ("run_tests", {})
BOB = ("find_user", {"name": "Bob"})

DROPS: list[tuple[str, list[Written], list[str]]] = [
    ("Fix a.py", [EDIT, *[("edit_file", {})] * 10], ["wrong_arguments"] * 10),
    ("Fix a.py", [EDIT, ("edit_file", {"path": "b.py"}), OTHER_EDIT], ["wrong_arguments"]),
    ("Light the kitchen", [light("on")] * 7, ["repeated_in_answer"] * 6),
    ("Light it all", [light("on"), light("on", "hall"), light("on")], ["repeated_in_answer"]),
    ("Read a and b", [read("a"), read("b"), read("a"), read("b")], ["repeated_in_answer"] * 2),
    ("Fix both", [EDIT, OTHER_EDIT, EDIT, OTHER_EDIT], []),  # "both" may ask for it
    ("Read", [read(f"{n}.py") for n in range(10)], ["too_many_calls"] * 2),
    ("Tell Bob hi", [BOB, ("send_message", {"user_id": "<user_id>", "text": "hi"})], ["placeholder"]),
    ("Tag commit 9fe21c0 as v3.0.1", [TAG, ("git_push", {"force": True})], ["unasked_action"]),
    ("Read notes.txt", [read("notes.txt"), ("delete_file", {"path": "tmp.log"})], ["unasked_action"]),
    # made by Qwen2.5-Coder-0.5B
    ("Create a file n.txt with the text: buy milk", [MILK, BREAD, DELETE], ["undone_in_answer"] * 2),
    ("Create n.txt: buy milk", [MILK, ("append", {"path": "n.txt", "line": "!"}), DELETE], ["undone_in_answer"]),
    ("Rename the function greet to hello in a.py and b.py", [read("./a.py"), RUIN], ["guessed_result"]),
    ("Fix a.py and run the tests", [read("a.py"), RUIN, TESTS, read("b.py")], ["guessed_result"] * 2),
    (
        "Rename the function greet to hello in a.py",
        [read("a.py"), ("delete_file", {"path": "a.py"})],
        ["guessed_result"],
    ),
    # lookalikes
    ("Create n.txt with the text: buy milk, and delete old.txt", [MILK, ("delete_file", {"path": "old.txt"})], []),
    ("Replace greet by hello in a.py", [read("a.py"), GREET], []),
    ("Write “This is it.” to a.py", [read("a.py"), ("write_file", {"path": "a.py", "content": "This is it."})], []),
    ("Delete a.py and the rest", [read("a.py"), ("delete_file", {"path": "a.py"})], []),
    ("Rename greet in a.py and in b.py", [GREET, ("edit_file", {**GREET[1], "path": "b.py"})], []),
    ("Change two things in a.py", [GREET, ("edit_file", {"path": "a.py", "old": "more", "new": "less"})], []),
    ("Write a.py and publish it", [RUIN, ("move_file", {"source": "a.py", "destination": "b.py"})], []),
    (f"Read {', '.join(f'f{n}.py' for n in range(12))}", [read(f"f{n}.py") for n in range(12)], []),
    ("Run the tests and ship it", [TESTS, ("git_push", {})], []),
    ("Fix it", [TESTS, EDIT, TESTS, OTHER_EDIT, TESTS], []),
    ("Turn the light on, off and on", [light("on"), light("off"), light("on")], []),
    ("Write a", [("write_file", {"path": "a", "content": text}) for text in "xyx"], []),
    ("Press the key twice", [("press_key", {"key": "up"})] * 2, []),
    ("Go up", [("press_key", {"key": "up"})] * 2, []),
    ("Wait for it", [("job_status", {"job": "7"})] * 3, []),
    ("Light the kitchen two times", [light("on")] * 2, []),
    ("Tell u-4711 hi", [BOB, ("send_message", {"user_id": "u-4711", "text": "hi"})], []),
    ("Orders 5 to 8", [("get_order", {"order_id": n}) for n in "5678"], []),
    ("Invite Bob", [BOB, ("create_event", {"event_id": "evt-1", "title": "Lunch"})], []),
    ("Tag commit 9fe21c0 and push it", [TAG, ("git_push", {})], []),
    ("Tag commit 9fe21c0 and publish it", [TAG, ("git_push", {})], []),
    ("Lies notes.txt und lösche sie", [read("notes.txt"), ("delete_file", {"path": "notes.txt"})], []),
    ("Read notes.txt, then get rid of tmp.log", [read("notes.txt"), ("delete_file", {"path": "tmp.log"})], []),
    ("Remove a and b", [("delete_file", {"path": "a"}), ("delete_file", {"path": "b"})], []),
]


@pytest.mark.parametrize(("request_", "calls", "dropped"), DROPS)
def test_needless_calls_of_an_answer_are_dropped(request_, calls, dropped):
    """The others stay in order. With the guardrails off, all stay."""
    past, written = CallHistory(request_), turn(*calls).calls
    kept, found = Guardrails(TOOLS).screen([{"role": "user", "content": request_}], turn(*calls))
    assert [each.guardrail for each in found] == dropped
    assert len(kept) + len(found) == len(written)
    assert [each for each in written if each in kept] == kept
    assert Guardrails(TOOLS, on=parse_guardrails("off")).screen_calls(past, written) == ([*written], [])


def test_number_of_calls_is_an_option():
    assert len(Guardrails(TOOLS, max_calls=2).screen_calls(CallHistory("Read"), turn(*map(read, "abc")).calls)[0]) == 2


ANY = ToolSet(
    [
        definition(
            "any",
            "path",
            "entity_id",
            "content",
            "name",
            "message",
            "file_path",
            "entityId",
            "title",
            "new_text",
            required=4,
        )
    ]
)["any"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("path", "your path"),
        ("entity_id", "your entity_id"),
        ("path", "/path/to/project/file.txt"),
        ("path", "path/to/file"),
        ("entity_id", "<entity_id>"),
        ("path", "<tool_response>"),
        ("entity_id", "your_entity_id"),
        ("entity_id", "{{entity_id}}"),
        ("path", "<your file path>"),
        ("path", "[file path]"),
        ("name", "YOUR_NAME"),
        ("path", "..."),
        ("message", "your message"),
        ("name", "<insert name here>"),
        ("path", "the file path"),
        ("entityId", "<entityId>"),
        ("path", "${path}"),
        ("entity_id", "xxxx"),
        ("new_text", "new_text_to_apply"),
        ("new_text", "New content"),
        ("file_path", "file path"),
        ("message", "This is a sample message."),
        ("content", "New file content"),
        ("title", "Some title here"),
    ],
)
def test_placeholder_is_recognized(name, value):
    """Unless the user wrote it."""
    assert find_placeholder(ANY, {name: value}, CallHistory("Do it")) == name
    assert find_placeholder(ANY, {name: value}, CallHistory(f"Use {value} literally")) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content", "<div>"),
        ("content", "..."),
        ("content", "string"),
        ("path", "src/a.py"),
        ("path", "app/[slug]/page.tsx"),
        ("path", "path.py"),
        ("path", "__init__.py"),
        ("path", "."),
        ("message", "your order has shipped"),
        ("message", "the message was sent"),
        ("name", "The Beatles"),
        ("name", "My project"),
        ("name", "<script>"),
        ("title", "A string quartet"),
        ("entity_id", "light.kitchen"),
        ("entity_id", "entity_id_12"),
        ("new_text", "new"),
        ("new_text", "new_text = old_text.strip()"),
        ("new_text", "New York"),
        ("file_path", "files.txt"),
        ("content", "content"),
        ("message", "This is a test message."),
        ("content", "new file contents for Anna"),
        ("title", "A new file"),
    ],
)
def test_value_like_a_placeholder_is_accepted(name, value):
    assert find_placeholder(ANY, {name: value}, CallHistory("Do it")) == ""


def test_generic_text_is_accepted_if_the_request_has_its_words():
    past = CallHistory("Send Bob a sample message")
    assert find_placeholder(ANY, {"message": "This is a sample message."}, past) == ""


def test_placeholder_is_asked_for_once_with_known_values():
    guardrails, past = Guardrails(TOOLS), CallHistory("Fix src/app.py and src/web.py")
    answer = CandidateAnswer.from_turn(turn(read("path/to/file.py")))
    verdict = guardrails.check_response(past, answer)
    assert isinstance(verdict, Retry)
    assert "such as src/app.py, src/web.py" in verdict.message
    assert guardrails.check_response(past, answer) == Accept()
    assert guardrails.find_drop_reason(past, answer.calls[0], []) == "placeholder"


def test_copy_in_an_argument_that_the_tool_ignores_is_harmless():
    """A small model copied the error into an argument of its own."""
    guardrails = Guardrails(get_dialect("blade").tools)
    failed = PastCall("run_command", {"command": "python b.py"}, "b.py does not exist in this folder", ok=False)
    call_ = ("run_command", {"command": "python a.py", "cwd": ".", "tool_error": failed.result})
    answer = CandidateAnswer.from_turn(turn(call_))
    assert guardrails.check_response(CallHistory("Run a.py", (failed,)), answer) == Accept()


@pytest.mark.parametrize(
    ("is_read", "message", "held_to"),
    [
        (False, "first call read_file.", ("read_file",)),
        (True, "first call the tool that returns it.", ("edit_file",)),
    ],
)
def test_text_of_a_placeholder_is_read_first(is_read, message, held_to):
    """A small model was held to the edit, whose text it did not know."""
    guardrails = Guardrails(ToolSet([get_dialect("blade").tools[name] for name in ("read_file", "edit_file")]))
    edit = ToolCall("", "edit_file", {"path": "a.md", "old_content": "a", "new_content": "old_content"}, "")
    history = CallHistory("Fix the typo in a.md", (PastCall("read_file", {"path": "a.md"}, "one"),) * is_read)
    verdict = guardrails.check_response(history, CandidateAnswer("", (edit,)))
    assert isinstance(verdict, Retry)
    assert message in verdict.message
    assert verdict.held_to == held_to


def test_file_of_the_request_is_not_proposed_for_deletion():
    """`Qwen2.5-Coder-0.5B` was to take a line out of a file."""
    answer = CandidateAnswer.from_turn(turn(("delete_file", {"path": "path/to/file.txt"})))
    verdict = Guardrails(TOOLS).check_response(CallHistory("take requests out of reqs.txt"), answer)
    assert isinstance(verdict, Retry)
    assert "reqs.txt" not in verdict.message
    assert verdict.held_to == ()


REPEATED = CallHistory("What is in a?", (PastCall("read_file", {"path": "a"}, "the cat sat on the mat"),))


def messaged() -> tuple[Guardrails, str]:
    """Guardrails that sent a message, and the message."""
    guardrails = Guardrails(TOOLS)
    verdict = guardrails.check_response(REPEATED, CandidateAnswer.from_turn(turn(read("a"))))
    assert isinstance(verdict, Retry)
    return guardrails, verdict.message


def test_own_message_is_neither_answer_nor_argument():
    """Neither the whole message nor one of its sentences."""
    for said in (lambda text: text, lambda text: text.partition(". ")[2], lambda text: f"OK. {text}"):
        guardrails, message = messaged()
        verdict = guardrails.check_response(REPEATED, CandidateAnswer(said(message)))
        assert isinstance(verdict, Retry)
        assert verdict.guardrail == "own_words"
        assert guardrails.drops_answer(REPEATED, CandidateAnswer(said(message)))
        guardrails, message = messaged()
        letter = turn(("write_file", {"path": "letter.txt", "content": f"Dear Bob,\n{said(message)}\nYours"}))
        assert getattr(guardrails.check_response(REPEATED, CandidateAnswer.from_turn(letter)), "guardrail", "") == (
            "own_words"
        )


def test_short_sentence_of_a_message_is_no_answer():
    """It has fewer words than others need to be a copy."""
    guardrails, past = Guardrails(TOOLS), CallHistory("Read a", (PastCall("read_file", {"path": "a"}, "x"),) * 3)
    answer = CandidateAnswer.from_turn(turn(read("a")))
    first, second = (guardrails.check_response(past, answer) for _ in range(2))
    assert isinstance(first, Retry)
    assert isinstance(second, Retry)
    assert second.message.startswith("Stop repeating read_file. ")
    assert guardrails.drops_answer(past, CandidateAnswer("Stop repeating read_file."))
    assert guardrails.drops_answer(past, CandidateAnswer("Here's the response:\n\ntool_error: a.md: no change."))
    assert not guardrails.drops_answer(past, CandidateAnswer("It failed with tool_error: no change."))
    assert not guardrails.drops_answer(past, CandidateAnswer("Stop."))
    long = f"The tool says: {first.message} {'So the file has one line, with an x. ' * 9}"
    assert guardrails.drops_answer(past, CandidateAnswer(long))


def test_words_of_the_conversation_are_not_ours():
    """Also after a message: the result, the request, and the model's own first arguments."""
    guardrails, _ = messaged()
    for answer in ("the cat sat on the mat", "What is in a? A cat sat on the mat.", "It is a cat."):
        assert guardrails.check_response(REPEATED, CandidateAnswer(answer)) == Accept()
    guardrails = Guardrails(TOOLS)
    text = "dear bob how are you today"
    wrong = turn(("write_file", {"content": text}))
    assert isinstance(guardrails.check_response(CallHistory("Write"), CandidateAnswer.from_turn(wrong)), Retry)
    right = turn(("write_file", {"path": "a", "content": text}))
    assert guardrails.check_response(CallHistory("Write"), CandidateAnswer.from_turn(right)) == Accept()


CALL_SHAPED = '{"name": "Take Notes", "arguments": {"text": "x", "where": "y"}}'


@pytest.mark.parametrize("text", [CALL_SHAPED, f"```json\n{CALL_SHAPED}\n```", f"[{CALL_SHAPED}]"])
def test_call_shaped_answer_is_not_an_answer(text):
    """Unless the request is about JSON."""
    guardrails, answer = Guardrails(TOOLS), CandidateAnswer(text)
    assert getattr(guardrails.check_response(CallHistory("Take notes"), answer), "guardrail", "") == "call_as_answer"
    assert guardrails.drops_answer(CallHistory("Take notes"), answer)
    assert not guardrails.drops_answer(CallHistory("Write it as JSON"), answer)


@pytest.mark.parametrize("text", ['{"name": "Bob", "age": 3}', '{"city": "Oslo"}', "[1, 2]", "{name}", "It is {x}."])
def test_other_json_is_an_answer(text):
    assert not Guardrails(TOOLS).drops_answer(CallHistory("Who is it?"), CandidateAnswer(text))


@pytest.mark.parametrize(
    ("name", "arguments", "tool"),
    [
        ("write_notes/todo.md", {"path": "notes/todo.md", "content": "x"}, "write_file"),
        ("notes/todo.md", {"file": "notes/todo.md", "text": "x"}, "write_file"),
        ("edit: a.py (x)", {"path": "a.py", "old": "x", "new": "y"}, "edit_file"),
        ("files/a", {"path": "a"}, "files/a"),  # two tools fit
        ("notes/todo.md", {"path": "a", "content": "x", "mode": "w"}, "notes/todo.md"),
        ("apply edit", {"path": "a.py", "old": "x", "new": "y"}, "apply edit"),  # may be meant as a name
    ],
)
def test_impossible_name_is_matched_by_arguments(name, arguments, tool):
    assert normalize_call(name, arguments, TOOLS)[0] == tool


def schema_of(**schema: Any) -> Tool:
    properties = {"path": {"type": "string"}, "line": {"type": "integer"}, "content": {"type": "string"}}
    return Tool("t", parameters={"type": "object", "properties": properties, "required": ["path"], **schema})


@pytest.mark.parametrize(
    ("schema", "arguments", "forbidden", "is_safe"),
    [
        ({"additionalProperties": False}, {"path": "a", "why": "x"}, ("why",), True),
        ({"additionalProperties": False}, {"path": "a", "lines": 3}, ("lines",), False),  # misspelt
        ({"additionalProperties": False}, {"why": "x"}, ("why",), False),  # incomplete
        ({"additionalProperties": False}, {"path": "a", "append": True}, ("append",), False),
        ({"additionalProperties": False}, {"path": "a"}, (), True),
        ({"additionalProperties": True}, {"path": "a", "why": "x"}, (), True),
        ({}, {"path": "a", "why": "x"}, (), True),
        ({"additionalProperties": {"type": "string"}}, {"path": "a", "why": "x"}, (), True),
        ({"additionalProperties": False, "patternProperties": {"^x-": {}}}, {"path": "a", "x-y": 1}, (), True),
    ],
)
def test_forbidden_arguments_are_found(schema, arguments, forbidden, is_safe):
    found = select_allowed_arguments(schema_of(**schema), arguments)
    assert (found.forbidden, found.is_safe) == (forbidden, is_safe)
    assert found.arguments == {key: value for key, value in arguments.items() if key not in forbidden}


def test_reads_in_between_do_not_hide_a_repetition():
    """The reads are recognized by the names of a client's tools."""
    functions = [("c1", read("a")), ("c2", read("b"))]
    messages: list[Any] = [{"role": "user", "content": "Compare a with b."}]
    for call_id, (name, arguments) in functions:
        function = {"name": name, "arguments": json.dumps(arguments)}
        messages += [
            {"role": "assistant", "tool_calls": [{"id": call_id, "function": function}]},
            {"role": "tool", "tool_call_id": call_id, "content": "text"},
        ]
    assert getattr(Guardrails(TOOLS).check(messages, turn(read("a"))), "guardrail", "") == "made_already"
    assert read_call_history(messages, TOOLS).calls[0].changes is False


def test_question_is_repeated_after_a_repeated_call():
    """A small model forgets a short question that no change follows."""
    for request, is_repeated in (("What is in a?", True), ("Read a", False), (f"What is in a? {'x' * 300}?", False)):
        past = CallHistory(request, (PastCall(*read("a"), "text"),))
        verdict = Guardrails(TOOLS).check_response(past, CandidateAnswer.from_turn(turn(read("a"))))
        assert isinstance(verdict, Retry)
        assert verdict.message.endswith(f"from its result: {request}") == is_repeated


LOOK = ToolSet(
    [
        definition("read_file", "path", "end_line", required=1),
        definition("grep", "pattern", "path", required=1),
        definition("list_dir", "path", required=0),
    ]
)
PART = ("read_file", {"path": "a.md", "end_line": "1"})
NO_FILE = "error: file not found: a.md"


@pytest.mark.parametrize(
    ("call", "result", "words", "tools"),
    [
        (PART, "1| {", "from its result: What is in a?", ()),
        (PART, NO_FILE, "This call of read_file has failed. 'a.md' is neither in the request nor in a result.", ()),
        (("grep", {"pattern": "x", "path": "f.py"}), "error: path not found: f.py", '{"pattern": "x"}', ()),
        (PART, "error: the server is busy", "", ()),
        (("list_dir", {}), "a.md", "from its result: What is in a?", ()),
    ],
)
def test_repeated_call_is_answered_with_a_call_that_may_help(call, result, words, tools):
    """One with fewer arguments, or of another tool. An error that may pass is not an obstacle."""
    name, arguments = call
    past = CallHistory("What is in a?", (PastCall(name, arguments, result, not result.startswith("error")),))
    verdict = Guardrails(LOOK).check_response(past, CandidateAnswer("", (ToolCall("", name, arguments, ""),)))
    assert words in getattr(verdict, "message", "")
    assert (isinstance(verdict, Retry), getattr(verdict, "held_to", ())) == (bool(words), tools)


def test_truncated_flood_of_unknown_calls_is_not_an_answer():
    text = "\n".join([json.dumps({"name": "load_books", "arguments": {"path": "a.py"}})] * 9)
    past = CallHistory("Find the bug")
    assert isinstance(Guardrails(LOOK).check_response(past, CandidateAnswer(text), "length"), Retry)
    assert Guardrails(LOOK).check_response(past, CandidateAnswer("Well, the bug is in"), "length") == Accept()


def test_name_of_a_parameter_is_a_placeholder():
    """`Qwen2.5-Coder-0.5B` replaced a line of a file by ``new_content``."""
    tool = Tool(
        "edit", parameters={"type": "object", "properties": {"old_content": {}, "new_content": {}, "title": {}}}
    )
    assert find_placeholder(tool, {"new_content": "old_content"}, CallHistory("Fix a.md")) == "new_content"
    assert find_placeholder(tool, {"new_content": "old_content"}, CallHistory("Rename it to old_content")) == ""
    assert find_placeholder(tool, {"new_content": "title"}, CallHistory("Fix a.md")) == ""
    move = TOOLS["move_file"]
    assert find_placeholder(move, {"source": "destination"}, CallHistory("Rename a.md to b.md")) == "source"
    assert find_placeholder(move, {"source": "destination"}, CallHistory("Rename destination to b.md")) == ""


READ_A = PastCall("read_file", {"path": "a.md"}, "a smal tool")
FIX = 'Fix the typo "smal" in a.md'
FIXED = PastCall("edit_file", {"path": "a.md", "old": "smal", "new": "small"}, changes=True)
FIXED_AGAIN = [(FIXED.name, FIXED.arguments)]
READ_LINES = PastCall("read_file", {"path": "a.md"}, "1| one\n2| two\n")
FITS = ("call_as_answer", ("edit_file",))
REWRITES = ("unasked_action", ("edit_file",))
EQUAL = PastCall("edit_file", {"path": "a.md", "old": "a", "new": "a"}, "error: no change", ok=False)
FIX_ALL = 'Fix "smal" and replace {{year}} by 2026 in a.md'
RENAMED = PastCall("edit_file", {"path": "a.py", "old": "def greet", "new": "def hello"}, changes=True)
READ_B = PastCall("read_file", {"path": "b.py"}, "greet()")
RENAME = "Rename the function greet to hello in a.py and in b.py."


def test_repeated_change_is_answered_with_the_rest_of_the_request():
    for request, past, rest in ((FIX_ALL, FIXED, "{{year}}, 2026"), (RENAME, RENAMED, "b.py"), (FIX, FIXED, "")):
        history = CallHistory(request, (past,))
        verdict = Guardrails(TOOLS).check_response(
            history, CandidateAnswer("", turn((past.name, past.arguments)).calls)
        )
        assert isinstance(verdict, Retry)
        assert verdict.message.partition("Not done yet: ")[2].partition(". Now")[0] == rest


GROWN = PastCall("edit_file", {"path": "a.md", "old_content": "a", "new_content": "a, b"}, changes=True)


def test_instruction_of_an_error_is_no_text_of_a_file():
    """`Qwen2.5-Coder-0.5B` added it to a line."""
    error = "old was not found in:\n1: Dear all,\nCopy old from there, without line numbers.\nNothing was changed."
    failed = PastCall("edit_file", {"path": "a.md", "old": "x", "new": "y"}, error, ok=False)
    for new, is_copy in (("Dear all, Copy old from there, without line numbers.", True), ("Dear all, hi.", False)):
        call = PastCall("edit_file", {"path": "a.md", "old": "Dear all,", "new": new})
        assert copies_error(call, CallHistory("Fix a.md", (failed,))) == is_copy
        assert not copies_error(call, CallHistory(f"Fix a.md:\n{error}", (failed,)))


@pytest.mark.parametrize(
    ("text", "is_copy"),
    [
        ("password; list the workspace root to see what is there", True),
        ("kolibri-2291", False),
        ("The list of rooms is there", False),
        (f"{'A longer text. ' * 10}list the workspace root to see what is there", False),
    ],
)
def test_part_of_an_error_is_no_short_text_of_a_file(text, is_copy):
    """`Qwen2.5-Coder-0.5B` wrote it, and the run ended as a success."""
    error = "wifi.txt does not exist; list the workspace root to see what is there"
    failed = PastCall("edit_file", {"path": "wifi.txt", "old": "password", "new": "x"}, error, ok=False)
    call = PastCall("write_file", {"path": "wifi.txt", "content": text})
    assert copies_error(call, CallHistory("Put the password into wifi.txt", (failed,))) == is_copy
    assert not copies_error(call, CallHistory(f"Put this into wifi.txt: {text}", (failed,)))


def test_line_of_a_file_that_an_error_shows_is_no_copy():
    error = "old_content was not found in the file, which is:\n1: one two three four five"
    failed = PastCall("edit_file", {"path": "a.md", "old_content": "six", "new_content": "x"}, error, ok=False)
    fixed = {"path": "a.md", "old_content": "one two three four five", "new_content": "one two three four 5"}
    assert not copies_error(PastCall("edit_file", fixed), CallHistory("Fix a.md", (failed,)))


def test_same_edit_by_another_tool_is_a_repetition():
    """Also with an argument that the tool ignores."""
    tools = get_dialect("blade").tools
    edit = PastCall("edit_file", {"path": "a.md", "old_content": "smal", "new_content": "small"}, changes=True)
    same = PastCall("apply_edit", {"path": "a.md", "old_text": "smal", "new_text": "small"})
    for past, call, is_same in (
        (edit, same, True),
        (edit, replace(same, arguments={**same.arguments, "start_line": 4}), True),
        (edit, replace(same, arguments={**same.arguments, "new_text": "little"}), False),
        (edit, replace(edit, arguments={"path": "a.md", "old_content": "small", "new_content": "smaller"}), False),
        (GROWN, replace(GROWN, arguments={"path": "a.md", "old_content": "a, b", "new_content": "a, b, b"}), True),
        (GROWN, replace(GROWN, arguments={"path": "a.md", "old_content": "a, b", "new_content": "a, b, c"}), False),
        (GROWN, replace(GROWN, arguments={"path": "a.md", "old_content": "x", "new_content": "x, b"}), False),
        (PastCall("read_file", {"path": "a"}), PastCall("read_file", {"path": "a", "port": 1}), True),
        (PastCall("read_file", {"path": "a"}), PastCall("read_file", {"path": "b", "port": 1}), False),
        (PastCall("write_file", {"path": "a", "content": "x"}), PastCall("read_file", {"path": "a"}), False),
    ):
        assert is_recent_repeat(CallHistory("Fix it", (past,)), call, (), tools) == is_same


@pytest.mark.parametrize(
    ("request_", "past", "answer", "guardrail", "tools"),
    [
        (FIX, (), "I fixed it.", "unmade_change", ("read_file",)),
        ('Replace "smal" by "small" in a.md', (), "I fixed it.", "unmade_change", ("edit_file",)),
        (FIX, (READ_A,), "This is a smal tool.", "unmade_change", ("edit_file",)),
        ("In a.json, set the port to 9090.", (), "The port of a.json is 9090.", "unmade_change", ("read_file",)),
        ("Please delete old.log", (), "The file is deleted.", "unmade_change", ("delete_file",)),
        ("Create notes.txt", (), "I created notes.txt.", "unmade_change", ("write_file",)),
        ("Move a.md to b.md", (), "It was moved.", "unmade_change", ("move_file",)),
        (FIX, (READ_A,), [read("a.md")], "made_already", ("edit_file",)),
        (FIX, (READ_A,), [("change_file", {"path": "a.md"})], "unknown_tool", ("edit_file",)),
        (FIX, (READ_A,), [("delete_file", {"path": "a.md"})], "unasked_action", ("edit_file",)),
        (FIX, (READ_A, FIXED), [("delete_file", {"path": "a.md"})], "unasked_action", ()),
        ("What is in a.md?", (READ_A,), [("delete_file", {"path": "a.md"})], "unasked_action", ()),
        ("Delete b.md but keep a.md", (), [("delete_file", {"path": "a.md"})], "unasked_action", ("delete_file",)),
        ("Rename a.md to b.md", (), [("delete_file", {"path": "a.md"})], "unasked_action", ("move_file",)),
        ("a.md: we forgot Ann, put her last", (), [("delete_file", {"path": "a.md"})], "unasked_action", ()),
        ("Ann left, take her out of a.md", (), [("delete_file", {"path": "a.md"})], "unasked_action", ()),
        (
            "Lösch die zweite Zeile aus a.md",
            (READ_A,),
            [("delete_file", {"path": "a.md"})],
            "unasked_action",
            ("edit_file",),
        ),
        (FIX_ALL, (READ_A, FIXED), [*FIXED_AGAIN], "made_already", ("edit_file",)),
        (RENAME, (RENAMED,), [(RENAMED.name, RENAMED.arguments)], "made_already", ("read_file",)),
        (RENAME, (RENAMED, READ_B), [(RENAMED.name, RENAMED.arguments)], "made_already", ("edit_file",)),
        ("Add a line to a.md", (READ_LINES,), [("write_file", {"path": "a.md", "content": "x"})], *REWRITES),
        (FIX_ALL, (READ_A, FIXED, EQUAL), [(EQUAL.name, EQUAL.arguments)], "failed_already", ("edit_file",)),
        (FIX, (READ_A, FIXED, EQUAL), [(EQUAL.name, EQUAL.arguments)], "made_already", ()),
        (RENAME, (RENAMED,), '{"name": "edit them", "arguments": {"of": "b"}}', "call_as_answer", ("read_file",)),
        ('In a.md, "smal" is wrong. Correct it.', (), "I corrected it.", "unmade_change", ("read_file",)),
        ("Make a new file b/a.md", (), "I made it.", "unmade_change", ("write_file",)),
        ('Fix "smal"', (), "`edit_file`", "announced_call", ("edit_file",)),
        ("Which port is set in server.ini?", (), "The port is 8080.", "unread_file", ("read_file",)),
        ("Who wrote the book in b.csv that costs 12.50?", (), "John.", "unread_file", ("read_file",)),
        ("What version is in package.json?", (), "4.14.1", "unread_file", ("read_file",)),
        ("Which port is set in a.ini?", (), "The port is set in `a.ini`.", "unread_file", ("read_file",)),
        ("Who wrote a.toml?", (), "The author is [Your Name].", "unread_file", ("read_file",)),
        ("How many lines has a.md?", (), "It has 120 lines.", "unread_file", ("read_file",)),
        ("Who is the author in a.json?", (), "The author is @sam.", "unread_file", ("read_file",)),
        ("Weißt du, wer a.json schrieb?", (), "Das war Sam.", "unread_file", ("read_file",)),
        ("How do I create a.json?", (), "With any editor.", "", ()),
        ("Who is the author in a.json?", (), "Which of the two files do you mean?", "", ()),
        ("Who is the author in a.json?", (), "The file has no author.", "", ()),
        ("Is x in a.md?", (READ_LINES,), [("write_file", {"path": "a.md", "content": "x"})], "unasked_action", ()),
        (RENAME, (), [("write_file", {"path": "a.py", "content": "hello"})], "unasked_action", ("read_file",)),
        (
            "a.md hat tipfeler",
            (),
            [("write_file", {"path": "a.md", "content": "Hat"})],
            "unasked_action",
            ("read_file",),
        ),
        (FIX, (READ_A,), [("demo", {"content": "x"})], "unknown_tool", ("edit_file",)),
        ("Fix a.md", (READ_A, FIXED), ".tool_error: a.md: old was not found.", "own_words", ()),
        ("Do it", (READ_A,), [("write_file", {"path": "a.md", "content": ""})], "unasked_action", ()),
        ("Do it", (READ_A,), [("write_file", {"path": "a.md", "content": "x"})], "", ()),
        ("Empty it", (READ_A,), [("write_file", {"path": "a.md", "content": ""})], "", ()),
        ("Do it", (), '{"name": "make them", "arguments": {"path": "a", "old": "b", "new": "c"}}', *FITS),
        # lookalikes
        ("Run b.py, its output goes to a.md", (), [("write_file", {"path": "a.md", "content": "output"})], "", ()),
        (f"{RENAME} It is:\ngreet()", (), [("write_file", {"path": "a.py", "content": "hello()"})], "", ()),
        ("Add hello to a.py", (), [("write_file", {"path": "a.py", "content": "hello()"})], "", ()),
        ("Which port is set in server.ini?", (READ_A,), "The port is 8080.", "", ()),
        ("What is port 8080 in server.ini for?", (), "Port 8080 is for HTTP.", "", ()),
        ("What is version 4.14.1 in package.json?", (), "Version 4.14.1 is the last one.", "", ()),
        ("Which port does HTTPS use?", (), "Port 443.", "", ()),
        ("What is a package.json for?", (), "It lists dependencies.", "", ()),
        (FIX, (READ_A,), [("write_file", {"path": "a.md", "content": "a small tool"})], "", ()),
        ("Update a.md", (), [("write_file", {"path": "b.md", "content": "a small tool"})], "", ()),
        (FIX, (READ_A,), [("write_file", {"path": "b.md", "content": "a small tool"})], "", ()),
        (FIX, (READ_A, FIXED), [("delete_file", {"path": "b.md"})], "", ()),
        (FIX, (PastCall(*MILK, changes=True),), [("delete_file", {"path": "n.txt"})], "", ()),
        (FIX_ALL, (READ_A, FIXED), "I fixed it.", "", ()),
        ("Add x to a.md", (READ_LINES,), [("write_file", {"path": "a.md", "content": "one\ntwo\nx"})], "", ()),
        ("Add x to a.md", (READ_LINES,), [("edit_file", {"path": "a.md", "old": "two", "new": "two\nx"})], "", ()),
        ("Add x to a.md", (READ_LINES,), [("edit_file", {"path": "a.md", "old": "f(a)", "new": "f(a, b)"})], "", ()),
        ("Fix a.md", (READ_LINES,), [("edit_file", {"path": "a.md", "old": "two", "new": "x"})], "", ()),
        ("Update a.md", (READ_LINES,), [("write_file", {"path": "a.md", "content": "two"})], "", ()),
        ("Merge a.md into b.md", (READ_A, FIXED), [("delete_file", {"path": "a.md"})], "", ()),
        ("Edit a.md, print it and remove it", (READ_A, FIXED), [("delete_file", {"path": "a.md"})], "", ()),
        (FIX, (READ_A, PastCall(*EDIT, "ok", changes=True)), "I fixed it.", "", ()),
        (FIX, (READ_A,), "a.md already has the right spelling.", "", ()),
        (FIX, (READ_A,), "Which of the two places do you mean?", "", ()),
        (FIX, (READ_A,), "I can't find it there.", "", ()),
        (FIX, (READ_A,), "I found none.", "", ()),
        ("Ändere in a.md den Port auf 90.", (READ_A,), "In a.md ist kein Port angegeben.", "", ()),
        ("Corrige la faute dans a.md", (READ_A,), "Je ne vois aucune faute.", "", ()),
        ("Cambia il porto in a.md", (READ_A,), "Non c'è nessuna porta.", "", ()),
        ("Change a.md のポート", (READ_A,), "ポートの設定はありません。", "", ()),
        ("I have read a.md. Set up a meeting?", (), "When?", "", ()),
        ("a.md is long. Summarize it.", (READ_A,), "It is about a tool.", "", ()),
        ("Make a plan for a.md", (READ_A,), "Shorten the tool.", "", ()),
        ("Write a summary of a.md", (READ_A,), "A tool that is small.", "", ()),
        ("Fix my sentence: I has a dog", (), "I have a dog.", "", ()),
        ("Change of plans: what does a.md say?", (READ_A,), "It says that the tool is small.", "", ()),
        ("The new b.md makes a.md obsolete, put it there", (), [("delete_file", {"path": "a.md"})], "", ()),
        ("a.md is old, get rid of it", (), [("delete_file", {"path": "a.md"})], "", ()),
        ("Remove a.md", (), [("delete_file", {"path": "a.md"})], "", ()),
    ],
)
def test_requested_change_is_made_or_explained(request_, past, answer, guardrail, tools):
    """The retry is limited to the tools that make the change."""
    guardrails = Guardrails(TOOLS, on=parse_guardrails("on,-unfounded_success"))
    candidate = CandidateAnswer(answer) if isinstance(answer, str) else CandidateAnswer("", turn(*answer).calls)
    if guardrail == "unknown_tool":
        candidate = CandidateAnswer("", invalid=(InvalidToolCall("", "unknown tool", name=answer[0][0]),))
    verdict = guardrails.check_response(CallHistory(request_, past), candidate)
    assert (getattr(verdict, "guardrail", ""), getattr(verdict, "held_to", ())) == (guardrail, tools)


CODER = ToolSet(
    [
        definition("Read", "file_path"),
        definition("Write", "file_path", "content"),
        definition("Edit", "file_path", "old_string", "new_string"),
        definition("Bash", "command"),
    ]
)
CALC = {"file_path": "/home/ada/src/calc.py"}
READ_CALC = PastCall("Read", CALC, "1\tdef parse(text):\n2\t    return int(text)\n")


@pytest.mark.parametrize(
    ("request_", "past", "call"),
    [
        ("Fix the bug in src/calc.py", READ_CALC, ("Write", {**CALC, "content": "def parse(text): ..."})),
        (
            "Fix the bug in src/calc.py",
            PastCall("Bash", {"command": "cat src/calc.py"}),
            ("Write", {"file_path": "src/calc.py", "content": "x"}),
        ),
        ("Fix tests/test_calc.py", READ_CALC, ("Write", {**CALC, "content": "def parse(text): ..."})),
        (
            "Add a check of the text to src/calc.py",
            READ_CALC,
            ("Edit", {**CALC, "old_string": "return int(text)", "new_string": "if text:\n        return float(text)"}),
        ),
        (
            "Add a body to f in src/calc.py",
            READ_CALC,
            ("Edit", {**CALC, "old_string": "pass", "new_string": "return a + b"}),
        ),
    ],
)
def test_work_of_a_coding_agent_is_not_retried(request_: str, past: PastCall, call: Written):
    """It uses absolute paths, reads files with shell commands, and replaces lines when it adds something."""
    name, arguments = call
    candidate = CandidateAnswer("", (ToolCall("", name, arguments, ""),))
    assert Guardrails(CODER).check_response(CallHistory(request_, (past,)), candidate) == Accept()


@pytest.mark.parametrize(
    ("request_", "answer", "is_call"),
    [
        ("Add it to list.yaml", '{¤"name": "read_file", "arguments": {"path": "list.yaml"}}\n{"size": 27}', True),
        ("Set the port in config.json", '{"name": "change_port", "arguments": {"port": 1}}', True),
        ("Give me the JSON of a call", '{"name": "change_port", "arguments": {"port": 1}}', False),
    ],
)
def test_call_as_answer_is_recognized(request_, answer, is_call):
    """Also a copy of an escaped call, and if the request names a JSON file."""
    assert Guardrails(TOOLS).drops_answer(CallHistory(request_), CandidateAnswer(answer)) == is_call


@pytest.mark.parametrize("is_parsed", [True, False])
def test_unknown_tool_with_the_arguments_of_one_tool_gets_its_call(is_parsed):
    """`Qwen2.5-Coder-0.5B` named the tool after the task."""
    arguments = {"path": "b.py", "old": "greet", "new": "hello"}
    raw = json.dumps({"name": "rename_greet_to_hello", "arguments": arguments})
    call = ToolCall("", "rename_greet_to_hello", arguments, raw)
    invalid = InvalidToolCall(raw, "unknown tool", name="rename_greet_to_hello")
    candidate = CandidateAnswer("", (call,)) if is_parsed else CandidateAnswer("", invalid=(invalid,))
    verdict = Guardrails(TOOLS).check_response(CallHistory("Rename greet to hello in b.py"), candidate)
    assert isinstance(verdict, Retry)
    assert verdict.held_to == ("edit_file",)
    assert '{"name": "edit_file", "arguments": {"path": "b.py", "old": "greet", "new": "hello"}}' in verdict.message


def test_equal_failures_count_as_a_repeated_call():
    """The model increments an argument that the tool ignores."""
    failed = [PastCall("edit_file", {**EDIT[1], "end": str(end)}, "error: not found", ok=False) for end in range(5)]
    other = PastCall("edit_file", EDIT[1], "error: no such file", ok=False)
    unknown = [replace(call, result="") for call in failed]  # Ollama's results have no id
    pasts = ((failed, "repeated_call"), ([*failed[:4], other], ""), ([*failed, READ_A], ""), (unknown, ""))
    for past, guardrail in pasts:
        answer = CandidateAnswer("", turn(OTHER_EDIT).calls)
        verdict = Guardrails(TOOLS).check_response(CallHistory("Go", tuple(past)), answer)
        assert getattr(verdict, "guardrail", "") == guardrail


def test_example_has_one_of_several_paths_but_no_other_value():
    """A small model copies the example: a wrong path can be corrected, a wrong text is written."""

    def example(request: str, name: str, arguments: JsonObject) -> str:
        examples = Examples(lambda calls: json.dumps(calls), CallHistory(request))
        return f"{examples.describe(TOOLS[name], arguments):Write}"

    assert example("Read a.md and b.md", "read_file", {}) == ' Write:\n[["read_file", {"path": "a.md"}]]'
    for arguments in ({}, {"old": "x"}, {"path": "your path", "old": "x", "new": "y"}):
        assert example("Edit it", "edit_file", arguments) == " Parameters of edit_file: path, old, new."


FIND = PastCall("find_user", {"name": "Bob"}, "u-17")
LIT = PastCall("set_light", {"entity_id": "light.bob", "state": "on"}, "error: nothing was found for this", ok=False)


@pytest.mark.parametrize(
    ("change", "guardrail"),
    [
        (replace(LIT, changes=True), "made_already"),
        (replace(LIT, changes=True, ok=True), ""),
        (PastCall("run_tests", {}, "error: 2 failed", ok=False, changes=True), ""),  # it may have written files
    ],
)
def test_failed_change_does_not_excuse_a_repetition(change, guardrail):
    answer = CandidateAnswer.from_turn(turn(("find_user", {"name": "Bob"})))
    verdict = Guardrails(TOOLS).check_response(CallHistory("Light Bob's lamp", (FIND, change)), answer)
    assert getattr(verdict, "guardrail", "") == guardrail


def test_two_calls_in_turns_are_a_loop():
    """Even if the name of neither shows that it only reads."""
    sensor, log = (
        PastCall(name, {"id": "T4"}, result, changes=True) for name, result in (("sensor", "97"), ("log", "ok"))
    )
    tools = ToolSet([definition("sensor", "id"), definition("log", "id")])
    for made, call, guardrail in (
        ((sensor, log), sensor, ""),
        ((sensor, log, sensor), log, "made_already"),
        ((sensor, log, replace(sensor, result="98")), log, ""),
    ):
        answer = CandidateAnswer("", (ToolCall("1", call.name, call.arguments, ""),))
        verdict = Guardrails(tools).check_response(CallHistory("Log T4", made), answer)
        assert getattr(verdict, "guardrail", "") == guardrail


def test_repeated_failure_is_told_of_its_invented_value_and_then_held_to_other_tools():
    guardrails, answer = Guardrails(TOOLS), CandidateAnswer("", (ToolCall("1", LIT.name, LIT.arguments, ""),))
    past = CallHistory("Turn on the lamp", (LIT,))
    first, second = (guardrails.check_response(past, answer) for _ in range(2))
    assert isinstance(first, Retry)
    assert isinstance(second, Retry)
    assert (first.message.partition("failed. ")[2], first.held_to) == (
        "'light.bob' is neither in the request nor in a result.", ()
    )  # fmt: skip
    assert "set_light" not in second.held_to
    assert {"read_file", "find_user"} <= {*second.held_to}


def test_repeated_command_is_held_to_the_file_that_the_request_wants_read():
    past = CallHistory("Read README.md and run its command.", (PastCall("run_tests", {}, "7 failed"),))
    verdict = Guardrails(TOOLS).check_response(past, CandidateAnswer.from_turn(turn(("run_tests", {}))))
    assert isinstance(verdict, Retry)
    assert verdict.held_to == ("read_file",)
    tried = PastCall("read_file", {"path": "README.md"}, "error: no such file", ok=False)
    past = replace(past, calls=(tried, *past.calls))
    verdict = Guardrails(TOOLS).check_response(past, CandidateAnswer.from_turn(turn(("run_tests", {}))))
    assert getattr(verdict, "held_to", None) == ()


@pytest.mark.parametrize(
    ("arguments", "guardrail"),
    [
        ({"name": "nothing was found for this"}, "own_words"),
        ({"name": "error: nothing was found for this"}, "own_words"),
        ({"name": "Bob, of whom nothing was found for this"}, ""),
        ({"name": "nothing was found"}, ""),
    ],
)
def test_error_of_a_tool_is_not_its_argument(arguments, guardrail):
    """Errors of other tools may be searched for, and errors that quote the request are not the tool's words."""
    failed = PastCall("find_user", {"name": "light.bob"}, "error: nothing was found for this", ok=False)
    answer = CandidateAnswer("", (ToolCall("1", "find_user", arguments, ""),))
    verdict = Guardrails(TOOLS).check_response(CallHistory("Who is Rob?", (failed,)), answer)
    assert getattr(verdict, "guardrail", "") == guardrail
    asked = CallHistory(f"Who is {arguments['name']}?", (failed,))
    other = CallHistory("Who is Rob?", (replace(failed, name="read_file"),))
    for past in (asked, other):
        assert Guardrails(TOOLS).check_response(past, answer) == Accept()


def test_text_is_not_replaced_by_itself():
    edit = {"path": "a.md", "old": "fee", "new": "fee"}
    verdict = Guardrails(TOOLS).check_response(
        CallHistory("Fix a.md"), CandidateAnswer.from_turn(turn(("edit_file", edit)))
    )
    assert "its new text equals the old one" in getattr(verdict, "message", "")
    edit["new"] = "fees"
    answer = CandidateAnswer.from_turn(turn(("edit_file", edit)))
    assert Guardrails(TOOLS).check_response(CallHistory("Fix a.md"), answer) == Accept()


def test_calls_of_a_truncated_answer_are_checked():
    """Its text is not: the rest may explain it."""
    past = CallHistory("What is in a?", (PastCall("read_file", {"path": "a"}, "the cat sat on the mat"),))
    verdict = Guardrails(TOOLS).check_response(past, CandidateAnswer.from_turn(turn(read("a"))), "length")
    assert getattr(verdict, "guardrail", "") == "made_already"
    assert Guardrails(TOOLS).check_response(past, CandidateAnswer(""), "length") == Accept()
