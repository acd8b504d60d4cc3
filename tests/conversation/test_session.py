"""The session decides what a conversation does next; nothing here talks to anything."""

from dataclasses import replace

from adapter.conversation.session import AskModel, Finished, RunTools, Session, SessionLimits
from adapter.core.events import ToolResult
from adapter.core.turn import Turn
from adapter.parsing.formats import get_format
from adapter.parsing.parser import parse
from adapter.tools.tool import Tool, ToolSet

TOOLS = ToolSet([Tool("read_file", effect="read"), Tool("write_file", effect="write")])
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'
WRITE = '<tool_call>\n{"name": "write_file", "arguments": {"path": "a.py", "content": ""}}\n</tool_call>'


def new_session(**limits: int) -> Session:
    return Session("system", get_format("hermes"), TOOLS, SessionLimits(**limits))


def turn(text: str) -> Turn:
    return parse(text)


def results(step: RunTools, content: str = "text") -> list[ToolResult]:
    return [ToolResult(call.name, ok=True, content=content, call_id=call.id) for call in step.calls]


def test_a_call_is_run_and_its_result_shown_to_the_model():
    """Query, run, query: the history holds the call as its format writes it and the result as a turn."""
    session = new_session()
    first = session.start("Read a.py")
    assert [message["role"] for message in first.messages] == ["system", "user"]
    step = session.on_answer(turn("I look.\n" + CALL))
    assert isinstance(step, RunTools)
    query = session.on_tool_results(results(step))
    assert isinstance(query, AskModel)
    assert query.messages[2] == {"role": "assistant", "content": "I look.\n" + CALL}
    assert query.messages[3] == {"role": "user", "content": "<tool_response>\ntext\n</tool_response>"}


def test_an_answer_without_a_call_ends_the_conversation():
    """No call, no attempt at one: the answer is the last word."""
    session = new_session()
    session.start("Hello")
    assert session.on_answer(turn("Hello!")) == Finished("answered", "Hello!")


def test_reasoning_is_not_shown_to_the_model_again():
    """Templates leave former reasoning out; so does the history."""
    session = new_session()
    session.start("Hello")
    session.on_answer(turn("<think>secret</think>\n\n" + CALL))
    assert "secret" not in str(session.messages)


def test_an_unreadable_call_goes_back_with_its_error():
    """The model sees what it wrote and why that is no call; nothing was run."""
    session = new_session()
    session.start("Read")
    step = session.on_answer(turn('<tool_call>\n{"name": 5}\n</tool_call>'))
    assert isinstance(step, AskModel)
    assert "tool_error: " in str(step.messages[-1]["content"])
    assert '{"name": 5}' in str(step.messages[-2]["content"])


def test_unreadable_calls_in_a_row_end_the_conversation():
    """A model that cannot write a call is not asked for ever."""
    session = new_session(unreadable=2)
    session.start("Read")
    bad = turn("<tool_call>\n{oops\n</tool_call>")
    assert isinstance(session.on_answer(bad), AskModel)
    assert session.on_answer(bad) == Finished("unreadable", "")


def test_a_repeated_call_is_refused_and_then_ends_the_conversation():
    """The same call with nothing changed in between runs at most three times; a second time if the model insists."""
    session = new_session(repetitions=2, refusals=2)
    session.start("Read")
    for time in range(3):
        step = session.on_answer(turn(CALL))
        if time == 1:
            assert isinstance(step, AskModel)
            assert "already" in str(step.messages[-1]["content"])
            step = session.on_answer(turn(CALL))
        assert isinstance(step, RunTools)
        session.on_tool_results(results(step))
    refused = session.on_answer(turn(CALL))
    assert isinstance(refused, AskModel)
    assert "made 3 times" in str(refused.messages[-1]["content"])
    assert session.on_answer(turn(CALL)) == Finished("repetition", "")


def test_a_change_makes_looking_again_no_repetition():
    """After a successful write the same read may run again."""
    session = new_session(repetitions=0)
    session.start("Read")
    for text in (CALL, WRITE, CALL):
        step = session.on_answer(turn(text))
        assert isinstance(step, RunTools), text
        session.on_tool_results(results(step))


def test_the_limit_of_turns_is_kept():
    """The model is asked at most ``turns`` times."""
    session = new_session(turns=2)
    session.start("Read")
    step = session.on_answer(turn(CALL))
    assert isinstance(step, RunTools)
    assert isinstance(session.on_tool_results(results(step)), AskModel)
    step = session.on_answer(turn(WRITE))
    assert isinstance(step, RunTools)
    assert session.on_tool_results(results(step)) == Finished("turns", "")


def test_every_call_of_a_turn_has_one_result_in_order():
    """Calls that are refused answer in their place between those that ran."""
    session = new_session(repetitions=0)
    session.start("Read")
    step = session.on_answer(turn(CALL))
    assert isinstance(step, RunTools)
    session.on_tool_results(results(step, "first"))
    step = session.on_answer(turn(f"{CALL}\n{WRITE}"))
    assert isinstance(step, RunTools)
    assert [call.name for call in step.calls] == ["write_file"]
    query = session.on_tool_results(results(step, "second"))
    assert isinstance(query, AskModel)
    shown = str(query.messages[-1]["content"])
    assert shown.index("was not run") < shown.index("second")


def test_repeating_the_same_change_is_a_repetition_all_the_same():
    """A model that writes the same file over and over is stopped."""
    session = new_session(repetitions=1, refusals=2)
    session.start("Write")
    runs = 0
    step = session.on_answer(turn(WRITE))
    while not isinstance(step, Finished):
        if isinstance(step, RunTools):
            runs += 1
            session.on_tool_results(results(step))
        step = session.on_answer(turn(WRITE))
    assert (runs, step) == (2, Finished("repetition", ""))


def test_a_model_that_asks_to_end_ends_the_conversation():
    """Exit: the other calls of the turn have their results, then it is over."""
    session = new_session()
    session.start("Work")
    step = session.on_answer(turn("Done.\n" + CALL))
    assert isinstance(step, RunTools)
    (result,) = results(step)
    assert session.on_tool_results([replace(result, ends=True)]) == Finished("exited", "Done.")


def test_a_skill_follows_the_results_as_a_user_message():
    """In the history a message of its own; sent as one with the results, for templates that want turns to alternate."""
    session = new_session()
    session.start("Work")
    step = session.on_answer(turn(CALL))
    assert isinstance(step, RunTools)
    (result,) = results(step)
    query = session.on_tool_results([replace(result, user_message="# Release it")])
    assert isinstance(query, AskModel)
    assert [message["role"] for message in session.messages[-2:]] == ["user", "user"]
    assert session.messages[-1]["content"] == "# Release it"
    assert query.messages[-1]["content"] == "<tool_response>\ntext\n</tool_response>\n\n# Release it"
    assert query.messages[-2]["role"] == "assistant"


def test_half_a_surrogate_pair_neither_ends_the_conversation_nor_reaches_the_server():
    """A server may cut a character in two; what is sent to it again must be UTF-8."""
    session = new_session()
    session.start("Say \udcff")
    step = session.on_answer(turn("\ud83d\ude00 \ud800\n" + CALL))
    assert isinstance(step, RunTools)
    session.on_tool_results(results(step, "\ud800"))
    assert "\ud83d\ude00".encode("utf-16-le", "surrogatepass").decode("utf-16-le") in str(session.messages[2])
    assert str(session.messages).encode()


def test_the_calls_of_one_answer_are_bounded():
    """The first are run; the model is told that the others were not, and what it wrote is kept as it is."""
    format = get_format("hermes")
    tools = ToolSet([{"name": "look", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}])
    session = Session("system", format, tools, SessionLimits(calls=5))
    session.start("task")
    text = format.encode_calls([("look", {"n": n}) for n in range(2_000)])
    step = session.on_answer(parse(text, tools, "hermes"))
    assert isinstance(step, RunTools)
    assert [call.arguments["n"] for call in step.calls] == [0, 1, 2, 3, 4]
    query = session.on_tool_results([ToolResult("look", True, "seen", call_id=call.id) for call in step.calls])
    assert isinstance(query, AskModel)
    told = str(query.messages[-1]["content"])
    assert told.count("seen") == 5
    assert "the answer has 2,000 calls, and only the first 5 were run" in told
