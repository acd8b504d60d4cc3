"""The exit code and the last line of a run say what happened."""

import pytest

from adapter.cli.exit_status import NO_CALL_HINT, CallTally, exit_status
from adapter.conversation.session import Finished
from adapter.core.events import InvalidToolCall, ToolResult
from adapter.dialects import get_dialect

OK, FAILED = {"ok": True}, {"ok": False}
REFUSED = {"ok": False, "denied": True}


def told(*results, reason="answered"):
    """The ending of a run with these results: (tool, what became of it)."""
    tally = CallTally(get_dialect("blade").tools)
    for name, became in results:
        tally(InvalidToolCall("", "") if name is None else ToolResult(name, content="", **became))
    return exit_status(Finished(reason, ""), tally)


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
def test_a_run_that_was_to_do_something_and_did_not_is_no_success(results, code, line):
    """A look that fails is an answer; a change that is refused is none."""
    assert told(*results) == (code, line)


def test_calls_that_could_not_be_read_are_no_success():
    """Though the model then answered."""
    code, line = told((None, None))
    assert (code, line[:56]) == (1, "nothing was done: the model's call could not be read. try"[:56])


@pytest.mark.parametrize(
    ("reason", "results", "code", "line"),
    [
        ("exited", [("write_file", OK)], 0, "the model ended the run, after 1 call"),
        ("finished", [("write_file", OK)], 0, "the call was made; this model gets one per request"),
        (
            "unsuccessful",
            [("read_file", FAILED)],
            1,
            "the call could not be done; this model gets one per request: name",
        ),
        ("unsuccessful", [("write_file", REFUSED)], 1, "nothing was done: the call was refused"),
        ("turns", [("write_file", OK)], 1, "the limit of turns was reached, after 1 call: raise --max-turns"),
        ("interrupted", [], 130, "stopped by the user"),
        ("interrupted", [("write_file", OK)], 130, "stopped by the user, after 1 call"),
    ],
)
def test_other_ends_say_their_reason_and_what_was_done_until_then(reason, results, code, line):
    """With what a person can do about it."""
    found, said = told(*results, reason=reason)
    assert found == code
    assert said.startswith(line)
