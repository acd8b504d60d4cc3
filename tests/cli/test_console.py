"""The console on a real (pseudo) terminal: the final screen, and the effect of answers."""

import json
import shlex
import sys

import pytest

from adapter.cli.agent_console import Console, _parse_choice, parse_approval_answer
from adapter.conversation.guardrails.retry_messages import MESSAGES
from adapter.conversation.guardrails.verdicts import DroppedCall
from adapter.conversation.session_steps import AskModel, Finished, RunTools
from adapter.core.events import TextDelta
from adapter.tools.operations import Option, Question, RunCommand
from adapter.tools.operations.permissions import ApprovalDecision, ApprovalRequest
from tests.cli.terminal import Terminal
from tests.scripted_server import CHAT, MODELS, Reply, as_json, as_stream, delta

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

WRITE = '<tool_call>\n{"name": "write_file", "arguments": {"path": "a.txt", "content": "two\\n"}}\n</tool_call>'
READ = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>'
EDIT = WRITE.replace("write_file", "apply_edit").replace('"content": "two\\n"', '"old_text": "one", "new_text": "%s"')
PLAIN = {"TERM": "dumb", "NO_COLOR": "1"}
SCREENS = [(40, {}), (80, {}), (200, {}), (80, {"NO_COLOR": "1"}), (40, PLAIN)]
"""Columns of a terminal, and its variables."""


def answer(*output, **delta_fields):
    """Return a streamed answer in pieces of seven characters, after its reasoning."""
    thought = [delta(**delta_fields)] if delta_fields else []
    pieces = [delta(text[start : start + 7]) for text in output for start in range(0, len(text), 7)]
    return as_stream(delta(role="assistant"), *thought, *pieces, delta(finish_reason="stop"))


@pytest.fixture
def model(scripted, tmp_path):
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    return scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))


def run(model, folder, *words, **settings):
    return Terminal(["run", "Rename one", "--base-url", model.url, *words], folder, **settings)


# ------------------------------------------------------------------ the final screen

TALK = """\
.. I should look first.
   Then decide.
I'll look at it.
-> read_file(path="a.txt")
<- one
.. Now the edit.
Now I'll rename it.
-> apply_edit(path="a.txt", old_text="one", new_text="two")
?? edit a.txt
   --- a/a.txt
   +++ b/a.txt
   @@ -1 +1 @@
   -one
   +two
   allow it? [y]es / [n]o / [a]lways for this tool and file / [e]dit it first
   n can take a reason for the model: n call it three
<- the user did not approve (call it three): edit a.txt. Nothing was done; follow the user's reason, do not try the \
same again
All right, three.
-> apply_edit(path="a.txt", old_text="one", new_text="three")
?? edit a.txt
   --- a/a.txt
   +++ b/a.txt
   @@ -1 +1 @@
   -one
   +three
   allow it? [y]es / [n]o / [a]lways for this tool and file / [e]dit it first
   n can take a reason for the model: y
<- Applied 1 patch to a.txt.
It is done.
1 change was made; `adapter undo --all .` undoes this run
-- the model is done: 3 calls, 1 refused"""


def wrapped(text, columns):
    """Wrap long lines as a terminal does."""
    rows = [line[start : start + columns] for line in text.split("\n") for start in range(0, len(line) or 1, columns)]
    return "\n".join(row.rstrip() for row in rows)


@pytest.mark.parametrize(("columns", "environ"), SCREENS)
def test_run_screen_shows_all_events_in_order(model, tmp_path, columns, environ):
    """Nothing is overwritten, and no status remains."""
    thought = "I should look first.\nThen decide."
    model.on(
        CHAT,
        answer("\n\nI'll look at it. " + READ, reasoning_content=thought),
        answer("<think>Now the edit.</think>\n\nNow I'll rename it." + EDIT % "two"),
        answer("All right, three.\n\n" + EDIT % "three"),
        answer("It is done."),
    )
    terminal = run(model, tmp_path, columns=columns, environ=environ)
    terminal.type("n call it three\n", after="a reason for the model:")
    terminal.type("y\n", after="a reason for the model:", times=2)
    assert terminal.end() == 0
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "three\n"
    (first, *_), shown = terminal.lines, terminal.text
    assert first == wrapped(f"m at {model.url}/v1", columns).split("\n")[0]
    assert shown[shown.index("..") :] == wrapped(TALK, columns)
    told = model.bodies()[2]["messages"][-1]["content"]
    assert "did not approve (call it three)" in told
    assert (b"\x1b[3" in terminal.shown) is (not environ)
    assert (b"\x1b" in terminal.shown) is (environ != PLAIN)


def test_status_is_shown_and_erased(model, tmp_path):
    model.on("/props", as_json(200, {"default_generation_settings": {}}))
    progress = delta(role="assistant") | {"prompt_progress": {"total": 5_000, "cache": 0, "processed": 1_024}}
    silent = as_stream(progress, done=False)
    silent = Reply(200, silent.body, silent.content_type, length=len(silent.body) + 99, linger_s=2.5)
    model.on(CHAT, silent, answer("Then I do it: " + WRITE), answer("Done."))
    terminal = run(model, tmp_path, "--approve", "yolo", columns=40)
    terminal.wait_for("waiting for the model")
    terminal.wait_for("reading 1,024 of 5,000 tokens")
    terminal.wait_for("tokens, 1 s")
    assert terminal.end() == 0
    assert model.bodies()[0]["return_progress"] is True
    assert not [line for line in terminal.lines if "waiting" in line or "reading" in line or "writing" in line]


def test_call_progress_does_not_overwrite_the_answer(model, tmp_path):
    """A status wider than the terminal is truncated, not wrapped."""
    silent = as_stream(*[delta(piece) for piece in ("Now I'll rename it.", WRITE[:90])], done=False)
    model.on(CHAT, Reply(200, silent.body, silent.content_type, length=len(silent.body) + 99, linger_s=60))
    terminal = run(model, tmp_path, columns=36)
    terminal.wait_for("writing a call to write_file:")
    assert terminal.lines[-2:] == ["Now I'll rename it.", "   writing a call to write_file:"]
    terminal.type("\x03")
    assert terminal.end() == 130
    assert terminal.lines[-2:] == ["Now I'll rename it.", "-- stopped by the user"]


def test_piped_stdout_contains_only_the_answer(model, tmp_path):
    """The person sees the rest, with the answer's lines missing."""
    model.on(CHAT, answer("I look. " + READ), answer("It says one."))
    terminal = run(model, tmp_path, stdout=str(tmp_path / "answer"))
    assert terminal.end() == 0
    assert (tmp_path / "answer").read_text() == "I look.\nIt says one.\n"
    assert terminal.lines[-3:] == ['-> read_file(path="a.txt")', "<- one", "-- the model is done: 1 call"]


# ------------------------------------------------------------------------- approvals


@pytest.mark.parametrize(
    ("typed", "content", "code"),
    [("y\n", "two\n", 0), ("n\n", "one\n", 1), ("what?\nalways\n", "two\n", 0), ("y if you must\nno\n", "one\n", 1)],
)
def test_approval_shows_the_diff_and_follows_the_answer(model, tmp_path, typed, content, code):
    """The diff is on the screen before anything is written. Words after a yes may be a condition, so it does not
    count.
    """
    model.on(CHAT, answer(WRITE), answer("Done."))
    terminal = run(model, tmp_path)
    terminal.wait_for("a reason for the model:")
    assert "   -one\n   +two\n" in terminal.text
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "one\n"
    terminal.type(typed)
    assert terminal.end() == code
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == content
    assert ("unknown answer: type y, n, a or e" in terminal.text) is (typed.count("\n") == 2)


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        ("n", ("n", "")),
        (" NO, it must stay ", ("n", "it must stay")),
        ("n y", ("n", "y")),
        ("Y", ("y", "")),
        ("yes", ("y", "")),
        ("yes but smaller", ("", "")),
        ("always", ("a", "")),
        ("e", ("e", "")),
        ("", ("", "")),
        ("nah", ("", "")),
    ],
)
def test_parse_approval_answer_returns_letter_and_reason(typed, means):
    assert parse_approval_answer(typed, can_edit=True) == means
    assert parse_approval_answer("e", can_edit=False) == ("", "")


@pytest.mark.parametrize("key", ["\x04", "\x03"])
def test_ctrl_d_refuses_and_ctrl_c_stops(model, tmp_path, key):
    """Later output starts on a new line."""
    model.on(CHAT, answer(WRITE), answer("Then not."))
    terminal = run(model, tmp_path)
    terminal.type(key, after="a reason for the model:")
    code = terminal.end()
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "one\n"
    after = terminal.text.split("a reason for the model:")[1].split("\n")
    if key == "\x04":
        assert (code, after[:2]) == (1, ["", "   refused: no answer"])
        assert after[-2:] == ["Then not.", "-- nothing was done: the call was refused"]
    else:
        assert (code, after) == (130, ["", "-- stopped by the user"])


def test_ctrl_c_before_the_line_is_read_is_not_lost(tmp_path):
    """`input` notices a signal only while it reads, not between its call and its first read."""
    (tmp_path / "ask.py").write_text(
        "import builtins, signal\n"
        "from adapter.cli.terminal_output import Terminal\n"
        "read = builtins.input\n"
        "def deaf_input():\n"
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "    return read()\n"
        "builtins.input = deaf_input\n"
        "try:\n"
        "    Terminal().read_line('Now? ')\n"
        "except KeyboardInterrupt:\n"
        "    raise SystemExit(130)\n"
    )
    terminal = Terminal([tmp_path / "ask.py"], tmp_path)
    terminal.type("\x03", after="Now?")
    assert terminal.end() == 130


def test_input_typed_before_the_question_is_discarded(model, tmp_path):
    silent = as_stream(delta("Wait."), delta(finish_reason="stop"))
    slow = Reply(200, silent.body.replace(b"Wait.", json.dumps("Wait." + WRITE)[1:-1].encode()), silent.content_type)
    model.on(CHAT, slow, answer("Then not."))
    terminal = run(model, tmp_path)
    terminal.type("y\n")  # long before the program has even started
    terminal.wait_for("a reason for the model:")
    terminal.type("n\n")
    assert terminal.end() == 1
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "one\n"


def editor(folder, program):
    """An editor that changes the file ``path`` with a Python program."""
    script = folder / "editor.py"
    script.write_text(f"import sys\nfrom pathlib import Path\npath = Path(sys.argv[1])\n{program}\n")
    return {"VISUAL": "", "EDITOR": shlex.join([sys.executable, str(script)])}


def test_user_can_edit_a_change_before_approving_it(model, tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.txt").write_text("one\nend\n", encoding="utf-8")
    environ = editor(tmp_path, "assert path.suffix == '.txt'\npath.write_text(path.read_text().replace('two', 'zwei'))")
    model.on(CHAT, answer(EDIT % "two"), answer("Done."))
    record = tmp_path / "talk.jsonl"
    words = ("-w", tmp_path / "w", "--record", record)
    terminal = run(model, tmp_path, *words, environ=environ)
    terminal.type("e\n", after="a reason for the model:")
    terminal.wait_for("+zwei")
    assert (tmp_path / "w" / "a.txt").read_text() == "one\nend\n"
    terminal.type("y\n", after="a reason for the model:", times=2)
    assert terminal.end() == 0, terminal.text
    assert (tmp_path / "w" / "a.txt").read_text() == "zwei\nend\n"
    assert terminal.text.count("+zwei") == 2  # what was confirmed, and in what the model is told
    told = model.bodies()[1]["messages"][-1]["content"]
    assert "The user changed this before it was applied. What was done:\n--- a/a.txt" in told
    assert "+zwei" in told
    replayed = Terminal(["replay", record], tmp_path)
    assert replayed.end() == 0, replayed.text
    assert "equal" in replayed.lines[-1]


def test_input_typed_before_the_edited_change_is_discarded(model, tmp_path):
    environ = editor(tmp_path, "path.write_text('zwei\\n')")
    model.on(CHAT, answer(WRITE), answer("Then not."))
    terminal = run(model, tmp_path, environ=environ)
    terminal.type("e\ny\n", after="a reason for the model:")
    terminal.type("n\n", after="a reason for the model:", times=2)
    assert terminal.end() == 1, terminal.text
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "one\n"


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"VISUAL": "", "EDITOR": "/does/not/exist"}, "cannot run /does/not/exist: No such file or directory"),
        ({"VISUAL": "", "EDITOR": "false"}, "false exited with code 1; its text was ignored"),
        ({"VISUAL": "true", "EDITOR": "false"}, "nothing was changed. If the editor returned at once"),
        ({"VISUAL": "'", "EDITOR": ""}, "is not a valid command line"),
    ],
)
def test_failing_editor_changes_nothing(model, tmp_path, environ, says):
    model.on(CHAT, answer(WRITE), answer("Done."))
    terminal = run(model, tmp_path, environ=environ, columns=200)
    terminal.type("e\n", after="a reason for the model:")
    terminal.type("y\n", after="a reason for the model:", times=2)
    assert says in terminal.text
    assert terminal.end() == 0
    assert (tmp_path / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize(
    ("written", "reason", "answer"),
    [("", "repetition", "one"), ("It is one.", "answered", "It is one."), ("", "failed", "")],
)
def test_result_of_a_model_without_an_answer_is_printed(capsys, written, reason, answer):
    """Once, and on standard output. A call that was not run is named on standard error."""
    console = Console()
    console(RunTools((), (DroppedCall("edit_file", "wrong_arguments"),) * 3))
    console(TextDelta(written, written))
    console(Finished(reason, written or "one"))
    shown = capsys.readouterr()
    assert shown.out.strip() == answer
    assert "!! not run: edit_file (wrong_arguments), 3 times" in shown.err


def test_copy_of_a_guardrails_message_is_not_shown_as_the_answer(model, tmp_path):
    """Only on standard error is it said that an answer was rejected."""
    message = MESSAGES["announced_call"][0]
    model.on(CHAT, answer("Let me read the file."), answer(message), answer("It says one."))
    terminal = run(model, tmp_path, stdout=str(tmp_path / "answer"))
    terminal.end()
    assert (tmp_path / "answer").read_text() == "Let me read the file.\nIt says one.\n"
    assert [line for line in terminal.lines if "rejected" in line] == [
        "!! answer rejected (announced_call); retrying",
        "!! answer rejected (own_words); retrying",
    ]


def test_command_approval_does_not_offer_editing(capsys):
    asked = ApprovalRequest("run_command", RunCommand("ls"), "execute", "run in .: ls", command="ls")
    assert Console().ask(asked) == ApprovalDecision(False)
    shown = capsys.readouterr().err
    assert "refused: approval needs a terminal" in shown
    assert "[e]dit" not in shown


def test_piped_task_still_allows_approvals(model, tmp_path):
    (tmp_path / "task").write_text("Write two, and\nnothing else\n")
    model.on(CHAT, answer(WRITE), answer("Done."))
    terminal = Terminal(["run", "-", "--base-url", model.url], tmp_path, stdin=str(tmp_path / "task"))
    terminal.type("y\n", after="a reason for the model:")
    assert terminal.end() == 0
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "two\n"
    assert model.bodies()[0]["messages"][-1]["content"] == "Write two, and\nnothing else\n"


def test_task_can_be_typed_at_the_terminal(model, tmp_path):
    """`adapter run -` explains how to end the input, and can still ask questions."""
    model.on(CHAT, answer(WRITE), answer("Done."))
    terminal = Terminal(["run", "-", "--base-url", model.url], tmp_path)
    terminal.type("Write two\n\x04", after="type the task, then press Enter and Ctrl-D")
    terminal.type("y\n", after="a reason for the model:")
    assert terminal.end() == 0
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "two\n"


# -------------------------------------------------------------------------- questions


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("2\n", "blue"),
        ("BLUE\n", "blue"),
        ("9\n1,2\nneither\n", "neither"),
        ("\n1\n", "red"),
        ("\x04", "the user did not answer; decide yourself, or ask in your final answer"),
    ],
)
def test_question_accepts_numbers_labels_and_text(tmp_path, typed, expected):
    """Invalid answers repeat the question; Ctrl-D is refused."""
    (tmp_path / "ask.py").write_text(
        "from adapter.cli.agent_console import Console, ConsoleQuestions\n"
        "from adapter.core.errors import ToolError\n"
        "from adapter.tools.operations import Option, Question\n"
        "asked = Question('Which?', options=(Option('red', 'warm'), Option('blue')))\n"
        "console = Console()\n"
        "try:\n"
        "    console.note('GOT ' + ConsoleQuestions(console).ask([asked])[0][0])\n"
        "except ToolError as error:\n"
        "    console.note(f'GOT {error}')\n"
    )
    terminal = Terminal([tmp_path / "ask.py"], tmp_path)
    for number, line in enumerate(typed.splitlines(keepends=True), start=1):
        terminal.type(line, after="or your own text:", times=number)
    assert terminal.end() == 0
    assert terminal.lines[-1] == f"GOT {expected}"
    assert terminal.lines[:3] == ["?? Which?", "   1. red: warm", "   2. blue"]


def test_question_accepts_several_choices():
    several = Question("Which?", options=(Option("a"), Option("b"), Option("c")), multiple=True)
    assert _parse_choice(several, "3, 1,3") == ("c", "a")
    assert _parse_choice(several, "x, y") == ("x, y",)
    assert _parse_choice(Question("Which?", options=(Option("a"),), allow_other=False), "x") == ()
    assert _parse_choice(Question("Name?"), "1") == ("1",)


def test_json_is_printed_only_as_an_accepted_answer(capsys):
    """A small model wrote a call of an unknown tool, which was rejected."""
    console = Console()
    for number, text in enumerate(['{"name": "fill", "arguments": {}}', '{"port": 80}'], start=1):
        console(AskModel((), number, again="call_as_answer" if number > 1 else ""))
        for piece in ("\n", text[:1], text[1:]):
            console(TextDelta(piece, piece))
    console(Finished("answered", '{"port": 80}'))
    assert capsys.readouterr().out.strip() == '{"port": 80}'


@pytest.mark.parametrize(
    ("final", "printed"),
    [
        ("4", "There are 4 files?\n4\n"),
        ("There are 4 files?", "There are 4 files?\n"),
        ("There are 4 files?\n\na.md", "There are 4 files?\na.md\n"),
        ("There are 4 files?!", "There are 4 files?\nThere are 4 files?!\n"),
    ],
)
def test_held_answer_is_printed_even_if_an_earlier_text_contains_it(capsys, final, printed):
    console = Console()
    console(AskModel((), 1))
    console(TextDelta("There are 4 files?", "There are 4 files?"))
    console(AskModel((), 2, again="own_words", holds_text=True))
    console(TextDelta(final, final))
    console(Finished("answered", final))
    assert capsys.readouterr().out == printed
