"""Run a chat: read a message or a command and respond to it, until the user ends the chat.

Messages are read with prompt_toolkit if it is installed, otherwise line by line. Enter sends the message. A backslash
at the end of a line continues the message on the next line. With prompt_toolkit, Esc and then Enter also starts a new
line, pasted text is not split, and the arrow keys recall earlier lines.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.cli.agent_console import Console
from adapter.cli.agent_factory import validate_settings
from adapter.cli.chat_session import ChatSession, open_chat_store
from adapter.cli.escaped_output import print_escaped
from adapter.cli.run_outcome import HINTS, describe_run_outcome
from adapter.cli.run_settings import RunSettings
from adapter.cli.run_task import print_changes, read_task
from adapter.cli.slash_commands import COMMANDS, is_slash_command, run_slash_command
from adapter.conversation.session_steps import REASONS, Finished
from adapter.core.argument_checks import explain_read_error
from adapter.core.errors import AdapterError, UsageError
from adapter.recording.chat_store import SavedChat
from adapter.workspace import Workspace

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

PROMPT, CONTINUATION = "> ", ". "
MAX_HISTORY_BYTES = 256 * 1024
"""Maximum size of the history file, in bytes. A larger file is cut to its newest half."""


def start_chat(settings: RunSettings, resume: str | None, *, is_continued: bool) -> int:
    """Run a chat until the user ends it, and return the exit code.

    ``resume`` is the id of a saved chat to continue. If ``is_continued`` is true, the last saved chat continues. Raises
    TransportError and UsageError; their messages state the next step.
    """
    validate_settings(settings)
    if resume is not None and is_continued:
        raise UsageError("--continue and --resume cannot be combined; --continue continues the last chat")
    console, piped = Console(), None
    if not sys.stdin.isatty():
        piped = read_task().strip("\n")
        if not piped.strip():
            raise UsageError("standard input is empty: pipe in a message, or start the chat at a terminal")
    saved = _find_chat(settings.workspace, resume) if resume is not None or is_continued else None
    with ExitStack() as stack:
        conversation = ChatSession(stack, settings, console)
        console.note_workspace(conversation.workspace)
        if saved is not None:
            conversation.resume(saved)
            first = _abbreviate(saved.first, 60)
            console.note(f"continuing {saved.id}, which has {_count_messages(saved.messages)} and begins with: {first}")
        try:
            return _converse(conversation, settings) if piped is None else _answer_once(conversation, piped)
        finally:
            print_changes(conversation.workspace, settings.workspace, console)
            if conversation.id is not None:
                folder = "" if settings.workspace == Path() else f" -w {shlex.quote(str(settings.workspace))}"
                console.note(f"`adapter chat{folder} --resume {conversation.id}` continues this chat")


def _find_chat(folder: Path, id: str | None) -> SavedChat:
    with Workspace(folder) as workspace:
        return open_chat_store(workspace).find(id)


def list_chats(folder: Path) -> None:
    """Print the saved chats of ``folder``."""
    with Workspace(folder) as workspace:
        chats = open_chat_store(workspace).list_chats()
    id_width = max((len(chat.id) for chat in chats), default=0)
    text_width = max(shutil.get_terminal_size().columns - id_width - 18, 20) if sys.stdout.isatty() else 200
    for chat in chats:
        text = _abbreviate(chat.first, text_width)
        print_escaped(f"{chat.id:<{id_width}}  {_count_messages(chat.messages):>14}  {text}")
    if not chats:
        print_escaped("this folder has no saved chats", to_stderr=True)


def _answer_once(conversation: ChatSession, message: str) -> int:
    """Answer a piped message, and return the exit code."""
    done = conversation.send(message)
    code, last = describe_run_outcome(done, conversation.tally)
    if done.reason != "answered" or conversation.tally.calls:
        conversation.console.end(last, is_interrupted=done.reason == "interrupted")
    return code


def _converse(conversation: ChatSession, settings: RunSettings) -> int:
    console = conversation.console
    console.note(
        f"/help lists the commands, Ctrl-D ends the chat; {settings.approve}: {_APPROVALS.get(settings.approve, '')}"
    )
    history = Path(conversation.workspace.history.store.create_directory("talks"), "typed")
    read = make_line_reader(console, history, [f"/{name}" for name in COMMANDS])
    was_interrupted = False
    while True:
        try:
            text = read()
            was_interrupted = False
        except EOFError:
            console.start_fresh_line()
            return 0
        except KeyboardInterrupt:
            console.start_fresh_line()
            if was_interrupted:
                return 0
            was_interrupted = True
            console.note("press Ctrl-C again, or Ctrl-D, to end the chat")
            continue
        if text.strip() and not _respond(conversation, text):
            return 0


_APPROVALS = {
    "ask": "changes and commands need your approval",
    "auto-edit": "edits need no approval",
    "yolo": "nothing needs approval",
    "plan": "changes are refused",
}


def _respond(conversation: ChatSession, text: str) -> bool:
    """Run a slash command or answer a message. Errors are shown and do not end the chat. Return False to end it."""
    console = conversation.console
    try:
        if is_slash_command(text):
            return run_slash_command(conversation, text)
        _show_ending(conversation.send(text.strip()), console)
    except KeyboardInterrupt:
        console.start_fresh_line()
        console.note("stopped")
    except AdapterError as error:
        console.warn(str(error))
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the program that reads the answers has ended
            raise
        console.warn(explain_read_error(error))
    return True


def _show_ending(done: Finished, console: Console) -> None:
    """Show why the model stopped, unless it answered the message."""
    if done.reason == "interrupted":
        note = "; its partial answer is kept" if done.content.strip() else ""
        console.end(f"the model was stopped{note}", is_interrupted=True)
    elif done.reason not in ("answered", "exited", "finished"):
        hint = HINTS.get(done.reason)
        console.end(REASONS[done.reason] + (f": {hint}" if hint else ""))


def _count_messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def _abbreviate(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def make_line_reader(console: Console, history: Path, commands: Sequence[str]) -> Callable[[], str]:
    """Return a function that reads a message. It raises EOFError for Ctrl-D and KeyboardInterrupt for Ctrl-C.

    ``history`` is the file that stores the entered lines, readable only by its owner. Tab completes ``commands``.
    """
    if find_spec("prompt_toolkit") is None or os.environ.get("TERM") in ("dumb", "unknown"):
        return lambda: _read_plain(console)
    return _create_prompt_toolkit_reader(history, commands)


def _read_plain(console: Console) -> str:
    text = console.read_line(PROMPT)
    while text.endswith("\\"):
        text = f"{text[:-1]}\n{console.read_line(CONTINUATION)}"
    return text


def _create_prompt_toolkit_reader(history: Path, commands: Sequence[str]) -> Callable[[], str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.output import create_output

    _trim(history)
    session: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=CONTINUATION,
        key_bindings=_create_key_bindings(),
        completer=WordCompleter(list(commands), sentence=True),
        complete_while_typing=False,
        history=FileHistory(str(history)),
        output=create_output(sys.stderr),
    )
    return session.prompt


def _trim(history: Path) -> None:
    """Limit the size of the history file. If it is missing, create a file that only its owner can read."""
    os.close(os.open(history, os.O_CREAT | os.O_RDWR, 0o600))
    content = history.read_bytes()
    if len(content) > MAX_HISTORY_BYTES:
        half = content[-MAX_HISTORY_BYTES // 2 :]
        history.write_bytes(half[half.find(b"\n\n# ") + 1 :])


def _create_key_bindings() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    return keys
