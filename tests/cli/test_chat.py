"""The chat at a real (pseudo) terminal, and through pipes: its screen, its requests and its files."""

import errno
import json
import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from adapter.cli.agent_console import Console
from adapter.cli.chat_loop import _respond
from adapter.cli.chat_session import ChatSession
from adapter.cli.run_settings import RunSettings
from adapter.cli.slash_commands import COMMANDS, is_slash_command
from adapter.recording.transcript import Transcript
from tests.chat_picture import PICTURE, picture
from tests.cli.terminal import Terminal
from tests.cli.test_console import EDIT, PLAIN, SCREENS, WRITE, answer, wrapped
from tests.command_line import adapter
from tests.effort import EFFORT
from tests.scripted_server import CHAT, MODELS, Reply, as_error, as_json, as_stream, delta

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture
def model(scripted, tmp_path, monkeypatch):
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.txt").write_text("one\n", encoding="utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    models = [{"id": name, "object": "model"} for name in ("m", "qwen3:4b")]
    return scripted.on(MODELS, as_json(200, {"object": "list", "data": models}))


class Chat:
    """A person at the terminal who types at each prompt."""

    def __init__(self, model, folder, *words, command="chat", **settings):
        environ = {"PROMPT_TOOLKIT_NO_CPR": "1"} | settings.pop("environ", {})
        said = [command, "-w", "w", "--base-url", model.url, *words]
        self.terminal = Terminal(said, folder, environ=environ, **settings)
        self.prompts = 0

    def say(self, text, end="\r"):
        self.prompt()
        self.terminal.type(text + end)

    def prompt(self):
        """Wait until the program waits for the next line."""
        self.prompts += 1
        self.terminal.wait_for("\n>", self.prompts)

    def end(self):
        self.say("\x04", end="")
        assert self.terminal.end() == 0, self.terminal.text
        return self.terminal.text


def kept(folder):
    return sorted((folder / "state").rglob("talks/*.jsonl"))


def slow(*pieces):
    silent = as_stream(*map(delta, pieces), done=False)
    return Reply(200, silent.body, silent.content_type, length=len(silent.body) + 99, linger_s=60)


TALK = """\
> Hello
.. They greet.
Hello!
> Rename one
I rename it.
-> apply_edit(path="a.txt", old_text="one", new_text="two")
?? edit a.txt
   --- a/a.txt
   +++ b/a.txt
   @@ -1 +1 @@
   -one
   +two
   allow it? [y]es / [n]o / [a]lways for this tool and file / [e]dit it first
   n can take a reason for the model: y
<- Applied 1 patch to a.txt.
Done.
> /undo
undone: edit a.txt; the model will be notified
   --- a/a.txt
   +++ b/a.txt
   @@ -1 +1 @@
   -two
   +one
> Thanks
You are welcome.
>"""


@pytest.mark.parametrize(("columns", "environ"), SCREENS)
def test_chat_screen_shows_all_events_in_order(model, tmp_path, columns, environ):
    """Reasoning, calls, an approval and an undo are shown; long lines wrap only at the terminal's edge."""
    told = ("Hello!", "I rename it. " + EDIT % "two", "Done.", "You are welcome.")
    model.on(CHAT, answer(told[0], reasoning_content="They greet."), *map(answer, told[1:]))
    chat = Chat(model, tmp_path, columns=columns, environ=environ)
    chat.say("Hello")
    chat.say("Rename one")
    chat.terminal.type("y\n", after="a reason for the model:")
    chat.say("/undo")
    chat.say("Thanks")
    shown = chat.end()
    assert (tmp_path / "w" / "a.txt").read_text() == "one\n"
    assert shown[shown.index("> Hello") :].startswith(wrapped(TALK, columns))
    assert (b"\x1b[36m" in chat.terminal.shown) is (not environ)
    assert (b"\x1b[2m.. They greet." in chat.terminal.shown) is (environ != PLAIN)
    *_, last = model.bodies()
    assert last["messages"][-1]["content"] == (
        "[The user undid a change: edit a.txt. This changed the files as follows:\n"
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-two\n+one\n]\n\nThanks"
    )


def test_ctrl_c_stops_the_model_but_not_the_chat(model, tmp_path):
    """The partial answer is kept. At the prompt, Ctrl-C clears the line, and ends the chat when pressed twice."""
    model.on(CHAT, slow("Once upon ", "a time "), answer("The end."))
    chat = Chat(model, tmp_path)
    chat.say("A story")
    chat.terminal.type("\x03", after="a time")
    chat.say("not this", end="")
    chat.terminal.type("\x03", after="not this")
    chat.say("Go on")
    chat.terminal.wait_for("The end.")
    for hint in ("\x03", "\x03"):
        chat.say(hint, end="")
    assert chat.terminal.end() == 0
    assert "-- the model was stopped; its partial answer is kept" in chat.terminal.lines
    *_, written, said = model.bodies()[-1]["messages"]
    assert written == {"role": "assistant", "content": "Once upon a time "}
    assert said["content"] == "[The user stopped your last answer before its end.]\n\nGo on"


def test_saved_chat_continues_in_another_format(model, tmp_path):
    model.on(CHAT, answer(EDIT % "two"), answer("Done."), answer("It was one."))
    first = Chat(model, tmp_path, "--approve", "yolo")
    first.say("Rename one")
    first.say("/undo")
    assert "continues this chat" in first.end()
    (file,) = kept(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    done = adapter("chat", "-w", "w", "--list", cwd=tmp_path)
    assert done.stdout == f"{file.stem}       1 message  Rename one\n"
    words = ["chat", "-w", "w", "--base-url", model.url, "--format", "qwen3_coder"]
    for how in (["--continue"], ["--resume", file.stem[:9]]):
        again = adapter(*words, *how, cwd=tmp_path, text="What was it?\n")
        assert (again.returncode, again.stdout) == (0, "It was one.\n"), again.stderr
    _, asked, call, result, answered, last = model.bodies()[2]["messages"]
    assert asked["content"] == "Rename one"
    assert "<function=apply_edit>" in call["content"]
    assert "Applied 1 patch" in result["content"]
    assert answered["content"] == "Done."
    assert last["content"].startswith("[The user undid a change: edit a.txt.")
    assert last["content"].endswith("]\n\nWhat was it?")
    assert kept(tmp_path) == [file]
    assert len(model.bodies()[3]["messages"]) == 8
    assert [line.text for line in Transcript.from_text(file.read_text()).lines if line.kind == "said"] == [
        "What was it?"
    ] * 2


def test_recording_contains_each_message_once(model, tmp_path):
    """The file grows linearly, and each request can be restored from it."""
    model.on(CHAT, answer("Hm."))
    for number in range(4):
        words = ["--continue"] if number else []
        adapter("chat", "-w", "w", "--base-url", model.url, *words, cwd=tmp_path, text=f"message {number}")
    (file,) = kept(tmp_path)
    text = file.read_text(encoding="utf-8")
    requests = [line for line in Transcript.from_text(text).lines if line.kind == "request"]
    assert [len(line.messages) for line in requests] == [2, 4, 6, 8]
    assert list(requests[-1].messages) == model.bodies()[-1]["messages"]
    assert adapter("view", file, "--html", tmp_path / "page.html").returncode == 0
    replayed = adapter("replay", file)
    assert replayed.returncode == 2
    assert "a saved chat cannot be replayed" in replayed.stdout


def test_failed_file_access_does_not_end_the_chat(capsys):
    class FullDisk:
        console = Console()

        def send(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    assert _respond(FullDisk(), "Hello")  # type: ignore[arg-type]
    assert capsys.readouterr().err == "No space left on device\n"


def test_slash_commands_report_their_results(model, tmp_path):
    """Errors suggest a valid command, and do not end the chat."""
    model.on(CHAT, answer(WRITE), answer("Done."), answer("I am another."))
    chat = Chat(model, tmp_path, "--approve", "auto-edit", columns=120)
    for typed in (
        *(
            "/why",
            "/xyz at all",
            "/undoo",
            "/clear now",
            "Write two",
            "/diff",
            "/tools",
            "/why",
            "/model qwen",
            "/model x.gguf",
        ),
        *("/model qwen3:4b", "/format qwen3_coder", "/format nonsense", "Who are you?", "/prompt", "/save talk.md"),
        *(
            "/save talk.md",
            "/save talk.jsonl",
            "/save ~no-such-user/talk.md",
            "/undo",
            "/undo",
            "/redo",
            "/redo",
            "/help",
            "/clear",
            "/undo",
            "/save x",
        ),
    ):
        chat.say(typed)
    chat.say("/exit")
    assert chat.terminal.end() == 0
    shown = chat.terminal.text
    parts = dict(part.split("\n", 1) for part in ("\n" + shown).split("\n> ")[1:] if "\n" in part)
    assert parts["/xyz at all"].startswith("unknown command /xyz; /help lists the commands")
    assert "did you mean /undo?" in parts["/undoo"]
    assert "/clear takes no argument, got 'now'" in parts["/clear now"]
    assert parts["/diff"] == "   --- a/a.txt\n   +++ b/a.txt\n   @@ -1 +1 @@\n   -one\n   +two"
    assert re.search(r"^apply_edit +write +", parts["/tools"], re.MULTILINE)
    assert "answer 1 of 2" in parts["/why"]
    assert '= write_file({"path": "a.txt", "content": "two\\n"})' in parts["/why"]
    assert "has no model 'qwen'; did you mean 'qwen3:4b'?" in parts["/model qwen"]
    assert "model: x.gguf" not in parts["/model x.gguf"], "the server does not have it"
    assert "model: qwen3:4b, format: " in parts["/model qwen3:4b"]
    assert "format: qwen3_coder" in parts["/format qwen3_coder"]
    assert "unknown format" in parts["/format nonsense"]
    assert "<function=write_file>" in parts["/prompt"]
    assert "I am another." in parts["/prompt"]
    assert shown.count("saved to talk.") == 2
    assert "cannot write talk.md: File exists" in shown
    assert "cannot write ~no-such-user/talk.md: " in shown
    assert "undone: overwrite a.txt" in shown
    assert "nothing to undo" in shown
    assert "redone: overwrite a.txt" in shown
    assert "nothing to redo" in shown
    assert all(f"/{name}" in parts["/help"] for name in COMMANDS)
    assert "there is nothing to save yet" in parts["/save x"]
    last = model.bodies()[-1]
    assert last["model"] == "qwen3:4b"
    assert "<function=write_file>" in last["messages"][2]["content"]
    saved = (tmp_path / "talk.md").read_text(encoding="utf-8")
    assert saved.startswith("## You\n\nWrite two\n")
    assert "## You\n\nWho are you?" in saved
    assert (tmp_path / "talk.jsonl").stat().st_mode & 0o777 == 0o600
    assert Transcript.from_text((tmp_path / "talk.jsonl").read_text()).header.task == "Write two"


@pytest.mark.parametrize("reader", ["prompt_toolkit", "plain"])
def test_message_with_several_lines_is_sent_whole(model, tmp_path, reader):
    """A backslash before Enter continues the line; prompt_toolkit adds Esc and Enter, pasting and history."""
    model.on(CHAT, answer("I see."))
    chat = Chat(model, tmp_path, environ=PLAIN if reader == "plain" else {})
    chat.prompt()
    chat.terminal.type("one\\\r")
    chat.terminal.wait_for("\n.")
    if reader == "plain":
        chat.terminal.type("two\r")
    else:
        chat.terminal.type("two\x1b\rthree\x1b[200~ four\nfive\x1b[201~\r")
    chat.say("/exit")
    assert chat.terminal.end() == 0
    expected = "one\ntwo" if reader == "plain" else "one\ntwo\nthree four\nfive"
    assert model.bodies()[-1]["messages"][-1]["content"] == expected
    if reader == "plain":
        return
    (history,) = (tmp_path / "state").rglob("talks/typed")
    assert history.stat().st_mode & 0o777 == 0o600
    again = Chat(model, tmp_path)
    again.prompt()
    again.terminal.type("\x1b[A")
    again.terminal.type("\x1b[A", after="/exit")
    again.terminal.type("\r", after="five")
    again.end()
    assert model.bodies()[-1]["messages"][-1]["content"] == expected


def test_failed_message_is_sent_again_with_the_next_one(model, tmp_path):
    """An error of the server is shown and does not end the chat."""
    model.on(CHAT, as_error(400, "no such thing"), answer("Now."))
    chat = Chat(model, tmp_path)
    chat.say("Hello")
    chat.say("Once more")
    shown = chat.end()
    assert "no such thing" in shown
    assert "\nNow.\n" in shown
    assert [m["content"] for m in model.bodies()[-1]["messages"][1:]] == ["Hello\n\nOnce more"]


def test_run_without_a_task_starts_a_chat_at_a_terminal_only(model, tmp_path):
    model.on(CHAT, answer("Hi."))
    chat = Chat(model, tmp_path, command="run")
    chat.say("Hello")
    assert "\nHi.\n" in chat.end()
    for words, says in (
        (("run",), "no task was given"),
        (("chat",), "standard input is empty"),
        (("chat", "--continue", "--resume", "2"), "cannot be combined"),
        (("chat", "-w", "elsewhere", "--continue"), "this folder has no saved chat"),
    ):
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        done = adapter(*words, cwd=tmp_path, text="x" if "--continue" in words else "")
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr


def test_piped_chat_prints_only_the_answer_to_stdout(model, tmp_path):
    """The whole input is one message, even with a slash; approvals are refused and the exit code is 1."""
    model.on(CHAT, answer("I try. " + WRITE), answer("I may not."))
    words = ("chat", "-w", "w", "--base-url", model.url)
    done = adapter(*words, cwd=tmp_path, text="/undo\nis a command\n")
    assert (done.returncode, done.stdout) == (1, "I try.\nI may not.\n")
    assert "refused: approval needs a terminal" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert model.bodies()[0]["messages"][-1]["content"] == "/undo\nis a command"


@pytest.mark.parametrize(
    ("text", "expected"), [("/undo", True), ("/", True), ("/x y", True), ("/etc/hosts is", False), (" /undo", False)]
)
def test_is_slash_command_excludes_paths_and_indented_text(text, expected):
    assert is_slash_command(text) is expected


def test_chat_page_matches_the_program(monkeypatch):
    """The page's picture is the program's output; tests/test_readme.py checks its table."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert picture() == PICTURE.read_text(encoding="utf-8")


@pytest.mark.model
def test_built_in_model_answers_or_calls_a_tool(tmp_path, real_weights, monkeypatch):
    """It is very small: only the end reasons are checked."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "notes.txt").write_text("Buy milk.\n", encoding="utf-8")
    settings = RunSettings(tmp_path / "w", model=str(real_weights), approve="yolo", guide="on")
    said = ["Hello!", "Read notes.txt", *["List the files here", "Search for milk"] * (EFFORT - 1)]
    with ExitStack() as stack:
        conversation = ChatSession(stack, settings, Console())
        ends = [conversation.send(message).reason for message in said]
    assert len(ends) == len(said)
    assert set(ends) <= {"answered", "cut_off", "finished", "unsuccessful"}
    (file,) = kept(tmp_path)
    lines = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    assert sum(line["kind"] == "end" for line in lines) == len(said)
    assert any(line["kind"] == "result" and "Buy milk." in line["content"] for line in lines)
