"""The steps of a session, without I/O."""

from dataclasses import replace

import pytest

from adapter.conversation.session import Session
from adapter.conversation.session_steps import AskModel, Finished, RunTools, SessionLimits, Step
from adapter.core.events import ToolResult
from adapter.core.turn import Turn
from adapter.dialects import get_dialect
from adapter.parsing.formats import get_format
from adapter.parsing.parser import parse
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

TOOLS = ToolSet([Tool("read_file", effect="read"), Tool("write_file", effect="write")])
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'
WRITE = '<tool_call>\n{"name": "write_file", "arguments": {"path": "a.py", "content": ""}}\n</tool_call>'


def new_session(**limits: int) -> Session:
    return Session("system", get_format("hermes"), TOOLS, SessionLimits(**limits))


def turn(text: str) -> Turn:
    return parse(text)


def results(step: RunTools, content: str = "text") -> list[ToolResult]:
    return [ToolResult(call.name, ok=True, content=content, call_id=call.id) for call in step.calls]


def run_calls(session: Session, text: str, content: str = "text") -> Step:
    """Answer with calls that all run and return ``content``."""
    step = session.on_answer(turn(text))
    assert isinstance(step, RunTools), text
    return session.on_tool_results(results(step, content))


def test_call_is_run_and_its_result_shown():
    """The history has the call in its format and the result as a turn."""
    session = new_session()
    first = session.start("Read a.py")
    assert [message["role"] for message in first.messages] == ["system", "user"]
    query = run_calls(session, "I look.\n" + CALL)
    assert isinstance(query, AskModel)
    assert query.messages[2] == {"role": "assistant", "content": "I look.\n" + CALL}
    assert query.messages[3] == {"role": "user", "content": "<tool_response>\ntext\n</tool_response>"}


def test_answer_without_a_call_ends_the_conversation():
    """Without an attempted call the answer is final."""
    session = new_session()
    session.start("Hello")
    assert session.on_answer(turn("Hello!")) == Finished("answered", "Hello!")


def test_reasoning_is_dropped_from_the_history():
    """Templates drop earlier reasoning as well."""
    session = new_session()
    session.start("Hello")
    session.on_answer(turn("<think>secret</think>\n\n" + CALL))
    assert "secret" not in str(session.messages)


def test_invalid_call_is_returned_with_its_error():
    """The model sees its text and the reason; nothing was run."""
    session = new_session()
    session.start("Read")
    step = session.on_answer(turn('<tool_call>\n{"name": 5}\n</tool_call>'))
    assert isinstance(step, AskModel)
    assert "tool_error: " in str(step.messages[-1]["content"])
    assert '{"name": 5}' in str(step.messages[-2]["content"])


def test_consecutive_invalid_calls_end_the_conversation():
    """A model that cannot write calls is stopped."""
    session = new_session(unreadable=2)
    session.start("Read")
    bad = turn("<tool_call>\n{oops\n</tool_call>")
    assert isinstance(session.on_answer(bad), AskModel)
    assert session.on_answer(bad) == Finished("unreadable", "")


def test_repeated_call_is_refused_then_ends_the_conversation():
    """The model gets one retry. If it still gives no answer, the result is the answer."""
    session = new_session()
    session.start("Read")
    run_calls(session, CALL)
    refused = session.on_answer(turn(CALL))
    assert isinstance(refused, AskModel)
    assert "already made this call of read_file. Answer from its result" in str(refused.messages[-1]["content"])
    assert session.on_answer(turn(CALL)) == Finished("repetition", "text")


def test_requested_repetition_is_refused_at_the_limit():
    """It runs at most three times without a change in between."""
    session = new_session(repetitions=2, refusals=2)
    session.start("Read it again and again")
    for _ in range(3):
        run_calls(session, CALL)
    refused = session.on_answer(turn(CALL))
    assert isinstance(refused, AskModel)
    assert "read_file 3 times" in str(refused.messages[-1]["content"])
    assert session.on_answer(turn(CALL)) == Finished("repetition", "text")


def test_repeated_read_after_a_change_is_allowed():
    """After a successful write the same read may run again."""
    session = new_session(repetitions=0)
    session.start("Read")
    for text in (CALL, WRITE, CALL):
        run_calls(session, text)


def test_turn_limit_ends_the_conversation():
    """There are at most ``turns`` queries."""
    session = new_session(turns=2)
    session.start("Read")
    step = session.on_answer(turn(CALL))
    assert isinstance(step, RunTools)
    assert isinstance(session.on_tool_results(results(step)), AskModel)
    step = session.on_answer(turn(WRITE))
    assert isinstance(step, RunTools)
    assert session.on_tool_results(results(step)) == Finished("turns", "")


def test_each_call_of_a_turn_has_one_result_in_order():
    """Refused calls have results in the order of the calls."""
    session = new_session(repetitions=0)
    session.start("Read")
    run_calls(session, CALL, "first")
    step = session.on_answer(turn(f"{CALL}\n{WRITE}"))
    assert isinstance(step, RunTools)
    assert [call.name for call in step.calls] == ["write_file"]
    query = session.on_tool_results(results(step, "second"))
    assert isinstance(query, AskModel)
    shown = str(query.messages[-1]["content"])
    assert shown.index("tool_error") < shown.index("second")


def test_repeated_write_counts_as_repetition():
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
    assert (runs, step) == (1, Finished("repetition", "text"))


def test_exit_call_ends_the_conversation():
    """The other calls of the turn get their results first."""
    session = new_session()
    session.start("Work")
    step = session.on_answer(turn("Done.\n" + CALL))
    assert isinstance(step, RunTools)
    (result,) = results(step)
    assert session.on_tool_results([replace(result, ends=True)]) == Finished("exited", "Done.")


def test_user_message_of_a_result_follows_the_results():
    """It is a separate entry, but merged with the results for templates that require alternating turns."""
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


def test_lone_surrogate_is_replaced_before_sending():
    """A server may split a character; later requests must be valid UTF-8."""
    session = new_session()
    session.start("Say \udcff")
    run_calls(session, "\ud83d\ude00 \ud800\n" + CALL, "\ud800")
    assert "\ud83d\ude00".encode("utf-16-le", "surrogatepass").decode("utf-16-le") in str(session.messages[2])
    assert str(session.messages).encode()


def test_number_of_calls_per_answer_is_limited():
    """The first ones are run, and the model does not see the others."""
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
    assert '"n": 4}' in str(query.messages)
    assert '"n": 5}' not in str(query.messages)


def test_tools_are_withdrawn_after_a_repeated_call():
    """For one query. What the model had invented before the result is not the answer."""
    session = new_session()
    session.start("Which port is set in a.py?")
    query = run_calls(session, "The port is 8080.\n" + CALL, "port = 4711")
    assert isinstance(query, AskModel)
    assert not query.in_words
    again = session.on_answer(turn(CALL))
    assert isinstance(again, AskModel)
    assert again.in_words
    assert session.on_answer(turn(CALL)) == Finished("repetition", "port = 4711")


def test_empty_answer_after_the_whole_change_ends_the_turn():
    """A small model wrote nonsense when it was asked again."""
    for request, is_complete in (("Create a.py", True), ("Create a.py and b.py", False)):
        session = new_session()
        session.start(request)
        assert isinstance(run_calls(session, WRITE, "Wrote a.py."), AskModel)
        assert (session.on_answer(turn("")) == Finished("answered", "Wrote a.py.")) == is_complete


def test_question_is_never_answered_by_a_forced_change():
    """A refused change is followed by a query for words. `Qwen2.5-Coder-0.5B` was limited to edits."""
    session = new_session()
    session.start("Which port is set in a.py?")
    assert isinstance(run_calls(session, CALL, "port = 4711"), AskModel)
    step = session.on_answer(turn(WRITE.replace("a.py", "/path/to/file")))
    assert isinstance(step, AskModel)
    assert (step.held_to, step.in_words) == ((), True)


def test_question_that_got_stuck_is_answered_from_its_results():
    session = new_session()
    session.start("Which port is set in a.py?")
    assert isinstance(run_calls(session, CALL, "port = 4711"), AskModel)
    step: Step = session.on_answer(turn(""))
    while isinstance(step, AskModel) and not step.in_words:
        step = session.on_answer(turn(""))
    assert isinstance(step, AskModel)
    assert session.on_answer(turn("Port 4711.")) == Finished("answered", "Port 4711.")


def test_copied_message_is_not_the_last_answer():
    """Not even if the model then repeats its call."""
    session = new_session()
    session.start("Which port is set in a.py?")
    run_calls(session, CALL, "port = 4711")
    session.on_answer(turn(CALL))
    copied = session.on_answer(turn("Answer from its result: Which port is set in a.py?"))
    assert isinstance(copied, AskModel)
    assert copied.again == "own_words"
    assert session.on_answer(turn(CALL)) == Finished("repetition", "port = 4711")


def test_null_is_not_shown_as_the_answer():
    session = new_session()
    session.start("The name in a.py should be called counter.")
    run_calls(session, CALL, "cnt = 0")
    steps = [session.on_answer(turn("NULL")) for _ in range(3)]
    assert steps[-1] == Finished("stuck", "cnt = 0")


def test_text_is_held_after_a_message_about_a_mistake():
    """Until the user's next message. Such an answer may copy the message."""
    session = new_session()
    queries: list[Step] = [session.start("Which port is set in a.py?")]
    queries += [run_calls(session, CALL, "port = 4711"), session.on_answer(turn(CALL))]
    session.on_answer(turn("It is 4711, a port."))
    queries += [session.send("And in b.py?")]
    assert [isinstance(each, AskModel) and each.holds_text for each in queries] == [False, False, True, False]


@pytest.mark.parametrize(
    ("answer", "reason", "content"),
    [
        ("There is no tool.", "repetition", "There is no tool.\n\nport = 4711"),
        ("It is 4711, a port.", "answered", "It is 4711, a port."),
        ("I counted 2.", "answered", "I counted 2."),
    ],
)
def test_result_is_shown_with_an_answer_that_ignores_it(answer, reason, content):
    """A small model that was held to words refused: the question has no answer. A number may be a count."""
    session = new_session()
    session.start("Which port is set in a.py?")
    run_calls(session, CALL, "port = 4711")
    session.on_answer(turn(CALL))
    assert session.on_answer(turn(answer)) == Finished(reason, content)


def test_answer_that_ignores_a_repeated_result_is_no_success():
    """`Qwen2.5-Coder-0.5B` was to rename a variable."""
    session = new_session()
    session.start("The name in a.py should be called counter.")
    run_calls(session, CALL, "cnt = 0")
    session.on_answer(turn(CALL))
    assert session.on_answer(turn("No response.")) == Finished("repetition", "No response.\n\ncnt = 0")


def test_tools_are_not_withdrawn_before_a_requested_change():
    session = Session("system", get_format("hermes"), get_dialect("blade").tools, SessionLimits())
    session.start("Fix the typo in a.py")
    for _ in range(2):
        step = session.on_answer(turn(CALL))
        step = session.on_tool_results(results(step)) if isinstance(step, RunTools) else step
    assert isinstance(step, AskModel)
    assert (step.in_words, step.held_to) == (False, ("edit_file", "apply_edit"))


def test_flood_of_calls_is_cut_at_the_first_needless_one():
    """Made by Qwen2.5-Coder-0.5B, which lists its tools. It does not see the flood again, and would continue it."""
    format, tools = get_format("hermes"), get_dialect("blade").tools
    session = Session("system", format, tools, SessionLimits())
    session.start("Rename the function greet to hello in b.py and in a.py.")
    path = {"path": "a.py"}
    move = {"source": "a.py", "destination": "b.py"}
    edit = {**path, "old_text": "hi", "new_text": "hello"}
    written = [("read_file", path), ("write_file", path), ("apply_edit", edit), ("delete_file", path)]
    written += [("move_file", move), ("write_file", path), ("write_file", path), ("copy_file", move)]
    step = session.on_answer(parse("\n".join(format.encode_calls([each]) for each in written), tools, "hermes"))
    assert isinstance(step, RunTools)
    assert [call.name for call in step.calls] == ["read_file"]
    assert len(step.dropped) == 7
    query = session.on_tool_results(results(step))
    assert isinstance(query, AskModel)
    assert "move_file" not in str(query.messages[1:])


def test_copied_message_after_a_repeated_change_ends_the_conversation():
    """`Qwen2.5-Coder-0.5B`, asked again, made the change a third time, or deleted the file."""
    session = Session("system", get_format("hermes"), get_dialect("blade").tools, SessionLimits())
    session.start("Create n.txt with the text: buy milk")
    write = '<tool_call>\n{"name": "write_file", "arguments": {"path": "n.txt", "content": "buy milk"}}\n</tool_call>'
    run_calls(session, write, "Created n.txt.")
    query = session.on_answer(turn(write))
    assert isinstance(query, AskModel)
    message = str(query.messages[-1]["content"])
    copied = message[message.index("You") : message.index("tool.") + 5]
    assert session.on_answer(turn(copied)) == Finished("stuck", "Created n.txt.")


def test_second_start_begins_a_new_conversation():
    """Nothing of the first one counts: its turns, its queries, or its message about a mistake."""
    session = new_session(turns=2)
    for _ in range(2):
        query = session.start("Which port is set in a.py?")
        assert (query.number, query.holds_text) == (1, False)
        run_calls(session, CALL, "port = 4711")
        assert isinstance(session.on_answer(turn(CALL)), Finished)


@pytest.mark.parametrize(("start", "rows", "is_flood"), [("", 32, True), ("```\n", 32, False), ("```\n", 320, True)])
def test_repeated_lines_in_a_block_of_code_are_allowed_for_longer(start, rows, is_flood):
    """A model that was asked for a matrix of zeros is not in a loop."""
    session = new_session()
    session.start("Show a 32x32 matrix of zeros.")
    text = start + f"[{'0, ' * 31}0],\n" * rows
    assert session.is_flood(text, turn(text)) is is_flood


@pytest.mark.parametrize(("count", "is_flood"), [(3, False), (6, True)])
def test_repeated_calls_of_an_unknown_tool_are_a_flood(count, is_flood):
    """Qwen2.5-Coder-0.5B wrote the name of the new function as a tool, for three minutes."""
    session = new_session()
    session.start("Rename load to read_row in a.py")
    text = CALL + '\n{"name": "read_row", "arguments": {"path": "a.py"}}' * count
    assert session.is_flood(text, turn(text)) is is_flood
