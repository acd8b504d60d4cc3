"""The loop of a chat: a message or a command is read and done, until the person ends it."""

from __future__ import annotations

import shlex
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

from adapter.cli.agent_factory import validate_settings
from adapter.cli.chat_input import make_line_reader
from adapter.cli.chat_session import ChatSession, open_chat_store
from adapter.cli.console import Console
from adapter.cli.exit_status import HINTS, exit_status
from adapter.cli.run_settings import RunSettings
from adapter.cli.slash_commands import COMMANDS, is_slash_command, run_slash_command
from adapter.cli.task_runner import print_changes, read_task
from adapter.cli.terminal_output import print_escaped
from adapter.conversation.session import REASONS, Finished
from adapter.core.errors import AdapterError, UsageError
from adapter.recording.chat_store import SavedChat
from adapter.workspace import Workspace


def start_chat(settings: RunSettings, resume: str | None, *, is_continued: bool) -> int:
    """Talk until the person ends it; the exit code. Raises TransportError and UsageError with the next step.

    ``resume``: the id of the chat that goes on; ``is_continued``: the last one does.
    """
    validate_settings(settings)
    if resume is not None and is_continued:
        raise UsageError("--continue goes on with the last chat, --resume with the one that it names: give one of them")
    console, piped = Console(), None
    if not sys.stdin.isatty():
        piped = read_task().strip("\n")
        if not piped.strip():
            raise UsageError("standard input is empty: pipe a message in, or start at a terminal")
    kept = _found(settings.workspace, resume) if resume is not None or is_continued else None
    with ExitStack() as stack:
        conversation = ChatSession(stack, settings, console)
        if conversation.agent.workspace.sandbox:
            console.note_sandbox(conversation.agent.workspace.sandbox)
        for note in conversation.workspace.recovered:
            console.note(note)
        if kept is not None:
            conversation.resume(kept)
            console.note(f"going on with {kept.id}: {_said(kept.messages)}, the first: {_short(kept.first, 60)}")
        try:
            return _talk(conversation, settings) if piped is None else _answer_once(conversation, piped)
        finally:
            print_changes(conversation.workspace, settings.workspace, console)
            if conversation.id is not None:
                folder = "" if settings.workspace == Path() else f" -w {shlex.quote(str(settings.workspace))}"
                console.note(f"`adapter chat{folder} --resume {conversation.id}` goes on with this chat")


def _found(folder: Path, id: str | None) -> SavedChat:
    with Workspace(folder) as workspace:
        return open_chat_store(workspace).find(id)


def list_chats(folder: Path) -> None:
    """Print the chats that are kept of ``folder``."""
    with Workspace(folder) as workspace:
        kept = open_chat_store(workspace).kept()
    width = max((len(each.id) for each in kept), default=0)
    room = max(shutil.get_terminal_size().columns - width - 18, 20) if sys.stdout.isatty() else 200
    for each in kept:
        print_escaped(f"{each.id:<{width}}  {_said(each.messages):>14}  {_short(each.first, room)}")
    if not kept:
        print_escaped("no chat of this folder is kept", to_stderr=True)


def _answer_once(conversation: ChatSession, message: str) -> int:
    """The answer to what was piped in."""
    done = conversation.send(message)
    code, last = exit_status(done, conversation.tally)
    if done.reason != "answered" or conversation.tally.calls:
        conversation.console.end(last, is_interrupted=done.reason == "interrupted")
    return code


def _talk(conversation: ChatSession, settings: RunSettings) -> int:
    console = conversation.console
    console.note(f"/help lists the commands, Ctrl-D ends; {settings.approve}: {_APPROVES.get(settings.approve, '')}")
    history = Path(conversation.workspace.history.store.folder("talks"), "typed")
    read = make_line_reader(console, history, [f"/{name}" for name in COMMANDS])
    was_interrupted = False
    while True:
        try:
            text = read()
            was_interrupted = False
        except EOFError:
            console.fresh_line()
            return 0
        except KeyboardInterrupt:
            console.fresh_line()
            if was_interrupted:
                return 0
            was_interrupted = True
            console.note("Ctrl-C once more, or Ctrl-D, ends the chat")
            continue
        if text.strip() and not _done(conversation, text):
            return 0


_APPROVES = {
    "ask": "changes and commands are asked for",
    "auto-edit": "edits are made unasked",
    "yolo": "everything is done unasked",
    "plan": "nothing is changed",
}


def _done(conversation: ChatSession, text: str) -> bool:
    """Do what was typed; whether the chat goes on. What fails is said, and the chat goes on."""
    console = conversation.console
    try:
        if is_slash_command(text):
            return run_slash_command(conversation, text)
        _say_how_it_ended(conversation.send(text.strip()), console)
    except KeyboardInterrupt:
        console.fresh_line()
        console.note("stopped")
    except AdapterError as error:
        console.warn(str(error))
    return True


def _say_how_it_ended(done: Finished, console: Console) -> None:
    """Nothing where the model has answered: the person sees that."""
    if done.reason == "interrupted":
        kept = "; what it had written is kept" if done.content.strip() else ""
        console.end(f"the model was stopped{kept}", is_interrupted=True)
    elif done.reason not in ("answered", "exited", "finished"):
        hint = HINTS.get(done.reason)
        console.end(REASONS[done.reason] + (f": {hint}" if hint else ""))


def _said(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def _short(text: str, room: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= room else f"{line[: room - 1]}…"
