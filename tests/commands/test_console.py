"""The console on a real (pseudo) terminal: what a person sees and answers."""

import os
import pty
import select
import sys
import time

import pytest

from tests.scripted_server import CHAT, MODELS, as_json, as_stream, delta

EDIT = '<tool_call>\n{"name": "write_file", "arguments": {"path": "a.txt", "content": "two\\n"}}\n</tool_call>'


@pytest.fixture
def model(scripted):
    scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
    edit = [delta(EDIT[start : start + 9]) for start in range(0, len(EDIT), 9)]
    first = as_stream(delta(role="assistant"), *edit, delta(finish_reason="stop"))
    return scripted.on(CHAT, first, as_stream(delta("Done."), delta(finish_reason="stop")))


def at_terminal(words, answer, folder):
    """Run `adapter` on a pseudo terminal, type ``answer`` when asked; the exit code and all that was shown."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [sys.executable, "-m", "adapter", *map(str, words)])
    shown, asked, deadline = b"", False, time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.5)[0]:
            continue
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        shown += piece
        if not asked and b"allow it?" in shown:
            asked = True
            os.write(terminal, answer)
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize(("answer", "content"), [(b"y\n", "two\n"), (b"n\n", "one\n"), (b"what?\nalways\n", "two\n")])
def test_a_person_is_asked_with_the_diff_and_their_answer_counts(model, tmp_path, answer, content):
    """The diff and the whole question are on the screen before anything is written."""
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    code, shown = at_terminal(["run", "Write two", "--base-url", model.url], answer, tmp_path)
    assert code == 0, shown
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == content
    assert "[y]es / [n]o / [a]lways" in shown
    assert shown.index("-one") < shown.index("allow it?")


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_call_being_written_is_shown_and_wiped(model, tmp_path):
    """The progress line appears on a terminal and does not stay."""
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    _, shown = at_terminal(["run", "Write two", "--base-url", model.url], b"n\n", tmp_path)
    assert "writing a call: " in shown
    assert "\r\x1b[K" in shown


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (b"2\n", "blue"),
        (b"BLUE\n", "blue"),
        (b"9\n1,2\nneither\n", "neither"),
        (b"\n1\n", "red"),
        (b"\x04", "the user did not answer. Decide yourself, or end with the question"),
    ],
)
def test_questions_are_asked_at_the_terminal(tmp_path, typed, expected):
    """Numbers, labels, own words; nothing, a wrong number and two for one are asked again; Ctrl-D is no answer."""
    program = (
        "from adapter.commands.console import Console, ConsoleQuestions\n"
        "from adapter.errors import ToolError\n"
        "from adapter.operations import Option, Question\n"
        "asked = Question('Which?', options=(Option('red', 'warm'), Option('blue')))\n"
        "try:\n"
        "    print('GOT', ConsoleQuestions(Console()).ask([asked])[0][0])\n"
        "except ToolError as error:\n"
        "    print('GOT', error)\n"
    )
    (tmp_path / "ask.py").write_text(program)
    process, terminal = pty.fork()
    if process == 0:
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [sys.executable, str(tmp_path / "ask.py")])
    os.write(terminal, typed)
    shown, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        shown += piece
    os.waitpid(process, 0)
    os.close(terminal)
    text = shown.decode()
    assert f"GOT {expected}" in text
    assert "1. red: warm" in text


def test_several_answers_to_a_question():
    """Where several may be chosen; a comma in own words is not a list."""
    from adapter.commands.console import _chosen
    from adapter.operations import Option, Question

    several = Question("Which?", options=(Option("a"), Option("b"), Option("c")), multiple=True)
    assert _chosen(several, "3, 1,3") == ("c", "a")
    assert _chosen(several, "x, y") == ("x, y",)
    assert _chosen(Question("Which?", options=(Option("a"),), allow_other=False), "x") == ()
    assert _chosen(Question("Name?"), "1") == ("1",)
