"""Answers as a whole: what capable models write is left alone, and what weak models do wrong is noticed.

Each case is a request, the calls before the answer with their results, and the answer.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.conversation.guardrails.guardrails import Guardrails
from adapter.conversation.guardrails.registry import parse_guardrails
from adapter.conversation.guardrails.verdicts import Accept
from adapter.parsing.parser import parse
from adapter.tools.tool_set import ToolSet
from tests.model_text import call


def definition(name: str, *required: str, **optional: Any) -> dict[str, Any]:
    properties = {each: {"type": "string"} for each in required} | optional
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": [*required]}}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
TOOLS = ToolSet(
    [
        definition("read_file", "path", start_line=NUMBER, end_line=NUMBER),
        definition("write_file", "path", "content"),
        definition("edit_file", "path", "old_text", "new_text"),
        definition("delete_file", "path"),
        definition("list_dir", path=TEXT),
        definition("run_command", "command"),
        definition("grep", "pattern", path=TEXT),
        definition("move_file", "source", "destination"),
        definition("set_light", "entity_id", state={"type": "string", "enum": ["on", "off"]}, brightness=NUMBER),
        definition("send_message", "to", "text"),
        definition("get_weather", "city"),
        definition("job_status", "job_id"),
        definition("git_push", branch=TEXT, force={"type": "boolean"}),
        definition("create_event", "title", "start"),
        definition("http_request", "url", method=TEXT),
        definition("close_issue", number=NUMBER),
        definition("create_note", "title", "content"),
        definition("add_to_cart", "product"),
        definition("checkout"),
        definition("list_issues", "repo"),
        definition("click", "ref"),
    ]
)
Before = tuple[tuple[str, dict[str, Any], str], ...]
Case = tuple[str, Before, str]


def read(path: str, text: str) -> tuple[str, dict[str, Any], str]:
    return "read_file", {"path": path}, text


def edit(path: str, old: str, new: str) -> str:
    return call("edit_file", path=path, old_text=old, new_text=new)


def judge(case: Case) -> tuple[str, list[str]]:
    """Return the guardrail that retries the answer, or "", and the guardrails that drop its calls."""
    request, before, answer = case
    messages: list[dict[str, Any]] = [{"role": "user", "content": request}]
    for number, (name, arguments, result) in enumerate(before):
        function = {"name": name, "arguments": json.dumps(arguments)}
        messages += [
            {"role": "assistant", "tool_calls": [{"id": str(number), "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": str(number), "content": result},
        ]
    guardrails = Guardrails(TOOLS, on=parse_guardrails("on"))
    turn = parse(answer, TOOLS, format="hermes", finish_reason="stop")
    verdict = guardrails.check(messages, turn)
    dropped = [each.guardrail for each in guardrails.screen(messages, turn)[1]]
    return "" if verdict == Accept() else getattr(verdict, "guardrail", "stopped"), dropped


CITIES = ["Berlin", "Hamburg", "Munich", "Cologne", "Frankfurt", "Stuttgart", "Leipzig", "Dortmund", "Essen", "Bremen"]
FILES = [f"mod{number}.py" for number in range(12)]
LEFT_ALONE: dict[str, Case] = {
    "ten calls that the request counts": (
        "What is the weather in the ten biggest German cities?",
        (),
        "".join(call("get_weather", city=x) for x in CITIES),
    ),
    "twelve files that a result lists": (
        "Read everything in src",
        (("list_dir", {"path": "src"}, "\n".join(FILES)),),
        "".join(call("read_file", path=f"src/{name}") for name in FILES),
    ),
    "nine edits of files that a result lists": (
        "Add a licence header everywhere",
        (("grep", {"pattern": "import os"}, "\n".join(FILES[:9])),),
        "".join(edit(name, "import os", "# MIT\nimport os") for name in FILES[:9]),
    ),
    "eleven numbers that a result lists": (
        "Close the stale issues",
        (("grep", {"pattern": "stale"}, "\n".join(f"#{number} stale" for number in range(11))),),
        "".join(call("close_issue", number=number) for number in range(11)),
    ),
    "a second click": ("Go to page 3", (("click", {"ref": "next"}, "clicked"),), call("click", ref="next")),
    "a result that will change": (
        "Is the upload finished?",
        (("read_file", {"path": "log"}, "Uploading 40 %"),),
        call("read_file", path="log"),
    ),
    "a template with placeholders": (
        "Create a README template in TEMPLATE.md",
        (),
        call("write_file", path="TEMPLATE.md", content="Put it in /path/to/x"),
    ),
    "a path of the request that looks invented": (
        "Set dir to /path/to/data in a.ini",
        (read("a.ini", "dir = x"),),
        edit("a.ini", "dir = x", "dir = /path/to/data"),
    ),
    "a placeholder that the user wants": (
        "Replace YOUR_KEY with <api_key> in a.md",
        (read("a.md", "YOUR_KEY"),),
        edit("a.md", "YOUR_KEY", "<api_key>"),
    ),
    "a folder whose name looks invented": (
        "Show the main file",
        (("list_dir", {}, "your-app/\n  main.py"),),
        call("read_file", path="your-app/main.py"),
    ),
    "a search for dots": ("Find spread operators", (), call("grep", pattern="...")),
    "two deletions in other words": (
        "Get rid of old.log and tmp.log",
        (),
        call("delete_file", path="old.log") + call("delete_file", path="tmp.log"),
    ),
    "two edits of one file": (
        "Rename foo to bar in a.py",
        (read("a.py", "def foo(): ...\nfoo()"),),
        edit("a.py", "def foo():", "def bar():") + edit("a.py", "foo()", "bar()"),
    ),
    "an edit and a test": (
        "Fix a.py and test it",
        (read("a.py", "range(n)"),),
        edit("a.py", "range(n)", "range(n + 1)") + call("run_command", command="pytest"),
    ),
    "the same test after an edit": (
        "Make the tests pass",
        (
            ("run_command", {"command": "pytest"}, "1 failed"),
            ("edit_file", {"path": "a.py", "old_text": "1", "new_text": "2"}, "ok"),
        ),
        call("run_command", command="pytest"),
    ),
    "polling": ("Wait for job 7", (("job_status", {"job_id": "7"}, "running"),) * 4, call("job_status", job_id="7")),
    "a checkout in two words": (
        "Add p_1 to my cart and check out",
        (),
        call("add_to_cart", product="p_1") + call("checkout"),
    ),
    "a text for the user": ("Write me a two-line note for Eva", (), "Dear Eva,\nthank you!"),
    "a script that is written, run and deleted": (
        "Is 2**100 even? Use a script",
        (),
        call("write_file", path="t.py", content="print(2**100 % 2)")
        + call("run_command", command="python t.py")
        + call("delete_file", path="t.py"),
    ),
    "a swap": (
        "Swap a.txt and b.txt",
        (),
        call("move_file", source="a.txt", destination="c")
        + call("move_file", source="b.txt", destination="a.txt")
        + call("move_file", source="c", destination="b.txt"),
    ),
    "a folder listed before and after": (
        "Delete a.txt, and list the folder before and after",
        (),
        call("list_dir") + call("delete_file", path="a.txt") + call("list_dir"),
    ),
    "a light that blinks": (
        "Blink light.a three times",
        (),
        "".join(call("set_light", entity_id="light.a", state=s) for s in ["on", "off"] * 3),
    ),
    "the same message to two people": (
        "Tell Ann and Bob that I'm late",
        (),
        call("send_message", to="Ann", text="I'm late.") + call("send_message", to="Bob", text="I'm late."),
    ),
    "a push in other words": ("Ship it.", (), call("git_push", branch="main")),
    "filler text on request": (
        "Fill p.txt with dummy text",
        (),
        call("write_file", path="p.txt", content="Lorem ipsum dolor sit amet."),
    ),
    "JSON on request": ("Return JSON with the keys name and arguments.", (), '{"name": "x", "arguments": {"a": "b"}}'),
    "an example of a call": (
        "How does a function call look?",
        (),
        '```json\n{"name": "get_stock", "arguments": {"ticker": "A"}}\n```',
    ),
    "a call that is only shown": (
        "Which call would read a.py? Just show it.",
        (),
        'I would call `read_file(path="a.py")`.',
    ),
    "no reason is needed with an alternative": (
        "Book a flight to Rome",
        (),
        "I don't have access to a booking system. I can only check the weather in Rome.",
    ),
    "a refusal with a reason": ("Fax it to Ann", (), "I can't send faxes: there is no tool for that."),
    "a question": ("Rename the file", (), "Which file do you mean?"),
    "a claim after a call": (
        "Turn on light.a",
        (("set_light", {"entity_id": "light.a", "state": "on"}, "ok"),),
        "It is on.",
    ),
    "tests after each edit": (
        "Fix a.py and run the tests",
        (read("a.py", "x = 1\ny = 2"),),
        edit("a.py", "x = 1", "x = 3")
        + call("run_command", command="pytest")
        + edit("a.py", "y = 2", "y = 4")
        + call("run_command", command="pytest"),
    ),
    "a file beside its source": (
        "Use form.txt to write a letter to Mr Aydin and save it as aydin.txt",
        (read("form.txt", "Dear <NAME>, hello"),),
        call("write_file", path="aydin.txt", content="Dear Mr Aydin, hello"),
    ),
    "a quoted text for an unread file": (
        'Update a.txt to "closed"',
        (),
        call("write_file", path="a.txt", content="closed\n"),
    ),
    "a kept file copied": (
        "Keep a.txt, but copy it to b.txt",
        (),
        call("run_command", command="cp a.txt b.txt"),
    ),
    "the name of a kept file in a text": (
        "In list.md replace old.txt, but keep new.txt",
        (read("list.md", "old.txt\nnew.txt"),),
        edit("list.md", "old.txt\n", ""),
    ),
    "files beside the exception": (
        "Delete everything in logs except today.log",
        (("list_dir", {"path": "logs"}, "mon.log\ntoday.log"),),
        call("delete_file", path="logs/mon.log"),
    ),
    "a folder that is built again": ("Run the tests", (), call("run_command", command="rm -rf build && make test")),
    "a change of an earlier answer": ("Thanks!", (), "You're welcome. The event is created."),
    "a claim about the conversation": ("My dog is called Rex", (), "I've noted that your dog is called Rex."),
    "a command that the user asked for": ("How do I open a.txt in vim?", (), 'Type "vim a.txt".'),
    "a quotation from the request": ('Does a.txt say "hello"?', (read("a.txt", "hello you"),), 'Yes, it says "hello".'),
    "an offer": (
        "Fix a.py",
        (("edit_file", {"path": "a.py", "old_text": "a", "new_text": "b"}, "ok"),),
        "Fixed. Should I test it?",
    ),
    "an explanation": ("Why is the sky blue?", (), "Let me explain: blue light is scattered more."),
}


@pytest.mark.parametrize("case", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_answer_of_a_capable_model_is_left_alone(case):
    assert judge(case) == ("", [])


TEMPORARY = """\
error: 503 Service Unavailable
Error: HTTP 500 Internal Server Error
Error: timed out after 30 s
error: connection refused
{"error": "rate limit exceeded"}
{"error": {"code": 429}}
Error: could not get lock /var/lib/dpkg/lock"""


@pytest.mark.parametrize("error", TEMPORARY.splitlines())
def test_call_may_be_repeated_after_a_temporary_error(error):
    case = "Is example.com up?", (("http_request", {"url": "https://example.com"}, error),)
    assert judge((*case, call("http_request", url="https://example.com"))) == ("", [])


RETRIED: dict[str, tuple[str, Case]] = {
    "an invented path": ("placeholder", ("Read the config", (), call("read_file", path="path/to/your/config.json"))),
    "an invented path in a command": (
        "placeholder",
        ("Show the config", (), call("run_command", command="cat /path/to/config.json")),
    ),
    "your file": ("placeholder", ("Fix the typo", (), edit("your_file.txt", "teh", "the"))),
    "a file called filename": ("placeholder", ("Read the notes", (), call("read_file", path="filename.txt"))),
    "your server": ("placeholder", ("Is it up?", (), call("http_request", url="https://your-server.com"))),
    "a parameter's name": ("placeholder", ("Turn it on", (), call("set_light", entity_id="entity_id", state="on"))),
    "an error that stays": (
        "failed_already",
        ("Read a.txt", (read("a.txt", "error: a.txt: no such file"),), call("read_file", path="a.txt")),
    ),
    "a message that was never sent": (
        "unused_tool",
        ("Send Bob a message that I'm late", (), "Your message has been sent to Bob."),
    ),
    "an announcement": ("unused_tool", ("Push this to git", (), "Sure, pushing it to the remote!")),
    "instructions for the user": (
        "unused_tool",
        ("Create an event 'Lunch' at noon", (), "Open your calendar, click on noon and type Lunch."),
    ),
    "an invented number": ("unused_tool", ("How is the weather in Rome?", (), "It is sunny, with 24 degrees.")),
    "an address of an example": ("placeholder", ("Is it up?", (), call("http_request", url="https://example.com"))),
    "a counted number": ("placeholder", ("Is my job done?", (), call("job_status", job_id="12345"))),
    "a date that is a pattern": (
        "placeholder",
        ("Create an event", (), call("create_event", title="Lunch", start="YYYY-MM-DD")),
    ),
    "an owner of an example": ("placeholder", ("Close issue 1", (), call("list_issues", repo="owner/repo"))),
    "no access to files": (
        "refusal",
        ("What's in a.txt?", (), "I'm sorry, but I can't access files on your computer."),
    ),
    "no data of today": (
        "refusal",
        ("What's the weather in Rome?", (), "I don't have access to real-time data. Please check a website."),
    ),
    "only a program": ("refusal", ("What's the weather in Rome?", (), "As an AI, I cannot check the weather.")),
    "an invented quotation": ("unread_file", ("What does a.txt say?", (), 'The file says: "Hello, world!"')),
    "an error of a tool as the answer": (
        "own_words",
        ("Create a.md", (("move_file", {"source": "a", "destination": "b"}, "error"),), "tool_error: . is no file"),
    ),
    "a message that was not sent": (
        "unfounded_success",
        ("Tell Bo that lunch is at 12", (), "I've sent the message to Bo."),
    ),
    "a light that was not switched": (
        "unfounded_success",
        ("Turn the light in the hall off", (), "The light in the hall is now off."),
    ),
    "the error of a shell as a command": (
        "own_words",
        (
            "Run the linter",
            (("run_command", {"command": "lint"}, "/bin/sh: 1: lint: not found"),),
            call("run_command", command="/bin/sh: 1: lint: not found"),
        ),
    ),
    "a possessive in a placeholder": (
        "placeholder",
        ("Tell Tom that I'm late", (), call("send_message", to="[Tom's id]", text="late")),
    ),
    "a folder deleted for a question": (
        "unasked_action",
        ("How large is the folder build?", (), call("run_command", command="rm -rf ./build")),
    ),
    "an exception deleted": (
        "unasked_action",
        (
            "Delete everything in logs except today.log",
            (("list_dir", {"path": "logs"}, "mon.log\ntoday.log"),),
            call("delete_file", path="logs/today.log"),
        ),
    ),
    "a kept file deleted by a command": (
        "unasked_action",
        ("Delete logs/old.log but keep logs/new.log", (), call("run_command", command="cd . && rm logs/*.log")),
    ),
    "a folder with a kept file deleted": (
        "unasked_action",
        ("Delete logs/old.log but keep logs/new.log", (), call("run_command", command="rm -r logs")),
    ),
    "a kept file moved": (
        "unasked_action",
        (
            "Move a.txt into old/ but leave b.txt where it is",
            (),
            call("move_file", source="b.txt", destination="old/b.txt"),
        ),
    ),
    "an unread form overwritten": (
        "unasked_action",
        (
            "Fill a.txt in: the NAME is Ito",
            (),
            call("write_file", path="a.txt", content="The NAME is Ito"),
        ),
    ),
    "an unread source overwritten": (
        "unasked_action",
        (
            "Use form.txt to write a letter to Mr Aydin and save it as aydin.txt",
            (),
            call("write_file", path="form.txt", content="Dear Mr Aydin, hello"),
        ),
    ),
    "a kept file edited": (
        "unasked_action",
        ("Rename greet to hello in a.py but not in b.py", (read("b.py", "greet()"),), edit("b.py", "greet", "hello")),
    ),
    "an unknown tool": ("unknown_tool", ("Read a.txt", (), call("open_file", filename="a.txt"))),
}


@pytest.mark.parametrize(("guardrail", "case"), RETRIED.values(), ids=RETRIED)
def test_wrong_answer_is_retried(guardrail, case):
    assert judge(case)[0] == guardrail


DROPPED: dict[str, tuple[str, int, Case]] = {
    "a file moved back": (
        "undone_in_answer",
        1,
        (
            "Rename a.txt to b.txt",
            (),
            call("move_file", source="a.txt", destination="b.txt")
            + call("move_file", source="b.txt", destination="a.txt"),
        ),
    ),
    "another file deleted": (
        "unasked_action",
        1,
        (
            "Create b.txt with 'hi'",
            (),
            call("write_file", path="b.txt", content="hi") + call("delete_file", path="a.txt"),
        ),
    ),
    "a sequence of calls that begins again": (
        "repeated_in_answer",
        1,
        (
            "Copy a.txt to b.txt",
            (),
            call("list_dir")
            + call("run_command", command="cp a.txt b.txt")
            + call("move_file", source="c.txt", destination="d.txt")
            + call("list_dir")
            + call("run_command", command="cp a.txt b.txt"),
        ),
    ),
    "calls without arguments": (
        "wrong_arguments",
        3,
        (
            "Rename x to y in a.py",
            (read("a.py", "x = 1"),),
            edit("a.py", "x = 1", "y = 1") + 3 * call("edit_file"),
        ),
    ),
    "a file deleted after an edit": (
        "undone_in_answer",
        2,
        (
            "Create a.txt with the word milk",
            (),
            call("write_file", path="a.txt", content="milk")
            + edit("a.txt", "milk", "milk and eggs")
            + call("delete_file", path="a.txt"),
        ),
    ),
    "calls that nobody asked for": (
        "too_many_calls",
        6,
        ("Turn on the light", (), "".join(call("set_light", entity_id=f"room{n}", state="on") for n in range(14))),
    ),
}


@pytest.mark.parametrize(("guardrail", "times", "case"), DROPPED.values(), ids=DROPPED)
def test_needless_call_is_dropped(guardrail, times, case):
    assert judge(case) == ("", [guardrail] * times)
