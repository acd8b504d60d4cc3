"""What a person does in a chat besides talking: `/undo`, `/why` and the others."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rapidfuzz import process
from rich.text import Text

from adapter.backends.embedded_server import is_gguf
from adapter.cli.chat_session import ChatSession
from adapter.cli.span_table import span_listing
from adapter.conversation.verbatim_history import verbatim_text
from adapter.core.errors import UsageError
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.turn import Turn
from adapter.parsing.formats import FORMATS, get_format
from adapter.recording.transcript import NoteLine, Transcript, UserMessageLine
from adapter.workspace.changes.history import UndoResult


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """``run`` is given what stands behind the name, and gives whether the chat goes on."""

    about: str
    run: Callable[[ChatSession, str], bool | None]
    argument: str = ""


def is_slash_command(text: str) -> bool:
    """A path, or a message after a blank, is none."""
    word = text.split(maxsplit=1)[0] if text.strip() else ""
    return text.startswith("/") and "/" not in word[1:]


def run_slash_command(conversation: ChatSession, text: str) -> bool:
    """Whether the chat goes on. Raises AdapterError for what cannot be done."""
    name, _, rest = text[1:].strip().partition(" ")
    if name not in COMMANDS:
        near = process.extractOne(name, list(COMMANDS), score_cutoff=50) if name else None
        meant = f"did you mean /{near[0]}?" if near else "/help lists the commands"
        raise UsageError(
            f"there is no command /{escape_for_display(name)}; {meant} (A blank before it makes it a message.)"
        )
    command = COMMANDS[name]
    if rest.strip() and not command.argument:
        raise UsageError(f"/{name} takes nothing behind it, not {escape_for_display(rest.strip())!r}")
    return command.run(conversation, rest.strip()) is not False


def _help(conversation: ChatSession, _: str) -> None:
    shown = [(f"/{name} {command.argument}".rstrip(), command.about) for name, command in COMMANDS.items()]
    width = max(len(name) for name, _ in shown)
    for name, about in shown:
        conversation.console.note(f"{name:<{width}}  {about}")
    conversation.console.note(
        "Enter sends, Esc and Enter or a backslash before Enter begins a line; Ctrl-C stops the model, Ctrl-D ends."
    )


def _undo(conversation: ChatSession, _: str) -> None:
    _show_done(conversation, "undone", conversation.undo())


def _redo(conversation: ChatSession, _: str) -> None:
    _show_done(conversation, "redone", conversation.redo())


def _show_done(conversation: ChatSession, what: str, done: UndoResult) -> None:
    told = "; the model will be told" if conversation.id is not None else ""
    conversation.console.note(f"{what}: {done.change.summary}{told}")
    conversation.console.show_diff(done.diff)
    for note in done.notes:
        conversation.console.note(f"note: {note}")


def _diff(conversation: ChatSession, _: str) -> None:
    history = conversation.workspace.history
    diff = history.diff(history.session)
    conversation.console.show_diff(diff)
    if not diff:
        conversation.console.note("no file was changed here by a tool that edits; what commands changed is not listed")


def _tools(conversation: ChatSession, _: str) -> None:
    tools = conversation.agent.workspace.tools
    width = max(map(len, tools), default=0)
    for name, tool in tools.items():
        first = " ".join(tool.description.split()).partition(". ")[0]
        conversation.console.note(f"{name:<{width}}  {tool.effect:<7}  {first}")


def _model(conversation: ChatSession, name: str) -> None:
    chat = conversation.agent.chat
    if not name:
        for each in dict.fromkeys([chat.model, *chat.models()]):
            conversation.console.note(f"{'*' if each == chat.model else ' '} {each}")
        return
    names = chat.models()
    if name not in names and not is_gguf(name) and conversation.settings.model != name:
        near = process.extractOne(name, names)
        meant = f"did you mean {near[0]}?" if near else "it serves none"
        raise UsageError(f"{chat.endpoint.display_url} has no model {name!r}; {meant} A GGUF file can be given, too")
    conversation.switch(model=name)
    _say_who(conversation)


def _format(conversation: ChatSession, name: str) -> None:
    if name and name != "auto":
        get_format(name)
    if name:
        conversation.switch(format=None if name == "auto" else name)
    _say_who(conversation)
    if not name:
        conversation.console.note(f"/format NAME takes auto or one of: {', '.join(FORMATS)}")


def _say_who(conversation: ChatSession) -> None:
    made = conversation.agent
    conversation.console.note(
        f"{made.chat.model} is spoken to, and is taught to write calls as {made.agent.format.name}"
    )


def _prompt(conversation: ChatSession, _: str) -> None:
    seen, text = conversation.sees(), Text()
    for role, content in [("prompt", seen)] if isinstance(seen, str) else seen:
        text.append(f"{escape_for_display(role)}:\n", "bold")
        text.append(escape_for_display(content, keep="\n\t").rstrip("\n") + "\n")
    conversation.console.show(text)


def _save(conversation: ChatSession, name: str) -> None:
    if not name:
        raise UsageError("say where: /save talk.md for reading, /save talk.jsonl for `adapter view`")
    if conversation.path is None:
        raise UsageError("nothing was said yet")
    text = conversation.path.read_text(encoding="utf-8", errors="replace")
    if not name.endswith(".jsonl"):
        text = transcript_to_markdown(Transcript.from_text(text, conversation.id or ""))
    try:
        with os.fdopen(os.open(Path(name).expanduser(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"{escape_for_display(name)} was not written: {error.strerror}. Choose another name"
        ) from error
    conversation.console.note(f"saved as {name}, for you alone to read")


def transcript_to_markdown(transcript: Transcript) -> str:
    """What was said, and each answer as the model wrote it."""
    from adapter.parsing.parser import parse

    parts = [f"## You\n\n{transcript.header.task}\n"]
    answers = iter(transcript.answers)
    for line in transcript.lines:
        if isinstance(line, UserMessageLine):
            parts.append(f"## You\n\n{line.text}\n")
        elif isinstance(line, NoteLine):
            parts.append(f"{line.text}\n")
        elif line.kind == "request":
            written = verbatim_text(parse("".join(chunk.text for chunk in next(answers))).events)
            parts.append(f"## {transcript.header.model or 'Model'}\n\n{written.strip()}\n")
        elif line.kind == "result":
            fence = "`" * max(3, _longest_run(line.content) + 1)
            parts.append(f"{line.name}:\n\n{fence}\n{line.content.rstrip()}\n{fence}\n")
    return "\n".join(parts)


def _longest_run(text: str) -> int:
    return max((len(run) for run in "".join(c if c == "`" else " " for c in text).split()), default=0)


def _why(conversation: ChatSession, _: str) -> None:
    if not conversation.answers:
        raise UsageError("there is no answer to explain: say something first")
    for number, answer in enumerate(conversation.answers, start=1):
        if len(conversation.answers) > 1:
            conversation.console.note(f"answer {number} of {len(conversation.answers)}", "bold")
        if answer.query.again:
            conversation.console.note(f"the answer before was asked again: {answer.query.again}")
        turn: Turn = answer.turn
        if turn.events:
            conversation.console.show(span_listing(turn.explain()))
        else:
            conversation.console.note("nothing was written")


def _clear(conversation: ChatSession, _: str) -> None:
    before = conversation.id
    conversation.clear()
    kept = f"; `adapter chat --resume {before}` goes on with the one before" if before else ""
    conversation.console.note(f"a new conversation{kept}")


def _exit(_: ChatSession, __: str) -> bool:
    return False


COMMANDS = {
    "help": SlashCommand("this list", _help),
    "undo": SlashCommand("take back the last change of a file, and tell the model", _undo),
    "redo": SlashCommand("make it again", _redo),
    "diff": SlashCommand("what was changed in this session, as one diff", _diff),
    "tools": SlashCommand("the tools that the model has, and what they do to the world", _tools),
    "model": SlashCommand("which model answers, or go on with another", _model, "[NAME]"),
    "format": SlashCommand("how it writes calls, or have it write otherwise", _format, "[NAME]"),
    "prompt": SlashCommand("what the model sees", _prompt),
    "save": SlashCommand("write the conversation to a file: .jsonl as recorded, else as Markdown", _save, "FILE"),
    "why": SlashCommand("the last answer explained: what each piece was taken for", _why),
    "clear": SlashCommand("begin a new conversation", _clear),
    "exit": SlashCommand("end, as Ctrl-D does", _exit),
}
