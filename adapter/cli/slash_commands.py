"""Run the slash commands of a chat: `/undo`, `/why` and others."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rapidfuzz import process
from rich.text import Text

from adapter.backends.in_process_llama_cpp import is_gguf
from adapter.cli.chat_session import ChatSession
from adapter.cli.span_table import render_span_listing
from adapter.conversation.verbatim_history import build_verbatim_text
from adapter.core.errors import UsageError
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.turn import Turn
from adapter.parsing.formats import FORMATS, get_format
from adapter.recording.transcript import Transcript
from adapter.recording.transcript_lines import NoteLine, UserMessageLine
from adapter.workspace.changes.history import UndoResult


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A chat command. ``run`` gets the session and the text after the command, and returns False to end the chat."""

    summary: str
    run: Callable[[ChatSession, str], bool | None]
    argument: str = ""


def is_slash_command(text: str) -> bool:
    """Return whether the user's ``text`` is a slash command. Paths, and messages that begin with a space, are not."""
    word = text.split(maxsplit=1)[0] if text.strip() else ""
    return text.startswith("/") and "/" not in word[1:]


def run_slash_command(conversation: ChatSession, text: str) -> bool:
    """Run the slash command ``text``. Returns False if the chat must end. Raises AdapterError if the command fails."""
    name, _, rest = text[1:].strip().partition(" ")
    if name not in COMMANDS:
        near = process.extractOne(name, list(COMMANDS), score_cutoff=50) if name else None
        advice = f"did you mean /{near[0]}?" if near else "/help lists the commands."
        raise UsageError(
            f"unknown command /{escape_for_display(name)}; {advice} (To send it as a message, put a space before it.)"
        )
    command = COMMANDS[name]
    if rest.strip() and not command.argument:
        raise UsageError(f"/{name} takes no argument, got {escape_for_display(rest.strip())!r}")
    return command.run(conversation, rest.strip()) is not False


def _show_help(conversation: ChatSession, _: str) -> None:
    rows = [(f"/{name} {command.argument}".rstrip(), command.summary) for name, command in COMMANDS.items()]
    width = max(len(usage) for usage, _ in rows)
    for usage, summary in rows:
        conversation.console.note(f"{usage:<{width}}  {summary}")
    conversation.console.note(
        "Enter sends; Esc then Enter, or a backslash before Enter, starts a new line. Ctrl-C stops the model, Ctrl-D "
        "ends the chat."
    )


def _show_change(conversation: ChatSession, action: str, done: UndoResult) -> None:
    notice = "; the model will be notified" if conversation.id is not None else ""
    conversation.console.note(f"{action}: {done.change.summary}{notice}")
    conversation.console.show_diff(done.diff)
    for note in done.notes:
        conversation.console.note(f"note: {note}")


def _show_diff(conversation: ChatSession, _: str) -> None:
    history = conversation.workspace.history
    diff = history.render_diff(history.session)
    conversation.console.show_diff(diff)
    if not diff:
        conversation.console.note(
            "no file was changed by an editing tool in this session; changes by commands are not listed"
        )


def _show_tools(conversation: ChatSession, _: str) -> None:
    tools = conversation.agent.workspace.tools
    width = max(map(len, tools), default=0)
    for name, tool in tools.items():
        first = " ".join(tool.description.split()).partition(". ")[0]
        conversation.console.note(f"{name:<{width}}  {tool.effect:<7}  {first}")


def _change_model(conversation: ChatSession, name: str) -> None:
    chat = conversation.agent.chat
    if not name:
        for each in dict.fromkeys([chat.model, *chat.models()]):
            conversation.console.note(f"{'*' if each == chat.model else ' '} {each}")
        return
    names = chat.models()
    if name not in names and not is_gguf(name) and conversation.settings.model != name:
        near = process.extractOne(name, names)
        advice = f"did you mean {near[0]!r}?" if near else "the server lists no models."
        raise UsageError(f"{chat.endpoint.display_url} has no model {name!r}; {advice} You can also name a GGUF file.")
    is_file = name not in names and is_gguf(name)
    conversation.switch(model=name, **({"base_url": None} if is_file else {}))
    _show_model(conversation)


def _format(conversation: ChatSession, name: str) -> None:
    if name and name != "auto":
        get_format(name)
    if name:
        conversation.switch(format=name)
    _show_model(conversation)
    if not name:
        conversation.console.note(f"/format NAME accepts auto or one of: {', '.join(FORMATS)}")


def _show_model(conversation: ChatSession) -> None:
    bundle = conversation.agent
    conversation.console.note(f"model: {bundle.chat.model}, format: {bundle.agent.format.name}")


def _show_prompt(conversation: ChatSession, _: str) -> None:
    prompt, text = conversation.render_prompt(), Text()
    for role, content in [("prompt", prompt)] if isinstance(prompt, str) else prompt:
        text.append(f"{escape_for_display(role)}:\n", "bold")
        text.append(escape_for_display(content, keep="\n\t").rstrip("\n") + "\n")
    conversation.console.show(text)


def _save(conversation: ChatSession, name: str) -> None:
    if not name:
        raise UsageError("/save needs a file name: /save chat.md for reading, /save chat.jsonl for `adapter view`")
    if conversation.path is None:
        raise UsageError("there is nothing to save yet; send a message first")
    text = conversation.path.read_text(encoding="utf-8", errors="replace")
    if not name.endswith(".jsonl"):
        text = render_transcript(Transcript.from_text(text, conversation.id or ""))
    try:
        descriptor = os.open(Path(name).expanduser(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: an unknown user's home, as in ~nobody/x
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot write {escape_for_display(name)}: {why}. Choose another name.") from error
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    conversation.console.note(f"saved to {name}, readable only by you")


def render_transcript(transcript: Transcript) -> str:
    """Render a chat as Markdown. Answers are rendered verbatim, as the model wrote them."""
    from adapter.parsing.parser import parse

    parts = [f"## You\n\n{transcript.header.task}\n"]
    answers = iter(transcript.answers)
    for line in transcript.lines:
        if isinstance(line, UserMessageLine):
            parts.append(f"## You\n\n{line.text}\n")
        elif isinstance(line, NoteLine):
            parts.append(f"{line.text}\n")
        elif line.kind == "request":
            answer = build_verbatim_text(parse("".join(chunk.text for chunk in next(answers))).events)
            parts.append(f"## {transcript.header.model or 'Model'}\n\n{answer.strip()}\n")
        elif line.kind == "result":
            fence = "`" * max(3, _count_longest_run(line.content) + 1)
            parts.append(f"{line.name}:\n\n{fence}\n{line.content.rstrip()}\n{fence}\n")
    return "\n".join(parts)


def _count_longest_run(text: str) -> int:
    return max((len(run) for run in "".join(c if c == "`" else " " for c in text).split()), default=0)


def _show_why(conversation: ChatSession, _: str) -> None:
    if not conversation.answers:
        raise UsageError("nothing to explain yet: send a message first")
    for number, answer in enumerate(conversation.answers, start=1):
        if len(conversation.answers) > 1:
            conversation.console.note(f"answer {number} of {len(conversation.answers)}", "bold")
        if answer.query.again:
            conversation.console.note(f"the previous answer was retried: {answer.query.again}")
        if answer.events:
            conversation.console.show(render_span_listing(Turn.from_events(answer.events).explain()))
        else:
            conversation.console.note("the answer is empty")


def _clear(conversation: ChatSession, _: str) -> None:
    previous = conversation.id
    conversation.clear()
    hint = f"; `adapter chat --resume {previous}` continues the previous one" if previous else ""
    conversation.console.note(f"new chat{hint}")


COMMANDS = {
    "help": SlashCommand("list the commands", _show_help),
    "undo": SlashCommand(
        "undo the last change to a file, and notify the model",
        lambda chat, _: _show_change(chat, "undone", chat.undo()),
    ),
    "redo": SlashCommand("redo the last undone change", lambda chat, _: _show_change(chat, "redone", chat.redo())),
    "diff": SlashCommand("show the changes of this session as one diff", _show_diff),
    "tools": SlashCommand("list the model's tools and their effects", _show_tools),
    "model": SlashCommand("show the available models, or switch to another", _change_model, "[NAME]"),
    "format": SlashCommand("show the tool-call format, or switch to another", _format, "[NAME]"),
    "prompt": SlashCommand("show the model's input", _show_prompt),
    "save": SlashCommand("save the chat to a file: .jsonl as recorded, otherwise as Markdown", _save, "FILE"),
    "why": SlashCommand("explain how the last answer was parsed", _show_why),
    "clear": SlashCommand("start a new chat", _clear),
    "exit": SlashCommand("end the chat, like Ctrl-D", lambda *_: False),
}
