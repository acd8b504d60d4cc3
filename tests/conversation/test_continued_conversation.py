"""A conversation that continues after an answer: its history and its limits."""

from __future__ import annotations

import pytest

from adapter.conversation.session import Session
from adapter.conversation.session_steps import AskModel, Finished, RunTools, SessionLimits
from adapter.core.errors import UsageError
from adapter.core.events import ToolResult
from adapter.parsing.formats import get_format
from adapter.parsing.parser import parse
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

TOOLS = ToolSet([Tool("read_file", effect="read")])
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "%s"}}\n</tool_call>'


def new_session(**limits: int) -> Session:
    return Session("system", get_format("hermes"), TOOLS, SessionLimits(**limits))


def read(session: Session, path: str, content: str = "text") -> AskModel | Finished:
    """A turn that reads ``path``, and its result."""
    step = session.on_answer(parse(CALL % path))
    assert isinstance(step, RunTools)
    after = session.on_tool_results(
        [ToolResult("read_file", ok=True, content=content, call_id=call.id) for call in step.calls]
    )
    assert not isinstance(after, RunTools)
    return after


def test_send_appends_to_the_conversation():
    """The whole history is shown again."""
    session = new_session()
    session.start("Read a.py")
    read(session, "a.py")
    session.on_answer(parse("Done."))
    query = session.send("And b.py")
    assert [message["role"] for message in query.messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert query.messages[-1]["content"] == "And b.py"
    assert query.number == 3


def test_send_before_start_raises():
    """There is no conversation yet."""
    with pytest.raises(UsageError, match="start"):
        new_session().send("And b.py")


def test_limits_apply_to_each_message():
    """Counts of turns, repetitions and invalid calls restart."""
    session = new_session(turns=2, repetitions=0, refusals=1)
    session.start("Read a.py")
    read(session, "a.py")
    assert session.on_answer(parse(CALL % "a.py")) == Finished("repetition", "text")
    session.send("Once more")
    assert isinstance(read(session, "a.py"), AskModel)
    assert read(session, "b.py") == Finished("turns", "")


@pytest.mark.parametrize("reason", ["repetition", "unreadable", "interrupted"])
def test_every_call_has_a_result_before_the_next_message(reason):
    """The model sees all results first, for every end of the last message."""
    session = new_session(repetitions=0, refusals=1, unreadable=1)
    session.start("Read a.py")
    if reason == "unreadable":
        assert session.on_answer(parse("<tool_call>\n{oops\n</tool_call>")) == Finished("unreadable", "")
    elif reason == "repetition":
        read(session, "a.py")
        assert session.on_answer(parse(CALL % "a.py")) == Finished("repetition", "text")
    else:
        step = session.on_answer(parse(CALL % "a.py" + "\n" + CALL % "b.py"))
        assert isinstance(step, RunTools)
        first, _ = step.calls
        assert session.on_interrupt([ToolResult("read_file", ok=True, content="of a", call_id=first.id)]) == Finished(
            "interrupted", ""
        )
    asked = session.send("Go on").messages
    assert asked[-2]["role"] == "assistant"
    results, _, message = str(asked[-1]["content"]).rpartition("\n\n")
    assert message == "Go on"
    assert results.count("<tool_response>") == (2 if reason == "interrupted" else 1)
    assert "tool_error: " in results
    assert ("of a" in results) == (reason == "interrupted")


def test_last_user_message_is_never_dropped():
    """A full context drops the oldest turns, not the current message."""
    session = new_session(context_tokens=2_000)
    session.start("The first task")
    for number in range(6):
        read(session, f"{number}.py", "word " * 100)
    assert isinstance(session.on_answer(parse("There was nothing to do.")), Finished)
    session.send("The second task")
    assert isinstance(session.on_answer(parse("There was nothing to do.")), Finished)
    session.send("The third task")
    notes = []
    for number in range(12):
        query = read(session, f"b{number}.py", "word " * 100)
        assert isinstance(query, AskModel)
        notes.append(query.note)
    assert isinstance(query, AskModel)
    shown = str(query.messages)
    assert any("turns left out" in note and "0 turns" not in note for note in notes)
    assert "The first task" in shown
    assert "The second task" not in shown
    assert "The third task" in shown


def test_note_is_added_to_the_next_message():
    """Only once, and it is not part of the request."""
    session = new_session()
    session.start("Read a.py")
    session.on_answer(parse("It is empty."))
    session.add_note("[The user took the change back.]")
    assert session.send("And b.py").messages[-1]["content"] == "[The user took the change back.]\n\nAnd b.py"
    session.on_answer(parse("It is empty, too."))
    assert session.send("Thanks").messages[-1]["content"] == "Thanks"


def test_interrupted_answer_stays_in_the_history():
    """Its calls are not run, and its text is kept."""
    session = new_session()
    session.start("Read a.py")
    answer = "I look.\n" + CALL % "a.py" + "\nAnd now <tool_call>\n{"
    assert session.on_interrupt(turn=parse(answer, finish_reason="incomplete")) == Finished(
        "interrupted", "I look.\nAnd now"
    )
    *_, said, last = session.send("Go on").messages
    assert str(said["content"]).startswith("I look.\n" + CALL % "a.py")
    results, stopped, message = str(last["content"]).rsplit("\n\n", 2)
    assert results.count("tool_error: ") == 2
    assert (stopped, message) == ("[The user stopped your last answer before its end.]", "Go on")


def test_unanswered_message_is_merged_with_the_next():
    """Templates reject consecutive user messages; the first remains the task after cuts."""
    session = new_session()
    session.start("Read a.py")
    session.on_interrupt(turn=parse("<think>Hm", finish_reason="incomplete"))
    assert [message["role"] for message in session.send("Or b.py").messages] == ["system", "user"]
    session.on_answer(parse("Which?"))
    session.send("b.py")
    session.on_interrupt()
    messages = session.send("Both").messages
    assert [message["content"] for message in messages[1:]] == ["Read a.py\n\nOr b.py", "Which?", "b.py\n\nBoth"]


@pytest.mark.parametrize("shows_calls", [False, True])
@pytest.mark.parametrize("written", ["hermes", "mistral"])
def test_resume_reencodes_in_the_new_format(written, shows_calls):
    """Answers and results look native; limits count from the next message."""
    other = get_format(written).encode_calls([("read_file", {"path": "a.py"})])
    turn = parse(f"I look. {other}", TOOLS)
    result = ToolResult("read_file", ok=True, content="text", call_id=turn.calls[0].id)
    session = Session("system", get_format("qwen3_coder"), TOOLS, SessionLimits(turns=1), shows_calls)
    session.resume("Read a.py", [(turn, [result]), (parse("It is text."), [])])
    session.resume("Read b.py", [(parse(other, TOOLS), [])])
    query = session.send("Go on")
    roles = [str(message["role"]) for message in query.messages]
    shown = str(query.messages)
    assert roles.count("assistant") == 3
    assert "<function=read_file>" in shown
    assert other not in shown
    assert "text" in shown
    assert "the user stopped the run" in shown
    assert session.on_answer(parse("Done.")) == Finished("answered", "Done.")
