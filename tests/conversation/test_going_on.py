"""A conversation that goes on after an answer: what the model is shown, and what begins anew."""

from __future__ import annotations

import pytest

from adapter.conversation.session import AskModel, Finished, RunTools, Session, SessionLimits
from adapter.core.errors import UsageError
from adapter.core.events import ToolResult
from adapter.parsing.formats import get_format
from adapter.parsing.parser import parse
from adapter.tools.tool import Tool, ToolSet

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


def test_the_next_message_follows_the_answer():
    """All that was said before is shown again."""
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


def test_it_begins_with_start():
    """There is nothing to go on from."""
    with pytest.raises(UsageError, match="start"):
        new_session().send("And b.py")


def test_the_limits_are_for_each_message():
    """Turns, repetitions and unreadable calls are counted anew."""
    session = new_session(turns=2, repetitions=0, refusals=1)
    session.start("Read a.py")
    read(session, "a.py")
    assert session.on_answer(parse(CALL % "a.py")) == Finished("repetition", "")
    session.send("Once more")
    assert isinstance(read(session, "a.py"), AskModel)
    assert read(session, "b.py") == Finished("turns", "")


@pytest.mark.parametrize("reason", ["repetition", "unreadable", "interrupted"])
def test_no_call_is_left_without_a_result(reason):
    """However the last message ended, the model sees what became of its calls before it reads the next."""
    session = new_session(repetitions=0, refusals=1, unreadable=1)
    session.start("Read a.py")
    if reason == "unreadable":
        assert session.on_answer(parse("<tool_call>\n{oops\n</tool_call>")) == Finished("unreadable", "")
    elif reason == "repetition":
        read(session, "a.py")
        assert session.on_answer(parse(CALL % "a.py")) == Finished("repetition", "")
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


def test_what_was_said_last_is_not_left_out():
    """When the context is full the oldest turns go, not the message that is being worked on."""
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


def test_what_is_told_comes_with_the_next_message():
    """Once; what the user asks for is the message alone."""
    session = new_session()
    session.start("Read a.py")
    session.on_answer(parse("It is empty."))
    session.add_note("[The user took the change back.]")
    assert session.send("And b.py").messages[-1]["content"] == "[The user took the change back.]\n\nAnd b.py"
    session.on_answer(parse("It is empty, too."))
    assert session.send("Thanks").messages[-1]["content"] == "Thanks"


def test_a_stopped_answer_is_kept_and_the_model_knows():
    """None of its calls is run, whole or not; nothing of what it said is lost."""
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


def test_a_message_that_was_never_answered_is_one_with_the_next():
    """Templates take no two messages of the user in a row; the first stays the task when turns are left out."""
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
def test_a_conversation_is_recalled_in_another_format(written, shows_calls):
    """Answers and results are shown as if they had been made here; the limits count from the next message on."""
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
